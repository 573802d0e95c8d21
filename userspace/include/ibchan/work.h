/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libibchan: posting, and posting with waiting. Include <ibchan.h>. */
#ifndef _IBCHAN_WORK_H
#define _IBCHAN_WORK_H

#include <assert.h>
#include <ibchan/memory.h>

__IBCHAN_BEGIN_DECLS

/*
 * A work request is a struct ibchan_submit_wr of <linux/ibchan.h>, its elements are struct
 * ibchan_submit_sge, and its completion is a struct ibchan_cqe: the kernel reads and writes these
 * very structs. The calls here make elements, those of <ibchan/wr.h> requests; see ibchan_post().
 */

/**
 * ibchan_sge_plain() - an element of memory that is not registered
 * @addr: first byte
 * @length: bytes, at most the device's max_plain_bytes, less what lies before @addr in its page
 *
 * The kernel pins its pages at the post, charges them to RLIMIT_MEMLOCK and lets them go after the
 * completion; those of a work that failed, when its channel is closed. Plain memory is not checked
 * against other works in flight.
 *
 * Return: the element.
 */
struct ibchan_submit_sge ibchan_sge_plain(void *addr, size_t length);

/**
 * ibchan_sge_unchecked() - an element, as given
 * @mr: the region
 * @offset: from its first byte
 * @length: bytes
 *
 * Return: the element. A post refuses it with -EINVAL if it leaves the region.
 */
struct ibchan_submit_sge ibchan_sge_unchecked(const struct ibchan_mr *mr, size_t offset,
					      size_t length);

/**
 * ibchan_sge_checked() - an element that lies within its region
 * @mr: the region
 * @offset: from its first byte
 * @length: bytes
 * @sge: filled on success
 *
 * Return: 0; -EINVAL: the range leaves the region; -EOVERFLOW: it is inside, but longer than an
 * element can be (4 GiB - 1).
 */
int ibchan_sge_checked(const struct ibchan_mr *mr, __u64 offset, __u64 length,
		       struct ibchan_submit_sge *sge);

/**
 * ibchan_sge_new() - an element that the caller knows to be right
 * @mr: the region
 * @offset: from its first byte
 * @length: bytes
 *
 * A wrong one is an assertion that fails where it is made, unless the caller is built with NDEBUG.
 *
 * Return: the element; with NDEBUG also a wrong one, which a post refuses.
 */
static inline struct ibchan_submit_sge ibchan_sge_new(const struct ibchan_mr *mr,
						      size_t offset, size_t length)
{
	struct ibchan_submit_sge sge = ibchan_sge_unchecked(mr, offset, length);

	assert(!ibchan_sge_checked(mr, offset, length, &sge));
	return sge;
}

/**
 * ibchan_post() - post any number of work requests on any channels
 * @context: of the channels
 * @wrs: the work requests
 * @n: how many
 * @accepted: how many leading ones were posted, also on an error; NULL is fine
 * @error: details of the first refused one; NULL is fine
 *
 * Requests are made by ibchan_wr_send() and its like. A program may change what they were made
 * with: the elements, the peer's memory, and
 *
 *	wr_id			any number; comes back in the completion
 *	flags			see below; with an immediate by
 *				ibchan_wr_set_imm()
 *
 * A program that fills one in itself begins with a zeroed struct. Requests and elements name
 * objects by their handles, which begin at a random number in each context: the object of another
 * context is none, and refused as such. The elements of one work have less than 2 GiB together
 * (IBCHAN_MAX_MESSAGE), those of a receive as well; those of other works no more than max_message
 * of struct ibchan_port_attr. An atomic works on 8 bytes of the peer's at a multiple of 8, in the
 * byte order of the peer's host. Its element receives what they were before.
 *
 * The flags:
 *
 *	IBCHAN_WR_IMM		send, write: imm goes along; needs a device with
 *				IBCHAN_DEVICE_IMMEDIATE
 *	IBCHAN_WR_FENCE		not before all reads and atomics before it are
 *				done; not for a receive, and for a read only
 *				with IBCHAN_DEVICE_IMMEDIATE
 *	IBCHAN_WR_SOLICITED	send, write with IBCHAN_WR_IMM: wakes the peer,
 *				see ibchan_cq_create_solicited()
 *	IBCHAN_WR_INLINE	send, write: the data are copied at the post, and
 *				may be changed at once; at most the channel's
 *				max_inline_data bytes, by ibchan_sge_plain()
 *	IBCHAN_WR_UNSIGNALED	not for a receive: the completion is shown only
 *				if it is an error. The work ends together with a
 *				later one of its channel that has not the flag;
 *				until then it keeps its ranges and its places in
 *				the queues. The module asks for a completion by
 *				itself now and then, so a program that posts no
 *				other works need not poll, and tries again
 *				after EAGAIN.
 *				Blocking calls and pending works do
 *				not heed it.
 *	IBCHAN_WR_UNCHECKED	the ranges of this work neither collide with
 *				those of others nor others with them
 *
 * One system call. Each accepted work completes exactly once, on its channel's cq, whatever happens
 * to the channel.
 *
 * While a work is in flight, its ranges are checked against those of works posted later on the same
 * region: no other work may use a range that a receive, read or atomic writes into; others may read
 * one that a send or write reads. IBCHAN_WR_UNCHECKED opts a work out. Not seen are another region
 * over the same memory, what the peer does by its key, and what the CPU does.
 *
 * Buffers: the ranges of a work that was accepted belong to the device until its completion was
 * handed out by ibchan_cq_poll() or ibchan_cq_wait(), those of an unsignaled one until that of the
 * later work was that it ends with. Those of refused ones and inline data may be reused at once.
 *
 * Return: 0: all were posted. Else the errno of the first refused one, which and those after it
 * were not posted: -EAGAIN: a queue or the cq is full; -EBUSY: a range collides with one in flight;
 * @error names that one and its work; -EINVAL: a bad request, or an element outside its region;
 * -EACCES: the region or the channel does not allow it; -EXDEV: a region of another pd;
 * -EKEYREVOKED: a region whose key a peer has invalidated; -ENOENT: a channel of another context,
 * or none, or a region of another context, or one that is being unregistered, or none; -EFAULT,
 * -ENOMEM: plain memory that is not there, or that may not be pinned; -EDQUOT: plain memory, and
 * the user's objects take as much kernel memory as they may; -EOPNOTSUPP: the device has no
 * atomics, the peer serves no reads and atomics, or an unknown flag; -ENOTCONN: the channel has no
 * peer yet, and this is no receive; -ESHUTDOWN: the channel is broken; -EPERM: see Fork.
 */
int ibchan_post(struct ibchan_context *context, const struct ibchan_submit_wr *wrs,
		__u32 n, __u32 *accepted, struct ibchan_error *error);

/**
 * ibchan_perform() - post one work and wait for it
 * @channel: where to post it
 * @wr: the work request, made for @channel
 * @timeout_ns: for the wait, in nanoseconds, 0 and up; IBCHAN_TIMEOUT_NEVER: no limit
 * @completion: of the work; NULL is fine
 * @error: details; NULL is fine
 *
 * One system call in the good case. Completions of other works that turn up meanwhile are kept for
 * ibchan_cq_poll().
 *
 * Buffers: the ranges of the work may be reused when this returns anything but -ETIMEDOUT, -EPROTO
 * or -ENODEV with @error's origin IBCHAN_ERROR_CALL: then the work, if it was posted, is still
 * pending, and ibchan_cq_poll() will hand out its completion. Works fail with these codes as well,
 * so a caller that goes on after them needs @error.
 *
 * Return: 0; as ibchan_post(); -EINVAL: a negative time-out, too; -ETIMEDOUT: the time has passed;
 * or, with origin IBCHAN_ERROR_WORK, the errno of a work that failed.
 */
int ibchan_perform(struct ibchan_channel *channel, const struct ibchan_submit_wr *wr,
		   __s64 timeout_ns, struct ibchan_cqe *completion, struct ibchan_error *error);

/**
 * ibchan_send() - send a message and wait until the peer has it
 * @channel: connected
 * @sges: gathered in this order; may be NULL when there are none
 * @num_sge: how many
 * @timeout_ns: for the wait, as for ibchan_perform()
 * @error: details; NULL is fine
 *
 * The peer's receive must be posted, or become so while the sender retries. For an immediate see
 * ibchan_perform().
 *
 * Buffers: as ibchan_perform().
 * Return: as ibchan_perform().
 */
int ibchan_send(struct ibchan_channel *channel, const struct ibchan_submit_sge *sges,
		__u32 num_sge, __s64 timeout_ns, struct ibchan_error *error);

/**
 * ibchan_receive() - wait for a message
 * @channel: connected
 * @sges: scattered into in this order; may be NULL when there are none
 * @num_sge: how many
 * @timeout_ns: for the wait, as for ibchan_perform()
 * @completion: tells the message's bytes and immediate; NULL is fine
 * @error: details; NULL is fine
 *
 * A message longer than the ranges together breaks the channel. Behind -ETIMEDOUT the receive is
 * still posted: the next message is its own, and ibchan_cq_wait() hands its completion out.
 *
 * Buffers: as ibchan_perform().
 * Return: as ibchan_perform().
 */
int ibchan_receive(struct ibchan_channel *channel, const struct ibchan_submit_sge *sges,
		   __u32 num_sge, __s64 timeout_ns, struct ibchan_cqe *completion,
		   struct ibchan_error *error);

/**
 * ibchan_write() - write into the peer's memory
 * @channel: connected
 * @sges: gathered in this order
 * @num_sge: how many
 * @remote: where to; must be as long as the elements together, or longer
 * @timeout_ns: for the wait, as for ibchan_perform()
 * @error: details; NULL is fine
 *
 * The peer learns nothing of it, unless ibchan_perform() sends an immediate along.
 *
 * Buffers: as ibchan_perform().
 * Return: as ibchan_perform().
 */
int ibchan_write(struct ibchan_channel *channel, const struct ibchan_submit_sge *sges,
		 __u32 num_sge, const struct ibchan_remote_region *remote,
		 __s64 timeout_ns, struct ibchan_error *error);

/**
 * ibchan_read() - read the peer's memory
 * @channel: connected
 * @sges: scattered into in this order
 * @num_sge: how many
 * @remote: where from; must be as long as the elements together, or longer
 * @timeout_ns: for the wait, as for ibchan_perform()
 * @error: details; NULL is fine
 *
 * Buffers: as ibchan_perform().
 * Return: as ibchan_perform().
 */
int ibchan_read(struct ibchan_channel *channel, const struct ibchan_submit_sge *sges,
		__u32 num_sge, const struct ibchan_remote_region *remote,
		__s64 timeout_ns, struct ibchan_error *error);

/**
 * struct ibchan_swap - the values of a compare and swap
 * @compare: the value that the peer's word must have for it to change
 * @swap: its new value then
 */
struct ibchan_swap {
	__u64 compare;
	__u64 swap;
};

/**
 * ibchan_compare_swap() - change a word of the peer's if it is as expected
 * @channel: connected; both sides allow IBCHAN_ACCESS_REMOTE_ATOMIC
 * @sge: 8 bytes; receives what the peer's were before
 * @remote: the peer's word, at a multiple of 8, in a region with IBCHAN_ACCESS_REMOTE_ATOMIC
 * @values: to compare with, and the new one
 * @timeout_ns: for the wait, as for ibchan_perform()
 * @error: details; NULL is fine
 *
 * It was swapped if @sge's memory has become equal to @values->compare.
 *
 * Buffers: as ibchan_perform().
 * Return: as ibchan_perform(); -EOPNOTSUPP: the device has no atomics (IBCHAN_DEVICE_ATOMICS), or
 * the peer serves none.
 */
int ibchan_compare_swap(struct ibchan_channel *channel, const struct ibchan_submit_sge *sge,
			const struct ibchan_remote_region *remote, const struct ibchan_swap *values,
			__s64 timeout_ns, struct ibchan_error *error);

/**
 * ibchan_fetch_add() - add to a word of the peer's
 * @channel: connected; both sides allow IBCHAN_ACCESS_REMOTE_ATOMIC
 * @sge: 8 bytes; receives what the peer's were before
 * @remote: the peer's word, as for ibchan_compare_swap()
 * @add: the number to add; the sum wraps
 * @timeout_ns: for the wait, as for ibchan_perform()
 * @error: details; NULL is fine
 *
 * Buffers: as ibchan_perform().
 * Return: as ibchan_compare_swap().
 */
int ibchan_fetch_add(struct ibchan_channel *channel, const struct ibchan_submit_sge *sge,
		     const struct ibchan_remote_region *remote, __u64 add, __s64 timeout_ns,
		     struct ibchan_error *error);

__IBCHAN_END_DECLS

#endif /* _IBCHAN_WORK_H */
