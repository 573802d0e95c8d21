/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An id of the connection manager that asks a listener, and says itself when it has heard
 * of the answer: a channel says so at once.
 */
#ifndef KCLIENT_ASKER_H
#define KCLIENT_ASKER_H

#include <rdma/rdma_cm.h>

#include "meeting.h"

/**
 * struct asker - asks, and keeps what it heard to itself
 * @w: the world
 * @id: its connection; NULL when it has none
 * @answered: it was accepted
 * @rejected: it was sent away
 * @ended: it was told of the end
 * @device_left: with its id
 */
struct asker {
	struct world *w;
	struct rdma_cm_id *id;
	int answered;
	int rejected;
	int ended;
	int device_left;
};

int asker_is_left(struct asker *asker, struct meeting *m, u32 connect_ms);
int asker_hears(struct asker *asker);
void asker_end(struct asker *asker);

#endif /* KCLIENT_ASKER_H */
