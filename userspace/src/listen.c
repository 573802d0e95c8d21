// SPDX-License-Identifier: LGPL-2.1-or-later
/* Connecting by address: listeners, the requests that come to them, and the call that accepts. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

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

/* Ends the peers that nobody has been given, too. */
int ibchan_listener_close(struct ibchan_listener *listener)
{
	struct ibchan_channel *channel;

	if (!listener)
		return 0;
	source_remove(listener->object.context, &listener->source);
	/* In a child, another thread of the parent may have had the lock when it forked. */
	if (!context_check(listener->object.context)) {
		lock_take(&listener->lock);
		while ((channel = listener->accepting)) {
			listener->accepting = channel->next_accepting;
			ibchan_channel_close(channel);
		}
		lock_give(&listener->lock);
	}
	return object_destroy(&listener->object);
}

static int take(struct ibchan_listener *listener, struct ibchan_request **out)
{
	struct ibchan_cmd_request_take cmd = {
		.size = sizeof(cmd), .listener = listener->object.handle,
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
		return refuse_begin(err, timeout_ns, error);
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
		.size = sizeof(cmd), .request = request->object.handle,
		.channel = prepared->channel.object.handle,
	};
	struct ibchan_connect_params with;
	int err = context_check(context);

	if (!err && prepared->channel.object.context != context)
		err = -EXDEV;
	if (!err)
		err = params_read(&with, sizeof(with), params, &cmd.reason) ?:
		      ms_of_ns(with.connect_ns, &cmd.connect_ms) ?:
		      connect_data(with.data, with.length, cmd.data, &cmd.data_length, &cmd.reason);
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

/*
 * ibchan_builder_accept(): a channel for the next peer that is connected.
 *
 * A peer that asks may say nothing more. So a call answers each request that waits, up to
 * MAX_ACCEPTING, with a channel of its own, and returns the one that is connected first. The
 * others stay in the listener: a later call returns them, the stage ACCEPT of each has its time,
 * and closing the listener ends them. A call returns channels only that were built in its own
 * protection domain and for its own queues, since another thread may accept for others.
 *
 * The events of such a channel are told to nobody: it is hidden from ibchan_next(). A call
 * that waits hears of them by the file of the context, edge-triggered, because the events of other
 * channels may wait there for their taker; where another thread takes what has happened to a
 * hidden channel, that thread passes the word on by an eventfd.
 */

/* One call. */
struct acceptance {
	const struct ibchan_builder *builder;	/* of channels */
	struct ibchan_listener *listener;	/* where it takes requests */
	struct deadline deadline;		/* of the call */
	int fd;	/* epoll, readable when a hidden channel may have an event; -1: not yet */
	unsigned int room;	/* how many more requests it may answer now */
};

static bool is_for(const struct ibchan_channel *channel, const struct ibchan_builder *builder)
{
	const struct ibchan_cq *own = channel->own_cq;

	return channel->pd == builder->pd &&
	       channel->send_cq == (builder->send_cq ? builder->send_cq : own) &&
	       channel->recv_cq == (builder->recv_cq ? builder->recv_cq : own);
}

/*
 * Takes channels that connect no more out of the list. 1: @channel is connected; 0: none is; a
 * negative errno. Needs the listener's lock.
 */
static int find_connected(struct acceptance *a, struct ibchan_channel **channel,
			  struct ibchan_error *error)
{
	struct ibchan_channel **link = &a->listener->accepting;
	struct ibchan_connection_info info;
	int err;

	a->room = a->builder->num_receives ? 1 : MAX_ACCEPTING;
	while ((*channel = *link)) {
		info.state = IBCHAN_CHANNEL_CONNECTING;
		if (is_for(*channel, a->builder)) {
			err = ibchan_channel_connection(*channel, &info, error);
			if (err)
				return err;
			if (info.state == IBCHAN_CHANNEL_CONNECTING && a->room)
				a->room--;
		}
		if (info.state == IBCHAN_CHANNEL_CONNECTING) {
			link = &(*channel)->next_accepting;
			continue;
		}
		*link = (*channel)->next_accepting;
		/* It may have broken since, and another thread has taken the event. */
		if (info.state == IBCHAN_CHANNEL_CONNECTED &&
		    object_show(&(*channel)->object, IBCHAN_EVENT_BROKEN))
			return 1;
		err = ibchan_channel_connect_wait(*channel, 0, error);
		ibchan_channel_close(*channel);
		a->listener->lost++;
		/* The caller can do something about these, and about what a peer does it cannot. */
		if (err == -ENOMEM || err == -ENODEV)
			return err;
	}
	return 0;
}

/* Takes the request. A peer that is not there any more is no error. */
static int answer(const struct acceptance *a, struct ibchan_request *request,
		  struct ibchan_error *error)
{
	struct ibchan_channel **link = &a->listener->accepting;
	struct ibchan_prepared *prepared = NULL;
	struct ibchan_channel *channel;
	int err = ibchan_builder_prepare(a->builder, &prepared, error);

	if (!err) {
		object_hide(&prepared->channel.object);
		err = ibchan_request_accept(request, prepared, NULL, &channel, error);
	}
	if (!err) {
		while (*link)
			link = &(*link)->next_accepting;
		channel->next_accepting = NULL;
		*link = channel;
		return 0;
	}
	ibchan_request_reject(request, NULL, 0, NULL);
	ibchan_prepared_destroy(prepared);
	if (!prepared || !request_has_given_up(err))
		return err;
	a->listener->lost++;
	return 0;
}

/* Answers requests that wait, as many as may be. */
static int answer_some(struct acceptance *a, struct ibchan_error *error)
{
	struct ibchan_request *request;
	int err = 0;

	for (; a->room && !err && request_waits(a->listener); a->room--) {
		err = ibchan_request_take(a->listener, 0, &request, error);
		if (err)
			return err == -EAGAIN ? 0 : err;
		err = answer(a, request, error);
	}
	return err;
}

/* From here on nothing that happens to a hidden channel is missed. */
static int watch(struct acceptance *a)
{
	struct ibchan_context *context = a->listener->object.context;
	int word = context_word_fd(context);

	if (word < 0)
		return word;
	a->fd = epoll_of(context->fd, word, EPOLLIN | EPOLLET, NULL);
	return min(a->fd, 0);
}

static int await_peer(const struct acceptance *a)
{
	const __s64 left = deadline_left(&a->deadline);
	struct pollfd fds[] = {
		{ .fd = a->fd, .events = POLLIN },
		{ .fd = a->room ? a->listener->fd : -1, .events = POLLIN },
	};
	int ret;

	/* Even if something has come: requests might come without end. */
	if (!left)
		return too_late(&a->deadline);
	ret = fds_wait(fds, ARRAY_SIZE(fds), left);
	if (ret < 0)
		return ret;
	if (fds[0].revents)
		edges_forget(a->fd);
	return ret ? 0 : -ETIMEDOUT;
}

int ibchan_builder_accept(const struct ibchan_builder *builder, struct ibchan_listener *listener,
			  __s64 timeout_ns, struct ibchan_channel **out, struct ibchan_error *error)
{
	struct acceptance a = { .builder = builder, .listener = listener, .fd = -1 };
	struct ibchan_channel *channel;
	int err = context_check(listener->object.context);
	int wait = 0;

	if (!err && builder->pd->object.context != listener->object.context)
		err = -EXDEV;
	err = err ?: deadline_begin(&a.deadline, listener->object.context, timeout_ns);
	if (err)
		return refuse_begin(err, timeout_ns, error);
	for (;;) {
		lock_take(&listener->lock);
		/* The caller's own error is told when no peer is connected. */
		err = find_connected(&a, &channel, error) ?: answer_some(&a, error) ?:
		      find_connected(&a, &channel, error);
		lock_give(&listener->lock);
		if (err || wait)
			break;
		wait = a.fd < 0 && timeout_ns ? watch(&a) : await_peer(&a);
	}
	if (a.fd >= 0)
		fd_close(a.fd);
	if (err > 0)
		*out = channel;
	/* One last look has been taken after the wait ended. */
	return err < 0 ? err : error_set(error, err ? 0 : wait, NULL);
}

__u64 ibchan_listener_lost(struct ibchan_listener *listener)
{
	__u64 lost;

	lock_take(&listener->lock);
	lost = listener->lost;
	lock_give(&listener->lock);
	return lost;
}
