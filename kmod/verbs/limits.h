/* SPDX-License-Identifier: GPL-2.0-only */
/* What a device really takes; see limits.c. */
#ifndef IBCHAN_LIMITS_H
#define IBCHAN_LIMITS_H

#include <linux/types.h>

struct ibchan_channel;
struct ibchan_device;
struct ibchan_reason;

void ibchan_limits_learn_inline(struct ibchan_device *dev, u32 given);
int ibchan_limits_refuse_inline(const struct ibchan_channel *ch, u32 most,
				struct ibchan_reason *reason);
int ibchan_limits_find_inline(struct ibchan_channel *ch, struct ibchan_reason *reason);

/* qp.c */
int ibchan_qp_make(struct ibchan_channel *ch, u32 max_inline, u32 *given);

#endif /* IBCHAN_LIMITS_H */
