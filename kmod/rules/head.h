/* SPDX-License-Identifier: GPL-2.0-only */
/* The opcode, the flags and the number of elements of a request, in one word. */
#ifndef IBCHAN_HEAD_H
#define IBCHAN_HEAD_H

#include <linux/build_bug.h>
#include <rdma/ibchan.h>

/* Of ibchan_wr.head: where the bits of an opcode and of flags are. */
#ifdef __LITTLE_ENDIAN
#define IBCHAN_HEAD(opcode, flags)	((0xffU & (opcode)) | (0xffU & (flags)) << 8)
#else
#define IBCHAN_HEAD(opcode, flags)	((0xffU & (opcode)) << 24 | (0xffU & (flags)) << 16)
#endif

/*
 * Of ibchan_wr.head: an opcode that not all channels take, or a flag that asks for more than
 * ranges of the request's own.
 */
#define IBCHAN_ODD_HEAD	IBCHAN_HEAD(~(IBCHAN_OP_COMPARE_SWAP - 1), ~IBCHAN_WR_EXCLUSIVE)
static_assert(!(IBCHAN_OP_COMPARE_SWAP & (IBCHAN_OP_COMPARE_SWAP - 1)));

#endif /* IBCHAN_HEAD_H */
