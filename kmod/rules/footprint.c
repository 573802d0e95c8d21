// SPDX-License-Identifier: GPL-2.0-only
/*
 * How much kernel memory an object takes, its driver's part included. No driver tells, so
 * these are estimates from entries and entry sizes: queues are of a power of two of places,
 * and places of a power of two of bytes, as drivers make them. They err upward, but on
 * soft-RoCE, which takes about the most, never to twice of what it takes: budget_test looks.
 * Pure.
 */
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/sizes.h>

#include "footprint.h"
#include "internal.h"

/* Drivers' completion entries have 32 to 128 bytes. */
#define CQE_SIZE	128
/* The queue's own struct, the driver's, what both are rounded up to. */
#define CQ_FIXED	SZ_8K

/* What a driver puts before the elements of a request: soft-RoCE 200 bytes, mlx5 192. */
#define SEND_HEADER	208
#define RECV_HEADER	48
#define MIN_PLACE	64
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

static u64 places(u32 depth)
{
	return roundup_pow_of_two((u64)depth + 1);
}

static u64 place_size(u32 header, u32 payload)
{
	return max_t(u64, roundup_pow_of_two(header + payload), MIN_PLACE);
}

static u64 elements_size(u32 max_sge)
{
	return max_sge * sizeof(struct ib_sge);
}

/* The queue's own works, for requests that bring none, and their elements. */
static u64 own_place(const struct ibchan_queue *queue)
{
	u64 size = sizeof(*queue->works);

	if (queue->cq->sink->done)
		size += sizeof(*queue->slots) + queue->max_sge * sizeof(*queue->sges);
	return size;
}

static u64 queue_size(const struct ibchan_queue *queue, u32 depth, u64 place)
{
	return with_tables(places(depth + queue->spare) * place +
			   roundup_pow_of_two(depth) * own_place(queue));
}

/**
 * ibchan_footprint_cq - what a completion queue takes
 * @entries: of it
 *
 * Return: bytes.
 */
u64 ibchan_footprint_cq(u32 entries)
{
	return CQ_FIXED + with_tables(places(entries) * CQE_SIZE);
}

/**
 * ibchan_footprint_channel - what a channel takes
 * @ch: its parameters are chosen, and its queues know their cqs, elements and spare places
 *
 * Return: bytes.
 */
u64 ibchan_footprint_channel(const struct ibchan_channel *ch)
{
	const struct ibchan_params *params = &ch->params;
	u64 send = place_size(SEND_HEADER, max_t(u64, elements_size(params->max_send_sge),
						 params->max_inline_data));
	u64 recv = place_size(RECV_HEADER, elements_size(params->max_recv_sge));

	return CHANNEL_FIXED + ch->dev->attr.max_rd_atomic * RD_ATOMIC_SIZE +
	       queue_size(&ch->send, params->max_send_wr, send) +
	       queue_size(&ch->recv, params->max_recv_wr, recv);
}

/**
 * ibchan_footprint_mr - what a memory region takes, its memory not included
 * @pages: that it spans
 * @room: pages that the device's region has room for
 *
 * Return: bytes.
 */
u64 ibchan_footprint_mr(u64 pages, u64 room)
{
	return MR_FIXED + pages * MR_PAGE + room * MR_ROOM;
}
