// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * ibchan_builder_accept(): a channel for the next peer that is connected.
 *
 * A peer that asks may say nothing more. So a call answers each request that waits, up to
 * MAX_ACCEPTING, with a channel of its own, and returns the one that is connected first. The
 * others stay in the listener: a later call returns them, the stage ACCEPT of each has its time,
 * and closing the listener ends them. A call returns channels only that were built in its own
 * protection domain and for its own queues, since another thread may accept for others.
 *
 * The events of such a channel are told to nobody: it is hidden from ibchan_next(). A call
 * that waits hears of them by the file of the context, edge-triggered, because the events of other
 * channels may wait there for their taker; where another thread takes what has happened to a
 * hidden channel, that thread passes the word on by an eventfd.
 */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>

#include "listen.h"
#include "wait.h"

#define MAX_ACCEPTING	32

/* One call. */
struct acceptance {
	const struct ibchan_builder *builder;	/* of channels */
	struct ibchan_listener *listener;	/* where it takes requests */
	struct deadline deadline;		/* of the call */
	int fd;	/* epoll, readable when a hidden channel may have an event; -1: not yet */
	unsigned int room;	/* how many more requests it may answer now */
};

static bool is_for(const struct ibchan_channel *channel, const struct ibchan_builder *builder)
{
	const struct ibchan_cq *own = channel->own_cq;

	return channel->pd == builder->pd &&
	       channel->send_cq == (builder->send_cq ? builder->send_cq : own) &&
	       channel->recv_cq == (builder->recv_cq ? builder->recv_cq : own);
}

/*
 * Takes a channel that connects no more out of the list. 0: it is connected; a negative errno, also
 * when it has broken since, and another thread has taken the event.
 */
static int settle(struct ibchan_listener *listener, struct ibchan_channel **link, __u32 state,
		  struct ibchan_error *error)
{
	struct ibchan_channel *channel = *link;
	int err;

	*link = channel->next_accepting;
	if (state == IBCHAN_CHANNEL_CONNECTED && object_show(&channel->object, IBCHAN_EVENT_BROKEN))
		return 0;
	err = ibchan_channel_connect_wait(channel, 0, error);
	ibchan_channel_close(channel);
	listener->lost++;
	return err;
}

/* 1: @channel is connected; 0: none is; a negative errno. Needs the listener's lock. */
static int find_connected(struct acceptance *a, struct ibchan_channel **channel,
			  struct ibchan_error *error)
{
	struct ibchan_channel **link = &a->listener->accepting;
	struct ibchan_connection_info info;
	int err;

	a->room = a->builder->num_receives ? 1 : MAX_ACCEPTING;
	while ((*channel = *link)) {
		if (!is_for(*channel, a->builder)) {
			link = &(*channel)->next_accepting;
			continue;
		}
		err = ibchan_channel_connection(*channel, &info, error);
		if (err)
			return err;
		if (info.state == IBCHAN_CHANNEL_CONNECTING) {
			link = &(*channel)->next_accepting;
			a->room--;
			continue;
		}
		err = settle(a->listener, link, info.state, error);
		/* The caller can do something about these, and about what a peer does it cannot. */
		if (!err || err == -ENOMEM || err == -ENODEV)
			return err ? err : 1;
	}
	return 0;
}

/* Takes the request. A peer that is not there any more is no error. */
static int answer(const struct acceptance *a, struct ibchan_request *request,
		  struct ibchan_error *error)
{
	struct ibchan_channel **link = &a->listener->accepting;
	struct ibchan_prepared *prepared = NULL;
	struct ibchan_channel *channel;
	int err = ibchan_builder_prepare(a->builder, &prepared, error);

	if (!err) {
		object_hide(&prepared->channel.object);
		err = ibchan_request_accept(request, prepared, NULL, &channel, error);
	}
	if (!err) {
		while (*link)
			link = &(*link)->next_accepting;
		channel->next_accepting = NULL;
		*link = channel;
		return 0;
	}
	ibchan_request_reject(request, NULL, 0, NULL);
	ibchan_prepared_destroy(prepared);
	if (!prepared || !request_has_given_up(err))
		return err;
	a->listener->lost++;
	return 0;
}

/* Answers requests that wait, as many as may be. */
static int answer_some(struct acceptance *a, struct ibchan_error *error)
{
	struct ibchan_request *request;
	int err = 0;

	for (; a->room && !err && request_waits(a->listener); a->room--) {
		err = ibchan_request_take(a->listener, 0, &request, error);
		if (err)
			return err == -EAGAIN ? 0 : err;
		err = answer(a, request, error);
	}
	return err;
}

/* As find_connected(). The caller's own error is told when no peer is connected. */
static int accept_now(struct acceptance *a, struct ibchan_channel **channel,
		      struct ibchan_error *error)
{
	int found;

	lock_take(&a->listener->lock);
	found = find_connected(a, channel, error) ?: answer_some(a, error) ?:
		find_connected(a, channel, error);
	lock_give(&a->listener->lock);
	return found;
}

/* From here on nothing that happens to a hidden channel is missed. */
static int watch(struct acceptance *a)
{
	struct ibchan_context *context = a->listener->object.context;
	int word = context_word_fd(context);

	if (word < 0)
		return word;
	a->fd = epoll_of(context->fd, word, EPOLLIN | EPOLLET);
	return min(a->fd, 0);
}

static int await_peer(const struct acceptance *a)
{
	const __s64 left = deadline_left(&a->deadline);
	struct pollfd fds[] = {
		{ .fd = a->fd, .events = POLLIN },
		{ .fd = a->room ? a->listener->fd : -1, .events = POLLIN },
	};
	int ret;

	/* Even if something has come: requests might come without end. */
	if (!left)
		return too_late(&a->deadline);
	ret = fds_wait(fds, ARRAY_SIZE(fds), left);
	if (ret < 0)
		return ret;
	if (fds[0].revents)
		edges_forget(a->fd);
	return ret ? 0 : -ETIMEDOUT;
}

int ibchan_builder_accept(const struct ibchan_builder *builder, struct ibchan_listener *listener,
			  __s64 timeout_ns, struct ibchan_channel **out, struct ibchan_error *error)
{
	struct acceptance a = { .builder = builder, .listener = listener, .fd = -1 };
	struct ibchan_channel *channel;
	int err = context_check(listener->object.context);
	int wait = 0;

	if (!err && builder->pd->object.context != listener->object.context)
		err = -EXDEV;
	err = err ?: deadline_begin(&a.deadline, listener->object.context, timeout_ns);
	if (err)
		return error_set(error, err, NULL);
	for (;;) {
		err = accept_now(&a, &channel, error);
		if (err || wait)
			break;
		wait = a.fd < 0 && timeout_ns ? watch(&a) : await_peer(&a);
	}
	if (a.fd >= 0)
		fd_close(a.fd);
	if (err > 0)
		*out = channel;
	/* One last look has been taken after the wait ended. */
	return err < 0 ? err : error_set(error, err ? 0 : wait, NULL);
}

/* Ends the peers that nobody has been given; the listener's owner closes it. */
void accepting_close(struct ibchan_listener *listener)
{
	struct ibchan_channel *channel;

	lock_take(&listener->lock);
	while ((channel = listener->accepting)) {
		listener->accepting = channel->next_accepting;
		ibchan_channel_close(channel);
	}
	lock_give(&listener->lock);
}

__u64 ibchan_listener_lost(struct ibchan_listener *listener)
{
	__u64 lost;

	lock_take(&listener->lock);
	lost = listener->lost;
	lock_give(&listener->lock);
	return lost;
}
