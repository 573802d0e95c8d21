// SPDX-License-Identifier: GPL-2.0-only
/* Error objects; refusals told apart from failed works (W3, C8, law 4). */
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <rdma/ib_verbs.h>

#include "job.h"
#include "suites.h"

/* Gives up soon, for cases in which no answer comes. */
static void impatient(struct pair_init *init)
{
	pair_defaults(init);
	init->params.ack_timeout = 8;
	init->params.ack_retries = 1;
}

static void expect_error(struct world *w, const struct ibchan_completion *completion,
			 u32 status, u32 error, u32 class)
{
	expect_eq(w, completion->status, status);
	expect_eq(w, completion->error, error);
	expect_eq(w, ibchan_status_error(completion->status), error);
	expect_eq(w, ibchan_status_class(completion->status), class);
	expect(w, *ibchan_status_hint(completion->status));
}

static void a_wrong_key_is_a_remote_access_error(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_outcome outcome = {};
	struct ibchan_channel_attr attr;

	if (world_default_pair(w) || !side_share(b))
		return;
	b->remote.rkey ^= 0x55;
	expect_eq(w, ibchan_channel_write(a->ch, side_sge(a, 0, 64), 1, &b->remote, &outcome),
		  -EREMOTEIO);
	expect_eq(w, outcome.posted, 1);
	expect_error(w, &outcome.completion, IBCHAN_STATUS_REM_ACCESS_ERR, EREMOTEIO,
		     IBCHAN_CLASS_REMOTE);
	ibchan_channel_query(a->ch, &attr);
	expect_eq(w, attr.state, IBCHAN_CHANNEL_BROKEN);
	expect_eq(w, attr.error, EREMOTEIO);
	expect_eq(w, attr.status, IBCHAN_STATUS_REM_ACCESS_ERR);
	expect_soon(w, atomic_read(&a->broken) == 1);
	expect_eq(w, a->error, -EREMOTEIO);
}

/* The verbs say LOC_LEN_ERR and REM_INV_REQ_ERR; soft-RoCE may say the others. */
static void a_message_longer_than_its_receive_fails_on_both_sides(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *job = world_jobs(w, 1);
	struct ibchan_outcome outcome = {};
	int is_rxe;

	if (world_default_pair(w))
		return;
	memset(a->buf, 0xff, 101);
	expect_eq(w, job_receive(job, b, 0, 100), 0);
	expect_eq(w, ibchan_channel_send(a->ch, side_sge(a, 0, 101), 1, &outcome), -EREMOTEIO);
	is_rxe = outcome.completion.status == IBCHAN_STATUS_REM_OP_ERR;
	expect_error(w, &outcome.completion,
		     is_rxe ? IBCHAN_STATUS_REM_OP_ERR : IBCHAN_STATUS_REM_INV_REQ_ERR,
		     EREMOTEIO, IBCHAN_CLASS_REMOTE);
	if (job_ended(job))
		expect_error(w, &job->completion,
			     is_rxe ? IBCHAN_STATUS_LOC_QP_OP_ERR : IBCHAN_STATUS_LOC_LEN_ERR,
			     is_rxe ? EIO : EMSGSIZE, IBCHAN_CLASS_PROGRAMMING);
	/* Nothing beyond the receive was written. */
	expect(w, !memchr_inv(b->buf + 100, 0, 100));
	expect_eq(w, channel_state(a->ch), IBCHAN_CHANNEL_BROKEN);
	expect_eq(w, channel_state(b->ch), IBCHAN_CHANNEL_BROKEN);
}

static void a_peer_without_receives_is_an_rnr_error(struct world *w)
{
	struct side *a = &w->side[0];
	struct ibchan_outcome outcome = {};
	struct pair_init init;

	/* It answers, if late, that it has none: patient with one, not with the other. */
	pair_defaults(&init);
	init.params.ack_timeout = 18;
	init.params.rnr_retries = 1;
	init.params.min_rnr_timer = 1;
	if (world_pair(w, &init))
		return;
	expect_eq(w, ibchan_channel_send(a->ch, side_sge(a, 0, 8), 1, &outcome), -ETIMEDOUT);
	expect_eq(w, outcome.posted, 1);
	expect_error(w, &outcome.completion, IBCHAN_STATUS_RNR_RETRY_EXC_ERR, ETIMEDOUT,
		     IBCHAN_CLASS_TIMEOUT);
}

static void reap_until_ended(struct ibchan_cq *cq, struct job *job)
{
	ktime_t end = after_ms(patience);

	while (!atomic_read(&job->ended) && ktime_before(ktime_get(), end)) {
		ibchan_cq_reap(cq, 1);
		wait_event_timeout(job->world->wait, 0, 1);
	}
}

/* Nobody but the case looks at the cqs, and it never looks at the one that says why. */
static void the_cause_counts_though_its_flushes_are_seen_first(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, 3);
	struct pair_init init;

	impatient(&init);
	init.two_cqs = 1;
	init.cq_flags = IBCHAN_CQ_POLLED;
	if (!jobs || world_pair(w, &init))
		return;
	expect_eq(w, job_receive(&jobs[0], a, 64, 64), 0);
	side_close(&w->side[1]);
	expect_eq(w, job_send(&jobs[1], a, 0, 8), 0);
	reap_until_ended(a->recv_cq, &jobs[0]);
	/* From the first of them on, whatever it comes from, it takes no work. */
	expect_eq(w, channel_state(a->ch), IBCHAN_CHANNEL_BROKEN);
	expect_eq(w, job_receive(&jobs[2], a, 64, 64), -ESHUTDOWN);
	if (!expect_soon(w, atomic_read(&a->broken)))
		return;
	expect_eq(w, jobs[0].completion.status, IBCHAN_STATUS_WR_FLUSH_ERR);
	expect_eq(w, a->error, -ETIMEDOUT);
	expect_eq(w, atomic_read(&jobs[1].ended), 1);
	expect_error(w, &jobs[1].completion, IBCHAN_STATUS_RETRY_EXC_ERR, ETIMEDOUT,
		     IBCHAN_CLASS_TIMEOUT);
	expect_eq(w, atomic_read(&a->broken), 1);
}

/* C8: the two ways to fail, by @posted. */
static void a_refusal_and_a_failed_work_are_told_apart(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_outcome outcome;

	if (world_default_pair(w) || !side_share(b))
		return;
	memset(&outcome, 0xff, sizeof(outcome));
	expect_eq(w, ibchan_channel_send(a->ch, side_sge(a, SIDE_BYTES, 1), 1, &outcome), -EINVAL);
	expect_eq(w, outcome.posted, 0);
	expect_eq(w, outcome.reason.code, IBCHAN_REASON_OUT_OF_BOUNDS);
	expect_eq(w, channel_state(a->ch), IBCHAN_CHANNEL_CONNECTED);
	memset(&outcome, 0xff, sizeof(outcome));
	b->remote.rkey ^= 0x55;
	expect_eq(w, ibchan_channel_write(a->ch, side_sge(a, 0, 1), 1, &b->remote, &outcome),
		  -EREMOTEIO);
	expect_eq(w, outcome.posted, 1);
	expect_eq(w, outcome.completion.status, IBCHAN_STATUS_REM_ACCESS_ERR);
}

static void a_success_has_no_error_anywhere(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_outcome outcome;

	if (world_default_pair(w) || !side_share(b))
		return;
	memset(&outcome, 0xff, sizeof(outcome));
	expect_eq(w, ibchan_channel_write(a->ch, side_sge(a, 0, 1), 1, &b->remote, &outcome), 0);
	expect_eq(w, outcome.posted, 1);
	expect_eq(w, outcome.completion.status, IBCHAN_STATUS_SUCCESS);
	expect_eq(w, outcome.completion.error, 0);
	expect_eq(w, outcome.completion.vendor_err, 0);
	expect_eq(w, outcome.completion.cookie, (uintptr_t)a);
}

/* The most that an allocation is contiguous by; more of it may still lie side by side. */
#define BLOCK		KMALLOC_MAX_SIZE
#define MAX_BLOCKS	128

/**
 * struct blocks - memory to look for a long contiguous range in
 * @num: how many blocks
 * @at: where they are, in the order in which they came
 */
struct blocks {
	u32 num;
	u8 *at[MAX_BLOCKS];
};

static int has_block(const struct blocks *blocks, const u8 *block)
{
	u32 i;

	for (i = 0; i < blocks->num; i++)
		if (blocks->at[i] == block)
			return 1;
	return 0;
}

/* Bytes of the range that a block is in, and where it begins. */
static size_t range_around(const struct blocks *blocks, const u8 *block, const u8 **begin)
{
	const u8 *end = block;

	while (has_block(blocks, block - BLOCK))
		block -= BLOCK;
	while (has_block(blocks, end))
		end += BLOCK;
	*begin = block;
	return end - block;
}

/* NULL when the machine does not have so much in one piece, or in so many blocks. */
static const u8 *contiguous(struct world *w, struct blocks *blocks, size_t bytes)
{
	const u8 *begin;
	u8 *block;

	while (blocks->num < MAX_BLOCKS) {
		block = kmalloc(BLOCK, GFP_KERNEL | __GFP_NOWARN | __GFP_NORETRY);
		if (!block)
			return NULL;
		world_keep(w, THING_MEMORY, block);
		blocks->at[blocks->num++] = block;
		if (range_around(blocks, block, &begin) >= bytes)
			return begin;
	}
	return NULL;
}

/* One entry, however long: memory in pieces would run out of elements first. */
static struct ibchan_mr *contiguous_mr(struct world *w, size_t bytes)
{
	struct blocks *blocks = world_alloc(w, sizeof(*blocks));
	const u8 *memory = contiguous(w, blocks, bytes);
	static char reason[80];
	struct scatterlist sg;

	if (!memory) {
		snprintf(reason, sizeof(reason), "no %zu contiguous bytes in %u blocks of %lu",
			 bytes, blocks->num, BLOCK);
		world_skip(w, reason);
		return NULL;
	}
	sg_init_table(&sg, 1);
	sg_set_page(&sg, virt_to_page(memory), bytes, 0);
	return world_keep_mr(w, ibchan_mr_reg_sg(w->side[0].pd, &sg, 1, IBCHAN_ACCESS_LOCAL,
						 NULL));
}

static u32 told_message;

/* For each device that there is; never a client of one. */
static int ask_device(struct ib_device *ib)
{
	struct ib_port_attr attr;

	if (!strcmp(dev_name(&ib->dev), device_names[0]) &&
	    !ib_query_port(ib, rdma_start_port(ib), &attr))
		told_message = attr.max_msg_sz;
	return -EOPNOTSUPP;
}

/* What the driver says, within what ibchan takes: the port's query tells the same. */
static u32 longest_message(struct world *w)
{
	struct ibchan_device *dev = world_device(w, 0);
	struct ibchan_port_attr port = {};
	static struct ib_client client = { .name = "kclient", .add = ask_device };

	told_message = 0;
	if (expect_eq(w, ib_register_client(&client), 0))
		ib_unregister_client(&client);
	expect(w, told_message);
	expect(w, dev && !ibchan_port_query(dev, 1, &init_net, &port));
	expect_eq(w, port.max_message, min(told_message, IBCHAN_MAX_MESSAGE));
	return port.max_message;
}

static u32 most_elements(struct world *w)
{
	struct ibchan_device *dev = world_device(w, 0);
	struct ibchan_device_attr attr = {};

	if (!dev || !expect_eq(w, ibchan_device_query(dev, &attr), 0))
		return 0;
	return min_t(u32, attr.max_send_sge, IBCHAN_MAX_SGE);
}

/* All elements are over the same memory: a message of 2 GiB has to come from somewhere. */
static struct ibchan_sge *elements_of(struct world *w, struct ibchan_mr *mr, u32 num, u64 total)
{
	struct ibchan_sge *sges = world_alloc(w, num * sizeof(*sges));
	u32 i;

	for (i = 0; i < num; i++) {
		sges[i] = ibchan_sge_unchecked(mr, 0, min_t(u64, total, ibchan_mr_length(mr)));
		total -= sges[i].length;
	}
	expect_eq(w, total, 0);
	return sges;
}

static void a_message_longer_than_the_device_can_is_refused(struct world *w)
{
	struct ibchan_outcome outcome = {};
	u32 max = longest_message(w);
	u32 num = most_elements(w);
	struct ibchan_sge *sges;
	struct pair_init init;
	struct ibchan_mr *mr;

	pair_defaults(&init);
	init.params.max_send_sge = num;
	if (!max || !num || world_pair(w, &init))
		return;
	mr = contiguous_mr(w, max / num + 1);
	if (!mr)
		return;
	sges = elements_of(w, mr, num, max + 1ULL);
	expect_eq(w, ibchan_channel_send(w->side[0].ch, sges, num, &outcome), -EINVAL);
	expect_eq(w, outcome.reason.code, IBCHAN_REASON_MESSAGE_TOO_LONG);
	expect_eq(w, outcome.reason.value[0], max + 1ULL);
	expect_eq(w, outcome.reason.value[1], max);
}

static const struct test_case error_cases[] = {
	CASE(a_wrong_key_is_a_remote_access_error),
	CASE(a_message_longer_than_its_receive_fails_on_both_sides),
	CASE(a_peer_without_receives_is_an_rnr_error),
	CASE(the_cause_counts_though_its_flushes_are_seen_first),
	CASE(a_refusal_and_a_failed_work_are_told_apart),
	CASE(a_success_has_no_error_anywhere),
	CASE(a_message_longer_than_the_device_can_is_refused),
};

SUITE(error);
