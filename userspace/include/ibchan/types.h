/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libibchan: the objects, all of them opaque. Include <ibchan.h>. */
#ifndef _IBCHAN_TYPES_H
#define _IBCHAN_TYPES_H

#include <stddef.h>
#include <linux/types.h>
#include <linux/ibchan.h>

#ifdef __cplusplus
#define __IBCHAN_BEGIN_DECLS	extern "C" {
#define __IBCHAN_END_DECLS	}
#else
#define __IBCHAN_BEGIN_DECLS
#define __IBCHAN_END_DECLS
#endif

struct ibchan_context;
struct ibchan_device;
struct ibchan_pd;
struct ibchan_mr;
struct ibchan_cq;
struct ibchan_prepared;
struct ibchan_channel;
struct ibchan_listener;
struct ibchan_request;
struct ibchan_server;

/* These are not opaque: other headers have their members. */
struct ibchan_builder;
struct ibchan_scope;
struct ibchan_error;

#endif /* _IBCHAN_TYPES_H */
