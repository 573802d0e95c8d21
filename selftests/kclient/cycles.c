// SPDX-License-Identifier: GPL-2.0-only
/*
 * Build, handshake, use, close, over and over. The script leaves-nothing, which has it done often,
 * looks at slabs, pins and rdma resources before and after.
 */
#include <linux/moduleparam.h>

#include "job.h"
#include "suites.h"

static unsigned int cycles = 50;
module_param(cycles, uint, 0444);
MODULE_PARM_DESC(cycles, "how often the suite cycles builds and closes a pair");

static unsigned int worlds = 10;
module_param(worlds, uint, 0444);
MODULE_PARM_DESC(worlds, "how often the suite cycles builds and tears down everything");

static int cycle(struct world *w, const struct ibchan_params *params, struct job *job)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_sge sge = ibchan_sge_unchecked(a->local, 0, 64);

	a->ch = side_build(a, params);
	b->ch = side_build(b, params);
	if (!a->ch || !b->ch || side_connect(w, a->ch, b->ch) || side_connect(w, b->ch, a->ch))
		return -ENODEV;
	atomic_set(&job->ended, 0);
	if (job_receive(job, b, 0, 64) ||
	    ibchan_channel_send(a->ch, &sge, 1, NULL) || !job_ended(job))
		return -EIO;
	side_close(a);
	side_close(b);
	return 0;
}

static void channels_can_be_built_and_closed_over_and_over(struct world *w)
{
	struct job *job = world_jobs(w, 1);
	struct pair_init init;
	unsigned int i;

	pair_defaults(&init);
	if (world_sides(w, &init))
		return;
	side_close(&w->side[0]);
	side_close(&w->side[1]);
	for (i = 0; i < cycles; i++)
		if (!expect_eq(w, cycle(w, &init.params, job), 0))
			return;
}

/* The whole tower, from the device on. */
static void whole_worlds_can_be_built_and_torn_down(struct world *w)
{
	unsigned int i;

	for (i = 0; i < worlds; i++) {
		if (world_default_pair(w) || !side_share(&w->side[0]) || !side_share(&w->side[1]))
			return;
		expect_eq(w, ibchan_channel_write(w->side[0].ch, side_sge(&w->side[0], 0, 64), 1,
						  &w->side[1].remote, NULL), 0);
		world_give_back(w);
	}
}

static const struct test_case cycles_cases[] = {
	CASE(channels_can_be_built_and_closed_over_and_over),
	CASE(whole_worlds_can_be_built_and_torn_down),
};

SUITE(cycles);
