// SPDX-License-Identifier: GPL-2.0-only
/* Commands that connect a channel by address. */
#include <linux/errno.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <rdma/ibchan_connect.h>

#include "context.h"

/* As the kernel has it. */
int ibchan_address_in(const struct ibchan_address *address, struct sockaddr_storage *out)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;
	struct sockaddr_in *in = (struct sockaddr_in *)out;

	*out = (struct sockaddr_storage) { .ss_family = address->family };
	switch (address->family) {
	case AF_INET:
		if (address->scope_id ||
		    memchr_inv(address->bytes + 4, 0, sizeof(address->bytes) - 4))
			return -EINVAL;
		in->sin_port = address->port;
		memcpy(&in->sin_addr, address->bytes, sizeof(in->sin_addr));
		return 0;
	case AF_INET6:
		in6->sin6_port = address->port;
		in6->sin6_scope_id = address->scope_id;
		memcpy(&in6->sin6_addr, address->bytes, sizeof(in6->sin6_addr));
		return 0;
	default:
		return -EAFNOSUPPORT;
	}
}

/* As the contract has it; all zero for what is not known yet. */
void ibchan_address_out(const struct sockaddr_storage *address, struct ibchan_address *out)
{
	const struct sockaddr_in6 *in6 = (const void *)address;
	const struct sockaddr_in *in = (const void *)address;

	*out = (struct ibchan_address) { .family = address->ss_family };
	switch (address->ss_family) {
	case AF_INET:
		out->port = in->sin_port;
		memcpy(out->bytes, &in->sin_addr, sizeof(in->sin_addr));
		break;
	case AF_INET6:
		out->port = in6->sin6_port;
		out->scope_id = in6->sin6_scope_id;
		memcpy(out->bytes, &in6->sin6_addr, sizeof(out->bytes));
		break;
	}
}

/* Two addresses as the kernel has them */
struct ends {
	struct sockaddr_storage peer;	/* where to */
	struct sockaddr_storage source;	/* where from, if there is one */
};

static int ends_in(struct ends *ends, struct ibchan_connect *connect,
		   const struct ibchan_address *peer, const struct ibchan_address *source)
{
	int ret = ibchan_address_in(peer, &ends->peer);

	connect->peer = (struct sockaddr *)&ends->peer;
	if (ret || !source->family)
		return ret;
	connect->source = (struct sockaddr *)&ends->source;
	return ibchan_address_in(source, &ends->source);
}

/* @from: IBCHAN_CONNECT_OTHERS, all zero from @num on. For kfree(); NULL if there are none. */
static struct sockaddr_storage *others_in(const struct ibchan_address *from, u32 num)
{
	struct sockaddr_storage *others;
	int ret;
	u32 i;

	if (num > IBCHAN_CONNECT_OTHERS ||
	    memchr_inv(&from[num], 0, (IBCHAN_CONNECT_OTHERS - num) * sizeof(*from)))
		return ERR_PTR(-EINVAL);
	if (!num)
		return NULL;
	others = kcalloc(num, sizeof(*others), GFP_KERNEL);
	if (!others)
		return ERR_PTR(-ENOMEM);
	for (i = 0; i < num; i++) {
		ret = ibchan_address_in(&from[i], &others[i]);
		if (!ret)
			continue;
		kfree(others);
		return ERR_PTR(ret);
	}
	return others;
}

int ibchan_run_channel_connect(struct ibchan_call *call)
{
	struct ibchan_cmd_channel_connect *cmd = call->cmd;
	struct ibchan_connect connect = {
		.data = cmd->data,
		.length = cmd->data_length,
		.flags = cmd->flags,
		.address_ms = cmd->address_ms,
		.route_ms = cmd->route_ms,
		.connect_ms = cmd->connect_ms,
		.num_others = cmd->num_others,
	};
	struct sockaddr_storage *others;
	struct ends ends;
	int ret;

	others = others_in(cmd->others, cmd->num_others);
	if (IS_ERR(others))
		return PTR_ERR(others);
	connect.others = others;
	ret = ends_in(&ends, &connect, &cmd->peer, &cmd->source);
	if (!ret)
		ret = ibchan_channel_connect(call->object->channel, &connect, &cmd->reason);
	kfree(others);
	return ret;
}

static bool is_connecting(struct ibchan_context *ctx, u32 handle)
{
	struct ibchan_object *object;

	guard(rcu)();
	object = ibchan_object_find(ctx, handle, OBJECT_CHANNEL);
	return object && ibchan_channel_state(object->channel) == IBCHAN_CHANNEL_CONNECTING;
}

/* Others may use the file during the wait, and even close the channel. */
int ibchan_run_channel_connection(struct ibchan_call *call)
{
	struct ibchan_cmd_channel_connection *cmd = call->cmd;
	s64 timeout_ns = ibchan_time_left(cmd->flags, cmd->timeout_ns);
	struct ibchan_connection connection;
	struct ibchan_object *object;
	ktime_t start = ktime_get();
	long waited = 1;

	if (cmd->timeout_ns < IBCHAN_TIMEOUT_NEVER)
		return -EINVAL;
	if (cmd->timeout_ns)
		waited = wait_event_interruptible_timeout(call->ctx->event_wait,
							  !is_connecting(call->ctx, cmd->channel),
							  timeout_ns < 0 ? MAX_SCHEDULE_TIMEOUT :
							  max(nsecs_to_jiffies(timeout_ns), 1UL));
	if (waited < 0)
		waited = ibchan_wait_again(&cmd->flags, &cmd->timeout_ns, start);
	else
		waited = waited ? 0 : -ETIMEDOUT;
	object = ibchan_call_find(call, cmd->channel, OBJECT_CHANNEL);
	if (IS_ERR(object))
		return PTR_ERR(object);
	ibchan_channel_connection(object->channel, &connection);
	cmd->out_state = connection.state;
	cmd->out_stage = connection.stage;
	cmd->out_error = connection.error;
	cmd->out_cm_error = connection.cm_error;
	cmd->out_data_length = connection.length;
	ibchan_address_out(&connection.local, &cmd->out_local);
	ibchan_address_out(&connection.peer, &cmd->out_peer);
	memcpy(cmd->out_data, connection.data, sizeof(cmd->out_data));
	return waited;
}

int ibchan_run_route_query(struct ibchan_call *call)
{
	struct ibchan_cmd_route_query *cmd = call->cmd;
	struct ibchan_connect connect = { .address_ms = cmd->timeout_ms };
	struct ibchan_route route;
	struct ends ends;
	int ret;

	if (cmd->reserved)
		return -EINVAL;
	ret = ends_in(&ends, &connect, &cmd->peer, &cmd->source);
	if (!ret)
		ret = ibchan_route_query(ibchan_caller_net(), &connect, &route, &cmd->reason);
	if (ret)
		return ret;
	cmd->out_port = route.port;
	cmd->out_ifindex = route.ifindex;
	cmd->out_mtu = route.mtu;
	memcpy(cmd->out_device, route.device, sizeof(cmd->out_device));
	ibchan_address_out(&route.source, &cmd->out_source);
	return 0;
}
