/* SPDX-License-Identifier: GPL-2.0-only */
/* Regions that the device knows in pieces: see pieces.c. */
#ifndef IBCHAN_PIECES_H
#define IBCHAN_PIECES_H

#include <linux/types.h>

/**
 * struct ibchan_piece - a part of a region that is contiguous for the device
 * @start: offset of its first byte in the region
 * @dma: address of that byte for the device
 */
struct ibchan_piece {
	u64 start;
	u64 dma;
};

u32 ibchan_pieces_find(const struct ibchan_piece *pieces, u32 num, u64 offset);
u32 ibchan_pieces_count(const struct ibchan_piece *pieces, u32 num, u64 offset,
			u64 length);

#endif /* IBCHAN_PIECES_H */
