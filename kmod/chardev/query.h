/* SPDX-License-Identifier: GPL-2.0-only */
/* Devices as the caller of a command sees them. */
#ifndef IBCHAN_QUERY_H
#define IBCHAN_QUERY_H

#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <net/net_namespace.h>

#include "context.h"

static inline struct net *ibchan_caller_net(void)
{
	return current->nsproxy->net_ns;
}

/* A name in a command has its final NUL. */
static inline bool ibchan_name_ends(const char *name)
{
	return strnlen(name, IBCHAN_NAME_SIZE) < IBCHAN_NAME_SIZE;
}

#endif /* IBCHAN_QUERY_H */
