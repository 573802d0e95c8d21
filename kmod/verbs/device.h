/* SPDX-License-Identifier: GPL-2.0-only */
/* A device as we hold it, and how its users pass its gate. */
#ifndef IBCHAN_DEVICE_H
#define IBCHAN_DEVICE_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/cleanup.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/sched/mm.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/ibchan.h>
#include <rdma/ibchan_charge.h>

#include "only.h"
#include "rules.h"

/*
 * How long a drain waits for its markers. Flushing is local work of a few
 * milliseconds; removal promises to be through within 5 s.
 */
#define IBCHAN_DRAIN_TIMEOUT	(2 * HZ)

/* Flags of a device's driver, constant while the device is there */
enum ibchan_quirk {
	IBCHAN_QUIRK_REGISTERS_USER_MEMORY = BIT(0), /* reg_user_mr() works for a kernel consumer */
	/* an iWARP read needs no remote write access of its target */
	IBCHAN_QUIRK_READS_INTO_ANY = BIT(1),
	IBCHAN_QUIRK_ERR_IS_UNSAFE = BIT(3),	/* a qp must be stopped by RESET, not by ERR */
	/* a qp in ERR may keep the region that the last packet named */
	IBCHAN_QUIRK_ERR_KEEPS_MR = BIT(4),
	/* a qp is flushed in tasklets, moving it to ERR does not sleep */
	IBCHAN_QUIRK_FLUSHES_IN_BH = BIT(5),
	/* the device may read from a region whose work has completed */
	IBCHAN_QUIRK_READS_ON = BIT(6),
	/* a cq must not be destroyed before an event that is due has come */
	IBCHAN_QUIRK_EVENT_OUTLIVES_CQ = BIT(7),
	/* peers know what is registered fast by its DMA address */
	IBCHAN_QUIRK_REGISTERS_BY_DMA = BIT(8),
	/* that a peer's request is refused is reported before the peer is told */
	IBCHAN_QUIRK_REPORTS_FIRST = BIT(9),
	/* RESET may leave a packet in a qp, whose end waits for it */
	IBCHAN_QUIRK_RESET_KEEPS_PACKET = BIT(10),
};

/* Counts the users of a device, and keeps them and its removal apart */
struct ibchan_gate {
	/* how many commands and ends of objects are under way, and the flags of gate.c */
	__verbs_only atomic_t state;
	__verbs_only spinlock_t lock;	/* guards @guests */
	/* registrations of user memory, and ends of such, under way */
	__verbs_only struct list_head guests;
	/* removal waits here for users, and ends wait for removal */
	__verbs_only wait_queue_head_t wait;
#ifdef CONFIG_DEBUG_LOCK_ALLOC
	struct lockdep_map map;	/* for lockdep, which takes the gate for an rwsem */
#endif
};

/* A work of an object that is charged to a user */
struct ibchan_turn {
	struct work_struct work;	/* runs @run */
	struct list_head link;	/* in the lane, while it waits; under the lane's lock */
	/* of the user; NULL: a kernel consumer's, which waits for no turn */
	struct ibchan_lane *lane;
	void (*run)(struct ibchan_turn *turn);	/* process context, may sleep */
};

/* One ib_device as we hold it */
struct ibchan_device {
	/* NULL once the device is gone; guarded by @gate, and by guests of it */
	struct ib_device *ib;
	struct ibchan_gate gate;	/* see the lock order */
	struct mutex lock;	/* guards the lists but @lingering */

	__verbs_only struct list_head pds;	/* its protection domains */
	__verbs_only struct list_head mrs;	/* its memory regions */
	__verbs_only struct list_head cqs;	/* its completion queues */
	struct list_head channels;	/* its channels */
	__verbs_only struct list_head charges;	/* of cgroups, for objects on it */
	__verbs_only struct list_head link;	/* in the list of devices, under devices_lock */
	__verbs_only refcount_t users;	/* its objects and its holders */
	/* tells when the device has failed, and when its addresses change */
	__verbs_only struct ib_event_handler events;
	struct work_struct fatal_work;	/* breaks its channels when it has failed */
	/* breaks the channels that use an address which the device has lost */
	struct work_struct gid_work;
	/* ids of channels that close or are closed, see cm_end.c */
	__connect_only struct list_head lingering;
	__connect_only spinlock_t linger_lock;	/* guards @lingering */
	__connect_only spinlock_t watch_lock;	/* guards @watch_shares */
	/* one per user with watched channels, see watch.c */
	__connect_only struct list_head watch_shares;
	__connect_only struct delayed_work watch_work;	/* looks at them */
	__verbs_only u32 max_inline;	/* see qp_make(); IBCHAN_AUTO: not known */
	/* it has refused to let go of the last object for as long as that is tried */
	__verbs_only int keeps;
	__verbs_only atomic_t next_vector;	/* counts the cqs that took one in turn */
	u32 quirks;	/* enum ibchan_quirk, of its driver; immutable */
	int node;	/* NUMA node that it is near to; immutable, also when @ib has gone */
	/* taken when the device came; immutable but for the name, which devices_lock guards */
	struct ibchan_device_attr attr;
};

/*
 * Callbacks of a floor above, for events of a device.
 *
 * Each is called in process context, may sleep, and may be NULL.
 */
struct ibchan_device_client {
	void (*comes)(struct ibchan_device *dev);	/* it is not known to any command yet */
	/*
	 * @cq, or the device where that is NULL, completes nothing any more: -EIO. Or the device
	 * goes: -ENODEV, when no command knows it any more, and again when none is under way
	 */
	void (*breaks)(struct ibchan_device *dev, const struct ibchan_cq *cq, int error);
	/* its GID table has changed; the gate is not held */
	void (*addresses_change)(struct ibchan_device *dev);
	/* a port has come up or gone down */
	void (*port_changes)(struct ibchan_device *dev, u32 port, u32 event);
	/* it goes, the gate is closed, and nothing may come to life any more */
	void (*closes)(struct ibchan_device *dev);
	/*
	 * the gate is closed: what has verbs objects gives them back, but for memory and cqs;
	 * false: the device does not let go of some
	 */
	__verbs_only bool (*ends)(struct ibchan_device *dev, unsigned long deadline);
	void (*ended)(struct ibchan_device *dev); /* the same for what outlives these objects */
	void (*left)(struct ibchan_device *dev);	/* it is gone */
};

/* client.c */
int ibchan_client_init(void);
void ibchan_client_fini(void);

/* device.c */
int ibchan_device_init(const struct ibchan_device_client *const *clients);
void ibchan_device_fini(void);
extern struct workqueue_struct *ibchan_wq;
extern struct workqueue_struct *ibchan_free_wq;
extern struct workqueue_struct *ibchan_slow_wq;
extern struct workqueue_struct *ibchan_close_wq;
extern struct workqueue_struct *ibchan_watch_wq;
extern struct workqueue_struct *ibchan_runner_wq;
void ibchan_device_hold(struct ibchan_device *dev);
void ibchan_device_name(struct ibchan_device *dev, char *name);
struct ibchan_device *ibchan_device_find(const struct ib_device *ib);
void ibchan_device_each(void (*visit)(struct ibchan_device *dev, void *arg), void *arg);
bool ibchan_port_is_down(struct ibchan_device *dev, u32 port);

/* No port has it. */
#define IBCHAN_LID_UNKNOWN	U32_MAX

u32 ibchan_port_lid(struct ib_device *ib, u32 port);

/*
 * For code that memory reclaim may wait for, also by a lock: allocations in its scope, the driver's
 * included, start no I/O.
 */
DEFINE_LOCK_GUARD_0(ibchan_noio, _T->flags = memalloc_noio_save(),
		    memalloc_noio_restore(_T->flags), unsigned int flags)

/* gate.c */
int ibchan_device_enter(struct ibchan_device *dev);
void ibchan_device_enter_to_end(struct ibchan_device *dev);
void ibchan_device_exit(struct ibchan_device *dev);

/* turn.c */
void ibchan_turn_init(struct ibchan_turn *turn, struct ibchan_budget *budget,
		      void (*run)(struct ibchan_turn *turn));
void ibchan_turn_queue(struct ibchan_turn *turn);
void ibchan_turn_cancel(struct ibchan_turn *turn);

/* Any context. */
static inline bool ibchan_device_has(const struct ibchan_device *dev, enum ibchan_quirk quirk)
{
	return dev->quirks & quirk;
}

/* A command to the end of its block; NULL when the device leaves, or has left. */
DEFINE_CLASS(ibchan_command, struct ibchan_device *, if (_T) ibchan_device_exit(_T),
	     ibchan_device_enter(dev) ? NULL : dev, struct ibchan_device *dev)

#endif /* IBCHAN_DEVICE_H */
