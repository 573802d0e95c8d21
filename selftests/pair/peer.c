// SPDX-License-Identifier: GPL-2.0-only
/*
 * One side of a channel by address between two guests.
 *
 *	peer serve PORT			answer one client, until it goes
 *	peer ask HOST PORT		send messages, check the answers
 *	peer hold PORT			connect to one client and do nothing with it
 *	peer watch HOST PORT SECONDS	see all receives end in that time, and what is sent
 *					then refused, because the peer has died, which a
 *					line on standard input tells
 *	peer version			print the version of the wire
 *
 * Ends with a sentence and exit code 1 when something is not as it should be.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <ibchan.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

#define MEMORY		(512 << 10)
#define RECEIVES	8
#define SECOND		1000000000LL

/*
 * A packet is sent again after 268 ms; an emulated CPU may need longer than the default. A
 * keepalive has to see the last of them fail.
 */
#define ACK_TIMEOUT	16

/* A part of a packet, several packets, and more than are under way at once. */
static const __u32 sizes[] = { 1, 64, 5000, 300000 };

#define ROUNDS	(4 * ARRAY_SIZE(sizes))

struct end {
	struct ibchan_context *context;
	struct ibchan_device *device;
	struct ibchan_pd *pd;
	struct ibchan_cq *cq;
	struct ibchan_mr *mr;
	struct ibchan_builder builder;
	struct ibchan_channel *channel;
	unsigned char *memory;
};

static struct ibchan_error error;

static int must(const char *what, int ret)
{
	char text[256];

	if (ret >= 0)
		return ret;
	error.code = ret;
	ibchan_error_text(&error, text, sizeof(text));
	fprintf(stderr, "%s: %s\n", what, text);
	exit(1);
}

static void check(const char *what, int condition)
{
	if (condition)
		return;
	fprintf(stderr, "%s\n", what);
	exit(1);
}

/* @host: NULL: any device. */
static void end_open(struct end *end, const char *host)
{
	must("open", ibchan_context_open(&end->context, NULL));
	if (host)
		must("device", ibchan_device_open_for(end->context, host, NULL, &end->device,
						      &error));
	else
		must("device", ibchan_device_open(end->context, NULL, &end->device, NULL));
	must("domain", ibchan_pd_alloc(end->device, &end->pd, NULL));
	must("queue", ibchan_cq_create(end->device, 256, 512, &end->cq, &error));
	end->memory = calloc(1, MEMORY);
	check("no memory", !!end->memory);
	must("region", ibchan_mr_reg_local(end->pd, end->memory, MEMORY, &end->mr, &error));
	ibchan_builder_init(&end->builder, end->pd, end->cq);
	end->builder.params.ack_timeout = ACK_TIMEOUT;
	/* Who has no receive yet is about to post one: without end. */
	end->builder.params.rnr_retries = 7;
}

static void end_accept(struct end *end, const char *port)
{
	const struct ibchan_listen_params params = { .size = sizeof(params), .service = port };
	struct ibchan_listener *listener;

	end_open(end, NULL);
	must("listen", ibchan_listener_create(end->context, &params, &listener, &error));
	puts("listening");
	fflush(stdout);
	must("accept", ibchan_builder_accept(&end->builder, listener, 60 * SECOND,
					     &end->channel, &error));
	must("listener", ibchan_listener_close(listener));
}

static void end_connect(struct end *end, const char *host, const char *port)
{
	end_open(end, host);
	must("connect", ibchan_builder_connect(&end->builder, host, port, NULL,
					       &end->channel, &error));
}

static void end_close(struct end *end)
{
	must("close", ibchan_context_close(end->context));
	free(end->memory);
}

static unsigned char pattern(unsigned int round, __u32 i)
{
	return (unsigned char)(i * 31 + i / 251 + round * 7);
}

static void serve(const char *port)
{
	struct end end = { 0 };
	unsigned int round;

	end_accept(&end, port);
	for (round = 0; round < ROUNDS; round++) {
		struct ibchan_submit_sge all = ibchan_sge_new(end.mr, 0, MEMORY);
		struct ibchan_cqe got;
		struct ibchan_submit_sge answer;
		__u32 i;

		must("receive", ibchan_receive(end.channel, &all, 1,
					       IBCHAN_TIMEOUT_NEVER, &got, &error));
		for (i = 0; i < got.bytes; i++) {
			check("a question is damaged", end.memory[i] == pattern(round, i));
			end.memory[i] ^= 0xff;
		}
		answer = ibchan_sge_new(end.mr, 0, got.bytes);
		must("send", ibchan_send(end.channel, &answer, 1, IBCHAN_TIMEOUT_NEVER, &error));
	}
	end_close(&end);
}

static void ask_once(struct end *end, unsigned int round, __u32 size)
{
	struct ibchan_submit_sge question = ibchan_sge_new(end->mr, 0, size);
	struct ibchan_submit_sge all = ibchan_sge_new(end->mr, 0, MEMORY);
	struct ibchan_cqe got;
	__u32 i;

	for (i = 0; i < size; i++)
		end->memory[i] = pattern(round, i);
	must("send", ibchan_send(end->channel, &question, 1, IBCHAN_TIMEOUT_NEVER, &error));
	memset(end->memory, 0, size);
	must("receive", ibchan_receive(end->channel, &all, 1, IBCHAN_TIMEOUT_NEVER, &got, &error));
	check("an answer has another length", got.bytes == size);
	for (i = 0; i < size; i++)
		check("an answer is damaged",
		      end->memory[i] == (unsigned char)(pattern(round, i) ^ 0xff));
}

static void ask(const char *host, const char *port)
{
	struct end end = { 0 };
	unsigned int round;

	end_connect(&end, host, port);
	for (round = 0; round < ROUNDS; round++)
		ask_once(&end, round, sizes[round % ARRAY_SIZE(sizes)]);
	printf("%u answers are right\n", round);
	end_close(&end);
}

static void hold(const char *port)
{
	struct end end = { 0 };

	end_accept(&end, port);
	puts("connected");
	fflush(stdout);
	for (;;)
		pause();
}

static __s64 now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* Nothing is sent, so that only the keepalive can tell. */
static void watch(const char *host, const char *port, int seconds)
{
	struct ibchan_cqe ended[RECEIVES];
	struct end end = { 0 };
	char line[16];
	__s64 start;
	unsigned int i;
	int n;

	end_connect(&end, host, port);
	for (i = 0; i < RECEIVES; i++)
		must("post", ibchan_post_receive(end.channel, end.mr, i * 4096, 4096, i, NULL));
	puts("connected");
	fflush(stdout);
	check("nobody says that the peer has died", !!fgets(line, sizeof(line), stdin));
	start = now_ms();
	n = must("wait", ibchan_cq_wait(end.cq, ended, RECEIVES, RECEIVES, seconds * SECOND));
	check("some receives have not ended", n == RECEIVES);
	for (i = 0; i < RECEIVES; i++)
		check("a receive has not failed", ended[i].error < 0 && ended[i].status);
	check("a dead peer can be sent to",
	      ibchan_post_send(end.channel, end.mr, 0, 64, RECEIVES, NULL) == -ESHUTDOWN);
	printf("%d receives have failed after %lld ms, the first with %s\n", n, now_ms() - start,
	       ibchan_status_name(ended[0].status));
	end_close(&end);
}

static void print_version(void)
{
	struct ibchan_prepared *prepared;
	struct ibchan_endpoint endpoint;
	struct end end = { 0 };

	end_open(&end, NULL);
	must("prepare", ibchan_builder_prepare(&end.builder, &prepared, &error));
	ibchan_prepared_endpoint(prepared, &endpoint);
	printf("%u\n", ntohs(endpoint.version));
	end_close(&end);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "version"))
		print_version();
	else if (argc == 3 && !strcmp(argv[1], "serve"))
		serve(argv[2]);
	else if (argc == 4 && !strcmp(argv[1], "ask"))
		ask(argv[2], argv[3]);
	else if (argc == 3 && !strcmp(argv[1], "hold"))
		hold(argv[2]);
	else if (argc == 5 && !strcmp(argv[1], "watch"))
		watch(argv[2], argv[3], atoi(argv[4]));
	else
		return 2;
	return 0;
}
