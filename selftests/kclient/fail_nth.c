// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each call that user space cannot make, while the 1st, 2nd, ... allocation that it makes fails,
 * until it makes no more: it answers so, leaves nothing behind, and works the next time. What the
 * kernel does for it in workers and interrupts is not counted. fail_nth_test.c does the same with
 * what the commands call.
 *
 * The script that runs this suite has told /sys/kernel/debug/failslab and fail_page_alloc that
 * allocations that may wait for memory fail as well.
 */
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/sched.h>
#include <rdma/ibchan_scope.h>

#include "job.h"
#include "suites.h"

#ifdef CONFIG_FAULT_INJECTION

#define PAGES	4
#define BYTES	(PAGES * PAGE_SIZE)

/* Far more than any call has. */
#define MAX_POINTS	1000

/**
 * struct sweep - what the calls work on
 * @w: with a pair
 * @mr: made by the call; NULL: nothing
 * @points: of the call so far
 * @tolerated: points that it succeeded in spite of
 */
struct sweep {
	struct world *w;
	struct ibchan_mr *mr;
	u32 points;
	u32 tolerated;
};

/**
 * struct call - one of the interface
 * @name: of the call
 * @run: it
 * @allocates: it does, in the caller's context
 */
struct call {
	const char *name;
	int (*run)(struct sweep *sweep);
	bool allocates;
};

static int keep(struct sweep *sweep, struct ibchan_mr *mr)
{
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	sweep->mr = mr;
	return 0;
}

static int reg_kernel(struct sweep *sweep, u32 access)
{
	struct side *side = &sweep->w->side[0];

	return keep(sweep, ibchan_mr_reg_kernel(side->pd, side->buf, BYTES, access, NULL));
}

static int run_reg_kernel_local(struct sweep *sweep)
{
	return reg_kernel(sweep, IBCHAN_ACCESS_LOCAL);
}

static int run_reg_kernel_shared(struct sweep *sweep)
{
	return reg_kernel(sweep, IBCHAN_ACCESS_SHARED);
}

static int run_reg_pages(struct sweep *sweep)
{
	struct side *side = &sweep->w->side[0];
	struct page *array[PAGES];
	const struct ibchan_pages pages = { .pages = array, .num = PAGES, .length = BYTES };
	int i;

	for (i = 0; i < PAGES; i++)
		array[i] = virt_to_page(side->buf + i * PAGE_SIZE);
	return keep(sweep, ibchan_mr_reg_pages(side->pd, &pages, IBCHAN_ACCESS_SHARED, NULL));
}

static int run_reg_sg(struct sweep *sweep)
{
	struct side *side = &sweep->w->side[0];
	struct scatterlist sgl[1];

	sg_init_one(sgl, side->buf, BYTES);
	return keep(sweep, ibchan_mr_reg_sg(side->pd, sgl, 1, IBCHAN_ACCESS_SHARED, NULL));
}

static int run_write(struct sweep *sweep)
{
	struct side *a = &sweep->w->side[0], *b = &sweep->w->side[1];
	struct ibchan_sge sge = ibchan_sge_unchecked(a->local, 0, PAGE_SIZE);

	return ibchan_channel_write(a->ch, &sge, 1, &b->remote, NULL);
}

static int run_scoped(struct sweep *sweep)
{
	struct side *a = &sweep->w->side[0], *b = &sweep->w->side[1];
	struct ibchan_sge sge = ibchan_sge_unchecked(a->local, 0, 64);
	struct ibchan_wr wr = ibchan_wr_write(&sge, 1, &b->remote);
	struct ibchan_pending pending[2] = {};
	struct ibchan_scope scope;
	int ret;

	ibchan_scope_begin(&scope);
	ret = ibchan_scope_post(&scope, &pending[0], a->ch, &wr, NULL);
	ret = ret ?: ibchan_scope_post(&scope, &pending[1], a->ch, &wr, NULL);
	ibchan_scope_end(&scope);
	return ret ?: ibchan_scope_error(&scope);
}

static const struct call calls[] = {
	{ "mr_reg_kernel, local", run_reg_kernel_local, true },
	{ "mr_reg_kernel, shared", run_reg_kernel_shared, true },
	{ "mr_reg_pages", run_reg_pages, true },
	{ "mr_reg_sg", run_reg_sg, true },
	{ "channel_write", run_write, false },
	{ "scope_post, end", run_scoped, false },
};

static void undo(struct sweep *sweep)
{
	if (!sweep->mr)
		return;
	expect_eq(sweep->w, ibchan_mr_try_dereg(sweep->mr), 0);
	ibchan_mr_put(sweep->mr, NULL, NULL);
	sweep->mr = NULL;
}

/* --- the sweep --- */

/* With its @nth point failing, 0: none; whether there was such a point. */
static bool run_call(struct sweep *sweep, const struct call *call, u32 nth, int *answer)
{
	u32 left;

	WRITE_ONCE(current->fail_nth, nth);
	*answer = call->run(sweep);
	left = READ_ONCE(current->fail_nth);
	WRITE_ONCE(current->fail_nth, 0);
	undo(sweep);
	return nth && !left;
}

/* False behind the last point. */
static bool sweep_point(struct sweep *sweep, const struct call *call, u32 nth)
{
	struct world *w = sweep->w;
	u32 before = w->failures;
	int answer, again;
	bool fired;

	fired = run_call(sweep, call, nth, &answer);
	expect(w, !answer || (fired && answer == -ENOMEM));
	sweep->points += fired;
	sweep->tolerated += fired && !answer;
	run_call(sweep, call, 0, &again);
	expect_eq(w, again, 0);
	if (w->failures > before)
		pr_info("# %s answers %d to point %u, then %d\n", call->name, answer, nth, again);
	return fired && w->failures == before;
}

static void sweep_call(struct sweep *sweep, const struct call *call)
{
	struct world *w = sweep->w;
	int answer;
	u32 nth;

	sweep->points = 0;
	sweep->tolerated = 0;
	/* The first may set up what the later ones find. */
	run_call(sweep, call, 0, &answer);
	if (!expect_eq(w, answer, 0))
		pr_info("# %s without a fault\n", call->name);
	else
		for (nth = 1; nth <= MAX_POINTS && sweep_point(sweep, call, nth); nth++)
			cond_resched();
	pr_info("# %-24s %4u points, %3u tolerated\n", call->name, sweep->points,
		sweep->tolerated);
	if (!expect_eq(w, !!sweep->points, call->allocates))
		pr_info("# %s %s\n", call->name,
			call->allocates ? "allocates" : "does not allocate");
}

static void an_allocation_that_fails_fails_its_call_and_leaves_nothing(struct world *w)
{
	struct sweep sweep = { .w = w };
	size_t i;

	if (world_default_pair(w) || !side_share(&w->side[1]))
		return;
	for (i = 0; i < ARRAY_SIZE(calls); i++)
		sweep_call(&sweep, &calls[i]);
}

#else

static void an_allocation_that_fails_fails_its_call_and_leaves_nothing(struct world *w)
{
	world_skip(w, "this kernel injects no faults");
}

#endif

static const struct test_case fail_nth_cases[] = {
	CASE(an_allocation_that_fails_fails_its_call_and_leaves_nothing),
};

SUITE(fail_nth);
