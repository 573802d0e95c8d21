// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The short way: how messages go. One that the peer has a box for is copied behind a frame, and
 * is on its way when the call returns. A longer one stays where it is: the peer is offered it,
 * reads it into the memory of its caller, and says so.
 *
 * Nothing waits for a completion of a send. A box is used again when the peer has taken the
 * message that lay in it, which its frames tell. A thread that waits, for a message or for the
 * peer to take one, sleeps until a frame arrives; every thread that looks takes note of them all.
 */
#include <errno.h>
#include <stdlib.h>

#include "message.h"
#include "slots.h"
#include "wait.h"

/* Receives that one call posts. */
#define BATCH		16
/* Bytes that are read at a time, and so pinned. */
#define PIECE_BYTES	0x100000U
/* How long the end of a channel waits for what was sent last. */
#define LINGER_NS	NSEC_PER_SEC
/* How soon a frame is sent again that found the send queue full. */
#define RETRY_NS	(NSEC_PER_SEC / 1000)

/* Nobody else uses this memory, so nothing can collide there. */
#define OWN		IBCHAN_WR_UNCHECKED

/* --- what there is to tell; under the lock --- */

/*
 * The peer is told when half of its window is taken, when it waits for just that, and by each
 * frame that is sent anyway. The window is that of the side with fewer boxes.
 */
static bool is_due(const struct messages *m)
{
	return m->must_tell || 2 * (m->taken - m->told) >= m->window.size;
}

static bool is_taken(const struct messages *m, __u32 place)
{
	return (__s32)(m->window.taken - place) >= 0;
}

static bool is_ending(const struct messages *m)
{
	return m->ended || m->over;
}

/* No message comes any more that can be received. */
static bool is_at_end(const struct messages *m)
{
	return is_ending(m) && (!m->first || m->is_cut);
}

static bool has_room(const struct messages *m)
{
	return !window_is_full(&m->window) && !is_ending(m);
}

/*
 * Is a program that waits for room to go on? Where messages wait in a channel that ends, the
 * program may leave them there until it has room: its next post then fails.
 */
static bool is_to_wake(const struct messages *m)
{
	return m->wants_room && (has_room(m) || (is_ending(m) && !is_at_end(m)));
}

/* The oldest message that was lent is its owner's again. */
static bool is_back(const struct messages *m)
{
	return m->lent && (is_taken(m, m->lent->place) || is_ending(m));
}

/* Has ibchan_next() something to tell its caller, or the peer? */
static bool has_news(const struct messages *m)
{
	return (m->first && !m->is_told) || (is_at_end(m) && !m->is_end_told) || is_to_wake(m) ||
	       (is_due(m) && !is_ending(m)) || is_back(m);
}

static void announce(struct messages *m)
{
	if (has_news(m))
		source_add(m->station->context, &m->channel->source);
}

/* --- what is posted; under the lock --- */

static struct ibchan_submit_sge sge_of(const struct messages *m, const void *bytes, size_t length)
{
	return ibchan_sge_unchecked(m->mr, (size_t)((const unsigned char *)bytes - m->memory),
				    length);
}

/* Each frame that is sent may tell of all messages that were taken: their receives are posted. */
int stream_post(struct messages *m, const struct ibchan_submit_wr *send, struct ibchan_error *error)
{
	struct ibchan_submit_wr wrs[BATCH + 1];
	struct ibchan_submit_sge sge;
	const struct inbox *box;
	__u32 num, accepted;
	bool is_last;
	int err;

	do {
		for (box = m->idle, num = 0; box && num < BATCH; box = box->next, num++) {
			sge = sge_of(m, box->bytes, m->box_bytes);
			wrs[num] = ibchan_wr_receive(m->channel, &sge, 1);
			wrs[num].wr_id = (__u64)(box - m->inboxes);
			wrs[num].flags = OWN;
		}
		is_last = num < BATCH;
		if (is_last && send)
			wrs[num++] = *send;
		accepted = 0;
		err = num ? ibchan_post(m->station->context, wrs, num, &accepted, error) : 0;
		for (; accepted && m->idle; accepted--)
			m->idle = m->idle->next;
	} while (!err && !is_last);
	return err;
}

static int post_frame(struct messages *m, const struct frame *frame, size_t bytes,
		      struct ibchan_error *error)
{
	const struct ibchan_submit_sge sge = sge_of(m, frame, bytes);
	struct ibchan_submit_wr wr = ibchan_wr_send(m->channel, &sge, 1);
	int err;

	wr.flags = OWN | IBCHAN_WR_UNSIGNALED;
	err = stream_post(m, &wr, error);
	if (!err) {
		m->told = m->taken;
		m->must_tell = false;
	}
	return err;
}

/* For frames without a message: they have been read by the time that it is their turn again. */
static struct frame *small_outbox(const struct messages *m, __u32 index)
{
	void *first = m->memory + (m->num_inboxes + m->num) * m->box_bytes;

	return (struct frame *)first + index;
}

static void *outbox(const struct messages *m)
{
	return m->memory + (m->num_inboxes + m->window.box) * m->box_bytes;
}

/* Tells the peer what was taken, if that is due. */
static int acknowledge(struct messages *m)
{
	struct frame *frame = small_outbox(m, m->controls % CONTROL_FRAMES);
	int err;

	if (!is_due(m))
		return 0;
	*frame = frame_make(FRAME_TAKEN, m->taken, 0);
	err = post_frame(m, frame, sizeof(*frame), NULL);
	m->controls += !err;
	return err;
}

/* --- what arrives; under the lock --- */

static void repost(struct messages *m, struct inbox *box)
{
	box->next = m->idle;
	m->idle = box;
}

/* Ends the channel: a peer of this kind does not send this. */
static void fail(struct messages *m)
{
	m->over = true;
	m->error = -EPROTO;
	ibchan_channel_break(m->channel);
}

static int read_frame(struct messages *m, struct inbox *box, const struct ibchan_cqe *done)
{
	int err;

	if (done->flags & IBCHAN_CQE_IMM || done->bytes > m->box_bytes || m->ended)
		return -EPROTO;
	err = frame_read(box->bytes, (__u32)done->bytes, &box->arrival);
	/* A peer that tells nothing new could use up the receives that no window limits. */
	if (!err && box->arrival.kind == FRAME_TAKEN && box->arrival.taken == m->window.taken)
		err = -EPROTO;
	return err ? err : window_advance(&m->window, box->arrival.taken);
}

static void arrived(struct messages *m, const struct ibchan_cqe *done)
{
	struct inbox *box = &m->inboxes[done->wr_id];

	/* The program may have posted a receive of its own all the same. */
	if (done->wr_id >= m->num_inboxes) {
		fail(m);
	} else if (done->error) {
		m->over = true;
	} else if (read_frame(m, box, done)) {
		fail(m);
	} else if (box->arrival.kind == FRAME_BYTES || box->arrival.kind == FRAME_OFFER) {
		box->next = NULL;
		*m->last = box;
		m->last = &box->next;
	} else {
		m->ended = box->arrival.kind == FRAME_END;
		repost(m, box);
	}
}

/* Takes note of every frame that is there. 0 or a negative errno. */
static int take_note(struct messages *m)
{
	struct ibchan_cqe done[BATCH];
	int i, num;

	do {
		num = ibchan_cq_poll(m->cq, done, BATCH);
		for (i = 0; i < num && !m->error; i++)
			arrived(m, &done[i]);
	} while (num > 0);
	return num;
}

static int refuse(struct ibchan_error *error, int err, __u32 code, __u64 first, __u64 second)
{
	const struct ibchan_reason reason = { .code = code, .value = { first, second } };

	return error_set(error, err, &reason);
}

/* No more messages will come: why, in the words of ibchan_receive_bytes(). */
static int stream_end_of(struct messages *m, struct ibchan_error *error)
{
	struct ibchan_channel_info info = { .error = m->error };
	int err = m->error ? 0 : ibchan_channel_query(m->channel, &info, NULL);

	/* A peer that has closed may not have taken everything. */
	m->is_known = !m->ended;
	if (m->ended)
		err = -ENODATA;
	else if (!err && !info.error)
		err = -ECONNRESET;
	if (err)
		return error_set(error, err, NULL);
	err = info.error;
	if (err == -ETIMEDOUT)
		err = -EHOSTUNREACH;
	else if (err == -EMSGSIZE || err == -EREMOTEIO)
		err = -EPROTO;
	return refuse(error, err, IBCHAN_REASON_BROKEN, (__u64)-(__s64)info.error, info.status);
}

/* --- sending; one thread at a time --- */

/* Nothing was sent; @err: -EAGAIN or -ETIMEDOUT. Without room, ibchan_next() tells of some. */
static int refuse_untaken(struct messages *m, int err, struct ibchan_error *error)
{
	struct window window;

	lock_take(&m->lock);
	window = m->window;
	m->wants_room = true;
	announce(m);
	lock_give(&m->lock);
	return refuse(error, err, IBCHAN_REASON_MESSAGES_UNTAKEN, window.sent, window.taken);
}

static bool may_go_on(const struct messages *m, const __u32 *place)
{
	return place ? is_taken(m, *place) : has_room(m);
}

/*
 * Until @place was taken, or, where that is NULL, there is room for one more message. With 0 the
 * lock is held.
 */
static int await(struct messages *m, const __u32 *place, const struct deadline *deadline)
{
	int err, wait = 0;
	__u32 tail;

	for (;;) {
		lock_take(&m->lock);
		if (may_go_on(m, place))
			return 0;
		tail = ring_tail(m->cq);
		err = take_note(m);
		announce(m);
		if (may_go_on(m, place))
			return 0;
		if (is_ending(m)) {
			m->is_known = true;
			err = -ESHUTDOWN;
		}
		lock_give(&m->lock);
		/* One last look has been taken after the wait ended. */
		if (err || wait)
			return err ? err : wait;
		wait = cq_sleep(m->cq, tail, deadline);
		if (wait == -EINTR)
			wait = 0;
	}
}

/* A place in the window for one message; with the lock held if there is one. */
static int await_place(struct messages *m, const struct deadline *deadline,
		       struct ibchan_error *error)
{
	int err = await(m, NULL, deadline);

	if (err == -ETIMEDOUT)
		return refuse_untaken(m, too_late(deadline), error);
	return err ? error_set(error, err, NULL) : 0;
}

/*
 * From the next outbox, with a place in the window. -EAGAIN is about the peer's room: that of the
 * send queue its owner knows.
 */
static int post_message(struct messages *m, size_t bytes, struct ibchan_error *error)
{
	int err = post_frame(m, outbox(m), bytes, error);

	if (!err)
		window_send(&m->window);
	if (err == -ESHUTDOWN || err == -ENODEV)
		m->is_known = true;
	if (err != -EAGAIN)
		return err;
	if (error)
		error->code = -ENOBUFS;
	return -ENOBUFS;
}

static int send_copy(struct messages *m, const void *bytes, size_t length,
		     const struct deadline *deadline, struct ibchan_error *error)
{
	struct frame *frame;
	int err = await_place(m, deadline, error);

	if (err)
		return err;
	frame = outbox(m);
	*frame = frame_make(FRAME_BYTES, m->taken, length);
	if (length)
		memcpy(frame + 1, bytes, length);
	err = post_message(m, sizeof(*frame) + length, error);
	lock_give(&m->lock);
	return err;
}

/* Offers the bytes of @lent to the peer. With 0 the lock is held. */
static int lend(struct messages *m, struct lent *lent, const struct deadline *deadline,
		struct ibchan_error *error)
{
	const struct ibchan_mr_params params = {
		.size = sizeof(params), .access = IBCHAN_ACCESS_REMOTE_READ,
		.addr = (void *)(uintptr_t)lent->bytes, .length = lent->length,
	};
	int err = ibchan_mr_reg(m->pd, &params, &lent->mr, error);

	if (err)
		return err;
	err = await_place(m, deadline, error);
	if (!err) {
		*(struct frame_offer *)outbox(m) = (struct frame_offer) {
			.frame = frame_make(FRAME_OFFER, m->taken, lent->length),
			.addr = htobe64(lent->mr->remote_addr),
			.rkey = htobe32(lent->mr->rkey),
		};
		err = post_message(m, sizeof(struct frame_offer), error);
		lent->place = m->window.sent;
		if (err)
			lock_give(&m->lock);
	}
	if (err)
		ibchan_mr_dereg(lent->mr);
	return err;
}

/* From the offer on the peer may read the bytes, so the call cannot end without it. */
static int send_offer(struct messages *m, const void *bytes, size_t length,
		      const struct deadline *deadline, struct ibchan_error *error)
{
	struct lent lent = { .bytes = bytes, .length = length };
	int err = lend(m, &lent, deadline, error);

	if (err)
		return err;
	lock_give(&m->lock);
	err = await(m, &lent.place, deadline);
	if (err) {
		lock_take(&m->lock);
		m->is_known = true;
	}
	lock_give(&m->lock);
	if (err)
		ibchan_channel_break(m->channel);
	ibchan_mr_dereg(lent.mr);
	return error_set(error, err == -ETIMEDOUT ? -ECONNABORTED : err, NULL);
}

static int check_send(const struct messages *m, size_t length, struct ibchan_error *error)
{
	int err;

	if (!m)
		return error_set(error, -EINVAL, NULL);
	if (length > MESSAGE_MAX)
		return refuse(error, -EMSGSIZE, IBCHAN_REASON_MESSAGE_TOO_LONG, length,
			      MESSAGE_MAX);
	err = context_check(m->station->context);
	return err ? error_set(error, err, NULL) : 0;
}

int ibchan_send_bytes(struct ibchan_channel *channel, const void *bytes, size_t length,
		      __s64 timeout_ns, struct ibchan_error *error)
{
	struct messages *m = channel->messages;
	struct deadline deadline;
	int err = check_send(m, length, error);

	if (err)
		return err;
	if (timeout_ns < IBCHAN_TIMEOUT_NEVER)
		return refuse_begin(-EINVAL, timeout_ns, error);
	/* The peer needs time to read it, and breaking the channel is no answer. */
	if (length > m->peer_bytes && !timeout_ns)
		return refuse(error, -EMSGSIZE, IBCHAN_REASON_MESSAGE_TOO_LONG, length,
			      m->peer_bytes);
	deadline_set(&deadline, timeout_ns);
	do {
		err = lock_take_until(&m->sending, &deadline);
	} while (err == -EINTR);
	if (err)
		return refuse_untaken(m, too_late(&deadline), error);
	err = length > m->peer_bytes ? send_offer(m, bytes, length, &deadline, error) :
				       send_copy(m, bytes, length, &deadline, error);
	lock_give(&m->sending);
	return err;
}

/* --- sending without a wait --- */

/* The peer cannot reach it any more. */
void lent_free(struct lent *lent)
{
	ibchan_mr_dereg(lent->mr);
	free(lent);
}

static const struct deadline now;

static int post_long(struct messages *m, const void *bytes, size_t length,
		     struct ibchan_error *error)
{
	struct lent *lent = calloc(1, sizeof(*lent));
	int err;

	if (!lent)
		return error_set(error, -ENOMEM, NULL);
	lent->bytes = bytes;
	lent->length = length;
	err = lend(m, lent, &now, error);
	if (err) {
		free(lent);
		return err;
	}
	*m->lent_last = lent;
	m->lent_last = &lent->next;
	lock_give(&m->lock);
	return 1;
}

int ibchan_post_bytes(struct ibchan_channel *channel, const void *bytes, size_t length,
		      struct ibchan_error *error)
{
	struct messages *m = channel->messages;
	int err = check_send(m, length, error);

	if (err)
		return err;
	return length > m->peer_bytes ? post_long(m, bytes, length, error) :
					send_copy(m, bytes, length, &now, error);
}

/* --- receiving; one thread at a time --- */

/*
 * A read that was posted and has failed has ended the channel, and a peer that lets nobody read
 * offers what it has not. A message whose read was refused otherwise stays for the next call.
 */
static int read_piece(struct messages *m, unsigned char *buf, size_t length,
		      const struct ibchan_remote_region *from, struct ibchan_error *error)
{
	struct ibchan_error why;
	struct ibchan_mr *mr;
	struct ibchan_submit_sge sge;
	struct ibchan_submit_wr wr;
	int err = ibchan_mr_reg_local(m->pd, buf, length, &mr, error);

	if (err)
		return err;
	sge = ibchan_sge_unchecked(mr, 0, length);
	wr = ibchan_wr_read(m->channel, &sge, 1, from);
	err = ibchan_perform(m->channel, &wr, IBCHAN_TIMEOUT_NEVER, NULL, &why);
	ibchan_mr_dereg(mr);
	lock_take(&m->lock);
	if (err == -EOPNOTSUPP)
		fail(m);
	else if (err && (why.origin == IBCHAN_ERROR_WORK || err == -ESHUTDOWN || err == -ENODEV))
		m->over = true;
	lock_give(&m->lock);
	if (error)
		*error = why;
	return err;
}

/* The caller has the first message. The peer hears of it, at once if it waits. */
static void take_first(struct messages *m)
{
	struct inbox *box = m->first;

	m->first = box->next;
	if (!m->first)
		m->last = &m->first;
	m->is_told = false;
	m->taken++;
	m->must_tell |= box->arrival.kind == FRAME_OFFER;
	repost(m, box);
	acknowledge(m);
	announce(m);
}

/* Until there is a message. With 0 the lock is held. */
static int await_first(struct messages *m, const struct deadline *deadline,
		       struct ibchan_error *error)
{
	struct deadline soon;
	bool is_soon;
	int err, wait = 0;
	__s64 left;
	__u32 tail;

	for (;;) {
		lock_take(&m->lock);
		tail = ring_tail(m->cq);
		err = take_note(m);
		/* Tells the peer what could not be told before. */
		if (!m->first && !err && !is_ending(m))
			err = acknowledge(m);
		announce(m);
		if (m->first)
			return 0;
		is_soon = is_due(m);
		if (is_ending(m) || err == -ESHUTDOWN || err == -ENODEV)
			err = stream_end_of(m, error);
		else
			err = error_set(error, err == -EAGAIN ? 0 : err, NULL);
		lock_give(&m->lock);
		if (err)
			return err;
		/* One last look has been taken after the wait ended. */
		if (wait)
			return error_set(error, wait == -ETIMEDOUT ? too_late(deadline) : wait,
					 NULL);
		/* Nothing says when a send queue that was full has room: the peer is told soon. */
		left = deadline_left(deadline);
		is_soon &= left < 0 || left > RETRY_NS;
		if (is_soon)
			deadline_set(&soon, RETRY_NS);
		wait = cq_sleep(m->cq, tail, is_soon ? &soon : deadline);
		if (is_soon && wait == -ETIMEDOUT)
			wait = 0;
	}
}

/*
 * The message stays the first one until it was read; the lock is given back meanwhile. How long
 * that takes is the network's: a peer cannot delay it by doing nothing.
 */
static int receive_offer(struct messages *m, unsigned char *buf, struct ibchan_error *error)
{
	struct ibchan_remote_region from = {
		.addr = m->first->arrival.addr, .length = m->first->arrival.length,
		.rkey = m->first->arrival.rkey,
	};
	size_t piece;
	int err = 0;

	lock_give(&m->lock);
	for (; from.length && !err; from.length -= piece) {
		piece = (size_t)min(from.length, PIECE_BYTES);
		err = read_piece(m, buf, piece, &from, error);
		buf += piece;
		from.addr += piece;
	}
	lock_take(&m->lock);
	if (!err)
		take_first(m);
	take_note(m);
	if (err && m->over) {
		err = stream_end_of(m, error);
		m->is_cut = true;
	}
	announce(m);
	return err;
}

ssize_t ibchan_receive_bytes(struct ibchan_channel *channel, void *buf, size_t room,
			     __s64 timeout_ns, struct ibchan_error *error)
{
	struct messages *m = channel->messages;
	struct deadline deadline;
	__u64 length = 0;
	int err = m ? deadline_begin(&deadline, m->station->context, timeout_ns) : -EINVAL;

	if (!err)
		err = lock_take_until(&m->receiving, &deadline);
	if (err)
		return refuse_begin(err == -ETIMEDOUT ? too_late(&deadline) : err, timeout_ns,
				    error);
	err = await_first(m, &deadline, error);
	if (!err) {
		length = m->first->arrival.length;
		if (length > room) {
			err = refuse(error, -EMSGSIZE, IBCHAN_REASON_MESSAGE_TOO_LONG, length,
				     room);
		} else if (m->first->arrival.kind == FRAME_OFFER) {
			err = receive_offer(m, buf, error);
		} else {
			if (length)
				memcpy(buf, m->first->bytes + sizeof(struct frame), length);
			take_first(m);
			error_set(error, 0, NULL);
		}
		lock_give(&m->lock);
	}
	lock_give(&m->receiving);
	return err ? err : (ssize_t)length;
}

/* --- the end --- */

/*
 * Before the channel is closed, by its last user. When the frame that says so has arrived, all
 * those before it have, too. A peer that has closed at the same time has said what it has taken.
 * Returns 0, or -ECONNRESET when messages may be lost and nobody was told that the channel has
 * broken.
 */
int stream_end(struct messages *m)
{
	struct frame *frame = small_outbox(m, CONTROL_FRAMES);
	const struct ibchan_submit_sge sge = sge_of(m, frame, sizeof(*frame));
	struct ibchan_submit_wr wr = ibchan_wr_send(m->channel, &sge, 1);
	const struct lent *lent;

	if (!m->window.size || m->is_known)
		return 0;
	take_note(m);
	/* A message that the peer has yet to read goes with the channel: that is no orderly end. */
	for (lent = m->lent; lent; lent = lent->next)
		if (!is_taken(m, lent->place))
			return -ECONNRESET;
	*frame = frame_make(FRAME_END, m->taken, 0);
	wr.flags = OWN;
	if (!is_ending(m) && !ibchan_perform(m->channel, &wr, LINGER_NS, NULL, NULL))
		return 0;
	take_note(m);
	return m->window.taken == m->window.sent ? 0 : -ECONNRESET;
}

/* --- ibchan_next() tells of a channel; its end comes last --- */

/* Takes note of all that has happened, and of an end that no frame tells. */
static void take_note_of_end(struct messages *m)
{
	struct ibchan_channel_info info;
	int err = take_note(m);

	if (err == -ENODEV || err == -EPROTO)
		m->over = true;
	if (object_happenings(&m->channel->object, IBCHAN_EVENT_BROKEN))
		m->channel->is_ending = true;
	/* A broken channel ends its receives, and so tells by them; unless all had been used up. */
	if (m->channel->is_ending && !m->over &&
	    (ibchan_channel_query(m->channel, &info, NULL) || !info.recvs_in_flight)) {
		take_note(m);
		m->over = true;
	}
}

/* Takes the oldest message that was lent, if it is its owner's again, and tells of it. */
static struct lent *tell_lent(struct messages *m, struct ibchan_happening *happening)
{
	struct lent *lent = m->lent;

	if (!is_back(m))
		return NULL;
	m->lent = lent->next;
	if (!m->lent)
		m->lent_last = &m->lent;
	happening->kind = IBCHAN_NEXT_SENT;
	happening->bytes = lent->bytes;
	happening->length = lent->length;
	happening->error = is_taken(m, lent->place) ? 0 : -ESHUTDOWN;
	m->is_known |= happening->error != 0;
	return lent;
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
		happening_end(happening, m->channel, stream_end_of(m, NULL));
	} else {
		return false;
	}
	return true;
}

int stream_tell(struct source *source, struct ibchan_happening *happening)
{
	struct ibchan_channel *channel = source_of(source, struct ibchan_channel);
	struct messages *m = channel->messages;
	const int unwatched = source_watch(m->station->context, source, m->cq->fd);
	struct lent *lent;
	int told, err;

	happening->channel = channel;
	lock_take(&m->lock);
	take_note_of_end(m);
	if (!is_ending(m))
		acknowledge(m);
	if (m->over)
		source_deafen(m->station->context, source);
	lent = tell_lent(m, happening);
	if (lent || tell_other(m, happening)) {
		told = has_news(m) ? TOLD_MORE : TOLD_LAST;
	} else {
		told = has_news(m) ? TOLD_LATER : TOLD_NOTHING;
		/* The kernel may know that nothing will ever be there. */
		err = cq_bring_in(m->cq);
		if ((err == -ENODEV || err == -EPROTO) && !m->over) {
			take_note(m);
			m->over = true;
			told = TOLD_LATER;
		}
	}
	lock_give(&m->lock);
	/* Before it is the caller's again. */
	if (lent)
		lent_free(lent);
	return told == TOLD_NOTHING && unwatched ? TOLD_LATER : told;
}
