/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libibchan: all that happens in a context, by one call and one descriptor. Include <ibchan.h>.
 *
 *	while (!ibchan_next(context, IBCHAN_TIMEOUT_NEVER, &happening, &error)) {
 *		switch (happening.kind) {
 *		case IBCHAN_NEXT_CONNECTED:	a client is there, or a channel is connected
 *		case IBCHAN_NEXT_MESSAGE:	ibchan_receive_bytes() returns one
 *		case IBCHAN_NEXT_WRITABLE:	a message that met -EAGAIN can be sent now
 *		case IBCHAN_NEXT_SENT:		a message that was lent is the program's own again
 *		case IBCHAN_NEXT_ENDED:		ibchan_channel_close()
 *		}
 *	}
 */
#ifndef _IBCHAN_NEXT_H
#define _IBCHAN_NEXT_H

#include <ibchan/types.h>

__IBCHAN_BEGIN_DECLS

/**
 * enum ibchan_next_kind - the kind of a happening
 * @IBCHAN_NEXT_CONNECTED: a client of a server is connected, and @channel is its; or a channel of
 *	ibchan_prepared_connect() or ibchan_request_accept() is
 * @IBCHAN_NEXT_MESSAGE: a message of @length bytes is the first that waits in @channel; each is
 *	told of once, and the next one when this one was received
 * @IBCHAN_NEXT_WRITABLE: @channel takes a message again, after a call that sends has found no room;
 *	or it ends, and messages wait in it: ibchan_post_bytes() then returns -ESHUTDOWN
 * @IBCHAN_NEXT_SENT: the message of ibchan_post_bytes() at @bytes is the program's own again: the
 *	peer has received it, or, with an @error, may not have
 * @IBCHAN_NEXT_COMPLETION: a work on a cq of ibchan_cq_watch() has ended: @completion
 * @IBCHAN_NEXT_REQUEST: a peer asks at a listener of ibchan_listener_watch(): @request
 * @IBCHAN_NEXT_REFUSED: a client of @server, or one that asks at @listener, could not be served,
 *	and @error says why; -ENODEV: it listens at an address of a device that is gone, and none
 *	will come any more
 * @IBCHAN_NEXT_ENDED: the last of @channel: @by whom, and with which @error
 */
enum ibchan_next_kind {
	IBCHAN_NEXT_CONNECTED = 1,
	IBCHAN_NEXT_MESSAGE,
	IBCHAN_NEXT_WRITABLE,
	IBCHAN_NEXT_SENT,
	IBCHAN_NEXT_COMPLETION,
	IBCHAN_NEXT_REQUEST,
	IBCHAN_NEXT_REFUSED,
	IBCHAN_NEXT_ENDED,
};

/**
 * enum ibchan_by - the party that has ended a channel
 * @IBCHAN_BY_PEER: the peer has closed or broken it, has ended, rejects it, or breaks the rules; or
 *	the device has ended it and does not say why
 * @IBCHAN_BY_THIS_SIDE: this side has broken it, or has posted what ended it
 * @IBCHAN_BY_NETWORK: the peer does not answer
 * @IBCHAN_BY_DEVICE: the device is gone
 */
enum ibchan_by {
	IBCHAN_BY_PEER = 1,
	IBCHAN_BY_THIS_SIDE,
	IBCHAN_BY_NETWORK,
	IBCHAN_BY_DEVICE,
};

/**
 * struct ibchan_happening - one thing that has happened; members that its kind does not use are 0
 * @kind: enum ibchan_next_kind
 * @by: enum ibchan_by
 * @error: a negative errno, or 0; ibchan_strerror() puts it into words
 * @reserved0: 0
 * @priv: of ibchan_channel_set_priv(); without a channel, of ibchan_listener_set_priv()
 * @channel: where
 * @server: of the client
 * @listener: of the request
 * @request: taken; see ibchan_request_take()
 * @bytes: as ibchan_post_bytes() was given them
 * @length: of the message
 * @completion: as ibchan_cq_poll() hands it out
 * @reserved: 0
 */
struct ibchan_happening {
	__u32 kind;
	__u32 by;
	int error;
	__u32 reserved0;
	void *priv;
	struct ibchan_channel *channel;
	struct ibchan_server *server;
	struct ibchan_listener *listener;
	struct ibchan_request *request;
	const void *bytes;
	__u64 length;
	struct ibchan_cqe completion;
	__u64 reserved[4];
};

/**
 * ibchan_next() - the next thing that happens in a context
 * @context: open; of the short way: ibchan_server_context(), ibchan_channel_context(), or what
 *	struct ibchan_message_params was given
 * @timeout_ns: how long to wait for it, in nanoseconds; 0: not at all; IBCHAN_TIMEOUT_NEVER
 * @happening: where to put it
 * @error: details; NULL is fine
 *
 * It tells of servers and channels without further ado; of other listeners and of completion queues
 * when the program has handed them over, by ibchan_listener_watch() and ibchan_cq_watch(). Clients
 * are accepted within this call, or within ibchan_take(), whichever is called.
 *
 * It asks in turn all that have something to tell: a peer that always has holds up no other.
 * Nothing is told twice, and no further message of a channel before the first one was received.
 * Nothing is told of a channel once it is closed. A thread in this call may be told of a channel
 * before another thread's call that makes it has returned, and has no pointer of the caller's then.
 *
 * Each channel ends once. IBCHAN_NEXT_ENDED comes when all its messages were received and told, all
 * that was lent is back, and its completions on watched queues were told. A message that the
 * program does not receive holds the end back, also when the peer is gone or this side has broken
 * the channel: such a program closes the channel without waiting for IBCHAN_NEXT_ENDED. The error
 * of IBCHAN_NEXT_ENDED is what ibchan_receive_bytes() returns then: -ENODATA when the peer has
 * closed it in order. Of a channel without messages it is the first error: that which has kept it
 * from being connected, or has broken it; -ECONNRESET: the peer has closed or broken it.
 *
 * Threads may call it at the same time; each happening is told to one of them.
 *
 * Buffers: a work's buffers may be reused once its completion was told, and a lent message once
 * IBCHAN_NEXT_SENT was told for it.
 *
 * Return: 0; -EAGAIN with a @timeout_ns of 0, else -ETIMEDOUT: nothing has happened; -EINTR: a
 * signal came; -EINVAL: a negative time-out; -EMFILE, -ENFILE, -ENOMEM: there is nothing left for
 * the context's descriptors, which the first call makes; -EPERM: see Fork.
 */
int ibchan_next(struct ibchan_context *context, __s64 timeout_ns,
		struct ibchan_happening *happening, struct ibchan_error *error);

/**
 * ibchan_next_fd() - for poll and epoll
 * @context: open
 *
 * Readable while ibchan_next() has something to do. Then call that with a time-out of 0 until it
 * returns -EAGAIN, which it may also do at once.
 *
 * Return: the descriptor; -EMFILE, -ENFILE, -ENOMEM: as ibchan_next(); -EPERM: see Fork.
 */
int ibchan_next_fd(struct ibchan_context *context);

/**
 * ibchan_listener_watch() - have ibchan_next() take the requests of a listener
 * @listener: listening
 * @error: details; NULL is fine
 *
 * From now on, until it is closed. Other calls that take requests there find few.
 *
 * Return: 0; as ibchan_next_fd().
 */
int ibchan_listener_watch(struct ibchan_listener *listener, struct ibchan_error *error);

/**
 * ibchan_cq_watch() - have ibchan_next() tell of the completions of a cq
 * @cq: where works complete
 * @error: details; NULL is fine
 *
 * From now on, until it is destroyed. Other calls that poll it find few. Works of blocking calls
 * and pending ones complete as ever.
 *
 * Return: 0; as ibchan_next_fd() and ibchan_cq_fd().
 */
int ibchan_cq_watch(struct ibchan_cq *cq, struct ibchan_error *error);

__IBCHAN_END_DECLS

#endif /* _IBCHAN_NEXT_H */
