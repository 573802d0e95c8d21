// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of what comes and goes with a connection, and of regions.
 *
 * Distribution kernels clear whatever they hand out. Of a channel that is most of the work
 * of making one, and all for scratch space. A cache with a constructor is spared it: an
 * object is cleared when its slab is made, and comes back as the last owner of the same
 * kind has left it. So the code that takes one clears what it reads before it writes, and
 * the scratch space lies behind that.
 */
#include <linux/errno.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "caches.h"
#include "init.h"
#include "work.h"

struct kmem_cache *ibchan_channel_cache;
struct kmem_cache *ibchan_cq_cache;
struct kmem_cache *ibchan_few_cache;
struct kmem_cache *ibchan_mr_cache;

static void channel_construct(void *object)
{
	memset(object, 0, sizeof(struct ibchan_channel));
}

static void cq_construct(void *object)
{
	memset(object, 0, sizeof(struct ibchan_cq));
}

static void few_construct(void *object)
{
	struct ibchan_few *few = object;
	u32 i;

	memset(few, 0, sizeof(*few));
	for (i = 0; i < IBCHAN_FEW; i++)
		few->slots[i].cqe.done = ibchan_work_done;
}

static void mr_construct(void *object)
{
	memset(object, 0, sizeof(struct ibchan_mr));
}

/* Before the first device. */
int ibchan_caches_init(void)
{
	ibchan_channel_cache = kmem_cache_create("ibchan_channel", sizeof(struct ibchan_channel),
						 0, SLAB_HWCACHE_ALIGN, channel_construct);
	ibchan_cq_cache = kmem_cache_create("ibchan_cq", sizeof(struct ibchan_cq),
					    0, SLAB_HWCACHE_ALIGN, cq_construct);
	ibchan_few_cache = kmem_cache_create("ibchan_few", sizeof(struct ibchan_few),
					     0, SLAB_HWCACHE_ALIGN, few_construct);
	ibchan_mr_cache = kmem_cache_create("ibchan_mr", sizeof(struct ibchan_mr),
					    0, 0, mr_construct);
	if (ibchan_channel_cache && ibchan_cq_cache && ibchan_few_cache && ibchan_mr_cache)
		return 0;
	ibchan_caches_fini();
	return -ENOMEM;
}

/* After the last one; some memory waits for a grace period. */
void ibchan_caches_fini(void)
{
	rcu_barrier();
	kmem_cache_destroy(ibchan_mr_cache);
	kmem_cache_destroy(ibchan_few_cache);
	kmem_cache_destroy(ibchan_cq_cache);
	kmem_cache_destroy(ibchan_channel_cache);
}
