// SPDX-License-Identifier: GPL-2.0-only
/*
 * The threads of one file: what one of them waits for holds up neither the others nor the
 * machine.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cable.h"
#include "gid.h"
#include "missing.h"
#include "sync.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define PAGE		4096UL

/* The workers that one CPU of 6.1 and 6.12 has for the system's queue are 256. */
#define FILES		300

/* A gateway that has no such neighbour: a handshake waits 2 s for it. */
#define BEHIND		"10.96.0.1"
#define GATEWAY		"10.77.0.77"
#define ROUTE		"10.96.0.0/24 via " GATEWAY

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

/* --- a file that registers a page that does not come --- */

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

static int hang(struct hanging *hanging, void *page)
{
	pthread_attr_t attr;
	int rc;

	hanging->page = page;
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

/* Within patience. */
static int machine_syncs(void)
{
	struct timespec limit = { .tv_sec = patience_ms() / 1000 };
	struct sync sync;
	int rc = sync_begin(&sync) ?: sync_by_worker(&sync, &limit);

	if (!rc)
		sync_end(&sync);
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
	void *page;
	unsigned int i;
	int rc = missing_begin(&missing);

	if (rc == -EOPNOTSUPP)
		SKIP(return, "this kernel has no userfaultfd");
	ASSERT_EQ(0, rc);
	page = missing_pages(&missing, PAGE);
	ASSERT_NE(MAP_FAILED, page);
	ASSERT_NE(NULL, files);
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &many));
	ASSERT_EQ(0, on_one_cpu());
	for (i = 0; i < FILES; i++) {
		ASSERT_EQ(0, hanging_open(&files[i]));
		ASSERT_EQ(0, hang(&files[i], page));
	}
	ASSERT_TRUE(missing_is_wanted_by(&missing, FILES));
	for (i = 0; i < FILES; i++)
		ASSERT_EQ(0, ring_spoil(&files[i].ring));
	EXPECT_EQ(0, machine_syncs());
	missing_end(&missing);
	for (i = 0; i < FILES; i++) {
		pthread_join(files[i].thread, NULL);
		hanging_close(&files[i]);
	}
	munmap(page, PAGE);
	free(files);
}

TEST_F(file, goes_on_while_one_of_its_threads_registers_what_does_not_come)
{
	struct ibchan_cmd_event_take event = { 0 };
	struct hanging hanging = { .fd = self->side.fd, .pd = self->side.pd };
	struct ibchan_cmd_query query = { 0 };
	struct missing missing;
	void *page;
	__u32 pd;
	int rc = missing_begin(&missing);

	if (rc == -EOPNOTSUPP)
		SKIP(return, "this kernel has no userfaultfd");
	ASSERT_EQ(0, rc);
	page = missing_pages(&missing, PAGE);
	ASSERT_NE(MAP_FAILED, page);
	ASSERT_EQ(0, hang(&hanging, page));
	ASSERT_TRUE(missing_is_wanted_by(&missing, 1));
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
	munmap(page, PAGE);
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

	gid_of(BEHIND, cmd.endpoint.gid);
	shaking->rc = cmd_channel_handshake(shaking->side->fd, &cmd);
	__atomic_store_n(&shaking->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static bool is_done(const struct shaking *shaking)
{
	return __atomic_load_n(&shaking->done, __ATOMIC_ACQUIRE);
}

static int shaking_start(struct shaking *shaking)
{
	int rc;

	sh("ip neigh flush to " GATEWAY);
	if (sh("ip route replace " ROUTE))
		return -ENETUNREACH;
	rc = -pthread_create(&shaking->thread, NULL, shake, shaking);
	return rc ?: eventually(neighbour_is_asked, GATEWAY) ? rc : -ETIMEDOUT;
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

static bool is_connected(void *side)
{
	return side_state(side) == IBCHAN_CHANNEL_CONNECTED;
}

TEST_F(file, takes_a_request_connects_and_exchanges_while_a_handshake_waits_for_a_gateway)
{
	struct ibchan_cmd_listener_create listen = { .out_fd = -1 };
	struct shaking shaking = { .side = &self->side };
	struct side_options options = side_defaults();
	struct side asking, asked;

	ASSERT_EQ(0, side_share(&asked, &self->side, &options));
	ASSERT_EQ(0, side_ask(&asking, &asked, &listen));
	ASSERT_EQ(0, shaking_start(&shaking));
	EXPECT_EQ(0, side_accept(&asked, listen.out_listener, listen.out_fd));
	EXPECT_TRUE(eventually(is_connected, &asked));
	EXPECT_TRUE(eventually(is_connected, &asking));
	EXPECT_EQ(0, exchange(&asking, &asked));
	EXPECT_EQ(0, exchange(&asked, &asking));
	EXPECT_FALSE(is_done(&shaking));
	shaking_end(&shaking);
	EXPECT_EQ(-EHOSTUNREACH, shaking.rc);
	close(listen.out_fd);
	side_close(&asking);
	side_close(&asked);
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

/* --- a file with many objects --- */

#define CHANNELS	100
#define DOMAINS		2000

/* The CPU time of so many looks for an event, where there is none: the least of several tries. */
static __u64 time_of_looks(int fd)
{
	struct ibchan_cmd_event_take event;
	struct timespec begin, end;
	__u64 ns, least = ~0ULL;
	int try, i;

	for (try = 0; try < 10; try++) {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
		for (i = 0; i < 100; i++) {
			event = (struct ibchan_cmd_event_take) { 0 };
			if (cmd_event_take(fd, &event) != -EAGAIN)
				return 0;
		}
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
		ns = (end.tv_sec - begin.tv_sec) * 1000000000LL + end.tv_nsec - begin.tv_nsec;
		least = ns < least ? ns : least;
	}
	return least;
}

static int channels_share(struct side *sides, const struct side *host)
{
	struct side_options options = side_defaults();
	int i, rc = 0;

	options.memory = PAGE;
	options.params.max_send_wr = 1;
	options.params.max_recv_wr = 1;
	for (i = 0; i < CHANNELS && !rc; i++)
		rc = side_share(&sides[i], host, &options);
	return rc;
}

/* Its twin is a file with one channel. */
TEST_F(file, of_many_channels_finds_the_one_with_an_event_without_a_look_at_the_others)
{
	struct side *others = calloc(CHANNELS, sizeof(*others));
	struct ibchan_cmd_event_take event = { 0 };
	struct side_options options = side_defaults();
	__u64 of_few, of_many;
	struct side many;
	__u32 pd;
	int i;

	options.ring_entries = 1024;
	options.cq_entries = 1024;
	ASSERT_NE(NULL, others);
	ASSERT_EQ(0, side_open(&many, &options));
	ASSERT_EQ(0, channels_share(others, &many));
	for (i = 0; i < DOMAINS; i++)
		ASSERT_EQ(0, pd_alloc(many.fd, many.device, &pd));
	of_few = time_of_looks(self->side.fd);
	of_many = time_of_looks(many.fd);
	EXPECT_LT(0, of_few);
	EXPECT_GT(3 * of_few, of_many);
	ASSERT_EQ(0, channel_break(many.fd, others[CHANNELS / 2].channel));
	EXPECT_EQ(0, cmd_event_take(many.fd, &event));
	EXPECT_EQ(others[CHANNELS / 2].channel, event.out_channel);
	EXPECT_EQ(-EAGAIN, cmd_event_take(many.fd, &event));
	for (i = 0; i < CHANNELS; i++)
		side_close(&others[i]);
	side_close(&many);
	free(others);
}

TEST_HARNESS_MAIN
