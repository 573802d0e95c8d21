// SPDX-License-Identifier: GPL-2.0-only
/* The world of one case: see world.h. */
#include <linux/iopoll.h>
#include <linux/kmsg_dump.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <net/net_namespace.h>
#include <rdma/ibchan_connect.h>

#include "world.h"

struct thing {
	struct list_head link;
	void *object;
};

int world_expect(struct world *w, int holds, const char *what, const char *file, int line)
{
	if (holds)
		return 1;
	w->failures++;
	pr_info("# %s: %s:%d: expected %s\n", w->name, kbasename(file), line, what);
	return 0;
}

int world_expect_eq(struct world *w, s64 got, s64 want, const char *what, const char *where)
{
	if (got == want)
		return 1;
	w->failures++;
	pr_info("# %s: %s: expected %s, got %lld, want %lld\n", w->name, kbasename(where),
		what, got, want);
	return 0;
}

void world_skip(struct world *w, const char *why)
{
	w->skipped = why;
}

ktime_t after_ms(unsigned int ms)
{
	return ktime_add_ms(ktime_get(), ms);
}

/* --- what there is to give back --- */

void world_keep(struct world *w, enum thing_kind kind, void *object)
{
	struct thing *thing = kmalloc(sizeof(*thing), GFP_KERNEL | __GFP_NOFAIL);

	thing->object = object;
	spin_lock_bh(&w->lock);
	list_add(&thing->link, &w->things[kind]);
	spin_unlock_bh(&w->lock);
}

/* The caller holds the lock. */
static struct thing *find_thing(struct world *w, enum thing_kind kind, const void *object)
{
	struct thing *thing;

	list_for_each_entry(thing, &w->things[kind], link)
		if (thing->object == object)
			return thing;
	return NULL;
}

/* The case gives it back itself. Returns whether it was there. */
int world_forget(struct world *w, enum thing_kind kind, void *object)
{
	struct thing *thing;

	spin_lock_bh(&w->lock);
	thing = find_thing(w, kind, object);
	if (thing)
		list_del(&thing->link);
	spin_unlock_bh(&w->lock);
	kfree(thing);
	return !!thing;
}

static void *take_youngest(struct world *w, enum thing_kind kind)
{
	struct thing *thing;
	void *object = NULL;

	spin_lock_bh(&w->lock);
	thing = list_first_entry_or_null(&w->things[kind], struct thing, link);
	if (thing)
		list_del(&thing->link);
	spin_unlock_bh(&w->lock);
	if (thing)
		object = thing->object;
	kfree(thing);
	return object;
}

/* A worker may be about to free a channel whose last reference has just gone. */
static int cq_ends(struct ibchan_cq *cq)
{
	int ret;

	return !read_poll_timeout(ibchan_cq_try_destroy, ret, !ret, USEC_PER_MSEC,
				  (u64)patience * USEC_PER_MSEC, false, cq);
}

static void give_back(struct world *w, enum thing_kind kind, void *object)
{
	switch (kind) {
	case THING_LISTENER:
		ibchan_listener_close(object);
		break;
	case THING_REQUEST:
		expect_eq(w, ibchan_request_reject(object, NULL, 0), 0);
		break;
	case THING_CHANNEL:
		ibchan_channel_close(object);
		break;
	case THING_MR:
		ibchan_mr_put(object, NULL, NULL);
		break;
	case THING_CQ:
		expect(w, cq_ends(object));
		ibchan_cq_put(object);
		break;
	case THING_PD:
		expect_eq(w, ibchan_pd_settle(object), 0);
		expect_eq(w, ibchan_pd_free(object), 0);
		break;
	case THING_DEVICE:
		ibchan_device_put(object);
		break;
	default:
		kvfree(object);
	}
}

/* Regions are given up by a worker, which their domains have to wait for. */
void world_give_back(struct world *w)
{
	enum thing_kind kind;
	void *object;

	for (kind = 0; kind < THING_KINDS; kind++) {
		if (kind == THING_CQ)
			ibchan_closing_wait(&w->closing);
		while ((object = take_youngest(w, kind)))
			give_back(w, kind, object);
	}
}

void world_break_all(struct world *w, int error)
{
	struct thing *thing;

	spin_lock_bh(&w->lock);
	list_for_each_entry(thing, &w->things[THING_CHANNEL], link)
		ibchan_channel_break(thing->object, error);
	spin_unlock_bh(&w->lock);
}

/* A blocking call that hangs comes back when its channel is broken. */
static void world_hangs(struct work_struct *work)
{
	struct world *w = container_of(to_delayed_work(work), struct world, watchdog);

	w->failures++;
	pr_info("# %s: took too long; breaking its channels\n", w->name);
	world_break_all(w, -ETIME);
}

struct world *world_new(const char *name)
{
	struct world *w = kvzalloc(sizeof(*w), GFP_KERNEL);
	int kind, i;

	if (!w)
		return NULL;
	w->name = name;
	init_waitqueue_head(&w->wait);
	spin_lock_init(&w->lock);
	for (kind = 0; kind < THING_KINDS; kind++)
		INIT_LIST_HEAD(&w->things[kind]);
	for (i = 0; i < 2; i++)
		w->side[i].world = w;
	INIT_DELAYED_WORK(&w->watchdog, world_hangs);
	return w;
}

void world_free(struct world *w)
{
	kvfree(w);
}

/* Up to a page: that much there always is. */
void *world_alloc(struct world *w, size_t size)
{
	void *memory = kzalloc(size, GFP_KERNEL | __GFP_NOFAIL);

	world_keep(w, THING_MEMORY, memory);
	return memory;
}

/* Any size, contiguous. */
void *world_kalloc(struct world *w, size_t size)
{
	void *memory = kzalloc(size, GFP_KERNEL);

	if (expect(w, memory))
		world_keep(w, THING_MEMORY, memory);
	return memory;
}

void *world_valloc(struct world *w, size_t size)
{
	void *memory = vzalloc(size);

	if (expect(w, memory))
		world_keep(w, THING_MEMORY, memory);
	return memory;
}

/* --- the callbacks of a side --- */

static int side_reserve(void *priv, u32 num)
{
	struct side *side = priv;
	int taken, reserved = atomic_read(&side->reserved);

	do {
		taken = min_t(int, num, side->room - reserved);
		if (taken <= 0)
			return -EAGAIN;
	} while (!atomic_try_cmpxchg(&side->reserved, &reserved, reserved + taken));
	return taken;
}

static void side_cancel(void *priv, u32 num)
{
	struct side *side = priv;

	atomic_sub(num, &side->reserved);
}

static void side_done(void *priv, const struct ibchan_completion *completion)
{
	struct side *side = priv;
	int number = atomic_read(&side->logged);

	atomic_dec(&side->reserved);
	if (number < SIDE_LOG)
		side->log[number] = *completion;
	/* Whoever sees the count sees the entry. */
	smp_mb__before_atomic();
	atomic_inc(&side->logged);
	wake_up(&side->world->wait);
}

static void side_notify(void *priv)
{
	struct side *side = priv;

	atomic_inc(&side->notified);
	wake_up(&side->world->wait);
}

static void side_gone(void *priv)
{
	struct side *side = priv;

	atomic_inc(&side->gone);
	wake_up(&side->world->wait);
}

const struct ibchan_sink side_sink = {
	.reserve = side_reserve,
	.cancel = side_cancel,
	.done = side_done,
	.notify = side_notify,
	.gone = side_gone,
};

static void side_broken(void *priv, int error)
{
	struct side *side = priv;

	side->error = error;
	atomic_inc(&side->broken);
	wake_up(&side->world->wait);
}

/* --- making things --- */

struct ibchan_device *world_device(struct world *w, int index)
{
	struct ibchan_device *dev = ibchan_device_get(device_names[index], &init_net);

	if (!expect(w, !IS_ERR(dev)))
		return NULL;
	world_keep(w, THING_DEVICE, dev);
	return dev;
}

struct ibchan_pd *world_pd(struct world *w, struct ibchan_device *dev)
{
	struct ibchan_pd *pd = ibchan_pd_alloc(dev);

	if (!expect(w, !IS_ERR(pd)))
		return NULL;
	world_keep(w, THING_PD, pd);
	return pd;
}

struct ibchan_cq *world_cq(struct world *w, struct ibchan_device *dev,
			   const struct ibchan_cq_init *init)
{
	struct ibchan_cq *cq = ibchan_cq_create(dev, init, NULL);

	if (!expect(w, !IS_ERR(cq)))
		return NULL;
	world_keep(w, THING_CQ, cq);
	return cq;
}

/* The result of a registration, which should have worked. */
struct ibchan_mr *world_keep_mr(struct world *w, struct ibchan_mr *mr)
{
	if (!expect_eq(w, PTR_ERR_OR_ZERO(mr), 0))
		return NULL;
	world_keep(w, THING_MR, mr);
	return mr;
}

struct ibchan_mr *world_mr(struct world *w, struct ibchan_pd *pd, void *addr, u64 length,
			   u32 access)
{
	return world_keep_mr(w, ibchan_mr_reg_kernel(pd, addr, length, access, NULL));
}

/* --- sides and pairs --- */

void pair_defaults(struct pair_init *init)
{
	*init = (struct pair_init){ .sink = &side_sink };
	ibchan_params_init(&init->params);
	/* 67 ms: a peer that has gone is given up within half a second. */
	init->params.ack_timeout = 14;
}

static int side_queues(struct side *side, const struct pair_init *init)
{
	const struct ibchan_cq_init cq = {
		.entries = init->cq_entries,
		.flags = init->cq_flags,
		.moderation_count = init->moderation_count,
		.moderation_us = init->moderation_us,
		.sink = init->sink,
		.priv = side,
	};

	side->send_cq = world_cq(side->world, side->dev, &cq);
	side->recv_cq = init->two_cqs ? world_cq(side->world, side->dev, &cq) : side->send_cq;
	return side->send_cq && side->recv_cq ? 0 : -ENODEV;
}

/* The second side of a loop shares the device and the domain of the first. */
static int side_open(struct side *side, const struct pair_init *init)
{
	struct world *w = side->world;
	struct side *first = &w->side[0];

	side->room = INT_MAX;
	side->options = init->options;
	side->max_sgl = init->max_sgl;
	if (init->loop && side != first) {
		side->dev = first->dev;
		side->pd = first->pd;
	} else {
		side->dev = world_device(w, side - first);
		side->pd = side->dev ? world_pd(w, side->dev) : NULL;
	}
	if (!side->pd || side_queues(side, init))
		return -ENODEV;
	side->buf = world_kalloc(w, SIDE_BYTES);
	if (!side->buf)
		return -ENOMEM;
	side->local = world_mr(w, side->pd, side->buf, SIDE_BYTES, IBCHAN_ACCESS_LOCAL);
	return side->local ? 0 : -ENODEV;
}

void side_build_init(struct side *side, struct ibchan_build *build)
{
	*build = (struct ibchan_build){
		.pd = side->pd,
		.send_cq = side->send_cq,
		.recv_cq = side->recv_cq,
		.net = &init_net,
		.cookie = (uintptr_t)side,
		.broken = side_broken,
		.priv = side,
		.max_sgl = side->max_sgl,
		.exclusive = true,
		.options = side->options,
	};
}

struct ibchan_channel *side_build(struct side *side, const struct ibchan_params *params)
{
	struct ibchan_params chosen = *params;
	struct ibchan_reason reason = {};
	struct ibchan_channel *ch;
	struct ibchan_build build;

	side_build_init(side, &build);
	ch = ibchan_channel_build(&build, &chosen, &reason);
	if (!expect_eq(side->world, PTR_ERR_OR_ZERO(ch), 0)) {
		pr_info("# %s: reason %u, element %u\n", side->world->name, reason.code,
			reason.element);
		return NULL;
	}
	world_keep(side->world, THING_CHANNEL, ch);
	return ch;
}

int side_connect(struct world *w, struct ibchan_channel *ch, struct ibchan_channel *peer)
{
	struct ibchan_reason reason = {};
	struct ibchan_endpoint endpoint;
	int ret;

	ibchan_channel_endpoint(peer, &endpoint);
	ret = ibchan_channel_handshake(ch, &endpoint, &reason);
	if (!expect_eq(w, ret, 0))
		pr_info("# %s: handshake: reason %u\n", w->name, reason.code);
	return ret;
}

/* Two sides with prepared channels. */
int world_sides(struct world *w, const struct pair_init *init)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (side_open(&w->side[i], init))
			return -ENODEV;
		w->side[i].ch = side_build(&w->side[i], &init->params);
		if (!w->side[i].ch)
			return -ENODEV;
	}
	return 0;
}

/* Two connected sides. */
int world_pair(struct world *w, const struct pair_init *init)
{
	int ret = world_sides(w, init);

	if (!ret)
		ret = side_connect(w, w->side[0].ch, w->side[1].ch);
	if (!ret)
		ret = side_connect(w, w->side[1].ch, w->side[0].ch);
	return ret;
}

int world_default_pair(struct world *w)
{
	struct pair_init init;

	pair_defaults(&init);
	return world_pair(w, &init);
}

const struct ibchan_remote *side_share_as(struct side *side, u32 access)
{
	side->shared = world_mr(side->world, side->pd, side->buf, SIDE_BYTES, access);
	if (!side->shared)
		return NULL;
	expect_eq(side->world, ibchan_mr_remote(side->shared, &side->remote), 0);
	return &side->remote;
}

/* The buffer, for the peer. */
const struct ibchan_remote *side_share(struct side *side)
{
	return side_share_as(side, IBCHAN_ACCESS_ALL);
}

/* An element of the local region, kept until the case is over. */
struct ibchan_sge *side_sge(struct side *side, u64 offset, u32 length)
{
	struct ibchan_sge *sge = world_alloc(side->world, sizeof(*sge));

	*sge = ibchan_sge_unchecked(side->local, offset, length);
	return sge;
}

/* How many bytes of inline data the first device takes: @wanted, or fewer. */
u32 world_inline_room(struct world *w, u32 wanted)
{
	struct ibchan_device *dev = world_device(w, 0);
	struct ibchan_pd *pd = dev ? world_pd(w, dev) : NULL;
	struct ibchan_cq *cq = pd ? world_cq(w, dev, &(struct ibchan_cq_init) {}) : NULL;
	const struct ibchan_build build = { .pd = pd, .send_cq = cq, .recv_cq = cq };
	struct ibchan_reason reason = {};
	struct ibchan_params params;
	struct ibchan_channel *ch;

	if (!cq)
		return 0;
	ibchan_params_init(&params);
	params.max_inline_data = wanted;
	ch = ibchan_channel_build(&build, &params, &reason);
	if (!IS_ERR(ch)) {
		ibchan_channel_close(ch);
		return wanted;
	}
	expect_eq(w, PTR_ERR(ch), -EINVAL);
	expect_eq(w, reason.code, IBCHAN_REASON_PARAMETER);
	expect_eq(w, reason.element, IBCHAN_PARAMETER_MAX_INLINE_DATA);
	expect(w, reason.value[2] < wanted);
	return reason.value[2];
}

void side_close(struct side *side)
{
	struct ibchan_channel *ch = side->ch;

	/* It could not be built. */
	if (!ch)
		return;
	side->ch = NULL;
	world_forget(side->world, THING_CHANNEL, ch);
	ibchan_channel_close(ch);
}

u32 channel_state(struct ibchan_channel *ch)
{
	struct ibchan_channel_attr attr;

	ibchan_channel_query(ch, &attr);
	return attr.state;
}

int channel_in_flight(struct ibchan_channel *ch)
{
	struct ibchan_channel_attr attr;

	ibchan_channel_query(ch, &attr);
	return attr.sends_in_flight + attr.recvs_in_flight;
}

/* --- data --- */

static u8 pattern(size_t i, u32 seed)
{
	return seed + i + (i >> 8) * 7;
}

void fill_pattern(u8 *bytes, size_t length, u32 seed)
{
	size_t i;

	for (i = 0; i < length; i++)
		bytes[i] = pattern(i, seed);
}

int has_pattern(const u8 *bytes, size_t length, u32 seed)
{
	size_t i;

	for (i = 0; i < length; i++)
		if (bytes[i] != pattern(i, seed))
			return 0;
	return 1;
}

/* How often the kernel log says so. */
int log_lines_with(const char *text)
{
	struct kmsg_dump_iter iter;
	static char line[512];
	size_t length;
	int lines = 0;

	kmsg_dump_rewind(&iter);
	while (kmsg_dump_get_line(&iter, false, line, sizeof(line) - 1, &length)) {
		line[length] = 0;
		lines += !!strstr(line, text);
	}
	return lines;
}
