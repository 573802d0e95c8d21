/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * RDMA channels for kernel consumers.
 *
 * A consumer takes a device, allocates a protection domain (pd), registers
 * memory regions (mr), creates completion queues (cq), builds channels and
 * posts work on them. /dev/ibchan is such a consumer and nothing more.
 *
 * A consumer can rely on this: a region that a posted work names cannot go away
 * before that work has completed; queues cannot overrun; each accepted work
 * completes exactly once; teardown is bounded; when the device leaves, every
 * call answers -ENODEV and the objects stay as shells until they are given back.
 *
 * Work can be posted at three levels, mixed on one channel as one likes:
 *
 *	blocking	ibchan_channel_send() and its like: one call, one result
 *	scoped		ibchan_scoped() { }: several works that cannot outlive a
 *			block, whichever way it is left (<rdma/ibchan_scope.h>)
 *	unpolled	ibchan_post() with a struct ibchan_work of the caller's:
 *			its done() is called when it has ended; no allocation,
 *			from softirq context too
 *
 * Below them a channel is a queue pair: ibchan_post() with a wr_id, and
 * ibchan_cq_poll() on a cq that keeps its completions (IBCHAN_CQ_KEEP), or a
 * sink that takes them.
 *
 * Callbacks - done(), broken(), those of a sink - may run within a call that reaps, polls or arms,
 * in the context of its caller. A lock that the caller holds must not be one that they take.
 * Lockdep finds such a lock the first time that both are seen, whether or not a callback came
 * within the call: to it a cq is a lock, which callbacks hold and such a call waits for; cqs that
 * were made at one place of the source are one class. A post calls nobody back, so around it the
 * lock may be held, with bottom halves off, unless the cq is IBCHAN_CQ_POST_REAPS.
 * ibchan_channel_break() calls broken() itself. A callback closes a channel by
 * ibchan_channel_close_async(), which does not wait.
 *
 * In writeback, and wherever else memory reclaim waits for the caller, also in a WQ_MEM_RECLAIM
 * worker, these are safe: posts, blocking calls, what reaps, polls, arms or waits, or asks of a
 * channel, ibchan_channel_break(), ibchan_closing_wait(), and what gives regions, cqs, channels and
 * domains back. They start no I/O for memory, and what they leave to workers has a rescuer,
 * unless a closed() is called.
 *
 * Calls that make domains, cqs, channels and regions of kernel memory keep to the caller's scope,
 * as memalloc_noio_save() begins one, and are safe there; so is ibchan_channel_handshake(), but for
 * a peer behind a gateway.
 *
 * Not safe are regions of a user's memory and dma-bufs, with their end and their domain's, which
 * wait for the owner of the memory; all of <rdma/ibchan_connect.h>, and closing a channel connected
 * by address, which wait for the connection manager. Such a channel is broken, which ends its
 * works, and closed elsewhere.
 *
 * Errors are negative errno values. Where a call takes a reason, a refusal is
 * explained there (see IBCHAN_REASONS in <linux/ibchan_codes.h>); it may be NULL.
 *
 * With PREEMPT_RT a spinlock, of whatever kind, does for "bottom halves or interrupts off"; no
 * call is made under a raw spinlock, or with interrupts really off.
 *
 * A consumer says MODULE_INFO(import_ns, "IBCHAN").
 */
#ifndef _RDMA_IBCHAN_H
#define _RDMA_IBCHAN_H

#include <linux/errno.h>
#include <linux/ktime.h>
#include <linux/types.h>
#include <linux/ibchan.h>
#include <rdma/ib_verbs.h>

struct dma_buf;
struct net;
struct page;
struct scatterlist;
struct ibchan_device;
struct ibchan_pd;
struct ibchan_mr;
struct ibchan_cq;
struct ibchan_channel;
struct ibchan_queue;
struct ibchan_work;

/**
 * struct ibchan_completion - how one work ended
 * @wr_id: of its work request
 * @cookie: of its channel
 * @status: enum ibchan_status
 * @error: errno, positive; 0 on success
 * @vendor_err: the device's own code, on an error
 * @bytes: received, for a receive that succeeded
 * @imm: in host order, with IBCHAN_CQE_IMM; with IBCHAN_CQE_INVALIDATED the key that a
 *	receive's message has invalidated: the region with this key, if there is one in the
 *	channel's domain, takes no more requests, and posts on it are refused (-EKEYREVOKED)
 * @opcode: IBCHAN_OP_*
 * @flags: IBCHAN_CQE_*
 */
struct ibchan_completion {
	u64 wr_id;
	u64 cookie;
	u32 status;
	u32 error;
	u32 vendor_err;
	u32 bytes;
	u32 imm;
	u8 opcode;
	u8 flags;
};

/**
 * struct ibchan_sink - where the completions of works without a done() go
 * @reserve: take room for up to @num completions before their works are posted: for how many,
 *	1 and up; -EAGAIN when there is none, or another errno, which the post then returns.
 *	May be NULL.
 * @cancel: give room for @num back, because works were not posted, or because one
 *	was unsignaled and has succeeded. May be NULL where @reserve is.
 * @done: one work has ended; its room is used up. Its buffers are the caller's
 *	again. NULL: only works with a done() of their own may be posted, unless
 *	the cq keeps its completions.
 * @quiet: in place of @cancel for a work that was unsignaled and has succeeded; its
 *	room is used up. NULL: @cancel.
 * @notify: some works have ended since the last call, of whichever kind. May be
 *	NULL.
 * @gone: the device has left: nothing comes any more. Called once, and not for
 *	a cq that its owner has destroyed. May be NULL.
 *
 * All are called with bottom halves off and must not sleep. @reserve runs under a channel's
 * post lock, @cancel may; @done, @quiet and @notify run under no lock and never twice at a
 * time for one cq, and may post, break and give up channels.
 * They mostly run in a softirq, on top of whatever is going on: a lock that they take is
 * taken with bottom halves off everywhere else.
 */
struct ibchan_sink {
	int (*reserve)(void *priv, u32 num);
	void (*cancel)(void *priv, u32 num);
	void (*done)(void *priv, const struct ibchan_completion *completion);
	void (*quiet)(void *priv, const struct ibchan_completion *completion);
	void (*notify)(void *priv);
	void (*gone)(void *priv);
};

/**
 * struct ibchan_remote - a region of the peer's, or a part of one
 * @addr: of its first byte, as the peer's device knows it
 * @length: bytes
 * @rkey: key to it
 */
struct ibchan_remote {
	u64 addr;
	u64 length;
	u32 rkey;
};

/**
 * struct ibchan_pages - memory by its pages
 * @pages: the pages, @num of them; held by the caller until the region is gone
 * @num: how many
 * @offset: of the first byte, within the first page
 * @length: bytes
 */
struct ibchan_pages {
	struct page **pages;
	u32 num;
	u32 offset;
	u64 length;
};

/**
 * struct ibchan_plain - memory of the calling process, for one element of one work
 * @addr: of the first byte; any alignment
 * @length: bytes, 1 and up
 * @max_sge: elements that the device may see of it: ibchan_channel_max_sge()
 * @num_sge: elements that the work has
 * @opcode: of the work: IBCHAN_OP_*
 */
struct ibchan_plain {
	u64 addr;
	u32 length;
	u32 max_sge;
	u16 num_sge;
	u8 opcode;
};

/**
 * struct ibchan_dmabuf - a range of a dma-buf
 * @dmabuf: the dma-buf
 * @offset: of the first byte, from its start
 * @length: bytes
 */
struct ibchan_dmabuf {
	struct dma_buf *dmabuf;
	u64 offset;
	u64 length;
};

/**
 * struct ibchan_sge - a gather or scatter element: a range of a memory region
 * @mr: the region
 * @offset: from its first byte
 * @length: bytes; an empty range is not shown to the device
 *
 * Elements are copied by the post: they may lie on the stack, go into several requests, and be
 * changed or freed when it has returned.
 */
struct ibchan_sge {
	struct ibchan_mr *mr;
	u64 offset;
	u32 length;
};

/**
 * struct ibchan_work - a posted work request, inside a struct of the caller's
 * @done: called once when the work has ended, with bottom halves off, under no
 *	lock; must not sleep. The work and its buffers are the
 *	caller's again, also within this call: it may post the work again or free
 *	it. It may break and give up channels. It may run in a softirq, so a lock that it
 *	takes is taken with bottom halves off everywhere else. One that posts each time
 *	keeps a cpu busy.
 *
 * @done is set before the work is posted; before its first post the rest is zero. From an
 * accepted post until @done is called, the struct must stay where it is, and to post the work
 * again is refused; not so where two posts, on two channels, run at the same moment.
 */
struct ibchan_work {
	/* private: */
	struct ib_cqe cqe;
	/* public: */
	void (*done)(struct ibchan_work *work,
		     const struct ibchan_completion *completion);
	/* private: */
	struct ibchan_queue *queue;
	union {
		struct ibchan_kept *kept;
		struct scatterlist *sgl;
	};
	u64 wr_id;
	u32 number;
	union {
		struct {
			u8 opcode;
			u8 flags;
			u16 num_sge;
		};
		u32 head;
	};
};

/*
 * Flags besides those of <linux/ibchan.h>. Of these, IBCHAN_WR_INLINE means @data
 * instead of elements here. There is no IBCHAN_WR_UNCHECKED, which goes without saying: its bit
 * says the opposite here.
 */
#define IBCHAN_WR_EXCLUSIVE	0x80U	/* ranges in flight must not collide; see ibchan_build */
#define IBCHAN_WR_SGL		0x40U	/* write or read: @sgl instead of elements */

/* An opcode besides those of <linux/ibchan.h>. */
#define IBCHAN_OP_SEND_INVALIDATE 8	/* a send that invalidates a key of the peer's */

/**
 * struct ibchan_wr - a work request
 * @wr_id: comes back in the completion
 * @work: the caller's, with done() set; NULL: the completion goes to the sink
 * @sges: the ranges, @num_sge of them, not needed after the post. An atomic has one, of 8
 *	bytes, which receives what the peer's word was before.
 * @data: with IBCHAN_WR_INLINE: kernel memory, copied during the post
 * @sgl: with IBCHAN_WR_SGL: a scatterlist of @num_sge entries, not mapped; see ibchan_wr_sgl()
 * @remote_addr: write, read, atomic: in the peer's region; 8-aligned for an atomic
 * @remote_length: write, read, atomic: bytes of the peer's region from @remote_addr
 *	on; IBCHAN_REMOTE_UNCHECKED: its device has to know
 * @operand: atomic: the value to compare with, or to add
 * @swap: compare and swap: the new value
 * @data_length: bytes of @data, up to the channel's max_inline_data
 * @rkey: write, read, atomic: of the peer's region; send and invalidate: the key that ends
 * @imm: with IBCHAN_WR_IMM: for the peer, in host order
 * @num_sge: 0 and up
 * @opcode: IBCHAN_OP_*
 * @flags: IBCHAN_WR_*
 * @head: @opcode, @flags and @num_sge at once, for ibchan's own use
 *
 * Members that neither the opcode nor a flag uses are not read.
 */
struct ibchan_wr {
	u64 wr_id;
	struct ibchan_work *work;
	const struct ibchan_sge *sges;
	union {
		const void *data;
		struct scatterlist *sgl;
	};
	u64 remote_addr;
	u64 remote_length;
	u64 operand;
	u64 swap;
	u32 data_length;
	u32 rkey;
	u32 imm;
	union {
		struct {
			u8 opcode;
			u8 flags;
			u16 num_sge;
		};
		u32 head;
	};
};

/**
 * struct ibchan_build - the objects and options to build a channel from
 * @pd: protection domain of the channel and of all memory posted on it
 * @send_cq: where sends, writes, reads and atomics complete
 * @recv_cq: where receives complete; may be the same
 * @net: network namespace that the channel's address must belong to; to be kept
 *	until the channel is closed. NULL: any.
 * @cookie: comes back in each completion
 * @connected: the channel was connected by address (<rdma/ibchan_connect.h>) and takes
 *	work; called once, before @broken is, in process context with bottom halves off;
 *	it must not sleep; it may post, break and give up channels. May be NULL.
 * @broken: the channel has broken by itself, by ibchan_channel_break(), because its
 *	device left (-ENODEV) or its address (-EADDRNOTAVAIL); called once, in any
 *	context but NMI, maybe under locks of ibchan's or the driver's, and not for a
 *	channel that is being closed. It must not sleep; it may break and give up
 *	channels. May be NULL. Where sends and receives complete on two cqs, works that
 *	were flushed may complete before it: it tells what they were flushed for.
 * @priv: for @connected, @broken and the owner's closed(); to be kept until the channel has ended
 * @max_sgl: entries of the longest scatterlist that a request moves (IBCHAN_WR_SGL), 0 to
 *	U16_MAX; 0: none does. For each the channel has some 20 bytes, and for each place of
 *	the send queue another 48. A post refuses a list that the send queue has no places for.
 * @exclusive: requests may be IBCHAN_WR_EXCLUSIVE. For each element of each place of the queues
 *	the channel has 8 bytes, and with this another 56.
 * @options: what else; all zero is the default
 */
struct ibchan_build {
	struct ibchan_pd *pd;
	struct ibchan_cq *send_cq;
	struct ibchan_cq *recv_cq;
	struct net *net;
	u64 cookie;
	void (*connected)(void *priv);
	void (*broken)(void *priv, int error);
	void *priv;
	u16 max_sgl;
	bool exclusive;
	struct ibchan_options options;
};

/**
 * struct ibchan_closing - counts channels that their owner has given up without waiting
 * @num: private
 *
 * Zeroed by the consumer, of which one in static memory usually serves all channels.
 */
struct ibchan_closing {
	/* private: */
	atomic_t num;
};

/**
 * struct ibchan_times - how long a channel tries
 * @ack_timeout_ns: until a message that nobody has answered is sent again;
 *	IBCHAN_TIMEOUT_NEVER: it is not
 * @rnr_timer_ns: how long the peer is told to wait when its message met no receive
 * @worst_case_ns: until a message that nobody ever answers has failed, at most: devices
 *	may take four times @ack_timeout_ns for each try; IBCHAN_TIMEOUT_NEVER: it does
 *	not, or need not (7 retries are without end on some devices)
 * @ack_retries: how often it is sent again
 * @rnr_retries: how often it is sent again when it met no receive; 7: without end
 */
struct ibchan_times {
	s64 ack_timeout_ns;
	s64 rnr_timer_ns;
	s64 worst_case_ns;
	u32 ack_retries;
	u32 rnr_retries;
};

struct ibchan_device *ibchan_device_get(const char *name, struct net *net);
struct ibchan_device *ibchan_device_get_nth(u32 index, struct net *net);
void ibchan_device_put(struct ibchan_device *dev);
int ibchan_device_query(struct ibchan_device *dev, struct ibchan_device_attr *attr);
int ibchan_port_query(struct ibchan_device *dev, u32 port, struct net *net,
		      struct ibchan_port_attr *attr);
int ibchan_gid_query(struct ibchan_device *dev, u32 port, struct net *net,
		     struct ibchan_gid_attr *attr);

struct ibchan_pd *ibchan_pd_alloc(struct ibchan_device *dev);
int ibchan_pd_free(struct ibchan_pd *pd);
bool ibchan_pd_tryget(struct ibchan_pd *pd);
void ibchan_pd_put(struct ibchan_pd *pd);
int ibchan_pd_settle(struct ibchan_pd *pd);
void ibchan_pd_flush(struct ibchan_pd *pd);

struct ibchan_mr *ibchan_mr_reg_user(struct ibchan_pd *pd, u64 addr, u64 length,
				     u32 access, struct ibchan_reason *reason);
struct ibchan_mr *ibchan_mr_pin_user(struct ibchan_pd *pd, const struct ibchan_plain *plain,
				     struct ibchan_reason *reason);
struct ibchan_mr *ibchan_mr_reg_kernel(struct ibchan_pd *pd, void *addr, u64 length,
				       u32 access, struct ibchan_reason *reason);
struct ibchan_mr *ibchan_mr_reg_pages(struct ibchan_pd *pd, const struct ibchan_pages *pages,
				      u32 access, struct ibchan_reason *reason);
struct ibchan_mr *ibchan_mr_reg_sg(struct ibchan_pd *pd, struct scatterlist *sgl,
				   u32 nents, u32 access, struct ibchan_reason *reason);
struct ibchan_mr *ibchan_mr_reg_dmabuf(struct ibchan_pd *pd, const struct ibchan_dmabuf *range,
				       u32 access, struct ibchan_reason *reason);
u32 ibchan_mr_rkey(const struct ibchan_mr *mr);
u64 ibchan_mr_length(const struct ibchan_mr *mr);
u64 ibchan_mr_pages(const struct ibchan_mr *mr);
int ibchan_mr_remote(const struct ibchan_mr *mr, struct ibchan_remote *remote);
int ibchan_mr_try_dereg(struct ibchan_mr *mr);
void ibchan_mr_put(struct ibchan_mr *mr, void (*gone)(void *priv), void *priv);

void ibchan_params_init(struct ibchan_params *params);
struct ibchan_channel *ibchan_channel_build(const struct ibchan_build *build,
					    struct ibchan_params *params,
					    struct ibchan_reason *reason);
void ibchan_channel_endpoint(const struct ibchan_channel *ch,
			     struct ibchan_endpoint *endpoint);
int ibchan_channel_handshake(struct ibchan_channel *ch,
			     const struct ibchan_endpoint *peer,
			     struct ibchan_reason *reason);
void ibchan_channel_query(struct ibchan_channel *ch, struct ibchan_channel_attr *attr);
u32 ibchan_channel_state(const struct ibchan_channel *ch);
u32 ibchan_channel_history(struct ibchan_channel *ch, struct ibchan_history_event *events,
			   u32 num);
void ibchan_channel_break(struct ibchan_channel *ch, int error);
void ibchan_channel_drain(struct ibchan_channel *ch);
void ibchan_channel_close(struct ibchan_channel *ch);
void ibchan_channel_close_async(struct ibchan_channel *ch, struct ibchan_closing *closing,
				void (*closed)(void *priv));
void ibchan_closing_wait(struct ibchan_closing *closing);
bool ibchan_channel_tryget(struct ibchan_channel *ch);
void ibchan_channel_put(struct ibchan_channel *ch);
u32 ibchan_channel_max_sge(const struct ibchan_channel *ch, u8 opcode);
u32 ibchan_sgl_places(const struct ibchan_channel *ch, u8 opcode, u32 entries);
void ibchan_channel_arm(struct ibchan_channel *ch, const struct ibchan_cq *except);
void ibchan_channel_reap(struct ibchan_channel *ch, const struct ibchan_cq *except);
int ibchan_channel_times(struct ibchan_channel *ch, struct ibchan_times *times);

__attribute__((nonnull(4)))
int ibchan_post(struct ibchan_channel *ch, const struct ibchan_wr *wrs, u32 num,
		u32 *accepted, struct ibchan_reason *reason);

u32 ibchan_status_error(u32 status);
u32 ibchan_status_class(u32 status);
const char *ibchan_status_name(u32 status);
const char *ibchan_status_hint(u32 status);

/*
 * Completion queues. The parts of a request: elements, remote regions, requests by opcode; the
 * blocking calls.
 */
#include <rdma/ibchan_cq.h>
#include <rdma/ibchan_wr.h>
#include <rdma/ibchan_run.h>

#endif /* _RDMA_IBCHAN_H */
