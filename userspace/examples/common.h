/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The way to a channel, for the examples with two processes. One side waits, the other connects to
 * it by IP address; neither has to name a device, a port of one or a GID.
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
#include <stddef.h>

/* The command line: [-d DEVICE] [-p PORT] [-n CLIENTS] [-e] [HOST] */
struct options {
	const char *device;	/* NULL: the one that leads to the other side */
	const char *host;	/* IP address or name of the other side; NULL: wait for it */
	const char *port;	/* where one side waits */
	int clients;		/* how many a server waits for */
	int endpoints;		/* exchange endpoints by TCP instead */
};

/* One side of a channel; zero where nothing was made. */
struct side {
	struct ibchan_context *context;		/* the open file, and all that is below */
	struct ibchan_listener *listener;	/* of the side that waits */
	struct ibchan_request *request;		/* the first one that came there */
	struct ibchan_device *device;		/* an RDMA device */
	struct ibchan_pd *pd;			/* where memory and channels meet */
	struct ibchan_cq *cq;			/* for everything */
	struct ibchan_channel *channel;		/* connected */
};

/* Where calls leave the details of what went wrong; must() tells them. */
extern struct ibchan_error error;

void options_read(struct options *options, int argc, char **argv);

/* Says what failed, and why, and exits; returns @ret if it is not negative. */
int must(const char *what, int ret);

/* Whether that is how a peer that has given up meanwhile makes an accept fail. */
int gave_up(int ret);

/* Without details, for what is no call of ibchan. */
void check(const char *what, int condition);

/* The waiting side returns when a peer asks: only then it knows over which device. */
void side_open(struct side *side, const struct options *options);

/* A channel to be of @side. */
struct ibchan_prepared *side_prepare(struct side *side);

/*
 * Connects @side->channel. @length bytes of @mine, up to 56, are what the other side gets
 * as @theirs; both say the same @length, or 0.
 */
void side_connect(struct side *side, const struct options *options, const void *mine,
		  void *theirs, size_t length);

/* Returns when the works of both sides have ended: neither closes too early. */
void side_part(struct side *side, const struct options *options);

/* A listening socket; a connection from it. */
int tcp_listen(const struct options *options);
int tcp_accept(int listener);

/* A channel to the process at the other end of @tcp; NULL when that is gone. */
struct ibchan_channel *endpoints_connect(struct ibchan_prepared *prepared, int tcp);

#endif /* _EXAMPLES_COMMON_H */
