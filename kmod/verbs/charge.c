// SPDX-License-Identifier: GPL-2.0-only
/*
 * Charges of the rdma cgroup for objects on a device.
 *
 * The kernel's account of a device ends with its ib_device. So each device keeps a list of
 * its charges, and removal settles those that are left; the code that took a charge gives
 * it back before that or at any time after it.
 */
#include <linux/cgroup_rdma.h>
#include <linux/errno.h>

#include "compat.h"
#include "counters.h"
#include "verbs.h"

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
