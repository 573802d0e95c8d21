// SPDX-License-Identifier: LGPL-2.1-or-later
#include <err.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common.h"

#define CONNECT_TRIES	100	/* ten a second */

struct ibchan_error error;

/* For a call that gives no details: the details of an older call are not its own. */
int must(const char *what, int ret)
{
	char text[256];

	if (ret >= 0 || error.code != ret)
		error = (struct ibchan_error){ .code = ret < 0 ? ret : 0 };
	if (ret >= 0)
		return ret;
	ibchan_error_text(&error, text, sizeof(text));
	errx(1, "%s: %s", what, text);
}

void check(const char *what, int condition)
{
	if (!condition)
		errx(1, "%s", what);
}

void options_read(struct options *options, int argc, char **argv)
{
	int option;

	*options = (struct options){ .port = "18516", .clients = 1 };
	while ((option = getopt(argc, argv, "d:p:n:e")) != -1) {
		if (option == 'd')
			options->device = optarg;
		else if (option == 'p')
			options->port = optarg;
		else if (option == 'n')
			options->clients = atoi(optarg);
		else if (option == 'e')
			options->endpoints = 1;
		else
			errx(1, "usage: %s [-d DEVICE] [-p PORT] [-n CLIENTS] [-e] [HOST]",
			     argv[0]);
	}
	options->host = argv[optind];
}

static void take_request(struct side *side)
{
	must("request", ibchan_request_take(side->listener, IBCHAN_TIMEOUT_NEVER, &side->request,
					    &error));
}

/* Without a device, over any; without a host, at every address of this machine. */
static void device_find(struct side *side, const struct options *options)
{
	const struct ibchan_listen_params params = {
		.size = sizeof(params),
		.device = side->device, .service = options->port,
	};
	struct ibchan_request_info info;

	if (options->host) {
		if (!side->device)
			must(options->host, ibchan_device_open_for(side->context, options->host,
								   NULL, &side->device, &error));
		return;
	}
	must("listen", ibchan_listener_create(side->context, &params, &side->listener, &error));
	take_request(side);
	ibchan_request_query(side->request, &info);
	if (!side->device)
		must("device", ibchan_device_open(side->context, info.device, &side->device,
						  &error));
}

void side_open(struct side *side, const struct options *options)
{
	*side = (struct side){ 0 };
	must("open", ibchan_context_open(&side->context, &error));
	if (options->device || options->endpoints)
		must("device", ibchan_device_open(side->context, options->device, &side->device,
						  &error));
	if (!options->endpoints)
		device_find(side, options);
	must("pd", ibchan_pd_alloc(side->device, &side->pd, &error));
	must("cq", ibchan_cq_create(side->device, 0, 0, &side->cq, &error));
}

struct ibchan_prepared *side_prepare(struct side *side)
{
	struct ibchan_prepared *prepared;
	struct ibchan_builder builder;

	ibchan_builder_init(&builder, side->pd, side->cq);
	must("prepare", ibchan_builder_prepare(&builder, &prepared, &error));
	return prepared;
}

int gave_up(int ret)
{
	return ret == -ECONNRESET || ret == -ETIMEDOUT || ret == -EINVAL;
}

static int accept_once(struct side *side, const struct ibchan_connect_params *params)
{
	struct ibchan_prepared *prepared = side_prepare(side);
	int ret = ibchan_request_accept(side->request, prepared, params, &side->channel, &error);

	if (ret < 0)
		ibchan_request_reject(side->request, NULL, 0, NULL);
	else
		ret = ibchan_channel_connect_wait(side->channel, IBCHAN_TIMEOUT_NEVER, &error);
	if (ret < 0)
		ibchan_prepared_destroy(prepared);
	return ret;
}

/* --- by TCP --- */

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

/* Both sides do it at the same time. Returns 0 when the other one is gone. */
static int swap(int tcp, const void *mine, void *theirs, size_t length)
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

/* --- either way --- */

static void connect_by_address(struct side *side, const struct options *options,
			       const struct ibchan_connect_params *params)
{
	struct ibchan_builder builder;
	int tries = CONNECT_TRIES, ret;

	if (!options->host) {
		/* After a client that has given up meanwhile comes another one. */
		while (gave_up(ret = accept_once(side, params)))
			take_request(side);
		must("accept", ret);
		return;
	}
	ibchan_builder_init(&builder, side->pd, side->cq);
	/* The other side may not listen yet. */
	while ((ret = ibchan_builder_connect(&builder, options->host, options->port, params,
					     &side->channel, &error)) == -ECONNREFUSED && --tries)
		usleep(100 * 1000);
	must(options->host, ret);
}

void side_connect(struct side *side, const struct options *options, const void *mine,
		  void *theirs, size_t length)
{
	const struct ibchan_connect_params params = {
		.size = sizeof(params), .data = mine, .length = length,
	};
	struct ibchan_connection_info info;
	int tcp;

	if (!options->endpoints) {
		connect_by_address(side, options, &params);
		must("connection", ibchan_channel_connection(side->channel, &info, &error));
		if (length)
			memcpy(theirs, info.data, length);
		return;
	}
	tcp = tcp_meet(options);
	if (!length || swap(tcp, mine, theirs, length))
		side->channel = endpoints_connect(side_prepare(side), tcp);
	close(tcp);
	check("the other side is gone", !!side->channel);
}

/*
 * The farewell of one side meets the receive of the other when both have come here. Then
 * either may close, so what becomes of the farewell itself says nothing.
 */
void side_part(struct side *side, const struct options *options)
{
	if (options->host)
		ibchan_send(side->channel, NULL, 0, IBCHAN_TIMEOUT_NEVER, NULL);
	else
		ibchan_receive(side->channel, NULL, 0, IBCHAN_TIMEOUT_NEVER, NULL, NULL);
}
