// SPDX-License-Identifier: GPL-2.0-only
/* Posts of which the device takes a part, or nothing. */
#include "faults.h"

#define BATCH		16
#define WORK_BYTES	64

/**
 * struct batch - what is posted, and how the device fails it
 * @w: the world
 * @jobs: BATCH for the batch, BATCH for the peer's sends
 * @wrs: the batch
 * @opcode: of all of them
 * @flags: of all of them
 * @by_wr_id: they complete through the sink
 * @taken: how many the device takes before it fails
 */
struct batch {
	struct world *w;
	struct job *jobs;
	struct ibchan_wr wrs[BATCH];
	u8 opcode;
	u8 flags;
	int by_wr_id;
	u32 taken;
};

static void fill_batch(struct batch *batch)
{
	struct side *a = &batch->w->side[0], *b = &batch->w->side[1];
	struct ibchan_wr *wr;
	u32 i;

	for (i = 0; i < BATCH; i++) {
		wr = &batch->wrs[i];
		*wr = job_wr(&batch->jobs[i], batch->opcode, a, i * WORK_BYTES, WORK_BYTES);
		wr->flags = batch->flags;
		wr->wr_id = i;
		if (batch->by_wr_id)
			wr->work = NULL;
		if (batch->opcode != IBCHAN_OP_WRITE)
			continue;
		wr->remote_addr = b->remote.addr + i * WORK_BYTES;
		wr->rkey = b->remote.rkey;
		wr->remote_length = b->remote.length;
	}
}

static void reset_batch(struct batch *batch)
{
	struct side *a = &batch->w->side[0];
	u32 i;

	for (i = 0; i < 2 * BATCH; i++)
		atomic_set(&batch->jobs[i].ended, 0);
	atomic_set(&a->logged, 0);
	fill_batch(batch);
}

/* What receives wait for; a write needs nothing. */
static void send_to_batch(struct batch *batch)
{
	struct job *jobs = batch->jobs + BATCH;
	u32 i;

	for (i = 0; batch->opcode == IBCHAN_OP_RECV && i < BATCH; i++)
		expect_eq(batch->w, job_send(&jobs[i], &batch->w->side[1], i * WORK_BYTES,
					     WORK_BYTES), 0);
}

static struct fault arm_post(u8 opcode, u32 nth)
{
	return fault_arm(opcode == IBCHAN_OP_RECV ? IBCHAN_FAULT_POST_RECV :
						    IBCHAN_FAULT_POST_SEND, nth, FAULT_ERROR);
}

static void expect_post_failed(struct world *w, const struct ibchan_reason *reason, u32 wr)
{
	expect_eq(w, reason->code, IBCHAN_REASON_POST_FAILED);
	expect_eq(w, reason->value[0], -FAULT_ERROR);
	expect_eq(w, reason->wr, wr);
}

/* What was taken ends; nobody has heard of the rest. */
static void post_and_fail(struct batch *batch)
{
	struct side *a = &batch->w->side[0];
	struct ibchan_reason reason = {};
	struct world *w = batch->w;
	u32 rest = BATCH - batch->taken;
	u32 accepted = ~0U;
	struct fault fault;

	fault = arm_post(batch->opcode, batch->taken + 1);
	expect_eq(w, ibchan_post(a->ch, batch->wrs, BATCH, &accepted, &reason), FAULT_ERROR);
	expect(w, fault_fired(&fault));
	expect_eq(w, accepted, batch->taken);
	expect_post_failed(w, &reason, batch->taken);
	expect(w, channel_in_flight(a->ch) <= batch->taken);
	expect(w, atomic_read(&a->reserved) <= batch->taken);
	if (batch->opcode != IBCHAN_OP_RECV && !(batch->flags & IBCHAN_WR_UNSIGNALED))
		expect_soon(w, jobs_ended(batch->jobs, BATCH) + atomic_read(&a->logged) ==
			       batch->taken);
	expect_eq(w, jobs_ended(batch->jobs + batch->taken, rest), 0);
}

/* There is room for it, and nothing is in its way. The last one asks for a completion. */
static void post_the_rest(struct batch *batch)
{
	struct ibchan_reason reason = {};
	u32 rest = BATCH - batch->taken;
	u32 accepted = 0;

	batch->wrs[BATCH - 1].flags &= ~IBCHAN_WR_UNSIGNALED;
	expect_eq(batch->w, ibchan_post(batch->w->side[0].ch, batch->wrs + batch->taken, rest,
					&accepted, &reason), 0);
	if (!expect_eq(batch->w, accepted, rest))
		pr_info("# refused by reason %u\n", reason.code);
}

static u32 completions_wanted(const struct batch *batch)
{
	return batch->by_wr_id && batch->flags & IBCHAN_WR_UNSIGNALED ? 1 : BATCH;
}

static void expect_success(struct batch *batch)
{
	struct side *a = &batch->w->side[0];
	u32 i;

	if (!batch->by_wr_id)
		for (i = 0; i < BATCH; i++)
			expect_eq(batch->w, batch->jobs[i].completion.status, 0);
	else
		for (i = 0; i < completions_wanted(batch); i++)
			expect_eq(batch->w, a->log[i].status, 0);
}

static void expect_all_ended_once(struct batch *batch)
{
	struct side *a = &batch->w->side[0];
	struct world *w = batch->w;

	expect_soon(w, jobs_ended(batch->jobs, BATCH) + atomic_read(&a->logged) ==
		       completions_wanted(batch));
	if (batch->opcode != IBCHAN_OP_WRITE)
		expect_soon(w, jobs_ended(batch->jobs + BATCH, BATCH) == BATCH);
	expect_eq(w, jobs_repeated(batch->jobs, 2 * BATCH), 0);
	expect_eq(w, channel_in_flight(a->ch), 0);
	expect_eq(w, atomic_read(&a->reserved), 0);
	expect_eq(w, channel_state(a->ch), IBCHAN_CHANNEL_CONNECTED);
	expect_success(batch);
}

static void run_batch(struct batch *batch)
{
	u32 before = batch->w->failures;

	reset_batch(batch);
	post_and_fail(batch);
	post_the_rest(batch);
	send_to_batch(batch);
	expect_all_ended_once(batch);
	if (batch->w->failures > before)
		pr_info("# opcode %u, flags %#x, %s, %u of %u taken\n", batch->opcode,
			batch->flags, batch->by_wr_id ? "by wr_id" : "with done()",
			batch->taken, BATCH);
}

/* The queue is as deep as the batch: a place that stays taken shows. */
static struct batch *batch_new(struct world *w, u8 opcode)
{
	struct batch *batch = world_alloc(w, sizeof(*batch));
	struct pair_init init;

	pair_defaults(&init);
	init.params.max_send_wr = BATCH;
	init.params.max_recv_wr = BATCH;
	batch->w = w;
	batch->opcode = opcode;
	batch->jobs = world_jobs(w, 2 * BATCH);
	if (!batch->jobs || fault_pair(w, &init) || !side_share(&w->side[1]))
		return NULL;
	return batch;
}

static void run_batches(struct world *w, u8 opcode, const u8 *flags, u32 num_flags)
{
	static const u32 taken[] = { 0, 1, 7, 15 };
	struct batch *batch = batch_new(w, opcode);
	u32 i, j;

	for (i = 0; batch && i < num_flags; i++) {
		for (j = 0; j < ARRAY_SIZE(taken); j++) {
			batch->flags = flags[i];
			batch->taken = taken[j];
			batch->by_wr_id = 0;
			run_batch(batch);
			batch->by_wr_id = 1;
			run_batch(batch);
		}
	}
}

void receives_that_the_device_does_not_take_never_were(struct world *w)
{
	static const u8 flags[] = { 0, IBCHAN_WR_EXCLUSIVE };

	run_batches(w, IBCHAN_OP_RECV, flags, ARRAY_SIZE(flags));
}

void writes_that_the_device_does_not_take_never_were(struct world *w)
{
	static const u8 flags[] = {
		0, IBCHAN_WR_EXCLUSIVE, IBCHAN_WR_UNSIGNALED,
		IBCHAN_WR_EXCLUSIVE | IBCHAN_WR_UNSIGNALED,
	};

	run_batches(w, IBCHAN_OP_WRITE, flags, ARRAY_SIZE(flags));
}

void a_batch_of_two_chains_can_fail_in_the_second(struct world *w)
{
	const u32 num = 2 * BATCH, taken = BATCH + 3;
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_wr *wrs = world_alloc(w, num * sizeof(*wrs));
	struct job *jobs = world_jobs(w, num);
	struct ibchan_reason reason = {};
	struct pair_init init;
	u32 accepted = 0;
	u32 i;

	pair_defaults(&init);
	init.params.max_send_wr = num;
	if (fault_pair(w, &init) || !side_share(b))
		return;
	for (i = 0; i < num; i++) {
		wrs[i] = job_wr(&jobs[i], IBCHAN_OP_WRITE, a, i * WORK_BYTES, WORK_BYTES);
		wrs[i].remote_addr = b->remote.addr;
		wrs[i].rkey = b->remote.rkey;
		wrs[i].remote_length = b->remote.length;
	}
	arm_post(IBCHAN_OP_WRITE, taken + 1);
	expect_eq(w, ibchan_post(a->ch, wrs, num, &accepted, &reason), FAULT_ERROR);
	expect_eq(w, accepted, taken);
	expect_post_failed(w, &reason, taken);
	expect_soon(w, jobs_ended(jobs, num) == taken);
	expect_eq(w, jobs_ended(jobs, taken), taken);
	expect_eq(w, jobs_repeated(jobs, num), 0);
}

/* What comes behind it is not posted either, though its own queue would take it. */
void a_mixed_batch_ends_at_the_queue_that_fails(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, 6);
	struct ibchan_reason reason = {};
	struct ibchan_wr wrs[6];
	struct pair_init init;
	u32 accepted = 0;
	u32 i;

	faults_off();
	pair_defaults(&init);
	if (world_sides(w, &init) || side_connect(w, a->ch, a->ch))
		return;
	for (i = 0; i < 6; i++)
		wrs[i] = job_wr(&jobs[i], i % 2 ? IBCHAN_OP_SEND : IBCHAN_OP_RECV, a,
				i * WORK_BYTES, WORK_BYTES);
	arm_post(IBCHAN_OP_RECV, 3);
	expect_eq(w, ibchan_post(a->ch, wrs, 6, &accepted, &reason), FAULT_ERROR);
	expect_eq(w, accepted, 4);
	expect_post_failed(w, &reason, 4);
	expect_soon(w, jobs_ended(jobs, 6) == 4);
	expect_eq(w, jobs_ended(jobs + 4, 2), 0);
	expect_eq(w, channel_in_flight(a->ch), 0);
}

