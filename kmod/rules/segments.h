/* SPDX-License-Identifier: GPL-2.0-only */
/* Regions that the device knows in segments: see segments.c. */
#ifndef IBCHAN_SEGMENTS_H
#define IBCHAN_SEGMENTS_H

#include <linux/types.h>

/* A part of a region that is contiguous for the device */
struct ibchan_segment {
	u64 start;	/* offset of its first byte in the region */
	u64 dma;	/* address of that byte for the device */
};

u32 ibchan_segments_find(const struct ibchan_segment *segments, u32 num, u64 offset);
u32 ibchan_segments_count(const struct ibchan_segment *segments, u32 num, u64 offset,
			  u64 length);

#endif /* IBCHAN_SEGMENTS_H */
