// SPDX-License-Identifier: GPL-2.0-only
/* The table of the parts that floors above add to each channel. */
#include "channel.h"

const struct ibchan_channel_part *const *ibchan_channel_parts;
