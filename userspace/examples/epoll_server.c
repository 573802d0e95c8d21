// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A server that sleeps in one place: new clients, the completions of all of them, and
 * their farewells come by epoll. It sends back what it gets, reversed. Works are posted
 * by wr_id, and nobody waits for a single one.
 *
 *	epoll_server -n CLIENTS		serves that many, then ends
 *	epoll_server HOST		one of them
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "common.h"

#define SLOTS		4	/* messages of one client that are under way here */
#define SIZE		128
#define MAX_CLIENTS	14	/* they share a cq of 64 */
#define ROUNDS		50

/* What an event speaks of; a number from 0 on is a client. */
enum { LISTENER = -1, COMPLETIONS = -2 };

struct client {
	int tcp;
	struct ibchan_channel *channel;
	struct ibchan_mr *mr;
	char text[SLOTS][SIZE];
};

struct server {
	struct side side;
	int epoll;
	int listener;
	int accepted;
	int gone;
	struct client clients[MAX_CLIENTS];
};

static void watch(struct server *server, int fd, int what)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = (__u64)what };

	if (epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event))
		err(1, "epoll_ctl");
}

/* A slot is either being received into or being sent from, never both. */
static void post(struct server *server, __u64 wr_id, __u32 opcode, __u32 bytes)
{
	struct client *client = &server->clients[wr_id / SLOTS];
	struct ibchan_sge sge = ibchan_sge_new(client->mr, wr_id % SLOTS * SIZE, bytes);
	struct ibchan_wr wr = {
		.channel = client->channel, .opcode = opcode, .wr_id = wr_id,
		.sges = &sge, .num_sge = 1,
	};

	must("post", ibchan_post(server->side.context, &wr, 1, NULL, &error));
}

/* A server in earnest would not wait for the client's endpoint here. */
static void client_new(struct server *server)
{
	int index = server->accepted++;
	struct client *client = &server->clients[index];

	client->tcp = tcp_accept(server->listener);
	must("memory", ibchan_mr_reg_local(server->side.pd, client->text, sizeof(client->text),
					   &client->mr, &error));
	client->channel = channel_open(&server->side, client->tcp);
	for (int i = 0; i < SLOTS; i++)
		post(server, index * SLOTS + i, IBCHAN_OP_RECV, SIZE);
	watch(server, client->tcp, index);
}

/*
 * Once the channel is closed, its works have ended and the memory is ours again. The
 * completions of the receives that waited for more come later, and name no channel.
 */
static void client_gone(struct server *server, int index)
{
	struct client *client = &server->clients[index];

	part(client->tcp);
	must("close", ibchan_channel_close(client->channel));
	must("deregister", ibchan_mr_dereg(client->mr));
	server->gone++;
}

static void reverse(char *text, __u32 length)
{
	for (__u32 i = 0; i < length / 2; i++) {
		char c = text[i];

		text[i] = text[length - 1 - i];
		text[length - 1 - i] = c;
	}
}

static void completed(struct server *server, const struct ibchan_completion *done)
{
	struct client *client = &server->clients[done->wr_id / SLOTS];

	if (!done->channel)
		return;
	if (done->error)
		errx(1, "%s: %s: %s", ibchan_opcode_name(done->opcode),
		     ibchan_status_name(done->status), ibchan_status_hint(done->status));
	if (done->opcode == IBCHAN_OP_RECV) {
		reverse(client->text[done->wr_id % SLOTS], done->bytes);
		post(server, done->wr_id, IBCHAN_OP_SEND, done->bytes);
	} else {
		post(server, done->wr_id, IBCHAN_OP_RECV, SIZE);
	}
}

static void completions(struct server *server)
{
	struct ibchan_completion done[16];
	int n = must("poll", ibchan_cq_poll(server->side.cq, done, 16));

	for (int i = 0; i < n; i++)
		completed(server, &done[i]);
}

static void handle(struct server *server, int what)
{
	if (what == LISTENER)
		client_new(server);
	else if (what == COMPLETIONS)
		completions(server);
	else
		client_gone(server, what);
}

static void serve(struct server *server, const struct options *options)
{
	struct epoll_event event;

	check("that many clients do not fit", options->clients <= MAX_CLIENTS);
	server->epoll = epoll_create1(EPOLL_CLOEXEC);
	server->listener = tcp_listen(options);
	watch(server, server->listener, LISTENER);
	watch(server, must("descriptor", ibchan_cq_fd(server->side.cq)), COMPLETIONS);
	while (server->gone < options->clients) {
		int n = epoll_wait(server->epoll, &event, 1, -1);

		if (n == 1)
			handle(server, (int)event.data.u64);
	}
	printf("%d clients served\n", server->gone);
}

static void be_client(struct side *side, const struct options *options)
{
	static char text[SIZE];
	struct ibchan_mr *mr;
	int tcp = tcp_connect(options);

	must("memory", ibchan_mr_reg_local(side->pd, text, SIZE, &mr, &error));
	side->channel = channel_open(side, tcp);
	for (int i = 0; i < ROUNDS; i++) {
		char sent[SIZE];
		int length = snprintf(text, SIZE, "message %d to be reversed", i);
		struct ibchan_sge sge = ibchan_sge_new(mr, 0, length);

		memcpy(sent, text, SIZE);
		reverse(sent, length);
		must("send", ibchan_send(side->channel, &sge, 1, &error));
		must("receive", ibchan_receive(side->channel, &sge, 1, NULL, &error));
		check("that is not what was sent", !memcmp(sent, text, length));
	}
	printf("%d messages came back, the last as: %.*s\n", ROUNDS, (int)strlen(text), text);
	part(tcp);
}

int main(int argc, char **argv)
{
	static struct server server;
	struct options options;

	options_read(&options, argc, argv);
	side_open(&server.side, &options);
	if (options.host)
		be_client(&server.side, &options);
	else
		serve(&server, &options);
	return ibchan_context_close(server.side.context);
}
