/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A peer by address that has no queue pair: it says all that the connection manager
 * wants to hear, and nothing ever answers what is sent to it. It speaks to the kernel's
 * rdma_cm directly.
 */
#ifndef TEST_GHOST_H
#define TEST_GHOST_H

#include <stdbool.h>

#include <linux/ibchan.h>
#include <rdma/rdma_user_cm.h>

#define GHOST_HEADER	8

struct ghost {
	int fd;
	__u32 id;	/* who asks, and who listens */
	__u32 asker;	/* of who has asked */
	__u32 qpn;		/* of its queue pair; 0: one that no device gives out */
	const void *data;	/* goes with what it says */
	__u8 header[GHOST_HEADER];	/* of an ibchan: ghost_speak() */
	__u8 length;
	__u8 srq;		/* these two bits, too */
	__u8 flow_control;
	int more_reads;		/* serves so many at a time beside one; -1: none */
	int more_started;	/* wants to have so many in flight beside one; -1: none */
	struct rdma_ucm_conn_param asked;	/* by who has asked */
	struct rdma_ucm_conn_param told;	/* by who has accepted, or rejected */
};

/* What it says next says an ibchan: it asks, or answers. It takes writes. */
void ghost_speak(struct ghost *ghost, bool answers);

/*
 * Begins to ask @peer; ghost_connected() goes on when that has accepted. Without that the peer
 * waits, and hears nothing.
 */
int ghost_ask(struct ghost *ghost, const struct ibchan_address *peer);
int ghost_connected(struct ghost *ghost);
int ghost_rejected(struct ghost *ghost); /* in place of that */
int ghost_disconnected(struct ghost *ghost);	/* after that */

/* Whether something has been said to who asked: for eventually(). It has not reacted. */
bool ghost_is_answered(void *ghost);

/*
 * Listens at @address, whose port is not 0. ghost_asked() waits for who asks: with @ghost->data,
 * ghost_yes() accepts, and ghost_no() rejects.
 */
int ghost_listen(struct ghost *ghost, const struct ibchan_address *address);
int ghost_asked(struct ghost *ghost);
int ghost_yes(struct ghost *ghost);
int ghost_no(struct ghost *ghost);
int ghost_accept(struct ghost *ghost); /* whoever asks */

/* The other side hears of this. Idempotent. */
void ghost_close(struct ghost *ghost);

#endif /* TEST_GHOST_H */
