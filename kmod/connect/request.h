/* SPDX-License-Identifier: GPL-2.0-only */
/* The part of request.c (peers that ask) that listen.c (listeners) calls. */
#ifndef IBCHAN_REQUEST_H
#define IBCHAN_REQUEST_H

#include "cm.h"
#include "only.h"

/*
 * Requests that wait in a listener.
 *
 * Under a lock of all queues.
 */
struct ibchan_request_queue {
	__connect_only struct list_head requests;	/* the oldest first */
	__connect_only u32 waiting;	/* how many; read as it comes */
};

/* A peer that asks */
struct ibchan_request {
	/* the code that destroys it takes it out with xchg(); NULL then */
	__connect_only struct rdma_cm_id *id;
	__connect_only struct ibchan_device *dev;	/* that it came over; holds a reference */
	__connect_only int error;	/* errno, positive, of the peer's giving up; 0: it waits */
	__connect_only u32 reject_room;	/* bytes that a rejection carries */
	/* reads and atomics that the peer wants to have in flight */
	__connect_only u8 responder_resources;
	/* reads and atomics that the peer serves at a time */
	__connect_only u8 initiator_depth;
	__connect_only u32 mtu;	/* what the peer's packets may have, in bytes; 0 on iWARP */
	__connect_only struct ibchan_cm_peer remote;	/* of the peer */
	/* it waits there, and leaves when its peer gives up; NULL: it was taken */
	__connect_only struct ibchan_request_queue *queue;
	__connect_only struct list_head link;	/* in @queue */
	__connect_only struct ibchan_cost cost;	/* of kernel memory, charged to its listener */
	__connect_only struct ibchan_request_attr attr;	/* for its owner */
};

struct ibchan_request *ibchan_request_create(struct rdma_cm_id *id,
					     const struct rdma_conn_param *param,
					     const struct ibchan_device *only,
					     const struct ibchan_payer *payer);
void ibchan_request_free(struct ibchan_request *request);
void ibchan_request_queue_init(struct ibchan_request_queue *queue);
void ibchan_request_wait(struct ibchan_request *request, struct ibchan_request_queue *queue);
struct ibchan_request *ibchan_request_pop(struct ibchan_request_queue *queue);

#endif /* IBCHAN_REQUEST_H */
