// SPDX-License-Identifier: LGPL-2.1-or-later
/* One side of a pingpong: its objects, from the device to the channel. */
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pingpong.h"

#define SEED_CLIENT	0x35
#define SEED_SERVER	0xca

/* Places in a queue beside the data: for acknowledgments. */
#define EXTRA_WRS	4

/* Slots begin where a cache line and an atomic would. */
#define SLOT_ALIGN	64

/* The device whose table the GID index is of. */
static int find_device(struct side *side, char *name, size_t size)
{
	struct ibchan_device_info first;
	struct ibchan_route route;
	struct ibchan_error error;

	if (side->talk.device) {
		snprintf(name, size, "%s", side->talk.device);
	} else if (side->talk.host) {
		if (ibchan_route_query(side->context, side->talk.host, NULL, NULL, &route, &error))
			return complain_error(side->talk.host, &error);
		snprintf(name, size, "%s", route.device);
	} else {
		if (ibchan_device_list(side->context, &first, 1, NULL) < 1)
			return complain("no RDMA device is visible from here");
		snprintf(name, size, "%s", first.name);
	}
	return 0;
}

static __u32 first_active(const struct side *side, const char *device)
{
	struct ibchan_port_info info;
	__u32 port;

	for (port = 1; !ibchan_port_query(side->context, device, port, &info, NULL); port++)
		if (info.state == IBCHAN_PORT_ACTIVE)
			return port;
	return 1;
}

/* The connection manager knows addresses, and a GID of RoCE is one. */
int side_find_source(struct side *side)
{
	const __u32 index = side->gid_index;
	__u32 port = side->ib_port;
	char device[IBCHAN_NAME_SIZE];
	struct ibchan_gid_info info;

	if (index == IBCHAN_AUTO)
		return 0;
	if (find_device(side, device, sizeof(device)))
		return -1;
	port = port ? port : first_active(side, device);
	if (ibchan_gid_query(side->context, device, port, index, &info, NULL) ||
	    info.index != index)
		return complain("%s port %u: no GID %u", device, port, index);
	side->talk.source = gid_text(info.gid, side->source, sizeof(side->source));
	return 0;
}

/* By address, the default is the device that the talk goes over. */
static int open_domain(struct side *side)
{
	const char *name = side->talk.device;
	struct ibchan_channel_info info;
	int err;

	if (!name && side->talk.channel && !ibchan_channel_query(side->talk.channel, &info, NULL))
		name = info.device;
	if (open_device(side->context, name, &side->device))
		return -1;
	err = ibchan_pd_alloc(side->device, &side->pd, NULL);
	return err ? complain("protection domain: %s", strerror(-err)) : 0;
}

static int alloc_slots(struct side *side)
{
	size_t size = side->plan.size ? side->plan.size : 1;

	side->stride = (size + SLOT_ALIGN - 1) / SLOT_ALIGN * SLOT_ALIGN;
	side->out = calloc(side->plan.depth, side->stride);
	side->in = calloc(side->plan.depth, side->stride);
	if (!side->out || !side->in)
		return complain("no memory for 2 x %u x %zu bytes", side->plan.depth, side->stride);
	side->mine.size = side->plan.size;
	side->mine.seed = side->talk.host ? SEED_CLIENT : SEED_SERVER;
	side->theirs.size = side->plan.size;
	side->theirs.seed = side->talk.host ? SEED_SERVER : SEED_CLIENT;
	return 0;
}

static int register_slots(struct side *side, void *addr, __u32 access, struct ibchan_mr **mr)
{
	const struct ibchan_mr_params params = {
		.size = sizeof(params),
		.addr = addr,
		.length = side->stride * side->plan.depth,
		.access = IBCHAN_ACCESS_LOCAL_WRITE | access,
	};
	struct ibchan_error error;

	if (ibchan_mr_reg(side->pd, &params, mr, &error))
		return complain_error("register memory", &error);
	return 0;
}

static __u32 queue_depth(const struct side *side)
{
	return side->plan.depth + EXTRA_WRS;
}

static struct ibchan_builder make_builder(const struct side *side)
{
	struct ibchan_builder builder;

	ibchan_builder_init(&builder, side->pd, side->cq);
	builder.params.max_send_wr = queue_depth(side);
	builder.params.max_recv_wr = queue_depth(side);
	builder.params.max_send_sge = 1;
	builder.params.max_recv_sge = 1;
	builder.params.port = side->ib_port;
	builder.params.mtu = side->mtu;
	builder.params.gid_index = side->gid_index;
	builder.params.ack_timeout = side->ack_timeout;
	return builder;
}

/* The peer gets just the access that the operation needs. */
int side_open(struct side *side)
{
	const __u32 in = side->plan.op == IBCHAN_OP_WRITE ? IBCHAN_ACCESS_REMOTE_WRITE : 0;
	const __u32 out = side->plan.op == IBCHAN_OP_READ ? IBCHAN_ACCESS_REMOTE_READ : 0;
	struct ibchan_listen_params params = { .size = sizeof(params), .host = side->talk.source };
	struct ibchan_builder builder;
	struct ibchan_error error;

	if (open_domain(side) || alloc_slots(side) ||
	    register_slots(side, side->in, in, &side->in_mr) ||
	    register_slots(side, side->out, out, &side->out_mr))
		return -1;
	if (ibchan_cq_create(side->device, 2 * queue_depth(side), 0, &side->cq, &error))
		return complain_error("completion queue", &error);
	builder = make_builder(side);
	if (side->endpoints && ibchan_builder_prepare(&builder, &side->prepared, &error))
		return complain_error("channel", &error);
	params.device = side->device;
	if (!side->endpoints && !side->talk.host &&
	    ibchan_listener_create(side->context, &params, &side->listener, &error))
		return complain_error("listen", &error);
	return 0;
}

int side_offer(struct side *side, struct offer *offer)
{
	const struct ibchan_mr *mr = side->plan.op == IBCHAN_OP_WRITE ? side->in_mr :
				     side->plan.op == IBCHAN_OP_READ ? side->out_mr : NULL;
	struct ibchan_remote_region region = { 0 };
	struct ibchan_endpoint endpoint = { 0 };
	struct sockaddr_storage address;
	int err = mr ? ibchan_mr_remote_region(mr, &region) : 0;

	if (err)
		return complain("remote region: %s", strerror(-err));
	if (side->prepared)
		ibchan_prepared_endpoint(side->prepared, &endpoint);
	ibchan_endpoint_to_bytes(&endpoint, offer->endpoint);
	ibchan_remote_region_to_bytes(&region, offer->region);
	offer->port = 0;
	if (side->listener) {
		ibchan_listener_address(side->listener, &address);
		/* At the same place for both families. */
		offer->port = htobe32(ntohs(((const struct sockaddr_in *)&address)->sin_port));
	}
	return 0;
}

static int connect_by_address(struct side *side, __u32 number, struct ibchan_error *error)
{
	const __u32 limit_s = side->talk.timeout_s, most_s = IBCHAN_MAX_STAGE_MS / 1000;
	const struct ibchan_builder builder = make_builder(side);
	const struct ibchan_connect_params params = {
		.size = sizeof(params),
		.connect_ns = (limit_s && limit_s < most_s ? limit_s : most_s) * NSEC_PER_SEC,
		.source = side->talk.source,
	};
	char port[16];

	snprintf(port, sizeof(port), "%u", number);
	return ibchan_builder_connect(&builder, side->talk.host, port, &params, &side->channel,
				      error);
}

/* A client that cannot connect says so in the talk. */
static int accept_by_address(struct side *side, struct ibchan_error *error)
{
	const struct ibchan_builder builder = make_builder(side);
	__u32 left_s = side->talk.timeout_s;
	int err;

	do {
		err = ibchan_builder_accept(&builder, side->listener, NSEC_PER_SEC,
					    &side->channel, error);
		if (err == -ETIMEDOUT && side->talk.timeout_s && !--left_s)
			break;
	} while ((err == -EINTR || err == -ETIMEDOUT) && !peer_tell_busy(side));
	return err;
}

int side_connect(struct side *side, const struct offer *theirs)
{
	struct ibchan_error error;
	int err;

	if (side->endpoints)
		err = ibchan_prepared_handshake(side->prepared, &side->peer, &side->channel,
						&error);
	else if (side->talk.host)
		err = connect_by_address(side, be32toh(theirs->port), &error);
	else
		err = accept_by_address(side, &error);
	if (err)
		return complain_error(side->talk.name, &error);
	side->prepared = NULL;
	return 0;
}

/* Takes a side that was opened in part, too. */
void side_close(struct side *side)
{
	ibchan_channel_close(side->channel);
	ibchan_prepared_destroy(side->prepared);
	ibchan_listener_close(side->listener);
	ibchan_cq_destroy(side->cq);
	ibchan_mr_dereg(side->out_mr);
	ibchan_mr_dereg(side->in_mr);
	ibchan_pd_free(side->pd);
	ibchan_device_close(side->device);
	ibchan_context_close(side->context);
	free(side->out);
	free(side->in);
	free(side->latency_ns);
}
