/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The bytes of the messages that the tool checks.
 *
 * A slot is filled once with bytes that depend on the side and the place. Each round then puts its
 * number into the first and the last eight bytes, its stamp, or into all of a message that is
 * shorter than both. So a timed round costs the same for any size, and a message that is old, torn
 * or someone else's still shows.
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

/* The last byte of a message differs from those of the 255 rounds before. */
__u8 pattern_byte(const struct pattern *pattern, size_t place, __u32 round);

/* Of @round's message, all bytes if @whole is set, else the stamp. The second looks for it. */
void pattern_put(const struct pattern *pattern, __u8 *buf, __u32 round, int whole);
int pattern_is(const struct pattern *pattern, const __u8 *buf, __u32 round, int whole);

#endif /* _IBCHAN_PATTERN_H */
