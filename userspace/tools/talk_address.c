// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Connecting by address: first a channel to talk on, then one for the data, so
 * that nothing but data is measured there. What comes with each request tells which it
 * is, and keeps other clients apart.
 */
#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "talk.h"
#include "tool.h"

#define REQUEST_MAGIC	0x69626361U	/* "ibca" */
#define REQUEST_TALK	1
#define REQUEST_DATA	2

#define FOR_EVER	7	/* rnr_retries */
#define RETRY_MS	100
#define PORT_ACTIVE	4

struct request_wire {
	__be32 magic;
	__be32 kind;
	__be64 number;
};

static struct request_wire make_request(const struct talk *talk, __u32 kind)
{
	return (struct request_wire) {
		.magic = htobe32(REQUEST_MAGIC),
		.kind = htobe32(kind),
		.number = htobe64(talk->number),
	};
}

/* The number is 0 as long as the server has no client. */
static int request_fits(struct talk *talk, const struct ibchan_request_info *info,
			__u32 kind)
{
	struct request_wire wire;

	memcpy(&wire, info->data, sizeof(wire));
	if (be32toh(wire.magic) != REQUEST_MAGIC || be32toh(wire.kind) != kind)
		return 0;
	if (!talk->number)
		talk->number = be64toh(wire.number);
	return be64toh(wire.number) == talk->number;
}

static void name_peer(struct talk *talk, const struct sockaddr_storage *address)
{
	socklen_t len = address->ss_family == AF_INET ?
			sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	char host[NI_MAXHOST];
	char port[NI_MAXSERV];

	if (!getnameinfo((const struct sockaddr *)address, len, host, sizeof(host),
			 port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(talk->name, sizeof(talk->name), "%s:%s", host, port);
}

static int open_route(struct talk *talk)
{
	struct ibchan_error error;

	if (ibchan_device_open_for(talk->context, talk->options.host,
				   NULL, &talk->device, &error))
		return complain_error(talk->name, &error);
	return 0;
}

static __u32 first_active(struct talk *talk)
{
	struct ibchan_port_info info;
	__u32 port = 1;

	while (!ibchan_port_query(talk->context, ibchan_device_name(talk->device),
				  port, &info, NULL)) {
		if (info.state == PORT_ACTIVE)
			return port;
		port++;
	}
	return 1;
}

/* The connection manager knows addresses, and a GID of RoCE is one. */
static int find_source(struct talk *talk)
{
	__u32 port = talk->options.ib_port;
	__u32 index = talk->options.gid_index;
	struct ibchan_gid_info info;
	int err;

	if (index == IBCHAN_AUTO)
		return 0;
	port = port ? port : first_active(talk);
	err = ibchan_gid_query(talk->context, ibchan_device_name(talk->device),
			       port, index, &info, NULL);
	if (err || info.index != index)
		return complain("%s port %u: no GID %u",
				ibchan_device_name(talk->device), port, index);
	gid_text(info.gid, talk->source, sizeof(talk->source));
	return 0;
}

static int make_queue(struct talk *talk)
{
	struct ibchan_error error;

	if (ibchan_pd_alloc(talk->device, &talk->pd, &error))
		return complain_error("protection domain", &error);
	if (ibchan_cq_create(talk->device, 2 * TALK_SLOTS, 0, &talk->cq, &error))
		return complain_error("completion queue", &error);
	if (ibchan_mr_reg_local(talk->pd, talk->memory, sizeof(talk->memory),
				&talk->mr, &error))
		return complain_error("register memory", &error);
	return 0;
}

/* The receives are there before the other side can say anything. */
static int prepare(struct talk *talk, struct ibchan_prepared **prepared)
{
	struct ibchan_builder builder;
	struct ibchan_error error;
	__u32 slot;
	int err;

	ibchan_builder_init(&builder, talk->pd, talk->cq);
	builder.send_cq = NULL;
	builder.params.max_recv_wr = TALK_SLOTS;
	builder.params.rnr_retries = FOR_EVER;
	builder.params.port = talk->options.ib_port;
	if (ibchan_builder_prepare(&builder, prepared, &error))
		return complain_error("channel", &error);
	for (slot = 0; slot < TALK_SLOTS; slot++) {
		err = talk_post_slot(talk, ibchan_prepared_channel(*prepared), slot);
		if (err)
			return complain("receive: %s", strerror(-err));
	}
	return 0;
}

static __s64 connect_ns(const struct talk *talk)
{
	const __s64 most = IBCHAN_MAX_STAGE_MS * 1000000LL, ns = talk_timeout_ns(talk);

	return ns < 0 || ns > most ? most : ns;
}

/* Returns as ibchan_channel_connect_wait(). */
static int ask(struct talk *talk, struct ibchan_prepared *prepared, __u32 kind,
	       struct ibchan_channel **channel, struct ibchan_error *error)
{
	const struct request_wire wire = make_request(talk, kind);
	const struct ibchan_connect_params params = {
		.size = sizeof(params),
		.data = &wire,
		.length = sizeof(wire),
		.connect_ns = connect_ns(talk),
		.source = *talk->source ? talk->source : NULL,
	};
	int err = ibchan_prepared_connect(prepared, talk->options.host,
					  talk->options.port, &params, channel, error);

	return err ? err : ibchan_channel_connect_wait(*channel, IBCHAN_TIMEOUT_NEVER,
						       error);
}

static int try_once(struct talk *talk, struct ibchan_error *error)
{
	struct ibchan_prepared *prepared = NULL;
	struct ibchan_channel *channel;
	int err;

	if (prepare(talk, &prepared)) {
		ibchan_prepared_destroy(prepared);
		return -1;
	}
	err = ask(talk, prepared, REQUEST_TALK, &channel, error);
	if (!err) {
		talk->channel = channel;
		return 0;
	}
	ibchan_prepared_destroy(prepared);
	return err == -ECONNREFUSED ? 1 : complain_error(talk->name, error);
}

static long long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* The receives of a try that failed complete as well, and mean nothing. */
static void forget_receives(struct talk *talk)
{
	struct ibchan_cqe done[TALK_SLOTS];

	while (ibchan_cq_poll(talk->cq, done, TALK_SLOTS) > 0)
		;
}

/* A server that was started together with us may take a moment. */
static int try_all(struct talk *talk)
{
	const struct timespec pause = { .tv_nsec = RETRY_MS * 1000000 };
	long long end = now_ms() + talk->timeout_s * 1000LL;
	struct ibchan_error error;
	int tries = 0;
	int ret;

	while ((ret = try_once(talk, &error)) > 0) {
		forget_receives(talk);
		if (talk->timeout_s && now_ms() >= end)
			return complain_error(talk->name, &error);
		if (tries++ == 1000 / RETRY_MS)
			complain("%s: no server there yet, still trying",
				 talk->name);
		nanosleep(&pause, NULL);
	}
	return ret;
}

static int begin_client(struct talk *talk)
{
	const struct talk_options *options = &talk->options;

	snprintf(talk->name, sizeof(talk->name), "%s:%s", options->host,
		 options->port);
	while (!talk->number)
		if (getrandom(&talk->number, sizeof(talk->number), 0) < 0)
			return complain("random number: %s", strerror(errno));
	if (options->device ? open_device(talk->context, options->device, &talk->device) :
			      open_route(talk))
		return -1;
	if (find_source(talk) || make_queue(talk))
		return -1;
	return try_all(talk);
}

static int start_listening(struct talk *talk)
{
	const struct talk_options *options = &talk->options;
	struct ibchan_listen_params params = { .size = sizeof(params), .service = options->port };
	struct ibchan_error error;

	snprintf(talk->name, sizeof(talk->name), "port %s", options->port);
	if (options->device || options->gid_index != IBCHAN_AUTO) {
		if (open_device(talk->context, options->device, &talk->device) ||
		    find_source(talk))
			return -1;
		params.device = talk->device;
		params.host = *talk->source ? talk->source : NULL;
	}
	if (ibchan_listener_create(talk->context, &params, &talk->listener, &error))
		return complain_error(talk->name, &error);
	if (ibchan_listener_watch(talk->listener))
		return complain("%s: too many open files", talk->name);
	return 0;
}

static int complain_of_time(const struct talk *talk)
{
	return complain("%s: nothing happened for %d s", talk->name, talk->timeout_s);
}

/*
 * No request comes any more once the client has gone; without a client, only time tells. Requests
 * of other clients are rejected.
 */
static int take_request(struct talk *talk, __u32 kind,
			struct ibchan_request **request)
{
	long long end = now_ms() + talk->timeout_s * 1000LL;
	struct ibchan_happening happening;
	struct ibchan_request_info info;
	struct ibchan_error error;
	long long left;
	int err;

	for (;;) {
		left = end - now_ms();
		err = ibchan_next(talk->context, talk->timeout_s ? (left > 0 ? left : 0) * 1000000 :
				  IBCHAN_TIMEOUT_NEVER, &happening, &error);
		if (err == -ETIMEDOUT || err == -EAGAIN)
			return complain_of_time(talk);
		if (err && err != -EINTR)
			return complain_error(talk->name, &error);
		if (!err && happening.kind == IBCHAN_NEXT_REFUSED)
			return complain("%s: %s", talk->name, strerror(-happening.error));
		if (!err && happening.kind == IBCHAN_NEXT_ENDED &&
		    happening.channel == talk->channel)
			return complain("%s: the other side is gone", talk->name);
		if (err || happening.kind != IBCHAN_NEXT_REQUEST)
			continue;
		*request = happening.request;
		ibchan_request_query(*request, &info);
		if (request_fits(talk, &info, kind))
			return 0;
		ibchan_request_reject(*request, NULL, 0, NULL);
	}
}

/* On failure, @request is gone as well. */
static int answer(struct talk *talk, struct ibchan_request *request,
		  struct ibchan_prepared *prepared, struct ibchan_channel **channel)
{
	struct ibchan_channel *made;
	struct ibchan_error error;

	if (ibchan_request_accept(request, prepared, NULL, &made, &error)) {
		ibchan_request_reject(request, NULL, 0, NULL);
		return complain_error("accept", &error);
	}
	if (ibchan_channel_connect_wait(made, talk_timeout_ns(talk), &error))
		return complain_error("connect", &error);
	*channel = made;
	return 0;
}

static int serve(struct talk *talk, struct ibchan_request *request)
{
	struct ibchan_prepared *prepared = NULL;
	struct ibchan_request_info info;

	ibchan_request_query(request, &info);
	name_peer(talk, &info.peer);
	if ((!talk->device && open_device(talk->context, info.device, &talk->device)) ||
	    make_queue(talk) || prepare(talk, &prepared)) {
		ibchan_request_reject(request, NULL, 0, NULL);
		ibchan_prepared_destroy(prepared);
		return -1;
	}
	if (answer(talk, request, prepared, &talk->channel)) {
		ibchan_prepared_destroy(prepared);
		return -1;
	}
	return 0;
}

static int begin_server(struct talk *talk)
{
	struct ibchan_request *request;

	if (start_listening(talk) || take_request(talk, REQUEST_TALK, &request))
		return -1;
	return serve(talk, request);
}

int talk_by_address(struct talk *talk)
{
	if (open_context(&talk->context))
		return -1;
	return talk->options.host ? begin_client(talk) : begin_server(talk);
}

int talk_connect(struct talk *talk, struct ibchan_prepared *prepared,
		 struct ibchan_channel **channel)
{
	struct ibchan_channel *made;
	struct ibchan_request *request;
	struct ibchan_error error;

	if (!talk->options.host)
		return take_request(talk, REQUEST_DATA, &request) ||
		       answer(talk, request, prepared, channel) ? -1 : 0;
	if (ask(talk, prepared, REQUEST_DATA, &made, &error))
		return complain_error(talk->name, &error);
	*channel = made;
	return 0;
}
