/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Kernel memory that the objects of a user may take, the drivers' included. Drivers do not
 * charge it to the cgroup of the process that asks for an object, so each user has a budget.
 * An object is charged by an estimate before it is made, and pays back when
 * its memory has gone. Objects of kernel consumers have no budget and are not charged.
 */
#ifndef IBCHAN_BUDGET_H
#define IBCHAN_BUDGET_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct ibchan_budget;
struct ibchan_params;
struct ibchan_pd;
struct ibchan_reason;

/*
 * The charge of an object.
 *
 * Zeroed memory is a cost of nothing.
 */
struct ibchan_cost {
	struct ibchan_budget *budget;	/* keeps it; NULL: nothing */
	u64 bytes;	/* of it */
};

/* The budget that pays for objects that peers cause. */
struct ibchan_payer {
	struct ibchan_budget *budget;	/* not kept; NULL: no budget pays */
	bool exempt;	/* it may go over the limit */
};

/* Works of a user that are with the workers or wait: see verbs/turn.c */
struct ibchan_lane {
	spinlock_t lock;	/* guards the rest; interrupts off */
	struct list_head waiting;	/* works that wait, in their order */
	unsigned int num_admitted;	/* works that are with the workers */
};

/* A protection domain, with its pool. */
#define IBCHAN_FOOTPRINT_PD		1024
/* A listener, with an id of the connection manager for each device. */
#define IBCHAN_FOOTPRINT_LISTENER	8192
/* A request, with an id of the connection manager, which keeps a part of the peer's message. */
#define IBCHAN_FOOTPRINT_REQUEST	4096

/* budget.c */
u64 ibchan_footprint_cq(u32 entries);
u64 ibchan_footprint_channel(const struct ibchan_params *params, u32 max_rd_atomic, bool exclusive,
			     bool send_works, bool recv_works);
u64 ibchan_footprint_mr(u64 pages, u64 room);
struct ibchan_budget *ibchan_budget_get(void);
void ibchan_budget_put(struct ibchan_budget *budget);
struct ibchan_lane *ibchan_budget_lane(struct ibchan_budget *budget);
int ibchan_cost_charge(struct ibchan_cost *cost, struct ibchan_budget *budget, u64 bytes,
		       struct ibchan_reason *reason);
void ibchan_payer_init(struct ibchan_payer *payer, struct ibchan_budget *budget);
int ibchan_cost_charge_to(struct ibchan_cost *cost, const struct ibchan_payer *payer, u64 bytes);
void ibchan_cost_pay_back(struct ibchan_cost *cost);
void ibchan_cost_move(struct ibchan_cost *from, struct ibchan_cost *to, u64 bytes);

/* pd.c */
int ibchan_pd_charge_to(struct ibchan_pd *pd, struct ibchan_budget *budget);

#endif /* IBCHAN_BUDGET_H */
