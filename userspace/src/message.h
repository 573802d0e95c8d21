/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The short way: the objects that a channel of it owns. */
#ifndef _LIBIBCHAN_MESSAGE_H
#define _LIBIBCHAN_MESSAGE_H

#include "frame.h"
#include "source.h"

/**
 * struct station - a context that channels share
 * @context: closed with the last of them, unless it is the program's
 * @users: channels, and the server
 * @is_own: it is not the program's
 */
struct station {
	struct ibchan_context *context;
	unsigned int users;
	bool is_own;
};

/*
 * Receives beside those for messages, for frames that no window limits. Before a side takes note of
 * them its peer sends at most three that tell what it has taken: one for each half of the window,
 * and one for a message that it has read; and, once, the end.
 */
#define CONTROL_FRAMES	4

/**
 * struct inbox - the memory of a receive, and the frame that lies there
 * @arrival: the frame
 * @bytes: the memory that the frame lies in
 * @next: of those that wait to be taken, in order, or to be posted again
 */
struct inbox {
	struct arrival arrival;
	unsigned char *bytes;
	struct inbox *next;
};

/**
 * struct lent - a message in the caller's memory that the peer was offered
 * @mr: over it
 * @bytes: the message
 * @length: of it
 * @place: it is taken once so many messages are that were ever sent
 * @next: offered later
 */
struct lent {
	struct ibchan_mr *mr;
	const void *bytes;
	size_t length;
	__u32 place;
	struct lent *next;
};

/**
 * struct messages - all that a channel of the short way owns; immutable but for what locks guard
 * @station: the context
 * @device: of the channel
 * @pd: of the channel
 * @cq: where its receives complete
 * @mr: over @memory
 * @memory: inboxes, outboxes, and CONTROL_FRAMES + 1 small outboxes
 * @num: messages that may wait to be taken, here and at the peer
 * @num_inboxes: of @num messages and of frames without one
 * @box_bytes: from one box to the next
 * @message_bytes: the longest message that fits behind a frame here
 * @peer_bytes: the longest message that is sent behind a frame
 * @channel: posts to it
 * @prepared: the same, until it is connecting
 * @next: in one of the server's queues; under the server's lock
 * @since_ns: when the server accepted its client
 * @sending: held by the thread that sends, for as long as that takes
 * @receiving: held by the thread that receives, likewise
 * @lock: guards the rest; taken behind one of the former
 * @window: of messages to the peer
 * @inboxes: @num_inboxes
 * @first: the message that has arrived first
 * @last: where the next one to arrive is to be linked
 * @idle: inboxes whose receive is to be posted
 * @taken: messages that were ever taken
 * @told: of these, those that the peer was told of
 * @must_tell: the peer waits to be told
 * @controls: frames without a message that were ever sent
 * @ended: the peer has closed its channel
 * @over: no more frames will arrive
 * @is_known: the caller was told that
 * @is_cut: the message that has arrived first cannot be received any more
 * @error: why, if it is known
 * @lent: messages that ibchan_post_bytes() has offered, and of which was not told, the oldest first
 * @lent_last: where the next one is to be linked
 * @is_told: ibchan_next() has told of the first message
 * @wants_room: a message found no room, and ibchan_next() is to tell of it
 * @is_end_told: it has told of the end
 */
struct messages {
	struct station *station;
	struct ibchan_device *device;
	struct ibchan_pd *pd;
	struct ibchan_cq *cq;
	struct ibchan_mr *mr;
	unsigned char *memory;
	__u32 num;
	__u32 num_inboxes;
	size_t box_bytes;
	__u32 message_bytes;
	__u32 peer_bytes;
	struct ibchan_channel *channel;
	struct ibchan_prepared *prepared;
	struct messages *next;
	__s64 since_ns;
	struct lock sending;
	struct lock receiving;
	struct lock lock;
	struct window window;
	struct inbox *inboxes;
	struct inbox *first;
	struct inbox **last;
	struct inbox *idle;
	__u32 taken;
	__u32 told;
	bool must_tell;
	__u32 controls;
	bool ended;
	bool over;
	bool is_known;
	bool is_cut;
	int error;
	struct lent *lent;
	struct lent **lent_last;
	bool is_told;
	bool wants_room;
	bool is_end_told;
};

#pragma GCC visibility push(hidden)

/* Completes the parameters of a side, and opens their context, or one of the station's own. */
int station_open(const struct ibchan_message_params *params,
		 struct ibchan_message_params *complete, struct station **station,
		 struct ibchan_error *error);
void station_put(struct station *station);

/* A channel without a peer, with all its receives posted. */
int messages_make(struct station *station, const char *device,
		  const struct ibchan_message_params *params, struct messages **messages,
		  struct ibchan_error *error);

/* stream.c; posts the receives that are due, and behind them @send, if there is one. */
int stream_post(struct messages *messages, const struct ibchan_submit_wr *send,
		struct ibchan_error *error);
int stream_end(struct messages *messages);
int stream_tell(struct source *source, struct ibchan_happening *happening);
void lent_free(struct lent *lent);

#pragma GCC visibility pop

#endif /* _LIBIBCHAN_MESSAGE_H */
