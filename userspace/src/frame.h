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

/* The limits that each side of the short way tells the other, in network order. */
struct greeting {
	__be32 magic;		/* GREETING_MAGIC */
	__be32 message_bytes;	/* the longest message that may lie behind a frame to this side */
	__be32 messages;	/* how many messages the peer may send before they are taken */
	__be32 reserved;	/* 0 */
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

/* The content of a frame. */
enum frame_kind {
	FRAME_BYTES = 1,	/* a message, behind the frame */
	FRAME_OFFER,	/* where a message lies that the peer is to read: struct frame_offer */
	FRAME_TAKEN,	/* nothing but what each frame tells */
	FRAME_END,	/* the sender has closed its channel; no frame follows */
};

/* The beginning of each send. */
struct frame {
	__u8 kind;	/* enum frame_kind */
	__u8 reserved[3];	/* 0 */
	__be32 taken;	/* messages that the sender has ever taken of its peer's, modulo 2^32 */
	__be64 length;	/* of the message, in bytes; 0 where the frame carries none */
};

/* A message in the sender's memory. */
struct frame_offer {
	struct frame frame;	/* of kind FRAME_OFFER */
	__be64 addr;		/* of its first byte */
	__be32 rkey;		/* key to it, until the peer has taken the message */
	__be32 reserved;	/* 0 */
};

/* A frame that has arrived, in host order. */
struct arrival {
	__u32 kind;	/* enum frame_kind */
	__u32 taken;	/* as in struct frame */
	__u64 length;	/* the same */
	__u64 addr;	/* of an offer */
	__u32 rkey;	/* the same */
};

/* Messages of one side on their way to the other. */
struct window {
	__u32 size;	/* how many may be under way */
	__u32 sent;	/* ever, modulo 2^32 */
	__u32 taken;	/* of them, by the peer */
	__u32 box;	/* of the next one: sent modulo size would jump where sent wraps */
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
		.kind = (__u8)kind, .taken = htobe32(taken), .length = htobe64(length),
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
