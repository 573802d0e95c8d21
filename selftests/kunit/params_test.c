// SPDX-License-Identifier: GPL-2.0-only
/* params.c: defaults, and each knob at both ends of its range and beyond them. */
#include <linux/bits.h>
#include <linux/kernel.h>
#include <linux/stddef.h>

#include "cases.h"

/* No two limits are equal, so that a check against the wrong one shows. */
static const struct ibchan_device_attr device = {
	.ports = 3,
	.max_qp_wr = 1000,
	.max_cqe = 5000,
	.max_send_sge = 20,
	.max_recv_sge = 22,
	.max_read_sge = 24,
	.max_rd_atomic = 12,
};

/* The depth of a queue: one place is for the marker. */
#define DEPTH_MAX	999U

/**
 * struct knob - one parameter
 * @offset: in struct ibchan_params
 * @which: enum ibchan_parameter
 * @low: lowest allowed
 * @high: highest allowed
 * @also: allowed outside that range; or @low
 */
struct knob {
	size_t offset;
	u32 which;
	u32 low;
	u32 high;
	u32 also;
};

#define KNOB(member, WHICH, low, high, also)				\
	{ offsetof(struct ibchan_params, member), IBCHAN_PARAMETER_##WHICH, low, high, also }

static const struct knob knobs[] = {
	KNOB(max_send_wr, MAX_SEND_WR, 1, DEPTH_MAX, 1),
	KNOB(max_recv_wr, MAX_RECV_WR, 1, DEPTH_MAX, 1),
	KNOB(max_send_sge, MAX_SEND_SGE, 1, 20, IBCHAN_AUTO),
	KNOB(max_recv_sge, MAX_RECV_SGE, 1, 22, IBCHAN_AUTO),
	KNOB(rnr_retries, RNR_RETRIES, 0, 7, 0),
	KNOB(ack_retries, ACK_RETRIES, 0, 7, 0),
	KNOB(min_rnr_timer, MIN_RNR_TIMER, 0, 31, 0),
	KNOB(ack_timeout, ACK_TIMEOUT, 0, 31, IBCHAN_AUTO),
	KNOB(send_psn, SEND_PSN, 0, 0xffffff, IBCHAN_AUTO),
	KNOB(recv_psn, RECV_PSN, 0, 0xffffff, IBCHAN_AUTO),
	KNOB(port, PORT, 1, 3, 0),
	KNOB(max_rd_atomic, MAX_RD_ATOMIC, 1, 12, IBCHAN_AUTO),
	KNOB(traffic_class, TRAFFIC_CLASS, 0, 255, 0),
	KNOB(service_level, SERVICE_LEVEL, 0, 15, 0),
	KNOB(max_inline_data, MAX_INLINE_DATA, 0, 1024, 0),
};

static u32 *knob_of(struct ibchan_params *params, const struct knob *knob)
{
	return (void *)params + knob->offset;
}

static void expect_fine(struct kunit *test, const struct ibchan_params *params, u32 which)
{
	struct ibchan_reason reason = { .wr = UNTOUCHED };

	KUNIT_EXPECT_EQ_MSG(test, ibchan_params_check(params, &device, &reason), 0,
			    "parameter %u", which);
	KUNIT_EXPECT_EQ(test, reason.code, (u32)IBCHAN_REASON_NONE);
	KUNIT_EXPECT_EQ(test, ibchan_params_check(params, &device, NULL), 0);
}

static void expect_refused(struct kunit *test, const struct ibchan_params *params,
			   const struct refusal *refusal)
{
	struct ibchan_reason reason = { .wr = UNTOUCHED };

	KUNIT_EXPECT_EQ_MSG(test, ibchan_params_check(params, &device, &reason),
			    refusal->error, "parameter %u, value %llu", refusal->element,
			    refusal->value[0]);
	expect_reason(test, &reason, refusal);
	KUNIT_EXPECT_EQ(test, reason.wr, UNTOUCHED);
	KUNIT_EXPECT_EQ(test, ibchan_params_check(params, &device, NULL), refusal->error);
}

/* Set to @value alone, the others at their defaults. */
static void expect_knob(struct kunit *test, const struct knob *knob, u32 value)
{
	struct ibchan_params params;

	ibchan_params_init(&params);
	*knob_of(&params, knob) = value;
	if (value == knob->also || (value >= knob->low && value <= knob->high))
		expect_fine(test, &params, knob->which);
	else
		expect_refused(test, &params, &(struct refusal){
			-EINVAL, IBCHAN_REASON_PARAMETER, knob->which,
			{ value, knob->low, knob->high },
		});
}

static void the_defaults_are_those_of_the_header(struct kunit *test)
{
	struct ibchan_params params;

	memset(&params, UNTOUCHED, sizeof(params));
	ibchan_params_init(&params);
	KUNIT_EXPECT_EQ(test, params.access, IBCHAN_ACCESS_SHARED);
	KUNIT_EXPECT_EQ(test, params.max_send_wr, (u32)IBCHAN_DEFAULT_SEND_WR);
	KUNIT_EXPECT_EQ(test, params.max_recv_wr, (u32)IBCHAN_DEFAULT_RECV_WR);
	KUNIT_EXPECT_EQ(test, params.rnr_retries, (u32)IBCHAN_DEFAULT_RNR_RETRIES);
	KUNIT_EXPECT_EQ(test, params.ack_retries, (u32)IBCHAN_DEFAULT_ACK_RETRIES);
	KUNIT_EXPECT_EQ(test, params.min_rnr_timer, (u32)IBCHAN_DEFAULT_MIN_RNR_TIMER);
	/* Chosen later. */
	KUNIT_EXPECT_EQ(test, params.send_psn, IBCHAN_AUTO);
	KUNIT_EXPECT_EQ(test, params.recv_psn, IBCHAN_AUTO);
	KUNIT_EXPECT_EQ(test, params.gid_index, IBCHAN_AUTO);
	KUNIT_EXPECT_EQ(test, params.max_rd_atomic, IBCHAN_AUTO);
	KUNIT_EXPECT_EQ(test, params.ack_timeout, IBCHAN_AUTO);
	KUNIT_EXPECT_EQ(test, params.max_send_sge, IBCHAN_AUTO);
	KUNIT_EXPECT_EQ(test, params.max_recv_sge, IBCHAN_AUTO);
	KUNIT_EXPECT_EQ(test, params.mtu, 0U);
	KUNIT_EXPECT_EQ(test, params.port, 0U);
	KUNIT_EXPECT_EQ(test, params.traffic_class, 0U);
	KUNIT_EXPECT_EQ(test, params.service_level, 0U);
	KUNIT_EXPECT_EQ(test, params.max_inline_data, 0U);
}

/* At both ends, around the value that stands apart, and at every power of two. */
static void each_knob_is_held_against_its_range(struct kunit *test)
{
	const struct knob *knob;
	int i, bit;

	for (knob = knobs; knob < knobs + ARRAY_SIZE(knobs); knob++) {
		for (i = -1; i <= 1; i++) {
			expect_knob(test, knob, knob->low + i);
			expect_knob(test, knob, knob->high + i);
			expect_knob(test, knob, knob->also + i);
		}
		for (bit = 0; bit < 32; bit++) {
			expect_knob(test, knob, BIT(bit));
			expect_knob(test, knob, BIT(bit) - 1);
		}
		expect_knob(test, knob, U32_MAX);
		expect_knob(test, knob, U32_MAX - 1);
	}
}

static void the_mtu_is_one_that_packets_can_have(struct kunit *test)
{
	struct ibchan_params params;
	u32 mtu;

	ibchan_params_init(&params);
	for (mtu = 0; mtu <= 8192; mtu++) {
		params.mtu = mtu;
		if (!mtu || (mtu >= 256 && mtu <= 4096 && !(mtu & (mtu - 1))))
			expect_fine(test, &params, IBCHAN_PARAMETER_MTU);
		else
			expect_refused(test, &params, &(struct refusal){
				-EINVAL, IBCHAN_REASON_PARAMETER, IBCHAN_PARAMETER_MTU,
				{ mtu, 256, 4096 },
			});
	}
}

static void any_gid_index_is_left_to_the_device(struct kunit *test)
{
	struct ibchan_params params;

	ibchan_params_init(&params);
	params.gid_index = 0;
	expect_fine(test, &params, IBCHAN_PARAMETER_GID_INDEX);
	params.gid_index = U32_MAX - 1;
	expect_fine(test, &params, IBCHAN_PARAMETER_GID_INDEX);
}

static void elements_are_bounded_by_ibchan_where_the_device_is_not(struct kunit *test)
{
	struct ibchan_device_attr large = device;
	struct ibchan_params params;

	large.max_send_sge = U32_MAX;
	large.max_recv_sge = U32_MAX;
	ibchan_params_init(&params);
	params.max_send_sge = IBCHAN_MAX_SGE;
	params.max_recv_sge = IBCHAN_MAX_SGE;
	KUNIT_EXPECT_EQ(test, ibchan_params_check(&params, &large, NULL), 0);
	params.max_send_sge = IBCHAN_MAX_SGE + 1;
	KUNIT_EXPECT_EQ(test, ibchan_params_check(&params, &large, NULL), -EINVAL);
	params.max_send_sge = 1;
	params.max_recv_sge = IBCHAN_MAX_SGE + 1;
	KUNIT_EXPECT_EQ(test, ibchan_params_check(&params, &large, NULL), -EINVAL);
}

static void elements_left_open_are_the_default_or_all_that_the_device_can(struct kunit *test)
{
	struct ibchan_device_attr small = device;
	struct ibchan_params params;

	ibchan_params_init(&params);
	ibchan_params_choose(&params, &device);
	KUNIT_EXPECT_EQ(test, params.max_send_sge, (u32)IBCHAN_DEFAULT_SEND_SGE);
	KUNIT_EXPECT_EQ(test, params.max_recv_sge, (u32)IBCHAN_DEFAULT_RECV_SGE);
	KUNIT_EXPECT_EQ(test, params.ack_timeout, (u32)IBCHAN_DEFAULT_ACK_TIMEOUT);
	small.max_send_sge = 6;
	small.max_recv_sge = 5;
	ibchan_params_init(&params);
	KUNIT_EXPECT_EQ(test, ibchan_params_check(&params, &small, NULL), 0);
	ibchan_params_choose(&params, &small);
	KUNIT_EXPECT_EQ(test, params.max_send_sge, 6U);
	KUNIT_EXPECT_EQ(test, params.max_recv_sge, 5U);
}

static void what_was_asked_for_is_not_chosen(struct kunit *test)
{
	struct ibchan_params params;

	ibchan_params_init(&params);
	params.max_send_sge = 3;
	params.max_recv_sge = 18;
	params.max_rd_atomic = 2;
	params.ack_timeout = 0;
	ibchan_params_choose(&params, &device);
	KUNIT_EXPECT_EQ(test, params.max_send_sge, 3U);
	KUNIT_EXPECT_EQ(test, params.max_recv_sge, 18U);
	KUNIT_EXPECT_EQ(test, params.max_rd_atomic, 2U);
	KUNIT_EXPECT_EQ(test, params.ack_timeout, 0U);
}

/* A cq has to hold both queues' markers and one queue of this depth. */
static void a_small_cq_bounds_the_depth(struct kunit *test)
{
	struct ibchan_device_attr small = device;
	struct ibchan_params params;

	small.max_cqe = 103;
	ibchan_params_init(&params);
	params.max_send_wr = 100;
	KUNIT_EXPECT_EQ(test, ibchan_params_check(&params, &small, NULL), 0);
	params.max_send_wr = 101;
	KUNIT_EXPECT_EQ(test, ibchan_params_check(&params, &small, NULL), -EINVAL);
}

static bool access_is_possible(u32 access)
{
	return (access & IBCHAN_ACCESS_LOCAL_WRITE) ||
	       !(access & (IBCHAN_ACCESS_REMOTE_WRITE | IBCHAN_ACCESS_REMOTE_ATOMIC));
}

static void whoever_lets_a_peer_write_may_write_itself(struct kunit *test)
{
	struct ibchan_params params;
	u32 access;

	ibchan_params_init(&params);
	for (access = 0; access <= IBCHAN_ACCESS_ALL; access++) {
		params.access = access;
		if (access_is_possible(access))
			expect_fine(test, &params, IBCHAN_PARAMETER_ACCESS);
		else
			expect_refused(test, &params, &(struct refusal){
				-EINVAL, IBCHAN_REASON_ACCESS_COMBINATION, 0, { access },
			});
	}
}

static void an_unknown_access_flag_is_not_supported(struct kunit *test)
{
	struct ibchan_params params;
	int bit;

	ibchan_params_init(&params);
	for (bit = 0; bit < 32; bit++) {
		u32 access = IBCHAN_ACCESS_LOCAL_WRITE | BIT(bit);

		params.access = access;
		if (BIT(bit) & IBCHAN_ACCESS_ALL)
			expect_fine(test, &params, IBCHAN_PARAMETER_ACCESS);
		else
			expect_refused(test, &params, &(struct refusal){
				-EOPNOTSUPP, IBCHAN_REASON_ACCESS_COMBINATION, 0, { access },
			});
	}
}

static void the_keepalive_has_a_range_a_default_and_off(struct kunit *test)
{
	static const u32 good[] = { 0, 100, 101, 10000, 3600000, IBCHAN_KEEPALIVE_OFF };
	static const u32 bad[] = { 1, 99, 3600001, 0x80000000, IBCHAN_KEEPALIVE_OFF - 1 };
	struct ibchan_options options = {};
	struct ibchan_reason reason;
	int i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		options.keepalive_ms = good[i];
		KUNIT_EXPECT_EQ(test, ibchan_options_check(&options, NULL), 0);
	}
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		options.keepalive_ms = bad[i];
		reason = (struct ibchan_reason) {};
		KUNIT_EXPECT_EQ(test, ibchan_options_check(&options, &reason), -EINVAL);
		KUNIT_EXPECT_EQ(test, reason.code, IBCHAN_REASON_PARAMETER);
		KUNIT_EXPECT_EQ(test, reason.element, IBCHAN_PARAMETER_KEEPALIVE_MS);
		KUNIT_EXPECT_EQ(test, reason.value[0], bad[i]);
		KUNIT_EXPECT_EQ(test, reason.value[1], 100);
		KUNIT_EXPECT_EQ(test, reason.value[2], 3600000);
	}
}

static void no_option_is_known_but_those_with_a_name(struct kunit *test)
{
	struct ibchan_options options = {};
	struct ibchan_reason reason;
	int i;

	for (i = 0; i < ARRAY_SIZE(options.reserved); i++) {
		reason = (struct ibchan_reason) {};
		options.reserved[i] = 1;
		KUNIT_EXPECT_EQ(test, ibchan_options_check(&options, &reason), -EINVAL);
		KUNIT_EXPECT_EQ(test, reason.code, IBCHAN_REASON_RESERVED);
		options.reserved[i] = 0;
	}
}

/* 67.1 ms seven times make 469 ms. */
static void a_keepalive_holds_unless_the_device_takes_longer(struct kunit *test)
{
	struct ibchan_params params;

	ibchan_params_init(&params);
	params.ack_timeout = 14;
	KUNIT_EXPECT_EQ(test, ibchan_keepalive_notice_ms(10000, &params), 10000);
	KUNIT_EXPECT_EQ(test, ibchan_keepalive_notice_ms(1600, &params), 1600);
	KUNIT_EXPECT_EQ(test, ibchan_keepalive_notice_ms(160, &params), 120 + 469 + 1);
	params.ack_retries = 0;
	KUNIT_EXPECT_EQ(test, ibchan_keepalive_notice_ms(160, &params), 120 + 67 + 1);
	params.ack_timeout = 31;
	params.ack_retries = 7;
	KUNIT_EXPECT_EQ(test, ibchan_keepalive_notice_ms(160, &params), 120 + 70368744 + 1);
	params.ack_timeout = 0;
	KUNIT_EXPECT_EQ(test, ibchan_keepalive_notice_ms(160, &params), 0);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(the_defaults_are_those_of_the_header),
	KUNIT_CASE(each_knob_is_held_against_its_range),
	KUNIT_CASE(the_mtu_is_one_that_packets_can_have),
	KUNIT_CASE(any_gid_index_is_left_to_the_device),
	KUNIT_CASE(elements_are_bounded_by_ibchan_where_the_device_is_not),
	KUNIT_CASE(elements_left_open_are_the_default_or_all_that_the_device_can),
	KUNIT_CASE(what_was_asked_for_is_not_chosen),
	KUNIT_CASE(a_small_cq_bounds_the_depth),
	KUNIT_CASE(whoever_lets_a_peer_write_may_write_itself),
	KUNIT_CASE(an_unknown_access_flag_is_not_supported),
	KUNIT_CASE(the_keepalive_has_a_range_a_default_and_off),
	KUNIT_CASE(no_option_is_known_but_those_with_a_name),
	KUNIT_CASE(a_keepalive_holds_unless_the_device_takes_longer),
	{}
};

struct kunit_suite params_suite = {
	.name = "ibchan_params",
	.test_cases = cases,
};
