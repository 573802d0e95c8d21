// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a container is made of: namespaces of the network, of users and of mounts.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "gid.h"
#include "namespace.h"
#include "test.h"
#include "work.h"
#include "world.h"

/* A child's answers to what it checked, as one number: how many were wrong. */
#define WRONG(what)	((what) ? 0 : (fprintf(stderr, "# line %d: %s\n", __LINE__, #what), 1))

FIXTURE(netns)
{
	struct calm calm;
};

FIXTURE_VARIANT(netns)
{
	const char *mode;
	int seen;	/* devices that another namespace sees */
};

FIXTURE_VARIANT_ADD(netns, shared)
{
	.mode = "shared",
	.seen = 2,
};

FIXTURE_VARIANT_ADD(netns, exclusive)
{
	.mode = "exclusive",
	.seen = 0,
};

FIXTURE_SETUP(netns)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, netns_mode(variant->mode));
}

FIXTURE_TEARDOWN(netns)
{
	EXPECT_EQ(0, netns_mode("shared"));
	EXPECT_EQ(0, calm_end(&self->calm));
}

static int devices_seen(int fd)
{
	struct ibchan_cmd_query query = {};
	int rc = cmd_query(fd, &query);

	return rc ? rc : (int)query.out.devices;
}

/* Also the first file of a process asks for its own namespace's. */
static int look_from_outside(void *arg)
{
	struct ibchan_cmd_port_query port = about_port_of(DEVICE_A);
	int seen = *(int *)arg, wanted = seen ? 0 : -ENODEV;
	int rc = netns_enter_new();
	int fd = node_open();
	__u32 device;

	if (rc || fd < 0)
		return -EIO;
	rc = WRONG(devices_seen(fd) == seen) +
	     WRONG(device_open(fd, DEVICE_A, &device) == wanted) +
	     WRONG(cmd_port_query(fd, &port) == wanted);
	/* Its addresses are not this namespace's. */
	if (seen)
		rc += WRONG(port.out.gid_index == IBCHAN_AUTO);
	close(fd);
	return -rc;
}

TEST_F(netns, sees_the_devices_that_are_shared_or_its_own)
{
	int seen = variant->seen;
	int fd = node_open();

	ASSERT_LE(0, fd);
	EXPECT_EQ(0, in_child(look_from_outside, &seen));
	EXPECT_EQ(2, devices_seen(fd));
	close(fd);
}

static int build_from_outside(void *arg)
{
	struct side_options options = side_defaults();
	struct ibchan_cmd_channel_build build = { .params = default_params() };
	struct side side = {};
	int rc = netns_enter_new();

	(void)arg;
	side.fd = node_open();
	if (rc || device_open(side.fd, DEVICE_A, &side.device) ||
	    pd_alloc(side.fd, side.device, &side.pd) || side_cq(&side, &options))
		return -EIO;
	build.pd = side.pd;
	build.send_cq = side.ring->cq;
	build.recv_cq = side.ring->cq;
	rc = WRONG(cmd_channel_build(side.fd, &build) == -EADDRNOTAVAIL) +
	     WRONG(build.reason.code == IBCHAN_REASON_NO_GID);
	/* Nor does it help to name the address. */
	build.params.gid_index = 1;
	rc += WRONG(cmd_channel_build(side.fd, &build) == -EINVAL);
	side_close(&side);
	return -rc;
}

/* The device is the same, and the namespace that counts is that of its opener. */
static int use_after_moving(void *arg)
{
	int seen = *(int *)arg, wanted = seen ? 0 : -ENODEV;
	struct side_options options = side_defaults();
	struct side before, after;
	__u32 again;
	int rc;

	if (side_open(&before, &options) || netns_enter_new() ||
	    side_share(&after, &before, &options))
		return -EIO;
	rc = WRONG(side_handshake(&before, &after.endpoint) == 0) +
	     WRONG(side_handshake(&after, &before.endpoint) == 0);
	if (!rc)
		rc = WRONG(exchange(&before, &after) == 0) + WRONG(exchange(&after, &before) == 0);
	rc += WRONG(device_open(before.fd, DEVICE_A, &again) == wanted);
	side_close(&after);
	side_close(&before);
	return -rc;
}

TEST_F(netns, that_a_device_was_opened_in_stays_with_it)
{
	int seen = variant->seen;

	EXPECT_EQ(0, in_child(use_after_moving, &seen));
}

/* Opened outside, used at home: still the opener's. */
static int use_after_return(void *arg)
{
	struct side_options options = side_defaults();
	int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	struct side side = {};
	int rc = netns_enter_new();

	(void)arg;
	side.fd = node_open();
	if (home < 0 || rc || device_open(side.fd, DEVICE_A, &side.device) ||
	    setns(home, CLONE_NEWNET) || pd_alloc(side.fd, side.device, &side.pd) ||
	    side_cq(&side, &options))
		return -EIO;
	rc = WRONG(side_channel(&side, &options) == -EADDRNOTAVAIL);
	close(home);
	side_close(&side);
	return -rc;
}

FIXTURE(container)
{
	struct calm calm;
	mode_t mode;	/* of the node */
};

FIXTURE_SETUP(container)
{
	struct stat st;

	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, netns_mode("shared"));
	ASSERT_EQ(0, stat(NODE, &st));
	self->mode = st.st_mode & 0777;
}

FIXTURE_TEARDOWN(container)
{
	EXPECT_EQ(0, chmod(NODE, self->mode));
	EXPECT_EQ(0, calm_end(&self->calm));
}

TEST_F(container, that_has_none_of_a_devices_addresses_gets_no_channel_on_it)
{
	EXPECT_EQ(0, in_child(build_from_outside, NULL));
}

TEST_F(container, s_device_does_not_change_its_namespace_with_its_user)
{
	EXPECT_EQ(0, in_child(use_after_return, NULL));
}

static int open_as_mapped_root(void *arg)
{
	int rc = userns_enter_as_nobody(*(int *)arg);
	int fd = rc ? rc : node_open();

	return fd < 0 ? fd : 0;
}

TEST_F(container, s_root_needs_the_right_to_the_node)
{
	int more = 0;

	EXPECT_EQ(-EACCES, in_child(open_as_mapped_root, &more));
	ASSERT_EQ(0, chmod(NODE, 0666));
	EXPECT_EQ(0, in_child(open_as_mapped_root, &more));
	more = CLONE_NEWNET;
	EXPECT_EQ(0, in_child(open_as_mapped_root, &more));
}

static int refused_by_memlock(const struct side *side, __u64 length)
{
	struct ibchan_cmd_mr_reg mr = {
		.addr = address(side->memory),
		.length = length,
		.pd = side->pd,
		.access = IBCHAN_ACCESS_LOCAL,
	};

	return cmd_mr_reg(side->fd, &mr) == -ENOMEM &&
	       mr.reason.code == IBCHAN_REASON_MEMLOCK;
}

/* The network is that of everybody, so that data can flow. */
static int work_as_mapped_root(void *arg)
{
	struct rlimit limit = { 128 << 10, 128 << 10 };
	struct side_options options = side_defaults();
	long before = charged();
	struct side side;
	int rc;

	(void)arg;
	if (setrlimit(RLIMIT_MEMLOCK, &limit) || userns_enter_as_nobody(0) ||
	    side_open(&side, &options))
		return -EIO;
	rc = WRONG(side_handshake(&side, &side.endpoint) == 0);
	if (!rc)
		rc = WRONG(exchange(&side, &side) == 0);
	rc += WRONG(charged() - before == (long)side.length >> 10);
	/* All that may be pinned is; to be root here does not lift the limit. */
	rc += WRONG(refused_by_memlock(&side, side.length) == 0) +
	      WRONG(refused_by_memlock(&side, side.length) == 1);
	side_close(&side);
	rc += WRONG(charged() == before);
	return -rc;
}

TEST_F(container, s_root_can_do_all_within_the_memlock_limit)
{
	ASSERT_EQ(0, chmod(NODE, 0666));
	EXPECT_EQ(0, in_child(work_as_mapped_root, NULL));
}

#define KEPT_NODE	"/run/ibchan-kept-node"

static int work_with_own_dev(void *arg)
{
	struct side_options options = side_defaults();
	struct side side;
	int fd, rc;

	(void)arg;
	if (mountns_enter_without_dev(KEPT_NODE))
		return -EIO;
	rc = WRONG(node_open() == -ENOENT);
	fd = open(NODE, O_CREAT | O_RDONLY | O_CLOEXEC, 0600);
	close(fd);
	if (fd < 0 || mount(KEPT_NODE, NODE, NULL, MS_BIND, NULL) || side_open(&side, &options))
		return -EIO;
	rc += WRONG(side_handshake(&side, &side.endpoint) == 0);
	if (!rc)
		rc = WRONG(exchange(&side, &side) == 0);
	side_close(&side);
	return -rc;
}

TEST_F(container, with_a_dev_of_its_own_needs_nothing_in_it_but_the_node)
{
	int fd = open(KEPT_NODE, O_CREAT | O_RDONLY | O_CLOEXEC, 0600);

	ASSERT_LE(0, fd);
	close(fd);
	EXPECT_EQ(0, in_child(work_with_own_dev, NULL));
	EXPECT_EQ(0, unlink(KEPT_NODE));
}

/* Two ends of a veth pair, one of which goes into a container. */
#define STAYING_DEVICE	"rxe2"
#define MOVING_DEVICE	"rxe3"
#define OTHER_DEVICE	"rxe4"

static const char set_up[] =
	"ip link add n0 type veth peer name n1;"
	"ip address add 10.78.0.1/24 dev n0; ip link set n0 up;"
	"ip address add 10.78.0.2/24 dev n1; ip link set n1 up;"
	"rdma link add " STAYING_DEVICE " type rxe netdev n0;"
	"rdma link add " MOVING_DEVICE " type rxe netdev n1";

/* One end goes with its namespace, the other with it, and their devices a little later. */
static const char tear_down[] =
	"ip link delete n0 2>/dev/null || true;"
	"for left in /sys/class/net/n0 /sys/class/infiniband/rxe[234]; do [ ! -e $left ]; done";

static bool is_torn_down(void *arg)
{
	(void)arg;
	return !run_script(tear_down);
}

static const char set_up_inside[] =
	"ip link set lo up;"
	"ip address add 10.78.0.2/24 dev n1; ip link set n1 up";

/* Refused until the device that the netdev had before has gone. */
static bool has_other_device(void *arg)
{
	(void)arg;
	return !run_script("rdma link add " OTHER_DEVICE " type rxe netdev n1 2>/dev/null");
}

FIXTURE(moved)
{
	struct calm calm;
	struct side side;	/* on the device whose netdev goes */
	int socket;		/* to the container */
	pid_t container;
};

struct port {
	int fd;
	const char *name;
};

static bool has_address(void *arg)
{
	const struct port *wanted = arg;
	struct ibchan_cmd_port_query port = { .port = 1 };

	strcpy(port.name, wanted->name);
	return !cmd_port_query(wanted->fd, &port) && port.out.gid_index != IBCHAN_AUTO;
}

static bool is_gone(void *arg)
{
	const struct port *port = arg;
	__u32 device;

	return device_open(port->fd, port->name, &device) == -ENODEV;
}

static int open_side_on(struct side *side, const char *name)
{
	struct side_options options = side_defaults();
	struct port port = { .name = name };
	bool there;

	port.fd = node_open();
	if (port.fd < 0)
		return port.fd;
	there = eventually(has_address, &port);
	close(port.fd);
	options.device = name;
	return there ? side_open(side, &options) : -EADDRNOTAVAIL;
}

static int say(int socket, const void *message, size_t size)
{
	return write(socket, message, size) == (ssize_t)size ? 0 : -EPIPE;
}

static int listen_to(int socket, void *message, size_t size)
{
	return recv(socket, message, size, MSG_WAITALL) == (ssize_t)size ? 0 : -EPIPE;
}

/* Where soft-RoCE listens in this namespace, which that of 6.1 and 6.12 does in the first only. */
static bool carries_packets(void)
{
	return !run_script("grep -q ':12B7 ' /proc/net/udp /proc/net/udp6");
}

/* Waits for a message of its peer and sends it back. */
static int answer_once(const struct side *side)
{
	int rc = post_receives(side, 1, 1, 64);

	if (!rc)
		rc = succeed(side, 1, NULL);
	if (!rc)
		rc = post_one(side, work(side, IBCHAN_OP_SEND, 2, 0, 64));
	return rc ? rc : succeed(side, 2, NULL);
}

static int meet_peer(int socket, struct side *side)
{
	struct ibchan_endpoint peer;

	if (say(socket, &side->endpoint, sizeof(side->endpoint)) ||
	    listen_to(socket, &peer, sizeof(peer)))
		return -EPIPE;
	return side_handshake(side, &peer);
}

/* What the container does: each step is said, and the next one waited for. */
static int live_inside(int socket)
{
	struct side side = {};
	char byte = 0;
	int rc;

	if (netns_enter_new() || say(socket, &byte, 1) || listen_to(socket, &byte, 1) ||
	    run_script(set_up_inside) || !eventually(has_other_device, NULL) ||
	    open_side_on(&side, OTHER_DEVICE))
		return -EIO;
	byte = carries_packets();
	if (say(socket, &byte, 1) || listen_to(socket, &byte, 1))
		return -EPIPE;
	rc = byte ? meet_peer(socket, &side) : 0;
	if (byte && !rc)
		rc = answer_once(&side);
	side_close(&side);
	return rc;
}

FIXTURE_SETUP(moved)
{
	int sockets[2];
	char byte;

	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, netns_mode("shared"));
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets));
	ASSERT_EQ(0, run_script(set_up));
	self->container = fork();
	if (!self->container)
		_exit(-live_inside(sockets[1]));
	ASSERT_LT(0, self->container);
	close(sockets[1]);
	self->socket = sockets[0];
	ASSERT_EQ(0, listen_to(self->socket, &byte, 1));
	ASSERT_EQ(0, open_side_on(&self->side, MOVING_DEVICE));
}

FIXTURE_TEARDOWN(moved)
{
	side_close(&self->side);
	EXPECT_TRUE(eventually(is_torn_down, NULL));
	EXPECT_EQ(0, calm_end(&self->calm));
}

static int move_netdev(int socket, pid_t container)
{
	char script[64], byte = 0;
	int rc;

	snprintf(script, sizeof(script), "ip link set n1 netns %d", container);
	rc = run_script(script);
	if (!rc)
		rc = say(socket, &byte, 1);
	/* The container's device is there; @byte says whether packets would reach it. */
	if (!rc)
		rc = listen_to(socket, &byte, 1);
	return rc ? rc : byte;
}

TEST_F(moved, netdev_takes_its_device_away_and_nothing_else)
{
	struct side_options options = side_defaults();
	struct port port = { self->side.fd, MOVING_DEVICE };
	struct side other;
	char byte = 0;

	ASSERT_EQ(0, post_receives(&self->side, 0, 8, 64));
	ASSERT_LE(0, move_netdev(self->socket, self->container));
	EXPECT_TRUE(eventually(is_gone, &port));
	/* What was posted has ended, and nothing else ever will. */
	EXPECT_EQ(0, ring_wait(self->side.ring, 8, -1));
	EXPECT_EQ(-ENODEV, ring_wait(self->side.ring, 9, -1));
	EXPECT_LE(IBCHAN_CHANNEL_BROKEN, side_state(&self->side));
	ASSERT_EQ(0, side_open(&other, &options));
	ASSERT_EQ(0, side_handshake(&other, &other.endpoint));
	EXPECT_EQ(0, exchange(&other, &other));
	side_close(&other);
	EXPECT_EQ(0, say(self->socket, &byte, 1));
	EXPECT_EQ(0, child_result(self->container));
}

/* How many entries of the port's table tell their address here. */
static int addresses_told(int fd, const char *device)
{
	static const __u8 none[IBCHAN_GID_SIZE];
	struct ibchan_cmd_gid_query cmd;
	__u32 index = 0;
	int told = 0;

	while (!gid_query(fd, device, index, &cmd)) {
		told += !!memcmp(cmd.out.gid, none, sizeof(none));
		index = cmd.out.index + 1;
	}
	return index ? told : -ENOENT;
}

TEST_F(moved, netdev_gives_its_container_addresses_that_nobody_else_has)
{
	struct port port = { self->side.fd, OTHER_DEVICE };
	char byte = 0;
	__u32 device;

	/* The container could open its device and build a channel, or this fails. */
	ASSERT_LE(0, move_netdev(self->socket, self->container));
	EXPECT_EQ(0, device_open(port.fd, OTHER_DEVICE, &device));
	EXPECT_FALSE(has_address(&port));
	EXPECT_EQ(0, addresses_told(port.fd, OTHER_DEVICE));
	EXPECT_LT(0, addresses_told(port.fd, STAYING_DEVICE));
	EXPECT_EQ(0, say(self->socket, &byte, 1));
	EXPECT_EQ(0, child_result(self->container));
	EXPECT_EQ(0, destroy(port.fd, device));
}

static int ask_once(const struct side *side)
{
	int rc = post_receives(side, 1, 1, 64);

	if (!rc)
		rc = post_one(side, work(side, IBCHAN_OP_SEND, 2, 64, 64));
	if (!rc)
		rc = succeed(side, 2, NULL);
	return rc ? rc : succeed(side, 1, NULL);
}

TEST_F(moved, netdev_carries_data_into_its_container_and_out)
{
	struct side side;
	char reaches;
	int rc = move_netdev(self->socket, self->container);

	ASSERT_LE(0, rc);
	reaches = rc;
	ASSERT_EQ(0, say(self->socket, &reaches, 1));
	if (!reaches) {
		EXPECT_EQ(0, child_result(self->container));
		SKIP(return, "this kernel's soft-RoCE works in the first namespace only");
	}
	ASSERT_EQ(0, open_side_on(&side, STAYING_DEVICE));
	pattern(side.memory + 64, 64, 5);
	ASSERT_EQ(0, meet_peer(self->socket, &side));
	EXPECT_EQ(0, ask_once(&side));
	EXPECT_EQ(0, same_bytes(side.memory + 64, side.memory, 64));
	EXPECT_EQ(0, child_result(self->container));
	side_close(&side);
}

TEST_HARNESS_MAIN
