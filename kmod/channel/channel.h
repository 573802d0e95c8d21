/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The door of channel/: a reliable connection, its queues, and its life.
 *
 * Locks, outermost first:
 *
 *	followers_lock		consumers that follow devices; their functions run under it
 *				(follower.c)
 *	ibchan_pd.service_lock	the domain's service, which registers memory; a post and
 *				a wait happen under it
 *	ibchan_channel.end_lock	which of several callers ends a channel's works
 *	ibchan_device.gate	commands and ends are inside, or removal is alone (gate.c);
 *				it guards the ->ib pointers of everything below a
 *				device. No fault on user memory is taken inside
 *	listeners_lock		listeners, of each device and of all (listen.c)
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

#include <linux/completion.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "only.h"
#include "verbs.h"

#include "history.h"
#include "part.h"
#include "watch.h"

struct ibchan_cm;
struct seq_file;

/*
 * The send or the receive half of a channel.
 *
 * The poster writes into a place under the post lock before it is taken; the cq's owner reads
 * that before it is given back.
 */
struct ibchan_queue {
	struct ibchan_channel *channel;	/* its channel */
	/*
	 * where it completes; kept to the channel's end, for posts and waits that have not
	 * returned
	 */
	struct ibchan_cq *cq;
	struct ibchan_places places;	/* which of its places are taken */

	__channel_only u32 max_sge;	/* elements of one work */
	struct ibchan_work **works;	/* what is in flight, by place */
	/* regions of their elements, @max_sge for each place */
	__channel_only struct ibchan_mr **mrs;
	/* the same for the ranges of exclusive works, behind @mrs; NULL where there are none */
	__channel_only struct ibchan_range *ranges;
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

/**
 * struct ibchan_channel - one reliable connection
 * @bounds: limits for checks of its requests; immutable once it is connected: @max_rd_atomic
 *	of it is agreed on before that, and written under @post_lock
 * @connected: @qp has come to RTS, so closing has to drain it; under @qp.lock
 * @post_lock: guards the posting side of both queues, @chain
 * @send: all but receives
 * @recv: receives
 * @qp: its queue pair
 * @parked: plain memory of works that have failed, until @qp is destroyed
 * @after_post: IBCHAN_AFTER_*: duties of a poster behind its post
 * @state_lock: guards @state, @error, @status and @device_gone together
 * @state_wait: woken when the channel is not connecting any more
 * @state: enum ibchan_channel_state; read without the lock by the post path
 * @error: errno of the first error, positive
 * @status: of the work that failed first
 * @device_gone: its device has left, whatever the first error was
 * @asked: the break was asked for, or the peer is to be told, so the connection is ended, too
 * @telling: @connected_to is being called, and @broken comes behind it; under @state_lock
 * @tell_later: the channel has broken meanwhile; under @state_lock
 * @broken_at: when it broke, in jiffies; 0: it has not
 * @port_down_at: when its port last went down, in jiffies; 0: it has not
 * @leaked: the device would not let go of it
 * @cause_turn: finds out what has failed when only its consequences were seen, then tells
 * @break_turn: moves the qp to ERR, and where it must, later to RESET
 * @refs: 1 for its owner; the memory goes with the last one
 * @end_lock: one caller stops it at a time
 * @closed: the owner's, who does not wait for the end
 * @close_work: closes what its owner has given up, or frees it
 * @closing: counts the channel once its owner has given it up; NULL before that
 * @cookie: the consumer's
 * @connected_to: the consumer's
 * @broken: the consumer's
 * @priv: the consumer's
 * @cm: its connection, if it was connected by address; set once, under @qp.lock
 * @options: immutable
 * @gid_gone: noted in @history; under @qp.lock
 * @peer: the peer's endpoint, once connected; under @qp.lock
 * @watch: keepalive
 * @history: its events
 * @cost: of kernel memory
 * @link: in the device's list
 * @rcu: the memory outlives readers that found it in a handle table
 * @chain: scratch space
 */
struct ibchan_channel {
	struct ibchan_bounds bounds;
	int connected;
	spinlock_t post_lock;		/* posting */
	struct ibchan_queue send;
	struct ibchan_queue recv;
	struct ibchan_qp qp;
	__channel_only struct llist_head parked;
	u32 after_post;
	__channel_only spinlock_t state_lock;		/* state and first error */
	wait_queue_head_t state_wait;
	u32 state;
	u32 error;
	__channel_only u32 status;
	__channel_only bool device_gone;
	__channel_only bool on_cqs;			/* its cqs know that it has broken */
	__channel_only bool asked;
	__channel_only bool telling;
	__channel_only bool tell_later;
	__channel_only unsigned long broken_at;
	__channel_only unsigned long port_down_at;
	__channel_only int leaked;
	struct ibchan_turn cause_turn;
	struct ibchan_turn break_turn;
	__channel_only refcount_t refs;
	__channel_only struct mutex end_lock;
	__channel_only void (*closed)(void *priv);
	struct work_struct close_work;
	__channel_only struct ibchan_closing *closing;
	__channel_only u64 cookie;
	__channel_only void (*connected_to)(void *priv);
	__channel_only void (*broken)(void *priv, int error);
	__channel_only void *priv;
	struct ibchan_cm *cm;
	struct ibchan_options options;
	bool gid_gone;
	struct ibchan_endpoint peer;
	struct ibchan_watch watch;
	__channel_only struct ibchan_history history;
	__channel_only struct ibchan_cost cost;
	__channel_only struct list_head link;
	__channel_only struct rcu_head rcu;
	__channel_only struct ibchan_chain chain;
};

/* queue.c, retire.c */
int ibchan_queue_init(struct ibchan_queue *queue, struct ibchan_channel *ch,
		      struct ibchan_cq *cq, u32 depth);
void ibchan_queue_fini(struct ibchan_queue *queue);
void ibchan_queue_end_silent(struct ibchan_queue *queue);
bool ibchan_queue_flush(struct ibchan_queue *queue, u32 max);
void ibchan_queue_give_marker_up(struct ibchan_queue *queue);

/* build.c */
int ibchan_channels_init(const struct ibchan_channel_part *const *parts);
void ibchan_channels_fini(void);

/* history_show.c */
int ibchan_history_show(struct seq_file *m);

/* drain.c */
bool ibchan_drain_begin(struct ibchan_channel *ch);
bool ibchan_drain(struct ibchan_channel *ch, unsigned long deadline);

/* device_event.c */
extern const struct ibchan_device_client ibchan_channel_client;
void ibchan_channel_qp_event(struct ib_event *event, void *context);

/* channel.c */
int ibchan_channel_check_prepared(const struct ibchan_channel *ch, struct ibchan_reason *reason);
int ibchan_channel_begin(struct ibchan_channel *ch, struct ibchan_reason *reason);
bool ibchan_channel_connected(struct ibchan_channel *ch);
void ibchan_channel_break_on(struct ibchan_channel *ch, bool tells);
void ibchan_channel_break_later(struct ibchan_channel *ch, int error, u32 status);
void ibchan_channel_give_up(struct ibchan_channel *ch, int error);
struct ibchan_channel *ibchan_channel_build_service(const struct ibchan_build *build,
						    struct ibchan_params *params,
						    struct ibchan_reason *reason);
void ibchan_channel_fail(struct ibchan_channel *ch, u32 error, u32 status);
void ibchan_channel_fail_send(struct ibchan_channel *ch, const struct ib_wc *wc);
void ibchan_channel_fail_responder(struct ibchan_channel *ch, u32 error, u32 status);
void ibchan_channel_check_gid(struct ibchan_channel *ch, u32 lid);
u32 ibchan_channel_cause(const struct ibchan_channel *ch);

/* close.c */
void ibchan_channel_stop(struct ibchan_channel *ch, bool device_gone, unsigned long deadline);
void ibchan_channel_force(struct ibchan_channel *ch);
bool ibchan_channel_end(struct ibchan_channel *ch);

#endif /* IBCHAN_CHANNEL_H */
