/* SPDX-License-Identifier: GPL-2.0-only */
/* Works of which each user has a few at a time with the workers: see turn.c. */
#ifndef IBCHAN_TURN_H
#define IBCHAN_TURN_H

#include <linux/list.h>
#include <linux/workqueue.h>

struct ibchan_budget;
struct ibchan_lane;

/* A work of an object that is charged to a user */
struct ibchan_turn {
	struct work_struct work;	/* runs @run */
	/* in the lane, while it waits to be queued; under the lane's lock */
	struct list_head link;
	/* of the user; NULL: a kernel consumer's, which waits for no turn */
	struct ibchan_lane *lane;
	void (*run)(struct ibchan_turn *turn);	/* process context, may sleep */
};

void ibchan_turn_init(struct ibchan_turn *turn, struct ibchan_budget *budget,
		      void (*run)(struct ibchan_turn *turn));
void ibchan_turn_queue(struct ibchan_turn *turn);
void ibchan_turn_cancel(struct ibchan_turn *turn);

#endif /* IBCHAN_TURN_H */
