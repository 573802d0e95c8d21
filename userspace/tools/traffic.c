// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The messages of a pingpong.
 *
 * Latency. Send: the server answers each message by one of its own; half of the time there and back
 * counts. Write: the same, and as perftest does it, each side watches the last byte of its memory
 * for the other's write. Read: the client alone; the whole time of one read counts.
 *
 * Bandwidth. The client keeps as many messages in flight as the plan says. The server posts a
 * receive for each send before the client may post the send: it acknowledges every few messages by
 * an empty send, behind the receives that take the place of those that it has consumed.
 *
 * Rounds count from 1. Message n travels in slot (n - 1) modulo depth on either side. Only
 * the last phase leaves receives over: those for acknowledgments.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "pingpong.h"

#define WARMUP		4	/* rounds before the clock counts */
#define BATCH		16
#define SPINS		100	/* looks at memory before others may run */
#define SETTLE_NS	(100 * 1000 * 1000ULL)
#define ACKS		3U	/* acknowledgments that are under way at a time, at most */

static __u32 at_most(__u32 a, __u32 b)
{
	return a < b ? a : b;
}

static __u32 rounds_of(const struct side *side)
{
	return side->plan.iters + (side->phase == PHASE_LATENCY ? WARMUP : 0);
}

static size_t offset_of(const struct side *side, __u32 round)
{
	return (round - 1) % side->plan.depth * side->stride;
}

/* The server of a stream of sends acknowledges so many messages at a time. */
static __u32 ack_step(const struct side *side)
{
	return side->plan.depth / 2 ?: 1;
}

static int gets_acks(const struct side *side)
{
	return side->host && side->phase == PHASE_BANDWIDTH && side->plan.op == IBCHAN_OP_SEND;
}

/* --- completions --- */

static int count_all(struct side *side, const struct ibchan_cqe *done, int n)
{
	const __u32 expected = gets_acks(side) ? 0 : side->plan.size;

	for (; n > 0; n--, done++) {
		if (done->error) {
			side->error = work_error(done);
			return complain_error(ibchan_opcode_name(done->opcode), &side->error);
		}
		if (done->opcode != IBCHAN_OP_RECV) {
			side->sent++;
			continue;
		}
		side->received++;
		if (done->bytes != expected)
			return complain("message of %u bytes, %u expected", done->bytes, expected);
	}
	return 0;
}

/* Waits for at least one completion, and for the peer's death. */
static int reap(struct side *side)
{
	const __s64 wait_ns = side->spin ? 0 : NSEC_PER_SEC;
	struct ibchan_cqe done[BATCH];
	__u64 start = now_ns();
	int n;

	for (;;) {
		n = ibchan_cq_wait(side->cq, done, BATCH, 1, wait_ns);
		if (tell_busy(side))
			return -1;
		if (n != -EINTR && n != -ETIMEDOUT)
			break;
		if (is_late(side, start))
			return complain("nothing completed for %u s", side->timeout_s);
	}
	if (n < 0)
		return complain("wait for completions: %s", strerror(-n));
	return count_all(side, done, n);
}

/* Until one of the side's two counts is @n. */
static int await(struct side *side, const __u32 *count, __u32 n)
{
	while (*count < n)
		if (reap(side))
			return -1;
	return 0;
}

/* --- work requests --- */

static int post(struct side *side, const struct ibchan_submit_wr *wrs, __u32 n)
{
	if (ibchan_post(side->context, wrs, n, NULL, &side->error))
		return complain_error("post", &side->error);
	return 0;
}

/* Takes the round's message from its slot, or puts it there; an acknowledgment has no round. */
static struct ibchan_submit_wr make_wr(const struct side *side, __u32 op, __u32 round)
{
	int inwards = op == IBCHAN_OP_RECV || op == IBCHAN_OP_READ;
	struct ibchan_submit_wr wr = {
		.channel = ibchan_channel_handle(side->channel), .opcode = (__u8)op, .wr_id = round,
	};

	if (!round)
		return wr;
	wr.num_sge = 1;
	wr.sge = ibchan_sge_new(inwards ? side->in_mr : side->out_mr, offset_of(side, round),
				side->plan.size);
	if (op == IBCHAN_OP_WRITE || op == IBCHAN_OP_READ) {
		wr.remote_addr = side->remote.addr + offset_of(side, round);
		wr.remote_length = side->plan.size;
		wr.rkey = side->remote.rkey;
	}
	return wr;
}

static int post_one(struct side *side, __u32 op, __u32 round)
{
	const struct ibchan_submit_wr wr = make_wr(side, op, round);

	return post(side, &wr, 1);
}

/*
 * Posts the round's message. A receive that takes the place of @consumed goes first, so that it is
 * there when the peer answers.
 */
static int post_message(struct side *side, __u32 round, __u32 consumed)
{
	struct ibchan_submit_wr wrs[2];
	__u32 next = consumed + side->plan.depth;
	__u32 n = 0;

	if (side->plan.op == IBCHAN_OP_SEND && consumed && next <= rounds_of(side))
		wrs[n++] = make_wr(side, IBCHAN_OP_RECV, next);
	wrs[n++] = make_wr(side, side->plan.op, round);
	return post(side, wrs, n);
}

/* --- data --- */

/*
 * The slots as they are before round 1. Nothing in @in may look like a round that is yet to come;
 * in @out, a read finds each slot's first round.
 */
static void reset_slots(struct side *side)
{
	const size_t size = side->plan.size;
	__u32 round;

	memset(side->in, 0, side->stride * side->plan.depth);
	for (round = 1; round <= side->plan.depth; round++) {
		pattern_put(&side->mine, side->out + offset_of(side, round), round, 1);
		if (size)
			side->in[offset_of(side, round) + size - 1] =
				pattern_byte(&side->theirs, size - 1, 0);
	}
}

/* A slot that is read is cleared before, so that a read that brought nothing shows. */
static void prepare_slot(const struct side *side, __u32 round)
{
	if (side->plan.op == IBCHAN_OP_READ)
		pattern_put(&side->theirs, side->in + offset_of(side, round), 0, 0);
	else
		pattern_put(&side->mine, side->out + offset_of(side, round), round, 0);
}

/*
 * Looks at the stamps of the round's message, or at all of it. The data that is read does not
 * change, but each slot's stamp is its own. No rule says how a write's bytes before the last one
 * become visible: this waits for them.
 */
static int check_data(const struct side *side, __u32 round, int whole)
{
	const __u8 *slot = side->in + offset_of(side, round);
	const __u32 stamp = side->plan.op == IBCHAN_OP_READ ? (round - 1) % side->plan.depth + 1 :
			    round;
	__u64 start = 0;

	while (!pattern_is(&side->theirs, slot, stamp, whole)) {
		start = start ?: now_ns();
		if (whole || side->plan.op != IBCHAN_OP_WRITE || now_ns() - start > SETTLE_NS)
			return complain("%s: the data of message %u is wrong",
					side->host ? "client" : "server", round);
		sched_yield();
	}
	return 0;
}

/* The last byte of a message is the last to arrive, so it tells that the rest is there. */
static int await_memory(struct side *side, __u32 round)
{
	const size_t place = side->plan.size - 1;
	const __u8 *last = side->in + offset_of(side, round) + place;
	__u8 wanted = pattern_byte(&side->theirs, place, round);
	struct ibchan_cqe done[BATCH];
	__u64 start = now_ns();
	__u32 spins = 0;
	int n;

	while (__atomic_load_n(last, __ATOMIC_ACQUIRE) != wanted) {
		if (++spins % SPINS)
			continue;
		n = ibchan_cq_poll(side->cq, done, BATCH);
		if (n < 0)
			return complain("poll: %s", strerror(-n));
		if (count_all(side, done, n) || tell_busy(side))
			return -1;
		if (is_late(side, start))
			return complain("write %u of the peer did not arrive within %u s",
					round, side->timeout_s);
		sched_yield();
	}
	return 0;
}

/* --- latency --- */

/* Of a read, the data itself. */
static int await_answer(struct side *side, __u32 round)
{
	if (side->plan.op == IBCHAN_OP_WRITE)
		return await_memory(side, round);
	return await(side, side->plan.op == IBCHAN_OP_SEND ? &side->received : &side->sent, round);
}

static int latency_client(struct side *side)
{
	const __u32 ways = side->plan.op == IBCHAN_OP_READ ? 1 : 2;
	__u64 start, end;
	__u32 round;

	for (round = 1; round <= rounds_of(side); round++) {
		prepare_slot(side, round);
		start = now_ns();
		if (post_message(side, round, round - 1) || await_answer(side, round))
			return -1;
		end = now_ns();
		if (check_data(side, round, 0) || await(side, &side->sent, round) ||
		    tell_busy(side))
			return -1;
		if (round > WARMUP)
			side->latency_ns[round - WARMUP - 1] = (end - start) / ways;
	}
	return 0;
}

static int latency_server(struct side *side)
{
	__u32 round;

	if (side->plan.op == IBCHAN_OP_READ)
		return 0;
	for (round = 1; round <= rounds_of(side); round++) {
		if (await_answer(side, round) || check_data(side, round, 0))
			return -1;
		prepare_slot(side, round);
		if (post_message(side, round, round) || await(side, &side->sent, round))
			return -1;
	}
	return 0;
}

/* --- bandwidth --- */

/* Posts as many messages as the window, the acknowledgments and the rest allow, in one call. */
static int stream_post(struct side *side, __u32 *posted)
{
	const struct plan *plan = &side->plan;
	__u32 end = at_most(plan->iters, side->sent + plan->depth);
	struct ibchan_submit_wr wrs[BATCH];
	__u32 n;

	if (gets_acks(side))
		end = at_most(end, plan->depth + side->received * ack_step(side));
	for (n = 0; *posted + n < end && n < BATCH; n++) {
		prepare_slot(side, *posted + n + 1);
		wrs[n] = make_wr(side, plan->op, *posted + n + 1);
	}
	*posted += n;
	return n ? post(side, wrs, n) : 0;
}

static int bandwidth_client(struct side *side)
{
	__u32 checked = 0, posted = 0, acks = 0;
	__u64 start = now_ns();

	while (side->sent < side->plan.iters) {
		if (stream_post(side, &posted) || reap(side))
			return -1;
		while (side->plan.op == IBCHAN_OP_READ && checked < side->sent)
			if (check_data(side, ++checked, 0))
				return -1;
		for (; acks < side->received; acks++)
			if (post_one(side, IBCHAN_OP_RECV, 0))
				return -1;
	}
	side->bandwidth_ns = now_ns() - start;
	return 0;
}

/* A message that was checked makes its slot ready for another, which is said now and then. */
static int bandwidth_server(struct side *side)
{
	const __u32 iters = side->plan.iters, depth = side->plan.depth;
	__u32 round = 0;

	if (side->plan.op != IBCHAN_OP_SEND)
		return 0;
	while (round < iters) {
		if (reap(side))
			return -1;
		while (round < side->received) {
			if (check_data(side, ++round, 0) ||
			    (round + depth <= iters &&
			     post_one(side, IBCHAN_OP_RECV, round + depth)) ||
			    (round % ack_step(side) == 0 && post_one(side, IBCHAN_OP_SEND, 0)))
				return -1;
		}
	}
	return await(side, &side->sent, iters / ack_step(side));
}

/* --- a phase --- */

/* All that must be there before the peer begins. */
static int arm(struct side *side)
{
	__u32 receives, i;

	side->sent = 0;
	side->received = 0;
	reset_slots(side);
	if (side->plan.op != IBCHAN_OP_SEND)
		return 0;
	receives = gets_acks(side) ? ACKS : at_most(rounds_of(side), side->plan.depth);
	for (i = 1; i <= receives; i++)
		if (post_one(side, IBCHAN_OP_RECV, gets_acks(side) ? 0 : i))
			return -1;
	return 0;
}

/* The peer is through: a slot that gets data holds its last message, to the last byte. */
static int verify(const struct side *side)
{
	__u32 rounds = rounds_of(side);
	__u32 depth = side->plan.depth;
	__u32 round = rounds > depth ? rounds - depth + 1 : 1;

	if (side->plan.op == IBCHAN_OP_READ ? !side->host :
	    side->host && side->phase == PHASE_BANDWIDTH)
		return 0;
	for (; round <= rounds; round++)
		if (check_data(side, round, 1))
			return -1;
	return 0;
}

int traffic_phase(struct side *side, __u32 phase)
{
	int ret;

	if (!(side->plan.phases & phase))
		return 0;
	side->phase = phase;
	if (agree(side, arm(side)))
		return -1;
	if (phase == PHASE_LATENCY)
		ret = side->host ? latency_client(side) : latency_server(side);
	else
		ret = side->host ? bandwidth_client(side) : bandwidth_server(side);
	return agree(side, ret) ? -1 : agree(side, verify(side));
}
