// SPDX-License-Identifier: GPL-2.0-only
/*
 * Building a channel: its parameters are chosen, places in its cqs reserved, its queue pair
 * made. A failure undoes these in the reverse order, but for a queue pair that the device does
 * not let go of: that keeps all that it refers to.
 */
#include <linux/errno.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "private.h"
#include "compat.h"
#include "counters.h"
#include "work.h"

/* Not kmalloc: its next size would waste a third of it. */
struct kmem_cache *ibchan_channel_cache;

/* Before the first device. */
int ibchan_channels_init(const struct ibchan_channel_part *const *parts)
{
	ibchan_channel_parts = parts;
	ibchan_channel_cache = KMEM_CACHE(ibchan_channel, SLAB_HWCACHE_ALIGN);
	return ibchan_channel_cache ? 0 : -ENOMEM;
}

/* After the last one; some memory waits for a grace period. */
void ibchan_channels_fini(void)
{
	rcu_barrier();
	kmem_cache_destroy(ibchan_channel_cache);
}

static u32 after_post_on(const struct ibchan_cq *cq)
{
	if (cq->mode & IBCHAN_CQ_POLLED)
		return 0;
	return cq->mode & IBCHAN_CQ_POST_REAPS ? IBCHAN_AFTER_REAP : IBCHAN_AFTER_ARM;
}

/* Nobody posts or waits any more. */
void ibchan_channel_drop_cqs(struct ibchan_channel *ch)
{
	ibchan_cq_put(ch->send.cq);
	ibchan_cq_put(ch->recv.cq);
}

static struct ibchan_channel *channel_alloc(const struct ibchan_build *build,
					    const struct ibchan_params *params)
{
	struct ibchan_channel *ch;

	ch = kmem_cache_alloc_node(ibchan_channel_cache, GFP_KERNEL_ACCOUNT | __GFP_ZERO,
				   build->pd->dev->node);
	if (!ch)
		return NULL;
	ibchan_qp_setup(&ch->qp, build, params, ibchan_channel_qp_event, &ch->state);
	ch->cookie = build->cookie;
	ch->connected_to = build->connected;
	ch->broken = build->broken;
	ch->priv = build->priv;
	ch->after_post = after_post_on(build->send_cq) | after_post_on(build->recv_cq);
	ibchan_cq_hold(build->send_cq);
	ch->send.cq = build->send_cq;
	ibchan_cq_hold(build->recv_cq);
	ch->recv.cq = build->recv_cq;
	ch->bounds.odd = ibchan_odd_head(build->exclusive);
	ch->options = build->options;
	ch->watch.patient = !ch->options.keepalive_ms;
	if (!ch->options.keepalive_ms)
		ch->options.keepalive_ms = IBCHAN_DEFAULT_KEEPALIVE_MS;
	mutex_init(&ch->end_lock);
	refcount_set(&ch->refs, 1);
	spin_lock_init(&ch->post_lock);
	spin_lock_init(&ch->state_lock);
	init_waitqueue_head(&ch->state_wait);
	spin_lock_init(&ch->history.lock);
	ibchan_turn_init(&ch->cause_turn, ch->qp.pd->cost.budget, ibchan_channel_cause_turn);
	ibchan_turn_init(&ch->break_turn, ch->qp.pd->cost.budget, ibchan_channel_break_turn);
	INIT_WORK(&ch->close_work, ibchan_channel_close_work);
	ch->state = IBCHAN_CHANNEL_PREPARED;
	return ch;
}

/* Both queues get their room in the cqs, or neither does. */
static int reserve_space(struct ibchan_channel *ch, const struct ibchan_build *build,
			 struct ibchan_reason *reason)
{
	u32 send = ch->qp.params.max_send_wr + IBCHAN_MARKERS;
	u32 recv = ch->qp.params.max_recv_wr + IBCHAN_MARKERS;
	bool one = build->send_cq == build->recv_cq;
	int ret = ibchan_cq_reserve(build->send_cq, one ? send + recv : send, reason);

	if (ret || one)
		return ret;
	ret = ibchan_cq_reserve(build->recv_cq, recv, reason);
	if (ret)
		ibchan_cq_unreserve(build->send_cq, send);
	return ret;
}

/* Fills in the limits for checks of requests; the peer tells its own at the handshake. */
static void fill_bounds(struct ibchan_channel *ch)
{
	struct ibchan_bounds *bounds = &ch->bounds;
	u32 op;

	bounds->pd = ch->qp.pd;
	bounds->caps = ch->qp.dev->attr.caps;
	bounds->max_message = ch->qp.gid.max_message;
	bounds->max_inline = ch->qp.params.max_inline_data;
	bounds->max_rd_atomic = ch->qp.params.max_rd_atomic;
	for (op = 0; op < IBCHAN_OPS; op++)
		bounds->max_sge[op] = ch->send.max_sge;
	bounds->max_sge[IBCHAN_OP_RECV] = ch->recv.max_sge;
	bounds->max_sge[IBCHAN_OP_READ] = min(ch->send.max_sge, ch->qp.dev->attr.max_read_sge);
	bounds->max_sge[IBCHAN_OP_COMPARE_SWAP] = 1;
	bounds->max_sge[IBCHAN_OP_FETCH_ADD] = 1;
}

/* Near the device, as the works that it completes are touched for each completion. */
static void *queue_alloc(const struct ibchan_channel *ch, u32 num, size_t size)
{
	return kvmalloc_node(array_size(num, size), GFP_KERNEL_ACCOUNT | __GFP_ZERO,
			     ch->qp.dev->node);
}

/* Room for what is in flight, and for the works of requests that bring none. Its cq is known. */
int ibchan_queue_init(struct ibchan_queue *queue, struct ibchan_channel *ch, u32 depth)
{
	bool exclusive = ibchan_bounds_exclude(&ch->bounds), has_slots = queue->cq->sink->done;
	u32 places;

	queue->channel = ch;
	ibchan_places_init(&queue->places, depth);
	places = queue->places.mask + 1;
	/* With or without a range, most lengths of the array are powers of two. */
	queue->kept_size = sizeof(struct ibchan_kept) +
			   (exclusive ? sizeof(struct ibchan_range) : 0);
	queue->works = queue_alloc(ch, places, sizeof(*queue->works));
	queue->place_size = queue->max_sge * queue->kept_size;
	queue->kept = queue_alloc(ch, places, queue->place_size);
	if (has_slots)
		queue->slots = queue_alloc(ch, places, sizeof(*queue->slots));
	return queue->works && queue->kept && (queue->slots || !has_slots) ? 0 : -ENOMEM;
}

static void queue_fini(struct ibchan_queue *queue, u32 depth)
{
	kvfree(queue->works);
	kvfree(queue->kept);
	kvfree(queue->slots);
	ibchan_cq_unreserve(queue->cq, depth + IBCHAN_MARKERS);
}

/* Nothing is in flight any more, or nothing ever was. */
void ibchan_channel_release_queues(struct ibchan_channel *ch)
{
	ibchan_sgl_fini(ch);
	queue_fini(&ch->recv, ch->qp.params.max_recv_wr);
	queue_fini(&ch->send, ch->qp.params.max_send_wr);
}

/*
 * The device may still use the queue pair, and all that it refers to: regions,
 * cqs, the domain, this module's code. None of them goes any more.
 */
void ibchan_channel_leak(struct ibchan_channel *ch)
{
	ch->leaked = 1;
	ibchan_qp_leak(&ch->qp);
	__module_get(THIS_MODULE);
	ibchan_gauge(leaked, 1);
}

/* Makes the queues, and the queue pair: in INIT, so that receives can be posted without a peer. */
static int build_verbs(struct ibchan_channel *ch, const struct ibchan_build *build,
		       struct ibchan_reason *reason)
{
	const struct ibchan_params *params = &ch->qp.params;
	int ret;

	ret = ibchan_cost_charge(&ch->cost, ch->qp.pd->cost.budget,
				 ibchan_footprint_channel(params, ch->qp.dev->attr.max_rd_atomic,
							  build->exclusive,
							  build->send_cq->sink->done,
							  build->recv_cq->sink->done), reason);
	ret = ret ?: reserve_space(ch, build, reason);
	if (ret)
		return ret;
	ch->send.max_sge = params->max_send_sge;
	ch->recv.max_sge = params->max_recv_sge;
	fill_bounds(ch);
	ret = ibchan_queue_init(&ch->send, ch, params->max_send_wr);
	ret = ret ?: ibchan_queue_init(&ch->recv, ch, params->max_recv_wr);
	ret = ret ?: ibchan_sgl_init(ch, build->max_sgl);
	ret = ret ?: ibchan_qp_create(&ch->qp, reason);
	if (!ret)
		return 0;
	if (ch->qp.ib && ibchan_qp_destroy(&ch->qp))
		ibchan_channel_leak(ch);
	else
		ibchan_channel_release_queues(ch);
	return ret;
}

static int build_on_device(struct ibchan_channel *ch, const struct ibchan_build *build,
			   struct ibchan_reason *reason)
{
	int ret = ibchan_device_enter(ch->qp.dev);

	if (ret)
		return ret;
	ret = ibchan_qp_choose(&ch->qp, ch->bounds.service, reason) ?:
	      build_verbs(ch, build, reason);
	if (ch->leaked) {
		/* Its maker never hears of it. */
		ch->connected_to = NULL;
		ch->broken = NULL;
	}
	if (!ret || ch->leaked) {
		ibchan_device_hold(ch->qp.dev);
		if (!ch->bounds.service)
			ibchan_pd_hold(ch->qp.pd);
		scoped_guard(mutex, &ch->qp.dev->lock)
			list_add_tail(&ch->link, &ch->qp.dev->channels);
		ibchan_gauge(channels, 1);
		ibchan_history_add(ch, IBCHAN_HISTORY_BUILT, 0, ch->qp.ib->qp_num,
				   (u64)ch->qp.gid.port << 32 | ch->qp.gid.index);
	}
	ibchan_device_exit(ch->qp.dev);
	return ret;
}

void ibchan_channel_free(struct rcu_head *rcu)
{
	struct ibchan_channel *ch = container_of(rcu, struct ibchan_channel, rcu);

	kfree(ch->cm);
	kfree(ch->history.events);
	ibchan_cost_pay_back(&ch->cost);
	kmem_cache_free(ibchan_channel_cache, ch);
}

/*
 * As ibchan_channel_build(). @service: 1: the channel serves its own domain: that keeps the
 * channel, and not the other way round.
 */
struct ibchan_channel *ibchan_channel_make(const struct ibchan_build *build,
					   struct ibchan_params *params, int service,
					   struct ibchan_reason *reason)
{
	struct ibchan_device *dev = build->pd->dev;
	struct ibchan_channel *ch;
	int ret;

	if (build->send_cq->dev != dev || build->recv_cq->dev != dev)
		return ERR_PTR(-EXDEV);
	ret = ibchan_params_check(params, &dev->attr, reason) ?:
	      ibchan_options_check(&build->options, reason);
	if (ret)
		return ERR_PTR(ret);
	ch = channel_alloc(build, params);
	if (!ch)
		return ERR_PTR(-ENOMEM);
	ch->bounds.service = service;
	ret = ibchan_parts_ask(make, ch, reason);
	ret = ret ?: build_on_device(ch, build, reason);
	if (!ret) {
		*params = ch->qp.params;
		return ch;
	}
	if (!ch->leaked) {
		ibchan_parts_call(end, ch);
		ibchan_channel_drop_cqs(ch);
		ibchan_channel_free(&ch->rcu);
	}
	return ERR_PTR(ret);
}

/**
 * ibchan_channel_build - make a channel that has no peer yet
 * @build: what from
 * @params: the knobs (see ibchan_params_init()); the choices are written back
 * @reason: why not, or NULL
 *
 * Context: process, may sleep.
 * Return: the prepared channel, for ibchan_channel_close(); -EINVAL for a parameter out of its
 * range, or an mtu above that of the port, or of the address if gid_index names one; -EOPNOTSUPP
 * for an unknown access flag; -EXDEV for a cq of another device; -EDQUOT for a user whose objects
 * take as much kernel memory as they may; -EAGAIN for a cq with too few free entries; -ENETDOWN
 * when the port, or each of them, is down; -EADDRNOTAVAIL when it has no address that fits the
 * rule; -ENODEV when the device is gone; -ENOMEM; the driver's errno.
 */
struct ibchan_channel *ibchan_channel_build(const struct ibchan_build *build,
					    struct ibchan_params *params,
					    struct ibchan_reason *reason)
{
	might_sleep();
	return ibchan_channel_make(build, params, 0, reason);
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_build, IBCHAN_NS);

/**
 * ibchan_channel_endpoint - the endpoint that the peer needs for its handshake
 * @ch: the channel
 * @endpoint: filled
 *
 * Context: any.
 */
void ibchan_channel_endpoint(const struct ibchan_channel *ch, struct ibchan_endpoint *endpoint)
{
	*endpoint = ch->qp.endpoint;
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_endpoint, IBCHAN_NS);
