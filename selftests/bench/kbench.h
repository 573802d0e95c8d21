/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The same work done by raw verbs and by each level of ibchan, in one thread
 * that holds both ends, on one device.
 */
#ifndef IBCHAN_KBENCH_H
#define IBCHAN_KBENCH_H

#include <linux/bottom_half.h>
#include <linux/jiffies.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <rdma/ib_verbs.h>

/* Deep enough for every case; the buffers hold a message for each slot. */
#define KBENCH_SLOTS	16
#define KBENCH_BYTES	SZ_256K

/* Room in each queue of a pair that is measured. */
#define KBENCH_QUEUE	64

enum kbench_operation { KBENCH_WRITE, KBENCH_READ, KBENCH_SEND };

/**
 * struct kbench_case - what is done
 * @name: in the output
 * @operation: a send includes the receive that takes it
 * @bytes: of a message
 * @depth: operations in flight
 * @chained: all of them are posted at once
 * @ops: operations of one run, a multiple of @depth
 */
struct kbench_case {
	const char *name;
	enum kbench_operation operation;
	u32 bytes;
	u32 depth;
	u32 chained;
	u32 ops;
};

/**
 * struct kbench_buffers - memory of the two ends
 * @near: of the end that posts sends, writes and reads; KBENCH_BYTES
 * @far: of the other end; KBENCH_BYTES
 */
struct kbench_buffers {
	void *near;
	void *far;
};

struct kbench_raw;
struct kbench_chan;

/**
 * struct kbench_world - everything that a run needs
 * @dev: the device
 * @buffers: shared by all ways
 * @raw: a connected pair of raw verbs
 * @chan: connected pairs of ibchan
 */
struct kbench_world {
	struct ib_device *dev;
	struct kbench_buffers buffers;
	struct kbench_raw *raw;
	struct kbench_chan *chan;
};

/**
 * struct kbench_way - how it is done
 * @name: in the output
 * @max_depth: the way can hold so many operations in flight
 * @chains: it can post several at once
 * @run: does all operations of a case; 0 or an errno
 */
struct kbench_way {
	const char *name;
	u32 max_depth;
	u32 chains;
	int (*run)(struct kbench_world *world, const struct kbench_case *test);
};

/**
 * struct kbench_address - how a queue pair reaches a peer on the same device
 * @index: entry of the GID table
 * @gid: the address
 * @mac: its link-layer address
 * @mtu: enum ib_mtu of the port
 */
struct kbench_address {
	u32 index;
	union ib_gid gid;
	u8 mac[ETH_ALEN];
	enum ib_mtu mtu;
};

struct ib_device *kbench_device_find(const char *name);
void kbench_device_release(void);
int kbench_address_find(struct ib_device *dev, struct kbench_address *address);

struct ib_qp *kbench_qp_create(struct ib_pd *pd, struct ib_cq *cq, u32 depth, u32 sge);
int kbench_qp_connect(struct ib_qp *qp, const struct ib_qp *peer,
		      const struct kbench_address *address);
int kbench_age(struct ib_device *dev);

extern const struct kbench_way kbench_raw_ways[];
extern const u32 kbench_raw_num_ways;
struct kbench_raw *kbench_raw_open(struct ib_device *dev, const struct kbench_buffers *buffers);
void kbench_raw_close(struct kbench_raw *raw);

extern const struct kbench_way kbench_chan_ways[];
extern const u32 kbench_chan_num_ways;
struct kbench_chan *kbench_chan_open(const char *device, const struct kbench_buffers *buffers);
void kbench_chan_close(struct kbench_chan *chan);

int kbench_world_open(struct kbench_world *world, const char *device);
void kbench_world_close(struct kbench_world *world);
int kbench_case_run(struct kbench_world *world, const struct kbench_case *test,
		    const struct kbench_way *way, u64 *ns);
int kbench_can(const struct kbench_way *way, const struct kbench_case *test);

extern bool kbench_moves;
int kbench_speed(const char *device);
int kbench_setup(const char *device);
int kbench_profile(const char *device, const char *name);
int kbench_allocations(const char *device);
int kbench_memory_raw(const char *device, u32 pairs);
int kbench_memory_chan(const char *device, u32 pairs);
int kbench_memory_kept(const char *device, u32 pairs);
void kbench_memory_release(void);

/* A post brings one completion, and the receive of a send another. */
static inline u32 kbench_completions(const struct kbench_case *test)
{
	return test->operation == KBENCH_SEND ? 2 : 1;
}

/*
 * Nothing has completed: soft-RoCE may be waiting for this cpu. The caller runs
 * under SCHED_IDLE, so that whoever is woken up comes first.
 */
static inline int kbench_idle(unsigned long deadline)
{
	if (time_after(jiffies, deadline))
		return -ETIMEDOUT;
	cond_resched();
	return 0;
}

/**
 * struct kbench_verbs - how a way posts and takes completions
 * @post: one operation, or a chain of them, from this slot on
 * @reap: take what has completed
 * @bh_off: bottom halves are off while operations are posted: soft-RoCE's tasklet then
 *	runs on the spot when they are on again, and nobody has to be woken up
 */
struct kbench_verbs {
	int (*post)(void *arg, const struct kbench_case *test, u32 slot);
	int (*reap)(void *arg);
	bool bh_off;
};

/**
 * struct kbench_progress - how far a run is
 * @posted: operations
 * @slot: of the next one
 * @done: completions
 */
struct kbench_progress {
	u32 posted;
	u32 slot;
	u32 done;
};

/* Posts as many operations as may be in flight. */
static __always_inline int kbench_post_round(void *arg, const struct kbench_case *test,
					     struct kbench_progress *progress,
					     const struct kbench_verbs verbs)
{
	u32 batch = test->chained ? test->depth : 1;
	u32 each = kbench_completions(test);
	int ret = 0;

	if (verbs.bh_off)
		local_bh_disable();
	while (progress->posted < test->ops && !ret &&
	       (progress->posted + batch) * each - progress->done <= test->depth * each) {
		ret = verbs.post(arg, test, progress->slot);
		progress->posted += batch;
		progress->slot += batch;
		if (progress->slot == test->depth)
			progress->slot = 0;
	}
	if (verbs.bh_off)
		local_bh_enable();
	return ret;
}

/**
 * kbench_drive - keep a case's depth of operations in flight until all are done
 * @arg: for @verbs
 * @test: the case
 * @done: counts completions, advanced by reap(), maybe also by post()
 * @verbs: how
 *
 * Inlined with what it calls, so that no way pays for calls through pointers.
 */
static __always_inline int kbench_drive(void *arg, const struct kbench_case *test, u32 *done,
					const struct kbench_verbs verbs)
{
	unsigned long deadline = jiffies + 60 * HZ;
	u32 all = test->ops * kbench_completions(test);
	struct kbench_progress progress = {};
	int ret = 0;

	*done = 0;
	while (progress.done < all && !ret) {
		ret = kbench_post_round(arg, test, &progress, verbs);
		if (!ret)
			ret = verbs.reap(arg);
		if (*done == progress.done && !ret)
			ret = kbench_idle(deadline);
		progress.done = *done;
	}
	return ret;
}

#endif /* IBCHAN_KBENCH_H */
