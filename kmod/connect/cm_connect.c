// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connecting by address, as its caller sees it: the request is checked, the first step
 * is begun, and others wait for the outcome or look at it. The steps themselves run in the
 * connection manager's handler, see cm.c.
 */
#include <linux/slab.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/in.h>
#include <linux/sched/signal.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <rdma/ib_addr.h>

#include "cm.h"
#include "compat.h"
#include "parts.h"

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

/* Whether an address means the host that uses it, whichever that is. */
bool ibchan_is_host_only(const struct sockaddr *address)
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

/* The device leaves while the id has it; the maker of the id destroys it at once. */
static int ignore_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	return 0;
}

/* Taking the address, the connection manager looks for the RDMA device that has it. */
static int try_source(struct net *net, const struct sockaddr *source)
{
	struct sockaddr_storage address = {};
	struct rdma_cm_id *id;
	int ret;

	id = rdma_create_id(net, ignore_event, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	memcpy(&address, source, rdma_addr_size((struct sockaddr *)source));
	ret = rdma_bind_addr(id, (struct sockaddr *)&address);
	rdma_destroy_id(id);
	return ret;
}

static bool family_is_asked_for(const struct ibchan_connect *connect, sa_family_t family)
{
	u32 i;

	if (connect->peer->sa_family == family)
		return true;
	for (i = 0; i < connect->num_others; i++)
		if (connect->others[i].ss_family == family)
			return true;
	return false;
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
int ibchan_check_source(struct net *net, const struct ibchan_connect *connect,
			struct ibchan_reason *reason)
{
	const struct sockaddr *source = connect->source;
	int ret;

	if (!source)
		return 0;
	ret = ibchan_check_address(source, reason);
	if (ret)
		return ret;
	if (!family_is_asked_for(connect, source->sa_family))
		return refuse_source(source, -EAFNOSUPPORT, reason);
	ret = try_source(net, source);
	return ret == -EADDRNOTAVAIL || ret == -ENODEV ? refuse_source(source, ret, reason) : ret;
}

static struct net *net_of(const struct ibchan_channel *ch)
{
	return ch->qp.net ?: &init_net;
}

static int check_connect(const struct ibchan_channel *ch, const struct ibchan_connect *connect,
			 struct ibchan_reason *reason)
{
	bool only;
	int ret;
	u32 i;

	if (connect->num_others > IBCHAN_CONNECT_OTHERS ||
	    connect->flags & ~IBCHAN_CONNECT_FLAGS)
		return -EINVAL;
	ret = ibchan_check_address(connect->peer, reason);
	for (i = 0; !ret && i < connect->num_others; i++)
		ret = ibchan_check_address((const struct sockaddr *)&connect->others[i], reason);
	if (!ret)
		ret = ibchan_check_source(net_of(ch), connect, reason);
	if (ret)
		return ret;
	/*
	 * Packets of RoCE leave by a network device that has the address. Where others can be
	 * tried, an address that means this host fails in its turn.
	 */
	only = rdma_protocol_roce(ch->qp.dev->ib, ch->qp.gid.port) &&
	       ibchan_is_host_only(connect->peer);
	for (i = 0; only && i < connect->num_others; i++)
		only = ibchan_is_host_only((const struct sockaddr *)&connect->others[i]);
	if (only)
		return ibchan_refuse_host_only(&ch->qp.gid, reason);
	return ibchan_check_data(ch, connect, IBCHAN_REQUEST_DATA, reason);
}

/*
 * The id is the channel's before anything can happen to it. A failure after that
 * breaks the channel.
 */
static int begin_connect(struct ibchan_cm *cm, struct rdma_cm_id *id,
			 const struct ibchan_connect *connect, struct ibchan_reason *reason)
{
	struct sockaddr_storage peer = {};
	int ret;

	memcpy(&peer, connect->peer, rdma_addr_size((struct sockaddr *)connect->peer));
	guard(ibchan_qp)(&cm->ch->qp);
	cm->id = id;
	ret = ibchan_cm_begin(cm, IBCHAN_STAGE_ADDRESS, reason);
	if (!ret)
		ibchan_cm_resolve(cm, id, &peer);
	return ret;
}

static int channel_connect(struct ibchan_channel *ch, const struct ibchan_connect *connect,
			   struct ibchan_reason *reason)
{
	struct rdma_cm_id *id;
	struct ibchan_cm *cm;
	int ret;

	ret = check_connect(ch, connect, reason);
	if (ret)
		return ret;
	cm = ibchan_cm_create(ch, connect, reason);
	if (IS_ERR(cm))
		return PTR_ERR(cm);
	id = rdma_create_id(net_of(ch), ibchan_cm_event, cm, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id)) {
		kfree(cm);
		return ibchan_refuse_cm(reason, CM_STEP_ID, PTR_ERR(id));
	}
	ret = begin_connect(cm, id, connect, reason);
	if (ret) {
		rdma_destroy_id(id);
		kfree(cm);
	}
	return ret;
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
	int ret = ibchan_device_enter(ch->qp.dev);

	if (ret)
		return ret;
	ret = channel_connect(ch, connect, reason);
	ibchan_device_exit(ch->qp.dev);
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
void ibchan_channel_connection(struct ibchan_channel *ch,
			       struct ibchan_connection *connection)
{
	const struct ibchan_cm *cm;

	*connection = (struct ibchan_connection) {};
	ibchan_qp_lock(&ch->qp);
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
	ibchan_qp_unlock(&ch->qp);
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_connection, IBCHAN_NS);
