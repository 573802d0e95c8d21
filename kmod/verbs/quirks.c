// SPDX-License-Identifier: GPL-2.0-only
/*
 * The only file that asks which driver a device has. Each answer is a flag that names what
 * the driver does differently; its reason stands here. No header tells what a driver does,
 * so Kbuild goes by the kernel's version where that matters (compat.mk).
 */
#include <rdma/ib_verbs.h>

#include "verbs.h"
#include "quirks.h"

/*
 * From the rewrite of its flushing in 6.2 until the repair that 7.2 has, soft-RoCE may run a
 * received packet a second time when its qp is moved to ERR just then: into the next receive,
 * or through a null pointer. Moving the qp to RESET stops it first; not so in 6.1, where its
 * tasks also run outside of the tasklets that RESET disables.
 */
#ifdef IBCHAN_RXE_ERR_IS_UNSAFE
#define RXE_ERR_IS_UNSAFE	IBCHAN_QUIRK_ERR_IS_UNSAFE
#else
#define RXE_ERR_IS_UNSAFE	0
#endif

/*
 * In 6.1 a qp of soft-RoCE that goes to ERR behind a packet that names a region may keep its
 * reference to that, and the region's deregistration then waits for 50 s, after which the
 * region is freed all the same. RESET drops the reference.
 */
#ifdef IBCHAN_RXE_ERR_KEEPS_MR
#define RXE_ERR_KEEPS_MR	IBCHAN_QUIRK_ERR_KEEPS_MR
#else
#define RXE_ERR_KEEPS_MR	0
#endif

/*
 * In 6.1 soft-RoCE flushes in tasklets, and moving a qp to ERR does not sleep: it marks the
 * qp and schedules them. With bottom halves off they run when those are on again, in the
 * thread that closes the channel, and no other thread is woken for them.
 */
#ifdef IBCHAN_RXE_FLUSHES_IN_BH
#define RXE_FLUSHES_IN_BH	IBCHAN_QUIRK_FLUSHES_IN_BH
#else
#define RXE_FLUSHES_IN_BH	0
#endif

/*
 * Before 6.10 soft-RoCE sends a packet again in another task than the one that takes its
 * acknowledgment, so it may still read from a region whose work has completed. A
 * deregistration waits for that; an invalidation does not.
 */
#ifdef IBCHAN_RXE_READS_ON
#define RXE_READS_ON		IBCHAN_QUIRK_READS_ON
#else
#define RXE_READS_ON		0
#endif

/*
 * Until 6.4 soft-RoCE tells of events in a tasklet that nothing stops when the cq is destroyed.
 */
#ifdef IBCHAN_RXE_EVENT_OUTLIVES_CQ
#define RXE_EVENT_OUTLIVES_CQ	IBCHAN_QUIRK_EVENT_OUTLIVES_CQ
#else
#define RXE_EVENT_OUTLIVES_CQ	0
#endif

/*
 * Since its tasks became work items in 6.4, moving a qp of soft-RoCE to RESET empties its queues of
 * packets while the tasks are stopped, and nothing looks there when they may run again. A packet
 * that was being received just then, and comes into a queue in between, stays there and keeps its
 * reference to the qp. The qp's destruction then waits for 50 s, after which the qp is freed all
 * the same. Packets from the network are received under RCU, and are dropped when they find the qp
 * in RESET: RESET once more, a grace period later, empties the queues of them for good. Packets
 * between two qps of one device are received by a worker without RCU, and may still be late.
 */
#ifdef IBCHAN_RXE_RESET_KEEPS_PACKET
#define RXE_RESET_KEEPS_PACKET	IBCHAN_QUIRK_RESET_KEEPS_PACKET
#else
#define RXE_RESET_KEEPS_PACKET	0
#endif

/**
 * ibchan_quirks_of - the quirks of a device's driver
 * @ib: the device
 *
 * Soft-RoCE completes a receive that fails, or reports an event, then tells the peer, then moves
 * the qp to ERR and flushes both queues; moved to ERR in between it would not tell the peer. The
 * drivers that register user memory do so without a user-space object behind it, read in their
 * sources. Others dereference one, or register other pages. ocrdma takes the distance of a
 * region's address from the DMA address of its first page for the offset in that page.
 */
u32 ibchan_quirks_of(const struct ib_device *ib)
{
	switch (ib->ops.driver_id) {
	case RDMA_DRIVER_RXE:
		return IBCHAN_QUIRK_REGISTERS_USER_MEMORY | RXE_ERR_IS_UNSAFE |
		       RXE_ERR_KEEPS_MR | RXE_FLUSHES_IN_BH | RXE_READS_ON |
		       RXE_EVENT_OUTLIVES_CQ | RXE_RESET_KEEPS_PACKET |
		       IBCHAN_QUIRK_REPORTS_FIRST;
	case RDMA_DRIVER_SIW:
		return IBCHAN_QUIRK_REGISTERS_USER_MEMORY | IBCHAN_QUIRK_READS_INTO_ANY;
	case RDMA_DRIVER_MLX5:
	case RDMA_DRIVER_MLX4:
	case RDMA_DRIVER_BNXT_RE:
	case RDMA_DRIVER_CXGB4:
	case RDMA_DRIVER_ERDMA:
		return IBCHAN_QUIRK_REGISTERS_USER_MEMORY;
	case RDMA_DRIVER_OCRDMA:
		return IBCHAN_QUIRK_REGISTERS_BY_DMA;
	default:
		return 0;
	}
}
