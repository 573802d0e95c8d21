// SPDX-License-Identifier: GPL-2.0-only
/*
 * Works: prepare, post, retire.
 *
 * Down: under the post lock each request is checked and everything it needs is
 * reserved (region references, a slot, room in the sink), in that order, so that
 * a refusal undoes only what this request took. Requests for the same queue are
 * built into one chain and posted at once. What the device did not take is
 * undone from the end.
 *
 * Up: who reaps the cq retires works in order. The slot belongs to the poster
 * again once its credit is returned, so everything is copied out of it before;
 * the sink comes last.
 */
#include <linux/errno.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include "compat.h"
#include "counters.h"
#include "internal.h"
#include "trace.h"

/* Completions that a poster retires at most; more are left to a worker. */
#define POST_BUDGET	64

static void work_done(struct ib_cq *ib, struct ib_wc *wc);

/* Room for the slots of a queue and the regions that they name. */
int ibchan_queue_init(struct ibchan_queue *queue, struct ibchan_channel *ch,
		      struct ibchan_cq *cq, u32 depth)
{
	u32 slots = roundup_pow_of_two(depth);
	u32 i;

	queue->channel = ch;
	queue->cq = cq;
	queue->credit.depth = depth;
	queue->credit.slots = slots;
	queue->slots = kvcalloc(slots, sizeof(*queue->slots), GFP_KERNEL_ACCOUNT);
	queue->mrs = kvcalloc(slots, queue->max_sge * sizeof(*queue->mrs),
			      GFP_KERNEL_ACCOUNT);
	if (!queue->slots || !queue->mrs) {
		ibchan_queue_fini(queue);
		return -ENOMEM;
	}
	for (i = 0; i < slots; i++) {
		queue->slots[i].cqe.done = work_done;
		queue->slots[i].queue = queue;
		queue->slots[i].mrs = &queue->mrs[(size_t)i * queue->max_sge];
	}
	return 0;
}

/* Nothing is in flight any more, or nothing ever was. */
void ibchan_queue_fini(struct ibchan_queue *queue)
{
	kvfree(queue->slots);
	kvfree(queue->mrs);
	queue->slots = NULL;
	queue->mrs = NULL;
}

static struct ibchan_slot *queue_slot(struct ibchan_queue *queue, u32 number)
{
	return &queue->slots[number & (queue->credit.slots - 1)];
}

static void slot_put_mrs(struct ibchan_slot *slot)
{
	while (slot->num_mrs)
		ibchan_mr_drop(slot->mrs[--slot->num_mrs]);
}

static int slot_get_mrs(struct ibchan_slot *slot, const struct ibchan_wr *wr,
			struct ibchan_reason *reason)
{
	u32 i;

	slot->num_mrs = 0;
	for (i = 0; i < wr->num_sge; i++) {
		if (!wr->sges[i].length)
			continue;
		if (!ibchan_mr_get(wr->sges[i].mr)) {
			slot_put_mrs(slot);
			if (reason)
				reason->element = i;
			return ibchan_refuse(reason, IBCHAN_REASON_MR_GOING, -ENOENT);
		}
		slot->mrs[slot->num_mrs++] = wr->sges[i].mr;
	}
	return 0;
}

static int refuse_full(struct ibchan_channel *ch, struct ibchan_queue *queue,
		       struct ibchan_reason *reason)
{
	u32 code = queue == &ch->send ? IBCHAN_REASON_SEND_QUEUE_FULL :
					IBCHAN_REASON_RECV_QUEUE_FULL;

	return ibchan_refuse_values(reason, code, -EAGAIN,
				    (u64[3]) { queue->credit.depth });
}

static int sink_reserve(struct ibchan_cq *cq, struct ibchan_reason *reason)
{
	int ret = cq->sink->reserve ? cq->sink->reserve(cq->priv) : 0;

	if (ret == -EAGAIN)
		return ibchan_refuse(reason, IBCHAN_REASON_RING_FULL, ret);
	return ret;
}

static void sink_cancel(struct ibchan_cq *cq)
{
	if (cq->sink->cancel)
		cq->sink->cancel(cq->priv);
}

/* Everything that can refuse a request, before anything is built. */
static int work_reserve(struct ibchan_channel *ch, struct ibchan_queue *queue,
			const struct ibchan_wr *wr, struct ibchan_reason *reason)
{
	struct ibchan_slot *slot;
	int ret;

	ret = ibchan_wr_check(ch, wr, reason);
	if (ret)
		return ret;
	if (ibchan_credit_in_flight(&queue->credit) >= queue->credit.depth)
		return refuse_full(ch, queue, reason);
	slot = queue_slot(queue, queue->credit.posted);
	ret = slot_get_mrs(slot, wr, reason);
	if (ret)
		return ret;
	ret = sink_reserve(queue->cq, reason);
	if (ret) {
		slot_put_mrs(slot);
		return ret;
	}
	slot->wr_id = wr->wr_id;
	slot->opcode = wr->opcode;
	WRITE_ONCE(queue->credit.posted, queue->credit.posted + 1);
	return 0;
}

/* The opposite, for the request that was reserved last. */
static void work_unreserve(struct ibchan_queue *queue)
{
	u32 last = queue->credit.posted - 1;

	WRITE_ONCE(queue->credit.posted, last);
	sink_cancel(queue->cq);
	slot_put_mrs(queue_slot(queue, last));
}

/* A length of 0 means 2 GiB to some devices: empty elements stay here. */
static u32 build_sges(struct ibchan_chain *chain, const struct ibchan_wr *wr)
{
	struct ib_sge *out = &chain->sges[chain->num_sges];
	u32 num = 0;
	u32 i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ibchan_sge *sge = &wr->sges[i];

		if (!sge->length)
			continue;
		out[num++] = (struct ib_sge){
			.addr = sge->mr->addr + sge->offset,
			.length = sge->length,
			.lkey = sge->mr->lkey,
		};
	}
	chain->num_sges += num;
	return num;
}

static enum ib_wr_opcode send_opcode(const struct ibchan_wr *wr)
{
	bool imm = wr->flags & IBCHAN_WR_IMM;

	switch (wr->opcode) {
	case IBCHAN_OP_WRITE:
		return imm ? IB_WR_RDMA_WRITE_WITH_IMM : IB_WR_RDMA_WRITE;
	case IBCHAN_OP_READ:
		return IB_WR_RDMA_READ;
	default:
		return imm ? IB_WR_SEND_WITH_IMM : IB_WR_SEND;
	}
}

static void build_send(struct ibchan_chain *chain, const struct ibchan_wr *wr,
		       struct ib_cqe *cqe)
{
	struct ib_rdma_wr *out = &chain->send[chain->num];
	struct ib_sge *sges = &chain->sges[chain->num_sges];

	*out = (struct ib_rdma_wr){
		.wr = {
			.wr_cqe = cqe,
			.sg_list = sges,
			.num_sge = build_sges(chain, wr),
			.opcode = send_opcode(wr),
			.send_flags = IB_SEND_SIGNALED,
			.ex.imm_data = cpu_to_be32(wr->imm),
		},
		.remote_addr = wr->remote_addr,
		.rkey = wr->rkey,
	};
	if (chain->num)
		chain->send[chain->num - 1].wr.next = &out->wr;
}

static void build_recv(struct ibchan_chain *chain, const struct ibchan_wr *wr,
		       struct ib_cqe *cqe)
{
	struct ib_recv_wr *out = &chain->recv[chain->num];
	struct ib_sge *sges = &chain->sges[chain->num_sges];

	*out = (struct ib_recv_wr){
		.wr_cqe = cqe,
		.sg_list = sges,
		.num_sge = build_sges(chain, wr),
	};
	if (chain->num)
		chain->recv[chain->num - 1].next = out;
}

static void chain_add(struct ibchan_chain *chain, const struct ibchan_wr *wr)
{
	struct ibchan_queue *queue = chain->queue;
	struct ibchan_slot *slot = queue_slot(queue, queue->credit.posted - 1);

	if (wr->opcode == IBCHAN_OP_RECV)
		build_recv(chain, wr, &slot->cqe);
	else
		build_send(chain, wr, &slot->cqe);
	chain->num++;
	trace_ibchan_post(queue->channel->cookie, wr->wr_id, wr->opcode, wr->num_sge);
}

/* Takes leading requests as long as they fit the chain; a refusal ends it too. */
static int chain_build(struct ibchan_channel *ch, const struct ibchan_wr *wrs, u32 num,
		       struct ibchan_reason *reason)
{
	struct ibchan_chain *chain = &ch->chain;
	u32 i;
	int ret;

	chain->num = 0;
	chain->num_sges = 0;
	chain->queue = ibchan_wr_queue(ch, wrs);
	for (i = 0; i < min_t(u32, num, IBCHAN_CHAIN_WRS); i++) {
		const struct ibchan_wr *wr = &wrs[i];

		if (ibchan_wr_queue(ch, wr) != chain->queue)
			break;
		if (i && chain->num_sges + wr->num_sge > IBCHAN_CHAIN_SGES)
			break;
		ret = work_reserve(ch, chain->queue, wr, reason);
		if (ret)
			return ret;
		chain_add(chain, wr);
	}
	return 0;
}

/*
 * The works count as in flight before the device has them, because they may be
 * retired before the verb returns.
 */
static int chain_post(struct ibchan_channel *ch, u32 *posted,
		      struct ibchan_reason *reason)
{
	struct ibchan_chain *chain = &ch->chain;
	struct ibchan_queue *queue = chain->queue;
	u32 undone;
	int ret;

	atomic_add(chain->num, &queue->cq->in_flight);
	ret = ibchan_qp_post(ch, posted);
	ibchan_count(works_posted, *posted);
	if (!ret)
		return 0;
	for (undone = chain->num; undone > *posted; undone--)
		work_unreserve(queue);
	atomic_sub(chain->num - *posted, &queue->cq->in_flight);
	return ibchan_refuse_values(reason, IBCHAN_REASON_POST_FAILED, ret,
				    (u64[3]) { -ret });
}

static int check_state(struct ibchan_channel *ch, struct ibchan_reason *reason)
{
	u32 state = READ_ONCE(ch->state);
	u32 error = READ_ONCE(ch->error);
	int ret = ibchan_state_error(state, error);

	switch (ret) {
	case 0:
		return 0;
	case -ENOTCONN:
		return ibchan_refuse(reason, IBCHAN_REASON_NOT_CONNECTED, ret);
	case -ENODEV:
		return ibchan_refuse(reason, IBCHAN_REASON_DEVICE_GONE, ret);
	default:
		return ibchan_refuse_values(reason, IBCHAN_REASON_BROKEN, ret,
					    (u64[3]) { error, READ_ONCE(ch->status) });
	}
}

/* One chain: how many leading requests were taken, and why not more. */
static int post_some(struct ibchan_channel *ch, const struct ibchan_wr *wrs, u32 num,
		     u32 *taken, struct ibchan_reason *reason)
{
	int refused, ret;

	*taken = 0;
	ret = check_state(ch, reason);
	if (ret)
		return ret;
	refused = chain_build(ch, wrs, num, reason);
	if (!ch->chain.num)
		return refused;
	ret = chain_post(ch, taken, reason);
	return ret ?: refused;
}

/**
 * ibchan_post - post work requests
 * @ch: the channel; RCU or the caller keeps its memory
 * @wrs: the requests, any mix
 * @num: how many
 * @accepted: how many leading ones were posted, also on an error
 * @reason: why the next one was refused, with its index and element; or NULL
 *
 * An accepted request completes exactly once, through the sink of its cq, and
 * its ranges belong to the device until then. Completions that are there already
 * are retired before the call returns. Who neither polls nor waits afterwards has
 * to arm the channel: ibchan_channel_arm().
 *
 * Context: process or softirq, not with interrupts off.
 * Return: 0 when all were posted; else what the first refused one met: -EINVAL,
 * -EOPNOTSUPP, -EXDEV, -EACCES as ibchan_wr_check() says; -ENOENT for a region
 * that is being given up; -EAGAIN for a full queue or sink; -ENOTCONN before the
 * handshake; -ESHUTDOWN on a broken channel; -ENODEV when the device is gone;
 * what else the sink's reserve() or the driver answers.
 */
int ibchan_post(struct ibchan_channel *ch, const struct ibchan_wr *wrs, u32 num,
		u32 *accepted, struct ibchan_reason *reason)
{
	u32 taken, total = 0;
	int ret = 0;

	spin_lock_bh(&ch->post_lock);
	while (total < num && !ret) {
		if (reason)
			reason->element = 0;
		ret = post_some(ch, wrs + total, num - total, &taken, reason);
		total += taken;
	}
	spin_unlock_bh(&ch->post_lock);
	*accepted = total;
	if (ret && reason)
		reason->wr = total;
	if (total) {
		ibchan_cq_reap(ch->send.cq, POST_BUDGET);
		if (ch->recv.cq != ch->send.cq)
			ibchan_cq_reap(ch->recv.cq, POST_BUDGET);
	}
	return ret;
}
EXPORT_SYMBOL_NS_GPL(ibchan_post, IBCHAN_NS);

static void fill_success(struct ibchan_completion *completion, const struct ib_wc *wc)
{
	if (completion->opcode != IBCHAN_OP_RECV)
		return;
	completion->bytes = wc->byte_len;
	if (wc->wc_flags & IB_WC_WITH_IMM) {
		completion->imm = be32_to_cpu(wc->ex.imm_data);
		completion->flags |= IBCHAN_CQE_IMM;
	}
}

/* Before success is known only status, vendor_err and the cqe mean anything. */
static void fill_completion(struct ibchan_completion *completion,
			    const struct ibchan_slot *slot, const struct ib_wc *wc)
{
	*completion = (struct ibchan_completion){
		.wr_id = slot->wr_id,
		.cookie = slot->queue->channel->cookie,
		.status = wc->status,
		.error = ibchan_status_error(wc->status),
		.opcode = slot->opcode,
	};
	if (wc->status == IB_WC_SUCCESS)
		fill_success(completion, wc);
	else
		completion->vendor_err = wc->vendor_err;
}

/* The caller owns the cq. */
static void work_retire(struct ibchan_slot *slot, const struct ib_wc *wc)
{
	struct ibchan_queue *queue = slot->queue;
	struct ibchan_cq *cq = queue->cq;
	struct ibchan_completion completion;

	fill_completion(&completion, slot, wc);
	if (completion.status != IBCHAN_STATUS_SUCCESS)
		ibchan_channel_fail(queue->channel, completion.error, completion.status);
	slot_put_mrs(slot);
	/* Pairs with ibchan_credit_in_flight(): the slot has been read. */
	smp_store_release(&queue->credit.retired, queue->credit.retired + 1);
	trace_ibchan_complete(completion.cookie, completion.wr_id, completion.status,
			      completion.bytes);
	ibchan_count(works_retired, 1);
	cq->retired++;
	cq->sink->done(cq->priv, &completion);
}

static void work_done(struct ib_cq *ib, struct ib_wc *wc)
{
	work_retire(container_of(wc->wr_cqe, struct ibchan_slot, cqe), wc);
}

/*
 * The qp is destroyed and its cq swept: what is still there the device has
 * forgotten. The caller owns the cq.
 */
void ibchan_queue_flush(struct ibchan_queue *queue)
{
	const struct ib_wc wc = { .status = IB_WC_WR_FLUSH_ERR };
	struct ibchan_credit *credit = &queue->credit;

	while (credit->retired != credit->posted)
		work_retire(queue_slot(queue, credit->retired), &wc);
	if (queue->marked && !queue->drained) {
		queue->drained = 1;
		queue->cq->retired++;
	}
}
