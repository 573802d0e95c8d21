// SPDX-License-Identifier: GPL-2.0-only
/*
 * A device leaves while 64 works are in flight, and while threads build channels on
 * it, connect them, register memory, post and close. departure.h says how.
 */
#include <rdma/ibchan_follower.h>

#include "builder.h"
#include "departure.h"

#define CHANNELS	4
#define RECEIVES	8	/* a channel */
#define SENDS		8
#define WORKS		(CHANNELS * (RECEIVES + SENDS))

/*
 * The first side is on the device that leaves, the second stays. The peers have no
 * receives, and the sends try for ever.
 */
struct removal {
	struct world *w;
	struct ibchan_channel *ch[CHANNELS];
	struct side owners[CHANNELS];
	struct job *jobs;
};

#define BUILDERS	3

static struct builder builders[BUILDERS];

static struct removal removal;

/* What a follower was told of the first device; the others come and go as they like. */
static struct heard {
	struct ibchan_follower follower;
	struct ibchan_device *dev;
	int came;
	int left;
	int pd_error;
} heard;

static void device_comes(struct ibchan_follower *follower, struct ibchan_device *dev)
{
	heard.came += dev == heard.dev;
	ibchan_device_put(dev);
}

static void device_leaves(struct ibchan_follower *follower, struct ibchan_device *dev)
{
	struct ibchan_pd *pd;

	if (dev != heard.dev)
		return;
	pd = ibchan_pd_alloc(dev);
	heard.pd_error = PTR_ERR_OR_ZERO(pd) ?: ibchan_pd_free(pd);
	heard.left++;
}

static void channel_broken(void *priv, int error)
{
	struct side *owner = priv;

	owner->error = error;
	atomic_inc(&owner->broken);
}

/* Each channel has a record of its own for what it is told. */
static int build_channel(int i, const struct ibchan_params *params)
{
	struct side *a = &removal.w->side[0], *b = &removal.w->side[1];
	struct ibchan_params chosen = *params;
	struct ibchan_channel *peer;
	struct ibchan_build build;

	side_build_init(a, &build);
	build.broken = channel_broken;
	build.priv = &removal.owners[i];
	removal.ch[i] = ibchan_channel_build(&build, &chosen, NULL);
	if (!expect(removal.w, !IS_ERR(removal.ch[i])))
		return -ENODEV;
	world_keep(removal.w, THING_CHANNEL, removal.ch[i]);
	peer = side_build(b, params);
	if (!peer)
		return -ENODEV;
	return side_connect(removal.w, removal.ch[i], peer) ?:
	       side_connect(removal.w, peer, removal.ch[i]);
}

static int post_works(int i)
{
	struct side *a = &removal.w->side[0];
	struct job *jobs = removal.jobs + i * (RECEIVES + SENDS);
	struct ibchan_wr wr;
	int ret = 0;
	int j;

	for (j = 0; j < RECEIVES + SENDS && !ret; j++) {
		wr = job_wr(&jobs[j], j < RECEIVES ? IBCHAN_OP_RECV : IBCHAN_OP_SEND, a,
			    j * 64, 64);
		ret = job_post(&jobs[j], removal.ch[i], &wr, NULL);
		expect_eq(removal.w, ret, 0);
	}
	return ret;
}

static int start_builders(void)
{
	int i, ret = 0;

	for (i = 0; i < BUILDERS && !ret; i++) {
		builders[i] = (struct builder){ .near = &removal.w->side[0] };
		ret = builder_start(&builders[i]);
	}
	for (i = 0; i < BUILDERS && !ret; i++)
		ret = expect_soon(removal.w, READ_ONCE(builders[i].rounds)) ? 0 : -ETIME;
	return ret;
}

/* Where the device did not leave, they are told to end. */
static void join_builders(struct world *w)
{
	int i;

	for (i = 0; i < BUILDERS; i++) {
		if (builders[i].started &&
		    !expect_eq(w, builder_join(&builders[i]), -ENODEV))
			builders[i].wrong++;
	}
}

static int begin(struct world *w)
{
	struct pair_init init;
	int i, ret;

	removal.w = w;
	pair_defaults(&init);
	init.params.ack_timeout = 0;
	init.params.rnr_retries = 7;
	removal.jobs = world_jobs(w, WORKS);
	if (!removal.jobs || world_sides(w, &init))
		return -ENODEV;
	/* A shared region has its own way to end. */
	if (!side_share(&w->side[0]))
		return -ENODEV;
	for (i = 0; i < CHANNELS; i++) {
		ret = build_channel(i, &init.params) ?: post_works(i);
		if (ret)
			return ret;
	}
	if (!expect_eq(w, jobs_ended(removal.jobs, WORKS), 0))
		return -EIO;
	heard = (struct heard){
		.follower.comes = device_comes, .follower.leaves = device_leaves,
		.dev = w->side[0].dev, .pd_error = 1,
	};
	ibchan_device_follow(&heard.follower);
	return start_builders();
}

static void end(struct world *w)
{
	int i;

	if (heard.dev)
		ibchan_device_unfollow(&heard.follower);
	heard.dev = NULL;
	for (i = 0; i < BUILDERS; i++)
		builder_stop(&builders[i]);
	join_builders(w);
	w->failures = 0;
	for (i = 0; i < BUILDERS; i++)
		builder_close(&builders[i]);
}

static void all_works_have_ended_once(struct world *w)
{
	expect_eq(w, jobs_ended(removal.jobs, WORKS), WORKS);
	expect_eq(w, jobs_repeated(removal.jobs, WORKS), 0);
}

static void all_works_were_flushed(struct world *w)
{
	int i;

	for (i = 0; i < WORKS; i++)
		expect_eq(w, removal.jobs[i].completion.status, IBCHAN_STATUS_WR_FLUSH_ERR);
}

static void each_channel_was_told_once(struct world *w)
{
	int i;

	for (i = 0; i < CHANNELS; i++) {
		expect_eq(w, atomic_read(&removal.owners[i].broken), 1);
		expect_eq(w, removal.owners[i].error, -ENODEV);
	}
}

static void each_cq_was_told_once(struct world *w)
{
	expect_eq(w, atomic_read(&w->side[0].gone), 1);
}

static void the_other_device_was_told_nothing(struct world *w)
{
	expect_eq(w, atomic_read(&w->side[1].gone), 0);
	expect_eq(w, channel_state(w->side[1].ch), IBCHAN_CHANNEL_PREPARED);
}

static void a_follower_was_told_once_while_the_device_still_worked(struct world *w)
{
	expect_eq(w, heard.came, 1);
	expect_eq(w, heard.left, 1);
	expect_eq(w, heard.pd_error, 0);
}

static void posts_answer_enodev(struct world *w)
{
	struct side *a = &w->side[0];
	struct ibchan_outcome outcome = {};

	expect_eq(w, ibchan_channel_send(removal.ch[0], side_sge(a, 0, 8), 1, &outcome), -ENODEV);
	expect_eq(w, outcome.posted, 0);
	expect_eq(w, outcome.reason.code, IBCHAN_REASON_DEVICE_GONE);
	expect_eq(w, ibchan_post_receive(removal.ch[1], a->local, 0, 8, 0), -ENODEV);
}

static void new_objects_answer_enodev(struct world *w)
{
	const struct ibchan_cq_init cq = { .sink = &side_sink, .priv = &w->side[0] };
	struct side *a = &w->side[0];
	struct ibchan_device_attr device;
	struct ibchan_port_attr port;
	struct ibchan_params params;
	struct ibchan_build build;

	ibchan_params_init(&params);
	side_build_init(a, &build);
	expect_eq(w, PTR_ERR(ibchan_pd_alloc(a->dev)), -ENODEV);
	expect_eq(w, PTR_ERR(ibchan_cq_create(a->dev, &cq, NULL)), -ENODEV);
	expect_eq(w, PTR_ERR(ibchan_channel_build(&build, &params, NULL)), -ENODEV);
	expect_eq(w, PTR_ERR(ibchan_mr_reg_kernel(a->pd, a->buf, 64, IBCHAN_ACCESS_LOCAL, NULL)),
		  -ENODEV);
	expect_eq(w, PTR_ERR(ibchan_mr_reg_kernel(a->pd, a->buf, 64, IBCHAN_ACCESS_SHARED, NULL)),
		  -ENODEV);
	expect_eq(w, ibchan_device_query(a->dev, &device), -ENODEV);
	expect_eq(w, ibchan_port_query(a->dev, 1, build.net, &port), -ENODEV);
}

static void the_prepared_channel_refuses_its_handshake(struct world *w)
{
	struct ibchan_endpoint endpoint;

	ibchan_channel_endpoint(w->side[1].ch, &endpoint);
	expect_eq(w, ibchan_channel_handshake(w->side[0].ch, &endpoint, NULL), -ENODEV);
}

/* They worked before, and then got the one answer that there is. */
static void threads_that_build_end_with_enodev(struct world *w)
{
	int i;

	for (i = 0; i < BUILDERS; i++) {
		expect(w, builders[i].rounds);
		expect_eq(w, builders[i].wrong, 0);
	}
}

/* Also those that were built when the removal had begun. */
static void each_channel_that_was_handed_out_was_told_once(struct world *w)
{
	struct slot *slot;
	int i, found = 0;

	for (i = 0; i < BUILDERS * BUILDER_SLOTS; i++) {
		slot = &builders[i / BUILDER_SLOTS].slots[i % BUILDER_SLOTS];
		if (!slot->ch)
			continue;
		found++;
		expect_eq(w, atomic_read(&slot->told), 1);
		expect_eq(w, slot->error, -ENODEV);
	}
	expect(w, found);
}

static void each_work_of_theirs_has_ended_once(struct world *w)
{
	struct slot *slot;
	int i;

	for (i = 0; i < BUILDERS * BUILDER_SLOTS; i++) {
		slot = &builders[i / BUILDER_SLOTS].slots[i % BUILDER_SLOTS];
		expect_eq(w, jobs_ended(slot->jobs, slot->posted), slot->posted);
		expect_eq(w, jobs_repeated(slot->jobs, slot->posted), 0);
	}
}

static const struct test_case removal_cases[] = {
	CASE(all_works_have_ended_once),
	CASE(all_works_were_flushed),
	CASE(each_channel_was_told_once),
	CASE(each_cq_was_told_once),
	CASE(the_other_device_was_told_nothing),
	CASE(a_follower_was_told_once_while_the_device_still_worked),
	CASE(posts_answer_enodev),
	CASE(new_objects_answer_enodev),
	CASE(the_prepared_channel_refuses_its_handshake),
	CASE(threads_that_build_end_with_enodev),
	CASE(each_channel_that_was_handed_out_was_told_once),
	CASE(each_work_of_theirs_has_ended_once),
};

const struct departure removal_departure = {
	.name = "removal",
	.cases = removal_cases,
	.num = ARRAY_SIZE(removal_cases),
	.begin = begin,
	.settle = join_builders,
	.end = end,
};
