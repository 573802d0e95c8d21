/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The short way: what a channel of it owns. */
#ifndef _LIBIBCHAN_MESSAGE_H
#define _LIBIBCHAN_MESSAGE_H

#include "internal.h"

/**
 * struct greeting - what each side of the short way tells the other, in network order
 * @magic: GREETING_MAGIC
 * @message_bytes: the longest message that this side takes
 */
struct greeting {
	__u32 magic;
	__u32 message_bytes;
};

#define GREETING_MAGIC	0x49424d31U	/* "IBM1" */

/**
 * struct station - a context that channels share
 * @context: closed with the last of them
 * @users: channels, and the server
 */
struct station {
	struct ibchan_context *context;
	unsigned int users;
};

/**
 * struct message - one that has arrived and that nobody has taken
 * @bytes: its length
 * @next: the one that came after it
 */
struct message {
	__u32 bytes;
	struct message *next;
};

/**
 * struct messages - what a channel of the short way owns; immutable but for what @lock guards
 * @station: the context
 * @device: of the channel
 * @pd: of the channel
 * @cq: where its receives complete
 * @mr: over @memory
 * @memory: @num messages of @message_bytes
 * @num: as many messages may wait
 * @message_bytes: the longest message for this side
 * @peer_bytes: the longest one for the peer
 * @element_bytes: of memory that is not registered, from a page's first byte on
 * @channel: posts to it
 * @prepared: the same, until it is connecting
 * @next: of those that a server accepts; under the server's lock
 * @lock: guards the rest
 * @messages: @num of them, each with the memory of its index
 * @first: has arrived first
 * @last: where the next one to arrive is to be linked
 * @idle: those whose receive could not be posted
 * @posted: receives in flight
 * @over: no more messages will arrive
 * @error: why, if it is known
 */
struct messages {
	struct station *station;
	struct ibchan_device *device;
	struct ibchan_pd *pd;
	struct ibchan_cq *cq;
	struct ibchan_mr *mr;
	unsigned char *memory;
	__u32 num;
	__u32 message_bytes;
	__u32 peer_bytes;
	size_t element_bytes;
	struct ibchan_channel *channel;
	struct ibchan_prepared *prepared;
	struct messages *next;
	struct lock lock;
	struct message *messages;
	struct message *first;
	struct message **last;
	struct message *idle;
	__u32 posted;
	bool over;
	int error;
};

#pragma GCC visibility push(hidden)

int station_open(struct station **station, struct ibchan_error *error);
void station_put(struct station *station);

/* How a side takes messages, with the defaults in place. */
int params_read(const struct ibchan_message_params *params,
		struct ibchan_message_params *complete, struct ibchan_reason *reason);

/* A channel without a peer, with all its receives posted. */
int messages_make(struct station *station, const char *device,
		  const struct ibchan_message_params *params, struct messages **messages,
		  struct ibchan_error *error);
int messages_close(struct messages *messages);

#pragma GCC visibility pop

#endif /* _LIBIBCHAN_MESSAGE_H */
