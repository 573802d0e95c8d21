// SPDX-License-Identifier: GPL-2.0-only
/*
 * dma-bufs as memory regions: data through them as their exporter's own mapping shows it,
 * what is refused, and that every exporter gets all of it back.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "answer.h"
#include "dmabuf.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define PAGES	16
#define PART	(5 * 4096)

/* A pair, and a dma-buf whose range @offset, @length is registered on its second side. */
struct bench {
	struct calm calm;
	struct pair pair;
	struct side *a;
	struct side *b;
	int fd;
	unsigned char *bytes;
	size_t size;
	struct ibchan_cmd_mr_reg_dmabuf region;
};

/* The count of pins comes first: exporters pin memory too. */
static int bench_open(struct bench *bench, int (*make)(unsigned int pages))
{
	struct side_options options = side_defaults();
	int rc = calm_begin(&bench->calm);

	bench->fd = make(PAGES);
	if (bench->fd < 0)
		return bench->fd;
	bench->size = (size_t)PAGES * getpagesize();
	bench->bytes = dmabuf_map(bench->fd, bench->size);
	options.params.rnr_retries = 7;
	if (!rc)
		rc = pair_open(&bench->pair, PAIR_TWO_DEVICES, &options);
	bench->a = bench->pair.a;
	bench->b = bench->pair.b;
	return rc ? rc : bench->bytes ? 0 : -ENOMEM;
}

static void bench_unmap(struct bench *bench)
{
	munmap(bench->bytes, bench->size);
	close(bench->fd);
	bench->bytes = NULL;
}

static int bench_close(struct bench *bench)
{
	int rc;

	pair_close(&bench->pair);
	if (bench->bytes)
		bench_unmap(bench);
	rc = calm_end(&bench->calm);
	return rc ? rc : exporter_idle();
}

static int register_range(struct bench *bench, __u64 offset, __u64 length, __u32 access)
{
	bench->region = dmabuf_region(bench->b, bench->fd, offset, length, access);
	return cmd_mr_reg_dmabuf(bench->b->fd, &bench->region);
}

/* A work of the second side on @length bytes at @offset of the region. */
static struct ibchan_submit_wr region_work(struct bench *bench, int opcode, __u64 wr_id,
					   __u64 offset, __u32 length)
{
	struct ibchan_submit_wr wr = work(bench->b, opcode, wr_id, offset, length);

	wr.sge.mr = bench->region.out_mr;
	return wr;
}

/* The first side's work at @offset of the region, by its remote key. */
static struct ibchan_submit_wr peer_work(struct bench *bench, int opcode, __u64 wr_id,
					 __u64 offset, __u32 length)
{
	struct ibchan_submit_wr wr = work(bench->a, opcode, wr_id, 0, length);

	wr.remote_addr = bench->region.out_addr + offset;
	wr.rkey = bench->region.out_rkey;
	wr.remote_length = IBCHAN_REMOTE_UNCHECKED;
	return wr;
}

static int send_it(struct bench *bench, __u64 offset, __u32 length)
{
	int rc = post_one(bench->a, work(bench->a, IBCHAN_OP_RECV, 1, 0, length));

	if (!rc)
		rc = post_one(bench->b, region_work(bench, IBCHAN_OP_SEND, 2, offset, length));
	if (!rc)
		rc = succeed(bench->b, 2, NULL);
	return rc ? rc : succeed(bench->a, 1, NULL);
}

static int receive_it(struct bench *bench, __u64 offset, __u32 length)
{
	int rc = post_one(bench->b, region_work(bench, IBCHAN_OP_RECV, 1, offset, length));

	if (!rc)
		rc = post_one(bench->a, work(bench->a, IBCHAN_OP_SEND, 2, 0, length));
	if (!rc)
		rc = succeed(bench->a, 2, NULL);
	return rc ? rc : succeed(bench->b, 1, NULL);
}

static int peer_does(struct bench *bench, int opcode, __u64 offset, __u32 length)
{
	int rc = post_one(bench->a, peer_work(bench, opcode, 3, offset, length));

	return rc ? rc : succeed(bench->a, 3, NULL);
}

FIXTURE(dma_buf)
{
	struct bench bench;
};

FIXTURE_VARIANT(dma_buf)
{
	int (*make)(unsigned int pages);
};

static int make_scattered(unsigned int pages)
{
	return dmabuf_export(pages, 0);
}

static int make_contiguous(unsigned int pages)
{
	return dmabuf_export(pages, EXPORTER_CONTIGUOUS);
}

FIXTURE_VARIANT_ADD(dma_buf, of_scattered_pages) { .make = make_scattered, };
FIXTURE_VARIANT_ADD(dma_buf, in_one_piece) { .make = make_contiguous, };

FIXTURE_SETUP(dma_buf)
{
	ASSERT_EQ(0, bench_open(&self->bench, variant->make));
}

FIXTURE_TEARDOWN(dma_buf)
{
	EXPECT_EQ(0, bench_close(&self->bench));
}

/* Bytes before, in and behind the range @offset, @length of a page full of 0x55. */
static void expect_nothing_else_written(struct __test_metadata *_metadata, struct bench *bench,
					size_t offset, size_t length)
{
	EXPECT_EQ(0, all_bytes(bench->bytes, offset, 0x55));
	EXPECT_EQ(0, all_bytes(bench->bytes + offset + length, bench->size - offset - length,
			       0x55));
}

/* In all four directions. */
static int use_both_ways(struct bench *bench)
{
	unsigned char *bytes = bench->bytes;
	int rc;

	pattern(bytes, bench->size, 21);
	rc = register_range(bench, 0, bench->size, IBCHAN_ACCESS_LOCAL);
	if (!rc && (bench->region.out_rkey || bench->region.out_addr))
		rc = -EPROTO;
	if (!rc)
		rc = send_it(bench, 4000, PART);
	if (!rc)
		rc = same_bytes(bytes + 4000, bench->a->memory, PART);
	pattern(bench->a->memory, PART, 22);
	if (!rc)
		rc = receive_it(bench, 20001, PART);
	if (!rc)
		rc = same_bytes(bench->a->memory, bytes + 20001, PART);
	if (!rc)
		rc = register_range(bench, 4096, bench->size - 4096, IBCHAN_ACCESS_SHARED);
	if (!rc)
		rc = peer_does(bench, IBCHAN_OP_WRITE, 5, PART);
	if (!rc)
		rc = same_bytes(bench->a->memory, bytes + 4096 + 5, PART);
	pattern(bytes, bench->size, 23);
	if (!rc)
		rc = peer_does(bench, IBCHAN_OP_READ, 30000, PART);
	return rc ? rc : same_bytes(bytes + 4096 + 30000, bench->a->memory, PART);
}

TEST_F(dma_buf, works_in_all_directions)
{
	EXPECT_EQ(0, use_both_ways(&self->bench));
}

TEST_F(dma_buf, can_be_registered_in_part_and_no_byte_beyond_is_reached)
{
	struct bench *bench = &self->bench;
	struct ibchan_submit_wr wr;
	struct answer answer;

	memset(bench->bytes, 0x55, bench->size);
	pattern(bench->a->memory, 3000, 7);
	ASSERT_EQ(0, register_range(bench, 5001, 3000, IBCHAN_ACCESS_SHARED));
	ASSERT_EQ(0, receive_it(bench, 0, 3000));
	ASSERT_EQ(0, peer_does(bench, IBCHAN_OP_WRITE, 0, 3000));
	EXPECT_EQ(0, same_bytes(bench->a->memory, bench->bytes + 5001, 3000));
	wr = region_work(bench, IBCHAN_OP_RECV, 9, 1, 3000);
	answer = ask_one(bench->b, &wr);
	EXPECT_EQ(0, is_refusal(&answer, EINVAL, IBCHAN_REASON_OUT_OF_BOUNDS));
	EXPECT_EQ(0, has_values(&answer, 1, 3000, 3000));
	ASSERT_EQ(0, post_one(bench->a, peer_work(bench, IBCHAN_OP_WRITE, 4, 1, 3000)));
	EXPECT_EQ(IBCHAN_STATUS_REM_ACCESS_ERR, status_of(bench->a, 4));
	expect_nothing_else_written(_metadata, bench, 5001, 3000);
}

TEST_F(dma_buf, stays_after_its_descriptor_and_every_mapping_have_gone)
{
	struct bench *bench = &self->bench;
	unsigned char wanted[PART];

	pattern(bench->bytes, bench->size, 8);
	memcpy(wanted, bench->bytes + 77, PART);
	ASSERT_EQ(0, register_range(bench, 0, bench->size, IBCHAN_ACCESS_SHARED));
	bench_unmap(bench);
	ASSERT_EQ(0, peer_does(bench, IBCHAN_OP_READ, 77, PART));
	EXPECT_EQ(0, same_bytes(wanted, bench->a->memory, PART));
	ASSERT_EQ(0, send_it(bench, 77, PART));
	EXPECT_EQ(0, same_bytes(wanted, bench->a->memory, PART));
}

TEST_F(dma_buf, can_be_several_regions_at_a_time)
{
	struct bench *bench = &self->bench;
	struct ibchan_cmd_mr_reg_dmabuf first;

	pattern(bench->bytes, bench->size, 9);
	ASSERT_EQ(0, register_range(bench, 0, bench->size, IBCHAN_ACCESS_SHARED));
	first = bench->region;
	ASSERT_EQ(0, register_range(bench, 0, bench->size, 0));
	ASSERT_EQ(0, destroy(bench->b->fd, first.out_mr));
	ASSERT_EQ(0, send_it(bench, 0, PART));
	EXPECT_EQ(0, same_bytes(bench->bytes, bench->a->memory, PART));
	ASSERT_EQ(0, post_one(bench->a, (bench->region = first,
					 peer_work(bench, IBCHAN_OP_READ, 5, 0, 64))));
	EXPECT_EQ(IBCHAN_STATUS_REM_ACCESS_ERR, status_of(bench->a, 5));
}

/* Everything below is about the exporter's side of it, which only the tests' own tells. */
FIXTURE(exported)
{
	struct bench bench;
};

FIXTURE_SETUP(exported)
{
	ASSERT_EQ(0, bench_open(&self->bench, make_scattered));
}

FIXTURE_TEARDOWN(exported)
{
	EXPECT_EQ(0, bench_close(&self->bench));
}

TEST_F(exported, memory_is_mapped_and_accessed_for_as_long_as_a_region_exists)
{
	struct bench *bench = &self->bench;

	EXPECT_EQ(1, exporter_counter("buffers"));
	EXPECT_EQ(0, exporter_counter("mappings"));
	ASSERT_EQ(0, register_range(bench, 0, bench->size, IBCHAN_ACCESS_SHARED));
	EXPECT_EQ(1, exporter_counter("mappings"));
	EXPECT_EQ(1, exporter_counter("accesses"));
	bench_unmap(bench);
	EXPECT_EQ(1, exporter_counter("buffers"));
	ASSERT_EQ(0, destroy(bench->b->fd, bench->region.out_mr));
	EXPECT_EQ(0, exporter_counter("accesses"));
	EXPECT_EQ(0, exporter_counter("mappings"));
	EXPECT_EQ(0, exporter_idle());
}

TEST_F(exported, memory_takes_part_in_the_borrow_rules)
{
	struct bench *bench = &self->bench;
	struct ibchan_submit_wr wr;
	struct answer answer;

	ASSERT_EQ(0, register_range(bench, 0, bench->size, IBCHAN_ACCESS_LOCAL));
	ASSERT_EQ(0, post_one(bench->b, region_work(bench, IBCHAN_OP_RECV, 7, 100, 100)));
	wr = region_work(bench, IBCHAN_OP_SEND, 8, 199, 10);
	answer = ask_one(bench->b, &wr);
	EXPECT_EQ(0, is_refusal(&answer, EBUSY, IBCHAN_REASON_BUSY));
	EXPECT_EQ(0, has_values(&answer, 100, 100, 7));
}

/* @rc and @reason for a registration that must leave the exporter as it was. */
static void expect_refused(struct __test_metadata *_metadata, struct bench *bench,
			   const struct ibchan_cmd_mr_reg_dmabuf *request, int rc,
			   unsigned int reason)
{
	struct ibchan_cmd_mr_reg_dmabuf cmd = *request;
	long accesses = exporter_counter("accesses");
	long mappings = exporter_counter("mappings");

	EXPECT_EQ(rc, cmd_mr_reg_dmabuf(bench->b->fd, &cmd));
	EXPECT_EQ(reason, cmd.reason.code);
	EXPECT_EQ(accesses, exporter_counter("accesses"));
	EXPECT_EQ(mappings, exporter_counter("mappings"));
}

TEST_F(exported, memory_outside_of_the_buffer_is_refused)
{
	struct bench *bench = &self->bench;
	const __u64 size = bench->size;
	const struct {
		__u64 offset;
		__u64 length;
	} wrong[] = {
		{ 0, size + 1 }, { 1, size }, { size, 1 }, { size - 1, 2 }, { size + 1, 1 },
		{ ~0ULL, 2 }, { 1, ~0ULL }, { 0, 1ULL << 63 }, { 1ULL << 63, 1ULL << 63 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct ibchan_cmd_mr_reg_dmabuf cmd;

		cmd = dmabuf_region(bench->b, bench->fd, wrong[i].offset, wrong[i].length, 0);
		expect_refused(_metadata, bench, &cmd, -EINVAL, IBCHAN_REASON_OUT_OF_BOUNDS);
		ASSERT_EQ(-EINVAL, cmd_mr_reg_dmabuf(bench->b->fd, &cmd));
		EXPECT_EQ(wrong[i].offset, cmd.reason.value[0]);
		EXPECT_EQ(wrong[i].length, cmd.reason.value[1]);
		EXPECT_EQ(size, cmd.reason.value[2]);
	}
	EXPECT_EQ(0, register_range(bench, size - 1, 1, IBCHAN_ACCESS_SHARED));
}

TEST_F(exported, memory_of_no_length_is_refused)
{
	struct bench *bench = &self->bench;
	struct ibchan_cmd_mr_reg_dmabuf cmd = dmabuf_region(bench->b, bench->fd, 64, 0, 0);

	expect_refused(_metadata, bench, &cmd, -EINVAL, IBCHAN_REASON_EMPTY_RANGE);
}

TEST_F(exported, memory_with_a_wrong_access_is_refused)
{
	struct bench *bench = &self->bench;
	struct ibchan_cmd_mr_reg_dmabuf cmd;

	cmd = dmabuf_region(bench->b, bench->fd, 0, 64, IBCHAN_ACCESS_REMOTE_WRITE);
	expect_refused(_metadata, bench, &cmd, -EINVAL, IBCHAN_REASON_ACCESS_COMBINATION);
	cmd.access = 1U << 7;
	expect_refused(_metadata, bench, &cmd, -EOPNOTSUPP, IBCHAN_REASON_ACCESS_COMBINATION);
}

TEST_F(exported, memory_by_a_descriptor_of_something_else_is_refused)
{
	struct bench *bench = &self->bench;
	struct ibchan_cmd_mr_reg_dmabuf cmd = dmabuf_region(bench->b, -1, 0, 64, 0);
	int memfd = memfd_create("ibchan", MFD_CLOEXEC);

	expect_refused(_metadata, bench, &cmd, -EBADF, IBCHAN_REASON_NONE);
	cmd.fd = bench->b->fd;
	expect_refused(_metadata, bench, &cmd, -EINVAL, IBCHAN_REASON_NONE);
	cmd.fd = bench->b->ring->fd;
	expect_refused(_metadata, bench, &cmd, -EINVAL, IBCHAN_REASON_NONE);
	ASSERT_LE(0, memfd);
	cmd.fd = memfd;
	expect_refused(_metadata, bench, &cmd, -EINVAL, IBCHAN_REASON_NONE);
	close(memfd);
	expect_refused(_metadata, bench, &cmd, -EBADF, IBCHAN_REASON_NONE);
}

/* One page with these flags, and what its registration is refused for. */
static void expect_kind_refused(struct __test_metadata *_metadata, struct bench *bench,
				unsigned int flags, __u32 access, int error, unsigned int reason)
{
	int fd = dmabuf_export(1, flags);
	struct ibchan_cmd_mr_reg_dmabuf cmd = dmabuf_region(bench->b, fd, 0, 64, access);

	ASSERT_LE(0, fd);
	expect_refused(_metadata, bench, &cmd, -error, reason);
	close(fd);
}

TEST_F(exported, memory_that_its_exporter_cannot_map_for_the_cpu_is_refused)
{
	expect_kind_refused(_metadata, &self->bench, EXPORTER_NO_VMAP, IBCHAN_ACCESS_LOCAL,
			    EOPNOTSUPP, IBCHAN_REASON_DMABUF_NOT_MAPPED);
	expect_kind_refused(_metadata, &self->bench, EXPORTER_NO_VMAP, IBCHAN_ACCESS_SHARED,
			    EOPNOTSUPP, IBCHAN_REASON_DMABUF_NOT_MAPPED);
}

TEST_F(exported, memory_of_a_device_is_refused)
{
	static const unsigned int flags[] = {
		EXPORTER_IO_MAPPING,
		EXPORTER_IO_MAPPING | EXPORTER_NO_PAGES,
		EXPORTER_NO_PAGES,	/* mapped as if it were memory */
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		expect_kind_refused(_metadata, &self->bench, flags[i], IBCHAN_ACCESS_LOCAL,
				    EOPNOTSUPP, IBCHAN_REASON_DMABUF_NO_PAGES);
		expect_kind_refused(_metadata, &self->bench, flags[i], IBCHAN_ACCESS_SHARED,
				    EOPNOTSUPP, IBCHAN_REASON_DMABUF_NO_PAGES);
	}
}

TEST_F(exported, memory_that_was_opened_for_reading_is_never_written)
{
	int fd = dmabuf_export(1, EXPORTER_READ_ONLY);
	struct ibchan_cmd_mr_reg_dmabuf cmd = dmabuf_region(self->bench.b, fd, 0, 64, 0);

	ASSERT_LE(0, fd);
	EXPECT_EQ(0, cmd_mr_reg_dmabuf(self->bench.b->fd, &cmd));
	cmd.access = IBCHAN_ACCESS_REMOTE_READ;
	EXPECT_EQ(0, cmd_mr_reg_dmabuf(self->bench.b->fd, &cmd));
	cmd.access = IBCHAN_ACCESS_LOCAL;
	expect_refused(_metadata, &self->bench, &cmd, -EACCES, IBCHAN_REASON_DMABUF_MODE);
	cmd.access = IBCHAN_ACCESS_SHARED;
	expect_refused(_metadata, &self->bench, &cmd, -EACCES, IBCHAN_REASON_DMABUF_MODE);
	close(fd);
}

#define FAST_REG_PAGES	512	/* of soft-RoCE */

TEST_F(exported, memory_with_too_many_pages_is_registered_for_this_side_only)
{
	struct bench *bench = &self->bench;
	__u64 limit = (__u64)FAST_REG_PAGES * getpagesize();
	int fd = dmabuf_export(FAST_REG_PAGES + 1, 0);
	struct ibchan_cmd_mr_reg_dmabuf cmd;

	ASSERT_LE(0, fd);
	cmd = dmabuf_region(bench->b, fd, 0, limit + 1, IBCHAN_ACCESS_SHARED);
	expect_refused(_metadata, bench, &cmd, -EINVAL, IBCHAN_REASON_REGION_TOO_LONG);
	cmd.length = limit;
	EXPECT_EQ(0, cmd_mr_reg_dmabuf(bench->b->fd, &cmd));
	cmd.length = limit + 1;
	cmd.access = IBCHAN_ACCESS_LOCAL;
	EXPECT_EQ(0, cmd_mr_reg_dmabuf(bench->b->fd, &cmd));
	close(fd);
}

TEST_F(exported, memory_of_this_side_counts_as_many_elements_as_it_has_pieces)
{
	struct bench *bench = &self->bench;
	__u32 all = 17 * getpagesize();
	int fd = dmabuf_export(17, 0);
	struct ibchan_submit_sge sges[2];
	struct ibchan_submit_wr wr;
	struct answer answer;

	ASSERT_LE(0, fd);
	bench->region = dmabuf_region(bench->b, fd, 0, all, 0);
	ASSERT_EQ(0, cmd_mr_reg_dmabuf(bench->b->fd, &bench->region));
	sges[0] = (struct ibchan_submit_sge) {
		.mr = bench->region.out_mr, .length = IBCHAN_DEFAULT_SEND_SGE * getpagesize(),
	};
	sges[1] = (struct ibchan_submit_sge) { .mr = bench->b->mr, .length = 8 };
	wr = region_work(bench, IBCHAN_OP_SEND, 1, 0, all);
	answer = ask_one(bench->b, &wr);
	EXPECT_EQ(0, is_refusal(&answer, EINVAL, IBCHAN_REASON_TOO_MANY_ELEMENTS));
	EXPECT_EQ(0, has_values(&answer, 17, IBCHAN_DEFAULT_SEND_SGE, 0));
	/* What comes behind them counts as well. */
	work_elements(&wr, sges, 2);
	answer = ask_one(bench->b, &wr);
	EXPECT_EQ(0, is_refusal(&answer, EINVAL, IBCHAN_REASON_TOO_MANY_ELEMENTS));
	EXPECT_EQ(0, has_values(&answer, IBCHAN_DEFAULT_SEND_SGE + 1, IBCHAN_DEFAULT_SEND_SGE, 0));
	close(fd);
}

/* As nobody, who has no capability, with a limit of nothing. */
static int register_without_limit(void *arg)
{
	const struct rlimit nothing = {};
	struct ibchan_cmd_mr_reg user = { .length = 64 };
	struct ibchan_cmd_mr_reg_dmabuf cmd;
	struct side side = {};
	int rc;

	side.fd = node_open();
	rc = device_open(side.fd, DEVICE_A, &side.device);
	if (!rc)
		rc = pd_alloc(side.fd, side.device, &side.pd);
	if (!rc && setrlimit(RLIMIT_MEMLOCK, &nothing))
		rc = -errno;
	if (!rc)
		rc = drop_privileges();
	if (rc)
		return rc;
	user.addr = address(&user);
	user.pd = side.pd;
	if (cmd_mr_reg(side.fd, &user) != -ENOMEM || user.reason.code != IBCHAN_REASON_MEMLOCK)
		return -EBADMSG;
	cmd = dmabuf_region(&side, *(int *)arg, 0, 4096, IBCHAN_ACCESS_SHARED);
	return cmd_mr_reg_dmabuf(side.fd, &cmd);
}

TEST_F(exported, memory_is_not_charged_to_who_registers_it)
{
	struct bench *bench = &self->bench;
	struct ibchan_cmd_query query = {};
	long pinned = pins();
	__u64 before;

	EXPECT_EQ(0, in_child(register_without_limit, &bench->fd));
	ASSERT_EQ(0, cmd_query(bench->b->fd, &query));
	before = query.out.pinned_bytes;
	ASSERT_EQ(0, register_range(bench, 0, bench->size, IBCHAN_ACCESS_SHARED));
	EXPECT_EQ(pinned, pins());
	ASSERT_EQ(0, cmd_query(bench->b->fd, &query));
	EXPECT_EQ(before + bench->size, query.out.pinned_bytes);
}

TEST(a_dma_buf_of_a_memfd_works_in_all_directions)
{
	struct bench bench = {};
	int rc = bench_open(&bench, dmabuf_from_memfd);

	if (rc == -ENOENT)
		SKIP(return, "this kernel has no udmabuf");
	ASSERT_EQ(0, rc);
	EXPECT_EQ(0, use_both_ways(&bench));
	EXPECT_EQ(0, bench_close(&bench));
}

TEST(a_dma_buf_of_the_system_heap_works_in_all_directions)
{
	struct bench bench = {};
	int rc = bench_open(&bench, dmabuf_from_heap);

	if (rc == -ENOENT)
		SKIP(return, "this kernel has no system heap");
	ASSERT_EQ(0, rc);
	EXPECT_EQ(0, use_both_ways(&bench));
	EXPECT_EQ(0, bench_close(&bench));
}

/* Holds a dma-buf by nothing but its region, which a receive uses. */
static int hold_and_wait(int ready, void *access)
{
	struct side_options options = side_defaults();
	struct bench bench = { .fd = dmabuf_export(PAGES, 0) };
	int rc = pair_open(&bench.pair, PAIR_LOOPED, &options);

	bench.b = bench.pair.b;
	if (!rc)
		rc = register_range(&bench, 0, 8192, *(__u32 *)access);
	close(bench.fd);
	if (!rc)
		rc = post_one(bench.b, region_work(&bench, IBCHAN_OP_RECV, 1, 0, 8192));
	if (rc || write(ready, "", 1) != 1)
		return rc ? rc : -EPIPE;
	/* A wait that nothing ends. */
	return ring_wait(bench.b->ring, 64, -1);
}

static int kill_holder(__u32 access)
{
	pid_t child = child_that_is_ready(hold_and_wait, &access);

	if (child <= 0)
		return child ? child : -EIO;
	if (exporter_counter("mappings") == 1)
		kill(child, SIGKILL);
	return child_result(child) == -EINTR ? 0 : -EBADMSG;
}

TEST(a_process_that_is_killed_leaves_nothing_to_its_exporter)
{
	struct calm calm;

	ASSERT_EQ(0, calm_begin(&calm));
	ASSERT_EQ(0, exporter_idle());
	EXPECT_EQ(0, kill_holder(IBCHAN_ACCESS_LOCAL));
	EXPECT_EQ(0, exporter_idle());
	EXPECT_EQ(0, kill_holder(IBCHAN_ACCESS_SHARED));
	EXPECT_EQ(0, exporter_idle());
	EXPECT_EQ(0, calm_end(&calm));
}

TEST(a_soft_device_says_that_it_takes_dma_bufs)
{
	struct ibchan_cmd_device_query device = {};
	int fd = node_open();

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, cmd_device_query(fd, &device));
	EXPECT_TRUE(device.out.caps & IBCHAN_DEVICE_DMABUF);
	close(fd);
}

TEST_HARNESS_MAIN
