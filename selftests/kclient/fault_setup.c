// SPDX-License-Identifier: GPL-2.0-only
/* Verbs that fail before any work is posted, and those behind a registration. */
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "faults.h"

/* --- a whole life, from the domain to a write --- */

/**
 * struct life - what one try has made
 * @w: for expectations
 * @dev: on which
 * @buf: two pages: what is written from, what is written to
 * @user_addr: a page of this process
 * @pd: NULL: not made; so all below
 * @cq: for both queues
 * @local: over the first page
 * @shared: over the second one
 * @user: over @user_addr
 * @ch: its own peer
 * @reason: of the call that failed
 */
struct life {
	struct world *w;
	struct ibchan_device *dev;
	u8 *buf;
	unsigned long user_addr;
	struct ibchan_pd *pd;
	struct ibchan_cq *cq;
	struct ibchan_mr *local;
	struct ibchan_mr *shared;
	struct ibchan_mr *user;
	struct ibchan_channel *ch;
	struct ibchan_reason reason;
};

/* @made is an object or an error. */
static int keep(void *made, void **slot)
{
	if (IS_ERR(made))
		return PTR_ERR(made);
	*slot = made;
	return 0;
}

static int make_memory(struct life *life)
{
	struct ibchan_reason *reason = &life->reason;
	int ret;

	ret = keep(ibchan_mr_reg_kernel(life->pd, life->buf, PAGE_SIZE, IBCHAN_ACCESS_LOCAL,
					reason), (void **)&life->local);
	if (!ret)
		ret = keep(ibchan_mr_reg_kernel(life->pd, life->buf + PAGE_SIZE, PAGE_SIZE,
						IBCHAN_ACCESS_ALL, reason),
			   (void **)&life->shared);
	if (!ret)
		ret = keep(ibchan_mr_reg_user(life->pd, life->user_addr, PAGE_SIZE,
					      IBCHAN_ACCESS_LOCAL, reason),
			   (void **)&life->user);
	return ret;
}

static int make_channel(struct life *life)
{
	struct ibchan_build build = {
		.pd = life->pd, .send_cq = life->cq, .recv_cq = life->cq, .net = &init_net,
	};
	struct ibchan_endpoint endpoint;
	struct ibchan_params params;
	int ret;

	ibchan_params_init(&params);
	/* Else another port serves in place of one that does not answer. */
	params.port = 1;
	ret = keep(ibchan_channel_build(&build, &params, &life->reason), (void **)&life->ch);
	if (ret)
		return ret;
	ibchan_channel_endpoint(life->ch, &endpoint);
	return ibchan_channel_handshake(life->ch, &endpoint, &life->reason);
}

static int write_a_page(struct life *life)
{
	struct ibchan_sge sge = ibchan_sge_unchecked(life->local, 0, PAGE_SIZE);
	struct ibchan_remote remote;

	expect_eq(life->w, ibchan_mr_remote(life->shared, &remote), 0);
	fill_pattern(life->buf, PAGE_SIZE, 3);
	return ibchan_channel_write(life->ch, &sge, 1, &remote, NULL);
}

static int begin(struct life *life)
{
	const struct ibchan_cq_init init = {};
	int ret;

	ret = keep(ibchan_pd_alloc(life->dev), (void **)&life->pd);
	if (!ret)
		ret = keep(ibchan_cq_create(life->dev, &init, &life->reason),
			   (void **)&life->cq);
	if (!ret)
		ret = make_memory(life);
	if (!ret)
		ret = make_channel(life);
	if (!ret)
		ret = write_a_page(life);
	return ret;
}

static void end_mr(struct life *life, struct ibchan_mr **mr)
{
	if (!*mr)
		return;
	expect_eq(life->w, ibchan_mr_try_dereg(*mr), 0);
	ibchan_mr_put(*mr, NULL, NULL);
	*mr = NULL;
}

/* Whatever is still in use here was left behind by the call that failed. */
static void end(struct life *life)
{
	if (life->ch)
		ibchan_channel_close(life->ch);
	life->ch = NULL;
	end_mr(life, &life->user);
	end_mr(life, &life->shared);
	end_mr(life, &life->local);
	if (life->cq) {
		expect_eq(life->w, ibchan_cq_try_destroy(life->cq), 0);
		ibchan_cq_put(life->cq);
	}
	life->cq = NULL;
	if (life->pd)
		expect_eq(life->w, ibchan_pd_free(life->pd), 0);
	life->pd = NULL;
}

static int live(struct life *life)
{
	int ret;

	life->reason = (struct ibchan_reason) {};
	memset(life->buf, 0, 2 * PAGE_SIZE);
	ret = begin(life);
	expect_eq(life->w, has_pattern(life->buf + PAGE_SIZE, PAGE_SIZE, 3), !ret);
	end(life);
	return ret;
}

static int life_init(struct life *life, struct world *w)
{
	*life = (struct life){ .w = w, .dev = world_device(w, 0) };
	life->buf = world_alloc(w, 2 * PAGE_SIZE);
	life->user_addr = vm_mmap(NULL, 0, PAGE_SIZE, PROT_READ | PROT_WRITE,
				  MAP_ANONYMOUS | MAP_PRIVATE, 0);
	expect(w, !IS_ERR_VALUE(life->user_addr));
	return life->dev && !IS_ERR_VALUE(life->user_addr) ? 0 : -ENOMEM;
}

/* --- the sweep --- */

/**
 * struct setup_point - a verb that such a life calls
 * @point: it
 * @error: what the call then answers
 * @step: that the reason names; -1: the reason names none
 */
struct setup_point {
	enum ibchan_fault_point point;
	int error;
	int step;
};

static const struct setup_point setup_points[] = {
	{ IBCHAN_FAULT_PD_ALLOC, FAULT_ERROR, -1 },
	{ IBCHAN_FAULT_CQ_CREATE, FAULT_ERROR, -1 },
	{ IBCHAN_FAULT_PORT_QUERY, FAULT_ERROR, -1 },
	{ IBCHAN_FAULT_QP_CREATE, FAULT_ERROR, 0 },
	{ IBCHAN_FAULT_QP_INIT, FAULT_ERROR, 1 },
	{ IBCHAN_FAULT_QP_RTR, FAULT_ERROR, 2 },
	{ IBCHAN_FAULT_QP_RTS, FAULT_ERROR, 3 },
	{ IBCHAN_FAULT_MR_REG_USER, FAULT_ERROR, -1 },
	{ IBCHAN_FAULT_MR_ALLOC, FAULT_ERROR, -1 },
	{ IBCHAN_FAULT_MR_MAP, FAULT_ERROR, -1 },
	/* A mapping that fails does not say why. */
	{ IBCHAN_FAULT_MR_DMA_MAP, -ENOMEM, -1 },
	{ IBCHAN_FAULT_MR_DMA_SYNC, -EOPNOTSUPP, -1 },
};

static void expect_verbs_reason(struct world *w, const struct ibchan_reason *reason,
				u32 step)
{
	expect_eq(w, reason->code, IBCHAN_REASON_VERBS);
	expect_eq(w, reason->value[0], -FAULT_ERROR);
	expect_eq(w, reason->value[1], step);
}

static bool has_another_port(struct life *life)
{
	struct ibchan_port_attr attr;

	return !ibchan_port_query(life->dev, 2, &init_net, &attr) && attr.state == IB_PORT_ACTIVE;
}

/*
 * A domain's own channel, by which it registers memory, comes before the life's, which is the
 * last that asks for a port, and takes any port.
 */
static int answer_to(struct life *life, const struct setup_point *point, bool is_last)
{
	bool is_served = point->point == IBCHAN_FAULT_PORT_QUERY && !is_last &&
			 has_another_port(life);

	return is_served ? 0 : point->error;
}

static void fail_nth(struct life *life, const struct setup_point *point, u32 nth, bool is_last)
{
	int answer = answer_to(life, point, is_last);
	struct world *w = life->w;
	u32 before = w->failures;
	struct fault fault;

	fault = fault_arm(point->point, nth, FAULT_ERROR);
	expect_eq(w, live(life), answer);
	expect(w, fault_fired(&fault));
	if (point->step >= 0)
		expect_verbs_reason(w, &life->reason, point->step);
	expect_eq(w, live(life), 0);
	if (w->failures > before)
		pr_info("# passage %u of %s\n", nth, ibchan_fault_name(point->point));
}

/* Some drivers cannot register a user's memory: then fast registration does. */
static bool driver_registers(struct life *life)
{
	struct ibchan_device_attr attr = {};

	expect_eq(life->w, ibchan_device_query(life->dev, &attr), 0);
	return attr.driver_id == RDMA_DRIVER_RXE || attr.driver_id == RDMA_DRIVER_MLX5;
}

void each_verb_that_fails_during_setup_fails_its_call_and_leaves_nothing(struct world *w)
{
	const struct setup_point *point;
	u32 passed, nth;
	struct life life;

	faults_off();
	if (life_init(&life, w))
		return;
	for (point = setup_points; point < setup_points + ARRAY_SIZE(setup_points); point++) {
		passed = ibchan_fault_passed(point->point);
		expect_eq(w, live(&life), 0);
		passed = ibchan_fault_passed(point->point) - passed;
		expect(w, passed || (point->point == IBCHAN_FAULT_MR_REG_USER &&
				     !driver_registers(&life)));
		for (nth = 1; nth <= passed; nth++)
			fail_nth(&life, point, nth, nth == passed);
	}
	vm_munmap(life.user_addr, PAGE_SIZE);
}

/* --- handshakes --- */

static const enum ibchan_fault_point steps[] = {
	IBCHAN_FAULT_QP_RTR, IBCHAN_FAULT_QP_RTS,
};

static int shake(struct ibchan_channel *ch, struct ibchan_channel *peer,
		 struct ibchan_reason *reason)
{
	struct ibchan_endpoint endpoint;

	*reason = (struct ibchan_reason) {};
	ibchan_channel_endpoint(peer, &endpoint);
	return ibchan_channel_handshake(ch, &endpoint, reason);
}

static void expect_failed_step(struct world *w, u32 step)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_reason reason;
	struct fault fault;

	fault = fault_arm(steps[step], 1, FAULT_ERROR);
	expect_eq(w, shake(a->ch, b->ch, &reason), FAULT_ERROR);
	expect(w, fault_fired(&fault));
	expect_verbs_reason(w, &reason, step + 2);
	expect_eq(w, channel_state(a->ch), IBCHAN_CHANNEL_PREPARED);
	expect_eq(w, ibchan_channel_send(a->ch, side_sge(a, 0, 8), 1, NULL), -ENOTCONN);
	expect_eq(w, atomic_read(&a->broken), 0);
}

/* What both sides agreed on must not have been spoilt by the first try either. */
void a_handshake_that_failed_at_any_step_may_be_tried_again(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_channel_attr before, after;
	struct pair_init init;
	u32 step;

	faults_off();
	pair_defaults(&init);
	for (step = 0; step < ARRAY_SIZE(steps); step++) {
		if (world_sides(w, &init))
			return;
		ibchan_channel_query(a->ch, &before);
		expect_failed_step(w, step);
		ibchan_channel_query(a->ch, &after);
		expect(w, !memcmp(&before.params, &after.params, sizeof(before.params)));
		if (side_connect(w, a->ch, b->ch) || side_connect(w, b->ch, a->ch))
			return;
		if (!fault_data_flows(w))
			return;
		world_give_back(w);
	}
}

/* The second one finds the queue pair where the first one left it, and undoes that. */
void a_handshake_whose_undo_failed_too_works_at_the_third_try(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_reason reason;
	struct pair_init init;
	struct fault undo;

	faults_off();
	pair_defaults(&init);
	if (world_sides(w, &init))
		return;
	undo = fault_arm(IBCHAN_FAULT_QP_RESET, 1, FAULT_ERROR);
	expect_failed_step(w, 1);
	expect(w, fault_fired(&undo));
	expect(w, shake(a->ch, b->ch, &reason) < 0);
	expect_eq(w, reason.code, IBCHAN_REASON_VERBS);
	expect_eq(w, reason.value[1], 1);
	if (side_connect(w, a->ch, b->ch) || side_connect(w, b->ch, a->ch))
		return;
	fault_data_flows(w);
}

/* The way back would lose the receive, so there is none. */
void a_handshake_that_fails_behind_a_posted_receive_breaks_the_channel(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_reason reason;
	struct pair_init init;
	struct fault fault;
	u32 step;

	faults_off();
	pair_defaults(&init);
	for (step = 0; step < ARRAY_SIZE(steps); step++) {
		if (world_sides(w, &init))
			return;
		atomic_set(&a->logged, 0);
		expect_eq(w, ibchan_post_receive(a->ch, a->local, 0, 64, 1), 0);
		fault = fault_arm(steps[step], 1, FAULT_ERROR);
		expect_eq(w, shake(a->ch, b->ch, &reason), FAULT_ERROR);
		expect(w, fault_fired(&fault));
		expect_eq(w, channel_state(a->ch), IBCHAN_CHANNEL_BROKEN);
		expect_soon(w, atomic_read(&a->logged) == 1);
		expect_eq(w, a->log[0].status, IBCHAN_STATUS_WR_FLUSH_ERR);
		world_give_back(w);
	}
}

void a_channel_that_is_stuck_half_way_can_be_closed(struct world *w)
{
	struct pair_init init;
	struct fault undo;
	u32 step;

	faults_off();
	pair_defaults(&init);
	for (step = 0; step < ARRAY_SIZE(steps); step++) {
		if (world_sides(w, &init))
			return;
		undo = fault_arm(IBCHAN_FAULT_QP_RESET, 1, FAULT_ERROR);
		expect_failed_step(w, step);
		expect(w, fault_fired(&undo));
		side_close(&w->side[0]);
		expect_eq(w, ibchan_mr_try_dereg(w->side[0].local), 0);
		world_give_back(w);
	}
}

/* --- registrations --- */

static struct ibchan_mr *share_more(struct side *side)
{
	return ibchan_mr_reg_kernel(side->pd, side->buf + SIDE_BYTES / 2, SIDE_BYTES / 2,
				    IBCHAN_ACCESS_ALL, NULL);
}

static void expect_no_region(struct world *w, const struct fault *fault, int error)
{
	struct side *b = &w->side[1];
	struct ibchan_mr *mr = share_more(b);

	expect(w, fault_fired(fault));
	expect_eq(w, PTR_ERR_OR_ZERO(mr), error);
	if (!IS_ERR(mr))
		world_keep(w, THING_MR, mr);
}

/* Both regions work: the one that was there, and one that is made now. */
static void expect_regions_work(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_mr *more = world_keep_mr(w, share_more(b));
	struct ibchan_remote remote;

	fill_pattern(a->buf, 4096, 5);
	expect_eq(w, ibchan_channel_write(a->ch, side_sge(a, 0, 4096), 1, &b->remote, NULL), 0);
	expect(w, has_pattern(b->buf, 4096, 5));
	if (!more)
		return;
	expect_eq(w, ibchan_mr_remote(more, &remote), 0);
	expect_eq(w, ibchan_channel_write(a->ch, side_sge(a, 0, 4096), 1, &remote, NULL), 0);
	expect(w, has_pattern(b->buf + SIDE_BYTES / 2, 4096, 5));
}

void a_registration_whose_post_fails_makes_no_region(struct world *w)
{
	struct fault fault;

	if (fault_pair(w, NULL) || !side_share(&w->side[1]))
		return;
	fault = fault_arm(IBCHAN_FAULT_POST_SEND, 1, FAULT_ERROR);
	expect_no_region(w, &fault, FAULT_ERROR);
	expect_regions_work(w);
}

void a_registration_whose_completion_fails_makes_no_region(struct world *w)
{
	static const u32 statuses[] = {
		IBCHAN_STATUS_LOC_PROT_ERR, IBCHAN_STATUS_LOC_QP_OP_ERR,
		IBCHAN_STATUS_WR_FLUSH_ERR, IBCHAN_STATUS_GENERAL_ERR,
	};
	struct fault fault;
	int i;

	if (fault_pair(w, NULL) || !side_share(&w->side[1]))
		return;
	for (i = 0; i < ARRAY_SIZE(statuses); i++) {
		fault = fault_arm(IBCHAN_FAULT_COMPLETION, 1, statuses[i]);
		expect_no_region(w, &fault, -(int)ibchan_status_error(statuses[i]));
		expect_regions_work(w);
	}
}

void a_region_whose_invalidation_fails_is_given_back_all_the_same(struct world *w)
{
	struct side *b = &w->side[1];
	struct fault fault;

	if (fault_pair(w, NULL) || !side_share(b))
		return;
	fault = fault_arm(IBCHAN_FAULT_POST_SEND, 1, FAULT_ERROR);
	expect_eq(w, ibchan_mr_try_dereg(b->shared), 0);
	expect(w, fault_fired(&fault));
	if (!side_share(b))
		return;
	fault = fault_arm(IBCHAN_FAULT_COMPLETION, 1, IBCHAN_STATUS_LOC_ACCESS_ERR);
	expect_eq(w, ibchan_mr_try_dereg(b->shared), 0);
	expect(w, fault_fired(&fault));
	if (side_share(b))
		expect_regions_work(w);
}

/* Each failure has the domain make a new one; the last one cannot be made either. */
void regions_survive_the_service_that_registered_them(struct world *w)
{
	struct fault fault, other;

	if (fault_pair(w, NULL) || !side_share(&w->side[1]))
		return;
	fault = fault_arm(IBCHAN_FAULT_COMPLETION, 1, IBCHAN_STATUS_LOC_PROT_ERR);
	expect_no_region(w, &fault, -EFAULT);
	other = fault_arm(IBCHAN_FAULT_QP_RTS, 1, FAULT_ERROR);
	expect_no_region(w, &other, FAULT_ERROR);
	expect_regions_work(w);
	fault = fault_arm(IBCHAN_FAULT_COMPLETION, 1, IBCHAN_STATUS_LOC_PROT_ERR);
	expect_no_region(w, &fault, -EFAULT);
}
