// SPDX-License-Identifier: GPL-2.0-only
/* The states of a channel, and which may follow which. Pure. */
#include <linux/bits.h>
#include <linux/errno.h>
#include <linux/kernel.h>

#include "rules.h"

/*
 * A failed handshake goes back to PREPARED. CLOSED comes from everywhere and is
 * the end; BROKEN only ever leads there.
 */
static const u8 state_next[] = {
	[IBCHAN_CHANNEL_PREPARED] = BIT(IBCHAN_CHANNEL_CONNECTING) |
				    BIT(IBCHAN_CHANNEL_BROKEN) |
				    BIT(IBCHAN_CHANNEL_CLOSED),
	[IBCHAN_CHANNEL_CONNECTING] = BIT(IBCHAN_CHANNEL_PREPARED) |
				      BIT(IBCHAN_CHANNEL_CONNECTED) |
				      BIT(IBCHAN_CHANNEL_BROKEN) |
				      BIT(IBCHAN_CHANNEL_CLOSED),
	[IBCHAN_CHANNEL_CONNECTED] = BIT(IBCHAN_CHANNEL_BROKEN) |
				     BIT(IBCHAN_CHANNEL_CLOSED),
	[IBCHAN_CHANNEL_BROKEN] = BIT(IBCHAN_CHANNEL_CLOSED),
	[IBCHAN_CHANNEL_CLOSED] = 0,
};

/* May a channel go from one state to another? */
bool ibchan_state_may(u32 from, u32 to)
{
	return from < ARRAY_SIZE(state_next) && (state_next[from] & BIT(to));
}

/*
 * The answer of a post in @state; @error is the channel's first error, positive. 0 when the channel
 * takes work; -ENOTCONN before the handshake; -ENODEV when the device is gone; -ESHUTDOWN when the
 * channel is broken.
 */
int ibchan_state_error(u32 state, u32 error)
{
	switch (state) {
	case IBCHAN_CHANNEL_CONNECTED:
		return 0;
	case IBCHAN_CHANNEL_PREPARED:
	case IBCHAN_CHANNEL_CONNECTING:
		return -ENOTCONN;
	default:
		return error == ENODEV ? -ENODEV : -ESHUTDOWN;
	}
}
