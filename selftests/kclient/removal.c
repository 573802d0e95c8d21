// SPDX-License-Identifier: GPL-2.0-only
/*
 * A device leaves while 64 works are in flight.
 *
 *	insmod ibchan_kclient.ko suite=removal
 *	rdma link delete rxe0			# 5 s at most, which the shell measures
 *	echo 1 >/sys/module/ibchan_kclient/parameters/verdict
 *	rmmod ibchan_kclient
 *
 * insmod posts the works on the first device of `devices` and returns. The write
 * looks at what came of them and prints KTAP; rmmod prints it if nobody asked
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

static int begin(struct world *w)
{
	struct pair_init init;
	int i, ret;

	pair_defaults(&init);
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
	return expect_eq(w, jobs_ended(removal.jobs, WORKS), 0) ? 0 : -EIO;
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
	world_give_back(removal.w);
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

static const struct test_case removal_cases[] = {
	CASE(all_works_have_ended_once),
	CASE(all_works_were_flushed),
	CASE(each_channel_was_told_once),
	CASE(each_cq_was_told_once),
	CASE(the_other_device_was_told_nothing),
	CASE(posts_answer_enodev),
	CASE(new_objects_answer_enodev),
	CASE(the_prepared_channel_refuses_its_handshake),
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
	removal.w->failures = 0;
	world_give_back(removal.w);
	if (removal.w->failures)
		pr_info("not ok removal.everything_can_be_given_back\n");
	world_free(removal.w);
	removal.w = NULL;
}
