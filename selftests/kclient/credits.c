// SPDX-License-Identifier: GPL-2.0-only
/* Credits: a message is posted only when the peer has a receive for it; times and counts. */
#include <linux/sched/signal.h>

#include "job.h"
#include "suites.h"

#define DEPTH		4
#define MESSAGES	200

static void credit_defaults(struct pair_init *init)
{
	pair_defaults(init);
	init->options.mode = IBCHAN_MODE_CREDITS;
	init->params.rnr_retries = 0;
	init->params.max_recv_wr = DEPTH;
}

static int credit_pair(struct world *w)
{
	struct pair_init init;

	credit_defaults(&init);
	return world_pair(w, &init);
}

/* Nobody is woken by a credit, so this waits by itself. */
static void expect_credits(struct side *side, int num)
{
	ktime_t end = after_ms(patience);

	while (ibchan_channel_credits(side->ch) != num && ktime_before(ktime_get(), end))
		schedule_timeout_uninterruptible(1);
	expect_eq(side->world, ibchan_channel_credits(side->ch), num);
}

static void each_receive_grants_one_credit_and_each_message_takes_one(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 3);
	struct ibchan_reason reason = {};
	struct ibchan_wr wr;

	if (credit_pair(w))
		return;
	expect_eq(w, job_receive(&jobs[0], b, 0, 8), 0);
	expect_eq(w, job_receive(&jobs[1], b, 0, 8), 0);
	expect_credits(a, 2);
	expect_eq(w, ibchan_channel_send(a->ch, side_sge(a, 0, 8), 1, NULL), 0);
	expect_eq(w, ibchan_channel_credits(a->ch), 1);
	wr = job_wr(&jobs[2], IBCHAN_OP_WRITE, a, 0, 0);
	wr.num_sge = 0;
	ibchan_wr_set_imm(&wr, 77);
	expect_eq(w, job_post(&jobs[2], a->ch, &wr, NULL), 0);
	job_ended(&jobs[2]);
	expect_eq(w, ibchan_channel_credits(a->ch), 0);
	job_ended(&jobs[0]);
	job_ended(&jobs[1]);
	expect_eq(w, jobs[1].completion.imm, 77);
	expect_eq(w, job_post(&jobs[2], a->ch, &wr, &reason), -EAGAIN);
	expect_eq(w, reason.code, IBCHAN_REASON_PEER_CREDITS);
	expect_eq(w, reason.value[0], 2);
	expect_eq(w, reason.value[1], 2);
}

static void a_batch_is_accepted_as_far_as_the_credits_reach(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 8);
	struct ibchan_reason reason = {};
	struct ibchan_wr wrs[5];
	u32 accepted = 99;
	int i;

	if (credit_pair(w))
		return;
	for (i = 0; i < 3; i++)
		expect_eq(w, job_receive(&jobs[5 + i], b, 0, 8), 0);
	expect_credits(a, 3);
	for (i = 0; i < 5; i++)
		wrs[i] = job_wr(&jobs[i], IBCHAN_OP_SEND, a, 0, 8);
	expect_eq(w, ibchan_post(a->ch, wrs, 5, &accepted, &reason), -EAGAIN);
	expect_eq(w, accepted, 3);
	expect_eq(w, reason.wr, 3);
	expect_eq(w, reason.code, IBCHAN_REASON_PEER_CREDITS);
	expect_soon(w, jobs_ended(jobs, 8) == 6);
	expect_eq(w, jobs_ended(jobs + 3, 2), 0);
}

/* A thread that sends so many messages, each as soon as it may. */
struct sender {
	struct thread thread;
	struct side *side;
	u32 sent;
	int error;
};

static int send_all(void *arg)
{
	struct sender *sender = arg;
	struct side *side = sender->side;
	u32 *number = (u32 *)side->buf;
	struct ibchan_sge sge = ibchan_sge_unchecked(side->local, 0, sizeof(*number));
	ktime_t deadline = after_ms(2 * patience);

	while (sender->sent < MESSAGES && !sender->error) {
		*number = sender->sent;
		sender->error = ibchan_channel_send_until(side->ch, &sge, 1, deadline, NULL);
		sender->sent += !sender->error;
	}
	return 0;
}

/* Takes one message after the other, which must be the next one each time. */
struct receiver {
	struct thread thread;
	struct side *side;
	u32 received;
	u32 wrong;
	int error;
};

static void post_next(struct receiver *receiver, struct job *job, u32 slot)
{
	if (!receiver->error)
		receiver->error = job_receive(job, receiver->side, SZ_4K + 8 * slot, 4);
}

static int receive_all(void *arg)
{
	struct receiver *receiver = arg;
	struct side *side = receiver->side;
	struct world *w = side->world;
	struct job *jobs = world_jobs(w, DEPTH);
	u32 i;

	for (i = 0; i < DEPTH; i++)
		post_next(receiver, &jobs[i], i);
	for (i = 0; i < MESSAGES && !receiver->error; i++) {
		struct job *job = &jobs[i % DEPTH];

		if (!wait_event_timeout(w->wait, atomic_read(&job->ended),
					msecs_to_jiffies(patience)))
			receiver->error = -ETIMEDOUT;
		if (!receiver->error)
			receiver->error = -(int)job->completion.error;
		receiver->wrong += *(u32 *)(side->buf + SZ_4K + 8 * (i % DEPTH)) != i;
		receiver->received += !receiver->error;
		atomic_set(&job->ended, 0);
		if (i + DEPTH < MESSAGES)
			post_next(receiver, job, i % DEPTH);
	}
	return 0;
}

static int traffic_start(struct sender *sender, struct receiver *receiver, struct side *from,
			 struct side *to)
{
	*receiver = (struct receiver){
		.thread = { .world = to->world, .run = receive_all, .arg = receiver },
		.side = to,
	};
	*sender = (struct sender){
		.thread = { .world = from->world, .run = send_all, .arg = sender },
		.side = from,
	};
	return thread_start(&receiver->thread) ?: thread_start(&sender->thread);
}

static void traffic_end(struct world *w, struct sender *sender, struct receiver *receiver)
{
	thread_join(&sender->thread);
	thread_join(&receiver->thread);
	expect_eq(w, sender->error, 0);
	expect_eq(w, sender->sent, MESSAGES);
	expect_eq(w, receiver->error, 0);
	expect_eq(w, receiver->received, MESSAGES);
	expect_eq(w, receiver->wrong, 0);
}

static void both_directions_go_at_once(struct world *w)
{
	struct receiver *receivers = world_alloc(w, 2 * sizeof(*receivers));
	struct sender *senders = world_alloc(w, 2 * sizeof(*senders));

	if (credit_pair(w) ||
	    traffic_start(&senders[0], &receivers[0], &w->side[0], &w->side[1]) ||
	    traffic_start(&senders[1], &receivers[1], &w->side[1], &w->side[0]))
		return;
	traffic_end(w, &senders[0], &receivers[0]);
	traffic_end(w, &senders[1], &receivers[1]);
}

/* Its owner never looks at the cq that the writes of credits complete in. */
static void credits_come_from_a_side_that_only_receives(struct world *w)
{
	struct receiver *receiver = world_alloc(w, sizeof(*receiver));
	struct sender *sender = world_alloc(w, sizeof(*sender));
	struct pair_init init;

	credit_defaults(&init);
	init.two_cqs = 1;
	if (world_pair(w, &init) ||
	    traffic_start(sender, receiver, &w->side[0], &w->side[1]))
		return;
	traffic_end(w, sender, receiver);
}

/* Both sides, so that the one that connects first also tells one that is not there yet. */
static void receives_that_were_posted_before_the_handshake_grant_credits(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 3);
	struct pair_init init;

	credit_defaults(&init);
	if (world_sides(w, &init))
		return;
	expect_eq(w, job_receive(&jobs[0], a, 0, 8), 0);
	expect_eq(w, job_receive(&jobs[1], b, 0, 8), 0);
	expect_eq(w, job_receive(&jobs[2], b, 8, 8), 0);
	if (side_connect(w, a->ch, b->ch) || side_connect(w, b->ch, a->ch))
		return;
	expect_credits(a, 2);
	expect_credits(b, 1);
	expect_eq(w, ibchan_channel_send(a->ch, side_sge(a, 64, 8), 1, NULL), 0);
	expect_eq(w, ibchan_channel_send(b->ch, side_sge(b, 64, 8), 1, NULL), 0);
	job_ended(&jobs[0]);
	job_ended(&jobs[1]);
}

/* On such a cq no write of credits would make an event by itself. */
static void a_cq_for_solicited_messages_hears_of_credits_all_the_same(struct world *w)
{
	struct job *jobs = world_jobs(w, 2);
	struct side *a = &w->side[0], *b = &w->side[1];
	struct pair_init init;
	int i;

	credit_defaults(&init);
	init.two_cqs = 1;
	init.cq_flags = IBCHAN_CQ_SOLICITED;
	if (world_pair(w, &init))
		return;
	for (i = 0; i < 2; i++) {
		expect_eq(w, job_receive(&jobs[i], b, 0, 8), 0);
		expect_credits(a, i + 1);
	}
}

static void a_channel_may_grant_credits_to_itself(struct world *w)
{
	struct side *a = &w->side[0];
	struct job *jobs = world_jobs(w, 1);
	struct pair_init init;

	credit_defaults(&init);
	if (world_sides(w, &init) || side_connect(w, a->ch, a->ch))
		return;
	expect_eq(w, job_receive(jobs, a, 0, 8), 0);
	expect_eq(w, ibchan_channel_send(a->ch, side_sge(a, 64, 8), 1, NULL), 0);
	job_ended(jobs);
	expect_eq(w, jobs->completion.error, 0);
}

static void a_blocking_send_that_gets_no_credit_in_time_leaves_the_channel(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 1);
	struct ibchan_outcome outcome;

	if (credit_pair(w))
		return;
	expect_eq(w, ibchan_channel_send_until(a->ch, side_sge(a, 0, 8), 1, after_ms(20),
					       &outcome), -ETIMEDOUT);
	expect_eq(w, outcome.posted, 0);
	expect_eq(w, outcome.reason.code, IBCHAN_REASON_PEER_CREDITS);
	expect_eq(w, channel_state(a->ch), IBCHAN_CHANNEL_CONNECTED);
	expect_eq(w, job_receive(jobs, b, 0, 8), 0);
	expect_eq(w, ibchan_channel_send(a->ch, side_sge(a, 0, 8), 1, NULL), 0);
	job_ended(jobs);
}

static int wait_for_ever(void *arg)
{
	struct side *side = arg;

	return ibchan_channel_wait_credits(side->ch, -1);
}

static int send_for_ever(void *arg)
{
	struct side *side = arg;

	return ibchan_channel_send(side->ch, side_sge(side, 0, 8), 1, NULL);
}

static void a_break_wakes_who_waits_for_credit_with_eshutdown(struct world *w)
{
	struct side *a = &w->side[0];
	struct thread waiter = { .world = w, .run = wait_for_ever, .arg = a };
	struct thread sender = { .world = w, .run = send_for_ever, .arg = a };

	if (credit_pair(w) || thread_start(&waiter) || thread_start(&sender))
		return;
	ibchan_channel_break(a->ch, -ECANCELED);
	expect_eq(w, thread_join(&waiter), -ESHUTDOWN);
	expect_eq(w, thread_join(&sender), -ESHUTDOWN);
}

static void a_signal_ends_a_wait_for_credit_and_leaves_the_channel(struct world *w)
{
	struct side *a = &w->side[0];
	struct thread waiter = { .world = w, .run = wait_for_ever, .arg = a };
	struct thread sender = { .world = w, .run = send_for_ever, .arg = a };

	if (credit_pair(w) || thread_start(&waiter) || thread_start(&sender))
		return;
	thread_kill(&waiter);
	thread_kill(&sender);
	expect_eq(w, thread_join(&waiter), -EINTR);
	expect_eq(w, thread_join(&sender), -EINTR);
	expect_eq(w, channel_state(a->ch), IBCHAN_CHANNEL_CONNECTED);
	expect_eq(w, channel_in_flight(a->ch), 0);
}

static int build_error(struct side *side, const struct pair_init *init,
		       struct ibchan_reason *reason)
{
	struct ibchan_params params = init->params;
	struct ibchan_channel *ch;
	struct ibchan_build build;

	side_build_init(side, &build);
	build.options = init->options;
	*reason = (struct ibchan_reason) {};
	ch = ibchan_channel_build(&build, &params, reason);
	if (!IS_ERR(ch))
		ibchan_channel_close(ch);
	return PTR_ERR_OR_ZERO(ch);
}

static void a_mode_that_cannot_be_is_refused(struct world *w)
{
	struct side *a = &w->side[0];
	struct ibchan_device_attr attr;
	struct ibchan_reason reason;
	struct pair_init init;

	credit_defaults(&init);
	if (world_sides(w, &init) || !expect_eq(w, ibchan_device_query(a->dev, &attr), 0))
		return;
	init.options.mode = IBCHAN_MODE_CREDITS | 0x2;
	expect_eq(w, build_error(a, &init, &reason), -EOPNOTSUPP);
	expect_eq(w, reason.code, IBCHAN_REASON_MODE);
	init.options.mode = IBCHAN_MODE_CREDITS;
	init.params.access = IBCHAN_ACCESS_LOCAL;
	expect_eq(w, build_error(a, &init, &reason), -EACCES);
	expect_eq(w, reason.code, IBCHAN_REASON_CREDIT_ACCESS);
	expect_eq(w, reason.value[0], IBCHAN_ACCESS_LOCAL);
	init.params.access = IBCHAN_ACCESS_SHARED;
	expect_eq(w, build_error(a, &init, &reason), 0);
	init.params.max_send_wr = min(attr.max_qp_wr, attr.max_cqe - 2) - 1;
	expect_eq(w, build_error(a, &init, &reason), -EINVAL);
	expect_eq(w, reason.code, IBCHAN_REASON_PARAMETER);
	expect_eq(w, reason.element, IBCHAN_PARAMETER_MAX_SEND_WR);
	expect_eq(w, reason.value[2], init.params.max_send_wr - 1);
}

/* It keeps one place of the send queue and one entry of the cq for itself. */
static void a_full_send_queue_still_grants_credits(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 5);
	struct pair_init init;
	int i;

	credit_defaults(&init);
	init.params.max_send_wr = 2;
	init.params.max_recv_wr = 2;
	init.cq_entries = 2 + 2 + 3;
	if (world_pair(w, &init))
		return;
	for (i = 0; i < 2; i++)
		expect_eq(w, job_receive(&jobs[i], b, 0, 8), 0);
	expect_credits(a, 2);
	for (i = 0; i < 2; i++)
		expect_eq(w, job_send(&jobs[2 + i], a, 0, 8), 0);
	expect_eq(w, job_receive(&jobs[4], a, 64, 8), 0);
	expect_credits(b, 1);
	expect_soon(w, jobs_ended(jobs, 4) == 4);
	expect_eq(w, jobs_repeated(jobs, 5), 0);
}

static void a_cq_without_the_entry_for_credits_is_refused(struct world *w)
{
	struct ibchan_reason reason;
	struct pair_init init;

	credit_defaults(&init);
	init.params.max_send_wr = 2;
	init.params.max_recv_wr = 2;
	init.cq_entries = 2 + 2 + 3;
	init.options.mode = 0;
	if (world_sides(w, &init))
		return;
	side_close(&w->side[0]);
	init.params.max_send_wr = 3;
	expect_eq(w, build_error(&w->side[0], &init, &reason), 0);
	init.options.mode = IBCHAN_MODE_CREDITS;
	expect_eq(w, build_error(&w->side[0], &init, &reason), -EAGAIN);
	expect_eq(w, reason.code, IBCHAN_REASON_CQ_FULL);
	init.params.max_send_wr = 2;
	expect_eq(w, build_error(&w->side[0], &init, &reason), 0);
}

static void the_device_uses_the_times_and_counts_that_were_asked_for(struct world *w)
{
	struct ibchan_times times;
	struct pair_init init;

	pair_defaults(&init);
	init.params.ack_timeout = 15;
	init.params.ack_retries = 5;
	init.params.rnr_retries = 3;
	init.params.min_rnr_timer = 12;
	if (world_pair(w, &init))
		return;
	expect_eq(w, ibchan_channel_times(w->side[0].ch, &times), 0);
	expect_eq(w, times.ack_timeout_ns, 4096LL << 15);
	expect_eq(w, times.ack_retries, 5);
	expect_eq(w, times.rnr_timer_ns, 640000);
	expect_eq(w, times.rnr_retries, 3);
	expect_eq(w, times.worst_case_ns, 4 * 6 * (4096LL << 15));
}

static void times_that_never_end_say_so(struct world *w)
{
	struct ibchan_times times;
	struct pair_init init;

	pair_defaults(&init);
	init.params.ack_timeout = 0;
	if (world_pair(w, &init))
		return;
	expect_eq(w, ibchan_channel_times(w->side[0].ch, &times), 0);
	expect_eq(w, times.ack_timeout_ns, IBCHAN_TIMEOUT_NEVER);
	expect_eq(w, times.worst_case_ns, IBCHAN_TIMEOUT_NEVER);
}

static const struct test_case credits_cases[] = {
	CASE(each_receive_grants_one_credit_and_each_message_takes_one),
	CASE(a_batch_is_accepted_as_far_as_the_credits_reach),
	CASE(both_directions_go_at_once),
	CASE(credits_come_from_a_side_that_only_receives),
	CASE(receives_that_were_posted_before_the_handshake_grant_credits),
	CASE(a_cq_for_solicited_messages_hears_of_credits_all_the_same),
	CASE(a_channel_may_grant_credits_to_itself),
	CASE(a_blocking_send_that_gets_no_credit_in_time_leaves_the_channel),
	CASE(a_break_wakes_who_waits_for_credit_with_eshutdown),
	CASE(a_signal_ends_a_wait_for_credit_and_leaves_the_channel),
	CASE(a_mode_that_cannot_be_is_refused),
	CASE(a_full_send_queue_still_grants_credits),
	CASE(a_cq_without_the_entry_for_credits_is_refused),
	CASE(the_device_uses_the_times_and_counts_that_were_asked_for),
	CASE(times_that_never_end_say_so),
};

SUITE(credits);
