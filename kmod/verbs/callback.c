// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tells lockdep of callbacks. Around each done(), broken() and call of a sink, and at the top of
 * each call that may call back in its own context, the cq counts as a lock, which those calls wait
 * for: lockdep finds a lock that a callback takes and that is held around such a call the first
 * time that it sees both. Cqs that were made at one place of a consumer are one class.
 *
 * A callback within a callback is told by the outer one: nobody waits for the inner cq there.
 * Bottom halves are off, as in a callback. broken() may come where interrupts are off, also in
 * one: no call that may call back comes there.
 */
#include <linux/bottom_half.h>
#include <linux/irqflags.h>
#include <linux/lockdep.h>
#include <linux/module.h>

#include "private.h"

#ifdef CONFIG_LOCKDEP
/* For callbacks of all cqs. It is taken as a trylock is, so locks held before it do not count. */
static struct lockdep_map in_callback_map =
	STATIC_LOCKDEP_MAP_INIT("ibchan_in_callback", &in_callback_map);

void ibchan_callback_init(struct ibchan_cq *cq, struct lock_class_key *class)
{
	lockdep_init_map(&cq->callback_map, "ibchan_callback", class, 0);
}

/*
 * A callback of @cq begins. broken() is one of both cqs of its channel: the second one is @other,
 * which is NULL elsewhere. Returns 1, or 0 within another callback; ibchan_callback_end() takes it.
 */
int ibchan_callback_begin(struct ibchan_cq *cq, struct ibchan_cq *other)
{
	int begins = !irqs_disabled() && !lock_is_held(&in_callback_map);

	if (!begins)
		return 0;
	lock_map_acquire(&cq->callback_map);
	if (other && other->callback_map.key != cq->callback_map.key)
		lock_map_acquire(&other->callback_map);
	lock_acquire_exclusive(&in_callback_map, 0, 1, NULL, _THIS_IP_);
	return 1;
}

void ibchan_callback_end(struct ibchan_cq *cq, struct ibchan_cq *other, int begun)
{
	if (!begun)
		return;
	lock_release(&in_callback_map, _THIS_IP_);
	if (other && other->callback_map.key != cq->callback_map.key)
		lock_map_release(&other->callback_map);
	lock_map_release(&cq->callback_map);
}

void ibchan_callback_may_come(struct ibchan_cq *cq)
{
	local_bh_disable();
	ibchan_callback_end(cq, NULL, ibchan_callback_begin(cq, NULL));
	local_bh_enable();
}
#endif

/**
 * ibchan_in_callback - does the caller run within a callback, as far as lockdep knows?
 *
 * For what a consumer wants to be sure of, as lockdep_assert_held() is.
 *
 * Context: any.
 * Return: 1 or 0; -1 on a kernel without lockdep.
 */
int ibchan_in_callback(void)
{
#ifdef CONFIG_LOCKDEP
	return lock_is_held(&in_callback_map);
#else
	return -1;
#endif
}
EXPORT_SYMBOL_NS_GPL(ibchan_in_callback, IBCHAN_NS);
