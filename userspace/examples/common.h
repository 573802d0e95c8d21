/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the examples with two processes have in common: a TCP connection over which
 * the two get to know each other, and the way from there to a channel.
 *
 * An example ends with a sentence and exit code 1 when something fails.
 */
#ifndef _EXAMPLES_COMMON_H
#define _EXAMPLES_COMMON_H

#include <ibchan.h>
#include <stddef.h>

/**
 * struct options - what the command line says: [-d DEVICE] [-p PORT] [-n CLIENTS] [HOST]
 * @device: NULL: the first one
 * @host: of the other side; NULL: wait for it
 * @port: TCP
 * @clients: how many a server waits for
 */
struct options {
	const char *device;
	const char *host;
	const char *port;
	int clients;
};

/**
 * struct side - one side of a channel; zero where nothing was made
 * @context: the open file, and all that is below
 * @device: an RDMA device
 * @pd: where memory and channels meet
 * @cq: for everything
 * @channel: connected
 */
struct side {
	struct ibchan_context *context;
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

/* Without details, for what is no call of ibchan. */
void check(const char *what, int condition);

/* A listening socket; a connection from it, or to @options->host. */
int tcp_listen(const struct options *options);
int tcp_accept(int listener);
int tcp_connect(const struct options *options);

/* The connection that the roles ask for: who has no host waits for the other. */
int meet(const struct options *options);

/* Sends @length bytes and receives as many; both sides do it at the same time. */
void swap(int tcp, const void *mine, void *theirs, size_t length);

/* Returns when the other side has come here, too: nobody closes too early. */
void part(int tcp);

void side_open(struct side *side, const struct options *options);

/* A channel of @side to the process at the other end of @tcp. */
struct ibchan_channel *channel_open(struct side *side, int tcp);

#endif /* _EXAMPLES_COMMON_H */
