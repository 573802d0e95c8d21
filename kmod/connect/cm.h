/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by cm*.c (connections), listen.c (listeners) and request.c (requests). */
#ifndef IBCHAN_CM_H
#define IBCHAN_CM_H

#include <rdma/ibchan_connect.h>
#include <rdma/rdma_cm.h>

#include "only.h"
#include "parts.h"

/* The other side, as far as it has told. */
struct ibchan_cm_peer {
	__connect_only u32 qpn;	/* number of its queue pair */
	/* what it says to an ibchan; all zero if it is none, or does not know that this side is */
	__connect_only struct ibchan_wire wire;
};

/* An attempt to connect has failed, and the work for the next one is on its way. */
enum ibchan_cm_failed { CM_NOT_FAILED, CM_TRIES_NEXT, CM_ASKS_AGAIN };

/* How an attempt to connect has ended */
struct ibchan_cm_failure {
	__connect_only u32 stage;	/* enum ibchan_stage */
	__connect_only int cm_error;	/* see struct ibchan_connection */
	__connect_only int error;	/* why, a negative errno */
};

/*
 * The connection of a channel that was connected by address.
 *
 * The handler of @id writes, others read without a lock. @data is under the qp lock, but for the
 * thread that sends the request: nobody reads it before the peer has answered.
 */
struct ibchan_cm {
	/* the caller that destroys it takes it out with xchg(); NULL then */
	struct rdma_cm_id *id;
	__connect_only struct ibchan_channel *ch;	/* the channel, which owns this */
	__connect_only u32 stage;	/* enum ibchan_stage */
	__connect_only int cm_error;	/* see struct ibchan_connection */
	/* it has failed or ended, and no word of the peer is waited for */
	__connect_only bool over;
	/* thread that asks over iWARP, see cm.c */
	__connect_only struct task_struct *asker;
	/* in the list of the connections that ask over iWARP, or wait for their turn */
	__connect_only struct list_head ask_link;
	__connect_only kuid_t uid;	/* of the user that the connection counts for */
	/* breaks the channel when a stage takes too long */
	__connect_only struct delayed_work deadline;
	__connect_only ktime_t stage_end;	/* when that is */
	__connect_only u32 stage_ms[IBCHAN_STAGE_DONE];	/* how long each stage may take */
	__connect_only u32 length;	/* bytes of @data */
	/* for the peer, until @heard; from the peer then */
	__connect_only u8 data[IBCHAN_PRIVATE_DATA_SIZE];
	__connect_only bool heard;	/* the peer has said something; under the qp lock */
	__connect_only struct ibchan_cm_peer remote;	/* of the peer */
	__connect_only struct sockaddr_storage local;	/* this side, as far as known */
	__connect_only struct sockaddr_storage peer;	/* the other side */
	/* no header is sent, and none is looked for in what comes */
	__connect_only bool plain;
	struct work_struct heard_work;	/* tells the connection manager that the peer was heard */
	/* goes on with the next of @peers, or asks the same one again */
	__connect_only struct delayed_work again;
	/* how often in a row that peer took this side for one that it knew before */
	__connect_only u32 stale;
	__connect_only ktime_t ask_end;	/* when it has had its time */
	/* enum ibchan_cm_failed: how @again goes on; set by the code that queues it */
	__connect_only u32 failed;
	/* of the attempts before this one */
	__connect_only struct ibchan_cm_failure furthest;
	/* where from; no family: as the route says */
	__connect_only struct sockaddr_storage source;
	/* the one of @peers that is tried; the last one once a peer has answered */
	__connect_only u32 at;
	__connect_only u32 num_others;	/* how many there are besides the first */
	__connect_only struct sockaddr_storage peers[];	/* addresses to ask at */
};

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

/* Private data that InfiniBand and RoCE carry with each message, in bytes. */
#define IBCHAN_REQUEST_DATA	56	/* rdma_cm takes the rest of the 92 */
#define IBCHAN_REJECT_DATA	148

/* Calls of the connection manager, for IBCHAN_REASON_CM. */
enum ibchan_cm_step { CM_STEP_ID, CM_STEP_BIND, CM_STEP_LISTEN };

static inline int ibchan_refuse_cm(struct ibchan_reason *reason, enum ibchan_cm_step step,
				   int error)
{
	return ibchan_refuse_values(reason, IBCHAN_REASON_CM, error, (u64[3]) { -error, step });
}

/* cm_connect.c */
int ibchan_check_address(const struct sockaddr *address, struct ibchan_reason *reason);
int ibchan_check_data(const struct ibchan_channel *ch, const struct ibchan_connect *connect,
		      u32 max, struct ibchan_reason *reason);

/* cm.c */
void ibchan_cm_fill_message(struct ibchan_cm *cm, u16 kind, struct rdma_conn_param *param);
void ibchan_cm_bound_reads(struct ibchan_channel *ch);
void ibchan_cm_adopt_gid(struct ibchan_channel *ch, const struct rdma_cm_id *id);
int ibchan_cm_event(struct rdma_cm_id *id, struct rdma_cm_event *event);
void ibchan_cm_interrupt(struct ibchan_channel *ch);

/* cm_attempt.c */
struct ibchan_cm *ibchan_cm_create(struct ibchan_channel *ch, const struct ibchan_connect *connect,
				   struct ibchan_reason *reason);
int ibchan_cm_begin(struct ibchan_cm *cm, u32 stage, struct ibchan_reason *reason);
int ibchan_cm_fail(struct ibchan_cm *cm, int cm_error, int error);
void ibchan_cm_enter_stage(struct ibchan_cm *cm, u32 stage);
bool ibchan_cm_goes_on(struct ibchan_cm *cm, int cm_error, int error);
bool ibchan_cm_asks_again(struct ibchan_cm *cm);
struct rdma_cm_id *ibchan_cm_new_id(struct ibchan_cm *cm);
void ibchan_cm_resolve(struct ibchan_cm *cm, struct rdma_cm_id *id);

/* watch.c */
void ibchan_watch_begin(struct ibchan_channel *ch, const struct ibchan_endpoint *peer);
void ibchan_watch_doubt(struct ibchan_channel *ch);

/* cm_data.c */
u32 ibchan_cm_data_room(bool plain);
void ibchan_cm_data_fill(struct ibchan_cm *cm, const void *data, u32 length);
void ibchan_cm_data_head(struct ibchan_cm *cm, u16 kind);
void ibchan_cm_data_wire(const struct rdma_conn_param *param, u16 kind, struct ibchan_wire *wire);
u32 ibchan_cm_wire_mtu(const struct ibchan_wire *wire);
u32 ibchan_cm_data_take(const struct rdma_conn_param *param, const struct ibchan_wire *wire,
			u8 *data);
int ibchan_cm_data_check(const struct ibchan_wire *wire, bool foreign,
			 struct ibchan_reason *reason);
void ibchan_cm_reject(struct rdma_cm_id *id, const struct ibchan_wire *wire, u8 code,
		      const void *data, u32 length);
void ibchan_cm_data_rejected(struct ibchan_cm *cm, const struct rdma_conn_param *param);
bool ibchan_cm_data_none(const struct rdma_conn_param *param);

/* request.c */
int ibchan_request_arrive(struct rdma_cm_id *id, const struct rdma_conn_param *param,
			  const struct ibchan_device *only, const struct ibchan_payer *payer,
			  struct ibchan_request_queue *queue);
void ibchan_request_free(struct ibchan_request *request);
struct ibchan_request *ibchan_request_pop(struct ibchan_request_queue *queue);

static inline bool is_connecting(const struct ibchan_channel *ch)
{
	return READ_ONCE(ch->state) == IBCHAN_CHANNEL_CONNECTING;
}

/* A step of connecting has returned @ret. Returns 0. */
static inline int ibchan_cm_stepped(struct ibchan_cm *cm, int ret)
{
	return ret ? ibchan_cm_fail(cm, ret, ret) : 0;
}

/* The caller that gets the id destroys it. */
static inline struct rdma_cm_id *ibchan_cm_take_id(struct rdma_cm_id **id)
{
	return xchg(id, NULL);
}

/*
 * The same for a channel's connection, for its owner: nothing of ours uses the id any more. Only
 * an accepting side's id is used by heard_work, and no handler gives that up.
 */
static inline struct rdma_cm_id *ibchan_cm_end_id(struct ibchan_cm *cm)
{
	struct rdma_cm_id *id = ibchan_cm_take_id(&cm->id);

	if (id)
		cancel_work_sync(&cm->heard_work);
	return id;
}

#endif /* IBCHAN_CM_H */
