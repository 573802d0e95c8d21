// SPDX-License-Identifier: GPL-2.0-only
#include "builder.h"

#define SLOT_WORKS	8

static void slot_broken(void *priv, int error)
{
	struct slot *slot = priv;

	slot->error = error;
	atomic_inc(&slot->told);
}

/* The end of a channel is told to its slot, or for a peer to its side. */
static struct ibchan_channel *build_on(struct side *side, struct slot *slot)
{
	struct ibchan_params params;
	struct ibchan_build build;

	ibchan_params_init(&params);
	side_build_init(side, &build);
	if (slot) {
		build.broken = slot_broken;
		build.priv = slot;
	}
	return ibchan_channel_build(&build, &params, NULL);
}

static int connect_to(struct ibchan_channel *ch, struct ibchan_channel *peer)
{
	struct ibchan_endpoint endpoint;

	ibchan_channel_endpoint(peer, &endpoint);
	return ibchan_channel_handshake(ch, &endpoint, NULL);
}

static int slot_build(struct builder *builder, struct slot *slot)
{
	struct ibchan_channel *ch;

	atomic_set(&slot->told, 0);
	slot->posted = 0;
	ch = build_on(builder->near, slot);
	if (IS_ERR(ch))
		return PTR_ERR(ch);
	slot->ch = ch;
	if (!builder->far)
		return connect_to(ch, ch);
	ch = build_on(builder->far, NULL);
	if (IS_ERR(ch))
		return PTR_ERR(ch);
	slot->peer = ch;
	return connect_to(slot->ch, slot->peer) ?: connect_to(slot->peer, slot->ch);
}

static int slot_register(struct builder *builder, struct slot *slot)
{
	struct side *near = builder->near;
	struct ibchan_mr *mr;

	mr = ibchan_mr_reg_kernel(near->pd, near->buf, 4096, IBCHAN_ACCESS_SHARED, NULL);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	slot->mr = mr;
	return 0;
}

static int slot_post(struct builder *builder, struct slot *slot)
{
	struct side *receiver = builder->far ?: builder->near;
	struct ibchan_wr wr;
	int ret = 0;
	u32 i;

	for (i = 0; i < SLOT_WORKS && !ret; i++) {
		struct job *job = &slot->jobs[i];

		atomic_set(&job->ended, 0);
		if (i % 2) {
			wr = job_wr(job, IBCHAN_OP_SEND, builder->near, i * 64, 64);
			ret = job_post(job, slot->ch, &wr, NULL);
		} else {
			wr = job_wr(job, IBCHAN_OP_RECV, receiver, i * 64, 64);
			ret = job_post(job, slot->peer ?: slot->ch, &wr, NULL);
		}
		slot->posted += !ret;
	}
	return ret;
}

/* Its owner closes it: then it may have been told before, and is not told any more. */
static void slot_close(struct builder *builder, struct slot *slot)
{
	struct world *w = builder->thread.world;
	int told;

	ibchan_channel_close(slot->ch);
	slot->ch = NULL;
	if (slot->peer)
		ibchan_channel_close(slot->peer);
	slot->peer = NULL;
	told = atomic_read(&slot->told);
	if (!expect(w, told <= 1) ||
	    !expect_eq(w, jobs_ended(slot->jobs, slot->posted), slot->posted) ||
	    !expect_eq(w, jobs_repeated(slot->jobs, slot->posted), 0))
		builder->wrong++;
	if (slot->mr)
		ibchan_mr_put(slot->mr, NULL, NULL);
	slot->mr = NULL;
}

/* What is under way when the device leaves may also meet what that has broken. */
static int is_of_removal(int error)
{
	return error == -ENODEV || error == -ESHUTDOWN || error == -ECANCELED;
}

static int is_borne(const struct builder *builder, int error)
{
	return builder->bears && builder->bears(error);
}

/* The one answer that it ends with is that of a new channel. */
static int builder_run(void *arg)
{
	struct builder *builder = arg;
	struct slot *slot;
	u32 number = 0;
	int ret;

	while (!READ_ONCE(builder->stop)) {
		slot = &builder->slots[number++ % BUILDER_SLOTS];
		if (slot->ch)
			slot_close(builder, slot);
		ret = slot_build(builder, slot);
		if (!slot->ch && !is_borne(builder, ret))
			return ret;
		ret = ret ?: slot_register(builder, slot) ?: slot_post(builder, slot);
		WRITE_ONCE(builder->rounds, builder->rounds + !ret);
		wake_up(&builder->thread.world->wait);
		if (ret && !is_borne(builder, ret) &&
		    !expect(builder->thread.world, is_of_removal(ret)))
			builder->wrong++;
		cond_resched();
	}
	return -ETIME;
}

/**
 * builder_start - let one begin
 * @builder: its @near, @far and @bears are set, all else is zero
 */
int builder_start(struct builder *builder)
{
	struct world *w = builder->near->world;
	int i, ret;

	builder->thread = (struct thread){ .world = w, .run = builder_run, .arg = builder };
	for (i = 0; i < BUILDER_SLOTS; i++) {
		builder->slots[i].jobs = world_jobs(w, SLOT_WORKS);
		if (!builder->slots[i].jobs)
			return -ENOMEM;
	}
	ret = thread_start(&builder->thread);
	builder->started = !ret;
	return ret;
}

void builder_stop(struct builder *builder)
{
	WRITE_ONCE(builder->stop, 1);
}

/**
 * builder_join - wait for one that was started
 * @builder: it
 *
 * One that does not end is told to after a while.
 *
 * Return: -ETIME when it was told to end, else the answer that it ended with: -ENODEV.
 */
int builder_join(struct builder *builder)
{
	if (!wait_event_timeout(builder->thread.world->wait, READ_ONCE(builder->thread.ended),
				msecs_to_jiffies(patience)))
		builder_stop(builder);
	builder->started = 0;
	return thread_join(&builder->thread);
}

/* What one that has ended has left open. */
void builder_close(struct builder *builder)
{
	int i;

	for (i = 0; i < BUILDER_SLOTS; i++)
		if (builder->slots[i].ch)
			slot_close(builder, &builder->slots[i]);
}
