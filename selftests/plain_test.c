// SPDX-License-Identifier: GPL-2.0-only
/*
 * Posting memory that is not registered: pinned for one work, let go behind it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "answer.h"
#include "test.h"
#include "thread.h"
#include "work.h"
#include "world.h"

#define PAGE		4096UL
#define MEBI		(1024UL * 1024)

FIXTURE(plain)
{
	struct calm calm;
	struct pair pair;
	struct side *a;
	struct side *b;
	unsigned char *memory;	/* plain: two MiB, each page on its own */
};

static struct side_options plain_options(void)
{
	struct side_options options = side_defaults();

	options.memory = 2 * MEBI;
	options.params.rnr_retries = 7;
	options.params.min_rnr_timer = 1;
	return options;
}

FIXTURE_SETUP(plain)
{
	struct side_options options = plain_options();
	unsigned long at;

	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &options));
	self->a = self->pair.a;
	self->b = self->pair.b;
	self->memory = mmap(NULL, 2 * MEBI, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->memory);
	madvise(self->memory, 2 * MEBI, MADV_NOHUGEPAGE);
	/* Neighbours get their memory at different times, so it does not lie together. */
	for (at = 0; at < 2 * MEBI; at += 2 * PAGE)
		self->memory[at] = 0;
}

FIXTURE_TEARDOWN(plain)
{
	munmap(self->memory, 2 * MEBI);
	pair_close(&self->pair);
	EXPECT_EQ(0, calm_end(&self->calm));
}

static struct ibchan_submit_sge element(const void *memory, __u32 length)
{
	return (struct ibchan_submit_sge) { address(memory), length, IBCHAN_MR_PLAIN };
}

static struct ibchan_submit_wr plain(const struct side *side, int opcode, __u64 wr_id,
				     const void *memory, __u32 length)
{
	struct ibchan_submit_wr wr = work_empty(side, opcode, wr_id);

	wr.num_sge = 1;
	wr.sge = element(memory, length);
	return wr;
}

static bool charges(void *arg)
{
	return charged() == *(long *)arg;
}

static int refused(const struct side *side, const struct ibchan_submit_wr *wr, int error,
		   unsigned int code)
{
	struct answer answer = ask_one(side, wr);

	return is_refusal(&answer, error, code);
}

static const __u32 lengths[] = {
	1, 8, 4095, 4096, 4097, 65536, 31 * 4096 + 1, 32 * 4096, 33 * 4096, 1024 * 1024 - 5,
};

TEST_F(plain, a_send_and_a_receive_carry_memory_at_every_size)
{
	unsigned char *from = self->memory + 3, *to = self->memory + MEBI + 77;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		pattern(from, lengths[i], i);
		memset(to, 0, lengths[i]);
		ASSERT_EQ(0, post_one(self->b, plain(self->b, IBCHAN_OP_RECV, i, to,
						     lengths[i])));
		ASSERT_EQ(0, post_one(self->a, plain(self->a, IBCHAN_OP_SEND, 100 + i, from,
						     lengths[i])));
		ASSERT_EQ(0, succeed(self->a, 100 + i, NULL));
		ASSERT_EQ(0, succeed(self->b, i, NULL));
		EXPECT_EQ(0, same_bytes(from, to, lengths[i]))
			TH_LOG("%u bytes", lengths[i]);
	}
}

TEST_F(plain, a_write_and_a_read_carry_memory_at_every_size)
{
	unsigned char *from = self->memory + 5, *to = self->memory + MEBI + 9;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct ibchan_submit_wr wr = plain(self->a, IBCHAN_OP_WRITE, 1, from, lengths[i]);

		pattern(from, lengths[i], i);
		work_at(&wr, self->b, 11);
		ASSERT_EQ(0, post_one(self->a, wr));
		ASSERT_EQ(0, succeed(self->a, 1, NULL));
		EXPECT_EQ(0, same_bytes(from, self->b->memory + 11, lengths[i]));
		memset(to, 0, lengths[i]);
		wr = plain(self->a, IBCHAN_OP_READ, 2, to, lengths[i]);
		work_at(&wr, self->b, 11);
		ASSERT_EQ(0, post_one(self->a, wr));
		ASSERT_EQ(0, succeed(self->a, 2, NULL));
		EXPECT_EQ(0, same_bytes(from, to, lengths[i]))
			TH_LOG("%u bytes", lengths[i]);
	}
}

TEST_F(plain, elements_of_both_kinds_go_together)
{
	struct ibchan_submit_sge sges[5] = {
		element(self->memory + 100, 5000),
		{ 64, 1000, self->a->mr },
		element(self->memory, 0),
		element(self->memory + 20000, 3000),
		{ 4096, 7, self->a->mr },
	};
	struct ibchan_submit_wr wr = work_empty(self->a, IBCHAN_OP_WRITE, 1);
	unsigned char *at = self->b->memory;

	pattern(self->memory, 32768, 1);
	pattern(self->a->memory, 8192, 2);
	work_elements(&wr, sges, 5);
	work_at(&wr, self->b, 0);
	ASSERT_EQ(0, post_one(self->a, wr));
	ASSERT_EQ(0, succeed(self->a, 1, NULL));
	EXPECT_EQ(0, same_bytes(self->memory + 100, at, 5000));
	EXPECT_EQ(0, same_bytes(self->a->memory + 64, at + 5000, 1000));
	EXPECT_EQ(0, same_bytes(self->memory + 20000, at + 6000, 3000));
	EXPECT_EQ(0, same_bytes(self->a->memory + 4096, at + 9000, 7));
}

/* Far more pages than elements: each of them becomes one for the device. */
TEST_F(plain, several_long_elements_fit_one_work)
{
	struct ibchan_submit_sge sges[4];
	struct ibchan_submit_wr wr = work_empty(self->a, IBCHAN_OP_WRITE, 1);
	unsigned int i;

	pattern(self->memory, MEBI, 1);
	for (i = 0; i < 4; i++)
		sges[i] = element(self->memory + (3 - i) * MEBI / 4, MEBI / 4);
	work_elements(&wr, sges, 4);
	work_at(&wr, self->b, 0);
	ASSERT_EQ(0, post_one(self->a, wr));
	ASSERT_EQ(0, succeed(self->a, 1, NULL));
	for (i = 0; i < 4; i++)
		EXPECT_EQ(0, same_bytes(self->memory + (3 - i) * MEBI / 4,
					self->b->memory + i * MEBI / 4, MEBI / 4));
}

TEST_F(plain, an_atomic_may_tell_what_was_there_to_plain_memory)
{
	__u64 *old = (__u64 *)(self->memory + 64);
	struct ibchan_submit_wr wr;
	struct side_options options = plain_options();
	struct pair pair;

	options.mr_access = IBCHAN_ACCESS_ALL;
	options.params.access = IBCHAN_ACCESS_ALL;
	ASSERT_EQ(0, pair_open(&pair, PAIR_SAME_DEVICE, &options));
	wr = plain(pair.a, IBCHAN_OP_FETCH_ADD, 1, old, sizeof(*old));
	wr.operand = 3;
	work_at(&wr, pair.b, 0);
	*(__u64 *)pair.b->memory = 39;
	EXPECT_EQ(0, post_one(pair.a, wr));
	EXPECT_EQ(0, succeed(pair.a, 1, NULL));
	EXPECT_EQ(39, *old);
	EXPECT_EQ(42, *(__u64 *)pair.b->memory);
	pair_close(&pair);
}

TEST_F(plain, a_page_is_charged_while_its_work_is_in_flight)
{
	long before = charged(), during = before + 3 * (long)PAGE / 1024;

	ASSERT_EQ(0, post_one(self->b, plain(self->b, IBCHAN_OP_RECV, 1, self->memory + 1,
					     2 * PAGE)));
	EXPECT_EQ(during, charged());
	pattern(self->a->memory, 16, 1);
	ASSERT_EQ(0, post_one(self->a, work(self->a, IBCHAN_OP_SEND, 2, 0, 16)));
	ASSERT_EQ(0, succeed(self->b, 1, NULL));
	EXPECT_TRUE(eventually(charges, &before));
	EXPECT_EQ(0, same_bytes(self->a->memory, self->memory + 1, 16));
	ASSERT_EQ(0, succeed(self->a, 2, NULL));
}

/* The device may still be copying: its memory goes when its queue pair is gone. */
TEST_F(plain, a_failed_work_leaves_its_pages_to_the_channel)
{
	long before = charged(), during = before + (long)PAGE / 1024;
	struct ibchan_cqe cqe;

	ASSERT_EQ(0, post_one(self->b, plain(self->b, IBCHAN_OP_RECV, 1, self->memory, PAGE)));
	ASSERT_EQ(0, channel_break(self->b->fd, self->b->channel));
	ASSERT_EQ(0, ring_complete(self->b->ring, 1, &cqe));
	EXPECT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, cqe.status);
	EXPECT_EQ(during, charged());
	ASSERT_EQ(0, destroy(self->b->fd, self->b->channel));
	EXPECT_TRUE(eventually(charges, &before));
	/* Nothing of it keeps the domain. */
	ASSERT_EQ(0, destroy(self->b->fd, self->b->mr));
	EXPECT_EQ(0, destroy(self->b->fd, self->b->pd));
}

TEST_F(plain, a_domain_can_go_as_soon_as_its_channel_has)
{
	unsigned int i;

	for (i = 0; i < 8; i++)
		ASSERT_EQ(0, post_one(self->b, plain(self->b, IBCHAN_OP_RECV, i,
						     self->memory + i * PAGE, PAGE)));
	ASSERT_EQ(0, destroy(self->b->fd, self->b->mr));
	EXPECT_EQ(-EBUSY, destroy(self->b->fd, self->b->pd));
	ASSERT_EQ(0, destroy(self->b->fd, self->b->channel));
	EXPECT_EQ(0, destroy(self->b->fd, self->b->pd));
}

TEST_F(plain, memory_that_is_not_there_is_refused)
{
	struct ibchan_submit_wr wr = plain(self->a, IBCHAN_OP_SEND, 1, (void *)PAGE, 8);
	long before = pins();

	EXPECT_EQ(0, refused(self->a, &wr, EFAULT, IBCHAN_REASON_MEMORY_NOT_THERE));
	wr = plain(self->a, IBCHAN_OP_SEND, 1, (void *)0xffff888000000000UL, 8);
	EXPECT_EQ(0, refused(self->a, &wr, EFAULT, IBCHAN_REASON_MEMORY_NOT_THERE));
	wr = plain(self->a, IBCHAN_OP_SEND, 1, (void *)~7UL, 16);
	EXPECT_EQ(0, refused(self->a, &wr, EFAULT, IBCHAN_REASON_MEMORY_NOT_THERE));
	/* It begins well. */
	munmap(self->memory + MEBI, PAGE);
	wr = plain(self->a, IBCHAN_OP_SEND, 1, self->memory + MEBI - PAGE, 2 * PAGE);
	EXPECT_EQ(0, refused(self->a, &wr, EFAULT, IBCHAN_REASON_MEMORY_NOT_THERE));
	EXPECT_EQ(before, pins());
}

TEST_F(plain, a_refusal_names_the_element_and_holds_none_of_the_others)
{
	struct ibchan_submit_sge sges[4] = {
		element(self->memory, 0),
		element(self->memory, 16),
		element((void *)PAGE, 16),
		element(self->memory, 16),
	};
	struct ibchan_submit_wr wr = work_empty(self->a, IBCHAN_OP_SEND, 1);
	struct answer answer;
	long before = pins();

	work_elements(&wr, sges, 4);
	answer = ask_one(self->a, &wr);
	EXPECT_EQ(-EFAULT, answer.rc);
	EXPECT_EQ(2, answer.cmd.reason.element);
	EXPECT_EQ(before, pins());
	sges[2] = (struct ibchan_submit_sge) { self->a->length, 1, self->a->mr };
	answer = ask_one(self->a, &wr);
	EXPECT_EQ(0, is_refusal(&answer, EINVAL, IBCHAN_REASON_OUT_OF_BOUNDS));
	EXPECT_EQ(2, answer.cmd.reason.element);
	EXPECT_EQ(before, pins());
	/* No region has this handle, not even behind memory that needs none. */
	sges[2] = (struct ibchan_submit_sge) { 0, 16, 0 };
	answer = ask_one(self->a, &wr);
	EXPECT_EQ(0, is_refusal(&answer, ENOENT, IBCHAN_REASON_MR_HANDLE));
	EXPECT_EQ(2, answer.cmd.reason.element);
	EXPECT_EQ(before, pins());
}

TEST_F(plain, an_element_longer_than_the_device_can_is_refused)
{
	struct ibchan_cmd_device_query query = { .index = 0 };
	struct ibchan_submit_wr wr;
	struct answer answer;
	void *large;

	ASSERT_EQ(0, cmd_device_query(self->a->fd, &query));
	ASSERT_LE(MEBI, query.out.max_plain_bytes);
	large = mmap(NULL, query.out.max_plain_bytes + PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, large);
	wr = plain(self->a, IBCHAN_OP_SEND, 1, large, query.out.max_plain_bytes + 1);
	answer = ask_one(self->a, &wr);
	EXPECT_EQ(0, is_refusal(&answer, EINVAL, IBCHAN_REASON_REGION_TOO_LONG));
	EXPECT_EQ(0, has_values(&answer, query.out.max_plain_bytes / PAGE + 1,
				query.out.max_plain_bytes / PAGE, 0));
	wr = plain(self->a, IBCHAN_OP_RECV, 1, large, query.out.max_plain_bytes);
	EXPECT_EQ(0, post_one(self->a, wr));
	munmap(large, query.out.max_plain_bytes + PAGE);
}

/* The region of the side itself is the fourth page. */
static int poor_child(void *arg)
{
	struct rlimit limit = { .rlim_cur = 4 * PAGE, .rlim_max = 4 * PAGE };
	struct side_options options = side_defaults();
	unsigned char *memory = arg;
	struct answer answer;
	struct ibchan_submit_wr wr;
	struct side side;
	int rc;

	options.memory = PAGE;
	rc = side_open(&side, &options);
	if (!rc)
		rc = side_handshake(&side, &side.endpoint);
	if (!rc && (setrlimit(RLIMIT_MEMLOCK, &limit) || drop_privileges()))
		rc = -EINVAL;
	if (!rc)
		rc = post_one(&side, plain(&side, IBCHAN_OP_RECV, 1, memory, 3 * PAGE));
	if (rc)
		return rc;
	wr = plain(&side, IBCHAN_OP_RECV, 2, memory + 3 * PAGE, PAGE);
	answer = ask_one(&side, &wr);
	rc = is_refusal(&answer, ENOMEM, IBCHAN_REASON_MEMLOCK);
	if (!rc)
		rc = has_values(&answer, 4 * PAGE, 4 * PAGE, PAGE);
	side_close(&side);
	return rc;
}

#define ROUNDS	50

/* The limit allows one of these works at a time: the next one as soon as one has ended. */
static int frugal_child(void *arg)
{
	struct rlimit limit = { .rlim_cur = 4 * PAGE, .rlim_max = 4 * PAGE };
	struct side_options options = side_defaults();
	struct side side;
	unsigned int i;
	int rc;

	options.memory = PAGE;
	rc = side_open(&side, &options);
	if (!rc)
		rc = side_handshake(&side, &side.endpoint);
	if (!rc && (setrlimit(RLIMIT_MEMLOCK, &limit) || drop_privileges()))
		rc = -EINVAL;
	for (i = 0; i < ROUNDS && !rc; i++) {
		rc = post_one(&side, plain(&side, IBCHAN_OP_RECV, 1, arg, 3 * PAGE));
		if (!rc)
			rc = post_one(&side, work(&side, IBCHAN_OP_SEND, 2, 0, 16));
		if (!rc)
			rc = succeed(&side, 1, NULL);
		if (!rc)
			rc = succeed(&side, 2, NULL);
	}
	side_close(&side);
	return rc;
}

TEST_F(plain, what_a_work_was_charged_can_be_used_for_the_next_one)
{
	EXPECT_EQ(0, in_child(frugal_child, self->memory));
}

TEST_F(plain, a_caller_without_privileges_is_held_to_his_memlock_limit)
{
	EXPECT_EQ(0, in_child(poor_child, self->memory));
}

/* A fault that waits for the process itself to serve it. */
struct paged {
	struct side *side;
	void *memory;
	int rc;
};

static void *post_paged(void *arg)
{
	struct paged *paged = arg;

	paged->rc = post_one(paged->side, plain(paged->side, IBCHAN_OP_RECV, 1, paged->memory,
						64));
	return NULL;
}

TEST_F(plain, a_page_that_takes_its_time_holds_nobody_else_up)
{
	struct paged paged = { .side = self->a };
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register region = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_zeropage zero = { .mode = 0 };
	struct pollfd pollfd = { .events = POLLIN };
	pthread_t thread;

	if (access("/proc/sys/vm/unprivileged_userfaultfd", F_OK))
		SKIP(return, "this kernel has no userfaultfd");
	pollfd.fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	paged.memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	region.range = (struct uffdio_range) { (uintptr_t)paged.memory, PAGE };
	zero.range = region.range;
	ASSERT_LE(0, pollfd.fd);
	ASSERT_EQ(0, ioctl(pollfd.fd, UFFDIO_API, &api));
	ASSERT_EQ(0, ioctl(pollfd.fd, UFFDIO_REGISTER, &region));
	ASSERT_EQ(0, pthread_create(&thread, NULL, post_paged, &paged));
	ASSERT_EQ(1, poll(&pollfd, 1, patience_ms()));
	/* All kinds of commands go on meanwhile. */
	EXPECT_EQ(0, exchange(self->a, self->b));
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, side_state(self->a));
	EXPECT_EQ(-EBUSY, destroy(self->a->fd, self->a->pd));
	ASSERT_EQ(0, ioctl(pollfd.fd, UFFDIO_ZEROPAGE, &zero));
	pthread_join(thread, NULL);
	EXPECT_EQ(0, paged.rc);
	close(pollfd.fd);
	munmap(paged.memory, PAGE);
}

TEST_F(plain, inline_plain_and_registered_elements_mix_in_one_batch)
{
	unsigned char *memory = self->memory, *at = self->b->memory;
	struct ibchan_submit_sge two[2] = { element(memory + 8192, 100), { 0, 50, self->a->mr } };
	struct ibchan_submit_wr wrs[64];
	struct side_options options = plain_options();
	__u32 room = inline_room(64);
	struct pair pair;
	unsigned int i;

	if (room < 64)
		SKIP(return, "the device takes no 64 bytes of inline data");
	options.params.max_inline_data = room;
	options.params.max_send_wr = ARRAY_SIZE(wrs);
	ASSERT_EQ(0, pair_open(&pair, PAIR_SAME_DEVICE, &options));
	at = pair.b->memory;
	two[1].mr = pair.a->mr;
	pattern(memory, 16384, 1);
	pattern(pair.a->memory, 4096, 2);
	for (i = 0; i < ARRAY_SIZE(wrs); i++) {
		wrs[i] = plain(pair.a, IBCHAN_OP_WRITE, i, memory + i, 64);
		switch (i % 4) {
		case 0:
			wrs[i].flags = IBCHAN_WR_INLINE;
			break;
		case 1:
			work_elements(&wrs[i], two, 2);
			break;
		case 2:
			wrs[i] = work(pair.a, IBCHAN_OP_WRITE, i, i, 64);
			break;
		}
		work_at(&wrs[i], pair.b, i * 256);
	}
	ASSERT_EQ(0, post(pair.a, wrs, ARRAY_SIZE(wrs)));
	for (i = 0; i < ARRAY_SIZE(wrs); i++, at += 256) {
		ASSERT_EQ(0, succeed(pair.a, i, NULL));
		switch (i % 4) {
		case 1:
			EXPECT_EQ(0, same_bytes(memory + 8192, at, 100));
			EXPECT_EQ(0, same_bytes(pair.a->memory, at + 100, 50));
			break;
		case 2:
			EXPECT_EQ(0, same_bytes(pair.a->memory + i, at, 64));
			break;
		default:
			EXPECT_EQ(0, same_bytes(memory + i, at, 64));
			break;
		}
	}
	pair_close(&pair);
}

TEST_F(plain, a_refusal_speaks_of_its_own_entry_only)
{
	struct ibchan_submit_wr wrs[2] = {
		plain(self->a, IBCHAN_OP_SEND, 1, (void *)PAGE, 8),
		work_empty(self->a, IBCHAN_OP_SEND, 2),
	};
	struct ibchan_cmd_submit cmd;
	struct answer answer;

	/* The second cannot even be copied, which is seen first. */
	wrs[1].num_sge = 999;
	answer = ask(self->a, wrs, 2);
	EXPECT_EQ(0, is_refusal(&answer, EFAULT, IBCHAN_REASON_MEMORY_NOT_THERE));
	EXPECT_EQ(0, has_values(&answer, PAGE, 8, 0));
	/* A call that succeeds says nothing there. */
	cmd = submission(wrs, 1);
	cmd.reason.code = IBCHAN_REASON_OPCODE;
	wrs[0] = work(self->a, IBCHAN_OP_WRITE, 1, 0, 8);
	work_at(&wrs[0], self->b, 0);
	EXPECT_EQ(0, cmd_submit(self->a->fd, &cmd));
	EXPECT_EQ(IBCHAN_REASON_OPCODE, cmd.reason.code);
	EXPECT_EQ(0, succeed(self->a, 1, NULL));
}

#define EACH	40

struct racer {
	struct side *side;
	unsigned char *memory;
	unsigned int base;
	int rc;
};

static void *race_plain(void *arg)
{
	struct racer *racer = arg;
	unsigned int i;

	for (i = 0; i < EACH && !racer->rc; i++) {
		struct ibchan_submit_wr wr = plain(racer->side, IBCHAN_OP_WRITE, racer->base + i,
						   racer->memory, 40000);

		wr.remote_addr = address(racer->side->memory) + racer->base;
		wr.rkey = racer->side->rkey;
		wr.remote_length = IBCHAN_REMOTE_UNCHECKED;
		do
			racer->rc = post_one(racer->side, wr);
		while (racer->rc == -EAGAIN);
	}
	return NULL;
}

TEST_F(plain, several_threads_post_plain_memory_on_one_channel)
{
	struct side_options options = plain_options();
	struct racer racers[3];
	pthread_t threads[3];
	struct side side;
	unsigned int i, n;

	options.ring_entries = 512;
	ASSERT_EQ(0, side_open(&side, &options));
	ASSERT_EQ(0, side_handshake(&side, &side.endpoint));
	for (i = 0; i < 3; i++) {
		racers[i] = (struct racer) { &side, self->memory + i * 65536, i * 65536, 0 };
		pattern(racers[i].memory, 40000, i);
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, race_plain, &racers[i]));
	}
	for (i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		EXPECT_EQ(0, racers[i].rc);
	}
	for (i = 0; i < 3; i++) {
		for (n = 0; n < EACH; n++)
			ASSERT_EQ(0, succeed(&side, racers[i].base + n, NULL));
		EXPECT_EQ(0, same_bytes(racers[i].memory, side.memory + racers[i].base, 40000));
	}
	side_close(&side);
}

TEST_F(plain, works_in_a_batch_are_accepted_up_to_the_bad_one)
{
	struct ibchan_submit_wr wrs[3];
	struct answer answer;
	unsigned int i;
	long before = pins();

	for (i = 0; i < 3; i++)
		wrs[i] = plain(self->b, IBCHAN_OP_RECV, i, self->memory + i * PAGE, PAGE);
	wrs[2].sge.offset = PAGE;
	answer = ask(self->b, wrs, 3);
	EXPECT_EQ(-EFAULT, answer.rc);
	EXPECT_EQ(2, answer.cmd.entry_num);
	EXPECT_EQ(2, answer.cmd.reason.wr);
	EXPECT_EQ(before + 2, pins());
}

/* A full queue takes none, and what was pinned for it goes. */
TEST_F(plain, a_full_queue_keeps_no_page)
{
	long before = pins();
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < 1000; i++)
		rc = post_one(self->b, plain(self->b, IBCHAN_OP_RECV, i, self->memory, PAGE));
	EXPECT_EQ(-EAGAIN, rc);
	EXPECT_EQ(before + i - 1, pins());
}

/* Killed with everything in flight: nothing of it stays. */
TEST_F(plain, a_killed_process_gives_all_pages_back)
{
	unsigned int round;

	for (round = 0; round < 5; round++) {
		pid_t child = fork();

		if (!child) {
			struct side_options options = plain_options();
			struct side side;
			unsigned int i;

			if (side_open(&side, &options) ||
			    side_handshake(&side, &side.endpoint))
				_exit(1);
			for (i = 0; i < 8; i++)
				post_one(&side, plain(&side, IBCHAN_OP_RECV, i,
						      self->memory + i * MEBI / 8, MEBI / 8));
			for (;;) {
				post_one(&side, plain(&side, IBCHAN_OP_SEND, 9, self->memory,
						      MEBI / 16));
				post_one(&side, plain(&side, IBCHAN_OP_RECV, 10, self->memory,
						      MEBI / 8));
			}
		}
		ASSERT_LT(0, child);
		moment(50000 + 30000 * round);
		kill(child, SIGKILL);
		EXPECT_EQ(-EINTR, child_result(child));
	}
}

TEST_HARNESS_MAIN
