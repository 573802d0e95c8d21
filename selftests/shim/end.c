// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../lib/thread.h"
#include "../lib/world.h"
#include "end.h"

__s64 patience_ns(void)
{
	return patience_ms() * MS;
}

static int by_name(const void *a, const void *b)
{
	const struct ibchan_device_attr *left = a, *right = b;

	return strcmp(left->name, right->name);
}

int device_name(struct ibchan_context *context, int index, char *name)
{
	struct ibchan_device_attr infos[8];
	int n = ibchan_device_list(context, infos, 8, NULL);

	if (n < 1)
		return n ? n : -ENODEV;
	n = n > 8 ? 8 : n;
	/* The kernel's order is that of their coming, and tests make them come again. */
	qsort(infos, (size_t)n, sizeof(infos[0]), by_name);
	strcpy(name, infos[index < n ? index : n - 1].name);
	return 0;
}

int end_objects(struct end *end, struct ibchan_context *context, int index)
{
	char name[IBCHAN_NAME_SIZE];
	int rc = device_name(context, index, name);

	rc = rc ?: ibchan_device_open(context, name, &end->device, NULL);
	rc = rc ?: ibchan_pd_alloc(end->device, &end->pd, NULL);
	if (rc)
		return rc;
	end->memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (end->memory == MAP_FAILED)
		return -errno;
	return ibchan_mr_reg_shared(end->pd, end->memory, MEMORY, &end->mr, NULL);
}

/* @cq, or one of its own if that is NULL. */
static int begin_on(struct end *end, struct ibchan_context *context, int index,
		    struct ibchan_cq *cq, struct ibchan_builder *builder)
{
	int rc = end_objects(end, context, index);

	if (!rc && !cq)
		rc = ibchan_cq_create(end->device, 0, 0, &end->own_cq, NULL);
	if (rc)
		return rc;
	end->cq = cq ? cq : end->own_cq;
	ibchan_builder_init(builder, end->pd, end->cq);
	builder->params.rnr_retries = 7;
	/* About a second, for an emulated CPU that is busy with checking itself. */
	builder->params.ack_timeout = 18;
	return 0;
}

int end_begin(struct end *end, struct ibchan_context *context, int index,
	      struct ibchan_builder *builder)
{
	return begin_on(end, context, index, NULL, builder);
}

int end_open(struct end *end, struct ibchan_context *context, int index, struct ibchan_cq *cq)
{
	struct ibchan_builder builder;
	int rc = begin_on(end, context, index, cq, &builder);

	return rc ?: ibchan_builder_prepare(&builder, &end->prepared, NULL);
}

int end_connect(struct end *end, const struct ibchan_endpoint *peer)
{
	int rc = ibchan_prepared_handshake(end->prepared, peer, &end->channel, NULL);

	if (!rc)
		end->prepared = NULL;
	return rc;
}

int end_loop(struct end *end)
{
	struct ibchan_endpoint own;

	ibchan_prepared_endpoint(end->prepared, &own);
	return end_connect(end, &own);
}

void end_close(struct end *end)
{
	ibchan_channel_close(end->channel);
	ibchan_prepared_destroy(end->prepared);
	ibchan_cq_destroy(end->own_cq);
	ibchan_mr_dereg(end->mr);
	ibchan_pd_free(end->pd);
	ibchan_device_close(end->device);
	if (end->memory)
		munmap(end->memory, MEMORY);
	memset(end, 0, sizeof(*end));
}

int connect_ends(struct end *a, struct end *b)
{
	struct ibchan_endpoint of_a, of_b;

	ibchan_prepared_endpoint(a->prepared, &of_a);
	ibchan_prepared_endpoint(b->prepared, &of_b);
	return end_connect(a, &of_b) ?: end_connect(b, &of_a);
}

int open_ends(struct end *a, struct end *b, struct ibchan_context **context)
{
	int rc = ibchan_context_open(context, NULL);

	rc = rc ?: end_open(a, *context, 0, NULL);
	rc = rc ?: end_open(b, *context, 1, NULL);
	return rc ?: connect_ends(a, b);
}

int close_ends(struct end *a, struct end *b, struct ibchan_context *context)
{
	end_close(b);
	end_close(a);
	return ibchan_context_close(context);
}

struct ibchan_submit_sge sge_at(const struct end *end, size_t offset, size_t length)
{
	return ibchan_sge_unchecked(end->mr, offset, length);
}

struct ibchan_submit_wr wr_of(const struct end *end, __u8 opcode,
			      const struct ibchan_submit_sge *sge)
{
	struct ibchan_submit_wr wr = {
		.channel = end->channel ? ibchan_channel_handle(end->channel) : 0,
		.opcode = opcode,
	};

	if (sge)
		wr_elements(&wr, sge, 1);
	return wr;
}

void wr_elements(struct ibchan_submit_wr *wr, const struct ibchan_submit_sge *sges, __u16 num)
{
	wr->num_sge = num;
	memset(&wr->sge, 0, sizeof(wr->sge));
	wr->sges = 0;
	if (num == 1)
		wr->sge = *sges;
	else if (num)
		wr->sges = (uintptr_t)sges;
}

void wr_at(struct ibchan_submit_wr *wr, const struct ibchan_remote_region *remote)
{
	wr->remote_addr = remote->addr;
	wr->rkey = remote->rkey;
	wr->remote_length = remote->length;
}

int post_receive(struct ibchan_context *context, const struct end *end,
		 const struct ibchan_submit_sge *sge, __u64 wr_id)
{
	struct ibchan_submit_wr wr = wr_of(end, IBCHAN_OP_RECV, sge);

	wr.wr_id = wr_id;
	return ibchan_post(context, &wr, 1, NULL, NULL);
}

int wait_one(struct ibchan_cq *cq, struct ibchan_cqe *completion)
{
	return ibchan_cq_wait(cq, completion, 1, 1, patience_ns());
}

void *receive_thread(void *arg)
{
	struct blocking *call = arg;

	call->rc = ibchan_receive(call->end->channel, &call->sge, 1,
				  IBCHAN_TIMEOUT_NEVER, &call->completion,
				  &call->error);
	return NULL;
}

void *send_numbers(void *arg)
{
	struct end *end = arg;
	struct ibchan_submit_sge sge = sge_at(end, 0, sizeof(__u64));
	__u64 i;
	int rc = 0;

	for (i = 0; i < NUMBERS && !rc; i++) {
		memcpy(end->memory, &i, sizeof(i));
		rc = ibchan_send(end->channel, &sge, 1, IBCHAN_TIMEOUT_NEVER, NULL);
	}
	return (void *)(intptr_t)rc;
}

void *send_late(void *arg)
{
	struct late_send *late = arg;

	late->rc = -ETIMEDOUT;
	if (eventually(is_asleep, &late->waiter))
		late->rc = ibchan_send(late->from->channel, &late->sge, 1,
				       IBCHAN_TIMEOUT_NEVER, NULL);
	return NULL;
}

int has(const char *text, const char *word)
{
	return !!strstr(text, word);
}
