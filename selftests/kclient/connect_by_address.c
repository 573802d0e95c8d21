// SPDX-License-Identifier: GPL-2.0-only
/* Connecting by address: what each side is told, and what can go wrong with it. */
#include <linux/delay.h>
#include <linux/string.h>
#include <net/net_namespace.h>

#include "meeting.h"
#include "suites.h"

/* Private data that go with a request to an ibchan on RoCE. */
#define REQUEST_DATA	48

/* --- what works --- */

static void both_sides_are_told_once_that_they_are_connected(struct world *w)
{
	struct meeting *m = meeting_default(w);

	if (!m || meeting_connect(m))
		return;
	party_expect(&m->asking, 1, 0, 0);
	party_expect(&m->asked, 1, 0, 0);
	expect_eq(w, atomic_read(&m->ready), 1);
	expect_eq(w, channel_state(m->asking.side->ch), IBCHAN_CHANNEL_CONNECTED);
	expect_eq(w, channel_state(m->asked.side->ch), IBCHAN_CHANNEL_CONNECTED);
}

static void a_side_is_told_once_that_the_other_has_closed(struct world *w)
{
	struct meeting *m = meeting_default(w);

	if (!m || meeting_connect(m))
		return;
	side_close(m->asking.side);
	party_expect(&m->asked, 1, 1, -ECONNRESET);
	expect_eq(w, party_outcome(&m->asked), -ESHUTDOWN);
	/* Who closes is told nothing of it. */
	party_expect(&m->asking, 1, 0, 0);
}

static void a_side_is_told_once_that_the_other_has_broken(struct world *w)
{
	struct meeting *m = meeting_default(w);

	if (!m || meeting_connect(m))
		return;
	ibchan_channel_break(m->asked.side->ch, -EPIPE);
	party_expect(&m->asked, 1, 1, -EPIPE);
	party_expect(&m->asking, 1, 1, -ECONNRESET);
}

static void private_data_go_both_ways(struct world *w)
{
	struct meeting *m = meeting_default(w);
	struct ibchan_connection *found = world_alloc(w, sizeof(*found));
	struct ibchan_request_attr *attr = world_alloc(w, sizeof(*attr));
	struct ibchan_request *request;

	if (!m || !expect_eq(w, meeting_ask(m, "may I?", 7), 0))
		return;
	request = meeting_take(m);
	if (!request)
		return;
	ibchan_request_query(request, attr);
	expect(w, !strcmp((char *)attr->data, "may I?"));
	expect(w, !strcmp(attr->device, device_names[0]));
	expect_eq(w, attr->port, 1);
	expect(w, !memcmp(&attr->local, &m->address, sizeof(attr->local)));
	expect_eq(w, meeting_accept(m, request, "you may", 8), 0);
	expect_eq(w, party_outcome(&m->asking), 0);
	expect_eq(w, party_outcome(&m->asked), 0);
	ibchan_channel_connection(m->asking.side->ch, found);
	expect(w, !strcmp((char *)found->data, "you may"));
	expect_eq(w, found->stage, IBCHAN_STAGE_DONE);
	expect(w, !memcmp(&found->peer, &m->address, sizeof(found->peer)));
	ibchan_channel_connection(m->asked.side->ch, found);
	expect(w, !strcmp((char *)found->data, "may I?"));
	expect(w, !memcmp(&found->local, &m->address, sizeof(found->local)));
}

static void data_cross(struct side *from, struct side *to, u32 seed)
{
	struct world *w = from->world;
	struct job *job = world_jobs(w, 1);

	fill_pattern(from->buf, 3000, seed);
	expect_eq(w, job_receive(job, to, 8192, 3000), 0);
	expect_eq(w, ibchan_channel_send(from->ch, side_sge(from, 0, 3000), 1, NULL), 0);
	if (job_ended(job))
		expect(w, has_pattern(to->buf + 8192, 3000, seed));
	if (!side_share(to))
		return;
	fill_pattern(from->buf, 5000, seed + 1);
	expect_eq(w, ibchan_channel_write(from->ch, side_sge(from, 0, 5000), 1, &to->remote,
					  NULL), 0);
	expect(w, has_pattern(to->buf, 5000, seed + 1));
	memset(from->buf, 0, 5000);
	expect_eq(w, ibchan_channel_read(from->ch, side_sge(from, 0, 5000), 1, &to->remote,
					 NULL), 0);
	expect(w, has_pattern(from->buf, 5000, seed + 1));
}

static void send_at_once(struct party *party)
{
	struct job *job = party->job;

	expect_eq(job->world, job_send(job, party->side, 0, 64), 0);
}

/* Without a single retry: the receive was there before the peer was. */
static void what_connected_sends_finds_a_receive_that_was_posted_before(struct world *w)
{
	struct job *jobs = world_jobs(w, 2);
	struct meeting *m = meeting_new(w);

	m->init.params.rnr_retries = 0;
	m->asking.at_connected = send_at_once;
	m->asking.job = &jobs[0];
	if (meeting_begin(m))
		return;
	fill_pattern(m->asking.side->buf, 64, 3);
	expect_eq(w, job_send(&jobs[0], m->asking.side, 0, 64), -ENOTCONN);
	/* Before it begins to connect, and not after it has begun. */
	expect_eq(w, job_receive(&jobs[1], m->asked.side, 4096, 64), 0);
	if (meeting_connect(m))
		return;
	job_ended(&jobs[0]);
	job_ended(&jobs[1]);
	expect_eq(w, jobs[0].completion.error + jobs[1].completion.error, 0);
	expect(w, has_pattern(m->asked.side->buf + 4096, 64, 3));
}

static void the_route_leads_over_the_device_of_the_address(struct world *w)
{
	struct meeting *m = meeting_default(w);
	struct ibchan_route *route = world_alloc(w, sizeof(*route));
	struct ibchan_connect connect = {};
	struct sockaddr strange = { .sa_family = AF_UNIX };

	if (!m)
		return;
	connect.peer = (struct sockaddr *)&m->address;
	if (expect_eq(w, ibchan_route_query(&init_net, &connect, route, NULL), 0)) {
		expect(w, !strcmp(route->device, device_names[0]));
		expect_eq(w, route->port, 1);
		expect_eq(w, route->mtu, 1024);
		expect_eq(w, route->source.ss_family, m->address.ss_family);
	}
	connect.address_ms = IBCHAN_MAX_STAGE_MS + 1;
	expect_eq(w, ibchan_route_query(&init_net, &connect, route, NULL), -EINVAL);
	connect.address_ms = 0;
	connect.peer = &strange;
	expect_eq(w, ibchan_route_query(&init_net, &connect, route, NULL), -EAFNOSUPPORT);
}

/* --- what is refused --- */

static void expect_listener(struct world *w, const struct ibchan_listener_init *init,
			    int error, u32 code)
{
	struct ibchan_reason reason = {};
	struct ibchan_listener *listener = ibchan_listener_create(init, &reason);

	if (!IS_ERR(listener))
		ibchan_listener_close(listener);
	expect_eq(w, PTR_ERR_OR_ZERO(listener), error);
	expect_eq(w, reason.code, code);
}

static void a_listener_that_cannot_be_is_refused_with_why(struct world *w)
{
	struct meeting *m = meeting_default(w);
	struct sockaddr strange = { .sa_family = AF_UNIX };
	struct sockaddr_in nowhere = { .sin_family = AF_INET };
	struct ibchan_listener_init init = { .net = &init_net };

	if (!m)
		return;
	/* An address for documentation: nobody has it. */
	nowhere.sin_addr.s_addr = htonl(0xc0000201);
	init.address = (struct sockaddr *)&m->address;
	expect_listener(w, &init, -EADDRINUSE, IBCHAN_REASON_CM);
	init.backlog = IBCHAN_MAX_BACKLOG + 1;
	expect_listener(w, &init, -EINVAL, IBCHAN_REASON_PARAMETER);
	init.backlog = 0;
	init.address = &strange;
	expect_listener(w, &init, -EAFNOSUPPORT, IBCHAN_REASON_ADDRESS_FAMILY);
	init.address = (struct sockaddr *)&nowhere;
	expect_listener(w, &init, -EADDRNOTAVAIL, IBCHAN_REASON_CM);
}

static void expect_refused(struct meeting *m, const struct ibchan_connect *connect, int error,
			   u32 code)
{
	struct ibchan_reason reason = {};

	expect_eq(m->w, ibchan_channel_connect(m->asking.side->ch, connect, &reason), error);
	expect_eq(m->w, reason.code, code);
	expect_eq(m->w, channel_state(m->asking.side->ch), IBCHAN_CHANNEL_PREPARED);
}

static void a_connect_that_cannot_be_is_refused_and_harmless(struct world *w)
{
	struct meeting *m = meeting_default(w);
	struct sockaddr strange = { .sa_family = AF_UNIX };
	struct ibchan_connect connect = {};
	u8 data[REQUEST_DATA + 1] = {};

	if (!m)
		return;
	connect = (struct ibchan_connect){ .peer = &strange };
	expect_refused(m, &connect, -EAFNOSUPPORT, IBCHAN_REASON_ADDRESS_FAMILY);
	connect.peer = (struct sockaddr *)&m->address;
	connect.source = &strange;
	expect_refused(m, &connect, -EAFNOSUPPORT, IBCHAN_REASON_ADDRESS_FAMILY);
	connect.source = NULL;
	connect.connect_ms = IBCHAN_MAX_STAGE_MS + 1;
	expect_refused(m, &connect, -EINVAL, IBCHAN_REASON_STAGE_TIME);
	connect.connect_ms = 0;
	connect.flags = IBCHAN_CONNECT_FLAGS + 1;
	expect_refused(m, &connect, -EINVAL, 0);
	connect.flags = 0;
	connect.data = data;
	connect.length = sizeof(data);
	expect_refused(m, &connect, -EINVAL, IBCHAN_REASON_PRIVATE_DATA);
	expect_eq(w, party_outcome(&m->asking), -ENOTCONN);
	meeting_connect(m);
	party_expect(&m->asking, 1, 0, 0);
}

static void a_channel_connects_once(struct world *w)
{
	struct meeting *m = meeting_default(w);

	if (!m || meeting_connect(m))
		return;
	expect_eq(w, meeting_ask(m, NULL, 0), -EISCONN);
	data_cross(m->asking.side, m->asked.side, 1);
	ibchan_channel_break(m->asking.side->ch, -EPIPE);
	expect_eq(w, meeting_ask(m, NULL, 0), -ESHUTDOWN);
	expect_eq(w, ibchan_listener_waiting(m->listener), 0);
}

static int accept_by(struct ibchan_request *request, struct ibchan_channel *ch,
		     struct ibchan_reason *reason)
{
	const struct ibchan_connect connect = {};

	return ibchan_request_accept(request, ch, &connect, reason);
}

/* The request is still there for the channel that fits. */
static void a_request_refuses_channels_that_do_not_fit(struct world *w)
{
	struct party *other = world_alloc(w, sizeof(*other));
	struct meeting *m = meeting_new(w);
	struct ibchan_reason reason = {};
	struct ibchan_request *request;
	struct ibchan_channel *fits;

	m->init.loop = 0;
	if (meeting_begin(m) || !expect_eq(w, meeting_ask(m, NULL, 0), 0))
		return;
	request = meeting_take(m);
	fits = party_build(other, &w->side[0], &m->init.params);
	if (!request || !fits)
		return;
	expect_eq(w, accept_by(request, m->asked.side->ch, &reason), -EXDEV);
	expect_eq(w, reason.code, IBCHAN_REASON_REQUEST_DEVICE);
	expect_eq(w, channel_state(m->asked.side->ch), IBCHAN_CHANNEL_PREPARED);
	expect_eq(w, accept_by(request, m->asking.side->ch, NULL), -EISCONN);
	ibchan_channel_break(m->asked.side->ch, -EPIPE);
	if (!expect_eq(w, accept_by(request, fits, NULL), 0))
		return;
	world_forget(w, THING_REQUEST, request);
	expect_eq(w, party_outcome(&m->asking), 0);
	party_expect(&m->asking, 1, 0, 0);
	party_expect(other, 1, 0, 0);
}

/* --- what goes wrong once it has begun --- */

static void who_is_rejected_breaks_with_econnreset_and_gets_the_data(struct world *w)
{
	struct meeting *m = meeting_default(w);
	struct ibchan_connection *found = world_alloc(w, sizeof(*found));
	struct ibchan_request *request;

	if (!m || !expect_eq(w, meeting_ask(m, NULL, 0), 0))
		return;
	request = meeting_take(m);
	if (!request)
		return;
	expect_eq(w, ibchan_request_reject(request, "not you", IBCHAN_PRIVATE_DATA_SIZE + 1),
		  -EINVAL);
	expect_eq(w, ibchan_request_reject(request, "not you", 8), 0);
	world_forget(w, THING_REQUEST, request);
	expect_eq(w, party_outcome(&m->asking), -ECONNRESET);
	party_expect(&m->asking, 0, 1, -ECONNRESET);
	ibchan_channel_connection(m->asking.side->ch, found);
	expect(w, !strcmp((char *)found->data, "not you"));
	expect(w, found->cm_error > 0);
	expect_eq(w, found->error, ECONNRESET);
	party_expect(&m->asked, 0, 0, 0);
}

/* What this side had to say is not what the other said. */
static void a_failure_gives_nothing_back_as_the_peers_data(struct world *w)
{
	struct meeting *m = meeting_default(w);
	struct ibchan_connection *found = world_alloc(w, sizeof(*found));
	struct ibchan_connect connect = { .connect_ms = 200, .data = "mine", .length = 5 };

	if (!m)
		return;
	connect.peer = (struct sockaddr *)&m->address;
	expect_eq(w, ibchan_channel_connect(m->asking.side->ch, &connect, NULL), 0);
	expect_eq(w, party_outcome(&m->asking), -ETIMEDOUT);
	ibchan_channel_connection(m->asking.side->ch, found);
	expect_eq(w, found->length, 0);
	expect_eq(w, found->data[0], 0);
}

static void a_way_that_is_none_gives_nothing_back_as_the_peers_data(struct world *w)
{
	struct meeting *m = meeting_default(w);
	struct ibchan_connection *found = world_alloc(w, sizeof(*found));
	struct sockaddr_in nowhere = { .sin_family = AF_INET };
	const struct ibchan_connect connect = {
		.peer = (struct sockaddr *)&nowhere, .data = "mine", .length = 5,
	};

	if (!m)
		return;
	/* An address for documentation: no way leads there. */
	nowhere.sin_addr.s_addr = htonl(0xc0000201);
	nowhere.sin_port = htons(7);
	expect_eq(w, ibchan_channel_connect(m->asking.side->ch, &connect, NULL), 0);
	expect(w, party_outcome(&m->asking) < 0);
	ibchan_channel_connection(m->asking.side->ch, found);
	expect_eq(w, found->length, 0);
	expect_eq(w, found->data[0], 0);
}

static void a_request_that_was_taken_outlives_its_listener(struct world *w)
{
	struct meeting *m = meeting_default(w);
	struct ibchan_request *request;

	if (!m || !expect_eq(w, meeting_ask(m, NULL, 0), 0))
		return;
	request = meeting_take(m);
	if (!request)
		return;
	meeting_close_listener(m);
	expect_eq(w, meeting_accept(m, request, NULL, 0), 0);
	expect_eq(w, party_outcome(&m->asking), 0);
	data_cross(m->asking.side, m->asked.side, 1);
}

/* Who asked has closed before anybody took its request, or after. */
static void a_peer_that_gives_up_is_not_accepted(struct world *w)
{
	struct meeting *m = meeting_default(w);
	struct ibchan_request *request;
	ktime_t end = after_ms(patience);
	int ret;

	if (!m || !expect_eq(w, meeting_ask(m, NULL, 0), 0))
		return;
	request = meeting_take(m);
	if (!request)
		return;
	side_close(m->asking.side);
	/* Its word may arrive after the answer, which then breaks the channel. */
	ret = meeting_accept(m, request, NULL, 0);
	if (!ret)
		ret = party_outcome(&m->asked);
	expect_eq(w, ret, -ECONNRESET);
	expect(w, ktime_before(ktime_get(), end));
	party_expect(&m->asking, 0, 0, 0);
}

/* --- closing --- */

static void close_in_callback(struct party *party)
{
	struct ibchan_channel *ch = party->side->ch;

	party->side->ch = NULL;
	ibchan_channel_close_async(ch, &party->side->world->closing, NULL);
}

/* The case's world does not know it any more: the callback closes it. */
static void closes_itself(struct party *party)
{
	world_forget(party->side->world, THING_CHANNEL, party->side->ch);
}

static void a_channel_may_be_closed_when_it_is_connected(struct world *w)
{
	struct meeting *m = meeting_default(w);
	struct ibchan_request *request;

	if (!m)
		return;
	m->asking.at_connected = close_in_callback;
	closes_itself(&m->asking);
	if (!expect_eq(w, meeting_ask(m, NULL, 0), 0))
		return;
	request = meeting_take(m);
	if (!request || !expect_eq(w, meeting_accept(m, request, NULL, 0), 0))
		return;
	expect_soon(w, atomic_read(&m->asking.connected));
	ibchan_closing_wait(&w->closing);
	party_expect(&m->asking, 1, 0, 0);
	/* Told of the end, it may not have heard of the beginning. */
	expect_soon(w, atomic_read(&m->asked.broken));
	expect_eq(w, m->asked.error, -ECONNRESET);
}

static void a_channel_may_be_closed_when_it_breaks(struct world *w)
{
	struct meeting *m = meeting_default(w);

	if (!m)
		return;
	m->asking.at_broken = close_in_callback;
	if (meeting_connect(m))
		return;
	closes_itself(&m->asking);
	side_close(m->asked.side);
	party_expect(&m->asking, 1, 1, -ECONNRESET);
	ibchan_closing_wait(&w->closing);
	expect_eq(w, atomic_read(&m->asking.told), 2);
}

static void a_channel_may_be_closed_when_it_is_refused(struct world *w)
{
	struct meeting *m = meeting_default(w);

	if (!m)
		return;
	meeting_close_listener(m);
	m->asking.at_broken = close_in_callback;
	closes_itself(&m->asking);
	expect_eq(w, meeting_ask(m, NULL, 0), 0);
	party_expect(&m->asking, 0, 1, -ECONNREFUSED);
	ibchan_closing_wait(&w->closing);
	expect_eq(w, atomic_read(&m->asking.told), 1);
}

static void close_after(struct world *w, u32 us)
{
	struct meeting *m = meeting_default(w);
	int told;

	if (!m || !expect_eq(w, meeting_ask(m, NULL, 0), 0))
		return;
	udelay(us);
	side_close(m->asking.side);
	told = atomic_read(&m->asking.told);
	meeting_close_listener(m);
	/* Nothing is told once it is closed, and nothing before, since nobody accepted. */
	expect_eq(w, told, 0);
	expect_eq(w, atomic_read(&m->asking.told), 0);
}

/* Later each time, so that one after the other of the stages is met. */
static void at_each_stage(struct world *w, void (*close)(struct world *w, u32 us))
{
	u32 round;

	for (round = 0; round < 40 && !w->failures; round++) {
		close(w, round * 25);
		world_give_back(w);
	}
}

static void a_channel_may_be_closed_at_each_stage(struct world *w)
{
	at_each_stage(w, close_after);
}

/* Drains a channel a while after it was started. */
struct drainer {
	struct thread thread;
	struct ibchan_channel *ch;
	u32 us;
};

static int drains(void *arg)
{
	struct drainer *drainer = arg;

	udelay(drainer->us);
	ibchan_channel_drain(drainer->ch);
	return 0;
}

/* Whether it has begun by then or not, the channel connects no more. */
static void drain_beside_a_connect(struct world *w, u32 us)
{
	struct meeting *m = meeting_default(w);
	struct drainer drainer = { .us = us };
	int ret;

	if (!m)
		return;
	drainer.ch = m->asking.side->ch;
	drainer.thread = (struct thread){ .world = w, .run = drains, .arg = &drainer };
	if (!expect_eq(w, thread_start(&drainer.thread), 0))
		return;
	ret = meeting_ask(m, NULL, 0);
	expect(w, !ret || ret == -ESHUTDOWN);
	expect_eq(w, thread_join(&drainer.thread), 0);
	expect_eq(w, channel_state(drainer.ch), IBCHAN_CHANNEL_CLOSED);
	expect_eq(w, meeting_ask(m, NULL, 0), -ESHUTDOWN);
	meeting_close_listener(m);
	side_close(m->asking.side);
	expect_eq(w, atomic_read(&m->asking.told), 0);
}

static void a_drain_beside_a_connect_leaves_no_connection(struct world *w)
{
	at_each_stage(w, drain_beside_a_connect);
}

static void tell_how_it_ended(struct meeting *m, ktime_t begin)
{
	struct ibchan_connection connection;

	ibchan_channel_connection(m->asking.side->ch, &connection);
	pr_info("# stage %u, cm_error %d, connected %d times, %lld ms after the close\n",
		connection.stage, connection.cm_error, atomic_read(&m->asking.connected),
		ktime_ms_delta(ktime_get(), begin));
}

/* The same for who accepts: at once, and ever later. */
static void close_accepted_after(struct world *w, u32 us)
{
	struct meeting *m = meeting_default(w);
	struct ibchan_request *request;
	ktime_t begin;

	if (!m || !expect_eq(w, meeting_ask(m, NULL, 0), 0))
		return;
	request = meeting_take(m);
	if (!request || !expect_eq(w, meeting_accept(m, request, NULL, 0), 0))
		return;
	udelay(us);
	side_close(m->asked.side);
	begin = ktime_get();
	expect_soon(w, atomic_read(&m->asking.broken));
	if (!expect_eq(w, m->asking.error, -ECONNRESET))
		tell_how_it_ended(m, begin);
	expect_eq(w, atomic_read(&m->asked.broken), 0);
}

static void who_accepts_may_close_at_each_stage(struct world *w)
{
	at_each_stage(w, close_accepted_after);
}

static const struct test_case connect_by_address_cases[] = {
	ETHERNET_CASE(both_sides_are_told_once_that_they_are_connected),
	ETHERNET_CASE(a_side_is_told_once_that_the_other_has_closed),
	ETHERNET_CASE(a_side_is_told_once_that_the_other_has_broken),
	ETHERNET_CASE(private_data_go_both_ways),
	ETHERNET_CASE(what_connected_sends_finds_a_receive_that_was_posted_before),
	ETHERNET_CASE(the_route_leads_over_the_device_of_the_address),
	ETHERNET_CASE(a_listener_that_cannot_be_is_refused_with_why),
	ETHERNET_CASE(a_connect_that_cannot_be_is_refused_and_harmless),
	ETHERNET_CASE(a_channel_connects_once),
	ETHERNET_CASE(a_request_refuses_channels_that_do_not_fit),
	ETHERNET_CASE(who_is_rejected_breaks_with_econnreset_and_gets_the_data),
	ETHERNET_CASE(a_failure_gives_nothing_back_as_the_peers_data),
	ETHERNET_CASE(a_way_that_is_none_gives_nothing_back_as_the_peers_data),
	ETHERNET_CASE(a_request_that_was_taken_outlives_its_listener),
	ETHERNET_CASE(a_peer_that_gives_up_is_not_accepted),
	ETHERNET_CASE(a_channel_may_be_closed_when_it_is_connected),
	ETHERNET_CASE(a_channel_may_be_closed_when_it_breaks),
	ETHERNET_CASE(a_channel_may_be_closed_when_it_is_refused),
	ETHERNET_CASE(a_channel_may_be_closed_at_each_stage),
	ETHERNET_CASE(a_drain_beside_a_connect_leaves_no_connection),
	ETHERNET_CASE(who_accepts_may_close_at_each_stage),
};

SUITE(connect_by_address);
