// SPDX-License-Identifier: GPL-2.0-only
/*
 * Estimates how much kernel memory an object takes, its driver's part included. No driver
 * tells: the number of a queue's entries and the size of an entry are powers of
 * two, as drivers make them. The estimates err upward. For soft-RoCE, which takes about the
 * most memory of all drivers, they are less than twice the real amount: see budget_test. Pure.
 */
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/sizes.h>

#include "rules.h"

/* Drivers' completion entries have 32 to 128 bytes. */
#define CQE_SIZE	128
/* The queue's own struct, the driver's, what both are rounded up to. */
#define CQ_FIXED	SZ_8K

/* Bytes that a driver puts before the elements of a request: soft-RoCE 200, mlx5 192. */
#define SEND_HEADER	208
#define RECV_HEADER	48
#define MIN_WQE	64
/* The channel's own struct, a queue pair, a socket, ids of the connection manager. */
#define CHANNEL_FIXED	(20 * SZ_1K)
/* A read or atomic of the peer's that is under way. */
#define RD_ATOMIC_SIZE	64

/* The region's own struct, the driver's, the first page of its table. */
#define MR_FIXED	5632
/* An entry of a scatterlist, and one in our list of pages. */
#define MR_PAGE		40
/* An entry in the driver's list of pages. */
#define MR_ROOM		8

/* Page tables, and lists of pages. */
static u64 with_tables(u64 size)
{
	return size + size / 64;
}

static u64 entries_of(u32 depth)
{
	return roundup_pow_of_two((u64)depth + 1);
}

static u64 wqe_size(u32 header, u32 payload)
{
	return max_t(u64, roundup_pow_of_two(header + payload), MIN_WQE);
}

static u64 elements_size(u32 max_sge)
{
	return max_sge * sizeof(struct ib_sge);
}

/* The driver's entries of @wqe bytes, and our places: of the work, its regions and its ranges. */
static u64 queue_size(const struct ibchan_queue_size *queue, u64 wqe)
{
	u64 place = sizeof(struct ibchan_work *) + queue->max_sge * sizeof(struct ibchan_mr *);

	if (queue->exclusive)
		place += queue->max_sge * sizeof(struct ibchan_range);
	/* The queue's own work, for a request that brings none. */
	if (queue->has_works)
		place += sizeof(struct ibchan_work);
	return with_tables(entries_of(queue->depth + IBCHAN_MARKERS) * wqe +
			   roundup_pow_of_two(queue->depth) * place);
}

u64 ibchan_footprint_cq(u32 entries)
{
	return CQ_FIXED + with_tables(entries_of(entries) * CQE_SIZE);
}

/*
 * @max_inline: bytes that a request may carry; @max_rd_atomic: reads and atomics of the peer's that
 * the device has room for.
 */
u64 ibchan_footprint_channel(const struct ibchan_queue_size *send,
			     const struct ibchan_queue_size *recv, u32 max_inline,
			     u32 max_rd_atomic)
{
	u64 send_wqe = wqe_size(SEND_HEADER, max_t(u64, elements_size(send->max_sge), max_inline));
	u64 recv_wqe = wqe_size(RECV_HEADER, elements_size(recv->max_sge));

	return CHANNEL_FIXED + max_rd_atomic * RD_ATOMIC_SIZE + queue_size(send, send_wqe) +
	       queue_size(recv, recv_wqe);
}

/* A region of @pages without its memory; the device's region has room for @room pages. */
u64 ibchan_footprint_mr(u64 pages, u64 room)
{
	return MR_FIXED + pages * MR_PAGE + room * MR_ROOM;
}
