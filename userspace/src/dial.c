// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The short way: how two sides come together. A channel, with its receives posted, is made for
 * the device that leads to the server, or that a client's request has come over. Each side
 * tells the other in the connection's private data how long a message it takes. A server
 * accepts clients as they ask, up to MAX_ACCEPTING that ibchan_take() has not returned; further
 * requests wait in the listener. The client whose channel is connected first is returned first.
 */
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "address.h"
#include "listen.h"
#include "message.h"
#include "wait.h"

#define NSEC_PER_MSEC	1000000LL
#define MAX_STAGE_MS	IBCHAN_DEFAULT_CONNECT_MS
#define MAX_ACCEPTING	32

/**
 * struct ibchan_server - a listener, and the channels of clients that have asked there
 * @station: the context
 * @listener: for any device
 * @fd: readable while a request waits there that can be answered, or something has happened to
 *	a channel
 * @params: of each channel
 * @lock: guards the rest
 * @accepting: channels of clients that ibchan_take() has not returned
 * @num_accepting: of them
 * @full: there are MAX_ACCEPTING, and @fd does not tell of requests
 */
struct ibchan_server {
	struct station *station;
	struct ibchan_listener *listener;
	int fd;
	struct ibchan_message_params params;
	struct lock lock;
	struct messages *accepting;
	unsigned int num_accepting;
	bool full;
};

/* The time that is left, for a stage, where 0 would be the default. Negative: no end. */
static __u32 stage_ms(__s64 left_ns)
{
	__s64 ms = left_ns / NSEC_PER_MSEC + 1;

	return left_ns < 0 || ms > MAX_STAGE_MS ? MAX_STAGE_MS : (__u32)ms;
}

static void connect_params(const struct messages *m, __s64 left_ns, struct greeting *greeting,
			   struct ibchan_connect_params *with)
{
	*greeting = (struct greeting) {
		.magic = htobe32(GREETING_MAGIC),
		.message_bytes = htobe32(m->message_bytes),
		.messages = htobe32(m->num),
	};
	*with = (struct ibchan_connect_params) {
		.data = greeting,
		.length = sizeof(*greeting),
		.connect_ms = stage_ms(left_ns),
	};
}

/* --- the side that asks --- */

static int await_connection(struct messages *m, const struct deadline *deadline,
			    struct ibchan_error *error)
{
	struct ibchan_connection_info info;
	int err;

	do {
		err = ibchan_channel_connect_wait(m->channel, deadline_left(deadline), error);
	} while (err == -EINTR);
	/* The peer is no ibchan. */
	if (err == -EPROTOTYPE)
		return error_set(error, -EPROTOTYPE, NULL);
	if (err)
		return err;
	err = ibchan_channel_connection(m->channel, &info);
	if (err)
		return error_set(error, err, NULL);
	err = messages_greet(m, info.data, info.length);
	return err ? error_set(error, err, NULL) : 0;
}

static int dial(struct messages *m, const struct addrinfo *list, const char *source,
		const struct deadline *deadline, struct ibchan_error *error)
{
	const __s64 left = deadline_left(deadline);
	struct ibchan_connect_params with;
	struct ibchan_channel *channel;
	struct greeting greeting;
	int err;

	connect_params(m, left, &greeting, &with);
	with.address_ms = min(stage_ms(left), IBCHAN_DEFAULT_ADDRESS_MS);
	with.route_ms = min(stage_ms(left), IBCHAN_DEFAULT_ROUTE_MS);
	with.source = source;
	err = connect_to_list(m->prepared, list, &with, &channel, error);
	return err ? err : await_connection(m, deadline, error);
}

/* What lies before the first address that leads there is not tried again. */
static int dial_from(struct station *station, const struct addrinfo *list,
		     const struct ibchan_message_params *params, struct messages **out,
		     struct ibchan_error *error)
{
	const struct addrinfo *found;
	struct ibchan_route route;
	struct deadline deadline;
	struct messages *m;
	__u32 ms;
	int err;

	deadline_set(&deadline, params->timeout_ns);
	ms = min(stage_ms(params->timeout_ns), IBCHAN_DEFAULT_ADDRESS_MS);
	err = route_of_list(station->context, list, params->source, ms, &found, &route, error);
	if (!err)
		err = messages_make(station, route.device, params, &m, error);
	if (err)
		return err;
	err = dial(m, found, params->source, &deadline, error);
	if (err)
		messages_close(m);
	else
		*out = m;
	return err;
}

static int open_with(const struct ibchan_message_params *params,
		     struct ibchan_message_params *complete, struct station **station,
		     struct ibchan_error *error)
{
	struct ibchan_reason reason = { 0 };
	int err = params_read(params, complete, &reason);

	return err ? error_set(error, err, &reason) : station_open(station, error);
}

int ibchan_dial(const char *host, const char *service,
		const struct ibchan_message_params *params,
		struct ibchan_channel **channel, struct ibchan_error *error)
{
	struct ibchan_message_params complete;
	struct ibchan_reason reason = { 0 };
	struct addrinfo *list;
	struct station *station;
	struct messages *m;
	int err = open_with(params, &complete, &station, error);

	if (err)
		return err;
	err = address_find(host, service, false, &list, &reason);
	if (err) {
		error_set(error, err, &reason);
	} else {
		err = dial_from(station, list, &complete, &m, error);
		freeaddrinfo(list);
	}
	if (!err)
		*channel = m->channel;
	station_put(station);
	return err;
}

/* --- the side that is asked --- */

static int listen_at(struct ibchan_server *server, const char *host, const char *service,
		     struct ibchan_error *error)
{
	const struct ibchan_listen_params where = { .host = host, .service = service };
	struct ibchan_context *context = server->station->context;
	int err;

	if (server->params.source)
		return error_set(error, -EINVAL, NULL);
	err = ibchan_listener_create(context, &where, &server->listener, error);
	if (err)
		return err;
	server->fd = epoll_of(ibchan_listener_fd(server->listener), ibchan_context_fd(context),
			      EPOLLIN);
	if (server->fd >= 0)
		return 0;
	ibchan_listener_close(server->listener);
	return error_set(error, server->fd, NULL);
}

int ibchan_serve(const char *host, const char *service,
		 const struct ibchan_message_params *params,
		 struct ibchan_server **out, struct ibchan_error *error)
{
	struct ibchan_server *server = calloc(1, sizeof(*server));
	int err;

	if (!server)
		return error_set(error, -ENOMEM, NULL);
	err = open_with(params, &server->params, &server->station, error);
	if (!err) {
		err = listen_at(server, host, service, error);
		if (err)
			station_put(server->station);
	}
	if (err)
		free(server);
	else
		*out = server;
	return err;
}

int ibchan_server_fd(const struct ibchan_server *server)
{
	return server->fd;
}

void ibchan_server_address(const struct ibchan_server *server,
			   struct sockaddr_storage *address)
{
	ibchan_listener_address(server->listener, address);
}

int ibchan_server_close(struct ibchan_server *server)
{
	struct messages *m;
	int err;

	if (!server)
		return 0;
	fd_close(server->fd);
	err = ibchan_listener_close(server->listener);
	while ((m = server->accepting)) {
		server->accepting = m->next;
		messages_close(m);
	}
	station_put(server->station);
	free(server);
	return err;
}

/* The client's device has left, is down, or is an iWARP one: that concerns no other client. */
static bool is_of_device(int err)
{
	return err == -ENODEV || err == -ENETDOWN || err == -EADDRNOTAVAIL || err == -EOPNOTSUPP;
}

static void accepting_add(struct ibchan_server *server, struct messages *m)
{
	m->next = server->accepting;
	server->accepting = m;
	server->num_accepting++;
}

static struct messages *accepting_take(struct ibchan_server *server,
				       const struct ibchan_channel *channel)
{
	struct messages **link = &server->accepting;
	struct messages *m;

	while (*link && (*link)->channel != channel)
		link = &(*link)->next;
	m = *link;
	if (!m)
		return NULL;
	*link = m->next;
	server->num_accepting--;
	return m;
}

/* Takes the request. A client that is not there any more is no error. */
static int accept_client(struct ibchan_server *server, struct ibchan_request *request,
			 struct messages *m, struct ibchan_error *error)
{
	struct ibchan_connect_params with;
	struct ibchan_channel *channel;
	struct greeting greeting;
	int err;

	connect_params(m, server->params.timeout_ns, &greeting, &with);
	with.connect_ms = min(with.connect_ms, IBCHAN_DEFAULT_ACCEPT_MS);
	err = ibchan_request_accept(request, m->prepared, &with, &channel, error);
	if (!err) {
		accepting_add(server, m);
		return 0;
	}
	ibchan_request_reject(request, NULL, 0);
	messages_close(m);
	return request_has_given_up(err) || is_of_device(err) ? 0 : err;
}

/* Takes the request. */
static int answer(struct ibchan_server *server, struct ibchan_request *request,
		  struct ibchan_error *error)
{
	struct ibchan_request_info info;
	struct greeting greeting;
	struct messages *m;
	bool is_client;
	int err = 0;

	ibchan_request_query(request, &info);
	is_client = greeting_read(info.data, info.length, &greeting);
	if (is_client)
		err = messages_make(server->station, info.device, &server->params, &m, error);
	if (err || !is_client) {
		ibchan_request_reject(request, NULL, 0);
		return is_of_device(err) ? 0 : err;
	}
	messages_greet(m, info.data, info.length);
	return accept_client(server, request, m, error);
}

/* Where too much is open already, a look for a request fails whether one waits or not. */
static bool request_waits(const struct ibchan_server *server)
{
	return server->num_accepting < MAX_ACCEPTING &&
	       fd_wait(ibchan_listener_fd(server->listener), 0) > 0;
}

/* Answers requests that wait; at most MAX_ACCEPTING of them, of peers of any kind. */
static int answer_some(struct ibchan_server *server, struct ibchan_error *error)
{
	struct ibchan_request *request;
	unsigned int i;
	int err = 0;

	for (i = 0; i < MAX_ACCEPTING && !err && request_waits(server); i++) {
		err = ibchan_request_take(server->listener, 0, &request);
		if (err)
			return err == -EAGAIN ? 0 : error_set(error, err, NULL);
		err = answer(server, request, error);
	}
	return err;
}

/* 1: @channel is connected; 0: none is; a negative errno. */
static int connected(struct ibchan_server *server, struct ibchan_channel **channel,
		     struct ibchan_error *error)
{
	struct ibchan_event event;
	struct messages *m;
	int err;

	for (;;) {
		err = ibchan_event_take(server->station->context, &event);
		if (err)
			return err == -EAGAIN ? 0 : error_set(error, err, NULL);
		m = accepting_take(server, event.channel);
		/* A client may have sent something and closed its channel by now. */
		if (m && (event.events & IBCHAN_EVENT_CONNECTED)) {
			*channel = event.channel;
			error_set(error, 0, NULL);
			return 1;
		}
		if (m)
			messages_close(m);
	}
}

/* Requests that cannot be answered wake nobody. */
static void watch_requests(struct ibchan_server *server)
{
	const bool full = server->num_accepting >= MAX_ACCEPTING;
	struct epoll_event event = { .events = EPOLLIN };

	if (full == server->full)
		return;
	if (!epoll_ctl(server->fd, full ? EPOLL_CTL_DEL : EPOLL_CTL_ADD,
		       ibchan_listener_fd(server->listener), &event))
		server->full = full;
}

/* As connected(). Why a client could not be served is told when no other is connected. */
static int take_now(struct ibchan_server *server, struct ibchan_channel **channel,
		    struct ibchan_error *error)
{
	int found, err;

	lock_take(&server->lock);
	found = connected(server, channel, error);
	if (!found) {
		err = answer_some(server, error);
		found = err ? err : connected(server, channel, error);
	}
	watch_requests(server);
	lock_give(&server->lock);
	return found;
}

/* Another thread may take what has come: the caller looks again. */
static int await_client(const struct ibchan_server *server, const struct deadline *deadline)
{
	const __s64 left = deadline_left(deadline);
	int ret;

	/* Even if something has come: requests might come without end. */
	if (!left)
		return -ETIMEDOUT;
	ret = fd_wait(server->fd, left);
	if (ret < 0)
		return ret;
	return ret ? 0 : -ETIMEDOUT;
}

int ibchan_take(struct ibchan_server *server, __s64 timeout_ns,
		struct ibchan_channel **channel, struct ibchan_error *error)
{
	struct deadline deadline;
	int err = context_check(server->station->context);
	int found, wait = 0;

	if (!err && timeout_ns < IBCHAN_TIMEOUT_NEVER)
		err = -EINVAL;
	if (err)
		return error_set(error, err, NULL);
	deadline_set(&deadline, timeout_ns);
	for (;;) {
		found = take_now(server, channel, error);
		if (found)
			return min(found, 0);
		/* One last look has been taken after the wait ended. */
		if (wait)
			return error_set(error, wait, NULL);
		wait = await_client(server, &deadline);
	}
}
