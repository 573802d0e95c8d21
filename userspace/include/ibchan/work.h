/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libibchan: posting, and posting with waiting. Include <ibchan.h>. */
#ifndef _IBCHAN_WORK_H
#define _IBCHAN_WORK_H

#include <stddef.h>
#include <linux/types.h>
#include <linux/ibchan.h>
#include <ibchan/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ibchan_context;
struct ibchan_mr;
struct ibchan_channel;
struct ibchan_completion;
struct ibchan_error;

/**
 * struct ibchan_sge - a gather or scatter element: a range of a memory region
 * @mr: the region
 * @addr: first byte, inside @mr
 * @length: bytes; 0 is allowed; less than 4 GiB
 */
struct ibchan_sge {
	struct ibchan_mr *mr;
	void *addr;
	size_t length;
};

/**
 * ibchan_sge_make() - an element
 * @mr: the region
 * @addr: first byte
 * @length: bytes
 *
 * Checks nothing; the post does.
 *
 * Return: the element.
 */
struct ibchan_sge ibchan_sge_make(struct ibchan_mr *mr, void *addr,
				  size_t length);

/**
 * struct ibchan_wr - a work request
 * @channel: where to post it
 * @opcode: IBCHAN_OP_*
 * @flags: IBCHAN_WR_IMM: @imm goes along; IBCHAN_WR_UNCHECKED: the ranges of this
 *	work neither collide with those of others nor others with them
 * @wr_id: any number; comes back in the completion
 * @sges: elements: gathered by a send or write, scattered into by a receive or
 *	read; may be NULL when there are none
 * @num_sge: how many
 * @imm: with IBCHAN_WR_IMM, 32 bits for the peer in host order; else 0
 * @remote: write and read: where in the peer's memory, starting with the first
 *	byte of it and not exceeding it; else zero
 * @reserved: 0
 */
struct ibchan_wr {
	struct ibchan_channel *channel;
	__u32 opcode;
	__u32 flags;
	__u64 wr_id;
	const struct ibchan_sge *sges;
	__u32 num_sge;
	__u32 imm;
	struct ibchan_remote_region remote;
	__u64 reserved[2];
};

/**
 * ibchan_post() - post any number of work requests on any channels
 * @context: of the channels
 * @wrs: the work requests; they and their lists may be reused at once
 * @n: how many
 * @accepted: how many leading ones were posted, also on an error; NULL is fine
 * @error: details of the first refused one; NULL is fine
 *
 * One system call for each 16. Each accepted work completes exactly once, on
 * its channel's cq, whatever happens to the channel.
 *
 * While a work is in flight, its ranges are checked against those of works posted
 * later on the same region: what a receive or read writes into, no other work may
 * use; what a send or write reads, others may read too. IBCHAN_WR_UNCHECKED opts
 * a work out. Not seen are another region over the same memory, what the peer
 * does by its key, and what the CPU does.
 *
 * Return: 0: all were posted. Else the errno of the first refused one, which
 * and those after it were not posted: -EAGAIN: a queue or the cq is full;
 * -EBUSY: a range collides with one in flight; @error names that one and its work;
 * -EINVAL: a bad request, or an element outside its region; -EACCES: the
 * region or the channel does not allow it; -EXDEV: a region of another pd or
 * context; -ENOENT: a channel of another context, or none, or a region that is
 * being unregistered, or none; -ENOTCONN, -ESHUTDOWN: the channel is not
 * connected, is broken; -EPERM: see Fork.
 */
int ibchan_post(struct ibchan_context *context, const struct ibchan_wr *wrs,
		__u32 n, __u32 *accepted, struct ibchan_error *error);

/**
 * ibchan_perform() - post one work and wait for it
 * @wr: the work request
 * @timeout_ns: for the wait, in nanoseconds, 0 and up; IBCHAN_TIMEOUT_NEVER: no
 *	limit
 * @completion: what became of the work; NULL is fine
 * @error: details; NULL is fine
 *
 * One system call in the good case. Signals do not end the wait. Completions
 * of other works that turn up meanwhile are kept for ibchan_cq_poll().
 *
 * The ranges of the work may be reused when this returns anything but
 * -ETIMEDOUT, -EPROTO or -ENODEV with @error's origin IBCHAN_ERROR_CALL: then
 * the work, if it was posted, is still pending, and ibchan_cq_poll() will hand
 * out its completion.
 *
 * Return: 0; what ibchan_post() returns; -ETIMEDOUT: the time has passed;
 * or, with origin IBCHAN_ERROR_WORK, the errno of a work that failed.
 */
int ibchan_perform(const struct ibchan_wr *wr, __s64 timeout_ns,
		   struct ibchan_completion *completion,
		   struct ibchan_error *error);

/**
 * ibchan_send() - send a message and wait until the peer has it
 * @channel: connected
 * @sges: gathered in this order; may be NULL when there are none
 * @num_sge: how many
 * @error: details; NULL is fine
 *
 * The peer's receive must be posted, or become so while the sender retries.
 * The ranges may be reused on return. For a time-out or an immediate see
 * ibchan_perform().
 *
 * Return: as ibchan_perform() without a limit.
 */
int ibchan_send(struct ibchan_channel *channel, const struct ibchan_sge *sges,
		__u32 num_sge, struct ibchan_error *error);

/**
 * ibchan_receive() - wait for a message
 * @channel: connected
 * @sges: scattered into in this order; may be NULL when there are none
 * @num_sge: how many
 * @completion: tells the message's bytes and immediate; NULL is fine
 * @error: details; NULL is fine
 *
 * The ranges may be used on return. A message longer than they are together
 * breaks the channel. For a time-out see ibchan_perform().
 *
 * Return: as ibchan_perform() without a limit.
 */
int ibchan_receive(struct ibchan_channel *channel,
		   const struct ibchan_sge *sges, __u32 num_sge,
		   struct ibchan_completion *completion,
		   struct ibchan_error *error);

/**
 * ibchan_write() - write into the peer's memory
 * @channel: connected
 * @sges: gathered in this order
 * @num_sge: how many
 * @remote: where to; must be as long as the elements together, or longer
 * @error: details; NULL is fine
 *
 * The peer learns nothing of it, unless ibchan_perform() sends an immediate
 * along. The ranges may be reused on return.
 *
 * Return: as ibchan_perform() without a limit.
 */
int ibchan_write(struct ibchan_channel *channel, const struct ibchan_sge *sges,
		 __u32 num_sge, const struct ibchan_remote_region *remote,
		 struct ibchan_error *error);

/**
 * ibchan_read() - read the peer's memory
 * @channel: connected
 * @sges: scattered into in this order
 * @num_sge: how many
 * @remote: where from; must be as long as the elements together, or longer
 * @error: details; NULL is fine
 *
 * The ranges may be used on return.
 *
 * Return: as ibchan_perform() without a limit.
 */
int ibchan_read(struct ibchan_channel *channel, const struct ibchan_sge *sges,
		__u32 num_sge, const struct ibchan_remote_region *remote,
		struct ibchan_error *error);

#ifdef __cplusplus
}
#endif

#endif /* _IBCHAN_WORK_H */
