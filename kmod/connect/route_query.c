// SPDX-License-Identifier: GPL-2.0-only
/* Finds the device that leads to an address, as a connection would take it. */
#include <linux/completion.h>
#include <linux/errno.h>
#include <linux/slab.h>
#include <rdma/ib_addr.h>

#include "cm.h"
#include "compat.h"
#include "parts.h"

/* An address that is told later in the list waits as long for one that is told earlier. */
#define GRACE_MS	250

/**
 * struct query - one address of a peer
 * @race: of all of them
 * @peer: the address
 * @id: resolves it; NULL: it could not be begun
 * @status: 0 or a negative errno; -EINPROGRESS: not known yet
 * @route: the answer, once @status is 0
 */
struct query {
	struct race *race;
	const struct sockaddr *peer;
	struct rdma_cm_id *id;
	int status;
	struct ibchan_route route;
};

/**
 * struct race - a caller that waits for the addresses of a peer, which are all asked for at once
 * @changed: a query has ended
 * @num: how many of @queries there are
 * @queries: in the order of the caller
 */
struct race {
	struct completion changed;
	u32 num;
	struct query queries[];
};

static void fill_route(struct ibchan_route *route, const struct rdma_cm_id *id)
{
	const struct rdma_dev_addr *dev_addr = &id->route.addr.dev_addr;
	const struct ib_gid_attr *attr = dev_addr->sgid_attr;

	*route = (struct ibchan_route){
		.port = id->port_num,
		.ifindex = dev_addr->bound_dev_if,
		.mtu = attr ? ibchan_gid_mtu(attr) : 0,
		.source = id->route.addr.src_addr,
	};
	strscpy(route->device, dev_name(&id->device->dev), sizeof(route->device));
}

static int error_of(const struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		return -ENODEV;
	/* A time-out means that no host answers for the address. */
	return event->status < 0 && event->status != -ETIMEDOUT ? event->status : -EHOSTUNREACH;
}

/* The connection manager waits until an id is gone whose device leaves. */
static int query_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct query *query = id->context;
	int status = 0;

	if (event->event == RDMA_CM_EVENT_ADDR_RESOLVED)
		fill_route(&query->route, id);
	else
		status = error_of(event);
	/* A reader that sees the status sees the route. */
	smp_store_release(&query->status, status);
	complete(&query->race->changed);
	return 0;
}

/* Packets of RoCE leave by a network device that has the address: see refuse_host_only(). */
static bool leads_there(const struct query *query)
{
	/* Pairs with the release in query_event(). */
	return !smp_load_acquire(&query->status) &&
	       !(ibchan_is_host_only(query->peer) &&
		 rdma_protocol_roce(query->id->device, query->id->port_num));
}

static struct query *first_that_leads(struct race *race)
{
	u32 i;

	for (i = 0; i < race->num; i++)
		if (leads_there(&race->queries[i]))
			return &race->queries[i];
	return NULL;
}

/* Has each query before @end had its answer? */
static bool all_known_before(const struct race *race, const struct query *end)
{
	const struct query *query;

	for (query = race->queries; query < end; query++)
		if (READ_ONCE(query->status) == -EINPROGRESS)
			return false;
	return true;
}

static struct query *end_of(struct race *race)
{
	return &race->queries[race->num];
}

/* The query that leads there, or NULL: none does, in time. */
static int await_first(struct race *race, u32 ms, struct query **found)
{
	long left = msecs_to_jiffies(ms);
	bool graced = false;

	for (;;) {
		*found = first_that_leads(race);
		if (left <= 0 || all_known_before(race, *found ?: end_of(race)))
			return 0;
		if (*found && !graced) {
			left = min_t(long, left, msecs_to_jiffies(GRACE_MS));
			graced = true;
		}
		left = wait_for_completion_killable_timeout(&race->changed, left);
		if (left < 0)
			return -EINTR;
	}
}

static void begin(struct query *query, struct net *net, const struct sockaddr *source, u32 ms)
{
	struct rdma_cm_id *id;
	int ret;

	query->status = -EINPROGRESS;
	id = rdma_create_id(net, query_event, query, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id)) {
		query->status = PTR_ERR(id);
		return;
	}
	query->id = id;
	ret = rdma_resolve_addr(id, (struct sockaddr *)source, query->peer, ms);
	if (ret)
		query->status = ret;
}

/*
 * For an address that means this host, the connection manager names the first device that it
 * has. Packets of RoCE leave by a network device that has the address, and none has this one.
 * @ret: of the query. The id keeps its device.
 */
static int refuse_host_only(const struct rdma_cm_id *id, struct net *net, int ret,
			    struct ibchan_reason *reason)
{
	const struct ibchan_params any = { .gid_index = IBCHAN_AUTO };
	struct ibchan_gid gid = {};

	/* These errnos say that the first device has no address, or that there is no device. */
	if (ret && ret != -ENOENT && ret != -ENODEV)
		return ret;
	if (!ret && !rdma_protocol_roce(id->device, id->port_num))
		return 0;
	if (!ret)
		ibchan_gid_choose(id->device, net, &any, &gid, NULL);
	return ibchan_refuse_host_only(&gid, reason);
}

/* Why none leads there: of the first address. */
static int refusal(const struct query *query, struct net *net, struct ibchan_reason *reason)
{
	int ret = READ_ONCE(query->status);

	if (ret == -EINPROGRESS)
		ret = -EHOSTUNREACH;
	if (query->id && ibchan_is_host_only(query->peer))
		ret = refuse_host_only(query->id, net, ret, reason);
	return ret;
}

static int run(struct race *race, struct net *net, const struct ibchan_connect *connect, u32 ms,
	       struct query **found)
{
	u32 i;

	for (i = 0; i < race->num; i++) {
		race->queries[i].race = race;
		race->queries[i].peer = i ? (const struct sockaddr *)&connect->others[i - 1] :
					    connect->peer;
		begin(&race->queries[i], net, connect->source, ms);
	}
	return await_first(race, ms, found);
}

static void end(struct race *race)
{
	u32 i;

	for (i = 0; i < race->num; i++)
		if (race->queries[i].id)
			rdma_destroy_id(race->queries[i].id);
	kfree(race);
}

/**
 * ibchan_route_query - find the device that leads to a peer
 * @net: network namespace
 * @connect: peer, others, source and address_ms are used
 * @route: filled on success, with zeros behind the name
 * @reason: why not, or NULL
 *
 * All addresses of the peer are looked for at once. Of several that a device leads to the first
 * one is told, unless it has no answer 250 ms after another one.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL for a time that is too long or too many addresses; -EAFNOSUPPORT,
 * -EADDRNOTAVAIL, -ENODEV when the source is of another family than all addresses of the peer, is
 * no address of this host, or of no RDMA device; of the first address, where none leads there:
 * -EAFNOSUPPORT; -ENETUNREACH, -EHOSTUNREACH when there is no way, or no neighbour answers in time;
 * -ENODEV when the way does not lead over an RDMA device, or the peer's address means this host
 * and is not one of a RoCE device's; -EINTR when the caller is killed; -ENOMEM.
 */
int ibchan_route_query(struct net *net, const struct ibchan_connect *connect,
		       struct ibchan_route *route, struct ibchan_reason *reason)
{
	u32 ms = connect->address_ms ?: IBCHAN_DEFAULT_ADDRESS_MS;
	struct query *found;
	struct race *race;
	int ret;

	might_sleep();
	if (ms > IBCHAN_MAX_STAGE_MS || connect->num_others > IBCHAN_CONNECT_OTHERS)
		return -EINVAL;
	ret = ibchan_check_source(net, connect, reason);
	if (ret)
		return ret;
	race = kzalloc(struct_size(race, queries, connect->num_others + 1), GFP_KERNEL);
	if (!race)
		return -ENOMEM;
	init_completion(&race->changed);
	race->num = connect->num_others + 1;
	ret = run(race, net, connect, ms, &found);
	if (!ret && found) {
		*route = found->route;
		route->which = found - race->queries;
	} else if (!ret) {
		ret = refusal(race->queries, net, reason);
	}
	end(race);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(ibchan_route_query, IBCHAN_NS);
