/* SPDX-License-Identifier: GPL-2.0-only */
/* Where channels, cqs, small queues and regions come from; see caches.c. */
#ifndef IBCHAN_CACHES_H
#define IBCHAN_CACHES_H

#include "internal.h"

/* Places of a queue by default. */
#define IBCHAN_FEW	IBCHAN_DEFAULT_SEND_WR

/**
 * struct ibchan_few - what a queue with few places keeps, in one piece
 * @works: of struct ibchan_queue
 * @slots: the same; all complete by ibchan_work_done(), and never have a done()
 * @sges: the same
 */
struct ibchan_few {
	struct ibchan_work *works[IBCHAN_FEW];
	struct ibchan_work slots[IBCHAN_FEW];
	struct ibchan_sge sges[IBCHAN_FEW];
};

/* Not kmalloc: its next size would waste a third of it. */
extern struct kmem_cache *ibchan_channel_cache;
extern struct kmem_cache *ibchan_cq_cache;
extern struct kmem_cache *ibchan_few_cache;
extern struct kmem_cache *ibchan_mr_cache;

#endif /* IBCHAN_CACHES_H */
