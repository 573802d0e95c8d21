// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bytes go where they should and nowhere else: every operation between all kinds of pairs.
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "test.h"
#include "work.h"
#include "world.h"

#define MIB		(1024U * 1024)
#define MEMORY		(3 * MIB)
/* The lower half of a side's memory is read by the device, the upper half written. */
#define HALF		(MEMORY / 2)
#define GUARD		64
#define GUARD_BYTE	0xa5

enum { SEND_ID = 1000, RECV_ID = 2000, ONE_SIDED_ID = 3000 };

static const __u32 sizes[] = { 0, 1, 63, 4096, 4097, MIB };

/* Distances of source and target from the start of a page; for the largest only the first. */
static const struct {
	__u32 source;
	__u32 target;
} offsets[] = { { 3, 5 }, { 4095, 4093 } };

FIXTURE(pair)
{
	struct calm calm;
	struct pair pair;
};

FIXTURE_VARIANT(pair)
{
	enum pair_shape shape;
};

FIXTURE_VARIANT_ADD(pair, looped_to_itself)
{
	.shape = PAIR_LOOPED,
};

FIXTURE_VARIANT_ADD(pair, on_one_device)
{
	.shape = PAIR_SAME_DEVICE,
};

FIXTURE_VARIANT_ADD(pair, on_two_devices)
{
	.shape = PAIR_TWO_DEVICES,
};

FIXTURE_VARIANT_ADD(pair, on_one_cq)
{
	.shape = PAIR_ONE_CQ,
};

FIXTURE_SETUP(pair)
{
	struct side_options options = side_defaults();

	options.memory = MEMORY;
	options.params.max_send_wr = 64;
	options.params.max_recv_wr = 64;
	/* A send that comes before its receive waits for it, however long. */
	options.params.rnr_retries = 7;
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, pair_open(&self->pair, variant->shape, &options));
}

FIXTURE_TEARDOWN(pair)
{
	struct pair *pair = &self->pair;

	/* Every completion that came was one that the test asked for. */
	if (pair->a->ring)
		EXPECT_EQ(0, ring_surplus(pair->a->ring));
	if (pair->b->ring)
		EXPECT_EQ(0, ring_surplus(pair->b->ring));
	pair_close(pair);
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* One transfer: @length bytes from @source in @from's memory to @target in @to's. */
struct transfer {
	struct side *from;
	struct side *to;
	__u64 source;
	__u64 target;
	__u32 length;
};

static void fill(const struct transfer *t)
{
	pattern(t->from->memory + t->source, t->length, t->length + 1);
	memset(t->to->memory + t->target - GUARD, GUARD_BYTE, t->length + 2 * GUARD);
}

static int verify(const struct transfer *t)
{
	const unsigned char *target = t->to->memory + t->target;
	int rc = same_bytes(t->from->memory + t->source, target, t->length);

	if (!rc)
		rc = all_bytes(target - GUARD, GUARD, GUARD_BYTE);
	if (!rc)
		rc = all_bytes(target + t->length, GUARD, GUARD_BYTE);
	return rc;
}

static int send_and_receive(const struct transfer *t)
{
	struct ibchan_cqe cqe;
	int rc;

	fill(t);
	rc = post_one(t->to, work(t->to, IBCHAN_OP_RECV, RECV_ID, t->target, t->length));
	if (!rc)
		rc = post_one(t->from, work(t->from, IBCHAN_OP_SEND, SEND_ID, t->source,
					    t->length));
	if (!rc)
		rc = succeed(t->from, SEND_ID, NULL);
	if (!rc)
		rc = succeed(t->to, RECV_ID, &cqe);
	if (!rc && (cqe.bytes != t->length || cqe.opcode != IBCHAN_OP_RECV || cqe.flags ||
		    cqe.imm))
		rc = -EPROTO;
	return rc ? rc : verify(t);
}

static int write_to_peer(const struct transfer *t)
{
	struct ibchan_submit_wr wr = work(t->from, IBCHAN_OP_WRITE, ONE_SIDED_ID, t->source,
					  t->length);
	struct ibchan_cqe cqe;
	int rc;

	fill(t);
	work_at(&wr, t->to, t->target);
	rc = post_one(t->from, wr);
	if (!rc)
		rc = succeed(t->from, ONE_SIDED_ID, &cqe);
	if (!rc && cqe.opcode != IBCHAN_OP_WRITE)
		rc = -EPROTO;
	return rc ? rc : verify(t);
}

static int read_from_peer(const struct transfer *t)
{
	struct ibchan_submit_wr wr = work(t->to, IBCHAN_OP_READ, ONE_SIDED_ID, t->target,
					  t->length);
	struct ibchan_cqe cqe;
	int rc;

	fill(t);
	work_at(&wr, t->from, t->source);
	rc = post_one(t->to, wr);
	if (!rc)
		rc = succeed(t->to, ONE_SIDED_ID, &cqe);
	if (!rc && cqe.opcode != IBCHAN_OP_READ)
		rc = -EPROTO;
	return rc ? rc : verify(t);
}

static int at_every_size(struct pair *pair, int (*move)(const struct transfer *))
{
	unsigned int i, o;
	int rc;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (o = 0; o < (sizes[i] < MIB ? ARRAY_SIZE(offsets) : 1); o++) {
			struct transfer t = {
				.from = pair->a,
				.to = pair->b,
				.source = offsets[o].source,
				.target = HALF + offsets[o].target,
				.length = sizes[i],
			};

			rc = move(&t);
			if (!rc)
				continue;
			fprintf(stderr, "# %u bytes, %u to %u into a page\n", sizes[i],
				offsets[o].source, offsets[o].target);
			return rc;
		}
	}
	return 0;
}

TEST_F(pair, a_send_arrives_in_a_receive_at_every_size)
{
	ASSERT_EQ(0, at_every_size(&self->pair, send_and_receive));
}

TEST_F(pair, a_write_arrives_at_every_size)
{
	ASSERT_EQ(0, at_every_size(&self->pair, write_to_peer));
}

TEST_F(pair, a_read_fetches_at_every_size)
{
	ASSERT_EQ(0, at_every_size(&self->pair, read_from_peer));
}

TEST_F(pair, a_receive_longer_than_the_message_keeps_the_rest)
{
	struct transfer t = { self->pair.a, self->pair.b, 7, HALF + 9, 100 };
	struct ibchan_cqe cqe;

	fill(&t);
	ASSERT_EQ(0, post_one(t.to, work(t.to, IBCHAN_OP_RECV, RECV_ID, t.target, 5000)));
	ASSERT_EQ(0, post_one(t.from, work(t.from, IBCHAN_OP_SEND, SEND_ID, t.source, t.length)));
	ASSERT_EQ(0, succeed(t.from, SEND_ID, NULL));
	ASSERT_EQ(0, succeed(t.to, RECV_ID, &cqe));
	EXPECT_EQ(100, cqe.bytes);
	EXPECT_EQ(0, verify(&t));
}

TEST_F(pair, a_receive_shorter_than_the_message_fails_and_breaks_the_channel)
{
	struct transfer t = { self->pair.a, self->pair.b, 0, HALF, 99 };
	struct ibchan_cmd_channel_query query;
	int status;

	fill(&t);
	ASSERT_EQ(0, post_one(t.to, work(t.to, IBCHAN_OP_RECV, RECV_ID, t.target, t.length)));
	ASSERT_EQ(0, post_one(t.from, work(t.from, IBCHAN_OP_SEND, SEND_ID, t.source, 100)));
	status = status_of(t.to, RECV_ID);
	EXPECT_GT(status, IBCHAN_STATUS_SUCCESS);
	status = status_of(t.from, SEND_ID);
	EXPECT_GT(status, IBCHAN_STATUS_SUCCESS);
	EXPECT_EQ(0, all_bytes(t.to->memory + t.target + t.length, GUARD, GUARD_BYTE));
	ASSERT_EQ(0, side_query(t.to, &query));
	EXPECT_EQ(IBCHAN_CHANNEL_BROKEN, query.out.state);
	EXPECT_NE(0, query.out.error);
	EXPECT_NE(IBCHAN_STATUS_SUCCESS, query.out.status);
	EXPECT_EQ(-ESHUTDOWN, post_one(t.to, work(t.to, IBCHAN_OP_RECV, 1, HALF, 1)));
}

/* Cuts [start, start + total) into elements of the given lengths, in that order. */
static unsigned int cut(const struct side *side, __u64 start, const __u32 *lengths,
			struct ibchan_submit_sge *sges)
{
	unsigned int n;

	for (n = 0; lengths[n] != IBCHAN_AUTO; n++) {
		sges[n] = (struct ibchan_submit_sge) { start, lengths[n], side->mr };
		start += lengths[n];
	}
	return n;
}

/* The same 7000 bytes, cut in other places on each side. */
static const __u32 gather_lengths[] = { 1, 0, 4097, 2002, 900, IBCHAN_AUTO };
static const __u32 scatter_lengths[] = { 5000, 1999, 0, 1, IBCHAN_AUTO };

TEST_F(pair, elements_that_do_not_match_carry_one_message)
{
	struct transfer t = { self->pair.a, self->pair.b, 11, HALF + 13, 7000 };
	struct ibchan_submit_wr send = work_empty(t.from, IBCHAN_OP_SEND, SEND_ID);
	struct ibchan_submit_wr recv = work_empty(t.to, IBCHAN_OP_RECV, RECV_ID);
	struct ibchan_submit_sge gather[8], scatter[8];
	struct ibchan_cqe cqe;

	fill(&t);
	work_elements(&send, gather, cut(t.from, t.source, gather_lengths, gather));
	work_elements(&recv, scatter, cut(t.to, t.target, scatter_lengths, scatter));
	ASSERT_EQ(0, post_one(t.to, recv));
	ASSERT_EQ(0, post_one(t.from, send));
	ASSERT_EQ(0, succeed(t.from, SEND_ID, NULL));
	ASSERT_EQ(0, succeed(t.to, RECV_ID, &cqe));
	EXPECT_EQ(t.length, cqe.bytes);
	EXPECT_EQ(0, verify(&t));
}

TEST_F(pair, a_write_gathers_and_a_read_scatters)
{
	struct transfer t = { self->pair.a, self->pair.b, 11, HALF + 13, 7000 };
	struct ibchan_submit_wr write = work_empty(t.from, IBCHAN_OP_WRITE, ONE_SIDED_ID);
	struct ibchan_submit_wr read = work_empty(t.to, IBCHAN_OP_READ, ONE_SIDED_ID);
	struct ibchan_submit_sge sges[8];

	fill(&t);
	work_elements(&write, sges, cut(t.from, t.source, gather_lengths, sges));
	work_at(&write, t.to, t.target);
	ASSERT_EQ(0, post_one(t.from, write));
	ASSERT_EQ(0, succeed(t.from, ONE_SIDED_ID, NULL));
	EXPECT_EQ(0, verify(&t));

	fill(&t);
	work_elements(&read, sges, cut(t.to, t.target, scatter_lengths, sges));
	work_at(&read, t.from, t.source);
	ASSERT_EQ(0, post_one(t.to, read));
	ASSERT_EQ(0, succeed(t.to, ONE_SIDED_ID, NULL));
	EXPECT_EQ(0, verify(&t));
}

/* A send or write with 32 bits beside @length bytes; both take a receive of the peer. */
static int with_immediate(struct pair *pair, int opcode, __u32 length)
{
	struct transfer t = { pair->a, pair->b, 3, HALF + 5, length };
	struct ibchan_submit_wr wr = length ?
		work(t.from, opcode, SEND_ID, t.source, length) :
		work_empty(t.from, opcode, SEND_ID);
	struct ibchan_submit_wr recv = opcode == IBCHAN_OP_SEND ?
		work(t.to, IBCHAN_OP_RECV, RECV_ID, t.target, length) :
		work_empty(t.to, IBCHAN_OP_RECV, RECV_ID);
	struct ibchan_cqe cqe;
	int rc;

	fill(&t);
	work_imm(&wr, 0x12345678);
	if (opcode == IBCHAN_OP_WRITE)
		work_at(&wr, t.to, t.target);
	rc = post_one(t.to, recv);
	if (!rc)
		rc = post_one(t.from, wr);
	if (!rc)
		rc = succeed(t.from, SEND_ID, NULL);
	if (!rc)
		rc = succeed(t.to, RECV_ID, &cqe);
	if (!rc && (cqe.bytes != length || cqe.opcode != IBCHAN_OP_RECV ||
		    cqe.flags != IBCHAN_CQE_IMM || cqe.imm != 0x12345678))
		rc = -EPROTO;
	return rc ? rc : verify(&t);
}

TEST_F(pair, an_immediate_arrives_with_and_without_payload)
{
	EXPECT_EQ(0, with_immediate(&self->pair, IBCHAN_OP_SEND, 0));
	EXPECT_EQ(0, with_immediate(&self->pair, IBCHAN_OP_SEND, 5000));
	EXPECT_EQ(0, with_immediate(&self->pair, IBCHAN_OP_WRITE, 0));
	EXPECT_EQ(0, with_immediate(&self->pair, IBCHAN_OP_WRITE, 5000));
}

#define MANY	64
#define EACH	1000

TEST_F(pair, sixty_four_works_in_flight_complete_in_order)
{
	struct side *a = self->pair.a, *b = self->pair.b;
	struct ibchan_submit_wr wrs[MANY];
	struct ibchan_cmd_channel_query query;
	unsigned int i;

	pattern(a->memory, MANY * EACH, 5);
	for (i = 0; i < MANY; i++)
		wrs[i] = work(a, IBCHAN_OP_SEND, SEND_ID + i, i * EACH, EACH);
	/* No receive yet, so the sends stay in flight. */
	ASSERT_EQ(0, post(a, wrs, MANY));
	ASSERT_EQ(0, side_query(a, &query));
	EXPECT_EQ(MANY, query.out.sends_in_flight);
	for (i = 0; i < MANY; i++)
		wrs[i] = work(b, IBCHAN_OP_RECV, RECV_ID + i, HALF + i * EACH, EACH);
	ASSERT_EQ(0, post(b, wrs, MANY));
	for (i = 0; i < MANY; i++) {
		ASSERT_EQ(0, succeed(a, SEND_ID + i, NULL));
		ASSERT_EQ(0, succeed(b, RECV_ID + i, NULL));
	}
	EXPECT_EQ(0, same_bytes(a->memory, b->memory + HALF, MANY * EACH));
	ASSERT_EQ(0, side_query(a, &query));
	EXPECT_EQ(0, query.out.sends_in_flight);
	EXPECT_EQ(0, query.out.recvs_in_flight);
}

TEST_F(pair, receives_complete_in_the_order_of_their_posting)
{
	struct side *a = self->pair.a, *b = self->pair.b;
	struct ibchan_cqe cqes[2 * MANY];
	unsigned int i, n, next = 0;

	ASSERT_EQ(0, post_receives(b, RECV_ID, MANY, 16));
	for (i = 0; i < MANY; i++)
		ASSERT_EQ(0, post_one(a, work(a, IBCHAN_OP_SEND, SEND_ID + i, HALF, 16)));
	for (i = 0; i < MANY; i++)
		ASSERT_EQ(0, succeed(a, SEND_ID + i, NULL));
	/* On a shared ring some of them were read while the sends were waited for. */
	n = b->ring->stashed;
	memcpy(cqes, b->ring->stash, n * sizeof(*cqes));
	b->ring->stashed = 0;
	while (n < MANY && !ring_wait(b->ring, 1, patience_ms()))
		n += ring_read(b->ring, cqes + n, 2 * MANY - n);
	ASSERT_EQ(MANY, n);
	for (i = 0; i < n; i++)
		ASSERT_EQ(RECV_ID + next++, cqes[i].wr_id);
}

/* A looped channel is the one that refuses and breaks: that may come before the answer. */
static int refused_by_peer(const struct pair *pair, __u64 wr_id)
{
	struct ibchan_cqe cqe;
	int rc = ring_complete(pair->a->ring, wr_id, &cqe);

	if (rc)
		return rc;
	if (cqe.status == IBCHAN_STATUS_REM_ACCESS_ERR && cqe.error == -EREMOTEIO)
		return 0;
	if (pair->a == pair->b && cqe.status == IBCHAN_STATUS_WR_FLUSH_ERR)
		return 0;
	fprintf(stderr, "# status %u, error %d\n", cqe.status, cqe.error);
	return -EBADMSG;
}

TEST_F(pair, a_write_outside_the_peers_region_is_refused_by_the_peer)
{
	struct side *a = self->pair.a, *b = self->pair.b;
	struct ibchan_submit_wr wr = work(a, IBCHAN_OP_WRITE, ONE_SIDED_ID, 0, 64);

	pattern(a->memory, 64, 4);
	work_at(&wr, b, MEMORY - 63);
	ASSERT_EQ(0, post_one(a, wr));
	EXPECT_EQ(0, refused_by_peer(&self->pair, ONE_SIDED_ID));
	EXPECT_EQ(0, all_bytes(b->memory + MEMORY - 63, 63, 0));
	EXPECT_EQ(IBCHAN_CHANNEL_BROKEN, side_state(a));
}

TEST_F(pair, a_read_with_a_wrong_rkey_is_refused_by_the_peer)
{
	struct side *a = self->pair.a, *b = self->pair.b;
	struct ibchan_submit_wr wr = work(a, IBCHAN_OP_READ, ONE_SIDED_ID, HALF, 64);

	pattern(b->memory, 64, 3);
	work_at(&wr, b, 0);
	wr.rkey ^= 0x55;
	ASSERT_EQ(0, post_one(a, wr));
	EXPECT_EQ(0, refused_by_peer(&self->pair, ONE_SIDED_ID));
	EXPECT_EQ(0, all_bytes(a->memory + HALF, 64, 0));
	EXPECT_EQ(IBCHAN_CHANNEL_BROKEN, side_state(a));
}

/* A random mix of operations, each checked as soon as it has completed. */
TEST_F(pair, a_random_mix_of_operations_arrives_intact)
{
	static int (*const moves[])(const struct transfer *) = {
		send_and_receive, write_to_peer, read_from_peer,
	};
	unsigned int i, rounds = 50, state = 1;

	for (i = 0; i < rounds; i++) {
		struct transfer t = { .from = self->pair.a, .to = self->pair.b };

		state = state * 1664525U + 1013904223U;
		t.source = (state >> 8) % 8192;
		t.target = HALF + GUARD + (state >> 16) % 8192;
		t.length = (state >> 12) % 20000;
		if (state & 0x8000) {
			t.from = self->pair.b;
			t.to = self->pair.a;
		}
		ASSERT_EQ(0, moves[(state >> 4) % ARRAY_SIZE(moves)](&t))
			TH_LOG("round %u, %u bytes", i, t.length);
	}
}

#define THREADS		3
#define PER_THREAD	50

struct poster {
	pthread_t thread;
	const struct side *side;
	unsigned int index;
	int rc;
};

/* Posts empty sends, again and again while the queue is full. */
static void *post_sends(void *arg)
{
	struct poster *poster = arg;
	__u64 end = now_ms() + patience_ms();
	unsigned int i;

	for (i = 0; i < PER_THREAD; i++) {
		__u64 wr_id = (poster->index << 16) + i;

		do {
			poster->rc = post_one(poster->side, work_empty(poster->side,
								       IBCHAN_OP_SEND, wr_id));
		} while (poster->rc == -EAGAIN && now_ms() < end);
		if (poster->rc)
			break;
	}
	return NULL;
}

TEST_F(pair, several_threads_on_one_channel_lose_nothing)
{
	struct side *a = self->pair.a, *b = self->pair.b;
	struct poster posters[THREADS];
	unsigned int i, t, received = 0;

	for (t = 0; t < THREADS; t++) {
		posters[t] = (struct poster) { .side = a, .index = t + 1 };
		ASSERT_EQ(0, pthread_create(&posters[t].thread, NULL, post_sends, &posters[t]));
	}
	/* Keeps 16 receives posted until there was one for every send. */
	for (i = 0; i < THREADS * PER_THREAD; i++) {
		ASSERT_EQ(0, post_one(b, work_empty(b, IBCHAN_OP_RECV, RECV_ID << 16 | i)));
		if (i >= 16)
			ASSERT_EQ(0, succeed(b, RECV_ID << 16 | received++, NULL));
		/* Makes room in the ring of the sends. */
		ring_surplus(a->ring);
	}
	while (received < i)
		ASSERT_EQ(0, succeed(b, RECV_ID << 16 | received++, NULL));
	for (t = 0; t < THREADS; t++) {
		ASSERT_EQ(0, pthread_join(posters[t].thread, NULL));
		EXPECT_EQ(0, posters[t].rc);
		for (i = 0; i < PER_THREAD; i++)
			ASSERT_EQ(0, succeed(a, ((t + 1) << 16) + i, NULL));
	}
}

TEST_HARNESS_MAIN
