// SPDX-License-Identifier: GPL-2.0-only
/* The low-level endpoint: wr_id, poll, notification (Q2 to Q5). */
#include "job.h"
#include "suites.h"

/* Keeps completions, for ibchan_cq_poll(); the sink is for events only. */
static const struct ibchan_sink *events(struct world *w)
{
	struct ibchan_sink *sink = world_alloc(w, sizeof(*sink));

	sink->notify = side_sink.notify;
	sink->gone = side_sink.gone;
	return sink;
}

/* On cqs of so many entries, at least; 0: the default. */
static int kept_pair(struct world *w, u32 flags, u32 entries, int two_cqs)
{
	struct pair_init init;

	pair_defaults(&init);
	init.sink = events(w);
	init.cq_flags = IBCHAN_CQ_KEEP | flags;
	init.cq_entries = entries;
	init.two_cqs = two_cqs;
	return world_pair(w, &init);
}

/* Polls until so many have come. */
static int take(struct world *w, struct ibchan_cq *cq, struct ibchan_completion *got, int num)
{
	ktime_t end = after_ms(patience);
	int taken = 0;
	int ret;

	while (taken < num && ktime_before(ktime_get(), end)) {
		ret = ibchan_cq_poll(cq, got + taken, num - taken);
		if (!expect(w, ret >= 0 && ret <= num - taken))
			break;
		taken += ret;
		cond_resched();
	}
	expect_eq(w, taken, num);
	return taken == num ? 0 : -ETIMEDOUT;
}

static int nothing_left(struct world *w, struct ibchan_cq *cq)
{
	struct ibchan_completion got;

	return expect_eq(w, ibchan_cq_poll(cq, &got, 1), 0);
}

static void post_and_poll_by_wr_id(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_completion got[2];

	if (kept_pair(w, IBCHAN_CQ_POLLED, 0, 0))
		return;
	fill_pattern(a->buf, 1000, 1);
	expect_eq(w, ibchan_post_receive(b->ch, b->local, 0, 2000, 111), 0);
	expect_eq(w, ibchan_post_send(a->ch, a->local, 0, 1000, 222), 0);
	if (take(w, a->send_cq, &got[0], 1) || take(w, b->send_cq, &got[1], 1))
		return;
	expect_eq(w, got[0].wr_id, 222);
	expect_eq(w, got[0].opcode, IBCHAN_OP_SEND);
	expect_eq(w, got[0].error, 0);
	expect_eq(w, got[0].cookie, (uintptr_t)a);
	expect_eq(w, got[1].wr_id, 111);
	expect_eq(w, got[1].opcode, IBCHAN_OP_RECV);
	expect_eq(w, got[1].bytes, 1000);
	expect(w, has_pattern(b->buf, 1000, 1));
	nothing_left(w, a->send_cq);
	nothing_left(w, b->send_cq);
}

static int write_by_wr_id(struct side *a, struct side *b, u8 opcode, u64 wr_id)
{
	struct ibchan_sge sge = ibchan_sge_unchecked(a->local, wr_id * 64, 64);
	struct ibchan_wr wr = ibchan_wr_one_sided(opcode, &sge, 1, &b->remote);
	u32 accepted;

	wr.wr_id = wr_id;
	return ibchan_post(a->ch, &wr, 1, &accepted, NULL);
}

static void writes_and_reads_by_wr_id(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_completion got[2];

	if (kept_pair(w, IBCHAN_CQ_POLLED, 0, 0) || !side_share(b))
		return;
	fill_pattern(a->buf + 64, 64, 2);
	expect_eq(w, write_by_wr_id(a, b, IBCHAN_OP_WRITE, 1), 0);
	if (take(w, a->send_cq, &got[0], 1))
		return;
	expect(w, has_pattern(b->buf, 64, 2));
	expect_eq(w, write_by_wr_id(a, b, IBCHAN_OP_READ, 2), 0);
	if (take(w, a->send_cq, &got[1], 1))
		return;
	expect(w, has_pattern(a->buf + 128, 64, 2));
	expect_eq(w, got[0].opcode, IBCHAN_OP_WRITE);
	expect_eq(w, got[1].opcode, IBCHAN_OP_READ);
}

static void polling_takes_as_many_as_asked_for_in_order(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_completion got[10];
	int i;

	if (kept_pair(w, IBCHAN_CQ_POLLED, 0, 0) || !side_share(b))
		return;
	for (i = 0; i < 10; i++)
		expect_eq(w, write_by_wr_id(a, b, IBCHAN_OP_WRITE, i), 0);
	if (take(w, a->send_cq, got, 3) || take(w, a->send_cq, got + 3, 7))
		return;
	for (i = 0; i < 10; i++)
		expect_eq(w, got[i].wr_id, i);
	nothing_left(w, a->send_cq);
}

static void two_cqs_keep_sends_and_receives_apart(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_completion got[2];

	if (kept_pair(w, IBCHAN_CQ_POLLED, 0, 1))
		return;
	expect_eq(w, ibchan_post_receive(b->ch, b->local, 0, 100, 1), 0);
	expect_eq(w, ibchan_post_send(a->ch, a->local, 0, 100, 2), 0);
	if (take(w, b->recv_cq, &got[0], 1) || take(w, a->send_cq, &got[1], 1))
		return;
	expect_eq(w, got[0].wr_id, 1);
	expect_eq(w, got[1].wr_id, 2);
	nothing_left(w, a->recv_cq);
	nothing_left(w, b->send_cq);
}

#define CHANNELS	4

/* Both ends of all of them complete on the first side's cq. */
static void several_channels_share_a_cq_and_a_domain(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_channel *out[CHANNELS], *in[CHANNELS];
	struct ibchan_completion got[CHANNELS];
	struct ibchan_params params;
	u32 seen = 0;
	int i;

	ibchan_params_init(&params);
	if (kept_pair(w, IBCHAN_CQ_POLLED, 0, 0))
		return;
	for (i = 0; i < CHANNELS; i++) {
		out[i] = side_build(a, &params);
		in[i] = side_build(b, &params);
		if (!out[i] || !in[i] || side_connect(w, out[i], in[i]) ||
		    side_connect(w, in[i], out[i]))
			return;
		expect_eq(w, ibchan_post_receive(in[i], b->local, i * 64, 64, i), 0);
	}
	for (i = CHANNELS - 1; i >= 0; i--)
		expect_eq(w, ibchan_post_send(out[i], a->local, 0, 64, 100 + i), 0);
	if (!take(w, a->send_cq, got, CHANNELS))
		for (i = 0; i < CHANNELS; i++)
			seen |= 1 << (got[i].wr_id - 100);
	if (!take(w, b->send_cq, got, CHANNELS))
		for (i = 0; i < CHANNELS; i++)
			seen |= 16 << got[i].wr_id;
	expect_eq(w, seen, 0xff);
}

static void the_short_calls_refuse_like_the_long_one(struct world *w)
{
	struct side *a = &w->side[0];
	int i;

	if (kept_pair(w, IBCHAN_CQ_POLLED, 0, 0))
		return;
	expect_eq(w, ibchan_post_receive(a->ch, a->local, SIDE_BYTES, 1, 0), -EINVAL);
	expect_eq(w, ibchan_post_send(a->ch, a->local, 1, U32_MAX, 0), -EINVAL);
	for (i = 0; i < IBCHAN_DEFAULT_RECV_WR; i++)
		expect_eq(w, ibchan_post_receive(a->ch, a->local, 0, 1, i), 0);
	expect_eq(w, ibchan_post_receive(a->ch, a->local, 0, 1, i), -EAGAIN);
}

/* Three good ones, one beyond the region, one more good one that is not looked at. */
static void a_list_stops_at_the_first_bad_one_and_says_which(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_reason reason = {};
	struct ibchan_completion got[3];
	struct ibchan_wr wrs[5];
	u32 accepted = 9;
	int i;

	if (kept_pair(w, IBCHAN_CQ_POLLED, 0, 0) || !side_share(b))
		return;
	for (i = 0; i < 5; i++) {
		wrs[i] = ibchan_wr_write(side_sge(a, i == 3 ? SIDE_BYTES : 0, 8), 1, &b->remote);
		wrs[i].wr_id = i;
	}
	expect_eq(w, ibchan_post(a->ch, wrs, 5, &accepted, &reason), -EINVAL);
	expect_eq(w, accepted, 3);
	expect_eq(w, reason.code, IBCHAN_REASON_OUT_OF_BOUNDS);
	expect_eq(w, reason.wr, 3);
	expect_eq(w, reason.element, 0);
	if (take(w, a->send_cq, got, 3))
		return;
	for (i = 0; i < 3; i++)
		expect_eq(w, got[i].wr_id, i);
	nothing_left(w, a->send_cq);
}

static void a_cq_that_keeps_nothing_cannot_be_polled(struct world *w)
{
	struct ibchan_completion got;

	if (world_default_pair(w))
		return;
	expect_eq(w, ibchan_cq_poll(w->side[0].send_cq, &got, 1), -EOPNOTSUPP);
}

static void a_cq_either_keeps_or_hands_on(struct world *w)
{
	const struct ibchan_cq_init init = {
		.flags = IBCHAN_CQ_KEEP, .sink = &side_sink, .priv = &w->side[0],
	};
	struct ibchan_cq_init unknown = { .flags = 0x80 };
	struct ibchan_device *dev = world_device(w, 0);

	if (!dev)
		return;
	expect_eq(w, PTR_ERR(ibchan_cq_create(dev, &init, NULL)), -EINVAL);
	expect_eq(w, PTR_ERR(ibchan_cq_create(dev, &unknown, NULL)), -EOPNOTSUPP);
}

/* Nobody polls: the event comes, and then the completion lies there. */
static void a_cq_tells_when_something_has_come(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_completion got;

	if (kept_pair(w, IBCHAN_CQ_POLLED, 0, 0))
		return;
	expect_eq(w, ibchan_post_receive(b->ch, b->local, 0, 64, 5), 0);
	ibchan_cq_arm(b->recv_cq);
	expect_eq(w, atomic_read(&b->notified), 0);
	expect_eq(w, ibchan_post_send(a->ch, a->local, 0, 64, 6), 0);
	if (!expect_soon(w, atomic_read(&b->notified)))
		return;
	expect_eq(w, ibchan_cq_poll(b->recv_cq, &got, 1), 1);
	expect_eq(w, got.wr_id, 5);
}

static void a_cq_that_is_not_polled_by_its_owner_tells_by_itself(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_completion got;

	if (kept_pair(w, 0, 0, 0))
		return;
	expect_eq(w, ibchan_post_receive(b->ch, b->local, 0, 64, 5), 0);
	expect_eq(w, ibchan_post_send(a->ch, a->local, 0, 64, 6), 0);
	expect_soon(w, atomic_read(&b->notified));
	expect_eq(w, ibchan_cq_poll(b->recv_cq, &got, 1), 1);
	expect_eq(w, got.wr_id, 5);
}

static int send_solicited(struct side *a, u8 flags)
{
	struct ibchan_wr wr = ibchan_wr_send(side_sge(a, 0, 64), 1);

	wr.flags = flags;
	return ibchan_channel_run(a->ch, &wr, NULL);
}

/**
 * struct witness - a connection beside the pair whose receiving cq is not choosy
 * @from: sends
 * @to: receives, on a cq of its own
 */
struct witness {
	struct ibchan_channel *from;
	struct side to;
};

static struct witness *witness_open(struct world *w)
{
	struct witness *witness = world_alloc(w, sizeof(*witness));
	struct side *a = &w->side[0], *b = &w->side[1], *to = &witness->to;
	const struct ibchan_cq_init cq = {
		.flags = IBCHAN_CQ_KEEP | IBCHAN_CQ_POLLED, .sink = events(w), .priv = to,
	};
	struct ibchan_params params;

	ibchan_params_init(&params);
	*to = (struct side){
		.world = w, .dev = b->dev, .pd = b->pd, .buf = b->buf, .local = b->local,
	};
	to->send_cq = world_cq(w, to->dev, &cq);
	to->recv_cq = to->send_cq;
	to->ch = to->send_cq ? side_build(to, &params) : NULL;
	witness->from = side_build(a, &params);
	if (!to->ch || !witness->from || side_connect(w, witness->from, to->ch) ||
	    side_connect(w, to->ch, witness->from))
		return NULL;
	return witness;
}

/* Had the device told of an earlier message, that would have come before this one. */
static void events_have_come(struct witness *witness)
{
	struct side *a = &witness->to.world->side[0], *to = &witness->to;
	int before = atomic_read(&to->notified);
	struct world *w = to->world;

	expect_eq(w, ibchan_post_receive(to->ch, to->local, 4096, 64, 0), 0);
	ibchan_cq_arm(to->recv_cq);
	expect_eq(w, ibchan_channel_send(witness->from, side_sge(a, 0, 64), 1, NULL), 0);
	expect_soon(w, atomic_read(&to->notified) > before);
}

static void only_solicited_messages_wake_a_solicited_cq(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_completion got[4];
	struct witness *witness;
	int i;

	if (kept_pair(w, IBCHAN_CQ_POLLED | IBCHAN_CQ_SOLICITED, 0, 0))
		return;
	witness = witness_open(w);
	if (!witness)
		return;
	for (i = 0; i < 4; i++)
		expect_eq(w, ibchan_post_receive(b->ch, b->local, i * 64, 64, i), 0);
	ibchan_cq_arm(b->recv_cq);
	for (i = 0; i < 3; i++)
		expect_eq(w, send_solicited(a, 0), 0);
	events_have_come(witness);
	expect_eq(w, atomic_read(&b->notified), 0);
	expect_eq(w, send_solicited(a, IBCHAN_WR_SOLICITED), 0);
	expect_soon(w, atomic_read(&b->notified));
	events_have_come(witness);
	expect_eq(w, atomic_read(&b->notified), 1);
	if (take(w, b->recv_cq, got, 4))
		return;
	for (i = 0; i < 4; i++)
		expect_eq(w, got[i].wr_id, i);
}

static int kept_is_there(void *arg)
{
	struct side *side = arg;

	return ibchan_cq_poll(side->recv_cq, side->log, 1);
}

static void waiting_on_a_cq_is_bounded(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];

	if (kept_pair(w, IBCHAN_CQ_POLLED, 0, 0))
		return;
	expect_eq(w, ibchan_post_receive(b->ch, b->local, 0, 64, 9), 0);
	expect_eq(w, ibchan_cq_wait(b->recv_cq, kept_is_there, b, 20 * NSEC_PER_MSEC), -ETIMEDOUT);
	expect_eq(w, ibchan_cq_wait(b->recv_cq, kept_is_there, b, 0), -ETIMEDOUT);
	expect_eq(w, ibchan_post_send(a->ch, a->local, 0, 64, 6), 0);
	expect_eq(w, ibchan_cq_wait(b->recv_cq, kept_is_there, b, patience * NSEC_PER_MSEC), 1);
	expect_eq(w, b->log[0].wr_id, 9);
}

static void works_by_wr_id_and_with_done_share_a_channel(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *job = world_jobs(w, 1);
	struct ibchan_completion got;

	if (kept_pair(w, IBCHAN_CQ_POLLED, 0, 0) || !side_share(b))
		return;
	expect_eq(w, job_write(job, a, 64, &b->remote), 0);
	expect_eq(w, write_by_wr_id(a, b, IBCHAN_OP_WRITE, 77), 0);
	expect_eq(w, ibchan_channel_write(a->ch, side_sge(a, 0, 8), 1, &b->remote, NULL), 0);
	if (take(w, a->send_cq, &got, 1))
		return;
	expect_eq(w, got.wr_id, 77);
	expect_eq(w, atomic_read(&job->ended), 1);
	nothing_left(w, a->send_cq);
}

/* Works end, and nobody takes their completions. */
static void reap_all(struct side *side)
{
	ktime_t end = after_ms(patience);

	while (channel_in_flight(side->ch) && ktime_before(ktime_get(), end)) {
		ibchan_cq_reap(side->send_cq, 64);
		cond_resched();
	}
}

/* There is room for the next power of two. */
static void a_full_cq_takes_as_many_works_as_were_polled_for(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_completion *got = world_alloc(w, 67 * sizeof(*got));
	int i;

	if (kept_pair(w, IBCHAN_CQ_POLLED, 34, 0) || !side_share(b))
		return;
	for (i = 0; i < 64; i++) {
		expect_eq(w, write_by_wr_id(a, b, IBCHAN_OP_WRITE, i), 0);
		reap_all(a);
	}
	expect_eq(w, write_by_wr_id(a, b, IBCHAN_OP_WRITE, i), -EAGAIN);
	expect_eq(w, channel_in_flight(a->ch), 0);
	expect_eq(w, ibchan_cq_poll(a->send_cq, got, 3), 3);
	for (; i < 67; i++)
		expect_eq(w, write_by_wr_id(a, b, IBCHAN_OP_WRITE, i), 0);
	expect_eq(w, write_by_wr_id(a, b, IBCHAN_OP_WRITE, i), -EAGAIN);
	if (take(w, a->send_cq, got + 3, 64))
		return;
	for (i = 0; i < 67; i++)
		expect_eq(w, got[i].wr_id, i);
	nothing_left(w, a->send_cq);
}

#define CROWD		2	/* posters, each with a channel, and as many pollers */
#define CROWD_WORKS	400	/* of each poster */

/**
 * struct crowd - threads that post to one cq and poll it
 * @w: their world
 * @ch: of the posters
 * @end: when they give up
 * @told: completions that the pollers have taken
 * @seen: the same, by wr_id
 */
struct crowd {
	struct world *w;
	struct ibchan_channel *ch[CROWD];
	ktime_t end;
	atomic_t told;
	atomic_t seen[CROWD * CROWD_WORKS];
};

/* One of them. */
struct member {
	struct crowd *crowd;
	struct thread thread;
	u32 index;
};

/* Every fourth one has no completion. */
static int is_quiet(u32 work)
{
	return work % 4 == 1;
}

static int post_all(void *arg)
{
	struct member *member = arg;
	struct crowd *crowd = member->crowd;
	struct side *a = &crowd->w->side[0], *b = &crowd->w->side[1];
	struct ibchan_wr wr = ibchan_wr_write(side_sge(a, 0, 8), 1, &b->remote);
	u32 accepted, i = 0;
	int ret = 0;

	while (i < CROWD_WORKS && !ret && ktime_before(ktime_get(), crowd->end)) {
		wr.wr_id = member->index * CROWD_WORKS + i;
		wr.flags = is_quiet(i) ? IBCHAN_WR_UNSIGNALED : 0;
		ret = ibchan_post(crowd->ch[member->index], &wr, 1, &accepted, NULL);
		i += accepted;
		if (ret == -EAGAIN) {
			ret = 0;
			cond_resched();
		}
	}
	return ret ?: CROWD_WORKS - i;
}

static int poll_all(void *arg)
{
	struct member *member = arg;
	struct crowd *crowd = member->crowd;
	struct ibchan_completion got[8];
	int i, num = 0;

	while (num >= 0 && atomic_read(&crowd->told) < CROWD * CROWD_WORKS * 3 / 4 &&
	       ktime_before(ktime_get(), crowd->end)) {
		/* One of them by the piece. */
		num = ibchan_cq_poll(crowd->w->side[0].send_cq, got, member->index ? 8 : 1);
		for (i = 0; i < num; i++)
			if (expect(crowd->w, got[i].wr_id < CROWD * CROWD_WORKS))
				atomic_inc(&crowd->seen[got[i].wr_id]);
		if (num > 0)
			atomic_add(num, &crowd->told);
		cond_resched();
	}
	return min(num, 0);
}

/* The second channel's other end is on the second side. */
static struct crowd *crowd_open(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct crowd *crowd = world_valloc(w, sizeof(*crowd));
	struct ibchan_channel *peer;
	struct ibchan_params params;

	ibchan_params_init(&params);
	crowd->w = w;
	crowd->end = after_ms(patience);
	crowd->ch[0] = a->ch;
	crowd->ch[1] = side_build(a, &params);
	peer = side_build(b, &params);
	if (!crowd->ch[1] || !peer || side_connect(w, crowd->ch[1], peer) ||
	    side_connect(w, peer, crowd->ch[1]))
		return NULL;
	return crowd;
}

static void each_completion_goes_to_one_of_several_pollers(struct world *w)
{
	struct member *members = world_alloc(w, 2 * CROWD * sizeof(*members));
	struct crowd *crowd;
	u32 i, wrong = 0;

	if (kept_pair(w, IBCHAN_CQ_POLLED, 68, 0) || !side_share(&w->side[1]))
		return;
	crowd = crowd_open(w);
	if (!crowd)
		return;
	for (i = 0; i < 2 * CROWD; i++) {
		members[i].crowd = crowd;
		members[i].index = i / 2;
		members[i].thread.world = w;
		members[i].thread.run = i % 2 ? post_all : poll_all;
		members[i].thread.arg = &members[i];
		if (thread_start(&members[i].thread))
			break;
	}
	while (i)
		expect_eq(w, thread_join(&members[--i].thread), 0);
	for (i = 0; i < CROWD * CROWD_WORKS; i++)
		wrong += atomic_read(&crowd->seen[i]) != !is_quiet(i);
	expect_eq(w, wrong, 0);
	nothing_left(w, w->side[0].send_cq);
}

static void a_cq_in_use_cannot_be_destroyed(struct world *w)
{
	struct side *a = &w->side[0];

	if (world_default_pair(w))
		return;
	expect_eq(w, ibchan_cq_try_destroy(a->send_cq), -EBUSY);
	expect(w, ibchan_cq_tryget(a->send_cq));
	side_close(a);
	expect_eq(w, ibchan_cq_try_destroy(a->send_cq), -EBUSY);
	ibchan_cq_put(a->send_cq);
	/* Now it can: the end of the world expects that. */
}

static const struct test_case qp_cases[] = {
	CASE(post_and_poll_by_wr_id),
	CASE(writes_and_reads_by_wr_id),
	CASE(polling_takes_as_many_as_asked_for_in_order),
	CASE(two_cqs_keep_sends_and_receives_apart),
	CASE(several_channels_share_a_cq_and_a_domain),
	CASE(the_short_calls_refuse_like_the_long_one),
	CASE(a_list_stops_at_the_first_bad_one_and_says_which),
	CASE(a_cq_that_keeps_nothing_cannot_be_polled),
	CASE(a_cq_either_keeps_or_hands_on),
	CASE(a_cq_tells_when_something_has_come),
	CASE(a_cq_that_is_not_polled_by_its_owner_tells_by_itself),
	CASE(only_solicited_messages_wake_a_solicited_cq),
	CASE(waiting_on_a_cq_is_bounded),
	CASE(works_by_wr_id_and_with_done_share_a_channel),
	CASE(a_full_cq_takes_as_many_works_as_were_polled_for),
	CASE(each_completion_goes_to_one_of_several_pollers),
	CASE(a_cq_in_use_cannot_be_destroyed),
};

SUITE(qp);
