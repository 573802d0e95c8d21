/* SPDX-License-Identifier: GPL-2.0-only */
/* The door of memory/, which makes regions of memory. */
#ifndef IBCHAN_MEMORY_H
#define IBCHAN_MEMORY_H

#include "channel.h"

/* service.c */
struct ibchan_mr *ibchan_mr_register(struct ibchan_mr *mr, struct ibchan_reason *reason);

#endif /* IBCHAN_MEMORY_H */
