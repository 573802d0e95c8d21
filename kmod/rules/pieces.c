// SPDX-License-Identifier: GPL-2.0-only
/*
 * A region that the device knows in several pieces, because its pages lie apart:
 * which pieces does a range touch? Pure.
 *
 * Pieces are sorted by where they start, and one behind the last starts where
 * the region ends.
 */
#include "rules.h"

/**
 * ibchan_pieces_find - the piece that a byte lies in
 * @pieces: of the region
 * @num: how many, 1 and up
 * @offset: of the byte, inside the region
 *
 * Return: the index.
 */
u32 ibchan_pieces_find(const struct ibchan_piece *pieces, u32 num, u64 offset)
{
	u32 low = 0, high = num - 1;

	while (low < high) {
		u32 middle = low + (high - low + 1) / 2;

		if (pieces[middle].start <= offset)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

/**
 * ibchan_pieces_count - how many pieces a range touches
 * @pieces: of the region
 * @num: how many
 * @offset: first byte
 * @length: bytes, 1 and up; the range is inside the region
 */
u32 ibchan_pieces_count(const struct ibchan_piece *pieces, u32 num, u64 offset,
			u64 length)
{
	return ibchan_pieces_find(pieces, num, offset + length - 1) -
	       ibchan_pieces_find(pieces, num, offset) + 1;
}
