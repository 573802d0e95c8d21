// SPDX-License-Identifier: GPL-2.0-only
/*
 * Laws 1, 5 and 12 against what processes do with each other: fork and write, exec, hand a
 * descriptor on, hold one another under ptrace.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "descriptor.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define MESSAGE		16384
#define PART		4096

FIXTURE(law)
{
	struct calm calm;
};

FIXTURE_SETUP(law)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
}

FIXTURE_TEARDOWN(law)
{
	EXPECT_EQ(0, calm_end(&self->calm));
}

static struct side_options options(void)
{
	struct side_options options = side_defaults();

	options.params.max_recv_wr = 64;
	options.params.rnr_retries = 7;
	return options;
}

/* Connected to itself. */
static int looped_side(struct side *side)
{
	struct side_options chosen = options();
	int rc = side_open(side, &chosen);

	return rc ? rc : side_handshake(side, &side->endpoint);
}

/* --- two processes that take turns --- */

static int tell(int socket)
{
	return write(socket, "", 1) == 1 ? 0 : -EPIPE;
}

static int hear(int socket)
{
	char byte;

	return read(socket, &byte, 1) == 1 ? 0 : -EPIPE;
}

/* A child that inherits everything; it and its parent have one end of a socket each. */
struct fellow {
	pid_t pid;
	int socket;
};

static int fellow_start(struct fellow *fellow, int (*body)(int socket, void *arg), void *arg)
{
	int sockets[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		return -errno;
	fflush(NULL);
	fellow->pid = fork();
	if (!fellow->pid) {
		close(sockets[0]);
		_exit(-body(sockets[1], arg));
	}
	close(sockets[1]);
	fellow->socket = sockets[0];
	return fellow->pid < 0 ? -errno : 0;
}

/* Its result; a fellow that still listens hears that nothing comes any more. */
static int fellow_end(struct fellow *fellow)
{
	close(fellow->socket);
	return child_result(fellow->pid);
}

/* --- fork with both sides writing --- */

/* The child's copy holds what the child has written and otherwise what it was at the fork. */
static int copy_is(const unsigned char *copy, unsigned char mine)
{
	int rc = all_bytes(copy, PART, 0x10);

	if (!rc)
		rc = all_bytes(copy + PART, PART, mine);
	return rc ? rc : all_bytes(copy + 2 * PART, MESSAGE - 2 * PART, 0x10);
}

static int write_the_copy(int socket, void *arg)
{
	struct side *side = arg;
	int rc;

	memset(side->memory + PART, 0x20, PART);
	rc = tell(socket);
	if (!rc)
		rc = hear(socket);
	if (!rc)
		rc = copy_is(side->memory, 0x20);
	if (!rc && post_one(side, work(side, IBCHAN_OP_RECV, 99, 32768, 64)) != -EPERM)
		rc = -EPROTO;
	memset(side->memory, 0x40, MESSAGE);
	if (!rc)
		rc = tell(socket);
	/* Until the parent goes. */
	hear(socket);
	return rc ? rc : all_bytes(side->memory, MESSAGE, 0x40);
}

/* At the receive with the id 1. */
static int message_comes(const struct pair *pair)
{
	int rc = post_one(pair->a, work(pair->a, IBCHAN_OP_SEND, 2, 0, MESSAGE));

	rc = rc ?: succeed(pair->a, 2, NULL);
	return rc ?: succeed(pair->b, 1, NULL);
}

/* What came is what the parent has, and what it sends on, whatever the child writes. */
static int parent_has_it(struct pair *pair)
{
	int rc = same_bytes(pair->a->memory, pair->b->memory, MESSAGE);

	if (!rc)
		rc = post_one(pair->a, work(pair->a, IBCHAN_OP_RECV, 3, 32768, MESSAGE));
	if (!rc)
		rc = post_one(pair->b, work(pair->b, IBCHAN_OP_SEND, 4, 0, MESSAGE));
	if (!rc)
		rc = succeed(pair->b, 4, NULL);
	if (!rc)
		rc = succeed(pair->a, 3, NULL);
	return rc ? rc : same_bytes(pair->a->memory, pair->a->memory + 32768, MESSAGE);
}

TEST_F(law, fork_and_both_write_while_a_message_comes)
{
	struct side_options chosen = options();
	struct fellow child;
	struct pair pair;

	ASSERT_EQ(0, pair_open(&pair, PAIR_TWO_DEVICES, &chosen));
	pattern(pair.a->memory, MESSAGE, 5);
	memset(pair.b->memory, 0x10, MESSAGE);
	ASSERT_EQ(0, post_one(pair.b, work(pair.b, IBCHAN_OP_RECV, 1, 0, MESSAGE)));
	ASSERT_EQ(0, fellow_start(&child, write_the_copy, pair.b));
	EXPECT_EQ(0, hear(child.socket));
	memset(pair.b->memory + 2 * PART, 0x30, PART);
	EXPECT_EQ(0, message_comes(&pair));
	EXPECT_EQ(0, tell(child.socket));
	EXPECT_EQ(0, hear(child.socket));
	EXPECT_EQ(0, parent_has_it(&pair));
	EXPECT_EQ(0, fellow_end(&child));
	pair_close(&pair);
}

static int see_what_came(int socket, void *arg)
{
	struct side *side = arg;
	int rc = hear(socket);

	return rc ? rc : all_bytes(side->memory, MESSAGE, 0x50);
}

/* The other way round: memory that is shared stays so, pinned or not. */
TEST_F(law, fork_shares_what_is_mapped_shared)
{
	struct side_options chosen = options();
	struct ibchan_submit_wr recv;
	struct ibchan_cmd_mr_reg cmd;
	struct fellow child;
	struct pair pair;
	struct side *b;

	ASSERT_EQ(0, pair_open(&pair, PAIR_SAME_DEVICE, &chosen));
	b = pair.b;
	munmap(b->memory, b->length);
	b->memory = mmap(NULL, b->length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			 -1, 0);
	ASSERT_NE(MAP_FAILED, b->memory);
	cmd = (struct ibchan_cmd_mr_reg) {
		.addr = address(b->memory),
		.length = b->length,
		.pd = b->pd,
		.access = IBCHAN_ACCESS_LOCAL,
	};
	ASSERT_EQ(0, cmd_mr_reg(b->fd, &cmd));
	recv = work(b, IBCHAN_OP_RECV, 1, 0, MESSAGE);
	recv.sge.mr = cmd.out_mr;
	ASSERT_EQ(0, post_one(b, recv));
	ASSERT_EQ(0, fellow_start(&child, see_what_came, b));
	memset(pair.a->memory, 0x50, MESSAGE);
	EXPECT_EQ(0, message_comes(&pair));
	EXPECT_EQ(0, tell(child.socket));
	EXPECT_EQ(0, fellow_end(&child));
	pair_close(&pair);
}

/* --- exec --- */

#define AFTER_EXEC	"IBCHAN_LAW_AFTER_EXEC"

/* Of our files; /proc says what they are. */
static unsigned int files_open_here(void)
{
	DIR *dir = opendir("/proc/self/fd");
	char target[64];
	struct dirent *entry;
	unsigned int n = 0;

	while (dir && (entry = readdir(dir))) {
		ssize_t length = readlinkat(dirfd(dir), entry->d_name, target,
					    sizeof(target) - 1);

		if (length < 0)
			continue;
		target[length] = 0;
		n += !!strstr(target, "ibchan]") || !!strstr(target, "ibchan-cq]") ||
		     !strcmp(target, NODE);
	}
	if (dir)
		closedir(dir);
	return n;
}

/* The new program, before its main(): says how many files it has, and lives until told. */
static void __attribute__((constructor)) after_exec(void)
{
	const char *socket = getenv(AFTER_EXEC);

	if (!socket)
		return;
	if (atoi(socket)) {
		tell(atoi(socket));
		hear(atoi(socket));
	}
	_exit(files_open_here());
}

static int vfork_and_exec(void)
{
	static char *const argv[] = { "after_exec", NULL };
	static char *const envp[] = { AFTER_EXEC "=0", NULL };
	pid_t child = vfork();

	if (!child) {
		execve("/proc/self/exe", argv, envp);
		_exit(127);
	}
	return -child_result(child);
}

TEST_F(law, vfork_and_exec_leave_the_works_and_take_no_file_along)
{
	struct side side;

	ASSERT_EQ(0, looped_side(&side));
	ASSERT_EQ(0, post_receives(&side, 0, 4, 64));
	EXPECT_EQ(2, files_open_here());
	EXPECT_EQ(0, vfork_and_exec());
	ASSERT_EQ(0, post_one(&side, work(&side, IBCHAN_OP_SEND, 50, 1024, 64)));
	EXPECT_EQ(0, succeed(&side, 50, NULL));
	EXPECT_EQ(0, succeed(&side, 0, NULL));

	/* The other way round: a file that is to be taken along is. */
	fcntl(side.fd, F_SETFD, 0);
	fcntl(side.ring->fd, F_SETFD, 0);
	EXPECT_EQ(2, vfork_and_exec());
	ASSERT_EQ(0, post_one(&side, work(&side, IBCHAN_OP_SEND, 51, 1024, 64)));
	EXPECT_EQ(0, succeed(&side, 51, NULL));
	EXPECT_EQ(0, succeed(&side, 1, NULL));
	side_close(&side);
}

/* Posts receives and a read that no peer answers. */
static int exec_under_works(int socket, void *arg)
{
	struct side_options chosen = options();
	struct ibchan_submit_wr read;
	struct pair pair;
	char number[16];
	int rc;

	(void)arg;
	rc = pair_build(&pair, PAIR_SAME_DEVICE, &chosen);
	if (!rc)
		rc = side_handshake(pair.a, &pair.b->endpoint);
	if (!rc)
		rc = post_receives(pair.a, 0, 32, 256);
	read = work(pair.a, IBCHAN_OP_READ, 40, 16384, 8192);
	work_at(&read, pair.b, 0);
	if (!rc)
		rc = post_one(pair.a, read);
	if (rc)
		return rc;
	fcntl(socket, F_SETFD, 0);
	snprintf(number, sizeof(number), "%d", socket);
	setenv(AFTER_EXEC, number, 1);
	execl("/proc/self/exe", "after_exec", NULL);
	return -errno;
}

TEST_F(law, exec_gives_all_back_though_the_process_lives_on)
{
	struct fellow child;

	ASSERT_EQ(0, fellow_start(&child, exec_under_works, NULL));
	ASSERT_EQ(0, hear(child.socket));
	EXPECT_EQ(0, calm_end(&self->calm));
	EXPECT_EQ(0, kill(child.pid, 0));
	EXPECT_EQ(0, fellow_end(&child));
}

/* --- descriptors that have several holders --- */

struct hold {
	long pins;
	long charged;
};

static struct hold hold_now(void)
{
	return (struct hold) { pins(), charged() };
}

/* Nothing has come back. */
static int is_held(const struct hold *hold)
{
	if (counter("contexts") != 1 || pins() != hold->pins)
		return -ENOENT;
	return charged() == hold->charged ? 0 : -EUCLEAN;
}

static int may_not_map(int queue, size_t size)
{
	void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, queue, 0);

	if (map != MAP_FAILED || errno != EPERM)
		return -EBADMSG;
	map = mmap(NULL, size, PROT_READ, MAP_SHARED, queue, 0);
	return map == MAP_FAILED && errno == EPERM ? 0 : -EBADMSG;
}

/* What the owner tells besides its two descriptors. */
struct notice {
	size_t ring_size;
	struct side side;
};

static int stranger_is_refused(const struct notice *notice, int file, int queue)
{
	struct ibchan_cmd_channel_query query;
	struct ibchan_cmd_query whole = {};
	struct side side = notice->side;
	__u32 pd;

	side.fd = file;
	if (post_one(&side, work(&side, IBCHAN_OP_RECV, 99, 0, 64)) != -EPERM)
		return -EBADMSG;
	if (pd_alloc(file, side.device, &pd) != -EPERM)
		return -EBADMSG;
	if (channel_break(file, side.channel) != -EPERM)
		return -EBADMSG;
	/* The queue's own descriptor takes no command at all. */
	if (cmd_query(queue, &whole) != -ENOTTY)
		return -EBADMSG;
	if (cmd_query(file, &whole) || !whole.out.pinned_bytes || side_query(&side, &query))
		return -EBADMSG;
	return may_not_map(queue, notice->ring_size);
}

/* Started before the owner's file is opened: it has what it is sent and no more. */
static int use_what_was_sent(int socket, void *arg)
{
	struct notice *notice = arg;
	int file = receive_descriptor(socket);
	int queue = receive_descriptor(socket);
	struct pollfd poller = { .fd = queue, .events = POLLIN };
	int rc;

	if (file < 0 || queue < 0)
		return -EPIPE;
	rc = stranger_is_refused(notice, file, queue);
	/* A completion lies there, and may be seen. */
	if (!rc && (poll(&poller, 1, 0) != 1 || poller.revents != POLLIN))
		rc = -EBADMSG;
	if (!rc)
		rc = destroy(file, notice->side.channel);
	close(file);
	if (!rc)
		rc = tell(socket);
	return rc ? rc : hear(socket);
}

TEST_F(law, a_process_that_was_sent_both_descriptors_may_look_and_keep)
{
	struct notice *notice;
	struct fellow child;
	struct hold hold;
	struct side side;
	unsigned int i;

	notice = mmap(NULL, sizeof(*notice), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	ASSERT_NE(MAP_FAILED, notice);
	ASSERT_EQ(0, fellow_start(&child, use_what_was_sent, notice));
	ASSERT_EQ(0, looped_side(&side));
	ASSERT_EQ(0, post_receives(&side, 0, 32, 64));
	ASSERT_EQ(0, post_one(&side, work(&side, IBCHAN_OP_SEND, 50, 4096, 64)));
	ASSERT_EQ(0, ring_wait(side.ring, 2, patience_ms()));
	*notice = (struct notice) { side.ring->size, side };
	ASSERT_EQ(0, send_descriptor(child.socket, side.fd));
	ASSERT_EQ(0, send_descriptor(child.socket, side.ring->fd));
	EXPECT_EQ(0, hear(child.socket));

	/* It has destroyed the channel; the works were flushed, each of them once. */
	EXPECT_EQ(-ENOENT, destroy(side.fd, side.channel));
	EXPECT_EQ(0, succeed(&side, 50, NULL));
	EXPECT_EQ(0, succeed(&side, 0, NULL));
	for (i = 1; i < 32; i++)
		EXPECT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, status_of(&side, i));
	EXPECT_EQ(0, ring_surplus(side.ring));

	/* Its descriptor of the queue alone keeps the owner's memory. */
	hold = hold_now();
	side_close(&side);
	EXPECT_EQ(0, is_held(&hold));
	EXPECT_EQ(0, tell(child.socket));
	EXPECT_EQ(0, fellow_end(&child));
	EXPECT_EQ(0, calm_end(&self->calm));
	munmap(notice, sizeof(*notice));
}

TEST_F(law, a_descriptor_in_a_message_that_nobody_takes_is_given_back)
{
	struct hold hold;
	struct side side;
	int sockets[2];

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets));
	ASSERT_EQ(0, looped_side(&side));
	ASSERT_EQ(0, post_receives(&side, 0, 32, 64));
	ASSERT_EQ(0, send_descriptor(sockets[0], side.ring->fd));
	hold = hold_now();
	side_close(&side);
	EXPECT_EQ(0, is_held(&hold));
	close(sockets[0]);
	close(sockets[1]);
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* --- a peer in another process, held under ptrace --- */

#define ROUNDS	40

static int swap_endpoints(int socket, struct side *side)
{
	struct ibchan_endpoint peer;

	if (write(socket, &side->endpoint, sizeof(peer)) != sizeof(peer))
		return -EPIPE;
	if (read(socket, &peer, sizeof(peer)) != sizeof(peer))
		return -EPIPE;
	return side_handshake(side, &peer);
}

/* What works at the peer's memory need, as work_at() takes it. */
struct reach {
	unsigned char *memory;
	__u32 rkey;
};

/* Goes the same way. */
static int swap_memory(int socket, const struct side *side, struct side *peer)
{
	struct reach reach = { side->memory, side->rkey };

	if (write(socket, &reach, sizeof(reach)) != sizeof(reach))
		return -EPIPE;
	if (read(socket, &reach, sizeof(reach)) != sizeof(reach))
		return -EPIPE;
	peer->memory = reach.memory;
	peer->rkey = reach.rkey;
	return 0;
}

static int other_side(int socket, struct side *side, const char *device)
{
	struct side_options chosen = options();
	int rc;

	chosen.device = device;
	/* So that a peer that does not receive is given up soon. */
	chosen.params.rnr_retries = 3;
	/* An answer may take a quarter of a second where the host is busy as well. */
	if (!slow())
		chosen.params.ack_timeout = 16;
	rc = side_open(side, &chosen);
	return rc ? rc : swap_endpoints(socket, side);
}

/*
 * Says that its first receive is posted, then sends back whatever comes. It stays until its parent
 * has heard enough, who may still want to stop it.
 */
static int echo(int socket, void *arg)
{
	struct side side, unused;
	unsigned int i;
	int rc;

	(void)arg;
	rc = other_side(socket, &side, DEVICE_B);
	if (!rc)
		rc = post_one(&side, work(&side, IBCHAN_OP_RECV, 0, 0, PART));
	if (!rc)
		rc = swap_memory(socket, &side, &unused);
	for (i = 0; i < ROUNDS && !rc; i++) {
		rc = succeed(&side, i, NULL);
		memcpy(side.memory + PART, side.memory, PART);
		if (!rc && i + 1 < ROUNDS)
			rc = post_one(&side, work(&side, IBCHAN_OP_RECV, i + 1, 0, PART));
		if (!rc)
			rc = post_one(&side, work(&side, IBCHAN_OP_SEND, 1000 + i, PART, PART));
		if (!rc)
			rc = succeed(&side, 1000 + i, NULL);
	}
	if (!rc && ring_surplus(side.ring))
		rc = -EOVERFLOW;
	if (!rc)
		hear(socket);
	side_close(&side);
	return rc;
}

static int stop(pid_t pid)
{
	int status;

	if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL))
		return -errno;
	if (waitpid(pid, &status, 0) != pid)
		return -errno;
	if (WIFSTOPPED(status))
		return 0;
	fprintf(stderr, "# the peer has ended, with wait status %#x\n", (unsigned int)status);
	return -ESRCH;
}

static int go_on(pid_t pid)
{
	return ptrace(PTRACE_CONT, pid, NULL, NULL) ? -errno : 0;
}

static int ping(struct side *side, unsigned int round)
{
	int rc;

	pattern(side->memory, PART, round);
	rc = post_one(side, work(side, IBCHAN_OP_RECV, round, PART, PART));
	return rc ? rc : post_one(side, work(side, IBCHAN_OP_SEND, 1000 + round, 0, PART));
}

static int pong(struct side *side, unsigned int round)
{
	int rc = succeed(side, 1000 + round, NULL);

	if (!rc)
		rc = succeed(side, round, NULL);
	return rc ? rc : same_bytes(side->memory, side->memory + PART, PART);
}

/* The stop meets the peer anywhere in its round; nothing is lost and nothing repeated. */
static int ping_and_stop(struct side *side, pid_t peer, unsigned int round)
{
	int rc = ping(side, round);

	if (!rc)
		rc = stop(peer);
	/* Long enough for its answer, should it have been on its way. */
	if (!rc && round % 8 == 0)
		rc = ring_wait(side->ring, 2, 20);
	if (rc == -ETIMEDOUT)
		rc = 0;
	return rc ? rc : go_on(peer);
}

TEST_F(law, a_peer_that_is_stopped_again_and_again_loses_nothing)
{
	struct side side, peer;
	struct fellow child;
	unsigned int i;

	ASSERT_EQ(0, fellow_start(&child, echo, NULL));
	ASSERT_EQ(0, other_side(child.socket, &side, DEVICE_A));
	ASSERT_EQ(0, swap_memory(child.socket, &side, &peer));
	ASSERT_EQ(0, ptrace(PTRACE_SEIZE, child.pid, NULL, NULL));
	for (i = 0; i < ROUNDS; i++) {
		ASSERT_EQ(0, ping_and_stop(&side, child.pid, i));
		ASSERT_EQ(0, pong(&side, i));
	}
	EXPECT_EQ(0, ring_surplus(side.ring));
	EXPECT_EQ(0, fellow_end(&child));
	side_close(&side);
}

static int status_of_write(struct side *side, const struct side *peer, __u64 wr_id)
{
	struct ibchan_submit_wr wr = work(side, IBCHAN_OP_WRITE, wr_id, 0, PART);
	int rc;

	work_at(&wr, peer, 8 * PART);
	rc = post_one(side, wr);
	return rc ? rc : status_of(side, wr_id);
}

static int status_of_read(struct side *side, const struct side *peer, __u64 wr_id)
{
	struct ibchan_submit_wr wr = work(side, IBCHAN_OP_READ, wr_id, 2 * PART, PART);
	int rc;

	work_at(&wr, peer, 8 * PART);
	rc = post_one(side, wr);
	return rc ? rc : status_of(side, wr_id);
}

/* Its process does nothing; its device serves what needs no process, and refuses the rest. */
TEST_F(law, a_peer_that_stands_still_holds_nobody_up)
{
	struct side side, peer;
	struct fellow child;
	__u64 start;

	ASSERT_EQ(0, fellow_start(&child, echo, NULL));
	ASSERT_EQ(0, other_side(child.socket, &side, DEVICE_A));
	ASSERT_EQ(0, swap_memory(child.socket, &side, &peer));
	ASSERT_EQ(0, ptrace(PTRACE_SEIZE, child.pid, NULL, NULL));
	ASSERT_EQ(0, stop(child.pid));

	pattern(side.memory, PART, 3);
	EXPECT_EQ(IBCHAN_STATUS_SUCCESS, status_of_write(&side, &peer, 1));
	EXPECT_EQ(IBCHAN_STATUS_SUCCESS, status_of_read(&side, &peer, 2));
	EXPECT_EQ(0, same_bytes(side.memory, side.memory + 2 * PART, PART));
	/* It has one receive; no answer comes. */
	ASSERT_EQ(0, ping(&side, 0));
	EXPECT_EQ(0, succeed(&side, 1000, NULL));
	EXPECT_EQ(-ETIMEDOUT, ring_wait(side.ring, 1, 50));
	/* The next message finds none, and is given up; what waits for the peer is flushed. */
	start = now_ms();
	ASSERT_EQ(0, post_one(&side, work(&side, IBCHAN_OP_SEND, 7, 0, PART)));
	EXPECT_EQ(IBCHAN_STATUS_RNR_RETRY_EXC_ERR, status_of(&side, 7));
	EXPECT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, status_of(&side, 0));
	EXPECT_GT(patience_ms(), (long)(now_ms() - start));
	EXPECT_EQ(0, destroy(side.fd, side.mr));
	side_close(&side);

	/* It still stands; only its own is left. */
	EXPECT_EQ(1, counter("contexts"));
	EXPECT_EQ(0, kill(child.pid, SIGKILL));
	EXPECT_EQ(-EINTR, fellow_end(&child));
	EXPECT_EQ(0, calm_end(&self->calm));
}

TEST_HARNESS_MAIN
