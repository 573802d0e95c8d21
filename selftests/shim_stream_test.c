// SPDX-License-Identifier: GPL-2.0-only
/*
 * The short way between two sides that are both here: the code of the library, and below it, in
 * place of the module and the network, a queue of receives for each side. A send finds the oldest
 * receive of the other side, or there is none, which the test counts.
 */
#define ibchan_post		fake_post
#define ibchan_perform		fake_perform
#define ibchan_cq_poll		fake_poll
#define ibchan_channel_break	fake_break
#define ibchan_channel_query	fake_query
#define ibchan_mr_reg		fake_reg
#define ibchan_mr_reg_local	fake_reg_local
#define ibchan_mr_dereg		fake_dereg
#define ibchan_send_bytes	tested_send
#define ibchan_post_bytes	tested_post
#define ibchan_receive_bytes	tested_receive
#include "../userspace/src/stream.c"
#include "../userspace/src/lock.c"

#include <stdlib.h>

#include "test.h"

#define ROOM	64	/* for a message */

/**
 * struct half - one side
 * @messages: what is tested
 * @receives: posted, from @first on
 * @done: completions, from @polled on
 * @unheard: frames that found no receive
 * @is_full: the program's own works take all places of the send queue
 * @read_error: what a read ends with
 * @tail: of the ring, which is not there
 */
struct half {
	struct messages messages;
	struct ibchan_channel channel;
	struct ibchan_cq cq;
	struct ibchan_mr mr;
	struct station station;
	struct ibchan_context context;
	struct half *peer;
	struct ibchan_submit_wr receives[4096];
	void *memories[4096];
	unsigned int first;
	unsigned int posted;
	struct ibchan_cqe done[4096];
	unsigned int polled;
	__u32 tail;
	int unheard;
	bool is_full;
	int read_error;
	bool is_broken;
};

FIXTURE(stream)
{
	struct half halves[2];
};

static struct half *half_of(const struct ibchan_channel *channel)
{
	return (struct half *)((char *)channel - offsetof(struct half, channel));
}

/* --- what lies below --- */

static void arrives(struct half *at, const void *bytes, __u32 length)
{
	unsigned int place = at->first % 4096;

	if (at->first == at->posted) {
		at->unheard++;
		return;
	}
	memcpy(at->memories[place], bytes, length);
	at->done[at->tail % 4096] = (struct ibchan_cqe) {
		.wr_id = at->receives[place].wr_id, .bytes = length,
	};
	at->first++;
	at->tail++;
}

/* Of a request with one element. */
static void *bytes_of(const struct half *half, const struct ibchan_submit_wr *wr)
{
	return half->messages.memory + wr->sge.offset;
}

int fake_post(struct ibchan_context *context, const struct ibchan_submit_wr *wrs, __u32 n,
	      __u32 *accepted, struct ibchan_error *error)
{
	struct half *half = (struct half *)((char *)context - offsetof(struct half, context));

	for (*accepted = 0; *accepted < n; (*accepted)++) {
		const struct ibchan_submit_wr *wr = &wrs[*accepted];

		if (wr->opcode != IBCHAN_OP_RECV && half->is_full)
			return error_set(error, -EAGAIN, NULL);
		if (wr->opcode != IBCHAN_OP_RECV) {
			arrives(half->peer, bytes_of(half, wr), wr->sge.length);
			continue;
		}
		half->memories[half->posted % 4096] = bytes_of(half, wr);
		half->receives[half->posted++ % 4096] = *wr;
	}
	return error_set(error, 0, NULL);
}

int fake_poll(struct ibchan_cq *cq, struct ibchan_cqe *completions, __u32 n)
{
	struct half *half = (struct half *)((char *)cq - offsetof(struct half, cq));
	__u32 i;

	for (i = 0; i < n && half->polled != half->tail; i++)
		completions[i] = half->done[half->polled++ % 4096];
	return (int)i;
}

/* There is nobody else who could do something meanwhile, unless the queue has room by then. */
int cq_sleep(const struct ibchan_cq *cq, __u32 tail, const struct deadline *deadline)
{
	struct half *half = (struct half *)((char *)cq - offsetof(struct half, cq));

	(void)deadline;
	half->is_full = false;
	return half->tail != tail ? 0 : -ETIMEDOUT;
}

int cq_bring_in(const struct ibchan_cq *cq)
{
	(void)cq;
	return 0;
}

int fake_perform(struct ibchan_channel *channel, const struct ibchan_submit_wr *wr,
		 __s64 timeout_ns, struct ibchan_cqe *completion, struct ibchan_error *error)
{
	const struct half *half = half_of(channel);

	(void)timeout_ns;
	(void)completion;
	if (wr->opcode == IBCHAN_OP_READ)
		return error_set(error, half->read_error, NULL);
	arrives(half->peer, bytes_of(half, wr), wr->sge.length);
	return error_set(error, 0, NULL);
}

int fake_break(struct ibchan_channel *channel)
{
	half_of(channel)->is_broken = true;
	return 0;
}

int fake_query(struct ibchan_channel *channel, struct ibchan_channel_info *info,
	       struct ibchan_error *error)
{
	*info = (struct ibchan_channel_info) {
		.error = half_of(channel)->is_broken ? -ECANCELED : 0,
	};
	return error_set(error, 0, NULL);
}

int fake_reg(struct ibchan_pd *pd, const struct ibchan_mr_params *params, struct ibchan_mr **mr,
	     struct ibchan_error *error)
{
	*mr = &((struct half *)pd)->mr;
	(void)params;
	return error_set(error, 0, NULL);
}

int fake_reg_local(struct ibchan_pd *pd, void *addr, size_t length, struct ibchan_mr **mr,
		   struct ibchan_error *error)
{
	(void)addr;
	(void)length;
	return fake_reg(pd, NULL, mr, error);
}

int fake_dereg(struct ibchan_mr *mr)
{
	(void)mr;
	return 0;
}

/* The test asks each side itself. */
void source_add(struct ibchan_context *context, struct source *source)
{
	(void)context;
	source->is_listed = true;
}

int source_watch(struct ibchan_context *context, struct source *source, int fd)
{
	(void)context;
	source->fd = fd;
	return 0;
}

void source_deafen(struct ibchan_context *context, struct source *source)
{
	(void)context;
	source->is_deaf = true;
}

__u32 object_happenings(struct object *object, __u32 of)
{
	return object->happened & of;
}

void happening_end(struct ibchan_happening *happening, struct ibchan_channel *channel, int error)
{
	happening->kind = IBCHAN_NEXT_ENDED;
	happening->channel = channel;
	happening->error = error;
}

int error_set(struct ibchan_error *error, int code, const struct ibchan_reason *reason)
{
	(void)reason;
	if (error)
		*error = (struct ibchan_error) {
			.code = code, .origin = code ? IBCHAN_ERROR_CALL : IBCHAN_ERROR_NONE,
		};
	return code;
}

void deadline_start(struct deadline *deadline)
{
	deadline->end_ns = INT64_MAX;
}

__s64 deadline_left(const struct deadline *deadline)
{
	return deadline->timeout_ns;
}

/* --- two sides --- */

/* With @num boxes, of which a window has the fewer of both sides. */
static int half_make(struct half *half, __u32 num, __u32 window)
{
	static __u32 guard = GUARD_PARENT;
	struct messages *m = &half->messages;
	__u32 i;

	half->context.guard = &guard;
	half->station.context = &half->context;
	half->channel.messages = m;
	half->cq.ring.tail = &half->tail;
	*m = (struct messages) {
		.station = &half->station, .cq = &half->cq, .mr = &half->mr,
		.pd = (struct ibchan_pd *)half, .channel = &half->channel, .num = num,
		.num_inboxes = num + CONTROL_FRAMES, .box_bytes = sizeof(struct frame) + ROOM,
		.message_bytes = ROOM, .peer_bytes = ROOM, .window.size = window,
		.last = &m->first, .lent_last = &m->lent,
	};
	m->inboxes = calloc(m->num_inboxes, sizeof(*m->inboxes));
	m->memory = calloc(m->num_inboxes + num + 1, m->box_bytes);
	for (i = 0; i < m->num_inboxes; i++) {
		m->inboxes[i].bytes = m->memory + i * m->box_bytes;
		m->inboxes[i].next = m->idle;
		m->idle = &m->inboxes[i];
	}
	half->mr.addr = m->memory;
	half->mr.length = (m->num_inboxes + num + 1) * m->box_bytes;
	return stream_post(m, NULL, NULL);
}

static int meet(FIXTURE_DATA(stream) * self, __u32 num, __u32 other)
{
	const __u32 window = min(num, other);

	self->halves[0].peer = &self->halves[1];
	self->halves[1].peer = &self->halves[0];
	return half_make(&self->halves[0], num, window) ?:
	       half_make(&self->halves[1], other, window);
}

FIXTURE_SETUP(stream)
{
	memset(self, 0, sizeof(*self));
}

FIXTURE_TEARDOWN(stream)
{
	int i;

	for (i = 0; i < 2; i++) {
		EXPECT_EQ(0, self->halves[i].unheard);
		free(self->halves[i].messages.inboxes);
		free(self->halves[i].messages.memory);
	}
}

static int send_number(struct half *from, int number)
{
	return ibchan_send_bytes(&from->channel, &number, sizeof(number), 1, NULL);
}

/* The next number, or a negative errno. */
static int receive_number(struct half *at)
{
	int number = -EPROTO;
	ssize_t got = ibchan_receive_bytes(&at->channel, &number, sizeof(number), 1, NULL);

	return got < 0 ? (int)got : number;
}

/* All that may wait, again and again; what half a window opens is enough to go on. */
static int stream_one_way(struct half *from, struct half *to)
{
	const int least = (int)from->messages.window.size / 2;
	int round, num, i;

	for (round = 0; round < 10; round++) {
		for (num = 0; !send_number(from, num);)
			num++;
		if (num < least || !num)
			return -ETIMEDOUT;
		for (i = 0; i < num; i++)
			if (receive_number(to) != i)
				return -ENOMSG;
	}
	return 0;
}

TEST_F(stream, goes_on_whichever_side_takes_more_messages_at_a_time)
{
	static const __u32 sizes[] = { 1, 2, 3, 5, 16, 40 };
	unsigned int i, j, k;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (j = 0; j < ARRAY_SIZE(sizes); j++) {
			ASSERT_EQ(0, meet(self, sizes[i], sizes[j]));
			EXPECT_EQ(0, stream_one_way(&self->halves[0], &self->halves[1]))
				TH_LOG("%u to %u", sizes[i], sizes[j]);
			EXPECT_EQ(0, stream_one_way(&self->halves[1], &self->halves[0]));
			for (k = 0; k < 2; k++) {
				EXPECT_EQ(0, self->halves[k].unheard);
				free(self->halves[k].messages.inboxes);
				free(self->halves[k].messages.memory);
			}
			memset(self, 0, sizeof(*self));
		}
	}
}

/* Whatever the order of sends and receives is, each frame finds a receive. */
TEST_F(stream, has_a_receive_for_each_frame_in_any_order_of_calls)
{
	unsigned int seed = 1, i;
	int sent[2] = { 0 }, got[2] = { 0 };

	ASSERT_EQ(0, meet(self, 7, 5));
	for (i = 0; i < 200000; i++) {
		const int side = rand_r(&seed) >> 8 & 1;
		int number;

		/* Long runs of one kind fill and empty the windows. */
		if (rand_r(&seed) >> (8 + (i >> 5 & 1)) & 3) {
			sent[side] += !send_number(&self->halves[side], sent[side]);
			continue;
		}
		number = receive_number(&self->halves[side]);
		if (number == -ETIMEDOUT)
			continue;
		ASSERT_EQ(got[side], number);
		got[side]++;
	}
	EXPECT_LT(1000, got[0]);
	EXPECT_LT(1000, got[1]);
}

/* A loop looks after it until the peer was told. */
TEST_F(stream, goes_on_when_the_send_queue_had_no_room_to_tell_the_peer)
{
	char byte;

	ASSERT_EQ(0, meet(self, 1, 1));
	ASSERT_EQ(0, send_number(&self->halves[0], 1));
	self->halves[1].is_full = true;
	ASSERT_EQ(1, receive_number(&self->halves[1]));
	EXPECT_TRUE(has_news(&self->halves[1].messages));
	EXPECT_EQ(-ETIMEDOUT, send_number(&self->halves[0], 2));
	EXPECT_EQ(-ETIMEDOUT, ibchan_receive_bytes(&self->halves[1].channel, &byte, 1, 1, NULL));
	EXPECT_FALSE(has_news(&self->halves[1].messages));
	EXPECT_EQ(0, send_number(&self->halves[0], 2));
	EXPECT_EQ(2, receive_number(&self->halves[1]));
}

static int offer_to(struct half *to)
{
	const struct frame_offer offer = {
		.frame = frame_make(FRAME_OFFER, 0, 2 * ROOM),
		.addr = htobe64(0x1000), .rkey = htobe32(1),
	};

	arrives(to, &offer, sizeof(offer));
	return 0;
}

/* The buffer has nothing that could pass for a message. */
TEST_F(stream, of_a_peer_that_serves_no_reads_and_offers_a_message_ends)
{
	char buf[2 * ROOM];

	ASSERT_EQ(0, meet(self, 4, 4));
	ASSERT_EQ(0, offer_to(&self->halves[0]));
	self->halves[0].read_error = -EOPNOTSUPP;
	EXPECT_EQ(-EPROTO, ibchan_receive_bytes(&self->halves[0].channel, buf, sizeof(buf), 1,
						NULL));
	EXPECT_TRUE(self->halves[0].is_broken);
	EXPECT_EQ(-EPROTO, ibchan_receive_bytes(&self->halves[0].channel, buf, sizeof(buf), 1,
						NULL));
}

TEST_F(stream, keeps_a_message_whose_read_was_refused_for_the_next_call)
{
	char buf[2 * ROOM];

	ASSERT_EQ(0, meet(self, 4, 4));
	ASSERT_EQ(0, offer_to(&self->halves[0]));
	self->halves[0].read_error = -ENOMEM;
	EXPECT_EQ(-ENOMEM, ibchan_receive_bytes(&self->halves[0].channel, buf, sizeof(buf), 1,
						NULL));
	EXPECT_FALSE(self->halves[0].is_broken);
	self->halves[0].read_error = 0;
	EXPECT_EQ(sizeof(buf), ibchan_receive_bytes(&self->halves[0].channel, buf, sizeof(buf), 1,
						    NULL));
}

TEST_HARNESS_MAIN
