/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Two sides of a pingpong tell each other short messages beside the data: over a channel that
 * ibchan_dial() connects by address, or over TCP.
 */
#ifndef _IBCHAN_TALK_H
#define _IBCHAN_TALK_H

#include <ibchan.h>
#include <stddef.h>

#define TALK_BYTES	128	/* of the longest message */

/**
 * struct talk - one conversation
 * @host: of the server; NULL: this side is the server
 * @port: that the server listens on
 * @timeout_s: for each wait, in seconds; 0: no limit
 * @source: IP address of this side; NULL: as the route says, or any
 * @device: that a client has to come over; NULL: any
 * @channel: NULL: over @fd
 * @fd: TCP socket, or -1
 * @name: of the other side, for messages
 */
struct talk {
	const char *host;
	const char *port;
	int timeout_s;
	const char *source;
	const char *device;
	struct ibchan_channel *channel;
	int fd;
	char name[1100];
};

__s64 talk_timeout_ns(const struct talk *talk);

/* Return 0, or -1 after a message. */
int talk_by_address(struct talk *talk);
int talk_by_tcp(struct talk *talk);

/* The next read says whether a message was lost. */
void talk_write(struct talk *talk, const void *buf, size_t len);

/* Returns 0: @buf has the next message; 1: none has come, without @waits; -1 after a message. */
int talk_read(struct talk *talk, void *buf, size_t len, int waits);
void talk_end(struct talk *talk);

#endif /* _IBCHAN_TALK_H */
