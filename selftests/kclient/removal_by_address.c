// SPDX-License-Identifier: GPL-2.0-only
/*
 * A device leaves while channels connect over it by address, while requests wait for an
 * answer and listeners for requests. departure.h says how.
 */
#include <net/net_namespace.h>

#include "asker.h"
#include "departure.h"

/**
 * struct call - one channel asks, the other answers
 * @asking: what the first is told
 * @asked: what the second is told
 * @from: the first; NULL: there is none
 * @to: the second
 */
struct call {
	struct party asking;
	struct party asked;
	struct ibchan_channel *from;
	struct ibchan_channel *to;
};

#define CALLERS		3

/**
 * struct caller - a thread that connects and closes until the device has left
 * @thread: it
 * @at: who listens
 * @call: its channels
 * @started: it runs, or has
 * @rounds: channels that it connected
 * @wrong: expectations that did not hold
 */
struct caller {
	struct thread thread;
	struct meeting *at;
	struct call call;
	int started;
	u32 rounds;
	u32 wrong;
};

/**
 * struct scene - what the device takes along
 * @w: the world
 * @held: somebody has asked there and has no answer
 * @request: of that; taken
 * @waited: a listener of the device, with a request that nobody takes
 * @anywhere: a listener at any address, for this device alone
 * @waits: who has asked @waited
 * @lost: asks for an address that nobody has
 * @connected: are so
 * @left: was accepted by a channel that has closed, and has not heard of it
 */
static struct scene {
	struct world *w;
	struct meeting *held;
	struct ibchan_request *request;
	struct meeting *waited;
	struct meeting *anywhere;
	struct call waits;
	struct call lost;
	struct call connected;
	struct asker left;
} scene;

static struct caller callers[CALLERS];
static int callers_stop;

static int ask(struct call *call, const struct sockaddr_storage *address)
{
	const struct ibchan_connect connect = { .peer = (const struct sockaddr *)address };

	return ibchan_channel_connect(call->from, &connect, NULL);
}

static int outcome(struct ibchan_channel *ch)
{
	return ibchan_channel_connect_wait(ch, (s64)patience * NSEC_PER_MSEC);
}

static void call_close(struct call *call)
{
	if (call->from)
		ibchan_channel_close(call->from);
	if (call->to)
		ibchan_channel_close(call->to);
	call->from = NULL;
	call->to = NULL;
}

static int try_build(struct party *party, struct side *side, struct ibchan_channel **ch)
{
	struct ibchan_params params;

	ibchan_params_init(&params);
	*party = (struct party) {};
	*ch = party_try_build(party, side, &params);
	if (!IS_ERR(*ch))
		return 0;
	party->error = PTR_ERR(*ch);
	*ch = NULL;
	return party->error;
}

static int call_build(struct call *call)
{
	struct side *side = scene.w->side;

	return try_build(&call->asking, &side[0], &call->from) ?:
	       try_build(&call->asked, &side[1], &call->to);
}

static bool has_ended(const struct ibchan_channel *ch)
{
	return ibchan_channel_state(ch) != IBCHAN_CHANNEL_CONNECTING;
}

/* Who asked may end before its request comes. */
static int answer(struct call *call, struct meeting *at)
{
	const struct ibchan_connect connect = {};
	struct ibchan_request *request;
	int ret;

	expect_soon(at->w, ibchan_listener_waiting(at->listener) || has_ended(call->from));
	request = ibchan_request_take(at->listener);
	if (IS_ERR(request))
		return PTR_ERR(request) == -EAGAIN ? outcome(call->from) : PTR_ERR(request);
	ret = ibchan_request_accept(request, call->to, &connect, NULL);
	if (ret)
		expect_eq(at->w, ibchan_request_reject(request, NULL, 0), 0);
	return ret;
}

static int call_connect(struct call *call, struct meeting *at)
{
	return ask(call, &at->address) ?: answer(call, at) ?:
	       outcome(call->from) ?: outcome(call->to);
}

/* One side may hear of the other before it hears of the device. */
static bool is_of_departure(int error)
{
	return error == -ENODEV || error == -ECONNRESET;
}

/* What was connected already, and has heard of the other, is broken. */
static bool ends_call(int error)
{
	return is_of_departure(error) || error == -ESHUTDOWN;
}

static bool told_rightly(struct party *party)
{
	int broken = atomic_read(&party->broken);

	return atomic_read(&party->connected) <= 1 && broken <= 1 &&
	       (!broken || is_of_departure(party->error));
}

/* The one answer that it ends with is that of a new channel. */
static int caller_run(void *arg)
{
	struct caller *caller = arg;
	struct call *call = &caller->call;
	int ret;

	while (!READ_ONCE(callers_stop)) {
		ret = call_build(call);
		if (ret) {
			call_close(call);
			return ret;
		}
		ret = call_connect(call, caller->at);
		WRITE_ONCE(caller->rounds, caller->rounds + !ret);
		wake_up(&scene.w->wait);
		if (ret && !expect(scene.w, ends_call(ret)))
			caller->wrong++;
		call_close(call);
		caller->wrong += !told_rightly(&call->asking) + !told_rightly(&call->asked);
	}
	return -ETIME;
}

static struct meeting *listen_at(const struct sockaddr_storage *address,
				 struct ibchan_device *only)
{
	struct meeting *m = world_alloc(scene.w, sizeof(*m));

	m->w = scene.w;
	m->address = *address;
	return meeting_listen(m, only) ? NULL : m;
}

static int start_caller(struct caller *caller, const struct sockaddr_storage *address)
{
	int ret;

	*caller = (struct caller){
		.thread = { .world = scene.w, .run = caller_run, .arg = caller },
		.at = listen_at(address, NULL),
	};
	if (!caller->at)
		return -ENODEV;
	ret = thread_start(&caller->thread);
	caller->started = !ret;
	return ret;
}

static int start_callers(const struct sockaddr_storage *address)
{
	int i, ret = 0;

	callers_stop = 0;
	for (i = 0; i < CALLERS && !ret; i++)
		ret = start_caller(&callers[i], address);
	for (i = 0; i < CALLERS && !ret; i++)
		ret = expect_soon(scene.w, READ_ONCE(callers[i].rounds)) ? 0 : -ETIME;
	return ret;
}

/* Where the device did not leave, they are told to end. */
static void join_callers(struct world *w)
{
	int i;

	for (i = 0; i < CALLERS; i++) {
		if (!callers[i].started)
			continue;
		if (!wait_event_timeout(w->wait, READ_ONCE(callers[i].thread.ended),
					msecs_to_jiffies(patience)))
			WRITE_ONCE(callers_stop, 1);
		callers[i].started = 0;
		if (!expect_eq(w, thread_join(&callers[i].thread), -ENODEV))
			callers[i].wrong++;
	}
}

/* One that has been asked, and one that has been asked and told nobody. */
static int begin_to_hold(struct world *w)
{
	if (!expect_eq(w, meeting_ask(scene.held, NULL, 0), 0))
		return -EIO;
	scene.request = meeting_take(scene.held);
	if (!scene.request || call_build(&scene.waits))
		return -EIO;
	if (!expect_eq(w, ask(&scene.waits, &scene.waited->address), 0))
		return -EIO;
	expect_soon(w, ibchan_listener_waiting(scene.waited->listener) == 1);
	return 0;
}

/* Its neighbour does not answer, and is asked for much longer than a device takes to leave. */
static int begin_to_look(struct world *w, struct sockaddr_storage address)
{
	const struct ibchan_connect connect = {
		.peer = (struct sockaddr *)&address, .address_ms = IBCHAN_MAX_STAGE_MS,
	};
	struct sockaddr_in *four = (struct sockaddr_in *)&address;
	int ret;

	if (!expect_eq(w, address.ss_family, AF_INET) || call_build(&scene.lost))
		return -EIO;
	four->sin_addr.s_addr &= htonl(~0xffU);
	four->sin_addr.s_addr |= htonl(77);
	four->sin_port = htons(7700);
	ret = ibchan_channel_connect(scene.lost.from, &connect, NULL);
	return expect_eq(w, ret, 0) ? 0 : -EIO;
}

static int connect_call(struct world *w)
{
	int ret = call_build(&scene.connected);

	if (!ret)
		ret = call_connect(&scene.connected, scene.waited);
	return expect_eq(w, ret, 0) ? 0 : -EIO;
}

static int begin_meeting(struct world *w)
{
	scene = (struct scene){ .w = w, .held = meeting_new(w) };
	scene.held->init.cq_entries = SZ_4K;
	return meeting_begin(scene.held);
}

/* Who was left has not been sent away. */
static int still_waits(struct world *w)
{
	return expect_eq(w, READ_ONCE(scene.left.rejected), 0) ? 0 : -EIO;
}

static int begin(struct world *w)
{
	struct sockaddr_storage any = { .ss_family = AF_INET };
	struct ibchan_device *dev;
	struct sockaddr_storage address;

	if (begin_meeting(w))
		return -ENODEV;
	dev = w->side[0].dev;
	if (device_address(w, dev, &address))
		return -ENODEV;
	scene.waited = listen_at(&address, dev);
	scene.anywhere = listen_at(&any, dev);
	if (!scene.waited || !scene.anywhere)
		return -ENODEV;
	return asker_is_left(&scene.left, scene.held, 0) ?:
	       connect_call(w) ?: begin_to_hold(w) ?: begin_to_look(w, address) ?:
	       start_callers(&address) ?: still_waits(w);
}

static void end(struct world *w)
{
	WRITE_ONCE(callers_stop, 1);
	join_callers(w);
	w->failures = 0;
	call_close(&scene.waits);
	call_close(&scene.lost);
	call_close(&scene.connected);
	asker_end(&scene.left);
}

static void expect_told(struct ibchan_channel *ch, struct party *party)
{
	party_expect(party, 0, 1, -ENODEV);
	expect_eq(scene.w, outcome(ch), -ENODEV);
}

static void who_is_not_answered_is_told_enodev_once(struct world *w)
{
	expect_told(scene.held->asking.side->ch, &scene.held->asking);
	expect_told(scene.waits.from, &scene.waits.asking);
}

static void who_looks_for_an_address_is_told_enodev_once(struct world *w)
{
	struct ibchan_connection *found = world_alloc(w, sizeof(*found));

	expect_told(scene.lost.from, &scene.lost.asking);
	ibchan_channel_connection(scene.lost.from, found);
	expect_eq(w, found->stage, IBCHAN_STAGE_ADDRESS);
}

static void expect_ended(struct ibchan_channel *ch, struct party *party)
{
	expect_eq(scene.w, atomic_read(&party->connected), 1);
	expect_eq(scene.w, atomic_read(&party->broken), 1);
	expect(scene.w, is_of_departure(party->error));
	expect_eq(scene.w, outcome(ch), -ENODEV);
}

static void who_is_connected_is_told_once(struct world *w)
{
	expect_ended(scene.connected.from, &scene.connected.asking);
	expect_ended(scene.connected.to, &scene.connected.asked);
}

/* Its answer would be waited for longer than a device may take to leave. */
static void who_has_not_heard_of_an_answer_keeps_no_device(struct world *w)
{
	expect_soon(w, READ_ONCE(scene.left.device_left));
	expect_eq(w, scene.left.ended, 0);
}

static void a_request_that_is_held_is_only_good_to_be_given_back(struct world *w)
{
	const struct ibchan_connect connect = {};
	struct ibchan_channel *ch = scene.held->asked.side->ch;

	expect_eq(w, ibchan_request_accept(scene.request, ch, &connect, NULL), -ENODEV);
	if (expect_eq(w, ibchan_request_reject(scene.request, "no", 3), 0))
		world_forget(w, THING_REQUEST, scene.request);
}

/* What had come before is of no use to anybody. */
static void a_listener_at_its_address_answers_enodev(struct world *w)
{
	struct meeting *m = scene.waited;

	/* Two requests, and the end. */
	expect(w, atomic_read(&m->ready) > 2);
	expect_eq(w, PTR_ERR_OR_ZERO(ibchan_request_take(m->listener)), -ENODEV);
	expect_eq(w, ibchan_listener_waiting(m->listener), -ENODEV);
	expect_eq(w, ibchan_listener_waiting(scene.held->listener), -ENODEV);
}

/* The address stays, and nothing comes over the device. */
static void a_listener_for_it_alone_answers_enodev(struct world *w)
{
	struct meeting *m = scene.anywhere;

	expect_eq(w, atomic_read(&m->ready), 1);
	expect_eq(w, ibchan_listener_waiting(m->listener), -ENODEV);
	expect_eq(w, PTR_ERR_OR_ZERO(ibchan_request_take(m->listener)), -ENODEV);
}

static void nothing_new_connects(struct world *w)
{
	struct ibchan_listener_init init = {
		.net = &init_net, .dev = w->side[0].dev,
		.address = (struct sockaddr *)&scene.waited->address,
	};
	const struct ibchan_connect connect = { .peer = init.address };
	struct ibchan_route *route = world_alloc(w, sizeof(*route));

	expect_eq(w, ask(&scene.lost, &scene.waited->address), -ENODEV);
	expect_eq(w, ibchan_channel_connect(scene.lost.to, &connect, NULL), -ENODEV);
	expect_eq(w, PTR_ERR_OR_ZERO(ibchan_listener_create(&init, NULL)), -ENODEV);
	expect_eq(w, ibchan_route_query(&init_net, &connect, route, NULL), -ENODEV);
}

/* They worked before, and then got the one answer that there is. */
static void threads_that_connect_end_with_enodev(struct world *w)
{
	int i;

	for (i = 0; i < CALLERS; i++) {
		expect(w, callers[i].rounds);
		expect_eq(w, callers[i].wrong, 0);
		pr_info("# a caller connected %u times\n", callers[i].rounds);
	}
}

static const struct test_case cases[] = {
	CASE(who_is_not_answered_is_told_enodev_once),
	CASE(who_looks_for_an_address_is_told_enodev_once),
	CASE(who_is_connected_is_told_once),
	CASE(who_has_not_heard_of_an_answer_keeps_no_device),
	CASE(a_request_that_is_held_is_only_good_to_be_given_back),
	CASE(a_listener_at_its_address_answers_enodev),
	CASE(a_listener_for_it_alone_answers_enodev),
	CASE(nothing_new_connects),
	CASE(threads_that_connect_end_with_enodev),
};

const struct departure removal_by_address_departure = {
	.name = "removal_by_address",
	.cases = cases,
	.num = ARRAY_SIZE(cases),
	.begin = begin,
	.settle = join_callers,
	.end = end,
};
