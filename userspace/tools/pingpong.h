/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ibchan pingpong: two processes, one channel, data that is checked.
 *
 *	pingpong.c	options, the course of a measurement, and the figures
 *	talk.c		the conversation of the two sides, by TCP or over a channel of its own
 *	side.c		one side's objects: from the device to the channel
 *	traffic.c	the messages
 */
#ifndef _IBCHAN_PINGPONG_H
#define _IBCHAN_PINGPONG_H

#include <ibchan.h>

#include "tool.h"

enum phase { PHASE_LATENCY = 1, PHASE_BANDWIDTH = 2 };

#define MAX_SIZE	0x40000000U
#define MAX_ITERS	100000000U
#define MAX_DEPTH	128U	/* so that a message's last byte tells slots apart */

/* The work of both sides, which the client chooses. */
struct plan {
	__u32 op;	/* IBCHAN_OP_SEND, _WRITE or _READ */
	__u32 phases;	/* PHASE_* */
	__u32 size;	/* bytes of a message */
	__u32 iters;	/* messages of a phase; rounds there and back when latency is measured */
	__u32 depth;	/* messages in flight when bandwidth is measured; slots of each buffer */
};

/* From each side to the other: how far it has come, and what the other needs to connect. */
struct word {
	__be32 status;
	__be32 port;				/* that a server by address listens on */
	__u8 endpoint[IBCHAN_ENDPOINT_SIZE];	/* with endpoints */
	__u8 region[IBCHAN_REMOTE_REGION_SIZE];	/* for the peer's writes or reads */
};

/* One end of the channel. */
struct side {
	struct plan plan;	/* for both ends */
	const char *host;	/* of the server; NULL: this side is the server */
	const char *port;	/* that the server listens on for the talk */
	const char *wanted;	/* device; a client has to come over the server's; NULL: any */
	__u32 endpoints;	/* 1: meet by TCP and exchange endpoints; 0: connect by address */
	__u32 ib_port;		/* 0: the first active one */
	__u32 mtu;		/* bytes; 0: the largest that both sides take */
	__u32 gid_index;	/* IBCHAN_AUTO: by rule */
	__u32 ack_timeout;	/* InfiniBand code 0 to 31; IBCHAN_AUTO: as the library chooses */
	__u32 timeout_s;	/* for each wait, in seconds; 0: no limit */
	__u32 spin;		/* 1: wait for completions without sleeping */
	__u32 row;		/* 1: print one line for a program */

	struct ibchan_channel *talk;	/* carries words; NULL: @tcp does */
	int tcp;			/* socket, or -1 */
	char peer_name[1100];		/* for messages */
	struct word told;		/* to the peer */
	struct word heard;		/* from it, the last one, until both sides got so far */
	__u64 told_ns;		/* when the peer last heard that we are alive */

	const char *source;	/* IP address of this side; NULL: as the route says, or any */
	char source_text[64];
	struct ibchan_error error;	/* why a call failed */
	struct ibchan_context *context;	/* and so on to @channel: in the order of their making */
	struct ibchan_device *device;
	struct ibchan_pd *pd;
	struct ibchan_mr *out_mr;
	struct ibchan_mr *in_mr;
	struct ibchan_cq *cq;
	struct ibchan_builder builder;
	struct ibchan_listener *listener;	/* of a server by address; at a free port */
	struct ibchan_prepared *prepared;	/* with endpoints, until they are exchanged */
	struct ibchan_channel *channel;
	size_t stride;			/* from one slot to the next */
	__u8 *out;			/* slots that this side's messages go out from */
	__u8 *in;			/* slots that the other's arrive in */
	struct pattern mine;		/* the bytes of @out */
	struct pattern theirs;		/* the bytes that @in gets */
	/* the peer's slots; of its @in for a write, its @out for a read */
	struct ibchan_remote_region remote;

	__u32 phase;		/* that runs */
	__u32 sent;		/* sends, writes and reads completed in this phase */
	__u32 received;		/* messages received in this phase */
	/* the client's measurement of each round, one way for send and write; or 0 */
	__u64 *latency_ns;
	__u64 bandwidth_ns;	/* that the stream took */
};

/* All that return int: 0, or -1 after a message. */

/* talk.c; first how long a wait may take */
__s64 limit_ns(const struct side *side);
int is_late(const struct side *side, __u64 start_ns);
/* Both sides have the client's plan then. */
int talk_open(struct side *side);
/* @ret is this side's result. Returns 0 if both sides got so far. */
int agree(struct side *side, int ret);
/* Once a second, tells the peer that this side works, and hears whether the peer does. */
int tell_busy(struct side *side);

/* side.c; the first before the talk; the second fills in what the peer is told */
int side_find_source(struct side *side);
int side_open(struct side *side);
int side_connect(struct side *side);
void side_close(struct side *side);

/* traffic.c; together with the peer, if the plan has that phase */
int traffic_phase(struct side *side, __u32 phase);

#endif /* _IBCHAN_PINGPONG_H */
