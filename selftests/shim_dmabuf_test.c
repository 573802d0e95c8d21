// SPDX-License-Identifier: GPL-2.0-only
/*
 * dma-bufs through libibchan; what the kernel makes of them is dmabuf_test's matter.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dmabuf.h"
#include "shim/end.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define SIZE	(8 * 4096)
#define PART	(3 * 4096)

FIXTURE(shim_dma_buf)
{
	struct calm calm;
	struct ibchan_context *context;
	struct end a;
	struct end b;
	int fd;
	unsigned char *bytes;
	struct ibchan_mr *mr;	/* of b */
};

FIXTURE_SETUP(shim_dma_buf)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, open_ends(&self->a, &self->b, &self->context));
	self->fd = dmabuf_export(SIZE / getpagesize(), 0);
	ASSERT_LE(0, self->fd);
	self->bytes = dmabuf_map(self->fd, SIZE);
	ASSERT_NE(NULL, self->bytes);
}

FIXTURE_TEARDOWN(shim_dma_buf)
{
	EXPECT_EQ(0, ibchan_mr_dereg(self->mr));
	EXPECT_EQ(0, close_ends(&self->a, &self->b, self->context));
	munmap(self->bytes, SIZE);
	close(self->fd);
	EXPECT_EQ(0, calm_end(&self->calm));
	EXPECT_EQ(0, exporter_idle());
}

/* Both ways between the region's byte @offset and a. */
static int use(struct end *a, struct end *b, struct ibchan_mr *mr, size_t offset)
{
	struct ibchan_submit_sge ours = sge_at(a, 0, PART), back = sge_at(a, HALF, PART);
	struct ibchan_submit_sge theirs = ibchan_sge_new(mr, offset, PART);
	struct ibchan_remote_region region, target;
	int rc = ibchan_mr_remote_region(mr, &region);

	pattern(a->memory, PART, 5);
	rc = rc ?: ibchan_remote_region_sub(&region, offset, PART, &region);
	rc = rc ?: ibchan_write(a->channel, &ours, 1, &region, IBCHAN_TIMEOUT_NEVER, NULL);
	rc = rc ?: ibchan_read(a->channel, &back, 1, &region, IBCHAN_TIMEOUT_NEVER, NULL);
	rc = rc ?: same_bytes(a->memory, a->memory + HALF, PART);
	memset(a->memory + HALF, 0, PART);
	rc = rc ?: ibchan_mr_remote_region(a->mr, &target);
	rc = rc ?: ibchan_remote_region_sub(&target, HALF, PART, &target);
	rc = rc ?: ibchan_write(b->channel, &theirs, 1, &target, IBCHAN_TIMEOUT_NEVER, NULL);
	return rc ?: same_bytes(a->memory, a->memory + HALF, PART);
}

TEST_F(shim_dma_buf, that_is_mapped_is_used_by_offsets_as_well)
{
	const struct ibchan_dmabuf_params params = {
		.size = sizeof(params),
		.addr = self->bytes + 4096,
		.length = SIZE - 4096,
		.offset = 4096,
		.fd = self->fd,
		.access = IBCHAN_ACCESS_SHARED,
	};
	struct ibchan_error error;

	ASSERT_EQ(0, ibchan_mr_reg_dmabuf(self->b.pd, &params, &self->mr, &error));
	EXPECT_EQ(0, error.code);
	EXPECT_EQ(0, use(&self->a, &self->b, self->mr, 77));
	EXPECT_EQ(0, same_bytes(self->a.memory, self->bytes + 4096 + 77, PART));
}

TEST_F(shim_dma_buf, that_is_not_mapped_is_used_by_offsets)
{
	struct ibchan_dmabuf_params params = {
		.size = sizeof(params),
		.length = SIZE,
		.fd = self->fd,
		.access = IBCHAN_ACCESS_SHARED,
		.reserved = 1,
	};

	EXPECT_EQ(-EINVAL, ibchan_mr_reg_dmabuf(self->b.pd, &params, &self->mr, NULL));
	params.reserved = 0;
	ASSERT_EQ(0, ibchan_mr_reg_dmabuf(self->b.pd, &params, &self->mr, NULL));
	EXPECT_EQ(0, use(&self->a, &self->b, self->mr, 0));
	EXPECT_EQ(0, use(&self->a, &self->b, self->mr, 5000));
	EXPECT_EQ(0, same_bytes(self->a.memory, self->bytes + 5000, PART));
}

TEST_F(shim_dma_buf, that_is_not_mapped_gives_no_inline_data)
{
	const struct ibchan_dmabuf_params params = {
		.size = sizeof(params),
		.length = SIZE,
		.fd = self->fd,
		.access = IBCHAN_ACCESS_LOCAL,
	};
	struct ibchan_submit_wr wr = wr_of(&self->b, IBCHAN_OP_SEND, NULL);
	struct ibchan_error error;
	struct ibchan_submit_sge sge;

	ASSERT_EQ(0, ibchan_mr_reg_dmabuf(self->b.pd, &params, &self->mr, NULL));
	ASSERT_EQ(0, ibchan_sge_checked(self->mr, 0, 8, &sge));
	wr_elements(&wr, &sge, 1);
	wr.flags = IBCHAN_WR_INLINE;
	EXPECT_EQ(-EINVAL, ibchan_post(self->context, &wr, 1, NULL, &error));
	EXPECT_EQ(IBCHAN_REASON_INLINE_ELEMENT, error.reason.code);
}

TEST_HARNESS_MAIN
