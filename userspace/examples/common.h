/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The way to a channel, for the examples with two processes. One side waits, the other connects to
 * it by IP address; neither has to name a device, a port of one or a GID.
 *
 * An example ends with a sentence and exit code 1 when something fails.
 */
#ifndef _EXAMPLES_COMMON_H
#define _EXAMPLES_COMMON_H

#include <ibchan.h>
#include <stddef.h>

/**
 * struct options - the command line: [-d DEVICE] [-p PORT] [-n CLIENTS] [-e] [HOST]
 * @device: NULL: the one that leads to the other side
 * @host: IP address or name of the other side; NULL: wait for it
 * @port: where one side waits
 * @clients: how many a server waits for
 * @endpoints: exchange endpoints by TCP instead, see endpoints.h
 */
struct options {
	const char *device;
	const char *host;
	const char *port;
	int clients;
	int endpoints;
};

/**
 * struct side - one side of a channel; zero where nothing was made
 * @context: the open file, and all that is below
 * @listener: of the side that waits
 * @request: the first one that came there
 * @device: an RDMA device
 * @pd: where memory and channels meet
 * @cq: for everything
 * @channel: connected
 */
struct side {
	struct ibchan_context *context;
	struct ibchan_listener *listener;
	struct ibchan_request *request;
	struct ibchan_device *device;
	struct ibchan_pd *pd;
	struct ibchan_cq *cq;
	struct ibchan_channel *channel;
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

#endif /* _EXAMPLES_COMMON_H */
