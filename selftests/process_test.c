// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes that die, fork, exec or hand the file on.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "descriptor.h"
#include "example.h"
#include "test.h"
#include "work.h"
#include "world.h"

FIXTURE(process)
{
	struct calm calm;
};

FIXTURE_SETUP(process)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
}

FIXTURE_TEARDOWN(process)
{
	EXPECT_EQ(0, calm_end(&self->calm));
}

static int connected_side(struct side *side)
{
	struct side_options options = side_defaults();
	int rc;

	options.params.max_recv_wr = 64;
	options.params.rnr_retries = 7;
	rc = side_open(side, &options);
	return rc ? rc : side_handshake(side, &side->endpoint);
}

/* A whole connection from nothing: does the module still work? */
static int module_works(void)
{
	struct side side;
	int rc = connected_side(&side);

	if (!rc)
		rc = exchange(&side, &side);
	side_close(&side);
	return rc;
}

static int post_32_receives(struct side *side)
{
	return post_receives(side, 0, 32, 256);
}

static int post_waiting_sends(struct side *side)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; i < IBCHAN_DEFAULT_SEND_WR && !rc; i++)
		rc = post_one(side, work(side, IBCHAN_OP_SEND, i, 0, 16384));
	return rc;
}

/* What children do before they die. */
typedef int preparation(struct side *side);

static int prepare_and_wait(int ready, void *arg)
{
	preparation *prepare = *(preparation **)arg;
	struct side side;
	int rc = connected_side(&side);

	if (!rc)
		rc = prepare(&side);
	if (rc || write(ready, "", 1) != 1)
		return rc ? rc : -EPIPE;
	/* A wait that nothing ends. */
	return ring_wait(side.ring, 64, -1);
}

static int kill_victim(preparation *prepare)
{
	pid_t child = child_that_is_ready(prepare_and_wait, &prepare);

	if (child <= 0)
		return child ? child : -EIO;
	kill(child, SIGKILL);
	return child_result(child) == -EINTR ? 0 : -EBADMSG;
}

TEST_F(process, killed_with_32_receives_posted_leaves_nothing)
{
	long pinned = pins();

	ASSERT_EQ(0, kill_victim(post_32_receives));
	EXPECT_EQ(0, calm_end(&self->calm));
	EXPECT_EQ(pinned, pins());
	EXPECT_EQ(0, module_works());
}

TEST_F(process, killed_with_sends_under_way_leaves_nothing)
{
	ASSERT_EQ(0, kill_victim(post_waiting_sends));
	EXPECT_EQ(0, calm_end(&self->calm));
	EXPECT_EQ(0, module_works());
}

/* A file in the hands of a process that did not open it. */
FIXTURE(foreign)
{
	struct calm calm;
	struct example_objects objects;
	struct side connected;
};

FIXTURE_SETUP(foreign)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, example_objects_open(&self->objects));
	ASSERT_EQ(0, connected_side(&self->connected));
	ASSERT_EQ(0, post_receives(&self->connected, 0, 4, 64));
}

FIXTURE_TEARDOWN(foreign)
{
	side_close(&self->connected);
	example_objects_close(&self->objects);
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* Every command gives what the contract says that it gives to a stranger. */
static int stranger_may_only_look(struct example_objects *objects)
{
	__u64 arg[EXAMPLE_ROOM / sizeof(__u64)];
	unsigned int i;

	for_each_example(i, objects) {
		int wanted = examples[i].from_anyone ? 0 : -EPERM;
		int rc;

		memset(arg, 0, sizeof(arg));
		if (i == EXAMPLE_DESTROY)
			((struct ibchan_cmd_destroy *)arg)->handle = objects->doomed;
		else
			examples[i].fill(objects, arg);
		*(__u32 *)arg = examples[i].size;
		rc = cmd_raw(objects->side.fd, examples[i].number, arg);
		if (rc == wanted)
			continue;
		fprintf(stderr, "# %s: %d instead of %d\n", examples[i].name, rc, wanted);
		return -EBADMSG;
	}
	return 0;
}

static int stranger_cannot_post_or_wait(struct side *side)
{
	if (post_one(side, work(side, IBCHAN_OP_RECV, 99, 0, 64)) != -EPERM)
		return -EBADMSG;
	if (post_one(side, work_empty(side, IBCHAN_OP_SEND, 99)) != -EPERM)
		return -EBADMSG;
	return ring_wait(side->ring, 1, 0) == -EPERM ? 0 : -EBADMSG;
}

struct hands {
	struct example_objects *objects;
	struct side *connected;
};

static int use_inherited(void *arg)
{
	struct hands *hands = arg;
	int rc = stranger_may_only_look(hands->objects);

	if (!rc)
		rc = stranger_cannot_post_or_wait(hands->connected);
	close(hands->connected->fd);
	close(hands->objects->side.fd);
	return rc;
}

TEST_F(foreign, child_may_query_and_close_but_neither_register_post_nor_wait)
{
	struct hands hands = { &self->objects, &self->connected };
	struct ibchan_cmd_channel_query query;
	struct side *side = &self->connected;

	ASSERT_EQ(0, pd_alloc(self->objects.side.fd, self->objects.side.device,
			      &self->objects.doomed));
	EXPECT_EQ(0, in_child(use_inherited, &hands));
	/* The parent goes on unharmed; only what the child gave back is gone. */
	EXPECT_EQ(-ENOENT, destroy(self->objects.side.fd, self->objects.doomed));
	EXPECT_EQ(0, example_run(&examples[EXAMPLE_MR_REG], &self->objects));
	ASSERT_EQ(0, side_query(side, &query));
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, query.out.state);
	EXPECT_EQ(4, query.out.recvs_in_flight);
	ASSERT_EQ(0, post_one(side, work(side, IBCHAN_OP_SEND, 50, 1024, 64)));
	EXPECT_EQ(0, succeed(side, 50, NULL));
	EXPECT_EQ(0, succeed(side, 0, NULL));
}

/* The ring is not there in a child: reading it through a system call gives EFAULT. */
static int ring_is_absent(void *arg)
{
	struct side *side = arg;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	if (write(fds[1], side->ring->header, 4) != -1 || errno != EFAULT)
		return -EBADMSG;
	return write(fds[1], side->memory, 4) == 4 ? 0 : -EIO;
}

TEST_F(foreign, child_does_not_have_the_ring)
{
	EXPECT_EQ(0, in_child(ring_is_absent, &self->connected));
	ASSERT_EQ(0, post_one(&self->connected,
			      work(&self->connected, IBCHAN_OP_SEND, 50, 1024, 64)));
	EXPECT_EQ(0, succeed(&self->connected, 50, NULL));
}

static int give_away_and_exit(void *arg)
{
	struct side side;
	int rc = connected_side(&side);

	if (!rc)
		rc = post_receives(&side, 0, 32, 64);
	return rc ? rc : send_descriptor(*(int *)arg, side.fd);
}

/* Its channels, its regions, everything but the file. */
static bool holds_nothing(void *arg)
{
	struct ibchan_cmd_query query = {};

	return !cmd_query(*(int *)arg, &query) && !query.out.handles && !query.out.pinned_bytes;
}

TEST_F(process, that_exits_leaves_nothing_in_a_file_held_elsewhere)
{
	int sockets[2];
	int fd;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets));
	ASSERT_EQ(0, in_child(give_away_and_exit, &sockets[0]));
	EXPECT_EQ(1, counter("contexts"));
	fd = receive_descriptor(sockets[1]);
	ASSERT_LE(0, fd);
	EXPECT_TRUE(eventually(holds_nothing, &fd));
	EXPECT_EQ(self->calm.pins, pins());
	close(fd);
	EXPECT_EQ(0, calm_end(&self->calm));
}

#define AFTER_EXEC	"IBCHAN_TEST_AFTER_EXEC"

/* Runs in the new program before its main() when a test has put a descriptor there. */
static void __attribute__((constructor)) after_exec(void)
{
	const char *fd = getenv(AFTER_EXEC);
	struct ibchan_cmd_device_query device = {};
	__u32 handle;
	int file;

	if (!fd)
		return;
	file = atoi(fd);
	if (!eventually(holds_nothing, &file))
		_exit(1);
	if (cmd_device_query(file, &device))
		_exit(2);
	if (device_open(file, DEVICE_A, &handle) != -EPERM)
		_exit(3);
	_exit(0);
}

static int exec_with_file(void *arg)
{
	struct side side;
	char number[16];
	int rc = connected_side(&side);

	(void)arg;
	if (!rc)
		rc = post_receives(&side, 0, 32, 64);
	if (rc)
		return rc;
	fcntl(side.fd, F_SETFD, 0);
	snprintf(number, sizeof(number), "%d", side.fd);
	setenv(AFTER_EXEC, number, 1);
	execl("/proc/self/exe", "process_test", NULL);
	return -errno;
}

TEST_F(process, that_execs_keeps_a_file_without_handles_that_it_can_only_query_and_close)
{
	EXPECT_EQ(0, in_child(exec_with_file, NULL));
	EXPECT_EQ(0, calm_end(&self->calm));
	EXPECT_EQ(0, module_works());
}

static int open_as_nobody(void *arg)
{
	int rc = drop_privileges();
	int fd;

	(void)arg;
	if (rc)
		return rc;
	fd = node_open();
	return fd < 0 ? fd : 0;
}

TEST_F(process, without_the_right_to_the_node_cannot_open_it)
{
	struct stat st;
	int fd;

	ASSERT_EQ(0, stat(NODE, &st));
	EXPECT_EQ(0660, st.st_mode & 0777);
	EXPECT_EQ(-EACCES, in_child(open_as_nobody, NULL));
	fd = node_open();
	ASSERT_LE(0, fd);
	close(fd);
}

TEST_F(process, without_privileges_can_use_a_node_that_it_may_open)
{
	struct stat st;

	ASSERT_EQ(0, stat(NODE, &st));
	ASSERT_EQ(0, chmod(NODE, 0666));
	EXPECT_EQ(0, in_child(open_as_nobody, NULL));
	EXPECT_EQ(0, chmod(NODE, st.st_mode & 0777));
}

TEST_HARNESS_MAIN
