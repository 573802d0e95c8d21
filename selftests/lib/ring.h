/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The completion ring, mapped and read by hand as the contract says.
 */
#ifndef TEST_RING_H
#define TEST_RING_H

#include <stdbool.h>
#include <stddef.h>

#include "cmd.h"

#define RING_STASH	2048

struct ring {
	int file;	/* of /dev/ibchan */
	int fd;		/* the queue's own, pollable */
	__u32 cq;
	size_t size;
	const struct ibchan_ring *header;
	__u32 *tail;
	__u32 *head;
	/* Read from the ring, and not yet asked for. */
	struct ibchan_cqe stash[RING_STASH];
	unsigned int stashed;
};

/* Maps what @cmd created. */
int ring_map(struct ring *ring, int file, const struct ibchan_cmd_cq_create *cmd);
/* Gives back the mapping and the descriptor; the handle stays. */
void ring_unmap(struct ring *ring);

/* Unread completions as user space sees them. */
unsigned int ring_unread(const struct ring *ring);
/* Takes up to @max of them. */
unsigned int ring_read(struct ring *ring, struct ibchan_cqe *cqes, unsigned int max);
/* Waits until @min unread ones are there; @ms below 0: without end. */
int ring_wait(struct ring *ring, unsigned int min, long ms);

/* The completion of @wr_id, whatever else completes before; -ETIMEDOUT when patience ends. */
int ring_complete(struct ring *ring, __u64 wr_id, struct ibchan_cqe *cqe);
/* How many completions were read and never asked for; must be 0 when all are accounted for. */
unsigned int ring_surplus(struct ring *ring);

/*
 * Has its head say that more was read than came. poll() is what finds that: 0 if it does, and
 * the file is broken from then on.
 */
int ring_spoil(struct ring *ring);

#endif /* TEST_RING_H */
