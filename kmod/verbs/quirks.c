// SPDX-License-Identifier: GPL-2.0-only
/*
 * The only file that asks which driver a device has. Each answer is a flag that names what
 * the driver does differently; its reason stands here. No header tells what a driver does,
 * so Kbuild goes by the kernel's version where that matters (compat.mk).
 */
#include <rdma/ib_verbs.h>

#include "private.h"

/*
 * Quirks of soft-RoCE. compat.mk defines IBCHAN_RXE_* for the kernels that have them.
 *
 * ERR_IS_UNSAFE: From the rewrite of its flushing in 6.2 until the repair that 7.2 has, it may run
 * a received packet a second time when its qp is moved to ERR just then: into the next receive, or
 * through a null pointer. Moving the qp to RESET stops it first; not so in 6.1, where its tasks
 * also run outside of the tasklets that RESET disables.
 *
 * ERR_KEEPS_MR: In 6.1 a qp that goes to ERR behind a packet that names a region may keep its
 * reference to that, and the region's deregistration then waits for 50 s, after which the region is
 * freed all the same. RESET drops the reference.
 *
 * FLUSHES_IN_BH: In 6.1 it flushes in tasklets, and moving a qp to ERR does not sleep: it marks the
 * qp and schedules them. With bottom halves off they run when those are on again, in the thread
 * that closes the channel, and no other thread is woken for them.
 *
 * READS_ON: Before 6.10 soft-RoCE sends a packet again in another task than the one that takes its
 * acknowledgment, so soft-RoCE may read from a region whose work has completed. A deregistration
 * waits for that task; an invalidation does not.
 *
 * EVENT_OUTLIVES_CQ: Until 6.4 it tells of events in a tasklet that nothing stops when the cq is
 * destroyed.
 *
 * RESET_KEEPS_PACKET: Since its tasks became work items in 6.4, moving a qp to RESET empties its
 * queues of packets while the tasks are stopped, and nothing looks there when they may run again. A
 * packet that was being received just then, and comes into a queue in between, stays there and
 * keeps its reference to the qp. The qp's destruction then waits for 50 s, after which the qp is
 * freed all the same. Packets from the network are received under RCU, and are dropped when they
 * find the qp in RESET: RESET once more, a grace period later, empties the queues of them for good.
 * Packets between two qps of one device are received by a worker without RCU, and may still be
 * late.
 */
#define RXE_QUIRK(name)	(__is_defined(IBCHAN_RXE_##name) * IBCHAN_QUIRK_##name)

/*
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
		return IBCHAN_QUIRK_REGISTERS_USER_MEMORY | IBCHAN_QUIRK_REPORTS_FIRST |
		       RXE_QUIRK(ERR_IS_UNSAFE) | RXE_QUIRK(ERR_KEEPS_MR) |
		       RXE_QUIRK(FLUSHES_IN_BH) | RXE_QUIRK(READS_ON) |
		       RXE_QUIRK(EVENT_OUTLIVES_CQ) | RXE_QUIRK(RESET_KEEPS_PACKET);
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
