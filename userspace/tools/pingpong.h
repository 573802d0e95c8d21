/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ibchan pingpong: two processes, one channel, data that is checked.
 *
 *	pingpong.c	options, the conversation of the two sides, and the figures
 *	talk.c		how they converse: by TCP, or over a channel of its own
 *	side.c		one side's objects: from the device to the channel
 *	traffic.c	the messages
 */
#ifndef _IBCHAN_PINGPONG_H
#define _IBCHAN_PINGPONG_H

#include <ibchan.h>

#include "pattern.h"
#include "tool.h"

enum phase {
	PHASE_LATENCY = 1,
	PHASE_BANDWIDTH = 2,
};

#define MAX_SIZE	0x40000000U
#define MAX_ITERS	100000000U
#define MAX_DEPTH	128U	/* so that pattern_last() tells slots apart */

/* The work of both sides, which the client chooses. */
struct plan {
	__u32 op;	/* IBCHAN_OP_SEND, _WRITE or _READ */
	__u32 phases;	/* PHASE_* */
	__u32 size;	/* bytes of a message */
	__u32 iters;	/* messages of a phase; rounds there and back when latency is measured */
	__u32 depth;	/* messages in flight when bandwidth is measured; slots of each buffer */
};

#define TALK_BYTES	128	/* of the longest message */

/* Messages beside the data: over a channel that ibchan_dial() connects by address, or over TCP. */
struct talk {
	const char *host;	/* of the server; NULL: this side is the server */
	const char *port;	/* that the server listens on */
	__u32 timeout_s;	/* for each wait, in seconds; 0: no limit */
	const char *source;	/* IP address of this side; NULL: as the route says, or any */
	const char *device;	/* that a client has to come over; NULL: any */
	struct ibchan_channel *channel;	/* NULL: over @fd */
	int fd;			/* TCP socket, or -1 */
	char name[1100];	/* of the other side, for messages */
};

/* From each side to the other, before they connect. */
struct offer {
	__u8 endpoint[IBCHAN_ENDPOINT_SIZE];	/* with endpoints */
	__u8 region[IBCHAN_REMOTE_REGION_SIZE];	/* for the peer's writes or reads */
	__be32 port;				/* that a server by address listens on */
};

/* One end of the channel. */
struct side {
	struct plan plan;			/* for both ends */
	int endpoints;	/* 1: meet by TCP and exchange endpoints; 0: connect by address */
	__u32 ib_port;				/* 0: the first active one */
	__u32 mtu;				/* bytes; 0: the largest that both sides take */
	__u32 gid_index;			/* IBCHAN_AUTO: by rule */
	__u32 ack_timeout;	/* InfiniBand code 0 to 31; IBCHAN_AUTO: as the library chooses */
	int spin;				/* 1: wait for completions without sleeping */
	int row;				/* 1: print one line for a program */
	struct talk talk;	/* with the other end; its device, if any, is this end's as well */
	/* address that this end has by its GID index; empty: as the route says */
	char source[64];
	struct ibchan_context *context;	/* and so on to @channel: in the order of their making */
	struct ibchan_device *device;
	struct ibchan_pd *pd;
	struct ibchan_mr *out_mr;
	struct ibchan_mr *in_mr;
	struct ibchan_cq *cq;
	/* of a server by address; a free port, for the channel alone */
	struct ibchan_listener *listener;
	struct ibchan_prepared *prepared;	/* with endpoints, until they are exchanged */
	struct ibchan_channel *channel;
	size_t stride;				/* from one slot to the next */
	__u8 *out;				/* slots that this side's messages go out from */
	__u8 *in;				/* slots that the other's arrive in */
	struct pattern mine;			/* the bytes of @out */
	struct pattern theirs;			/* the bytes that @in gets */
	struct ibchan_endpoint peer;		/* its endpoint, with endpoints */
	/* the peer's slots; of its @in for a write, its @out for a read */
	struct ibchan_remote_region remote;
	__u32 phase;				/* that runs */
	__u32 sent;	/* sends, writes and reads completed in this phase */
	__u32 received;				/* messages received in this phase */
	__u64 told_ns;				/* when the peer last heard that we are alive */
	int peer_is_through;	/* the peer has said that it got as far as this side is to get */
	/* the client's measurement of each timed round, one way for send and write */
	__u64 *latency_ns;
	__u32 rounds;				/* how many */
	__u64 bandwidth_ns;			/* time that @messages took */
	__u32 messages;				/* streamed */
};

/* All that return int: 0, or -1 after a message. */

/* pingpong.c; tells the peer that this side still works, and hears whether the peer does. */
int peer_tell_busy(struct side *side);

/* talk.c */
__s64 talk_timeout_ns(const struct talk *talk);
int talk_by_address(struct talk *talk);
int talk_by_tcp(struct talk *talk);
/* The next read says whether a message was lost. */
void talk_write(struct talk *talk, const void *buf, size_t len);
/* Returns 0: @buf has the next message; 1: none has come, without @waits; -1 after a message. */
int talk_read(struct talk *talk, void *buf, size_t len, int waits);
void talk_end(struct talk *talk);

/* side.c; the first before the talk */
int side_find_source(struct side *side);
int side_open(struct side *side);
int side_offer(struct side *side, struct offer *offer);
int side_connect(struct side *side, const struct offer *theirs);
void side_close(struct side *side);

/* traffic.c; first everything that must be there before the peer begins */
int traffic_arm(struct side *side, __u32 phase);
int traffic_run(struct side *side);
int traffic_verify(struct side *side);

#endif /* _IBCHAN_PINGPONG_H */
