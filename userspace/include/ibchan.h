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
 */

/**
 * DOC: ibchan_rules - what all calls have in common
 *
 * These rules hold for all calls, where a page of section 3 says nothing else. The build checks
 * some of them.
 *
 * Names: The noun, then the verb, as in ibchan_channel_query(); the works of the field go without
 * a noun, as ibchan_send(). A verb means the same everywhere: query asks the kernel for what may
 * change, to_bytes and from_bytes are for the wire.
 *
 * Results: 0 or a count, or a negative errno. The variable errno means nothing afterwards.
 *
 * Errors: A call that can fail in more than one way takes a struct ibchan_error as its last
 * argument. NULL is fine. Each such call writes it, on success too, and ibchan_error_string()
 * puts it into words. Calls without it are those where a code has one cause, for which
 * ibchan_strerror() has the words: calls that end an object (close, destroy, free, dereg, break),
 * hand out a descriptor (fd), collect what was posted (poll, spin, wait, result), or only compute.
 *
 * Any call: On a context each call may also return, beside what it names itself: -EFAULT (a
 * pointer does not work), -ENOMEM, -ENODEV (the device is gone), -EPROTO (a completion ring was
 * damaged; the context can only be closed), -EBADMSG (a filter of system calls answered in the
 * kernel's place).
 *
 * Limits: A call that makes an object may also return -EMFILE: the context has as many objects as
 * it may, which ibchan_context_query() tells, or the process as many files; and -EDQUOT: the RDMA
 * cgroup holds as many as it may, or the user's objects take as much kernel memory as they may: the
 * error says which.
 *
 * Arguments: First the object, then what is asked for, then the time-out, then where answers go,
 * then the error. From bytes, as in memcpy(3), the answer goes first. A call writes its answers on
 * success, and leaves them as they were on failure, unless its page says otherwise.
 *
 * Objects: Opaque. One call ends each kind, and takes NULL. An object that a call uses up on
 * success stays valid on failure.
 *
 * Destroying: In reverse order. -EBUSY: something uses the object, nothing has changed. Nothing has
 * changed either where a filter of system calls answered in the kernel's place: then the result
 * is the filter's errno, or -EBADMSG. With any other result the handle is gone. Closing the context
 * ends all that is left in it.
 *
 * Times: Nanoseconds, as __s64, in names that end in _ns. A time-out of 0 does not wait, and
 * IBCHAN_TIMEOUT_NEVER waits as long as it takes; other negative ones are refused with -EINVAL,
 * but by scopes, for which each has no end. In a struct of parameters 0 is the default. A call
 * without a time-out waits for no peer, or says how long.
 *
 * Codes of times: ack_timeout and min_rnr_timer of struct ibchan_params are what devices take.
 * ibchan_ack_timeout_from_ns(), ibchan_ack_timeout_to_ns(), ibchan_rnr_timer_from_ns() and
 * ibchan_rnr_timer_to_ns() convert; struct ibchan_channel_info has both as times.
 *
 * Structs that callers fill in: Parameters (ibchan_something_params, and the builder) begin with
 * their size, { .size = sizeof(params), ... }; all else 0 is the default. ibchan_builder_init()
 * sets the size. A program that was built with an earlier header has the defaults for what it does
 * not know; one with a later header is served unless it wants what this library does not know:
 * -E2BIG. The calls themselves keep their names: symbol versions would not reach languages that
 * find a call by its name.
 *
 * Structs that the library fills in: They do not grow. A later version tells more in their reserved
 * members, which are 0 until then. Those that end in _attr are answers of the kernel's contract as
 * they are; more than these will be told by another call.
 *
 * Reserved members, and flags: 0 where no others are named. Unknown flags, and reserved members of
 * parameters that are not 0, are refused.
 *
 * Strings: End with a NUL, in arrays of structs as well. Hosts and services are those of
 * getaddrinfo(3).
 *
 * Texts: A call that ends in _text takes a buffer and its bytes, and returns as snprintf(3) does.
 * One that ends in _name or _hint returns a constant string, never NULL, and "unknown" for a number
 * of a later kernel.
 *
 * Counts: Of elements where the argument is an array, else of bytes.
 *
 * Ownership: The caller may reuse what it has passed when the call returns: requests, elements,
 * parameters, strings. Only buffers are different.
 *
 * Buffers: The device owns the ranges of a work from the post until its completion was handed out:
 * by ibchan_cq_poll(), by one of the waiting calls, or to its pending work. Until then do not
 * write to a range that is sent, written or read into; do not read one that is received or read
 * into. ibchan(7) has what is promised.
 *
 * Descriptors: They belong to their object, close on exec, and poll readable, level-triggered,
 * while the call that their page names has something to do.
 *
 * The caller's pointer: Channels and listeners keep one, which the library does not look at:
 * ibchan_channel_set_priv(), ibchan_channel_priv(), ibchan_listener_set_priv() and
 * ibchan_listener_priv().
 *
 * Threads: Any call on any object from any thread, at the same time, but: an object must not be
 * destroyed while another call uses it, and a struct ibchan_pending or ibchan_scope is one thread's
 * at a time. The library has no global state, but for a string of each thread, that of
 * ibchan_error_string().
 *
 * Signals: One that has a handler ends waits only that say -EINTR, and nothing is lost: the caller
 * can wait for the same thing again. All other calls go on. A handler may call
 * ibchan_channel_break(), and no other call.
 *
 * Cancelling: No call is a point where a cancelled thread ends. Bound the waits of a thread that
 * is to be cancelled.
 *
 * Fork: Objects belong to the process that opened the context. In a child, calls that register,
 * build, post, poll or wait return -EPERM; queries work; closing and destroying only free the
 * child's copy and leave the parent's objects alone. ibchan(7) has a table of what threads, signals
 * and forks do to each call.
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
#include <ibchan/next.h>
#include <ibchan/message.h>

#endif /* _IBCHAN_H */
