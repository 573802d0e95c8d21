// SPDX-License-Identifier: GPL-2.0-only
/*
 * Entries of a GID table: the choice of one that a channel may use, and of the best.
 *
 * The order is that of the kernel's own choice of a source address: a wider scope comes
 * first, so that a link-local address is the last choice but still one; then an address that
 * is not deprecated. Two rules are our own: IPv4 comes before IPv6, and no VLAN before a VLAN.
 *
 * An address that no peer can reach is never used: one of host scope, one that its network
 * device does not have (the first entries of most tables are such defaults), or one that
 * duplicate address detection has found at another host.
 */
#include <linux/errno.h>
#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <net/if_inet6.h>
#include <net/ipv6.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>

#include "address.h"
#include "verbs.h"

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

static u32 judge_ndev(const struct net_device *ndev, const struct net *net)
{
	if (IS_ERR_OR_NULL(ndev) || (net && !net_eq(dev_net(ndev), net)))
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

static int rank_of(const struct ib_gid_attr *attr, const struct facts *facts)
{
	u16 vlan = IBCHAN_VLAN_NONE;
	int rank = IBCHAN_RANK_FITS;

	if (rdma_read_gid_l2_fields(attr, &vlan, NULL))
		return IBCHAN_RANK_NONE;
	if (facts->scope != RT_SCOPE_LINK)
		rank += IBCHAN_RANK_GLOBAL;
	if (!(facts->flags & (IFA_F_DEPRECATED | IFA_F_OPTIMISTIC)))
		rank += IBCHAN_RANK_PREFERRED;
	if (facts->family == 4)
		rank += IBCHAN_RANK_IPV4;
	if (vlan == IBCHAN_VLAN_NONE)
		rank += IBCHAN_RANK_UNTAGGED;
	return rank;
}

/*
 * Returns whether a channel may take the entry, and a higher @rank for a better one; it is
 * IBCHAN_RANK_NONE where the entry may not be taken.
 */
u32 ibchan_address_judge(const struct ib_gid_attr *attr, const struct ibchan_gid_rule *rule,
			 int *rank)
{
	struct facts facts = {};
	u32 verdict;

	*rank = IBCHAN_RANK_NONE;
	if (attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP)
		return IBCHAN_GID_VERDICT_ROCE_V1;
	rcu_read_lock();
	verdict = judge_address(attr, rule->net, &facts);
	rcu_read_unlock();
	if (!verdict && rule->family && rule->family != facts.family)
		verdict = IBCHAN_GID_VERDICT_OTHER_FAMILY;
	if (!verdict)
		*rank = rank_of(attr, &facts);
	return verdict;
}

/* Returns why an entry that would do is not the one that is taken. */
u32 ibchan_address_stands_back(int rank, int best)
{
	int better = best & ~rank;

	if (better & IBCHAN_RANK_GLOBAL)
		return IBCHAN_GID_VERDICT_LINK_LOCAL;
	if (rank >= best)
		return IBCHAN_GID_VERDICT_SAME_RANK;
	return better & IBCHAN_RANK_PREFERRED ? IBCHAN_GID_VERDICT_DEPRECATED :
						IBCHAN_GID_VERDICT_LOWER_RANK;
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
