/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The short way: the objects that a channel of it owns. */
#ifndef _LIBIBCHAN_MESSAGE_H
#define _LIBIBCHAN_MESSAGE_H

#include "frame.h"
#include "source.h"

/* A context that channels share. */
struct station {
	struct ibchan_context *context;	/* closed with the last of them, if it is_own */
	unsigned int users;		/* channels, and the server */
	bool is_own;			/* it is not the program's */
};

/*
 * Receives beside those for messages, for frames that no window limits. Before a side takes note of
 * them its peer sends at most three that tell what it has taken: one for each half of the window,
 * and one for a message that it has read; and, once, the end.
 */
#define CONTROL_FRAMES	4

/* The memory of a receive, and the frame that lies there. */
struct inbox {
	struct arrival arrival;	/* the frame */
	unsigned char *bytes;	/* the memory that the frame lies in */
	struct inbox *next;	/* of those that wait to be taken, or to be posted again */
};

/* A message in the caller's memory that the peer was offered. */
struct lent {
	struct ibchan_mr *mr;	/* over it */
	const void *bytes;	/* the message */
	size_t length;		/* of it */
	__u32 place;		/* it is taken once so many messages are that were ever sent */
	struct lent *next;	/* offered later */
};

/* All that a channel of the short way owns; immutable but for what locks guard. */
struct messages {
	struct station *station;	/* the context */
	struct ibchan_device *device;	/* of the channel */
	struct ibchan_pd *pd;	/* of the channel */
	struct ibchan_cq *cq;	/* where its receives complete */
	struct ibchan_mr *mr;	/* over memory */
	unsigned char *memory;	/* inboxes, outboxes, and CONTROL_FRAMES + 1 small outboxes */
	__u32 num;		/* messages that may wait to be taken, here and at the peer */
	__u32 num_inboxes;	/* of num messages and of frames without one */
	size_t box_bytes;	/* from one box to the next */
	__u32 message_bytes;	/* the longest message that fits behind a frame here */
	__u32 peer_bytes;	/* the longest message that is sent behind a frame */
	struct ibchan_channel *channel;	/* posts to it */
	struct ibchan_prepared *prepared;	/* the same, until it is connecting */
	struct messages *next;	/* in one of the server's queues; under the server's lock */
	__s64 since_ns;		/* when the server accepted its client */
	struct lock sending;	/* held by the thread that sends, for as long as that takes */
	struct lock receiving;	/* held by the thread that receives, likewise */
	struct lock lock;	/* guards the rest; taken behind one of the former */
	struct window window;	/* of messages to the peer */
	struct inbox *inboxes;	/* num_inboxes */
	struct inbox *first;	/* the message that has arrived first */
	struct inbox **last;	/* where the next one to arrive is to be linked */
	struct inbox *idle;	/* inboxes whose receive is to be posted */
	__u32 taken;		/* messages that were ever taken */
	__u32 told;		/* of these, those that the peer was told of */
	bool must_tell;		/* the peer waits to be told */
	__u32 controls;		/* frames without a message that were ever sent */
	bool ended;		/* the peer has closed its channel */
	bool over;		/* no more frames will arrive */
	bool is_known;		/* the caller was told that */
	bool is_cut;		/* the message that has arrived first cannot be received any more */
	int error;		/* why, if it is known */
	struct lent *lent;	/* by ibchan_post_bytes(), and not told of, the oldest first */
	struct lent **lent_last;	/* where the next one is to be linked */
	bool is_told;		/* ibchan_next() has told of the first message */
	bool wants_room;	/* a message found no room, and ibchan_next() is to tell of it */
	bool is_end_told;	/* it has told of the end */
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
