// SPDX-License-Identifier: GPL-2.0-only
/* Regions of kernel memory and their elements (M1, M2, laws 2 and 4). */
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "job.h"
#include "suites.h"

/* Sends from a region, receives into it, and looks at the memory itself. */
static void exchange(struct world *w, struct ibchan_mr *mr, u8 *memory, u32 length)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 2);
	struct ibchan_sge sge = ibchan_sge_unchecked(mr, 0, length);
	struct ibchan_wr wr;

	fill_pattern(memory, length, 1);
	expect_eq(w, job_receive(&jobs[0], b, 0, length), 0);
	expect_eq(w, ibchan_channel_send(a->ch, &sge, 1, NULL), 0);
	if (job_ended(&jobs[0]))
		expect(w, has_pattern(b->buf, length, 1));
	memset(memory, 0, length);
	fill_pattern(b->buf, length, 2);
	jobs[1].sges[0] = sge;
	wr = ibchan_wr_receive(jobs[1].sges, 1);
	expect_eq(w, job_post(&jobs[1], a->ch, &wr, NULL), 0);
	expect_eq(w, ibchan_channel_send(b->ch, side_sge(b, 0, length), 1, NULL), 0);
	if (job_ended(&jobs[1]))
		expect(w, has_pattern(memory, length, 2));
}

static void lowmem_and_vmalloc_ranges_work_alike(struct world *w)
{
	struct ibchan_mr *mr;
	u8 *low = world_kalloc(w, 20000), *high = world_valloc(w, 20000);

	if (!low || !high || world_default_pair(w))
		return;
	mr = world_mr(w, w->side[0].pd, low, 20000, IBCHAN_ACCESS_LOCAL);
	if (mr)
		exchange(w, mr, low, 20000);
	mr = world_mr(w, w->side[0].pd, high, 20000, IBCHAN_ACCESS_LOCAL);
	if (mr)
		exchange(w, mr, high, 20000);
}

static void a_range_may_begin_and_end_anywhere(struct world *w)
{
	static const u32 offsets[] = { 1, 7, 4095, 4096, 4097 };
	struct ibchan_mr *mr;
	u8 *memory;
	int i;

	memory = world_valloc(w, 4 * PAGE_SIZE);
	if (!memory || world_default_pair(w))
		return;
	for (i = 0; i < ARRAY_SIZE(offsets); i++) {
		mr = world_mr(w, w->side[0].pd, memory + offsets[i], 4099, IBCHAN_ACCESS_LOCAL);
		if (!mr)
			return;
		expect_eq(w, ibchan_mr_length(mr), 4099);
		exchange(w, mr, memory + offsets[i], 4099);
	}
}

/* Every second page of a vmalloc range, so that none follows another. */
static int scattered_pages(u8 *memory, struct page **pages, u32 num)
{
	u32 i;

	for (i = 0; i < num; i++)
		pages[i] = vmalloc_to_page(memory + 2 * i * PAGE_SIZE);
	return 0;
}

static void spread(u8 *memory, u32 num, u32 seed)
{
	u8 *flat = kvmalloc(num * PAGE_SIZE, GFP_KERNEL | __GFP_NOFAIL);
	u32 i;

	fill_pattern(flat, num * PAGE_SIZE, seed);
	for (i = 0; i < num; i++)
		memcpy(memory + 2 * i * PAGE_SIZE, flat + i * PAGE_SIZE, PAGE_SIZE);
	kvfree(flat);
}

static void a_shared_page_array_is_reached_as_one_range(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_pages pages = { .num = 4, .offset = 100, .length = 3 * PAGE_SIZE + 50 };
	struct ibchan_remote remote;
	struct page *array[4];
	struct ibchan_mr *mr;
	u8 *memory = world_valloc(w, 8 * PAGE_SIZE);
	u8 *flat = world_valloc(w, 4 * PAGE_SIZE);

	if (!memory || !flat || world_default_pair(w))
		return;
	scattered_pages(memory, array, 4);
	spread(memory, 4, 8);
	fill_pattern(flat, 4 * PAGE_SIZE, 8);
	pages.pages = array;
	mr = world_keep_mr(w, ibchan_mr_reg_pages(b->pd, &pages, IBCHAN_ACCESS_SHARED, NULL));
	if (!mr || !expect_eq(w, ibchan_mr_remote(mr, &remote), 0))
		return;
	expect_eq(w, remote.length, pages.length);
	expect_eq(w, ibchan_channel_read(a->ch, side_sge(a, 0, pages.length), 1, &remote, NULL),
		  0);
	expect(w, !memcmp(a->buf, flat + 100, pages.length));
}

/* More pages than the length needs; the first two lie side by side, the third elsewhere. */
struct surplus {
	struct page *array[3];
	struct ibchan_pages pages;
	u8 *memory;
};

static struct surplus *surplus_pages(struct world *w, u32 offset, u64 length)
{
	struct surplus *surplus = world_alloc(w, sizeof(*surplus));
	u8 *elsewhere = world_valloc(w, 2 * PAGE_SIZE);
	struct page *third;

	surplus->memory = world_kalloc(w, 4 * PAGE_SIZE);
	if (!surplus->memory || !elsewhere)
		return NULL;
	third = vmalloc_to_page(elsewhere);
	if (page_to_pfn(third) == page_to_pfn(virt_to_page(surplus->memory)) + 2)
		third = vmalloc_to_page(elsewhere + PAGE_SIZE);
	surplus->array[0] = virt_to_page(surplus->memory);
	surplus->array[1] = virt_to_page(surplus->memory + PAGE_SIZE);
	surplus->array[2] = third;
	surplus->pages = (struct ibchan_pages){
		.pages = surplus->array, .num = 3, .offset = offset, .length = length,
	};
	return surplus;
}

static struct ibchan_mr *surplus_region(struct world *w, struct ibchan_pd *pd,
					const struct surplus *surplus, u32 access)
{
	const struct ibchan_pages *pages = &surplus->pages;
	struct ibchan_mr *mr;

	mr = world_keep_mr(w, ibchan_mr_reg_pages(pd, pages, access, NULL));
	if (!mr)
		return NULL;
	expect_eq(w, ibchan_mr_pages(mr),
		  DIV_ROUND_UP(pages->offset + pages->length, PAGE_SIZE));
	return expect_eq(w, ibchan_mr_length(mr), pages->length) ? mr : NULL;
}

/* Whatever else is in the array, the region ends where its length says. */
static void pages_that_the_length_does_not_need_are_left_out(struct world *w)
{
	static const struct { u32 offset; u64 length; } ranges[] = {
		{ 0, PAGE_SIZE }, { 0, 1 }, { 100, PAGE_SIZE - 100 }, { 100, PAGE_SIZE },
		{ 0, 2 * PAGE_SIZE }, { PAGE_SIZE - 1, 1 },
	};
	struct side *a = &w->side[0];
	struct surplus *surplus;
	struct ibchan_mr *mr;
	struct ibchan_sge sge;
	int i;

	if (world_default_pair(w))
		return;
	for (i = 0; i < ARRAY_SIZE(ranges); i++) {
		surplus = surplus_pages(w, ranges[i].offset, ranges[i].length);
		mr = surplus ? surplus_region(w, a->pd, surplus, IBCHAN_ACCESS_LOCAL) : NULL;
		if (!mr)
			return;
		sge = ibchan_sge_unchecked(mr, 1, ranges[i].length);
		expect_eq(w, ibchan_channel_send(a->ch, &sge, 1, NULL), -EINVAL);
		expect_eq(w, ibchan_post_receive(a->ch, mr, ranges[i].length, 1, 0), -EINVAL);
		exchange(w, mr, surplus->memory + ranges[i].offset, ranges[i].length);
	}
}

static void expect_reach(struct world *w, const struct surplus *surplus,
			 const struct ibchan_remote *remote)
{
	const u64 length = surplus->pages.length;
	struct side *a = &w->side[0];
	u8 *first = surplus->memory + surplus->pages.offset;

	expect_eq(w, remote->length, length);
	fill_pattern(a->buf, length, 5);
	expect_eq(w, ibchan_channel_write(a->ch, side_sge(a, 0, length), 1, remote, NULL), 0);
	expect(w, has_pattern(first, length, 5));
	expect_eq(w, ibchan_channel_write(a->ch, side_sge(a, 0, length + 1), 1, remote, NULL),
		  -EINVAL);
}

/* A peer that claims to know of more is stopped by the device. */
static void expect_no_further(struct world *w, const struct surplus *surplus,
			      const struct ibchan_remote *remote)
{
	const u64 length = surplus->pages.length;
	struct side *a = &w->side[0];
	u8 *behind = surplus->memory + surplus->pages.offset + length;
	struct ibchan_outcome outcome = {};
	struct ibchan_wr wr;

	wr = ibchan_wr_write(side_sge(a, 0, 8), 1, remote);
	wr.remote_addr += length;
	wr.remote_length = IBCHAN_REMOTE_UNCHECKED;
	memset(behind, 0x77, 8);
	memset(a->buf, 0, 8);
	expect_eq(w, ibchan_channel_run(a->ch, &wr, &outcome), -EREMOTEIO);
	expect_eq(w, outcome.completion.status, IBCHAN_STATUS_REM_ACCESS_ERR);
	expect(w, !memchr_inv(behind, 0x77, 8));
}

/* It begins inside the first page, so that its end is inside the second. */
static void a_shared_region_ends_within_the_last_page_that_it_needs(struct world *w)
{
	struct surplus *surplus = surplus_pages(w, 100, PAGE_SIZE);
	struct ibchan_remote remote;
	struct ibchan_mr *mr;

	if (!surplus || world_default_pair(w))
		return;
	mr = surplus_region(w, w->side[1].pd, surplus, IBCHAN_ACCESS_SHARED);
	if (!mr || !expect_eq(w, ibchan_mr_remote(mr, &remote), 0))
		return;
	expect_reach(w, surplus, &remote);
	expect_no_further(w, surplus, &remote);
}

/* The page lies apart from the only one that is needed: no gap in what is shared. */
static void a_scattered_page_that_is_not_needed_makes_no_gap(struct world *w)
{
	struct surplus *surplus = surplus_pages(w, 0, PAGE_SIZE);
	struct ibchan_remote remote;
	struct ibchan_mr *mr;

	if (!surplus || world_default_pair(w))
		return;
	surplus->array[1] = surplus->array[2];
	surplus->pages.num = 2;
	mr = surplus_region(w, w->side[1].pd, surplus, IBCHAN_ACCESS_SHARED);
	if (!mr || !expect_eq(w, ibchan_mr_remote(mr, &remote), 0))
		return;
	expect_reach(w, surplus, &remote);
}

static struct ibchan_mr *region_of_sg(struct world *w, struct ibchan_pd *pd, u8 *memory,
				      u32 access)
{
	struct scatterlist sgl[3];

	sg_init_table(sgl, 3);
	sg_set_page(&sgl[0], vmalloc_to_page(memory), PAGE_SIZE - 100, 100);
	sg_set_page(&sgl[1], vmalloc_to_page(memory + 2 * PAGE_SIZE), PAGE_SIZE, 0);
	sg_set_page(&sgl[2], vmalloc_to_page(memory + 4 * PAGE_SIZE), 1000, 0);
	return world_keep_mr(w, ibchan_mr_reg_sg(pd, sgl, 3, access, NULL));
}

static void a_scatterlist_is_one_region(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	const u32 length = 2 * PAGE_SIZE - 100 + 1000;
	struct job *job = world_jobs(w, 1);
	struct ibchan_sge sge;
	struct ibchan_mr *mr;
	u8 *memory = world_valloc(w, 6 * PAGE_SIZE);
	u8 *flat = world_valloc(w, 3 * PAGE_SIZE);

	if (!memory || !flat || world_default_pair(w))
		return;
	spread(memory, 3, 9);
	fill_pattern(flat, 3 * PAGE_SIZE, 9);
	mr = region_of_sg(w, a->pd, memory, IBCHAN_ACCESS_LOCAL);
	if (!mr)
		return;
	expect_eq(w, ibchan_mr_length(mr), length);
	sge = ibchan_sge_unchecked(mr, 0, length);
	expect_eq(w, job_receive(job, b, 0, length), 0);
	expect_eq(w, ibchan_channel_send(a->ch, &sge, 1, NULL), 0);
	if (job_ended(job))
		expect(w, !memcmp(b->buf, flat + 100, length));
}

/* A hole in the middle of a page cannot be one range for the peer. */
static void a_shared_scatterlist_with_holes_is_refused(struct world *w)
{
	struct side *b = &w->side[1];
	struct ibchan_reason reason = {};
	struct scatterlist sgl[2];
	u8 *memory = world_valloc(w, 4 * PAGE_SIZE);

	if (!memory || world_default_pair(w))
		return;
	sg_init_table(sgl, 2);
	sg_set_page(&sgl[0], vmalloc_to_page(memory), 100, 0);
	sg_set_page(&sgl[1], vmalloc_to_page(memory + 2 * PAGE_SIZE), 100, 50);
	expect_eq(w, PTR_ERR(ibchan_mr_reg_sg(b->pd, sgl, 2, IBCHAN_ACCESS_SHARED, &reason)),
		  -EINVAL);
	expect_eq(w, reason.code, IBCHAN_REASON_REGION_GAPS);
}

static void an_empty_region_is_refused(struct world *w)
{
	struct ibchan_reason reason = {};
	struct side *a = &w->side[0];

	if (world_default_pair(w))
		return;
	expect_eq(w, PTR_ERR(ibchan_mr_reg_kernel(a->pd, a->buf, 0, IBCHAN_ACCESS_LOCAL,
						  &reason)), -EINVAL);
	expect_eq(w, reason.code, IBCHAN_REASON_EMPTY_RANGE);
}

static void a_range_of_a_terabyte_is_refused(struct world *w)
{
	struct side *a = &w->side[0];

	if (world_default_pair(w))
		return;
	expect_eq(w, PTR_ERR(ibchan_mr_reg_kernel(a->pd, a->buf, 1ULL << 40, IBCHAN_ACCESS_LOCAL,
						  NULL)), -EINVAL);
	expect_eq(w, PTR_ERR(ibchan_mr_reg_kernel(a->pd, a->buf, 1ULL << 33, IBCHAN_ACCESS_LOCAL,
						  NULL)), -EFAULT);
}

static void a_shared_region_longer_than_the_device_can_is_refused(struct world *w)
{
	struct side *a = &w->side[0];
	struct ibchan_reason reason = {};
	struct ibchan_device_attr attr;
	void *memory;
	u64 length;

	if (world_default_pair(w) || ibchan_device_query(a->dev, &attr))
		return;
	length = (u64)(attr.max_fast_reg_pages + 1) << PAGE_SHIFT;
	if (length > SZ_64M) {
		world_skip(w, "the device takes more than 64 MiB");
		return;
	}
	memory = world_valloc(w, length);
	if (!memory)
		return;
	expect_eq(w, PTR_ERR(ibchan_mr_reg_kernel(a->pd, memory, length, IBCHAN_ACCESS_SHARED,
						  &reason)), -EINVAL);
	expect_eq(w, reason.code, IBCHAN_REASON_REGION_TOO_LONG);
	expect_eq(w, reason.value[0], attr.max_fast_reg_pages + 1);
	expect_eq(w, reason.value[1], attr.max_fast_reg_pages);
}

static void region_access_that_does_not_go_together_is_refused(struct world *w)
{
	struct side *a = &w->side[0];

	if (world_default_pair(w))
		return;
	expect_eq(w, PTR_ERR(ibchan_mr_reg_kernel(a->pd, a->buf, 8, IBCHAN_ACCESS_REMOTE_WRITE,
						  NULL)), -EINVAL);
	expect_eq(w, PTR_ERR(ibchan_mr_reg_kernel(a->pd, a->buf, 8, 1 << 20, NULL)),
		  -EOPNOTSUPP);
}

static void a_local_region_has_no_key(struct world *w)
{
	struct side *a = &w->side[0];
	struct ibchan_remote remote;

	if (world_default_pair(w))
		return;
	expect_eq(w, ibchan_mr_rkey(a->local), 0);
	expect_eq(w, ibchan_mr_remote(a->local, &remote), -EACCES);
	if (!side_share(a))
		return;
	expect(w, ibchan_mr_rkey(a->shared));
	expect_eq(w, ibchan_mr_rkey(a->shared), a->remote.rkey);
	expect_eq(w, a->remote.length, SIDE_BYTES);
}

static void an_element_comes_in_three_strengths(struct world *w)
{
	struct side *a = &w->side[0];
	struct ibchan_sge sge;

	if (world_default_pair(w))
		return;
	expect_eq(w, ibchan_sge_checked(a->local, 10, SIDE_BYTES - 10, &sge), 0);
	expect(w, sge.mr == a->local && sge.offset == 10 && sge.length == SIDE_BYTES - 10);
	expect_eq(w, ibchan_sge_checked(a->local, SIDE_BYTES, 0, &sge), 0);
	expect_eq(w, ibchan_sge_checked(a->local, 10, SIDE_BYTES - 9, &sge), -EINVAL);
	expect_eq(w, ibchan_sge_checked(a->local, SIDE_BYTES + 1, 0, &sge), -EINVAL);
	expect_eq(w, ibchan_sge_checked(a->local, U64_MAX, 2, &sge), -EINVAL);
	sge = ibchan_sge_unchecked(a->local, SIDE_BYTES, 77);
	expect(w, sge.offset == SIDE_BYTES && sge.length == 77);
	expect_eq(w, ibchan_channel_send(a->ch, &sge, 1, NULL), -EINVAL);
	sge = ibchan_sge_new(a->local, 1, 2);
	expect(w, sge.mr == a->local && sge.offset == 1 && sge.length == 2);
}

/* 4 GiB of the same memory, again and again, and a page of other memory behind that. */
static struct ibchan_mr *huge_region(struct world *w, struct ibchan_pd *pd, u8 *last)
{
	const u32 num = (1ULL << 32) / SZ_1M;
	struct scatterlist *sgl = world_valloc(w, (num + 1) * sizeof(*sgl));
	u8 *memory = world_kalloc(w, SZ_1M);
	u32 i;

	if (!memory || !sgl)
		return NULL;
	sg_init_table(sgl, num + 1);
	for (i = 0; i < num; i++)
		sg_set_page(&sgl[i], virt_to_page(memory), SZ_1M, 0);
	sg_set_page(&sgl[num], virt_to_page(last), PAGE_SIZE, 0);
	return world_keep_mr(w, ibchan_mr_reg_sg(pd, sgl, num + 1, IBCHAN_ACCESS_LOCAL, NULL));
}

/* Both are too long for an element; only one of them is inside its region. */
static void a_length_beyond_32_bits_is_told_from_one_that_leaves_the_region(struct world *w)
{
	u8 *last = world_alloc(w, PAGE_SIZE);
	struct side *a = &w->side[0];
	struct ibchan_sge sge = {};
	struct ibchan_mr *mr;
	u64 too_long;

	if (world_default_pair(w))
		return;
	mr = huge_region(w, a->pd, last);
	if (!mr)
		return;
	too_long = ibchan_mr_length(mr) - PAGE_SIZE;
	expect_eq(w, too_long, 1ULL << 32);
	expect_eq(w, ibchan_sge_checked(mr, 0, too_long, &sge), -EOVERFLOW);
	expect_eq(w, ibchan_sge_checked(mr, PAGE_SIZE, too_long, &sge), -EOVERFLOW);
	expect_eq(w, ibchan_sge_checked(mr, PAGE_SIZE + 1, too_long, &sge), -EINVAL);
	expect_eq(w, ibchan_sge_checked(a->local, 0, too_long, &sge), -EINVAL);
	expect_eq(w, ibchan_sge_checked(a->local, 0, too_long + 8, &sge), -EINVAL);
	expect_eq(w, ibchan_sge_checked(a->local, 0, U64_MAX, &sge), -EINVAL);
	/* Refused, it is not filled. */
	expect(w, !sge.mr && !sge.offset && !sge.length);
	expect_eq(w, ibchan_sge_checked(mr, PAGE_SIZE + 1, U32_MAX, &sge), 0);
	expect(w, sge.mr == mr && sge.offset == PAGE_SIZE + 1 && sge.length == U32_MAX);
}

static void an_offset_beyond_32_bits_is_not_cut(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	u8 *last = world_alloc(w, PAGE_SIZE);
	struct job *job = world_jobs(w, 1);
	struct ibchan_sge sge;
	struct ibchan_mr *mr;

	fill_pattern(last + 8, 64, 9);
	if (world_default_pair(w))
		return;
	mr = huge_region(w, a->pd, last);
	if (!mr || !expect_eq(w, ibchan_sge_checked(mr, (1ULL << 32) + 8, 64, &sge), 0))
		return;
	expect_eq(w, job_receive(job, b, 0, 64), 0);
	expect_eq(w, ibchan_channel_send(a->ch, &sge, 1, NULL), 0);
	if (job_ended(job))
		expect(w, has_pattern(b->buf, 64, 9));
}

static void expect_sge_refused(struct side *side, u8 opcode, struct ibchan_sge *sge, int error,
			       u32 code)
{
	struct ibchan_sge sges[2] = { ibchan_sge_unchecked(side->local, 0, 8), *sge };
	struct world *w = side->world;
	struct ibchan_reason reason = {};
	struct ibchan_wr wrs[2] = {};
	u32 accepted = 7;
	int i;

	for (i = 0; i < 2; i++)
		wrs[i] = (struct ibchan_wr){ .opcode = opcode, .sges = sges, .num_sge = i + 1 };
	expect_eq(w, ibchan_post(side->ch, wrs, 2, &accepted, &reason), error);
	expect_eq(w, accepted, 1);
	expect_eq(w, reason.code, code);
	expect_eq(w, reason.wr, 1);
	expect_eq(w, reason.element, 1);
}

/* The reason says which wr of the batch and which element of it. */
static void bounds_domain_and_access_are_checked_at_the_post(struct world *w)
{
	struct side *a = &w->side[0];
	struct ibchan_pd *other_pd;
	struct ibchan_mr *foreign, *readonly;
	struct ibchan_sge sge;

	if (world_default_pair(w))
		return;
	other_pd = world_pd(w, a->dev);
	if (!other_pd)
		return;
	foreign = world_mr(w, other_pd, a->buf, 4096, IBCHAN_ACCESS_LOCAL);
	readonly = world_mr(w, a->pd, a->buf, 4096, 0);
	if (!foreign || !readonly)
		return;
	sge = ibchan_sge_unchecked(a->local, SIDE_BYTES - 3, 4);
	expect_sge_refused(a, IBCHAN_OP_RECV, &sge, -EINVAL, IBCHAN_REASON_OUT_OF_BOUNDS);
	sge = ibchan_sge_unchecked(foreign, 0, 4);
	expect_sge_refused(a, IBCHAN_OP_RECV, &sge, -EXDEV, IBCHAN_REASON_OTHER_PD);
	sge = ibchan_sge_unchecked(readonly, 0, 4);
	expect_sge_refused(a, IBCHAN_OP_RECV, &sge, -EACCES, IBCHAN_REASON_MR_ACCESS);
	expect_eq(w, channel_state(a->ch), IBCHAN_CHANNEL_CONNECTED);
}

/* Law 2: the receive keeps it. */
static void a_busy_region_cannot_be_deregistered(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *job = world_jobs(w, 1);

	if (world_default_pair(w))
		return;
	expect_eq(w, job_receive(job, b, 0, 100), 0);
	expect_eq(w, ibchan_mr_try_dereg(b->local), -EBUSY);
	fill_pattern(a->buf, 100, 3);
	expect_eq(w, ibchan_channel_send(a->ch, side_sge(a, 0, 100), 1, NULL), 0);
	if (!job_ended(job))
		return;
	expect(w, has_pattern(b->buf, 100, 3));
	expect_eq(w, ibchan_mr_try_dereg(b->local), 0);
}

/* The log says it once for the life of the module. */
static void a_region_that_is_given_back_twice_ends_once(struct world *w)
{
	struct side *a = &w->side[0];
	struct ibchan_mr *mr;
	int i;

	if (world_default_pair(w))
		return;
	for (i = 0; i < 2; i++) {
		mr = world_mr(w, a->pd, a->buf, 64, IBCHAN_ACCESS_LOCAL);
		if (!mr)
			return;
		world_forget(w, THING_MR, mr);
		if (i)
			expect_eq(w, ibchan_mr_try_dereg(mr), 0);
		ibchan_mr_put(mr, NULL, NULL);
		/* Its memory stays for a grace period. */
		ibchan_mr_put(mr, NULL, NULL);
	}
	expect_eq(w, log_lines_with("region that has ended is given back"), 1);
}

static void an_idle_region_is_a_shell_after_it_was_deregistered(struct world *w)
{
	struct side *a = &w->side[0];
	struct ibchan_outcome outcome = {};

	if (world_default_pair(w))
		return;
	expect_eq(w, ibchan_mr_try_dereg(a->local), 0);
	expect_eq(w, ibchan_channel_send(a->ch, side_sge(a, 0, 8), 1, &outcome), -ENOENT);
	expect_eq(w, outcome.posted, 0);
	expect_eq(w, outcome.reason.code, IBCHAN_REASON_MR_GOING);
}

/* The last work lets it go; until then the domain is in use. */
static void a_region_given_up_while_busy_lives_until_its_last_work(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *job = world_jobs(w, 1);

	if (world_default_pair(w))
		return;
	expect_eq(w, job_receive(job, b, 0, 100), 0);
	world_forget(w, THING_MR, b->local);
	ibchan_mr_put(b->local, NULL, NULL);
	fill_pattern(a->buf, 100, 4);
	expect_eq(w, ibchan_channel_send(a->ch, side_sge(a, 0, 100), 1, NULL), 0);
	if (!job_ended(job))
		return;
	expect(w, has_pattern(b->buf, 100, 4));
	side_close(b);
	expect_eq(w, ibchan_pd_settle(b->pd), 0);
	world_forget(w, THING_PD, b->pd);
	expect_eq(w, ibchan_pd_free(b->pd), 0);
}

/* Memory of the process that loads this module, for one work. */
static struct ibchan_mr *pin_plain(struct world *w, struct side *side, unsigned long addr)
{
	const struct ibchan_plain plain = {
		.addr = addr,
		.length = PAGE_SIZE,
		.max_sge = ibchan_channel_max_sge(side->ch, IBCHAN_OP_RECV),
		.num_sge = 1,
		.opcode = IBCHAN_OP_RECV,
	};

	return world_keep_mr(w, ibchan_mr_pin_user(side->pd, &plain, NULL));
}

/* Each of the two leaves it to the channel. That its domain can be given back tells the rest. */
static void a_plain_region_of_two_works_that_fail_goes_once(struct world *w)
{
	unsigned long addr = vm_mmap(NULL, 0, PAGE_SIZE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, 0);
	struct job *jobs = world_jobs(w, 2);
	struct side *b = &w->side[1];
	struct ibchan_mr *mr;
	struct ibchan_wr wr;
	int i;

	if (!expect(w, !IS_ERR_VALUE(addr)))
		return;
	mr = world_default_pair(w) ? NULL : pin_plain(w, b, addr);
	for (i = 0; mr && i < 2; i++) {
		jobs[i].sges[0] = ibchan_sge_unchecked(mr, 0, PAGE_SIZE);
		wr = ibchan_wr_receive(jobs[i].sges, 1);
		expect_eq(w, job_post(&jobs[i], b->ch, &wr, NULL), 0);
	}
	side_close(b);
	expect_eq(w, jobs_ended(jobs, 2), mr ? 2 : 0);
	expect_eq(w, jobs_repeated(jobs, 2), 0);
	expect_eq(w, vm_munmap(addr, PAGE_SIZE), 0);
}

static void a_domain_with_a_region_or_a_channel_stays(struct world *w)
{
	struct side *a = &w->side[0];

	if (world_default_pair(w))
		return;
	expect_eq(w, ibchan_pd_free(a->pd), -EBUSY);
	side_close(a);
	expect_eq(w, ibchan_pd_free(a->pd), -EBUSY);
}

static const struct test_case memory_cases[] = {
	CASE(lowmem_and_vmalloc_ranges_work_alike),
	CASE(a_range_may_begin_and_end_anywhere),
	CASE(a_shared_page_array_is_reached_as_one_range),
	CASE(pages_that_the_length_does_not_need_are_left_out),
	CASE(a_shared_region_ends_within_the_last_page_that_it_needs),
	CASE(a_scattered_page_that_is_not_needed_makes_no_gap),
	CASE(a_scatterlist_is_one_region),
	CASE(a_shared_scatterlist_with_holes_is_refused),
	CASE(an_empty_region_is_refused),
	CASE(a_range_of_a_terabyte_is_refused),
	CASE(a_shared_region_longer_than_the_device_can_is_refused),
	CASE(region_access_that_does_not_go_together_is_refused),
	CASE(a_local_region_has_no_key),
	CASE(an_element_comes_in_three_strengths),
	CASE(a_length_beyond_32_bits_is_told_from_one_that_leaves_the_region),
	CASE(an_offset_beyond_32_bits_is_not_cut),
	CASE(bounds_domain_and_access_are_checked_at_the_post),
	CASE(a_busy_region_cannot_be_deregistered),
	CASE(an_idle_region_is_a_shell_after_it_was_deregistered),
	CASE(a_region_that_is_given_back_twice_ends_once),
	CASE(a_region_given_up_while_busy_lives_until_its_last_work),
	CASE(a_plain_region_of_two_works_that_fail_goes_once),
	CASE(a_domain_with_a_region_or_a_channel_stays),
};

SUITE(memory);
