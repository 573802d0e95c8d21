/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What two sides of a pingpong tell each other beside the data: by TCP, or by
 * messages on a channel of its own that was connected by address.
 */
#ifndef _IBCHAN_TALK_H
#define _IBCHAN_TALK_H

#include <ibchan.h>
#include <stddef.h>

#include "tcp.h"

#define TALK_SLOTS	16U	/* messages that may wait here */
#define TALK_SIZE	128U	/* bytes of the longest one */
#define TALK_TEXT	128

/**
 * struct talk_options - the other side's address, and the local device
 * @host: NULL: wait for the other side
 * @port: of TCP, or of the connection manager
 * @device: NULL: the one that leads to @host, or that the other side comes over
 * @ib_port: of @device; 0: the first active one
 * @gid_index: of the address to have here; IBCHAN_AUTO: as the route says
 */
struct talk_options {
	const char *host;
	const char *port;
	const char *device;
	__u32 ib_port;
	__u32 gid_index;
};

/**
 * struct talk - one conversation
 * @by_address: 1: over a channel; 0: over @tcp
 * @timeout_s: for each wait, in seconds; 0: no limit
 * @name: of the other side
 * @tcp: where @by_address is 0
 * @options: as given
 * @source: the address to have here; empty: as the route says
 * @number: tells this client's connections from those of others
 * @listener: of the server, for both channels
 * @context: and so on to @channel: in the order of their making; the first two
 *	are for the second channel, too, and talk_end() leaves them
 * @memory: one slot for what goes out, and TALK_SLOTS for what comes in
 * @lengths: of the messages that wait
 * @first: slot of the message that waits longest
 * @waiting: how many do
 * @error: of the first receive that failed: no message comes any more; 0: none
 */
struct talk {
	int by_address;
	int timeout_s;
	char name[sizeof(((struct tcp *)0)->name)];
	struct tcp tcp;
	struct talk_options options;
	char source[TALK_TEXT];
	__u64 number;
	struct ibchan_listener *listener;
	struct ibchan_context *context;
	struct ibchan_device *device;
	struct ibchan_pd *pd;
	struct ibchan_cq *cq;
	struct ibchan_mr *mr;
	struct ibchan_channel *channel;
	__u8 memory[TALK_SLOTS + 1][TALK_SIZE];
	__u32 lengths[TALK_SLOTS];
	__u32 first;
	__u32 waiting;
	int error;
};

/* All return 0, or -1 after a message, but for a connection that failed before. */
int talk_begin(struct talk *talk);
int talk_write(struct talk *talk, const void *buf, size_t len);
int talk_read(struct talk *talk, void *buf, size_t len);
void talk_end(struct talk *talk);

/* Connects a second channel, which is for the data; the other side does it, too. */
int talk_connect(struct talk *talk, struct ibchan_prepared *prepared,
		 struct ibchan_channel **channel);

/* Over a channel only: that this side is still at it, which makes no message. */
int talk_tell_alive(struct talk *talk);

/* Made by talk_address.c for talk.c: the same, for conversations over a channel. */
int talk_by_address(struct talk *talk);
int talk_post_slot(struct talk *talk, struct ibchan_channel *channel, __u32 slot);
__s64 talk_timeout_ns(const struct talk *talk);

#endif /* _IBCHAN_TALK_H */
