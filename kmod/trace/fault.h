/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Verbs that fail on demand: what soft-RoCE never does, so that the paths behind
 * it are walked. Only a module built with IBCHAN_FAULTS=1 has any of this; in any
 * other the calls below are constants.
 *
 * A point is armed with a count and an error. The count-th passage fails, once.
 *
 * And windows between two steps, in which another caller may come: a widened window lasts
 * as long as was set. A caller spins in it, because locks and RCU may be held, or rests.
 */
#ifndef IBCHAN_FAULT_H
#define IBCHAN_FAULT_H

#include <linux/err.h>
#include <rdma/ibchan_fault.h>

struct ib_wc;

#ifdef IBCHAN_FAULTS

int ibchan_fault(enum ibchan_fault_point point);
u32 ibchan_fault_cut(enum ibchan_fault_point point, u32 num, int *error);
void ibchan_fault_completion(struct ib_wc *wc);
void ibchan_fault_linger(enum ibchan_fault_window window);
void ibchan_fault_rest(enum ibchan_fault_window window);

#else

/* Returns 0, or the error that this passage is to fail with. */
static inline int ibchan_fault(enum ibchan_fault_point point)
{
	return 0;
}

/* How many of @num requests the device is to take; if not all, then why. */
static inline u32 ibchan_fault_cut(enum ibchan_fault_point point, u32 num, int *error)
{
	return num;
}

/* A completion that succeeded may become one that did not. */
static inline void ibchan_fault_completion(struct ib_wc *wc)
{
}

/* Spins where a window is widened. Context: any. */
static inline void ibchan_fault_linger(enum ibchan_fault_window window)
{
}

/* Sleeps there. Context: process, may sleep. */
static inline void ibchan_fault_rest(enum ibchan_fault_window window)
{
}

#endif

/* For verbs that return a pointer: NULL, or the error that it is to be. */
static inline void *ibchan_fault_ptr(enum ibchan_fault_point point)
{
	int error = ibchan_fault(point);

	return error ? ERR_PTR(error) : NULL;
}

#endif /* IBCHAN_FAULT_H */
