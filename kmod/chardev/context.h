/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The character device's own types. It uses <rdma/ibchan.h> as every consumer does; of the
 * floors below it includes only headers of rules/ and trace/ that name no object of theirs.
 *
 * Locks: ibchan_context.lock guards the table of objects, and no more: nothing sleeps under
 * it. A command holds the objects that it works on (ibchan_call_find()) and runs without a
 * lock, for as long as it likes. A command that ends an object claims it first: then no
 * other command begins to hold it; those that hold it already are waited for, or make it
 * busy. Submit and ibchan_context_break() find objects under RCU. All locks here are
 * innermost.
 */
#ifndef IBCHAN_CONTEXT_H
#define IBCHAN_CONTEXT_H

#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/mmu_notifier.h>
#include <linux/nsproxy.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ibchan.h>
#include <rdma/ibchan_charge.h>

#include "budget.h"
#include "compat.h"

struct ibchan_context;
struct ibchan_request;
struct ibchan_shared_ring;
struct ibchan_submit_scratch;
struct ibchan_user_listener;

/* Completions that a ring may hold: 1 MiB of them. */
#define IBCHAN_MAX_RING_ENTRIES	32768

/* Places for objects that are found at once: 2 KiB in each open file. A power of two. */
#define IBCHAN_YOUNG_OBJECTS	256

/* Finds the domains among the objects; the first mark is that of free slots. */
#define IBCHAN_PD_MARK	XA_MARK_1

/* In the order in which a closing file gives them up. */
enum ibchan_object_type {
	OBJECT_LISTENER,
	OBJECT_REQUEST,
	OBJECT_CHANNEL,
	OBJECT_MR,
	OBJECT_CQ,
	OBJECT_PD,
	OBJECT_DEVICE,
	OBJECT_TYPES,
};

/*
 * Completions on their way to user space. Of the memory that user space can write, the kernel uses
 * @shared->head only, and checks that against @head and @tail.
 */
struct ibchan_user_ring {
	struct kref kref;	/* the handle and the file */
	struct ibchan_cq *cq;	/* its queue, as long as the handle exists */
	struct ibchan_context *ctx;	/* kept by @owner */
	struct file *owner;	/* the context's file, kept by the ring's */
	spinlock_t lock;	/* guards @head, bottom halves off */
	u32 entries;	/* power of two */
	u32 tail;	/* how many completions ever came; written by the cq's owner */
	u32 head;	/* how many of them the reader has taken, as far as was checked */
	atomic_t reserved;	/* how many works may still bring one, plus @tail */
	int gone;	/* the device has left, or the handle has gone */
	wait_queue_head_t wait;	/* callers that poll the file */
	u32 num_pages;	/* of @shared */
	struct ibchan_shared_ring *shared;	/* the memory that user space maps */
	union {
		struct ibchan_cost cost;	/* of kernel memory; ends before @rcu is used */
		struct rcu_head rcu;	/* readers that found it in a handle table */
	};
};

/*
 * The object that a handle stands for. Immutable once published, but for @children, @users,
 * @claimed, the events and the inside of @charge.
 */
struct ibchan_object {
	u32 id;	/* the handle */
	u32 type;	/* enum ibchan_object_type; tells the member of the union */
	u32 children;	/* objects made through this handle that need it; under the lock */
	u32 users;	/* commands under way that hold it; under the lock */
	int claimed;	/* a command is about to end it, or to give it away; under the lock */
	struct ibchan_object *parent;	/* that it needs, which counts it in @children */
	struct ibchan_context *ctx;	/* that it belongs to */
	/* of a channel: IBCHAN_EVENT_* that were not taken yet; under @ctx->event_lock */
	u32 events;
	int events_ended;	/* no more events are told; under @ctx->event_lock */
	struct list_head event_link;	/* in the context's list while there are some */
	union {
		void *any;
		struct ibchan_user_listener *listener;
		struct ibchan_request *request;
		struct ibchan_device *device;
		struct ibchan_pd *pd;
		struct ibchan_mr *mr;
		struct ibchan_user_ring *ring;
		struct ibchan_channel *channel;
	};
	union {
		struct net *net;	/* of a device: network namespace of the opener */
		struct ibchan_pd *pd_of_channel;	/* of a channel: its domain */
	};
	union {
		/* to the opener's cgroup; ends before @rcu is used */
		struct ibchan_charge charge;
		struct rcu_head rcu;	/* readers of the table */
	};
};

/* One open file */
struct ibchan_context {
	/*
	 * for each place, the object that was published there last: several handles may lead to
	 * one place; under @lock
	 */
	struct ibchan_object __rcu *young[IBCHAN_YOUNG_OBJECTS];
	/* of the process that opened the file; only this one may register, post and wait */
	struct mm_struct *mm;
	struct ibchan_budget *budget;	/* of that process's user; pays for all objects */
	spinlock_t lock;	/* the table: see above */
	wait_queue_head_t idle_wait;	/* commands that wait until a claimed object is idle */
	u32 first_handle;	/* random, so that a handle of another file is likely to miss */
	struct xarray objects;	/* by handle less @first_handle; a reserved one reads as none */
	u32 next_id;	/* so that a stale handle misses */
	u32 spare_index;	/* that is reserved for the next object; 0: none is yet */
	u32 num_objects;	/* under @lock */
	u64 pinned_bytes;	/* under @lock */
	/* works on plain memory were posted: their regions outlive them a little */
	int had_plain;
	int broken;	/* a ring was damaged */
	struct work_struct break_work;	/* breaks the channels when that happens */
	/* room to decode a submit in, or NULL while one is under way */
	struct ibchan_submit_scratch *scratch;
	spinlock_t event_lock;	/* guards @events, interrupts off */
	struct list_head events;	/* channels to which something has happened */
	wait_queue_head_t event_wait;	/* callers that poll the file or await a connection */
	/* tells of the end of @mm, from the first object on */
	struct mmu_interval_notifier notifier;
	int followed;	/* it does; set under the lock of @mm */
	struct work_struct orphan_work;	/* ends everything when @mm has gone */
};

/* Objects that one command works on: a domain and two queues. */
#define IBCHAN_CALL_OBJECTS	3

/* One command under way */
struct ibchan_call {
	struct ibchan_context *ctx;	/* the file's */
	struct file *file;	/* the file */
	void *cmd;	/* the kernel's copy of the command's struct */
	void __user *user;	/* the caller's */
	struct ibchan_user_ring *ring;	/* that a submit waits on */
	struct ibchan_object *object;	/* that the command is about, where uabi.c says so */
	struct ibchan_object *new;	/* an object that the command makes; published last */
	struct file *new_file;	/* a file that the command makes */
	int new_fd;	/* where that file goes, or -1 */
	u32 events;	/* of a channel, which are the answer of event_take, or 0 */
	u32 num_held;	/* of @held */
	struct ibchan_object *held[IBCHAN_CALL_OBJECTS];	/* objects that it works on */
};

/* object.c */
extern unsigned int ibchan_max_handles;
int ibchan_call_reserve(struct ibchan_call *call, enum ibchan_object_type type, __u32 *handle,
			struct ibchan_object *device, struct ibchan_reason *reason);
void ibchan_object_publish(struct ibchan_context *ctx, struct ibchan_object *object);
void ibchan_object_adopt(struct ibchan_object *child, struct ibchan_object *parent);
struct ibchan_object *ibchan_call_find(struct ibchan_call *call, u32 id,
				       enum ibchan_object_type type);
void ibchan_call_release(struct ibchan_call *call);
struct ibchan_object *ibchan_object_walk(struct ibchan_context *ctx, u32 id);
struct ibchan_object *ibchan_object_claim(struct ibchan_context *ctx, u32 id, int type);
void ibchan_object_unclaim(struct ibchan_context *ctx, struct ibchan_object *object);
void ibchan_object_hide(struct ibchan_context *ctx, struct ibchan_object *object);
void ibchan_object_free(struct ibchan_object *object);
void ibchan_object_forget(struct ibchan_context *ctx, struct ibchan_object *object);

/* context.c */
int ibchan_context_open(struct inode *inode, struct file *file);
int ibchan_context_release(struct inode *inode, struct file *file);
__poll_t ibchan_context_poll(struct file *file, struct poll_table_struct *table);
int ibchan_context_init(void);
void ibchan_context_fini(void);
void ibchan_object_abort(struct ibchan_context *ctx, struct ibchan_object *object);
int ibchan_object_destroy(struct ibchan_context *ctx, u32 id);
void ibchan_context_break(struct ibchan_context *ctx);
bool ibchan_context_settle(struct ibchan_context *ctx);
void ibchan_object_event(struct ibchan_object *object, u32 events);
void ibchan_user_connected(void *priv);
void ibchan_user_broken(void *priv, int error);

/*
 * Whether the caller may do more than look and close: 0; -EPERM for another process than the
 * one that opened the file; -EPROTO when the caller damaged a ring.
 */
static inline int ibchan_caller_check(const struct ibchan_context *ctx)
{
	if (current->mm != ctx->mm)
		return -EPERM;
	return READ_ONCE(ctx->broken) ? -EPROTO : 0;
}

static inline struct net *ibchan_caller_net(void)
{
	return current->nsproxy->net_ns;
}

/* Where an object is in @ctx->objects. A handle of another file is likely to be far off. */
static inline u32 ibchan_object_index(const struct ibchan_context *ctx, u32 id)
{
	return id - ctx->first_handle;
}

static inline struct ibchan_object __rcu **ibchan_object_place(struct ibchan_context *ctx, u32 id)
{
	return &ctx->young[id % IBCHAN_YOUNG_OBJECTS];
}

/*
 * Finds the object of a handle, if it is of @type. Each request of a submit names two, so most
 * are found without a walk through the tree. Under RCU or the context's lock.
 */
static inline struct ibchan_object *ibchan_object_find(struct ibchan_context *ctx, u32 id,
						       enum ibchan_object_type type)
{
	struct ibchan_object *object = rcu_dereference_check(*ibchan_object_place(ctx, id),
							     lockdep_is_held(&ctx->lock));

	if (unlikely(!object || object->id != id))
		object = ibchan_object_walk(ctx, id);
	return object && object->type == type ? object : NULL;
}

/* owner.c */
int ibchan_owner_init(void);
void ibchan_owner_fini(void);
int ibchan_owner_follow(struct ibchan_context *ctx);
void ibchan_owner_leave(struct ibchan_context *ctx);

/* ring.c */
extern const struct ibchan_sink ibchan_ring_sink;
struct ibchan_user_ring *ibchan_ring_create(struct ibchan_context *ctx, u32 entries,
					    struct ibchan_reason *reason);
void ibchan_ring_end(void *priv);
void ibchan_ring_put(struct ibchan_user_ring *ring);
struct file *ibchan_ring_file(struct ibchan_user_ring *ring, struct file *owner);
int ibchan_ring_ready(struct ibchan_user_ring *ring);
int ibchan_ring_wait(struct ibchan_call *call, u32 posted);

/* listener.c */
void ibchan_user_listener_end(struct ibchan_user_listener *listener);

/* connect.c */
int ibchan_address_in(const struct ibchan_address *address, struct sockaddr_storage *out);
void ibchan_address_out(const struct sockaddr_storage *address, struct ibchan_address *out);

/* commands.c */
int ibchan_call_file(struct ibchan_call *call, struct file *file, __s32 *out_fd);

/* The body of each command: uabi.c says where they are. */
#define IBCHAN_BODY(nr, NAME, name) int ibchan_run_##name(struct ibchan_call *call);
IBCHAN_COMMANDS(IBCHAN_BODY)

/* uabi.c */
extern const struct file_operations ibchan_fops;

/*
 * The kernel runs an interrupted command again if that command only waits. A stop, a debugger and
 * the freezer interrupt a wait as a signal with a handler does. The kernel runs the command again
 * where no handler ran; so that the wait keeps its end, that goes into the caller's struct. A
 * command that may have changed something is not run again.
 */

/* How long a command may wait, in nanoseconds from now on; negative: no limit. */
static inline s64 ibchan_time_left(u32 flags, s64 timeout_ns)
{
	if (likely(!(flags & IBCHAN_DEADLINE)) || timeout_ns <= 0)
		return timeout_ns;
	return max_t(s64, timeout_ns - ktime_get_ns(), 0);
}

/* A signal has interrupted a command that began to wait at @start. Returns its answer. */
static inline int ibchan_wait_again(u32 *flags, s64 *timeout_ns, ktime_t start)
{
	if (!(*flags & IBCHAN_DEADLINE) && *timeout_ns > 0) {
		*timeout_ns = ktime_add_safe(start, *timeout_ns);
		*flags |= IBCHAN_DEADLINE;
	}
	return -ERESTARTNOHAND;
}

#endif /* IBCHAN_CONTEXT_H */
