// SPDX-License-Identifier: GPL-2.0-only
/* Devices, the builder's knobs, prepared channels, handshakes (C1, C2, Q1, Q6, D1). */
#include <linux/string.h>
#include <net/net_namespace.h>

#include "job.h"
#include "suites.h"

static void a_device_is_found_by_name_and_in_the_list(struct world *w)
{
	struct ibchan_device *dev = world_device(w, 0);
	struct ibchan_device_attr attr, listed;
	struct ibchan_device *nth;
	int found = 0;
	u32 i;

	if (!dev || !expect_eq(w, ibchan_device_query(dev, &attr), 0))
		return;
	expect(w, !strcmp(attr.name, device_names[0]));
	expect(w, attr.node_guid && attr.ports && attr.max_qp_wr && attr.max_cqe);
	expect(w, attr.max_send_sge && attr.max_recv_sge && attr.max_read_sge);
	expect(w, attr.max_rd_atomic && attr.max_fast_reg_pages);
	expect_eq(w, !!attr.max_mr_size, !!(attr.caps & IBCHAN_DEVICE_USER_MR));
	for (i = 0; !IS_ERR(nth = ibchan_device_get_nth(i, &init_net)); i++) {
		found += !ibchan_device_query(nth, &listed) && !strcmp(listed.name, attr.name);
		ibchan_device_put(nth);
	}
	expect_eq(w, PTR_ERR(nth), -ENOENT);
	expect_eq(w, found, 1);
}

static void a_device_that_is_not_there_is_enodev(struct world *w)
{
	expect_eq(w, PTR_ERR(ibchan_device_get("none of these", &init_net)), -ENODEV);
}

static void a_port_tells_its_address_and_mtu(struct world *w)
{
	struct ibchan_device *dev = world_device(w, 0);
	struct ibchan_port_attr attr;

	if (!dev || !expect_eq(w, ibchan_port_query(dev, 1, &init_net, &attr), 0))
		return;
	expect_eq(w, attr.state, IB_PORT_ACTIVE);
	expect(w, attr.active_mtu >= 256 && attr.active_mtu <= attr.max_mtu);
	expect(w, attr.gid_index < attr.gid_entries);
	expect(w, memchr_inv(attr.gid, 0, sizeof(attr.gid)));
}

static void what_was_left_to_the_builder_is_written_back(struct world *w)
{
	struct side *side = &w->side[0];
	struct ibchan_device_attr attr = {};
	struct ibchan_port_attr port = {};
	struct ibchan_build build;
	struct ibchan_channel *ch;
	struct pair_init init;

	pair_defaults(&init);
	if (world_sides(w, &init))
		return;
	side_build_init(side, &build);
	init.params.ack_timeout = IBCHAN_AUTO;
	ch = ibchan_channel_build(&build, &init.params, NULL);
	if (!expect(w, !IS_ERR(ch)))
		return;
	world_keep(w, THING_CHANNEL, ch);
	expect_eq(w, init.params.ack_timeout, IBCHAN_DEFAULT_ACK_TIMEOUT);
	expect_eq(w, ibchan_device_query(side->dev, &attr), 0);
	expect_eq(w, init.params.max_send_sge, min(IBCHAN_DEFAULT_SEND_SGE, attr.max_send_sge));
	expect_eq(w, init.params.max_recv_sge, min(IBCHAN_DEFAULT_RECV_SGE, attr.max_recv_sge));
	expect_eq(w, ibchan_port_query(side->dev, 1, &init_net, &port), 0);
	expect_eq(w, init.params.mtu, port.active_mtu);
	expect_eq(w, init.params.port, 1);
	expect(w, init.params.gid_index != IBCHAN_AUTO);
	expect(w, init.params.send_psn <= 0xffffff);
	expect(w, init.params.max_rd_atomic >= 1 && init.params.max_rd_atomic <= 255);
}

/* A knob, a value, and what the builder says to it. */
struct knob {
	const char *name;
	size_t offset;
	u32 value;
	u32 parameter;
};

#define KNOB(field, value, PARAMETER) \
	{ #field " = " #value, offsetof(struct ibchan_params, field), value, \
	  IBCHAN_PARAMETER_##PARAMETER }

/* One that any device refuses, and those of which only the port and the device can tell. */
static const struct knob bad_knobs[] = {
	KNOB(max_send_wr, 0, MAX_SEND_WR),
	KNOB(port, 200, PORT),
	KNOB(gid_index, 1 << 20, GID_INDEX),
	KNOB(max_inline_data, 1 << 24, MAX_INLINE_DATA),
};

static void turn(struct ibchan_params *params, const struct knob *knob)
{
	*(u32 *)((void *)params + knob->offset) = knob->value;
}

static void try_bad_knob(struct side *side, const struct ibchan_params *base,
			 const struct knob *knob)
{
	struct ibchan_params params = *base;
	struct ibchan_reason reason = {};
	struct world *w = side->world;
	u32 failures = w->failures;
	struct ibchan_channel *ch;
	struct ibchan_build build;

	turn(&params, knob);
	side_build_init(side, &build);
	ch = ibchan_channel_build(&build, &params, &reason);
	if (expect_eq(w, PTR_ERR(ch), -EINVAL)) {
		expect_eq(w, reason.code, IBCHAN_REASON_PARAMETER);
		expect_eq(w, reason.element, knob->parameter);
		expect_eq(w, reason.value[0], knob->value);
		expect(w, reason.value[0] - reason.value[1] > reason.value[2] - reason.value[1]);
	} else if (!IS_ERR(ch)) {
		ibchan_channel_close(ch);
	}
	if (w->failures != failures)
		pr_info("# with %s\n", knob->name);
}

static void a_knob_out_of_its_range_is_refused_by_name(struct world *w)
{
	struct pair_init init;
	int i;

	pair_defaults(&init);
	if (world_sides(w, &init))
		return;
	for (i = 0; i < ARRAY_SIZE(bad_knobs); i++)
		try_bad_knob(&w->side[0], &init.params, &bad_knobs[i]);
}

static const struct knob good_knobs[] = {
	KNOB(max_send_wr, 1, MAX_SEND_WR),
	KNOB(max_send_wr, 1000, MAX_SEND_WR),
	KNOB(max_recv_wr, 1, MAX_RECV_WR),
	KNOB(max_recv_wr, 1000, MAX_RECV_WR),
	KNOB(max_send_sge, 1, MAX_SEND_SGE),
	KNOB(max_send_sge, IBCHAN_MAX_SGE, MAX_SEND_SGE),
	KNOB(max_recv_sge, 1, MAX_RECV_SGE),
	KNOB(max_recv_sge, IBCHAN_MAX_SGE, MAX_RECV_SGE),
	KNOB(rnr_retries, 0, RNR_RETRIES),
	KNOB(rnr_retries, 7, RNR_RETRIES),
	KNOB(ack_retries, 7, ACK_RETRIES),
	KNOB(min_rnr_timer, 1, MIN_RNR_TIMER),
	KNOB(min_rnr_timer, 31, MIN_RNR_TIMER),
	KNOB(ack_timeout, 0, ACK_TIMEOUT),
	KNOB(ack_timeout, 31, ACK_TIMEOUT),
	KNOB(mtu, 256, MTU),
	KNOB(mtu, 1024, MTU),
	KNOB(port, 1, PORT),
	KNOB(max_rd_atomic, 1, MAX_RD_ATOMIC),
	KNOB(traffic_class, 255, TRAFFIC_CLASS),
	KNOB(service_level, 15, SERVICE_LEVEL),
	KNOB(max_inline_data, 64, MAX_INLINE_DATA),
};

/* What the device allows is less than what is possible. */
static u32 limit_of(struct world *w, const struct knob *knob)
{
	struct ibchan_device_attr attr = {};

	expect_eq(w, ibchan_device_query(w->side[0].dev, &attr), 0);
	switch (knob->parameter) {
	case IBCHAN_PARAMETER_MAX_SEND_SGE:
		return attr.max_send_sge;
	case IBCHAN_PARAMETER_MAX_RECV_SGE:
		return attr.max_recv_sge;
	case IBCHAN_PARAMETER_MAX_INLINE_DATA:
		return world_inline_room(w, knob->value);
	default:
		return U32_MAX;
	}
}

/* One end has the value; a message crosses in both directions all the same. */
static void try_good_knob(struct world *w, const struct ibchan_params *base,
			  const struct knob *knob)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_params params = *base;
	struct job *jobs = world_jobs(w, 2);
	u32 failures = w->failures;

	turn(&params, &(struct knob) {
		.offset = knob->offset,
		.value = min(knob->value, limit_of(w, knob)),
	});
	a->ch = side_build(a, &params);
	b->ch = side_build(b, base);
	if (a->ch && b->ch && !side_connect(w, a->ch, b->ch) && !side_connect(w, b->ch, a->ch)) {
		expect_eq(w, job_receive(&jobs[0], b, 0, 64), 0);
		expect_eq(w, ibchan_channel_send(a->ch, side_sge(a, 0, 64), 1, NULL), 0);
		job_ended(&jobs[0]);
		expect_eq(w, job_receive(&jobs[1], a, 0, 64), 0);
		expect_eq(w, ibchan_channel_send(b->ch, side_sge(b, 0, 64), 1, NULL), 0);
		job_ended(&jobs[1]);
		expect_eq(w, jobs[0].completion.error + jobs[1].completion.error, 0);
	}
	side_close(a);
	side_close(b);
	if (w->failures != failures)
		pr_info("# with %s\n", knob->name);
}

static void every_knob_works_at_the_ends_of_its_range(struct world *w)
{
	struct pair_init init;
	int i;

	pair_defaults(&init);
	init.cq_entries = 8192;
	if (world_sides(w, &init))
		return;
	side_close(&w->side[0]);
	side_close(&w->side[1]);
	for (i = 0; i < ARRAY_SIZE(good_knobs); i++)
		try_good_knob(w, &init.params, &good_knobs[i]);
}

static void a_broken_channel_refuses_the_handshake(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_reason reason = {};
	struct ibchan_endpoint endpoint;
	struct pair_init init;

	pair_defaults(&init);
	if (world_sides(w, &init))
		return;
	ibchan_channel_break(a->ch, -EPIPE);
	expect_eq(w, channel_state(a->ch), IBCHAN_CHANNEL_BROKEN);
	expect_eq(w, atomic_read(&a->broken), 1);
	ibchan_channel_endpoint(b->ch, &endpoint);
	expect_eq(w, ibchan_channel_handshake(a->ch, &endpoint, &reason), -ESHUTDOWN);
	expect_eq(w, reason.code, IBCHAN_REASON_BROKEN);
	expect_eq(w, reason.value[0], EPIPE);
}

/* Its one queue pair answers itself. */
static void a_channel_can_be_its_own_peer(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *job = world_jobs(w, 1);
	struct pair_init init;

	pair_defaults(&init);
	if (world_sides(w, &init) || side_connect(w, a->ch, a->ch))
		return;
	fill_pattern(a->buf, 3000, 1);
	expect_eq(w, job_receive(job, a, 8192, 3000), 0);
	expect_eq(w, ibchan_channel_send(a->ch, side_sge(a, 0, 3000), 1, NULL), 0);
	if (job_ended(job))
		expect(w, has_pattern(a->buf + 8192, 3000, 1));
}

static void the_query_tells_the_parameters_in_effect(struct world *w)
{
	struct ibchan_endpoint endpoint;
	struct ibchan_channel_attr attr;
	struct pair_init init;

	pair_defaults(&init);
	init.params.max_send_wr = 5;
	init.params.traffic_class = 7;
	init.params.max_inline_data = world_inline_room(w, 32);
	if (world_pair(w, &init))
		return;
	ibchan_channel_query(w->side[0].ch, &attr);
	expect_eq(w, attr.params.max_send_wr, 5);
	expect_eq(w, attr.params.traffic_class, 7);
	expect_eq(w, attr.params.max_inline_data, init.params.max_inline_data);
	expect_eq(w, attr.error + attr.status + attr.sends_in_flight + attr.recvs_in_flight, 0);
	ibchan_channel_endpoint(w->side[0].ch, &endpoint);
	expect(w, !memcmp(&attr.endpoint, &endpoint, sizeof(endpoint)));
}

static void the_device_uses_the_times_and_counts_that_were_asked_for(struct world *w)
{
	struct ibchan_times times;
	struct pair_init init;

	pair_defaults(&init);
	init.params.ack_timeout = 15;
	init.params.ack_retries = 5;
	init.params.rnr_retries = 3;
	init.params.min_rnr_timer = 12;
	if (world_pair(w, &init))
		return;
	expect_eq(w, ibchan_channel_times(w->side[0].ch, &times), 0);
	expect_eq(w, times.ack_timeout_ns, 4096LL << 15);
	expect_eq(w, times.ack_retries, 5);
	expect_eq(w, times.rnr_timer_ns, 640000);
	expect_eq(w, times.rnr_retries, 3);
	expect_eq(w, times.worst_case_ns, 4 * 6 * (4096LL << 15));
}

static const struct test_case connect_cases[] = {
	CASE(a_device_is_found_by_name_and_in_the_list),
	CASE(a_device_that_is_not_there_is_enodev),
	CASE(a_port_tells_its_address_and_mtu),
	CASE(what_was_left_to_the_builder_is_written_back),
	CASE(a_knob_out_of_its_range_is_refused_by_name),
	CASE(every_knob_works_at_the_ends_of_its_range),
	CASE(a_broken_channel_refuses_the_handshake),
	CASE(a_channel_can_be_its_own_peer),
	CASE(the_query_tells_the_parameters_in_effect),
	CASE(the_device_uses_the_times_and_counts_that_were_asked_for),
};

SUITE(connect);
