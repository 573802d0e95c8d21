// SPDX-License-Identifier: GPL-2.0-only
/* Finds the device that leads to an address, as a connection would take it. */
#include <linux/completion.h>
#include <linux/errno.h>
#include <rdma/ib_addr.h>

#include "cm.h"
#include "compat.h"
#include "parts.h"

/* A caller that waits for a route */
struct query {
	struct completion known;	/* @status is */
	int status;	/* 0 or a negative errno; -EINPROGRESS: not known yet */
	struct ibchan_route route;	/* the answer, where @status is 0 */
};

static void fill_route(struct ibchan_route *route, const struct rdma_cm_id *id)
{
	const struct rdma_dev_addr *dev_addr = &id->route.addr.dev_addr;
	const struct ib_gid_attr *attr = dev_addr->sgid_attr;

	*route = (struct ibchan_route){
		.port = id->port_num,
		.ifindex = dev_addr->bound_dev_if,
		.mtu = attr ? ibchan_gid_mtu(attr) : 0,
		.source = id->route.addr.src_addr,
	};
	strscpy(route->device, dev_name(&id->device->dev), sizeof(route->device));
}

/* The first answer counts. The connection manager waits until an id is gone whose device leaves. */
static int query_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct query *query = id->context;

	if (query->status != -EINPROGRESS)
		return 0;
	if (event->event == RDMA_CM_EVENT_ADDR_RESOLVED) {
		fill_route(&query->route, id);
		query->status = 0;
	} else if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL) {
		query->status = -ENODEV;
	} else {
		/* A time-out means that no host answers for the address. */
		query->status = event->status < 0 && event->status != -ETIMEDOUT ?
				event->status : -EHOSTUNREACH;
	}
	complete(&query->known);
	return 0;
}

static int resolve(struct query *query, struct rdma_cm_id *id,
		   const struct ibchan_connect *connect, u32 ms)
{
	struct sockaddr *source = (struct sockaddr *)connect->source;
	int ret = rdma_resolve_addr(id, source, connect->peer, ms);
	long left;

	if (ret)
		return ret;
	left = wait_for_completion_killable_timeout(&query->known, msecs_to_jiffies(ms));
	if (left < 0)
		return -EINTR;
	return left ? query->status : -EHOSTUNREACH;
}

/*
 * For an address that means this host, the connection manager names the first device that it
 * has. Packets of RoCE leave by a network device that has the address, and none has this one.
 * @ret: of the query. The id keeps its device.
 */
static int refuse_host_only(const struct rdma_cm_id *id, struct net *net, int ret,
			    struct ibchan_reason *reason)
{
	const struct ibchan_params any = { .gid_index = IBCHAN_AUTO };
	struct ibchan_gid gid = {};

	/* These errnos say that the first device has no address, or that there is no device. */
	if (ret && ret != -ENOENT && ret != -ENODEV)
		return ret;
	if (!ret && !rdma_protocol_roce(id->device, id->port_num))
		return 0;
	if (!ret)
		ibchan_gid_choose(id->device, net, &any, &gid, NULL);
	return ibchan_refuse_host_only(&gid, reason);
}

/**
 * ibchan_route_query - find the device that leads to a peer
 * @net: network namespace
 * @connect: peer, source and address_ms are used
 * @route: filled on success, with zeros behind the name
 * @reason: why not, or NULL
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL for a time that is too long, and for more than one address; -EAFNOSUPPORT,
 * -EADDRNOTAVAIL, -ENODEV when the source is of another family than the peer, is no address of this
 * host, or of no RDMA device; -EAFNOSUPPORT for a peer of an unknown family; -ENETUNREACH,
 * -EHOSTUNREACH when there is no way, or no neighbour answers in time; -ENODEV when the way does
 * not lead over an RDMA device, or the peer's address means this host and is not one of a RoCE
 * device's; -EINTR when the caller is killed; -ENOMEM.
 */
int ibchan_route_query(struct net *net, const struct ibchan_connect *connect,
		       struct ibchan_route *route, struct ibchan_reason *reason)
{
	u32 ms = connect->address_ms ?: IBCHAN_DEFAULT_ADDRESS_MS;
	struct query query = { .status = -EINPROGRESS };
	struct rdma_cm_id *id;
	int ret;

	might_sleep();
	if (ms > IBCHAN_MAX_STAGE_MS || connect->num_others)
		return -EINVAL;
	ret = ibchan_check_source(net, connect, reason);
	if (ret)
		return ret;
	init_completion(&query.known);
	id = rdma_create_id(net, query_event, &query, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	ret = resolve(&query, id, connect, ms);
	if (ibchan_is_host_only(connect->peer))
		ret = refuse_host_only(id, net, ret, reason);
	if (!ret)
		*route = query.route;
	rdma_destroy_id(id);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(ibchan_route_query, IBCHAN_NS);
