/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Private types of all floors but chardev/, which does not include
 * this file: it uses <rdma/ibchan.h> as every other consumer does.
 *
 * Locks, outermost first:
 *
 *	ibchan_pd.service_lock	what registers memory that no driver does; a post and
 *				a wait happen under it
 *	ibchan_device.gate	commands and ends are inside, or removal is alone (gate.c);
 *				it guards the ->ib pointers of everything below a
 *				device. No fault on user memory is taken inside
 *	listeners_lock		listeners, of each device and of all (listen.c)
 *	rdma_cm's handler mutex	of an id; the steps of connecting run under it, without
 *				the gate
 *	devices_lock		list of devices (device.c)
 *	ibchan_device.lock	the device's lists of objects
 *	ibchan_device.farewell_lock  ids that outlive their channels
 *	ibchan_channel.qp_lock	verbs that change the state of a qp
 *	ibchan_cq.space_lock	how many places of a cq each queue has reserved
 *	ibchan_pd.pool_lock	fast-registration regions that the domain keeps
 *	ibchan_device.watch_lock	when its channels are looked at next
 *	ibchan_channel.post_lock   bottom halves off; prepare and ib_post_*
 *	ibchan_busy.lock	bottom halves off; a region's ranges in flight
 *	ibchan_channel.state_lock  interrupts off; state and first error
 *	ibchan_history.lock	interrupts off; what happened to a channel
 *
 * The right to reap a cq (CQ_OWNED) is not a lock: callbacks run under it. The cq's
 * owner keeps bottom halves off and never waits for anything, so that another thread
 * may spin for it. It is taken without any of the locks above but the gate and
 * qp_lock. Under it only the locks from post_lock on are taken: a softirq that reaps
 * may have interrupted a thread that holds one of the others.
 */
#ifndef IBCHAN_INTERNAL_H
#define IBCHAN_INTERNAL_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/ibchan.h>
#include <rdma/ibchan_charge.h>

#include "budget.h"
#include "credit.h"
#include "device.h"
#include "history.h"
#include "mr.h"
#include "params.h"
#include "part.h"
#include "pin.h"
#include "watch.h"

struct ibchan_cm;
struct rdma_cm_id;
struct rdma_conn_param;

/* WRs built and posted as one chain, and the elements that they share. */
#define IBCHAN_CHAIN_WRS	16
#define IBCHAN_CHAIN_SGES	IBCHAN_MAX_SGE

/*
 * Requests that only a domain's service channel takes. Their region is in
 * ibchan_wr.data.
 */
#define IBCHAN_OP_REGISTER	6
#define IBCHAN_OP_INVALIDATE	7
#define IBCHAN_OPS		8

#define IBCHAN_WR_ALL_FLAGS	(IBCHAN_WR_IMM | IBCHAN_WR_FENCE | IBCHAN_WR_SOLICITED | \
				 IBCHAN_WR_INLINE | IBCHAN_WR_UNSIGNALED | \
				 IBCHAN_WR_EXCLUSIVE)

/* Completions taken from a cq in one call of the driver. */
#define IBCHAN_REAP_BATCH	16

/*
 * Each qp keeps one slot of each queue for the marker of its own drain, at least. Until
 * then the one of the send queue is the keepalive's.
 */
#define IBCHAN_MARKERS		1

/*
 * How long a drain waits for its markers. Flushing is local work of a few
 * milliseconds; removal promises to be through within 5 s.
 */
#define IBCHAN_DRAIN_TIMEOUT	(2 * HZ)

/*
 * How long the end of a cq waits for an event that was asked for. One that is
 * due comes with the next softirq; this is for one that will never come.
 */
#define IBCHAN_EVENT_TIMEOUT	HZ

/**
 * struct ibchan_pd - protection domain
 * @ib: NULL once the device is gone; guarded by the gate
 * @dev: holds a reference
 * @users: 1 for the owner, 1 for each mr and channel
 * @link: in @dev->pds
 * @cost: its own; what is made in it is charged to the same budget
 * @service_lock: guards @service
 * @service: what registers memory that no driver does; NULL until it is needed
 * @service_end: gives @service back; false when its device does not let go of it
 * @leaked: the device may still use something in it, so it stays
 * @pool_lock: guards @pool and @num_pool
 * @pool: fast-registration regions for plain memory, idle; the one used last comes first
 * @num_pool: entries of @pool
 * @given_up: regions that their owners have given up and no work uses, to be deregistered
 * @num_given_up: how many there ever were
 * @num_released: how many of them are deregistered; written by @release_work
 * @release_work: does that
 * @rcu: the memory outlives readers that found it in a handle table
 */
struct ibchan_pd {
	struct ib_pd *ib;
	struct ibchan_device *dev;
	refcount_t users;
	struct list_head link;
	struct ibchan_cost cost;
	struct mutex service_lock;	/* service; outside the gate */
	struct ibchan_service *service;
	bool (*service_end)(struct ibchan_service *service);
	int leaked;
	spinlock_t pool_lock;		/* pool */
	struct list_head pool;
	u32 num_pool;
	struct llist_head given_up;
	atomic_t num_given_up;
	int num_released;
	struct work_struct release_work;
	struct rcu_head rcu;
};

enum ibchan_cq_flag {
	CQ_OWNED,	/* a thread or softirq reaps: the cq's owner */
	CQ_AGAIN,	/* another one wanted to reap meanwhile */
	CQ_ARM,		/* arm before the right to reap is given up */
	CQ_ARM_SOLICITED, /* the same, for solicited completions */
	CQ_ARMED,	/* an event was asked for and has not come */
	CQ_ARMED_ANY,	/* and not only for solicited completions */
	CQ_WANTED,	/* its owner wants to be called back when it comes */
	CQ_DEAD,	/* no more verbs on it */
	CQ_ORPHANED,	/* a leaked channel keeps it: its owner may have gone */
	CQ_LATE,	/* an event was due when it died */
	CQ_EVENTFUL,	/* an event was asked for, at any time */
};

/**
 * struct ibchan_cq - completion queue
 * @ib: NULL once the device is gone; guarded by CQ_OWNED (and set CQ_DEAD)
 * @dev: holds a reference
 * @sink: the consumer's, or that of @kept
 * @priv: for @sink
 * @kept: completions that the consumer has not taken yet; NULL unless IBCHAN_CQ_KEEP
 * @mode: IBCHAN_CQ_*
 * @flags: enum ibchan_cq_flag
 * @in_flight: works posted and not retired
 * @unsolicited: writes of credits in flight, and broken channels: their completions are never
 *	solicited, so while there are any, an event of any kind is wanted
 * @retired: works retired in this batch; belongs to the owner of CQ_OWNED
 * @is_late: nothing had completed when a poster looked; belongs to the same
 * @wait: in-kernel waiters, and the cq's end, which waits for CQ_ARMED to clear
 * @reap_work: reaps what an event does not: what is left over, and what must not nest
 * @kick_work: an interrupt that schedules @reap_tasklet
 * @reap_tasklet: reaps behind an event, when no thread waits
 * @error_work: the device has lost completions
 * @users: 1 for the owner, 1 for each queue of a channel and each waiter; 0: a
 *	shell
 * @space_lock: guards @reserved
 * @reserved: entries promised to channels
 * @entries: entries of the ib_cq
 * @cost: of kernel memory
 * @link: in the device's list; left before @rcu is used
 * @rcu: only frees: the memory outlives readers that found it in a handle table
 * @free_work: destroys and frees, after a grace period
 * @completion: belongs to the owner of CQ_OWNED
 * @wc: belongs to the owner of CQ_OWNED
 */
struct ibchan_cq {
	struct ib_cq *ib;
	struct ibchan_device *dev;
	const struct ibchan_sink *sink;
	void *priv;
	struct ibchan_kept *kept;
	u32 mode;
	unsigned long flags;
	atomic_t in_flight;
	atomic_t unsolicited;
	int retired;
	bool is_late;
	wait_queue_head_t wait;
	struct work_struct reap_work;
	struct irq_work kick_work;
	struct tasklet_struct reap_tasklet;
	struct work_struct error_work;
	refcount_t users;
	spinlock_t space_lock;		/* reserved */
	u32 reserved;
	u32 entries;
	struct ibchan_cost cost;
	union {
		struct list_head link;
		struct rcu_head rcu;
	};
	struct rcu_work free_work;
	struct ibchan_completion completion;
	struct ib_wc wc[IBCHAN_REAP_BATCH];
};

/**
 * struct ibchan_queue - the send or the receive half of a channel
 * @channel: its channel
 * @cq: where it completes
 * @credit: its places
 * @spare: places that no work takes: the marker's, and others of the channel's own
 * @max_sge: elements of one work
 * @works: what is in flight, by place
 * @slots: works of posters that bring none, by place; NULL where @cq has no sink
 * @sges: the elements of @slots, @max_sge each
 * @marker: completes behind everything else, when the qp drains
 * @marked: the marker is posted, or the probe's completion is going to post it
 * @drained: the marker has come, or was given up
 *
 * The poster writes a place under the post lock before its credit is spent; the cq's owner
 * reads it before the credit is returned.
 */
struct ibchan_queue {
	struct ibchan_channel *channel;
	struct ibchan_cq *cq;
	struct ibchan_credit credit;
	u32 spare;
	u32 max_sge;
	struct ibchan_work **works;
	struct ibchan_work *slots;
	struct ibchan_sge *sges;
	struct ib_cqe marker;
	int marked;
	int drained;
};

/**
 * struct ibchan_chain - scratch space to build a chain in, under the post lock
 * @send: requests for the send queue
 * @recv: receive requests
 * @sges: their elements
 * @bad_send: which one the driver refused
 * @bad_recv: the same
 * @error: why
 * @refused: why the next request was refused, or 0
 *
 * It outlives ib_post_*: soft-RoCE may look at wr->next after the completion.
 */
struct ibchan_chain {
	union {
		union ibchan_send_wr {
			struct ib_send_wr wr;
			struct ib_rdma_wr rdma;
			struct ib_atomic_wr atomic;
			struct ib_reg_wr reg;
		} send[IBCHAN_CHAIN_WRS];
		struct ib_recv_wr recv[IBCHAN_CHAIN_WRS];
	};
	struct ib_sge sges[IBCHAN_CHAIN_SGES];
	const struct ib_send_wr *bad_send;
	const struct ib_recv_wr *bad_recv;
	int error;
	int refused;
};

/**
 * struct ibchan_gid - the address that a channel uses
 * @port: port
 * @index: entry of the port's GID table
 * @gid: the address
 * @mac: Ethernet address behind it
 * @family: 4 or 6; 0 on InfiniBand and iWARP
 * @type: enum ib_gid_type
 * @iwarp: the port connects by rdma_cm only
 * @pkey_index: entry of the port's P_Key table; 0 on Ethernet
 * @mtu: of the port when it was chosen, in bytes
 * @max_message: that the port takes, in bytes
 * @lid: of the port, on InfiniBand
 */
struct ibchan_gid {
	u32 port;
	u32 index;
	u32 pkey_index;
	u32 mtu;
	u32 max_message;
	u32 lid;
	union ib_gid gid;
	u8 mac[ETH_ALEN];
	u8 family;
	u8 type;
	u8 iwarp;
};

/**
 * struct ibchan_path - how packets get to the peer
 * @dmac: Ethernet address of the next hop; 0 on InfiniBand
 * @hop_limit: how many routers may be between
 */
struct ibchan_path {
	u8 dmac[ETH_ALEN];
	u8 hop_limit;
};

/**
 * struct ibchan_channel - one reliable connection
 * @qp: NULL once closed; guarded by the gate, and by @post_lock for posting
 * @qp_event: what the device reports of @qp
 * @dev: holds a reference
 * @pd: holds a reference until closed
 * @qp_lock: one at a time changes the state of @qp
 * @ready: @qp is in INIT or beyond, so it takes receives; written under @qp_lock
 * @connected: @qp has come to RTS, so closing has to drain it; under @qp_lock
 * @post_lock: guards the posting side of both queues, @chain
 * @send: all but receives
 * @recv: receives
 * @max_sge: elements that the device sees of one work, by opcode
 * @parked: plain memory of works that have failed, until @qp is destroyed
 * @after_post: IBCHAN_AFTER_*: what there is to do behind a post
 * @max_message: bytes of one message
 * @flow: its credits; NULL where it counts none
 * @credit_ops: for @flow
 * @state_lock: guards @state, @error, @status and @device_gone together
 * @state_wait: woken when the channel is not connecting any more
 * @state: enum ibchan_channel_state; read without the lock by the post path
 * @error: errno of the first error, positive
 * @status: of the work that failed first
 * @device_gone: its device has left, whatever the first error was
 * @asked: the break was asked for, so the connection is ended, too
 * @telling: @connected_to is being called, and @broken comes behind it; under @state_lock
 * @tell_later: the channel has broken meanwhile; under @state_lock
 * @seeks_cause: @error and @status are of a flush, until more is known; under @state_lock
 * @broken_at: when it broke, in jiffies; 0: it has not
 * @leaked: the device would not let go of it
 * @cause_work: finds out what has failed when only its consequences were seen, then tells
 * @break_work: moves the qp to ERR, and where it must, later to RESET
 * @close_work: closes what was given up in atomic context
 * @service: belongs to its domain: does not hold it, and may register memory
 * @net: kept by the consumer; NULL: any
 * @cookie: the consumer's
 * @connected_to: the consumer's
 * @broken: the consumer's
 * @priv: the consumer's
 * @cm: its connection, if it was connected by address; set once, under @qp_lock
 * @params: in effect; immutable once connected
 * @options: immutable
 * @gid: own address; by address, that of the route, under @qp_lock
 * @gid_gone: noted in @history; under @qp_lock
 * @path: to the peer; under @qp_lock
 * @endpoint: for the peer; immutable
 * @peer: the peer's endpoint, once connected; under @qp_lock
 * @watch: keepalive
 * @history: what happened to it
 * @cost: of kernel memory
 * @link: in the device's list
 * @rcu: the memory outlives readers that found it in a handle table
 * @chain: scratch space
 */
struct ibchan_channel {
	struct ib_qp *qp;
	void (*qp_event)(struct ib_event *event, void *context);
	struct ibchan_device *dev;
	struct ibchan_pd *pd;
	struct mutex qp_lock;		/* state changes of qp */
	int ready;
	int connected;
	spinlock_t post_lock;		/* posting */
	struct ibchan_queue send;
	struct ibchan_queue recv;
	u8 max_sge[IBCHAN_OPS];
	u32 max_message;
	struct llist_head parked;
	u32 after_post;
	struct ibchan_flow *flow;
	const struct ibchan_credit_ops *credit_ops;
	spinlock_t state_lock;		/* state and first error */
	wait_queue_head_t state_wait;
	u32 state;
	u32 error;
	u32 status;
	bool device_gone;
	bool on_cqs;			/* its cqs know that it has broken */
	bool asked;
	bool telling;
	bool tell_later;
	bool seeks_cause;
	unsigned long broken_at;
	int leaked;
	struct work_struct cause_work;
	struct work_struct break_work;
	struct work_struct close_work;
	int service;
	struct net *net;
	u64 cookie;
	void (*connected_to)(void *priv);
	void (*broken)(void *priv, int error);
	void *priv;
	struct ibchan_cm *cm;
	struct ibchan_params params;
	struct ibchan_options options;
	struct ibchan_gid gid;
	bool gid_gone;
	struct ibchan_path path;
	struct ibchan_endpoint endpoint;
	struct ibchan_endpoint peer;
	struct ibchan_watch watch;
	struct ibchan_history history;
	struct ibchan_cost cost;
	struct list_head link;
	struct rcu_head rcu;
	struct ibchan_chain chain;
};

/* Pure, any context: wr.c, busy.c, pieces.c, endpoint.c, state.c, status.c, times.c. */
int ibchan_refuse(struct ibchan_reason *reason, u32 code, int error);
int ibchan_refuse_values(struct ibchan_reason *reason, u32 code, int error,
			 const u64 value[3]);
void ibchan_busy_init(struct ibchan_busy *busy);
u32 ibchan_pieces_find(const struct ibchan_piece *pieces, u32 num, u64 offset);
u32 ibchan_pieces_count(const struct ibchan_piece *pieces, u32 num, u64 offset,
			u64 length);
void ibchan_times_fill(const struct ibchan_params *params, struct ibchan_times *times);
void ibchan_endpoint_build(struct ibchan_channel *ch, u8 mtu, u32 lid);
int ibchan_endpoint_check(const struct ibchan_endpoint *ours,
			  const struct ibchan_endpoint *theirs,
			  struct ibchan_reason *reason);
int ibchan_credit_mode_check(__be32 ours, __be32 theirs, struct ibchan_reason *reason);
u8 ibchan_gid_family(const u8 *gid);
int ibchan_pkey_rank(u16 pkey);
bool ibchan_state_may(u32 from, u32 to);
int ibchan_state_error(u32 state, u32 error);

/**
 * struct ibchan_wait - what to wait for, and how long
 * @ready: see ibchan_cq_wait()
 * @arg: for @ready
 * @deadline: KTIME_MAX: none
 * @state: TASK_*, which says what signals end the wait
 */
struct ibchan_wait {
	int (*ready)(void *arg);
	void *arg;
	ktime_t deadline;
	unsigned int state;
};

/* gid.c */
int ibchan_gid_choose(struct ib_device *ib, struct net *net,
		      const struct ibchan_params *params, struct ibchan_gid *gid,
		      struct ibchan_reason *reason);
int ibchan_gid_adopt(struct ibchan_gid *gid, u32 port, const struct ib_gid_attr *attr);
bool ibchan_gid_still_there(struct ib_device *ib, struct net *net,
			    const struct ibchan_gid *gid);

/* route.c */
int ibchan_route_find(struct ibchan_channel *ch, const struct ibchan_endpoint *peer,
		      struct ibchan_path *path, struct ibchan_reason *reason);

/* charge.c */
void ibchan_device_settle(struct ibchan_device *dev);

/* pd.c */
void ibchan_pd_hold(struct ibchan_pd *pd);
void ibchan_pd_drop(struct ibchan_pd *pd);
void ibchan_pd_release_verbs(struct ibchan_pd *pd);

/* service.c */
int ibchan_mr_register(struct ibchan_mr *mr, struct ibchan_reason *reason);

/* cq_reap.c */
void ibchan_cq_init_reaping(struct ibchan_cq *cq);
void ibchan_cq_end_reaping(struct ibchan_cq *cq);
void ibchan_cq_event(struct ib_cq *ib, void *context);
void ibchan_cq_own(struct ibchan_cq *cq);
void ibchan_cq_disown(struct ibchan_cq *cq);
bool ibchan_cq_sweep(struct ibchan_cq *cq, u32 max);
void ibchan_cq_notify(struct ibchan_cq *cq);
void ibchan_cq_reap_later(struct ibchan_cq *cq);
void ibchan_cq_leave(struct ibchan_cq *cq);
void ibchan_cq_add_broken(struct ibchan_cq *cq);
void ibchan_cq_drop_broken(struct ibchan_cq *cq);

/* cq.c */
int ibchan_cq_reserve(struct ibchan_cq *cq, u32 entries, int queues,
		      struct ibchan_reason *reason);
void ibchan_cq_unreserve(struct ibchan_cq *cq, u32 entries);
void ibchan_cq_remove(struct ibchan_cq *cq);
void ibchan_cq_settle(struct ibchan_cq *cq, unsigned long deadline);
void ibchan_cq_release_verbs(struct ibchan_cq *cq);

/* cq_wait.c */
int ibchan_cq_wait_for(struct ibchan_cq *cq, const struct ibchan_wait *wait);
bool ibchan_cq_wait_drained(struct ibchan_cq *cq, const int *drained,
			    unsigned long deadline);

/* qp.c */
int ibchan_qp_create(struct ibchan_channel *ch, struct ibchan_reason *reason);
int ibchan_qp_init(struct ibchan_channel *ch, struct ibchan_reason *reason);
int ibchan_qp_connect(struct ibchan_channel *ch, const struct ibchan_endpoint *peer,
		      struct ibchan_reason *reason);
void ibchan_qp_rewind(struct ibchan_channel *ch);
int ibchan_qp_cm_init(struct ibchan_channel *ch, struct rdma_cm_id *id);
int ibchan_qp_cm_connect(struct ibchan_channel *ch, struct rdma_cm_id *id,
			 const struct rdma_conn_param *agreed, u32 mtu);

/**
 * ibchan_cm_refusal - what a refusal of the connection manager means
 * @ret: what it has returned
 *
 * It returns -EINVAL when the peer has given up and word of that is still on its way here,
 * for then the id's request is gone.
 *
 * Context: any.
 * Return: @ret, but -ECONNRESET for -EINVAL.
 */
static inline int ibchan_cm_refusal(int ret)
{
	return ret == -EINVAL ? -ECONNRESET : ret;
}

int ibchan_qp_to_reset(struct ibchan_channel *ch);
void ibchan_qp_to_error(struct ibchan_channel *ch);
bool ibchan_qp_has_failed(struct ibchan_channel *ch);
int ibchan_qp_destroy(struct ibchan_channel *ch);

/* queue.c, retire.c */
int ibchan_queue_init(struct ibchan_queue *queue, struct ibchan_channel *ch,
		      struct ibchan_cq *cq, u32 depth);
void ibchan_queue_fini(struct ibchan_queue *queue);
void ibchan_queue_end_silent(struct ibchan_queue *queue);
bool ibchan_queue_flush(struct ibchan_queue *queue, u32 max);
void ibchan_queue_give_marker_up(struct ibchan_queue *queue);

/* kept.c */
extern const struct ibchan_sink ibchan_kept_sink;
struct ibchan_kept *ibchan_kept_alloc(u32 entries, const struct ibchan_sink *sink, void *priv);
void ibchan_kept_free(struct ibchan_kept *kept);
int ibchan_kept_take(struct ibchan_kept *kept, struct ibchan_completion *completions,
		     int num);

/* cm_end.c */
extern const struct ibchan_channel_part ibchan_cm_part;

/* cm_farewell.c */
extern const struct ibchan_device_client ibchan_farewell_client;

/* listen.c */
extern const struct ibchan_device_client ibchan_listen_client;

/* drain.c */
bool ibchan_drain_begin(struct ibchan_channel *ch);
bool ibchan_drain(struct ibchan_channel *ch, unsigned long deadline);

/* news.c */
extern const struct ibchan_device_client ibchan_channel_client;
void ibchan_channel_qp_event(struct ib_event *event, void *context);

/* channel.c */
int ibchan_channel_check_prepared(const struct ibchan_channel *ch, struct ibchan_reason *reason);
int ibchan_channel_begin(struct ibchan_channel *ch, struct ibchan_reason *reason);
bool ibchan_channel_connected(struct ibchan_channel *ch);
void ibchan_channel_break_on(struct ibchan_channel *ch);
void ibchan_channel_give_up(struct ibchan_channel *ch, int error);
struct ibchan_channel *ibchan_channel_build_service(const struct ibchan_build *build,
						    struct ibchan_params *params,
						    struct ibchan_reason *reason);
void ibchan_channel_fail(struct ibchan_channel *ch, u32 error, u32 status);
void ibchan_channel_fail_send(struct ibchan_channel *ch, const struct ib_wc *wc);
void ibchan_channel_check_gid(struct ibchan_channel *ch);
void ibchan_channel_stop(struct ibchan_channel *ch, bool device_gone, unsigned long deadline);
u32 ibchan_channel_cause(const struct ibchan_channel *ch);
void ibchan_channel_force(struct ibchan_channel *ch);
bool ibchan_channel_end(struct ibchan_channel *ch);

/* Pages that a range touches. The end of the range does not wrap. */
static inline u64 ibchan_pages_spanned(u64 addr, u64 length)
{
	return (PAGE_ALIGN(addr + length) - PAGE_ALIGN_DOWN(addr)) >> PAGE_SHIFT;
}

#endif /* IBCHAN_INTERNAL_H */
