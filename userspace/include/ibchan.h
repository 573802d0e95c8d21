/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libibchan: RDMA channels through /dev/ibchan.
 *
 * The way from nothing to a message:
 *
 *	context -> device -> pd -> mr			memory that can be named
 *			  -> cq				where works complete
 *	builder(pd, cq) -> prepared -> endpoint		to the peer, by any means
 *	prepared + the peer's endpoint -> channel	connected
 *	channel + sge(mr, offset, length) -> work	posted, then completed
 *
 * Between two programs that send messages to each other <ibchan/message.h> is a shorter one:
 * ibchan_dial() and ibchan_serve().
 *
 * A work completes in one of three ways: within a blocking call (ibchan_send() and
 * its like), to a pending work, maybe of a scope (ibchan/scope.h), or to a poll of
 * its cq (ibchan_post(), ibchan_cq_poll()).
 *
 * Conventions, the same for every call:
 *
 * Return	0 or a count; on failure a negative errno. The variable errno
 *		means nothing afterwards.
 * Details	A call that the kernel can refuse for more than one cause takes
 *		a struct ibchan_error as its last argument. NULL is fine. It is
 *		written by every such call, on success too.
 * Threads	Any call on any object from any thread, at the same time, but:
 *		an object must not be destroyed while another call uses it, and
 *		a struct ibchan_pending or ibchan_scope is one thread's at a
 *		time. So threads may share a channel, a cq and a context: what
 *		one waits for it gets, whichever thread reads the ring; what is
 *		polled for goes to the first poll. The works of one channel are
 *		posted in the order in which the calls come to the kernel. The
 *		library has no global state, but for a string of each thread,
 *		that of ibchan_error_string().
 * Signals	A signal that has a handler ends waits only that say -EINTR, and
 *		nothing is lost. A handler may call ibchan_channel_break().
 *		ibchan(7) has a table.
 * Cancelling	No call is a point where a cancelled thread ends. Bound the
 *		waits of a thread that is to be cancelled.
 * Buffers	The device owns the ranges of a work from the post until its
 *		completion was handed out: by ibchan_cq_poll(), by one of the
 *		waiting calls, or to its pending work. Until then do not write
 *		to a range that is sent, written or read into; do not read one
 *		that is received or read into. Posting such a range again is
 *		refused with -EBUSY, unless asked for (IBCHAN_WR_UNCHECKED).
 *		The pages stay pinned whatever the process does.
 * Destroying	In reverse order. -EBUSY: something uses the object, nothing has
 *		changed. Nothing has changed either where a filter of system
 *		calls answered in the kernel's place: then the result is the
 *		filter's errno, or -EBADMSG. With any other result the handle
 *		is gone. Closing the context ends all that is left in it.
 * Fork		Objects belong to the process that opened the context. In a
 *		child, calls that register, build, post, poll or wait return
 *		-EPERM; queries work; closing and destroying only free the
 *		child's copy and leave the parent's objects alone.
 *
 * Every call on a context may also return, beside what it names itself:
 * -EFAULT (a pointer does not work), -ENOMEM, -ENODEV (the device is gone),
 * -EPROTO (a completion ring was damaged; the context can only be closed),
 * -EBADMSG (a filter of system calls answered in the kernel's place).
 */
#ifndef _IBCHAN_H
#define _IBCHAN_H

#include <linux/ibchan.h>
#include <ibchan/error.h>
#include <ibchan/context.h>
#include <ibchan/memory.h>
#include <ibchan/cq.h>
#include <ibchan/channel.h>
#include <ibchan/connect.h>
#include <ibchan/history.h>
#include <ibchan/work.h>
#include <ibchan/wr.h>
#include <ibchan/scope.h>
#include <ibchan/message.h>

#endif /* _IBCHAN_H */
