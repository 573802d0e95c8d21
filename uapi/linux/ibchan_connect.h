/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * Connecting by IP address and port, with the RDMA connection manager. <linux/ibchan.h> lists the
 * commands, and includes this file.
 */
#ifndef _UAPI_LINUX_IBCHAN_CONNECT_H
#define _UAPI_LINUX_IBCHAN_CONNECT_H

#include <linux/types.h>
#include <linux/ibchan_codes.h>

/*
 * Private data: bytes that go with a message for the peer's consumer.
 *
 *	the message			to a peer that may be no ibchan	else
 *	request				56				48
 *	acceptance			196				188
 *	rejection			148				140
 *	each of these on iWARP		196				188
 *
 * Two ibchans put a header of 8 bytes in front of the data, which says how long it is. The data of
 * a peer that is no ibchan may arrive with zeros behind it.
 */
#define IBCHAN_PRIVATE_DATA_SIZE	196

/*
 * The peer may be no ibchan but, say, a program of librdmacm. It gets the private data and nothing
 * else, and its whole answer is private data. No keepalive looks after such a peer, and nobody
 * tells it of a smaller mtu. An ibchan that gets a request with this flag takes the asking side
 * for such a peer. A listener that accepts with this flag serves both such peers and ibchans; the
 * request tells which the peer is.
 *
 * Without this flag EPROTOTYPE refuses a peer that is no ibchan: when this side is to accept its
 * request, or when it has accepted. Such a peer sees the header in front of the data.
 */
#define IBCHAN_CONNECT_FOREIGN	0x1U
#define IBCHAN_CONNECT_FLAGS	IBCHAN_CONNECT_FOREIGN

/* Milliseconds that a stage may take, where the caller says 0. */
#define IBCHAN_DEFAULT_ADDRESS_MS	5000
#define IBCHAN_DEFAULT_ROUTE_MS		5000
#define IBCHAN_DEFAULT_CONNECT_MS	60000
#define IBCHAN_DEFAULT_ACCEPT_MS	10000
#define IBCHAN_MAX_STAGE_MS		3600000

/* Addresses of a peer besides the first one. */
#define IBCHAN_CONNECT_OTHERS		7

/**
 * struct ibchan_address - an IP address and a port
 * @family: AF_INET or AF_INET6; 0 where an address may be left out
 * @port: in network order
 * @scope_id: index of the network device, for a link-local IPv6 address; else 0
 * @bytes: in network order; an IPv4 address has four, and zeros behind them
 */
struct ibchan_address {
	__u16 family;
	__be16 port;
	__u32 scope_id;
	__u8 bytes[16];
};

/**
 * enum ibchan_stage - how far a connection has come
 * @IBCHAN_STAGE_NONE: not by the connection manager
 * @IBCHAN_STAGE_ADDRESS: finding the device that leads to the address, and its neighbour
 * @IBCHAN_STAGE_ROUTE: the way there
 * @IBCHAN_STAGE_REQUEST: asked, and waiting for the answer
 * @IBCHAN_STAGE_ACCEPT: accepted, and waiting for the peer to hear of it
 * @IBCHAN_STAGE_DONE: connected
 */
enum ibchan_stage {
	IBCHAN_STAGE_NONE = 0,
	IBCHAN_STAGE_ADDRESS = 1,
	IBCHAN_STAGE_ROUTE = 2,
	IBCHAN_STAGE_REQUEST = 3,
	IBCHAN_STAGE_ACCEPT = 4,
	IBCHAN_STAGE_DONE = 5,
};

/**
 * struct ibchan_cmd_channel_connect - connect a channel by address; do not wait
 * @size: sizeof(struct ibchan_cmd_channel_connect)
 * @flags: IBCHAN_CONNECT_FOREIGN or 0
 * @channel: handle, of a prepared channel
 * @data_length: bytes of @data: see IBCHAN_PRIVATE_DATA_SIZE
 * @peer: where to
 * @source: where from; family 0: as the route says, which is one outside of all VRFs
 * @address_ms: how long finding the device may take; 0: IBCHAN_DEFAULT_ADDRESS_MS
 * @route_ms: how long finding the way may take; 0: IBCHAN_DEFAULT_ROUTE_MS
 * @connect_ms: how long the peer may take; 0: IBCHAN_DEFAULT_CONNECT_MS
 * @num_others: how many of @others there are
 * @data: for the peer
 * @reserved: 0
 * @reason: why not, on an error
 * @others: more addresses of the peer, in the order in which they are tried; 0 behind them
 *
 * Each of @others is tried when there is no connection by the one before it: no way leads
 * there, or over another device than the channel's; nobody listens; the peer rejects; a
 * stage takes too long. The times are for all addresses together: each has an equal share of what
 * those before it have left. Over iWARP no other is tried once a peer has been asked. Of several
 * errors the one is told that came at the latest stage, of these the last.
 *
 * A peer that takes the request for one of a connection that it still has, of before this host
 * crashed, is asked again within @connect_ms.
 *
 * EADDRNOTAVAIL, ENODEV, EAFNOSUPPORT with IBCHAN_REASON_SOURCE: no network device of this host
 * has @source, no RDMA device has it, or it is of another family than all addresses of the peer.
 *
 * The outcome is an event (see event_take), and channel_connection waits for it. A
 * connection that does not come about breaks the channel: ENETUNREACH, EHOSTUNREACH,
 * ECONNREFUSED (nobody listens, or a peer that is no ibchan rejects without data), ECONNRESET
 * (rejected by the peer), EPROTOTYPE (accepted by a peer that is no ibchan), EXDEV (the way leads
 * over another device than the channel's), ETIMEDOUT.
 */
struct ibchan_cmd_channel_connect {
	__u32 size;
	__u32 flags;
	__u32 channel;
	__u32 data_length;
	struct ibchan_address peer;
	struct ibchan_address source;
	__u32 address_ms;
	__u32 route_ms;
	__u32 connect_ms;
	__u32 num_others;
	__u8 data[IBCHAN_PRIVATE_DATA_SIZE];
	__u32 reserved;
	struct ibchan_reason reason;
	struct ibchan_address others[IBCHAN_CONNECT_OTHERS];
};

/**
 * struct ibchan_cmd_channel_connection - how a connection by address fares
 * @size: sizeof(struct ibchan_cmd_channel_connection)
 * @flags: IBCHAN_DEADLINE or 0
 * @channel: handle
 * @out_state: enum ibchan_channel_state
 * @timeout_ns: wait as long until the channel is not connecting any more; 0: just
 *	look; IBCHAN_TIMEOUT_NEVER
 * @out_stage: enum ibchan_stage: the last one that was begun
 * @out_error: errno, positive, of what ended it; 0: it has not ended
 * @out_cm_error: the connection manager's answer: a positive reject code, or a
 *	negative errno; 0: nothing
 * @out_data_length: bytes of @out_data
 * @out_local: this side
 * @out_peer: the other side
 * @out_data: from the peer's answer; on the accepting side from its request
 * @reserved: 0
 *
 * ETIMEDOUT tells that it is still connecting.
 */
struct ibchan_cmd_channel_connection {
	__u32 size;
	__u32 flags;
	__u32 channel;
	__u32 out_state;
	__s64 timeout_ns;
	__u32 out_stage;
	__u32 out_error;
	__s32 out_cm_error;
	__u32 out_data_length;
	struct ibchan_address out_local;
	struct ibchan_address out_peer;
	__u8 out_data[IBCHAN_PRIVATE_DATA_SIZE];
	__u32 reserved;
};

/**
 * struct ibchan_cmd_listener_create - listen for requests
 * @size: sizeof(struct ibchan_cmd_listener_create)
 * @flags: 0
 * @device: handle: only requests that come over this device, in the namespace that
 *	it was opened in; 0: over any, in the caller's namespace
 * @backlog: requests that may wait to be taken, 1 and up; 0: IBCHAN_DEFAULT_BACKLOG
 * @address: where; bytes of 0: any address of the family; port 0: a free one
 * @out_listener: handle
 * @out_fd: polls readable (level-triggered) while a request waits
 * @out_address: with the port
 * @reason: why not, on an error
 *
 * Requests beyond @backlog are not answered: the peer's connection manager asks again, on
 * InfiniBand and RoCE after 4 s. EADDRINUSE and EADDRNOTAVAIL speak of the
 * address.
 */
struct ibchan_cmd_listener_create {
	__u32 size;
	__u32 flags;
	__u32 device;
	__u32 backlog;
	struct ibchan_address address;
	__u32 out_listener;
	__s32 out_fd;
	struct ibchan_address out_address;
	struct ibchan_reason reason;
};

#define IBCHAN_DEFAULT_BACKLOG	128
#define IBCHAN_MAX_BACKLOG	65536

/**
 * struct ibchan_cmd_request_take - take the next request of a listener
 * @size: sizeof(struct ibchan_cmd_request_take)
 * @flags: 0
 * @listener: handle
 * @out_request: handle; to be accepted, rejected, or destroyed, which rejects it
 * @out_device: name of the device that it came over
 * @out_port: of the device
 * @out_data_length: bytes of @out_data
 * @out_local: the address that was asked for
 * @out_peer: the address of the peer that asks
 * @out_data: from the peer, and zeros behind that
 * @reserved: 0
 *
 * EAGAIN: none waits.
 */
struct ibchan_cmd_request_take {
	__u32 size;
	__u32 flags;
	__u32 listener;
	__u32 out_request;
	char out_device[64];
	__u32 out_port;
	__u32 out_data_length;
	struct ibchan_address out_local;
	struct ibchan_address out_peer;
	__u8 out_data[IBCHAN_PRIVATE_DATA_SIZE];
	__u32 reserved;
};

/**
 * struct ibchan_cmd_request_accept - connect a channel to the peer that asks; do not wait
 * @size: sizeof(struct ibchan_cmd_request_accept)
 * @flags: IBCHAN_CONNECT_FOREIGN or 0
 * @request: handle; gone on success
 * @channel: handle, of a prepared channel of the request's device
 * @connect_ms: how long the peer may take to say that it has heard of it; 0:
 *	IBCHAN_DEFAULT_ACCEPT_MS
 * @data_length: bytes of @data: see IBCHAN_PRIVATE_DATA_SIZE
 * @data: for the peer
 * @reserved: 0
 * @reason: why not, on an error
 *
 * The outcome is an event, as for channel_connect. EXDEV: the request came over
 * another device. EPROTOTYPE: the peer is no ibchan, and @flags is 0.
 */
struct ibchan_cmd_request_accept {
	__u32 size;
	__u32 flags;
	__u32 request;
	__u32 channel;
	__u32 connect_ms;
	__u32 data_length;
	__u8 data[IBCHAN_PRIVATE_DATA_SIZE];
	__u32 reserved;
	struct ibchan_reason reason;
};

/**
 * struct ibchan_cmd_request_reject - send the peer that asks away
 * @size: sizeof(struct ibchan_cmd_request_reject)
 * @flags: 0
 * @request: handle; gone afterwards
 * @data_length: bytes of @data: see IBCHAN_PRIVATE_DATA_SIZE
 * @data: for the peer
 * @reserved: 0
 */
struct ibchan_cmd_request_reject {
	__u32 size;
	__u32 flags;
	__u32 request;
	__u32 data_length;
	__u8 data[IBCHAN_PRIVATE_DATA_SIZE];
	__u32 reserved;
};

/* Events of a channel: bits of out_events. */
#define IBCHAN_EVENT_CONNECTED	0x1U	/* it takes work now */
#define IBCHAN_EVENT_BROKEN	0x2U	/* it takes none any more, or never will */

/**
 * struct ibchan_cmd_event_take - take the events of a channel of the file
 * @size: sizeof(struct ibchan_cmd_event_take)
 * @flags: 0
 * @out_channel: handle
 * @out_events: IBCHAN_EVENT_*, all since the last time
 *
 * /dev/ibchan polls readable (level-triggered) while there is something to take.
 * EAGAIN: there is nothing.
 */
struct ibchan_cmd_event_take {
	__u32 size;
	__u32 flags;
	__u32 out_channel;
	__u32 out_events;
};

/**
 * struct ibchan_cmd_route_query - find the device that leads to an address
 * @size: sizeof(struct ibchan_cmd_route_query)
 * @flags: 0
 * @peer: where to
 * @source: where from; family 0: as the route says, which is one outside of all VRFs
 * @timeout_ms: how long finding the device may take; 0: IBCHAN_DEFAULT_ADDRESS_MS
 * @out_port: of the device
 * @out_device: its name
 * @out_source: the address that connections have
 * @out_ifindex: of the network device; 0: none
 * @out_mtu: bytes of a packet's payload, as far as this side knows
 * @reserved: 0
 * @reason: why not, on an error
 *
 * An error of @source: see channel_connect. The kernel goes on asking for a neighbour that has not
 * answered in time: a later query may have the answer at once.
 *
 * ENETUNREACH, EHOSTUNREACH: there is no way, or no neighbour answers in time;
 * ENODEV: the way does not lead over an RDMA device, or @peer means this host itself,
 * which is no address of a RoCE device's.
 */
struct ibchan_cmd_route_query {
	__u32 size;
	__u32 flags;
	struct ibchan_address peer;
	struct ibchan_address source;
	__u32 timeout_ms;
	__u32 out_port;
	char out_device[64];
	struct ibchan_address out_source;
	__u32 out_ifindex;
	__u32 out_mtu;
	__u64 reserved;
	struct ibchan_reason reason;
};

#endif /* _UAPI_LINUX_IBCHAN_CONNECT_H */
