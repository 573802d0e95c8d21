/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * As much of the kernel as kmod/rules/endpoint.c and kmod/connect/cm_data.c need to run in
 * user space, unchanged. The compiler reads this before them; the headers that they include are
 * empty (see selftests/Makefile), but for the contract's, kmod/connect/cm.h and kmod/rules/wire.h.
 */
#ifndef PARSE_KERNEL_H
#define PARSE_KERNEL_H

#include <arpa/inet.h>
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/ibchan.h>

#define IBCHAN_RULES_H
#define IBCHAN_PARTS_H
#define IBCHAN_FLOW_H

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;
typedef __s64 ktime_t;

#define cpu_to_be16		htobe16
#define cpu_to_be32		htobe32
#define be16_to_cpu		be16toh
#define be32_to_cpu		be32toh
#define be64_to_cpu		be64toh
#define BUILD_BUG_ON(bad)	static_assert(!(bad), "")
#define min_t(type, a, b)	((type)(a) < (type)(b) ? (type)(a) : (type)(b))
#define READ_ONCE(value)	__atomic_load_n(&(value), __ATOMIC_RELAXED)
#define xchg(place, value)	__atomic_exchange_n(place, value, __ATOMIC_SEQ_CST)

/* ---- <rdma/ib_mad.h>, <rdma/ib_verbs.h> and <rdma/rdma_cm.h> ---- */

#define IB_DEFAULT_PKEY_FULL	0xffff

enum ib_mtu { IB_MTU_256 = 1, IB_MTU_512, IB_MTU_1024, IB_MTU_2048, IB_MTU_4096 };

static inline enum ib_mtu ib_mtu_int_to_enum(u32 mtu)
{
	return mtu >= 4096 ? IB_MTU_4096 : mtu >= 2048 ? IB_MTU_2048 :
	       mtu >= 1024 ? IB_MTU_1024 : mtu >= 512 ? IB_MTU_512 : IB_MTU_256;
}

static inline int ib_mtu_enum_to_int(enum ib_mtu mtu)
{
	return 128 << mtu;
}

union ib_gid {
	u8 raw[16];
	struct {
		__be64 subnet_prefix;
		__be64 interface_id;
	} global;
};

struct ib_device;

struct rdma_cm_id {
	struct ib_device *device;
	u32 port_num;
};

static inline int rdma_reject(struct rdma_cm_id *id, const void *data, u8 length, u8 code)
{
	(void)id;
	(void)data;
	(void)length;
	(void)code;
	return 0;
}

struct rdma_conn_param {
	const void *private_data;
	u8 private_data_len;
};

/* ---- <net/ipv6.h> and <linux/etherdevice.h> ---- */

static inline bool ipv6_addr_v4mapped(const struct in6_addr *addr)
{
	return IN6_IS_ADDR_V4MAPPED(addr);
}

static inline bool ipv6_addr_any(const struct in6_addr *addr)
{
	return IN6_IS_ADDR_UNSPECIFIED(addr);
}

static inline bool ipv6_addr_is_multicast(const struct in6_addr *addr)
{
	return IN6_IS_ADDR_MULTICAST(addr);
}

static inline bool ipv4_is_multicast(__be32 addr)
{
	return IN_MULTICAST(ntohl(addr));
}

static inline bool ipv4_is_lbcast(__be32 addr)
{
	return ntohl(addr) == INADDR_BROADCAST;
}

static inline bool is_valid_ether_addr(const u8 *addr)
{
	static const u8 zero[6];

	return !(addr[0] & 1) && memcmp(addr, zero, sizeof(zero));
}

static inline const void *memchr_inv(const void *bytes, int c, size_t n)
{
	const u8 *byte;

	for (byte = bytes; n--; byte++) {
		if (*byte != (u8)c)
			return byte;
	}
	return NULL;
}

/* ---- kmod/rules/rules.h and kmod/verbs/qp.h ---- */

#include "wire.h"

#define IBCHAN_PKEY_FULL_MEMBER	0x8000

typedef struct { u32 val; } kuid_t;

struct list_head {
	struct list_head *next, *prev;
};

struct work_struct {
	int unused;
};

struct delayed_work {
	int unused;
};

static inline bool cancel_work_sync(struct work_struct *work)
{
	(void)work;
	return false;
}

struct ibchan_gid {
	union ib_gid gid;
	u8 mac[6];
	u8 family;
	u8 iwarp;
	u32 lid;
	u16 pkey;
	u8 grh;
};

struct ibchan_qp {
	struct ibchan_gid gid;
	struct ibchan_params params;
	struct ibchan_endpoint endpoint;
};

struct ibchan_channel {
	struct ibchan_qp qp;
	u32 state;
};

struct ibchan_cost {
	int unused;
};

struct ibchan_request_attr {
	int unused;
};

struct ibchan_connect;
struct ibchan_device;
struct ibchan_payer;
struct rdma_cm_event;

int ibchan_refuse(struct ibchan_reason *reason, u32 code, int error);
int ibchan_refuse_values(struct ibchan_reason *reason, u32 code, int error, const u64 value[3]);

/* kmod/rules/endpoint.c */
u8 ibchan_gid_family(const u8 *gid);
int ibchan_pkey_rank(u16 pkey);
void ibchan_endpoint_build(struct ibchan_endpoint *endpoint, const struct ibchan_gid *gid,
			   const struct ibchan_params *params, u32 qpn);
int ibchan_endpoint_check(const struct ibchan_endpoint *ours,
			  const struct ibchan_endpoint *theirs, u32 max_lid,
			  struct ibchan_reason *reason);

#endif /* PARSE_KERNEL_H */
