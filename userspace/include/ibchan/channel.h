/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libibchan: channels, from the builder to the end. Include <ibchan.h>. */
#ifndef _IBCHAN_CHANNEL_H
#define _IBCHAN_CHANNEL_H

#include <stddef.h>
#include <linux/types.h>
#include <linux/ibchan.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ibchan_pd;
struct ibchan_cq;
struct ibchan_prepared;
struct ibchan_channel;
struct ibchan_error;

/**
 * struct ibchan_builder - what a channel is made of
 * @pd: protection domain of the memory that it will use
 * @send_cq: where sends, writes and reads complete
 * @recv_cq: where receives complete; may be the same
 * @params: every knob; see struct ibchan_params in linux/ibchan.h
 *
 * Start with ibchan_builder_init(), change what you like, use it as often as
 * you like.
 */
struct ibchan_builder {
	struct ibchan_pd *pd;
	struct ibchan_cq *send_cq;
	struct ibchan_cq *recv_cq;
	struct ibchan_params params;
};

/**
 * ibchan_builder_init() - the defaults
 * @builder: to fill
 * @pd: protection domain
 * @cq: for both directions
 *
 * Access is IBCHAN_ACCESS_SHARED: the peer may read and write the regions of
 * @pd that were registered for it. Queue sizes, retries and timers are the
 * IBCHAN_DEFAULT_* of linux/ibchan.h; port, GID, MTU and packet sequence
 * numbers are chosen by the kernel.
 */
void ibchan_builder_init(struct ibchan_builder *builder, struct ibchan_pd *pd,
			 struct ibchan_cq *cq);

/**
 * ibchan_builder_prepare() - make a channel that has no peer yet
 * @builder: filled in
 * @prepared: where to put it
 * @error: details; NULL is fine
 *
 * Return: 0; -EINVAL: a knob is out of range, or the MTU above the port's;
 * -ENETDOWN: no port is active; -EADDRNOTAVAIL: the port has no usable address,
 * or not yet; -EXDEV: @builder names objects of different devices; -EAGAIN: the
 * completion queue has no room for the channel's works; -EPERM: see Fork;
 * -EMFILE: too many objects; what the device's driver answers.
 */
int ibchan_builder_prepare(const struct ibchan_builder *builder,
			   struct ibchan_prepared **prepared,
			   struct ibchan_error *error);

/**
 * ibchan_prepared_endpoint() - what the peer needs
 * @prepared: the prepared channel
 * @endpoint: where to put it
 */
void ibchan_prepared_endpoint(const struct ibchan_prepared *prepared,
			      struct ibchan_endpoint *endpoint);

/**
 * ibchan_prepared_params() - the knobs, with what the kernel chose
 * @prepared: the prepared channel
 * @params: where to put them
 */
void ibchan_prepared_params(const struct ibchan_prepared *prepared,
			    struct ibchan_params *params);

/**
 * ibchan_prepared_handshake() - connect to the peer
 * @prepared: is used up on success; stays valid on failure
 * @peer: the peer's endpoint; the channel's own gives a loop to itself
 * @channel: where to put the channel
 * @error: details; NULL is fine
 *
 * Both sides do this, in any order; neither waits for the other. A send that
 * arrives before the other side has done it, and has posted a receive, is
 * retried as often as the knobs say: tell each other by the means that carried
 * the endpoints.
 *
 * Return: 0; -EINVAL: the peer does not fit, @error names ours and theirs;
 * -EPERM: see Fork; what the device's driver answers.
 */
int ibchan_prepared_handshake(struct ibchan_prepared *prepared,
			      const struct ibchan_endpoint *peer,
			      struct ibchan_channel **channel,
			      struct ibchan_error *error);

/**
 * ibchan_prepared_destroy() - give up a channel that was never connected
 * @prepared: NULL is fine
 *
 * Return: 0 or a negative errno; the handle is gone either way.
 */
int ibchan_prepared_destroy(struct ibchan_prepared *prepared);

/**
 * ibchan_endpoint_to_bytes() - for the wire
 * @endpoint: to encode
 * @bytes: IBCHAN_ENDPOINT_SIZE bytes
 */
void ibchan_endpoint_to_bytes(const struct ibchan_endpoint *endpoint,
			      void *bytes);

/**
 * ibchan_endpoint_from_bytes() - from the wire
 * @endpoint: where to put it
 * @bytes: what the peer sent
 * @length: how many bytes
 * @error: details; NULL is fine
 *
 * Only the envelope is looked at. ibchan_prepared_handshake() checks the rest.
 *
 * Return: 0; -EINVAL: not IBCHAN_ENDPOINT_SIZE bytes, not an endpoint, or one
 * of another version.
 */
int ibchan_endpoint_from_bytes(struct ibchan_endpoint *endpoint,
			       const void *bytes, size_t length,
			       struct ibchan_error *error);

/**
 * struct ibchan_channel_info - how a channel fares
 * @state: enum ibchan_channel_state
 * @error: the first error as a negative errno, 0 while there is none
 * @status: enum ibchan_status of the work that failed first
 * @sends_in_flight: posted and not completed
 * @recvs_in_flight: posted and not completed
 * @reserved: 0
 * @params: in effect; mtu and max_rd_atomic are the agreed ones
 * @endpoint: of this side
 */
struct ibchan_channel_info {
	__u32 state;
	int error;
	__u32 status;
	__u32 sends_in_flight;
	__u32 recvs_in_flight;
	__u32 reserved;
	struct ibchan_params params;
	struct ibchan_endpoint endpoint;
};

/**
 * ibchan_channel_query() - how a channel fares
 * @channel: connected or broken
 * @info: where to put the answer
 *
 * Return: 0 or a negative errno.
 */
int ibchan_channel_query(struct ibchan_channel *channel,
			 struct ibchan_channel_info *info);

/**
 * ibchan_channel_break() - end a channel's traffic
 * @channel: connected or broken
 *
 * It takes no more work; what is in flight completes with WR_FLUSH_ERR unless
 * it had been done. Breaking twice is fine.
 *
 * Return: 0 or a negative errno.
 */
int ibchan_channel_break(struct ibchan_channel *channel);

/**
 * ibchan_channel_close() - break, drain and free a channel
 * @channel: NULL is fine
 *
 * Takes a bounded time. Its works have completed when this returns; the
 * completions can still be polled and name no channel then.
 *
 * Return: 0 or a negative errno; the handle is gone either way.
 */
int ibchan_channel_close(struct ibchan_channel *channel);

#ifdef __cplusplus
}
#endif

#endif /* _IBCHAN_CHANNEL_H */
