// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kernel memory that the objects of a user take: it is charged to a budget of his, whose
 * limit is a module parameter. What is charged is an estimate; here it is held against what
 * has gone from the machine's free memory.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "cgroup.h"
#include "descriptor.h"
#include "memlock.h"
#include "namespace.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define PARAMETER	"/sys/module/ibchan/parameters/user_memory"
#define MIB		1048576L

/* A completion queue that takes a mebibyte on soft-RoCE. */
#define BIG_ENTRIES	4096

static int set_limit(long mib)
{
	char line[32];

	snprintf(line, sizeof(line), "%ld", mib);
	return put_line(PARAMETER, line);
}

static long charged_bytes(void)
{
	return counter("charged_bytes");
}

static bool nothing_is_charged(void *arg)
{
	(void)arg;
	return !charged_bytes();
}

/* The node is open to everybody meanwhile. */
FIXTURE(budget)
{
	struct calm calm;
	struct stat node;
};

FIXTURE_SETUP(budget)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_TRUE(eventually(nothing_is_charged, NULL));
	ASSERT_EQ(0, stat(NODE, &self->node));
	ASSERT_EQ(0, chmod(NODE, 0666));
}

FIXTURE_TEARDOWN(budget)
{
	EXPECT_EQ(0, chmod(NODE, self->node.st_mode & 07777));
	EXPECT_EQ(0, set_limit(0));
	EXPECT_EQ(0, calm_end(&self->calm));
	EXPECT_TRUE(eventually(nothing_is_charged, NULL));
}

static int make_cq(int fd, __u32 device, __u32 entries, struct ibchan_cmd_cq_create *cmd)
{
	*cmd = (struct ibchan_cmd_cq_create) {
		.device = device, .entries = 16, .cq_entries = entries,
	};
	return cmd_cq_create(fd, cmd);
}

/* Makes queues until one is refused; how many there were, or -errno of another refusal. */
static int fill(int fd, __u32 device, struct ibchan_reason *reason)
{
	struct ibchan_cmd_cq_create cmd;
	int n, rc = 0;

	for (n = 0; n < 64; n++) {
		rc = make_cq(fd, device, BIG_ENTRIES, &cmd);
		if (rc)
			break;
		close(cmd.out_fd);
	}
	*reason = cmd.reason;
	return rc == -EDQUOT ? n : rc ? rc : -ERANGE;
}

/* What a plain user finds out in a child, who answers with one of these. */
enum { AS_WANTED, NO_FILE = 10, NOT_REFUSED, WRONG_REASON, WRONG_NUMBERS, REFUSED };

static int open_file(const char *name, __u32 *device)
{
	int fd = node_open();

	return fd < 0 || device_open(fd, name, device) ? -1 : fd;
}

static int open_as_nobody(__u32 *device)
{
	return drop_privileges() ? -1 : open_file(DEVICE_A, device);
}

static int fill_as_nobody(void *arg)
{
	struct ibchan_reason reason;
	__u32 device;
	int fd = open_as_nobody(&device);
	int n;

	(void)arg;
	if (fd < 0)
		return -NO_FILE;
	n = fill(fd, device, &reason);
	if (n < 3 || n > 7)
		return -NOT_REFUSED;
	if (reason.code != IBCHAN_REASON_USER_MEMORY)
		return -WRONG_REASON;
	if (reason.value[1] != 8 * MIB || reason.value[0] > reason.value[1] ||
	    reason.value[0] + reason.value[2] <= reason.value[1] ||
	    reason.value[0] < n * reason.value[2] || reason.value[2] < MIB)
		return -WRONG_NUMBERS;
	return 0;
}

TEST_F(budget, of_a_user_that_is_used_up_refuses_with_used_limit_and_needed)
{
	ASSERT_EQ(0, set_limit(8));
	EXPECT_EQ(0, in_child(fill_as_nobody, NULL));
}

/* The twin. */
TEST_F(budget, does_not_bind_who_may_go_over_resource_limits)
{
	struct ibchan_reason reason;
	__u32 device;
	int fd = open_file(DEVICE_A, &device);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, set_limit(8));
	EXPECT_EQ(-ERANGE, fill(fd, device, &reason));
	EXPECT_LT(64 * MIB, charged_bytes());
	close(fd);
}

struct again {
	int fd;
	__u32 device;
};

/* What was closed goes a little later. */
static bool is_made(void *arg)
{
	struct ibchan_cmd_cq_create cmd;
	struct again *again = arg;

	return !make_cq(again->fd, again->device, BIG_ENTRIES, &cmd);
}

static int two_files_as_nobody(void *arg)
{
	struct ibchan_reason reason;
	struct ibchan_cmd_cq_create cmd;
	struct again again;
	__u32 device, other_device;
	int fd = open_as_nobody(&device);
	int other = open_file(DEVICE_B, &other_device);

	(void)arg;
	if (fd < 0 || other < 0)
		return -NO_FILE;
	if (fill(fd, device, &reason) < 3)
		return -NOT_REFUSED;
	if (make_cq(other, other_device, BIG_ENTRIES, &cmd) != -EDQUOT)
		return -NOT_REFUSED;
	close(fd);
	again = (struct again) { other, other_device };
	return eventually(is_made, &again) ? 0 : -REFUSED;
}

TEST_F(budget, is_one_for_all_files_and_devices_of_a_user_and_comes_back_when_they_close)
{
	ASSERT_EQ(0, set_limit(8));
	EXPECT_EQ(0, in_child(two_files_as_nobody, NULL));
}

TEST_F(budget, of_one_user_is_not_that_of_another)
{
	struct ibchan_cmd_cq_create cmd;
	__u32 device;
	int fd = open_file(DEVICE_A, &device);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, set_limit(8));
	ASSERT_EQ(0, make_cq(fd, device, 8 * BIG_ENTRIES - 1, &cmd));
	close(cmd.out_fd);
	ASSERT_EQ(0, make_cq(fd, device, 8 * BIG_ENTRIES - 1, &cmd));
	close(cmd.out_fd);
	EXPECT_LT(8 * MIB, charged_bytes());
	EXPECT_EQ(0, in_child(fill_as_nobody, NULL));
	close(fd);
}

/* ---- Who is a user ---- */

#define SUBORDINATE	100000

/**
 * struct tenant - a process that uses a budget up, and keeps it so
 * @enter: makes it the process that it is to be; 0 or -errno
 * @maps_ids: it has made a user namespace, and waits for root to map SUBORDINATE there
 * @socket: of this process's, to the tenant
 * @pid: its
 */
struct tenant {
	int (*enter)(int socket);
	bool maps_ids;
	int socket;
	pid_t pid;
};

static int say_int(int socket, int value)
{
	return write(socket, &value, sizeof(value)) == sizeof(value) ? 0 : -EPIPE;
}

static int hear_int(int socket)
{
	int value;

	return read(socket, &value, sizeof(value)) == sizeof(value) ? value : -EPIPE;
}

static int as_nobody(int socket)
{
	(void)socket;
	return drop_privileges();
}

/* In a user namespace that nobody has made, as a user whom nobody is on the host. */
static int as_subordinate(int socket)
{
	int rc = drop_privileges();

	if (!rc && (prctl(PR_SET_DUMPABLE, 1) || unshare(CLONE_NEWUSER)))
		rc = -errno;
	rc = say_int(socket, rc) ?: hear_int(socket);
	if (!rc && setresuid(0, 0, 0))
		rc = -errno;
	return rc;
}

static int as_stranger(int socket)
{
	(void)socket;
	return setresuid(SUBORDINATE, SUBORDINATE, SUBORDINATE) ? -errno : 0;
}

static int as_contained_root(int socket)
{
	(void)socket;
	return lose_capability(CAP_SYS_RESOURCE);
}

static int as_root_of_a_cgroup(int socket)
{
	return cgroup_join() ?: as_contained_root(socket);
}

static int as_root_of_a_namespace(int socket)
{
	(void)socket;
	return unshare(CLONE_NEWUSER) ? -errno : 0;
}

/* Never returns. */
static void be_tenant(const struct tenant *tenant, int socket)
{
	struct ibchan_reason reason;
	int rc = tenant->enter(socket);
	__u32 device;
	int fd;

	if (!rc) {
		fd = open_file(DEVICE_A, &device);
		rc = fd < 0 ? -EBADF : fill(fd, device, &reason);
	}
	say_int(socket, rc);
	for (;;)
		pause();
}

static int map_subordinate(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	return put_line(path, "0 100000 1");
}

/* How many queues it got, or -errno. */
static int tenant_moves_in(struct tenant *tenant)
{
	int ends[2], rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	tenant->socket = ends[0];
	tenant->pid = fork();
	if (!tenant->pid)
		be_tenant(tenant, ends[1]);
	close(ends[1]);
	if (tenant->pid < 0)
		return -EAGAIN;
	if (tenant->maps_ids) {
		rc = hear_int(tenant->socket) ?: map_subordinate(tenant->pid);
		if (say_int(tenant->socket, rc) || rc)
			return rc ?: -EPIPE;
	}
	return hear_int(tenant->socket);
}

static int tenant_leaves(struct tenant *tenant)
{
	int rc = kill(tenant->pid, SIGKILL) ? -errno : child_result(tenant->pid);

	close(tenant->socket);
	return rc;
}

/*
 * How many queues the second one gets where the first one has used its budget up. Those before have
 * paid back a grace period after their ends.
 */
static int second_gets(struct tenant first, struct tenant second)
{
	int got;

	if (!eventually(nothing_is_charged, NULL))
		return -EBUSY;
	got = tenant_moves_in(&first);
	if (got < 3) {
		tenant_leaves(&first);
		return got < 0 ? got : -ENODATA;
	}
	got = tenant_moves_in(&second);
	if (tenant_leaves(&first) != -EINTR || tenant_leaves(&second) != -EINTR)
		return -ECHILD;
	return got;
}

TEST_F(budget, of_a_user_is_that_of_all_ids_in_namespaces_that_the_user_has_made)
{
	const struct tenant nobody = { .enter = as_nobody };
	const struct tenant subordinate = { .enter = as_subordinate, .maps_ids = true };
	const struct tenant stranger = { .enter = as_stranger };

	ASSERT_EQ(0, set_limit(8));
	EXPECT_EQ(0, second_gets(nobody, subordinate));
	EXPECT_EQ(0, second_gets(subordinate, nobody));
	EXPECT_EQ(0, second_gets(subordinate, subordinate));
	EXPECT_LE(3, second_gets(subordinate, stranger));
}

TEST_F(budget, of_root_in_one_cgroup_is_not_that_of_root_in_another)
{
	const struct tenant here = { .enter = as_contained_root };
	const struct tenant there = { .enter = as_root_of_a_cgroup };

	ASSERT_EQ(0, set_limit(8));
	ASSERT_EQ(0, cgroup_begin());
	ASSERT_EQ(0, cgroup_leave());
	EXPECT_LE(3, second_gets(here, there));
	EXPECT_LE(3, second_gets(there, here));
	EXPECT_EQ(0, second_gets(here, here));
	EXPECT_EQ(0, second_gets(there, there));
	EXPECT_EQ(0, cgroup_end());
}

TEST_F(budget, of_one_namespace_of_roots_is_not_that_of_another)
{
	const struct tenant contained = { .enter = as_root_of_a_namespace };

	ASSERT_EQ(0, set_limit(8));
	EXPECT_LE(3, second_gets(contained, contained));
}

static int each_kind_as_nobody(void *arg)
{
	struct side_options options = side_defaults();
	struct ibchan_cmd_channel_build channel = { .params = default_params() };
	struct ibchan_cmd_mr_reg mr = { .length = 64, .access = IBCHAN_ACCESS_LOCAL };
	struct ibchan_reason reason;
	struct side side;
	__u32 pd;

	(void)arg;
	if (drop_privileges() || side_open(&side, &options))
		return -NO_FILE;
	mr.pd = side.pd;
	mr.addr = address(side.memory);
	channel.pd = side.pd;
	channel.send_cq = side.ring->cq;
	channel.recv_cq = side.ring->cq;
	if (fill(side.fd, side.device, &reason) < 0)
		return -NOT_REFUSED;
	/* What is left does for smaller ones. */
	while (!cmd_channel_build(side.fd, &channel))
		;
	while (!cmd_mr_reg(side.fd, &mr))
		;
	while (!pd_alloc(side.fd, side.device, &pd))
		;
	if (channel.reason.code != IBCHAN_REASON_USER_MEMORY ||
	    mr.reason.code != IBCHAN_REASON_USER_MEMORY)
		return -WRONG_REASON;
	if (cmd_channel_build(side.fd, &channel) != -EDQUOT ||
	    cmd_mr_reg(side.fd, &mr) != -EDQUOT ||
	    pd_alloc(side.fd, side.device, &pd) != -EDQUOT)
		return -NOT_REFUSED;
	/* What exists works on. */
	if (side_handshake(&side, &side.endpoint) || exchange(&side, &side))
		return -REFUSED;
	side_close(&side);
	return 0;
}

TEST_F(budget, that_is_used_up_refuses_each_kind_of_object_and_leaves_others_alone)
{
	ASSERT_EQ(0, set_limit(4));
	EXPECT_EQ(0, in_child(each_kind_as_nobody, NULL));
}

/* Never returns. */
static void fill_send_and_stay(int socket)
{
	struct ibchan_reason reason;
	__u32 device;
	int fd = open_as_nobody(&device);

	if (fd < 0 || fill(fd, device, &reason) < 3 || send_descriptor(socket, fd) ||
	    write(socket, &device, sizeof(device)) != sizeof(device))
		_exit(1);
	for (;;)
		pause();
}

/* Who gives an object back need not be whom it was charged to. */
TEST_F(budget, is_paid_back_by_whoever_gives_objects_back)
{
	int ends[2], theirs;
	__u32 device, i;
	pid_t child;

	ASSERT_EQ(0, set_limit(8));
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		fill_send_and_stay(ends[1]);
	close(ends[1]);
	theirs = receive_descriptor(ends[0]);
	ASSERT_LE(0, theirs);
	EXPECT_LT(3 * MIB, charged_bytes());
	/* Their handles follow each other; the first one is the device's. */
	ASSERT_EQ(sizeof(device), read(ends[0], &device, sizeof(device)));
	for (i = 64; i; i--)
		destroy(theirs, device + i - 1);
	EXPECT_TRUE(eventually(nothing_is_charged, NULL));
	EXPECT_EQ(0, kill(child, SIGKILL));
	EXPECT_EQ(-EINTR, child_result(child));
	close(theirs);
	close(ends[0]);
}

TEST_F(budget, is_not_charged_for_what_was_refused)
{
	struct ibchan_cmd_mr_reg mr = { .access = IBCHAN_ACCESS_LOCAL, .length = 1 << 20 };
	struct ibchan_cmd_channel_build channel = { .params = default_params() };
	struct side_options options = side_defaults();
	struct ibchan_cmd_cq_create cq;
	struct side side;
	long before;

	ASSERT_EQ(0, side_open(&side, &options));
	before = charged_bytes();
	mr.pd = side.pd;
	channel.pd = side.pd;
	channel.send_cq = side.ring->cq;
	channel.recv_cq = side.ring->cq;
	channel.params.max_send_wr = 4000;
	EXPECT_EQ(-EFAULT, cmd_mr_reg(side.fd, &mr));
	EXPECT_EQ(-EAGAIN, cmd_channel_build(side.fd, &channel));
	EXPECT_EQ(-EINVAL, make_cq(side.fd, side.device, 1 << 30, &cq));
	EXPECT_EQ(before, charged_bytes());
	side_close(&side);
}

/* --- the estimate --- */

/* The sum of all numbers behind @format in a file. */
static long sum_of(const char *path, const char *format)
{
	FILE *file = fopen(path, "re");
	char line[256];
	long sum = 0;
	long value;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, format, &value) == 1)
			sum += value;
	if (file)
		fclose(file);
	return sum;
}

/* Bytes that nobody uses, those included that each CPU keeps at hand. */
static long free_memory(void)
{
	put_line("/proc/sys/vm/drop_caches", "2");
	put_line("/proc/sys/vm/stat_refresh", "1");
	return sum_of("/proc/zoneinfo", " count: %ld") * sysconf(_SC_PAGESIZE) +
	       (sum_of("/proc/meminfo", "MemFree: %ld") << 10);
}

/* Makes @num objects on @side. */
typedef int maker(struct side *side, unsigned int num, __u32 arg);

static int make_cqs(struct side *side, unsigned int num, __u32 entries)
{
	struct ibchan_cmd_cq_create cmd;
	int rc = 0;

	while (num-- && !rc) {
		rc = make_cq(side->fd, side->device, entries, &cmd);
		if (!rc)
			close(cmd.out_fd);
	}
	return rc;
}

static int make_rings(struct side *side, unsigned int num, __u32 entries)
{
	struct ibchan_cmd_cq_create cmd = {
		.device = side->device, .entries = entries, .cq_entries = 16,
	};
	int rc = 0;

	while (num-- && !rc) {
		rc = cmd_cq_create(side->fd, &cmd);
		if (!rc)
			close(cmd.out_fd);
	}
	return rc;
}

/* On a queue that has been counted before. */
static int make_channels(struct side *side, unsigned int num, __u32 depth)
{
	struct ibchan_cmd_channel_handshake shake;
	struct ibchan_cmd_channel_build cmd;
	int rc = 0;

	while (num-- && !rc) {
		cmd = (struct ibchan_cmd_channel_build) {
			.pd = side->pd, .send_cq = side->ring->cq, .recv_cq = side->ring->cq,
			.params = default_params(),
		};
		cmd.params.max_send_wr = depth;
		cmd.params.max_recv_wr = depth;
		rc = cmd_channel_build(side->fd, &cmd);
		shake = (struct ibchan_cmd_channel_handshake) {
			.channel = cmd.out_channel, .endpoint = cmd.out_endpoint,
		};
		if (!rc)
			rc = cmd_channel_handshake(side->fd, &shake);
	}
	return rc;
}

/* One page at many addresses, so that no two of a region's pages lie side by side. */
static void *scattered(__u32 pages)
{
	long size = sysconf(_SC_PAGESIZE);
	int fd = memfd_create("page", MFD_CLOEXEC);
	char *base = mmap(NULL, pages * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	__u32 i;

	if (fd < 0 || base == MAP_FAILED || ftruncate(fd, size))
		return NULL;
	for (i = 0; i < pages; i++)
		if (mmap(base + i * size, size, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0) == MAP_FAILED)
			return NULL;
	close(fd);
	return base;
}

static void *scattered_pages;

static int make_mrs(struct side *side, unsigned int num, __u32 pages)
{
	struct ibchan_cmd_mr_reg cmd = {
		.pd = side->pd, .addr = address(scattered_pages),
		.length = pages * (__u64)sysconf(_SC_PAGESIZE), .access = IBCHAN_ACCESS_SHARED,
	};
	int rc = 0;

	while (num-- && !rc)
		rc = cmd_mr_reg(side->fd, &cmd);
	return rc;
}

/* The first ones fill what is half empty and are not counted. */
static int measure(maker *make, unsigned int num, __u32 arg, long *taken, long *estimate)
{
	struct side_options options = side_defaults();
	struct side side;
	int rc;

	options.cq_entries = 32000;
	rc = side_open(&side, &options);
	if (rc)
		return rc;
	rc = make(&side, 1, arg);
	*taken = free_memory();
	*estimate = charged_bytes();
	rc = rc ?: make(&side, num, arg);
	*taken -= free_memory();
	*estimate = charged_bytes() - *estimate;
	side_close(&side);
	if (!rc && !eventually(nothing_is_charged, NULL))
		rc = -ETIMEDOUT;
	return rc;
}

/* The kernel takes memory for other ends at the same time, now and then: not always as much. */
static void expect_estimate(struct __test_metadata *_metadata, maker *make, unsigned int num,
			    __u32 arg)
{
	long taken = 0, estimate = 0;
	int tries = 3;

	while (tries-- && (taken <= 0 || taken > estimate)) {
		ASSERT_EQ(0, measure(make, num, arg, &taken, &estimate));
		TH_LOG("%u of %u: %ld bytes each are charged, %ld taken", num, arg, estimate / num,
		       taken / num);
	}
	EXPECT_LE(taken, estimate);
	EXPECT_LE(estimate, 2 * taken);
}

TEST_F(budget, charges_for_a_cq_what_it_takes_and_not_twice_as_much)
{
	if (slow())
		SKIP(return, "a kernel that checks itself takes more for everything");
	expect_estimate(_metadata, make_cqs, 4, 32000);
	expect_estimate(_metadata, make_cqs, 300, 100);
}

TEST_F(budget, charges_for_a_ring_what_it_takes_and_not_twice_as_much)
{
	if (slow())
		SKIP(return, "a kernel that checks itself takes more for everything");
	expect_estimate(_metadata, make_rings, 8, 32768);
}

TEST_F(budget, charges_for_a_channel_what_it_takes_and_not_twice_as_much)
{
	if (slow())
		SKIP(return, "a kernel that checks itself takes more for everything");
	expect_estimate(_metadata, make_channels, 80, 16);
	expect_estimate(_metadata, make_channels, 4, 1500);
}

TEST_F(budget, charges_for_a_region_what_it_takes_and_not_twice_as_much)
{
	if (slow())
		SKIP(return, "a kernel that checks itself takes more for everything");
	scattered_pages = scattered(4096);
	ASSERT_NE(NULL, scattered_pages);
	expect_estimate(_metadata, make_mrs, 320, 200);
	expect_estimate(_metadata, make_mrs, 10, 4096);
	munmap(scattered_pages, 4096 * sysconf(_SC_PAGESIZE));
}

TEST_HARNESS_MAIN
