// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Connecting by address: names of hosts and services, the forms of an IP address, the side that
 * asks, and what becomes of a connection.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "source.h"
#include "wait.h"

#define MAX_PORT	65535

static int error_of_lookup(int code)
{
	if (code == EAI_AGAIN)
		return -EAGAIN;
	if (code == EAI_MEMORY)
		return -ENOMEM;
	if (code == EAI_SYSTEM)
		return errno ? -errno : -EIO;
	/* No such name, or no address of it of a family that was asked for. */
	return -ENOENT;
}

/* A number as the C library reads it, which keeps the lower 16 bits of a longer one. */
static int check_service(const char *service, struct ibchan_reason *reason)
{
	unsigned long long port;
	char *end;

	port = strtoull(service, &end, 10);
	if (*end || port <= MAX_PORT)
		return 0;
	*reason = out_of_range(IBCHAN_PARAMETER_SERVICE, port, 0, MAX_PORT);
	return -EINVAL;
}

/* An IPv4 address as sockets of IPv6 write it is one of IPv4: no route of IPv6 leads there. */
static void unmap(struct addrinfo *info)
{
	struct sockaddr_in *in = (void *)info->ai_addr;
	struct sockaddr_in6 in6;

	if (info->ai_family != AF_INET6)
		return;
	memcpy(&in6, info->ai_addr, sizeof(in6));
	if (!IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr))
		return;
	*in = (struct sockaddr_in) { .sin_family = AF_INET, .sin_port = in6.sin6_port };
	memcpy(&in->sin_addr, &in6.sin6_addr.s6_addr[12], sizeof(in->sin_addr));
	info->ai_family = AF_INET;
	info->ai_addrlen = sizeof(*in);
}

/*
 * For freeaddrinfo(). A port by number need not have a name. A look-up has an end of its own:
 * a signal is no reason to give it up. On an error @reason says more.
 */
int address_find(const char *host, const char *service, bool passive,
		 struct addrinfo **list, struct ibchan_reason *reason)
{
	const struct addrinfo hints = {
		.ai_flags = passive ? AI_PASSIVE : 0, .ai_socktype = SOCK_STREAM,
	};
	struct addrinfo *info;
	int code, err, state;

	if (!host && !service)
		service = "0";
	err = service ? check_service(service, reason) : 0;
	if (err)
		return err;
	state = cancel_off();
	do {
		code = getaddrinfo(host, service, &hints, list);
		err = code ? error_of_lookup(code) : 0;
	} while (err == -EINTR);
	cancel_back(state);
	if (code && code != EAI_SYSTEM)
		*reason = (struct ibchan_reason) {
			.code = IBCHAN_REASON_NAME, .value = { (__u64)(__s64)code },
		};
	for (info = err ? NULL : *list; info; info = info->ai_next)
		unmap(info);
	return err;
}

void address_to_kernel(const struct sockaddr *from, struct ibchan_address *to)
{
	const struct sockaddr_in6 *in6 = (const void *)from;
	const struct sockaddr_in *in = (const void *)from;

	*to = (struct ibchan_address) { .family = from->sa_family };
	if (from->sa_family == AF_INET) {
		to->port = in->sin_port;
		memcpy(to->bytes, &in->sin_addr, sizeof(in->sin_addr));
	} else if (from->sa_family == AF_INET6) {
		to->port = in6->sin6_port;
		to->scope_id = in6->sin6_scope_id;
		memcpy(to->bytes, &in6->sin6_addr, sizeof(to->bytes));
	}
}

void address_from_kernel(const struct ibchan_address *from, struct sockaddr_storage *to)
{
	struct sockaddr_in6 *in6 = (void *)to;
	struct sockaddr_in *in = (void *)to;

	memset(to, 0, sizeof(*to));
	to->ss_family = from->family;
	if (from->family == AF_INET) {
		in->sin_port = from->port;
		memcpy(&in->sin_addr, from->bytes, sizeof(in->sin_addr));
	} else if (from->family == AF_INET6) {
		in6->sin6_port = from->port;
		in6->sin6_scope_id = from->scope_id;
		memcpy(&in6->sin6_addr, from->bytes, sizeof(from->bytes));
	}
}

/* Without one @to stays all zero, which leaves the choice to the route. */
static int address_of_source(const char *source, struct ibchan_address *to,
			     struct ibchan_reason *reason)
{
	struct addrinfo *list;
	int err = source ? address_find(source, NULL, false, &list, reason) : 0;

	if (err || !source)
		return err;
	address_to_kernel(list->ai_addr, to);
	freeaddrinfo(list);
	return 0;
}

/* For each of several addresses, before any of them is waited for longer. */
#define FIRST_LOOK_MS	250

/* From @info on; AF_UNSPEC: of any family. */
static const struct addrinfo *first_of(const struct addrinfo *info, int family)
{
	while (info && family != AF_UNSPEC && info->ai_family != family)
		info = info->ai_next;
	return info;
}

/* Where none is of the source's family, the kernel says what is wrong with that. */
static int family_of(const struct addrinfo *list, const struct ibchan_address *source)
{
	return first_of(list, source->family) ? source->family : AF_UNSPEC;
}

static __u32 count_of(const struct addrinfo *list, int family)
{
	const struct addrinfo *info;
	__u32 num = 0;

	for (info = first_of(list, family); info; info = first_of(info->ai_next, family))
		num++;
	return num;
}

/*
 * Each address of the family in turn, for its share of what is left until @end, but at most @most
 * milliseconds. Returns 0 with *@found, or the error of the first one, with its reason in @cmd.
 */
static int route_pass(struct ibchan_context *context, const struct addrinfo *list, int family,
		      __s64 end, __u32 most, const struct addrinfo **found,
		      struct ibchan_cmd_route_query *cmd)
{
	struct ibchan_reason reason = { 0 };
	__u32 left = count_of(list, family);
	const struct addrinfo *info;
	int err, first = 0;
	__s64 ms;

	for (info = first_of(list, family); info; info = first_of(info->ai_next, family)) {
		ms = (end - now_ns()) / NSEC_PER_MSEC / left--;
		cmd->timeout_ms = ms < 1 ? 1 : (__u32)min(ms, most);
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
 * Finds the address that a device leads to; *@found is in @list. @source: NULL: as the route says.
 * @ns: for all of them; 0: IBCHAN_DEFAULT_ADDRESS_MS
 *
 * Several addresses are looked for in two rounds, so that one that nobody has does not hide those
 * behind it. While others have their turn, the kernel goes on asking for a neighbour.
 */
int route_of_list(struct ibchan_context *context, const struct addrinfo *list, const char *source,
		  __s64 ns, const struct addrinfo **found, struct ibchan_route *route,
		  struct ibchan_error *error)
{
	struct ibchan_cmd_route_query cmd = { .size = sizeof(cmd) };
	__u32 ms;
	int err = ms_of_ns(ns, &ms) ?: address_of_source(source, &cmd.source, &cmd.reason);
	int family;
	__s64 end;

	if (err)
		return error_set(error, err, &cmd.reason);
	end = now_ns() + (ms ? ms : IBCHAN_DEFAULT_ADDRESS_MS) * NSEC_PER_MSEC;
	family = family_of(list, &cmd.source);
	if (count_of(list, family) < 2 ||
	    route_pass(context, list, family, end, FIRST_LOOK_MS, found, &cmd))
		err = route_pass(context, list, family, end, IBCHAN_MAX_STAGE_MS, found, &cmd);
	if (err)
		return error_set(error, err, &cmd.reason);
	*route = (struct ibchan_route) {
		.port = cmd.out_port, .ifindex = cmd.out_ifindex, .mtu = cmd.out_mtu,
	};
	memcpy(route->device, cmd.out_device, sizeof(route->device));
	address_from_kernel(&cmd.out_source, &route->source);
	memcpy(&route->peer, (*found)->ai_addr, (*found)->ai_addrlen);
	return error_set(error, 0, NULL);
}

int ibchan_route_query(struct ibchan_context *context, const char *host, const char *service,
		       const char *source, struct ibchan_route *route, struct ibchan_error *error)
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

int ibchan_device_open_for(struct ibchan_context *context, const char *host, const char *source,
			   struct ibchan_device **device, struct ibchan_error *error)
{
	struct ibchan_route route;
	int err = ibchan_route_query(context, host, NULL, source, &route, error);

	if (err)
		return err;
	return ibchan_device_open(context, route.device, device, error);
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
		    const struct ibchan_connect_params *with, struct ibchan_channel **out,
		    struct ibchan_error *error)
{
	struct ibchan_channel *channel = &prepared->channel;
	struct ibchan_context *context = channel->object.context;
	struct ibchan_cmd_channel_connect cmd = {
		.size = sizeof(cmd), .flags = with->flags, .channel = channel->object.handle,
	};
	int err = context_check(context) ?: ms_of_ns(with->address_ns, &cmd.address_ms) ?:
		  ms_of_ns(with->route_ns, &cmd.route_ms) ?:
		  ms_of_ns(with->connect_ns, &cmd.connect_ms) ?:
		  address_of_source(with->source, &cmd.source, &cmd.reason) ?:
		  connect_data(with->data, with->length, cmd.data, &cmd.data_length, &cmd.reason);
	const struct addrinfo *info;
	int family;

	if (err)
		return error_set(error, err, &cmd.reason);
	family = family_of(list, &cmd.source);
	info = first_of(list, family);
	address_to_kernel(info->ai_addr, &cmd.peer);
	while ((info = first_of(info->ai_next, family)) && cmd.num_others < IBCHAN_CONNECT_OTHERS)
		address_to_kernel(info->ai_addr, &cmd.others[cmd.num_others++]);
	err = context_ioctl(context, IBCHAN_CMD_CHANNEL_CONNECT, &cmd);
	if (!err)
		*out = channel;
	return error_set(error, err, &cmd.reason);
}

int ibchan_prepared_connect(struct ibchan_prepared *prepared, const char *host, const char *service,
			    const struct ibchan_connect_params *params, struct ibchan_channel **out,
			    struct ibchan_error *error)
{
	struct ibchan_connect_params with;
	struct ibchan_reason reason = { 0 };
	struct addrinfo *list;
	int err = context_check(prepared->channel.object.context) ?:
		  params_read(&with, sizeof(with), params, &reason) ?:
		  address_find(host, service, false, &list, &reason);

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
		.size = sizeof(*cmd), .channel = channel->object.handle, .timeout_ns = timeout_ns,
	};
	return context_ioctl(channel->object.context, IBCHAN_CMD_CHANNEL_CONNECTION, cmd);
}

/* The connection's outcome, as ibchan_channel_connect_wait() returns it. */
static int outcome(const struct ibchan_cmd_channel_connection *cmd)
{
	if (cmd->out_state == IBCHAN_CHANNEL_CONNECTED)
		return 0;
	if (cmd->out_state == IBCHAN_CHANNEL_PREPARED)
		return -ENOTCONN;
	if (cmd->out_state == IBCHAN_CHANNEL_CONNECTING)
		return -ETIMEDOUT;
	/* Only a device that leaves closes what has a handle, whatever its first error was. */
	if (cmd->out_error == ENODEV || cmd->out_state == IBCHAN_CHANNEL_CLOSED)
		return -ENODEV;
	if (cmd->out_stage == IBCHAN_STAGE_NONE || cmd->out_stage == IBCHAN_STAGE_DONE)
		return -ESHUTDOWN;
	return -(int)cmd->out_error;
}

int ibchan_channel_connect_wait(struct ibchan_channel *channel, __s64 timeout_ns,
				struct ibchan_error *error)
{
	struct ibchan_reason reason = { .code = IBCHAN_REASON_CONNECT };
	struct ibchan_cmd_channel_connection cmd;
	int err = context_check(channel->object.context) ?:
		  connection_query(channel, timeout_ns, &cmd);

	if (err && err != -ETIMEDOUT)
		return error_set(error, err, NULL);
	err = outcome(&cmd);
	reason.value[0] = cmd.out_stage;
	reason.value[1] = (__u64)(__s64)cmd.out_cm_error;
	reason.value[2] = (__u64)-err;
	return error_set(error, err, &reason);
}

int ibchan_channel_connection(struct ibchan_channel *channel,
			      struct ibchan_connection_info *info, struct ibchan_error *error)
{
	struct ibchan_cmd_channel_connection cmd;
	int err = connection_query(channel, 0, &cmd);

	if (err)
		return error_set(error, err, NULL);
	*info = (struct ibchan_connection_info) {
		.state = cmd.out_state, .stage = cmd.out_stage, .error = -(int)cmd.out_error,
		.cm_error = cmd.out_cm_error, .length = cmd.out_data_length,
	};
	address_from_kernel(&cmd.out_local, &info->local);
	address_from_kernel(&cmd.out_peer, &info->peer);
	memcpy(info->data, cmd.out_data, sizeof(info->data));
	return error_set(error, 0, NULL);
}

int ibchan_builder_connect(const struct ibchan_builder *builder, const char *host,
			   const char *service, const struct ibchan_connect_params *params,
			   struct ibchan_channel **out, struct ibchan_error *error)
{
	struct ibchan_prepared *prepared;
	struct ibchan_channel *channel;
	int err = ibchan_builder_prepare(builder, &prepared, error);

	if (err)
		return err;
	object_hide(&prepared->channel.object);
	err = ibchan_prepared_connect(prepared, host, service, params, &channel, error);
	/* A signal is no reason to give the channel up. Each stage has its time. */
	if (!err) {
		do {
			err = ibchan_channel_connect_wait(channel, IBCHAN_TIMEOUT_NEVER, error);
		} while (err == -EINTR);
	}
	if (err) {
		ibchan_prepared_destroy(prepared);
		return err;
	}
	channel_publish(channel);
	*out = channel;
	return 0;
}
