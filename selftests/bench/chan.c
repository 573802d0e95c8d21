// SPDX-License-Identifier: GPL-2.0-only
/*
 * The same work on each level of ibchan. As with the baseline, requests are
 * built before the clock runs.
 */
#include <linux/err.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <rdma/ibchan.h>
#include <rdma/ibchan_scope.h>

#include "kbench.h"

/* Two connected channels on one completion queue. */
struct kbench_pair {
	struct ibchan_cq *cq;
	struct ibchan_channel *near;
	struct ibchan_channel *far;
};

/* A message: what an end posts for it. */
struct kbench_half {
	struct kbench_chan *chan;
	struct ibchan_work work;
	struct ibchan_pending pending;
	struct ibchan_sge sge;
};

struct kbench_chan {
	struct ibchan_device *dev;
	struct ibchan_pd *pd;
	struct ibchan_mr *near_mr;
	struct ibchan_mr *far_mr;	/* for receives */
	struct ibchan_mr *shared_mr;	/* the same memory, for the peer */
	struct ibchan_remote remote;
	struct kbench_pair works;	/* works with a done() */
	struct kbench_pair kept;	/* completions by wr_id */
	u32 done;
	int error;
	struct kbench_half near[KBENCH_SLOTS];
	struct kbench_half far[KBENCH_SLOTS];
	struct ibchan_wr send[KBENCH_SLOTS];
	struct ibchan_wr recv[KBENCH_SLOTS];
	struct ibchan_completion completions[KBENCH_SLOTS];
};

static void chan_done(struct ibchan_work *work, const struct ibchan_completion *completion)
{
	struct kbench_half *half = container_of(work, struct kbench_half, work);

	half->chan->done++;
	if (completion->status != IBCHAN_STATUS_SUCCESS)
		half->chan->error = -EIO;
}

/* --- the requests of a case --- */

static void build_slot(struct kbench_chan *chan, const struct kbench_case *test, u32 slot)
{
	struct kbench_half *near = &chan->near[slot];
	struct kbench_half *far = &chan->far[slot];
	u64 offset = (u64)slot * test->bytes;
	struct ibchan_remote part;

	near->sge = ibchan_sge_new(chan->near_mr, offset, test->bytes);
	far->sge = ibchan_sge_new(chan->far_mr, offset, test->bytes);
	part = ibchan_remote_sub_unchecked(&chan->remote, offset, test->bytes);
	chan->recv[slot] = ibchan_wr_receive(&far->sge, 1);
	switch (test->operation) {
	case KBENCH_WRITE:
		chan->send[slot] = ibchan_wr_write(&near->sge, 1, &part);
		break;
	case KBENCH_READ:
		chan->send[slot] = ibchan_wr_read(&near->sge, 1, &part);
		break;
	case KBENCH_SEND:
		chan->send[slot] = ibchan_wr_send(&near->sge, 1);
		break;
	}
}

static void build(struct kbench_chan *chan, const struct kbench_case *test)
{
	u32 i;

	chan->error = 0;
	for (i = 0; i < test->depth; i++)
		build_slot(chan, test, i);
}

static void build_works(struct kbench_chan *chan, const struct kbench_case *test, u8 flags)
{
	u32 i;

	build(chan, test);
	for (i = 0; i < test->depth; i++) {
		chan->send[i].work = &chan->near[i].work;
		chan->send[i].flags |= flags;
		chan->recv[i].work = &chan->far[i].work;
		chan->recv[i].flags |= flags;
	}
}

/* --- posting and taking completions --- */

static __always_inline int pair_post(struct kbench_chan *chan, struct kbench_pair *pair,
				     const struct kbench_case *test, u32 slot)
{
	u32 num = test->chained ? test->depth : 1;
	u32 accepted;
	int ret = 0;

	if (test->operation == KBENCH_SEND)
		ret = ibchan_post(pair->far, &chan->recv[slot], num, &accepted, NULL);
	return ret ?: ibchan_post(pair->near, &chan->send[slot], num, &accepted, NULL);
}

static __always_inline int post_works(void *arg, const struct kbench_case *test, u32 slot)
{
	struct kbench_chan *chan = arg;

	return pair_post(chan, &chan->works, test, slot);
}

static __always_inline int post_kept(void *arg, const struct kbench_case *test, u32 slot)
{
	struct kbench_chan *chan = arg;

	return pair_post(chan, &chan->kept, test, slot);
}

static __always_inline int reap_works(void *arg)
{
	struct kbench_chan *chan = arg;

	ibchan_cq_reap(chan->works.cq, KBENCH_SLOTS);
	return chan->error;
}

static __always_inline int reap_kept(void *arg)
{
	struct kbench_chan *chan = arg;
	int num = ibchan_cq_poll(chan->kept.cq, chan->completions, KBENCH_SLOTS);
	int i;

	for (i = 0; i < num; i++)
		if (chan->completions[i].status != IBCHAN_STATUS_SUCCESS)
			return -EIO;
	if (num < 0)
		return num;
	chan->done += num;
	return 0;
}

/* --- the ways --- */

static int drive_works(struct kbench_chan *chan, const struct kbench_case *test)
{
	/* One post has them off by itself; who posts several keeps them off in between. */
	const struct kbench_verbs verbs = {
		post_works, reap_works, .bh_off = test->depth > 1 && !test->chained,
	};

	return kbench_drive(chan, test, &chan->done, verbs);
}

static int run_unpolled(struct kbench_world *world, const struct kbench_case *test)
{
	build_works(world->chan, test, 0);
	return drive_works(world->chan, test);
}

static int run_unpolled_exclusive(struct kbench_world *world, const struct kbench_case *test)
{
	build_works(world->chan, test, IBCHAN_WR_EXCLUSIVE);
	return drive_works(world->chan, test);
}

static int run_qp(struct kbench_world *world, const struct kbench_case *test)
{
	const struct kbench_verbs verbs = { post_kept, reap_kept };
	struct kbench_chan *chan = world->chan;

	build(chan, test);
	return kbench_drive(chan, test, &chan->done, verbs);
}

/* The receive has to wait while the send blocks. */
static int block_once(struct kbench_chan *chan, const struct kbench_case *test)
{
	struct ibchan_pending *receive = &chan->far[0].pending;
	struct ibchan_outcome outcome;
	int ret;

	if (test->operation != KBENCH_SEND)
		return ibchan_channel_run(chan->works.near, chan->send, &outcome);
	ret = ibchan_pending_post(receive, chan->works.far, chan->recv, NULL);
	if (ret)
		return ret;
	ret = ibchan_channel_run(chan->works.near, chan->send, &outcome);
	return ibchan_pending_wait(receive) ?: ret;
}

static int run_blocking(struct kbench_world *world, const struct kbench_case *test)
{
	struct kbench_chan *chan = world->chan;
	int ret = 0;
	u32 i;

	build(chan, test);
	for (i = 0; i < test->ops && !ret; i++)
		ret = block_once(chan, test);
	return ret;
}

static int scope_post(struct kbench_chan *chan, struct ibchan_scope *scope,
		      const struct kbench_case *test, u32 slot)
{
	int ret = 0;

	if (test->operation == KBENCH_SEND)
		ret = ibchan_scope_post(scope, &chan->far[slot].pending, chan->works.far,
					&chan->recv[slot], NULL);
	return ret ?: ibchan_scope_post(scope, &chan->near[slot].pending, chan->works.near,
					&chan->send[slot], NULL);
}

static int scope_post_several(struct kbench_chan *chan, struct ibchan_scope *scope,
			      const struct kbench_case *test)
{
	int ret = 0;
	u32 i;

	local_bh_disable();
	for (i = 0; i < test->depth && !ret; i++)
		ret = scope_post(chan, scope, test, i);
	local_bh_enable();
	return ret;
}

/* As many works as may be in flight; the end of the block waits for them. */
static int scope_once(struct kbench_chan *chan, const struct kbench_case *test)
{
	struct ibchan_scope scope;
	int ret;

	ibchan_scoped(&scope) {
		if (test->depth > 1)
			ret = scope_post_several(chan, &scope, test);
		else
			ret = scope_post(chan, &scope, test, 0);
	}
	return ret ?: ibchan_scope_error(&scope);
}

static int run_scoped(struct kbench_world *world, const struct kbench_case *test)
{
	struct kbench_chan *chan = world->chan;
	int ret = 0;
	u32 i;

	build(chan, test);
	for (i = 0; i < test->ops && !ret; i += test->depth)
		ret = scope_once(chan, test);
	return ret;
}

const struct kbench_way kbench_chan_ways[] = {
	{ "kernel.unpolled", KBENCH_SLOTS, 1, run_unpolled },
	{ "kernel.unpolled_exclusive", KBENCH_SLOTS, 1, run_unpolled_exclusive },
	{ "kernel.blocking", 1, 0, run_blocking },
	{ "kernel.scoped", KBENCH_SLOTS, 0, run_scoped },
	{ "kernel.qp", KBENCH_SLOTS, 1, run_qp },
};

const u32 kbench_chan_num_ways = ARRAY_SIZE(kbench_chan_ways);

/* --- life --- */

static struct ibchan_channel *build_channel(struct kbench_chan *chan, struct kbench_pair *pair)
{
	const struct ibchan_build with = {
		.pd = chan->pd,
		.send_cq = pair->cq,
		.recv_cq = pair->cq,
		.net = &init_net,
		.exclusive = true,
	};
	struct ibchan_params params;

	ibchan_params_init(&params);
	params.max_send_wr = KBENCH_QUEUE;
	params.max_recv_wr = KBENCH_QUEUE;
	params.max_send_sge = 1;
	params.max_recv_sge = 1;
	return ibchan_channel_build(&with, &params, NULL);
}

static int connect_pair(struct kbench_pair *pair)
{
	struct ibchan_endpoint near, far;
	int ret;

	ibchan_channel_endpoint(pair->near, &near);
	ibchan_channel_endpoint(pair->far, &far);
	ret = ibchan_channel_handshake(pair->near, &far, NULL);
	return ret ?: ibchan_channel_handshake(pair->far, &near, NULL);
}

/* What there is, close_pair() finds. */
static int open_pair(struct kbench_chan *chan, struct kbench_pair *pair, u32 flags)
{
	const struct ibchan_cq_init init = {
		.entries = 4 * (KBENCH_QUEUE + 1),
		.flags = flags,
	};

	pair->cq = ibchan_cq_create(chan->dev, &init, NULL);
	if (IS_ERR(pair->cq))
		return PTR_ERR(pair->cq);
	pair->near = build_channel(chan, pair);
	if (IS_ERR(pair->near))
		return PTR_ERR(pair->near);
	pair->far = build_channel(chan, pair);
	if (IS_ERR(pair->far))
		return PTR_ERR(pair->far);
	return connect_pair(pair);
}

static void close_pair(struct kbench_pair *pair)
{
	if (!IS_ERR_OR_NULL(pair->near))
		ibchan_channel_close(pair->near);
	if (!IS_ERR_OR_NULL(pair->far))
		ibchan_channel_close(pair->far);
	if (!IS_ERR_OR_NULL(pair->cq))
		ibchan_cq_put(pair->cq);
}

static int register_memory(struct kbench_chan *chan, const struct kbench_buffers *buffers)
{
	chan->near_mr = ibchan_mr_reg_kernel(chan->pd, buffers->near, KBENCH_BYTES,
					     IBCHAN_ACCESS_LOCAL, NULL);
	if (IS_ERR(chan->near_mr))
		return PTR_ERR(chan->near_mr);
	chan->far_mr = ibchan_mr_reg_kernel(chan->pd, buffers->far, KBENCH_BYTES,
					    IBCHAN_ACCESS_LOCAL, NULL);
	if (IS_ERR(chan->far_mr))
		return PTR_ERR(chan->far_mr);
	chan->shared_mr = ibchan_mr_reg_kernel(chan->pd, buffers->far, KBENCH_BYTES,
					       IBCHAN_ACCESS_SHARED, NULL);
	if (IS_ERR(chan->shared_mr))
		return PTR_ERR(chan->shared_mr);
	return ibchan_mr_remote(chan->shared_mr, &chan->remote);
}

static int make_objects(struct kbench_chan *chan, const char *device,
			const struct kbench_buffers *buffers)
{
	int ret;

	chan->dev = ibchan_device_get(device, &init_net);
	if (IS_ERR(chan->dev))
		return PTR_ERR(chan->dev);
	chan->pd = ibchan_pd_alloc(chan->dev);
	if (IS_ERR(chan->pd))
		return PTR_ERR(chan->pd);
	ret = register_memory(chan, buffers);
	if (!ret)
		ret = open_pair(chan, &chan->works, IBCHAN_CQ_POLLED);
	return ret ?: open_pair(chan, &chan->kept, IBCHAN_CQ_POLLED | IBCHAN_CQ_KEEP);
}

/**
 * kbench_chan_open - connected pairs with their memory
 * @device: of both ends, by name
 * @buffers: of both ends; the far one can be written and read by the near end
 *
 * Return: the pairs, for kbench_chan_close(); an errno.
 */
struct kbench_chan *kbench_chan_open(const char *device, const struct kbench_buffers *buffers)
{
	struct kbench_chan *chan = kzalloc(sizeof(*chan), GFP_KERNEL);
	int ret, i;

	if (!chan)
		return ERR_PTR(-ENOMEM);
	for (i = 0; i < KBENCH_SLOTS; i++) {
		chan->near[i].chan = chan;
		chan->near[i].work.done = chan_done;
		chan->far[i].chan = chan;
		chan->far[i].work.done = chan_done;
	}
	ret = make_objects(chan, device, buffers);
	if (ret) {
		kbench_chan_close(chan);
		return ERR_PTR(ret);
	}
	return chan;
}

void kbench_chan_close(struct kbench_chan *chan)
{
	close_pair(&chan->works);
	close_pair(&chan->kept);
	if (!IS_ERR_OR_NULL(chan->near_mr))
		ibchan_mr_put(chan->near_mr, NULL, NULL);
	if (!IS_ERR_OR_NULL(chan->far_mr))
		ibchan_mr_put(chan->far_mr, NULL, NULL);
	if (!IS_ERR_OR_NULL(chan->shared_mr))
		ibchan_mr_put(chan->shared_mr, NULL, NULL);
	if (!IS_ERR_OR_NULL(chan->pd))
		WARN_ON(ibchan_pd_free(chan->pd));
	if (!IS_ERR_OR_NULL(chan->dev))
		ibchan_device_put(chan->dev);
	kfree(chan);
}
