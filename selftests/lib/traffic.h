/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Verified traffic of all operations in both directions between two devices, while something
 * is done to the network, the devices or the channels.
 *
 * A round has each end receive, send, write, write with an immediate, read, fetch-and-add and
 * compare-and-swap once, at random places, and then looks at every byte of both memories: it
 * has to be what the works make of it, or, where nothing was to be changed, what it was.
 * Either all works of a round succeed, or a channel breaks and says why. Then the ranges of
 * works that nobody knows the outcome of hold byte by byte what was or what was to be, an
 * atomic's 8 bytes as a whole, each work that was accepted has completed once, and the channel
 * has broken once.
 */
#ifndef TEST_TRAFFIC_H
#define TEST_TRAFFIC_H

#include "side.h"

/* The works of one end in a round, by wr_id: what it asks for, then its receives. */
enum traffic_work {
	TRAFFIC_SEND,
	TRAFFIC_WRITE,
	TRAFFIC_WRITE_IMM,
	TRAFFIC_READ,
	TRAFFIC_ADD,
	TRAFFIC_SWAP,
	TRAFFIC_RECEIVE,
	TRAFFIC_RECEIVE_IMM,
	TRAFFIC_WORKS
};

struct traffic_end {
	struct side side;
	struct traffic_end *peer;
	struct ibchan_submit_wr wrs[TRAFFIC_WORKS];
	/* Of each work: enum ibchan_status, or one of those of traffic.c. */
	int outcome[TRAFFIC_WORKS];
	/* What each byte was when the round began, and has to be when it is over. */
	unsigned char *before;
	unsigned char *wanted;
	/* Why its channel broke in the last round, as it says; 0: it did not. */
	__u32 error;
	__u32 status;
};

/* A range that a work changes. */
struct traffic_change {
	struct traffic_end *end;
	__u32 offset;
	__u32 length;
	const int *outcome;	/* of who asked */
	const int *received;	/* of the receive; NULL: it takes none */
	bool is_answer;		/* what a read or an atomic brings back */
};

#define TRAFFIC_CHANGES	16

struct traffic {
	struct side_options options;
	const char *devices[2];
	struct traffic_end ends[2];
	struct traffic_change changes[TRAFFIC_CHANGES];
	unsigned int num_changes;
	unsigned int seed;
	/*
	 * soft-RoCE takes the peer's complaint that a request is missing as an acknowledgment
	 * of all before it, also of reads and atomics whose answer is still under way, and when
	 * that comes it completes them with success and without their data (rxe_comp.c,
	 * check_ack() and check_psn()). An answer that it does not expect, a late one for
	 * example, ends its queue pair, and the work that it waits for completes with success
	 * (COMPST_ERROR, which vm/splats knows). Where this is set such answers are counted as
	 * @unfilled if their range holds nothing but what was or what was to be.
	 */
	bool forgives_unfilled;
	/* So far. */
	unsigned long unfilled;
	unsigned long rounds;
	unsigned long breaks;
	unsigned long works;	/* that succeeded */
};

/* Between @near and @far; @traffic->options may be changed before traffic_open(). */
void traffic_init(struct traffic *traffic, const char *near, const char *far);
int traffic_open(struct traffic *traffic);
void traffic_close(struct traffic *traffic);

/* A channel has broken as it may; traffic_mend() makes both ends' channels again. */
#define TRAFFIC_BROKE	1

/* 0, TRAFFIC_BROKE, or -errno after a line that says what is wrong. */
int traffic_round(struct traffic *traffic);
int traffic_mend(struct traffic *traffic);

#endif /* TEST_TRAFFIC_H */
