// SPDX-License-Identifier: LGPL-2.1-or-later
/* Connecting by address: listeners, and the requests that come to them. */
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "listen.h"
#include "wait.h"

struct ibchan_request {
	struct object object;
	struct ibchan_request_info info;
};

static void listener_release(struct object *object)
{
	struct ibchan_listener *listener = (struct ibchan_listener *)object;

	fd_close(listener->fd);
	free(listener);
}

/* Without a host, IPv6's "any" stands for both families. */
static int fill_address(const struct ibchan_listen_params *params,
			struct ibchan_address *address, struct ibchan_reason *reason)
{
	struct addrinfo *list, *info;
	int err = address_find(params->host, params->service, true, &list, reason);

	if (err)
		return err;
	for (info = list; !params->host && info && info->ai_family != AF_INET6;)
		info = info->ai_next;
	address_to_kernel((info ? info : list)->ai_addr, address);
	freeaddrinfo(list);
	return 0;
}

int ibchan_listener_create(struct ibchan_context *context,
			   const struct ibchan_listen_params *params,
			   struct ibchan_listener **out, struct ibchan_error *error)
{
	struct ibchan_listener *listener = calloc(1, sizeof(*listener));
	struct ibchan_cmd_listener_create cmd = { .size = sizeof(cmd) };
	struct ibchan_listen_params where;
	int err = !listener ? -ENOMEM : context_check(context) ?:
					params_read(&where, sizeof(where), params, &cmd.reason);

	/* Handles mean something only within their own context. */
	if (!err && where.device && where.device->object.context != context)
		err = -EXDEV;
	if (!err)
		err = fill_address(&where, &cmd.address, &cmd.reason);
	if (!err) {
		cmd.device = where.device ? where.device->object.handle : 0;
		cmd.backlog = where.backlog;
		err = context_ioctl(context, IBCHAN_CMD_LISTENER_CREATE, &cmd);
	}
	if (err) {
		free(listener);
		return error_set(error, err, &cmd.reason);
	}
	listener->object.handle = cmd.out_listener;
	listener->fd = cmd.out_fd;
	address_from_kernel(&cmd.out_address, &listener->address);
	object_add(&listener->object, context, listener_release);
	*out = listener;
	return error_set(error, 0, NULL);
}

int ibchan_listener_fd(const struct ibchan_listener *listener)
{
	return listener->fd;
}

void ibchan_listener_address(const struct ibchan_listener *listener,
			     struct sockaddr_storage *address)
{
	*address = listener->address;
}

void ibchan_listener_set_priv(struct ibchan_listener *listener, void *priv)
{
	__atomic_store_n(&listener->priv, priv, __ATOMIC_RELEASE);
}

void *ibchan_listener_priv(const struct ibchan_listener *listener)
{
	return __atomic_load_n(&listener->priv, __ATOMIC_ACQUIRE);
}

int ibchan_listener_close(struct ibchan_listener *listener)
{
	if (!listener)
		return 0;
	source_remove(listener->object.context, &listener->source);
	/* In a child, another thread of the parent may have had the lock when it forked. */
	if (!context_check(listener->object.context))
		accepting_close(listener);
	return object_destroy(&listener->object);
}

static int take(struct ibchan_listener *listener, struct ibchan_request **out)
{
	struct ibchan_cmd_request_take cmd = {
		.size = sizeof(cmd),
		.listener = listener->object.handle,
	};
	struct ibchan_request *request = calloc(1, sizeof(*request));
	struct ibchan_request_info *info;
	int err = -ENOMEM;

	if (request)
		err = context_ioctl(listener->object.context, IBCHAN_CMD_REQUEST_TAKE, &cmd);
	if (err) {
		free(request);
		return err;
	}
	request->object.handle = cmd.out_request;
	info = &request->info;
	memcpy(info->device, cmd.out_device, sizeof(info->device));
	info->port = cmd.out_port;
	info->length = cmd.out_data_length;
	address_from_kernel(&cmd.out_local, &info->local);
	address_from_kernel(&cmd.out_peer, &info->peer);
	memcpy(info->data, cmd.out_data, sizeof(info->data));
	object_add(&request->object, listener->object.context, object_release);
	*out = request;
	return 0;
}

/* Where too much is open already, a look for a request fails whether one waits or not. */
bool request_waits(const struct ibchan_listener *listener)
{
	return fd_wait(listener->fd, 0) > 0;
}

int ibchan_request_take(struct ibchan_listener *listener, __s64 timeout_ns,
			struct ibchan_request **request, struct ibchan_error *error)
{
	struct deadline deadline;
	int err = deadline_begin(&deadline, listener->object.context, timeout_ns);
	int wait = 0;

	if (err)
		return error_set(error, err, NULL);
	for (;;) {
		err = take(listener, request);
		/* One last look has been taken after the wait ended. */
		if (err != -EAGAIN || !timeout_ns || wait)
			return error_set(error, err == -EAGAIN && wait ? wait : err, NULL);
		/* Another thread may take what has come. */
		wait = fd_await(listener->fd, &deadline);
	}
}

void ibchan_request_query(const struct ibchan_request *request, struct ibchan_request_info *info)
{
	*info = request->info;
}

/* Whether that is how a peer that has given up meanwhile makes an accept fail. */
bool request_has_given_up(int err)
{
	return err == -ECONNRESET || err == -ETIMEDOUT || err == -EINVAL || err == -EPROTOTYPE;
}

int ibchan_request_accept(struct ibchan_request *request, struct ibchan_prepared *prepared,
			  const struct ibchan_connect_params *params, struct ibchan_channel **out,
			  struct ibchan_error *error)
{
	struct ibchan_context *context = request->object.context;
	struct ibchan_cmd_request_accept cmd = {
		.size = sizeof(cmd),
		.request = request->object.handle,
		.channel = prepared->channel.object.handle,
	};
	struct ibchan_connect_params with;
	int err = context_check(context);

	if (!err && prepared->channel.object.context != context)
		err = -EXDEV;
	if (!err)
		err = connect_params_read(params, &with, &cmd.reason) ?:
		      ms_of_ns(with.connect_ns, &cmd.connect_ms) ?:
		      connect_data(with.data, with.length, cmd.data, &cmd.data_length,
				   &cmd.reason);
	if (!err) {
		cmd.flags = with.flags;
		err = context_ioctl(context, IBCHAN_CMD_REQUEST_ACCEPT, &cmd);
	}
	if (!err) {
		object_free(&request->object);
		*out = &prepared->channel;
	}
	return error_set(error, err, &cmd.reason);
}

int ibchan_request_reject(struct ibchan_request *request, const void *data, size_t length,
			  struct ibchan_error *error)
{
	struct ibchan_reason reason = { 0 };
	struct ibchan_cmd_request_reject cmd = { .size = sizeof(cmd) };
	int err;

	if (!request)
		return error_set(error, 0, NULL);
	cmd.request = request->object.handle;
	err = connect_data(data, length, cmd.data, &cmd.data_length, &reason) ?:
	      context_check(request->object.context) ?:
	      context_ioctl(request->object.context, IBCHAN_CMD_REQUEST_REJECT, &cmd);
	/* After these two answers it is there for another one. */
	if (err != -EINVAL && err != -EBUSY && cmd.flags & IBCHAN_ANSWERED)
		object_free(&request->object);
	return error_set(error, err, &reason);
}
