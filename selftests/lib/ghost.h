/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A peer by address that has no queue pair: it says all that the connection manager
 * wants to hear, and nothing ever answers what is sent to it. It speaks to the kernel's
 * rdma_cm directly.
 */
#ifndef TEST_GHOST_H
#define TEST_GHOST_H

#include <linux/ibchan.h>
#include <rdma/rdma_user_cm.h>

struct ghost {
	int fd;
	__u32 id;	/* who asks, and who listens */
	int takes_writes;	/* says that it answers keepalives */
	int more_reads;		/* serves so many at a time beside one; -1: none */
	int more_started;	/* wants to have so many in flight beside one; -1: none */
	struct rdma_ucm_conn_param told;	/* by who has accepted */
};

/* Begins to ask @peer; ghost_connected() goes on when that has accepted. */
int ghost_ask(struct ghost *ghost, const struct ibchan_address *peer);
int ghost_connected(struct ghost *ghost);

/* Listens at @address, whose port is not 0; ghost_accept() waits for who asks. */
int ghost_listen(struct ghost *ghost, const struct ibchan_address *address);
int ghost_accept(struct ghost *ghost);

/* The other side hears of this. Idempotent. */
void ghost_close(struct ghost *ghost);

#endif /* TEST_GHOST_H */
