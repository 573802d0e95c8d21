/* SPDX-License-Identifier: GPL-2.0-only */
/* Two ends of one process that connect by address: one asks, the other is asked. */
#ifndef TEST_SHIM_MEETING_H
#define TEST_SHIM_MEETING_H

#include "end.h"

struct meeting {
	struct ibchan_context *context;
	struct end asking;
	struct end asked;
	struct ibchan_listener *listener;
	struct ibchan_error error;
	const char *host;
	char port[8];
};

/* The listener at @host, which the asking end asks from then on: @host has to stay. */
int meeting_listen(struct meeting *m, const char *host);

/* The same with a context of its own, which meeting_end() closes, too: how that went. */
int meeting_begin(struct meeting *m, const char *host);
int meeting_end(struct meeting *m);

/* Each takes its end's prepared channel, if it succeeds. */
int meeting_ask(struct meeting *m, const struct ibchan_connect_params *params);
int meeting_answer(struct meeting *m, struct ibchan_request *request,
		   const struct ibchan_connect_params *params);

/* Asks, and takes the request. */
int meeting_request(struct meeting *m, const struct ibchan_connect_params *params,
		    struct ibchan_request **request);

/* Both ends have their channels; what came of them. */
int meeting_outcomes(struct meeting *m);

/* All of it, for who has no use for the request. */
int meeting_connect(struct meeting *m, const struct ibchan_connect_params *of_asking,
		    const struct ibchan_connect_params *of_asked);

/* Closes all but the context; how the listener's end went. */
int meeting_close(struct meeting *m);

int outcome(struct ibchan_channel *channel, struct ibchan_error *error);
void port_of(const struct ibchan_listener *listener, char *port, size_t size);
void port_of_server(const struct ibchan_server *server, char *port, size_t size);

#define CROSSING	3000

/* Bytes that depend on @seed and on their place. */
void fill(unsigned char *bytes, size_t length, unsigned int seed);

/*
 * A message of CROSSING bytes at HALF. What was posted before on the same channel has
 * arrived, too, when this has.
 */
int message_crosses(struct meeting *m, const struct end *from, const struct end *to);
int messages_cross(struct meeting *m); /* one each way */

#endif /* TEST_SHIM_MEETING_H */
