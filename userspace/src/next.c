// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * ibchan_next(): one call, and one descriptor, for all that happens in a context.
 *
 * The descriptor is an epoll set of what the sources of the context have: its file, which tells
 * what happens to channels, listeners, servers, and the completion queues of channels of messages.
 * A source that has something to tell is put into a list (source.c), by a look at the set or by the
 * call that has brought it about. The sources of a list are asked in rounds: each one in the list
 * as a round begins is asked once, then the set is looked at again. So a source that always has
 * something to tell comes once in a round, and everyone who waits is in the next one.
 *
 * One thread asks at a time. It does not wait while it does so.
 */
#include <errno.h>
#include <sys/epoll.h>

#include "listen.h"
#include "message.h"
#include "slots.h"
#include "source.h"
#include "wait.h"

/* The most events that one look takes from the kernel. */
#define LOOK		64
/* Looks within one call: a server may have to tell what happens to its channel. */
#define LOOKS		3
/* How soon a source is asked again that no descriptor tells of. */
#define SOON_NS		(NSEC_PER_SEC / 1000)

/* --- channels --- */

/* A peer's wrong key ends both sides' channels, and no work of this side; some devices say so. */
static bool is_of_peers_key(struct ibchan_channel *channel)
{
	struct ibchan_channel_info info;

	return !ibchan_channel_query(channel, &info, NULL) &&
	       info.status == (info.error == -EACCES ? IBCHAN_STATUS_SUCCESS :
						       IBCHAN_STATUS_WR_FLUSH_ERR);
}

static __u32 ended_by(struct ibchan_channel *channel, int error)
{
	switch (error) {
	case -EACCES:
	case -ECANCELED:
		return is_of_peers_key(channel) ? IBCHAN_BY_PEER : IBCHAN_BY_THIS_SIDE;
	case -ENODATA:
	case -ECONNRESET:
	case -ECONNREFUSED:
	case -EPROTOTYPE:
	case -EPROTO:
	case -EREMOTEIO:
		return IBCHAN_BY_PEER;
	case -ETIMEDOUT:
	case -EHOSTUNREACH:
	case -ENETUNREACH:
		return IBCHAN_BY_NETWORK;
	case -ENODEV:
		return IBCHAN_BY_DEVICE;
	default:
		return IBCHAN_BY_THIS_SIDE;
	}
}

void happening_end(struct ibchan_happening *happening, struct ibchan_channel *channel, int error)
{
	happening->kind = IBCHAN_NEXT_ENDED;
	happening->channel = channel;
	happening->error = error;
	happening->by = ended_by(channel, error);
}

/*
 * Works of a broken channel are still flushed, or one's completion waits in the ring for
 * ibchan_next() or a poll by any thread. Nothing is told of a cq that was not handed over.
 */
static bool is_untold(struct ibchan_cq *cq, const struct ibchan_channel *channel, __u32 in_flight)
{
	bool found = in_flight != 0;
	const struct ibchan_cqe *cqe;
	const struct slot *slot;
	__u32 at;

	if (!cq->source.is_known)
		return false;
	lock_take(&cq->lock);
	for (at = cq->head; cq->ring.base && at != ring_tail(cq) && !found; at++) {
		cqe = ring_entry(cq, at);
		slot = slot_of_wr_id(cq, cqe->wr_id);
		found = cqe->channel == channel->object.handle && !is_silent(cqe) &&
			(!slot || slot->state == SLOT_LEFT);
	}
	lock_give(&cq->lock);
	return found;
}

static int channel_tell(struct source *source, struct ibchan_happening *happening)
{
	struct ibchan_channel *channel = source_of(source, struct ibchan_channel);
	struct ibchan_connection_info connection;
	struct ibchan_channel_info info;
	int err;

	if (object_happenings(&channel->object, IBCHAN_EVENT_CONNECTED)) {
		happening->kind = IBCHAN_NEXT_CONNECTED;
		happening->channel = channel;
		return TOLD_MORE;
	}
	if (object_happenings(&channel->object, IBCHAN_EVENT_BROKEN))
		channel->is_ending = true;
	if (!channel->is_ending)
		return TOLD_NOTHING;
	if (!ibchan_channel_query(channel, &info, NULL) &&
	    (is_untold(channel->send_cq, channel, info.sends_in_flight) ||
	     is_untold(channel->recv_cq, channel, info.recvs_in_flight)))
		return TOLD_LATER;
	channel->is_ending = false;
	err = ibchan_channel_connection(channel, &connection, NULL);
	happening_end(happening, channel, err ?: connection.error ?: -ECONNRESET);
	return TOLD_LAST;
}

void channel_publish(struct ibchan_channel *channel)
{
	object_show(&channel->object, 0);
	source_add(channel->object.context, &channel->source);
}

int events_take(struct ibchan_context *context)
{
	struct ibchan_cmd_event_take cmd = { .size = sizeof(cmd) };
	int err = 0, num;

	for (num = 0; num < LOOK && !err; num += !err) {
		cmd.out_channel = 0;
		err = context_ioctl(context, IBCHAN_CMD_EVENT_TAKE, &cmd);
		if (!err)
			object_happened(context, cmd.out_channel, cmd.out_events);
	}
	return num || err == -EAGAIN ? num : err;
}

/* --- listeners and completion queues that the program has handed over --- */

static int listener_tell(struct source *source, struct ibchan_happening *happening)
{
	struct ibchan_listener *listener = source_of(source, struct ibchan_listener);
	int err = ibchan_request_take(listener, 0, &happening->request, NULL);

	if (err == -EAGAIN || err == -EINTR)
		return TOLD_NOTHING;
	if (err == -ENODEV)
		source_deafen(listener->object.context, source);
	happening->kind = err ? IBCHAN_NEXT_REFUSED : IBCHAN_NEXT_REQUEST;
	happening->error = err;
	happening->listener = listener;
	happening->priv = ibchan_listener_priv(listener);
	return TOLD_LAST;
}

static int cq_tell(struct source *source, struct ibchan_happening *happening)
{
	struct ibchan_cq *cq = source_of(source, struct ibchan_cq);
	struct ibchan_context *context = cq->object.context;
	struct ibchan_channel *channel = NULL;
	int ret;

	/* Nothing is told of a channel that was closed, or is being closed. */
	do {
		ret = ibchan_cq_poll(cq, &happening->completion, 1);
		if (ret > 0)
			channel = ibchan_cqe_channel(context, &happening->completion);
	} while (ret > 0 && (!channel || channel->source.is_gone));
	/* The kernel says why a descriptor is readable with nothing to read. */
	if (ret < 0)
		source_deafen(context, source);
	if (ret <= 0)
		return TOLD_NOTHING;
	happening->kind = IBCHAN_NEXT_COMPLETION;
	happening->channel = channel;
	return TOLD_MORE;
}

static int watch(struct ibchan_context *context, struct source *source, int fd,
		 int (*tell)(struct source *source, struct ibchan_happening *happening),
		 struct ibchan_error *error)
{
	int err = context_check(context) ?: min(fd, 0) ?: happenings_open(context);

	if (err)
		return error_set(error, err, NULL);
	lock_take(&context->happenings.asking);
	source->tell = tell;
	err = source_watch(context, source, fd);
	lock_give(&context->happenings.asking);
	if (!err)
		source_add(context, source);
	return error_set(error, err, NULL);
}

int ibchan_listener_watch(struct ibchan_listener *listener, struct ibchan_error *error)
{
	return watch(listener->object.context, &listener->source, listener->fd, listener_tell,
		     error);
}

int ibchan_cq_watch(struct ibchan_cq *cq, struct ibchan_error *error)
{
	return watch(cq->object.context, &cq->source, ibchan_cq_fd(cq), cq_tell, error);
}

/* --- asking --- */

/* Lists what has become readable. Returns whether something has happened to channels. */
static bool look(struct ibchan_context *context)
{
	struct epoll_event events[LOOK];
	int state = cancel_off();
	int num = epoll_pwait(context->happenings.epoll_fd, events, LOOK, 0, NULL);
	bool found = false;
	int i;

	cancel_back(state);
	for (i = 0; i < num; i++) {
		if (events[i].data.ptr == context)
			found = events_take(context) > 0;
		else if (events[i].data.ptr)
			source_add(context, events[i].data.ptr);
	}
	return found;
}

/*
 * 1: @happening was filled in; 0: nothing has happened, and nothing but a descriptor will tell;
 * -EAGAIN: a source is to be asked soon. Needs happenings->asking.
 */
static int ask_all(struct ibchan_context *context, struct ibchan_happening *happening)
{
	struct happenings *happenings = &context->happenings;
	struct source *source;
	int told, later = 0, looks = 0;
	bool found = true;

	for (;;) {
		while (happenings->round) {
			happenings->round--;
			source = source_take(happenings);
			if (!source)
				continue;
			/* A channel without messages, of which something was put down. */
			if (!source->tell)
				source->tell = channel_tell;
			*happening = (struct ibchan_happening) { 0 };
			told = source->tell(source, happening);
			if (told == TOLD_MORE || told == TOLD_LATER)
				source_add(context, source);
			if (told == TOLD_LAST || told == TOLD_MORE)
				return 1;
			if (told == TOLD_LATER)
				later = -EAGAIN;
		}
		if (looks == LOOKS || !found)
			return later;
		found = look(context);
		looks++;
		happenings->round = sources_asked(happenings, true);
	}
}

static int ask_now(struct ibchan_context *context, struct ibchan_happening *happening)
{
	struct happenings *happenings = &context->happenings;
	int ret;

	*happening = (struct ibchan_happening) { 0 };
	lock_take(&happenings->asking);
	sources_asked(happenings, true);
	ret = ask_all(context, happening);
	sources_asked(happenings, false);
	if (ret > 0 && happening->channel)
		happening->priv = ibchan_channel_priv(happening->channel);
	lock_give(&happenings->asking);
	return ret;
}

/* Where a source has to be asked again @soon, the descriptor is readable all that while. */
static int await(const struct ibchan_context *context, bool soon, const struct deadline *deadline)
{
	const __s64 left = deadline_left(deadline);
	const bool is_cut = left < 0 || left > SOON_NS;

	if (!soon || !left)
		return fd_await(context->happenings.epoll_fd, deadline);
	return fds_wait(NULL, 0, is_cut ? SOON_NS : left) ?: is_cut ? 0 : -ETIMEDOUT;
}

int ibchan_next(struct ibchan_context *context, __s64 timeout_ns,
		struct ibchan_happening *happening, struct ibchan_error *error)
{
	struct deadline deadline;
	int err = deadline_begin(&deadline, context, timeout_ns) ?: happenings_open(context);
	int ret, wait = 0;

	if (err)
		return refuse_begin(err, timeout_ns, error);
	for (;;) {
		ret = ask_now(context, happening);
		/* One last look has been taken after the wait ended. */
		if (ret > 0 || wait)
			return error_set(error, ret > 0 ? 0 : wait, NULL);
		wait = await(context, ret < 0, &deadline);
	}
}

int ibchan_next_fd(struct ibchan_context *context)
{
	int err = context_check(context) ?: happenings_open(context);

	return err ? err : context->happenings.epoll_fd;
}
