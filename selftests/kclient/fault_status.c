// SPDX-License-Identifier: GPL-2.0-only
/*
 * Completions that fail, with every status that there is.
 *
 * Which completion fails is a matter of count, so the cqs are polled here, and
 * nowhere else. The queue pair itself goes on, as none does whose completion has
 * failed; breaking the channel stands for that.
 */
#include "faults.h"

struct status_row {
	u32 status;
	u32 error;
	u32 class;
};

#define STATUS_ROW(nr, NAME, error, CLASS, hint) { nr, error, IBCHAN_CLASS_##CLASS },
static const struct status_row status_rows[] = {
	IBCHAN_STATUSES(STATUS_ROW)
};

/*
 * Works on the failing side, in the order of their posts, then the peer's. The
 * first two are unsignaled where there is such a thing.
 */
#define SUBJECT		2
#define BATCH		5
#define FIRST_RECEIVE	BATCH
#define RECEIVES	2
#define FIRST_OF_PEER	(FIRST_RECEIVE + RECEIVES)
#define NUM_JOBS	(FIRST_OF_PEER + BATCH)

/**
 * struct trial - one status of one opcode
 * @w: the world
 * @jobs: NUM_JOBS
 * @opcode: of the work that fails
 * @row: how
 */
struct trial {
	struct world *w;
	struct job *jobs;
	u8 opcode;
	const struct status_row *row;
};

/**
 * struct reaped - what somebody reaps for
 * @side: whose cq
 * @jobs: until these
 * @num: so many, have ended
 */
struct reaped {
	struct side *side;
	const struct job *jobs;
	u32 num;
};

static int reaped_all(void *arg)
{
	const struct reaped *reaped = arg;

	ibchan_cq_reap(reaped->side->send_cq, 16);
	return jobs_ended(reaped->jobs, reaped->num) == reaped->num;
}

static int reap_until_ended(struct side *side, const struct job *jobs, u32 num)
{
	struct reaped reaped = { side, jobs, num };

	return expect(side->world, fault_poll_until(reaped_all, &reaped));
}

static void post_batch(struct trial *trial)
{
	struct side *a = &trial->w->side[0];
	struct ibchan_wr wrs[BATCH];
	u32 accepted;
	u32 i;

	for (i = 0; i < BATCH; i++) {
		wrs[i] = job_wr(&trial->jobs[i], trial->opcode, a, i * 64, 64);
		wrs[i].wr_id = i;
		if (trial->opcode == IBCHAN_OP_SEND && i < SUBJECT)
			wrs[i].flags = IBCHAN_WR_UNSIGNALED;
	}
	expect_eq(trial->w, ibchan_post(a->ch, wrs, BATCH, &accepted, NULL), 0);
}

/* Two receives of the failing side stay behind; a failing receive has its peer send. */
static void post_others(struct trial *trial)
{
	struct side *a = &trial->w->side[0], *b = &trial->w->side[1];
	struct job *peers = &trial->jobs[FIRST_OF_PEER];
	u32 i;

	for (i = 0; i < RECEIVES; i++)
		expect_eq(trial->w, job_receive(&trial->jobs[FIRST_RECEIVE + i], a, 8192, 64),
			  0);
	for (i = 0; i < BATCH; i++) {
		if (trial->opcode == IBCHAN_OP_SEND)
			expect_eq(trial->w, job_receive(&peers[i], b, 0, 64), 0);
		if (trial->opcode == IBCHAN_OP_RECV)
			expect_eq(trial->w, job_send(&peers[i], b, 0, 64), 0);
	}
}

/*
 * Sends: the subject's is the first completion. Receives: the third, and all have come when the
 * sends have ended.
 */
static void have_it_fail(struct trial *trial)
{
	struct side *a = &trial->w->side[0], *b = &trial->w->side[1];
	struct fault fault;

	if (trial->opcode == IBCHAN_OP_RECV) {
		post_batch(trial);
		post_others(trial);
		reap_until_ended(b, &trial->jobs[FIRST_OF_PEER], BATCH);
		fault = fault_arm(IBCHAN_FAULT_COMPLETION, SUBJECT + 1, trial->row->status);
	} else {
		post_others(trial);
		fault = fault_arm(IBCHAN_FAULT_COMPLETION, 1, trial->row->status);
		post_batch(trial);
	}
	reap_until_ended(a, trial->jobs, BATCH);
	expect(trial->w, fault_fired(&fault));
}

static void expect_work_told(struct trial *trial)
{
	const struct ibchan_completion *completion = &trial->jobs[SUBJECT].completion;
	const struct status_row *row = trial->row;
	struct world *w = trial->w;
	u32 i;

	for (i = 0; i < SUBJECT; i++)
		expect_eq(w, trial->jobs[i].completion.error, 0);
	expect_eq(w, completion->status, row->status);
	expect_eq(w, completion->error, row->error);
	expect_eq(w, ibchan_status_class(completion->status), row->class);
	expect_eq(w, completion->wr_id, SUBJECT);
	expect_eq(w, completion->cookie, (uintptr_t)&w->side[0]);
	expect_eq(w, completion->opcode, trial->opcode);
	expect_eq(w, completion->bytes, 0);
}

static void expect_channel_broken(struct world *w, const struct status_row *row)
{
	struct side *a = &w->side[0];
	struct ibchan_reason reason = {};
	struct ibchan_channel_attr attr;
	struct ibchan_wr wr;
	u32 accepted;

	ibchan_channel_query(a->ch, &attr);
	expect_eq(w, attr.state, IBCHAN_CHANNEL_BROKEN);
	expect_eq(w, attr.status, row->status);
	expect_eq(w, attr.error, row->error);
	/* Where the cause is looked for, the owner is told behind that. */
	expect_soon(w, atomic_read(&a->broken) == 1);
	expect_eq(w, a->error, -(int)row->error);
	wr = ibchan_wr_send(side_sge(a, 0, 64), 1);
	expect_eq(w, ibchan_post(a->ch, &wr, 1, &accepted, &reason), -ESHUTDOWN);
	expect_eq(w, reason.code, IBCHAN_REASON_BROKEN);
	expect_eq(w, reason.value[0], row->error);
	expect_eq(w, reason.value[1], row->status);
}

/* The first error stays, and what was behind it ends once. */
static void end_trial(struct trial *trial)
{
	struct side *a = &trial->w->side[0], *b = &trial->w->side[1];
	struct world *w = trial->w;
	struct ibchan_channel_attr attr;

	ibchan_channel_break(a->ch, -EPIPE);
	ibchan_channel_query(a->ch, &attr);
	expect_eq(w, attr.error, trial->row->error);
	expect_eq(w, attr.status, trial->row->status);
	side_close(a);
	side_close(b);
	expect_eq(w, atomic_read(&a->broken), 1);
	expect_eq(w, jobs_ended(trial->jobs, FIRST_OF_PEER), FIRST_OF_PEER);
	expect_eq(w, jobs_repeated(trial->jobs, NUM_JOBS), 0);
}

static void run_trial(struct trial *trial)
{
	struct world *w = trial->w;
	u32 before = w->failures;
	struct pair_init init;

	pair_defaults(&init);
	init.cq_flags = IBCHAN_CQ_POLLED;
	if (fault_fresh_pair(w, &init))
		return;
	trial->jobs = world_jobs(w, NUM_JOBS);
	if (!trial->jobs)
		return;
	have_it_fail(trial);
	expect_work_told(trial);
	expect_channel_broken(w, trial->row);
	end_trial(trial);
	if (w->failures > before)
		pr_info("# opcode %u, status %s\n", trial->opcode,
			ibchan_status_name(trial->row->status));
}

static void try_each_status(struct world *w, u8 opcode)
{
	struct trial trial = { .w = w, .opcode = opcode };

	for (trial.row = status_rows + 1; trial.row < status_rows + ARRAY_SIZE(status_rows);
	     trial.row++)
		run_trial(&trial);
}

void a_send_that_fails_tells_its_status(struct world *w)
{
	try_each_status(w, IBCHAN_OP_SEND);
}

void a_receive_that_fails_tells_its_status(struct world *w)
{
	try_each_status(w, IBCHAN_OP_RECV);
}

/* Its success would have gone unsaid. In a queue for one work each is signaled. */
void an_unsignaled_work_by_wr_id_that_fails_is_told(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct pair_init init;
	struct ibchan_wr wr;
	u32 accepted;

	pair_defaults(&init);
	init.params.max_send_wr = 1;
	if (fault_pair(w, &init) || !side_share(b))
		return;
	wr = ibchan_wr_write(side_sge(a, 0, 64), 1, &b->remote);
	wr.flags = IBCHAN_WR_UNSIGNALED;
	wr.wr_id = 1;
	expect_eq(w, ibchan_post(a->ch, &wr, 1, &accepted, NULL), 0);
	expect_soon(w, !atomic_read(&a->reserved));
	expect_eq(w, atomic_read(&a->logged), 0);
	fault_arm(IBCHAN_FAULT_COMPLETION, 1, IBCHAN_STATUS_REM_ACCESS_ERR);
	wr.wr_id = 2;
	expect_eq(w, ibchan_post(a->ch, &wr, 1, &accepted, NULL), 0);
	if (!expect_soon(w, atomic_read(&a->logged)))
		return;
	expect_eq(w, a->log[0].wr_id, 2);
	expect_eq(w, a->log[0].status, IBCHAN_STATUS_REM_ACCESS_ERR);
	expect_eq(w, a->log[0].error, EREMOTEIO);
	expect_eq(w, atomic_read(&a->logged), 1);
	expect_eq(w, atomic_read(&a->reserved), 0);
}

/* The device has flushed and never said why. */
void a_flush_that_nothing_explains_cancels_its_channel(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_channel_attr attr;
	struct pair_init init;

	pair_defaults(&init);
	init.two_cqs = 1;
	if (fault_pair(w, &init) || !side_share(b))
		return;
	fault_arm(IBCHAN_FAULT_COMPLETION, 1, IBCHAN_STATUS_WR_FLUSH_ERR);
	expect_eq(w, ibchan_channel_write(a->ch, side_sge(a, 0, 64), 1, &b->remote, NULL),
		  -ECANCELED);
	if (!expect_soon(w, atomic_read(&a->broken) == 1))
		return;
	expect_eq(w, a->error, -ECANCELED);
	ibchan_channel_query(a->ch, &attr);
	expect_eq(w, attr.status, IBCHAN_STATUS_WR_FLUSH_ERR);
}
