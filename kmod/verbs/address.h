/* SPDX-License-Identifier: GPL-2.0-only */
/* How good an address is for a channel. */
#ifndef IBCHAN_ADDRESS_H
#define IBCHAN_ADDRESS_H

#include <linux/types.h>

#include "only.h"

struct ib_gid_attr;
struct net;

/* Each counts more than all behind it. */
enum {
	IBCHAN_RANK_NONE = 0,
	IBCHAN_RANK_UNTAGGED = 1,
	IBCHAN_RANK_IPV4 = 2,
	IBCHAN_RANK_PREFERRED = 4,
	IBCHAN_RANK_GLOBAL = 8,
	IBCHAN_RANK_FITS = 16,
	IBCHAN_RANK_BEST = 31,
};

/* Requirements on an address, besides those of all addresses. */
struct ibchan_gid_rule {
	/*
	 * the namespace that its network device is in; NULL: any, for a queue pair that is
	 * connected to itself
	 */
	__verbs_only struct net *net;
	__verbs_only u32 family;	/* 4 or 6; 0: either */
};

u32 ibchan_address_judge(const struct ib_gid_attr *attr, const struct ibchan_gid_rule *rule,
			 int *rank);
u32 ibchan_address_stands_back(int rank, int best);

#endif /* IBCHAN_ADDRESS_H */
