// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the messages of a pingpong hold. */
#include <string.h>

#include "pattern.h"

#define STAMP	8	/* bytes */

static __u8 base_byte(const struct pattern *pattern, size_t place)
{
	return (__u8)(place * 31 + (place >> 8) * 7 + pattern->seed);
}

static int is_short(const struct pattern *pattern)
{
	return pattern->size < 2 * STAMP;
}

/* Byte @i of the stamp: the seed, then the round with its low byte last. */
static __u8 stamp_byte(const struct pattern *pattern, int i, __u32 round)
{
	if (i < STAMP - 4)
		return (__u8)(pattern->seed ^ i);
	return (__u8)(round >> (8 * (STAMP - 1 - i)));
}

static __u8 short_byte(const struct pattern *pattern, size_t place,
		       __u32 round)
{
	return (__u8)(base_byte(pattern, place) + round);
}

void pattern_fill(const struct pattern *pattern, __u8 *buf)
{
	size_t i;

	for (i = 0; i < pattern->size; i++)
		buf[i] = base_byte(pattern, i);
}

static void put_stamp(const struct pattern *pattern, __u8 *stamp, __u32 round)
{
	int i;

	for (i = 0; i < STAMP; i++)
		stamp[i] = stamp_byte(pattern, i, round);
}

void pattern_stamp(const struct pattern *pattern, __u8 *buf, __u32 round)
{
	size_t i;

	if (is_short(pattern)) {
		for (i = 0; i < pattern->size; i++)
			buf[i] = short_byte(pattern, i, round);
		return;
	}
	put_stamp(pattern, buf, round);
	put_stamp(pattern, buf + pattern->size - STAMP, round);
}

__u8 pattern_last(const struct pattern *pattern, __u32 round)
{
	if (is_short(pattern))
		return short_byte(pattern, pattern->size - 1, round);
	return stamp_byte(pattern, STAMP - 1, round);
}

int pattern_stamped(const struct pattern *pattern, const __u8 *buf,
		    __u32 round)
{
	__u8 stamp[STAMP];
	size_t i;

	if (is_short(pattern)) {
		for (i = 0; i < pattern->size; i++)
			if (buf[i] != short_byte(pattern, i, round))
				return 0;
		return 1;
	}
	put_stamp(pattern, stamp, round);
	return !memcmp(buf, stamp, STAMP) &&
	       !memcmp(buf + pattern->size - STAMP, stamp, STAMP);
}

int pattern_whole(const struct pattern *pattern, const __u8 *buf, __u32 round)
{
	size_t i;

	if (!pattern_stamped(pattern, buf, round))
		return 0;
	if (is_short(pattern))
		return 1;
	for (i = STAMP; i < pattern->size - STAMP; i++)
		if (buf[i] != base_byte(pattern, i))
			return 0;
	return 1;
}
