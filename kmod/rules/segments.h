/* SPDX-License-Identifier: GPL-2.0-only */
/* Regions that the device knows in segments: see segments.c. */
#ifndef IBCHAN_SEGMENTS_H
#define IBCHAN_SEGMENTS_H

#include <linux/types.h>

/**
 * struct ibchan_segment - a part of a region that is contiguous for the device
 * @start: offset of its first byte in the region
 * @dma: address of that byte for the device
 */
struct ibchan_segment {
	u64 start;
	u64 dma;
};

u32 ibchan_segments_find(const struct ibchan_segment *segments, u32 num, u64 offset);
u32 ibchan_segments_count(const struct ibchan_segment *segments, u32 num, u64 offset,
			  u64 length);

#endif /* IBCHAN_SEGMENTS_H */
