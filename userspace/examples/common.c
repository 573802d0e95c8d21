// SPDX-License-Identifier: LGPL-2.1-or-later
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common.h"
#include "endpoints.h"

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

/* Without a device, over any; without a host, at every address of this machine. */
static void await_request(struct side *side, const struct options *options)
{
	const struct ibchan_listen_params params = {
		.size = sizeof(params),
		.device = side->device, .service = options->port,
	};

	must("listen", ibchan_listener_create(side->context, &params, &side->listener, &error));
	must("request", ibchan_request_take(side->listener, IBCHAN_TIMEOUT_NEVER,
					    &side->request, &error));
}

static void device_find(struct side *side, const struct options *options)
{
	struct ibchan_request_info info;

	if (options->host) {
		must(options->host, ibchan_device_open_for(side->context, options->host, NULL,
							   &side->device, &error));
		return;
	}
	ibchan_request_query(side->request, &info);
	must("device", ibchan_device_open(side->context, info.device, &side->device, &error));
}

void side_open(struct side *side, const struct options *options)
{
	*side = (struct side){ 0 };
	must("open", ibchan_context_open(&side->context, &error));
	if (options->device || options->endpoints)
		must("device", ibchan_device_open(side->context, options->device, &side->device,
						  &error));
	if (!options->host && !options->endpoints)
		await_request(side, options);
	if (!side->device)
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

static int ask(struct side *side, const struct options *options,
	       const struct ibchan_connect_params *params)
{
	struct ibchan_builder builder;

	ibchan_builder_init(&builder, side->pd, side->cq);
	return ibchan_builder_connect(&builder, options->host, options->port, params,
				      &side->channel, &error);
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

/* After a client that has given up meanwhile comes another one. */
static void answer(struct side *side, const struct ibchan_connect_params *params)
{
	int ret;

	while (gave_up(ret = accept_once(side, params)))
		must("request", ibchan_request_take(side->listener, IBCHAN_TIMEOUT_NEVER,
						    &side->request, &error));
	must("accept", ret);
}

void side_connect(struct side *side, const struct options *options, const void *mine,
		  void *theirs, size_t length)
{
	const struct ibchan_connect_params params = {
		.size = sizeof(params), .data = mine, .length = length,
	};
	struct ibchan_connection_info info;
	int tries = CONNECT_TRIES, ret;

	if (options->endpoints) {
		side->channel = endpoints_meet(side_prepare(side), options, mine, theirs, length);
		return;
	}
	if (options->host) {
		/* The other side may not listen yet. */
		while ((ret = ask(side, options, &params)) == -ECONNREFUSED && --tries)
			usleep(100 * 1000);
		must(options->host, ret);
	} else {
		answer(side, &params);
	}
	must("connection", ibchan_channel_connection(side->channel, &info, &error));
	if (length)
		memcpy(theirs, info.data, length);
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
