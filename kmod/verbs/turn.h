/* SPDX-License-Identifier: GPL-2.0-only */
/* Works of which each user has a few at a time with the workers: see turn.c. */
#ifndef IBCHAN_TURN_H
#define IBCHAN_TURN_H

#include <linux/list.h>
#include <linux/workqueue.h>

struct ibchan_budget;
struct ibchan_lane;

/**
 * struct ibchan_turn - a work of an object that is charged to a user
 * @work: runs @run
 * @link: in the lane, while it waits to be queued; under the lane's lock
 * @lane: of the user; NULL: a kernel consumer's, which waits for no turn
 * @run: process context, may sleep
 */
struct ibchan_turn {
	struct work_struct work;
	struct list_head link;
	struct ibchan_lane *lane;
	void (*run)(struct ibchan_turn *turn);
};

void ibchan_turn_init(struct ibchan_turn *turn, struct ibchan_budget *budget,
		      void (*run)(struct ibchan_turn *turn));
void ibchan_turn_queue(struct ibchan_turn *turn);
void ibchan_turn_cancel(struct ibchan_turn *turn);

#endif /* IBCHAN_TURN_H */
