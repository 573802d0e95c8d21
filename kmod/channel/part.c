// SPDX-License-Identifier: GPL-2.0-only
/* The parts that floors above have in channels: see part.h. */
#include "part.h"

const struct ibchan_channel_part *const *ibchan_channel_parts;
