// SPDX-License-Identifier: GPL-2.0-only
/* Scopes: whichever way a block is left, its works have ended (C4, C5, law 7). */
#include <rdma/ibchan_scope.h>

#include "job.h"
#include "suites.h"

#define WORKS	4

/* What a case needs besides the world, outside any block. */
struct scene {
	struct world *w;
	struct side *a;
	struct side *b;
	struct ibchan_scope scope;
	struct ibchan_pending pending[WORKS];
	struct ibchan_sge sges[WORKS];
};

static struct scene *scene_open_as(struct world *w, const struct pair_init *init)
{
	struct scene *scene = world_alloc(w, sizeof(*scene));

	scene->w = w;
	scene->a = &w->side[0];
	scene->b = &w->side[1];
	if (world_pair(w, init) || !side_share(scene->b))
		return NULL;
	return scene;
}

static struct scene *scene_open(struct world *w)
{
	struct pair_init init;

	pair_defaults(&init);
	return scene_open_as(w, &init);
}

/* Writes are posted quickly and take a moment each. */
static int post_write(struct scene *scene, int i)
{
	struct ibchan_wr wr;

	scene->sges[i] = ibchan_sge_unchecked(scene->a->local, 0, 16384);
	wr = ibchan_wr_write(&scene->sges[i], 1, &scene->b->remote);
	wr.wr_id = i;
	return ibchan_scope_post(&scene->scope, &scene->pending[i], scene->a->ch, &wr, NULL);
}

static int post_as(struct scene *scene, struct ibchan_scope *scope, u8 opcode, int i)
{
	struct side *side = opcode == IBCHAN_OP_RECV ? scene->b : scene->a;
	struct ibchan_wr wr = { .opcode = opcode, .sges = &scene->sges[i], .num_sge = 1 };

	scene->sges[i] = ibchan_sge_unchecked(side->local, i * 64, 64);
	wr.wr_id = i;
	return ibchan_scope_post(scope, &scene->pending[i], side->ch, &wr, NULL);
}

static void expect_ended(struct scene *scene, int num)
{
	int i;

	expect_eq(scene->w, channel_in_flight(scene->a->ch), 0);
	for (i = 0; i < num; i++) {
		expect_eq(scene->w, ibchan_pending_result(&scene->pending[i]), 0);
		expect_eq(scene->w, scene->pending[i].completion.wr_id, i);
	}
}

static void a_block_that_falls_through_has_ended_its_works(struct world *w)
{
	struct scene *scene = scene_open(w);
	int i;

	if (!scene)
		return;
	ibchan_scoped(&scene->scope)
		for (i = 0; i < WORKS; i++)
			expect_eq(w, post_write(scene, i), 0);
	expect_ended(scene, WORKS);
	expect_eq(w, scene->scope.auto_polled, WORKS);
	expect_eq(w, scene->scope.num_failed, 0);
	expect_eq(w, ibchan_scope_error(&scene->scope), 0);
}

enum way { BREAK, CONTINUE, GOTO, RETURN, WAYS };

/* Already where the block was left for nothing is in flight. */
static int leave_block(struct scene *scene, enum way way)
{
	int rounds = 0;

	ibchan_scoped(&scene->scope) {
		rounds++;
		expect_eq(scene->w, post_write(scene, way), 0);
		if (way == BREAK)
			break;
		if (way == CONTINUE)
			continue;
		if (way == GOTO)
			goto out;
		return ibchan_scope_fail(&scene->scope, -ENOTTY);
	}
	expect_eq(scene->w, rounds, 1);
out:
	expect_eq(scene->w, channel_in_flight(scene->a->ch), 0);
	return 0;
}

static void a_block_that_is_left_in_any_way_has_ended_its_works(struct world *w)
{
	struct scene *scene = scene_open(w);
	enum way way;

	for (way = 0; scene && way < WAYS; way++) {
		expect_eq(w, leave_block(scene, way), way == RETURN ? -ENOTTY : 0);
		expect_eq(w, scene->scope.auto_polled, 1);
		expect_eq(w, ibchan_scope_error(&scene->scope), way == RETURN ? -ENOTTY : 0);
		expect_ended(scene, way + 1);
	}
}

static void scopes_nest(struct world *w)
{
	struct scene *scene = scene_open(w);
	struct ibchan_pending *inner_pending;
	struct ibchan_scope inner;
	struct ibchan_wr wr;

	if (!scene)
		return;
	inner_pending = world_alloc(w, sizeof(*inner_pending));
	ibchan_scoped(&scene->scope) {
		expect_eq(w, post_write(scene, 0), 0);
		ibchan_scoped(&inner) {
			wr = ibchan_wr_write(side_sge(scene->a, 0, 64), 1, &scene->b->remote);
			expect_eq(w, ibchan_scope_post(&inner, inner_pending, scene->a->ch, &wr,
						       NULL), 0);
		}
		expect_eq(w, ibchan_pending_result(inner_pending), 0);
		expect_eq(w, inner.auto_polled, 1);
	}
	expect_eq(w, scene->scope.auto_polled, 1);
	expect_ended(scene, 1);
}

/* Else the outer scope would lose it, and all behind it. */
static void a_pending_work_belongs_to_one_scope_until_that_has_ended(struct world *w)
{
	struct scene *scene = scene_open(w);
	struct ibchan_scope inner;
	int i;

	if (!scene)
		return;
	ibchan_scoped(&scene->scope) {
		for (i = 0; i < WORKS; i++)
			expect_eq(w, post_write(scene, i), 0);
		expect_eq(w, ibchan_pending_wait(&scene->pending[0]), 0);
		expect_eq(w, ibchan_pending_wait(&scene->pending[2]), 0);
		ibchan_scoped(&inner) {
			expect_eq(w, post_as(scene, &inner, IBCHAN_OP_SEND, 0), -EALREADY);
			expect_eq(w, post_as(scene, &inner, IBCHAN_OP_SEND, 2), -EALREADY);
		}
		expect_eq(w, inner.auto_polled, 0);
		/* Nothing has changed for the one that it belongs to. */
		expect_eq(w, ibchan_pending_result(&scene->pending[0]), 0);
		expect_eq(w, post_write(scene, 2), 0);
	}
	expect_ended(scene, WORKS);
	expect_eq(w, scene->scope.auto_polled, 3);
	expect_eq(w, scene->scope.num_failed, 0);
}

static void a_pending_work_may_join_another_scope_when_its_own_has_ended(struct world *w)
{
	struct scene *scene = scene_open(w);
	struct ibchan_scope outer;
	int i;

	if (!scene)
		return;
	ibchan_scoped(&outer) {
		ibchan_scoped(&scene->scope)
			for (i = 0; i < WORKS; i++)
				expect_eq(w, post_write(scene, i), 0);
		expect_eq(w, post_as(scene, &outer, IBCHAN_OP_RECV, 1), 0);
		expect_eq(w, post_as(scene, &outer, IBCHAN_OP_SEND, 0), 0);
	}
	expect_eq(w, outer.auto_polled, 2);
	expect_ended(scene, WORKS);
}

static void works_the_block_looked_at_are_not_polled_again(struct world *w)
{
	struct scene *scene = scene_open(w);
	int i;

	if (!scene)
		return;
	ibchan_scoped(&scene->scope) {
		for (i = 0; i < WORKS; i++)
			expect_eq(w, post_write(scene, i), 0);
		/* Not in the order of the posts: each finds its own result. */
		expect_eq(w, ibchan_pending_wait(&scene->pending[2]), 0);
		expect_eq(w, ibchan_pending_wait(&scene->pending[0]), 0);
	}
	expect_ended(scene, WORKS);
	expect_eq(w, scene->scope.auto_polled, 2);
}

/*
 * The first one waits for a receive of the peer's, and is longer than that: it fails
 * when all are posted, and those behind it are flushed.
 */
static void all_errors_of_unpolled_works_are_kept(struct world *w)
{
	struct ibchan_pending *failed;
	struct pair_init init;
	struct scene *scene;
	int i;

	pair_defaults(&init);
	init.params.ack_timeout = 0;
	init.params.rnr_retries = 7;
	scene = scene_open_as(w, &init);
	if (!scene)
		return;
	ibchan_scoped(&scene->scope) {
		for (i = 0; i < WORKS; i++)
			expect_eq(w, post_as(scene, &scene->scope, IBCHAN_OP_SEND, i), 0);
		expect_eq(w, ibchan_post_receive(scene->b->ch, scene->b->local, 0, 8, 0), 0);
	}
	expect_eq(w, scene->scope.auto_polled, WORKS);
	expect_eq(w, scene->scope.num_failed, WORKS);
	expect_eq(w, scene->scope.error, 0);
	expect_eq(w, ibchan_scope_error(&scene->scope), -EREMOTEIO);
	i = 0;
	for (failed = scene->scope.failed; failed && i < WORKS; failed = failed->next_failed)
		expect(w, failed == &scene->pending[i++]);
	expect(w, !failed);
	expect_eq(w, i, WORKS);
	/* The peer's device says which; the verbs say REM_INV_REQ_ERR. */
	expect_eq(w, scene->pending[0].completion.error, EREMOTEIO);
	for (i = 1; i < WORKS; i++)
		expect_eq(w, scene->pending[i].completion.status, IBCHAN_STATUS_WR_FLUSH_ERR);
}

static void the_error_of_the_block_stands_apart_from_those_of_its_works(struct world *w)
{
	struct scene *scene = scene_open(w);

	if (!scene)
		return;
	scene->b->remote.rkey ^= 0x55;
	ibchan_scoped(&scene->scope) {
		expect_eq(w, post_write(scene, 0), 0);
		ibchan_scope_fail(&scene->scope, -EDOM);
		ibchan_scope_fail(&scene->scope, -ERANGE);
	}
	expect_eq(w, scene->scope.error, -EDOM);
	expect_eq(w, ibchan_scope_error(&scene->scope), -EDOM);
	expect_eq(w, scene->scope.num_failed, 1);
	expect(w, scene->scope.failed == &scene->pending[0]);
	expect_eq(w, ibchan_pending_result(scene->scope.failed), -EREMOTEIO);
}

static void an_error_the_block_has_seen_is_not_reported_again(struct world *w)
{
	struct scene *scene = scene_open(w);

	if (!scene)
		return;
	scene->b->remote.rkey ^= 0x55;
	ibchan_scoped(&scene->scope) {
		expect_eq(w, post_write(scene, 0), 0);
		expect_eq(w, ibchan_pending_wait(&scene->pending[0]), -EREMOTEIO);
	}
	expect_eq(w, scene->scope.num_failed, 0);
	expect(w, !scene->scope.failed);
	expect_eq(w, ibchan_scope_error(&scene->scope), 0);
}

static void a_result_nobody_has_seen_is_not_overwritten(struct world *w)
{
	struct scene *scene = scene_open(w);

	if (!scene)
		return;
	ibchan_scoped(&scene->scope) {
		expect_eq(w, post_write(scene, 0), 0);
		expect_eq(w, post_write(scene, 0), -EALREADY);
		expect_eq(w, ibchan_pending_wait(&scene->pending[0]), 0);
		expect_eq(w, post_write(scene, 0), 0);
	}
	expect_eq(w, scene->scope.auto_polled, 1);
	expect_ended(scene, 1);
}

static void a_refused_post_is_no_work_of_the_scope(struct world *w)
{
	struct scene *scene = scene_open(w);
	struct ibchan_reason reason = {};
	struct ibchan_wr wr;

	if (!scene)
		return;
	wr = ibchan_wr_send(side_sge(scene->a, SIDE_BYTES, 1), 1);
	ibchan_scoped(&scene->scope)
		expect_eq(w, ibchan_scope_post(&scene->scope, &scene->pending[0], scene->a->ch,
					       &wr, &reason), -EINVAL);
	expect_eq(w, reason.code, IBCHAN_REASON_OUT_OF_BOUNDS);
	expect_eq(w, scene->scope.auto_polled, 0);
	expect_eq(w, ibchan_scope_error(&scene->scope), 0);
}

static void a_scope_spans_several_channels(struct world *w)
{
	struct scene *scene = scene_open(w);
	struct ibchan_wr receive, send;

	if (!scene)
		return;
	receive = ibchan_wr_receive(side_sge(scene->b, 0, 64), 1);
	send = ibchan_wr_send(side_sge(scene->a, 0, 64), 1);
	ibchan_scoped(&scene->scope) {
		expect_eq(w, ibchan_scope_post(&scene->scope, &scene->pending[0], scene->b->ch,
					       &receive, NULL), 0);
		expect_eq(w, ibchan_scope_post(&scene->scope, &scene->pending[1], scene->a->ch,
					       &send, NULL), 0);
	}
	expect_eq(w, scene->scope.auto_polled, 2);
	expect_eq(w, scene->pending[0].completion.bytes, 64);
	expect_eq(w, scene->pending[1].completion.error, 0);
}

/* Nobody sends, so the receive would stay for ever. */
static void a_deadline_breaks_the_channel_and_ends_the_works(struct world *w)
{
	struct scene *scene = scene_open(w);
	struct ibchan_channel_attr attr;
	struct ibchan_wr wr;

	if (!scene)
		return;
	wr = ibchan_wr_receive(side_sge(scene->a, 0, 64), 1);
	ibchan_scoped_until(&scene->scope, after_ms(50))
		expect_eq(w, ibchan_scope_post(&scene->scope, &scene->pending[0], scene->a->ch,
					       &wr, NULL), 0);
	expect_eq(w, channel_in_flight(scene->a->ch), 0);
	ibchan_channel_query(scene->a->ch, &attr);
	expect_eq(w, attr.state, IBCHAN_CHANNEL_BROKEN);
	expect_eq(w, attr.error, ETIMEDOUT);
	expect_eq(w, scene->scope.num_failed, 1);
	expect_eq(w, scene->pending[0].completion.status, IBCHAN_STATUS_WR_FLUSH_ERR);
	expect_soon(w, atomic_read(&scene->a->broken) == 1);
	expect_eq(w, scene->a->error, -ETIMEDOUT);
}

static void a_deadline_that_does_not_pass_changes_nothing(struct world *w)
{
	struct scene *scene = scene_open(w);

	if (!scene)
		return;
	ibchan_scoped_until(&scene->scope, after_ms(8 * patience))
		expect_eq(w, post_write(scene, 0), 0);
	expect_ended(scene, 1);
	expect_eq(w, channel_state(scene->a->ch), IBCHAN_CHANNEL_CONNECTED);
}

static void a_manual_scope_that_looks_at_all_its_works_is_quiet(struct world *w)
{
	struct scene *scene = scene_open(w);
	int before = log_lines_with("manual scope");
	int i;

	if (!scene)
		return;
	ibchan_scoped_manual(&scene->scope) {
		for (i = 0; i < WORKS; i++)
			expect_eq(w, post_write(scene, i), 0);
		for (i = 0; i < WORKS; i++)
			expect_eq(w, ibchan_pending_wait(&scene->pending[i]), 0);
	}
	expect_eq(w, scene->scope.auto_polled, 0);
	expect_ended(scene, WORKS);
	expect_eq(w, log_lines_with("manual scope"), before);
}

static void a_manual_scope_that_fails_is_quiet_and_completes(struct world *w)
{
	struct scene *scene = scene_open(w);
	int before = log_lines_with("manual scope");

	if (!scene)
		return;
	ibchan_scoped_manual(&scene->scope) {
		expect_eq(w, post_write(scene, 0), 0);
		ibchan_scope_fail(&scene->scope, -EDOM);
	}
	expect_eq(w, scene->scope.auto_polled, 1);
	expect_ended(scene, 1);
	expect_eq(w, log_lines_with("manual scope"), before);
}

/* A scene whose receive queue has two places. */
static struct scene *narrow_scene(struct world *w)
{
	struct pair_init init;

	pair_defaults(&init);
	init.params.max_recv_wr = 2;
	return scene_open_as(w, &init);
}

static void send_to_peer(struct scene *scene, u32 length)
{
	expect_eq(scene->w, ibchan_channel_send(scene->a->ch, side_sge(scene->a, 0, length), 1,
						NULL), 0);
}

/* Posts it once, looks, and then tries again where there is no room. */
static void repost_without_room(struct scene *scene, struct job *jobs)
{
	struct world *w = scene->w;

	expect_eq(w, post_as(scene, &scene->scope, IBCHAN_OP_RECV, 0), 0);
	send_to_peer(scene, 33);
	expect_eq(w, ibchan_pending_wait(&scene->pending[0]), 0);
	expect_eq(w, job_receive(&jobs[0], scene->b, 1024, 64), 0);
	expect_eq(w, job_receive(&jobs[1], scene->b, 2048, 64), 0);
	expect_eq(w, post_as(scene, &scene->scope, IBCHAN_OP_RECV, 0), -EAGAIN);
	/* What it knew it still knows. */
	expect_eq(w, ibchan_pending_result(&scene->pending[0]), 0);
	expect_eq(w, ibchan_pending_poll(&scene->pending[0]), 0);
	expect_eq(w, scene->pending[0].completion.bytes, 33);
}

static void a_repost_that_found_no_room_works_when_there_is_some(struct world *w)
{
	struct scene *scene = narrow_scene(w);
	struct job *jobs = world_jobs(w, 2);

	if (!scene)
		return;
	ibchan_scoped(&scene->scope) {
		repost_without_room(scene, jobs);
		send_to_peer(scene, 8);
		if (!job_ended(&jobs[0]))
			break;
		expect_eq(w, post_as(scene, &scene->scope, IBCHAN_OP_RECV, 0), 0);
		expect_eq(w, ibchan_pending_result(&scene->pending[0]), -EINPROGRESS);
		send_to_peer(scene, 8);
		send_to_peer(scene, 44);
	}
	/* Only the second time nobody had looked. */
	expect_eq(w, scene->scope.auto_polled, 1);
	expect_ended(scene, 1);
	expect_eq(w, scene->pending[0].completion.bytes, 44);
}

static void a_manual_scope_is_quiet_about_a_repost_without_room(struct world *w)
{
	struct scene *scene = narrow_scene(w);
	struct job *jobs = world_jobs(w, 2);
	int before = log_lines_with("manual scope");

	if (!scene)
		return;
	ibchan_scoped_manual(&scene->scope)
		repost_without_room(scene, jobs);
	/* The block had looked at it before. */
	expect_eq(w, scene->scope.auto_polled, 0);
	expect_eq(w, scene->scope.num_failed, 0);
	expect_eq(w, ibchan_pending_result(&scene->pending[0]), 0);
	expect_eq(w, scene->pending[0].completion.bytes, 33);
	expect_eq(w, log_lines_with("manual scope"), before);
}

/* The log says it once for the life of the module, so only that it does is counted. */
static void a_manual_scope_that_leaves_works_says_so_once_and_completes(struct world *w)
{
	struct scene *scene = scene_open(w);
	int i;

	if (!scene)
		return;
	for (i = 0; i < 2; i++) {
		ibchan_scoped_manual(&scene->scope)
			expect_eq(w, post_write(scene, 0), 0);
		expect_eq(w, scene->scope.auto_polled, 1);
		expect_ended(scene, 1);
		expect_eq(w, log_lines_with("manual scope has left"), 1);
	}
}

static const struct test_case scope_cases[] = {
	CASE(a_block_that_falls_through_has_ended_its_works),
	CASE(a_block_that_is_left_in_any_way_has_ended_its_works),
	CASE(scopes_nest),
	CASE(a_pending_work_belongs_to_one_scope_until_that_has_ended),
	CASE(a_pending_work_may_join_another_scope_when_its_own_has_ended),
	CASE(works_the_block_looked_at_are_not_polled_again),
	CASE(all_errors_of_unpolled_works_are_kept),
	CASE(the_error_of_the_block_stands_apart_from_those_of_its_works),
	CASE(an_error_the_block_has_seen_is_not_reported_again),
	CASE(a_result_nobody_has_seen_is_not_overwritten),
	CASE(a_refused_post_is_no_work_of_the_scope),
	CASE(a_scope_spans_several_channels),
	CASE(a_deadline_breaks_the_channel_and_ends_the_works),
	CASE(a_deadline_that_does_not_pass_changes_nothing),
	CASE(a_manual_scope_that_looks_at_all_its_works_is_quiet),
	CASE(a_manual_scope_that_fails_is_quiet_and_completes),
	CASE(a_repost_that_found_no_room_works_when_there_is_some),
	CASE(a_manual_scope_is_quiet_about_a_repost_without_room),
	CASE(a_manual_scope_that_leaves_works_says_so_once_and_completes),
};

SUITE(scope);
