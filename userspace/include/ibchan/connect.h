/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libibchan: connecting by IP address and port. Include <ibchan.h>. */
#ifndef _IBCHAN_CONNECT_H
#define _IBCHAN_CONNECT_H

#include <sys/socket.h>
#include <ibchan/types.h>

__IBCHAN_BEGIN_DECLS

/**
 * struct ibchan_route - the device that leads to a peer
 * @device: its name
 * @port: of the device
 * @ifindex: of the network device; 0: none
 * @mtu: bytes of a packet's payload, as far as this side knows
 * @reserved0: 0
 * @source: the address that connections have
 * @peer: the address that the name stands for
 * @reserved: 0
 */
struct ibchan_route {
	char device[IBCHAN_NAME_SIZE];
	__u32 port;
	__u32 ifindex;
	__u32 mtu;
	__u32 reserved0;
	struct sockaddr_storage source;
	struct sockaddr_storage peer;
	__u64 reserved[4];
};

/**
 * ibchan_route_query() - find the device that leads to a peer
 * @context: open
 * @host: name or IP address
 * @service: name or number of a port; NULL: none
 * @source: IP address of this host to start from; NULL: as a route outside of all VRFs says
 * @route: where to put the answer
 * @error: details; NULL is fine
 *
 * Of several addresses of @host, those of the family of @source are looked for in turn, each for
 * 250 ms and then for its share of what is left of 5 s. The first one that a device leads to is
 * taken. An IPv4 address that is mapped into IPv6 (::ffff:192.0.2.1) is one of IPv4, here and in
 * the other calls that take a host.
 *
 * Return: 0; -ENOENT: nobody knows @host or @service; -EINVAL: @service is a number above
 * 65535; -ENETUNREACH, -EHOSTUNREACH: there is no way, or no neighbour answers in time;
 * -ENODEV: the way does not lead over an RDMA device, or @host means this host itself, as
 * localhost does, and is not an address of a RoCE device's, or no RDMA device has @source;
 * -EADDRNOTAVAIL: nor has this host; -EAFNOSUPPORT: it is of another family than all addresses of
 * @host; -EAGAIN: the name server does not answer.
 */
int ibchan_route_query(struct ibchan_context *context, const char *host, const char *service,
		       const char *source, struct ibchan_route *route, struct ibchan_error *error);

/**
 * ibchan_device_open_for() - hold the device that leads to a peer
 * @context: open
 * @host: name or IP address
 * @source: as for ibchan_route_query(); the one to connect from later
 * @device: where to put it
 * @error: details; NULL is fine
 *
 * Return: 0; as ibchan_route_query() and ibchan_device_open().
 */
int ibchan_device_open_for(struct ibchan_context *context, const char *host, const char *source,
			   struct ibchan_device **device, struct ibchan_error *error);

/**
 * struct ibchan_connect_params - data and limits of a request, or of its answer
 * @size: sizeof(struct ibchan_connect_params)
 * @data: for the peer; NULL: none, with a @length of 0
 * @length: bytes of @data: up to 48 with a request and 188 when accepting; 56 with
 *	IBCHAN_CONNECT_FOREIGN, and 196 when accepting a peer that is no ibchan, which gets zeros
 *	behind them
 * @flags: IBCHAN_CONNECT_FOREIGN: the peer may be no ibchan; one that is asked so, or is none, gets
 *	@data and nothing else, and is looked after by no keepalive
 * @address_ns: how long finding the device may take, up to an hour; 0: 5 s
 * @route_ns: how long finding the way may take; 0: 5 s
 * @connect_ns: how long the peer may take; 0: 60 s, when accepting 10 s; all three for all
 *	addresses of the peer together: each has an equal share of what those before it have left
 * @source: IP address of the connection on this side; NULL: as a route outside of all VRFs says
 *
 * All zero but @size is the default. An accept needs @data, @connect_ns and @flags only. The kernel
 * counts these times in milliseconds, rounded up.
 */
struct ibchan_connect_params {
	__u32 size;
	__u32 flags;
	const void *data;
	size_t length;
	const char *source;
	__s64 address_ns;
	__s64 route_ns;
	__s64 connect_ns;
};

/**
 * ibchan_prepared_connect() - begin to connect by address
 * @prepared: is used up on success; stays valid on failure
 * @host: name or IP address
 * @service: name or number of the port that the peer listens on
 * @params: data and limits; NULL: the defaults
 * @channel: where to put the channel, which is connecting
 * @error: details; NULL is fine
 *
 * Returns at once, but for the look-up of a name. Of several addresses of @host up to 8 are tried,
 * in the order of getaddrinfo(3): the next one when no way leads to one, or over another device
 * than the channel's, when nobody listens there, when the peer rejects, or when a stage takes too
 * long; over iWARP none once a peer has been asked. Receives, which can be posted before and
 * meanwhile, and data are for whichever accepts. Of several errors the one is told that came at the
 * latest stage. ibchan_channel_connect_wait() tells how it went, and ibchan_next() when. Closing
 * the channel cancels.
 *
 * Return: 0; -EINVAL: too much data, or a time out of its range; -EPERM: see Fork; -ENODEV: the
 * device is gone; as ibchan_route_query() of the names, of this host itself, and of the source.
 */
int ibchan_prepared_connect(struct ibchan_prepared *prepared, const char *host, const char *service,
			    const struct ibchan_connect_params *params,
			    struct ibchan_channel **channel, struct ibchan_error *error);

/**
 * ibchan_channel_connect_wait() - wait until a channel is connected
 * @channel: connecting, or what has become of that
 * @timeout_ns: how long; IBCHAN_TIMEOUT_NEVER: as long as the stages may take
 * @error: the stage that failed, and why; NULL is fine
 *
 * Buffers: those of receives that were posted early stay the device's.
 *
 * Return: 0: it is connected; -ETIMEDOUT with the channel still connecting, or broken because a
 * stage has taken too long (ibchan_channel_connection() tells); -ENETUNREACH, -EHOSTUNREACH: no way
 * to the peer, or nobody answers for its address; -ECONNREFUSED: nobody listens there, or only in
 * another network namespace, or a peer that is no ibchan has rejected without data; -ECONNRESET:
 * the peer has rejected; -EPROTOTYPE: it has accepted and is no ibchan, without
 * IBCHAN_CONNECT_FOREIGN; -EXDEV: the way leads over another device; -ECANCELED: broken by the
 * caller; -ESHUTDOWN: it was connected and has broken since; -ENODEV: the device is gone; -EINTR: a
 * signal came, and the channel goes on connecting.
 */
int ibchan_channel_connect_wait(struct ibchan_channel *channel, __s64 timeout_ns,
				struct ibchan_error *error);

/**
 * struct ibchan_connection_info - how a connection by address fares
 * @state: enum ibchan_channel_state
 * @stage: enum ibchan_stage: the last one that was begun; IBCHAN_STAGE_NONE: it was not connected
 *	by address
 * @error: of what ended it, a negative errno; 0: it has not ended
 * @cm_error: the connection manager's result: a positive reject code, or a negative errno
 * @length: bytes of @data
 * @local: this side
 * @peer: the other side
 * @data: from the peer's answer; on the accepting side from its request
 * @reserved: 0
 */
struct ibchan_connection_info {
	__u32 state;
	__u32 stage;
	int error;
	int cm_error;
	__u32 length;
	struct sockaddr_storage local;
	struct sockaddr_storage peer;
	__u8 data[IBCHAN_PRIVATE_DATA_SIZE];
	__u64 reserved[4];
};

/**
 * ibchan_stage_name() - words for a stage of connecting by address
 * @stage: enum ibchan_stage
 *
 * Return: for example "asking the peer".
 */
const char *ibchan_stage_name(__u32 stage);

/**
 * ibchan_channel_connection() - how a connection by address fares
 * @channel: connecting, connected or broken
 * @info: where to put the answer
 * @error: details; NULL is fine
 *
 * Return: 0 or a negative errno.
 */
int ibchan_channel_connection(struct ibchan_channel *channel,
			      struct ibchan_connection_info *info, struct ibchan_error *error);

/**
 * ibchan_builder_connect() - make a channel and connect it by address
 * @builder: filled in
 * @host: name or IP address
 * @service: name or number of the port that the peer listens on
 * @params: data and limits; NULL: the defaults
 * @channel: where to put the channel, connected
 * @error: details; NULL is fine
 *
 * ibchan_builder_prepare(), ibchan_prepared_connect() and ibchan_channel_connect_wait()
 * in one; on an error nothing is left. A signal does not end it; the times in @params do.
 *
 * Return: 0; as these three, but for -EINTR.
 */
int ibchan_builder_connect(const struct ibchan_builder *builder, const char *host,
			   const char *service, const struct ibchan_connect_params *params,
			   struct ibchan_channel **channel, struct ibchan_error *error);

/**
 * struct ibchan_listen_params - where to listen
 * @size: sizeof(struct ibchan_listen_params)
 * @device: only for requests that come over it; NULL: over any device
 * @host: name or IP address of this host; NULL: any, of both families
 * @service: name or number of a port; NULL: a free one
 * @backlog: requests that may wait, 1 to 65536; 0: 128. Those beyond it, or beyond the kernel
 *	memory that the user may take, are not answered, and the peer's connection manager asks
 *	again. A request whose sender has given up does not wait
 */
struct ibchan_listen_params {
	__u32 size;
	__u32 backlog;
	struct ibchan_device *device;
	const char *host;
	const char *service;
};

/**
 * ibchan_listener_create() - listen for peers
 * @context: open
 * @params: where
 * @listener: where to put it
 * @error: details; NULL is fine
 *
 * Return: 0; -EADDRINUSE; -EADDRNOTAVAIL: not an address of this host, or of
 * no RDMA device; -EXDEV: the address of another device than the wanted one; -ENOENT: nobody knows
 * @host or @service; -EINVAL: the backlog is out of its range, or @service is a number above 65535;
 * -EPERM: see Fork; -EMFILE, -EDQUOT: see Limits in <ibchan.h>.
 */
int ibchan_listener_create(struct ibchan_context *context,
			   const struct ibchan_listen_params *params,
			   struct ibchan_listener **listener, struct ibchan_error *error);

/**
 * ibchan_listener_fd() - for poll and epoll
 * @listener: listening
 *
 * Readable, level-triggered, while a request waits. Do not close it.
 *
 * Return: the descriptor.
 */
int ibchan_listener_fd(const struct ibchan_listener *listener);

/**
 * ibchan_listener_address() - where a listener listens
 * @listener: listening
 * @address: where to put it; with the port
 */
void ibchan_listener_address(const struct ibchan_listener *listener,
			     struct sockaddr_storage *address);

/**
 * ibchan_listener_set_priv() - keep a pointer of the caller's with a listener
 * @listener: listening
 * @priv: anything; the library does not look at it
 */
void ibchan_listener_set_priv(struct ibchan_listener *listener, void *priv);

/**
 * ibchan_listener_priv() - the caller's pointer
 * @listener: listening
 *
 * Return: the last pointer of ibchan_listener_set_priv(); NULL: none.
 */
void *ibchan_listener_priv(const struct ibchan_listener *listener);

/**
 * ibchan_listener_lost() - how many peers ibchan_builder_accept() has lost
 * @listener: listening
 *
 * A peer counts when a call has taken its request, and it gives up, breaks the rules, or does not
 * say in time that it is connected. Each peer counts once, when a call sees it.
 *
 * Return: the number, since the listener was created.
 */
__u64 ibchan_listener_lost(struct ibchan_listener *listener);

/**
 * ibchan_listener_close() - listen no more
 * @listener: NULL is fine
 *
 * Requests that nobody has taken are rejected, and peers that ibchan_builder_accept() has answered
 * and not returned are ended. Taken ones, and channels, live on.
 *
 * Return: 0 or a negative errno: see Destroying in <ibchan.h>.
 */
int ibchan_listener_close(struct ibchan_listener *listener);

/**
 * ibchan_request_take() - take the next request of a listener
 * @listener: listening
 * @timeout_ns: how long to wait for one; 0: not at all; IBCHAN_TIMEOUT_NEVER
 * @request: where to put it
 * @error: details; NULL is fine
 *
 * Return: 0; -EAGAIN: none waits, with @timeout_ns 0; -ETIMEDOUT: none came; -EINTR: a
 * signal came, and no request was taken; -EPERM: see Fork; -EMFILE: too many objects.
 */
int ibchan_request_take(struct ibchan_listener *listener, __s64 timeout_ns,
			struct ibchan_request **request, struct ibchan_error *error);

/**
 * struct ibchan_request_info - a peer that asks
 * @device: name of the device that the request came over
 * @port: of the device
 * @length: bytes of @data
 * @local: the address that was asked for
 * @peer: the address of the peer that asks
 * @data: the request's data, and zeros behind it
 * @reserved: 0
 */
struct ibchan_request_info {
	char device[IBCHAN_NAME_SIZE];
	__u32 port;
	__u32 length;
	struct sockaddr_storage local;
	struct sockaddr_storage peer;
	__u8 data[IBCHAN_PRIVATE_DATA_SIZE];
	__u64 reserved[4];
};

/**
 * ibchan_request_query() - identify the peer that asks
 * @request: taken
 * @info: where to put the answer
 */
void ibchan_request_query(const struct ibchan_request *request, struct ibchan_request_info *info);

/**
 * ibchan_request_accept() - begin to connect a channel to the peer that asks
 * @request: is used up on success; stays valid on failure
 * @prepared: of the request's device; is used up on success; stays valid on failure
 * @params: data and limits; NULL: the defaults
 * @channel: where to put the channel, which is connecting
 * @error: details; NULL is fine
 *
 * Returns at once; see ibchan_prepared_connect(). Post the receives for what the peer sends first
 * before. The smaller mtu of the two sides counts for both: see ibchan_channel_query(). A peer that
 * serves no reads and atomics is sent none: see ibchan_post().
 *
 * Return: 0; -EXDEV: @prepared is of another device; -EPROTOTYPE: the peer is no ibchan, without
 * IBCHAN_CONNECT_FOREIGN; -EINVAL: too much data, a time out of its range; -ECONNRESET, -ETIMEDOUT,
 * -EINVAL: the peer has given up meanwhile; -EPERM: see Fork; -ENODEV: the device is gone.
 */
int ibchan_request_accept(struct ibchan_request *request, struct ibchan_prepared *prepared,
			  const struct ibchan_connect_params *params,
			  struct ibchan_channel **channel, struct ibchan_error *error);

/**
 * ibchan_request_reject() - send the peer that asks away
 * @request: NULL is fine
 * @data: for the peer; NULL: none
 * @length: bytes of @data, up to 140, over iWARP 188; to a peer that is no ibchan 8 more
 * @error: details; NULL is fine
 *
 * Return: 0; -EINVAL: too much data, -EFAULT: @length without @data, -EBUSY: another thread
 * answers it, and the request stays, as it does where a filter of system calls answered in the
 * kernel's place, see <ibchan.h>; another negative errno, and the request is gone.
 */
int ibchan_request_reject(struct ibchan_request *request, const void *data,
			  size_t length, struct ibchan_error *error);

/**
 * ibchan_builder_accept() - make a channel for the next peer that is connected
 * @builder: filled in
 * @listener: listening
 * @timeout_ns: how long to wait for one; 0: not at all; IBCHAN_TIMEOUT_NEVER
 * @channel: where to put the channel, connected
 * @error: details; NULL is fine
 *
 * Answers each request that waits, and those that come, by ibchan_builder_prepare() and
 * ibchan_request_accept(), and returns the channel that is connected first: a peer that asks and
 * then says nothing holds up no other. A call waits for up to 32 peers at a time, and further
 * requests wait in the listener. A peer that is no ibchan, gives up, breaks the rules or says
 * nothing for 10 s is no error, and ibchan_listener_lost() counts it.
 *
 * Peers that were answered and not returned stay with the listener, whatever this call returns: a
 * later call with the same domain and completion queues returns them, with the parameters of the
 * builder that answered them, and ibchan_listener_close() ends them. Until then domain and queues
 * are in use. ibchan_next() tells nothing of them.
 *
 * With receives in @builder a call waits for one peer at a time: their ranges are those of one
 * channel.
 *
 * Buffers: the ranges of the builder's receives belong to the device until the channel that a call
 * returned has completed them, or the listener was closed.
 *
 * Return: 0; -ETIMEDOUT, or with a @timeout_ns of 0 -EAGAIN: no peer is connected; -EINTR: a signal
 * came, and no peer is lost by it; as ibchan_builder_prepare(), with the peer that asked rejected;
 * -EXDEV: @builder is of another context, or a peer asked over another device than that of its
 * domain, and is rejected; -EINVAL: @timeout_ns is out of its range; -ENODEV: the device is gone;
 * -EMFILE: too many objects or files; -EPERM: see Fork.
 */
int ibchan_builder_accept(const struct ibchan_builder *builder,
			  struct ibchan_listener *listener, __s64 timeout_ns,
			  struct ibchan_channel **channel, struct ibchan_error *error);

__IBCHAN_END_DECLS

#endif /* _IBCHAN_CONNECT_H */
