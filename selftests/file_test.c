// SPDX-License-Identifier: GPL-2.0-only
/*
 * The threads of one file: what one of them waits for holds up neither the others nor the
 * machine.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cable.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define PAGE		4096UL

/* The workers that one CPU of 6.1 and 6.12 has for the system's queue are 256. */
#define FILES		300

/* A gateway that has no such neighbour: a handshake waits 2 s for it. */
#define BEHIND		"10.96.0.1"
#define ROUTE		"10.96.0.0/24 via 10.77.0.77"

FIXTURE(file)
{
	struct calm calm;
	struct side side;
};

FIXTURE_SETUP(file)
{
	struct side_options options = side_defaults();

	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, side_open(&self->side, &options));
}

FIXTURE_TEARDOWN(file)
{
	side_close(&self->side);
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* --- a page that does not come --- */

struct missing {
	int fd;
	void *page;
};

static int missing_begin(struct missing *missing)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register region = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	if (access("/proc/sys/vm/unprivileged_userfaultfd", F_OK))
		return -EOPNOTSUPP;
	missing->fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (missing->fd < 0)
		return -errno;
	missing->page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			     -1, 0);
	region.range = (struct uffdio_range) { (uintptr_t)missing->page, PAGE };
	if (ioctl(missing->fd, UFFDIO_API, &api) || ioctl(missing->fd, UFFDIO_REGISTER, &region))
		return -errno;
	return 0;
}

/* So many threads are in a fault on it. */
static bool is_wanted_by(const struct missing *missing, unsigned int threads)
{
	struct pollfd pollfd = { .fd = missing->fd, .events = POLLIN };
	struct uffd_msg message;

	for (; threads; threads--)
		if (poll(&pollfd, 1, patience_ms()) != 1 ||
		    read(missing->fd, &message, sizeof(message)) != sizeof(message))
			return false;
	return true;
}

/* It comes after all. */
static void missing_end(struct missing *missing)
{
	close(missing->fd);
	missing->fd = -1;
}

/* --- a file that registers it --- */

struct hanging {
	pthread_t thread;
	int fd;
	__u32 device;
	__u32 pd;
	struct ring ring;
	void *page;
	int rc;
};

static void *register_page(void *arg)
{
	struct hanging *hanging = arg;
	struct ibchan_cmd_mr_reg cmd = {
		.addr = address(hanging->page), .length = PAGE, .pd = hanging->pd,
		.access = IBCHAN_ACCESS_LOCAL_WRITE,
	};

	hanging->rc = cmd_mr_reg(hanging->fd, &cmd);
	return NULL;
}

static int hang(struct hanging *hanging, const struct missing *missing)
{
	pthread_attr_t attr;
	int rc;

	hanging->page = missing->page;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	rc = -pthread_create(&hanging->thread, &attr, register_page, hanging);
	pthread_attr_destroy(&attr);
	return rc;
}

/* All that is needed before the thread hangs. */
static int hanging_open(struct hanging *hanging)
{
	struct ibchan_cmd_cq_create cmd = { .entries = 1, .cq_entries = 4 };
	int rc;

	hanging->fd = node_open();
	if (hanging->fd < 0)
		return hanging->fd;
	rc = device_open(hanging->fd, DEVICE_A, &hanging->device);
	rc = rc ?: pd_alloc(hanging->fd, hanging->device, &hanging->pd);
	cmd.device = hanging->device;
	rc = rc ?: cmd_cq_create(hanging->fd, &cmd);
	return rc ?: ring_map(&hanging->ring, hanging->fd, &cmd);
}

static void hanging_close(struct hanging *hanging)
{
	ring_unmap(&hanging->ring);
	close(hanging->fd);
}

/* Its head says that more was read than came; poll() is what finds it. */
static int damage_ring(struct ring *ring)
{
	struct pollfd pollfd = { .fd = ring->fd, .events = POLLIN };

	*ring->head = 5;
	return poll(&pollfd, 1, 0) == 1 && pollfd.revents & POLLERR ? 0 : -EBADMSG;
}

/* A worker of the machine's own does this. */
static int sync_by_worker(void)
{
	struct timespec limit = { .tv_sec = patience_ms() / 1000 };
	struct iocb iocb = { .aio_lio_opcode = IOCB_CMD_FDSYNC }, *iocbs = &iocb;
	int fd = memfd_create("sync", MFD_CLOEXEC);
	aio_context_t aio = 0;
	struct io_event event;
	int rc;

	iocb.aio_fildes = fd;
	if (fd < 0 || syscall(SYS_io_setup, 1, &aio))
		return -errno;
	rc = syscall(SYS_io_submit, aio, 1, &iocbs) == 1 ? 0 : -errno;
	if (!rc && syscall(SYS_io_getevents, aio, 1, 1, &event, &limit) != 1)
		rc = -ETIMEDOUT;
	/* It waits for what has not come. */
	if (!rc)
		syscall(SYS_io_destroy, aio);
	close(fd);
	return rc;
}

/* A worker runs on the CPU of who wants it. */
static int on_one_cpu(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	return sched_setaffinity(0, sizeof(one), &one) ? -errno : 0;
}

TEST_F(file, with_a_bad_ring_and_a_thread_in_a_fault_costs_the_machine_no_worker)
{
	const struct rlimit many = { 4096, 4096 };
	struct hanging *files = calloc(FILES, sizeof(*files));
	struct missing missing;
	unsigned int i;
	int rc = missing_begin(&missing);

	if (rc == -EOPNOTSUPP)
		SKIP(return, "this kernel has no userfaultfd");
	ASSERT_EQ(0, rc);
	ASSERT_NE(NULL, files);
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &many));
	ASSERT_EQ(0, on_one_cpu());
	for (i = 0; i < FILES; i++) {
		ASSERT_EQ(0, hanging_open(&files[i]));
		ASSERT_EQ(0, hang(&files[i], &missing));
	}
	ASSERT_TRUE(is_wanted_by(&missing, FILES));
	for (i = 0; i < FILES; i++)
		ASSERT_EQ(0, damage_ring(&files[i].ring));
	EXPECT_EQ(0, sync_by_worker());
	missing_end(&missing);
	for (i = 0; i < FILES; i++) {
		pthread_join(files[i].thread, NULL);
		hanging_close(&files[i]);
	}
	munmap(missing.page, PAGE);
	free(files);
}

TEST_F(file, goes_on_while_one_of_its_threads_registers_what_does_not_come)
{
	struct ibchan_cmd_event_take event = { 0 };
	struct hanging hanging = { .fd = self->side.fd, .pd = self->side.pd };
	struct ibchan_cmd_query query = { 0 };
	struct missing missing;
	__u32 pd;
	int rc = missing_begin(&missing);

	if (rc == -EOPNOTSUPP)
		SKIP(return, "this kernel has no userfaultfd");
	ASSERT_EQ(0, rc);
	ASSERT_EQ(0, hang(&hanging, &missing));
	ASSERT_TRUE(is_wanted_by(&missing, 1));
	EXPECT_EQ(-EAGAIN, cmd_event_take(self->side.fd, &event));
	EXPECT_EQ(0, cmd_query(self->side.fd, &query));
	EXPECT_EQ(IBCHAN_CHANNEL_PREPARED, side_state(&self->side));
	EXPECT_EQ(0, side_handshake(&self->side, &self->side.endpoint));
	EXPECT_EQ(0, exchange(&self->side, &self->side));
	ASSERT_EQ(0, pd_alloc(self->side.fd, self->side.device, &pd));
	EXPECT_EQ(0, destroy(self->side.fd, pd));
	EXPECT_EQ(-EBUSY, destroy(self->side.fd, self->side.pd));
	missing_end(&missing);
	pthread_join(hanging.thread, NULL);
	EXPECT_EQ(0, hanging.rc);
	munmap(missing.page, PAGE);
}

/* --- a handshake that waits --- */

struct shaking {
	pthread_t thread;
	const struct side *side;
	int rc;
	int done;
};

static void *shake(void *arg)
{
	struct shaking *shaking = arg;
	struct ibchan_cmd_channel_handshake cmd = {
		.channel = shaking->side->channel, .endpoint = shaking->side->endpoint,
	};

	memset(cmd.endpoint.gid, 0, IBCHAN_GID_SIZE);
	memset(cmd.endpoint.gid + 10, 0xff, 2);
	inet_pton(AF_INET, BEHIND, cmd.endpoint.gid + 12);
	shaking->rc = cmd_channel_handshake(shaking->side->fd, &cmd);
	__atomic_store_n(&shaking->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static bool is_done(const struct shaking *shaking)
{
	return __atomic_load_n(&shaking->done, __ATOMIC_ACQUIRE);
}

/* The kernel asks for the gateway's address, so somebody waits for it. */
static bool gateway_is_asked(void *arg)
{
	FILE *table = fopen("/proc/net/arp", "r");
	unsigned int state = 1;
	char line[256];

	(void)arg;
	while (table && state && fgets(line, sizeof(line), table))
		sscanf(line, "10.77.0.77 %*s %x", &state);
	if (table)
		fclose(table);
	return !state;
}

static int shaking_start(struct shaking *shaking)
{
	int rc;

	sh("ip neigh flush to 10.77.0.77");
	if (sh("ip route replace " ROUTE))
		return -ENETUNREACH;
	rc = -pthread_create(&shaking->thread, NULL, shake, shaking);
	return rc ?: eventually(gateway_is_asked, NULL) ? rc : -ETIMEDOUT;
}

static void shaking_end(struct shaking *shaking)
{
	pthread_join(shaking->thread, NULL);
	sh("ip route del " ROUTE);
}

/* What is done meanwhile is done before the handshake has come back. */
TEST_F(file, takes_events_and_answers_while_a_handshake_waits_for_a_gateway)
{
	struct shaking shaking = { .side = &self->side };
	struct ibchan_cmd_event_take event = { 0 };
	struct ibchan_cmd_query query = { 0 };
	struct side_options options = side_defaults();
	struct side other;

	ASSERT_EQ(0, side_share(&other, &self->side, &options));
	ASSERT_EQ(0, side_handshake(&other, &other.endpoint));
	ASSERT_EQ(0, shaking_start(&shaking));
	ASSERT_EQ(0, channel_break(other.fd, other.channel));
	EXPECT_EQ(0, cmd_event_take(self->side.fd, &event));
	EXPECT_EQ(other.channel, event.out_channel);
	EXPECT_EQ(0, cmd_query(self->side.fd, &query));
	EXPECT_EQ(IBCHAN_CHANNEL_PREPARED, side_state(&self->side));
	EXPECT_EQ(0, destroy(other.fd, other.channel));
	EXPECT_FALSE(is_done(&shaking));
	shaking_end(&shaking);
	EXPECT_EQ(-EHOSTUNREACH, shaking.rc);
	side_close(&other);
}

TEST_F(file, that_destroys_a_channel_ends_its_handshake_before)
{
	struct shaking shaking = { .side = &self->side };

	ASSERT_EQ(0, shaking_start(&shaking));
	EXPECT_EQ(0, destroy(self->side.fd, self->side.channel));
	shaking_end(&shaking);
	EXPECT_EQ(-ESHUTDOWN, shaking.rc);
	EXPECT_EQ(-ENOENT, destroy(self->side.fd, self->side.channel));
}

TEST_HARNESS_MAIN
