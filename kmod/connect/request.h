/* SPDX-License-Identifier: GPL-2.0-only */
/* The part of request.c (peers that ask) that listen.c (listeners) calls. */
#ifndef IBCHAN_REQUEST_H
#define IBCHAN_REQUEST_H

#include "cm.h"
#include "only.h"

/**
 * struct ibchan_request_queue - requests that wait in a listener
 * @requests: the oldest first
 * @waiting: how many; read as it comes
 *
 * Under a lock of all queues.
 */
struct ibchan_request_queue {
	__connect_only struct list_head requests;
	__connect_only u32 waiting;
};

/**
 * struct ibchan_request - a peer that asks
 * @id: the code that destroys it takes it out with xchg(); NULL then
 * @dev: that it came over; holds a reference
 * @error: errno, positive, of the peer's giving up; 0: it waits
 * @reject_room: bytes that a rejection carries
 * @responder_resources: reads and atomics that the peer wants to have in flight
 * @initiator_depth: reads and atomics that the peer serves at a time
 * @mtu: bytes that the peer's packets may have; 0 on iWARP
 * @remote: of the peer
 * @queue: it waits there, and leaves when its peer gives up; NULL: it was taken
 * @link: in @queue
 * @cost: of kernel memory, charged to its listener
 * @attr: for its owner
 */
struct ibchan_request {
	__connect_only struct rdma_cm_id *id;
	__connect_only struct ibchan_device *dev;
	__connect_only int error;
	__connect_only u32 reject_room;
	__connect_only u8 responder_resources;
	__connect_only u8 initiator_depth;
	__connect_only u32 mtu;
	__connect_only struct ibchan_cm_peer remote;
	__connect_only struct ibchan_request_queue *queue;
	__connect_only struct list_head link;
	__connect_only struct ibchan_cost cost;
	__connect_only struct ibchan_request_attr attr;
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
