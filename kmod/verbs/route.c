// SPDX-License-Identifier: GPL-2.0-only
/*
 * How packets get from the address that was chosen to the peer's. Within one Ethernet
 * segment the peer's own MAC is the next hop, and it is in the endpoint: no other host has to
 * be asked. Behind a gateway it is the gateway's, which ib_core resolves, as it does for
 * rdma_cm. The routing table decides which of the two it is; when it knows no way the
 * handshake says so, because the device could only say that no answer comes.
 *
 * A neighbour that is in the kernel's table for good has the MAC that is there: so the
 * administrator has said, who may want packets to go another way. An entry that the table has
 * learned is no such word. Each host of the segment could have said it; of a host with two ports in
 * one segment it may name the wrong one; and a peer that has just told its MAC knows better. So a
 * peer that names another host's MAC for an address gets no more than by a broadcast: packets that
 * nobody takes, because their address is not that host's.
 */
#include <linux/completion.h>
#include <linux/errno.h>
#include <linux/etherdevice.h>
#include <linux/inetdevice.h>
#include <net/arp.h>
#include <net/ip6_route.h>
#include <net/l3mdev.h>
#include <net/route.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>

#include "private.h"

#define HOP_LIMIT	64	/* RoCE v2 is routed; IP hosts take the same */

/* Long enough for a second question where the first one was lost. */
#define NEXT_HOP_TIMEOUT_MS	2000

/* How soon the wait notices that its channel has broken: removal waits for it. */
#define NEXT_HOP_STEP		(HZ / 10)

/* Where a route leads; negative: nowhere, with the errno of the routing table. */
enum way { WAY_ON_LINK, WAY_GATEWAY, WAY_OTHER_NDEV };

union any_addr {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* A pair of addresses to find a way between. */
struct question {
	union any_addr from;	/* the channel's own address */
	union any_addr to;	/* the peer's */
	/* the network device of @from, which RoCE packets leave by in any case; under RCU */
	struct net_device *ndev;
};

/* An address of this host is reached like a neighbour: the device turns the packet around. */
static int way_by(const struct net_device *out, bool gateway, const struct question *question)
{
	if (out->flags & IFF_LOOPBACK)
		return WAY_ON_LINK;
	if (out != question->ndev)
		return WAY_OTHER_NDEV;
	return gateway ? WAY_GATEWAY : WAY_ON_LINK;
}

static int find_way4(const struct question *question, int oif)
{
	struct flowi4 flow = {
		.daddr = question->to.in.sin_addr.s_addr,
		.saddr = question->from.in.sin_addr.s_addr,
		.flowi4_oif = oif,
		.flowi4_proto = IPPROTO_UDP,
	};
	struct rtable *rt = ip_route_output_key(dev_net(question->ndev), &flow);
	int way;

	if (IS_ERR(rt))
		return PTR_ERR(rt);
	way = way_by(rt->dst.dev, rt->rt_uses_gateway, question);
	ip_rt_put(rt);
	return way;
}

static int find_way6(const struct question *question, int oif)
{
	struct flowi6 flow = {
		.daddr = question->to.in6.sin6_addr,
		.saddr = question->from.in6.sin6_addr,
		.flowi6_oif = oif,
		.flowi6_proto = IPPROTO_UDP,
	};
	struct dst_entry *dst = ibchan_ip6_route(dev_net(question->ndev), &flow);
	int way;

	if (IS_ERR(dst))
		return PTR_ERR(dst);
	way = way_by(dst->dev, container_of(dst, struct rt6_info, dst)->rt6i_flags & RTF_GATEWAY,
		     question);
	dst_release(dst);
	return way;
}

static int find_way(const struct question *question, int oif)
{
	return question->to.any.sa_family == AF_INET ? find_way4(question, oif) :
						       find_way6(question, oif);
}

/* Asks nobody, and makes no entry. */
static void take_permanent_neighbour(struct question *question, struct ibchan_path *path)
{
	bool is_ipv4 = question->to.any.sa_family == AF_INET;
	struct net_device *ndev = question->ndev;
	struct neighbour *neighbour;

	neighbour = neigh_lookup(is_ipv4 ? &arp_tbl : ibchan_nd_tbl, is_ipv4 ?
				 (void *)&question->to.in.sin_addr :
				 (void *)&question->to.in6.sin6_addr, ndev);
	if (!neighbour)
		return;
	if (READ_ONCE(neighbour->nud_state) & NUD_PERMANENT && ndev->addr_len == ETH_ALEN)
		neigh_ha_snapshot(path->dmac, neighbour, ndev);
	neigh_release(neighbour);
}

/*
 * Bound to a network device the routing table takes every IPv4 address for a neighbour when it
 * knows no better, so it is asked without at first. A link-local address of IPv6 means another host
 * on each network device.
 */
static int choose_way(struct question *question, const struct ib_gid_attr *attr,
		      struct ibchan_path *path)
{
	bool is_link_local = question->to.any.sa_family == AF_INET6 &&
			     ipv6_addr_type(&question->to.in6.sin6_addr) & IPV6_ADDR_LINKLOCAL;
	int way;

	rcu_read_lock();
	question->ndev = rdma_read_gid_attr_ndev_rcu(attr);
	if (IS_ERR(question->ndev)) {
		way = PTR_ERR(question->ndev);
	} else {
		way = is_link_local ? WAY_OTHER_NDEV :
		      find_way(question, l3mdev_master_ifindex_rcu(question->ndev));
		if (way == WAY_OTHER_NDEV)
			way = find_way(question, question->ndev->ifindex);
		if (way == WAY_ON_LINK || way == WAY_OTHER_NDEV)
			take_permanent_neighbour(question, path);
	}
	rcu_read_unlock();
	return way;
}

struct resolution {
	struct rdma_dev_addr addr;
	struct completion done;
	int status;
};

static void next_hop_resolved(int status, struct sockaddr *from, struct rdma_dev_addr *addr,
			      void *context)
{
	struct resolution *resolution = context;

	resolution->status = status;
	complete(&resolution->done);
}

/* Ends early for a signal that kills, and when the channel breaks: its device may leave. */
static int resolve_gateway(struct question *question, const struct ib_gid_attr *attr,
			   const struct ibchan_qp *qp, struct ibchan_path *path)
{
	struct resolution resolution = {
		.addr = { .net = &init_net, .sgid_attr = attr },
	};
	long left;
	int ret;

	init_completion(&resolution.done);
	ret = rdma_resolve_ip(&question->from.any, &question->to.any, &resolution.addr,
			      NEXT_HOP_TIMEOUT_MS, next_hop_resolved, true, &resolution);
	if (ret)
		return ret;
	do {
		left = wait_for_completion_killable_timeout(&resolution.done, NEXT_HOP_STEP);
	} while (!left && READ_ONCE(*qp->state) == IBCHAN_CHANNEL_PREPARED);
	if (left <= 0) {
		rdma_addr_cancel(&resolution.addr);
		return left ? -EINTR : -ESHUTDOWN;
	}
	if (resolution.status)
		return resolution.status;
	memcpy(path->dmac, resolution.addr.dst_dev_addr, sizeof(path->dmac));
	path->hop_limit = resolution.addr.hoplimit ?: HOP_LIMIT;
	return 0;
}

/*
 * A neighbour costs a look into the routing table; only behind a gateway the call may wait for an
 * answer, 2 s at most. -EHOSTUNREACH when there is no route to the peer, or its next hop does not
 * answer; -EADDRNOTAVAIL when the channel's own address has gone; -ESHUTDOWN when the channel
 * broke meanwhile; -EINTR when the caller was killed.
 */
int ibchan_route_find(struct ibchan_qp *qp, const struct ibchan_endpoint *peer,
		      struct ibchan_path *path, struct ibchan_reason *reason)
{
	u32 code = IBCHAN_REASON_NO_ROUTE;
	const struct ib_gid_attr *attr;
	struct question question = {};
	union ib_gid gid;
	int ret;

	path->hop_limit = HOP_LIMIT;
	memcpy(path->dmac, peer->mac, sizeof(path->dmac));
	if (!qp->gid.family || !memcmp(peer->gid, qp->gid.gid.raw, sizeof(peer->gid)))
		return 0;
	attr = rdma_get_gid_attr(qp->dev->ib, qp->gid.port, qp->gid.index);
	if (IS_ERR(attr))
		return -EADDRNOTAVAIL;
	memcpy(gid.raw, peer->gid, sizeof(gid.raw));
	rdma_gid2ip((struct sockaddr *)&question.from, &qp->gid.gid);
	rdma_gid2ip((struct sockaddr *)&question.to, &gid);
	ret = choose_way(&question, attr, path);
	if (ret == WAY_GATEWAY) {
		code = IBCHAN_REASON_NEXT_HOP;
		ret = resolve_gateway(&question, attr, qp, path);
	}
	rdma_put_gid_attr(attr);
	if (ret >= 0)
		return 0;
	if (code == IBCHAN_REASON_NEXT_HOP &&
	    (ret == -EINTR || ret == -ESHUTDOWN || ret == -ENOMEM))
		return ret;
	return ibchan_refuse_values(reason, code, -EHOSTUNREACH,
				    (u64[3]) { -ret, get_unaligned_be64(peer->gid),
					       get_unaligned_be64(peer->gid + 8) });
}
