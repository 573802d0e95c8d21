// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests that wait at a listener: peers cause them, the listener's user pays for them, and
 * each leaves with its peer.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include "ghost.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define PARAMETER	"/sys/module/ibchan/parameters/user_memory"
#define LIMIT		1048576L
#define PORT		7741

/*
 * A completion queue that takes half of the limit on soft-RoCE, one that takes more than all of it,
 * and so many peers that their requests take a quarter. What one of them costs, about.
 */
#define HALF_ENTRIES	3000
#define MORE_ENTRIES	4096
#define PEERS		100
#define REQUEST_BYTES	4096

/* Where it does not matter how many. */
#define FEW		20

static long charged_bytes(void)
{
	return counter("charged_bytes");
}

static bool so_much_is_charged(void *bytes)
{
	return charged_bytes() == *(long *)bytes;
}

static bool more_is_charged(void *bytes)
{
	return charged_bytes() > *(long *)bytes;
}

/* The node is open to everybody meanwhile, and a user has a mebibyte. */
FIXTURE(request_budget)
{
	struct calm calm;
	struct stat node;
	struct ghost peers[PEERS];
};

FIXTURE_SETUP(request_budget)
{
	long nothing = 0;

	memset(self->peers, 0, sizeof(self->peers));
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_TRUE(eventually(so_much_is_charged, &nothing));
	ASSERT_EQ(0, stat(NODE, &self->node));
	ASSERT_EQ(0, chmod(NODE, 0666));
	ASSERT_EQ(0, put_line(PARAMETER, "1"));
}

FIXTURE_TEARDOWN(request_budget)
{
	EXPECT_EQ(0, put_line(PARAMETER, "0"));
	EXPECT_EQ(0, chmod(NODE, self->node.st_mode & 07777));
	EXPECT_EQ(0, calm_end(&self->calm));
}

static struct ibchan_address address_of_listener(void)
{
	struct ibchan_address address = { .family = AF_INET, .port = htons(PORT) };

	inet_pton(AF_INET, "10.77.0.1", address.bytes);
	return address;
}

static int listen_on(int fd, struct ibchan_cmd_listener_create *cmd)
{
	*cmd = (struct ibchan_cmd_listener_create) {
		.address = address_of_listener(), .backlog = 65536,
	};
	return cmd_listener_create(fd, cmd);
}

/* Memory that is charged; the queue goes with the file. */
static int spend(int fd, __u32 entries)
{
	struct ibchan_cmd_cq_create cq = { .entries = 16, .cq_entries = entries };
	int rc = device_open(fd, DEVICE_A, &cq.device);

	rc = rc ?: cmd_cq_create(fd, &cq);
	if (!rc)
		close(cq.out_fd);
	return rc;
}

static int ask(FIXTURE_DATA(request_budget) * self, unsigned int num)
{
	const struct ibchan_address address = address_of_listener();
	unsigned int i;
	int rc = 0;

	for (i = 0; i < num && !rc; i++)
		rc = ghost_ask(&self->peers[i], &address);
	return rc;
}

static void give_up(FIXTURE_DATA(request_budget) * self, unsigned int num)
{
	while (num)
		ghost_close(&self->peers[--num]);
}

/* The test is root, whom the limit does not bind. */
TEST_F(request_budget, is_charged_for_each_request_until_its_peer_gives_up)
{
	struct ibchan_cmd_listener_create listener;
	struct pollfd pollfd = { .events = POLLIN };
	long none, all;
	int fd, i;

	fd = node_open();
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, spend(fd, MORE_ENTRIES));
	ASSERT_EQ(0, listen_on(fd, &listener));
	pollfd.fd = listener.out_fd;
	none = charged_bytes();
	EXPECT_LT(LIMIT, none);
	ASSERT_EQ(0, ask(self, 1));
	ASSERT_TRUE(eventually(more_is_charged, &none));
	all = none + FEW * (charged_bytes() - none);
	give_up(self, 1);
	EXPECT_TRUE(eventually(so_much_is_charged, &none));
	ASSERT_EQ(0, ask(self, FEW));
	EXPECT_TRUE(eventually(so_much_is_charged, &all));
	EXPECT_EQ(1, poll(&pollfd, 1, 0));
	give_up(self, FEW);
	EXPECT_TRUE(eventually(so_much_is_charged, &none));
	EXPECT_EQ(0, poll(&pollfd, 1, 0));
	for (i = 0; i < FEW; i++) {
		ASSERT_EQ(0, ask(self, 1));
		give_up(self, 1);
	}
	EXPECT_TRUE(eventually(so_much_is_charged, &none));
	close(pollfd.fd);
	close(fd);
}

/* One that was taken stays its owner's, who has to hear that the peer has gone. */
TEST_F(request_budget, is_charged_for_a_request_that_was_taken_until_its_owner_gives_it_back)
{
	struct ibchan_cmd_listener_create listener;
	struct ibchan_cmd_request_take take;
	long none, one;
	int fd;

	fd = node_open();
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, listen_on(fd, &listener));
	none = charged_bytes();
	ASSERT_EQ(0, ask(self, 1));
	ASSERT_TRUE(eventually(more_is_charged, &none));
	one = charged_bytes();
	take = (struct ibchan_cmd_request_take) { .listener = listener.out_listener };
	ASSERT_EQ(0, cmd_request_take(fd, &take));
	/* Another one that asks and leaves: what the first one's end said has been handled. */
	give_up(self, 1);
	ASSERT_EQ(0, ask(self, 1));
	ASSERT_TRUE(eventually(more_is_charged, &one));
	give_up(self, 1);
	EXPECT_TRUE(eventually(so_much_is_charged, &one));
	EXPECT_EQ(0, destroy(fd, take.out_request));
	EXPECT_TRUE(eventually(so_much_is_charged, &none));
	close(listener.out_fd);
	close(fd);
}

/* Never returns. */
static int listen_as_nobody(int ready, void *none)
{
	struct ibchan_cmd_listener_create listener;
	int fd = drop_privileges() ? -1 : node_open();

	(void)none;
	if (fd < 0 || spend(fd, HALF_ENTRIES) || spend(fd, HALF_ENTRIES / 3) ||
	    spend(fd, HALF_ENTRIES / 3) || listen_on(fd, &listener) || write(ready, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

TEST_F(request_budget, that_is_used_up_leaves_peers_unanswered_until_others_give_up)
{
	pid_t child = child_that_is_ready(listen_as_nobody, NULL);
	long none, full = LIMIT - 2 * REQUEST_BYTES;

	ASSERT_LT(0, child);
	none = charged_bytes();
	ASSERT_EQ(0, ask(self, PEERS));
	EXPECT_TRUE(eventually(more_is_charged, &full));
	EXPECT_GE(LIMIT, charged_bytes());
	EXPECT_FALSE(ghost_is_answered(&self->peers[PEERS - 1]));
	/* The last one's connection manager asks again. */
	give_up(self, PEERS - 1);
	EXPECT_TRUE(eventually(so_much_is_charged, &none));
	EXPECT_TRUE(eventually(more_is_charged, &none));
	ghost_close(&self->peers[PEERS - 1]);
	EXPECT_TRUE(eventually(so_much_is_charged, &none));
	EXPECT_EQ(0, kill(child, SIGKILL));
	EXPECT_EQ(-EINTR, child_result(child));
}

/* --- ids of channels that were closed before the peer had heard of the answer --- */

/* So many of one user linger on a device: see cm_end.c. */
#define MAX_LINGERING	64
#define OWN_PORT	7742

/* Takes a request, accepts it with a channel of its own, and closes that. */
static int accept_and_leave(const struct side *host, __u32 listener, int listener_fd)
{
	struct side_options options = side_defaults();
	struct side side = *host;
	int rc = side_channel(&side, &options);

	rc = rc ?: side_accept_any(&side, listener, listener_fd, IBCHAN_CONNECT_FOREIGN);
	return rc ?: destroy(side.fd, side.channel);
}

/* Never returns. */
static void leave_many_as_nobody(int out)
{
	struct side_options options = side_defaults();
	struct ibchan_cmd_listener_create listener;
	struct side side;
	int i, rc;

	rc = drop_privileges() ?: side_open(&side, &options);
	rc = rc ?: listen_on(side.fd, &listener);
	if (rc || write(out, "", 1) != 1)
		_exit(1);
	for (i = 0; i < MAX_LINGERING && !rc; i++)
		rc = accept_and_leave(&side, listener.out_listener, listener.out_fd);
	if (rc || write(out, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

TEST_F(request_budget, of_one_user_is_not_that_of_the_ids_of_another_that_outlive_their_channels)
{
	struct side_options options = side_defaults();
	struct ibchan_cmd_listener_create listener;
	struct ghost *peer = &self->peers[MAX_LINGERING];
	struct side side;
	int said[2];
	pid_t child;
	char byte;

	ASSERT_EQ(0, put_line(PARAMETER, "0"));
	ASSERT_EQ(0, side_open(&side, &options));
	ASSERT_EQ(0, pipe2(said, O_CLOEXEC));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		leave_many_as_nobody(said[1]);
	close(said[1]);
	ASSERT_EQ(1, read(said[0], &byte, 1));
	ASSERT_EQ(0, ask(self, MAX_LINGERING));
	ASSERT_EQ(1, read(said[0], &byte, 1));
	listener = (struct ibchan_cmd_listener_create) { .address = address_of_listener() };
	listener.address.port = htons(OWN_PORT);
	ASSERT_EQ(0, cmd_listener_create(side.fd, &listener));
	ASSERT_EQ(0, ghost_ask(peer, &listener.address));
	ASSERT_EQ(0, accept_and_leave(&side, listener.out_listener, listener.out_fd));
	ASSERT_TRUE(eventually(ghost_is_answered, peer));
	/* It is told of the end when it has heard of the answer, and is not sent away before. */
	EXPECT_EQ(0, ghost_connected(peer));
	EXPECT_EQ(0, ghost_disconnected(peer));
	ghost_close(peer);
	give_up(self, MAX_LINGERING);
	EXPECT_EQ(0, kill(child, SIGKILL));
	EXPECT_EQ(-EINTR, child_result(child));
	close(said[0]);
	close(listener.out_fd);
	side_close(&side);
}

TEST_HARNESS_MAIN
