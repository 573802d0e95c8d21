// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each call while the 1st, 2nd, ... allocation that it makes fails, until it makes no more:
 * it answers so, leaves nothing behind, and works the next time. What the kernel does for
 * it in workers and interrupts is not counted.
 *
 * The script that runs this suite has told /sys/kernel/debug/failslab and fail_page_alloc that
 * allocations that may wait for memory fail as well.
 */
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/scatterlist.h>
#include <linux/sched.h>
#include <net/net_namespace.h>
#include <rdma/ibchan_scope.h>

#include "meeting.h"
#include "suites.h"

#ifdef CONFIG_FAULT_INJECTION

#define PAGES	4
#define BYTES	(PAGES * PAGE_SIZE)

/* Far more than any call has. */
#define MAX_POINTS	1000

/**
 * struct sweep - what the calls work on
 * @w: for expectations
 * @m: two sides on one device and a listener
 * @address: of the device, with port 0
 * @user_addr: BYTES of this process
 * @made: by the call; NULL: nothing
 * @ch: a channel for the call
 * @other: who accepts
 * @request: for who takes, accepts or rejects
 * @points: of the call so far
 * @tolerated: points that it succeeded in spite of
 */
struct sweep {
	struct world *w;
	struct meeting *m;
	struct sockaddr_storage address;
	unsigned long user_addr;
	void *made;
	struct ibchan_channel *ch;
	struct ibchan_channel *other;
	struct ibchan_request *request;
	u32 points;
	u32 tolerated;
};

/**
 * struct call - one of the interface
 * @name: of the call
 * @prepare: what it needs, without a fault; may be NULL
 * @run: it
 * @undo: whatever came of it, so that it can be made again
 * @allocates: it does, in the caller's context
 */
struct call {
	const char *name;
	int (*prepare)(struct sweep *sweep);
	int (*run)(struct sweep *sweep);
	void (*undo)(struct sweep *sweep);
	bool allocates;
};

static struct side *side_of(struct sweep *sweep)
{
	return sweep->m->asking.side;
}

static int make(struct sweep *sweep, void *made)
{
	if (IS_ERR(made))
		return PTR_ERR(made);
	sweep->made = made;
	return 0;
}

/* --- objects --- */

static int run_device_get(struct sweep *sweep)
{
	return make(sweep, ibchan_device_get(device_names[0], &init_net));
}

static void undo_device_get(struct sweep *sweep)
{
	if (sweep->made)
		ibchan_device_put(sweep->made);
}

static int run_pd_alloc(struct sweep *sweep)
{
	return make(sweep, ibchan_pd_alloc(side_of(sweep)->dev));
}

static void undo_pd_alloc(struct sweep *sweep)
{
	if (sweep->made)
		expect_eq(sweep->w, ibchan_pd_free(sweep->made), 0);
}

static int run_cq_create(struct sweep *sweep)
{
	const struct ibchan_cq_init init = {};

	return make(sweep, ibchan_cq_create(side_of(sweep)->dev, &init, NULL));
}

static void undo_cq_create(struct sweep *sweep)
{
	if (!sweep->made)
		return;
	expect_eq(sweep->w, ibchan_cq_try_destroy(sweep->made), 0);
	ibchan_cq_put(sweep->made);
}

static int reg_kernel(struct sweep *sweep, u32 access)
{
	struct side *side = side_of(sweep);

	return make(sweep, ibchan_mr_reg_kernel(side->pd, side->buf, BYTES, access, NULL));
}

static int run_reg_kernel_local(struct sweep *sweep)
{
	return reg_kernel(sweep, IBCHAN_ACCESS_LOCAL);
}

static int run_reg_kernel_shared(struct sweep *sweep)
{
	return reg_kernel(sweep, IBCHAN_ACCESS_SHARED);
}

static int run_reg_pages(struct sweep *sweep)
{
	struct side *side = side_of(sweep);
	struct page *array[PAGES];
	const struct ibchan_pages pages = { .pages = array, .num = PAGES, .length = BYTES };
	int i;

	for (i = 0; i < PAGES; i++)
		array[i] = virt_to_page(side->buf + i * PAGE_SIZE);
	return make(sweep, ibchan_mr_reg_pages(side->pd, &pages, IBCHAN_ACCESS_SHARED, NULL));
}

static int run_reg_sg(struct sweep *sweep)
{
	struct side *side = side_of(sweep);
	struct scatterlist sgl[1];

	sg_init_one(sgl, side->buf, BYTES);
	return make(sweep, ibchan_mr_reg_sg(side->pd, sgl, 1, IBCHAN_ACCESS_SHARED, NULL));
}

static int run_reg_user(struct sweep *sweep)
{
	return make(sweep, ibchan_mr_reg_user(side_of(sweep)->pd, sweep->user_addr, BYTES,
					      IBCHAN_ACCESS_SHARED, NULL));
}

static int run_pin_user(struct sweep *sweep)
{
	const struct ibchan_plain plain = {
		.addr = sweep->user_addr, .length = PAGE_SIZE, .max_sge = 4, .num_sge = 1,
		.opcode = IBCHAN_OP_SEND,
	};

	return make(sweep, ibchan_mr_pin_user(side_of(sweep)->pd, &plain, NULL));
}

static void undo_mr(struct sweep *sweep)
{
	if (!sweep->made)
		return;
	expect_eq(sweep->w, ibchan_mr_try_dereg(sweep->made), 0);
	ibchan_mr_put(sweep->made, NULL, NULL);
}

/* --- channels --- */

static struct ibchan_channel *build(struct sweep *sweep)
{
	struct ibchan_params params;
	struct ibchan_build build;

	side_build_init(side_of(sweep), &build);
	ibchan_params_init(&params);
	return ibchan_channel_build(&build, &params, NULL);
}

static int run_build(struct sweep *sweep)
{
	return make(sweep, build(sweep));
}

static void undo_build(struct sweep *sweep)
{
	if (sweep->made)
		ibchan_channel_close(sweep->made);
}

static int prepare_channel(struct sweep *sweep)
{
	struct ibchan_channel *ch = build(sweep);

	if (!expect_eq(sweep->w, PTR_ERR_OR_ZERO(ch), 0))
		return -ENODEV;
	sweep->ch = ch;
	return 0;
}

static int run_handshake(struct sweep *sweep)
{
	struct ibchan_endpoint endpoint;

	ibchan_channel_endpoint(sweep->ch, &endpoint);
	return ibchan_channel_handshake(sweep->ch, &endpoint, NULL);
}

static void undo_channel(struct sweep *sweep)
{
	ibchan_channel_close(sweep->ch);
	sweep->ch = NULL;
}

static int run_write(struct sweep *sweep)
{
	struct side *side = side_of(sweep);
	struct ibchan_sge sge = ibchan_sge_unchecked(side->local, 0, PAGE_SIZE);

	return ibchan_channel_write(side->ch, &sge, 1, &side->remote, NULL);
}

static int run_pending(struct sweep *sweep)
{
	struct side *side = side_of(sweep);
	struct ibchan_sge sge = ibchan_sge_unchecked(side->local, 0, 64);
	struct ibchan_wr wr = ibchan_wr_write(&sge, 1, &side->remote);
	struct ibchan_pending pending = {};
	int ret = ibchan_pending_post(&pending, side->ch, &wr, NULL);

	return ret ?: ibchan_pending_wait(&pending);
}

static int run_scoped(struct sweep *sweep)
{
	struct side *side = side_of(sweep);
	struct ibchan_sge sge = ibchan_sge_unchecked(side->local, 0, 64);
	struct ibchan_wr wr = ibchan_wr_write(&sge, 1, &side->remote);
	struct ibchan_pending pending[2] = {};
	struct ibchan_scope scope;
	int ret;

	ibchan_scope_begin(&scope);
	ret = ibchan_scope_post(&scope, &pending[0], side->ch, &wr, NULL);
	ret = ret ?: ibchan_scope_post(&scope, &pending[1], side->ch, &wr, NULL);
	ibchan_scope_end(&scope);
	return ret ?: ibchan_scope_error(&scope);
}

static void undo_nothing(struct sweep *sweep)
{
}

/* --- connecting by address --- */

static struct ibchan_connect to_listener(struct sweep *sweep)
{
	return (struct ibchan_connect){ .peer = (struct sockaddr *)&sweep->m->address };
}

static int run_listen(struct sweep *sweep)
{
	const struct ibchan_listener_init init = {
		.net = &init_net, .address = (struct sockaddr *)&sweep->address,
	};

	return make(sweep, ibchan_listener_create(&init, NULL));
}

static void undo_listen(struct sweep *sweep)
{
	if (sweep->made)
		ibchan_listener_close(sweep->made);
}

static int run_connect(struct sweep *sweep)
{
	const struct ibchan_connect connect = to_listener(sweep);

	return ibchan_channel_connect(sweep->ch, &connect, NULL);
}

static int run_route_query(struct sweep *sweep)
{
	const struct ibchan_connect connect = to_listener(sweep);
	struct ibchan_route route;

	return ibchan_route_query(&init_net, &connect, &route, NULL);
}

static int prepare_asked(struct sweep *sweep)
{
	int ret = prepare_channel(sweep);

	if (ret || !expect_eq(sweep->w, run_connect(sweep), 0))
		return ret ?: -ENODEV;
	expect_soon(sweep->w, ibchan_listener_waiting(sweep->m->listener) > 0);
	return 0;
}

static int take(struct sweep *sweep)
{
	struct ibchan_request *request = ibchan_request_take(sweep->m->listener);

	if (IS_ERR(request))
		return PTR_ERR(request);
	sweep->request = request;
	return 0;
}

static int prepare_taken(struct sweep *sweep)
{
	int ret = prepare_asked(sweep);

	return ret || !expect_eq(sweep->w, take(sweep), 0) ? -ENODEV : 0;
}

static int prepare_accept(struct sweep *sweep)
{
	int ret = prepare_taken(sweep);
	struct ibchan_channel *ch;

	if (ret)
		return ret;
	ch = build(sweep);
	if (!expect_eq(sweep->w, PTR_ERR_OR_ZERO(ch), 0))
		return -ENODEV;
	sweep->other = ch;
	return 0;
}

static int run_accept(struct sweep *sweep)
{
	const struct ibchan_connect connect = {};
	int ret = ibchan_request_accept(sweep->request, sweep->other, &connect, NULL);

	if (!ret)
		sweep->request = NULL;
	return ret;
}

static int run_reject(struct sweep *sweep)
{
	struct ibchan_request *request = sweep->request;

	sweep->request = NULL;
	return ibchan_request_reject(request, NULL, 0);
}

/* What is left of the meeting, whoever has got how far; nobody waits any more. */
static void undo_meeting(struct sweep *sweep)
{
	if (sweep->request)
		ibchan_request_reject(sweep->request, NULL, 0);
	sweep->request = NULL;
	undo_channel(sweep);
	if (sweep->other)
		ibchan_channel_close(sweep->other);
	sweep->other = NULL;
	while (!take(sweep)) {
		ibchan_request_reject(sweep->request, NULL, 0);
		sweep->request = NULL;
	}
}

static const struct call calls[] = {
	{ "device_get", NULL, run_device_get, undo_device_get, false },
	{ "pd_alloc", NULL, run_pd_alloc, undo_pd_alloc, true },
	{ "cq_create", NULL, run_cq_create, undo_cq_create, true },
	{ "mr_reg_kernel, local", NULL, run_reg_kernel_local, undo_mr, true },
	{ "mr_reg_kernel, shared", NULL, run_reg_kernel_shared, undo_mr, true },
	{ "mr_reg_pages", NULL, run_reg_pages, undo_mr, true },
	{ "mr_reg_sg", NULL, run_reg_sg, undo_mr, true },
	{ "mr_reg_user", NULL, run_reg_user, undo_mr, true },
	{ "mr_pin_user", NULL, run_pin_user, undo_mr, true },
	{ "channel_build", NULL, run_build, undo_build, true },
	{ "channel_handshake", prepare_channel, run_handshake, undo_channel, true },
	{ "channel_write", NULL, run_write, undo_nothing, false },
	{ "pending_post, wait", NULL, run_pending, undo_nothing, false },
	{ "scope_post, end", NULL, run_scoped, undo_nothing, false },
	{ "listener_create", NULL, run_listen, undo_listen, true },
	{ "channel_connect", prepare_channel, run_connect, undo_meeting, true },
	{ "request_take", prepare_asked, take, undo_meeting, false },
	{ "request_accept", prepare_accept, run_accept, undo_meeting, true },
	{ "request_reject", prepare_taken, run_reject, undo_meeting, true },
	{ "route_query", NULL, run_route_query, undo_nothing, true },
};

/* --- the sweep --- */

/* With its @nth point failing, 0: none; whether there was such a point. */
static bool run_call(struct sweep *sweep, const struct call *call, u32 nth, int *answer)
{
	u32 left;

	sweep->made = NULL;
	*answer = call->prepare ? call->prepare(sweep) : 0;
	if (*answer)
		return false;
	WRITE_ONCE(current->fail_nth, nth);
	*answer = call->run(sweep);
	left = READ_ONCE(current->fail_nth);
	WRITE_ONCE(current->fail_nth, 0);
	call->undo(sweep);
	return nth && !left;
}

/* What a lack of memory may be called: see the interface's contracts. */
static bool tells_of_memory(int answer)
{
	return answer == -ENOMEM || answer == -ENFILE || answer == -ENOBUFS;
}

/* False behind the last point. */
static bool sweep_point(struct sweep *sweep, const struct call *call, u32 nth)
{
	struct world *w = sweep->w;
	u32 before = w->failures;
	int answer, again;
	bool fired;

	fired = run_call(sweep, call, nth, &answer);
	expect(w, !answer || (fired && tells_of_memory(answer)));
	sweep->points += fired;
	sweep->tolerated += fired && !answer;
	run_call(sweep, call, 0, &again);
	expect_eq(w, again, 0);
	if (w->failures > before)
		pr_info("# %s answers %d to point %u, then %d\n", call->name, answer, nth, again);
	return fired && w->failures == before;
}

static void sweep_call(struct sweep *sweep, const struct call *call)
{
	struct world *w = sweep->w;
	int answer;
	u32 nth;

	sweep->points = 0;
	sweep->tolerated = 0;
	/* The first may set up what the later ones find. */
	run_call(sweep, call, 0, &answer);
	if (!expect_eq(w, answer, 0))
		pr_info("# %s without a fault\n", call->name);
	else
		for (nth = 1; nth <= MAX_POINTS && sweep_point(sweep, call, nth); nth++)
			cond_resched();
	pr_info("# %-24s %4u points, %3u tolerated\n", call->name, sweep->points,
		sweep->tolerated);
	if (!expect_eq(w, !!sweep->points, call->allocates))
		pr_info("# %s %s\n", call->name,
			call->allocates ? "allocates" : "does not allocate");
}

static int begin(struct sweep *sweep, struct world *w)
{
	*sweep = (struct sweep){ .w = w, .m = meeting_new(w) };
	if (meeting_begin(sweep->m))
		return -ENODEV;
	if (device_address(w, side_of(sweep)->dev, &sweep->address))
		return -ENODEV;
	sweep->user_addr = vm_mmap(NULL, 0, BYTES, PROT_READ | PROT_WRITE,
				   MAP_ANONYMOUS | MAP_PRIVATE, 0);
	if (!expect(w, !IS_ERR_VALUE(sweep->user_addr)))
		return -ENOMEM;
	if (!side_share(side_of(sweep)) || meeting_connect(sweep->m))
		return -ENODEV;
	return 0;
}

static void an_allocation_that_fails_fails_its_call_and_leaves_nothing(struct world *w)
{
	struct sweep sweep;
	size_t i;

	if (begin(&sweep, w))
		return;
	for (i = 0; i < ARRAY_SIZE(calls); i++)
		sweep_call(&sweep, &calls[i]);
	vm_munmap(sweep.user_addr, BYTES);
}

#else

static void an_allocation_that_fails_fails_its_call_and_leaves_nothing(struct world *w)
{
	world_skip(w, "this kernel injects no faults");
}

#endif

static const struct test_case fail_nth_cases[] = {
	CASE(an_allocation_that_fails_fails_its_call_and_leaves_nothing),
};

SUITE(fail_nth);
