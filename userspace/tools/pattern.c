// SPDX-License-Identifier: LGPL-2.1-or-later
/* The bytes of the messages that the tool checks. */
#include "tool.h"

#define STAMP	8	/* bytes at either end; a shorter message is all stamp */

/* A stamp holds four bytes of the seed, and the round with its low byte last. */
__u8 pattern_byte(const struct pattern *pattern, size_t place, __u32 round)
{
	const __u8 base = (__u8)(place * 31 + (place >> 8) * 7 + pattern->seed);
	const size_t after = pattern->size - 1 - place;
	const size_t digit = after < STAMP ? after : STAMP - 1 - place;

	if (pattern->size < 2 * STAMP)
		return (__u8)(base + round);
	if (place >= STAMP && after >= STAMP)
		return base;
	return (__u8)(digit < 4 ? round >> 8 * digit : pattern->seed ^ (STAMP - 1 - digit));
}

static size_t next_place(const struct pattern *pattern, size_t place, int whole)
{
	if (!whole && place + 1 == STAMP && pattern->size > 2 * STAMP)
		return pattern->size - STAMP;
	return place + 1;
}

void pattern_put(const struct pattern *pattern, __u8 *buf, __u32 round, int whole)
{
	size_t i;

	for (i = 0; i < pattern->size; i = next_place(pattern, i, whole))
		buf[i] = pattern_byte(pattern, i, round);
}

int pattern_is(const struct pattern *pattern, const __u8 *buf, __u32 round, int whole)
{
	size_t i;

	for (i = 0; i < pattern->size; i = next_place(pattern, i, whole))
		if (buf[i] != pattern_byte(pattern, i, round))
			return 0;
	return 1;
}
