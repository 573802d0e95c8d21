// SPDX-License-Identifier: GPL-2.0-only
/* Operations by libibchan. */
#include <errno.h>

#include "own.h"

#define POLLED	16

struct own own;

void own_builder(struct ibchan_builder *builder, struct ibchan_cq *cq, unsigned int depth)
{
	ibchan_builder_init(builder, own.pd, cq);
	builder->params.access = IBCHAN_ACCESS_ALL;
	builder->params.max_send_wr = depth;
	builder->params.max_recv_wr = depth;
	builder->params.max_rd_atomic = RD_ATOMIC;
	builder->params.max_send_sge = ELEMENTS;
	builder->params.max_recv_sge = ELEMENTS;
}

int own_connect(const struct ibchan_builder *builder, struct ibchan_channel *channel[2])
{
	struct ibchan_prepared *prepared[2];
	struct ibchan_endpoint endpoint[2];
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < 2; i++) {
		rc = ibchan_builder_prepare(builder, &prepared[i], NULL);
		if (!rc)
			ibchan_prepared_endpoint(prepared[i], &endpoint[i]);
	}
	for (i = 0; !rc && i < 2; i++)
		rc = ibchan_prepared_handshake(prepared[i], &endpoint[!i], &channel[i], NULL);
	return rc;
}

static int own_open(unsigned char *memory)
{
	const struct ibchan_mr_params params = {
		.size = sizeof(params),
		.addr = memory, .length = MEMORY, .access = IBCHAN_ACCESS_ALL,
	};
	struct ibchan_builder builder;
	int rc = ibchan_context_open(&own.context, NULL);

	rc = rc ?: ibchan_device_open(own.context, NULL, &own.device, NULL);
	rc = rc ?: ibchan_pd_alloc(own.device, &own.pd, NULL);
	rc = rc ?: ibchan_cq_create(own.device, CQ_ENTRIES(DEPTH), CQ_ROOM(DEPTH), &own.cq, NULL);
	rc = rc ?: ibchan_mr_reg(own.pd, &params, &own.mr, NULL);
	rc = rc ?: ibchan_mr_remote_region(own.mr, &own.remote);
	if (rc)
		return rc;
	own_builder(&builder, own.cq, DEPTH);
	return own_connect(&builder, own.channel);
}

static int own_close(void)
{
	return ibchan_context_close(own.context);
}

static int own_pair_once(void)
{
	struct ibchan_channel *channel[2];
	struct ibchan_builder builder;
	struct ibchan_cq *cq;
	int rc;

	rc = ibchan_cq_create(own.device, CQ_ENTRIES(PAIR_DEPTH), CQ_ROOM(PAIR_DEPTH), &cq, NULL);
	if (rc)
		return rc;
	own_builder(&builder, cq, PAIR_DEPTH);
	builder.params.max_send_sge = PAIR_ELEMENTS;
	builder.params.max_recv_sge = PAIR_ELEMENTS;
	rc = own_connect(&builder, channel);
	rc = rc ?: ibchan_channel_close(channel[0]);
	rc = rc ?: ibchan_channel_close(channel[1]);
	return rc ?: ibchan_cq_destroy(cq);
}

/* A read and an atomic bring the target here; what they name is the source. */
static struct ibchan_submit_wr request(const struct shape *shape, unsigned int i,
				       const struct ibchan_remote_region *remote)
{
	switch (shape->what) {
	case WRITE:
		return ibchan_wr_write(own.channel[0], &own.source[i], 1, remote);
	case SEND:
		return ibchan_wr_send(own.channel[0], &own.source[i], 1);
	case READ:
		return ibchan_wr_read(own.channel[0], &own.target[i], 1, remote);
	default:
		return ibchan_wr_fetch_add(own.channel[0], &own.target[i], remote, 1);
	}
}

static int remote_of(const struct shape *shape, unsigned int i,
		     struct ibchan_remote_region *remote)
{
	bool inward = shape->what == READ || shape->what == ADD;

	return ibchan_remote_region_sub(&own.remote, place_of(shape, i) + (inward ? 0 : AREA),
					shape->size, remote);
}

static void finish(const struct shape *shape, unsigned int i, struct ibchan_submit_wr *wr)
{
	wr->wr_id = i;
	wr->flags = shape->unchecked ? IBCHAN_WR_UNCHECKED : 0;
}

static unsigned int works_of(const struct shape *shape)
{
	return shape->what == SEND ? 2 : 1;
}

static int own_load(const struct shape *shape)
{
	unsigned int i, works = works_of(shape);
	int rc = 0;

	for (i = 0; !rc && i < shape->depth; i++) {
		struct ibchan_submit_wr *wr = &own.wrs[works * i];
		unsigned int at = place_of(shape, i);
		struct ibchan_remote_region remote;

		own.source[i] = ibchan_sge_unchecked(own.mr, at, shape->size);
		own.target[i] = ibchan_sge_unchecked(own.mr, at + AREA, shape->size);
		if (works == 2) {
			*wr = ibchan_wr_receive(own.channel[1], &own.target[i], 1);
			finish(shape, i, wr++);
		}
		rc = remote_of(shape, i, &remote);
		if (!i)
			own.first = remote;
		*wr = request(shape, i, &remote);
		finish(shape, i, wr);
	}
	return rc;
}

int own_reap(struct ibchan_cq *cq, unsigned int left)
{
	struct ibchan_cqe completions[POLLED];
	int i, n;

	while (left) {
		n = ibchan_cq_poll(cq, completions, POLLED);
		if (n < 0)
			return n;
		for (i = 0; i < n; i++)
			if (completions[i].error)
				return completions[i].error;
		left -= n;
		if (!n)
			let_others_run();
	}
	return 0;
}

static int own_run(const struct shape *shape)
{
	unsigned int i, works = works_of(shape);
	int rc = 0;

	if (shape->blocking)
		return ibchan_write(own.channel[0], &own.source[0], 1, &own.first,
				    IBCHAN_TIMEOUT_NEVER, NULL);
	for (i = 0; !rc && i < shape->depth; i += shape->chain)
		rc = ibchan_post(own.context, &own.wrs[works * i], works * shape->chain, NULL,
				 NULL);
	return rc ?: own_reap(own.cq, works * shape->depth);
}

static int own_register_once(void *addr, unsigned long length)
{
	const struct ibchan_mr_params params = {
		.size = sizeof(params),
		.addr = addr, .length = length, .access = IBCHAN_ACCESS_ALL,
	};
	struct ibchan_mr *mr;
	int rc = ibchan_mr_reg(own.pd, &params, &mr, NULL);

	return rc ?: ibchan_mr_dereg(mr);
}

const struct way own_way = {
	own_open, own_load, own_run, own_register_once, own_pair_once, own_close
};
