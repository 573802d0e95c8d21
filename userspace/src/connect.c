// SPDX-License-Identifier: LGPL-2.1-or-later
/* Connecting by address: the side that asks, and what becomes of a connection. */
#include <errno.h>
#include <netdb.h>
#include <string.h>

#include "address.h"
#include "source.h"
#include "wait.h"

/* For each of several addresses, before any of them is waited for longer. */
#define FIRST_LOOK_MS	250

/* From @info on; AF_UNSPEC: of any family. */
static const struct addrinfo *first_of(const struct addrinfo *info, int family)
{
	while (info && family != AF_UNSPEC && info->ai_family != family)
		info = info->ai_next;
	return info;
}

/*
 * Those that can be reached from a source of the family, as many as the kernel takes. Returns how
 * many there are besides the first.
 */
static __u32 peers_to_kernel(const struct addrinfo *list, int family,
			     struct ibchan_address *peer,
			     struct ibchan_address others[IBCHAN_CONNECT_OTHERS])
{
	const struct addrinfo *info = first_of(list, family);
	__u32 num = 0;

	/* The kernel says what is wrong with the source. */
	if (!info) {
		family = AF_UNSPEC;
		info = list;
	}
	address_to_kernel(info->ai_addr, peer);
	while ((info = first_of(info->ai_next, family)) && num < IBCHAN_CONNECT_OTHERS)
		address_to_kernel(info->ai_addr, &others[num++]);
	return num;
}

static __u32 count_of(const struct addrinfo *list, int family)
{
	const struct addrinfo *info;
	__u32 num = 0;

	for (info = first_of(list, family); info; info = first_of(info->ai_next, family))
		num++;
	return num;
}

/* The share of one address in what is left until @end, at most @most milliseconds. */
static __u32 share_of(__s64 end, __u32 num, __u32 most)
{
	__s64 ms = (end - now_ns()) / NSEC_PER_MSEC / num;

	if (ms > most)
		return most;
	return ms < 1 ? 1 : (__u32)ms;
}

/*
 * Each address of the family in turn, for at most @most milliseconds. Returns 0 with *@found, or
 * the error of the first one, with its reason in @cmd.
 */
static int route_pass(struct ibchan_context *context, const struct addrinfo *list, int family,
		      __s64 end, __u32 most, const struct addrinfo **found,
		      struct ibchan_cmd_route_query *cmd)
{
	struct ibchan_reason reason = { 0 };
	__u32 left = count_of(list, family);
	const struct addrinfo *info;
	int err, first = 0;

	for (info = first_of(list, family); info; info = first_of(info->ai_next, family)) {
		cmd->timeout_ms = share_of(end, left--, most);
		address_to_kernel(info->ai_addr, &cmd->peer);
		err = context_ioctl(context, IBCHAN_CMD_ROUTE_QUERY, cmd);
		if (!err) {
			*found = info;
			return 0;
		}
		if (!first) {
			first = err;
			reason = cmd->reason;
		}
	}
	cmd->reason = reason;
	return first;
}

/*
 * Several addresses are looked for in two rounds, so that one that nobody has does not hide those
 * behind it. While others have their turn, the kernel goes on asking for a neighbour.
 */
static int route_find(struct ibchan_context *context, const struct addrinfo *list,
		      const char *source, __s64 ns, const struct addrinfo **found,
		      struct ibchan_cmd_route_query *cmd)
{
	int family, err;
	__s64 end;
	__u32 ms;

	*cmd = (struct ibchan_cmd_route_query) { .size = sizeof(*cmd) };
	err = ms_of_ns(ns, &ms);
	if (!err)
		err = address_of_source(source, &cmd->source, &cmd->reason);
	if (err)
		return err;
	end = now_ns() + (ms ? ms : IBCHAN_DEFAULT_ADDRESS_MS) * NSEC_PER_MSEC;
	/* Where none is of the source's family, the kernel says what is wrong with that. */
	family = first_of(list, cmd->source.family) ? cmd->source.family : AF_UNSPEC;
	if (count_of(list, family) > 1) {
		err = route_pass(context, list, family, end, FIRST_LOOK_MS, found, cmd);
		if (!err)
			return 0;
	}
	return route_pass(context, list, family, end, IBCHAN_MAX_STAGE_MS, found, cmd);
}

static void fill_route(struct ibchan_route *route, const struct ibchan_cmd_route_query *cmd,
		       const struct addrinfo *info)
{
	memset(route, 0, sizeof(*route));
	memcpy(route->device, cmd->out_device, sizeof(route->device));
	route->port = cmd->out_port;
	route->ifindex = cmd->out_ifindex;
	route->mtu = cmd->out_mtu;
	address_from_kernel(&cmd->out_source, &route->source);
	memcpy(&route->peer, info->ai_addr, info->ai_addrlen);
}

/*
 * Finds the address that a device leads to; *@found is in @list. @source: NULL: as the route says.
 * @ns: for all of them; 0: IBCHAN_DEFAULT_ADDRESS_MS
 */
int route_of_list(struct ibchan_context *context, const struct addrinfo *list,
		  const char *source, __s64 ns, const struct addrinfo **found,
		  struct ibchan_route *route, struct ibchan_error *error)
{
	struct ibchan_cmd_route_query cmd;
	int err = route_find(context, list, source, ns, found, &cmd);

	if (!err)
		fill_route(route, &cmd, *found);
	return error_set(error, err, &cmd.reason);
}

int ibchan_route_query(struct ibchan_context *context, const char *host,
		       const char *service, const char *source,
		       struct ibchan_route *route, struct ibchan_error *error)
{
	struct ibchan_reason reason = { 0 };
	const struct addrinfo *found;
	struct addrinfo *list;
	int err = address_find(host, service, false, &list, &reason);

	if (err)
		return error_set(error, err, &reason);
	err = route_of_list(context, list, source, 0, &found, route, error);
	freeaddrinfo(list);
	return err;
}

int ibchan_device_open_for(struct ibchan_context *context, const char *host,
			   const char *source, struct ibchan_device **device,
			   struct ibchan_error *error)
{
	struct ibchan_route route;
	int err = ibchan_route_query(context, host, NULL, source, &route, error);

	if (err)
		return err;
	return ibchan_device_open(context, route.device, device, error);
}

/* @params: NULL: the defaults */
int connect_params_read(const struct ibchan_connect_params *params,
			struct ibchan_connect_params *with, struct ibchan_reason *reason)
{
	memset(with, 0, sizeof(*with));
	return params ? params_read(with, sizeof(*with), params, reason) : 0;
}

/* With a limit of the kernel's struct; the kernel knows how much the transport takes. */
int connect_data(const void *from, size_t length, void *data, __u32 *data_length,
		 struct ibchan_reason *reason)
{
	if (length > IBCHAN_PRIVATE_DATA_SIZE) {
		*reason = (struct ibchan_reason) {
			.code = IBCHAN_REASON_PRIVATE_DATA,
			.value = { length, IBCHAN_PRIVATE_DATA_SIZE },
		};
		return -EINVAL;
	}
	if (length && !from)
		return -EFAULT;
	if (length)
		memcpy(data, from, length);
	*data_length = (__u32)length;
	return 0;
}

/* The kernel tries one after the other. */
int connect_to_list(struct ibchan_prepared *prepared, const struct addrinfo *list,
		    const struct ibchan_connect_params *with,
		    struct ibchan_channel **out, struct ibchan_error *error)
{
	struct ibchan_channel *channel = &prepared->channel;
	struct ibchan_context *context = channel->object.context;
	struct ibchan_cmd_channel_connect cmd = {
		.size = sizeof(cmd),
		.flags = with->flags,
		.channel = channel->object.handle,
	};
	int err = context_check(context) ?: ms_of_ns(with->address_ns, &cmd.address_ms) ?:
		  ms_of_ns(with->route_ns, &cmd.route_ms) ?:
		  ms_of_ns(with->connect_ns, &cmd.connect_ms);

	if (!err)
		err = address_of_source(with->source, &cmd.source, &cmd.reason);
	if (!err)
		err = connect_data(with->data, with->length, cmd.data, &cmd.data_length,
				   &cmd.reason);
	if (err)
		return error_set(error, err, &cmd.reason);
	cmd.num_others = peers_to_kernel(list, cmd.source.family, &cmd.peer, cmd.others);
	err = context_ioctl(context, IBCHAN_CMD_CHANNEL_CONNECT, &cmd);
	if (!err)
		*out = channel;
	return error_set(error, err, &cmd.reason);
}

int ibchan_prepared_connect(struct ibchan_prepared *prepared, const char *host,
			    const char *service,
			    const struct ibchan_connect_params *params,
			    struct ibchan_channel **out, struct ibchan_error *error)
{
	struct ibchan_connect_params with;
	struct ibchan_reason reason = { 0 };
	struct addrinfo *list;
	int err = context_check(prepared->channel.object.context);

	if (!err)
		err = connect_params_read(params, &with, &reason);
	if (!err)
		err = address_find(host, service, false, &list, &reason);
	if (err)
		return error_set(error, err, &reason);
	err = connect_to_list(prepared, list, &with, out, error);
	freeaddrinfo(list);
	return err;
}

static int connection_query(struct ibchan_channel *channel, __s64 timeout_ns,
			    struct ibchan_cmd_channel_connection *cmd)
{
	*cmd = (struct ibchan_cmd_channel_connection) {
		.size = sizeof(*cmd),
		.channel = channel->object.handle,
		.timeout_ns = timeout_ns,
	};
	return context_ioctl(channel->object.context, IBCHAN_CMD_CHANNEL_CONNECTION, cmd);
}

const char *ibchan_stage_name(__u32 stage)
{
	static const char * const names[] = {
		[IBCHAN_STAGE_NONE] = "not connected by address",
		[IBCHAN_STAGE_ADDRESS] = "looking for a device that leads to the peer",
		[IBCHAN_STAGE_ROUTE] = "looking for the way to the peer",
		[IBCHAN_STAGE_REQUEST] = "asking the peer",
		[IBCHAN_STAGE_ACCEPT] = "telling the peer that it is accepted",
		[IBCHAN_STAGE_DONE] = "connected",
	};

	return stage < ARRAY_SIZE(names) ? names[stage] : "unknown";
}

/* The connection's outcome, as ibchan_channel_connect_wait() returns it. */
static int outcome(const struct ibchan_cmd_channel_connection *cmd)
{
	switch (cmd->out_state) {
	case IBCHAN_CHANNEL_CONNECTED:
		return 0;
	case IBCHAN_CHANNEL_PREPARED:
		return -ENOTCONN;
	case IBCHAN_CHANNEL_CONNECTING:
		return -ETIMEDOUT;
	default:
		break;
	}
	/* Only a device that leaves closes what has a handle, whatever its first error was. */
	if (cmd->out_error == ENODEV || cmd->out_state == IBCHAN_CHANNEL_CLOSED)
		return -ENODEV;
	if (cmd->out_stage == IBCHAN_STAGE_NONE || cmd->out_stage == IBCHAN_STAGE_DONE)
		return -ESHUTDOWN;
	return -(int)cmd->out_error;
}

static int connect_error(struct ibchan_error *error, int err,
			 const struct ibchan_cmd_channel_connection *cmd)
{
	const struct ibchan_reason reason = {
		.code = IBCHAN_REASON_CONNECT,
		.value = { cmd->out_stage, (__u64)(__s64)cmd->out_cm_error, (__u64)-err },
	};

	return error_set(error, err, &reason);
}

int ibchan_channel_connect_wait(struct ibchan_channel *channel, __s64 timeout_ns,
				struct ibchan_error *error)
{
	struct ibchan_cmd_channel_connection cmd;
	int err = context_check(channel->object.context);

	if (!err)
		err = connection_query(channel, timeout_ns, &cmd);
	if (err && err != -ETIMEDOUT)
		return error_set(error, err, NULL);
	return connect_error(error, outcome(&cmd), &cmd);
}

/*
 * For a call that gives up the channel on an error: a signal is none. Each stage has its time.
 */
static int connect_finish(struct ibchan_channel *channel, struct ibchan_error *error)
{
	int err;

	do {
		err = ibchan_channel_connect_wait(channel, IBCHAN_TIMEOUT_NEVER, error);
	} while (err == -EINTR);
	return err;
}

int ibchan_channel_connection(struct ibchan_channel *channel,
			      struct ibchan_connection_info *info, struct ibchan_error *error)
{
	struct ibchan_cmd_channel_connection cmd;
	int err = connection_query(channel, 0, &cmd);

	if (err)
		return error_set(error, err, NULL);
	*info = (struct ibchan_connection_info) {
		.state = cmd.out_state,
		.stage = cmd.out_stage,
		.error = -(int)cmd.out_error,
		.cm_error = cmd.out_cm_error,
		.length = cmd.out_data_length,
	};
	address_from_kernel(&cmd.out_local, &info->local);
	address_from_kernel(&cmd.out_peer, &info->peer);
	memcpy(info->data, cmd.out_data, sizeof(info->data));
	return error_set(error, 0, NULL);
}

int ibchan_builder_connect(const struct ibchan_builder *builder, const char *host,
			   const char *service,
			   const struct ibchan_connect_params *params,
			   struct ibchan_channel **out, struct ibchan_error *error)
{
	struct ibchan_prepared *prepared;
	struct ibchan_channel *channel;
	int err = ibchan_builder_prepare(builder, &prepared, error);

	if (err)
		return err;
	object_hide(&prepared->channel.object);
	err = ibchan_prepared_connect(prepared, host, service, params, &channel, error);
	if (!err)
		err = connect_finish(channel, error);
	if (err) {
		ibchan_prepared_destroy(prepared);
		return err;
	}
	channel_publish(channel);
	*out = channel;
	return 0;
}
