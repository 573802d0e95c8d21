// SPDX-License-Identifier: GPL-2.0-only
/* Connecting by address belongs to a network namespace: that of the device's opener. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "namespace.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define HERE	"10.77.0.1"
#define PORT	7721

/* A child's answers to what it checked, as one number: how many were wrong. */
#define WRONG(what)	((what) ? 0 : (fprintf(stderr, "# line %d: %s\n", __LINE__, #what), 1))

FIXTURE(address)
{
	struct calm calm;
	struct side side;
	int socket;	/* to the container */
	pid_t container;
};

FIXTURE_VARIANT(address)
{
	const char *mode;
};

FIXTURE_VARIANT_ADD(address, shared)
{
	.mode = "shared",
};

FIXTURE_VARIANT_ADD(address, exclusive)
{
	.mode = "exclusive",
};

static struct ibchan_address at(const char *host)
{
	struct ibchan_address address = { .family = AF_INET, .port = htons(PORT) };

	inet_pton(AF_INET, host, address.bytes);
	return address;
}

/* Where device 0 listens is where the caller is. */
static int listen_on(int fd, __u32 device, const char *host, int *listener_fd)
{
	struct ibchan_cmd_listener_create cmd = { .device = device, .address = at(host) };
	int rc = cmd_listener_create(fd, &cmd);

	*listener_fd = rc ? -1 : cmd.out_fd;
	return rc;
}

static bool is_asked(int listener_fd, int ms)
{
	struct pollfd pollfd = { .fd = listener_fd, .events = POLLIN };

	return poll(&pollfd, 1, ms) == 1;
}

static int tell(int socket)
{
	return write(socket, "", 1) == 1 ? 0 : -EPIPE;
}

static int hear(int socket)
{
	char byte;

	return read(socket, &byte, 1) == 1 ? 0 : -EPIPE;
}

/* It listens for whatever comes to the port, until it is told that all has come. */
static int live_inside(int socket)
{
	int listener_fd, wrong, fd;

	if (netns_enter_new())
		return 1;
	fd = node_open();
	wrong = WRONG(!listen_on(fd, 0, "0.0.0.0", &listener_fd));
	wrong += WRONG(!tell(socket)) + WRONG(!hear(socket));
	return wrong + WRONG(!is_asked(listener_fd, 0));
}

FIXTURE_SETUP(address)
{
	struct side_options options = side_defaults();
	int sockets[2];

	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, netns_mode(variant->mode));
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets));
	self->container = fork();
	if (!self->container)
		_exit(live_inside(sockets[1]));
	ASSERT_LT(0, self->container);
	close(sockets[1]);
	self->socket = sockets[0];
	ASSERT_EQ(0, hear(self->socket));
	ASSERT_EQ(0, side_open(&self->side, &options));
}

FIXTURE_TEARDOWN(address)
{
	side_close(&self->side);
	EXPECT_EQ(0, tell(self->socket));
	EXPECT_EQ(0, child_result(self->container));
	close(self->socket);
	EXPECT_EQ(0, netns_mode("shared"));
	EXPECT_EQ(0, calm_end(&self->calm));
}

static int ask(const struct side *side)
{
	struct ibchan_cmd_channel_connect cmd = { .channel = side->channel, .peer = at(HERE) };

	return cmd_channel_connect(side->fd, &cmd);
}

static struct ibchan_cmd_channel_query query(const struct side *side)
{
	struct ibchan_cmd_channel_query cmd;

	if (side_query(side, &cmd))
		memset(&cmd, 0xff, sizeof(cmd));
	return cmd;
}

static bool is_broken(void *arg)
{
	return side_state(arg) == IBCHAN_CHANNEL_BROKEN;
}

/*
 * The container's listener hears of nothing: it says so at the end. The device knows its
 * port, so rdma_cm may reject with the code that a listener's rejection has.
 */
TEST_F(address, that_another_namespace_listens_at_is_refused)
{
	ASSERT_EQ(0, ask(&self->side));
	ASSERT_TRUE(eventually(is_broken, &self->side));
	EXPECT_EQ(ECONNREFUSED, query(&self->side).out.error);
}

TEST_F(address, and_port_of_another_namespace_are_free_in_this_one)
{
	int listener_fd;

	ASSERT_EQ(0, listen_on(self->side.fd, 0, HERE, &listener_fd));
	EXPECT_EQ(-EADDRINUSE, listen_on(self->side.fd, 0, HERE, &(int) { 0 }));
	ASSERT_EQ(0, ask(&self->side));
	EXPECT_TRUE(is_asked(listener_fd, patience_ms()));
	close(listener_fd);
}

FIXTURE(moved)
{
	struct calm calm;
};

FIXTURE_SETUP(moved)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, netns_mode("shared"));
}

FIXTURE_TEARDOWN(moved)
{
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* What is not said to be of a device is of the namespace that the process is in now. */
static int connect_after_moving(void *arg)
{
	struct side_options options = side_defaults();
	int listener_fd, nowhere;
	struct side side;
	int wrong;

	(void)arg;
	if (side_open(&side, &options) || netns_enter_new())
		return -EIO;
	wrong = WRONG(listen_on(side.fd, 0, HERE, &nowhere) == -EADDRNOTAVAIL);
	wrong += WRONG(!listen_on(side.fd, side.device, HERE, &listener_fd));
	wrong += WRONG(!ask(&side));
	wrong += WRONG(is_asked(listener_fd, patience_ms()));
	close(listener_fd);
	side_close(&side);
	return -wrong;
}

TEST_F(moved, process_connects_and_listens_where_it_opened_the_device)
{
	EXPECT_EQ(0, in_child(connect_after_moving, NULL));
}

TEST_HARNESS_MAIN
