/* SPDX-License-Identifier: GPL-2.0-only */
/* Why something is refused: see wr.c. */
#ifndef IBCHAN_REFUSE_H
#define IBCHAN_REFUSE_H

#include <rdma/ibchan.h>

int ibchan_refuse(struct ibchan_reason *reason, u32 code, int error);
int ibchan_refuse_parameter(struct ibchan_reason *reason, u32 which, u64 value, u64 low, u64 high);
int ibchan_refuse_values(struct ibchan_reason *reason, u32 code, int error, const u64 value[3]);

#endif /* IBCHAN_REFUSE_H */
