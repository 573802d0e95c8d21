// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices: their properties, the look-up by name, the consumers that follow them, and what cgroups
 * are charged for objects on them. client.c has their coming and leaving. The list of the devices
 * that commands find changes under the lock of the followers, so that each follower is told of each
 * device once.
 */
#include <linux/cgroup_rdma.h>
#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <rdma/ibchan_follower.h>

#include "private.h"

/* Tries, and the longest pause, for a driver that refuses: see ibchan_device_insist(). */
#define INSIST_TRIES	22
#define INSIST_PAUSE_MS	100U

static DEFINE_MUTEX(followers_lock);
static LIST_HEAD(followers);
static DEFINE_MUTEX(devices_lock);
static LIST_HEAD(devices);

const struct ibchan_device_client *const *ibchan_device_clients;

struct workqueue_struct *ibchan_wq;
struct workqueue_struct *ibchan_turn_wq;
struct workqueue_struct *ibchan_free_wq;
struct workqueue_struct *ibchan_slow_wq;
struct workqueue_struct *ibchan_undo_wq;
struct workqueue_struct *ibchan_close_wq;
struct workqueue_struct *ibchan_watch_wq;
struct workqueue_struct *ibchan_runner_wq;

static const struct {
	struct workqueue_struct **wq;
	const char *name;
	unsigned int flags;
} workqueues[] = {
	/*
	 * Reaps cqs on which no thread waits, and breaks channels of the kernel's consumers. Memory
	 * reclaim may wait for such a completion.
	 */
	{ &ibchan_wq, "ibchan", WQ_HIGHPRI | WQ_MEM_RECLAIM },
	/*
	 * Breaks channels of users, see turn.c: with ordinary priority, on any processor, as a user
	 * decides how many that are. Memory reclaim may wait for it.
	 */
	{ &ibchan_turn_wq, "ibchan_turn", WQ_UNBOUND | WQ_MEM_RECLAIM },
	/*
	 * Frees channels and regions that their owners do not wait for. Memory reclaim may wait for
	 * that, so its works wait for the device only: neither for memory nor for what has no
	 * rescuer.
	 */
	{ &ibchan_free_wq, "ibchan_free", WQ_UNBOUND | WQ_MEM_RECLAIM },
	/*
	 * Runs works that allocate, or wait for the connection manager or the owner of foreign
	 * memory, and ends cqs. Memory reclaim does not wait for them.
	 */
	{ &ibchan_slow_wq, "ibchan_slow", WQ_UNBOUND },
	/*
	 * The queue's works take back registrations whose mapping has changed under them: see
	 * mr_end.c. The server of a file may hold each of these up. Removal of the device waits for
	 * them.
	 */
	{ &ibchan_undo_wq, "ibchan_undo", WQ_UNBOUND },
	/*
	 * Closes channels that their owners do not wait for, where that waits for the connection
	 * manager, or for the owner's closed(), which may wait for all of the above.
	 */
	{ &ibchan_close_wq, "ibchan_close", WQ_UNBOUND },
	/* Asks silent peers, see watch.c: with ordinary priority, on any processor. */
	{ &ibchan_watch_wq, "ibchan_watch", WQ_UNBOUND | WQ_MEM_RECLAIM | WQ_SYSFS },
	/* Runs what consumers do in process context, which may sleep: see runner.c. */
	{ &ibchan_runner_wq, "ibchan_runner", WQ_HIGHPRI | WQ_MEM_RECLAIM | WQ_SYSFS },
};

static void snapshot_attr(struct ibchan_device *dev)
{
	const struct ib_device_attr *ib_attr = &dev->ib->attrs;
	struct ibchan_device_attr *attr = &dev->attr;
	bool registers = ibchan_device_has(dev, IBCHAN_QUIRK_REGISTERS_USER_MEMORY);
	u64 fast;

	strscpy(attr->name, dev_name(&dev->ib->dev), sizeof(attr->name));
	attr->node_guid = be64_to_cpu(dev->ib->node_guid);
	if (ib_attr->atomic_cap != IB_ATOMIC_NONE)
		attr->caps |= IBCHAN_DEVICE_ATOMICS;
	if (ib_uses_virt_dma(dev->ib))
		attr->caps |= IBCHAN_DEVICE_DMABUF;
	if (!rdma_protocol_iwarp(dev->ib, rdma_start_port(dev->ib)))
		attr->caps |= IBCHAN_DEVICE_IMMEDIATE | IBCHAN_DEVICE_ENDPOINTS;
	attr->ports = dev->ib->phys_port_cnt;
	attr->max_qp_wr = ib_attr->max_qp_wr;
	attr->max_send_sge = ib_attr->max_send_sge;
	attr->max_recv_sge = ib_attr->max_recv_sge;
	attr->max_read_sge = ib_attr->max_sge_rd ?: ib_attr->max_send_sge;
	attr->max_cqe = ib_attr->max_cqe;
	attr->comp_vectors = dev->ib->num_comp_vectors;
	/* One limit for reads in both directions; it is one byte in the endpoint. */
	attr->max_rd_atomic = clamp(min(ib_attr->max_qp_rd_atom,
					ib_attr->max_qp_init_rd_atom), 1, U8_MAX);
	attr->driver_id = dev->ib->ops.driver_id;
	/* The service of a domain has itself for a peer, which takes endpoints. */
	if (ib_attr->device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS &&
	    attr->caps & IBCHAN_DEVICE_ENDPOINTS)
		attr->max_fast_reg_pages = ib_attr->max_fast_reg_page_list_len;
	/* Where the driver registers no user memory, fast registration does, shorter ranges. */
	fast = ibchan_device_has(dev, IBCHAN_QUIRK_REGISTERS_BY_DMA) ? 0 :
	       (u64)attr->max_fast_reg_pages << PAGE_SHIFT;
	if (registers || fast)
		attr->caps |= IBCHAN_DEVICE_USER_MR;
	attr->max_mr_size = registers ? ib_attr->max_mr_size : min(ib_attr->max_mr_size, fast);
	/* A page is always in one segment. */
	attr->max_plain_bytes = max_t(u64, fast, PAGE_SIZE);
}

/* Not known to any command before ibchan_device_publish(). */
struct ibchan_device *ibchan_device_alloc(struct ib_device *ib)
{
	struct ibchan_device *dev = kzalloc(sizeof(*dev), GFP_KERNEL);

	if (!dev)
		return NULL;
	dev->ib = ib;
	dev->quirks = ibchan_quirks_of(ib);
	dev->node = ibdev_to_node(ib);
	ibchan_gate_init(&dev->gate);
	mutex_init(&dev->lock);
	INIT_LIST_HEAD(&dev->pds);
	INIT_LIST_HEAD(&dev->mrs);
	INIT_LIST_HEAD(&dev->cqs);
	INIT_LIST_HEAD(&dev->channels);
	INIT_LIST_HEAD(&dev->charges);
	refcount_set(&dev->users, 1);
	dev->max_inline = IBCHAN_AUTO;
	snapshot_attr(dev);
	return dev;
}

/**
 * ibchan_device_put - give a device back
 * @dev: from ibchan_device_get() or ibchan_device_get_nth()
 *
 * Objects made on it keep it for themselves.
 *
 * Context: any.
 */
void ibchan_device_put(struct ibchan_device *dev)
{
	if (refcount_dec_and_test(&dev->users))
		kfree(dev);
}
EXPORT_SYMBOL_NS_GPL(ibchan_device_put, IBCHAN_NS);

/* For an object that is made on a device. */
void ibchan_device_hold(struct ibchan_device *dev)
{
	refcount_inc(&dev->users);
}

/* Commands find @dev from here on. */
void ibchan_device_publish(struct ibchan_device *dev)
{
	struct ibchan_follower *follower;

	guard(mutex)(&followers_lock);
	scoped_guard(mutex, &devices_lock)
		list_add_tail(&dev->link, &devices);
	list_for_each_entry(follower, &followers, link) {
		ibchan_device_hold(dev);
		follower->comes(follower, dev);
	}
}

/* When this returns, no command finds @dev any more. */
void ibchan_device_unpublish(struct ibchan_device *dev)
{
	struct ibchan_follower *follower;

	guard(mutex)(&followers_lock);
	list_for_each_entry(follower, &followers, link)
		follower->leaves(follower, dev);
	scoped_guard(mutex, &devices_lock)
		list_del_init(&dev->link);
}

/**
 * ibchan_device_follow - hear of the devices that are there, and of those that come and leave
 * @follower: its functions set; stays where it is until ibchan_device_unfollow()
 *
 * Of the devices that are there it hears within this call.
 *
 * Context: process, may sleep; not from a function of a follower.
 */
void ibchan_device_follow(struct ibchan_follower *follower)
{
	struct ibchan_device *dev;
	u32 index = 0;

	guard(mutex)(&followers_lock);
	while (!IS_ERR(dev = ibchan_device_get_nth(index++, NULL)))
		follower->comes(follower, dev);
	list_add_tail(&follower->link, &followers);
}
EXPORT_SYMBOL_NS_GPL(ibchan_device_follow, IBCHAN_NS);

/**
 * ibchan_device_unfollow - hear of no device any more
 * @follower: it follows
 *
 * It is not told that the devices leave. When this returns, none of its functions runs.
 *
 * Context: process, may sleep; not from a function of a follower.
 */
void ibchan_device_unfollow(struct ibchan_follower *follower)
{
	guard(mutex)(&followers_lock);
	list_del(&follower->link);
}
EXPORT_SYMBOL_NS_GPL(ibchan_device_unfollow, IBCHAN_NS);

/* The rename() of our struct ib_client. */
void ibchan_device_rename(struct ib_device *ib, void *client_data)
{
	struct ibchan_device *dev = client_data;

	guard(mutex)(&devices_lock);
	strscpy(dev->attr.name, dev_name(&ib->dev), sizeof(dev->attr.name));
}

/*
 * The device that is visible in @net, if that is not NULL, and has @name or is @ib, if these are
 * not, behind @index others of that kind. For ibchan_device_put(); NULL when there is none.
 */
static struct ibchan_device *find_device(const char *name, const struct ib_device *ib, u32 index,
					 struct net *net)
{
	struct ibchan_device *dev;

	guard(mutex)(&devices_lock);
	list_for_each_entry(dev, &devices, link) {
		if ((name && strcmp(dev->attr.name, name)) || (ib && dev->ib != ib) ||
		    (net && !rdma_dev_access_netns(dev->ib, net)) || index--)
			continue;
		ibchan_device_hold(dev);
		return dev;
	}
	return NULL;
}

/**
 * ibchan_device_get - find a device by name
 * @name: as the rdma tool shows it
 * @net: network namespace that it must be visible in; NULL: any
 *
 * Context: process, may sleep.
 * Return: the device, to be given back with ibchan_device_put(); -ENODEV if
 * there is none of that name, or not in @net.
 */
struct ibchan_device *ibchan_device_get(const char *name, struct net *net)
{
	return find_device(name, NULL, 0, net) ?: ERR_PTR(-ENODEV);
}
EXPORT_SYMBOL_NS_GPL(ibchan_device_get, IBCHAN_NS);

/* Returns the device, for ibchan_device_put(); NULL when it is not there yet, or not any more. */
struct ibchan_device *ibchan_device_find(const struct ib_device *ib)
{
	return find_device(NULL, ib, 0, NULL);
}

/**
 * ibchan_device_get_nth - go through the devices
 * @index: 0 and up
 * @net: network namespace that they must be visible in; NULL: any
 *
 * Context: process, may sleep.
 * Return: the device, to be given back with ibchan_device_put(); -ENOENT behind the last one.
 */
struct ibchan_device *ibchan_device_get_nth(u32 index, struct net *net)
{
	return find_device(NULL, NULL, index, net) ?: ERR_PTR(-ENOENT);
}
EXPORT_SYMBOL_NS_GPL(ibchan_device_get_nth, IBCHAN_NS);

/**
 * ibchan_device_query - report a device's limits and abilities
 * @dev: the device
 * @attr: filled on success
 *
 * Context: process, may sleep.
 * Return: 0, or -ENODEV when the device is gone.
 */
int ibchan_device_query(struct ibchan_device *dev, struct ibchan_device_attr *attr)
{
	guard(mutex)(&devices_lock);
	if (list_empty(&dev->link))
		return -ENODEV;
	*attr = dev->attr;
	attr->max_inline_data = READ_ONCE(dev->max_inline);
	return 0;
}
EXPORT_SYMBOL_NS_GPL(ibchan_device_query, IBCHAN_NS);

/* Of IBCHAN_NAME_SIZE bytes; also of one that has left. Process context, may sleep. */
void ibchan_device_name(struct ibchan_device *dev, char *name)
{
	guard(mutex)(&devices_lock);
	memcpy(name, dev->attr.name, IBCHAN_NAME_SIZE);
}

/**
 * ibchan_port_query - report a port's state and limits
 * @dev: the device
 * @port: 1 and up
 * @net: network namespace that its address must belong to
 * @attr: filled on success
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL when there is no such port; -ENODEV when the device is
 * gone; the driver's errno.
 */
int ibchan_port_query(struct ibchan_device *dev, u32 port, struct net *net,
		      struct ibchan_port_attr *attr)
{
	struct ibchan_params params = { .port = port, .gid_index = IBCHAN_AUTO };
	struct ibchan_gid gid = {};
	struct ib_port_attr ib_attr;
	int ret;

	CLASS(ibchan_command, inside)(dev);
	if (!inside)
		return -ENODEV;
	if (!rdma_is_port_valid(dev->ib, port))
		return -EINVAL;
	ret = ib_query_port(dev->ib, port, &ib_attr);
	if (ret)
		return ret;
	*attr = (struct ibchan_port_attr){
		.state = ib_attr.state,
		.link_layer = rdma_port_get_link_layer(dev->ib, port),
		.active_mtu = ib_mtu_enum_to_int(ib_attr.active_mtu),
		.max_mtu = ib_mtu_enum_to_int(ib_attr.max_mtu),
		.lid = ib_attr.lid,
		.gid_index = IBCHAN_AUTO,
		.gid_entries = ib_attr.gid_tbl_len,
		.max_message = min(ib_attr.max_msg_sz, IBCHAN_MAX_MESSAGE),
	};
	if (!ibchan_gid_choose(dev->ib, net, &params, &gid, NULL)) {
		attr->gid_index = gid.index;
		memcpy(attr->gid, gid.gid.raw, sizeof(attr->gid));
	}
	return 0;
}
EXPORT_SYMBOL_NS_GPL(ibchan_port_query, IBCHAN_NS);

/* A device that leaves is not asked; its port then counts as up. */
bool ibchan_port_is_down(struct ibchan_device *dev, u32 port)
{
	struct ib_port_attr attr;

	CLASS(ibchan_command, inside)(dev);
	return inside && !ib_query_port(dev->ib, port, &attr) && attr.state != IB_PORT_ACTIVE;
}

/* Returns IBCHAN_LID_UNKNOWN where it cannot be read, or the port is none of InfiniBand. */
u32 ibchan_port_lid(struct ib_device *ib, u32 port)
{
	struct ib_port_attr attr;

	if (!rdma_protocol_ib(ib, port) || ib_query_port(ib, port, &attr))
		return IBCHAN_LID_UNKNOWN;
	return attr.lid;
}

/* No device goes while @visit is called for it. */
void ibchan_device_each(void (*visit)(struct ibchan_device *dev, void *arg), void *arg)
{
	struct ibchan_device *dev;

	guard(mutex)(&devices_lock);
	list_for_each_entry(dev, &devices, link)
		visit(dev, arg);
}

/*
 * Charges of the rdma cgroup for objects on a device. The kernel's account of a device ends with
 * its ib_device. So each device keeps a list of its charges, and removal settles those that are
 * left; the code that took a charge gives it back before that or at any time after it.
 */
#ifdef CONFIG_CGROUP_RDMA
static const enum rdmacg_resource_type resources[] = {
	[IBCHAN_CHARGE_HANDLE] = RDMACG_RESOURCE_HCA_HANDLE,
	[IBCHAN_CHARGE_OBJECT] = RDMACG_RESOURCE_HCA_OBJECT,
};

static int charge_begin(struct ibchan_charge *charge)
{
	return rdmacg_try_charge(&charge->cgroup, &charge->dev->ib->cg_device,
				 resources[charge->kind]);
}
#else
static int charge_begin(struct ibchan_charge *charge)
{
	return 0;
}
#endif

static void charge_end(struct ibchan_charge *charge)
{
#ifdef CONFIG_CGROUP_RDMA
	rdmacg_uncharge(charge->cgroup, &charge->dev->ib->cg_device, resources[charge->kind]);
#endif
	ibchan_gauge(charges, -1);
}

/**
 * ibchan_device_charge - charge the caller's cgroup for something on a device
 * @dev: the device
 * @kind: what for
 * @charge: zeroed; to be given back with ibchan_device_uncharge(), and not to move until then
 * @reason: why not, or NULL
 *
 * The charge stays with that cgroup wherever the process goes, and ends with the device.
 * Where the kernel has no RDMA controller nothing is ever refused.
 *
 * Context: process, may sleep.
 * Return: 0; -EDQUOT when a limit of the cgroup, or of one above it, does not allow it;
 * -ENODEV when the device is gone; -ENOMEM.
 */
int ibchan_device_charge(struct ibchan_device *dev, enum ibchan_charge_kind kind,
			 struct ibchan_charge *charge, struct ibchan_reason *reason)
{
	int ret;

	CLASS(ibchan_command, inside)(dev);
	if (!inside)
		return -ENODEV;
	charge->dev = dev;
	charge->kind = kind;
	ret = charge_begin(charge);
	if (ret) {
		charge->dev = NULL;
		/* Not EAGAIN: it means a full queue, and a wait for room would be in vain. */
		return ret != -EAGAIN ? ret :
		       ibchan_refuse_values(reason, IBCHAN_REASON_CGROUP, -EDQUOT,
					    (u64[3]) { kind });
	}
	scoped_guard(mutex, &dev->lock)
		list_add(&charge->link, &dev->charges);
	ibchan_gauge(charges, 1);
	ibchan_device_hold(dev);
	return 0;
}
EXPORT_SYMBOL_NS_GPL(ibchan_device_charge, IBCHAN_NS);

/**
 * ibchan_device_uncharge - give a charge back
 * @charge: from ibchan_device_charge(), or of nothing; of nothing afterwards
 *
 * Context: process, may sleep.
 */
void ibchan_device_uncharge(struct ibchan_charge *charge)
{
	struct ibchan_device *dev = charge->dev;

	might_sleep();
	if (!dev)
		return;
	ibchan_device_enter_to_end(dev);
	if (dev->ib) {
		scoped_guard(mutex, &dev->lock)
			list_del(&charge->link);
		/* The controller allocates under a lock of its own. */
		charge_end(charge);
	}
	ibchan_device_exit(dev);
	charge->dev = NULL;
	ibchan_device_put(dev);
}
EXPORT_SYMBOL_NS_GPL(ibchan_device_uncharge, IBCHAN_NS);

/* The device leaves, and its gate is closed; the charges are of nothing but its memory now. */
void ibchan_device_settle(struct ibchan_device *dev)
{
	struct ibchan_charge *charge, *next;

	list_for_each_entry_safe(charge, next, &dev->charges, link) {
		list_del(&charge->link);
		charge_end(charge);
	}
}

/*
 * Some drivers refuse to let go of an object while their firmware is busy or is being reset. The
 * object stays then, with all memory that the device reaches by it, and the caller tries again,
 * later and later, for one and a half seconds in all. After a device has refused for that long,
 * its next objects get one try each, until one of them goes. @ret: the driver's answer; @tries: 0
 * before the first one. Returns whether to try again, after a pause.
 */
bool ibchan_device_insist(struct ibchan_device *dev, int ret, unsigned int *tries)
{
	bool again = ret && *tries < INSIST_TRIES - 1 && (*tries || !READ_ONCE(dev->keeps));

	if (again)
		msleep(min(1U << *tries, INSIST_PAUSE_MS));
	else if (READ_ONCE(dev->keeps) != !!ret)
		WRITE_ONCE(dev->keeps, !!ret);
	++*tries;
	return again;
}

/* The last one made goes first. */
static void destroy_workqueues(int num)
{
	while (num--)
		destroy_workqueue(*workqueues[num].wq);
}

/* Before the first device comes. */
int ibchan_device_init(const struct ibchan_device_client *const *clients)
{
	int i;

	ibchan_device_clients = clients;
	for (i = 0; i < ARRAY_SIZE(workqueues); i++) {
		*workqueues[i].wq = alloc_workqueue("%s", workqueues[i].flags, 0,
						    workqueues[i].name);
		if (!*workqueues[i].wq) {
			destroy_workqueues(i);
			return -ENOMEM;
		}
	}
	return 0;
}

/*
 * No device is there any more. Channels that still close give regions and cqs back, the latter
 * behind grace periods: the barrier turns that into work, which the work queue's end then waits
 * for.
 */
void ibchan_device_fini(void)
{
	flush_workqueue(ibchan_undo_wq);
	flush_workqueue(ibchan_close_wq);
	flush_workqueue(ibchan_slow_wq);
	flush_workqueue(ibchan_free_wq);
	ibchan_cq_await_late();
	rcu_barrier();
	destroy_workqueues(ARRAY_SIZE(workqueues));
}
