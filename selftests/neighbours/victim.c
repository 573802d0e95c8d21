// SPDX-License-Identifier: GPL-2.0-only
/*
 * victim DEVICE HOST SECONDS: as an ordinary user of a device, whose address HOST is, make, use
 * and give back one of everything, again and again for SECONDS. Prints for each call the longest
 * time that it took, in microseconds: "CALL TIME". `neighbours` runs it.
 *
 * A child does the calls and notes in shared memory what it is doing, so that a call which
 * never returns is measured, too. The first error is printed as "error CALL ERRNO".
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sync.h"
#include "work.h"
#include "world.h"

#define BYTES		4096
/* A call that takes longer is not waited for. */
#define PATIENCE_US	10000000ULL

#define CALLS(X)									\
	X(open) X(device) X(pd) X(cq) X(mr) X(prepare) X(handshake) X(post) X(wait)	\
	X(flush) X(dereg) X(domain) X(close) X(connect) X(told) X(exit) X(fdatasync)

#define CALL_INDEX(name) CALL_##name,
enum call { CALLS(CALL_INDEX) NUM_CALLS };

#define CALL_NAME(name) #name,
static const char *const names[] = { CALLS(CALL_NAME) };

/* What the child tells; in shared memory. */
struct account {
	__u64 longest[NUM_CALLS];
	__u64 since;		/* of the call that is under way; 0: none */
	enum call call;		/* which one */
	int error;
	unsigned int rounds;
};

static struct account *account;

static __u64 now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000ULL + now.tv_nsec / 1000;
}

static void begin(enum call call)
{
	account->call = call;
	__atomic_store_n(&account->since, now_us(), __ATOMIC_RELEASE);
}

static int end(int rc)
{
	__u64 took = now_us() - account->since;

	__atomic_store_n(&account->since, 0, __ATOMIC_RELEASE);
	if (took > account->longest[account->call])
		account->longest[account->call] = took;
	if (rc < 0 && !account->error)
		account->error = rc;
	return rc < 0 ? rc : 0;
}

#define TIMED(name, expression) (begin(CALL_##name), end(expression))

static struct side_options options_on(const char *device)
{
	struct side_options options = side_defaults();

	options.device = device;
	options.memory = 2 * BYTES;
	options.params.max_send_wr = 4;
	options.params.max_recv_wr = 4;
	options.cq_entries = 32;
	options.ring_entries = 32;
	return options;
}

static int open_file(struct side *side)
{
	side->fd = node_open();
	return side->fd;
}

/* Everything up to a channel without a peer. */
static int make(struct side *side, const struct side_options *options)
{
	int rc = TIMED(open, open_file(side));

	rc = rc ?: TIMED(device, device_open(side->fd, options->device, &side->device));
	rc = rc ?: TIMED(pd, pd_alloc(side->fd, side->device, &side->pd));
	rc = rc ?: TIMED(cq, side_cq(side, options));
	rc = rc ?: TIMED(mr, side_memory(side, options));
	return rc ?: TIMED(prepare, side_channel(side, options));
}

/* Of the memory, but by its address. */
static struct ibchan_submit_wr plain_send(const struct side *side)
{
	struct ibchan_submit_wr wr = work(side, IBCHAN_OP_SEND, 2, 0, BYTES);

	wr.sge.offset = address(side->memory + BYTES);
	wr.sge.mr = IBCHAN_MR_PLAIN;
	return wr;
}

/* @num completions are there with the two of a message to itself, of which @wr is the send. */
static int message(struct side *side, struct ibchan_submit_wr wr, unsigned int num)
{
	int rc = TIMED(post, post_receives(side, 1, 1, BYTES));

	rc = rc ?: TIMED(post, post_one(side, wr));
	return rc ?: TIMED(wait, ring_wait(side->ring, num, patience_ms()));
}

static int break_and_wait(struct side *side, unsigned int num)
{
	int rc = channel_break(side->fd, side->channel);

	return rc ?: ring_wait(side->ring, num, patience_ms());
}

/* Two messages to itself, and the end of the channel with a receive that gets none. */
static int use(struct side *side)
{
	int rc = TIMED(handshake, side_handshake(side, &side->endpoint));

	rc = rc ?: message(side, work(side, IBCHAN_OP_SEND, 2, BYTES, BYTES), 2);
	rc = rc ?: message(side, plain_send(side), 4);
	rc = rc ?: post_receives(side, 1, 1, BYTES);
	return rc ?: TIMED(flush, break_and_wait(side, 5));
}

static int close_side(struct side *side)
{
	int fd = side->fd;

	side->fd = 0;
	return close(fd);
}

static int made_used_given_back(const struct side_options *options)
{
	struct side side = {};
	int rc = make(&side, options);

	rc = rc ?: use(&side);
	rc = rc ?: destroy(side.fd, side.channel);
	rc = rc ?: TIMED(dereg, destroy(side.fd, side.mr));
	/* Behind what the plain memory of a work leaves to a worker. */
	rc = rc ?: TIMED(domain, destroy(side.fd, side.pd));
	/* The queue's file is one of those that keep the other one open. */
	ring_unmap(&side.own_ring);
	rc = rc ?: TIMED(close, close_side(&side));
	side_close(&side);
	return rc;
}

/* ---- By address: two channels of one file ---- */

static int listen_at(const struct side *side, const char *host,
		     struct ibchan_cmd_listener_create *listener)
{
	*listener = (struct ibchan_cmd_listener_create) { .address.family = AF_INET };
	inet_pton(AF_INET, host, listener->address.bytes);
	return cmd_listener_create(side->fd, listener);
}

static int ask(const struct side *side, const struct ibchan_address *peer)
{
	struct ibchan_cmd_channel_connect cmd = { .channel = side->channel, .peer = *peer };

	return cmd_channel_connect(side->fd, &cmd);
}

static int await(const struct side *side)
{
	struct ibchan_cmd_channel_connection cmd = {
		.channel = side->channel,
		.timeout_ns = patience_ms() * 1000000LL,
	};
	int rc = cmd_channel_connection(side->fd, &cmd);

	return rc ?: -(int)cmd.out_error;
}

static int meet(const struct side *asking, const struct side *asked,
		const struct ibchan_cmd_listener_create *listener)
{
	int rc = ask(asking, &listener->out_address);

	rc = rc ?: side_accept(asked, listener->out_listener, listener->out_fd);
	rc = rc ?: await(asking);
	return rc ?: await(asked);
}

/* Until the channel of @side is told to have broken; the file may have others. */
static int await_end(const struct side *side)
{
	struct pollfd pollfd = { .fd = side->fd, .events = POLLIN };
	struct ibchan_cmd_event_take event = {};
	int rc = 0;

	while (!rc && (event.out_channel != side->channel ||
		       !(event.out_events & IBCHAN_EVENT_BROKEN)))
		rc = poll(&pollfd, 1, patience_ms()) == 1 ? cmd_event_take(side->fd, &event) :
							    -ETIMEDOUT;
	return rc;
}

static int peer_leaves(const struct side *side, const struct side *peer)
{
	int rc = destroy(peer->fd, peer->channel);

	return rc ?: await_end(side);
}

static int connected_by_address(const struct side_options *options, const char *host)
{
	struct ibchan_cmd_listener_create listener = { .out_fd = -1 };
	struct side asking, asked = {};
	int rc = side_open(&asking, options);

	rc = rc ?: side_share(&asked, &asking, options);
	rc = rc ?: listen_at(&asking, host, &listener);
	rc = rc ?: TIMED(connect, meet(&asking, &asked, &listener));
	rc = rc ?: TIMED(told, peer_leaves(&asking, &asked));
	if (rc && !account->error)
		account->error = rc;
	if (listener.out_fd >= 0)
		close(listener.out_fd);
	side_close(&asked);
	side_close(&asking);
	return rc;
}

/* ---- The end of a process ---- */

static void exit_with_all(const struct side_options *options)
{
	struct side side;
	int rc = side_open(&side, options);

	rc = rc ?: side_handshake(&side, &side.endpoint);
	rc = rc ?: post_receives(&side, 1, 2, 64);
	begin(CALL_exit);
	_exit(-rc);
}

static int exited(const struct side_options *options)
{
	pid_t child;

	begin(CALL_exit);
	child = fork();
	if (!child)
		exit_with_all(options);
	return end(child_result(child));
}

/* ---- A queue of the system's own: those who wait for files of others ---- */

static int synced(void)
{
	struct sync sync;
	int rc = sync_begin(&sync);

	begin(CALL_fdatasync);
	rc = end(rc ?: sync_by_worker(&sync, NULL));
	sync_end(&sync);
	return rc;
}

/* ---- Rounds, and who looks on ---- */

static int round_of_all(const struct side_options *options, const char *host)
{
	int rc = made_used_given_back(options);

	rc = rc ?: connected_by_address(options, host);
	rc = rc ?: exited(options);
	rc = rc ?: synced();
	account->rounds += !rc;
	return rc;
}

static void run_rounds(const char *device, const char *host, __u64 until)
{
	struct side_options options = options_on(device);
	int rc = 0;

	while (!rc && now_us() < until)
		rc = round_of_all(&options, host);
	_exit(!!rc);
}

/* Until the child has ended or hangs. */
static void look_on(pid_t child)
{
	__u64 since, took;

	while (!waitpid(child, NULL, WNOHANG)) {
		since = __atomic_load_n(&account->since, __ATOMIC_ACQUIRE);
		took = since ? now_us() - since : 0;
		if (took > PATIENCE_US) {
			account->longest[account->call] = took;
			account->error = account->error ?: -ETIMEDOUT;
			kill(child, SIGKILL);
			return;
		}
		poll(NULL, 0, 50);
	}
}

static void report(void)
{
	unsigned int i;

	printf("rounds %u\n", account->rounds);
	for (i = 0; i < NUM_CALLS; i++)
		printf("%s %llu\n", names[i], account->longest[i]);
	if (account->error)
		printf("error %s %s\n", names[account->call], strerror(-account->error));
}

int main(int argc, char **argv)
{
	pid_t child;

	if (argc != 4) {
		fprintf(stderr, "usage: victim DEVICE HOST SECONDS\n");
		return 2;
	}
	account = mmap(NULL, sizeof(*account), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (account == MAP_FAILED)
		return 2;
	child = fork();
	if (!child)
		run_rounds(argv[1], argv[2], now_us() + atoi(argv[3]) * 1000000ULL);
	if (child < 0)
		return 2;
	look_on(child);
	report();
	return account->error || !account->rounds;
}
