// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each command while the 1st, 2nd, ... allocation or copy that it makes fails, until it makes
 * no more: it answers with what the contract says, changes nothing, and works the next time.
 *
 * Needs a kernel with CONFIG_FAULT_INJECTION, FAILSLAB, FAIL_PAGE_ALLOC and
 * FAULT_INJECTION_USERCOPY.
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <sys/mman.h>

#include "example.h"
#include "fail_nth.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define NO_FAULTS	"this kernel injects no faults"

/* Far more than any call has. */
#define MAX_POINTS	2000

/* What a command may do that can fail. */
enum needs {
	COPIES = 1,	/* from and to the caller's memory */
	ALLOCATES = 2,
	MAPS = 4,	/* for the device */
	PINS = 8,	/* the caller's pages */
};

#define NEEDS_query		COPIES
#define NEEDS_device_query	COPIES
#define NEEDS_port_query	COPIES
#define NEEDS_device_open	(COPIES | ALLOCATES)
#define NEEDS_pd_alloc		(COPIES | ALLOCATES)
#define NEEDS_mr_reg		(COPIES | ALLOCATES | MAPS | PINS)
#define NEEDS_cq_create		(COPIES | ALLOCATES)
#define NEEDS_channel_build	(COPIES | ALLOCATES)
#define NEEDS_channel_handshake	(COPIES | ALLOCATES)
#define NEEDS_channel_query	COPIES
#define NEEDS_channel_break	COPIES
#define NEEDS_submit		COPIES
#define NEEDS_destroy		COPIES
#define NEEDS_mr_reg_dmabuf	(COPIES | ALLOCATES | MAPS)
#define NEEDS_channel_connect	(COPIES | ALLOCATES)
#define NEEDS_channel_connection COPIES
#define NEEDS_listener_create	(COPIES | ALLOCATES)
#define NEEDS_request_take	(COPIES | ALLOCATES)
#define NEEDS_request_accept	(COPIES | ALLOCATES)
#define NEEDS_request_reject	(COPIES | ALLOCATES)
#define NEEDS_event_take	COPIES
#define NEEDS_route_query	(COPIES | ALLOCATES)
#define NEEDS_gid_query		COPIES
#define NEEDS_channel_history	(COPIES | ALLOCATES)

#define NEEDS(nr, NAME, name) NEEDS_##name,
static const unsigned int needs[NUM_EXAMPLES] = {
	IBCHAN_COMMANDS(NEEDS)
};

/* What a sweep over the points of one call has seen. */
struct tally {
	unsigned int points;
	unsigned int no_memory;	/* as sockets and routes say it, too */
	unsigned int no_copy;
	unsigned int tolerated;
};

/* What exists, to be compared. */
struct snapshot {
	int held;
	long pins;
	long counters[7];
};

static const char *const gauges[] = {
	"pds", "mrs_registered", "mr_pages", "cqs", "channels", "rings", "leaked",
};

struct sweep {
	int fd;
	struct calm calm;
	struct example_objects objects;
	struct side looped;	/* its own peer; in the file of the objects */
	const struct example *call;
	struct snapshot good;
	struct tally tally;
	int failing;	/* a point of the call under way may fail */
	int lost;	/* works, or their completions */
	__u64 room[EXAMPLE_ROOM / sizeof(__u64)];
};

static void take_snapshot(const struct sweep *sweep, struct snapshot *snapshot)
{
	unsigned int i;

	snapshot->held = example_held(&sweep->objects);
	snapshot->pins = pins();
	for (i = 0; i < ARRAY_SIZE(gauges); i++)
		snapshot->counters[i] = counter(gauges[i]);
}

/*
 * What a worker frees may still be there when the first snapshot is taken, hence not more
 * instead of equal; then what is wanted is as little as that.
 */
static bool all_is_back(void *arg)
{
	struct sweep *sweep = arg;
	struct snapshot now;
	unsigned int i;

	take_snapshot(sweep, &now);
	if (now.held != sweep->good.held || now.pins > sweep->good.pins)
		return false;
	for (i = 0; i < ARRAY_SIZE(gauges); i++)
		if (now.counters[i] > sweep->good.counters[i])
			return false;
	sweep->good = now;
	return true;
}

static void print_difference(const struct sweep *sweep)
{
	struct snapshot now;
	unsigned int i;

	take_snapshot(sweep, &now);
	fprintf(stderr, "# objects %d, were %d; pins %ld, were %ld\n", now.held,
		sweep->good.held, now.pins, sweep->good.pins);
	for (i = 0; i < ARRAY_SIZE(gauges); i++)
		if (now.counters[i] != sweep->good.counters[i])
			fprintf(stderr, "# %s %ld, was %ld\n", gauges[i], now.counters[i],
				sweep->good.counters[i]);
}

/*
 * A command that makes no object has been carried out when only its answer could not be
 * written.
 */
static int was_carried_out(struct sweep *sweep)
{
	const struct example *call = sweep->call;

	switch (call->number) {
	case IBCHAN_CMD_CHANNEL_HANDSHAKE:
	case IBCHAN_CMD_CHANNEL_CONNECT:
	case IBCHAN_CMD_REQUEST_ACCEPT:
		return side_state(&sweep->objects.side) != IBCHAN_CHANNEL_PREPARED;
	case IBCHAN_CMD_REQUEST_REJECT:
		destroy(sweep->objects.side.fd, sweep->objects.request);
		return 1;
	default:
		return 0;
	}
}

static void undo(struct sweep *sweep, int rc)
{
	if (rc == -EFAULT && was_carried_out(sweep))
		rc = 0;
	if (sweep->call->undo)
		sweep->call->undo(&sweep->objects, sweep->room, rc);
}

/* Runs the call while its @nth point fails: 1 if there is such a one, 0, or -errno. */
static int run_failing(struct sweep *sweep, unsigned int nth, int *answer)
{
	int rc = example_prepare(sweep->call, &sweep->objects, sweep->room);
	int fired;

	if (!rc)
		rc = fail_nth_arm(sweep->fd, nth);
	if (rc)
		return rc;
	*answer = cmd_raw(sweep->objects.side.fd, sweep->call->number, sweep->room);
	fired = fail_nth_disarm(sweep->fd);
	sweep->failing = 1;
	undo(sweep, *answer);
	sweep->failing = 0;
	return fired;
}

static int count(struct tally *tally, int answer)
{
	tally->points++;
	switch (answer) {
	case 0:
		tally->tolerated++;
		return 0;
	case -ENOMEM:
	case -ENFILE:
	case -ENOBUFS:
		tally->no_memory++;
		return 0;
	case -EFAULT:
		tally->no_copy++;
		return 0;
	default:
		return -EBADMSG;
	}
}

/* The same call without a fault, after which everything is as it was. */
static int run_well(struct sweep *sweep)
{
	int rc = example_run(sweep->call, &sweep->objects);

	if (rc)
		return rc;
	if (!sweep->lost && eventually(all_is_back, sweep))
		return 0;
	print_difference(sweep);
	return -EUCLEAN;
}

static int sweep_point(struct sweep *sweep, unsigned int nth)
{
	int answer = 0;
	int fired = run_failing(sweep, nth, &answer);
	int rc = 0;

	if (fired == 1)
		rc = count(&sweep->tally, answer);
	else if (!fired && answer)
		rc = answer;
	if (rc)
		fprintf(stderr, "# %s answers %d to point %u\n", sweep->call->name, answer, nth);
	if (fired < 0 || rc)
		return fired < 0 ? fired : rc;
	rc = run_well(sweep);
	if (rc)
		fprintf(stderr, "# %s after point %u (%d): %d\n", sweep->call->name, nth, answer,
			rc);
	return rc ? rc : fired;
}

/* 0 after the last point, or what went wrong. */
static int sweep_call(struct sweep *sweep, const struct example *call)
{
	unsigned int nth;
	int rc;

	sweep->call = call;
	sweep->lost = 0;
	memset(&sweep->tally, 0, sizeof(sweep->tally));
	/* The first may use up what the objects had from the start. */
	rc = example_run(call, &sweep->objects);
	if (!rc)
		rc = example_run(call, &sweep->objects);
	if (rc)
		return rc;
	take_snapshot(sweep, &sweep->good);
	for (nth = 1; nth <= MAX_POINTS; nth++) {
		rc = sweep_point(sweep, nth);
		if (rc <= 0)
			return rc;
	}
	return -ELOOP;
}

static void print_header(void)
{
	printf("# %-28s %6s %6s %6s %9s  %s\n", "command", "points", "ENOMEM", "EFAULT",
	       "tolerated", "can");
}

static void print_tally(const char *name, const struct tally *tally, unsigned int can)
{
	printf("# %-28s %6u %6u %6u %9u %s%s%s%s\n", name, tally->points, tally->no_memory,
	       tally->no_copy, tally->tolerated, can & COPIES ? " copy" : "",
	       can & ALLOCATES ? " allocate" : "", can & MAPS ? " map" : "",
	       can & PINS ? " pin" : "");
	/* The harness ends each test with _exit(). */
	fflush(stdout);
}

/* Calls beside the one example of each command, which is as small as it can be. */

#define WORKS		6
#define WORK_BYTES	48

static struct ibchan_submit_wr works[WORKS];
static struct ibchan_submit_sge elements[2];
static unsigned char plain[WORK_BYTES];

static struct sweep *sweep_of(struct example_objects *objects)
{
	return (struct sweep *)((char *)objects - offsetof(struct sweep, objects));
}

static int looped_connect(struct sweep *sweep)
{
	struct side_options options = side_defaults();
	int rc;

	options.params.max_inline_data = WORK_BYTES;
	rc = side_channel(&sweep->looped, &options);
	return rc ? rc : side_handshake(&sweep->looped, &sweep->looped.endpoint);
}

/* Three receives, and sends from two elements, from plain memory, and inline. */
static int fill_works(struct example_objects *objects, void *arg)
{
	const struct side *side = &sweep_of(objects)->looped;
	unsigned int i;

	for (i = 0; i < 3; i++)
		works[i] = work(side, IBCHAN_OP_RECV, i, i * WORK_BYTES, WORK_BYTES);
	for (; i < WORKS; i++)
		works[i] = work(side, IBCHAN_OP_SEND, i, 4096, WORK_BYTES);
	elements[0] = (struct ibchan_submit_sge){ 4096, 16, side->mr };
	elements[1] = (struct ibchan_submit_sge){ 8192, 32, side->mr };
	work_elements(&works[3], elements, 2);
	for (i = 4; i < WORKS; i++) {
		works[i].sge.offset = address(plain);
		works[i].sge.mr = IBCHAN_MR_PLAIN;
	}
	works[5].flags = IBCHAN_WR_INLINE;
	*(struct ibchan_cmd_submit *)arg = submission(works, WORKS);
	((struct ibchan_cmd_submit *)arg)->size = sizeof(struct ibchan_cmd_submit);
	return 0;
}

/* Each of the first @n works completes once, and no other; well: without an error. */
static int collect(struct sweep *sweep, unsigned int n)
{
	unsigned int i;
	int status;

	for (i = 0; i < n; i++) {
		status = status_of(&sweep->looped, i);
		if (status < 0 || (status && !sweep->failing))
			return -ENODATA;
	}
	return ring_surplus(sweep->looped.ring) ? -EBADMSG : 0;
}

/* Where the command itself could not be copied, nothing says how many were posted. */
static int collect_any(struct sweep *sweep)
{
	unsigned int surplus = ring_surplus(sweep->looped.ring);

	sweep->looped.ring->stashed = 0;
	return surplus > WORKS ? -ENODATA : 0;
}

static void undo_works(struct example_objects *objects, void *arg, int rc)
{
	unsigned int accepted = ((struct ibchan_cmd_submit *)arg)->entry_num;
	struct sweep *sweep = sweep_of(objects);
	int lost;

	if (rc)
		destroy(objects->side.fd, sweep->looped.channel);
	lost = rc == -EFAULT ? collect_any(sweep) : collect(sweep, accepted);
	if (rc || side_state(&sweep->looped) != IBCHAN_CHANNEL_CONNECTED) {
		destroy(objects->side.fd, sweep->looped.channel);
		if (looped_connect(sweep))
			lost = -ENOTCONN;
	}
	if (lost)
		fprintf(stderr, "# %u works accepted, answer %d: %d\n", accepted, rc, lost);
	if (lost)
		sweep->lost = lost;
}

static int fill_fresh_memory(struct example_objects *objects, void *arg)
{
	struct ibchan_cmd_mr_reg *cmd = arg;
	void *memory = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);

	if (memory == MAP_FAILED)
		return -errno;
	cmd->addr = address(memory);
	cmd->length = 65536;
	cmd->pd = objects->side.pd;
	cmd->access = IBCHAN_ACCESS_SHARED;
	return 0;
}

static void undo_fresh_memory(struct example_objects *objects, void *arg, int rc)
{
	struct ibchan_cmd_mr_reg *cmd = arg;

	examples[EXAMPLE_MR_REG].undo(objects, arg, rc);
	munmap((void *)(uintptr_t)cmd->addr, cmd->length);
}

static int fill_shared_dmabuf(struct example_objects *objects, void *arg)
{
	struct ibchan_cmd_mr_reg_dmabuf *cmd = arg;
	int rc = examples[EXAMPLE_MR_REG_DMABUF].fill(objects, arg);

	cmd->access = IBCHAN_ACCESS_SHARED;
	return rc;
}

static void undo_shared_dmabuf(struct example_objects *objects, void *arg, int rc)
{
	examples[EXAMPLE_MR_REG_DMABUF].undo(objects, arg, rc);
}

static int fill_events(struct example_objects *objects, void *arg)
{
	static struct ibchan_history_event events[8];
	struct ibchan_cmd_channel_history *cmd = arg;
	int rc = examples[EXAMPLE_CHANNEL_HISTORY].fill(objects, arg);

	cmd->channel = objects->eventful;
	cmd->entries = address(events);
	cmd->entry_num = ARRAY_SIZE(events);
	return rc;
}

#define MORE(text, NAME, cmd_name, what)				\
	.name = text, .number = IBCHAN_CMD_##NAME,			\
	.size = sizeof(struct ibchan_cmd_##cmd_name), .fill = fill_##what

static const struct {
	struct example call;
	unsigned int needs;
} more[] = {
	{ { MORE("submit six works", SUBMIT, submit, works), .undo = undo_works },
	  COPIES | ALLOCATES | MAPS | PINS },
	{ { MORE("mr_reg shared, fresh", MR_REG, mr_reg, fresh_memory),
	    .undo = undo_fresh_memory }, COPIES | ALLOCATES | MAPS | PINS },
	{ { MORE("mr_reg_dmabuf shared", MR_REG_DMABUF, mr_reg_dmabuf, shared_dmabuf),
	    .undo = undo_shared_dmabuf }, COPIES | ALLOCATES | MAPS },
	{ { MORE("channel_history of events", CHANNEL_HISTORY, channel_history, events) },
	  COPIES | ALLOCATES },
};

FIXTURE(fail_nth)
{
	struct sweep sweep;
};

FIXTURE_SETUP(fail_nth)
{
	struct side_options options = side_defaults();

	self->sweep.fd = fail_nth_open();
	if (self->sweep.fd == -ENOENT)
		return;	/* each test says so */
	ASSERT_LE(0, self->sweep.fd);
	ASSERT_EQ(0, calm_begin(&self->sweep.calm));
	ASSERT_EQ(0, example_objects_open(&self->sweep.objects));
	ASSERT_EQ(0, side_share(&self->sweep.looped, &self->sweep.objects.side, &options));
	ASSERT_EQ(0, destroy(self->sweep.looped.fd, self->sweep.looped.channel));
	ASSERT_EQ(0, looped_connect(&self->sweep));
}

FIXTURE_TEARDOWN(fail_nth)
{
	if (self->sweep.fd < 0)
		return;
	side_close(&self->sweep.looped);
	example_objects_close(&self->sweep.objects);
	EXPECT_EQ(0, calm_end(&self->sweep.calm));
	close(self->sweep.fd);
}

/* 1 if what a call was seen to do is what it can do; what is tolerated was an allocation. */
static int fits(const struct tally *tally, unsigned int can)
{
	unsigned int allocations = tally->no_memory + tally->tolerated;

	return tally->no_copy && !allocations == !(can & ALLOCATES);
}

TEST_F(fail_nth, of_each_command_is_answered_and_changes_nothing)
{
	const struct tally *tally = &self->sweep.tally;
	unsigned int i;

	if (self->sweep.fd < 0)
		SKIP(return, NO_FAULTS);
	print_header();
	for_each_example(i, &self->sweep.objects) {
		EXPECT_EQ(0, sweep_call(&self->sweep, &examples[i]))
			TH_LOG("%s", examples[i].name);
		print_tally(examples[i].name, tally, needs[i]);
		EXPECT_TRUE(fits(tally, needs[i]))
			TH_LOG("%s", examples[i].name);
	}
}

TEST_F(fail_nth, of_larger_calls_is_answered_and_changes_nothing)
{
	const struct tally *tally = &self->sweep.tally;
	unsigned int i;

	if (self->sweep.fd < 0)
		SKIP(return, NO_FAULTS);
	print_header();
	for (i = 0; i < ARRAY_SIZE(more); i++) {
		EXPECT_EQ(0, sweep_call(&self->sweep, &more[i].call))
			TH_LOG("%s", more[i].call.name);
		print_tally(more[i].call.name, tally, more[i].needs);
		EXPECT_TRUE(fits(tally, more[i].needs))
			TH_LOG("%s", more[i].call.name);
	}
}

/* From open to close, in one go. */
static int live(struct pair *pair)
{
	struct side_options options = side_defaults();
	int rc = pair_open(pair, PAIR_ONE_CQ, &options);

	if (!rc)
		rc = exchange(pair->a, pair->b);
	pair_close(pair);
	return rc;
}

/* What the first call that a fault reaches may answer; EIO: a work's status said more. */
static bool is_good_answer(int rc)
{
	return !rc || rc == -ENOMEM || rc == -EFAULT || rc == -ENFILE || rc == -ENOBUFS ||
	       rc == -EIO;
}

/* 1 while there is an @nth point, 0 behind the last one, or what went wrong. */
static int live_failing(struct pair *pair, int fd, unsigned int nth, struct tally *tally)
{
	struct calm calm;
	int answer, fired;
	int rc = calm_begin(&calm);

	if (!rc)
		rc = fail_nth_arm(fd, nth);
	if (rc)
		return rc;
	answer = live(pair);
	fired = fail_nth_disarm(fd);
	if (fired == 1 && answer != -EIO)
		count(tally, answer);
	rc = calm_end(&calm);
	if (!is_good_answer(answer) || (!fired && answer) || rc)
		fprintf(stderr, "# a life with point %u answers %d and leaves %d\n", nth, answer,
			rc);
	if (!is_good_answer(answer))
		return answer;
	return rc ? rc : fired;
}

TEST(fail_nth_of_a_whole_life_leaves_nothing_behind)
{
	static struct pair pair;
	struct tally tally = {};
	unsigned int nth;
	int rc = 1, fd = fail_nth_open();

	if (fd == -ENOENT)
		SKIP(return, NO_FAULTS);
	ASSERT_LE(0, fd);
	/* What is set up once and for all does not count. */
	ASSERT_EQ(0, live(&pair));
	for (nth = 1; rc == 1 && nth < MAX_POINTS; nth++) {
		rc = live_failing(&pair, fd, nth, &tally);
		ASSERT_LE(0, rc);
		/* Each later life is the proof for what lies before its own point. */
		if (!(nth % 8))
			ASSERT_EQ(0, live(&pair)) TH_LOG("after point %u", nth);
	}
	EXPECT_EQ(0, rc);
	print_header();
	print_tally("open to close", &tally, COPIES | ALLOCATES | MAPS | PINS);
	EXPECT_LT(0, tally.no_memory);
	EXPECT_LT(0, tally.no_copy);
	close(fd);
}

TEST_HARNESS_MAIN
