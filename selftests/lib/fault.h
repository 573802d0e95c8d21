/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rules for endpoints once more, written down from the contract and not from the module.
 */
#ifndef TEST_FAULT_H
#define TEST_FAULT_H

#include <linux/types.h>

/*
 * Why a channel with an IPv4 address must refuse these bytes of a peer's: the first
 * IBCHAN_REASON_* that applies, or IBCHAN_REASON_NONE.
 */
__u32 endpoint_fault(const __u8 *bytes);

#endif /* TEST_FAULT_H */
