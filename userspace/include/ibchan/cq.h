/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libibchan: completion queues. Include <ibchan.h>. */
#ifndef _IBCHAN_CQ_H
#define _IBCHAN_CQ_H

#include <ibchan/types.h>

__IBCHAN_BEGIN_DECLS

/*
 * A completion is a struct ibchan_cqe of <linux/ibchan.h>: an entry of the ring. Its channel is a
 * handle: ibchan_cqe_channel().
 */

/**
 * ibchan_cq_create() - make a completion queue
 * @device: open
 * @entries: completions that may wait unread; 0: IBCHAN_DEFAULT_CQ_ENTRIES; is
 *	rounded up to a power of two
 * @cq_entries: works that all channels on this queue may have in flight
 *	together, plus 2 for each channel; 0: as many as the device can
 * @cq: where to put it
 * @error: details; NULL is fine
 *
 * A work is refused (-EAGAIN, RING_FULL) when @entries works are in flight or
 * unread, so no completion is ever lost; a pending work or blocking call also when there are
 * @entries pending works whose results nobody has looked at.
 *
 * Return: 0; -EINVAL: out of range; -EPERM: see Fork; -EMFILE, -EDQUOT: see Limits in <ibchan.h>;
 * -EPROTO: the kernel's ring is not one this library can read.
 */
int ibchan_cq_create(struct ibchan_device *device, __u32 entries, __u32 cq_entries,
		     struct ibchan_cq **cq, struct ibchan_error *error);

/**
 * ibchan_cq_create_solicited() - make one that only solicited messages wake
 * @device: open
 * @entries: as for ibchan_cq_create()
 * @cq_entries: as for ibchan_cq_create()
 * @cq: where to put it
 * @error: details; NULL is fine
 *
 * The descriptor becomes readable for receives whose message was sent with
 * IBCHAN_WR_SOLICITED, and for errors as far as the device reports them. After a
 * channel on the queue has broken, and until that channel is closed, it becomes
 * readable for any completion. Other completions make nothing readable; a poll may
 * see them only together with one that does. Waiting calls are woken by any completion.
 *
 * Return: as ibchan_cq_create().
 */
int ibchan_cq_create_solicited(struct ibchan_device *device, __u32 entries, __u32 cq_entries,
			       struct ibchan_cq **cq, struct ibchan_error *error);

/**
 * ibchan_cq_destroy() - destroy a completion queue
 * @cq: NULL is fine
 *
 * Unread completions are gone; pending works can still be asked.
 *
 * Return: 0; -EBUSY: a channel uses it.
 */
int ibchan_cq_destroy(struct ibchan_cq *cq);

/**
 * ibchan_cq_fd() - a descriptor for poll, select and epoll
 * @cq: the queue
 *
 * Readable, level-triggered, as long as something has completed that nobody has read out. That is
 * what ibchan_cq_poll() would give, or it is for pending works, or of unsignaled ones: then the
 * poll gives nothing, and the descriptor is readable no longer. It belongs to the queue: do not
 * close, read or map it.
 *
 * Return: the descriptor, the same each time; -EPERM: see Fork.
 */
int ibchan_cq_fd(struct ibchan_cq *cq);

/**
 * ibchan_cq_poll() - take completions without waiting
 * @cq: the queue
 * @completions: array to fill
 * @n: its length
 *
 * No system call, unless ibchan_cq_fd() was called and nothing is there. The oldest come first;
 * those of one channel and direction come in the order of their posts. Blocking calls and pending
 * works take the completion of their own work, and an unsignaled work that succeeds has none to
 * show; all others appear here.
 *
 * Buffers: those of the works whose completions are handed out may be reused,
 * and those of the unsignaled works that ended with them.
 *
 * Return: how many were filled in, 0 if there were none; -EPERM: see Fork; when
 * ibchan_cq_fd() was called and all has been read, also -ENODEV: the device is gone,
 * and -EPROTO: a ring was damaged. Then the descriptor stays readable.
 */
int ibchan_cq_poll(struct ibchan_cq *cq, struct ibchan_cqe *completions, __u32 n);

/**
 * ibchan_cqe_channel() - the channel of a completion
 * @context: of its cq
 * @completion: as it was handed out
 *
 * No system call. A program that has few channels may compare @completion->channel with
 * ibchan_channel_handle() instead. Its own pointer: ibchan_channel_priv().
 *
 * Return: the channel; NULL: it has been closed.
 */
struct ibchan_channel *ibchan_cqe_channel(struct ibchan_context *context,
					  const struct ibchan_cqe *completion);

/**
 * ibchan_cq_wait() - take completions, and wait for them
 * @cq: the queue
 * @completions: array to fill
 * @n: its length, 1 and up
 * @min: how many to wait for, 1 to @n
 * @timeout_ns: for the whole call, in nanoseconds; 0: do not sleep; IBCHAN_TIMEOUT_NEVER: no limit
 *
 * Enters the kernel only if there are not yet @min. Nothing is lost when the
 * wait ends early: completions that have come are handed out, the rest come later.
 *
 * Buffers: the ranges of each work may be reused when its completion has been
 * handed out; those of an unsignaled work, when that of the work has that it ended with.
 *
 * Return: how many were filled in: @min or more, or fewer when the wait ended
 * early; if there were none: -ETIMEDOUT, or -EINTR for a signal; -EINVAL: @min
 * is 0 or above @n, or a negative time-out; -EPERM: see Fork.
 */
int ibchan_cq_wait(struct ibchan_cq *cq, struct ibchan_cqe *completions,
		   __u32 n, __u32 min, __s64 timeout_ns);

__IBCHAN_END_DECLS

#endif /* _IBCHAN_CQ_H */
