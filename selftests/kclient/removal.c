// SPDX-License-Identifier: GPL-2.0-only
/*
 * A device leaves while 64 works are in flight, and while threads build channels on
 * it, connect them, register memory, post and close.
 *
 *	insmod ibchan_kclient.ko suite=removal
 *	rdma link delete rxe0			# 5 s at most, which the shell measures
 *	echo 1 >/sys/module/ibchan_kclient/parameters/verdict
 *	rmmod ibchan_kclient
 *
 * insmod posts the works on the first device of `devices`, starts the threads, and
 * returns. The write looks at what came of them and prints KTAP; rmmod prints it if nobody asked
 * before, and gives everything back, which prints one line more if that fails.
 * The shells of the objects are there until then.
 */
#include <linux/moduleparam.h>

#include "job.h"
#include "suites.h"

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
	int told;
};

#define BUILDERS	3
#define SLOTS		4	/* channels of a builder that are open at a time */
#define SLOT_WORKS	8

/**
 * struct slot - a channel of a builder's, its own peer, and what became of it
 * @ch: it; NULL: none was handed out yet
 * @mr: registered beside it
 * @jobs: posted on it, the first @posted of them
 * @posted: works accepted
 * @told: how often broken() was called
 * @error: what broken() was told last
 */
struct slot {
	struct ibchan_channel *ch;
	struct ibchan_mr *mr;
	struct job *jobs;
	u32 posted;
	atomic_t told;
	int error;
};

/**
 * struct builder - a thread that uses the device until that has gone
 * @thread: it
 * @slots: its channels; the oldest one is closed to build another
 * @started: it runs, or has
 * @rounds: channels that it built, connected and posted on
 * @wrong: expectations that did not hold
 */
struct builder {
	struct thread thread;
	struct slot slots[SLOTS];
	int started;
	u32 rounds;
	u32 wrong;
};

static struct builder builders[BUILDERS];
static int builders_stop;

static struct removal removal;

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

static void slot_broken(void *priv, int error)
{
	struct slot *slot = priv;

	slot->error = error;
	atomic_inc(&slot->told);
}

static int slot_build(struct slot *slot)
{
	struct ibchan_endpoint endpoint;
	struct ibchan_params params;
	struct ibchan_channel *ch;
	struct ibchan_build build;

	ibchan_params_init(&params);
	side_build_init(&removal.w->side[0], &build);
	build.broken = slot_broken;
	build.priv = slot;
	atomic_set(&slot->told, 0);
	slot->posted = 0;
	ch = ibchan_channel_build(&build, &params, NULL);
	if (IS_ERR(ch))
		return PTR_ERR(ch);
	slot->ch = ch;
	ibchan_channel_endpoint(ch, &endpoint);
	return ibchan_channel_handshake(ch, &endpoint, NULL);
}

static int slot_register(struct slot *slot)
{
	struct side *a = &removal.w->side[0];
	struct ibchan_mr *mr;

	mr = ibchan_mr_reg_kernel(a->pd, a->buf, 4096, IBCHAN_ACCESS_SHARED, NULL);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	slot->mr = mr;
	return 0;
}

static int slot_post(struct slot *slot)
{
	struct side *a = &removal.w->side[0];
	struct ibchan_wr wr;
	int ret = 0;
	u32 i;

	for (i = 0; i < SLOT_WORKS && !ret; i++) {
		atomic_set(&slot->jobs[i].ended, 0);
		wr = job_wr(&slot->jobs[i], i % 2 ? IBCHAN_OP_SEND : IBCHAN_OP_RECV, a,
			    i * 64, 64);
		ret = job_post(&slot->jobs[i], slot->ch, &wr, NULL);
		slot->posted += !ret;
	}
	return ret;
}

/* Its owner closes it: then it may have been told before, and is not told any more. */
static void slot_close(struct builder *builder, struct slot *slot)
{
	struct world *w = removal.w;
	int told;

	ibchan_channel_close(slot->ch);
	slot->ch = NULL;
	told = atomic_read(&slot->told);
	if (!expect(w, told <= 1) ||
	    !expect_eq(w, jobs_ended(slot->jobs, slot->posted), slot->posted) ||
	    !expect_eq(w, jobs_repeated(slot->jobs, slot->posted), 0))
		builder->wrong++;
	if (slot->mr)
		ibchan_mr_put(slot->mr);
	slot->mr = NULL;
}

/* What is under way when the device leaves may also meet what that has broken. */
static int is_of_removal(int error)
{
	return error == -ENODEV || error == -ESHUTDOWN || error == -ECANCELED;
}

/* The one answer that it ends with is that of a new channel. */
static int builder_run(void *arg)
{
	struct builder *builder = arg;
	u32 number = 0;
	struct slot *slot;
	int ret;

	while (!READ_ONCE(builders_stop)) {
		slot = &builder->slots[number++ % SLOTS];
		if (slot->ch)
			slot_close(builder, slot);
		ret = slot_build(slot);
		if (!slot->ch)
			return ret;
		ret = ret ?: slot_register(slot) ?: slot_post(slot);
		builder->rounds += !ret;
		if (ret && !expect(removal.w, is_of_removal(ret)))
			builder->wrong++;
		cond_resched();
	}
	return -ETIME;
}

static int start_builder(struct builder *builder)
{
	int i, ret;

	*builder = (struct builder){
		.thread = { .world = removal.w, .run = builder_run, .arg = builder },
	};
	for (i = 0; i < SLOTS; i++) {
		builder->slots[i].jobs = world_jobs(removal.w, SLOT_WORKS);
		if (!builder->slots[i].jobs)
			return -ENOMEM;
	}
	ret = thread_start(&builder->thread);
	builder->started = !ret;
	return ret;
}

static int start_builders(void)
{
	int i, ret = 0;

	builders_stop = 0;
	for (i = 0; i < BUILDERS && !ret; i++)
		ret = start_builder(&builders[i]);
	return ret;
}

/* Where the device did not leave, they are told to end. */
static void join_builders(void)
{
	int i;

	for (i = 0; i < BUILDERS; i++) {
		if (!builders[i].started)
			continue;
		if (!wait_event_timeout(removal.w->wait, READ_ONCE(builders[i].thread.ended),
					msecs_to_jiffies(patience)))
			WRITE_ONCE(builders_stop, 1);
		builders[i].started = 0;
		if (!expect_eq(removal.w, thread_join(&builders[i].thread), -ENODEV))
			builders[i].wrong++;
	}
}

static void close_slots(void)
{
	int i;

	for (i = 0; i < BUILDERS * SLOTS; i++)
		if (builders[i / SLOTS].slots[i % SLOTS].ch)
			slot_close(&builders[i / SLOTS], &builders[i / SLOTS].slots[i % SLOTS]);
}

static int begin(struct world *w)
{
	struct pair_init init;
	int i, ret;

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
	return start_builders();
}

static void give_back(void)
{
	WRITE_ONCE(builders_stop, 1);
	join_builders();
	removal.w->failures = 0;
	close_slots();
	world_give_back(removal.w);
}

int removal_begin(void)
{
	int ret;

	removal.w = world_new("removal");
	if (!removal.w)
		return -ENOMEM;
	ret = begin(removal.w);
	if (!ret) {
		pr_info("# removal: %d works are in flight on %s\n", WORKS, device_names[0]);
		return 0;
	}
	give_back();
	world_free(removal.w);
	removal.w = NULL;
	return ret;
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

	for (i = 0; i < BUILDERS * SLOTS; i++) {
		slot = &builders[i / SLOTS].slots[i % SLOTS];
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

	for (i = 0; i < BUILDERS * SLOTS; i++) {
		slot = &builders[i / SLOTS].slots[i % SLOTS];
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
	CASE(posts_answer_enodev),
	CASE(new_objects_answer_enodev),
	CASE(the_prepared_channel_refuses_its_handshake),
	CASE(threads_that_build_end_with_enodev),
	CASE(each_channel_that_was_handed_out_was_told_once),
	CASE(each_work_of_theirs_has_ended_once),
};

/* What has not come when the removal has returned does not come any more. */
void removal_verdict(void)
{
	u32 num = ARRAY_SIZE(removal_cases);
	u32 failed = 0;
	u32 i;

	if (!removal.w || removal.told)
		return;
	removal.told = 1;
	join_builders();
	pr_info("KTAP version 1\n");
	pr_info("1..%u\n", num);
	for (i = 0; i < num; i++) {
		removal.w->failures = 0;
		removal_cases[i].run(removal.w);
		failed += !!removal.w->failures;
		pr_info("%sok %u removal.%s\n", removal.w->failures ? "not " : "", i + 1,
			removal_cases[i].name);
	}
	pr_info("# kclient: %u passed, %u failed, 0 skipped\n", num - failed, failed);
}

static int set_verdict(const char *value, const struct kernel_param *param)
{
	removal_verdict();
	return 0;
}

static const struct kernel_param_ops verdict_ops = { .set = set_verdict };
module_param_cb(verdict, &verdict_ops, NULL, 0200);
MODULE_PARM_DESC(verdict, "a write tells how the suite removal has ended");

void removal_end(void)
{
	if (!removal.w)
		return;
	removal_verdict();
	give_back();
	if (removal.w->failures)
		pr_info("not ok removal.everything_can_be_given_back\n");
	world_free(removal.w);
	removal.w = NULL;
}
