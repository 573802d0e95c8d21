/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How messages go, for who tells of it: see stream.c. All of this needs the lock of the channel. */
#ifndef _LIBIBCHAN_STREAM_H
#define _LIBIBCHAN_STREAM_H

#include "message.h"

/*
 * The peer is told when half of its window is taken, when it waits for just that, and by each
 * frame that is sent anyway. The window is that of the side with fewer boxes.
 */
static inline bool is_due(const struct messages *m)
{
	return m->must_tell || 2 * (m->taken - m->told) >= m->window.size;
}

static inline bool is_taken(const struct messages *m, __u32 place)
{
	return (__s32)(m->window.taken - place) >= 0;
}

static inline bool is_ending(const struct messages *m)
{
	return m->ended || m->over;
}

/* No message comes any more that can be received. */
static inline bool is_at_end(const struct messages *m)
{
	return is_ending(m) && (!m->first || m->is_cut);
}

static inline bool has_room(const struct messages *m)
{
	return !window_is_full(&m->window) && !is_ending(m);
}

/*
 * Is a program that waits for room to go on? Where messages wait in a channel that ends, the
 * program may leave them there until it has room: its next post then fails.
 */
static inline bool is_to_wake(const struct messages *m)
{
	return m->wants_room && (has_room(m) || (is_ending(m) && !is_at_end(m)));
}

/* Has ibchan_next() something to tell its caller, or the peer? */
static inline bool has_news(const struct messages *m)
{
	return (m->first && !m->is_told) || (is_at_end(m) && !m->is_end_told) || is_to_wake(m) ||
	       (is_due(m) && !is_ending(m)) ||
	       (m->lent && (is_taken(m, m->lent->place) || is_ending(m)));
}

#pragma GCC visibility push(hidden)

/* Takes note of every frame that is there. 0 or a negative errno. */
int stream_look(struct messages *messages);

/* Tells the peer what was taken, if that is due. */
int stream_acknowledge(struct messages *messages, struct ibchan_error *error);

/* No more messages will come: why, in the words of ibchan_receive_bytes(). */
int stream_end_of(struct messages *messages);

#pragma GCC visibility pop

#endif /* _LIBIBCHAN_STREAM_H */
