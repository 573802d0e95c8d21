// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes and checks what two peers tell each other as they connect: endpoints, and the header that
 * two ibchans put in front of the private data of each message of the connection manager. Both come
 * over a wire that nobody vouches for, so each field is checked before the queue pair sees any of
 * it. Pure.
 *
 * Each side tells its own version of the wire and what it has. Both use the smaller version, and
 * of what it has only bits that both know: so a later version adds bits, and puts what belongs to
 * them between the header and the private data, which is why a header tells how long it is. Bits
 * and bytes of an endpoint that this version does not know are a later version's, and ignored.
 */
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/etherdevice.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <net/ipv6.h>
#include <rdma/ib_mad.h>

#include "rules.h"

#define QPN_LOWEST	2U		/* 0 and 1 are for management */
#define QPN_MAX		0xffffffU	/* 24 bits on the wire */
#define PSN_MAX		0xffffffU

/* The IP version of the address in a RoCE GID: 4 for an IPv4-mapped one, else 6. */
u8 ibchan_gid_family(const u8 *gid)
{
	struct in6_addr addr;

	memcpy(&addr, gid, sizeof(addr));
	return ipv6_addr_v4mapped(&addr) ? 4 : 6;
}

static int refuse_pair(struct ibchan_reason *reason, u32 code, u64 ours, u64 theirs)
{
	return ibchan_refuse_values(reason, code, -EINVAL, (u64[3]) { ours, theirs });
}

/*
 * How good an entry of the port's P_Key table is for a channel; 0 when it is none. A full member
 * talks to each other member of its partition, a limited one only to full ones. All ports are in
 * the default partition.
 */
int ibchan_pkey_rank(u16 pkey)
{
	if (pkey == IB_DEFAULT_PKEY_FULL)
		return 3;
	if (!(pkey & ~IBCHAN_PKEY_FULL_MEMBER))
		return 0;
	return pkey & IBCHAN_PKEY_FULL_MEMBER ? 2 : 1;
}

/* Writes the endpoint of the queue pair @qpn at @gid. */
void ibchan_endpoint_build(struct ibchan_endpoint *endpoint, const struct ibchan_gid *gid,
			   const struct ibchan_params *params, u32 qpn)
{
	BUILD_BUG_ON(sizeof(*endpoint) != IBCHAN_ENDPOINT_SIZE);
	*endpoint = (struct ibchan_endpoint){
		.magic = cpu_to_be32(IBCHAN_ENDPOINT_MAGIC),
		.version = cpu_to_be16(IBCHAN_WIRE_VERSION),
		.link_layer = gid->iwarp ? IBCHAN_LINK_LAYER_IWARP :
			      gid->family ? IBCHAN_LINK_LAYER_ETHERNET :
					    IBCHAN_LINK_LAYER_INFINIBAND,
		.mtu = ib_mtu_int_to_enum(params->mtu),
		.qpn = cpu_to_be32(qpn),
		.psn = cpu_to_be32(params->send_psn),
		.max_dest_rd_atomic = params->max_rd_atomic,
		.flags = (params->access & IBCHAN_ACCESS_REMOTE_WRITE ?
			  IBCHAN_ENDPOINT_REMOTE_WRITE : 0) |
			 (gid->grh ? IBCHAN_ENDPOINT_GRH : 0),
		.lid = cpu_to_be32(gid->lid),
		.pkey = cpu_to_be16(gid->pkey),
	};
	memcpy(endpoint->gid, gid->gid.raw, sizeof(endpoint->gid));
	memcpy(endpoint->mac, gid->mac, sizeof(endpoint->mac));
}

static int check_header(const struct ibchan_endpoint *theirs, struct ibchan_reason *reason)
{
	if (be32_to_cpu(theirs->magic) != IBCHAN_ENDPOINT_MAGIC)
		return refuse_pair(reason, IBCHAN_REASON_ENDPOINT_MAGIC, IBCHAN_ENDPOINT_MAGIC,
				   be32_to_cpu(theirs->magic));
	if (!theirs->version)
		return refuse_pair(reason, IBCHAN_REASON_ENDPOINT_VERSION, IBCHAN_WIRE_VERSION, 0);
	/* Only InfiniBand has partitions, and packets without a global route header. */
	if (theirs->link_layer != IBCHAN_LINK_LAYER_INFINIBAND &&
	    (theirs->pkey || theirs->flags & IBCHAN_ENDPOINT_GRH))
		return ibchan_refuse(reason, IBCHAN_REASON_ENDPOINT_RESERVED, -EINVAL);
	return 0;
}

static int check_numbers(const struct ibchan_endpoint *ours, const struct ibchan_endpoint *theirs,
			 struct ibchan_reason *reason)
{
	u32 qpn = be32_to_cpu(theirs->qpn);

	if (qpn < QPN_LOWEST || qpn > QPN_MAX)
		return refuse_pair(reason, IBCHAN_REASON_PEER_QPN, QPN_LOWEST, qpn);
	if (be32_to_cpu(theirs->psn) > PSN_MAX)
		return refuse_pair(reason, IBCHAN_REASON_PEER_PSN, PSN_MAX,
				   be32_to_cpu(theirs->psn));
	if (theirs->mtu < IB_MTU_256 || theirs->mtu > IB_MTU_4096)
		return refuse_pair(reason, IBCHAN_REASON_PEER_MTU, ours->mtu, theirs->mtu);
	/* Without resources for reads at the peer, soft-RoCE would keep a read for ever. */
	if (!theirs->max_dest_rd_atomic)
		return refuse_pair(reason, IBCHAN_REASON_PEER_RD_ATOMIC, 1, 0);
	return 0;
}

static int check_ethernet(const struct ibchan_endpoint *ours, const struct ibchan_endpoint *theirs,
			  struct ibchan_reason *reason)
{
	u8 our_family = ibchan_gid_family(ours->gid);
	u8 their_family = ibchan_gid_family(theirs->gid);
	struct in6_addr addr;
	__be32 v4;

	if (our_family != their_family)
		return refuse_pair(reason, IBCHAN_REASON_GID_FAMILY, our_family, their_family);
	memcpy(&addr, theirs->gid, sizeof(addr));
	v4 = addr.s6_addr32[3];
	if (their_family == 4 ? !v4 || ipv4_is_multicast(v4) || ipv4_is_lbcast(v4) :
				ipv6_addr_any(&addr) || ipv6_addr_is_multicast(&addr))
		return ibchan_refuse(reason, IBCHAN_REASON_PEER_GID, -EINVAL);
	if (!is_valid_ether_addr(theirs->mac))
		return ibchan_refuse(reason, IBCHAN_REASON_PEER_MAC, -EINVAL);
	return 0;
}

/* A router's LID, by which other subnets are reached, only a subnet manager knows. */
static int check_infiniband(const struct ibchan_endpoint *ours,
			    const struct ibchan_endpoint *theirs, u32 max_lid,
			    struct ibchan_reason *reason)
{
	u32 lid = be32_to_cpu(theirs->lid);
	u16 our_pkey = be16_to_cpu(ours->pkey);
	u16 their_pkey = be16_to_cpu(theirs->pkey);
	__be64 our_prefix, their_prefix;

	if (!lid || lid > max_lid)
		return refuse_pair(reason, IBCHAN_REASON_PEER_LID, max_lid, lid);
	/* Both have to be in one partition, and one of them a full member. */
	if (!((our_pkey | their_pkey) & IBCHAN_PKEY_FULL_MEMBER) ||
	    (our_pkey ^ their_pkey) & ~IBCHAN_PKEY_FULL_MEMBER)
		return refuse_pair(reason, IBCHAN_REASON_PEER_PKEY, our_pkey, their_pkey);
	memcpy(&our_prefix, ours->gid, sizeof(our_prefix));
	memcpy(&their_prefix, theirs->gid, sizeof(their_prefix));
	if (our_prefix != their_prefix)
		return refuse_pair(reason, IBCHAN_REASON_PEER_SUBNET, be64_to_cpu(our_prefix),
				   be64_to_cpu(their_prefix));
	return 0;
}

/*
 * Whether these two peers can talk: 0, or -EINVAL with the field and both values in @reason.
 * @theirs may be any bytes at all; @max_lid is the highest LID of this side's fabric.
 */
int ibchan_endpoint_check(const struct ibchan_endpoint *ours,
			  const struct ibchan_endpoint *theirs, u32 max_lid,
			  struct ibchan_reason *reason)
{
	int ret = check_header(theirs, reason);

	if (ret)
		return ret;
	if (theirs->link_layer != ours->link_layer)
		return refuse_pair(reason, IBCHAN_REASON_LINK_LAYER, ours->link_layer,
				   theirs->link_layer);
	ret = check_numbers(ours, theirs, reason);
	if (!ret && ours->link_layer == IBCHAN_LINK_LAYER_ETHERNET)
		ret = check_ethernet(ours, theirs, reason);
	if (!ret && ours->link_layer == IBCHAN_LINK_LAYER_INFINIBAND)
		ret = check_infiniband(ours, theirs, max_lid, reason);
	return ret;
}

/* The header itself, in network order */
struct header {
	__be16 kind;	/* IBCHAN_WIRE_REQUEST and its like */
	u8 version;	/* of the wire, 1 and up */
	u8 room;	/* bytes in front of the private data */
	u8 length;	/* bytes of private data */
	u8 mtu;	/* see struct ibchan_wire */
	__be16 flags;	/* see struct ibchan_wire */
};

/* Writes IBCHAN_WIRE_HEADER bytes; @kind is IBCHAN_WIRE_REQUEST, _ANSWER or _REJECTION. */
void ibchan_wire_write(const struct ibchan_wire *wire, u16 kind, u8 *to)
{
	const struct header header = {
		.kind = cpu_to_be16(kind),
		.version = wire->version,
		.room = wire->room,
		.length = wire->length,
		.mtu = wire->mtu,
		.flags = cpu_to_be16(wire->flags),
	};

	BUILD_BUG_ON(sizeof(header) != IBCHAN_WIRE_HEADER);
	memcpy(to, &header, sizeof(header));
}

/*
 * Reads the header of a peer from @size bytes, which may be any at all. @wire is all zero if the
 * peer is no ibchan, or its header is damaged. The header must be of @kind: a peer that sends the
 * request back does not answer.
 */
void ibchan_wire_read(const u8 *from, u32 size, u16 kind, struct ibchan_wire *wire)
{
	struct header header;

	*wire = (struct ibchan_wire) {};
	if (size < sizeof(header))
		return;
	memcpy(&header, from, sizeof(header));
	if (header.kind != cpu_to_be16(kind) || !header.version ||
	    header.room < IBCHAN_WIRE_HEADER || header.length > IBCHAN_PRIVATE_DATA_SIZE ||
	    header.room + header.length > size)
		return;
	*wire = (struct ibchan_wire) {
		.version = min_t(u8, header.version, IBCHAN_WIRE_VERSION),
		.room = header.room,
		.length = header.length,
		.mtu = header.mtu <= IB_MTU_4096 ? header.mtu : 0,
		.flags = be16_to_cpu(header.flags) & IBCHAN_WIRE_FLAGS,
	};
}
