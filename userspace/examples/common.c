// SPDX-License-Identifier: LGPL-2.1-or-later
#include <err.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common.h"

#define CONNECT_TRIES	100	/* ten a second */

struct ibchan_error error;

int must(const char *what, int ret)
{
	char text[256];

	if (ret >= 0)
		return ret;
	error.code = ret;	/* some calls give no details */
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
	while ((option = getopt(argc, argv, "d:p:n:")) != -1) {
		if (option == 'd')
			options->device = optarg;
		else if (option == 'p')
			options->port = optarg;
		else if (option == 'n')
			options->clients = atoi(optarg);
		else
			errx(1, "usage: %s [-d DEVICE] [-p PORT] [-n CLIENTS] [HOST]", argv[0]);
	}
	options->host = argv[optind];
}

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
	int fd = accept(listener, NULL, NULL);

	if (fd < 0)
		err(1, "accept");
	return fd;
}

/* The other side may not listen yet. */
int tcp_connect(const struct options *options)
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

int meet(const struct options *options)
{
	int listener, fd;

	if (options->host)
		return tcp_connect(options);
	listener = tcp_listen(options);
	fd = tcp_accept(listener);
	close(listener);
	return fd;
}

void swap(int tcp, const void *mine, void *theirs, size_t length)
{
	if (send(tcp, mine, length, MSG_NOSIGNAL) != (ssize_t)length)
		err(1, "sending by TCP");
	if (recv(tcp, theirs, length, MSG_WAITALL) != (ssize_t)length)
		errx(1, "the other side is gone");
}

void part(int tcp)
{
	char mine = 0, theirs;

	swap(tcp, &mine, &theirs, 1);
	close(tcp);
}

void side_open(struct side *side, const struct options *options)
{
	*side = (struct side){ 0 };
	must("open", ibchan_context_open(&side->context));
	must("device", ibchan_device_open(side->context, options->device, &side->device));
	must("pd", ibchan_pd_alloc(side->device, &side->pd));
	must("cq", ibchan_cq_create(side->device, 0, 0, &side->cq, &error));
}

struct ibchan_channel *channel_open(struct side *side, int tcp)
{
	unsigned char mine[IBCHAN_ENDPOINT_SIZE], theirs[IBCHAN_ENDPOINT_SIZE];
	struct ibchan_prepared *prepared;
	struct ibchan_endpoint endpoint;
	struct ibchan_channel *channel;
	struct ibchan_builder builder;

	ibchan_builder_init(&builder, side->pd, side->cq);
	builder.params.rnr_retries = 7;	/* who sends waits for a receive as long as it takes */
	must("prepare", ibchan_builder_prepare(&builder, &prepared, &error));

	ibchan_prepared_endpoint(prepared, &endpoint);
	ibchan_endpoint_to_bytes(&endpoint, mine);
	swap(tcp, mine, theirs, sizeof(mine));
	must("endpoint", ibchan_endpoint_from_bytes(&endpoint, theirs, sizeof(theirs), &error));
	must("handshake", ibchan_prepared_handshake(prepared, &endpoint, &channel, &error));

	/* Only when both have done it may anything be sent. */
	swap(tcp, mine, theirs, 1);
	return channel;
}
