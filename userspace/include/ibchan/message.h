/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libibchan: the short way: messages between two programs that know an address. Include
 * <ibchan.h>.
 *
 *	client					server
 *	ibchan_dial()				ibchan_serve(), ibchan_take()
 *	ibchan_send_bytes()			ibchan_receive_bytes()
 *	ibchan_channel_close()			ibchan_channel_close()
 *
 * These calls open the context, find the device, make the queues and post the receives. What
 * they make belongs to the channel, and ends with it. The channel is one like any other: works of
 * other kinds can be posted on it, with memory of its domain (ibchan_channel_pd()). Only its
 * receives, and the queue where they complete, belong to ibchan_receive_bytes(); and when it has
 * broken, its send queue may show works with the wr_id 0 that were these calls'.
 *
 * A message of up to message_bytes is copied, and waits at the peer; a longer one is read by the
 * peer from the sender's memory. No message is sent for which the peer has no receive. A signal
 * handler must not jump out of these calls.
 *
 * One thread serves many channels by ibchan_server_fd(), ibchan_channel_fd() and time-outs of 0.
 *
 * Both sides have to go this way. A peer that connects otherwise is rejected.
 */
#ifndef _IBCHAN_MESSAGE_H
#define _IBCHAN_MESSAGE_H

#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <linux/types.h>
#include <linux/ibchan.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ibchan_server;
struct ibchan_channel;
struct ibchan_context;
struct ibchan_pd;
struct ibchan_error;

/**
 * struct ibchan_message_params - how a side takes messages
 * @size: sizeof(struct ibchan_message_params)
 * @messages: how many each side may send before they are received, 1 to 8000; 0: 16; the
 *	smaller one of the two sides' counts
 * @message_bytes: up to which length messages are copied, 1 to 2^30; 0: 16384; the smaller one
 *	of the two sides' counts. No call tells what the peer has chosen: programs that rely on it
 *	choose the same on both sides
 * @reserved: 0
 * @timeout_ns: how long ibchan_dial() may take, beside the look-up of a name, and at a server
 *	how long a peer may, from its request until it is connected; in nanoseconds; 0: 60 s;
 *	each stage, as struct ibchan_connect_params has them, has its default at most
 * @source: IP address of this host that ibchan_dial() connects from; NULL: as the route says,
 *	which is one outside of all VRFs. NULL at a server, whose address ibchan_serve() is told
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
};

/**
 * ibchan_dial() - connect to a server
 * @host: name or IP address
 * @service: name or number of the port that the server listens on
 * @params: how this side takes messages; NULL: the defaults
 * @channel: where to put the channel, connected
 * @error: details; NULL is fine
 *
 * Signals do not end it. It waits for the server's program to call ibchan_take(), which accepts the
 * client. Messages that are sent as soon as this returns wait for ibchan_receive_bytes() there, for
 * which the program need not run at the moment. @host leads to an address of an RDMA device of the
 * server's host, which localhost is not. @channel is written on success only;
 * ibchan_channel_close() ends the channel.
 *
 * Buffers: none of the caller's.
 *
 * Return: 0; -ECONNREFUSED: nobody listens there; -ETIMEDOUT: the server has not answered in
 * time: its host is silent, or its program does not call ibchan_take(); -EPROTOTYPE: the program
 * that listens there does not use ibchan_serve(); -ECONNRESET: the server has rejected, for
 * example because it has no memory; -ENOMEM: no memory, or RLIMIT_MEMLOCK; -EINVAL: a member of
 * @params is out of range; -E2BIG: @params has members that this library does not know; as
 * ibchan_context_open(), ibchan_device_open_for() and ibchan_builder_connect().
 */
int ibchan_dial(const char *host, const char *service,
		const struct ibchan_message_params *params,
		struct ibchan_channel **channel, struct ibchan_error *error);

/**
 * ibchan_serve() - listen for clients
 * @host: name or IP address of this host; NULL: any, of both families
 * @service: name or number of a port; NULL: a free one
 * @params: how this side takes messages; NULL: the defaults
 * @server: where to put it
 * @error: details; NULL is fine
 *
 * Clients may come over any device of the host. A program that calls daemon(3) does so before
 * this: see Fork.
 *
 * Buffers: none of the caller's.
 *
 * Return: 0; -EINVAL, -E2BIG: as ibchan_dial(), or @params has a source; as ibchan_context_open()
 * and ibchan_listener_create().
 */
int ibchan_serve(const char *host, const char *service,
		 const struct ibchan_message_params *params,
		 struct ibchan_server **server, struct ibchan_error *error);

/**
 * ibchan_take() - take the next client
 * @server: listening
 * @timeout_ns: how long to wait for one, in nanoseconds; 0: not at all;
 *	IBCHAN_TIMEOUT_NEVER
 * @channel: where to put its channel, connected
 * @error: details; NULL is fine
 *
 * Clients are accepted in this call only: while a program does something else, ibchan_dial() waits
 * for it, so one that is long busy with a client takes the others in another thread.
 *
 * Up to 32 clients that are not connected yet are accepted at a time. When further ones wait, one
 * that has not connected within 200 ms gives up its place: peers that ask and say no more cannot
 * keep others out. A peer that is no client of ibchan_dial()
 * is rejected. So is a client for which memory or handles are lacking: when no other client is
 * connected, this returns why, and the next call goes on. ibchan_channel_close() ends the channel,
 * before or after the server is closed.
 *
 * Buffers: none of the caller's.
 *
 * Return: 0; -ETIMEDOUT: none came; -EINTR: a signal came, and no client was taken; -EINVAL: a
 * negative time-out; -ENOMEM, -EMFILE, -EDQUOT: there is nothing left for a client, as
 * ibchan_builder_prepare(), ibchan_cq_create() and ibchan_mr_reg() say; -ENODEV: the server
 * listens at an address of a device that is gone. No client will come any more, and
 * ibchan_server_fd() stays readable: close the server; -EPERM: see Fork.
 */
int ibchan_take(struct ibchan_server *server, __s64 timeout_ns,
		struct ibchan_channel **channel, struct ibchan_error *error);

/**
 * ibchan_server_fd() - for poll and epoll
 * @server: listening
 *
 * Readable, level-triggered, while ibchan_take() has something to do: a client is connected, or has
 * asked, or a channel has broken. Then call ibchan_take() with a time-out of 0, once or until it
 * returns -ETIMEDOUT, which it may also do at once. Do not close the descriptor.
 *
 * Return: the descriptor.
 */
int ibchan_server_fd(const struct ibchan_server *server);

/**
 * ibchan_server_address() - where a server listens
 * @server: listening
 * @address: where to put it; with the port
 */
void ibchan_server_address(const struct ibchan_server *server,
			   struct sockaddr_storage *address);

/**
 * ibchan_server_close() - listen no more
 * @server: NULL is fine
 *
 * Clients that were not taken are rejected. Channels that were taken live on.
 *
 * Buffers: none of the caller's.
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
 * and this returns when the peer has received it. Signals do not end the wait. Threads that send
 * at the same time take turns.
 *
 * A program that must not wait sends messages of up to message_bytes, with a time-out of 0. When
 * the call returns -ETIMEDOUT with IBCHAN_REASON_MESSAGES_UNTAKEN the program keeps the message,
 * and sends it again behind its next ibchan_receive_bytes() on the channel, whatever that returns:
 * the peer's word that it has received some makes ibchan_channel_fd() readable. A longer message
 * needs time for the peer to read it; a time-out of 0 breaks the channel.
 *
 * That a message has arrived is certain when ibchan_channel_close() has returned 0, or the peer
 * has answered.
 *
 * Buffers: @bytes may be reused on return. Only with the errno of a filter of system calls in
 * @error the peer may read them until the channel is closed.
 *
 * Return: 0; -ETIMEDOUT: with reason.code IBCHAN_REASON_MESSAGES_UNTAKEN in @error, the peer has
 * received none of the earlier messages in time, or other threads were sending, and nothing was
 * sent. With another reason.code the peer has not received a long message in time, and the
 * channel is broken for that; -EMSGSIZE: longer than 2^40; -ENOMEM, -EFAULT: a long message
 * cannot be registered, as ibchan_mr_reg() says, which may return others as well; -EINVAL: a
 * negative time-out, or a channel that was made otherwise; -ESHUTDOWN: the channel is broken, or
 * the peer has closed it. ibchan_receive_bytes() still returns what the peer sent before, and
 * then why; -EAGAIN: the program's own works take all places of the send queue; -EPERM: see
 * Fork.
 */
int ibchan_send_bytes(struct ibchan_channel *channel, const void *bytes, size_t length,
		      __s64 timeout_ns, struct ibchan_error *error);

/**
 * ibchan_receive_bytes() - receive a message, and wait for one
 * @channel: of ibchan_dial() or ibchan_take()
 * @buf: where to put it
 * @room: bytes of @buf
 * @timeout_ns: in nanoseconds; 0: do not wait; IBCHAN_TIMEOUT_NEVER: no limit
 * @error: details; NULL is fine
 *
 * Messages come in the order in which they were sent. Those that were copied are there also
 * when the peer has closed the channel since. A long one is read when it is its turn, which takes
 * as long as the network needs, whatever @timeout_ns is. Threads that receive at the same time
 * take turns, and each takes a message of its own.
 *
 * Buffers: @buf is the caller's on return.
 *
 * Return: how many bytes, which may be 0; -ENODATA: the peer has closed the channel, and all its
 * messages were received; -ECONNRESET: the peer has ended without closing it, or has broken it;
 * -EMSGSIZE: the message is longer than @room, reason.value[0] of @error is its length, and it
 * stays for the next call; -ETIMEDOUT: none came in time; -EINTR: a signal came, and no message
 * was taken; -EHOSTUNREACH: the peer does not answer any more, which a keepalive finds out in
 * about 10 s, and the channel is broken; -EPROTO: the peer has sent what is no message of
 * ibchan_send_bytes(), or has offered memory that it has not or lets nobody read, and the channel
 * is broken for that; -ECANCELED: the channel was broken on this side; -ENODEV: the device is
 * gone; -ENOMEM, -EFAULT: @buf cannot be registered for a long message, as ibchan_mr_reg() says,
 * which may return others as well. The message stays for the next call; -EINVAL: a negative
 * time-out, or a channel that was made otherwise; -EPERM: see Fork.
 */
ssize_t ibchan_receive_bytes(struct ibchan_channel *channel, void *buf, size_t room,
			     __s64 timeout_ns, struct ibchan_error *error);

/**
 * ibchan_channel_fd() - for poll and epoll
 * @channel: of ibchan_dial() or ibchan_take()
 *
 * Readable, level-triggered, while ibchan_receive_bytes() has something to tell: a message, or that
 * the channel has ended; or to take note of: that the peer has received messages, in which case
 * ibchan_receive_bytes() with a time-out of 0 may return -ETIMEDOUT all the same. One call of it
 * per round of the loop is enough. EPOLLOUT means nothing here: ibchan_send_bytes() says when to
 * send again. Do not close it: it goes with the channel.
 *
 * Return: the descriptor; -EINVAL: a channel that was made otherwise; as ibchan_cq_fd().
 */
int ibchan_channel_fd(struct ibchan_channel *channel);

/**
 * ibchan_channel_pd() - the domain of a channel
 * @channel: connected or broken
 *
 * For memory that works on the channel are to use. Regions have to be deregistered before a
 * channel of the short way is closed, which frees the domain: else the domain stays as long as
 * the context.
 *
 * Return: the domain.
 */
struct ibchan_pd *ibchan_channel_pd(const struct ibchan_channel *channel);

/**
 * ibchan_channel_context() - the context of a channel
 * @channel: connected or broken
 *
 * Do not close that of a channel of the short way: it ends with the last channel and the server
 * that it belongs to. A server's events are for ibchan_take().
 *
 * Return: the context.
 */
struct ibchan_context *ibchan_channel_context(const struct ibchan_channel *channel);

#ifdef __cplusplus
}
#endif

#endif /* _IBCHAN_MESSAGE_H */
