// SPDX-License-Identifier: LGPL-2.1-or-later
/* The bytes of the messages that the tool checks. */
#include "pattern.h"

#define STAMP	8	/* bytes at either end; a shorter message is all stamp */

static __u8 base_byte(const struct pattern *pattern, size_t place)
{
	return (__u8)(place * 31 + (place >> 8) * 7 + pattern->seed);
}

/* A stamp holds four bytes of the seed, and the round with its low byte last. */
static __u8 stamp_byte(const struct pattern *pattern, size_t place, __u32 round)
{
	const size_t after = pattern->size - 1 - place;
	const size_t digit = after < STAMP ? after : STAMP - 1 - place;

	if (pattern->size < 2 * STAMP)
		return (__u8)(base_byte(pattern, place) + round);
	if (digit < 4)
		return (__u8)(round >> 8 * digit);
	return (__u8)(pattern->seed ^ (STAMP - 1 - digit));
}

static size_t next_stamped(const struct pattern *pattern, size_t place)
{
	if (place + 1 == STAMP && pattern->size > 2 * STAMP)
		return pattern->size - STAMP;
	return place + 1;
}

void pattern_fill(const struct pattern *pattern, __u8 *buf)
{
	size_t i;

	for (i = 0; i < pattern->size; i++)
		buf[i] = base_byte(pattern, i);
}

void pattern_stamp(const struct pattern *pattern, __u8 *buf, __u32 round)
{
	size_t i;

	for (i = 0; i < pattern->size; i = next_stamped(pattern, i))
		buf[i] = stamp_byte(pattern, i, round);
}

__u8 pattern_last(const struct pattern *pattern, __u32 round)
{
	return stamp_byte(pattern, pattern->size - 1, round);
}

int pattern_stamped(const struct pattern *pattern, const __u8 *buf, __u32 round)
{
	size_t i;

	for (i = 0; i < pattern->size; i = next_stamped(pattern, i))
		if (buf[i] != stamp_byte(pattern, i, round))
			return 0;
	return 1;
}

int pattern_whole(const struct pattern *pattern, const __u8 *buf, __u32 round)
{
	size_t i;

	if (!pattern_stamped(pattern, buf, round))
		return 0;
	for (i = STAMP; i + STAMP < pattern->size; i++)
		if (buf[i] != base_byte(pattern, i))
			return 0;
	return 1;
}
