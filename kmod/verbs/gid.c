// SPDX-License-Identifier: GPL-2.0-only
/*
 * Chooses the address of a channel. A program need not know a GID index: on Ethernet the address
 * is one of RoCE v2 whose network device is up and in the caller's network namespace, and
 * of several the best as address.c has it. On InfiniBand it is entry 0. A query tells the
 * verdict on each entry.
 */
#include <linux/errno.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <rdma/ib_cache.h>

#include "address.h"
#include "compat.h"
#include "fault.h"
#include "verbs.h"

/* Above are multicast groups. */
#define MAX_LID		0xbfffU
#define OPA_MAX_LID	0xefffffffU

static bool ndev_in_net(const struct net_device *ndev, const struct net *net)
{
	return !IS_ERR_OR_NULL(ndev) && (!net || net_eq(dev_net(ndev), net));
}

static bool attr_in_net(const struct ib_gid_attr *attr, struct net *net)
{
	bool inside;

	rcu_read_lock();
	inside = ndev_in_net(rdma_read_gid_attr_ndev_rcu(attr), net);
	rcu_read_unlock();
	return inside;
}

/* Of an entry of RoCE. Its port is known. */
static int gid_from_attr(const struct ib_gid_attr *attr, struct ibchan_gid *gid)
{
	u32 mtu = ibchan_gid_mtu(attr);

	if (!mtu)
		return -ENODEV;
	gid->index = attr->index;
	gid->type = attr->gid_type;
	gid->gid = attr->gid;
	gid->family = ibchan_gid_family(attr->gid.raw);
	gid->mtu = min(gid->port_mtu, mtu);
	return rdma_read_gid_l2_fields(attr, NULL, gid->mac);
}

static u32 num_entries(struct ib_device *ib, u32 port)
{
	return ib->port_data[port].immutable.gid_tbl_len;
}

/*
 * Entries of the table that are in use have attributes; the others are skipped. Of
 * entries with the same rank the first is taken. @verdict tells how far the best got.
 */
static const struct ib_gid_attr *scan(struct ib_device *ib, const struct ibchan_gid_rule *rule,
				      u32 port, int *best, u32 *verdict)
{
	const struct ib_gid_attr *attr, *chosen = NULL;
	u32 i, entries = num_entries(ib, port);
	int rank;

	*best = IBCHAN_RANK_NONE;
	*verdict = 0;
	for (i = 0; i < entries && *best < IBCHAN_RANK_BEST; i++) {
		attr = rdma_get_gid_attr(ib, port, i);
		if (IS_ERR(attr))
			continue;
		*verdict = max(*verdict, ibchan_address_judge(attr, rule, &rank));
		if (rank > *best) {
			*best = rank;
			swap(attr, chosen);
		}
		if (attr)
			rdma_put_gid_attr(attr);
	}
	return chosen;
}

/*
 * The network device of the chosen entry may go before the entry is read. The table is then
 * scanned again, and does not have that entry any more.
 */
static int find_best(struct ib_device *ib, const struct ibchan_gid_rule *rule,
		     struct ibchan_gid *gid, u32 *verdict)
{
	const struct ib_gid_attr *chosen;
	int best, gone;

	do {
		chosen = scan(ib, rule, gid->port, &best, verdict);
		if (!chosen)
			return IBCHAN_RANK_NONE;
		gone = gid_from_attr(chosen, gid);
		rdma_put_gid_attr(chosen);
	} while (gone);
	return best;
}

static int refuse_index(u32 index, u32 entries, struct ibchan_reason *reason)
{
	return ibchan_refuse_parameter(reason, IBCHAN_PARAMETER_GID_INDEX, index, 0, entries - 1);
}

static int choose_by_index(struct ib_device *ib, struct net *net, u32 index,
			   struct ibchan_gid *gid, struct ibchan_reason *reason)
{
	const struct ibchan_gid_rule rule = { .net = net };
	u32 entries = num_entries(ib, gid->port);
	const struct ib_gid_attr *attr;
	int ret = -ENODATA, rank;

	attr = index < entries ? rdma_get_gid_attr(ib, gid->port, index) : ERR_PTR(-EINVAL);
	if (!IS_ERR(attr)) {
		if (attr->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP && attr_in_net(attr, net) &&
		    ibchan_address_judge(attr, &rule, &rank) != IBCHAN_GID_VERDICT_LOOPBACK)
			ret = gid_from_attr(attr, gid);
		rdma_put_gid_attr(attr);
	}
	return ret ? refuse_index(index, entries, reason) : 0;
}

/* Returns the port's state or an errno, and fills the members of @gid that describe the port. */
static int port_state(struct ib_device *ib, u32 port, struct ibchan_gid *gid)
{
	struct ib_port_attr attr;
	int ret = ibchan_fault(IBCHAN_FAULT_PORT_QUERY) ?: ib_query_port(ib, port, &attr);

	if (ret)
		return ret;
	gid->port = port;
	gid->port_mtu = ib_mtu_enum_to_int(attr.active_mtu);
	gid->mtu = gid->port_mtu;
	gid->max_message = min(attr.max_msg_sz, IBCHAN_MAX_MESSAGE);
	gid->lid = attr.lid;
	gid->max_lid = rdma_cap_opa_ah(ib, port) ? OPA_MAX_LID : MAX_LID;
	gid->grh = rdma_protocol_ib(ib, port) && rdma_is_grh_required(ib, port);
	return attr.state;
}

/*
 * Takes an address that the connection manager has chosen. On an error, for a network device that
 * has gone or a port that cannot be read, @gid is as it was.
 */
int ibchan_gid_adopt(struct ibchan_gid *gid, u32 port, const struct ib_gid_attr *attr)
{
	struct ibchan_gid adopted = *gid;
	int ret = 0;

	if (port != gid->port)
		ret = min(port_state(attr->device, port, &adopted), 0);
	if (!ret)
		ret = gid_from_attr(attr, &adopted);
	if (!ret)
		*gid = adopted;
	return ret;
}

/* Whether the choice is left to the rule, and what for. */
static bool rule_of(const struct ibchan_params *params, struct ibchan_gid_rule *rule)
{
	switch (params->gid_index) {
	case IBCHAN_AUTO_IPV4:
		rule->family = 4;
		return true;
	case IBCHAN_AUTO_IPV6:
		rule->family = 6;
		return true;
	default:
		return params->gid_index == IBCHAN_AUTO;
	}
}

/* Which partition. On Ethernet there is just one. */
static int choose_pkey(struct ib_device *ib, struct ibchan_gid *gid, struct ibchan_reason *reason)
{
	u32 entries = ib->port_data[gid->port].immutable.pkey_tbl_len;
	int best = 0, rank;
	u16 pkey;
	u32 i;

	for (i = 0; i < entries; i++) {
		rank = ib_get_cached_pkey(ib, gid->port, i, &pkey) ? 0 : ibchan_pkey_rank(pkey);
		if (rank <= best)
			continue;
		best = rank;
		gid->pkey_index = i;
		gid->pkey = pkey;
	}
	return best ? 0 : ibchan_refuse_values(reason, IBCHAN_REASON_NO_PKEY,
					       -EADDRNOTAVAIL,
					       (u64[3]) { gid->port, entries });
}

/* Its addresses are no IP addresses. */
static int choose_infiniband(struct ib_device *ib, u32 index, struct ibchan_gid *gid,
			     struct ibchan_reason *reason)
{
	int ret = choose_pkey(ib, gid, reason);

	if (ret)
		return ret;
	gid->index = index == IBCHAN_AUTO ? 0 : index;
	gid->family = 0;
	if (gid->index < num_entries(ib, gid->port) &&
	    !rdma_query_gid(ib, gid->port, gid->index, &gid->gid))
		return 0;
	if (index != IBCHAN_AUTO)
		return refuse_index(index, num_entries(ib, gid->port), reason);
	return ibchan_refuse_values(reason, IBCHAN_REASON_NO_GID, -EADDRNOTAVAIL,
				    (u64[3]) { gid->port, num_entries(ib, gid->port) });
}

/* TCP needs no address of the table; the one entry names the port. */
static int choose_iwarp(struct ib_device *ib, const struct ibchan_params *params,
			struct ibchan_gid *gid, struct ibchan_reason *reason)
{
	struct ibchan_gid_rule rule;

	if (params->gid_index && !rule_of(params, &rule))
		return refuse_index(params->gid_index, 1, reason);
	gid->iwarp = 1;
	gid->index = 0;
	gid->family = 0;
	return rdma_query_gid(ib, gid->port, 0, &gid->gid);
}

/* By what the port speaks, if it is active. */
static int choose_on_port(struct ib_device *ib, struct net *net, u32 port,
			  const struct ibchan_params *params, struct ibchan_gid *gid,
			  struct ibchan_reason *reason)
{
	struct ibchan_gid_rule rule = { .net = net };
	int state = port_state(ib, port, gid);
	u32 verdict;

	if (state < 0)
		return state;
	if (state != IB_PORT_ACTIVE)
		return ibchan_refuse_values(reason, IBCHAN_REASON_PORT_DOWN, -ENETDOWN,
					    (u64[3]) { port, state });
	if (rdma_protocol_ib(ib, port))
		return choose_infiniband(ib, params->gid_index, gid, reason);
	if (rdma_protocol_iwarp(ib, port))
		return choose_iwarp(ib, params, gid, reason);
	if (!rdma_protocol_roce(ib, port))
		return -EOPNOTSUPP;
	if (!rule_of(params, &rule))
		return choose_by_index(ib, net, params->gid_index, gid, reason);
	if (find_best(ib, &rule, gid, &verdict))
		return 0;
	return ibchan_refuse_values(reason, IBCHAN_REASON_NO_GID, -EADDRNOTAVAIL,
				    (u64[3]) { port, num_entries(ib, port), verdict });
}

/*
 * Chooses port and address where @params leave the choice to the rule: of several ports the first
 * one that is active and has an address. Where there is none, the first active port says why:
 * -EOPNOTSUPP for a transport without reliable connections; -ENETDOWN when no port is active;
 * -EADDRNOTAVAIL when no address fits the rule, or an InfiniBand port is in no partition; -EINVAL
 * when the wanted entry does not fit.
 */
int ibchan_gid_choose(struct ib_device *ib, struct net *net,
		      const struct ibchan_params *params, struct ibchan_gid *gid,
		      struct ibchan_reason *reason)
{
	u32 last = params->port ?: rdma_end_port(ib);
	u32 port = params->port ?: rdma_start_port(ib);
	struct ibchan_reason why = {};
	int first = -ENETDOWN, ret;

	do {
		struct ibchan_gid choice = {};

		ret = choose_on_port(ib, net, port, params, &choice, &why);
		if (!ret) {
			*gid = choice;
			return 0;
		}
		if (first != -ENETDOWN)
			continue;
		first = ret;
		if (reason)
			*reason = why;
	} while (port++ < last);
	return first;
}

/* The first entry of the port's table that is in use, of whatever type. */
static int first_address(struct ib_device *ib, struct ibchan_gid *gid, struct ibchan_reason *reason)
{
	u32 i, entries = num_entries(ib, gid->port);
	const struct ib_gid_attr *attr;
	int ret;

	for (i = 0; i < entries; i++) {
		attr = rdma_get_gid_attr(ib, gid->port, i);
		if (IS_ERR(attr))
			continue;
		ret = gid_from_attr(attr, gid);
		rdma_put_gid_attr(attr);
		if (!ret)
			return 0;
	}
	return ibchan_refuse_values(reason, IBCHAN_REASON_NO_GID, -EADDRNOTAVAIL,
				    (u64[3]) { gid->port, entries });
}

/*
 * A queue pair has to have an address to be connected, if only to itself. For that no link has to
 * be up, and no network device needs an IP address: on Ethernet the table has entries without.
 */
int ibchan_gid_choose_any(struct ib_device *ib, struct ibchan_gid *gid,
			  struct ibchan_reason *reason)
{
	int ret = -EADDRNOTAVAIL;
	u32 port;

	rdma_for_each_port(ib, port) {
		struct ibchan_gid choice = {};

		ret = min(port_state(ib, port, &choice), 0);
		if (!ret && rdma_protocol_ib(ib, port))
			ret = choose_infiniband(ib, IBCHAN_AUTO, &choice, reason);
		else if (!ret)
			ret = first_address(ib, &choice, reason);
		if (ret)
			continue;
		*gid = choice;
		return 0;
	}
	return ret;
}

/* Returns IBCHAN_LID_UNKNOWN where it cannot be read, or the port is none of InfiniBand. */
u32 ibchan_port_lid(struct ib_device *ib, u32 port)
{
	struct ib_port_attr attr;

	if (!rdma_protocol_ib(ib, port) || ib_query_port(ib, port, &attr))
		return IBCHAN_LID_UNKNOWN;
	return attr.lid;
}

/*
 * The subnet manager may give a port another LID, subnet or partition at any time. An entry that
 * cannot be read just now may still be the same: the core fills its tables anew at each event.
 */
static bool infiniband_still_there(struct ib_device *ib, const struct ibchan_gid *gid, u32 lid)
{
	union ib_gid now;
	u16 pkey;

	/* A connection by address may have got a newer one than the caller has read. */
	if (lid != gid->lid)
		lid = ibchan_port_lid(ib, gid->port);
	if (lid != gid->lid && lid != IBCHAN_LID_UNKNOWN)
		return false;
	if (!rdma_query_gid(ib, gid->port, gid->index, &now) &&
	    memcmp(now.raw, gid->gid.raw, sizeof(now.raw)))
		return false;
	return ib_get_cached_pkey(ib, gid->port, gid->pkey_index, &pkey) || pkey == gid->pkey;
}

/*
 * Takes the InfiniBand port that the connection manager has chosen. On an error @gid is as it was.
 */
int ibchan_gid_adopt_port(struct ib_device *ib, struct ibchan_gid *gid, u32 port, u16 pkey_index)
{
	struct ibchan_gid adopted = { .pkey_index = pkey_index };
	int ret = min(port_state(ib, port, &adopted), 0);

	if (!ret)
		ret = rdma_query_gid(ib, port, 0, &adopted.gid);
	if (!ret)
		ret = ib_get_cached_pkey(ib, port, pkey_index, &adopted.pkey);
	if (!ret)
		*gid = adopted;
	return ret;
}

/*
 * A table entry may have been given to another address meanwhile, and to another namespace with
 * it. @lid: of the port, as the caller has read it for several; or IBCHAN_LID_UNKNOWN.
 */
bool ibchan_gid_still_there(struct ib_device *ib, struct net *net,
			    const struct ibchan_gid *gid, u32 lid)
{
	const struct ib_gid_attr *attr;
	bool there;

	if (gid->iwarp)
		return true;
	if (!gid->family)
		return infiniband_still_there(ib, gid, lid);
	attr = rdma_get_gid_attr(ib, gid->port, gid->index);
	if (IS_ERR(attr))
		return false;
	there = attr->gid_type == gid->type && attr_in_net(attr, net) &&
		!memcmp(attr->gid.raw, gid->gid.raw, sizeof(gid->gid.raw));
	rdma_put_gid_attr(attr);
	return there;
}

/* Fills in an entry's network device as far as the caller's namespace shows it. */
static void fill_ndev(const struct ib_gid_attr *from, const struct net *net,
		      struct ibchan_gid_attr *attr)
{
	struct net_device *ndev;

	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(from);
	if (ndev_in_net(ndev, net)) {
		attr->ndev_index = ndev->ifindex;
		attr->ndev_mtu = READ_ONCE(ndev->mtu);
		strscpy(attr->ndev_name, ndev->name, sizeof(attr->ndev_name));
		rdma_read_gid_l2_fields(from, &attr->vlan_id, attr->mac);
	}
	rcu_read_unlock();
}

/* An entry that would do stands back behind a better one, or an earlier one as good. */
static u32 verdict_on(struct ib_device *ib, const struct ibchan_gid_rule *rule,
		      const struct ib_gid_attr *attr)
{
	struct ibchan_gid best = { .port = attr->port_num };
	bool is_roce = rdma_protocol_roce(ib, best.port);
	int rank = IBCHAN_RANK_NONE, best_rank;
	u32 verdict = 0;

	if (is_roce)
		verdict = ibchan_address_judge(attr, rule, &rank);
	else if (!rdma_protocol_ib(ib, best.port))
		verdict = IBCHAN_GID_VERDICT_IWARP;
	if (verdict)
		return verdict;
	if (port_state(ib, best.port, &best) != IB_PORT_ACTIVE)
		return IBCHAN_GID_VERDICT_PORT_DOWN;
	if (!is_roce)
		return attr->index ? IBCHAN_GID_VERDICT_LOWER_RANK : IBCHAN_GID_VERDICT_CHOSEN;
	best_rank = find_best(ib, rule, &best, &verdict);
	if (best.index == attr->index && best_rank)
		return IBCHAN_GID_VERDICT_CHOSEN;
	return ibchan_address_stands_back(rank, best_rank);
}

/**
 * ibchan_gid_query - the addresses of a port, and what the rule says about them
 * @dev: the device
 * @port: 1 and up
 * @net: network namespace that a channel would be built in; NULL: any
 * @attr: in: @index, the first entry to look at; out: the first one in use from there on
 *
 * To see all of a table, begin with index 0 and go on behind the one that was told.
 *
 * Context: process, may sleep.
 * Return: 0; -ENOENT when no entry from @index on is in use; -EINVAL when there is no such port;
 * -ENODEV when the device is gone.
 */
int ibchan_gid_query(struct ibchan_device *dev, u32 port, struct net *net,
		     struct ibchan_gid_attr *attr)
{
	const struct ibchan_gid_rule rule = { .net = net };
	const struct ib_gid_attr *from;
	u32 i;

	CLASS(ibchan_command, inside)(dev);
	if (!inside)
		return -ENODEV;
	if (!rdma_is_port_valid(dev->ib, port))
		return -EINVAL;
	for (i = attr->index; i < num_entries(dev->ib, port); i++) {
		from = rdma_get_gid_attr(dev->ib, port, i);
		if (IS_ERR(from))
			continue;
		*attr = (struct ibchan_gid_attr){
			.index = i,
			.verdict = verdict_on(dev->ib, &rule, from),
			.type = from->gid_type,
			.vlan_id = IBCHAN_VLAN_NONE,
		};
		/* Another namespace's address is that namespace's to tell. */
		if (!rdma_protocol_roce(dev->ib, port) || attr_in_net(from, net))
			memcpy(attr->gid, from->gid.raw, sizeof(attr->gid));
		fill_ndev(from, net, attr);
		rdma_put_gid_attr(from);
		return 0;
	}
	return -ENOENT;
}
EXPORT_SYMBOL_NS_GPL(ibchan_gid_query, IBCHAN_NS);
