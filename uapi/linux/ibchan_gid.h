/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * The addresses (GIDs) of a port, and which of them a channel takes. <linux/ibchan.h>
 * includes this file.
 */
#ifndef _UAPI_LINUX_IBCHAN_GID_H
#define _UAPI_LINUX_IBCHAN_GID_H

#include <linux/types.h>

/* As the builder's gid_index: by rule, among the addresses of one family. */
#define IBCHAN_AUTO_IPV4	0xfffffffeU
#define IBCHAN_AUTO_IPV6	0xfffffffdU

#define IBCHAN_NDEV_NAME_SIZE	16	/* a network device's name with its final NUL */
#define IBCHAN_VLAN_NONE	0xffffU

/* Types of a GID table's entries; the numbers are those of the verbs. */
#define IBCHAN_GID_TYPE_IB	0
#define IBCHAN_GID_TYPE_ROCE_V1	1
#define IBCHAN_GID_TYPE_ROCE_V2	2

/*
 * Verdicts of the rule on an entry: X(number, NAME, text). Of two hindrances the kernel tells the
 * one with the lower number.
 */
#define IBCHAN_GID_VERDICTS(X)						\
	X(0, CHOSEN,							\
	  "taken, unless the builder names another one")		\
	X(1, IWARP,							\
	  "an iWARP port, where only rdma_cm connects")			\
	X(2, ROCE_V1,							\
	  "RoCE v1, which is not routed; channels use RoCE v2")		\
	X(3, LOOPBACK,							\
	  "of this host only: on a loopback device, or of scope host")	\
	X(4, OTHER_NAMESPACE,						\
	  "its network device is not in this network namespace")	\
	X(5, NDEV_DOWN,							\
	  "its network device is down; set it up")			\
	X(6, NO_CARRIER,						\
	  "its network device has no carrier; look at cable and peer")	\
	X(7, NO_ADDRESS,						\
	  "its network device does not have this address; add it there")	\
	X(8, DUPLICATE,							\
	  "another host has this address as well; give each its own")	\
	X(9, TENTATIVE,							\
	  "whether another host has this address is not known yet; wait a second") \
	X(10, OTHER_FAMILY,						\
	  "not of the address family that the builder wants")		\
	X(11, PORT_DOWN,						\
	  "would do, but the port is not active")			\
	X(12, LINK_LOCAL,						\
	  "would do, but it is link-local, and one that is not is taken")	\
	X(13, DEPRECATED,						\
	  "would do, but it is deprecated, and one that is not is taken")	\
	X(14, LOWER_RANK,						\
	  "would do, but the one that is taken ranks higher: IPv4 before IPv6, then no VLAN") \
	X(15, SAME_RANK,						\
	  "as good as the one that is taken, which stands before it")

#define IBCHAN_GID_VERDICT_NUMBER(nr, NAME, text) IBCHAN_GID_VERDICT_##NAME = (nr),
enum ibchan_gid_verdict {
	IBCHAN_GID_VERDICTS(IBCHAN_GID_VERDICT_NUMBER)
};

/**
 * struct ibchan_gid_attr - one address of a port
 * @index: entry of the GID table
 * @verdict: enum ibchan_gid_verdict: whether a channel takes it by rule, or why not
 * @type: IBCHAN_GID_TYPE_*
 * @ndev_index: interface index of its network device; 0 where there is none, or
 *	none in the caller's network namespace, and then @ndev_mtu, @mac,
 *	@ndev_name and, on RoCE, @gid are empty, too
 * @ndev_mtu: of the network device, in bytes
 * @vlan_id: IBCHAN_VLAN_NONE where the packets have no tag
 * @mac: Ethernet address behind the GID
 * @gid: the address
 * @ndev_name: of the network device, with a final NUL
 */
struct ibchan_gid_attr {
	__u32 index;
	__u32 verdict;
	__u32 type;
	__u32 ndev_index;
	__u32 ndev_mtu;
	__u16 vlan_id;
	__u8 mac[6];
	__u8 gid[IBCHAN_GID_SIZE];
	char ndev_name[IBCHAN_NDEV_NAME_SIZE];
};

/**
 * struct ibchan_cmd_gid_query - one address of a port, and the rule's verdict on it
 * @size: sizeof(struct ibchan_cmd_gid_query)
 * @flags: 0
 * @name: the device
 * @port: 1 and up
 * @index: the first entry to look at; ENOENT tells that neither it nor one behind
 *	it is in use
 * @out: the first entry in use from @index on
 *
 * To see all of a table, begin with @index 0 and go on at @out.index + 1.
 */
struct ibchan_cmd_gid_query {
	__u32 size;
	__u32 flags;
	char name[IBCHAN_NAME_SIZE];
	__u32 port;
	__u32 index;
	struct ibchan_gid_attr out;
};

#endif /* _UAPI_LINUX_IBCHAN_GID_H */
