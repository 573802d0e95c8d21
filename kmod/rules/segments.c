// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finds the segments of a region that a range touches, where the region is not contiguous for the
 * device and known to it in several segments. Pure.
 *
 * Segments are sorted by where they start, and an entry behind the last starts where
 * the region ends.
 */
#include "rules.h"

/* The index of the segment that the byte at @offset lies in; @num is 1 and up. */
u32 ibchan_segments_find(const struct ibchan_segment *segments, u32 num, u64 offset)
{
	u32 low = 0, high = num - 1;

	while (low < high) {
		u32 middle = low + (high - low + 1) / 2;

		if (segments[middle].start <= offset)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

/* How many segments a range touches, which is not empty and inside the region. */
u32 ibchan_segments_count(const struct ibchan_segment *segments, u32 num, u64 offset, u64 length)
{
	return ibchan_segments_find(segments, num, offset + length - 1) -
	       ibchan_segments_find(segments, num, offset) + 1;
}
