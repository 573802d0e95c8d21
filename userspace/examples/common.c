// SPDX-License-Identifier: LGPL-2.1-or-later
#include <err.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common.h"

#define CONNECT_TRIES	100	/* ten a second: the other side may not listen yet */

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

static void read_options(struct side *side, int argc, char **argv)
{
	int option;

	*side = (struct side){ .port = "18516" };
	while ((option = getopt(argc, argv, "d:p:e")) != -1) {
		if (option == 'd')
			side->name = optarg;
		else if (option == 'p')
			side->port = optarg;
		else if (option == 'e')
			side->endpoints = 1;
		else
			errx(1, "usage: %s [-d DEVICE] [-p PORT] [-e] [HOST]", argv[0]);
	}
	side->host = argv[optind];
}

/* Over @side->device, or any; the first client tells which it has to be. */
static void await_client(struct side *side)
{
	const struct ibchan_listen_params params = {
		.size = sizeof(params), .device = side->device, .service = side->port,
	};
	struct ibchan_request_info info;

	must("listen", ibchan_listener_create(side->context, &params, &side->listener, &error));
	must("request", ibchan_request_take(side->listener, IBCHAN_TIMEOUT_NEVER, &side->request,
					    &error));
	ibchan_request_query(side->request, &info);
	if (!side->device)
		must("device", ibchan_device_open(side->context, info.device, &side->device,
						  &error));
}

void side_open(struct side *side, int argc, char **argv)
{
	read_options(side, argc, argv);
	must("open", ibchan_context_open(&side->context, &error));
	if (side->name || side->endpoints)
		must("device", ibchan_device_open(side->context, side->name, &side->device,
						  &error));
	else if (side->host)
		must(side->host, ibchan_device_open_for(side->context, side->host, NULL,
							&side->device, &error));
	if (!side->host && !side->endpoints)
		await_client(side);
	must("pd", ibchan_pd_alloc(side->device, &side->pd, &error));
	must("cq", ibchan_cq_create(side->device, 0, 0, &side->cq, &error));
	ibchan_builder_init(&side->builder, side->pd, side->cq);
}

/* --- by TCP --- */

static int tcp_accept(int listener)
{
	int fd;

	do {
		fd = accept(listener, NULL, NULL);
	} while (fd < 0 && errno == ECONNABORTED);
	close(listener);
	return fd;
}

static int tcp_open(const struct side *side)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
	struct addrinfo *list, *to;
	int tries = side->host ? CONNECT_TRIES : 1;
	int ret = getaddrinfo(side->host, side->port, &hints, &list);

	if (ret)
		errx(1, "%s port %s: %s", side->host ?: "here", side->port, gai_strerror(ret));
	while (tries--) {
		for (to = list; to; to = to->ai_next) {
			int fd = socket(to->ai_family, to->ai_socktype, 0), one = 1;

			setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
			if (side->host ? !connect(fd, to->ai_addr, to->ai_addrlen) :
			    !bind(fd, to->ai_addr, to->ai_addrlen) && !listen(fd, 16)) {
				freeaddrinfo(list);
				return side->host ? fd : tcp_accept(fd);
			}
			close(fd);
		}
		usleep(100 * 1000);
	}
	err(1, "%s port %s", side->host ?: "here", side->port);
}

/* Both sides do it at the same time. Returns 0 when the other one is gone. */
static int swap(int tcp, const void *mine, void *theirs, size_t length)
{
	return send(tcp, mine, length, MSG_NOSIGNAL) == (ssize_t)length &&
	       recv(tcp, theirs, length, MSG_WAITALL) == (ssize_t)length;
}

/* Only when both have done the handshake may anything be sent. */
static void swap_endpoints(struct side *side)
{
	unsigned char mine[IBCHAN_ENDPOINT_SIZE], theirs[IBCHAN_ENDPOINT_SIZE];
	struct ibchan_prepared *prepared;
	struct ibchan_endpoint endpoint;
	int tcp = tcp_open(side);

	must("prepare", ibchan_builder_prepare(&side->builder, &prepared, &error));
	ibchan_prepared_endpoint(prepared, &endpoint);
	ibchan_endpoint_to_bytes(&endpoint, mine);
	check("the other side is gone", swap(tcp, mine, theirs, sizeof(mine)));
	must("endpoint", ibchan_endpoint_from_bytes(&endpoint, theirs, sizeof(theirs), &error));
	must("handshake", ibchan_prepared_handshake(prepared, &endpoint, &side->channel, &error));
	check("the other side is gone", swap(tcp, mine, theirs, 1));
	close(tcp);
}

/* --- by address --- */

/* Of the client that has come already. */
static int accept_client(struct side *side)
{
	struct ibchan_prepared *prepared;
	int ret;

	must("prepare", ibchan_builder_prepare(&side->builder, &prepared, &error));
	ret = ibchan_request_accept(side->request, prepared, NULL, &side->channel, &error);
	if (ret)
		ibchan_request_reject(side->request, NULL, 0, NULL);
	else
		ret = ibchan_channel_connect_wait(side->channel, IBCHAN_TIMEOUT_NEVER, &error);
	if (ret)
		ibchan_prepared_destroy(prepared);
	return ret;
}

void side_connect(struct side *side)
{
	int tries = CONNECT_TRIES, ret;

	if (side->endpoints) {
		swap_endpoints(side);
	} else if (side->host) {
		while ((ret = ibchan_builder_connect(&side->builder, side->host, side->port, NULL,
						     &side->channel, &error)) == -ECONNREFUSED &&
		       --tries)
			usleep(100 * 1000);
		must(side->host, ret);
	} else {
		ret = accept_client(side);
		/* It has given up; another one may come. */
		if (ret == -ECONNRESET || ret == -ETIMEDOUT || ret == -EINVAL)
			ret = ibchan_builder_accept(&side->builder, side->listener,
						    IBCHAN_TIMEOUT_NEVER, &side->channel, &error);
		must("accept", ret);
	}
}

/*
 * The farewell of one side meets the receive of the other when both have come here. Then
 * either may close, so what becomes of the farewell itself says nothing.
 */
void side_part(struct side *side)
{
	if (side->host)
		ibchan_send(side->channel, NULL, 0, IBCHAN_TIMEOUT_NEVER, NULL);
	else
		ibchan_receive(side->channel, NULL, 0, IBCHAN_TIMEOUT_NEVER, NULL, NULL);
}
