/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The way to a channel, for the examples with two processes. One side waits for a peer at any
 * address of this machine, the other connects to one of these.
 *
 * With -e they go the other way: two programs that have a connection already, here by TCP, tell
 * each other their endpoints over it. It works between any two devices that reach each other, where
 * a connection by address needs an IP address that leads there.
 *
 * An example ends with a sentence and exit code 1 when something fails.
 */
#ifndef _EXAMPLES_COMMON_H
#define _EXAMPLES_COMMON_H

#include <ibchan.h>

/* One side of a channel. */
struct side {
	/* The command line: [-d DEVICE] [-p PORT] [-e] [HOST] */
	const char *name;	/* of the device; NULL: the one that the connection goes over */
	const char *host;	/* IP address or name of the other side; NULL: wait for it */
	const char *port;	/* where one side waits */
	int endpoints;		/* exchange endpoints by TCP instead */

	struct ibchan_context *context;		/* the open file, and all that is below */
	struct ibchan_device *device;		/* an RDMA device */
	struct ibchan_listener *listener;	/* of the side that waits; with -e none */
	struct ibchan_request *request;		/* of its first client */
	struct ibchan_pd *pd;			/* where memory and channels meet */
	struct ibchan_cq *cq;			/* for everything */
	struct ibchan_builder builder;		/* of channels with these two */
	struct ibchan_channel *channel;		/* connected */
};

/* Where calls leave the details of what went wrong; must() tells them. */
extern struct ibchan_error error;

/* Says what failed, and why, and exits; returns @ret if it is not negative. */
int must(const char *what, int ret);

/* Without details, for what is no call of ibchan. */
void check(const char *what, int condition);

/* All but the channel. */
void side_open(struct side *side, int argc, char **argv);

/* Connects @side->channel. */
void side_connect(struct side *side);

/* Returns when the works of both sides have ended: neither closes too early. */
void side_part(struct side *side);

#endif /* _EXAMPLES_COMMON_H */
