// SPDX-License-Identifier: GPL-2.0-only
/*
 * Chooses the address of a channel, so that a program need not know a GID index. On Ethernet this
 * is the best RoCE v2 address of a network device that is up and in the caller's network namespace.
 * On InfiniBand it is entry 0. A query tells the verdict on each entry.
 *
 * The order is that of the kernel's own choice of a source address: a wider scope comes first, so
 * that a link-local address is the last choice but still one; then an address that is not
 * deprecated. Two rules are our own: IPv4 comes before IPv6, and no VLAN before a VLAN.
 *
 * An address that no peer can reach is never used: one of host scope, one that its network device
 * does not have (the first entries of most tables are such defaults), or one that duplicate address
 * detection has found at another host.
 */
#include <linux/errno.h>
#include <linux/inetdevice.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <net/if_inet6.h>
#include <net/ipv6.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>

#include "private.h"

/* Above are multicast groups. */
#define MAX_LID		0xbfffU
#define OPA_MAX_LID	0xefffffffU

/* How good an address is for a channel. Each counts more than all before it together. */
enum {
	RANK_NONE = 0,
	RANK_UNTAGGED = 1,
	RANK_IPV4 = 2,
	RANK_PREFERRED = 4,
	RANK_GLOBAL = 8,
	RANK_FITS = 16,
	RANK_BEST = 31,
};

/* Requirements on an address, besides those of all addresses. */
struct rule {
	struct net *net;	/* that its network device is in; NULL: any */
	u32 family;	/* 4 or 6; 0: either */
};

/* An address, as the network stack describes it. */
struct facts {
	u32 flags;	/* IFA_F_* */
	u8 scope;	/* RT_SCOPE_* */
	u8 family;	/* 4 or 6 */
};

static bool find_ipv4(const struct net_device *ndev, const struct in6_addr *addr,
		      struct facts *facts)
{
	const struct in_device *in_dev = __in_dev_get_rcu(ndev);
	__be32 wanted = addr->s6_addr32[3];
	const struct in_ifaddr *ifa;

	if (!in_dev)
		return false;
	in_dev_for_each_ifa_rcu(ifa, in_dev) {
		/* The table has the far end of a link between two. */
		if (ifa->ifa_local != wanted && ifa->ifa_address != wanted)
			continue;
		facts->flags = ifa->ifa_flags;
		facts->scope = ipv4_is_linklocal_169(wanted) ? RT_SCOPE_LINK : ifa->ifa_scope;
		return true;
	}
	return false;
}

#if IS_ENABLED(CONFIG_IPV6)
static bool find_ipv6(const struct net_device *ndev, const struct in6_addr *addr,
		      struct facts *facts)
{
	struct inet6_dev *idev = __in6_dev_get(ndev);
	int type = ipv6_addr_type(addr);
	const struct inet6_ifaddr *ifa;
	bool found = false;

	if (!idev)
		return false;
	read_lock_bh(&idev->lock);
	list_for_each_entry(ifa, &idev->addr_list, if_list) {
		found = ipv6_addr_equal(&ifa->addr, addr);
		if (!found)
			continue;
		facts->flags = ifa->flags;
		facts->scope = type & IPV6_ADDR_LOOPBACK ? RT_SCOPE_HOST :
			       type & IPV6_ADDR_LINKLOCAL ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
		break;
	}
	read_unlock_bh(&idev->lock);
	return found;
}
#else
static bool find_ipv6(const struct net_device *ndev, const struct in6_addr *addr,
		      struct facts *facts)
{
	return false;
}
#endif

static bool ndev_in_net(const struct net_device *ndev, const struct net *net)
{
	return !IS_ERR_OR_NULL(ndev) && (!net || net_eq(dev_net(ndev), net));
}

static u32 judge_ndev(const struct net_device *ndev, const struct net *net)
{
	if (!ndev_in_net(ndev, net))
		return IBCHAN_GID_VERDICT_OTHER_NAMESPACE;
	if (ndev->flags & IFF_LOOPBACK)
		return IBCHAN_GID_VERDICT_LOOPBACK;
	if (!netif_running(ndev))
		return IBCHAN_GID_VERDICT_NDEV_DOWN;
	if (!netif_carrier_ok(ndev))
		return IBCHAN_GID_VERDICT_NO_CARRIER;
	return IBCHAN_GID_VERDICT_CHOSEN;
}

/* Of a bond the network device is the master, of a VLAN the device with the tag. */
static u32 judge_address(const struct ib_gid_attr *attr, const struct net *net, struct facts *facts)
{
	const struct net_device *ndev = rdma_read_gid_attr_ndev_rcu(attr);
	u32 verdict = judge_ndev(ndev, net);
	struct in6_addr addr;

	if (verdict)
		return verdict;
	memcpy(&addr, attr->gid.raw, sizeof(addr));
	facts->family = ipv6_addr_v4mapped(&addr) ? 4 : 6;
	if (!(facts->family == 4 ? find_ipv4(ndev, &addr, facts) : find_ipv6(ndev, &addr, facts)))
		return IBCHAN_GID_VERDICT_NO_ADDRESS;
	if (facts->scope > RT_SCOPE_LINK)
		return IBCHAN_GID_VERDICT_LOOPBACK;
	if (facts->flags & IFA_F_DADFAILED)
		return IBCHAN_GID_VERDICT_DUPLICATE;
	if (facts->flags & IFA_F_TENTATIVE && !(facts->flags & IFA_F_OPTIMISTIC))
		return IBCHAN_GID_VERDICT_TENTATIVE;
	return IBCHAN_GID_VERDICT_CHOSEN;
}

/* May a channel take the entry? @rank is higher for a better one, and RANK_NONE where not. */
static u32 judge(const struct ib_gid_attr *attr, const struct rule *rule, int *rank)
{
	const u32 lesser = IFA_F_DEPRECATED | IFA_F_OPTIMISTIC;
	u16 vlan = IBCHAN_VLAN_NONE;
	struct facts facts = {};
	u32 verdict;

	*rank = RANK_NONE;
	if (attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP)
		return IBCHAN_GID_VERDICT_ROCE_V1;
	rcu_read_lock();
	verdict = judge_address(attr, rule->net, &facts);
	rcu_read_unlock();
	if (!verdict && rule->family && rule->family != facts.family)
		verdict = IBCHAN_GID_VERDICT_OTHER_FAMILY;
	if (!verdict && !rdma_read_gid_l2_fields(attr, &vlan, NULL))
		*rank = RANK_FITS + (facts.scope != RT_SCOPE_LINK ? RANK_GLOBAL : 0) +
			(facts.flags & lesser ? 0 : RANK_PREFERRED) +
			(facts.family == 4 ? RANK_IPV4 : 0) +
			(vlan == IBCHAN_VLAN_NONE ? RANK_UNTAGGED : 0);
	return verdict;
}

/*
 * How many bytes packets over a RoCE address may have: a VLAN may take fewer than its port. 0: the
 * network device has gone.
 */
u32 ibchan_gid_mtu(const struct ib_gid_attr *attr)
{
	struct net_device *ndev;
	u32 mtu = 0;

	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(attr);
	if (!IS_ERR(ndev))
		mtu = ib_mtu_enum_to_int(iboe_get_mtu(READ_ONCE(ndev->mtu)) ?: IB_MTU_256);
	rcu_read_unlock();
	return mtu;
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
 * Finds the entry with the highest rank, of several the first, and returns that rank, or RANK_NONE.
 * Entries that are in use have attributes; the others are skipped. @verdict tells how far the best
 * got. Without a @rule any entry will do, of whatever type.
 */
static int find_best(struct ib_device *ib, const struct rule *rule, struct ibchan_gid *gid,
		     u32 *verdict)
{
	u32 i, entries = num_entries(ib, gid->port);
	const struct ib_gid_attr *attr, *chosen;
	int best, rank, gone;

	do {
		chosen = NULL;
		best = RANK_NONE;
		*verdict = 0;
		for (i = 0; i < entries && best < RANK_BEST; i++) {
			attr = rdma_get_gid_attr(ib, gid->port, i);
			if (IS_ERR(attr))
				continue;
			if (rule)
				*verdict = max(*verdict, judge(attr, rule, &rank));
			else
				rank = ibchan_gid_mtu(attr) ? RANK_BEST : RANK_NONE;
			if (rank > best) {
				best = rank;
				swap(attr, chosen);
			}
			if (attr)
				rdma_put_gid_attr(attr);
		}
		if (!chosen)
			return RANK_NONE;
		/* Its network device may have gone. The table does not have the entry then. */
		gone = gid_from_attr(chosen, gid);
		rdma_put_gid_attr(chosen);
	} while (gone);
	return best;
}

static int refuse_index(u32 index, u32 entries, struct ibchan_reason *reason)
{
	return ibchan_refuse_parameter(reason, IBCHAN_PARAMETER_GID_INDEX, index, 0, entries - 1);
}

/* An entry that the builder names may be one that does not work yet, but none of another's. */
static int choose_by_index(struct ib_device *ib, const struct rule *rule, u32 index,
			   struct ibchan_gid *gid, struct ibchan_reason *reason)
{
	u32 entries = num_entries(ib, gid->port);
	const struct ib_gid_attr *attr;
	int ret = -ENODATA, rank;
	u32 verdict;

	attr = index < entries ? rdma_get_gid_attr(ib, gid->port, index) : ERR_PTR(-EINVAL);
	if (!IS_ERR(attr)) {
		verdict = judge(attr, rule, &rank);
		if (verdict != IBCHAN_GID_VERDICT_ROCE_V1 &&
		    verdict != IBCHAN_GID_VERDICT_LOOPBACK &&
		    verdict != IBCHAN_GID_VERDICT_OTHER_NAMESPACE)
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
	return best ? 0 : ibchan_refuse_values(reason, IBCHAN_REASON_NO_PKEY, -EADDRNOTAVAIL,
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
	if (gid->index < num_entries(ib, gid->port) &&
	    !rdma_query_gid(ib, gid->port, gid->index, &gid->gid))
		return 0;
	if (index != IBCHAN_AUTO)
		return refuse_index(index, num_entries(ib, gid->port), reason);
	return ibchan_refuse_values(reason, IBCHAN_REASON_NO_GID, -EADDRNOTAVAIL,
				    (u64[3]) { gid->port, num_entries(ib, gid->port) });
}

/* By what the port speaks, if it is active. @gid is all zero. */
static int choose_on_port(struct ib_device *ib, struct net *net, u32 port,
			  const struct ibchan_params *params, struct ibchan_gid *gid,
			  struct ibchan_reason *reason)
{
	u32 verdict, index = params ? params->gid_index : IBCHAN_AUTO;
	bool is_named = index < IBCHAN_AUTO_IPV6;
	const struct rule rule = {
		.net = net,
		.family = index == IBCHAN_AUTO_IPV4 ? 4 : index == IBCHAN_AUTO_IPV6 ? 6 : 0,
	};
	int state = port_state(ib, port, gid);

	if (state < 0)
		return state;
	if (params && state != IB_PORT_ACTIVE)
		return ibchan_refuse_values(reason, IBCHAN_REASON_PORT_DOWN, -ENETDOWN,
					    (u64[3]) { port, state });
	if (rdma_protocol_ib(ib, port))
		return choose_infiniband(ib, index, gid, reason);
	/* TCP needs no address of the table; the one entry names the port. */
	gid->iwarp = rdma_protocol_iwarp(ib, port);
	if (gid->iwarp)
		return index && is_named ? refuse_index(index, 1, reason) :
					   rdma_query_gid(ib, port, 0, &gid->gid);
	if (!rdma_protocol_roce(ib, port))
		return -EOPNOTSUPP;
	if (is_named)
		return choose_by_index(ib, &rule, index, gid, reason);
	if (find_best(ib, params ? &rule : NULL, gid, &verdict))
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
 *
 * @params: NULL for a queue pair that is connected to itself. It has to have an address, but no
 * link has to be up, and no network device needs an IP address: on Ethernet the table has entries
 * without.
 */
int ibchan_gid_choose(struct ib_device *ib, struct net *net,
		      const struct ibchan_params *params, struct ibchan_gid *gid,
		      struct ibchan_reason *reason)
{
	u32 port = params && params->port ? params->port : rdma_start_port(ib);
	u32 last = params && params->port ? params->port : rdma_end_port(ib);
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
		ret = rdma_query_gid(ib, port, 0, &adopted.gid) ?:
		      ib_get_cached_pkey(ib, port, pkey_index, &adopted.pkey);
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
	rcu_read_lock();
	there = attr->gid_type == gid->type &&
		ndev_in_net(rdma_read_gid_attr_ndev_rcu(attr), net) &&
		!memcmp(attr->gid.raw, gid->gid.raw, sizeof(gid->gid.raw));
	rcu_read_unlock();
	rdma_put_gid_attr(attr);
	return there;
}

/* Is it still in the table? An address that returns gets another entry. The caller keeps @attr. */
bool ibchan_gid_is_current(const struct ib_gid_attr *attr)
{
	const struct ib_gid_attr *there = rdma_get_gid_attr(attr->device, attr->port_num,
							    attr->index);

	if (IS_ERR(there))
		return false;
	rdma_put_gid_attr(there);
	return there == attr;
}

/*
 * Fills in an entry's address and network device as far as the caller's namespace shows them:
 * another namespace's address is that namespace's to tell.
 */
static void fill_address(const struct ib_gid_attr *from, const struct net *net,
			 struct ibchan_gid_attr *attr)
{
	struct net_device *ndev;
	bool inside;

	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(from);
	inside = ndev_in_net(ndev, net);
	if (inside || !rdma_protocol_roce(from->device, from->port_num))
		memcpy(attr->gid, from->gid.raw, sizeof(attr->gid));
	if (inside) {
		attr->ndev_index = ndev->ifindex;
		attr->ndev_mtu = READ_ONCE(ndev->mtu);
		strscpy(attr->ndev_name, ndev->name, sizeof(attr->ndev_name));
		rdma_read_gid_l2_fields(from, &attr->vlan_id, attr->mac);
	}
	rcu_read_unlock();
}

/* An entry that would do stands back behind a better one, or an earlier one as good. */
static u32 verdict_on(struct ib_device *ib, const struct rule *rule,
		      const struct ib_gid_attr *attr)
{
	struct ibchan_gid best = { .port = attr->port_num };
	bool is_roce = rdma_protocol_roce(ib, best.port);
	int rank = RANK_NONE, best_rank, better;
	u32 verdict = 0;

	if (is_roce)
		verdict = judge(attr, rule, &rank);
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
	better = best_rank & ~rank;
	if (better & RANK_GLOBAL)
		return IBCHAN_GID_VERDICT_LINK_LOCAL;
	if (rank >= best_rank)
		return IBCHAN_GID_VERDICT_SAME_RANK;
	return better & RANK_PREFERRED ? IBCHAN_GID_VERDICT_DEPRECATED :
					 IBCHAN_GID_VERDICT_LOWER_RANK;
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
	const struct rule rule = { .net = net };
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
		fill_address(from, net, attr);
		rdma_put_gid_attr(from);
		return 0;
	}
	return -ENOENT;
}
EXPORT_SYMBOL_NS_GPL(ibchan_gid_query, IBCHAN_NS);
