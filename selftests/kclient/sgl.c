// SPDX-License-Identifier: GPL-2.0-only
/* Requests that move scatterlists (B10). */
#include <linux/iopoll.h>
#include <linux/scatterlist.h>

#include "job.h"
#include "suites.h"

#define ENTRIES		200
#define STRIDE		512
#define GUARD		0x5a
#define AT		256	/* where a write arrives, with guards before and behind */

/**
 * struct list - a scatterlist over a side's buffer
 * @sgl: its entries, STRIDE bytes apart
 * @entries: how many
 * @length: bytes in all
 * @flat: as many, in one piece
 */
struct list {
	struct scatterlist *sgl;
	u32 entries;
	u32 length;
	u8 *flat;
};

static struct list *make_list(struct side *side, u32 entries, u32 bytes)
{
	struct list *list = world_alloc(side->world, sizeof(*list));
	u32 i;

	if (!list)
		return NULL;
	list->entries = entries;
	list->sgl = world_alloc(side->world, ENTRIES * sizeof(*list->sgl));
	list->flat = world_kalloc(side->world, SIDE_BYTES);
	if (!list->sgl || !list->flat)
		return NULL;
	sg_init_table(list->sgl, entries);
	for (i = 0; i < entries; i++) {
		/* Of different lengths, so that an entry in a wrong place is seen. */
		u32 length = bytes - (bytes > 8 ? i % 8 : 0);

		sg_set_buf(&list->sgl[i], side->buf + i * STRIDE, length);
		list->length += length;
	}
	return list;
}

/* Of the same memory: each request maps a list of its own. */
static struct list *list_again(struct world *w, const struct list *list)
{
	struct list *again = world_alloc(w, sizeof(*again));

	if (!again)
		return NULL;
	*again = *list;
	again->sgl = world_alloc(w, list->entries * sizeof(*list->sgl));
	if (!again->sgl)
		return NULL;
	memcpy(again->sgl, list->sgl, list->entries * sizeof(*list->sgl));
	return again;
}

static int list_pair(struct world *w, u32 depth, u16 max_sgl)
{
	struct pair_init init;

	pair_defaults(&init);
	init.params.max_send_wr = depth;
	init.max_sgl = max_sgl;
	return world_pair(w, &init) || !side_share(&w->side[1]);
}

/* Makes a pair for lists of any length, and a list of the first side's memory. */
static struct list *open_list(struct world *w, u32 entries, u32 bytes)
{
	return list_pair(w, ENTRIES, ENTRIES) ? NULL : make_list(&w->side[0], entries, bytes);
}

static struct ibchan_wr list_wr(struct world *w, u8 opcode, const struct list *list)
{
	struct ibchan_remote remote;

	expect_eq(w, ibchan_remote_sub(&w->side[1].remote, AT, list->length, &remote), 0);
	return ibchan_wr_sgl(opcode, list->sgl, list->entries, &remote);
}

/* Fills what the list's bytes come from, and clears what they go to; or looks at that. */
static void fill_ends(struct world *w, u8 opcode, const struct list *list, u32 seed)
{
	struct side *a = &w->side[0], *b = &w->side[1];

	memset(opcode == IBCHAN_OP_WRITE ? b->buf : a->buf, GUARD, SIDE_BYTES);
	if (opcode == IBCHAN_OP_READ) {
		fill_pattern(b->buf + AT, list->length, seed);
		return;
	}
	fill_pattern(list->flat, list->length, seed);
	sg_copy_from_buffer(list->sgl, list->entries, list->flat, list->length);
}

static void check_ends(struct world *w, u8 opcode, const struct list *list, u32 seed)
{
	struct side *a = &w->side[0], *b = &w->side[1];

	if (opcode == IBCHAN_OP_WRITE) {
		expect(w, has_pattern(b->buf + AT, list->length, seed));
		expect(w, !memchr_inv(b->buf, GUARD, AT));
		expect(w, !memchr_inv(b->buf + AT + list->length, GUARD,
				      SIDE_BYTES - AT - list->length));
		return;
	}
	sg_copy_to_buffer(list->sgl, list->entries, list->flat, list->length);
	expect(w, has_pattern(list->flat, list->length, seed));
	/* Between the first entry and the second one nothing has changed. */
	expect(w, !memchr_inv(a->buf + list->sgl[0].length, GUARD, STRIDE - list->sgl[0].length));
}

static void move_and_check(struct world *w, u8 opcode, u32 entries, u32 bytes)
{
	struct list *list = make_list(&w->side[0], entries, bytes);
	struct job *job = world_jobs(w, 1);
	struct ibchan_wr wr;

	if (!list || !job)
		return;
	fill_ends(w, opcode, list, entries + bytes);
	wr = list_wr(w, opcode, list);
	expect_eq(w, job_post(job, w->side[0].ch, &wr, NULL), 0);
	if (!job_ended(job))
		return;
	expect_eq(w, job->completion.error, 0);
	check_ends(w, opcode, list, entries + bytes);
}

static const struct { u32 entries, bytes; } shapes[] = {
	{ 1, 1 }, { 1, 500 }, { 2, 64 }, { 3, 7 }, { 31, 100 }, { 32, 100 }, { 33, 100 },
	{ 64, 400 }, { 65, 13 }, { ENTRIES, 500 },
};

static void move_all_shapes(struct world *w, u8 opcode)
{
	int i;

	if (list_pair(w, ENTRIES, ENTRIES))
		return;
	for (i = 0; i < ARRAY_SIZE(shapes); i++)
		move_and_check(w, opcode, shapes[i].entries, shapes[i].bytes);
	expect_eq(w, channel_in_flight(w->side[0].ch), 0);
}

static void a_list_arrives_whole_whatever_its_shape(struct world *w)
{
	move_all_shapes(w, IBCHAN_OP_WRITE);
}

static void a_list_is_read_into_whatever_its_shape(struct world *w)
{
	move_all_shapes(w, IBCHAN_OP_READ);
}

#define SMALL		14	/* as many as still fit the requests of one chain */
#define SMALL_BYTES	64

/* What one chain has room for, but not for the WRs of two long lists and of all others. */
static void long_lists_and_small_requests_go_in_one_post(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 2 + SMALL);
	struct ibchan_wr *wrs = world_alloc(w, (2 + SMALL) * sizeof(*wrs));
	struct list *lists[2];
	struct pair_init init;
	u32 accepted;
	int i;

	pair_defaults(&init);
	init.params.max_send_wr = ENTRIES;
	init.params.max_send_sge = 4;
	init.max_sgl = 32;
	if (world_pair(w, &init) || !side_share(b))
		return;
	lists[0] = make_list(a, 32, 100);
	/* The first entries of it once more. */
	lists[1] = make_list(a, 18, 100);
	if (!lists[0] || !lists[1] || !jobs)
		return;
	fill_ends(w, IBCHAN_OP_WRITE, lists[0], 5);
	for (i = 0; i < 2; i++)
		wrs[i] = list_wr(w, IBCHAN_OP_WRITE, lists[i]);
	for (i = 0; i < SMALL; i++) {
		u64 at = SIDE_BYTES - (i + 1) * SMALL_BYTES;
		struct ibchan_remote remote;

		fill_pattern(a->buf + at, SMALL_BYTES, i);
		expect_eq(w, ibchan_remote_sub(&b->remote, at, SMALL_BYTES, &remote), 0);
		jobs[2 + i].sges[0] = ibchan_sge_unchecked(a->local, at, SMALL_BYTES);
		wrs[2 + i] = ibchan_wr_write(jobs[2 + i].sges, 1, &remote);
	}
	for (i = 0; i < 2 + SMALL; i++)
		wrs[i].work = &jobs[i].work;
	expect_eq(w, ibchan_post(a->ch, wrs, 2 + SMALL, &accepted, NULL), 0);
	expect_soon(w, jobs_ended(jobs, 2 + SMALL) == 2 + SMALL);
	for (i = 0; i < 2 + SMALL; i++)
		expect_eq(w, jobs[i].completion.error, 0);
	expect(w, has_pattern(b->buf + AT, lists[0]->length, 5));
	for (i = 0; i < SMALL; i++)
		expect(w, has_pattern(b->buf + SIDE_BYTES - (i + 1) * SMALL_BYTES, SMALL_BYTES, i));
}

static void lists_beside_each_other_end_in_order_and_once(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, 64);
	struct list *list;
	struct ibchan_wr wr;
	int i, ret = 0;

	list = open_list(w, 70, 64);
	if (!list)
		return;
	for (i = 0; i < 64 && !ret; i++) {
		list = list_again(w, list);
		if (!list)
			return;
		wr = list_wr(w, i % 3 ? IBCHAN_OP_WRITE : IBCHAN_OP_READ, list);
		if (i % 2 && i != 63)
			wr.flags |= IBCHAN_WR_UNSIGNALED;
		expect_soon(w, (ret = job_post(&jobs[i], a->ch, &wr, NULL)) != -EAGAIN);
	}
	expect_eq(w, ret, 0);
	expect_soon(w, jobs_ended(jobs, 64) == 64);
	expect_eq(w, jobs_repeated(jobs, 64), 0);
	for (i = 0; i < 64; i++)
		expect_eq(w, jobs[i].completion.error, 0);
}

/* Nobody else looks at a polled cq. */
static bool reap_for(const struct job *job, struct ibchan_channel *ch)
{
	ibchan_channel_reap(ch, NULL);
	return atomic_read(&job->ended);
}

static bool ends_when_reaped(const struct job *job, struct ibchan_channel *ch)
{
	bool has_ended;

	return !read_poll_timeout(reap_for, has_ended, has_ended, 100, patience * USEC_PER_MSEC,
				  false, job, ch);
}

/* Of a queue that has room for one list and half of one, on a cq that nobody reaps meanwhile. */
static void a_list_that_finds_too_few_places_takes_none(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, 2);
	struct ibchan_reason reason = {};
	struct ibchan_channel_attr attr;
	struct pair_init init;
	struct ibchan_wr wr;
	struct list *list;
	u32 places;

	pair_defaults(&init);
	init.max_sgl = ENTRIES;
	init.cq_flags = IBCHAN_CQ_POLLED;
	init.params.max_send_wr = ENTRIES;
	if (world_sides(w, &init))
		return;
	places = ibchan_sgl_places(a->ch, IBCHAN_OP_WRITE, ENTRIES);
	side_close(a);
	init.params.max_send_wr = places + places / 2;
	a->ch = side_build(a, &init.params);
	if (!a->ch || side_connect(w, a->ch, w->side[1].ch) ||
	    side_connect(w, w->side[1].ch, a->ch) || !side_share(&w->side[1]))
		return;
	list = make_list(a, ENTRIES, 16);
	if (!list)
		return;
	wr = list_wr(w, IBCHAN_OP_WRITE, list);
	expect_eq(w, job_post(&jobs[0], a->ch, &wr, NULL), 0);
	if (places > 1) {
		expect_eq(w, job_post(&jobs[1], a->ch, &wr, &reason), -EAGAIN);
		expect_eq(w, reason.code, IBCHAN_REASON_SEND_QUEUE_FULL);
		ibchan_channel_query(a->ch, &attr);
		expect_eq(w, attr.sends_in_flight, places);
	}
	expect(w, ends_when_reaped(&jobs[0], a->ch));
	expect_eq(w, job_post(&jobs[1], a->ch, &wr, NULL), 0);
	expect(w, ends_when_reaped(&jobs[1], a->ch));
}

static void refused(struct world *w, const struct ibchan_wr *wr, int error, u32 code)
{
	struct ibchan_reason reason = {};
	u32 accepted;

	expect_eq(w, ibchan_post(w->side[0].ch, wr, 1, &accepted, &reason), error);
	expect_eq(w, reason.code, code);
	expect_eq(w, accepted, 0);
	expect_eq(w, channel_in_flight(w->side[0].ch), 0);
}

static void a_list_that_is_not_right_is_refused_and_says_why(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *job = world_jobs(w, 1);
	struct ibchan_wr good, wr;
	struct list *list;

	if (list_pair(w, 64, 64))
		return;
	list = make_list(a, 64, 64);
	if (!list)
		return;
	good = list_wr(w, IBCHAN_OP_WRITE, list);
	good.work = &job->work;
	wr = good;
	wr.num_sge = 65;
	refused(w, &wr, -EINVAL, IBCHAN_REASON_TOO_MANY_ELEMENTS);
	wr = good;
	wr.num_sge = 0;
	refused(w, &wr, -EINVAL, IBCHAN_REASON_EMPTY_RANGE);
	wr = good;
	wr.work = NULL;
	refused(w, &wr, -EINVAL, IBCHAN_REASON_NO_SINK);
	wr = good;
	wr.remote_length--;
	refused(w, &wr, -EINVAL, IBCHAN_REASON_REMOTE_BOUNDS);
	wr = good;
	wr.opcode = IBCHAN_OP_SEND;
	refused(w, &wr, -EINVAL, IBCHAN_REASON_WR_FLAGS);
	expect_eq(w, job_post(job, a->ch, &good, NULL), 0);
	job_ended(job);
}

static void a_channel_that_was_not_built_for_lists_refuses_them(struct world *w)
{
	struct job *job = world_jobs(w, 1);
	struct ibchan_wr wr;
	struct list *list;

	if (list_pair(w, 64, 0))
		return;
	list = make_list(&w->side[0], 1, 64);
	if (!list)
		return;
	wr = list_wr(w, IBCHAN_OP_WRITE, list);
	wr.work = &job->work;
	refused(w, &wr, -EINVAL, IBCHAN_REASON_TOO_MANY_ELEMENTS);
	expect_eq(w, ibchan_sgl_places(w->side[0].ch, IBCHAN_OP_SEND, 1), 0);
}

static void an_immediate_tells_that_all_of_a_list_is_there(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 2);
	struct ibchan_wr wr;
	struct list *list;

	list = open_list(w, ENTRIES, 100);
	if (!list)
		return;
	fill_ends(w, IBCHAN_OP_WRITE, list, 4);
	expect_eq(w, job_receive(&jobs[1], b, SIDE_BYTES - 64, 64), 0);
	wr = list_wr(w, IBCHAN_OP_WRITE, list);
	ibchan_wr_set_imm(&wr, 77);
	expect_eq(w, job_post(&jobs[0], a->ch, &wr, NULL), 0);
	if (!job_ended(&jobs[1]))
		return;
	expect_eq(w, jobs[1].completion.imm, 77);
	expect(w, has_pattern(b->buf + AT, list->length, 4));
	job_ended(&jobs[0]);
}

static void a_list_that_the_peer_refuses_ends_once_with_its_error(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, 2);
	struct ibchan_wr wr;
	struct list *list;

	list = open_list(w, ENTRIES, 100);
	if (!list)
		return;
	wr = list_wr(w, IBCHAN_OP_WRITE, list);
	wr.rkey ^= 0x80;
	expect_eq(w, job_post(&jobs[0], a->ch, &wr, NULL), 0);
	if (!job_ended(&jobs[0]))
		return;
	expect_eq(w, jobs[0].completion.error, EREMOTEIO);
	expect_soon(w, channel_state(a->ch) == IBCHAN_CHANNEL_BROKEN);
	expect_eq(w, job_post(&jobs[1], a->ch, &wr, NULL), -ESHUTDOWN);
	expect_eq(w, jobs_repeated(jobs, 1), 0);
}

static void lists_of_a_channel_that_breaks_end_once(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, 32);
	struct ibchan_wr wr;
	struct list *list;
	int i, posted = 0;

	list = open_list(w, 100, 256);
	if (!list)
		return;
	for (i = 0; i < 32; i++) {
		list = list_again(w, list);
		if (!list)
			return;
		wr = list_wr(w, i % 2 ? IBCHAN_OP_READ : IBCHAN_OP_WRITE, list);
		wr.flags |= IBCHAN_WR_UNSIGNALED;
		if (job_post(&jobs[i], a->ch, &wr, NULL))
			break;
		posted++;
		if (i == 20)
			ibchan_channel_break(a->ch, -ECANCELED);
	}
	expect(w, posted > 0);
	ibchan_channel_break(a->ch, -ECANCELED);
	expect_soon(w, jobs_ended(jobs, 32) == posted);
	expect_eq(w, jobs_repeated(jobs, 32), 0);
}

/* The request is gone when this returns; the list is not. */
static noinline int post_list_from_stack(struct job *job, u8 opcode, const struct list *list)
{
	struct ibchan_wr wr = list_wr(job->world, opcode, list);
	int ret = job_post(job, job->world->side[0].ch, &wr, NULL);

	memset(&wr, GUARD, sizeof(wr));
	barrier_data(&wr);
	return ret;
}

static int has_ended(void *job)
{
	return atomic_read(&((struct job *)job)->ended);
}

/* On polled cqs nothing ends before the case looks. */
static void of_a_request_only_its_list_has_to_stay(struct world *w)
{
	static const u8 opcodes[] = { IBCHAN_OP_WRITE, IBCHAN_OP_READ };
	struct pair_init init;
	struct list *list;
	int i;

	pair_defaults(&init);
	init.params.max_send_wr = ENTRIES;
	init.max_sgl = ENTRIES;
	init.cq_flags = IBCHAN_CQ_POLLED;
	if (world_pair(w, &init) || !side_share(&w->side[1]))
		return;
	list = make_list(&w->side[0], ENTRIES, 100);
	for (i = 0; list && i < ARRAY_SIZE(opcodes); i++) {
		struct job *job = world_jobs(w, 1);

		fill_ends(w, opcodes[i], list, i);
		expect_eq(w, post_list_from_stack(job, opcodes[i], list), 0);
		expect_eq(w, ibchan_cq_wait(w->side[0].send_cq, has_ended, job,
					    patience * NSEC_PER_MSEC), 1);
		check_ends(w, opcodes[i], list, i);
	}
}

static const struct test_case sgl_cases[] = {
	CASE(a_list_arrives_whole_whatever_its_shape),
	CASE(a_list_is_read_into_whatever_its_shape),
	CASE(long_lists_and_small_requests_go_in_one_post),
	CASE(lists_beside_each_other_end_in_order_and_once),
	CASE(a_list_that_finds_too_few_places_takes_none),
	CASE(a_list_that_is_not_right_is_refused_and_says_why),
	CASE(a_channel_that_was_not_built_for_lists_refuses_them),
	CASE(an_immediate_tells_that_all_of_a_list_is_there),
	CASE(a_list_that_the_peer_refuses_ends_once_with_its_error),
	CASE(lists_of_a_channel_that_breaks_end_once),
	CASE(of_a_request_only_its_list_has_to_stay),
};

SUITE(sgl);
