// SPDX-License-Identifier: GPL-2.0-only
/*
 * The completion ring as memory that the kernel shares with a program that may do anything
 * to it.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/personality.h>

#include "test.h"
#include "work.h"
#include "world.h"

FIXTURE(ring)
{
	struct calm calm;
	struct side side;	/* connected to itself */
	struct ring *ring;
};

FIXTURE_SETUP(ring)
{
	struct side_options options = side_defaults();

	options.ring_entries = 8;
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, side_open(&self->side, &options));
	ASSERT_EQ(0, side_handshake(&self->side, &self->side.endpoint));
	self->ring = self->side.ring;
}

FIXTURE_TEARDOWN(ring)
{
	side_close(&self->side);
	EXPECT_EQ(0, calm_end(&self->calm));
}

static struct ibchan_cmd_cq_create cq_request(const struct side *side, __u32 entries)
{
	return (struct ibchan_cmd_cq_create) {
		.device = side->device,
		.entries = entries,
		.cq_entries = 64,
	};
}

TEST_F(ring, describes_itself)
{
	const struct ibchan_ring *header = self->ring->header;

	EXPECT_EQ(IBCHAN_ABI_VERSION, header->abi_version);
	EXPECT_EQ(sizeof(struct ibchan_cqe), header->entry_size);
	EXPECT_EQ(8, header->entries);
	EXPECT_LE(header->entries_offset + 8 * header->entry_size, self->ring->size);
	EXPECT_LE(header->tail_offset, self->ring->size - 4);
	EXPECT_LE(header->head_offset, self->ring->size - 4);
	/* The two writers share no cache line. */
	EXPECT_NE(header->tail_offset / 64, header->head_offset / 64);
	EXPECT_EQ(0, self->ring->size % getpagesize());
}

TEST_F(ring, has_a_power_of_two_of_entries)
{
	static const __u32 asked[] = { 1, 2, 3, 5, 9, 63, 64, 65 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(asked); i++) {
		struct ibchan_cmd_cq_create cmd = cq_request(&self->side, asked[i]);
		struct ring ring;

		ASSERT_EQ(0, cmd_cq_create(self->side.fd, &cmd));
		ASSERT_EQ(0, ring_map(&ring, self->side.fd, &cmd));
		EXPECT_GE(ring.header->entries, asked[i]);
		EXPECT_LT(ring.header->entries, 2 * asked[i]);
		EXPECT_EQ(0, ring.header->entries & (ring.header->entries - 1));
		ring_unmap(&ring);
		EXPECT_EQ(0, destroy(self->side.fd, cmd.out_cq));
	}
}

TEST_F(ring, without_entries_or_with_too_many_is_refused)
{
	struct ibchan_cmd_query query = {};
	__u32 wrong[3] = { 0, 0, 0xffffffff };
	unsigned int i;

	ASSERT_EQ(0, cmd_query(self->side.fd, &query));
	ASSERT_LT(0, query.out.max_ring_entries);
	wrong[1] = query.out.max_ring_entries + 1;
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct ibchan_cmd_cq_create cmd = cq_request(&self->side, wrong[i]);

		EXPECT_EQ(-EINVAL, cmd_cq_create(self->side.fd, &cmd));
		EXPECT_EQ(IBCHAN_REASON_PARAMETER, cmd.reason.code);
		EXPECT_EQ(IBCHAN_PARAMETER_ENTRIES, cmd.reason.element);
		EXPECT_EQ(wrong[i], cmd.reason.value[0]);
		EXPECT_LE(1, cmd.reason.value[1]);
		EXPECT_EQ(query.out.max_ring_entries, cmd.reason.value[2]);
	}
}

TEST_F(ring, can_be_mapped_only_as_it_is)
{
	size_t size = self->ring->size;
	int fd = self->ring->fd, page = getpagesize();
	int prot = PROT_READ | PROT_WRITE;
	void *map;

	EXPECT_EQ(MAP_FAILED, mmap(NULL, size, prot, MAP_SHARED, fd, page));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, size + page, prot, MAP_SHARED, fd, 0));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, size, prot, MAP_PRIVATE, fd, 0));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, size, prot, MAP_SHARED, self->side.fd, 0));
	map = mmap(NULL, size, prot, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	EXPECT_EQ(-1, mprotect(map, size, prot | PROT_EXEC));
	EXPECT_EQ(0, munmap(map, size));
}

static sigjmp_buf back;
static void *fault_at;

static void on_fault(int signal, siginfo_t *info, void *registers)
{
	(void)signal;
	(void)registers;
	fault_at = info->si_addr;
	siglongjmp(back, 1);
}

/* Whether the first fetch of an instruction there is refused. */
static bool cannot_be_executed(void *map)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
	struct sigaction before;

	fault_at = NULL;
	sigaction(SIGSEGV, &action, &before);
	if (!sigsetjmp(back, 1))
		((void (*)(void))map)();
	sigaction(SIGSEGV, &before, NULL);
	return fault_at == map;
}

TEST_F(ring, is_mapped_and_not_executable_where_reading_implies_executing)
{
	int prot = PROT_READ | PROT_WRITE, usual = personality(0xffffffff);
	size_t size = self->ring->size;
	void *map;

	ASSERT_EQ(usual, personality(usual | READ_IMPLIES_EXEC));
	map = mmap(NULL, size, prot, MAP_SHARED, self->ring->fd, 0);
	personality(usual);
	ASSERT_NE(MAP_FAILED, map);
	EXPECT_EQ(0, memcmp(map, self->ring->header, sizeof(*self->ring->header)));
	EXPECT_TRUE(cannot_be_executed(map));
	EXPECT_EQ(-1, mprotect(map, size, prot | PROT_EXEC));
	EXPECT_EQ(0, munmap(map, size));
}

/* Kernels that know the file as one that holds no programs refuse it themselves. */
TEST_F(ring, is_not_executable_even_if_that_is_asked_for)
{
	size_t size = self->ring->size;
	void *map = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_SHARED, self->ring->fd, 0);

	if (map == MAP_FAILED) {
		EXPECT_EQ(EPERM, errno);
		return;
	}
	EXPECT_TRUE(cannot_be_executed(map));
	EXPECT_EQ(0, munmap(map, size));
}

TEST_F(ring, goes_round_many_times)
{
	unsigned int i;

	for (i = 0; i < 30; i++)
		ASSERT_EQ(0, exchange(&self->side, &self->side))
			TH_LOG("message %u", i);
	EXPECT_EQ(60, *self->ring->tail);
	EXPECT_EQ(60, *self->ring->head);
}

TEST_F(ring, keeps_its_file_until_it_is_unmapped)
{
	struct ring *ring = self->ring;

	ASSERT_EQ(0, post_one(&self->side, work(&self->side, IBCHAN_OP_RECV, 5, 0, 64)));
	ASSERT_EQ(0, close(self->side.fd));
	self->side.fd = 0;
	ASSERT_EQ(0, close(ring->fd));
	/* The mapping alone still counts: the channel is open and the ring readable. */
	EXPECT_EQ(1, counter("channels"));
	EXPECT_EQ(0, ring_unread(ring));
	ASSERT_EQ(0, munmap((void *)ring->header, ring->size));
	ring->header = NULL;
	EXPECT_EQ(0, calm_end(&self->calm));
}

TEST_F(ring, of_a_queue_that_was_destroyed_keeps_its_completions)
{
	struct ring *ring = self->ring;
	struct side *side = &self->side;
	struct ibchan_cqe cqe;

	ASSERT_EQ(0, post_one(side, work(side, IBCHAN_OP_RECV, 5, 0, 64)));
	EXPECT_EQ(-EBUSY, destroy(side->fd, ring->cq));
	ASSERT_EQ(0, destroy(side->fd, side->channel));
	ASSERT_EQ(0, destroy(side->fd, ring->cq));
	ASSERT_EQ(1, ring_read(ring, &cqe, 2));
	EXPECT_EQ(5, cqe.wr_id);
	EXPECT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, cqe.status);
	EXPECT_EQ(-ENOENT, ring_wait(ring, 0, 0));
}

/* Damages the ring of a file with works in flight, and looks at what is left of the file. */
static int damage(struct side *side, __u32 head)
{
	struct ibchan_submit_wr wr = work(side, IBCHAN_OP_RECV, 9, 0, 64);
	struct pollfd pollfd = { .fd = side->ring->fd, .events = POLLIN };
	__u32 pd;
	int rc;

	rc = exchange(side, side);
	if (!rc)
		rc = post_receives(side, 100, 4, 64);
	/* So that the kernel has seen where the head was. */
	if (!rc)
		rc = ring_wait(side->ring, 0, 0);
	if (rc)
		return rc;
	*side->ring->head += head;
	if (poll(&pollfd, 1, 0) != 1 || !(pollfd.revents & POLLERR))
		return -EBADMSG;
	rc = ring_wait(side->ring, 0, 0);
	if (rc != -EPROTO)
		return rc ? rc : -EBADMSG;
	rc = post_one(side, wr);
	if (rc != -EPROTO)
		return rc ? rc : -EBADMSG;
	rc = pd_alloc(side->fd, side->device, &pd);
	return rc == -EPROTO ? 0 : rc ? rc : -EBADMSG;
}

TEST_F(ring, whose_head_overtakes_its_tail_ends_the_file)
{
	EXPECT_EQ(0, damage(&self->side, 1));
}

TEST_F(ring, whose_head_goes_back_ends_the_file)
{
	EXPECT_EQ(0, damage(&self->side, -1));
}

TEST_F(ring, whose_head_jumps_far_ends_the_file)
{
	EXPECT_EQ(0, damage(&self->side, 0x80000000));
}

static void *wait_without_end(void *arg)
{
	return (void *)(long)ring_wait(arg, 8, -1);
}

TEST_F(ring, that_is_damaged_ends_the_waits_of_other_threads)
{
	pthread_t thread;
	void *result;

	ASSERT_EQ(0, pthread_create(&thread, NULL, wait_without_end, self->ring));
	ASSERT_EQ(0, damage(&self->side, 3));
	ASSERT_EQ(0, pthread_join(thread, &result));
	EXPECT_EQ(-EPROTO, (long)result);
}

TEST_F(ring, that_is_damaged_stays_so_when_the_head_is_put_back)
{
	ASSERT_EQ(0, damage(&self->side, 7));
	*self->ring->head -= 7;
	EXPECT_EQ(-EPROTO, ring_wait(self->ring, 0, 0));
}

TEST_F(ring, that_is_overwritten_hurts_only_its_own_file)
{
	struct side_options options = side_defaults();
	struct side other;

	ASSERT_EQ(0, side_open(&other, &options));
	ASSERT_EQ(0, side_handshake(&other, &other.endpoint));
	ASSERT_EQ(0, post_receives(&self->side, 0, 8, 64));
	memset((void *)self->ring->header, 0xff, self->ring->size);
	EXPECT_EQ(-EPROTO, ring_wait(self->ring, 1, -1));
	EXPECT_EQ(0, exchange(&other, &other));
	side_close(&other);
}

TEST_F(ring, that_is_overwritten_under_traffic_does_no_harm)
{
	struct side *side = &self->side;
	unsigned int i, seed = 1;

	/* Completions are published while the whole ring changes under the kernel's hands. */
	for (i = 0; i < 200; i++) {
		post_one(side, work_empty(side, IBCHAN_OP_RECV, i));
		pattern((unsigned char *)self->ring->header, self->ring->size, seed++);
		post_one(side, work_empty(side, IBCHAN_OP_SEND, i));
	}
	EXPECT_EQ(-EPROTO, ring_wait(self->ring, 0, 0));
}

TEST_HARNESS_MAIN
