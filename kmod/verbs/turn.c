// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shares of the work queues among users.
 *
 * A user decides how many channels break at once, and a work queue runs works in the order they
 * came. So of the works of one user only a few are queued or run at a time. The others wait in the
 * user's lane until one of these has ended, and works of other users are queued before them. A work
 * here waits for no other one here, so the few always go on.
 *
 * A lane is a part of its user's budget. The owner of a turn is charged to that budget, and cancels
 * the turn before it pays back, so the lane is there as long as any of its works.
 */
#include "private.h"

/* The channels of most processes break as if there were no lane; a driver's calls may sleep. */
#define LANE_WIDTH	16

/* The caller holds the lane's lock. */
static void admit(struct ibchan_lane *lane)
{
	struct ibchan_turn *turn;

	lockdep_assert_held(&lane->lock);
	while (lane->num_admitted < LANE_WIDTH && !list_empty(&lane->waiting)) {
		turn = list_first_entry(&lane->waiting, struct ibchan_turn, link);
		list_del_init(&turn->link);
		lane->num_admitted += queue_work(ibchan_turn_wq, &turn->work);
	}
}

static void make_room(struct ibchan_lane *lane)
{
	guard(spinlock_irqsave)(&lane->lock);
	lane->num_admitted--;
	admit(lane);
}

static void turn_work(struct work_struct *work)
{
	struct ibchan_turn *turn = container_of(work, struct ibchan_turn, work);

	turn->run(turn);
	if (turn->lane)
		make_room(turn->lane);
}

/* @turn is of an object that keeps @budget by what it is charged. NULL: a kernel consumer's. */
void ibchan_turn_init(struct ibchan_turn *turn, struct ibchan_budget *budget,
		      void (*run)(struct ibchan_turn *turn))
{
	INIT_WORK(&turn->work, turn_work);
	INIT_LIST_HEAD(&turn->link);
	turn->lane = ibchan_budget_lane(budget);
	turn->run = run;
}

/* A work that runs now runs again. Any context but NMI. */
void ibchan_turn_queue(struct ibchan_turn *turn)
{
	struct ibchan_lane *lane = turn->lane;

	if (!lane) {
		queue_work(ibchan_wq, &turn->work);
		return;
	}
	guard(spinlock_irqsave)(&lane->lock);
	if (list_empty(&turn->link) && !work_pending(&turn->work)) {
		list_add_tail(&turn->link, &lane->waiting);
		admit(lane);
	}
}

/* Waits for a work that runs. Nobody queues it any more. */
void ibchan_turn_cancel(struct ibchan_turn *turn)
{
	struct ibchan_lane *lane = turn->lane;

	if (lane) {
		guard(spinlock_irqsave)(&lane->lock);
		list_del_init(&turn->link);
	}
	if (cancel_work_sync(&turn->work) && lane)
		make_room(lane);
}
