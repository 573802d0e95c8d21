// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connected pairs that do nothing, held until the module goes, so that a script
 * can look at the memory that they take: queue pairs of raw verbs, or channels
 * with the same queues. Room for completions is the same for both.
 */
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <rdma/ibchan.h>

#include "kbench.h"

/* Pairs on one completion queue: 256 * 2 * (16 + 16 + 2) entries fit soft-RoCE's. */
#define GROUP		256
#define QUEUES		(IBCHAN_DEFAULT_SEND_WR + IBCHAN_DEFAULT_RECV_WR + 2)
#define CQ_ENTRIES	(GROUP * 2 * QUEUES)

static struct {
	u32 pairs;
	/* raw verbs */
	struct ib_device *dev;
	struct kbench_address address;
	struct ib_pd *pd;
	struct ib_cq **cqs;
	struct ib_qp **qps;
	/* ibchan */
	struct ibchan_device *chan_dev;
	struct ibchan_pd *chan_pd;
	struct ibchan_cq **chan_cqs;
	struct ibchan_channel **channels;
} held;

static u32 num_cqs(void)
{
	return DIV_ROUND_UP(held.pairs, GROUP);
}

/* --- raw verbs --- */

static int raw_cqs(void)
{
	u32 i;

	for (i = 0; i < num_cqs(); i++) {
		struct ib_cq *cq = ib_alloc_cq(held.dev, NULL, CQ_ENTRIES, 0, IB_POLL_DIRECT);

		if (IS_ERR(cq))
			return PTR_ERR(cq);
		held.cqs[i] = cq;
	}
	return 0;
}

static int raw_qp(u32 index)
{
	struct ib_qp *qp = kbench_qp_create(held.pd, held.cqs[index / (2 * GROUP)],
					    IBCHAN_DEFAULT_SEND_WR, IBCHAN_DEFAULT_SEND_SGE);

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	held.qps[index] = qp;
	return 0;
}

static int raw_pair(u32 pair)
{
	struct ib_qp **qps = &held.qps[2 * pair];
	int ret = raw_qp(2 * pair) ?: raw_qp(2 * pair + 1);

	if (!ret)
		ret = kbench_qp_connect(qps[0], qps[1], &held.address);
	return ret ?: kbench_qp_connect(qps[1], qps[0], &held.address);
}

static int raw_tables(void)
{
	held.cqs = kvcalloc(num_cqs(), sizeof(*held.cqs), GFP_KERNEL);
	held.qps = kvcalloc(held.pairs, 2 * sizeof(*held.qps), GFP_KERNEL);
	return held.cqs && held.qps ? 0 : -ENOMEM;
}

static int raw_objects(void)
{
	struct ib_pd *pd;
	int ret = kbench_address_find(held.dev, &held.address) ?: raw_tables();
	u32 i;

	if (ret)
		return ret;
	pd = ib_alloc_pd(held.dev, 0);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	held.pd = pd;
	ret = raw_cqs();
	for (i = 0; i < held.pairs && !ret; i++)
		ret = raw_pair(i);
	return ret;
}

/**
 * kbench_memory_raw - hold pairs of raw verbs
 * @device: where, by name
 * @pairs: how many
 *
 * Return: 0, until kbench_memory_release(); an errno, with nothing held.
 */
int kbench_memory_raw(const char *device, u32 pairs)
{
	struct ib_device *dev = kbench_device_find(device);
	int ret;

	if (IS_ERR(dev))
		return PTR_ERR(dev);
	held.dev = dev;
	held.pairs = pairs;
	ret = raw_objects();
	if (ret)
		kbench_memory_release();
	return ret;
}

static void raw_release(void)
{
	u32 i;

	for (i = 0; held.qps && i < 2 * held.pairs && held.qps[i]; i++)
		ib_destroy_qp(held.qps[i]);
	for (i = 0; held.cqs && i < num_cqs() && held.cqs[i]; i++)
		ib_free_cq(held.cqs[i]);
	if (held.pd)
		ib_dealloc_pd(held.pd);
	kvfree(held.qps);
	kvfree(held.cqs);
	kbench_device_release();
}

/* --- ibchan --- */

static int chan_cqs(u32 flags)
{
	const struct ibchan_cq_init init = {
		.entries = CQ_ENTRIES,
		.flags = IBCHAN_CQ_POLLED | flags,
	};
	u32 i;

	for (i = 0; i < num_cqs(); i++) {
		struct ibchan_cq *cq = ibchan_cq_create(held.chan_dev, &init, NULL);

		if (IS_ERR(cq))
			return PTR_ERR(cq);
		held.chan_cqs[i] = cq;
	}
	return 0;
}

static int chan_build(u32 index)
{
	struct ibchan_cq *cq = held.chan_cqs[index / (2 * GROUP)];
	const struct ibchan_build with = {
		.pd = held.chan_pd, .send_cq = cq, .recv_cq = cq, .net = &init_net,
	};
	struct ibchan_params params;
	struct ibchan_channel *ch;

	ibchan_params_init(&params);
	ch = ibchan_channel_build(&with, &params, NULL);
	if (IS_ERR(ch))
		return PTR_ERR(ch);
	held.channels[index] = ch;
	return 0;
}

static int chan_connect(struct ibchan_channel *ch, struct ibchan_channel *peer)
{
	struct ibchan_endpoint endpoint;

	ibchan_channel_endpoint(peer, &endpoint);
	return ibchan_channel_handshake(ch, &endpoint, NULL);
}

static int chan_pair(u32 pair)
{
	struct ibchan_channel **channels = &held.channels[2 * pair];
	int ret = chan_build(2 * pair) ?: chan_build(2 * pair + 1);

	if (!ret)
		ret = chan_connect(channels[0], channels[1]);
	return ret ?: chan_connect(channels[1], channels[0]);
}

static int chan_tables(void)
{
	held.chan_cqs = kvcalloc(num_cqs(), sizeof(*held.chan_cqs), GFP_KERNEL);
	held.channels = kvcalloc(held.pairs, 2 * sizeof(*held.channels), GFP_KERNEL);
	return held.chan_cqs && held.channels ? 0 : -ENOMEM;
}

static int chan_objects(u32 flags)
{
	struct ibchan_pd *pd;
	int ret = chan_tables();
	u32 i;

	if (ret)
		return ret;
	pd = ibchan_pd_alloc(held.chan_dev);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	held.chan_pd = pd;
	ret = chan_cqs(flags);
	for (i = 0; i < held.pairs && !ret; i++)
		ret = chan_pair(i);
	return ret;
}

static int hold_channels(const char *device, u32 pairs, u32 flags)
{
	struct ibchan_device *dev = ibchan_device_get(device, &init_net);
	int ret;

	if (IS_ERR(dev))
		return PTR_ERR(dev);
	held.chan_dev = dev;
	held.pairs = pairs;
	ret = chan_objects(flags);
	if (ret)
		kbench_memory_release();
	return ret;
}

/**
 * kbench_memory_chan - hold pairs of channels with the default parameters
 * @device: where, by name
 * @pairs: how many
 *
 * Only works with a done() of their own can be posted on them.
 *
 * Return: 0, until kbench_memory_release(); an errno, with nothing held.
 */
int kbench_memory_chan(const char *device, u32 pairs)
{
	return hold_channels(device, pairs, 0);
}

/**
 * kbench_memory_kept - the same, for requests by wr_id
 * @device: where, by name
 * @pairs: how many
 *
 * Their works and completions have to be kept by ibchan.
 *
 * Return: 0, until kbench_memory_release(); an errno, with nothing held.
 */
int kbench_memory_kept(const char *device, u32 pairs)
{
	return hold_channels(device, pairs, IBCHAN_CQ_KEEP);
}

static void chan_release(void)
{
	u32 i;

	for (i = 0; held.channels && i < 2 * held.pairs && held.channels[i]; i++)
		ibchan_channel_close(held.channels[i]);
	for (i = 0; held.chan_cqs && i < num_cqs() && held.chan_cqs[i]; i++)
		ibchan_cq_put(held.chan_cqs[i]);
	if (held.chan_pd)
		WARN_ON(ibchan_pd_free(held.chan_pd));
	kvfree(held.channels);
	kvfree(held.chan_cqs);
	ibchan_device_put(held.chan_dev);
}

/* Gives back what is held, if anything. */
void kbench_memory_release(void)
{
	if (held.dev)
		raw_release();
	if (held.chan_dev)
		chan_release();
	memset(&held, 0, sizeof(held));
}
