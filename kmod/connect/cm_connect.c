// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connecting by address, as its caller sees it: the request is checked, the first step
 * is begun, and others wait for the outcome or look at it. The steps themselves run in the
 * connection manager's handler, see cm.c. A query for the route finds the device that leads to an
 * address, as a connection would take it.
 */
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/in.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <rdma/ib_addr.h>

#include "cm.h"
#include "compat.h"

/* Is this much private data possible? @max: bytes that InfiniBand and RoCE take. */
int ibchan_check_data(const struct ibchan_channel *ch, const struct ibchan_connect *connect,
		      u32 max, struct ibchan_reason *reason)
{
	u32 length = connect->length;

	if (ch->qp.gid.iwarp)
		max = IBCHAN_PRIVATE_DATA_SIZE;
	max -= ibchan_cm_data_room(connect->flags & IBCHAN_CONNECT_FOREIGN);
	if (length <= max)
		return 0;
	return ibchan_refuse_values(reason, IBCHAN_REASON_PRIVATE_DATA, -EINVAL,
				    (u64[3]) { length, max });
}

/* Only families that the connection manager routes by. */
int ibchan_check_address(const struct sockaddr *address, struct ibchan_reason *reason)
{
	if (address->sa_family == AF_INET || address->sa_family == AF_INET6)
		return 0;
	return ibchan_refuse_values(reason, IBCHAN_REASON_ADDRESS_FAMILY, -EAFNOSUPPORT,
				    (u64[3]) { address->sa_family });
}

/* Address number @i of the peer; the first one is 0. */
static const struct sockaddr *peer_at(const struct ibchan_connect *connect, u32 i)
{
	return i ? (const struct sockaddr *)&connect->others[i - 1] : connect->peer;
}

/* Whether an address means the host that uses it, whichever that is. */
static bool is_host_only(const struct sockaddr *address)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
	const struct sockaddr_in *in = (const struct sockaddr_in *)address;

	switch (address->sa_family) {
	case AF_INET:
		return ipv4_is_loopback(in->sin_addr.s_addr) ||
		       ipv4_is_zeronet(in->sin_addr.s_addr);
	case AF_INET6:
		return ipv6_addr_loopback(&in6->sin6_addr) || ipv6_addr_any(&in6->sin6_addr);
	default:
		return false;
	}
}

/* @would_do: an address of a device's to connect to in place of the peer's; 0: none is known. */
static int refuse_host_only(const struct ibchan_gid *would_do, struct ibchan_reason *reason)
{
	return ibchan_refuse_values(reason, IBCHAN_REASON_HOST_ONLY, -ENODEV,
				    (u64[3]) { be64_to_cpu(would_do->gid.global.subnet_prefix),
					       be64_to_cpu(would_do->gid.global.interface_id) });
}

/* A caller that waits for a route */
struct query {
	struct completion known;	/* @status is */
	int status;	/* 0 or a negative errno; -EINPROGRESS: not known yet */
	struct ibchan_route route;	/* the answer, where @status is 0 */
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

/* The query takes the first answer. A device that leaves waits until its ids are destroyed. */
static int query_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct query *query = id->context;

	if (query->status != -EINPROGRESS)
		return 0;
	if (event->event == RDMA_CM_EVENT_ADDR_RESOLVED) {
		fill_route(&query->route, id);
		query->status = 0;
	} else if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL) {
		query->status = -ENODEV;
	} else {
		/* A time-out means that no host answers for the address. */
		query->status = event->status < 0 && event->status != -ETIMEDOUT ?
				event->status : -EHOSTUNREACH;
	}
	complete(&query->known);
	return 0;
}

static int refuse_source(const struct sockaddr *source, int error, struct ibchan_reason *reason)
{
	union ib_gid gid = {};

	rdma_ip2gid((struct sockaddr *)source, &gid);
	return ibchan_refuse_values(reason, IBCHAN_REASON_SOURCE, error,
				    (u64[3]) { -error, be64_to_cpu(gid.global.subnet_prefix),
					       be64_to_cpu(gid.global.interface_id) });
}

/*
 * May a connection come from this address? Otherwise the first address of the peer would be blamed
 * for it. -EAFNOSUPPORT for another family than that of all addresses of the peer; -EADDRNOTAVAIL,
 * -ENODEV when no network device, or no RDMA device, has the address; -EINVAL for a link-local one
 * without its network device; -EADDRINUSE for its port.
 */
static int check_source(struct net *net, const struct ibchan_connect *connect,
			struct ibchan_reason *reason)
{
	const struct sockaddr *source = connect->source;
	struct query nothing = {};
	struct rdma_cm_id *id;
	int ret;
	u32 i;

	if (!source)
		return 0;
	ret = ibchan_check_address(source, reason);
	if (ret)
		return ret;
	for (i = 0; peer_at(connect, i)->sa_family != source->sa_family; i++)
		if (i == connect->num_others)
			return refuse_source(source, -EAFNOSUPPORT, reason);
	/*
	 * Taking the address, the connection manager looks for the RDMA device that has it. The
	 * handler does nothing when that leaves meanwhile.
	 */
	id = rdma_create_id(net, query_event, &nothing, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	ret = rdma_bind_addr(id, (struct sockaddr *)source);
	rdma_destroy_id(id);
	return ret == -EADDRNOTAVAIL || ret == -ENODEV ? refuse_source(source, ret, reason) : ret;
}

static int check_connect(const struct ibchan_channel *ch, const struct ibchan_connect *connect,
			 struct ibchan_reason *reason)
{
	bool only = rdma_protocol_roce(ch->qp.dev->ib, ch->qp.gid.port);
	int ret = 0;
	u32 i;

	if (connect->num_others > IBCHAN_CONNECT_OTHERS || connect->flags & ~IBCHAN_CONNECT_FLAGS)
		return -EINVAL;
	/*
	 * Packets of RoCE leave by a network device that has the address. Where others can be
	 * tried, an address that means this host fails in its turn.
	 */
	for (i = 0; !ret && i <= connect->num_others; i++) {
		only = only && is_host_only(peer_at(connect, i));
		ret = ibchan_check_address(peer_at(connect, i), reason);
	}
	if (!ret)
		ret = check_source(ch->qp.net ?: &init_net, connect, reason);
	if (ret)
		return ret;
	if (only)
		return refuse_host_only(&ch->qp.gid, reason);
	return ibchan_check_data(ch, connect, IBCHAN_REQUEST_DATA, reason);
}

/**
 * ibchan_channel_connect - begin to connect a channel by address
 * @ch: prepared
 * @connect: where to, and what goes with it
 * @reason: why not, or NULL
 *
 * The addresses of a peer are tried in order until there is a connection by one. A failure
 * at the last one after it has begun breaks the channel: -ENETUNREACH, -EHOSTUNREACH;
 * -ENODEV when the way does not lead over an RDMA device, -EXDEV when it leads over another
 * one than the channel's; -ECONNREFUSED when nobody listens there, or only in another
 * network namespace; -ECONNRESET when the peer rejects; -EMSGSIZE when its port takes
 * shorter packets only and it uses no ibchan; -EPROTOTYPE when it accepts and is no ibchan,
 * without IBCHAN_CONNECT_FOREIGN; -ETIMEDOUT when a stage takes too long.
 *
 * Context: process, may sleep.
 * Return: 0 when it has begun; -EAFNOSUPPORT; -EINVAL for too much data or a time that is
 * too long; -EISCONN when it is connected or connecting already; -ESHUTDOWN on a broken
 * channel; -ENODEV when the device is gone, or all addresses of the peer mean this host and are
 * not the device's; -EADDRNOTAVAIL, -ENODEV when the source is no address of this host, or of no
 * RDMA device; -ENOMEM.
 */
int ibchan_channel_connect(struct ibchan_channel *ch, const struct ibchan_connect *connect,
			   struct ibchan_reason *reason)
{
	struct rdma_cm_id *id;
	struct ibchan_cm *cm;
	int ret;

	CLASS(ibchan_command, inside)(ch->qp.dev);
	if (!inside)
		return -ENODEV;
	ret = check_connect(ch, connect, reason);
	if (ret)
		return ret;
	cm = ibchan_cm_create(ch, connect, reason);
	if (IS_ERR(cm))
		return PTR_ERR(cm);
	id = ibchan_cm_new_id(cm);
	if (IS_ERR(id)) {
		kfree(cm);
		return ibchan_refuse_cm(reason, CM_STEP_ID, PTR_ERR(id));
	}
	/* The id is the channel's before anything can happen to it. */
	scoped_guard(ibchan_qp, &ch->qp) {
		cm->id = id;
		ret = ibchan_cm_begin(cm, IBCHAN_STAGE_ADDRESS, reason);
		if (!ret)
			ibchan_cm_resolve(cm, id);
	}
	if (ret) {
		rdma_destroy_id(id);
		kfree(cm);
	}
	return ret;
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_connect, IBCHAN_NS);

static int outcome(const struct ibchan_channel *ch)
{
	const struct ibchan_cm *cm = READ_ONCE(ch->cm);

	switch (READ_ONCE(ch->state)) {
	case IBCHAN_CHANNEL_CONNECTED:
		return 0;
	case IBCHAN_CHANNEL_PREPARED:
		return -ENOTCONN;
	default:
		if (!cm || READ_ONCE(cm->stage) == IBCHAN_STAGE_DONE)
			return ibchan_state_error(IBCHAN_CHANNEL_BROKEN, ibchan_channel_cause(ch));
		return -(int)ibchan_channel_cause(ch);
	}
}

/**
 * ibchan_channel_connect_wait - wait until a channel does not connect any more
 * @ch: connecting, or what has become of that
 * @timeout_ns: how long; 0: not at all; negative: no limit but the stages' own
 *
 * Context: process, may sleep.
 * Return: 0 when it is connected; -ETIMEDOUT with the channel still connecting, or
 * broken because a stage took too long; -EINTR; -ENOTCONN when it was never begun;
 * -ENODEV when its device has left; -ESHUTDOWN when it was connected and has broken since;
 * else what broke it, see ibchan_channel_connect().
 */
int ibchan_channel_connect_wait(struct ibchan_channel *ch, s64 timeout_ns)
{
	long left = timeout_ns < 0 ? MAX_SCHEDULE_TIMEOUT : nsecs_to_jiffies(timeout_ns);

	might_sleep();
	if (is_connecting(ch) && timeout_ns)
		left = wait_event_interruptible_timeout(ch->state_wait, !is_connecting(ch),
							max(left, 1L));
	if (!is_connecting(ch))
		return outcome(ch);
	return left < 0 ? -EINTR : -ETIMEDOUT;
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_connect_wait, IBCHAN_NS);

/**
 * ibchan_channel_connection - how a connection by address fares
 * @ch: the channel
 * @connection: filled
 *
 * Context: process, may sleep.
 */
void ibchan_channel_connection(struct ibchan_channel *ch, struct ibchan_connection *connection)
{
	const struct ibchan_cm *cm;

	*connection = (struct ibchan_connection) {};
	guard(ibchan_qp)(&ch->qp);
	cm = ch->cm;
	if (cm) {
		connection->stage = READ_ONCE(cm->stage);
		connection->cm_error = READ_ONCE(cm->cm_error);
		connection->local = cm->local;
		connection->peer = cm->peer;
		if (cm->heard) {
			connection->length = cm->length;
			memcpy(connection->data, cm->data, sizeof(connection->data));
		}
	}
	connection->state = ibchan_channel_state(ch);
	connection->error = READ_ONCE(ch->error);
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_connection, IBCHAN_NS);

/*
 * For an address that means this host, the connection manager names the first device that it
 * has. Packets of RoCE leave by a network device that has the address, and none has this one.
 * @ret: of the query. The id keeps its device.
 */
static int check_host_only(const struct rdma_cm_id *id, struct net *net, int ret,
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
	return refuse_host_only(&gid, reason);
}

/**
 * ibchan_route_query - find the device that leads to a peer
 * @net: network namespace
 * @connect: peer, source and address_ms are used
 * @route: filled on success, with zeros behind the name
 * @reason: why not, or NULL
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL for a time that is too long, and for more than one address; -EAFNOSUPPORT,
 * -EADDRNOTAVAIL, -ENODEV when the source is of another family than the peer, is no address of this
 * host, or of no RDMA device; -EAFNOSUPPORT for a peer of an unknown family; -ENETUNREACH,
 * -EHOSTUNREACH when there is no way, or no neighbour answers in time; -ENODEV when the way does
 * not lead over an RDMA device, or the peer's address means this host and is not one of a RoCE
 * device's; -EINTR when the caller is killed; -ENOMEM.
 */
int ibchan_route_query(struct net *net, const struct ibchan_connect *connect,
		       struct ibchan_route *route, struct ibchan_reason *reason)
{
	u32 ms = connect->address_ms ?: IBCHAN_DEFAULT_ADDRESS_MS;
	struct query query = { .status = -EINPROGRESS };
	struct rdma_cm_id *id;
	long left;
	int ret;

	might_sleep();
	if (ms > IBCHAN_MAX_STAGE_MS || connect->num_others)
		return -EINVAL;
	ret = check_source(net, connect, reason);
	if (ret)
		return ret;
	init_completion(&query.known);
	id = rdma_create_id(net, query_event, &query, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	ret = rdma_resolve_addr(id, (struct sockaddr *)connect->source, connect->peer, ms);
	if (!ret) {
		left = wait_for_completion_killable_timeout(&query.known, msecs_to_jiffies(ms));
		ret = left < 0 ? -EINTR : left ? query.status : -EHOSTUNREACH;
	}
	if (is_host_only(connect->peer))
		ret = check_host_only(id, net, ret, reason);
	if (!ret)
		*route = query.route;
	rdma_destroy_id(id);
	return ret;
}
EXPORT_SYMBOL_NS_GPL(ibchan_route_query, IBCHAN_NS);
