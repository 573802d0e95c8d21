// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The short way: how two sides come together. A channel, with its receives posted, is made for
 * the device that leads to the server, or that a client's request has come over. Each side
 * tells the other in the connection's private data how it takes messages. A server accepts
 * clients as they ask, up to MAX_ACCEPTING that are not connected yet; further requests wait in the
 * listener. When some wait, a client that has not connected within STALE_NS gives up its place: so
 * peers that ask and say no more hold up a client by no more than that. The client whose channel
 * is connected first is returned first.
 */
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>

#include "listen.h"
#include "message.h"
#include "wait.h"

#define STALE_NS	(200 * NSEC_PER_MSEC)

/* A listener, and the channels of clients that have asked there. */
struct ibchan_server {
	struct station *station;	/* the context */
	struct ibchan_listener *listener;	/* for any device */
	struct source source;		/* of clients, for ibchan_next() */
	/*
	 * Readable while a request waits that can be answered, something has happened to a channel,
	 * or another thread has put that down, or timer_fd is.
	 */
	int fd;
	int timer_fd;			/* readable from timer on */
	struct ibchan_message_params params;	/* of each channel */
	struct lock lock;		/* guards the rest */
	struct messages *accepting;	/* of clients that are not connected, the oldest first */
	unsigned int num;		/* of these */
	struct messages *ready;		/* of clients that ibchan_take() has not returned */
	/* MAX_ACCEPTING wait, the oldest for less than STALE_NS, and fd tells of no request. */
	bool full;
	__s64 timer;			/* on the monotonic clock; 0: none */
};

/* The time that is left, for a stage, where 0 would be its default. Negative: no end. */
static __s64 stage_ns(__s64 left_ns, __s64 default_ms)
{
	const __s64 most = default_ms * NSEC_PER_MSEC;

	return left_ns < 0 || left_ns >= most ? most : left_ns + 1;
}

static void connect_params(const struct messages *m, __s64 connect_ns, struct greeting *greeting,
			   struct ibchan_connect_params *with)
{
	*greeting = (struct greeting) {
		.magic = htobe32(GREETING_MAGIC), .messages = htobe32(m->num),
		.message_bytes = htobe32(m->message_bytes),
	};
	*with = (struct ibchan_connect_params) {
		.size = sizeof(*with), .data = greeting, .length = sizeof(*greeting),
		.connect_ns = connect_ns,
	};
}

/* Neither side has more messages under way than the other one has boxes for. */
static void agree(struct messages *m, const struct greeting *peer)
{
	m->peer_bytes = min(be32toh(peer->message_bytes), m->message_bytes);
	m->window.size = min(be32toh(peer->messages), m->num);
}

/* --- the side that asks --- */

static int await_connection(struct messages *m, const struct deadline *deadline,
			    struct ibchan_error *error)
{
	struct ibchan_connection_info info;
	struct greeting greeting;
	int err;

	do {
		err = ibchan_channel_connect_wait(m->channel, deadline_left(deadline), error);
	} while (err == -EINTR);
	if (!err)
		err = ibchan_channel_connection(m->channel, &info, error);
	if (!err && greeting_read(info.data, info.length, &greeting)) {
		agree(m, &greeting);
		return 0;
	}
	/* The peer is no ibchan, or does not go the short way. */
	return !err || err == -EPROTOTYPE ? error_set(error, -EPROTOTYPE, NULL) : err;
}

/* It does not try again the addresses before the first one that leads there. */
static int dial(struct station *station, const struct addrinfo *list,
		const struct ibchan_message_params *params, struct messages **m,
		struct ibchan_error *error)
{
	const struct ibchan_reason no_port = out_of_range(IBCHAN_PARAMETER_SERVICE, 0, 1,
							  UINT16_MAX);
	struct ibchan_connect_params with;
	const struct addrinfo *found;
	struct ibchan_channel *channel;
	struct ibchan_route route;
	struct greeting greeting;
	struct deadline deadline;
	__s64 left;
	int err;

	/* In both families the port is at this place. */
	if (!((const struct sockaddr_in *)(const void *)list->ai_addr)->sin_port)
		return error_set(error, -EINVAL, &no_port);
	deadline_set(&deadline, params->timeout_ns);
	err = route_of_list(station->context, list, params->source,
			    stage_ns(params->timeout_ns, IBCHAN_DEFAULT_ADDRESS_MS), &found,
			    &route, error);
	if (!err)
		err = messages_make(station, route.device, params, m, error);
	if (err)
		return err;
	left = deadline_left(&deadline);
	connect_params(*m, stage_ns(left, IBCHAN_DEFAULT_CONNECT_MS), &greeting, &with);
	with.address_ns = stage_ns(left, IBCHAN_DEFAULT_ADDRESS_MS);
	with.route_ns = stage_ns(left, IBCHAN_DEFAULT_ROUTE_MS);
	with.source = params->source;
	err = connect_to_list((*m)->prepared, found, &with, &channel, error) ?:
	      await_connection(*m, &deadline, error);
	if (err)
		ibchan_channel_close((*m)->channel);
	return err;
}

int ibchan_dial(const char *host, const char *service, const struct ibchan_message_params *params,
		struct ibchan_channel **channel, struct ibchan_error *error)
{
	struct ibchan_message_params complete;
	struct ibchan_reason reason = { 0 };
	struct addrinfo *list;
	struct station *station;
	struct messages *m;
	int err = station_open(params, &complete, &station, error);

	if (err)
		return err;
	err = address_find(host, service, false, &list, &reason);
	if (err) {
		error_set(error, err, &reason);
	} else {
		err = dial(station, list, &complete, &m, error);
		freeaddrinfo(list);
	}
	if (!err) {
		*channel = m->channel;
		channel_publish(m->channel);
	}
	station_put(station);
	return err;
}

/* --- the side that is asked --- */

static int watch(struct ibchan_server *server)
{
	struct ibchan_context *context = server->station->context;
	struct epoll_event edge = { .events = EPOLLIN | EPOLLET };
	struct epoll_event event = { .events = EPOLLIN };
	const int word = context_word_fd(context);

	if (word < 0)
		return word;
	server->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (server->timer_fd < 0)
		return -errno;
	server->fd = epoll_of(ibchan_listener_fd(server->listener), context->fd, EPOLLIN, NULL);
	if (server->fd < 0)
		return server->fd;
	return epoll_ctl(server->fd, EPOLL_CTL_ADD, word, &edge) ||
	       epoll_ctl(server->fd, EPOLL_CTL_ADD, server->timer_fd, &event) ? -errno : 0;
}

static int listen_at(struct ibchan_server *server, const char *host, const char *service,
		     struct ibchan_error *error)
{
	const struct ibchan_listen_params where = {
		.size = sizeof(where), .host = host, .service = service,
	};
	int err;

	if (server->params.source)
		return error_set(error, -EINVAL, NULL);
	err = ibchan_listener_create(server->station->context, &where, &server->listener, error);
	if (err)
		return err;
	return error_set(error, watch(server), NULL);
}

int ibchan_server_fd(const struct ibchan_server *server)
{
	return server->fd;
}

struct ibchan_context *ibchan_server_context(const struct ibchan_server *server)
{
	return server->station->context;
}

void ibchan_server_address(const struct ibchan_server *server, struct sockaddr_storage *address)
{
	ibchan_listener_address(server->listener, address);
}

static void append(struct messages **link, struct messages *m)
{
	while (*link)
		link = &(*link)->next;
	m->next = NULL;
	*link = m;
}

static struct messages *take_first(struct messages **list)
{
	struct messages *m = *list;

	if (m)
		*list = m->next;
	return m;
}

/* Its client was not taken, and is not told of an orderly end, for which one would have to wait. */
static void give_up(struct messages *m)
{
	m->is_known = true;
	ibchan_channel_close(m->channel);
}

int ibchan_server_close(struct ibchan_server *server)
{
	struct messages *m;
	int err;

	if (!server)
		return 0;
	source_remove(server->station->context, &server->source);
	if (server->fd >= 0)
		fd_close(server->fd);
	if (server->timer_fd >= 0)
		fd_close(server->timer_fd);
	err = ibchan_listener_close(server->listener);
	while ((m = take_first(&server->accepting) ?: take_first(&server->ready)))
		give_up(m);
	station_put(server->station);
	free(server);
	return err;
}

/* Takes the request. Neither a client that is not there any more nor a stranger is an error. */
static int answer(struct ibchan_server *server, struct ibchan_request *request,
		  struct ibchan_error *error)
{
	struct ibchan_connect_params with;
	struct ibchan_request_info info;
	struct ibchan_channel *channel;
	struct messages *m = NULL;
	struct greeting greeting;
	bool is_gone;
	int err = 0;

	ibchan_request_query(request, &info);
	is_gone = !greeting_read(info.data, info.length, &greeting);
	if (!is_gone)
		err = messages_make(server->station, info.device, &server->params, &m, error);
	if (m) {
		agree(m, &greeting);
		connect_params(m, stage_ns(server->params.timeout_ns, IBCHAN_DEFAULT_ACCEPT_MS),
			       &greeting, &with);
		err = ibchan_request_accept(request, m->prepared, &with, &channel, error);
		if (!err) {
			m->since_ns = now_ns();
			append(&server->accepting, m);
			server->num++;
			return 0;
		}
		is_gone = request_has_given_up(err);
	}
	ibchan_request_reject(request, NULL, 0, NULL);
	if (m)
		give_up(m);
	/* A client's device that has left, is down, or is iWARP concerns no other client. */
	return is_gone || err == -ENODEV || err == -ENETDOWN || err == -EADDRNOTAVAIL ||
	       err == -EOPNOTSUPP ? 0 : err;
}

/* Takes note of what has become of those that were accepted. */
static int collect(struct ibchan_server *server, struct ibchan_error *error)
{
	const __u32 either = IBCHAN_EVENT_CONNECTED | IBCHAN_EVENT_BROKEN;
	struct messages *m, **link = &server->accepting;
	int err = events_take(server->station->context);
	__u32 happened;

	while ((m = *link)) {
		happened = object_happenings(&m->channel->object, either);
		if (!happened) {
			link = &m->next;
			continue;
		}
		*link = m->next;
		server->num--;
		/* A client may have sent something and closed its channel by now. */
		if (happened & IBCHAN_EVENT_CONNECTED) {
			m->channel->is_ending = happened & IBCHAN_EVENT_BROKEN;
			append(&server->ready, m);
		} else {
			ibchan_channel_close(m->channel);
		}
	}
	return err < 0 ? error_set(error, err, NULL) : 0;
}

/* All places are taken, and the oldest client still has time. */
static bool is_full(const struct ibchan_server *server)
{
	return server->num >= MAX_ACCEPTING && now_ns() - server->accepting->since_ns < STALE_NS;
}

/* Answers requests that wait; at most MAX_ACCEPTING of them, of peers of any kind. */
static int answer_some(struct ibchan_server *server, struct ibchan_error *error)
{
	struct ibchan_request *request;
	unsigned int i;
	int err = 0;

	for (i = 0; i < MAX_ACCEPTING && !err && request_waits(server->listener); i++) {
		err = collect(server, error);
		if (err || is_full(server))
			break;
		/* The oldest client has had its time. */
		if (server->num >= MAX_ACCEPTING) {
			give_up(take_first(&server->accepting));
			server->num--;
		}
		err = ibchan_request_take(server->listener, 0, &request, error);
		if (err)
			return err == -EAGAIN ? 0 : err;
		err = answer(server, request, error);
	}
	return err;
}

/*
 * Requests that cannot be answered wake nobody before there may be a place. From then on a request
 * does, and the time that has passed does not: without a request there is nothing to do. The timer
 * wakes a caller at once where a client is ready; else when the oldest one gives up a place that is
 * needed.
 */
static void watch_requests(struct ibchan_server *server)
{
	const bool full = is_full(server);
	struct epoll_event event = { .events = EPOLLIN };
	struct itimerspec timer = { 0 };
	__s64 end = 0;

	if (full != server->full &&
	    !epoll_ctl(server->fd, full ? EPOLL_CTL_DEL : EPOLL_CTL_ADD,
		       ibchan_listener_fd(server->listener), &event))
		server->full = full;
	if (server->ready)
		end = 1;
	else if (server->full && server->accepting)
		end = server->accepting->since_ns + STALE_NS;
	timer.it_value.tv_sec = end / NSEC_PER_SEC;
	timer.it_value.tv_nsec = end % NSEC_PER_SEC;
	if (end != server->timer)
		timerfd_settime(server->timer_fd, TFD_TIMER_ABSTIME, &timer, NULL);
	server->timer = end;
}

/*
 * 1: @channel is connected; 0: none is; a negative errno: why a client could not be served is told
 * when no other is connected.
 */
static int take_now(struct ibchan_server *server, struct ibchan_channel **channel,
		    struct ibchan_error *error)
{
	struct messages *m;
	int err;

	lock_take(&server->lock);
	edges_forget(server->fd);
	err = collect(server, error);
	if (!err && !server->ready)
		err = answer_some(server, error);
	if (!err)
		err = collect(server, error);
	m = take_first(&server->ready);
	watch_requests(server);
	lock_give(&server->lock);
	if (!m)
		return err;
	*channel = m->channel;
	channel_publish(m->channel);
	error_set(error, 0, NULL);
	return 1;
}

int ibchan_take(struct ibchan_server *server, __s64 timeout_ns, struct ibchan_channel **channel,
		struct ibchan_error *error)
{
	struct deadline deadline;
	int err = deadline_begin(&deadline, server->station->context, timeout_ns);
	int found, wait = 0;

	if (err)
		return refuse_begin(err, timeout_ns, error);
	for (;;) {
		found = take_now(server, channel, error);
		if (found)
			return min(found, 0);
		/* One last look has been taken after the wait ended. */
		if (wait)
			return error_set(error, wait, NULL);
		/* Another thread may take what has come: the caller looks again. */
		wait = fd_await(server->fd, &deadline);
	}
}

static int server_tell(struct source *source, struct ibchan_happening *happening)
{
	struct ibchan_server *server = source_of(source, struct ibchan_server);
	struct ibchan_context *context = server->station->context;
	const int unwatched = source_watch(context, source, server->fd);
	int found;

	found = source->is_deaf ? 0 : take_now(server, &happening->channel, NULL);
	/* No client will come any more. */
	if (found == -ENODEV)
		source_deafen(context, source);
	if (!found)
		return unwatched ? TOLD_LATER : TOLD_NOTHING;
	happening->server = server;
	happening->kind = found > 0 ? IBCHAN_NEXT_CONNECTED : IBCHAN_NEXT_REFUSED;
	happening->error = min(found, 0);
	return TOLD_MORE;
}

int ibchan_serve(const char *host, const char *service, const struct ibchan_message_params *params,
		 struct ibchan_server **out, struct ibchan_error *error)
{
	struct ibchan_server *server = calloc(1, sizeof(*server));
	int err;

	if (!server)
		return error_set(error, -ENOMEM, NULL);
	err = station_open(params, &server->params, &server->station, error);
	if (err) {
		free(server);
		return err;
	}
	server->fd = -1;
	server->timer_fd = -1;
	err = listen_at(server, host, service, error);
	if (err) {
		ibchan_server_close(server);
		return err;
	}
	server->source.tell = server_tell;
	source_add(server->station->context, &server->source);
	*out = server;
	return 0;
}
