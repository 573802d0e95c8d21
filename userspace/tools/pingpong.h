/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ibchan pingpong: two processes, one channel, data that is checked.
 *
 *	pingpong.c	options, and the conversation of the two sides
 *	talk.c		how they converse: by TCP, or over a channel of its own
 *	side.c		one side's objects: from the device to the channel
 *	traffic.c	the messages
 *	report.c	the figures
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

/**
 * struct plan - the work of both sides, which the client chooses
 * @op: IBCHAN_OP_SEND, _WRITE or _READ
 * @phases: PHASE_*
 * @size: bytes of a message
 * @iters: messages of a phase; rounds there and back when latency is measured
 * @depth: messages in flight when bandwidth is measured; slots of each buffer
 */
struct plan {
	__u32 op;
	__u32 phases;
	__u32 size;
	__u32 iters;
	__u32 depth;
};

#define TALK_BYTES	128	/* of the longest message */

/**
 * struct talk - what the two sides tell each other beside the data: over a channel that
 *	ibchan_dial() connects by address, or over TCP
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
	__u32 timeout_s;
	const char *source;
	const char *device;
	struct ibchan_channel *channel;
	int fd;
	char name[1100];
};

/**
 * struct offer - from each side to the other, before they connect
 * @endpoint: with endpoints
 * @region: for the peer's writes or reads
 * @port: that a server by address listens on
 */
struct offer {
	__u8 endpoint[IBCHAN_ENDPOINT_SIZE];
	__u8 region[IBCHAN_REMOTE_REGION_SIZE];
	__be32 port;
};

/**
 * struct side - one end of the channel
 * @plan: for both ends
 * @endpoints: 1: meet by TCP and exchange endpoints; 0: connect by address
 * @ib_port: 0: the first active one
 * @mtu: bytes; 0: the largest that both sides take
 * @gid_index: IBCHAN_AUTO: by rule
 * @ack_timeout: InfiniBand code 0 to 31; IBCHAN_AUTO: as the library chooses
 * @spin: 1: wait for completions without sleeping
 * @row: 1: print one line for a program
 * @talk: with the other end; its device, if any, is this end's as well
 * @source: address that this end has by its GID index; empty: as the route says
 * @context: and so on to @channel: in the order of their making
 * @listener: of a server by address; a free port, for the channel alone
 * @prepared: with endpoints, until they are exchanged
 * @stride: from one slot to the next
 * @out: slots that this side's messages go out from
 * @in: slots that the other's arrive in
 * @mine: the bytes of @out
 * @theirs: the bytes that @in gets
 * @peer: its endpoint, with endpoints
 * @remote: the peer's slots; of its @in for a write, its @out for a read
 * @phase: that runs
 * @sent: sends, writes and reads completed in this phase
 * @received: messages received in this phase
 * @told_ns: when the peer last heard that we are alive
 * @peer_is_through: the peer has said that it got as far as this side is to get
 * @latency_ns: the client's measurement of each timed round, one way for send and write
 * @rounds: how many
 * @bandwidth_ns: time that @messages took
 * @messages: streamed
 */
struct side {
	struct plan plan;
	int endpoints;
	__u32 ib_port;
	__u32 mtu;
	__u32 gid_index;
	__u32 ack_timeout;
	int spin;
	int row;
	struct talk talk;
	char source[64];
	struct ibchan_context *context;
	struct ibchan_device *device;
	struct ibchan_pd *pd;
	struct ibchan_mr *out_mr;
	struct ibchan_mr *in_mr;
	struct ibchan_cq *cq;
	struct ibchan_listener *listener;
	struct ibchan_prepared *prepared;
	struct ibchan_channel *channel;
	size_t stride;
	__u8 *out;
	__u8 *in;
	struct pattern mine;
	struct pattern theirs;
	struct ibchan_endpoint peer;
	struct ibchan_remote_region remote;
	__u32 phase;
	__u32 sent;
	__u32 received;
	__u64 told_ns;
	int peer_is_through;
	__u64 *latency_ns;
	__u32 rounds;
	__u64 bandwidth_ns;
	__u32 messages;
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

/* report.c */
void report_path(const struct side *side);
void report_result(const struct side *side);

#endif /* _IBCHAN_PINGPONG_H */
