// SPDX-License-Identifier: GPL-2.0-only
/* Atomics, fences, solicited messages, inline data (B3). */
#include <linux/string.h>

#include "job.h"
#include "suites.h"

static int atomic_pair(struct world *w)
{
	struct pair_init init;

	pair_defaults(&init);
	init.params.access = IBCHAN_ACCESS_ALL;
	return world_pair(w, &init);
}

#define INLINE_ROOM	64

/* Where the device takes that much; hardware often takes none of kernel queue pairs. */
static int inline_pair(struct world *w)
{
	struct pair_init init;

	if (world_inline_room(w, INLINE_ROOM) < INLINE_ROOM) {
		world_skip(w, "the device takes less inline data");
		return -EOPNOTSUPP;
	}
	pair_defaults(&init);
	init.params.access = IBCHAN_ACCESS_ALL;
	init.params.max_inline_data = INLINE_ROOM;
	return world_pair(w, &init);
}

/* The peer's word lies at the start of its buffer, the answer in the second of ours. */
static void fetch_and_add_adds_and_tells_the_old_value(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_outcome outcome = {};
	u64 *word, *old;

	if (atomic_pair(w) || !side_share(b))
		return;
	word = (u64 *)b->buf;
	old = (u64 *)a->buf;
	*word = 0x100000001ULL;
	expect_eq(w, ibchan_channel_fetch_add(a->ch, side_sge(a, 0, 8), &b->remote,
					      0xffffffffULL, &outcome), 0);
	expect_eq(w, outcome.completion.opcode, IBCHAN_OP_FETCH_ADD);
	expect_eq(w, *old, 0x100000001ULL);
	expect_eq(w, *word, 0x200000000ULL);
}

static void compare_and_swap_swaps_what_is_equal_only(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_wr wr;
	u64 *word, *old;

	if (atomic_pair(w) || !side_share(b))
		return;
	word = (u64 *)b->buf;
	old = (u64 *)a->buf;
	*word = 41;
	wr = ibchan_wr_compare_swap(side_sge(a, 0, 8), &b->remote, 41, 1ULL << 40);
	expect_eq(w, ibchan_channel_run(a->ch, &wr, NULL), 0);
	expect_eq(w, *old, 41);
	expect_eq(w, *word, 1ULL << 40);
	expect_eq(w, ibchan_channel_run(a->ch, &wr, NULL), 0);
	expect_eq(w, *old, 1ULL << 40);
	expect_eq(w, *word, 1ULL << 40);
}

static void what_an_opcode_does_not_use_is_not_looked_at(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *job = world_jobs(w, 1);
	struct ibchan_wr wr;

	if (atomic_pair(w))
		return;
	wr = ibchan_wr_send(side_sge(a, 0, 8), 1);
	wr.operand = 1;
	wr.swap = 2;
	wr.remote_addr = 3;
	wr.remote_length = 4;
	wr.rkey = 5;
	wr.imm = 6;
	wr.data = &wr;
	wr.data_length = 7;
	expect_eq(w, job_receive(job, b, 0, 8), 0);
	expect_eq(w, ibchan_channel_run(a->ch, &wr, NULL), 0);
	if (job_ended(job))
		expect_eq(w, job->completion.flags, 0);
}

/* The bytes are on the stack and are spoilt as soon as the post has returned. */
static void inline_bytes_are_taken_during_the_post(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 2);
	struct ibchan_wr wr = ibchan_wr_send(NULL, 0);
	u8 bytes[64];

	if (inline_pair(w))
		return;
	expect_eq(w, job_receive(&jobs[0], b, 0, 100), 0);
	fill_pattern(bytes, sizeof(bytes), 4);
	ibchan_wr_set_inline(&wr, bytes, sizeof(bytes));
	expect_eq(w, job_post(&jobs[1], a->ch, &wr, NULL), 0);
	memset(bytes, 0xff, sizeof(bytes));
	if (!job_ended(&jobs[0]) || !job_ended(&jobs[1]))
		return;
	expect_eq(w, jobs[0].completion.bytes, 64);
	expect(w, has_pattern(b->buf, 64, 4));
}

static const struct test_case ops_cases[] = {
	CASE(fetch_and_add_adds_and_tells_the_old_value),
	CASE(compare_and_swap_swaps_what_is_equal_only),
	CASE(what_an_opcode_does_not_use_is_not_looked_at),
	CASE(inline_bytes_are_taken_during_the_post),
};

SUITE(ops);
