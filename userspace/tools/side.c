// SPDX-License-Identifier: LGPL-2.1-or-later
/* One side of a pingpong: its objects, from the device to the channel. */
#include <stdlib.h>
#include <string.h>

#include "pingpong.h"
#include "tool.h"

#define SEED_CLIENT	0x35
#define SEED_SERVER	0xca

/* Places in a queue beside the data: for credits. */
#define EXTRA_WRS	4

/* Slots begin where a cache line and an atomic would. */
#define SLOT_ALIGN	64

/* A side that connects by address has found the device that way. */
static int open_domain(struct side *side, const char *name)
{
	struct ibchan_error error;

	if (!side->device && (open_context(&side->context) ||
			      open_device(side->context, name, &side->device)))
		return -1;
	if (ibchan_pd_alloc(side->device, &side->pd, &error))
		return complain_error("protection domain", &error);
	return 0;
}

static int alloc_slots(struct side *side)
{
	size_t size = side->plan->size ? side->plan->size : 1;

	side->stride = (size + SLOT_ALIGN - 1) / SLOT_ALIGN * SLOT_ALIGN;
	side->out = calloc(side->plan->depth, side->stride);
	side->in = calloc(side->plan->depth, side->stride);
	if (!side->out || !side->in)
		return complain("no memory for 2 x %u x %zu bytes",
				side->plan->depth, side->stride);
	side->mine.size = side->plan->size;
	side->mine.seed = side->is_client ? SEED_CLIENT : SEED_SERVER;
	side->theirs.size = side->plan->size;
	side->theirs.seed = side->is_client ? SEED_SERVER : SEED_CLIENT;
	return 0;
}

static int register_slots(struct side *side, void *addr, __u32 access,
			  struct ibchan_mr **mr)
{
	const struct ibchan_mr_params params = {
		.size = sizeof(params),
		.addr = addr,
		.length = side->stride * side->plan->depth,
		.access = access,
	};
	struct ibchan_error error;

	if (ibchan_mr_reg(side->pd, &params, mr, &error))
		return complain_error("register memory", &error);
	return 0;
}

/* The peer gets just the access that the operation needs. */
static int register_all(struct side *side)
{
	__u32 in = IBCHAN_ACCESS_LOCAL_WRITE;
	__u32 out = IBCHAN_ACCESS_LOCAL_WRITE;

	if (side->plan->op == IBCHAN_OP_WRITE)
		in |= IBCHAN_ACCESS_REMOTE_WRITE;
	if (side->plan->op == IBCHAN_OP_READ)
		out |= IBCHAN_ACCESS_REMOTE_READ;
	if (register_slots(side, side->in, in, &side->in_mr))
		return -1;
	return register_slots(side, side->out, out, &side->out_mr);
}

static int prepare_channel(struct side *side, const struct local *local)
{
	__u32 depth = side->plan->depth + EXTRA_WRS;
	struct ibchan_builder builder;
	struct ibchan_error error;

	if (ibchan_cq_create(side->device, 2 * depth, 0, &side->cq, &error))
		return complain_error("completion queue", &error);
	ibchan_builder_init(&builder, side->pd, side->cq);
	builder.params.max_send_wr = depth;
	builder.params.max_recv_wr = depth;
	builder.params.max_send_sge = 1;
	builder.params.max_recv_sge = 1;
	builder.params.port = local->ib_port;
	builder.params.mtu = local->mtu;
	builder.params.gid_index = local->gid_index;
	builder.params.ack_timeout = local->ack_timeout;
	if (ibchan_builder_prepare(&builder, &side->prepared, &error))
		return complain_error("channel", &error);
	return 0;
}

int side_open(struct side *side, const struct local *local)
{
	if (open_domain(side, local->device) || alloc_slots(side) ||
	    register_all(side))
		return -1;
	return prepare_channel(side, local);
}

int side_offer(struct side *side, struct ibchan_endpoint *endpoint,
	       struct ibchan_remote_region *region)
{
	const struct ibchan_mr *mr = NULL;
	int err;

	ibchan_prepared_endpoint(side->prepared, endpoint);
	memset(region, 0, sizeof(*region));
	if (side->plan->op == IBCHAN_OP_WRITE)
		mr = side->in_mr;
	if (side->plan->op == IBCHAN_OP_READ)
		mr = side->out_mr;
	err = mr ? ibchan_mr_remote_region(mr, region) : 0;
	if (err)
		return complain("remote region: %s", strerror(-err));
	return 0;
}

int side_connect(struct side *side, const struct ibchan_endpoint *peer)
{
	struct ibchan_error error;

	if (side->talk->by_address) {
		if (talk_connect(side->talk, side->prepared, &side->channel))
			return -1;
	} else if (ibchan_prepared_handshake(side->prepared, peer,
					     &side->channel, &error)) {
		return complain_error("handshake", &error);
	}
	side->prepared = NULL;
	return 0;
}

/* Takes a side that was opened in part, too. */
void side_close(struct side *side)
{
	ibchan_channel_close(side->channel);
	ibchan_prepared_destroy(side->prepared);
	ibchan_cq_destroy(side->cq);
	ibchan_mr_dereg(side->out_mr);
	ibchan_mr_dereg(side->in_mr);
	ibchan_pd_free(side->pd);
	ibchan_device_close(side->device);
	ibchan_context_close(side->context);
	free(side->out);
	free(side->in);
}
