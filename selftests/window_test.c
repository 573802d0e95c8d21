// SPDX-License-Identifier: GPL-2.0-only
/*
 * Races that are made to happen: one command stays between two steps, where it is for an
 * instant only otherwise, and another one comes meanwhile. Needs the module that `make modules
 * FAULTS=1` builds; kernel-tests runs it in the suite "window".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "departure.h"
#include "descriptor.h"
#include "encounter.h"
#include "memlock.h"
#include "test.h"
#include "thread.h"
#include "window.h"
#include "work.h"
#include "world.h"

#define NO_WINDOWS	"the module was not built with FAULTS=1"

static int leave(struct encounter *encounter)
{
	(void)encounter;
	return delete_device();
}

/* What somebody may be told before whom, or behind whom, another one has come. */
static bool is_named(int told)
{
	switch (told) {
	case 0:
	case -ENOENT:		/* the handle is gone, or the region is going */
	case -ESHUTDOWN:	/* the channel is broken */
	case -EBUSY:		/* the region or the queue is in use */
	case -ENODEV:
		return true;
	default:
		return false;
	}
}

struct way {
	const char *window;
	racer *go;
	unsigned int visit_us;	/* 0: as ever */
};

/* 1 when they have met; 0; -errno. */
static int meet(const struct way *way, racer *come, unsigned int round, int told[2])
{
	struct encounter encounter;
	int came, rc = encounter_open(&encounter, round);

	if (!rc) {
		if (way->visit_us)
			encounter.visit_us = way->visit_us;
		came = encounter_hold(&encounter, way->window, way->go, come, told);
		rc = came < 0 ? came : encounter_settle(&encounter);
	}
	encounter_end(&encounter);
	if (rc)
		return rc;
	return is_named(told[0]) && is_named(told[1]) ? came : -EPROTO;
}

static const struct visitor {
	const char *name;
	racer *come;
} visitors[] = {
	{ "post", encounter_post },
	{ "post plain", encounter_post_plain },
	{ "finish", encounter_finish },
	{ "break", encounter_break },
	{ "destroy", encounter_destroy },
	{ "dereg", encounter_dereg },
	{ "destroy cq", encounter_destroy_cq },
	{ "query", encounter_query },
	{ "register", encounter_register },
	{ "build", encounter_build },
	{ "fork", encounter_fork },
	{ "close", encounter_close },
};

/* A window is held open, so a second encounter says what the first did, but in other memory. */
#define ENCOUNTERS	2
#define MOST_ROUNDS	(20 * ENCOUNTERS)

/* Until they have met often enough; all is well as well where they did not. */
static int meet_often(const struct way *way, const struct visitor *visitor)
{
	unsigned int met = 0, round;
	int told[2] = {};
	int rc = 0;

	for (round = 0; met < ENCOUNTERS && round < MOST_ROUNDS && rc >= 0; round++) {
		rc = meet(way, visitor->come, round, told);
		met += rc == 1;
	}
	if (rc >= 0 && met == ENCOUNTERS)
		return 0;
	fprintf(stderr, "# %s, %s: %d, told %d and %d; met %u times in %u rounds\n", way->window,
		visitor->name, rc, told[0], told[1], met, round);
	return rc < 0 ? rc : -EAGAIN;
}

FIXTURE(window)
{
	struct calm calm;
	struct way way;
	int rc;		/* -ENOENT: each test says so */
};

/* Who goes into a window, and a visitor after whom both were told what tells that they met. */
FIXTURE_VARIANT(window)
{
	const char *name;
	racer *go;
	racer *come;
	int told[2];
};

FIXTURE_VARIANT_ADD(window, pinned)
{
	"pinned", encounter_post_plain, encounter_destroy, { -ENOENT, 0 },
};

FIXTURE_VARIANT_ADD(window, found)
{
	"found", encounter_post, encounter_dereg, { -ENOENT, 0 },
};

FIXTURE_VARIANT_ADD(window, checked)
{
	"checked", encounter_post, encounter_dereg, { -ENOENT, 0 },
};

FIXTURE_VARIANT_ADD(window, taken)
{
	"taken", encounter_post, encounter_dereg, { 0, -EBUSY },
};

FIXTURE_VARIANT_ADD(window, completed)
{
	"completed", encounter_finish, encounter_dereg, { 0, -EBUSY },
};

FIXTURE_VARIANT_ADD(window, released)
{
	"released", encounter_finish, encounter_dereg, { 0, 0 },
};

FIXTURE_VARIANT_ADD(window, reaped)
{
	"reaped", encounter_finish, encounter_finish, { 0, 0 },
};

FIXTURE_VARIANT_ADD(window, hidden)
{
	"hidden", encounter_destroy, encounter_post, { 0, -ENOENT },
};

FIXTURE_VARIANT_ADD(window, refusing)
{
	"refusing", encounter_destroy, encounter_post, { 0, -ENOENT },
};

FIXTURE_VARIANT_ADD(window, breaking)
{
	"breaking", encounter_break, encounter_post, { 0, -ESHUTDOWN },
};

FIXTURE_VARIANT_ADD(window, unused)
{
	"unused", encounter_dereg, encounter_post, { 0, -ENOENT },
};

FIXTURE_SETUP(window)
{
	struct visits visits;

	self->way = (struct way) { .window = variant->name, .go = variant->go };
	self->rc = window_visits(variant->name, &visits);
	if (self->rc == -ENOENT)
		return;
	ASSERT_EQ(0, self->rc);
	ASSERT_EQ(0, restore_device());
	ASSERT_EQ(0, calm_begin(&self->calm));
}

FIXTURE_TEARDOWN(window)
{
	if (self->rc)
		return;
	EXPECT_EQ(0, calm_end(&self->calm));
	EXPECT_EQ(0, restore_device());
}

TEST_F(window, tells_both_what_they_have_met)
{
	unsigned int round;
	int told[2] = {};

	if (self->rc)
		SKIP(return, NO_WINDOWS);
	for (round = 0; round < MOST_ROUNDS; round++) {
		ASSERT_LE(0, meet(&self->way, variant->come, round, told));
		if (told[0] == variant->told[0] && told[1] == variant->told[1])
			break;
	}
	EXPECT_GT(MOST_ROUNDS, round)
		TH_LOG("told %d and %d at last", told[0], told[1]);
}

TEST_F(window, ends_each_work_once_whoever_comes)
{
	unsigned int v;

	if (self->rc)
		SKIP(return, NO_WINDOWS);
	for (v = 0; v < ARRAY_SIZE(visitors); v++) {
		EXPECT_EQ(0, meet_often(&self->way, &visitors[v]))
			TH_LOG("%s", visitors[v].name);
	}
}

TEST_F(window, ends_each_work_once_when_the_device_leaves)
{
	int told[2] = {};

	if (self->rc)
		SKIP(return, NO_WINDOWS);
	/* A program has to be started meanwhile. */
	self->way.visit_us = slow() ? 1000000 : 200000;
	EXPECT_LE(0, meet(&self->way, leave, variant->told[0] == 0, told));
	EXPECT_EQ(0, told[1]);
}

/* The way in is still open, although all channels have been broken. */
FIXTURE(leaving)
{
	struct calm calm;
	int rc;
};

FIXTURE_VARIANT(leaving)
{
	racer *come;
};

#define LEAVING(name) FIXTURE_VARIANT_ADD(leaving, name) { encounter_##name }
LEAVING(post);
LEAVING(post_plain);
LEAVING(finish);
LEAVING(break);
LEAVING(destroy);
LEAVING(dereg);
LEAVING(register);
LEAVING(build);
LEAVING(close);

FIXTURE_SETUP(leaving)
{
	struct visits visits;

	self->rc = window_visits("leaving", &visits);
	if (self->rc == -ENOENT)
		return;
	ASSERT_EQ(0, self->rc);
	ASSERT_EQ(0, restore_device());
	ASSERT_EQ(0, calm_begin(&self->calm));
}

FIXTURE_TEARDOWN(leaving)
{
	if (self->rc)
		return;
	EXPECT_EQ(0, calm_end(&self->calm));
	EXPECT_EQ(0, restore_device());
}

TEST_F(leaving, is_no_harm_to_who_comes_last)
{
	/* Who comes may stand still for a moment, and is to find the way open all the same. */
	const struct way way = {
		.window = "leaving", .go = leave, .visit_us = slow() ? 1000000 : 200000,
	};
	unsigned int round;
	int told[2] = {};
	int rc = 0;

	if (self->rc)
		SKIP(return, NO_WINDOWS);
	for (round = 0; round < 5 && !rc; round++) {
		ASSERT_EQ(0, restore_device());
		rc = meet(&way, variant->come, round, told);
		EXPECT_EQ(0, told[0]);
	}
	EXPECT_EQ(1, rc)
		TH_LOG("told %d and %d at last", told[0], told[1]);
}

/* ---- What goes slowly, and those beside it ---- */

FIXTURE(beside)
{
	struct calm calm;
	bool has_windows;
};

FIXTURE_SETUP(beside)
{
	struct visits visits;

	self->has_windows = window_visits("unused", &visits) != -ENOENT;
	if (!self->has_windows)
		return;
	ASSERT_EQ(0, restore_device());
	ASSERT_EQ(0, calm_begin(&self->calm));
}

FIXTURE_TEARDOWN(beside)
{
	if (self->has_windows)
		EXPECT_EQ(0, calm_end(&self->calm));
}

/* ---- A domain whose regions go slowly ---- */

/* Others have done what they want by then, unless they wait. */
static unsigned int slowly_us(void)
{
	return slow() ? 5000000 : 1000000;
}

static bool region_is_going(void *arg)
{
	struct visits visits;

	(void)arg;
	return !window_visits("unused", &visits) && visits.entered != visits.left;
}

/* The region of plain memory goes behind its work, by the worker of its domain. */
static int receive_into_plain_memory(struct encounter *encounter)
{
	struct ibchan_submit_wr wr = work(&encounter->side, IBCHAN_OP_RECV, 1, 0, ENCOUNTER_BYTES);
	int rc;

	wr.sge.mr = IBCHAN_MR_PLAIN;
	wr.sge.offset = address(encounter->memory);
	rc = post_one(&encounter->side, wr);
	if (rc)
		return rc;
	wr = work(&encounter->side, IBCHAN_OP_SEND, 2, 0, ENCOUNTER_BYTES);
	return post_one(&encounter->side, wr) ?: succeed(&encounter->side, 2, NULL) ?:
	       succeed(&encounter->side, 1, NULL);
}

/* The region of @slowly is going, and stays for that long. */
static int let_go_slowly(struct encounter *slowly)
{
	int rc = window_widen("unused", slowly_us());

	rc = rc ?: receive_into_plain_memory(slowly);
	if (rc)
		return rc;
	rc = eventually(region_is_going, NULL) ? 0 : -ETIMEDOUT;
	/* It stays as long as was set when it came. The regions of others do not. */
	return window_widen("unused", 0) ?: rc;
}

TEST_F(beside, of_a_domain_whose_regions_go_slowly_no_other_domain_notices)
{
	struct encounter slowly, other;

	if (!self->has_windows)
		SKIP(return, NO_WINDOWS);
	ASSERT_EQ(0, encounter_open(&slowly, 0));
	ASSERT_EQ(0, encounter_open(&other, 1));
	ASSERT_EQ(0, let_go_slowly(&slowly));
	EXPECT_EQ(0, receive_into_plain_memory(&other));
	encounter_end(&other);
	EXPECT_TRUE(region_is_going(NULL))
		TH_LOG("the other domain's end has waited for it");
	encounter_end(&slowly);
}

static bool regions_are(void *num)
{
	return counter("mrs_registered") == *(long *)num;
}

/* Who may pin no more waits for what the works of the same file have left, and no others'. */
TEST_F(beside, of_a_domain_whose_regions_go_slowly_a_file_at_its_memlock_limit_does_not_notice)
{
	struct encounter slowly, other;
	long regions;

	if (!self->has_windows)
		SKIP(return, NO_WINDOWS);
	ASSERT_EQ(0, encounter_open(&slowly, 0));
	ASSERT_EQ(0, encounter_open(&other, 1));
	regions = counter("mrs_registered");
	ASSERT_EQ(0, receive_into_plain_memory(&other));
	ASSERT_TRUE(eventually(regions_are, &regions));
	ASSERT_EQ(0, lose_capability(CAP_IPC_LOCK));
	ASSERT_EQ(0, let_go_slowly(&slowly));
	ASSERT_EQ(0, limit_memlock(0));
	EXPECT_EQ(-ENOMEM, receive_into_plain_memory(&other));
	EXPECT_TRUE(region_is_going(NULL))
		TH_LOG("the other file's post has waited for it");
	encounter_end(&other);
	encounter_end(&slowly);
}

/* Never returns. */
static void wait_for_own_region(int socket)
{
	struct encounter own;

	if (encounter_open(&own, 0) || send_descriptor(socket, own.side.fd) ||
	    lose_capability(CAP_IPC_LOCK) || let_go_slowly(&own) || limit_memlock(0) ||
	    write(socket, "", 1) != 1)
		_exit(1);
	receive_into_plain_memory(&own);
	_exit(2);
}

/* Its file lives on here, so that its end waits for nothing else. */
TEST_F(beside, a_file_at_its_memlock_limit_waits_for_its_own_regions_until_it_is_killed)
{
	int ends[2], fd;
	pid_t child;
	char ready;

	if (!self->has_windows)
		SKIP(return, NO_WINDOWS);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		wait_for_own_region(ends[1]);
	close(ends[1]);
	fd = receive_descriptor(ends[0]);
	ASSERT_LE(0, fd);
	ASSERT_EQ(1, read(ends[0], &ready, 1));
	EXPECT_TRUE(eventually(waits_killably, &child));
	ASSERT_EQ(0, kill(child, SIGKILL));
	EXPECT_EQ(-EINTR, child_result(child));
	EXPECT_TRUE(region_is_going(NULL))
		TH_LOG("the kill has waited for it");
	close(fd);
	close(ends[0]);
}

/* ---- A channel that drains for long ---- */

struct draining {
	pthread_t thread;
	struct side side;	/* its own peer, with a receive that nobody sends to */
	int rc;
};

static bool channel_is_draining(void *arg)
{
	struct visits visits;

	(void)arg;
	return !window_visits("draining", &visits) && visits.entered != visits.left;
}

static void *destroy_channel(void *arg)
{
	struct draining *draining = arg;

	draining->rc = destroy(draining->side.fd, draining->side.channel);
	return NULL;
}

/* In the file of @host, and back when it drains. */
static int draining_begin(struct draining *draining, const struct side *host)
{
	struct side_options options = side_defaults();
	struct side *side = &draining->side;
	int rc = side_share(side, host, &options);

	rc = rc ?: side_handshake(side, &side->endpoint);
	rc = rc ?: post_one(side, work(side, IBCHAN_OP_RECV, 1, 0, 64));
	rc = rc ?: window_widen("draining", slowly_us());
	rc = rc ?: -pthread_create(&draining->thread, NULL, destroy_channel, draining);
	if (rc)
		return rc;
	rc = eventually(channel_is_draining, NULL) ? 0 : -ETIMEDOUT;
	/* Other channels drain as fast as ever. */
	return window_widen("draining", 0) ?: rc;
}

TEST_F(beside, a_file_whose_channel_drains_for_long_takes_events_and_requests_and_answers)
{
	struct ibchan_cmd_listener_create listen = { .out_fd = -1 };
	struct side_options options = side_defaults();
	struct ibchan_cmd_event_take event = { 0 };
	struct ibchan_cmd_query query = { 0 };
	struct side host, broken, asking;
	struct draining draining;

	if (!self->has_windows)
		SKIP(return, NO_WINDOWS);
	ASSERT_EQ(0, side_open(&host, &options));
	if (host.endpoint.link_layer != IBCHAN_LINK_LAYER_ETHERNET) {
		side_close(&host);
		SKIP(return, "requests come by address, and InfiniBand ports have none here");
	}
	ASSERT_EQ(0, side_share(&broken, &host, &options));
	ASSERT_EQ(0, side_ask(&asking, &host, &listen));
	ASSERT_EQ(0, draining_begin(&draining, &host));
	EXPECT_EQ(0, channel_break(broken.fd, broken.channel));
	EXPECT_EQ(0, cmd_event_take(host.fd, &event));
	EXPECT_EQ(broken.channel, event.out_channel);
	EXPECT_EQ(0, cmd_query(host.fd, &query));
	EXPECT_EQ(IBCHAN_CHANNEL_BROKEN, side_state(&broken));
	EXPECT_EQ(0, side_accept(&host, listen.out_listener, listen.out_fd));
	EXPECT_EQ(0, destroy(broken.fd, broken.channel));
	EXPECT_TRUE(channel_is_draining(NULL))
		TH_LOG("a command has waited for the drain");
	pthread_join(draining.thread, NULL);
	EXPECT_EQ(0, draining.rc);
	close(listen.out_fd);
	side_close(&asking);
	side_close(&draining.side);
	side_close(&broken);
	side_close(&host);
}

/* ---- Channels that are looked at, each at its own pace ---- */

#define IDLE	50
#define ANSWERS	10

static int open_loop(struct side *side, __u32 keepalive_ms)
{
	struct side_options options = side_defaults();
	int rc;

	options.options.keepalive_ms = keepalive_ms;
	rc = side_open(side, &options);
	return rc ?: side_handshake(side, &side->endpoint);
}

struct answers {
	const struct side *side;
	__u32 num;
};

static __u32 answers_of(const struct side *side)
{
	struct ibchan_cmd_channel_query query = { 0 };

	side_query(side, &query);
	return query.out.facts.probes_answered;
}

static bool has_answers(void *arg)
{
	const struct answers *answers = arg;

	return answers_of(answers->side) >= answers->num;
}

/* At how many channels the device's worker looks until @side has so many answers; -1: never. */
static long looks_until_answered(const struct side *side)
{
	struct answers answers = { side, answers_of(side) + ANSWERS };
	struct visits before, after;
	bool answered;

	if (window_widen("watched", 1) || window_visits("watched", &before))
		return -1;
	answered = eventually(has_answers, &answers);
	if (window_visits("watched", &after) || window_widen("watched", 0))
		return -1;
	return answered ? (long)(after.entered - before.entered) : -1;
}

TEST_F(beside, a_channel_with_a_short_keepalive_has_no_others_looked_at_as_often)
{
	struct side impatient, idle[IDLE];
	long alone, among;
	int i;

	if (!self->has_windows)
		SKIP(return, NO_WINDOWS);
	ASSERT_EQ(0, open_loop(&impatient, IBCHAN_KEEPALIVE_MIN_MS));
	alone = looks_until_answered(&impatient);
	EXPECT_LE(ANSWERS, alone);
	for (i = 0; i < IDLE; i++)
		ASSERT_EQ(0, open_loop(&idle[i], IBCHAN_KEEPALIVE_MAX_MS));
	among = looks_until_answered(&impatient);
	EXPECT_LE(ANSWERS, among);
	/* A guest that stands still for a while has more of them; all at one pace are 51 times. */
	EXPECT_GE(5 * alone, among)
		TH_LOG("%ld looks, and %ld without the others", among, alone);
	while (i)
		side_close(&idle[--i]);
	side_close(&impatient);
}

TEST(a_window_that_does_not_exist_and_one_too_wide_are_refused)
{
	struct visits visits;

	if (window_visits("found", &visits) == -ENOENT)
		SKIP(return, NO_WINDOWS);
	EXPECT_EQ(-EINVAL, window_visits("no_such_window", &visits));
	EXPECT_EQ(-EINVAL, window_widen("no_such_window", 1));
	EXPECT_EQ(-EINVAL, window_widen("found", 5000001));
	EXPECT_EQ(0, window_widen("found", 0));
}

TEST_HARNESS_MAIN
