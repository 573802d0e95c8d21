// SPDX-License-Identifier: GPL-2.0-only
/* The first device while its port is down and has no IP address. The caller has seen to that. */
#include "suites.h"
#include "world.h"

static void memory_is_registered_for_peers(struct world *w)
{
	struct ibchan_device *dev = world_device(w, 0);
	struct ibchan_pd *pd = dev ? world_pd(w, dev) : NULL;
	void *buffer = world_kalloc(w, PAGE_SIZE);
	struct ibchan_mr *mr;
	int i;

	if (!pd || !buffer)
		return;
	/* The second one by the service that the first one has made. */
	for (i = 0; i < 2; i++) {
		mr = world_mr(w, pd, buffer, PAGE_SIZE, IBCHAN_ACCESS_SHARED);
		if (mr)
			expect(w, ibchan_mr_rkey(mr));
	}
}

static void a_channel_is_not_built_and_the_port_is_why(struct world *w)
{
	struct ibchan_device *dev = world_device(w, 0);
	const struct ibchan_cq_init init = { .entries = 16 };
	struct ibchan_reason reason = {};
	struct ibchan_params params;
	struct ibchan_channel *ch;
	struct ibchan_build build = {};

	if (!dev)
		return;
	build.pd = world_pd(w, dev);
	build.send_cq = world_cq(w, dev, &init);
	build.recv_cq = build.send_cq;
	if (!build.pd || !build.send_cq)
		return;
	ibchan_params_init(&params);
	params.port = 1;
	params.max_send_wr = 4;
	params.max_recv_wr = 4;
	ch = ibchan_channel_build(&build, &params, &reason);
	expect_eq(w, PTR_ERR_OR_ZERO(ch), -ENETDOWN);
	expect_eq(w, reason.code, IBCHAN_REASON_PORT_DOWN);
}

static const struct test_case offline_cases[] = {
	CASE(memory_is_registered_for_peers),
	CASE(a_channel_is_not_built_and_the_port_is_why),
};

SUITE(offline);
