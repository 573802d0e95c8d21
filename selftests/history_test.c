// SPDX-License-Identifier: GPL-2.0-only
/* What a channel remembers of what happened to it. */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <pthread.h>

#include "namespace.h"
#include "test.h"
#include "window.h"
#include "work.h"
#include "world.h"

#define MESSAGE	64
#define HALF	32768
#define NONE	(-1)
#define SEEKING_US	1000000

FIXTURE(history)
{
	struct calm calm;
	struct side_options options;
	struct pair pair;
	struct side *a;
	struct ibchan_history_event events[IBCHAN_HISTORY_MAX];
};

FIXTURE_SETUP(history)
{
	self->options = side_defaults();
	self->options.params.max_send_wr = 2;
	self->options.params.max_recv_wr = 2;
	self->options.options.keepalive_ms = IBCHAN_KEEPALIVE_OFF;
	ASSERT_EQ(0, calm_begin(&self->calm));
}

FIXTURE_TEARDOWN(history)
{
	pair_close(&self->pair);
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* Where the first of a kind stands, from @from on. */
static int find(const struct ibchan_history_event *events, int num, int from, __u32 kind)
{
	for (; from < num; from++) {
		if (events[from].kind == kind)
			return from;
	}
	return NONE;
}

static int count(const struct ibchan_history_event *events, int num, __u32 kind)
{
	int n = 0, i;

	for (i = 0; i < num; i++)
		n += events[i].kind == kind;
	return n;
}

TEST_F(history, begins_with_the_making_and_the_connecting)
{
	const struct ibchan_history_event *e = self->events;

	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &self->options));
	ASSERT_EQ(2, read_history(self->pair.a, self->events, IBCHAN_HISTORY_MAX));
	EXPECT_EQ(IBCHAN_HISTORY_BUILT, e[0].kind);
	EXPECT_EQ(be32toh(self->pair.a->endpoint.qpn), e[0].detail);
	EXPECT_EQ((__u64)1 << 32 | self->pair.a->params.gid_index, e[0].value);
	EXPECT_EQ(IBCHAN_HISTORY_CONNECTED, e[1].kind);
	EXPECT_EQ(be32toh(self->pair.b->endpoint.qpn), e[1].detail);
	EXPECT_EQ(1024, e[1].value);
	EXPECT_EQ(0, e[0].number);
	EXPECT_EQ(1, e[1].number);
	EXPECT_LE(e[0].time_ns, e[1].time_ns);
	EXPECT_LT(0, e[0].time_ns);
}

TEST_F(history, is_not_longer_for_works_that_succeed)
{
	int i;

	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &self->options));
	for (i = 0; i < 20; i++)
		ASSERT_EQ(0, exchange(self->pair.a, self->pair.b));
	EXPECT_EQ(2, read_history(self->pair.a, self->events, IBCHAN_HISTORY_MAX));
}

TEST_F(history, tells_the_failed_work_before_the_break_and_no_flushed_one)
{
	struct side *a;
	int num, failed;

	/* Nobody answers, which is soon to be known. */
	self->options.params.ack_timeout = 8;
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &self->options));
	a = self->pair.a;
	ASSERT_EQ(0, post_receives(a, 1, 2, MESSAGE));
	side_close(self->pair.b);
	ASSERT_EQ(0, post_one(a, work(a, IBCHAN_OP_SEND, 77, HALF, MESSAGE)));
	EXPECT_EQ(IBCHAN_STATUS_RETRY_EXC_ERR, status_of(a, 77));
	EXPECT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, status_of(a, 1));
	EXPECT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, status_of(a, 2));
	num = read_history(a, self->events, IBCHAN_HISTORY_MAX);
	failed = find(self->events, num, 0, IBCHAN_HISTORY_WORK_FAILED);
	ASSERT_LE(0, failed);
	EXPECT_EQ(1, count(self->events, num, IBCHAN_HISTORY_WORK_FAILED));
	EXPECT_EQ(ETIMEDOUT, self->events[failed].error);
	EXPECT_EQ(IBCHAN_STATUS_RETRY_EXC_ERR | IBCHAN_OP_SEND << 16,
		  self->events[failed].detail);
	EXPECT_EQ(77, self->events[failed].value);
	ASSERT_LT(failed, find(self->events, num, 0, IBCHAN_HISTORY_BROKEN));
	EXPECT_EQ(ETIMEDOUT, self->events[num - 1].error);
	EXPECT_EQ(IBCHAN_STATUS_RETRY_EXC_ERR, self->events[num - 1].detail);
}

TEST_F(history, tells_a_failed_handshake_with_its_reason)
{
	struct ibchan_endpoint bad;

	ASSERT_EQ(0, pair_build(&self->pair, PAIR_TWO_DEVICES, &self->options));
	bad = self->pair.b->endpoint;
	bad.mtu = 9;
	ASSERT_EQ(-EINVAL, side_handshake(self->pair.a, &bad));
	ASSERT_EQ(2, read_history(self->pair.a, self->events, IBCHAN_HISTORY_MAX));
	EXPECT_EQ(IBCHAN_HISTORY_HANDSHAKE, self->events[1].kind);
	EXPECT_EQ(EINVAL, self->events[1].error);
	EXPECT_EQ(IBCHAN_REASON_PEER_MTU, self->events[1].detail);
}

TEST_F(history, tells_a_refused_post_once_until_the_reason_changes)
{
	struct side *a;
	int i, num, at;

	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &self->options));
	a = self->pair.a;
	ASSERT_EQ(0, post_receives(a, 1, 2, MESSAGE));
	for (i = 0; i < 100; i++)
		ASSERT_EQ(-EAGAIN, post_one(a, work(a, IBCHAN_OP_RECV, 9, HALF, MESSAGE)));
	ASSERT_EQ(0, channel_break(a->fd, a->channel));
	for (i = 0; i < 100; i++)
		ASSERT_EQ(-ESHUTDOWN, post_one(a, work(a, IBCHAN_OP_SEND, 9, HALF, MESSAGE)));
	num = read_history(a, self->events, IBCHAN_HISTORY_MAX);
	EXPECT_EQ(2, count(self->events, num, IBCHAN_HISTORY_POST_REFUSED));
	at = find(self->events, num, 0, IBCHAN_HISTORY_POST_REFUSED);
	ASSERT_LE(0, at);
	EXPECT_EQ(EAGAIN, self->events[at].error);
	EXPECT_EQ(IBCHAN_REASON_RECV_QUEUE_FULL, self->events[at].detail);
	EXPECT_EQ(9, self->events[at].value);
	at = find(self->events, num, at + 1, IBCHAN_HISTORY_POST_REFUSED);
	ASSERT_LE(0, at);
	EXPECT_EQ(ESHUTDOWN, self->events[at].error);
	EXPECT_EQ(IBCHAN_REASON_BROKEN, self->events[at].detail);
	at = find(self->events, num, 0, IBCHAN_HISTORY_BROKEN);
	ASSERT_LE(0, at);
	EXPECT_EQ(ECANCELED, self->events[at].error);
}

static bool has_three_answers(void *arg)
{
	struct ibchan_cmd_channel_query cmd;

	return !side_query(arg, &cmd) && cmd.out.facts.probes_answered >= 3;
}

TEST_F(history, tells_probes_by_one_event)
{
	int num;

	self->options.options.keepalive_ms = IBCHAN_KEEPALIVE_MIN_MS;
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &self->options));
	ASSERT_TRUE(eventually(has_three_answers, self->pair.a));
	num = read_history(self->pair.a, self->events, IBCHAN_HISTORY_MAX);
	ASSERT_EQ(3, num);
	EXPECT_EQ(IBCHAN_HISTORY_PROBES, self->events[2].kind);
	EXPECT_LE(3, self->events[2].value);
	EXPECT_LE(2, self->events[2].detail);
}

/* Each handshake that fails is one. */
TEST_F(history, keeps_the_last_ones_and_counts_all)
{
	struct ibchan_endpoint bad;
	int i;

	ASSERT_EQ(0, pair_build(&self->pair, PAIR_TWO_DEVICES, &self->options));
	bad = self->pair.b->endpoint;
	bad.mtu = 9;
	for (i = 0; i < 100; i++)
		ASSERT_EQ(-EINVAL, side_handshake(self->pair.a, &bad));
	ASSERT_EQ(IBCHAN_HISTORY_MAX,
		  read_history(self->pair.a, self->events, IBCHAN_HISTORY_MAX));
	for (i = 0; i < IBCHAN_HISTORY_MAX; i++)
		ASSERT_EQ(101 - IBCHAN_HISTORY_MAX + i, self->events[i].number);
	/* The youngest ones for who has less room. */
	ASSERT_EQ(3, read_history(self->pair.a, self->events, 3));
	EXPECT_EQ(98, self->events[0].number);
	EXPECT_EQ(100, self->events[2].number);
	EXPECT_EQ(IBCHAN_HISTORY_MAX, read_history(self->pair.a, self->events, ~0U));
}

TEST_F(history, writes_no_more_than_it_says_and_zeroes_what_it_does_not_know)
{
	enum { LEN = 48 };
	unsigned char room[3 * LEN];
	struct ibchan_cmd_channel_history cmd = {
		.entries = address(room), .entry_len = LEN, .entry_num = 3,
	};
	int i;

	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &self->options));
	memset(room, 0xa5, sizeof(room));
	cmd.channel = self->pair.a->channel;
	ASSERT_EQ(0, cmd_channel_history(self->pair.a->fd, &cmd));
	ASSERT_EQ(2, cmd.entry_num);
	EXPECT_EQ(0, all_bytes(room + sizeof(self->events[0]), LEN - sizeof(self->events[0]), 0));
	EXPECT_EQ(0, all_bytes(room + 2 * LEN, LEN, 0xa5));
	for (i = 0; i < 2; i++)
		EXPECT_EQ(i, ((struct ibchan_history_event *)(room + i * LEN))->number);
}

/* ---- All histories at once, for an administrator ---- */

#define ALL_HISTORIES	"/sys/kernel/debug/ibchan/history"

/*
 * Counts the events below the line of @side's channel; NONE: it has no line. -EBADMSG for
 * a line that is no channel's and no event's.
 */
static int events_shown(const struct side *side)
{
	FILE *file = fopen(ALL_HISTORIES, "re");
	int qpn = be32toh(side->endpoint.qpn);
	int found, shown = NONE, mine = 0;
	char line[256], device[64], kind[32];
	unsigned int number;

	if (!file)
		return -errno;
	while (shown != -EBADMSG && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%63s qpn %i state %*u", device, &found) == 2) {
			mine = found == qpn && !strcmp(device, DEVICE_A);
			shown = mine ? 0 : shown;
		} else if (sscanf(line, " %*u.%*u #%u %31s error %*u", &number, kind) != 2) {
			shown = -EBADMSG;
		} else {
			shown += mine;
		}
	}
	fclose(file);
	return shown;
}

TEST_F(history, is_shown_to_root_as_long_as_the_channel_is_there)
{
	struct side *a;

	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &self->options));
	a = self->pair.a;
	EXPECT_EQ(2, events_shown(a));
	ASSERT_EQ(0, channel_break(a->fd, a->channel));
	EXPECT_EQ(3, events_shown(a));
	EXPECT_EQ(3, read_history(a, self->events, IBCHAN_HISTORY_MAX));
	ASSERT_EQ(0, destroy(a->fd, a->channel));
	EXPECT_EQ(NONE, events_shown(a));
}

static int look_as_nobody(void *arg)
{
	int rc = drop_privileges();

	(void)arg;
	return rc ? rc : access(ALL_HISTORIES, R_OK) ? -errno : 0;
}

TEST_F(history, of_others_is_not_shown_to_everybody)
{
	EXPECT_EQ(0, access(ALL_HISTORIES, R_OK));
	EXPECT_EQ(-EACCES, in_child(look_as_nobody, NULL));
}

struct readers {
	const struct side *side;
	int stop;
	int wrong;
	unsigned int reads;
};

static void *read_on(void *arg)
{
	struct readers *readers = arg;

	while (!__atomic_load_n(&readers->stop, __ATOMIC_RELAXED)) {
		readers->wrong += events_shown(readers->side) != 2;
		readers->reads++;
	}
	return NULL;
}

TEST_F(history, is_shown_while_other_channels_come_and_go)
{
	struct readers readers = {};
	struct side other;
	pthread_t thread;
	int i;

	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &self->options));
	readers.side = self->pair.a;
	ASSERT_EQ(0, pthread_create(&thread, NULL, read_on, &readers));
	for (i = 0; i < 200; i++) {
		ASSERT_EQ(0, side_open(&other, &self->options));
		ASSERT_EQ(0, side_handshake(&other, &other.endpoint));
		side_close(&other);
	}
	__atomic_store_n(&readers.stop, 1, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, readers.wrong);
	EXPECT_LT(1, readers.reads);
}

/* ---- What happens to the port ---- */

/* Of <rdma/ib_verbs.h>. */
#define EVENT_PORT_ACTIVE	9
#define EVENT_PORT_ERR		10

#define OWN_DEVICE	"rxe5"
#define OWN_ADDRESS	"10.89.0.1/24 dev h0"

static const char set_up[] =
	"ip link add h0 type veth peer name h1;"
	"ip link set h0 up; ip link set h1 up; ip address add " OWN_ADDRESS ";"
	"rdma link add " OWN_DEVICE " type rxe netdev h0";

static const char tear_down[] = "ip link delete h0";

FIXTURE(channel_whose_port)
{
	struct calm calm;
	struct side_options options;
	struct side side;
	struct side other;	/* on another device */
	struct ibchan_history_event events[IBCHAN_HISTORY_MAX];
};

static bool can_open(void *arg)
{
	struct side_options options = side_defaults();

	options.device = OWN_DEVICE;
	options.options.keepalive_ms = IBCHAN_KEEPALIVE_OFF;
	return !side_open(arg, &options);
}

FIXTURE_SETUP(channel_whose_port)
{
	struct side_options options = side_defaults();

	options.options.keepalive_ms = IBCHAN_KEEPALIVE_OFF;
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, run_script(set_up));
	/* As soon as the device has the address. */
	ASSERT_TRUE(eventually(can_open, &self->side));
	ASSERT_EQ(0, side_open(&self->other, &options));
}

FIXTURE_TEARDOWN(channel_whose_port)
{
	window_widen("seeking", 0);
	side_close(&self->other);
	side_close(&self->side);
	EXPECT_EQ(0, run_script(tear_down));
	EXPECT_TRUE(device_leaves(OWN_DEVICE));
	EXPECT_EQ(0, calm_end(&self->calm));
}

static bool tells_active(const struct ibchan_history_event *event)
{
	return event->kind == IBCHAN_HISTORY_PORT && event->value == EVENT_PORT_ACTIVE;
}

/*
 * All events but those of a port that comes up: the kernel tells of the port's making when it has
 * time, which may be before the channel is there, or at any moment of its life.
 */
static int read_but_active(const struct side *side, struct ibchan_history_event *events)
{
	int num = read_history(side, events, IBCHAN_HISTORY_MAX);
	int i, others = 0;

	for (i = 0; i < num; i++) {
		if (!tells_active(&events[i]))
			events[others++] = events[i];
	}
	return num < 0 ? num : others;
}

/* What a channel should have of a kind. */
struct expected {
	const struct side *side;
	__u32 kind;
	int least;
};

static bool has_happened(void *arg)
{
	const struct expected *expected = arg;
	struct ibchan_history_event events[IBCHAN_HISTORY_MAX];
	int num = read_but_active(expected->side, events);

	return count(events, num, expected->kind) >= expected->least;
}

static bool happens(const struct side *side, __u32 kind, int least)
{
	struct expected expected = { side, kind, least };

	return eventually(has_happened, &expected);
}

TEST_F(channel_whose_port, loses_the_address_tells_so_before_it_breaks)
{
	const struct ibchan_history_event *e = self->events;

	ASSERT_EQ(0, side_handshake(&self->side, &self->side.endpoint));
	ASSERT_EQ(0, run_script("ip address del " OWN_ADDRESS));
	ASSERT_TRUE(happens(&self->side, IBCHAN_HISTORY_BROKEN, 1));
	ASSERT_EQ(4, read_but_active(&self->side, self->events));
	EXPECT_EQ(IBCHAN_HISTORY_ADDRESS, e[2].kind);
	EXPECT_EQ(EADDRNOTAVAIL, e[2].error);
	EXPECT_EQ(self->side.params.gid_index, e[2].detail);
	EXPECT_EQ(1, e[2].value);
	EXPECT_EQ(IBCHAN_HISTORY_BROKEN, e[3].kind);
	EXPECT_EQ(EADDRNOTAVAIL, e[3].error);
	/* What has an address elsewhere has lost nothing. */
	EXPECT_EQ(1, read_history(&self->other, self->events, IBCHAN_HISTORY_MAX));
}

/* It has no peer, or it would break. */
TEST_F(channel_whose_port, loses_the_address_and_gets_it_back_tells_both)
{
	const struct ibchan_history_event *e = self->events;

	ASSERT_EQ(0, run_script("ip address del " OWN_ADDRESS));
	ASSERT_TRUE(happens(&self->side, IBCHAN_HISTORY_ADDRESS, 1));
	EXPECT_EQ(-EADDRNOTAVAIL, side_handshake(&self->side, &self->side.endpoint));
	ASSERT_EQ(0, run_script("ip address add " OWN_ADDRESS));
	ASSERT_TRUE(happens(&self->side, IBCHAN_HISTORY_ADDRESS, 2));
	EXPECT_EQ(0, side_handshake(&self->side, &self->side.endpoint));
	ASSERT_EQ(5, read_but_active(&self->side, self->events));
	EXPECT_EQ(EADDRNOTAVAIL, e[1].error);
	EXPECT_EQ(IBCHAN_HISTORY_HANDSHAKE, e[2].kind);
	EXPECT_EQ(0, e[3].error);
	EXPECT_EQ(self->side.params.gid_index, e[3].detail);
	EXPECT_EQ(IBCHAN_HISTORY_CONNECTED, e[4].kind);
}

/* Another address of the port is no matter of the channel's. */
TEST_F(channel_whose_port, gets_and_loses_another_address_tells_nothing)
{
	ASSERT_EQ(0, side_handshake(&self->side, &self->side.endpoint));
	ASSERT_EQ(0, run_script("ip address add 10.89.0.7/24 dev h0"));
	ASSERT_EQ(0, run_script("ip address del 10.89.0.7/24 dev h0"));
	/* The end, which the device tells in its order. */
	ASSERT_EQ(0, run_script("ip address del " OWN_ADDRESS));
	ASSERT_TRUE(happens(&self->side, IBCHAN_HISTORY_BROKEN, 1));
	EXPECT_EQ(4, read_but_active(&self->side, self->events));
}

static int times_active(const struct side *side)
{
	struct ibchan_history_event events[IBCHAN_HISTORY_MAX];
	int num = read_history(side, events, IBCHAN_HISTORY_MAX);
	int i, times = 0;

	for (i = 0; i < num; i++)
		times += tells_active(&events[i]);
	return times;
}

static bool has_error(void *arg)
{
	struct ibchan_cmd_channel_query cmd;

	return !side_query(arg, &cmd) && cmd.out.error == ENETDOWN;
}

static bool is_broken(void *arg)
{
	return side_state(arg) == IBCHAN_CHANNEL_BROKEN;
}

struct waking {
	const struct side *side;
	int before;
};

static bool is_active_again(void *arg)
{
	const struct waking *waking = arg;

	return times_active(waking->side) > waking->before;
}

TEST_F(channel_whose_port, goes_down_and_comes_up_tells_both)
{
	struct waking waking = { .side = &self->side };
	int num, down;

	ASSERT_EQ(0, side_handshake(&self->side, &self->side.endpoint));
	ASSERT_EQ(0, run_script("ip link set h0 down"));
	ASSERT_TRUE(happens(&self->side, IBCHAN_HISTORY_PORT, 1));
	num = read_but_active(&self->side, self->events);
	down = find(self->events, num, 0, IBCHAN_HISTORY_PORT);
	ASSERT_LE(0, down);
	EXPECT_EQ(1, self->events[down].detail);
	EXPECT_EQ(EVENT_PORT_ERR, self->events[down].value);
	waking.before = times_active(&self->side);
	ASSERT_EQ(0, run_script("ip link set h0 up"));
	EXPECT_TRUE(eventually(is_active_again, &waking));
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, side_state(&self->side));
	EXPECT_EQ(1, read_history(&self->other, self->events, IBCHAN_HISTORY_MAX));
}

/* A send finds no way out of it: that is no mistake of the program's. */
TEST_F(channel_whose_port, goes_down_breaks_by_what_it_sends_with_enetdown)
{
	struct ibchan_cmd_channel_query cmd;
	int status;

	ASSERT_EQ(0, side_handshake(&self->side, &self->side.endpoint));
	ASSERT_EQ(0, run_script("ip link set h0 down"));
	ASSERT_EQ(0, post_one(&self->side, work(&self->side, IBCHAN_OP_SEND, 1, 0, 64)));
	/* Soft-RoCE of later kernels flushes it. */
	status = status_of(&self->side, 1);
	EXPECT_TRUE(status == IBCHAN_STATUS_LOC_QP_OP_ERR || status == IBCHAN_STATUS_WR_FLUSH_ERR)
		TH_LOG("status %d", status);
	EXPECT_TRUE(eventually(has_error, &self->side));
	ASSERT_EQ(0, side_query(&self->side, &cmd));
	EXPECT_EQ(IBCHAN_CHANNEL_BROKEN, cmd.out.state);
	EXPECT_EQ(ENETDOWN, cmd.out.error);
}

/* What has failed may be looked for when the port is up again. */
TEST_F(channel_whose_port, was_down_breaks_by_what_it_sent_with_enetdown)
{
	struct waking waking = { .side = &self->side };

	if (window_widen("seeking", SEEKING_US))
		SKIP(return, "the module was not built with FAULTS=1");
	ASSERT_EQ(0, side_handshake(&self->side, &self->side.endpoint));
	ASSERT_EQ(0, run_script("ip link set h0 down"));
	ASSERT_TRUE(happens(&self->side, IBCHAN_HISTORY_PORT, 1));
	waking.before = times_active(&self->side);
	ASSERT_EQ(0, post_one(&self->side, work(&self->side, IBCHAN_OP_SEND, 1, 0, 64)));
	EXPECT_TRUE(eventually(is_broken, &self->side));
	EXPECT_EQ(0, run_script("ip link set h0 up"));
	EXPECT_TRUE(eventually(is_active_again, &waking));
	EXPECT_TRUE(eventually(has_error, &self->side));
}

TEST_F(history, refuses_a_length_and_an_address_that_cannot_be)
{
	static const __u32 lens[] = { 0, 31, 4097, 0xffffffff };
	struct ibchan_cmd_channel_history cmd = { .entry_num = 1 };
	unsigned int i;

	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &self->options));
	cmd.channel = self->pair.a->channel;
	cmd.entries = address(self->events);
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		cmd.entry_len = lens[i];
		EXPECT_EQ(-EINVAL, cmd_channel_history(self->pair.a->fd, &cmd));
	}
	cmd.entry_len = sizeof(self->events[0]);
	cmd.entries = 0;
	EXPECT_EQ(-EFAULT, cmd_channel_history(self->pair.a->fd, &cmd));
	cmd.entry_num = 1;
	cmd.entries = 0xffff888000000000ULL;
	EXPECT_EQ(-EFAULT, cmd_channel_history(self->pair.a->fd, &cmd));
}

TEST_HARNESS_MAIN
