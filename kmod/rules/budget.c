// SPDX-License-Identifier: GPL-2.0-only
/*
 * Estimates how much kernel memory an object takes, and charges it to the budget of a user, which
 * exists while the user has a file open or an object is left that was charged to it.
 *
 * An estimate has the driver's part as well. No driver tells: the number of a queue's entries and
 * the size of an entry are powers of two, as drivers make them. The estimates err upward. For
 * soft-RoCE, which takes about the most memory of all drivers, they are less than twice the real
 * amount: see budget_test.
 *
 * A user is the real user id of the process that opened the file, as io_uring and iommufd have it,
 * or, in a user namespace, the owner of the outermost one: all ids that an unprivileged user has
 * mapped there share that user's budget. Root makes as many namespaces and cgroups as it likes, and
 * runs containers of others: each of root's namespaces has a budget of its own, and so have root's
 * processes in each cgroup.
 *
 * A charge is first counted and then compared with the limit, so that no caller waits for
 * another. Only a user over the limit is asked for the capability, because each refusal of
 * one may be written to the audit log.
 */
#include <linux/capability.h>
#include <linux/cgroup.h>
#include <linux/cred.h>
#include <linux/errno.h>
#include <linux/hashtable.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/refcount.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/user_namespace.h>

#include "counters.h"
#include "rules.h"

/* Drivers' completion entries have 32 to 128 bytes. */
#define CQE_SIZE	128
/* The queue's own struct, the driver's, what both are rounded up to. */
#define CQ_FIXED	SZ_8K

/* Bytes that a driver puts before the elements of a request: soft-RoCE 200, mlx5 192. */
#define SEND_HEADER	208
#define RECV_HEADER	48
#define MIN_WQE	64
/* The channel's own struct, a queue pair, a socket, ids of the connection manager. */
#define CHANNEL_FIXED	(20 * SZ_1K)
/* A read or atomic of the peer's that is under way. */
#define RD_ATOMIC_SIZE	64

/* The region's own struct, the driver's, the first page of its table. */
#define MR_FIXED	5632
/* An entry of a scatterlist, and one in our list of pages. */
#define MR_PAGE		40
/* An entry in the driver's list of pages. */
#define MR_ROOM		8

/* The limit unless told otherwise: this part of the machine's memory. */
#define DEFAULT_PART	16

static unsigned long user_memory;
module_param(user_memory, ulong, 0644);
MODULE_PARM_DESC(user_memory,
		 "MiB of kernel memory for one user's objects; 0: a sixteenth of all (default 0)");

/* One user's */
struct ibchan_budget {
	struct hlist_node link;	/* in the table */
	kuid_t uid;	/* of the user that is charged */
	u64 container;	/* which of root's containers; 0 of other users */
	refcount_t users;	/* files, and objects that were charged */
	atomic64_t used;	/* bytes */
	struct ibchan_lane lane;	/* its works */
};

/* Tells a user namespace's number from that of a cgroup, which needs less than 63 bits. */
#define NAMESPACE	BIT_ULL(63)

static DEFINE_HASHTABLE(budgets, 6);
static DEFINE_SPINLOCK(budgets_lock);	/* the table; interrupts off */

static u64 limit(void)
{
	u64 mib = READ_ONCE(user_memory);

	if (!mib)
		return ((u64)totalram_pages() << PAGE_SHIFT) / DEFAULT_PART;
	return min_t(u64, mib, S64_MAX >> 20) << 20;
}

static u64 key_of(const struct ibchan_budget *budget)
{
	return __kuid_val(budget->uid) ^ budget->container;
}

static u64 cgroup_of_caller(void)
{
	u64 id = 0;

#ifdef CONFIG_CGROUPS
	rcu_read_lock();
	id = cgroup_id(task_dfl_cgroup(current));
	rcu_read_unlock();
#endif
	return id & ~NAMESPACE;
}

static void identify_caller(struct ibchan_budget *fresh)
{
	const struct user_namespace *ns = current_user_ns();
	bool is_first = ns == &init_user_ns;

	while (ns->parent && ns->parent != &init_user_ns)
		ns = ns->parent;
	fresh->uid = is_first ? current_uid() : ns->owner;
	if (uid_eq(fresh->uid, GLOBAL_ROOT_UID))
		fresh->container = is_first ? cgroup_of_caller() : NAMESPACE | ns->ns.inum;
}

/* Gets the budget of the caller's user; NULL when there is no memory. May sleep. */
struct ibchan_budget *ibchan_budget_get(void)
{
	struct ibchan_budget *fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);
	struct ibchan_budget *budget;
	unsigned long flags;

	if (!fresh)
		return NULL;
	identify_caller(fresh);
	refcount_set(&fresh->users, 1);
	spin_lock_init(&fresh->lane.lock);
	INIT_LIST_HEAD(&fresh->lane.waiting);
	spin_lock_irqsave(&budgets_lock, flags);
	hash_for_each_possible(budgets, budget, link, key_of(fresh))
		if (uid_eq(budget->uid, fresh->uid) && budget->container == fresh->container)
			break;
	if (budget)
		refcount_inc(&budget->users);
	else
		hash_add(budgets, &fresh->link, key_of(fresh));
	spin_unlock_irqrestore(&budgets_lock, flags);
	if (!budget)
		return fresh;
	kfree(fresh);
	return budget;
}

/* The counterpart of ibchan_budget_get(). Any context but NMI. */
void ibchan_budget_put(struct ibchan_budget *budget)
{
	unsigned long flags;
	bool last;

	if (!budget)
		return;
	spin_lock_irqsave(&budgets_lock, flags);
	last = refcount_dec_and_test(&budget->users);
	if (last)
		hash_del(&budget->link);
	spin_unlock_irqrestore(&budgets_lock, flags);
	if (!last)
		return;
	WARN_ON_ONCE(atomic64_read(&budget->used));
	kfree(budget);
}

/* The lane in which works of the user wait for their turn, or NULL without a budget. */
struct ibchan_lane *ibchan_budget_lane(struct ibchan_budget *budget)
{
	return budget ? &budget->lane : NULL;
}

static void keep_cost(struct ibchan_cost *cost, struct ibchan_budget *budget, u64 bytes)
{
	refcount_inc(&budget->users);
	ibchan_gauge(charged_bytes, bytes);
	*cost = (struct ibchan_cost) { budget, bytes };
}

/*
 * Charges a budget for an object that is about to be made. @budget: NULL: a kernel consumer's
 * object. -EDQUOT when the budget does not allow it, and the caller has not CAP_SYS_RESOURCE:
 * @reason has the bytes used, the limit, and @bytes.
 */
int ibchan_cost_charge(struct ibchan_cost *cost, struct ibchan_budget *budget, u64 bytes,
		       struct ibchan_reason *reason)
{
	u64 used, max = limit();

	if (!budget)
		return 0;
	used = atomic64_add_return(bytes, &budget->used);
	if (used > max && !capable(CAP_SYS_RESOURCE)) {
		atomic64_sub(bytes, &budget->used);
		return ibchan_refuse_values(reason, IBCHAN_REASON_USER_MEMORY, -EDQUOT,
					    (u64[3]) { used - bytes, max, bytes });
	}
	keep_cost(cost, budget, bytes);
	return 0;
}

/*
 * Has @budget (NULL: none), which stays as long as @payer is used, pay for objects that peers
 * cause. No caller is there later, so the capability to go over the limit is looked at here. No
 * refusal is written to the audit log, which a peer could fill.
 */
void ibchan_payer_init(struct ibchan_payer *payer, struct ibchan_budget *budget)
{
	payer->budget = budget;
	payer->exempt = budget && ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE);
}

/* Charges for an object that a peer causes: 0 or -EDQUOT. Any context but NMI. */
int ibchan_cost_charge_to(struct ibchan_cost *cost, const struct ibchan_payer *payer, u64 bytes)
{
	struct ibchan_budget *budget = payer->budget;

	if (!budget)
		return 0;
	if ((u64)atomic64_add_return(bytes, &budget->used) > limit() && !payer->exempt) {
		atomic64_sub(bytes, &budget->used);
		return -EDQUOT;
	}
	keep_cost(cost, budget, bytes);
	return 0;
}

/* The memory that was charged for has gone; @cost is one of nothing then. Any context but NMI. */
void ibchan_cost_pay_back(struct ibchan_cost *cost)
{
	if (!cost->budget)
		return;
	atomic64_sub(cost->bytes, &cost->budget->used);
	ibchan_gauge(charged_bytes, -(s64)cost->bytes);
	ibchan_budget_put(cost->budget);
	*cost = (struct ibchan_cost) {};
}

/* Moves at most @bytes of a cost to another object, whose cost was of nothing. */
void ibchan_cost_move(struct ibchan_cost *from, struct ibchan_cost *to, u64 bytes)
{
	if (!from->budget)
		return;
	bytes = min(bytes, from->bytes);
	from->bytes -= bytes;
	refcount_inc(&from->budget->users);
	*to = (struct ibchan_cost) { from->budget, bytes };
}

/* Page tables, and lists of pages. */
static u64 with_tables(u64 size)
{
	return size + size / 64;
}

static u64 entries_of(u32 depth)
{
	return roundup_pow_of_two((u64)depth + 1);
}

/* The driver's entries of @wqe bytes, and ours of @place bytes. */
static u64 queue_size(u32 depth, u64 wqe, u64 place)
{
	wqe = max_t(u64, roundup_pow_of_two(wqe), MIN_WQE);
	return with_tables(entries_of(depth + IBCHAN_MARKERS) * wqe +
			   roundup_pow_of_two(depth) * place);
}

u64 ibchan_footprint_cq(u32 entries)
{
	return CQ_FIXED + with_tables(entries_of(entries) * CQE_SIZE);
}

/*
 * @max_rd_atomic: reads and atomics of the peer's that the device has room for; @exclusive: works
 * may keep others out of their ranges; @send_works, @recv_works: the queue has works of its own,
 * for requests that bring none.
 */
u64 ibchan_footprint_channel(const struct ibchan_params *params, u32 max_rd_atomic, bool exclusive,
			     bool send_works, bool recv_works)
{
	u64 element = sizeof(struct ibchan_mr *) + (exclusive ? sizeof(struct ibchan_range) : 0);
	u64 send_place = sizeof(struct ibchan_work *) + params->max_send_sge * element +
			 (send_works ? sizeof(struct ibchan_work) : 0);
	u64 recv_place = sizeof(struct ibchan_work *) + params->max_recv_sge * element +
			 (recv_works ? sizeof(struct ibchan_work) : 0);
	u64 send_payload = max_t(u64, params->max_send_sge * sizeof(struct ib_sge),
				 params->max_inline_data);
	u64 recv_payload = params->max_recv_sge * sizeof(struct ib_sge);

	return CHANNEL_FIXED + max_rd_atomic * RD_ATOMIC_SIZE +
	       queue_size(params->max_send_wr, SEND_HEADER + send_payload, send_place) +
	       queue_size(params->max_recv_wr, RECV_HEADER + recv_payload, recv_place);
}

/* A region of @pages without its memory; the device's region has room for @room pages. */
u64 ibchan_footprint_mr(u64 pages, u64 room)
{
	return MR_FIXED + pages * MR_PAGE + room * MR_ROOM;
}
