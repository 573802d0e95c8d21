/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The door of channel/: a reliable connection, its queues, and its life.
 *
 * Locks, outermost first:
 *
 *	followers_lock		consumers that follow devices; their functions run under it
 *				(device.c)
 *	ibchan_pd.service_lock	the domain's service, which registers memory; a post and
 *				a wait happen under it
 *	ibchan_channel.end_lock	which of several callers ends a channel's works
 *	ibchan_device.gate	commands and ends are inside, or removal is alone (gate.c);
 *				it guards the ->ib pointers of everything below a
 *				device. No fault on user memory is taken inside
 *	listeners_lock		the list of listeners (listen.c)
 *	rdma_cm's handler mutex	of an id; the steps of connecting run under it, without
 *				the gate
 *	devices_lock		list of devices (device.c)
 *	ibchan_device.lock	the device's lists of objects
 *	ibchan_device.linger_lock  ids that outlive their channels
 *	ibchan_qp.lock	verbs that change the state of a qp
 *	ibchan_cq.space_lock	how many places of a cq each queue has reserved
 *	ibchan_pd.pool_lock	fast-registration regions that the domain keeps
 *	ibchan_device.watch_lock	when its channels are looked at next
 *	ibchan_channel.post_lock   bottom halves off; prepare and ib_post_*
 *	ibchan_busy.lock	bottom halves off; a region's ranges in flight
 *	ibchan_pd.keys_lock	bottom halves off; a domain's regions by their keys
 *	ibchan_channel.state_lock  interrupts off; state and first error
 *	ibchan_lane.lock	interrupts off; which works of a user are queued
 *	ibchan_history.lock	interrupts off; what happened to a channel
 *
 * Memory reclaim may wait for a channel to break, and for objects to end. So allocations under
 * the locks that these take start no I/O: see ibchan_noio and ibchan_qp_lock(). Commands do
 * allocate inside the gate, where ends wait for removal only.
 *
 * The right to reap a cq (CQ_OWNED) is no lock, since callbacks run under it. The cq's
 * owner keeps bottom halves off and never waits for anything, so that another thread
 * may spin for it. It is taken without any of the locks above but the gate and
 * the qp lock. Under it only the locks from post_lock on are taken: a softirq that reaps
 * may have interrupted a thread that holds one of the others. verbs/callback.c tells lockdep of
 * the callbacks.
 */
#ifndef IBCHAN_CHANNEL_H
#define IBCHAN_CHANNEL_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <rdma/ib_verbs.h>
#include <rdma/ibchan.h>

#include "only.h"
#include "verbs.h"

struct ibchan_cm;
struct seq_file;

/*
 * A feature of an upper floor that has a part in each channel, as keepalive (watch.c) and the
 * connection by address (cm_end.c) have: when a channel calls it.
 *
 * Each may be NULL. @flush, @defers_marker and @heard_peer must not sleep; all
 * others run in process context and may.
 */
struct ibchan_channel_part {
	/* it is not built yet, and its memory has just been cleared; an error refuses it */
	int (*make)(struct ibchan_channel *ch, struct ibchan_reason *reason);
	/* connected by endpoints, and the state says so; under the qp lock */
	void (*connected)(struct ibchan_channel *ch, const struct ibchan_endpoint *peer);
	/* it is broken, and nobody has the qp lock; ends what holds that for long */
	void (*interrupt)(struct ibchan_channel *ch);
	/* it is broken, and its works are flushed */
	void (*disconnect)(struct ibchan_channel *ch);
	/* it is closed; nothing of the part runs any more */
	void (*stop)(struct ibchan_channel *ch);
	void (*forget_marker)(struct ibchan_channel *ch);	/* its queue pair is about to go */
	/* the part posts the marker of the send queue, later */
	bool (*defers_marker)(struct ibchan_channel *ch);
	/* a message of the peer's has come, before its word that it is connected */
	void (*heard_peer)(struct ibchan_channel *ch);
	/* the device has forgotten what was posted; under the right to reap the cq */
	void (*flush)(struct ibchan_channel *ch);
	/*
	 * its queue pair is gone, or never was, and neither may be the part: @make has failed;
	 * without the gate
	 */
	void (*end)(struct ibchan_channel *ch);
	/* under the qp lock */
	void (*fill_facts)(const struct ibchan_channel *ch, struct ibchan_facts *facts);
};

/* The last one is NULL. Set once, before the first channel is built. */
extern const struct ibchan_channel_part *const *ibchan_channel_parts;

/* Calls @what of each part that has it. */
#define ibchan_parts_call(what, ...)						\
do {										\
	const struct ibchan_channel_part *const *part;				\
										\
	for (part = ibchan_channel_parts; *part; part++)			\
		if ((**part).what)						\
			(**part).what(__VA_ARGS__);				\
} while (0)

/* The same, up to the first one that does not return 0, which is the value. */
#define ibchan_parts_ask(what, ...)						\
({										\
	const struct ibchan_channel_part *const *part;				\
	int answer = 0;								\
										\
	for (part = ibchan_channel_parts; *part && !answer; part++)		\
		if ((**part).what)						\
			answer = (**part).what(__VA_ARGS__);			\
	answer;									\
})

/* Room for the events of most channels. A power of two, as IBCHAN_HISTORY_MAX is. */
#define IBCHAN_HISTORY_FEW	4

/* The last events of a channel */
struct ibchan_history {
	__channel_only spinlock_t lock;	/* innermost, interrupts off; guards all of it */
	__channel_only u32 num;	/* events ever */
	__channel_only u64 refused;	/* error and reason of the last refused post */
	__channel_only u64 connected_ns;	/* when it was connected; 0: it was not */
	/* the first work that failed, and was not flushed; no error: none */
	__channel_only struct ibchan_completion failed;
	__channel_only u32 oldest;	/* number of the oldest event that is kept */
	__channel_only u32 room;	/* events that @events has room for, a power of two */
	__channel_only struct ibchan_history_event *events;	/* event n is at n modulo @room */
};

/*
 * The keepalive of a channel.
 *
 * @silence is immutable once connected, @share from when it is built to its end, @node is under the
 * device's watch_lock. @due, @looked, @retired, @heard, @doubted, @behind, @asked and @patient
 * belong to the worker that has taken the channel out of the queue, under the device's lock.
 */
struct ibchan_watch {
	__connect_only struct ib_cqe cqe;	/* of the probe */
	/* who uses the spare entry of the send queue, see connect/watch.c */
	__connect_only atomic_t spare;
	/* jiffies without a completion before a probe; 0: there are no probes */
	__connect_only unsigned long silence;
	/* its user's, see connect/watch.c; NULL: it has no keepalive */
	__connect_only struct ibchan_watch_share *share;
	__connect_only struct rb_node node;	/* in the queue of @share, by @due */
	__connect_only unsigned long due;	/* when it is looked at next, in jiffies */
	__connect_only unsigned long looked;	/* when it was looked at last */
	__connect_only u32 retired;	/* works of both queues that had completed then */
	/* no sign of life is known after this, in jiffies */
	__connect_only unsigned long heard;
	__connect_only bool doubted;	/* the next look asks, however short the silence */
	/* works of the send queue that were posted before the last probe */
	__connect_only u32 behind;
	/* since when the peer owes an answer to the probe that is out, in jiffies */
	__connect_only unsigned long asked;
	u32 sent;	/* probes ever posted; written under the post lock */
	/* probes that have succeeded; written by the owner of the send cq */
	__connect_only u32 answered;
	bool patient;	/* no keepalive was asked for, and the peer has not been heard yet */
};

/* The region and the range that an element of a work in flight holds */
struct ibchan_kept {
	struct ibchan_mr *mr;	/* a reference to its region */
	struct ibchan_range range[];	/* one, where works may keep others out of their ranges */
};

/*
 * The send or the receive half of a channel.
 *
 * The poster writes into a place under the post lock before it is taken; the cq's owner reads
 * that before it is given back.
 */
struct ibchan_queue {
	struct ibchan_channel *channel;	/* its channel */
	/*
	 * where it completes; kept to the channel's end, for posts and waits that have not returned
	 */
	struct ibchan_cq *cq;
	struct ibchan_places places;	/* which of its places are taken */

	__channel_only u32 max_sge;	/* elements of one work */
	/* bytes of a struct ibchan_kept, with its range if it has one */
	__channel_only size_t kept_size;
	struct ibchan_work **works;	/* what is in flight, by place */
	/* regions and ranges of their elements: @max_sge of @kept_size bytes for each place */
	__channel_only void *kept;
	__channel_only size_t place_size;	/* bytes of @kept for each place */
	/* works of posters that bring none, by place; NULL where @cq has no sink */
	__channel_only struct ibchan_work *slots;
	/*
	 * works of a scatterlist's first parts, by place; at the place of its last part, which
	 * is the request's work, @num_sge is how many came before. NULL where no request has one
	 */
	__channel_only struct ibchan_work *parts;
	__channel_only u32 part_status;	/* of the part that failed, until its request ends */
	__channel_only u32 part_vendor_err;	/* the same */
	/* the device did not take the rest of a request, from work number @cut_at on */
	__channel_only bool cut;
	__channel_only u32 cut_at;	/* see @cut */
	struct ib_cqe marker;	/* completes behind everything else, when the qp drains */
	int marked;	/* the marker is posted, or the probe's completion is going to post it */
	int drained;	/* the marker has come, or was given up */
};

/* Of struct ibchan_channel.after_post: duties of a poster behind its post. */
#define IBCHAN_AFTER_REAP	0x1U	/* a cq of the channel's is reaped or armed */
#define IBCHAN_AFTER_ARM	0x2U	/* a cq of the channel's is armed, and not reaped */

/* One reliable connection */
struct ibchan_channel {
	/*
	 * limits for checks of its requests; immutable once it is connected: @max_rd_atomic of it
	 * is agreed on before that, and written under @post_lock
	 */
	struct ibchan_bounds bounds;
	int connected;	/* @qp has come to RTS, so closing has to drain it; under @qp.lock */
	spinlock_t post_lock;	/* guards the posting side of both queues, @chain */
	struct ibchan_queue send;	/* all but receives */
	struct ibchan_queue recv;	/* receives */
	struct ibchan_qp qp;	/* its queue pair */
	/* plain memory of works that have failed, until @qp is destroyed */
	__channel_only struct llist_head parked;
	u32 after_post;	/* IBCHAN_AFTER_*: duties of a poster behind its post */
	/* guards @state, @error, @status and @device_gone together */
	__channel_only spinlock_t state_lock;
	wait_queue_head_t state_wait;	/* woken when the channel is not connecting any more */
	u32 state;	/* enum ibchan_channel_state; read without the lock by the post path */
	u32 error;	/* errno of the first error, positive */
	__channel_only u32 status;	/* of the work that failed first */
	/* its device has left, whatever the first error was */
	__channel_only bool device_gone;
	/* the break was asked for, or the peer is to be told, so the connection is ended, too */
	__channel_only bool asked;
	/* @connected_to is being called, and @broken comes behind it; under @state_lock */
	__channel_only bool telling;
	__channel_only bool tell_later;	/* the channel has broken meanwhile; under @state_lock */
	/* when it broke, in jiffies, which its cqs know; 0: it has not */
	__channel_only unsigned long broken_at;
	/* when its port last went down, in jiffies; 0: it has not */
	__channel_only unsigned long port_down_at;
	__channel_only int leaked;	/* the device would not let go of it */
	/* finds out what has failed when only its consequences were seen, then tells */
	struct ibchan_turn cause_turn;
	struct ibchan_turn break_turn;	/* moves the qp to ERR, and where it must, later to RESET */
	__channel_only refcount_t refs;	/* 1 for its owner; the memory goes with the last one */
	__channel_only struct mutex end_lock;	/* one caller stops it at a time */
	/* the owner's, who does not wait for the end */
	__channel_only void (*closed)(void *priv);
	struct work_struct close_work;	/* closes what its owner has given up, or frees it */
	/* counts the channel once its owner has given it up; NULL before that */
	__channel_only struct ibchan_closing *closing;
	/* the consumer's, as the next three */
	__channel_only u64 cookie;
	__channel_only void (*connected_to)(void *priv);
	__channel_only void (*broken)(void *priv, int error);
	__channel_only void *priv;
	/* its connection, if it was connected by address; set once, under @qp.lock; goes with it */
	struct ibchan_cm *cm;
	struct ibchan_options options;	/* immutable */
	bool gid_gone;	/* noted in @history; under @qp.lock */
	struct ibchan_endpoint peer;	/* the peer's endpoint, once connected; under @qp.lock */
	struct ibchan_watch watch;	/* keepalive */
	__channel_only struct ibchan_history history;	/* its events */
	__channel_only struct ibchan_cost cost;	/* of kernel memory */
	__channel_only struct list_head link;	/* in the device's list */
	/* the memory outlives readers that found it in a handle table */
	__channel_only struct rcu_head rcu;
	__channel_only struct ibchan_chain chain;	/* scratch space */
};

/* retire.c */
void ibchan_queue_end_silent(struct ibchan_queue *queue);
bool ibchan_queue_flush(struct ibchan_queue *queue, u32 max);
void ibchan_queue_end_marker(struct ibchan_queue *queue);

/* build.c */
int ibchan_channels_init(const struct ibchan_channel_part *const *parts);
void ibchan_channels_fini(void);
int ibchan_queue_init(struct ibchan_queue *queue, struct ibchan_channel *ch, u32 depth);

/* history.c */
void ibchan_history_add(struct ibchan_channel *ch, u32 kind, u32 error, u32 detail, u64 value);
void ibchan_history_failed(struct ibchan_channel *ch, const struct ibchan_completion *completion);
void ibchan_history_address(struct ibchan_channel *ch, u32 error);
void ibchan_history_refused(struct ibchan_channel *ch, int error, u32 code, u64 wr_id);
int ibchan_history_show(struct seq_file *m, void *unused);

/* drain.c */
bool ibchan_drain_begin(struct ibchan_channel *ch);
bool ibchan_drain(struct ibchan_channel *ch, unsigned long deadline);
int ibchan_post_own(struct ibchan_queue *queue, struct ib_cqe *cqe,
		    void (*done)(struct ib_cq *ib, struct ib_wc *wc),
		    int (*post)(struct ib_qp *qp, struct ib_cqe *cqe));

/* device_event.c */
extern const struct ibchan_device_client ibchan_channel_client;
void ibchan_channel_qp_event(struct ib_event *event, void *context);

/* channel.c */
int ibchan_channel_begin(struct ibchan_channel *ch, struct ibchan_reason *reason);
bool ibchan_channel_connected(struct ibchan_channel *ch);
void ibchan_channel_break_on(struct ibchan_channel *ch);
void ibchan_channel_break_later(struct ibchan_channel *ch, int error, u32 status);
void ibchan_channel_give_up(struct ibchan_channel *ch, int error);
struct ibchan_channel *ibchan_channel_make(const struct ibchan_build *build,
					   struct ibchan_params *params, int service,
					   struct ibchan_reason *reason);
void ibchan_channel_fail(struct ibchan_channel *ch, u32 error, u32 status);
void ibchan_channel_fail_send(struct ibchan_channel *ch, const struct ib_wc *wc);
void ibchan_channel_fail_responder(struct ibchan_channel *ch, u32 error, u32 status);
u32 ibchan_channel_cause(const struct ibchan_channel *ch);

/* close.c */
void ibchan_channel_stop(struct ibchan_channel *ch, bool device_gone, unsigned long deadline);
void ibchan_channel_stop_alone(struct ibchan_channel *ch, unsigned long deadline);
bool ibchan_channel_end(struct ibchan_channel *ch);

#endif /* IBCHAN_CHANNEL_H */
