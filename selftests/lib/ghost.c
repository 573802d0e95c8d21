// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "ghost.h"
#include "world.h"

/* No device gives out so high a number. Each ghost has another, as queue pairs have. */
#define FIRST_QPN	0xff0000
#define QPNS		0x00ffff

/* An id without one is told nothing. */
#define UID		1

#define REJ_CONSUMER_DEFINED	28

/* Of <rdma/ib_user_verbs.h> and <rdma/rdma_cma.h>, which this machine may not have. */
#define QP_TYPE_RC	2
enum {
	ADDR_RESOLVED = 0, ROUTE_RESOLVED = 2, CONNECT_REQUEST = 4, CONNECT_RESPONSE = 5,
	REJECTED = 8, ESTABLISHED = 9, DISCONNECTED = 10
};

/* See kmod/rules/endpoint.c. */
void ghost_speak(struct ghost *ghost, bool answers)
{
	const __u8 header[GHOST_HEADER] = {
		0xc4, answers ? 0x1c : 0x1b, IBCHAN_ENDPOINT_VERSION, GHOST_HEADER,
		[7] = IBCHAN_ENDPOINT_REMOTE_WRITE,
	};

	memcpy(ghost->header, header, sizeof(header));
	ghost->data = ghost->header;
	ghost->length = sizeof(header);
}

static int command(const struct ghost *ghost, __u32 nr, const void *in, __u16 len, __u16 out)
{
	struct {
		struct rdma_ucm_cmd_hdr head;
		unsigned char body[sizeof(struct rdma_ucm_accept)];
	} request = { .head = { .cmd = nr, .in = len, .out = out } };
	ssize_t size = sizeof(request.head) + len;

	memcpy(request.body, in, len);
	return write(ghost->fd, &request, size) == size ? 0 : -errno;
}

static int open_id(struct ghost *ghost)
{
	struct rdma_ucm_create_id_resp made;
	const struct rdma_ucm_create_id create = {
		.uid = UID, .response = (uintptr_t)&made,
		.ps = RDMA_PS_TCP, .qp_type = QP_TYPE_RC,
	};
	int rc;

	ghost->fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
	if (ghost->fd < 0)
		return -errno;
	rc = command(ghost, RDMA_USER_CM_CMD_CREATE_ID, &create, sizeof(create), sizeof(made));
	ghost->id = made.id;
	return rc;
}

/* Waits for one; it is another that comes when something went wrong. */
static int take_event(const struct ghost *ghost, __u32 wanted, struct rdma_ucm_event_resp *event)
{
	const struct rdma_ucm_get_event get = { .response = (uintptr_t)event };
	struct pollfd pollfd = { .fd = ghost->fd, .events = POLLIN };
	int rc;

	if (poll(&pollfd, 1, patience_ms()) != 1)
		return -ETIMEDOUT;
	rc = command(ghost, RDMA_USER_CM_CMD_GET_EVENT, &get, sizeof(get), sizeof(*event));
	return rc || event->event == wanted ? rc : -EPROTO;
}

static int await(const struct ghost *ghost, __u32 wanted)
{
	struct rdma_ucm_event_resp event;

	return take_event(ghost, wanted, &event);
}

static __u32 fresh_qpn(void)
{
	static __u32 used;

	return FIRST_QPN + used++ % QPNS;
}

static struct rdma_ucm_conn_param conn_param(const struct ghost *ghost)
{
	struct rdma_ucm_conn_param param = {
		.qp_num = ghost->qpn ?: fresh_qpn(),
		.responder_resources = 1 + ghost->more_reads,
		.initiator_depth = 1 + ghost->more_started,
		.private_data_len = ghost->length,
		.srq = ghost->srq,
		.flow_control = ghost->flow_control,
		.retry_count = 6,
		.rnr_retry_count = 6,
		.valid = 1,
	};

	if (ghost->length)
		memcpy(param.private_data, ghost->data, ghost->length);
	return param;
}

/* Only IPv4. */
static __u16 fill_address(struct __kernel_sockaddr_storage *to, const struct ibchan_address *from)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = from->port };

	memcpy(&address.sin_addr, from->bytes, sizeof(address.sin_addr));
	memcpy(to, &address, sizeof(address));
	return sizeof(address);
}

static int resolve(const struct ghost *ghost, const struct ibchan_address *peer)
{
	struct rdma_ucm_resolve_addr addr = { .id = ghost->id, .timeout_ms = patience_ms() };
	const struct rdma_ucm_resolve_route route = {
		.id = ghost->id, .timeout_ms = patience_ms(),
	};
	int rc;

	addr.dst_size = fill_address(&addr.dst_addr, peer);
	rc = command(ghost, RDMA_USER_CM_CMD_RESOLVE_ADDR, &addr, sizeof(addr), 0);
	rc = rc ?: await(ghost, ADDR_RESOLVED);
	rc = rc ?: command(ghost, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &route, sizeof(route), 0);
	return rc ?: await(ghost, ROUTE_RESOLVED);
}

int ghost_ask(struct ghost *ghost, const struct ibchan_address *peer)
{
	struct rdma_ucm_connect connect = { .conn_param = conn_param(ghost) };
	int rc = open_id(ghost);

	rc = rc ?: resolve(ghost, peer);
	connect.id = ghost->id;
	return rc ?: command(ghost, RDMA_USER_CM_CMD_CONNECT, &connect, sizeof(connect), 0);
}

bool ghost_is_answered(void *ghost)
{
	struct pollfd pollfd = { .fd = ((struct ghost *)ghost)->fd, .events = POLLIN };

	return poll(&pollfd, 1, 0) == 1;
}

int ghost_connected(struct ghost *ghost)
{
	const struct rdma_ucm_accept accept = { .uid = UID, .id = ghost->id };
	struct rdma_ucm_event_resp event = {};
	int rc = take_event(ghost, CONNECT_RESPONSE, &event);

	ghost->told = event.param.conn;
	return rc ?: command(ghost, RDMA_USER_CM_CMD_ACCEPT, &accept, sizeof(accept), 0);
}

int ghost_rejected(struct ghost *ghost)
{
	struct rdma_ucm_event_resp event = {};
	int rc = take_event(ghost, REJECTED, &event);

	ghost->told = event.param.conn;
	return rc;
}

int ghost_disconnected(struct ghost *ghost)
{
	return await(ghost, DISCONNECTED);
}

int ghost_listen(struct ghost *ghost, const struct ibchan_address *address)
{
	struct rdma_ucm_listen listen = { .backlog = 1 };
	struct rdma_ucm_bind bind = {};
	int rc = open_id(ghost);

	bind.id = ghost->id;
	listen.id = ghost->id;
	bind.addr_size = fill_address(&bind.addr, address);
	rc = rc ?: command(ghost, RDMA_USER_CM_CMD_BIND, &bind, sizeof(bind), 0);
	return rc ?: command(ghost, RDMA_USER_CM_CMD_LISTEN, &listen, sizeof(listen), 0);
}

int ghost_asked(struct ghost *ghost)
{
	struct rdma_ucm_event_resp event = {};
	int rc = take_event(ghost, CONNECT_REQUEST, &event);

	ghost->asker = event.id;
	ghost->asked = event.param.conn;
	return rc;
}

int ghost_yes(struct ghost *ghost)
{
	const struct rdma_ucm_accept accept = {
		.uid = UID, .conn_param = conn_param(ghost), .id = ghost->asker,
	};
	int rc = command(ghost, RDMA_USER_CM_CMD_ACCEPT, &accept, sizeof(accept), 0);

	return rc ?: await(ghost, ESTABLISHED);
}

int ghost_no(struct ghost *ghost)
{
	struct rdma_ucm_reject reject = {
		.id = ghost->asker, .private_data_len = ghost->length,
		.reason = REJ_CONSUMER_DEFINED,
	};

	if (ghost->length)
		memcpy(reject.private_data, ghost->data, ghost->length);
	return command(ghost, RDMA_USER_CM_CMD_REJECT, &reject, sizeof(reject), 0);
}

int ghost_accept(struct ghost *ghost)
{
	int rc = ghost_asked(ghost);

	return rc ?: ghost_yes(ghost);
}

void ghost_close(struct ghost *ghost)
{
	if (ghost->fd > 0)
		close(ghost->fd);
	ghost->fd = 0;
}
