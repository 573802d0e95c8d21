// SPDX-License-Identifier: GPL-2.0-only
/*
 * Verbs that fail on demand, and windows that last; see faults.h. One lock for all
 * points: this is for tests, and completions are taken in softirq context.
 */
#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>
#include <rdma/ibchan.h>

#include "compat.h"
#include "faults.h"

/**
 * struct fault - one point
 * @passed: passages since the module was loaded
 * @fires_at: the passage that fails; 0: none
 * @error: what it fails with
 */
struct fault {
	u32 passed;
	u32 fires_at;
	int error;
};

static DEFINE_SPINLOCK(faults_lock);
static struct fault faults[IBCHAN_FAULTS_NUM];

#define FAULT_NAME(NAME, name) #name,
static const char * const fault_names[] = {
	IBCHAN_FAULT_POINTS(FAULT_NAME)
};

/**
 * ibchan_fault_set - have a point fail once
 * @point: which
 * @nth: the passage from now on, 1: the next one; 0: none
 * @error: negative errno; a wc status for IBCHAN_FAULT_COMPLETION; 1 for IBCHAN_FAULT_CQ_NOTIFY: a
 *	completion was there, and the cq is not armed
 *
 * Context: any.
 */
void ibchan_fault_set(enum ibchan_fault_point point, u32 nth, int error)
{
	struct fault *fault = &faults[point];
	unsigned long flags;

	spin_lock_irqsave(&faults_lock, flags);
	fault->fires_at = nth ? fault->passed + nth : 0;
	fault->error = error;
	spin_unlock_irqrestore(&faults_lock, flags);
}
EXPORT_SYMBOL_NS_GPL(ibchan_fault_set, IBCHAN_NS);

/**
 * ibchan_fault_passed - how often a point was passed
 * @point: which
 *
 * Context: any.
 * Return: passages since the module was loaded, whether they failed or not.
 */
u32 ibchan_fault_passed(enum ibchan_fault_point point)
{
	return READ_ONCE(faults[point].passed);
}
EXPORT_SYMBOL_NS_GPL(ibchan_fault_passed, IBCHAN_NS);

/**
 * ibchan_fault_name - what a point is called
 * @point: which
 *
 * Context: any.
 * Return: its name, such as "qp_create".
 */
const char *ibchan_fault_name(enum ibchan_fault_point point)
{
	return fault_names[point];
}
EXPORT_SYMBOL_NS_GPL(ibchan_fault_name, IBCHAN_NS);

/* Passes up to @num times; returns how many times before it fired. */
static u32 pass(enum ibchan_fault_point point, u32 num, int *error)
{
	struct fault *fault = &faults[point];
	unsigned long flags;
	u32 fine = num;

	spin_lock_irqsave(&faults_lock, flags);
	if (fault->fires_at && fault->fires_at - fault->passed <= num) {
		fine = fault->fires_at - fault->passed - 1;
		*error = fault->error;
		fault->fires_at = 0;
	}
	fault->passed += num;
	spin_unlock_irqrestore(&faults_lock, flags);
	return fine;
}

int ibchan_fault(enum ibchan_fault_point point)
{
	int error = 0;

	pass(point, 1, &error);
	return error;
}

u32 ibchan_fault_cut(enum ibchan_fault_point point, u32 num, int *error)
{
	return pass(point, num, error);
}

void ibchan_fault_completion(struct ib_wc *wc)
{
	int status = 0;

	ibchan_fault_linger(IBCHAN_WINDOW_COMPLETED);
	if (wc->status != IB_WC_SUCCESS)
		return;
	pass(IBCHAN_FAULT_COMPLETION, 1, &status);
	if (status)
		wc->status = status;
}

/**
 * struct window - between two steps
 * @us: how long each visit lasts; 0: as long as it does by itself, uncounted
 * @entered: visits that began since the module was loaded
 * @left: visits that ended
 */
struct window {
	u32 us;
	atomic_t entered;
	atomic_t left;
};

static struct window windows[IBCHAN_WINDOWS_NUM];

static const char * const window_names[] = {
	IBCHAN_FAULT_WINDOWS(FAULT_NAME)
};

/**
 * ibchan_fault_widen - have a window last longer
 * @window: which
 * @us: microseconds, up to IBCHAN_WINDOW_MAX_US; 0: as it was; a caller that is in the
 *	window stays as long as was set when it entered
 *
 * Context: any.
 * Return: 0 or -EINVAL.
 */
int ibchan_fault_widen(enum ibchan_fault_window window, u32 us)
{
	if (us > IBCHAN_WINDOW_MAX_US)
		return -EINVAL;
	WRITE_ONCE(windows[window].us, us);
	return 0;
}
EXPORT_SYMBOL_NS_GPL(ibchan_fault_widen, IBCHAN_NS);

/**
 * ibchan_fault_visits - how often a widened window was visited
 * @window: which
 * @entered: visits that have begun since the module was loaded
 * @left: visits that have ended; never more
 *
 * Context: any.
 */
void ibchan_fault_visits(enum ibchan_fault_window window, u32 *entered, u32 *left)
{
	*left = atomic_read(&windows[window].left);
	/* Read behind @left, so that a caller in the window is never taken for gone. */
	smp_rmb();
	*entered = atomic_read(&windows[window].entered);
}
EXPORT_SYMBOL_NS_GPL(ibchan_fault_visits, IBCHAN_NS);

/**
 * ibchan_fault_window_name - what a window is called
 * @window: which
 *
 * Context: any.
 * Return: its name, such as "found".
 */
const char *ibchan_fault_window_name(enum ibchan_fault_window window)
{
	return window_names[window];
}
EXPORT_SYMBOL_NS_GPL(ibchan_fault_window_name, IBCHAN_NS);

void ibchan_fault_linger(enum ibchan_fault_window window)
{
	u64 us = READ_ONCE(windows[window].us);
	u64 end;

	if (!us)
		return;
	end = ktime_get_ns() + us * NSEC_PER_USEC;
	atomic_inc(&windows[window].entered);
	while (ktime_get_ns() < end)
		cpu_relax();
	atomic_inc(&windows[window].left);
}

void ibchan_fault_rest(enum ibchan_fault_window window)
{
	u64 us = READ_ONCE(windows[window].us);

	might_sleep();
	if (!us)
		return;
	atomic_inc(&windows[window].entered);
	fsleep(us);
	atomic_inc(&windows[window].left);
}
