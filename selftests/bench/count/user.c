// SPDX-License-Identifier: GPL-2.0-only
/*
 * The library's side of the counted program: its objects for the module's channel, region and
 * ring, filled in as far as a post and a poll look at them.
 */
#include <stdlib.h>

#include "internal.h"

#include "count.h"

/* See struct ibchan_shared_ring: each part begins with a cache line. */
#define TAIL_AT		64
#define HEAD_AT		128
#define ENTRIES_AT	192

static __u32 guard = GUARD_PARENT;
static struct ibchan_context context = { .guard = &guard, .fd = -1 };
static struct ibchan_cq cq;
static struct ibchan_channel channel;
static struct ibchan_mr mr;
static char memory[COUNT_WORKS * COUNT_BYTES];
static struct ibchan_submit_wr wrs[COUNT_WORKS];
static struct ibchan_submit_sge sges[COUNT_WORKS];
static const struct ibchan_remote_region remote = {
	.addr = 1 << 20, .length = 1 << 20, .rkey = 1,
};

static void name_object(struct object *object, __u32 handle)
{
	object->context = &context;
	object->handle = handle;
}

static void set_up_cq(void)
{
	name_object(&cq.object, COUNT_CQ);
	cq.ring.base = count_ring;
	cq.ring.tail = (__u32 *)(count_ring + TAIL_AT);
	cq.ring.head = (__u32 *)(count_ring + HEAD_AT);
	cq.ring.cqes = (unsigned char *)count_ring + ENTRIES_AT;
	cq.ring.entry_size = sizeof(struct ibchan_cqe);
	cq.ring.entries = COUNT_RING_ENTRIES;
	cq.slots = calloc(COUNT_RING_ENTRIES, sizeof(*cq.slots));
	cq.free = SLOT_NONE;
	cq.tag = 1ULL << 63;
	cq.stale_first = SLOT_NONE;
	cq.stale_last = SLOT_NONE;
}

void count_user_init(void)
{
	int i;

	set_up_cq();
	name_object(&channel.object, COUNT_CHANNEL);
	channel.send_cq = &cq;
	channel.recv_cq = &cq;
	channel.params.max_send_sge = 4;
	channel.params.max_recv_sge = 4;
	name_object(&mr.object, COUNT_MR);
	mr.addr = memory;
	mr.length = sizeof(memory);
	for (i = 0; i < COUNT_WORKS; i++) {
		sges[i] = ibchan_sge_unchecked(&mr, i * COUNT_BYTES, COUNT_BYTES);
		wrs[i] = ibchan_wr_write(&channel, &sges[i], 1, &remote);
		wrs[i].wr_id = i;
	}
}

static int poll_all(int left)
{
	struct ibchan_cqe completions[COUNT_WORKS];
	int i, n;

	while (left) {
		n = ibchan_cq_poll(&cq, completions, COUNT_WORKS);
		if (n <= 0)
			return n ? n : -EAGAIN;
		for (i = 0; i < n; i++)
			if (completions[i].error)
				return completions[i].error;
		left -= n;
	}
	return 0;
}

static int count_run(const struct count_shape *shape)
{
	int i, err = 0;

	if (shape->blocking)
		return ibchan_write(&channel, sges, 1, &remote, IBCHAN_TIMEOUT_NEVER, NULL);
	for (i = 0; !err && i < shape->works; i += shape->chain)
		err = ibchan_post(&context, &wrs[i], shape->chain, NULL, NULL);
	return err ? err : poll_all(shape->works);
}

/* Posts and polls the works of one operation. Returns how many there were, or an errno. */
int count_user(const struct count_shape *shape)
{
	int i, err;

	for (i = 0; i < shape->works; i++)
		wrs[i].flags = shape->exclusive ? 0 : IBCHAN_WR_UNCHECKED;
	count_begin();
	err = count_run(shape);
	count_end();
	return err ? err : shape->works;
}
