/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connecting by IP address and port, with the RDMA connection manager.
 *
 * A channel is built as always. Then ibchan_channel_connect() asks a peer, or
 * ibchan_request_accept() answers one whose request came to a listener. Both begin
 * only; connected() or broken() of struct ibchan_build tells how it went, and
 * ibchan_channel_connect_wait() waits for that. Receives can be posted before, so
 * that the peer's first message finds them.
 *
 * A channel that breaks or is closed tells its peer, whose channel then breaks with
 * -ECONNRESET.
 *
 * An iWARP device (without IBCHAN_DEVICE_ENDPOINTS) connects this way only. It has no
 * immediate data, no fenced reads, no atomics, no reads into memory that is not registered
 * and no shared regions of kernel memory, which are all refused with -EOPNOTSUPP; a message
 * that finds no receive ends the connection, and nothing looks after a silent peer but TCP.
 */
#ifndef _RDMA_IBCHAN_CONNECT_H
#define _RDMA_IBCHAN_CONNECT_H

#include <linux/socket.h>
#include <rdma/ibchan.h>

struct ibchan_listener;
struct ibchan_request;

/**
 * struct ibchan_connect - addresses, times and data of a request, or of its answer
 * @peer: where to; not needed to accept a request
 * @source: where from; NULL: as the route says, which is one outside of all VRFs
 * @data: for the peer; one that is no ibchan gets zeros behind them
 * @length: bytes of @data: see IBCHAN_PRIVATE_DATA_SIZE
 * @flags: IBCHAN_CONNECT_FOREIGN where the peer may be no ibchan
 * @address_ms: how long finding the device may take; 0: IBCHAN_DEFAULT_ADDRESS_MS
 * @route_ms: how long finding the way may take; 0: IBCHAN_DEFAULT_ROUTE_MS
 * @connect_ms: how long the peer may take; 0: IBCHAN_DEFAULT_CONNECT_MS, to accept a request
 *	IBCHAN_DEFAULT_ACCEPT_MS
 * @num_others: how many of @others there are
 * @others: more addresses of the peer: see struct ibchan_cmd_channel_connect
 *
 * Copied during the call.
 */
struct ibchan_connect {
	const struct sockaddr *peer;
	const struct sockaddr *source;
	const void *data;
	u32 length;
	u32 flags;
	u32 address_ms;
	u32 route_ms;
	u32 connect_ms;
	u32 num_others;
	const struct sockaddr_storage *others;
};

/**
 * struct ibchan_connection - how a connection by address fares
 * @state: enum ibchan_channel_state
 * @stage: enum ibchan_stage: the last one that was begun; IBCHAN_STAGE_NONE: the
 *	channel was not connected by address
 * @error: of what ended it, a positive errno; 0: it has not ended
 * @cm_error: the connection manager's answer: a positive reject code, or a
 *	negative errno
 * @length: bytes of @data
 * @local: this side
 * @peer: the other side
 * @data: from the peer's answer; on the accepting side from its request
 */
struct ibchan_connection {
	u32 state;
	u32 stage;
	u32 error;
	int cm_error;
	u32 length;
	struct sockaddr_storage local;
	struct sockaddr_storage peer;
	u8 data[IBCHAN_PRIVATE_DATA_SIZE];
};

/**
 * struct ibchan_listener_init - where to listen
 * @net: network namespace
 * @dev: only for requests that come over it; NULL: over any device
 * @address: IP address, or any address of its family; port 0: a free one
 * @backlog: requests that may wait, 1 to IBCHAN_MAX_BACKLOG; 0:
 *	IBCHAN_DEFAULT_BACKLOG
 * @ready: a request waits, or the listener has died because the device of its address,
 *	or @dev, has left, which may be told twice; process context, under locks of the
 *	connection manager or of listeners: it may take the request, and must neither
 *	accept it nor create or close a listener. May be NULL.
 * @priv: for @ready
 * @budget: private; NULL
 */
struct ibchan_listener_init {
	struct net *net;
	struct ibchan_device *dev;
	const struct sockaddr *address;
	u32 backlog;
	void (*ready)(void *priv);
	void *priv;
	struct ibchan_budget *budget;
};

/**
 * struct ibchan_request_attr - a peer that asks
 * @device: name of the device that the request came over
 * @port: of the device
 * @length: bytes of @data
 * @local: the address that was asked for
 * @peer: the address of the peer that asks
 * @data: its private data, and zeros behind that
 */
struct ibchan_request_attr {
	char device[IBCHAN_NAME_SIZE];
	u32 port;
	u32 length;
	struct sockaddr_storage local;
	struct sockaddr_storage peer;
	u8 data[IBCHAN_PRIVATE_DATA_SIZE];
};

/**
 * struct ibchan_route - the device that leads to a peer
 * @device: its name
 * @port: of the device
 * @ifindex: of the network device; 0: none
 * @mtu: bytes of a packet's payload, as far as this side knows
 * @source: the address that connections have
 */
struct ibchan_route {
	char device[IBCHAN_NAME_SIZE];
	u32 port;
	u32 ifindex;
	u32 mtu;
	struct sockaddr_storage source;
};

int ibchan_channel_connect(struct ibchan_channel *ch, const struct ibchan_connect *connect,
			   struct ibchan_reason *reason);
int ibchan_channel_connect_wait(struct ibchan_channel *ch, s64 timeout_ns);
void ibchan_channel_connection(struct ibchan_channel *ch,
			       struct ibchan_connection *connection);

struct ibchan_listener *ibchan_listener_create(const struct ibchan_listener_init *init,
					       struct ibchan_reason *reason);
void ibchan_listener_address(const struct ibchan_listener *listener,
			     struct sockaddr_storage *address);
int ibchan_listener_waiting(const struct ibchan_listener *listener);
void ibchan_listener_close(struct ibchan_listener *listener);

struct ibchan_request *ibchan_request_take(struct ibchan_listener *listener);
void ibchan_request_query(const struct ibchan_request *request,
			  struct ibchan_request_attr *attr);
int ibchan_request_accept(struct ibchan_request *request, struct ibchan_channel *ch,
			  const struct ibchan_connect *connect,
			  struct ibchan_reason *reason);
struct ibchan_device *ibchan_request_device(const struct ibchan_request *request);
int ibchan_request_reject(struct ibchan_request *request, const void *data, u32 length);

int ibchan_route_query(struct net *net, const struct ibchan_connect *connect,
		       struct ibchan_route *route, struct ibchan_reason *reason);

#endif /* _RDMA_IBCHAN_CONNECT_H */
