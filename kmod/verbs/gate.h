/* SPDX-License-Identifier: GPL-2.0-only */
/* The gate of a device, where its users and its removal meet: see gate.c. */
#ifndef IBCHAN_GATE_H
#define IBCHAN_GATE_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "only.h"

/**
 * struct ibchan_gate - counts the users of a device, and keeps them and its removal apart
 * @state: how many commands and ends of objects are under way, and the flags of gate.c
 * @lock: guards @guests
 * @guests: registrations of user memory, and ends of such, under way
 * @wait: removal waits here for users, and ends wait for removal
 * @map: for lockdep, which takes the gate for an rwsem
 */
struct ibchan_gate {
	__verbs_only atomic_t state;
	__verbs_only spinlock_t lock;		/* guests */
	__verbs_only struct list_head guests;
	__verbs_only wait_queue_head_t wait;
#ifdef CONFIG_DEBUG_LOCK_ALLOC
	struct lockdep_map map;
#endif
};

/* A registration by the driver, or the end of one, which memory may hold up */
struct ibchan_guest {
	__verbs_only struct list_head link;	/* in the gate's list */
	__verbs_only pid_t pid;	/* of the process whose memory it is, for the kernel log */
	__verbs_only char comm[TASK_COMM_LEN];	/* its name */
	__verbs_only int ends;	/* the registration */
};

void ibchan_gate_init(struct ibchan_gate *gate);
int ibchan_gate_enter(struct ibchan_gate *gate);
void ibchan_gate_enter_to_end(struct ibchan_gate *gate);
void ibchan_gate_exit(struct ibchan_gate *gate);
int ibchan_gate_admit(struct ibchan_gate *gate, struct ibchan_guest *guest);
void ibchan_gate_hand_over(struct ibchan_gate *gate, struct ibchan_guest *from,
			   struct ibchan_guest *to);
void ibchan_gate_dismiss(struct ibchan_gate *gate, struct ibchan_guest *guest);

/* Removal only. */
void ibchan_gate_leave(struct ibchan_gate *gate);
void ibchan_gate_close(struct ibchan_gate *gate);
void ibchan_gate_open(struct ibchan_gate *gate);
int ibchan_gate_wait_guests(struct ibchan_gate *gate, unsigned long timeout,
			    struct ibchan_guest *first);

#endif /* IBCHAN_GATE_H */
