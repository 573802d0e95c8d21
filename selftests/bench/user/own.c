// SPDX-License-Identifier: GPL-2.0-only
/* Connecting by libibchan. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <ibchan.h>

#include "connect.h"

struct pair {
	struct ibchan_channel *asking;
	struct ibchan_channel *asked;
};

static struct {
	struct ibchan_context *context;
	struct ibchan_device *device;
	struct ibchan_pd *pd;
	struct ibchan_cq *cq;
	struct ibchan_mr *mr;
	struct ibchan_listener *listener;
	unsigned char *memory;
	char port[8];
	struct pair pairs[MOST];
} own;

static int open_listener(const char *host)
{
	struct ibchan_listen_params params = { .size = sizeof(params), .host = host };
	struct sockaddr_storage address;
	int rc = ibchan_listener_create(own.context, &params, &own.listener, NULL);

	if (rc)
		return rc;
	ibchan_listener_address(own.listener, &address);
	/* At the same place for both families. */
	snprintf(own.port, sizeof(own.port), "%u",
		 ntohs(((struct sockaddr_in *)&address)->sin_port));
	return 0;
}

static int own_open(const char *host)
{
	int rc = ibchan_context_open(&own.context, NULL);

	rc = rc ?: ibchan_device_open_for(own.context, host, NULL, &own.device, NULL);
	rc = rc ?: ibchan_pd_alloc(own.device, &own.pd, NULL);
	rc = rc ?: ibchan_cq_create(own.device, 8 * DEPTH, 0, &own.cq, NULL);
	if (rc)
		return rc;
	own.memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	if (own.memory == MAP_FAILED)
		return -errno;
	rc = ibchan_mr_reg_shared(own.pd, own.memory, MEMORY, &own.mr, NULL);
	return rc ?: open_listener(host);
}

static int own_close(void)
{
	int rc = ibchan_context_close(own.context);

	munmap(own.memory, MEMORY);
	return rc;
}

static int prepare(const struct job *job, struct ibchan_prepared **prepared)
{
	struct ibchan_builder builder;

	ibchan_builder_init(&builder, own.pd, job->shared_cq ? own.cq : NULL);
	builder.params.max_send_wr = DEPTH;
	builder.params.max_recv_wr = DEPTH;
	builder.params.max_send_sge = ELEMENTS;
	builder.params.max_recv_sge = ELEMENTS;
	return ibchan_builder_prepare(&builder, prepared, NULL);
}

static int begin(const struct job *job, struct pair *pair)
{
	struct ibchan_prepared *prepared;
	int rc = prepare(job, &prepared);

	return rc ?: ibchan_prepared_connect(prepared, job->host, own.port, NULL,
					     &pair->asking, NULL);
}

static int serve(const struct job *job, struct pair *pair)
{
	struct ibchan_prepared *prepared;
	struct ibchan_request *request;
	int rc = ibchan_request_take(own.listener, IBCHAN_TIMEOUT_NEVER, &request, NULL);

	rc = rc ?: prepare(job, &prepared);
	return rc ?: ibchan_request_accept(request, prepared, NULL, &pair->asked, NULL);
}

static int await_both(const struct pair *pair)
{
	int rc = ibchan_channel_connect_wait(pair->asking, IBCHAN_TIMEOUT_NEVER, NULL);

	return rc ?: ibchan_channel_connect_wait(pair->asked, IBCHAN_TIMEOUT_NEVER, NULL);
}

/* What one end sends is there when the send is done. */
static int cross(struct ibchan_channel *from, unsigned int seed)
{
	struct ibchan_submit_sge source = ibchan_sge_unchecked(own.mr, 0, MESSAGE);
	int rc;

	fill(own.memory, seed);
	rc = ibchan_send(from, &source, 1, IBCHAN_TIMEOUT_NEVER, NULL);
	return rc ?: has_arrived(own.memory, seed) ? 0 : -EBADMSG;
}

static int receive(struct ibchan_channel *channel, unsigned int end)
{
	return ibchan_post_receive(channel, own.mr, place_of(end), MESSAGE, 0, NULL);
}

/* Ends that were made in any order hear one message each. */
static int verify(const struct job *job)
{
	struct ibchan_cqe completion;
	unsigned int i;
	int rc = 0;

	memset(own.memory, 0, MEMORY);
	for (i = 0; !rc && i < job->number; i++)
		rc = receive(own.pairs[i].asking, 2 * i) ?:
		     receive(own.pairs[i].asked, 2 * i + 1);
	for (i = 0; !rc && i < job->number; i++)
		rc = cross(own.pairs[i].asking, 2 * i) ?:
		     cross(own.pairs[i].asked, 2 * i + 1);
	while (!rc && job->shared_cq && ibchan_cq_poll(own.cq, &completion, 1) == 1)
		rc = completion.error;
	return rc;
}

static int own_run(const struct job *job)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < job->number; i++)
		rc = begin(job, &own.pairs[i]);
	for (i = 0; !rc && i < job->number; i++)
		rc = serve(job, &own.pairs[i]);
	for (i = 0; !rc && i < job->number; i++)
		rc = await_both(&own.pairs[i]);
	if (!rc && job->verify)
		rc = verify(job);
	for (i = 0; !rc && i < job->number; i++)
		rc = ibchan_channel_close(own.pairs[i].asking) ?:
		     ibchan_channel_close(own.pairs[i].asked);
	return rc;
}

const struct way own_way = { own_open, own_run, own_close };
