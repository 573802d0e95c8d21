// SPDX-License-Identifier: GPL-2.0-only
/*
 * Network namespaces (law 12). The other one is given as an open file of the process that
 * inserts the module, and has neither the devices' addresses nor, where `rdma system` says
 * that namespaces are exclusive, the devices:
 *
 *	insmod ibchan_kclient.ko suite=netns_shared netns=9 9</run/netns/NAME
 */
#include <linux/moduleparam.h>
#include <net/net_namespace.h>

#include "job.h"
#include "suites.h"

static int netns = -1;
module_param(netns, int, 0444);
MODULE_PARM_DESC(netns, "file descriptor of another network namespace, for the suites netns_*");

/* NULL, with the case over, where there is none. */
static struct net *other_net(struct world *w)
{
	struct net *net;

	if (netns < 0) {
		world_skip(w, "there is no other namespace");
		return NULL;
	}
	net = get_net_ns_by_fd(netns);
	if (!expect(w, !IS_ERR(net)))
		return NULL;
	expect(w, !net_eq(net, &init_net));
	return net;
}

static void expect_build(struct side *side, struct net *net, u32 gid_index,
			 const struct ibchan_reason *refusal, int error)
{
	struct ibchan_reason reason = {};
	struct world *w = side->world;
	struct ibchan_channel *ch;
	struct ibchan_params params;
	struct ibchan_build build;

	ibchan_params_init(&params);
	params.gid_index = gid_index;
	side_build_init(side, &build);
	build.net = net;
	ch = ibchan_channel_build(&build, &params, &reason);
	if (!IS_ERR(ch))
		world_keep(w, THING_CHANNEL, ch);
	expect_eq(w, PTR_ERR_OR_ZERO(ch), error);
	expect_eq(w, reason.code, refusal->code);
	expect_eq(w, reason.element, refusal->element);
}

static const struct ibchan_reason accepted = { .code = IBCHAN_REASON_NONE };
static const struct ibchan_reason no_address = { .code = IBCHAN_REASON_NO_GID };
static const struct ibchan_reason other_index = {
	.code = IBCHAN_REASON_PARAMETER, .element = IBCHAN_PARAMETER_GID_INDEX,
};

static void a_channel_needs_an_address_of_its_namespace(struct world *w)
{
	struct side *a = &w->side[0];
	struct ibchan_port_attr port;
	struct net *net = other_net(w);

	if (!net)
		return;
	if (!world_default_pair(w) &&
	    expect_eq(w, ibchan_port_query(a->dev, 1, &init_net, &port), 0)) {
		expect_build(a, net, IBCHAN_AUTO, &no_address, -EADDRNOTAVAIL);
		/* Nor does it help to know where it is. */
		expect_build(a, net, port.gid_index, &other_index, -EINVAL);
		expect_build(a, &init_net, port.gid_index, &accepted, 0);
		expect_build(a, &init_net, IBCHAN_AUTO, &accepted, 0);
	}
	put_net(net);
}

static void a_port_has_no_address_in_another_namespace(struct world *w)
{
	struct ibchan_device *dev = world_device(w, 0);
	struct ibchan_port_attr port;
	struct net *net = other_net(w);

	if (!net)
		return;
	if (dev) {
		memset(port.gid, 0xff, sizeof(port.gid));
		expect_eq(w, ibchan_port_query(dev, 1, net, &port), 0);
		expect_eq(w, port.gid_index, IBCHAN_AUTO);
		expect(w, !memchr_inv(port.gid, 0, sizeof(port.gid)));
		expect_eq(w, ibchan_port_query(dev, 1, &init_net, &port), 0);
		expect(w, port.gid_index != IBCHAN_AUTO);
	}
	put_net(net);
}

static u32 visible_devices(struct net *net)
{
	struct ibchan_device *dev;
	u32 num;

	for (num = 0; !IS_ERR(dev = ibchan_device_get_nth(num, net)); num++)
		ibchan_device_put(dev);
	return num;
}

static void shared_devices_are_seen_from_every_namespace(struct world *w)
{
	struct net *net = other_net(w);
	struct ibchan_device *dev;

	if (!net)
		return;
	dev = ibchan_device_get(device_names[0], net);
	if (expect(w, !IS_ERR(dev)))
		ibchan_device_put(dev);
	expect(w, visible_devices(net) >= 2);
	expect_eq(w, visible_devices(net), visible_devices(&init_net));
	put_net(net);
}

static void exclusive_devices_are_seen_from_their_own_namespace_only(struct world *w)
{
	struct net *net = other_net(w);
	int i;

	if (!net)
		return;
	for (i = 0; i < 2; i++) {
		expect(w, world_device(w, i));
		expect_eq(w, PTR_ERR(ibchan_device_get(device_names[i], net)), -ENODEV);
	}
	expect_eq(w, PTR_ERR(ibchan_device_get_nth(0, net)), -ENOENT);
	expect(w, visible_devices(&init_net) >= 2);
	put_net(net);
}

static const struct test_case netns_shared_cases[] = {
	CASE(shared_devices_are_seen_from_every_namespace),
	CASE(a_port_has_no_address_in_another_namespace),
	CASE(a_channel_needs_an_address_of_its_namespace),
};

SUITE(netns_shared);

static const struct test_case netns_exclusive_cases[] = {
	CASE(exclusive_devices_are_seen_from_their_own_namespace_only),
	CASE(a_port_has_no_address_in_another_namespace),
	CASE(a_channel_needs_an_address_of_its_namespace),
};

SUITE(netns_exclusive);
