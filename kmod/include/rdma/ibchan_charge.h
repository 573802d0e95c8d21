/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The RDMA controller of cgroups (rdma.max, rdma.current). The code that makes an object of a
 * device on a process's behalf, as /dev/ibchan does, charges it to the process's cgroup. Objects
 * that the kernel makes for itself are not charged.
 */
#ifndef _RDMA_IBCHAN_CHARGE_H
#define _RDMA_IBCHAN_CHARGE_H

#include <linux/list.h>
#include <rdma/ibchan.h>

struct rdma_cgroup;

/**
 * enum ibchan_charge_kind - the kinds of objects that a cgroup limits
 * @IBCHAN_CHARGE_HANDLE: a device that is open: hca_handle
 * @IBCHAN_CHARGE_OBJECT: an object on a device: hca_object
 */
enum ibchan_charge_kind {
	IBCHAN_CHARGE_HANDLE = 0,
	IBCHAN_CHARGE_OBJECT = 1,
};

/**
 * struct ibchan_charge - one handle or object that a cgroup is charged for
 *
 * All private. Zeroed memory is a charge of nothing.
 */
struct ibchan_charge {
	/* private: */
	struct ibchan_device *dev;	/* NULL: of nothing */
	struct rdma_cgroup *cgroup;
	enum ibchan_charge_kind kind;
	struct list_head link;
};

int ibchan_device_charge(struct ibchan_device *dev, enum ibchan_charge_kind kind,
			 struct ibchan_charge *charge, struct ibchan_reason *reason);
void ibchan_device_uncharge(struct ibchan_charge *charge);

#endif /* _RDMA_IBCHAN_CHARGE_H */
