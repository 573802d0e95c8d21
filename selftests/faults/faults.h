/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Verbs that fail on demand: what soft-RoCE never does, so that tests walk the paths behind it.
 * A point is armed with a count and an error. The count-th passage fails, once.
 *
 * And windows between two steps, in which another caller may come: a widened window lasts as
 * long as was set. A caller spins in it, because locks and RCU may be held, or rests.
 *
 * Only a module that is built with IBCHAN_FAULTS=1 has these functions.
 */
#ifndef IBCHAN_FAULTS_H
#define IBCHAN_FAULTS_H

#include <linux/err.h>
#include <linux/types.h>

struct dentry;
struct ib_wc;
struct ibchan_channel;
struct ibchan_cq;
struct ibchan_device;

/* All points: X(NAME, name). */
#define IBCHAN_FAULT_POINTS(X)						\
	X(PD_ALLOC, pd_alloc)						\
	X(CQ_CREATE, cq_create)						\
	X(CQ_POLL, cq_poll)						\
	X(CQ_NOTIFY, cq_notify)						\
	X(QP_CREATE, qp_create)						\
	X(QP_INIT, qp_init)						\
	X(QP_RTR, qp_rtr)						\
	X(QP_RTS, qp_rts)						\
	X(QP_ERR, qp_err)						\
	X(QP_RESET, qp_reset)						\
	X(QP_DESTROY, qp_destroy)					\
	X(POST_SEND, post_send)		/* counts requests */		\
	X(POST_RECV, post_recv)		/* counts requests */		\
	X(SEND_MARKER, send_marker)					\
	X(RECV_MARKER, recv_marker)					\
	X(MR_REG_USER, mr_reg_user)					\
	X(MR_ALLOC, mr_alloc)						\
	X(MR_MAP, mr_map)						\
	X(MR_DMA_MAP, mr_dma_map)					\
	X(MR_DMA_SYNC, mr_dma_sync)					\
	X(MR_DEREG, mr_dereg)						\
	X(PORT_QUERY, port_query)					\
	X(REPEAT, repeat)		/* a completion comes once more */ \
	X(COMPLETION, completion)	/* the error is a wc status */

#define IBCHAN_FAULT_POINT(NAME, name) IBCHAN_FAULT_##NAME,
enum ibchan_fault_point {
	IBCHAN_FAULT_POINTS(IBCHAN_FAULT_POINT)
	IBCHAN_FAULTS_NUM
};

/*
 * All windows, in each of which other code may do anything: X(NAME, name). They last
 * an instant, unless they are widened.
 */
#define IBCHAN_FAULT_WINDOWS(X)						\
	X(PINNED, pinned)	/* plain memory is pinned, nothing posted */	\
	X(FOUND, found)		/* handles are pointers, under RCU */	\
	X(CHECKED, checked)	/* the state was checked, nothing taken */	\
	X(TAKEN, taken)		/* all is taken, the device has nothing */	\
	X(COMPLETED, completed)	/* the device has completed, all else waits */	\
	X(RELEASED, released)	/* the region is let go, no owner was told */	\
	X(REAPED, reaped)	/* the right to reap is still held */	\
	X(HIDDEN, hidden)	/* a channel's handle; it is not closed */	\
	X(REFUSING, refusing)	/* a closed channel; its qp still works */	\
	X(BREAKING, breaking)	/* a broken channel; its qp still works */	\
	X(SEEKING, seeking)	/* a broken channel whose cause is not known */	\
	X(DRAINING, draining)	/* a closed channel that has works left */	\
	X(WATCHED, watched)	/* a channel that the keepalive looks at */	\
	X(UNUSED, unused)	/* a region that is about to go */	\
	X(LOOKED, looked)	/* user memory was judged, nothing pinned */	\
	X(REGISTERED, registered)	/* by the driver, and nobody knows */	\
	X(LEAVING, leaving)	/* a device that still lets all in */

#define IBCHAN_FAULT_WINDOW(NAME, name) IBCHAN_WINDOW_##NAME,
enum ibchan_fault_window {
	IBCHAN_FAULT_WINDOWS(IBCHAN_FAULT_WINDOW)
	IBCHAN_WINDOWS_NUM
};

#define IBCHAN_WINDOW_MAX_US	5000000

/* What the module calls. A point returns 0, or the error that this passage is to fail with. */
int ibchan_fault(enum ibchan_fault_point point);
/* How many of @num requests the device is to take; if not all, then @error says why. */
u32 ibchan_fault_cut(enum ibchan_fault_point point, u32 num, int *error);
/* A completion that succeeded may become one that did not. */
void ibchan_fault_completion(struct ib_wc *wc);
/* Spins where a window is widened. Context: any. */
void ibchan_fault_linger(enum ibchan_fault_window window);
/* Sleeps there. Context: process, may sleep. */
void ibchan_fault_rest(enum ibchan_fault_window window);
void ibchan_fault_debugfs_init(struct dentry *root);

/* For verbs that return a pointer: NULL, or the error that it is to be. */
static inline void *ibchan_fault_ptr(enum ibchan_fault_point point)
{
	int error = ibchan_fault(point);

	return error ? ERR_PTR(error) : NULL;
}

/* What tests call. */
void ibchan_fault_set(enum ibchan_fault_point point, u32 nth, int error);
u32 ibchan_fault_passed(enum ibchan_fault_point point);
const char *ibchan_fault_name(enum ibchan_fault_point point);
int ibchan_fault_widen(enum ibchan_fault_window window, u32 us);
void ibchan_fault_visits(enum ibchan_fault_window window, u32 *entered, u32 *left);
const char *ibchan_fault_window_name(enum ibchan_fault_window window);
void ibchan_fault_raise_cq_error(struct ibchan_cq *cq);
void ibchan_fault_raise_cq_event(struct ibchan_cq *cq);
void ibchan_fault_raise_qp_event(struct ibchan_channel *ch, u32 event);
void ibchan_fault_raise_fatal(struct ibchan_device *dev);

#endif /* IBCHAN_FAULTS_H */
