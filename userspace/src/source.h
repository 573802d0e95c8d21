/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The sources that ibchan_next() has to ask: see source.c. */
#ifndef _LIBIBCHAN_SOURCE_H
#define _LIBIBCHAN_SOURCE_H

#include "internal.h"

/* The answer of a source. */
enum told {
	TOLD_NOTHING,
	TOLD_LATER,	/* nothing now; to be asked again soon, for which no descriptor tells */
	TOLD_LAST,	/* the happening was filled in */
	TOLD_MORE,	/* the same, and there is more to tell */
};

#define source_of(source, type)	((type *)((char *)(source) - offsetof(type, source)))

#pragma GCC visibility push(hidden)

/* There may be something to tell. Any lock may be held but happenings.lock. */
void source_add(struct ibchan_context *context, struct source *source);

/* No thread asks it any more, and none will; not for who asks, unless it was never added. */
void source_remove(struct ibchan_context *context, struct source *source);

/* Takes that back, where the object was not closed after all. */
void source_return(struct ibchan_context *context, struct source *source);

/* For the caller that asks what has happened: */
struct source *source_take(struct happenings *happenings);
unsigned int sources_asked(struct happenings *happenings, bool is_asking);
int source_watch(struct ibchan_context *context, struct source *source, int fd);
/* Its descriptor would be readable for ever. */
void source_deafen(struct ibchan_context *context, struct source *source);

int happenings_open(struct ibchan_context *context);

/*
 * next.c; takes what has happened to channels from the kernel, and puts it down in them; there may
 * be more. Returns how much, or a negative errno.
 */
int events_take(struct ibchan_context *context);

/* next.c; the caller gets to know the channel: its happenings are told from here on. */
void channel_publish(struct ibchan_channel *channel);

void happening_end(struct ibchan_happening *happening, struct ibchan_channel *channel, int error);

#pragma GCC visibility pop

#endif /* _LIBIBCHAN_SOURCE_H */
