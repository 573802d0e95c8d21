// SPDX-License-Identifier: LGPL-2.1-or-later
#include <err.h>
#include <errno.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "endpoints.h"

#define CONNECT_TRIES	100	/* ten a second */

static struct addrinfo *addresses(const struct options *options)
{
	const struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM,
		.ai_flags = options->host ? 0 : AI_PASSIVE,
	};
	struct addrinfo *list;
	int ret = getaddrinfo(options->host, options->port, &hints, &list);

	if (ret)
		errx(1, "%s port %s: %s", options->host ?: "here", options->port,
		     gai_strerror(ret));
	return list;
}

int tcp_listen(const struct options *options)
{
	struct addrinfo *list = addresses(options);
	int fd = socket(list->ai_family, list->ai_socktype, list->ai_protocol);
	int one = 1;

	if (fd < 0)
		err(1, "socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, list->ai_addr, list->ai_addrlen) || listen(fd, 16))
		err(1, "port %s", options->port);
	freeaddrinfo(list);
	return fd;
}

int tcp_accept(int listener)
{
	int fd;

	do {
		fd = accept(listener, NULL, NULL);
	} while (fd < 0 && errno == ECONNABORTED);
	if (fd < 0)
		err(1, "accept");
	return fd;
}

/* The other side may not listen yet. */
static int tcp_connect(const struct options *options)
{
	struct addrinfo *list = addresses(options), *address;

	for (int i = 0; i < CONNECT_TRIES; i++) {
		for (address = list; address; address = address->ai_next) {
			int fd = socket(address->ai_family, address->ai_socktype, 0);

			if (fd >= 0 && !connect(fd, address->ai_addr, address->ai_addrlen)) {
				freeaddrinfo(list);
				return fd;
			}
			close(fd);
		}
		usleep(100 * 1000);
	}
	err(1, "%s port %s", options->host, options->port);
}

static int tcp_meet(const struct options *options)
{
	int listener, fd;

	if (options->host)
		return tcp_connect(options);
	listener = tcp_listen(options);
	fd = tcp_accept(listener);
	close(listener);
	return fd;
}

int swap(int tcp, const void *mine, void *theirs, size_t length)
{
	return send(tcp, mine, length, MSG_NOSIGNAL) == (ssize_t)length &&
	       recv(tcp, theirs, length, MSG_WAITALL) == (ssize_t)length;
}

struct ibchan_channel *endpoints_connect(struct ibchan_prepared *prepared, int tcp)
{
	unsigned char mine[IBCHAN_ENDPOINT_SIZE], theirs[IBCHAN_ENDPOINT_SIZE];
	struct ibchan_endpoint endpoint;
	struct ibchan_channel *channel;

	ibchan_prepared_endpoint(prepared, &endpoint);
	ibchan_endpoint_to_bytes(&endpoint, mine);
	if (!swap(tcp, mine, theirs, sizeof(mine)))
		return NULL;
	must("endpoint", ibchan_endpoint_from_bytes(&endpoint, theirs, sizeof(theirs), &error));
	must("handshake", ibchan_prepared_handshake(prepared, &endpoint, &channel, &error));

	/* Only when both have done it may anything be sent. */
	return swap(tcp, mine, theirs, 1) ? channel : NULL;
}

struct ibchan_channel *endpoints_meet(struct ibchan_prepared *prepared,
				      const struct options *options, const void *mine,
				      void *theirs, size_t length)
{
	int tcp = tcp_meet(options);
	struct ibchan_channel *channel = NULL;

	if (!length || swap(tcp, mine, theirs, length))
		channel = endpoints_connect(prepared, tcp);
	close(tcp);
	check("the other side is gone", !!channel);
	return channel;
}
