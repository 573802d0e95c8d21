/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libibchan: the short way: messages between two programs that know an address. Include <ibchan.h>.
 *
 *	client					server
 *	ibchan_dial()				ibchan_serve(), ibchan_take() or ibchan_next()
 *	ibchan_send_bytes()			ibchan_receive_bytes()
 *	ibchan_channel_close()			ibchan_channel_close()
 *
 * These calls open the context, find the device, make the queues and post the receives. Their
 * objects belong to the channel, and end with it. The channel is one like any other: works of other
 * kinds can be posted on it, with memory of its domain (ibchan_channel_pd()). Only its receives,
 * and the queue where they complete, belong to ibchan_receive_bytes(); and when it has broken, its
 * send queue may show works with the wr_id 0 that were these calls'.
 *
 * A message of up to message_bytes is copied, and waits at the peer; a longer one is read by the
 * peer from the sender's memory. No message is sent for which the peer has no receive. A signal
 * handler must not jump out of these calls.
 *
 * One thread serves a server and any number of channels in a loop around ibchan_next(), in which
 * ibchan_receive_bytes() has a time-out of 0, and ibchan_post_bytes() sends.
 *
 * Both sides have to go this way. A peer that connects otherwise is rejected.
 */
#ifndef _IBCHAN_MESSAGE_H
#define _IBCHAN_MESSAGE_H

#include <sys/socket.h>
#include <sys/types.h>
#include <ibchan/types.h>

__IBCHAN_BEGIN_DECLS

/**
 * struct ibchan_message_params - how a side takes messages
 * @size: sizeof(struct ibchan_message_params)
 * @messages: how many each side may send before they are received, 1 to 8000; 0: 16; the smaller
 *	one of the two sides' counts
 * @message_bytes: up to which length messages are copied, 1 to 2^30; 0: 16384; the smaller one of
 *	the two sides' counts: ibchan_channel_message_params()
 * @reserved: 0
 * @timeout_ns: how long ibchan_dial() may take, beside the look-up of a name, and at a server how
 *	long a peer may, from its request until it is connected; in nanoseconds; 0: 60 s; each
 *	stage, as struct ibchan_connect_params has them, has its default at most
 * @source: IP address of this host that ibchan_dial() connects from; NULL: as the route says, which
 *	is one outside of all VRFs. A server leaves it NULL: ibchan_serve() has an argument for it
 * @context: where the channel, or the server with its channels, is made, so that one ibchan_next()
 *	tells of all of them; it is closed after them. NULL: one of its own
 *
 * Each channel pins (2 * @messages + 4) * (@message_bytes + 16) bytes, which count against
 * RLIMIT_MEMLOCK: 590 KB by default.
 */
struct ibchan_message_params {
	__u32 size;
	__u32 messages;
	__u32 message_bytes;
	__u32 reserved;
	__s64 timeout_ns;
	const char *source;
	struct ibchan_context *context;
};

/**
 * ibchan_dial() - connect to a server
 * @host: name or IP address
 * @service: name or number of the port that the server listens on
 * @params: how this side takes messages; NULL: the defaults
 * @channel: where to put the channel, connected
 * @error: details; NULL is fine
 *
 * It waits until the server's program calls ibchan_take() or ibchan_next(), for timeout_ns of
 * @params at most. Messages that are sent from then on wait there for ibchan_receive_bytes(). @host
 * leads to an address of an RDMA device of the server's host, which localhost is not.
 * ibchan_channel_close() ends the channel.
 *
 * Return: 0; -ECONNREFUSED: nobody listens there; -ETIMEDOUT: the server's host is silent, or its
 * program does not call ibchan_take(); -EPROTOTYPE: the program that listens there does not use
 * ibchan_serve(); -ECONNRESET: the server has rejected, for example because it has no memory;
 * -ENOMEM: no memory, or RLIMIT_MEMLOCK; -EINVAL: a member of @params is out of range, or there is
 * no port; -E2BIG: @params has members that this library does not know; as ibchan_context_open(),
 * ibchan_device_open_for() and ibchan_builder_connect().
 */
int ibchan_dial(const char *host, const char *service, const struct ibchan_message_params *params,
		struct ibchan_channel **channel, struct ibchan_error *error);

/**
 * ibchan_serve() - listen for clients
 * @host: name or IP address of this host; NULL: any, of both families
 * @service: name or number of a port; NULL: a free one
 * @params: how this side takes messages; NULL: the defaults
 * @server: where to put it
 * @error: details; NULL is fine
 *
 * Clients may come over any device of the host. A program that calls daemon(3) does so before this:
 * see Fork.
 *
 * Return: 0; -EINVAL, -E2BIG: as ibchan_dial(), or @params has a source; as ibchan_context_open()
 * and ibchan_listener_create().
 */
int ibchan_serve(const char *host, const char *service, const struct ibchan_message_params *params,
		 struct ibchan_server **server, struct ibchan_error *error);

/**
 * ibchan_take() - take the next client
 * @server: listening
 * @timeout_ns: how long to wait for one, in nanoseconds; 0: not at all; IBCHAN_TIMEOUT_NEVER
 * @channel: where to put its channel, connected
 * @error: details; NULL is fine
 *
 * Clients are accepted in this call and in ibchan_next() only: a program that is long busy with a
 * client takes the others in another thread.
 *
 * Up to 32 clients that are not connected yet are accepted at a time. When further ones wait, one
 * that has not connected within 200 ms gives up its place: peers that ask and say no more cannot
 * keep others out. A peer that is no client of ibchan_dial() is rejected. So is a client for which
 * memory or handles are lacking: when no other client is connected, this returns why, and the next
 * call goes on. The channel may outlive the server.
 *
 * ibchan_channel_connection() tells the client's address.
 *
 * Return: 0; -EAGAIN with a @timeout_ns of 0, else -ETIMEDOUT: none came; -EINTR: a signal came,
 * and no client was taken; -EINVAL: a negative time-out; -ENOMEM, -EMFILE, -EDQUOT: there is
 * nothing left for a client, as ibchan_builder_prepare(), ibchan_cq_create() and ibchan_mr_reg()
 * say; -ENODEV: the server listens at an address of a device that is gone. No client will come any
 * more: close the server; -EPERM: see Fork.
 */
int ibchan_take(struct ibchan_server *server, __s64 timeout_ns,
		struct ibchan_channel **channel, struct ibchan_error *error);

/**
 * ibchan_server_fd() - for a thread that takes clients, and waits for something else as well
 * @server: listening
 *
 * Readable while ibchan_take() has something to do, which may return -EAGAIN all the same. One loop
 * for clients and their channels uses ibchan_next().
 *
 * Return: the descriptor.
 */
int ibchan_server_fd(const struct ibchan_server *server);

/**
 * ibchan_server_context() - the context of a server and of its channels
 * @server: listening
 *
 * Do not close it, unless it was given by struct ibchan_message_params: it ends with the last
 * channel and the server.
 *
 * Return: the context.
 */
struct ibchan_context *ibchan_server_context(const struct ibchan_server *server);

/**
 * ibchan_server_address() - where a server listens
 * @server: listening
 * @address: where to put it; with the port
 */
void ibchan_server_address(const struct ibchan_server *server, struct sockaddr_storage *address);

/**
 * ibchan_server_close() - listen no more
 * @server: NULL is fine
 *
 * Clients that were not taken are rejected. Channels that were taken live on.
 *
 * Return: 0 or a negative errno; the handle is gone either way.
 */
int ibchan_server_close(struct ibchan_server *server);

/**
 * ibchan_send_bytes() - send a message
 * @channel: of ibchan_dial() or ibchan_take()
 * @bytes: the message; any memory that may be read; if longer than message_bytes, memory that
 *	ibchan_mr_reg() takes, which excepts mappings that are shared and read-only on some kernels
 * @length: how many, 0 to 2^40
 * @timeout_ns: in nanoseconds, 0 and up; IBCHAN_TIMEOUT_NEVER: no limit
 * @error: details; NULL is fine
 *
 * Waits while the peer has not received earlier messages, as many as may wait. A message of up to
 * message_bytes is copied then, and is on its way when this returns. A longer one is registered as
 * a whole, for which RLIMIT_MEMLOCK has to allow (the peer's receive registers 1 MiB at a time),
 * and this returns when the peer has received it. Threads that send at the same time take turns.
 *
 * A program that must not wait uses ibchan_post_bytes().
 *
 * That a message has arrived is certain when ibchan_channel_close() has returned 0, or the peer has
 * answered.
 *
 * Buffers: @bytes may be reused on return. Only with the errno of a filter of system calls in
 * @error the peer may read them until the channel is closed.
 *
 * Return: 0; -EAGAIN with a @timeout_ns of 0, else -ETIMEDOUT: the peer has received none of the
 * earlier messages in time, or other threads were sending; nothing was sent, and the call may be
 * repeated; -ECONNABORTED: a long message was under way, and the peer has not received it in time.
 * The channel is broken for that; -EMSGSIZE: longer than 2^40, or, with a @timeout_ns of 0, than
 * message_bytes; -ENOMEM, -EFAULT: a long message cannot be registered, as ibchan_mr_reg() says,
 * which may return others as well; -EINVAL: a negative time-out, or a channel that was made
 * otherwise; -ESHUTDOWN: the channel is broken, or the peer has closed it. ibchan_receive_bytes()
 * still returns what the peer sent before, and then why; -ENOBUFS: the program's own works take all
 * places of the send queue, and nothing was sent; -EPERM: see Fork.
 */
int ibchan_send_bytes(struct ibchan_channel *channel, const void *bytes, size_t length,
		      __s64 timeout_ns, struct ibchan_error *error);

/**
 * ibchan_post_bytes() - send a message without waiting
 * @channel: of ibchan_dial() or ibchan_take(), or told of by ibchan_next()
 * @bytes: as for ibchan_send_bytes()
 * @length: how many, 0 to 2^40
 * @error: details; NULL is fine
 *
 * A message of up to message_bytes is copied, and is on its way when this returns. A longer one is
 * lent: the peer reads it where it lies, when it receives it, and IBCHAN_NEXT_SENT of ibchan_next()
 * tells when it is the program's own again. Several may be lent at a time, and messages may be sent
 * behind them: they come in the order of the calls. A channel that is closed before has not sent
 * it, and its peer is told of no orderly end.
 *
 * Where the peer has no room, -EAGAIN says so, and IBCHAN_NEXT_WRITABLE tells when there is some: a
 * program keeps the message until then. IBCHAN_NEXT_WRITABLE also comes when the peer ends and its
 * messages wait: the next call then returns -ESHUTDOWN, and the program receives them.
 *
 * Buffers: with 0, or a negative errno, @bytes may be reused on return; with 1, once
 * IBCHAN_NEXT_SENT was told for them, or the channel was closed.
 *
 * Return: 0: the message was copied; 1: it is lent; -EAGAIN: the peer has yet to receive earlier
 * messages, and nothing was sent; others as ibchan_send_bytes() has them.
 */
int ibchan_post_bytes(struct ibchan_channel *channel, const void *bytes, size_t length,
		      struct ibchan_error *error);

/**
 * ibchan_receive_bytes() - receive a message, and wait for one
 * @channel: of ibchan_dial() or ibchan_take()
 * @buf: where to put it
 * @room: bytes of @buf
 * @timeout_ns: in nanoseconds; 0: do not wait; IBCHAN_TIMEOUT_NEVER: no limit
 * @error: details; NULL is fine
 *
 * Messages come in the order in which they were sent; copied ones also when the peer has closed the
 * channel since. A long one is read when it is its turn, which takes as long as the network needs,
 * whatever @timeout_ns is, and holds up all else that the thread does. A long one has more than the
 * message_bytes of ibchan_channel_message_params(), which a peer can make smaller. Threads that
 * receive at the same time take turns, and each takes a message of its own.
 *
 * Buffers: @buf is the caller's on return.
 * Return: how many bytes, which may be 0; -ENODATA: the peer has closed the channel, and all its
 * messages were received; -ECONNRESET: the peer has ended without closing it, or has broken it;
 * -EMSGSIZE: the message is longer than @room, reason.value[0] of @error is its length, and it
 * stays for the next call; -EAGAIN with a @timeout_ns of 0, else -ETIMEDOUT: none came in time;
 * -EINTR: a signal came, and no message was taken; -EHOSTUNREACH: the peer does not answer any
 * more, which a keepalive finds out in about 10 s, and the channel is broken; -EPROTO: the peer has
 * sent what is no message of ibchan_send_bytes(), or has offered memory that it has not or lets
 * nobody read, and the channel is broken for that; -EACCES: the peer has used a wrong key, or gone
 * past the end of a region; -ECANCELED: the channel was broken on this side, or, as @error then
 * says, by a device that does not tell why; -ENODEV: the device is gone; others: what has broken
 * the channel; -ENOMEM, -EFAULT: @buf cannot be registered for a long message, as ibchan_mr_reg()
 * says, which may return others as well. The message stays for the next call; -EINVAL: a negative
 * time-out, or a channel that was made otherwise; -EPERM: see Fork.
 */
ssize_t ibchan_receive_bytes(struct ibchan_channel *channel, void *buf, size_t room,
			     __s64 timeout_ns, struct ibchan_error *error);

/**
 * ibchan_channel_message_params() - how a channel takes messages
 * @channel: of ibchan_dial() or ibchan_take()
 * @agreed: where to put it; its size is set; messages and message_bytes become those that both
 *	sides have room for
 *
 * Return: 0; -EINVAL: a channel that was made otherwise, or no size.
 */
int ibchan_channel_message_params(const struct ibchan_channel *channel,
				  struct ibchan_message_params *agreed);

/**
 * ibchan_channel_pd() - the domain of a channel
 * @channel: connected or broken
 *
 * For memory that works on the channel are to use. Deregister it before a channel of the short way
 * is closed, which frees the domain. Where params named a context, a domain with regions stays as
 * long as that; else the context may end with the channel, and their handles are gone with it.
 *
 * Return: the domain.
 */
struct ibchan_pd *ibchan_channel_pd(const struct ibchan_channel *channel);

/**
 * ibchan_channel_context() - the context of a channel
 * @channel: connected or broken
 *
 * Do not close that of a channel of the short way: ibchan_server_context() says why.
 *
 * Return: the context.
 */
struct ibchan_context *ibchan_channel_context(const struct ibchan_channel *channel);

__IBCHAN_END_DECLS

#endif /* _IBCHAN_MESSAGE_H */
