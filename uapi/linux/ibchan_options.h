/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/* A channel's keepalive, and facts about it. <linux/ibchan.h> includes this file. */
#ifndef _UAPI_LINUX_IBCHAN_OPTIONS_H
#define _UAPI_LINUX_IBCHAN_OPTIONS_H

#include <linux/types.h>

/* Milliseconds. */
#define IBCHAN_KEEPALIVE_OFF		0xffffffffU
#define IBCHAN_KEEPALIVE_MIN_MS		100U
#define IBCHAN_KEEPALIVE_MAX_MS		3600000U
#define IBCHAN_DEFAULT_KEEPALIVE_MS	10000U

/**
 * struct ibchan_options - the builder's choices besides its parameters
 * @keepalive_ms: a peer that has died without a word is noticed within so many
 *	milliseconds, IBCHAN_KEEPALIVE_MIN_MS to IBCHAN_KEEPALIVE_MAX_MS; 0:
 *	IBCHAN_DEFAULT_KEEPALIVE_MS; IBCHAN_KEEPALIVE_OFF: when a work fails, if ever
 * @reserved: 0
 *
 * All zero is the default. channel_query tells the values in effect.
 *
 * After half of @keepalive_ms without a completion the kernel posts an RDMA write of
 * no bytes, which uses up nothing of the caller's, here or at the peer, and makes no
 * completion. The channel breaks with ETIMEDOUT when the device gets no answer, that
 * is after (ack_retries + 1) ack time-outs of 4.096 us * 2^ack_timeout: together 11/16
 * of @keepalive_ms, but 40 ms more than half of it at least, and these. So @keepalive_ms
 * holds where they take at most 5/16 of it, and it is 214 at least. A device may take up to four
 * times as long for one, or for ever; the kernel waits no longer than that, and then breaks the
 * channel with IBCHAN_STATUS_RESP_TIMEOUT_ERR.
 * With ack_timeout 0 lost packets are not sent again, and nobody gives up.
 *
 * A work of either queue that completes is a sign of life like the answer. While works that were
 * posted before the write have not completed, the device alone decides: a message may wait
 * for the peer's receive, and a long transfer take its time.
 *
 * The channels of a device together post at most 3200 of these in a second, and half as
 * many where their answers have to be fetched. With so many channels, or so impatient
 * ones, that more would be due, all of them take their turn, and notice_ms of struct
 * ibchan_facts counts that in.
 *
 * The peer has to allow IBCHAN_ACCESS_REMOTE_WRITE on its channel; regions are not
 * concerned. To one that does not, or does not say because it is no ibchan, nothing is sent.
 *
 * A handshake by endpoints says nothing of the peer, which may connect its own side whenever
 * it likes. With a @keepalive_ms of 0 it is asked nothing until the first work of this side
 * has completed; that it died before that, the first work tells. To a number it is held: a
 * peer that has not connected its side when so many milliseconds have passed counts as dead.
 */
struct ibchan_options {
	__u32 keepalive_ms;
	__u32 reserved[7];
};

/* Instead of an opcode: no work has failed. */
#define IBCHAN_FACTS_NO_OPCODE	0xffffffffU

/**
 * struct ibchan_facts - observations about a channel
 * @notice_ms: milliseconds in which a silent peer is noticed, see struct
 *	ibchan_options; 0: not
 * @probes_sent: how often the peer was asked for a sign of life
 * @probes_answered: how often it gave one
 * @peer_qpn: the peer's queue pair number; 0: there is no peer yet
 * @peer_gid: the peer's address
 * @device: name of the own device, also when it has left; ends with a NUL
 * @age_ns: nanoseconds since it was connected; 0: it was not
 * @ack_timeout_ns: nanoseconds after which the device sends again, ack_retries times;
 *	0: never
 * @failed_wr_id: of the work that failed first, which flushed ones do not count as
 * @failed_opcode: of that work; IBCHAN_FACTS_NO_OPCODE: there is none
 * @failed_vendor_err: the device's own code for that
 */
struct ibchan_facts {
	__u32 notice_ms;
	__u32 probes_sent;
	__u32 probes_answered;
	__u32 peer_qpn;
	__u8 peer_gid[16];
	char device[64];
	__aligned_u64 age_ns;
	__aligned_u64 ack_timeout_ns;
	__aligned_u64 failed_wr_id;
	__u32 failed_opcode;
	__u32 failed_vendor_err;
};

#endif /* _UAPI_LINUX_IBCHAN_OPTIONS_H */
