// SPDX-License-Identifier: GPL-2.0-only
/* Translates the InfiniBand codes of times into nanoseconds. Pure. */
#include <linux/errno.h>
#include <linux/kernel.h>

#include "compat.h"
#include "rules.h"

#define CODES		32U
#define RETRIES_ENDLESS	7U	/* the largest; a few devices never give up with it */
#define ACK_UNIT_NS	4096LL	/* doubled by each code */
#define RNR_UNIT_NS	10000LL

/* A device may take up to four times the time-out to notice. */
#define ACK_TOLERANCE	4

/* Powers of two, and one and a half of them between. Code 0 is the longest. */
static s64 rnr_units(u32 code)
{
	if (!code)
		code = CODES;
	if (code < 3)
		return code;
	return code % 2 ? 3LL << (code - 3) / 2 : 1LL << code / 2;
}

/* @params are in their ranges. */
void ibchan_times_fill(const struct ibchan_params *params, struct ibchan_times *times)
{
	u32 ack_timeout = params->ack_timeout % CODES;

	*times = (struct ibchan_times){
		.ack_timeout_ns = ack_timeout ? ACK_UNIT_NS << ack_timeout :
						IBCHAN_TIMEOUT_NEVER,
		.rnr_timer_ns = rnr_units(params->min_rnr_timer % CODES) * RNR_UNIT_NS,
		.worst_case_ns = IBCHAN_TIMEOUT_NEVER,
		.ack_retries = params->ack_retries,
		.rnr_retries = params->rnr_retries,
	};
	if (ack_timeout && params->ack_retries < RETRIES_ENDLESS)
		times->worst_case_ns = ACK_TOLERANCE * times->ack_timeout_ns *
				       (params->ack_retries + 1);
}
