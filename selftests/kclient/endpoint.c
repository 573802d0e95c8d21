// SPDX-License-Identifier: GPL-2.0-only
/* Endpoints and what two peers agree on (C2, Q6, B1). */
#include <linux/etherdevice.h>
#include <linux/string.h>
#include <net/ipv6.h>

#include "job.h"
#include "suites.h"

static int prepared(struct world *w)
{
	struct pair_init init;

	pair_defaults(&init);
	return world_sides(w, &init);
}

/* A change to the peer's endpoint, and what the handshake says to it. */
struct misfit {
	void (*change)(struct ibchan_endpoint *e);
	u32 code;
	u64 ours;
	u64 theirs;
};

#define CHANGE(name, statement) \
	static void change_##name(struct ibchan_endpoint *e) { statement; }

CHANGE(magic, e->magic = cpu_to_be32(1))
CHANGE(version, e->version = 0)
CHANGE(flags, e->flags = IBCHAN_ENDPOINT_GRH)
CHANGE(link_layer, e->link_layer = IBCHAN_LINK_LAYER_INFINIBAND)
CHANGE(qpn_low, e->qpn = cpu_to_be32(1))
CHANGE(qpn_high, e->qpn = cpu_to_be32(1 << 24))
CHANGE(psn, e->psn = cpu_to_be32(1 << 24))
CHANGE(mtu_low, e->mtu = 0)
CHANGE(mtu_high, e->mtu = 6)
CHANGE(rd_atomic, e->max_dest_rd_atomic = 0)
CHANGE(family, e->gid[0] = 0xfd)
CHANGE(multicast, e->gid[12] = 224)
CHANGE(mac, e->mac[0] = 1)

static const struct misfit misfits[] = {
	{ change_magic, IBCHAN_REASON_ENDPOINT_MAGIC, IBCHAN_ENDPOINT_MAGIC, 1 },
	{ change_version, IBCHAN_REASON_ENDPOINT_VERSION, IBCHAN_ENDPOINT_VERSION, 0 },
	{ change_flags, IBCHAN_REASON_ENDPOINT_RESERVED, 0, 0 },
	{ change_link_layer, IBCHAN_REASON_LINK_LAYER, IBCHAN_LINK_LAYER_ETHERNET,
	  IBCHAN_LINK_LAYER_INFINIBAND },
	{ change_qpn_low, IBCHAN_REASON_PEER_QPN, 2, 1 },
	{ change_qpn_high, IBCHAN_REASON_PEER_QPN, 2, 1 << 24 },
	{ change_psn, IBCHAN_REASON_PEER_PSN, 0xffffff, 1 << 24 },
	{ change_mtu_low, IBCHAN_REASON_PEER_MTU, IB_MTU_1024, 0 },
	{ change_mtu_high, IBCHAN_REASON_PEER_MTU, IB_MTU_1024, 6 },
	{ change_rd_atomic, IBCHAN_REASON_PEER_RD_ATOMIC, 1, 0 },
	{ change_family, IBCHAN_REASON_GID_FAMILY, 4, 6 },
	{ change_multicast, IBCHAN_REASON_PEER_GID, 0, 0 },
	{ change_mac, IBCHAN_REASON_PEER_MAC, 0, 0 },
};

static void try_misfit(struct world *w, const struct ibchan_endpoint *good,
		       const struct misfit *misfit)
{
	struct ibchan_endpoint bad = *good;
	struct ibchan_reason reason = {};

	misfit->change(&bad);
	expect_eq(w, ibchan_channel_handshake(w->side[0].ch, &bad, &reason), -EINVAL);
	expect_eq(w, reason.code, misfit->code);
	expect_eq(w, reason.value[0], misfit->ours);
	expect_eq(w, reason.value[1], misfit->theirs);
	expect_eq(w, channel_state(w->side[0].ch), IBCHAN_CHANNEL_PREPARED);
}

/* The same channel connects afterwards, so nothing had changed. */
static void a_misfit_is_refused_with_both_values_and_changes_nothing(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_endpoint good;
	struct job *job = world_jobs(w, 1);
	int i;

	if (prepared(w))
		return;
	ibchan_channel_endpoint(b->ch, &good);
	for (i = 0; i < ARRAY_SIZE(misfits); i++)
		try_misfit(w, &good, &misfits[i]);
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

/* Finds the entry of the table that holds a routable IPv6 address. */
static int ipv6_channel(struct side *side, const struct ibchan_params *base)
{
	struct ibchan_params params = *base;
	struct ibchan_endpoint endpoint;
	struct ibchan_build build;

	side_build_init(side, &build);
	for (params.gid_index = 0; params.gid_index < 8; params.gid_index++) {
		struct ibchan_params tried = params;
		struct ibchan_channel *ch = ibchan_channel_build(&build, &tried, NULL);

		if (IS_ERR(ch))
			continue;
		ibchan_channel_endpoint(ch, &endpoint);
		if (endpoint.gid[0] == 0xfd) {
			world_keep(side->world, THING_CHANNEL, ch);
			side->ch = ch;
			return 0;
		}
		ibchan_channel_close(ch);
	}
	return -EADDRNOTAVAIL;
}

/* On one device: between two of one namespace IPv6 takes the loopback device. */
static void an_ipv6_address_works_too(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct pair_init init;

	pair_defaults(&init);
	init.loop = 1;
	if (world_sides(w, &init))
		return;
	side_close(a);
	side_close(b);
	if (!expect_eq(w, ipv6_channel(a, &init.params), 0) ||
	    !expect_eq(w, ipv6_channel(b, &init.params), 0) ||
	    side_connect(w, a->ch, b->ch) || side_connect(w, b->ch, a->ch))
		return;
	cross(w, 5000);
}

static const struct test_case endpoint_cases[] = {
	ETHERNET_CASE(a_misfit_is_refused_with_both_values_and_changes_nothing),
	CASE(the_smaller_mtu_is_agreed_on),
	CASE(the_smaller_number_of_reads_is_agreed_on),
	CASE(a_wrong_packet_number_ends_in_a_time_out),
	ETHERNET_CASE(an_ipv6_address_works_too),
};

SUITE(endpoint);
