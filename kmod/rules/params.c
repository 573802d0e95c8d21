// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks the builder's parameters, chooses their defaults, and translates their codes of times,
 * which are InfiniBand's, into nanoseconds. Pure.
 */
#include <linux/errno.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/time64.h>

#include "compat.h"
#include "rules.h"

#define PSN_MAX		0xffffffU	/* 24 bits on the wire */
#define RETRIES_MAX	7U		/* 3 bits on the wire */
#define TIMER_MAX	31U		/* 5 bits on the wire */
#define SERVICE_LEVEL_MAX 15U		/* 4 bits on the wire */

#define CODES		32U	/* of a time */
#define RETRIES_ENDLESS	7U	/* the largest; a few devices never give up with it */
#define ACK_UNIT_NS	4096LL	/* doubled by each code */
#define RNR_UNIT_NS	10000LL

/* A device may take up to four times the time-out to notice. */
#define ACK_TOLERANCE	4

/* Bytes; more than any device offers (mlx5: 828). The device has the last word. */
#define INLINE_MAX	1024U

/**
 * ibchan_params_init - the defaults
 * @params: filled
 *
 * The numbers are IBCHAN_DEFAULT_* of <linux/ibchan.h>, which says where they
 * come from. Access is IBCHAN_ACCESS_SHARED; traffic class, service level and
 * inline data are 0; the rest is chosen when the channel is built or connected.
 *
 * Context: any.
 */
void ibchan_params_init(struct ibchan_params *params)
{
	*params = (struct ibchan_params){
		.access = IBCHAN_ACCESS_SHARED,
		.max_send_wr = IBCHAN_DEFAULT_SEND_WR,
		.max_recv_wr = IBCHAN_DEFAULT_RECV_WR,
		.max_send_sge = IBCHAN_AUTO,
		.max_recv_sge = IBCHAN_AUTO,
		.rnr_retries = IBCHAN_DEFAULT_RNR_RETRIES,
		.ack_retries = IBCHAN_DEFAULT_ACK_RETRIES,
		.min_rnr_timer = IBCHAN_DEFAULT_MIN_RNR_TIMER,
		.ack_timeout = IBCHAN_AUTO,
		.send_psn = IBCHAN_AUTO,
		.recv_psn = IBCHAN_AUTO,
		.gid_index = IBCHAN_AUTO,
		.max_rd_atomic = IBCHAN_AUTO,
	};
}
EXPORT_SYMBOL_NS_GPL(ibchan_params_init, IBCHAN_NS);

struct param_range {
	u32 which;
	u32 value;
	u32 low;
	u32 high;
	u32 also;	/* a value outside the range that is fine; else @low */
};

/*
 * The verbs demand local write where a peer may write. Returns -EOPNOTSUPP for an unknown flag;
 * -EINVAL for remote write or atomic without local write.
 */
int ibchan_access_check(u32 access, struct ibchan_reason *reason)
{
	u32 writes = access & (IBCHAN_ACCESS_REMOTE_WRITE | IBCHAN_ACCESS_REMOTE_ATOMIC);
	u32 unknown = access & ~IBCHAN_ACCESS_ALL;

	if (!unknown && (!writes || access & IBCHAN_ACCESS_LOCAL_WRITE))
		return 0;
	return ibchan_refuse_values(reason, IBCHAN_REASON_ACCESS_COMBINATION,
				    unknown ? -EOPNOTSUPP : -EINVAL, (u64[3]) { access });
}

/*
 * Whether the builder's parameters are within their ranges. Returns -EINVAL with the parameter, its
 * value, the lowest and the highest one in @reason; -EOPNOTSUPP for an unknown access flag.
 */
int ibchan_params_check(const struct ibchan_params *params, const struct ibchan_device_attr *attr,
			struct ibchan_reason *reason)
{
	/* The qp keeps a place for a marker, and the cq holds all of its works. */
	u32 depth = min(attr->max_qp_wr - IBCHAN_MARKERS, attr->max_cqe - 2 * IBCHAN_MARKERS - 1);
	u32 send_sge = min_t(u32, attr->max_send_sge, IBCHAN_MAX_SGE);
	u32 recv_sge = min_t(u32, attr->max_recv_sge, IBCHAN_MAX_SGE);
	const struct param_range ranges[] = {
		{ IBCHAN_PARAMETER_MAX_SEND_WR, params->max_send_wr, 1, depth, 1 },
		{ IBCHAN_PARAMETER_MAX_RECV_WR, params->max_recv_wr, 1, depth, 1 },
		{ IBCHAN_PARAMETER_MAX_SEND_SGE, params->max_send_sge, 1, send_sge, IBCHAN_AUTO },
		{ IBCHAN_PARAMETER_MAX_RECV_SGE, params->max_recv_sge, 1, recv_sge, IBCHAN_AUTO },
		{ IBCHAN_PARAMETER_RNR_RETRIES, params->rnr_retries, 0, RETRIES_MAX, 0 },
		{ IBCHAN_PARAMETER_ACK_RETRIES, params->ack_retries, 0, RETRIES_MAX, 0 },
		{ IBCHAN_PARAMETER_MIN_RNR_TIMER, params->min_rnr_timer, 0, TIMER_MAX, 0 },
		{ IBCHAN_PARAMETER_ACK_TIMEOUT, params->ack_timeout, 0, TIMER_MAX, IBCHAN_AUTO },
		{ IBCHAN_PARAMETER_SEND_PSN, params->send_psn, 0, PSN_MAX, IBCHAN_AUTO },
		{ IBCHAN_PARAMETER_RECV_PSN, params->recv_psn, 0, PSN_MAX, IBCHAN_AUTO },
		{ IBCHAN_PARAMETER_PORT, params->port, 1, attr->ports, 0 },
		{ IBCHAN_PARAMETER_MAX_RD_ATOMIC, params->max_rd_atomic, 1, attr->max_rd_atomic,
		  IBCHAN_AUTO },
		{ IBCHAN_PARAMETER_TRAFFIC_CLASS, params->traffic_class, 0, U8_MAX, 0 },
		{ IBCHAN_PARAMETER_SERVICE_LEVEL, params->service_level, 0, SERVICE_LEVEL_MAX, 0 },
		{ IBCHAN_PARAMETER_MAX_INLINE_DATA, params->max_inline_data, 0, INLINE_MAX, 0 },
		{ IBCHAN_PARAMETER_MTU, params->mtu, 256, 4096, 0 },
	};
	const struct param_range *range;
	int ret = ibchan_access_check(params->access, reason);

	for (range = ranges; !ret && range < ranges + ARRAY_SIZE(ranges); range++) {
		bool fits = range->value >= range->low && range->value <= range->high;

		if (range->which == IBCHAN_PARAMETER_MTU)
			fits &= is_power_of_2(range->value);
		if (!fits && range->value != range->also)
			ret = ibchan_refuse_parameter(reason, range->which, range->value,
						      range->low, range->high);
	}
	return ret;
}

/*
 * Chooses the parameters that were left to the device's limits. The ack time-out is that of a
 * connection by endpoints until another one says its own.
 */
void ibchan_params_choose(struct ibchan_params *params, const struct ibchan_device_attr *attr)
{
	if (params->max_send_sge == IBCHAN_AUTO)
		params->max_send_sge = min_t(u32, attr->max_send_sge, IBCHAN_DEFAULT_SEND_SGE);
	if (params->max_recv_sge == IBCHAN_AUTO)
		params->max_recv_sge = min_t(u32, attr->max_recv_sge, IBCHAN_DEFAULT_RECV_SGE);
	if (params->max_rd_atomic == IBCHAN_AUTO)
		params->max_rd_atomic = attr->max_rd_atomic;
	if (params->ack_timeout == IBCHAN_AUTO)
		params->ack_timeout = IBCHAN_DEFAULT_ACK_TIMEOUT;
}

/* Returns -EINVAL when an option is out of its range, or a reserved member is not zero. */
int ibchan_options_check(const struct ibchan_options *options, struct ibchan_reason *reason)
{
	u32 keepalive_ms = options->keepalive_ms;

	if (keepalive_ms && keepalive_ms != IBCHAN_KEEPALIVE_OFF &&
	    (keepalive_ms < IBCHAN_KEEPALIVE_MIN_MS || keepalive_ms > IBCHAN_KEEPALIVE_MAX_MS))
		return ibchan_refuse_parameter(reason, IBCHAN_PARAMETER_KEEPALIVE_MS, keepalive_ms,
					       IBCHAN_KEEPALIVE_MIN_MS, IBCHAN_KEEPALIVE_MAX_MS);
	if (memchr_inv(options->reserved, 0, sizeof(options->reserved)))
		return ibchan_refuse(reason, IBCHAN_REASON_RESERVED, -EINVAL);
	return 0;
}

/*
 * The time that a keepalive takes beside the time for the peer's answer, in milliseconds.
 * <linux/ibchan_options.h> has the formula.
 */
u32 ibchan_keepalive_asks_ms(u32 keepalive_ms)
{
	return max(keepalive_ms / 16 * 11, keepalive_ms / 2 + 40);
}

/*
 * The time in which a keepalive notices a dead peer, in milliseconds; 0: never, because lost
 * packets are not sent again. <linux/ibchan_options.h> has the formula.
 */
u32 ibchan_keepalive_notice_ms(u32 keepalive_ms, const struct ibchan_params *params)
{
	u64 timeout_ns = 4096ULL << params->ack_timeout;
	u64 retries_ms = div_u64(timeout_ns * (params->ack_retries + 1), NSEC_PER_MSEC);
	u64 notice_ms = ibchan_keepalive_asks_ms(keepalive_ms) + retries_ms + 1;

	if (!params->ack_timeout)
		return 0;
	return max_t(u64, notice_ms, keepalive_ms);
}

/* @params are in their ranges. */
void ibchan_times_fill(const struct ibchan_params *params, struct ibchan_times *times)
{
	u32 ack_timeout = params->ack_timeout % CODES;
	/* Powers of two, and one and a half of them between. Code 0 is the longest. */
	u32 code = params->min_rnr_timer % CODES ?: CODES;
	s64 rnr_units = code < 3 ? code : code % 2 ? 3LL << (code - 3) / 2 : 1LL << code / 2;

	*times = (struct ibchan_times){
		.ack_timeout_ns = ack_timeout ? ACK_UNIT_NS << ack_timeout : IBCHAN_TIMEOUT_NEVER,
		.rnr_timer_ns = rnr_units * RNR_UNIT_NS,
		.worst_case_ns = IBCHAN_TIMEOUT_NEVER,
		.ack_retries = params->ack_retries,
		.rnr_retries = params->rnr_retries,
	};
	if (ack_timeout && params->ack_retries < RETRIES_ENDLESS)
		times->worst_case_ns = ACK_TOLERANCE * times->ack_timeout_ns *
				       (params->ack_retries + 1);
}
