/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/* The history of a channel. <linux/ibchan.h> includes this file. */
#ifndef _UAPI_LINUX_IBCHAN_HISTORY_H
#define _UAPI_LINUX_IBCHAN_HISTORY_H

#include <linux/types.h>

/* A channel keeps so many; then the oldest ones go. */
#define IBCHAN_HISTORY_MAX	64

/*
 * Events of a channel: X(number, NAME). The comment names @detail and @value; @error
 * is an errno where there is one.
 */
#define IBCHAN_HISTORY_KINDS(X)						\
	X(1, BUILT)		/* qpn; port << 32 | GID index */	\
	X(2, HANDSHAKE)		/* it failed: reason code; - */		\
	X(3, CONNECTED)		/* the peer's qpn; mtu */		\
	X(4, POST_REFUSED)	/* reason code; wr_id. Once until it changes */ \
	X(5, WORK_FAILED)	/* status | opcode << 16; wr_id */	\
	X(6, VENDOR_ERROR)	/* the device's code for that; - */	\
	X(7, BROKEN)		/* status; - */				\
	X(8, PROBES)		/* answered; sent. The last of a row of these */ \
	X(9, ADDRESS)		/* gone, with an errno; else there again: GID index; port */ \
	X(10, PORT)		/* it is down, or active: port; enum ib_event_type */	\
	X(11, CM)		/* enum ibchan_stage, begun or failed; rdma_cm's code */ \
	X(12, DISCONNECTED)	/* by the peer, by address: -; - */			\
	X(13, CLOSED)		/* -; - */						\
	X(14, WAY_CHANGED)	/* 0: to the peer, 1: from here, by address; - */

#define IBCHAN_HISTORY_NUMBER(nr, NAME) IBCHAN_HISTORY_##NAME = (nr),
enum ibchan_history_kind {
	IBCHAN_HISTORY_KINDS(IBCHAN_HISTORY_NUMBER)
};

/**
 * struct ibchan_history_event - one thing that happened
 * @time_ns: when, on CLOCK_MONOTONIC
 * @number: how many the channel had seen before
 * @kind: enum ibchan_history_kind
 * @error: errno, positive; 0: none
 * @detail: see IBCHAN_HISTORY_KINDS
 * @value: see IBCHAN_HISTORY_KINDS
 */
struct ibchan_history_event {
	__aligned_u64 time_ns;
	__u32 number;
	__u32 kind;
	__u32 error;
	__u32 detail;
	__aligned_u64 value;
};

/**
 * struct ibchan_cmd_channel_history - read the last events of a channel
 * @size: sizeof(struct ibchan_cmd_channel_history)
 * @flags: 0
 * @entries: address of the first struct ibchan_history_event
 * @entry_len: bytes from one to the next: sizeof(struct ibchan_history_event), or up to a
 *	page, of which the kernel zeroes what it does not know
 * @entry_num: in: how many there is room for; out: how many were written, the youngest
 *	ones, in the order in which they happened
 * @channel: handle
 * @reserved: 0
 *
 * The command also answers for a channel that has broken, or whose device has left.
 */
struct ibchan_cmd_channel_history {
	__u32 size;
	__u32 flags;
	__aligned_u64 entries;
	__u32 entry_len;
	__u32 entry_num;
	__u32 channel;
	__u32 reserved;
};

#endif /* _UAPI_LINUX_IBCHAN_HISTORY_H */
