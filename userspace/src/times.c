// SPDX-License-Identifier: LGPL-2.1-or-later
/* The InfiniBand codes of times, and the times that they stand for. */
#include <errno.h>

#include "internal.h"

#define CODES	32

/* The largest count of retries; a few devices never give up with it. */
#define RETRIES_ENDLESS	7

/* A device may take up to four times the time-out to notice. */
#define ACK_TOLERANCE	4

/* In 10 us: powers of two, and one and a half of them between. Code 0 is the longest. */
#define RNR_UNIT_NS	10000LL

static __s64 rnr_units(__u32 code)
{
	if (!code)
		code = CODES;
	if (code < 3)
		return code;
	return code % 2 ? 3LL << (code - 3) / 2 : 1LL << code / 2;
}

__s64 ibchan_rnr_timer_to_ns(__u32 code)
{
	return code < CODES ? rnr_units(code) * RNR_UNIT_NS : -EINVAL;
}

int ibchan_rnr_timer_from_ns(__s64 ns)
{
	__u32 code;

	for (code = 1; ns >= 0 && code <= CODES; code++)
		if (ns <= rnr_units(code) * RNR_UNIT_NS)
			return (int)(code % CODES);
	return -EINVAL;
}

/* 4.096 us, doubled by each code. */
#define ACK_UNIT_NS	4096LL

__s64 ibchan_ack_timeout_to_ns(__u32 code)
{
	if (code >= CODES)
		return -EINVAL;
	return code ? ACK_UNIT_NS << code : IBCHAN_TIMEOUT_NEVER;
}

int ibchan_ack_timeout_from_ns(__s64 ns)
{
	int code;

	if (ns == IBCHAN_TIMEOUT_NEVER)
		return 0;
	if (ns < 0)
		return -EINVAL;
	for (code = 1; code < CODES; code++)
		if (ns <= ACK_UNIT_NS << code)
			return code;
	return -EINVAL;
}

/* Of its params, of which the kernel has checked that they are in their ranges. */
void times_fill(struct ibchan_channel_info *info)
{
	const struct ibchan_params *params = &info->params;

	/* Until a channel by address has its peer, nobody knows. */
	info->ack_timeout_ns = ibchan_ack_timeout_to_ns(params->ack_timeout);
	if (info->ack_timeout_ns < 0)
		info->ack_timeout_ns = IBCHAN_TIMEOUT_NEVER;
	info->rnr_timer_ns = ibchan_rnr_timer_to_ns(params->min_rnr_timer);
	info->worst_case_ns = IBCHAN_TIMEOUT_NEVER;
	if (info->ack_timeout_ns > 0 && params->ack_retries < RETRIES_ENDLESS)
		info->worst_case_ns = ACK_TOLERANCE * info->ack_timeout_ns *
				      (params->ack_retries + 1);
}

/* As the kernel counts stages and keepalives: not less than @ns. It refuses what is too long. */
int ms_of_ns(__s64 ns, __u32 *ms)
{
	const __s64 all = ns / NSEC_PER_MSEC + !!(ns % NSEC_PER_MSEC);

	*ms = (__u32)min(all, UINT32_MAX - 1LL);
	return ns < 0 ? -EINVAL : 0;
}
