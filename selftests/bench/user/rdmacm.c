// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connecting by librdmacm: what rdma_create_ep() to rdma_destroy_ep() do for either end,
 * by the calls that do not wait, because one thread is both ends. It is the cheapest
 * way: one channel brings all events, where rdma_create_ep() would make one for each id,
 * and nobody calls rdma_disconnect() and awaits that, because destroying the id tells
 * the peer as well. Each queue pair has the two cqs that rdma_create_qp() makes.
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "connect.h"

#define MS_OF_A_STAGE	5000

static struct {
	struct rdma_event_channel *events;
	struct rdma_cm_id *listener;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	unsigned char *memory;
	char port[8];
	struct rdma_cm_id *asking[MOST];
	struct rdma_cm_id *asked[MOST];
} cma;

/* How many have asked, and how many ends are connected. */
struct progress {
	const struct job *job;
	unsigned int asked;
	unsigned int established;
};

static int failed(int rc)
{
	return rc ? -errno : 0;
}

static int resolve(const char *host, const char *port, int flags,
		   struct rdma_addrinfo **info)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP };

	return failed(rdma_getaddrinfo(host, port, &hints, info));
}

static int listen_at(const char *host)
{
	struct rdma_addrinfo *info;
	int rc = resolve(host, "0", RAI_PASSIVE, &info);

	if (rc)
		return rc;
	rc = failed(rdma_create_id(cma.events, &cma.listener, NULL, RDMA_PS_TCP));
	rc = rc ?: failed(rdma_bind_addr(cma.listener, info->ai_src_addr));
	rdma_freeaddrinfo(info);
	rc = rc ?: failed(rdma_listen(cma.listener, 2 * MOST));
	if (rc)
		return rc;
	snprintf(cma.port, sizeof(cma.port), "%u",
		 be16toh(rdma_get_src_port(cma.listener)));
	return 0;
}

static int make_objects(struct ibv_context *verbs)
{
	cma.pd = ibv_alloc_pd(verbs);
	cma.cq = cma.pd ? ibv_create_cq(verbs, 8 * DEPTH, NULL, NULL, 0) : NULL;
	cma.memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	if (!cma.cq || cma.memory == MAP_FAILED)
		return -errno;
	cma.mr = ibv_reg_mr(cma.pd, cma.memory, MEMORY, IBV_ACCESS_LOCAL_WRITE);
	return failed(!cma.mr);
}

static int rdmacm_open(const char *host)
{
	int rc;

	cma.events = rdma_create_event_channel();
	rc = failed(!cma.events);
	rc = rc ?: listen_at(host);
	return rc ?: make_objects(cma.listener->verbs);
}

static int rdmacm_close(void)
{
	int rc = failed(ibv_dereg_mr(cma.mr));

	munmap(cma.memory, MEMORY);
	rc = rc ?: failed(ibv_destroy_cq(cma.cq));
	rc = rc ?: failed(ibv_dealloc_pd(cma.pd));
	rc = rc ?: failed(rdma_destroy_id(cma.listener));
	rdma_destroy_event_channel(cma.events);
	return rc;
}

static int make_qp(const struct job *job, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = job->shared_cq ? cma.cq : NULL,
		.recv_cq = job->shared_cq ? cma.cq : NULL,
		.cap = {
			.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = ELEMENTS,
			.max_recv_sge = ELEMENTS,
		},
		.qp_type = IBV_QPT_RC,
	};

	return failed(rdma_create_qp(id, cma.pd, &attr));
}

static struct rdma_conn_param conn_param(void)
{
	return (struct rdma_conn_param) {
		.responder_resources = 16,
		.initiator_depth = 16,
		.flow_control = 1,
		.retry_count = 6,
		.rnr_retry_count = 6,
	};
}

static int ask(const struct job *job, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = conn_param();
	int rc = make_qp(job, id);

	return rc ?: failed(rdma_connect(id, &param));
}

static int answer(struct progress *progress, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = conn_param();
	int rc;

	if (progress->asked == progress->job->number)
		return -EPROTO;
	cma.asked[progress->asked++] = id;
	rc = make_qp(progress->job, id);
	return rc ?: failed(rdma_accept(id, &param));
}

static int go_on(struct progress *progress, const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		return failed(rdma_resolve_route(event->id, MS_OF_A_STAGE));
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return ask(progress->job, event->id);
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return answer(progress, event->id);
	case RDMA_CM_EVENT_ESTABLISHED:
		progress->established++;
		return 0;
	default:
		return -EPROTO;
	}
}

static int take_event(struct progress *progress)
{
	struct rdma_cm_event *event;
	int rc = failed(rdma_get_cm_event(cma.events, &event));

	if (rc)
		return rc;
	rc = go_on(progress, event);
	return rc ?: failed(rdma_ack_cm_event(event));
}

static int begin(const struct job *job, struct rdma_cm_id **id)
{
	struct rdma_addrinfo *info;
	int rc = resolve(job->host, cma.port, 0, &info);

	if (rc)
		return rc;
	rc = failed(rdma_create_id(cma.events, id, NULL, RDMA_PS_TCP));
	rc = rc ?: failed(rdma_resolve_addr(*id, info->ai_src_addr, info->ai_dst_addr,
					    MS_OF_A_STAGE));
	rdma_freeaddrinfo(info);
	return rc;
}

static int receive(struct rdma_cm_id *id, unsigned int end)
{
	return failed(rdma_post_recv(id, NULL, cma.memory + place_of(end), MESSAGE, cma.mr));
}

/* What one end sends is there when the send is done. */
static int cross(struct rdma_cm_id *from, unsigned int seed)
{
	struct ibv_wc wc = { .opcode = IBV_WC_RECV };
	int n = 0;
	int rc;

	fill(cma.memory, seed);
	rc = failed(rdma_post_send(from, NULL, cma.memory, MESSAGE, cma.mr,
				   IBV_SEND_SIGNALED));
	if (rc)
		return rc;
	while (n >= 0 && (n != 1 || wc.opcode != IBV_WC_SEND))
		n = ibv_poll_cq(from->qp->send_cq, 1, &wc);
	if (n != 1 || wc.status != IBV_WC_SUCCESS)
		return -EIO;
	return has_arrived(cma.memory, seed) ? 0 : -EBADMSG;
}

/* Ends that were made in any order hear one message each. */
static int verify(const struct job *job)
{
	struct ibv_wc wc;
	unsigned int i;
	int rc = 0;

	memset(cma.memory, 0, MEMORY);
	for (i = 0; !rc && i < job->number; i++)
		rc = receive(cma.asking[i], 2 * i) ?: receive(cma.asked[i], 2 * i + 1);
	for (i = 0; !rc && i < job->number; i++)
		rc = cross(cma.asking[i], 2 * i) ?: cross(cma.asked[i], 2 * i + 1);
	while (!rc && job->shared_cq && ibv_poll_cq(cma.cq, 1, &wc) == 1)
		rc = wc.status ? -EIO : 0;
	return rc;
}

/* All that rdma_destroy_ep() does; the peer hears of it. */
static int destroy(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	return failed(rdma_destroy_id(id));
}

static int rdmacm_run(const struct job *job)
{
	struct progress progress = { .job = job };
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < job->number; i++)
		rc = begin(job, &cma.asking[i]);
	while (!rc && progress.established < 2 * job->number)
		rc = take_event(&progress);
	if (!rc && job->verify)
		rc = verify(job);
	for (i = 0; !rc && i < job->number; i++)
		rc = destroy(cma.asking[i]) ?: destroy(cma.asked[i]);
	return rc;
}

const struct way rdmacm_way = { rdmacm_open, rdmacm_run, rdmacm_close };
