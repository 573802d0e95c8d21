// SPDX-License-Identifier: GPL-2.0-only
/*
 * The states of a channel, and the statuses of its works: their one table is IBCHAN_STATUSES. Pure.
 */
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/kernel.h>

#include "compat.h"
#include "rules.h"

/* The contract's numbers are the verbs' own. */
#define STATUS_ASSERT(nr, NAME, error, CLASS, hint) \
	static_assert((int)IB_WC_##NAME == (nr));
IBCHAN_STATUSES(STATUS_ASSERT)

static_assert((int)IBCHAN_ACCESS_LOCAL_WRITE == IB_ACCESS_LOCAL_WRITE);
static_assert((int)IBCHAN_ACCESS_REMOTE_WRITE == IB_ACCESS_REMOTE_WRITE);
static_assert((int)IBCHAN_ACCESS_REMOTE_READ == IB_ACCESS_REMOTE_READ);
static_assert((int)IBCHAN_ACCESS_REMOTE_ATOMIC == IB_ACCESS_REMOTE_ATOMIC);
static_assert((int)IBCHAN_PORT_NOP == IB_PORT_NOP);
static_assert((int)IBCHAN_PORT_DOWN == IB_PORT_DOWN);
static_assert((int)IBCHAN_PORT_INIT == IB_PORT_INIT);
static_assert((int)IBCHAN_PORT_ARMED == IB_PORT_ARMED);
static_assert((int)IBCHAN_PORT_ACTIVE == IB_PORT_ACTIVE);
static_assert((int)IBCHAN_PORT_ACTIVE_DEFER == IB_PORT_ACTIVE_DEFER);
static_assert(IBCHAN_LINK_LAYER_INFINIBAND == IB_LINK_LAYER_INFINIBAND);
static_assert(IBCHAN_LINK_LAYER_ETHERNET == IB_LINK_LAYER_ETHERNET);

/*
 * May a channel go from one state to another? A failed handshake goes back to PREPARED. CLOSED
 * comes from everywhere and is the end; BROKEN only ever leads there.
 */
bool ibchan_state_may(u32 from, u32 to)
{
	switch (to) {
	case IBCHAN_CHANNEL_CONNECTING:
		return from == IBCHAN_CHANNEL_PREPARED;
	case IBCHAN_CHANNEL_PREPARED:
	case IBCHAN_CHANNEL_CONNECTED:
		return from == IBCHAN_CHANNEL_CONNECTING;
	case IBCHAN_CHANNEL_BROKEN:
	case IBCHAN_CHANNEL_CLOSED:
		return from < to;
	default:
		return false;
	}
}

/*
 * The answer of a post in @state; @error is the channel's first error, positive. 0 when the channel
 * takes work; -ENOTCONN before the handshake; -ENODEV when the device is gone; -ESHUTDOWN when the
 * channel is broken.
 */
int ibchan_state_error(u32 state, u32 error)
{
	if (state < IBCHAN_CHANNEL_BROKEN)
		return state == IBCHAN_CHANNEL_CONNECTED ? 0 : -ENOTCONN;
	return error == ENODEV ? -ENODEV : -ESHUTDOWN;
}

struct status_row {
	const char *name;
	const char *hint;
	u8 error;
	u8 class;
};

#define STATUS_ROW(nr, NAME, error, CLASS, hint) \
	[nr] = { #NAME, hint, error, IBCHAN_CLASS_##CLASS },
static const struct status_row status_rows[] = {
	IBCHAN_STATUSES(STATUS_ROW)
};

static const struct status_row status_unknown = {
	"UNKNOWN", "not a status that the verbs know", EIO, IBCHAN_CLASS_UNKNOWN,
};

static const struct status_row *status_row(u32 status)
{
	return status < ARRAY_SIZE(status_rows) ? &status_rows[status] : &status_unknown;
}

/**
 * ibchan_status_error - errno of a work completion status
 * @status: enum ibchan_status
 *
 * Context: any.
 * Return: positive; 0 for success; EIO for a status that the table lacks.
 */
u32 ibchan_status_error(u32 status)
{
	return status_row(status)->error;
}
EXPORT_SYMBOL_NS_GPL(ibchan_status_error, IBCHAN_NS);

/**
 * ibchan_status_class - the kind of failure of a status
 * @status: enum ibchan_status
 *
 * Context: any.
 * Return: enum ibchan_class.
 */
u32 ibchan_status_class(u32 status)
{
	return status_row(status)->class;
}
EXPORT_SYMBOL_NS_GPL(ibchan_status_class, IBCHAN_NS);

/**
 * ibchan_status_name - the verbs' name of a status
 * @status: enum ibchan_status
 *
 * Context: any.
 * Return: a name without its prefix, such as "RETRY_EXC_ERR"; "UNKNOWN".
 */
const char *ibchan_status_name(u32 status)
{
	return status_row(status)->name;
}
EXPORT_SYMBOL_NS_GPL(ibchan_status_name, IBCHAN_NS);

/**
 * ibchan_status_hint - the usual cause of a status
 * @status: enum ibchan_status
 *
 * Context: any.
 * Return: a sentence; empty for success.
 */
const char *ibchan_status_hint(u32 status)
{
	return status_row(status)->hint;
}
EXPORT_SYMBOL_NS_GPL(ibchan_status_hint, IBCHAN_NS);
