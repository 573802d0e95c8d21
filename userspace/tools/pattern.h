/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The bytes of the messages that the tool checks.
 *
 * A slot is filled once with bytes that depend on the side and the place. Each round then puts its
 * number into the first and the last eight bytes, or into all of a message that is shorter than
 * both. So a timed round costs the same for any size, and a message that is old, torn or someone
 * else's still shows.
 */
#ifndef _IBCHAN_PATTERN_H
#define _IBCHAN_PATTERN_H

#include <stddef.h>
#include <linux/types.h>

/* One side's. */
struct pattern {
	__u8 seed;	/* differs between the two sides */
	size_t size;	/* bytes of a message */
};

void pattern_fill(const struct pattern *pattern, __u8 *buf);
void pattern_stamp(const struct pattern *pattern, __u8 *buf, __u32 round);

/* The last byte of a message; it differs from those of the 255 rounds before. */
__u8 pattern_last(const struct pattern *pattern, __u32 round);

/* Return 1 if the message is round @round's: its stamps, or every byte. */
int pattern_stamped(const struct pattern *pattern, const __u8 *buf, __u32 round);
int pattern_whole(const struct pattern *pattern, const __u8 *buf, __u32 round);

#endif /* _IBCHAN_PATTERN_H */
