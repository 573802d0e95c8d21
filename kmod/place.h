/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether a region's pages are still where its owner registered them: see place.c.
 * Inline is what a post asks.
 */
#ifndef IBCHAN_PLACE_H
#define IBCHAN_PLACE_H

#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/uaccess.h>

#include "fault.h"
#include "internal.h"

/* What a post may copy, in bytes: for a soft device to find them costs more. */
#define IBCHAN_MAX_COPIED	64U

#if IS_ENABLED(CONFIG_MMU_NOTIFIER)
void ibchan_place_watch(struct ibchan_mr *mr);
void ibchan_place_leave(struct ibchan_mr *mr);
void ibchan_place_end(struct ibchan_pd *pd);
void ibchan_place_keep(struct ibchan_pd *pd);
#else
static inline void ibchan_place_watch(struct ibchan_mr *mr)
{
}

static inline void ibchan_place_leave(struct ibchan_mr *mr)
{
}

static inline void ibchan_place_end(struct ibchan_pd *pd)
{
}

static inline void ibchan_place_keep(struct ibchan_pd *pd)
{
}
#endif

#define ibchan_copy_step(type, to, from, length, fault)			\
do {									\
	unsafe_get_user(*(type *)(to), (const type __user *)(from), fault); \
	(to) += sizeof(type);						\
	(from) += sizeof(type);						\
	(length) -= sizeof(type);					\
} while (0)

/* Word by word, by fours: so few bytes are not worth a string instruction. */
static __always_inline bool ibchan_copy_words(u8 *to, const u8 __user *from, u32 length)
{
	if (!user_read_access_begin(from, length))
		return false;
	while (length >= 4 * sizeof(long)) {
		ibchan_copy_step(unsigned long, to, from, length, fault);
		ibchan_copy_step(unsigned long, to, from, length, fault);
		ibchan_copy_step(unsigned long, to, from, length, fault);
		ibchan_copy_step(unsigned long, to, from, length, fault);
	}
	while (length >= sizeof(long))
		ibchan_copy_step(unsigned long, to, from, length, fault);
	while (length)
		ibchan_copy_step(u8, to, from, length, fault);
	user_read_access_end();
	return true;
fault:
	user_read_access_end();
	return false;
}

/**
 * ibchan_place_copy - copy a few bytes of a region, by their owner's address
 * @mr: the region
 * @offset: where in it; inside
 * @length: bytes
 * @to: aligned for a word; garbage if this fails
 *
 * Fails in another process than the owner's, in an interrupt, and where another page may be
 * at the address, or none that can be read now.
 *
 * Context: any; may be atomic.
 * Return: whether @to holds what lies in the registered pages.
 */
static __always_inline bool ibchan_place_copy(struct ibchan_mr *mr, u64 offset, u32 length,
					      u8 *to)
{
	struct mm_struct *mm = READ_ONCE(mr->in_place);
	bool copied;

	if (!mm || mm != current->mm || !in_task())
		return false;
	ibchan_fault_linger(IBCHAN_WINDOW_COPYING);
	pagefault_disable();
	copied = ibchan_copy_words(to, u64_to_user_ptr(mr->addr + offset), length);
	pagefault_enable();
	/* An address that cannot be read is not tried again: each try is a fault. */
	if (unlikely(!copied))
		WRITE_ONCE(mr->in_place, NULL);
	/* Pairs with mark_changed(): what was read of another page is not used. */
	smp_rmb();
	return copied && READ_ONCE(mr->in_place);
}

#endif /* IBCHAN_PLACE_H */
