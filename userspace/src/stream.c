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

#include "slots.h"
#include "stream.h"
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

/* --- what is posted; under the lock --- */

static struct ibchan_submit_sge sge_of(const struct messages *m, const void *bytes, size_t length)
{
	return ibchan_sge_unchecked(m->mr, (size_t)((const unsigned char *)bytes - m->memory),
				    length);
}

/* Returns the number of receives. @offered: those among them whose message was taken. */
static __u32 gather_receives(const struct messages *m, struct ibchan_submit_wr *wrs,
			     struct ibchan_submit_sge *sges, __u32 *offered)
{
	const struct inbox *box;
	__u32 num = 0;

	*offered = 0;
	for (box = m->idle; box && num < BATCH; box = box->next, num++) {
		sges[num] = sge_of(m, box->bytes, m->box_bytes);
		wrs[num] = ibchan_wr_receive(m->channel, &sges[num], 1);
		wrs[num].wr_id = (__u64)(box - m->inboxes);
		wrs[num].flags = OWN;
		*offered += box->is_taken;
	}
	return num;
}

static void receives_posted(struct messages *m, __u32 num)
{
	struct inbox *box;

	for (; num; num--) {
		box = m->idle;
		m->idle = box->next;
		m->offered += box->is_taken;
		box->is_taken = false;
	}
}

/* Any post tells the peer how many more messages it may send. */
int stream_post(struct messages *m, struct ibchan_submit_wr *send, struct frame *frame,
		struct ibchan_error *error)
{
	__u32 num, receives, accepted, offered;
	struct ibchan_submit_wr wrs[BATCH + 1];
	struct ibchan_submit_sge sges[BATCH];
	bool is_last;
	int err;

	do {
		receives = gather_receives(m, wrs, sges, &offered);
		num = receives;
		is_last = num < BATCH;
		if (is_last && send) {
			frame->taken = htobe32(m->offered + offered);
			wrs[num++] = *send;
		}
		accepted = 0;
		err = num ? ibchan_post(m->station->context, wrs, num, &accepted, error) : 0;
		receives_posted(m, min(accepted, receives));
	} while (!err && !is_last);
	if (!err && send) {
		m->told = m->offered;
		m->must_tell = false;
	}
	return err;
}

static int post_frame(struct messages *m, struct frame *frame, size_t bytes,
		      struct ibchan_error *error)
{
	const struct ibchan_submit_sge sge = sge_of(m, frame, bytes);
	struct ibchan_submit_wr wr = ibchan_wr_send(m->channel, &sge, 1);

	wr.flags = OWN | IBCHAN_WR_UNSIGNALED;
	return stream_post(m, &wr, frame, error);
}

/* For frames without a message: they have been read by the time that it is their turn again. */
static struct frame *small_outbox(const struct messages *m, __u32 index)
{
	unsigned char *first = m->memory + (m->num_inboxes + m->num) * m->box_bytes;

	return (struct frame *)first + index;
}

static unsigned char *outbox(const struct messages *m)
{
	return m->memory + (m->num_inboxes + m->window.box) * m->box_bytes;
}

int stream_acknowledge(struct messages *m, struct ibchan_error *error)
{
	struct frame *frame = small_outbox(m, m->controls % CONTROL_FRAMES);
	int err;

	if (!is_due(m))
		return 0;
	*frame = frame_make(FRAME_TAKEN, 0, 0);
	err = post_frame(m, frame, sizeof(*frame), error);
	if (!err)
		m->controls++;
	return err;
}

/* --- what arrives; under the lock --- */

static void announce(struct messages *m)
{
	if (has_news(m))
		source_add(m->station->context, &m->channel->source);
}

static void repost(struct messages *m, struct inbox *box, bool is_taken)
{
	box->is_taken = is_taken;
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
		repost(m, box, false);
	}
}

/* Takes note of every frame that is there. 0 or a negative errno. */
int stream_look(struct messages *m)
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

static int look(struct messages *m)
{
	int err = stream_look(m);

	announce(m);
	return err;
}

/* No more messages will come: why, in the words of ibchan_receive_bytes(). */
int stream_end_of(struct messages *m)
{
	struct ibchan_channel_info info;
	int err = m->error ? m->error : ibchan_channel_query(m->channel, &info, NULL);

	/* A peer that has closed may not have taken everything. */
	m->is_known = !m->ended;
	if (m->ended)
		return -ENODATA;
	if (err)
		return err;
	/* Not 0, which would be a message. */
	if (!info.error)
		return -ECONNRESET;
	if (info.error == -ETIMEDOUT)
		return -EHOSTUNREACH;
	return info.error == -EMSGSIZE || info.error == -EREMOTEIO ? -EPROTO : info.error;
}

/* --- sending; one thread at a time --- */

static int refuse(struct ibchan_error *error, int err, __u32 code, __u64 first, __u64 second)
{
	const struct ibchan_reason reason = { .code = code, .value = { first, second } };

	return error_set(error, err, &reason);
}

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
		tail = ring_tail(m->cq);
		err = may_go_on(m, place) ? 0 : look(m);
		if (may_go_on(m, place))
			return 0;
		if (m->ended || m->over) {
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
 * With a place in the window. -EAGAIN is about the peer's room: that of the send queue its owner
 * knows.
 */
static int post_message(struct messages *m, struct frame *frame, size_t bytes,
			struct ibchan_error *error)
{
	int err = post_frame(m, frame, bytes, error);

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
	unsigned char *box;
	int err = await_place(m, deadline, error);

	if (err)
		return err;
	box = outbox(m);
	*(struct frame *)box = frame_make(FRAME_BYTES, 0, length);
	if (length)
		memcpy(box + sizeof(struct frame), bytes, length);
	err = post_message(m, (struct frame *)box, sizeof(struct frame) + length, error);
	lock_give(&m->lock);
	return err;
}

static int post_offer(struct messages *m, struct lent *lent, struct ibchan_error *error)
{
	struct frame_offer *box = (struct frame_offer *)outbox(m);
	int err;

	*box = (struct frame_offer) {
		.frame = frame_make(FRAME_OFFER, 0, lent->length),
		.addr = htobe64(lent->mr->remote_addr),
		.rkey = htobe32(lent->mr->rkey),
	};
	err = post_message(m, &box->frame, sizeof(*box), error);
	lent->place = m->window.sent;
	return err;
}

/* Offers the bytes of @lent to the peer. @is_kept: ibchan_next() tells when they are taken. */
static int lend(struct messages *m, struct lent *lent, bool is_kept,
		const struct deadline *deadline, struct ibchan_error *error)
{
	const struct ibchan_mr_params params = {
		.size = sizeof(params),
		.access = IBCHAN_ACCESS_REMOTE_READ,
		.addr = (void *)(uintptr_t)lent->bytes,
		.length = lent->length,
	};
	int err = ibchan_mr_reg(m->pd, &params, &lent->mr, error);

	if (err)
		return err;
	err = await_place(m, deadline, error);
	if (!err) {
		err = post_offer(m, lent, error);
		if (!err && is_kept) {
			*m->lent_last = lent;
			m->lent_last = &lent->next;
		}
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
	int err = lend(m, &lent, false, deadline, error);

	if (err)
		return err;
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
		return error_set(error, -EINVAL, NULL);
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
	err = lend(m, lent, true, &now, error);
	if (err)
		free(lent);
	return err ? err : 1;
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
 * Has a read that failed ended the channel? One that was posted has, and a peer that lets nobody
 * read offers what it has not. A message whose read was refused otherwise stays for the next call.
 */
static void read_failed(struct messages *m, const struct ibchan_error *why)
{
	lock_take(&m->lock);
	if (why->code == -EOPNOTSUPP)
		fail(m);
	else if (why->origin == IBCHAN_ERROR_WORK || why->code == -ESHUTDOWN ||
		 why->code == -ENODEV)
		m->over = true;
	lock_give(&m->lock);
}

static int read_piece(struct messages *m, unsigned char *buf, size_t length,
		      const struct ibchan_remote_region *from, struct ibchan_error *error)
{
	const struct ibchan_mr_params params = {
		.size = sizeof(params),
		.addr = buf, .length = length, .access = IBCHAN_ACCESS_LOCAL,
	};
	struct ibchan_error why;
	struct ibchan_mr *mr;
	struct ibchan_submit_sge sge;
	struct ibchan_submit_wr wr;
	int err = ibchan_mr_reg(m->pd, &params, &mr, error);

	if (err)
		return err;
	sge = ibchan_sge_unchecked(mr, 0, length);
	wr = ibchan_wr_read(m->channel, &sge, 1, from);
	err = ibchan_perform(m->channel, &wr, IBCHAN_TIMEOUT_NEVER, NULL, &why);
	ibchan_mr_dereg(mr);
	if (err)
		read_failed(m, &why);
	if (error)
		*error = why;
	return err;
}

/* How long this takes is the network's: a peer cannot delay it by doing nothing. */
static int read_offer(struct messages *m, const struct arrival *offer, unsigned char *buf,
		      struct ibchan_error *error)
{
	struct ibchan_remote_region from = {
		.addr = offer->addr, .length = offer->length, .rkey = offer->rkey,
	};
	size_t piece;
	int err = 0;

	for (; from.length && !err; from.length -= piece) {
		piece = (size_t)min(from.length, PIECE_BYTES);
		err = read_piece(m, buf, piece, &from, error);
		buf += piece;
		from.addr += piece;
	}
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
	repost(m, box, true);
	stream_acknowledge(m, NULL);
	announce(m);
}

/*
 * -EAGAIN: none has arrived; @tail: since when; @due: the peer waits to be told. With the lock
 * held if one has.
 */
static int find_first(struct messages *m, __u32 *tail, bool *due, struct ibchan_error *error)
{
	int err;

	lock_take(&m->lock);
	*tail = ring_tail(m->cq);
	err = look(m);
	if (m->first)
		return 0;
	/* Tells the peer what could not be told before. */
	if (!err && !m->ended && !m->over)
		err = stream_acknowledge(m, error);
	announce(m);
	*due = is_due(m);
	if (m->ended || m->over || err == -ESHUTDOWN || err == -ENODEV)
		err = stream_end_of(m);
	lock_give(&m->lock);
	return err ? error_set(error, err, NULL) : -EAGAIN;
}

/* Nothing says when a send queue that was full has room again: the peer is told soon. */
static int sleep_for_first(const struct messages *m, __u32 tail, bool due,
			   const struct deadline *deadline)
{
	const __s64 left = deadline_left(deadline);
	struct deadline soon;
	int err;

	if (!due || (left >= 0 && left <= RETRY_NS))
		return cq_sleep(m->cq, tail, deadline);
	deadline_set(&soon, RETRY_NS);
	err = cq_sleep(m->cq, tail, &soon);
	return err == -ETIMEDOUT ? 0 : err;
}

static int await_first(struct messages *m, const struct deadline *deadline,
		       struct ibchan_error *error)
{
	int ret, wait = 0;
	__u32 tail;
	bool due;

	for (;;) {
		ret = find_first(m, &tail, &due, error);
		if (ret != -EAGAIN)
			return ret;
		/* One last look has been taken after the wait ended. */
		if (wait)
			return error_set(error, wait == -ETIMEDOUT ? too_late(deadline) : wait,
					 NULL);
		wait = sleep_for_first(m, tail, due, deadline);
	}
}

static ssize_t receive_copy(struct messages *m, void *buf, struct ibchan_error *error)
{
	const struct inbox *box = m->first;
	const __u64 length = box->arrival.length;

	if (length)
		memcpy(buf, box->bytes + sizeof(struct frame), length);
	take_first(m);
	lock_give(&m->lock);
	error_set(error, 0, NULL);
	return (ssize_t)length;
}

/* The message stays the first one until it was read. */
static ssize_t receive_offer(struct messages *m, void *buf, struct ibchan_error *error)
{
	const struct arrival offer = m->first->arrival;
	int err, end;

	lock_give(&m->lock);
	err = read_offer(m, &offer, buf, error);
	lock_take(&m->lock);
	if (!err)
		take_first(m);
	look(m);
	end = err && m->over ? stream_end_of(m) : 0;
	if (end)
		err = error_set(error, end, NULL);
	m->is_cut |= !!end;
	announce(m);
	lock_give(&m->lock);
	return err ? err : (ssize_t)offer.length;
}

ssize_t ibchan_receive_bytes(struct ibchan_channel *channel, void *buf, size_t room,
			     __s64 timeout_ns, struct ibchan_error *error)
{
	struct messages *m = channel->messages;
	struct deadline deadline;
	ssize_t ret;
	int err = m ? deadline_begin(&deadline, m->station->context, timeout_ns) : -EINVAL;

	if (!err)
		err = lock_take_until(&m->receiving, &deadline);
	if (err)
		return error_set(error, err == -ETIMEDOUT ? too_late(&deadline) : err, NULL);
	ret = await_first(m, &deadline, error);
	if (!ret && m->first->arrival.length > room) {
		ret = refuse(error, -EMSGSIZE, IBCHAN_REASON_MESSAGE_TOO_LONG,
			     m->first->arrival.length, room);
		lock_give(&m->lock);
	} else if (!ret) {
		ret = m->first->arrival.kind == FRAME_OFFER ? receive_offer(m, buf, error) :
							       receive_copy(m, buf, error);
	}
	lock_give(&m->receiving);
	return ret;
}

/* --- the end --- */

static int send_end(struct messages *m)
{
	struct frame *frame = small_outbox(m, CONTROL_FRAMES);
	const struct ibchan_submit_sge sge = sge_of(m, frame, sizeof(*frame));
	struct ibchan_submit_wr wr = ibchan_wr_send(m->channel, &sge, 1);

	*frame = frame_make(FRAME_END, m->taken, 0);
	wr.flags = OWN;
	return perform_to_the_end(m->channel, &wr, LINGER_NS, NULL);
}

/*
 * Before the channel is closed, by its last user. When the frame that says so has arrived, all
 * those before it have, too. A peer that has closed at the same time has said what it has taken.
 * Returns 0, or -ECONNRESET when messages may be lost and nobody was told that the channel has
 * broken.
 */
int stream_end(struct messages *m)
{
	const struct lent *lent;
	int err;

	if (!m->window.size || m->is_known)
		return 0;
	look(m);
	/* A message that the peer has yet to read goes with the channel: that is no orderly end. */
	for (lent = m->lent; lent; lent = lent->next)
		if (!is_taken(m, lent->place))
			return -ECONNRESET;
	err = m->ended || m->over ? -ECONNRESET : send_end(m);
	if (!err)
		return 0;
	look(m);
	return m->window.taken == m->window.sent ? 0 : -ECONNRESET;
}
