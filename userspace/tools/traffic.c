// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The messages of a pingpong.
 *
 * Latency. Send: the server answers each message by one of its own; half of the
 * time there and back counts. Write: the same, and as perftest does it, each
 * side watches the last byte of its memory for the other's write. Read: the
 * client alone; the whole time of one read counts.
 *
 * Bandwidth. The client keeps as many messages in flight as the plan says. A
 * receive is always posted before its send may start: what the client may send
 * is what the server has told it by credits, empty sends with an immediate.
 *
 * Rounds count from 1. Message n travels in slot (n - 1) modulo depth on either
 * side. No receive is left over at the end of a phase.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "pingpong.h"
#include "tool.h"

#define NSEC_PER_SEC	1000000000ULL
#define WARMUP		4	/* rounds before the clock counts */
#define BATCH		16
#define SPINS		100	/* looks at memory before others may run */
#define SETTLE_NS	(100 * 1000 * 1000ULL)

__u64 traffic_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (__u64)now.tv_sec * NSEC_PER_SEC + (__u64)now.tv_nsec;
}

static __s64 timeout_ns(const struct side *side)
{
	return side->timeout_s ? side->timeout_s * (__s64)NSEC_PER_SEC :
				 IBCHAN_TIMEOUT_NEVER;
}

static int is_late(const struct side *side, __u64 start)
{
	__s64 limit = timeout_ns(side);

	return limit >= 0 && traffic_now_ns() - start > (__u64)limit;
}

static __u32 phase_rounds(const struct plan *plan, __u32 phase)
{
	return phase == PHASE_LATENCY ? plan->iters + WARMUP : plan->iters;
}

static size_t offset_of(const struct side *side, __u32 round)
{
	return (round - 1) % side->plan->depth * side->stride;
}

static __u8 *slot_of(const struct side *side, __u8 *buf, __u32 round)
{
	return buf + offset_of(side, round);
}

/* After how many messages the server grants as many more. */
static __u32 credit_step(const struct plan *plan)
{
	return plan->depth > 1 ? plan->depth / 2 : 1;
}

/* How many times it will do so; the first @depth messages are free. */
static __u32 credit_count(const struct plan *plan)
{
	__u32 step = credit_step(plan);

	if (plan->iters <= plan->depth)
		return 0;
	return (plan->iters - plan->depth + step - 1) / step;
}

static int sends_credits(const struct side *side, __u32 phase)
{
	return side->plan->op == IBCHAN_OP_SEND && phase == PHASE_BANDWIDTH;
}

static int complain_work(const struct ibchan_cqe *completion)
{
	const struct ibchan_error error = {
		.code = completion->error,
		.origin = IBCHAN_ERROR_WORK,
		.status = completion->status,
		.vendor_err = completion->vendor_err,
	};

	return complain_error(ibchan_opcode_name(completion->opcode), &error);
}

static int count(struct side *side, const struct ibchan_cqe *done)
{
	if (done->error)
		return complain_work(done);
	if (done->opcode != IBCHAN_OP_RECV) {
		side->sent++;
	} else if (done->flags & IBCHAN_CQE_IMM) {
		side->received++;
		side->credits += done->imm;
	} else {
		side->received++;
		if (done->bytes != side->plan->size)
			return complain("message of %u bytes, %u expected",
					done->bytes, side->plan->size);
	}
	return 0;
}

static int count_all(struct side *side, const struct ibchan_cqe *done,
		     int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (count(side, &done[i]))
			return -1;
	return 0;
}

static int tell_busy(struct side *side)
{
	__u64 now = traffic_now_ns();

	if (now - side->told_ns < NSEC_PER_SEC)
		return 0;
	side->told_ns = now;
	return peer_tell_busy(side->talk);
}

/* Waits for up to @limit_ns. Returns as ibchan_cq_wait(). */
static int wait_some(struct side *side, struct ibchan_cqe *done,
		     __u32 n, __u64 limit_ns)
{
	__u64 start = traffic_now_ns();
	int ret;

	if (!side->spin)
		return ibchan_cq_wait(side->cq, done, n, 1, (__s64)limit_ns);
	do {
		ret = ibchan_cq_wait(side->cq, done, n, 1, 0);
	} while (ret == -ETIMEDOUT && traffic_now_ns() - start < limit_ns);
	return ret;
}

/*
 * Waits for at least one completion. A peer that has died shows when it is told
 * that we still live.
 */
static int reap(struct side *side)
{
	struct ibchan_cqe done[BATCH];
	__u64 start = traffic_now_ns();
	int n;

	for (;;) {
		n = wait_some(side, done, BATCH, NSEC_PER_SEC);
		if (tell_busy(side))
			return -1;
		if (n != -EINTR && n != -ETIMEDOUT)
			break;
		if (is_late(side, start))
			return complain("nothing completed for %d s",
					side->timeout_s);
	}
	if (n < 0)
		return complain("wait for completions: %s", strerror(-n));
	return count_all(side, done, n);
}

static int post(struct side *side, const struct ibchan_submit_wr *wrs, __u32 n)
{
	struct ibchan_error error;

	if (ibchan_post(side->context, wrs, n, NULL, &error))
		return complain_error("post", &error);
	return 0;
}

/* Takes the round's message from its slot, or puts it there. */
static struct ibchan_submit_wr make_wr(const struct side *side, __u32 op, __u32 round)
{
	int inwards = op == IBCHAN_OP_RECV || op == IBCHAN_OP_READ;
	struct ibchan_submit_wr wr = {
		.channel = ibchan_channel_handle(side->channel),
		.opcode = (__u8)op,
		.wr_id = round,
		.num_sge = 1,
		.sge = ibchan_sge_new(inwards ? side->in_mr : side->out_mr,
				      offset_of(side, round), side->plan->size),
	};

	if (op == IBCHAN_OP_WRITE || op == IBCHAN_OP_READ) {
		wr.remote_addr = side->remote.addr + offset_of(side, round);
		wr.remote_length = side->plan->size;
		wr.rkey = side->remote.rkey;
	}
	return wr;
}

static int post_receives(struct side *side, __u32 rounds)
{
	struct ibchan_submit_wr wr;
	__u32 round;

	for (round = 1; round <= rounds; round++) {
		wr = make_wr(side, IBCHAN_OP_RECV, round);
		if (post(side, &wr, 1))
			return -1;
	}
	return 0;
}

static int post_credit_receives(struct side *side, __u32 n)
{
	const struct ibchan_submit_wr wr = ibchan_wr_receive(side->channel, NULL, 0);

	while (n--)
		if (post(side, &wr, 1))
			return -1;
	return 0;
}

/* Credits that are under way at a time. */
static __u32 credits_in_flight(const struct plan *plan)
{
	__u32 n = credit_count(plan);

	return n < 3 ? n : 3;
}

static __u32 at_most(__u32 a, __u32 b)
{
	return a < b ? a : b;
}

/*
 * The slots as they are before round 1. Nothing in @in may look like a round
 * that is yet to come; in @out, a read finds each slot's first round.
 */
static void reset_slots(struct side *side)
{
	__u32 round;
	__u8 *in;

	memset(side->in, 0, side->stride * side->plan->depth);
	for (round = 1; round <= side->plan->depth; round++) {
		pattern_fill(&side->mine, slot_of(side, side->out, round));
		pattern_stamp(&side->mine, slot_of(side, side->out, round),
			      round);
		in = slot_of(side, side->in, round);
		if (side->plan->size)
			in[side->plan->size - 1] =
				pattern_last(&side->theirs, 0);
	}
}

int traffic_arm(struct side *side, __u32 phase)
{
	__u32 rounds = phase_rounds(side->plan, phase);

	side->sent = 0;
	side->received = 0;
	side->credits = at_most(side->plan->depth, side->plan->iters);
	side->told_ns = traffic_now_ns();
	reset_slots(side);
	if (side->plan->op != IBCHAN_OP_SEND)
		return 0;
	if (sends_credits(side, phase) && side->is_client)
		return post_credit_receives(side,
					    credits_in_flight(side->plan));
	return post_receives(side, at_most(rounds, side->plan->depth));
}

static int complain_data(const struct side *side, __u32 round)
{
	return complain("%s: the data of message %u is wrong",
			side->is_client ? "client" : "server", round);
}

static int check_stamp(const struct side *side, __u32 round)
{
	if (pattern_stamped(&side->theirs, slot_of(side, side->in, round),
			    round))
		return 0;
	return complain_data(side, round);
}

/*
 * The receive that takes the place of @consumed goes first, so that it is there
 * when the peer answers the send.
 */
static int post_answer(struct side *side, __u32 round, __u32 consumed)
{
	__u32 rounds = phase_rounds(side->plan, PHASE_LATENCY);
	__u32 next = consumed + side->plan->depth;
	struct ibchan_submit_wr wrs[2];
	__u32 n = 0;

	if (consumed && next <= rounds) {
		wrs[n] = make_wr(side, IBCHAN_OP_RECV, next);
		n++;
	}
	wrs[n] = make_wr(side, IBCHAN_OP_SEND, round);
	n++;
	return post(side, wrs, n);
}

static int await_received(struct side *side, __u32 n)
{
	while (side->received < n)
		if (reap(side))
			return -1;
	return 0;
}

static int await_sent(struct side *side, __u32 n)
{
	while (side->sent < n)
		if (reap(side))
			return -1;
	return 0;
}

static int send_ping(struct side *side, __u32 round)
{
	if (post_answer(side, round, round - 1))
		return -1;
	return await_received(side, round);
}

static int send_pong(struct side *side, __u32 round)
{
	if (await_received(side, round) || check_stamp(side, round))
		return -1;
	pattern_stamp(&side->mine, slot_of(side, side->out, round), round);
	return post_answer(side, round, round) || await_sent(side, round) ?
	       -1 : 0;
}

static int poll_completions(struct side *side)
{
	struct ibchan_cqe done[BATCH];
	int n = ibchan_cq_poll(side->cq, done, BATCH);

	if (n < 0)
		return complain("poll: %s", strerror(-n));
	return count_all(side, done, n);
}

/*
 * The last byte of a message is the last to arrive, so it tells that the rest
 * is there.
 */
static int await_memory(struct side *side, __u32 round)
{
	const __u8 *last = slot_of(side, side->in, round) +
			   side->plan->size - 1;
	__u8 wanted = pattern_last(&side->theirs, round);
	__u64 start = traffic_now_ns();
	__u32 spins = 0;

	while (__atomic_load_n(last, __ATOMIC_ACQUIRE) != wanted) {
		if (++spins % SPINS)
			continue;
		if (poll_completions(side) || tell_busy(side))
			return -1;
		if (is_late(side, start))
			return complain("write %u of the peer did not arrive within %d s",
					round, side->timeout_s);
		sched_yield();
	}
	return 0;
}

/* No rule says how the bytes before the last one become visible: be patient. */
static int check_memory(const struct side *side, __u32 round)
{
	__u64 start = traffic_now_ns();

	while (!pattern_stamped(&side->theirs, slot_of(side, side->in, round),
				round)) {
		if (traffic_now_ns() - start > SETTLE_NS)
			return complain_data(side, round);
		sched_yield();
	}
	return 0;
}

static int post_write(struct side *side, __u32 round)
{
	const struct ibchan_submit_wr wr = make_wr(side, IBCHAN_OP_WRITE, round);

	return post(side, &wr, 1);
}

static int write_ping(struct side *side, __u32 round)
{
	return post_write(side, round) || await_memory(side, round) ? -1 : 0;
}

static int write_pong(struct side *side, __u32 round)
{
	if (await_memory(side, round) || check_memory(side, round))
		return -1;
	pattern_stamp(&side->mine, slot_of(side, side->out, round), round);
	return post_write(side, round) || await_sent(side, round) ? -1 : 0;
}

/* What a read finds does not change, but each slot's stamp is its own. */
static __u32 read_stamp(const struct side *side, __u32 round)
{
	return (round - 1) % side->plan->depth + 1;
}

static int check_read(const struct side *side, __u32 round)
{
	if (pattern_stamped(&side->theirs, slot_of(side, side->in, round),
			    read_stamp(side, round)))
		return 0;
	return complain_data(side, round);
}

/* So that a read that brought nothing shows. */
static void clear_slot(const struct side *side, __u32 round)
{
	pattern_stamp(&side->theirs, slot_of(side, side->in, round), 0);
}

static int read_once(struct side *side, __u32 round)
{
	const struct ibchan_submit_wr wr = make_wr(side, IBCHAN_OP_READ, round);
	struct ibchan_error error;
	int err;

	err = ibchan_perform(side->channel, &wr, timeout_ns(side), NULL, &error);
	if (err)
		return complain_error("read", &error);
	side->sent++;
	return tell_busy(side);
}

static int ping(struct side *side, __u32 round)
{
	switch (side->plan->op) {
	case IBCHAN_OP_SEND:
		return send_ping(side, round);
	case IBCHAN_OP_WRITE:
		return write_ping(side, round);
	default:
		return read_once(side, round);
	}
}

static int check_ping(struct side *side, __u32 round)
{
	switch (side->plan->op) {
	case IBCHAN_OP_SEND:
		return check_stamp(side, round);
	case IBCHAN_OP_WRITE:
		return check_memory(side, round);
	default:
		return check_read(side, round);
	}
}

static int latency_client(struct side *side, struct result *result)
{
	__u32 rounds = phase_rounds(side->plan, PHASE_LATENCY);
	int one_way = side->plan->op != IBCHAN_OP_READ;
	__u64 start;
	__u64 end;
	__u32 round;

	for (round = 1; round <= rounds; round++) {
		if (one_way)
			pattern_stamp(&side->mine,
				      slot_of(side, side->out, round), round);
		else
			clear_slot(side, round);
		start = traffic_now_ns();
		if (ping(side, round))
			return -1;
		end = traffic_now_ns();
		if (check_ping(side, round) || await_sent(side, round))
			return -1;
		if (round > WARMUP)
			result->latency_ns[result->rounds++] =
				(end - start) / (one_way ? 2 : 1);
	}
	return 0;
}

static int latency_server(struct side *side)
{
	__u32 rounds = phase_rounds(side->plan, PHASE_LATENCY);
	__u32 round;

	for (round = 1; round <= rounds; round++) {
		if (side->plan->op == IBCHAN_OP_SEND && send_pong(side, round))
			return -1;
		if (side->plan->op == IBCHAN_OP_WRITE &&
		    write_pong(side, round))
			return -1;
	}
	return 0;
}

/* Posts what the window, the credits and the rest allow, in one call. */
static int stream_post(struct side *side, __u32 *posted)
{
	struct ibchan_submit_wr wrs[BATCH];
	__u32 end = at_most(side->plan->iters,
			    side->sent + side->plan->depth);
	__u32 n = 0;

	if (side->plan->op == IBCHAN_OP_SEND)
		end = at_most(end, side->credits);
	while (*posted + n < end && n < BATCH) {
		__u32 round = *posted + n + 1;

		if (side->plan->op == IBCHAN_OP_READ)
			clear_slot(side, round);
		else
			pattern_stamp(&side->mine,
				      slot_of(side, side->out, round), round);
		wrs[n] = make_wr(side, side->plan->op, round);
		n++;
	}
	*posted += n;
	return n ? post(side, wrs, n) : 0;
}

/* A credit came in: have a receive for the next one, if there is to be one. */
static int repost_credit_receives(struct side *side, __u32 *posted)
{
	__u32 wanted = at_most(side->received + credits_in_flight(side->plan),
			       credit_count(side->plan));
	int ret = 0;

	if (wanted > *posted) {
		ret = post_credit_receives(side, wanted - *posted);
		*posted = wanted;
	}
	return ret;
}

static int stream_check(struct side *side, __u32 *checked)
{
	if (side->plan->op != IBCHAN_OP_READ)
		return 0;
	while (*checked < side->sent)
		if (check_read(side, ++*checked))
			return -1;
	return 0;
}

static int bandwidth_client(struct side *side, struct result *result)
{
	const int credits = sends_credits(side, PHASE_BANDWIDTH);
	__u32 receives = credits ? credits_in_flight(side->plan) : 0;
	__u64 start = traffic_now_ns();
	__u32 checked = 0;
	__u32 posted = 0;

	while (side->sent < side->plan->iters) {
		if (stream_post(side, &posted) || reap(side) ||
		    stream_check(side, &checked))
			return -1;
		if (credits && repost_credit_receives(side, &receives))
			return -1;
	}
	result->bandwidth_ns = traffic_now_ns() - start;
	result->messages = side->plan->iters;
	if (!credits)
		return 0;
	return await_received(side, credit_count(side->plan));
}

static int send_credit(struct side *side, __u32 n)
{
	struct ibchan_submit_wr wr = ibchan_wr_send(side->channel, NULL, 0);

	ibchan_wr_set_imm(&wr, n);
	return post(side, &wr, 1);
}

/* Checks message @round, makes its slot ready for another, and tells so. */
static int consume(struct side *side, __u32 round)
{
	const struct plan *plan = side->plan;
	__u32 next = round + plan->depth;
	__u32 step = credit_step(plan);
	struct ibchan_submit_wr wr;

	if (check_stamp(side, round))
		return -1;
	if (next > plan->iters)
		return 0;
	wr = make_wr(side, IBCHAN_OP_RECV, next);
	if (post(side, &wr, 1))
		return -1;
	if (round % step && next != plan->iters)
		return 0;
	return send_credit(side, round % step ? round % step : step);
}

static int bandwidth_server(struct side *side)
{
	__u32 round = 0;

	if (!sends_credits(side, PHASE_BANDWIDTH))
		return 0;
	while (round < side->plan->iters) {
		if (reap(side))
			return -1;
		while (round < side->received)
			if (consume(side, ++round))
				return -1;
	}
	return await_sent(side, credit_count(side->plan));
}

int traffic_run(struct side *side, __u32 phase, struct result *result)
{
	if (phase == PHASE_LATENCY)
		return side->is_client ? latency_client(side, result) :
					 latency_server(side);
	return side->is_client ? bandwidth_client(side, result) :
				 bandwidth_server(side);
}

/* Has this side data of the peer in @in, after this phase? */
static int has_data(const struct side *side, __u32 phase)
{
	if (side->plan->op == IBCHAN_OP_READ)
		return side->is_client;
	return phase == PHASE_LATENCY || !side->is_client;
}

/* The peer is through: each slot holds its last message, to the last byte. */
int traffic_verify(struct side *side, __u32 phase)
{
	__u32 rounds = phase_rounds(side->plan, phase);
	__u32 depth = side->plan->depth;
	__u32 first = rounds > depth ? rounds - depth + 1 : 1;
	__u32 round;
	__u32 stamp;

	if (!has_data(side, phase))
		return 0;
	for (round = first; round <= rounds; round++) {
		stamp = side->plan->op == IBCHAN_OP_READ ?
			read_stamp(side, round) : round;
		if (!pattern_whole(&side->theirs,
				   slot_of(side, side->in, round), stamp))
			return complain_data(side, round);
	}
	return 0;
}
