// SPDX-License-Identifier: GPL-2.0-only
/* An id of the connection manager that asks a listener: see asker.h. */
#include <net/net_namespace.h>

#include "asker.h"

/* Of a queue pair that is not there, and that no other connection has. */
static u32 fresh_qpn(void)
{
	static u32 last = 0x700000;

	return ++last;
}

static int ask(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = {
		.responder_resources = 1, .initiator_depth = 1,
		.retry_count = 7, .rnr_retry_count = 7, .qp_num = fresh_qpn(),
	};

	return rdma_connect_locked(id, &param);
}

static void note(struct asker *asker, int *what)
{
	WRITE_ONCE(*what, 1);
	wake_up(&asker->w->wait);
}

static int asker_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct asker *asker = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		expect_eq(asker->w, rdma_resolve_route(id, patience), 0);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		expect_eq(asker->w, ask(id), 0);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		note(asker, &asker->answered);
		break;
	case RDMA_CM_EVENT_REJECTED:
		note(asker, &asker->rejected);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		note(asker, &asker->ended);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		note(asker, &asker->device_left);
		return xchg(&asker->id, NULL) ? 1 : 0;
	default:
		break;
	}
	return 0;
}

static int begin(struct asker *asker, struct meeting *m)
{
	struct rdma_cm_id *id;

	asker->w = m->w;
	id = rdma_create_id(&init_net, asker_event, asker, RDMA_PS_TCP, IB_QPT_RC);
	if (!expect_eq(m->w, PTR_ERR_OR_ZERO(id), 0))
		return PTR_ERR(id);
	asker->id = id;
	return rdma_resolve_addr(id, NULL, (struct sockaddr *)&m->address, patience);
}

void asker_end(struct asker *asker)
{
	struct rdma_cm_id *id = xchg(&asker->id, NULL);

	if (id)
		rdma_destroy_id(id);
}

/* The peer hears of the answer, and says so. */
int asker_hears(struct asker *asker)
{
	int ret;

	rdma_lock_handler(asker->id);
	ret = rdma_accept(asker->id, NULL);
	rdma_unlock_handler(asker->id);
	return ret;
}

/* Asks @m's listener, which accepts with a channel of its own, and closes that. */
int asker_is_left(struct asker *asker, struct meeting *m, u32 connect_ms)
{
	const struct ibchan_connect connect = {
		.connect_ms = connect_ms, .flags = IBCHAN_CONNECT_FOREIGN,
	};
	struct ibchan_request *request;
	struct ibchan_params params;
	struct party party = {};
	struct ibchan_channel *ch;

	if (!expect_eq(m->w, begin(asker, m), 0))
		return -ENODEV;
	request = meeting_take(m);
	if (!request)
		return -ENODEV;
	ibchan_params_init(&params);
	ch = party_build(&party, &m->w->side[1], &params);
	if (!ch)
		return -ENOMEM;
	if (expect_eq(m->w, ibchan_request_accept(request, ch, &connect, NULL), 0)) {
		world_forget(m->w, THING_REQUEST, request);
		expect_soon(m->w, READ_ONCE(asker->answered));
	}
	world_forget(m->w, THING_CHANNEL, ch);
	ibchan_channel_close(ch);
	return expect_eq(m->w, atomic_read(&party.told), 0) ? 0 : -EINVAL;
}
