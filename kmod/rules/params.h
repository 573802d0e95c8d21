/* SPDX-License-Identifier: GPL-2.0-only */
/* The builder's parameters and options: see params.c. Pure, any context. */
#ifndef IBCHAN_PARAMS_H
#define IBCHAN_PARAMS_H

#include <rdma/ibchan.h>

void ibchan_params_choose(struct ibchan_params *params,
			  const struct ibchan_device_attr *attr);
int ibchan_params_check(const struct ibchan_params *params,
			const struct ibchan_device_attr *attr,
			struct ibchan_reason *reason);
int ibchan_options_check(const struct ibchan_options *options,
			 struct ibchan_reason *reason);
u32 ibchan_keepalive_asks_ms(u32 keepalive_ms);
u32 ibchan_keepalive_notice_ms(u32 keepalive_ms, const struct ibchan_params *params);
int ibchan_access_check(u32 access, struct ibchan_reason *reason);

#endif /* IBCHAN_PARAMS_H */
