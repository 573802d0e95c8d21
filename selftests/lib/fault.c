// SPDX-License-Identifier: GPL-2.0-only
#include <stdbool.h>
#include <string.h>

#include <linux/ibchan.h>

#include "fault.h"

static bool is_zero(const __u8 *bytes, size_t n)
{
	while (n--) {
		if (*bytes++)
			return false;
	}
	return true;
}

/* Of what comes first, the reason has to speak. */
static __u32 fault_of_header(const __u8 *b)
{
	if (memcmp(b, "IBCH", 4))
		return IBCHAN_REASON_ENDPOINT_MAGIC;
	if (is_zero(b + 4, 2))
		return IBCHAN_REASON_ENDPOINT_VERSION;
	if (b[6] != IBCHAN_LINK_LAYER_INFINIBAND &&
	    (b[39] & IBCHAN_ENDPOINT_GRH || !is_zero(b + 56, 2)))
		return IBCHAN_REASON_ENDPOINT_RESERVED;
	if (b[6] != IBCHAN_LINK_LAYER_ETHERNET)
		return IBCHAN_REASON_LINK_LAYER;
	if (b[8] || (!b[9] && !b[10] && b[11] < 2))
		return IBCHAN_REASON_PEER_QPN;
	if (b[12])
		return IBCHAN_REASON_PEER_PSN;
	if (b[7] < 1 || b[7] > 5)
		return IBCHAN_REASON_PEER_MTU;
	return b[38] ? IBCHAN_REASON_NONE : IBCHAN_REASON_PEER_RD_ATOMIC;
}

/* For an end that has an IPv4 address. */
static __u32 fault_of_address(const __u8 *b)
{
	static const __u8 broadcast[4] = { 255, 255, 255, 255 };
	const __u8 *ip = b + 28;
	const __u8 *mac = b + 32;

	if (!is_zero(b + 16, 10) || b[26] != 0xff || b[27] != 0xff)
		return IBCHAN_REASON_GID_FAMILY;
	if (is_zero(ip, 4) || ip[0] >> 4 == 14 || !memcmp(ip, broadcast, 4))
		return IBCHAN_REASON_PEER_GID;
	if ((mac[0] & 1) || is_zero(mac, 6))
		return IBCHAN_REASON_PEER_MAC;
	return IBCHAN_REASON_NONE;
}

__u32 endpoint_fault(const __u8 *bytes)
{
	__u32 fault = fault_of_header(bytes);

	return fault ? fault : fault_of_address(bytes);
}
