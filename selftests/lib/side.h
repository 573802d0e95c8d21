/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One side of a connection with everything that it needs, and two of them as a pair.
 */
#ifndef TEST_SIDE_H
#define TEST_SIDE_H

#include "ring.h"

struct side_options {
	const char *device;
	size_t memory;
	__u32 mr_access;
	__u32 ring_entries;
	__u32 cq_entries;
	__u32 cq_flags;		/* IBCHAN_CQ_CREATE_... */
	struct ibchan_params params;
	struct ibchan_options options;
};

/* 67 ms: within half a second a peer that has gone is given up, for tests that wait for that. */
#define QUICK_ACK_TIMEOUT	14

/* What most tests take: the builder's defaults, shared memory of 64 KiB; peers go quickly. */
struct side_options side_defaults(void);
struct ibchan_params default_params(void);

struct side {
	int fd;
	__u32 device;
	__u32 pd;
	__u32 channel;
	__u32 mr;
	__u32 rkey;
	struct ring *ring;	/* own_ring, or that of another side of the same file */
	struct ring own_ring;
	unsigned char *memory;
	size_t length;
	struct ibchan_params params;
	struct ibchan_endpoint endpoint;
	struct ibchan_reason reason;	/* what the last command that can tell one has told */
};

/* A new file, with a channel that has no peer yet. */
int side_open(struct side *side, const struct side_options *options);
/* Another channel and other memory in @host's file, pd and queue. */
int side_share(struct side *side, const struct side *host, const struct side_options *options);
/* Gives all of it back by closing it; idempotent. */
void side_close(struct side *side);

/* The steps of side_open() after the file and the device, for tests that take them apart. */
int side_cq(struct side *side, const struct side_options *options);
int side_memory(struct side *side, const struct side_options *options);
int side_channel(struct side *side, const struct side_options *options);

/* What its device says of itself. */
int side_device(const struct side *side, struct ibchan_cmd_device_query *cmd);
bool is_soft_roce(const struct side *side);
/* How many bytes of inline data DEVICE_A takes, at most @wanted: only asking tells. */
__u32 inline_room(__u32 wanted);

int side_handshake(struct side *side, const struct ibchan_endpoint *peer);
int side_query(const struct side *side, struct ibchan_cmd_channel_query *cmd);
/* enum ibchan_channel_state, or -errno. */
int side_state(const struct side *side);
/* What its channel remembers, at most @num events: how many there are, or -errno. */
int read_history(const struct side *side, struct ibchan_history_event *events, unsigned int num);

/* Opens @asking, which asks at a new listener of @asked's file; nobody takes its request. */
int side_ask(struct side *asking, const struct side *asked,
	     struct ibchan_cmd_listener_create *listen);

/* Takes the next request of a listener, whose file @listener_fd is, and accepts it. */
int side_accept(const struct side *side, __u32 listener, int listener_fd);
int side_accept_any(const struct side *side, __u32 listener, int listener_fd, __u32 flags);

enum pair_shape {
	PAIR_LOOPED,		/* one channel that is its own peer */
	PAIR_SAME_DEVICE,	/* two files, one device */
	PAIR_TWO_DEVICES,	/* two files, two devices */
	PAIR_ONE_CQ,		/* two channels of one file on one completion queue */
};

struct pair {
	struct side sides[2];
	struct side *a;
	struct side *b;	/* a again when looped */
};

/* Builds both sides and connects them; @options' device is the first one. */
int pair_open(struct pair *pair, enum pair_shape shape, const struct side_options *options);
int pair_build(struct pair *pair, enum pair_shape shape, const struct side_options *options);
int pair_connect(struct pair *pair);
void pair_close(struct pair *pair);

#endif /* TEST_SIDE_H */
