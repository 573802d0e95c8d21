/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The wire of the short way: a frame is what one send carries. All numbers are in network order.
 * Nothing here has state, sleeps or trusts a peer.
 *
 * A window limits how many frames with a message a side may send before its peer has taken those
 * before them. Each frame tells how many messages its sender has taken so far.
 */
#ifndef _LIBIBCHAN_FRAME_H
#define _LIBIBCHAN_FRAME_H

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <linux/types.h>

/**
 * struct greeting - the limits that each side of the short way tells the other, in network order
 * @magic: GREETING_MAGIC
 * @message_bytes: the longest message that may lie behind a frame to this side
 * @messages: how many messages the peer may send before they are taken
 * @reserved: 0
 */
struct greeting {
	__be32 magic;
	__be32 message_bytes;
	__be32 messages;
	__be32 reserved;
};

#define GREETING_MAGIC	0x49424d32U	/* "IBM2" */

/* Returns whether this is what a peer of the short way says. */
static inline bool greeting_read(const void *data, __u32 length, struct greeting *greeting)
{
	if (length < sizeof(*greeting))
		return false;
	memcpy(greeting, data, sizeof(*greeting));
	return greeting->magic == htobe32(GREETING_MAGIC) && greeting->message_bytes &&
	       greeting->messages;
}

/* The longest message: 2^40 bytes. */
#define MESSAGE_MAX	0x10000000000ULL

/**
 * enum frame_kind - the content of a frame
 * @FRAME_BYTES: a message, behind the frame
 * @FRAME_OFFER: where a message lies that the peer is to read: struct frame_offer
 * @FRAME_TAKEN: nothing but what each frame tells
 * @FRAME_END: the sender has closed its channel; no frame follows
 */
enum frame_kind {
	FRAME_BYTES = 1,
	FRAME_OFFER,
	FRAME_TAKEN,
	FRAME_END,
};

/**
 * struct frame - the beginning of each send
 * @kind: enum frame_kind
 * @reserved: 0
 * @taken: messages that the sender has ever taken of its peer's, modulo 2^32
 * @length: of the message, in bytes; 0 where the frame carries none
 */
struct frame {
	__u8 kind;
	__u8 reserved[3];
	__be32 taken;
	__be64 length;
};

/**
 * struct frame_offer - a message in the sender's memory
 * @frame: of kind FRAME_OFFER
 * @addr: of its first byte
 * @rkey: key to it, until the peer has taken the message
 * @reserved: 0
 */
struct frame_offer {
	struct frame frame;
	__be64 addr;
	__be32 rkey;
	__be32 reserved;
};

/**
 * struct arrival - a frame that has arrived, in host order
 * @kind: enum frame_kind
 * @taken: as in struct frame
 * @length: the same
 * @addr: of an offer
 * @rkey: the same
 */
struct arrival {
	__u32 kind;
	__u32 taken;
	__u64 length;
	__u64 addr;
	__u32 rkey;
};

/**
 * struct window - messages of one side on their way to the other
 * @size: how many may be under way
 * @sent: ever, modulo 2^32
 * @taken: of them, by the peer
 * @box: of @size, where the next one lies; @sent modulo @size jumps where @sent wraps
 */
struct window {
	__u32 size;
	__u32 sent;
	__u32 taken;
	__u32 box;
};

static inline bool window_is_full(const struct window *window)
{
	return window->sent - window->taken >= window->size;
}

/* One more is under way. */
static inline void window_send(struct window *window)
{
	window->sent++;
	window->box = window->box + 1 < window->size ? window->box + 1 : 0;
}

/* A peer cannot have taken more than was sent to it, nor take anything back. */
static inline int window_advance(struct window *window, __u32 taken)
{
	if (taken - window->taken > window->sent - window->taken)
		return -EPROTO;
	window->taken = taken;
	return 0;
}

static inline struct frame frame_make(enum frame_kind kind, __u32 taken, __u64 length)
{
	return (struct frame) {
		.kind = (__u8)kind,
		.taken = htobe32(taken),
		.length = htobe64(length),
	};
}

/* Returns 0, or -EPROTO for what no peer of the short way sends. */
static inline int frame_read(const void *bytes, __u32 size, struct arrival *arrival)
{
	struct frame_offer offer;
	struct frame frame;
	bool is_good = false;

	if (size < sizeof(frame))
		return -EPROTO;
	memcpy(&frame, bytes, sizeof(frame));
	*arrival = (struct arrival) {
		.kind = frame.kind,
		.taken = be32toh(frame.taken),
		.length = be64toh(frame.length),
	};
	switch (arrival->kind) {
	case FRAME_BYTES:
		is_good = arrival->length == size - sizeof(frame);
		break;
	case FRAME_OFFER:
		if (size != sizeof(offer))
			break;
		memcpy(&offer, bytes, sizeof(offer));
		arrival->addr = be64toh(offer.addr);
		arrival->rkey = be32toh(offer.rkey);
		is_good = !offer.reserved && arrival->length && arrival->length <= MESSAGE_MAX &&
			  arrival->addr <= UINT64_MAX - arrival->length;
		break;
	case FRAME_TAKEN:
	case FRAME_END:
		is_good = size == sizeof(frame) && !arrival->length;
		break;
	}
	return is_good && !frame.reserved[0] && !frame.reserved[1] && !frame.reserved[2] ?
	       0 : -EPROTO;
}

#endif /* _LIBIBCHAN_FRAME_H */
