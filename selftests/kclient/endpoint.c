// SPDX-License-Identifier: GPL-2.0-only
/* Endpoints and what two peers agree on (C2, Q6, B1). */

#include "job.h"
#include "suites.h"

static int prepared(struct world *w)
{
	struct pair_init init;

	pair_defaults(&init);
	return world_sides(w, &init);
}

static void expect_misfit(struct world *w, const struct ibchan_endpoint *bad, u32 code, u64 ours,
			  u64 theirs)
{
	struct ibchan_reason reason = {};

	expect_eq(w, ibchan_channel_handshake(w->side[0].ch, bad, &reason), -EINVAL);
	expect_eq(w, reason.code, code);
	expect_eq(w, reason.value[0], ours);
	expect_eq(w, reason.value[1], theirs);
	expect_eq(w, channel_state(w->side[0].ch), IBCHAN_CHANNEL_PREPARED);
}

/* The same channel connects afterwards, so nothing had changed. */
static void a_misfit_is_refused_with_both_values_and_changes_nothing(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_endpoint bad;
	struct job *job = world_jobs(w, 1);

	if (prepared(w))
		return;
	ibchan_channel_endpoint(b->ch, &bad);
	bad.qpn = cpu_to_be32(1);
	expect_misfit(w, &bad, IBCHAN_REASON_PEER_QPN, 2, 1);
	ibchan_channel_endpoint(b->ch, &bad);
	bad.gid[0] = 0xfd;
	expect_misfit(w, &bad, IBCHAN_REASON_GID_FAMILY, 4, 6);
	if (side_connect(w, a->ch, b->ch) || side_connect(w, b->ch, a->ch))
		return;
	expect_eq(w, job_receive(job, b, 0, 8), 0);
	expect_eq(w, ibchan_channel_send(a->ch, side_sge(a, 0, 8), 1, NULL), 0);
	job_ended(job);
}

/* Builds the two channels anew, each with its own parameters, and connects them. */
static int rebuild(struct world *w, const struct ibchan_params *first,
		   const struct ibchan_params *second)
{
	struct side *a = &w->side[0], *b = &w->side[1];

	side_close(a);
	side_close(b);
	a->ch = side_build(a, first);
	b->ch = side_build(b, second);
	if (!a->ch || !b->ch)
		return -ENODEV;
	return side_connect(w, a->ch, b->ch) ?: side_connect(w, b->ch, a->ch);
}

static void cross(struct world *w, u32 length)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *job = world_jobs(w, 1);

	fill_pattern(a->buf, length, 3);
	expect_eq(w, job_receive(job, b, 0, length), 0);
	expect_eq(w, ibchan_channel_send(a->ch, side_sge(a, 0, length), 1, NULL), 0);
	if (job_ended(job))
		expect(w, has_pattern(b->buf, length, 3));
}

static void the_smaller_mtu_is_agreed_on(struct world *w)
{
	struct ibchan_params small, large;
	struct ibchan_channel_attr attr;

	ibchan_params_init(&small);
	large = small;
	small.mtu = 256;
	if (prepared(w) || rebuild(w, &small, &large))
		return;
	ibchan_channel_query(w->side[1].ch, &attr);
	expect_eq(w, attr.params.mtu, 256);
	cross(w, 5000);
}

static void the_smaller_number_of_reads_is_agreed_on(struct world *w)
{
	struct ibchan_params small, large;
	struct ibchan_channel_attr attr;

	ibchan_params_init(&small);
	large = small;
	small.max_rd_atomic = 3;
	large.max_rd_atomic = 9;
	if (prepared(w) || rebuild(w, &small, &large))
		return;
	ibchan_channel_query(w->side[1].ch, &attr);
	expect_eq(w, attr.params.max_rd_atomic, 3);
	ibchan_channel_query(w->side[0].ch, &attr);
	expect_eq(w, attr.params.max_rd_atomic, 3);
}

static void a_wrong_packet_number_ends_in_a_time_out(struct world *w)
{
	struct side *a = &w->side[0];
	struct ibchan_outcome outcome = {};
	struct ibchan_params first, second;

	ibchan_params_init(&first);
	first.ack_timeout = 8;
	first.ack_retries = 1;
	second = first;
	first.send_psn = 1000;
	second.recv_psn = 500000;
	if (prepared(w) || rebuild(w, &first, &second))
		return;
	expect(w, ibchan_channel_send(a->ch, side_sge(a, 0, 8), 1, &outcome) < 0);
	expect_eq(w, outcome.posted, 1);
	expect_eq(w, outcome.completion.status, IBCHAN_STATUS_RETRY_EXC_ERR);
}

static const struct test_case endpoint_cases[] = {
	ETHERNET_CASE(a_misfit_is_refused_with_both_values_and_changes_nothing),
	CASE(the_smaller_mtu_is_agreed_on),
	CASE(the_smaller_number_of_reads_is_agreed_on),
	CASE(a_wrong_packet_number_ends_in_a_time_out),
};

SUITE(endpoint);
