/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The doctor's own channel. The asking side sends messages, the serving side answers each with
 * one of the same length, and both check every byte:
 *
 *	doctor			doctor --serve
 *	request (greeting)  ->
 *		    <-  accepted (greeting)
 *	message		    ->
 *		    <-  answer		empty: the message was wrong
 *	and so on, until the asking side closes the channel
 */
#ifndef _IBCHAN_DOCTOR_LINK_H
#define _IBCHAN_DOCTOR_LINK_H

#include <stdbool.h>
#include <string.h>

#include <ibchan.h>

/* The port of rdma_cm programs that have none of their own. */
#define DOCTOR_PORT	"7471"

/* Largest message, and what a link pins: one each way. */
#define DOCTOR_MESSAGE	(64U << 10)
#define DOCTOR_MEMORY	(2 * DOCTOR_MESSAGE)

/**
 * struct link - one end of the doctor's channel
 * @serves: it answers
 * @context: lent
 * @device: and so on to @prepared: in the order of their making
 * @channel: prepared, or connected
 * @out: memory that messages go out from
 * @in: memory that messages arrive in
 * @round: messages that were answered
 * @timeout_ns: for each wait
 */
struct link {
	bool serves;
	struct ibchan_context *context;
	struct ibchan_device *device;
	struct ibchan_pd *pd;
	struct ibchan_mr *mr;
	struct ibchan_prepared *prepared;
	struct ibchan_channel *channel;
	__u8 *out;
	__u8 *in;
	__u32 round;
	__s64 timeout_ns;
};

/* All return 0 or a negative errno, with details in @error, which is not NULL. */
int link_open(struct link *link, struct ibchan_context *context, const char *device,
	      struct ibchan_error *error);
/* Makes room for the peer's next message; link_open() does so, too. */
int link_listen(struct link *link, struct ibchan_error *error);
/* Waits for a message, and tells its bytes. */
int link_hear(struct link *link, __u32 *bytes, struct ibchan_error *error);
/* Sends a message of this round, or an empty one. */
int link_say(struct link *link, __u32 bytes, struct ibchan_error *error);
/* Is what came last the peer's message of this round? */
bool link_is_right(const struct link *link, __u32 bytes);
/* Takes one that was opened in part, too. */
void link_close(struct link *link);

/* Goes with the request, and with its answer: the name and the version of the language. */
static const __u8 greeting[] = { 'i', 'b', 'c', 'd', 0, 0, 0, 1 };

/* Zeros may follow: a message of the connection manager has one length. */
static inline bool greeting_is_ours(const void *data, __u32 length)
{
	return length >= sizeof(greeting) && !memcmp(data, greeting, sizeof(greeting));
}

#endif /* _IBCHAN_DOCTOR_LINK_H */
