// SPDX-License-Identifier: LGPL-2.1-or-later
/* The conversation of two sides of a pingpong: how they meet, and their messages. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "pingpong.h"

#define TRIES_PER_SEC	10

__s64 talk_timeout_ns(const struct talk *talk)
{
	return talk->timeout_s ? talk->timeout_s * NSEC_PER_SEC : IBCHAN_TIMEOUT_NEVER;
}

/* A server that was started together with this client may take a moment. */
static int may_retry(const struct talk *talk, __u32 *tries)
{
	const struct timespec pause = { .tv_nsec = NSEC_PER_SEC / TRIES_PER_SEC };

	if (talk->timeout_s && *tries >= talk->timeout_s * TRIES_PER_SEC)
		return 0;
	if (++*tries == TRIES_PER_SEC)
		complain("%s: no server there yet, still trying", talk->name);
	nanosleep(&pause, NULL);
	return 1;
}

static void name_peer(struct talk *talk, const struct sockaddr_storage *address, socklen_t len)
{
	char host[NI_MAXHOST];
	char port[NI_MAXSERV];

	if (!getnameinfo((const struct sockaddr *)address, len, host, sizeof(host), port,
			 sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(talk->name, sizeof(talk->name), "%s:%s", host, port);
}

/* --- over a channel --- */

static struct ibchan_message_params message_params(const struct talk *talk)
{
	return (struct ibchan_message_params) {
		.size = sizeof(struct ibchan_message_params),
		.message_bytes = TALK_BYTES,
		.timeout_ns = talk->timeout_s ? talk->timeout_s * NSEC_PER_SEC : INT64_MAX / 4,
	};
}

static int dial(struct talk *talk)
{
	struct ibchan_message_params params = message_params(talk);
	struct ibchan_error error;
	__u32 tries = 0;
	int err;

	params.source = talk->source;
	do {
		err = ibchan_dial(talk->host, talk->port, &params, &talk->channel, &error);
	} while (err == -ECONNREFUSED && may_retry(talk, &tries));
	return err ? complain_error(talk->name, &error) : 0;
}

/* A client that has come over another device than the wanted one is sent away. */
static int is_wanted(struct talk *talk, struct ibchan_channel *channel)
{
	struct ibchan_connection_info connection;
	struct ibchan_channel_info info;

	if (ibchan_channel_connection(channel, &connection, NULL) ||
	    ibchan_channel_query(channel, &info, NULL))
		return 0;
	name_peer(talk, &connection.peer, sizeof(connection.peer));
	return !talk->device || !strcmp(talk->device, info.device);
}

static int take(struct talk *talk)
{
	struct ibchan_message_params params = message_params(talk);
	struct ibchan_channel *channel = NULL;
	struct ibchan_server *server;
	struct ibchan_error error;
	int err;

	if (ibchan_serve(talk->source, talk->port, &params, &server, &error))
		return complain_error(talk->name, &error);
	do {
		ibchan_channel_close(channel);
		channel = NULL;
		err = ibchan_take(server, talk_timeout_ns(talk), &channel, &error);
	} while (err == -EINTR || (!err && !is_wanted(talk, channel)));
	ibchan_server_close(server);
	talk->channel = channel;
	return err ? complain_error(talk->name, &error) : 0;
}

static void name_server(struct talk *talk)
{
	snprintf(talk->name, sizeof(talk->name), "%s%s%s", talk->host ? talk->host : "port",
		 talk->host ? ":" : " ", talk->port);
}

int talk_by_address(struct talk *talk)
{
	name_server(talk);
	return talk->host ? dial(talk) : take(talk);
}

/* --- over TCP --- */

/*
 * Connected to the server, or listening. The time limits also hold for connect(), and for accept()
 * and what it returns.
 */
static int open_socket(const struct talk *talk, const struct addrinfo *a)
{
	const struct timeval limit = { .tv_sec = talk->timeout_s };
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int yes = 1, no = 0;
	int err;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	if (a->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	if (talk->host)
		err = connect(fd, a->ai_addr, a->ai_addrlen);
	else
		err = bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, 1);
	if (!err)
		return fd;
	err = errno == EINPROGRESS ? -ETIMEDOUT : -errno;
	close(fd);
	return err;
}

static int complain_errno(const struct talk *talk, int err)
{
	if (err == -ETIMEDOUT || err == -EAGAIN)
		return complain("%s: nothing happened for %u s", talk->name, talk->timeout_s);
	return complain("%s: %s", talk->name, strerror(-err));
}

static int accept_client(struct talk *talk, int listener)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);

	do {
		talk->fd = accept4(listener, (struct sockaddr *)&peer, &len, SOCK_CLOEXEC);
	} while (talk->fd < 0 && errno == EINTR);
	if (talk->fd < 0)
		complain_errno(talk, -errno);
	else
		name_peer(talk, &peer, len);
	close(listener);
	return talk->fd < 0 ? -1 : 0;
}

/* Returns a socket to, or at, the first address that will do, or a negative errno. */
static int open_first(const struct talk *talk, const struct addrinfo *list, int family)
{
	int fd = -EAFNOSUPPORT;

	for (; list && fd < 0; list = list->ai_next)
		if (family == AF_UNSPEC || list->ai_family == family)
			fd = open_socket(talk, list);
	return fd;
}

/* A server takes an IPv6 socket, which serves IPv4 too, where there is IPv6. */
int talk_by_tcp(struct talk *talk)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
	struct addrinfo *list;
	__u32 tries = 0;
	int err, fd;

	name_server(talk);
	err = getaddrinfo(talk->host, talk->port, &hints, &list);
	if (err)
		return complain("%s: %s", talk->name,
				err == EAI_SYSTEM ? strerror(errno) : gai_strerror(err));
	do {
		fd = open_first(talk, list, talk->host ? AF_UNSPEC : AF_INET6);
	} while (talk->host && fd == -ECONNREFUSED && may_retry(talk, &tries));
	if (!talk->host && fd < 0)
		fd = open_first(talk, list, AF_INET);
	freeaddrinfo(list);
	if (fd < 0)
		return complain_errno(talk, fd);
	if (!talk->host)
		return accept_client(talk, fd);
	talk->fd = fd;
	return 0;
}

/* --- messages --- */

void talk_write(struct talk *talk, const void *buf, size_t len)
{
	if (talk->channel)
		ibchan_send_bytes(talk->channel, buf, len, talk_timeout_ns(talk), NULL);
	else
		send(talk->fd, buf, len, MSG_NOSIGNAL);
}

/* Returns how many bytes have come, or a negative errno; -EAGAIN: none, without @waits. */
static ssize_t receive(struct talk *talk, void *buf, size_t len, int waits,
		       struct ibchan_error *error)
{
	struct pollfd pollfd = { .fd = talk->fd, .events = POLLIN };
	ssize_t n;

	if (talk->channel)
		return ibchan_receive_bytes(talk->channel, buf, len,
					    waits ? talk_timeout_ns(talk) : 0, error);
	if (!waits && !poll(&pollfd, 1, 0))
		return -EAGAIN;
	n = recv(talk->fd, buf, len, MSG_WAITALL);
	if (n < 0)
		return -errno;
	return n ? n : -ECONNRESET;
}

int talk_read(struct talk *talk, void *buf, size_t len, int waits)
{
	struct ibchan_error error;
	ssize_t n;

	do {
		n = receive(talk, buf, len, waits, &error);
	} while (n == -EINTR);
	if (n == -EAGAIN && !waits)
		return 1;
	if (n < 0 && talk->channel && n != -ETIMEDOUT)
		return complain_error(talk->name, &error);
	if (n < 0)
		return complain_errno(talk, (int)n);
	return (size_t)n == len ? 0 : complain("%s: what it says is not for us", talk->name);
}

void talk_end(struct talk *talk)
{
	ibchan_channel_close(talk->channel);
	if (talk->fd >= 0)
		close(talk->fd);
}
