// SPDX-License-Identifier: LGPL-2.1-or-later
/* One side of a pingpong: its objects, from the device to the channel. */
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pingpong.h"

#define SEED_CLIENT	0x35
#define SEED_SERVER	0xca

#define EXTRA_WRS	4	/* places in a queue beside the data: for acknowledgments */
#define SLOT_ALIGN	64	/* slots begin where a cache line and an atomic would */

/* By address, the default is the device that the talk goes over, or will go over. */
static int open_device(struct side *side)
{
	const char *name = side->wanted;
	struct ibchan_channel_info info;
	struct ibchan_route route;
	int err;

	if (!name && side->talk && !ibchan_channel_query(side->talk, &info, NULL)) {
		name = info.device;
	} else if (!name && side->host && !side->endpoints) {
		if (ibchan_route_query(side->context, side->host, NULL, NULL, &route, &side->error))
			return complain_error(side->host, &side->error);
		name = route.device;
	}
	err = ibchan_device_open(side->context, name, &side->device, NULL);
	if (!err)
		return 0;
	return complain("device %s: %s; `ibchan devices` lists them", name ?: "(first)",
			strerror(-err));
}

static __u32 first_active(const struct side *side, const char *device)
{
	struct ibchan_port_attr info;
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
	struct ibchan_gid_attr info;
	const char *device;
	__u32 port;

	if (side->endpoints || index == IBCHAN_AUTO)
		return 0;
	if (open_device(side))
		return -1;
	device = ibchan_device_name(side->device);
	port = side->ib_port ?: first_active(side, device);
	if (ibchan_gid_query(side->context, device, port, index, &info, NULL) ||
	    info.index != index)
		return complain("%s port %u: no GID %u", device, port, index);
	side->source = gid_text(info.gid, side->source_text, sizeof(side->source_text));
	return 0;
}

static int register_slots(struct side *side, void *addr, __u32 access, struct ibchan_mr **mr)
{
	const struct ibchan_mr_params params = {
		.size = sizeof(params), .addr = addr, .length = side->stride * side->plan.depth,
		.access = IBCHAN_ACCESS_LOCAL_WRITE | access,
	};

	if (ibchan_mr_reg(side->pd, &params, mr, &side->error))
		return complain_error("register memory", &side->error);
	return 0;
}

/* The peer gets just the access that the operation needs. */
static int open_memory(struct side *side)
{
	const struct plan *plan = &side->plan;
	const __u32 in = plan->op == IBCHAN_OP_WRITE ? IBCHAN_ACCESS_REMOTE_WRITE : 0;
	const __u32 out = plan->op == IBCHAN_OP_READ ? IBCHAN_ACCESS_REMOTE_READ : 0;
	struct ibchan_remote_region region = { 0 };
	int err = 0;

	side->stride = ((size_t)(plan->size ?: 1) + SLOT_ALIGN - 1) / SLOT_ALIGN * SLOT_ALIGN;
	side->out = calloc(plan->depth, side->stride);
	side->in = calloc(plan->depth, side->stride);
	side->latency_ns = calloc(plan->iters, sizeof(__u64));
	if (!side->out || !side->in)
		return complain("no memory for 2 x %u x %zu bytes", plan->depth, side->stride);
	if (!side->latency_ns)
		return complain("no memory for %u rounds", plan->iters);
	side->mine.size = plan->size;
	side->mine.seed = side->host ? SEED_CLIENT : SEED_SERVER;
	side->theirs.size = plan->size;
	side->theirs.seed = side->host ? SEED_SERVER : SEED_CLIENT;
	if (register_slots(side, side->in, in, &side->in_mr) ||
	    register_slots(side, side->out, out, &side->out_mr))
		return -1;
	if (in || out)
		err = ibchan_mr_remote_region(in ? side->in_mr : side->out_mr, &region);
	ibchan_remote_region_to_bytes(&region, side->told.region);
	return err ? complain("remote region: %s", strerror(-err)) : 0;
}

static int open_listener(struct side *side)
{
	const struct ibchan_listen_params params = {
		.size = sizeof(params), .device = side->device, .host = side->source,
	};
	struct sockaddr_storage address;

	if (ibchan_listener_create(side->context, &params, &side->listener, &side->error))
		return complain_error("listen", &side->error);
	ibchan_listener_address(side->listener, &address);
	/* At the same place for both families. */
	side->told.port = htobe32(ntohs(((const struct sockaddr_in *)&address)->sin_port));
	return 0;
}

int side_open(struct side *side)
{
	const __u32 depth = side->plan.depth + EXTRA_WRS;
	struct ibchan_params *params = &side->builder.params;
	struct ibchan_endpoint endpoint;
	int err;

	if (!side->device && open_device(side))
		return -1;
	err = ibchan_pd_alloc(side->device, &side->pd, NULL);
	if (err)
		return complain("protection domain: %s", strerror(-err));
	if (open_memory(side))
		return -1;
	if (ibchan_cq_create(side->device, 2 * depth, 0, &side->cq, &side->error))
		return complain_error("completion queue", &side->error);
	ibchan_builder_init(&side->builder, side->pd, side->cq);
	params->max_send_wr = depth;
	params->max_recv_wr = depth;
	params->max_send_sge = 1;
	params->max_recv_sge = 1;
	params->port = side->ib_port;
	params->mtu = side->mtu;
	params->gid_index = side->gid_index;
	params->ack_timeout = side->ack_timeout;
	if (!side->endpoints)
		return side->host ? 0 : open_listener(side);
	if (ibchan_builder_prepare(&side->builder, &side->prepared, &side->error))
		return complain_error("channel", &side->error);
	ibchan_prepared_endpoint(side->prepared, &endpoint);
	ibchan_endpoint_to_bytes(&endpoint, side->told.endpoint);
	return 0;
}

static int connect_by_address(struct side *side)
{
	const __s64 most_ns = IBCHAN_MAX_STAGE_MS * 1000000LL;
	const struct ibchan_connect_params params = {
		.size = sizeof(params),
		.connect_ns = limit_ns(side) < most_ns ? limit_ns(side) : most_ns,
		.source = side->source,
	};
	char port[16];

	snprintf(port, sizeof(port), "%u", be32toh(side->heard.port));
	return ibchan_builder_connect(&side->builder, side->host, port, &params, &side->channel,
				      &side->error);
}

/* A client that cannot connect says so in the talk. */
static int accept_by_address(struct side *side)
{
	const __u64 start = now_ns();
	struct ibchan_error error;
	int err;

	do {
		err = ibchan_builder_accept(&side->builder, side->listener, NSEC_PER_SEC,
					    &side->channel, &error);
	} while ((err == -EINTR || (err == -ETIMEDOUT && !is_late(side, start))) &&
		 !tell_busy(side));
	side->error = error;	/* the talk had its own meanwhile */
	return err;
}

/* A region that does not hold all slots would only fail later. */
int side_connect(struct side *side)
{
	const __u64 needed = side->plan.op == IBCHAN_OP_SEND ? 0 : side->stride * side->plan.depth;
	const struct word *heard = &side->heard;
	struct ibchan_endpoint peer;
	int err;

	if (ibchan_remote_region_from_bytes(&side->remote, heard->region, sizeof(heard->region)) ||
	    side->remote.length < needed)
		return complain("%s: its remote region is of no use", side->peer_name);
	if (side->endpoints)
		err = ibchan_endpoint_from_bytes(&peer, heard->endpoint, sizeof(heard->endpoint),
						 &side->error) ?:
		      ibchan_prepared_handshake(side->prepared, &peer, &side->channel,
						&side->error);
	else
		err = side->host ? connect_by_address(side) : accept_by_address(side);
	return err ? complain_error(side->peer_name, &side->error) : 0;
}

/* With the context ends all that is in it; the talk's channel has one of its own. */
void side_close(struct side *side)
{
	ibchan_channel_close(side->talk);
	if (side->tcp >= 0)
		close(side->tcp);
	ibchan_context_close(side->context);
	free(side->out);
	free(side->in);
	free(side->latency_ns);
}
