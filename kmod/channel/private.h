/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the files of channel/. */
#ifndef IBCHAN_CHANNEL_PRIVATE_H
#define IBCHAN_CHANNEL_PRIVATE_H

#include "channel.h"

/* build.c */
extern struct kmem_cache *ibchan_channel_cache;
void ibchan_channel_leak(struct ibchan_channel *ch);
void ibchan_channel_release_queues(struct ibchan_channel *ch);
void ibchan_channel_drop_cqs(struct ibchan_channel *ch);
void ibchan_channel_free(struct rcu_head *rcu);

/* channel.c */
int ibchan_channel_refuse_broken(const struct ibchan_channel *ch, struct ibchan_reason *reason);

/* close.c */
void ibchan_channel_close_work(struct work_struct *work);

/* break.c */
bool ibchan_channel_move_state(struct ibchan_channel *ch, u32 to);
bool ibchan_channel_change_state(struct ibchan_channel *ch, u32 to);
void ibchan_channel_await_posters(struct ibchan_channel *ch);
bool ibchan_channel_has_posted(const struct ibchan_channel *ch);
bool ibchan_channel_is_unused(const struct ibchan_channel *ch);
void ibchan_queue_retire_rest(struct ibchan_queue *queue);
void ibchan_channel_break_turn(struct ibchan_turn *turn);
void ibchan_channel_cause_turn(struct ibchan_turn *turn);

#endif /* IBCHAN_CHANNEL_PRIVATE_H */
