/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * What a channel does besides carrying work, and what is known of it.
 * <linux/ibchan.h> includes this file.
 */
#ifndef _UAPI_LINUX_IBCHAN_OPTIONS_H
#define _UAPI_LINUX_IBCHAN_OPTIONS_H

#include <linux/types.h>

/* Milliseconds. */
#define IBCHAN_KEEPALIVE_OFF		0xffffffffU
#define IBCHAN_KEEPALIVE_MIN_MS		100U
#define IBCHAN_KEEPALIVE_MAX_MS		3600000U
#define IBCHAN_DEFAULT_KEEPALIVE_MS	10000U

/*
 * What @mode may have set.
 *
 * IBCHAN_MODE_CREDITS: a message is posted only when the peer has a receive for it, so
 * that none is ever refused for want of one (RNR), whatever rnr_retries says. A send,
 * and a write with immediate, takes one credit; each receive that the peer posts
 * grants one, also those posted before the connection was up. With no credit left the
 * post is refused with EAGAIN and IBCHAN_REASON_PEER_CREDITS, and nothing is posted;
 * see channel_credit_wait. Both sides of a connection have it, or none: else the
 * handshake is refused, and so is a request.
 *
 * The peer is told of receives by small writes of the channel's own, which take no
 * place of the caller's and make no completion, but one entry of the send queue's
 * cq. The channel's access needs IBCHAN_ACCESS_REMOTE_WRITE. The first of them may
 * leave as soon as this side is connected: if the peer is not within the time that
 * any first send would fail after, (ack_retries + 1) times the ack time-out, the
 * channel breaks.
 */
#define IBCHAN_MODE_CREDITS	0x1U
#define IBCHAN_MODES		IBCHAN_MODE_CREDITS

/**
 * struct ibchan_options - the builder's choices besides its parameters
 * @keepalive_ms: a peer that has died without a word is noticed within so many
 *	milliseconds, IBCHAN_KEEPALIVE_MIN_MS to IBCHAN_KEEPALIVE_MAX_MS; 0:
 *	IBCHAN_DEFAULT_KEEPALIVE_MS; IBCHAN_KEEPALIVE_OFF: when a work fails, if ever
 * @mode: IBCHAN_MODE_*
 * @reserved: 0
 *
 * All zero is the default. What was chosen can be queried.
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
	__u32 mode;
	__u32 reserved[6];
};

/* Instead of an opcode: no work has failed. */
#define IBCHAN_FACTS_NO_OPCODE	0xffffffffU

/**
 * struct ibchan_facts - what is known of a channel
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

/**
 * struct ibchan_cmd_channel_credit_wait - wait until a message may be posted
 * @size: sizeof(struct ibchan_cmd_channel_credit_wait)
 * @flags: IBCHAN_DEADLINE or 0
 * @channel: handle, of a channel with IBCHAN_MODE_CREDITS, else EOPNOTSUPP
 * @out_credits: messages that the peer has receives for and that were not posted
 *	yet; 0 on an error
 * @timeout_ns: nanoseconds; 0: look once; IBCHAN_TIMEOUT_NEVER; no other negative
 *	number
 *
 * ETIMEDOUT with no credit. Credits make no event and no completion: the kernel looks
 * again and again, first without a pause, then with pauses that grow to 1 ms.
 */
struct ibchan_cmd_channel_credit_wait {
	__u32 size;
	__u32 flags;
	__u32 channel;
	__u32 out_credits;
	__s64 timeout_ns;
};

#endif /* _UAPI_LINUX_IBCHAN_OPTIONS_H */
