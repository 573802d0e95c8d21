// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which address a channel uses. Nobody should have to know a GID index: on
 * Ethernet the rule is RoCE v2, an address that the network device routes
 * (IPv4 before IPv6), in the caller's network namespace, never the link-local
 * one that fills the first slot of most tables. On InfiniBand it is entry 0.
 */
#include <linux/errno.h>
#include <linux/netdevice.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>

#include "internal.h"

/* Without a namespace any will do: for who talks to nobody but itself. */
static bool attr_in_net(const struct ib_gid_attr *attr, struct net *net)
{
	struct net_device *ndev;
	bool inside = false;

	if (!net)
		return true;
	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(attr);
	if (!IS_ERR_OR_NULL(ndev))
		inside = net_eq(dev_net(ndev), net);
	rcu_read_unlock();
	return inside;
}

/* Higher is better; 0 will not do. */
static int attr_rank(const struct ib_gid_attr *attr, struct net *net)
{
	struct in6_addr addr;

	if (attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP || !attr_in_net(attr, net))
		return 0;
	memcpy(&addr, attr->gid.raw, sizeof(addr));
	if (ipv6_addr_type(&addr) & IPV6_ADDR_LINKLOCAL)
		return 0;
	return ipv6_addr_v4mapped(&addr) ? 2 : 1;
}

static int gid_from_attr(const struct ib_gid_attr *attr, struct ibchan_gid *gid)
{
	gid->index = attr->index;
	gid->gid = attr->gid;
	gid->family = ibchan_gid_family(attr->gid.raw);
	return rdma_read_gid_l2_fields(attr, NULL, gid->mac);
}

/* Entries of the table that are in use have attributes; the others are skipped. */
static int choose_by_rule(struct ib_device *ib, struct net *net, struct ibchan_gid *gid,
			  struct ibchan_reason *reason)
{
	int entries = ib->port_data[gid->port].immutable.gid_tbl_len;
	const struct ib_gid_attr *attr;
	int best = 0, rank, i;

	for (i = 0; i < entries && best < 2; i++) {
		attr = rdma_get_gid_attr(ib, gid->port, i);
		if (IS_ERR(attr))
			continue;
		rank = attr_rank(attr, net);
		if (rank > best && !gid_from_attr(attr, gid))
			best = rank;
		rdma_put_gid_attr(attr);
	}
	return best ? 0 : ibchan_refuse_values(reason, IBCHAN_REASON_NO_GID,
					       -EADDRNOTAVAIL,
					       (u64[3]) { gid->port, entries });
}

static int choose_by_index(struct ib_device *ib, struct net *net, u32 index,
			   struct ibchan_gid *gid, struct ibchan_reason *reason)
{
	int entries = ib->port_data[gid->port].immutable.gid_tbl_len;
	const struct ib_gid_attr *attr;
	int ret = -ENODATA;

	attr = index < entries ? rdma_get_gid_attr(ib, gid->port, index) :
				 ERR_PTR(-EINVAL);
	if (!IS_ERR(attr)) {
		if (attr->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP && attr_in_net(attr, net))
			ret = gid_from_attr(attr, gid);
		rdma_put_gid_attr(attr);
	}
	if (!ret)
		return 0;
	if (reason)
		reason->element = IBCHAN_PARAMETER_GID_INDEX;
	return ibchan_refuse_values(reason, IBCHAN_REASON_PARAMETER, -EINVAL,
				    (u64[3]) { index, 0, entries - 1 });
}

static bool port_is_active(struct ib_device *ib, u32 port, u32 *state)
{
	struct ib_port_attr attr;

	if (ib_query_port(ib, port, &attr)) {
		*state = IB_PORT_NOP;
		return false;
	}
	*state = attr.state;
	return attr.state == IB_PORT_ACTIVE;
}

static int choose_port(struct ib_device *ib, u32 wanted, struct ibchan_reason *reason)
{
	u32 first = wanted ?: rdma_start_port(ib);
	u32 last = wanted ?: rdma_end_port(ib);
	u32 state = 0;
	u32 port;

	for (port = first; port <= last; port++)
		if (port_is_active(ib, port, &state))
			return port;
	return ibchan_refuse_values(reason, IBCHAN_REASON_PORT_DOWN, -ENETDOWN,
				    (u64[3]) { last, state });
}

static int choose_infiniband(struct ib_device *ib, u32 index, struct ibchan_gid *gid)
{
	gid->index = index == IBCHAN_AUTO ? 0 : index;
	gid->family = 0;
	if (gid->index > INT_MAX)
		return -EINVAL;
	return rdma_query_gid(ib, gid->port, gid->index, &gid->gid);
}

/**
 * ibchan_gid_choose - choose port and address
 * @ib: the device
 * @net: namespace that the address must belong to
 * @params: port and gid_index, each of which may leave the choice to the rule
 * @gid: the choice
 * @reason: why there is none, or NULL
 *
 * Context: process, may sleep; the gate is held.
 * Return: 0; -EOPNOTSUPP for iWARP, which connects by rdma_cm only; -ENETDOWN when
 * no port is active; -EADDRNOTAVAIL when no address
 * fits the rule; -EINVAL when the wanted entry does not fit; the driver's errno.
 */
int ibchan_gid_choose(struct ib_device *ib, struct net *net,
		      const struct ibchan_params *params, struct ibchan_gid *gid,
		      struct ibchan_reason *reason)
{
	int port = choose_port(ib, params->port, reason);

	if (port < 0)
		return port;
	gid->port = port;
	if (rdma_protocol_ib(ib, port))
		return choose_infiniband(ib, params->gid_index, gid);
	if (!rdma_protocol_roce(ib, port))
		return -EOPNOTSUPP;
	if (params->gid_index != IBCHAN_AUTO)
		return choose_by_index(ib, net, params->gid_index, gid, reason);
	return choose_by_rule(ib, net, gid, reason);
}

/**
 * ibchan_gid_still_there - is the address that was chosen still the port's?
 * @ib: the device
 * @net: namespace that the address must belong to
 * @gid: the choice
 *
 * A table entry may have been given to another address meanwhile, and to another
 * namespace with it.
 *
 * Context: process, may sleep; the gate is held.
 */
bool ibchan_gid_still_there(struct ib_device *ib, struct net *net,
			    const struct ibchan_gid *gid)
{
	const struct ib_gid_attr *attr;
	bool there;

	if (!gid->family)
		return true;
	attr = rdma_get_gid_attr(ib, gid->port, gid->index);
	if (IS_ERR(attr))
		return false;
	there = attr->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP && attr_in_net(attr, net) &&
		!memcmp(attr->gid.raw, gid->gid.raw, sizeof(gid->gid.raw));
	rdma_put_gid_attr(attr);
	return there;
}
