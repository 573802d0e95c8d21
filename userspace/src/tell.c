// SPDX-License-Identifier: LGPL-2.1-or-later
/* The short way: ibchan_next() tells of a channel. Its end comes last. */
#include <errno.h>

#include "stream.h"

static void take_note(struct messages *m)
{
	struct ibchan_channel_info info;
	int err = stream_look(m);

	if (err == -ENODEV || err == -EPROTO)
		m->over = true;
	m->is_broken |= object_happenings(&m->channel->object, IBCHAN_EVENT_BROKEN) != 0;
	/* A broken channel ends its receives, and so tells by them; unless all had been used up. */
	if (m->is_broken && !m->over &&
	    (ibchan_channel_query(m->channel, &info, NULL) || !info.recvs_in_flight)) {
		stream_look(m);
		m->over = true;
	}
	if (!m->ended && !m->over)
		stream_acknowledge(m, NULL);
}

/* Takes the oldest message that was lent, if it is its owner's again. */
static struct lent *lent_back(struct messages *m)
{
	struct lent *lent = m->lent;

	if (!lent || !(is_taken(m, lent->place) || m->ended || m->over))
		return NULL;
	m->lent = lent->next;
	if (!m->lent)
		m->lent_last = &m->lent;
	return lent;
}

static void tell_sent(struct messages *m, const struct lent *lent,
		      struct ibchan_happening *happening)
{
	happening->kind = IBCHAN_NEXT_SENT;
	happening->bytes = lent->bytes;
	happening->length = lent->length;
	happening->error = is_taken(m, lent->place) ? 0 : -ESHUTDOWN;
	if (happening->error)
		m->is_known = true;
}

/* Returns whether there was something to tell. */
static bool tell_other(struct messages *m, struct ibchan_happening *happening)
{
	if (m->first && !m->is_told) {
		m->is_told = true;
		happening->kind = IBCHAN_NEXT_MESSAGE;
		happening->length = m->first->arrival.length;
	} else if (is_to_wake(m)) {
		m->wants_room = false;
		happening->kind = IBCHAN_NEXT_WRITABLE;
	} else if (is_at_end(m) && !m->is_end_told) {
		m->is_end_told = true;
		happening_end(happening, m->channel, stream_end_of(m));
	} else {
		return false;
	}
	return true;
}

/* Where nothing is to be seen, the kernel may know that nothing will ever be. */
static int find_nothing(struct messages *m)
{
	int err = cq_bring_in(m->cq);

	if ((err != -ENODEV && err != -EPROTO) || m->over)
		return has_news(m) ? TOLD_LATER : TOLD_NOTHING;
	stream_look(m);
	m->over = true;
	return TOLD_LATER;
}

int stream_tell(struct source *source, struct ibchan_happening *happening)
{
	struct ibchan_channel *channel = source_of(source, struct ibchan_channel);
	struct messages *m = channel->messages;
	struct lent *lent;
	int unwatched, told;

	unwatched = source_watch(m->station->context, source, m->cq->fd);
	happening->channel = channel;
	lock_take(&m->lock);
	take_note(m);
	if (m->over)
		source_deafen(m->station->context, source);
	lent = lent_back(m);
	if (lent)
		tell_sent(m, lent, happening);
	if (lent || tell_other(m, happening))
		told = has_news(m) ? TOLD_MORE : TOLD_LAST;
	else
		told = find_nothing(m);
	lock_give(&m->lock);
	/* Before it is the caller's again. */
	if (lent)
		lent_free(lent);
	return told == TOLD_NOTHING && unwatched ? TOLD_LATER : told;
}
