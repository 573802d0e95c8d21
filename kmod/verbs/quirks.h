/* SPDX-License-Identifier: GPL-2.0-only */
/* Flags for drivers that differ from others: see quirks.c. */
#ifndef IBCHAN_QUIRKS_H
#define IBCHAN_QUIRKS_H

#include <linux/bits.h>
#include <linux/types.h>

struct ib_device;

/**
 * enum ibchan_quirk - flags of a device's driver, constant while the device is there
 * @IBCHAN_QUIRK_REGISTERS_USER_MEMORY: reg_user_mr() works for a kernel consumer
 * @IBCHAN_QUIRK_READS_INTO_ANY: an iWARP read needs no remote write access of its target
 * @IBCHAN_QUIRK_ERR_IS_UNSAFE: a qp must be stopped by RESET, not by ERR
 * @IBCHAN_QUIRK_ERR_KEEPS_MR: a qp in ERR may keep the region that the last packet named
 * @IBCHAN_QUIRK_FLUSHES_IN_BH: a qp is flushed in tasklets, moving it to ERR does not sleep
 * @IBCHAN_QUIRK_EVENT_OUTLIVES_CQ: a cq must not be destroyed before an event that is due has come
 * @IBCHAN_QUIRK_READS_ON: the device may read from a region whose work has completed
 * @IBCHAN_QUIRK_REGISTERS_BY_DMA: peers know what is registered fast by its DMA address
 * @IBCHAN_QUIRK_REPORTS_FIRST: that a peer's request is refused is reported before the peer is told
 * @IBCHAN_QUIRK_RESET_KEEPS_PACKET: RESET may leave a packet in a qp, whose end waits for it
 */
enum ibchan_quirk {
	IBCHAN_QUIRK_REGISTERS_USER_MEMORY = BIT(0),
	IBCHAN_QUIRK_READS_INTO_ANY = BIT(1),
	IBCHAN_QUIRK_ERR_IS_UNSAFE = BIT(3),
	IBCHAN_QUIRK_ERR_KEEPS_MR = BIT(4),
	IBCHAN_QUIRK_FLUSHES_IN_BH = BIT(5),
	IBCHAN_QUIRK_READS_ON = BIT(6),
	IBCHAN_QUIRK_EVENT_OUTLIVES_CQ = BIT(7),
	IBCHAN_QUIRK_REGISTERS_BY_DMA = BIT(8),
	IBCHAN_QUIRK_REPORTS_FIRST = BIT(9),
	IBCHAN_QUIRK_RESET_KEEPS_PACKET = BIT(10),
};

u32 ibchan_quirks_of(const struct ib_device *ib);

#endif /* IBCHAN_QUIRKS_H */
