// SPDX-License-Identifier: GPL-2.0-only
/*
 * A device that leaves while it is in use, and comes back. Runs last: it takes the guest's
 * first soft-RoCE device away and gives it back after each test.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "cgroup.h"
#include "departure.h"
#include "dmabuf.h"
#include "example.h"
#include "test.h"
#include "work.h"
#include "world.h"

FIXTURE(device)
{
	struct calm calm;
	struct example_objects objects;	/* on the device that goes */
	struct pair pair;		/* from that device to the other one */
};

FIXTURE_SETUP(device)
{
	struct side_options options = side_defaults();

	ASSERT_EQ(0, restore_device());
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, example_objects_open(&self->objects));
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &options));
	ASSERT_EQ(0, exchange(self->pair.a, self->pair.b));
}

FIXTURE_TEARDOWN(device)
{
	pair_close(&self->pair);
	example_objects_close(&self->objects);
	EXPECT_EQ(0, calm_end(&self->calm));
	EXPECT_EQ(0, restore_device());
}

/* Questions about the file are answered, and what is given back is gone. */
static int wanted_of_lost(unsigned int i)
{
	switch (i) {
	case EXAMPLE_PORT_QUERY:
	case EXAMPLE_GID_QUERY:
	case EXAMPLE_ROUTE_QUERY:
		return -ENODEV;
	case EXAMPLE_REQUEST_REJECT:
	case EXAMPLE_EVENT_TAKE:
		return 0;
	default:
		return examples[i].from_anyone ? 0 : -ENODEV;
	}
}

static int destroy_if(const struct example_objects *objects, __u32 handle)
{
	return handle ? destroy(objects->side.fd, handle) : 0;
}

TEST_F(device, that_leaves_answers_enodev_to_all_but_questions_and_destroy)
{
	struct example_objects *objects = &self->objects;
	__u64 room[EXAMPLE_ROOM / sizeof(__u64)];
	unsigned int i;

	ASSERT_EQ(0, delete_device());
	for_each_example(i, objects) {
		int wanted = wanted_of_lost(i);
		int rc;

		/* The first needs an object that can no longer be made; the others follow. */
		if (i == EXAMPLE_DESTROY || i == EXAMPLE_CHANNEL_BREAK || i == EXAMPLE_SUBMIT)
			continue;
		ASSERT_EQ(0, example_prepare(&examples[i], objects, room));
		rc = cmd_raw(objects->side.fd, examples[i].number, room);
		EXPECT_EQ(wanted, rc)
			TH_LOG("%s", examples[i].name);
	}
	EXPECT_EQ(-ENODEV, channel_break(objects->side.fd, objects->side.channel));
	EXPECT_LE(IBCHAN_CHANNEL_BROKEN, side_state(&objects->side));
	/* No work will end any more. */
	EXPECT_EQ(-ENODEV, ring_wait(objects->side.ring, 1, -1));
	EXPECT_EQ(-ENODEV, post_one(&objects->side, work(&objects->side, IBCHAN_OP_RECV, 1, 0, 1)));
	EXPECT_EQ(0, destroy_if(objects, objects->listener));
	EXPECT_EQ(0, destroy_if(objects, objects->asking));
	EXPECT_EQ(0, destroy_if(objects, objects->taken));
	EXPECT_EQ(0, destroy_if(objects, objects->eventful));
	EXPECT_EQ(0, destroy(objects->side.fd, objects->side.channel));
	EXPECT_EQ(0, destroy(objects->side.fd, objects->broken.channel));
	EXPECT_EQ(0, destroy(objects->side.fd, objects->side.ring->cq));
	EXPECT_EQ(0, destroy(objects->side.fd, objects->side.mr));
	EXPECT_EQ(0, destroy(objects->side.fd, objects->broken.mr));
	EXPECT_EQ(0, destroy(objects->side.fd, objects->side.pd));
	EXPECT_EQ(0, destroy(objects->side.fd, objects->side.device));
	EXPECT_EQ(0, example_held(objects));
}

TEST_F(device, that_leaves_flushes_what_was_posted)
{
	struct side *a = self->pair.a;
	struct ibchan_submit_wr wr = work(a, IBCHAN_OP_RECV, 99, 0, 64);
	struct ibchan_cmd_submit cmd = submission(&wr, 1);
	struct ibchan_cqe cqes[17];
	unsigned int i;

	ASSERT_EQ(0, post_receives(a, 0, 16, 64));
	ASSERT_EQ(0, delete_device());
	/* What has completed can be waited for; what never will cannot. */
	EXPECT_EQ(0, ring_wait(a->ring, 16, -1));
	EXPECT_EQ(-ENODEV, ring_wait(a->ring, 17, -1));
	ASSERT_EQ(16, ring_read(a->ring, cqes, ARRAY_SIZE(cqes)));
	for (i = 0; i < 16; i++) {
		EXPECT_EQ(i, cqes[i].wr_id);
		EXPECT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, cqes[i].status);
	}
	EXPECT_EQ(-ENODEV, cmd_submit(a->fd, &cmd));
	EXPECT_EQ(IBCHAN_REASON_DEVICE_GONE, cmd.reason.code);
	EXPECT_EQ(0, cmd.entry_num);
}

/* One whose peer has refused a work, which then had nothing to do with the device. */
TEST_F(device, that_leaves_leaves_a_broken_channel_its_first_error)
{
	struct side *a = self->pair.a;
	struct ibchan_submit_wr wr = work(a, IBCHAN_OP_WRITE, 7, 0, 64);
	struct ibchan_cmd_submit cmd = submission(&wr, 1);
	struct ibchan_cmd_channel_query query;

	work_at(&wr, self->pair.b, 0);
	wr.rkey ^= 1;
	ASSERT_EQ(0, cmd_submit(a->fd, &cmd));
	ASSERT_EQ(IBCHAN_STATUS_REM_ACCESS_ERR, status_of(a, 7));
	ASSERT_EQ(0, delete_device());
	ASSERT_EQ(0, side_query(a, &query));
	EXPECT_EQ(IBCHAN_CHANNEL_CLOSED, query.out.state);
	EXPECT_EQ(EREMOTEIO, query.out.error);
	EXPECT_EQ(IBCHAN_STATUS_REM_ACCESS_ERR, query.out.status);
	EXPECT_EQ(-ENODEV, cmd_submit(a->fd, &cmd));
	EXPECT_EQ(IBCHAN_REASON_DEVICE_GONE, cmd.reason.code);
}

TEST_F(device, that_leaves_gives_its_memory_back_at_once)
{
	long pinned = pins();

	ASSERT_LT(0, counter("mr_pages"));
	ASSERT_EQ(0, delete_device());
	/* The files are still open; only the other device's memory may remain pinned. */
	EXPECT_EQ(counter("mr_pages") - (pins() - self->calm.pins), 0);
	EXPECT_GT(pinned, pins());
}

static bool only_regions_are_pinned(void *arg)
{
	const struct calm *calm = arg;

	return pins() - calm->pins == counter("mr_pages");
}

TEST_F(device, that_leaves_lets_go_of_plain_memory_in_flight)
{
	struct side *a = self->pair.a;
	struct ibchan_submit_wr wr = work_empty(a, IBCHAN_OP_RECV, 1);
	unsigned char *memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long before = pins();

	/* In pieces, and in one. */
	wr.num_sge = 1;
	wr.sge = (struct ibchan_submit_sge) { address(memory), 5000, IBCHAN_MR_PLAIN };
	ASSERT_EQ(0, post_one(a, wr));
	wr.wr_id = 2;
	wr.sge.length = 1 << 20;
	ASSERT_EQ(0, post_one(a, wr));
	EXPECT_EQ(before + 2 + 256, pins());
	ASSERT_EQ(0, delete_device());
	EXPECT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, status_of(a, 1));
	EXPECT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, status_of(a, 2));
	EXPECT_TRUE(eventually(only_regions_are_pinned, &self->calm));
	EXPECT_LT(pins(), before);
	EXPECT_EQ(-ENODEV, post_one(a, wr));
	munmap(memory, 1 << 20);
}

/* Removal waits for no exporter: the shells of the regions keep their dma-bufs. */
TEST_F(device, that_leaves_gives_dma_bufs_back_with_the_last_of_its_shells)
{
	struct side *side = &self->objects.side;
	struct ibchan_cmd_mr_reg_dmabuf local, shared;

	if (self->objects.lacks & EXAMPLE_DMABUF)
		SKIP(return, "the device takes no dma-bufs");
	local = dmabuf_region(side, self->objects.dmabuf, 0, 4096, IBCHAN_ACCESS_LOCAL);
	shared = dmabuf_region(side, self->objects.dmabuf, 0, 4096, IBCHAN_ACCESS_SHARED);
	ASSERT_EQ(0, cmd_mr_reg_dmabuf(side->fd, &local));
	ASSERT_EQ(0, cmd_mr_reg_dmabuf(side->fd, &shared));
	EXPECT_EQ(2, exporter_counter("accesses"));
	ASSERT_EQ(0, delete_device());
	EXPECT_EQ(0, destroy(side->fd, local.out_mr));
	EXPECT_EQ(1, exporter_counter("accesses"));
	example_objects_close(&self->objects);
	EXPECT_EQ(0, exporter_idle());
}

/* The account of a device ends with it; one that comes back has none of the old charges. */
TEST_F(device, that_leaves_ends_what_a_cgroup_is_charged_for)
{
	struct side_options options = side_defaults();
	struct cgroup_usage usage = {};
	struct side side;
	int rc = cgroup_begin();

	if (rc == -EOPNOTSUPP)
		SKIP(return, "this kernel has no RDMA controller");
	ASSERT_EQ(0, rc);
	ASSERT_EQ(0, side_open(&side, &options));
	ASSERT_EQ(0, cgroup_usage(DEVICE_A, &usage));
	EXPECT_EQ(1, usage.handles);
	EXPECT_EQ(4, usage.objects);
	ASSERT_EQ(0, delete_device());
	EXPECT_EQ(-ENODEV, cgroup_usage(DEVICE_A, &usage));
	ASSERT_EQ(0, destroy(side.fd, side.channel));
	ASSERT_EQ(0, restore_device());
	EXPECT_EQ(0, cgroup_usage(DEVICE_A, &usage));
	EXPECT_EQ(0, usage.handles);
	EXPECT_EQ(0, usage.objects);
	side_close(&side);
	EXPECT_EQ(0, cgroup_usage(DEVICE_A, &usage));
	EXPECT_EQ(0, usage.handles);
	EXPECT_EQ(0, usage.objects);
	EXPECT_EQ(0, cgroup_end());
}

TEST_F(device, that_leaves_takes_nothing_from_the_other_one)
{
	struct side_options options = side_defaults();
	struct side side;

	options.device = DEVICE_B;
	ASSERT_EQ(0, side_open(&side, &options));
	ASSERT_EQ(0, side_handshake(&side, &side.endpoint));
	ASSERT_EQ(0, delete_device());
	EXPECT_EQ(0, exchange(&side, &side));
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, side_state(self->pair.b));
	side_close(&side);
}

TEST_F(device, that_leaves_is_no_longer_listed)
{
	struct ibchan_cmd_device_query device = {};
	struct ibchan_cmd_query query = {};
	__u32 handle;

	ASSERT_EQ(0, delete_device());
	ASSERT_EQ(0, cmd_query(self->pair.a->fd, &query));
	EXPECT_EQ(1, query.out.devices);
	ASSERT_EQ(0, cmd_device_query(self->pair.a->fd, &device));
	EXPECT_STREQ(DEVICE_B, device.out.name);
	EXPECT_EQ(-ENODEV, device_open(self->pair.a->fd, DEVICE_A, &handle));
}

TEST_F(device, that_comes_back_works_again_also_for_a_file_that_was_open)
{
	struct side_options options = side_defaults();
	struct pair pair;
	__u32 device, pd;

	ASSERT_EQ(0, delete_device());
	ASSERT_EQ(0, restore_device());
	/* The old handle is not the new device's. */
	EXPECT_EQ(-ENODEV, pd_alloc(self->pair.a->fd, self->pair.a->device, &pd));
	ASSERT_EQ(0, device_open(self->pair.a->fd, DEVICE_A, &device));
	EXPECT_EQ(0, pd_alloc(self->pair.a->fd, device, &pd));
	ASSERT_EQ(0, pair_open(&pair, PAIR_TWO_DEVICES, &options));
	EXPECT_EQ(0, exchange(pair.a, pair.b));
	EXPECT_EQ(0, exchange(pair.b, pair.a));
	pair_close(&pair);
}

struct waiter {
	pthread_t thread;
	pid_t tid;
	const struct side *side;
	int rc;
};

static void *wait_in_submit(void *arg)
{
	struct waiter *waiter = arg;

	__atomic_store_n(&waiter->tid, gettid(), __ATOMIC_RELEASE);
	waiter->rc = ring_wait(waiter->side->ring, 200, -1);
	return NULL;
}

static void *wait_in_poll(void *arg)
{
	struct waiter *waiter = arg;
	struct pollfd pollfd = { .fd = waiter->side->ring->fd, .events = POLLIN };

	__atomic_store_n(&waiter->tid, gettid(), __ATOMIC_RELEASE);
	waiter->rc = poll(&pollfd, 1, -1) == 1 ? 0 : -EBADMSG;
	return NULL;
}

static bool has_started(void *arg)
{
	return __atomic_load_n(&((struct waiter *)arg)->tid, __ATOMIC_ACQUIRE);
}

TEST_F(device, that_leaves_wakes_those_who_wait_for_it)
{
	struct waiter submit = { .side = self->pair.a };
	struct waiter poll = { .side = self->pair.a };

	ASSERT_EQ(0, post_receives(self->pair.a, 0, 16, 64));
	ASSERT_EQ(0, pthread_create(&submit.thread, NULL, wait_in_submit, &submit));
	ASSERT_EQ(0, pthread_create(&poll.thread, NULL, wait_in_poll, &poll));
	ASSERT_TRUE(eventually(has_started, &submit));
	ASSERT_TRUE(eventually(has_started, &poll));
	ASSERT_EQ(0, delete_device());
	ASSERT_EQ(0, pthread_join(submit.thread, NULL));
	EXPECT_EQ(-ENODEV, submit.rc);
	ASSERT_EQ(0, pthread_join(poll.thread, NULL));
	EXPECT_EQ(0, poll.rc);
}

TEST_F(device, that_leaves_wakes_a_poll_that_nothing_else_would_end)
{
	struct pollfd pollfd = { .fd = self->pair.a->ring->fd, .events = POLLIN };
	struct waiter waiter = { .side = self->pair.a };

	ASSERT_EQ(0, poll(&pollfd, 1, 0));
	ASSERT_EQ(0, pthread_create(&waiter.thread, NULL, wait_in_poll, &waiter));
	ASSERT_TRUE(eventually(has_started, &waiter));
	ASSERT_EQ(0, delete_device());
	ASSERT_EQ(0, pthread_join(waiter.thread, NULL));
	EXPECT_EQ(0, waiter.rc);
	ASSERT_EQ(1, poll(&pollfd, 1, 0));
	EXPECT_EQ(POLLHUP, pollfd.revents);
}

/* Traffic on the device that goes, until it has gone; then everything is given back. */
static int run_until_gone(int ready)
{
	struct side_options options = side_defaults();
	struct side side;
	unsigned int i;
	int rc = side_open(&side, &options);

	if (!rc)
		rc = side_handshake(&side, &side.endpoint);
	if (rc || write(ready, "", 1) != 1)
		return rc ? rc : -EPIPE;
	for (i = 0; !rc || rc == -EAGAIN; i++) {
		struct ibchan_submit_wr wr = work(&side, IBCHAN_OP_WRITE, i, 0, 20000);

		work_at(&wr, &side, 30000);
		rc = post_one(&side, wr);
		ring_surplus(side.ring);
		side.ring->stashed = 0;
	}
	side_close(&side);
	/* Whoever is not in the middle of a post when the flush begins may see the break. */
	return rc == -ENODEV || rc == -ESHUTDOWN ? 0 : rc;
}

#define RUNNERS	3

static int start_runners(pid_t *children)
{
	int ready[2], n;
	char byte;

	if (pipe2(ready, O_CLOEXEC))
		return -errno;
	for (n = 0; n < RUNNERS; n++) {
		children[n] = fork();
		if (!children[n])
			_exit(-run_until_gone(ready[1]));
	}
	close(ready[1]);
	for (n = 0; n < RUNNERS; n++) {
		if (read(ready[0], &byte, 1) != 1)
			return -EIO;
	}
	close(ready[0]);
	return 0;
}

TEST_F(device, that_leaves_under_load_does_not_hang)
{
	unsigned int round, i;
	pid_t children[RUNNERS];

	for (round = 0; round < 3; round++) {
		ASSERT_EQ(0, restore_device());
		ASSERT_EQ(0, start_runners(children));
		EXPECT_EQ(0, delete_device());
		for (i = 0; i < RUNNERS; i++)
			EXPECT_EQ(0, child_result(children[i]));
	}
}

TEST_F(device, that_leaves_while_its_users_are_killed_does_not_hang)
{
	pid_t children[RUNNERS];
	unsigned int i;

	ASSERT_EQ(0, start_runners(children));
	for (i = 0; i < RUNNERS; i++)
		kill(children[i], SIGKILL);
	EXPECT_EQ(0, delete_device());
	for (i = 0; i < RUNNERS; i++)
		EXPECT_EQ(-EINTR, child_result(children[i]));
}

static int remove_module(void)
{
	return syscall(SYS_delete_module, "ibchan", O_NONBLOCK) ? -errno : 0;
}

TEST_F(device, s_module_cannot_be_removed_while_a_file_is_open)
{
	/* This is the errno that rmmod reports as "in use". */
	EXPECT_EQ(-EWOULDBLOCK, remove_module());
	EXPECT_EQ(0, exchange(self->pair.a, self->pair.b));
}

TEST_F(device, s_module_cannot_be_removed_while_a_ring_is_mapped)
{
	close(self->pair.a->ring->fd);
	self->pair.a->ring->fd = -1;
	close(self->pair.a->fd);
	self->pair.a->fd = 0;
	pair_close(&(struct pair) { .sides[0] = *self->pair.b });
	self->pair.b->own_ring.header = NULL;
	self->pair.b->memory = NULL;
	self->pair.b->fd = 0;
	example_objects_close(&self->objects);
	EXPECT_EQ(-EWOULDBLOCK, remove_module());
	EXPECT_EQ(1, counter("contexts"));
}

TEST_HARNESS_MAIN
