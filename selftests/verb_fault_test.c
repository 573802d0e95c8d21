// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each command while the verbs that it calls fail, one after the other, and each status that a
 * work can complete with. Needs the module that `make modules FAULTS=1` builds; kernel-tests
 * runs it in the suite "faults".
 */
#define _GNU_SOURCE
#include "example.h"
#include "test.h"
#include "verb_fault.h"
#include "work.h"
#include "world.h"

#define NO_FAULTS	"the module was not built with FAULTS=1"

/* No driver answers it by itself. */
#define ERROR	(-EXFULL)

/*
 * What a device has not let go of stays pinned for ever, and the test of that spoils the
 * machine: the suite "leaks" of the kernel consumer walks these two.
 */
static const char *const leaks[] = { "mr_dereg", "qp_destroy" };

/*
 * Verbs whose failure their commands must pass on. Where a driver, unlike soft-RoCE's, cannot
 * register a user's memory, fast registration does.
 */
static const struct {
	enum example_index command;
	const char *point;
} passed_on[] = {
	{ EXAMPLE_PD_ALLOC, "pd_alloc" },
	{ EXAMPLE_CQ_CREATE, "cq_create" },
	{ EXAMPLE_MR_REG, "mr_reg_user" },
	{ EXAMPLE_CHANNEL_BUILD, "qp_create" },
	{ EXAMPLE_CHANNEL_BUILD, "qp_init" },
	{ EXAMPLE_CHANNEL_HANDSHAKE, "qp_rtr" },
	{ EXAMPLE_CHANNEL_HANDSHAKE, "qp_rts" },
};

struct sweep {
	struct calm calm;
	struct example_objects objects;
	const struct example *call;
	int held;
	__u64 room[EXAMPLE_ROOM / sizeof(__u64)];
	int points;
	struct verb_point before[VERB_POINTS_MAX];
	struct verb_point after[VERB_POINTS_MAX];
	unsigned char failed[NUM_EXAMPLES][VERB_POINTS_MAX];
};

static bool is_swept(const char *point)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(leaks); i++)
		if (!strcmp(point, leaks[i]))
			return false;
	return strcmp(point, "completion");
}

/*
 * To map for a device fails without an errno, for which memory is taken to be the reason;
 * memory that the device would have to copy cannot be registered.
 */
static bool is_error_of(const char *point, int rc)
{
	if (!strcmp(point, "mr_dma_map"))
		return rc == -ENOMEM;
	if (!strcmp(point, "mr_dma_sync"))
		return rc == -EOPNOTSUPP;
	return rc == ERROR;
}

/* The command alone is watched, and not what makes ready for it or undoes it. */
static int run_watched(struct sweep *sweep)
{
	int rc = example_prepare(sweep->call, &sweep->objects, sweep->room);

	if (rc)
		return rc;
	verb_points(sweep->before);
	rc = cmd_raw(sweep->objects.side.fd, sweep->call->number, sweep->room);
	verb_points(sweep->after);
	if (sweep->call->undo)
		sweep->call->undo(&sweep->objects, sweep->room, rc);
	return rc;
}

static int run_failing(struct sweep *sweep, const char *point, unsigned int nth, int error)
{
	int answer, rc = example_prepare(sweep->call, &sweep->objects, sweep->room);

	if (!rc)
		rc = verb_fault(point, nth, error);
	if (rc)
		return rc;
	answer = cmd_raw(sweep->objects.side.fd, sweep->call->number, sweep->room);
	rc = verb_fault(point, 0, 0);
	if (sweep->call->undo)
		sweep->call->undo(&sweep->objects, sweep->room, answer);
	return rc ? rc : answer;
}

/* One passage of one point fails; then all is well and as it was. */
static int sweep_passage(struct sweep *sweep, const char *point, unsigned int nth)
{
	int answer = run_failing(sweep, point, nth, ERROR);
	int held, rc;

	if (answer && !is_error_of(point, answer))
		return answer;
	rc = example_run(sweep->call, &sweep->objects);
	if (rc)
		return rc;
	held = example_held(&sweep->objects);
	if (held == sweep->held)
		return answer;
	fprintf(stderr, "# %d objects, were %d\n", held, sweep->held);
	return -EUCLEAN;
}

static int sweep_point(struct sweep *sweep, int point, const long *passages)
{
	const char *name = sweep->after[point].name;
	unsigned int nth;
	int rc = 0;

	for (nth = 1; nth <= *passages; nth++) {
		rc = sweep_passage(sweep, name, nth);
		if (rc && !is_error_of(name, rc)) {
			fprintf(stderr, "# %s, passage %u of %s: %d\n", sweep->call->name, nth,
				name, rc);
			return rc;
		}
		if (rc)
			sweep->failed[sweep->call - examples][point] = 1;
	}
	if (*passages)
		printf("# %-24s %-12s %ld%s\n", sweep->call->name, name, *passages,
		       rc ? "" : " answered with 0");
	return 0;
}

static int sweep_call(struct sweep *sweep, const struct example *call)
{
	long passages[VERB_POINTS_MAX];
	int point, rc;

	sweep->call = call;
	/* The first may use up what the objects had from the start. */
	rc = example_run(call, &sweep->objects);
	if (!rc)
		rc = run_watched(sweep);
	sweep->held = example_held(&sweep->objects);
	for (point = 0; point < sweep->points; point++)
		passages[point] = sweep->after[point].passed - sweep->before[point].passed;
	for (point = 0; point < sweep->points && !rc; point++)
		if (is_swept(sweep->after[point].name))
			rc = sweep_point(sweep, point, &passages[point]);
	return rc;
}

static int point_index(const struct sweep *sweep, const char *name)
{
	int point;

	for (point = 0; point < sweep->points; point++)
		if (!strcmp(sweep->before[point].name, name))
			return point;
	return -ENOENT;
}

FIXTURE(verb_fault)
{
	struct sweep sweep;
	struct side_options options;
	struct side side;	/* its own peer */
};

FIXTURE_SETUP(verb_fault)
{
	self->sweep.points = verb_points(self->sweep.before);
	if (self->sweep.points == -ENOENT)
		return;	/* each test says so */
	ASSERT_LT(0, self->sweep.points);
	ASSERT_EQ(0, calm_begin(&self->sweep.calm));
	ASSERT_EQ(0, example_objects_open(&self->sweep.objects));
	self->options = side_defaults();
	/* The completion that fails is the next one of any channel, also that of a probe. */
	self->options.options.keepalive_ms = IBCHAN_KEEPALIVE_OFF;
	ASSERT_EQ(0, side_open(&self->side, &self->options));
	ASSERT_EQ(0, side_handshake(&self->side, &self->side.endpoint));
}

FIXTURE_TEARDOWN(verb_fault)
{
	if (self->sweep.points < 0)
		return;
	side_close(&self->side);
	example_objects_close(&self->sweep.objects);
	EXPECT_EQ(0, calm_end(&self->sweep.calm));
}

static bool has_failed(const struct sweep *sweep, enum example_index command, const char *name)
{
	int point = point_index(sweep, name);

	return point >= 0 && sweep->failed[command][point];
}

static bool is_passed_on(const struct _test_data_verb_fault *self, unsigned int i)
{
	if (has_failed(&self->sweep, passed_on[i].command, passed_on[i].point))
		return true;
	return passed_on[i].command == EXAMPLE_MR_REG && !is_soft_roce(&self->side) &&
	       has_failed(&self->sweep, EXAMPLE_MR_REG, "mr_alloc");
}

TEST_F(verb_fault, of_each_command_is_answered_and_changes_nothing)
{
	unsigned int i;

	if (self->sweep.points < 0)
		SKIP(return, NO_FAULTS);
	for_each_example(i, &self->sweep.objects) {
		EXPECT_EQ(0, sweep_call(&self->sweep, &examples[i]))
			TH_LOG("%s", examples[i].name);
	}
	for (i = 0; i < ARRAY_SIZE(passed_on); i++) {
		EXPECT_TRUE(is_passed_on(self, i))
			TH_LOG("%s, %s", examples[passed_on[i].command].name,
			       passed_on[i].point);
	}
	fflush(stdout);
}

#define BATCH	8
#define BYTES	64
#define LONG	(40 * 4096)

/* Posts a batch of which the device takes @taken: those complete once, the others never. */
static int post_in_part(struct side *side, int opcode, unsigned int taken)
{
	struct ibchan_submit_wr wrs[BATCH] = {};
	struct ibchan_cmd_submit cmd = submission(wrs, BATCH);
	unsigned int i;
	int rc;

	for (i = 0; i < BATCH; i++) {
		wrs[i] = work(side, opcode, i, i * BYTES, BYTES);
		if (opcode == IBCHAN_OP_WRITE)
			work_at(&wrs[i], side, 8192 + i * BYTES);
	}
	rc = verb_fault(opcode == IBCHAN_OP_RECV ? "post_recv" : "post_send", taken + 1, ERROR);
	if (rc)
		return rc;
	rc = cmd_submit(side->fd, &cmd);
	if (rc != ERROR || cmd.entry_num != taken ||
	    cmd.reason.code != IBCHAN_REASON_POST_FAILED || cmd.reason.wr != taken)
		return rc ? rc : -ENODATA;
	/* The rest can be posted again at once, so its ranges are free. */
	cmd = submission(wrs + taken, BATCH - taken);
	rc = cmd_submit(side->fd, &cmd);
	return rc ? rc : ring_wait(side->ring, 0, 0);
}

/* soft-RoCE has a socket for each queue pair, and no other way to say what it lacks. */
TEST_F(verb_fault, for_want_of_memory_for_a_socket_is_told_as_enomem)
{
	if (self->sweep.points < 0)
		SKIP(return, NO_FAULTS);
	self->sweep.call = &examples[EXAMPLE_CHANNEL_BUILD];
	EXPECT_EQ(-ENOMEM, run_failing(&self->sweep, "qp_create", 1, -ENFILE));
	EXPECT_EQ(ERROR, run_failing(&self->sweep, "qp_create", 1, ERROR));
	EXPECT_EQ(0, example_run(self->sweep.call, &self->sweep.objects));
}

TEST_F(verb_fault, of_a_post_leaves_the_rest_of_the_batch_to_be_posted_again)
{
	static const unsigned int taken[] = { 0, 1, BATCH / 2, BATCH - 1 };
	unsigned int t, i;

	if (self->sweep.points < 0)
		SKIP(return, NO_FAULTS);
	for (t = 0; t < ARRAY_SIZE(taken); t++) {
		ASSERT_EQ(0, post_in_part(&self->side, IBCHAN_OP_WRITE, taken[t]));
		for (i = 0; i < BATCH; i++)
			ASSERT_EQ(0, succeed(&self->side, i, NULL));
		ASSERT_EQ(0, ring_surplus(self->side.ring));
		ASSERT_EQ(0, post_in_part(&self->side, IBCHAN_OP_RECV, taken[t]));
		for (i = 0; i < BATCH; i++) {
			ASSERT_EQ(0, post_one(&self->side,
					      work(&self->side, IBCHAN_OP_SEND, 100 + i,
						   16384, BYTES)));
			ASSERT_EQ(0, succeed(&self->side, 100 + i, NULL));
			ASSERT_EQ(0, succeed(&self->side, i, NULL));
		}
		ASSERT_EQ(0, ring_surplus(self->side.ring));
	}
}

/* Nothing is posted, or the memory was made ready at the second try. */
static int post_plain_failing(struct side *side, struct ibchan_submit_wr wr, const char *point)
{
	int rc = verb_fault(point, 1, ERROR);

	if (!rc)
		rc = post_one(side, wr);
	if (!rc)
		rc = succeed(side, wr.wr_id, NULL);
	else if (is_error_of(point, rc))
		rc = 0;
	return rc ? rc : (int)ring_surplus(side->ring);
}

TEST_F(verb_fault, of_plain_memory_loses_no_work_and_no_page)
{
	static const char *const points[] = { "mr_alloc", "mr_map", "mr_dma_map" };
	static unsigned char plain[BYTES];
	struct ibchan_submit_wr wr = work(&self->side, IBCHAN_OP_WRITE, 1, address(plain), BYTES);
	unsigned int i, seen = 0;
	long passed;

	if (self->sweep.points < 0)
		SKIP(return, NO_FAULTS);
	wr.sge.mr = IBCHAN_MR_PLAIN;
	work_at(&wr, &self->side, 0);
	for (i = 0; i < ARRAY_SIZE(points); i++) {
		passed = verb_passed(points[i]);
		ASSERT_EQ(0, post_one(&self->side, wr));
		ASSERT_EQ(0, succeed(&self->side, 1, NULL));
		if (verb_passed(points[i]) == passed)
			continue;
		seen++;
		EXPECT_EQ(0, post_plain_failing(&self->side, wr, points[i]))
			TH_LOG("%s", points[i]);
		ASSERT_EQ(0, post_one(&self->side, wr));
		ASSERT_EQ(0, succeed(&self->side, 1, NULL));
	}
	EXPECT_LT(0, seen);
}

/* With a step that fails, or does not happen; what is kept for the next one is right. */
static int post_plain_twice(struct side *side, const char *point, const unsigned char *from)
{
	struct ibchan_submit_wr wr = work(side, IBCHAN_OP_WRITE, 1, address(from), LONG);
	int rc;

	wr.sge.mr = IBCHAN_MR_PLAIN;
	work_at(&wr, side, 0);
	rc = verb_fault(point, 1, ERROR);
	if (!rc && !post_one(side, wr))
		rc = succeed(side, 1, NULL);
	rc = rc ? rc : verb_fault(point, 0, 0);
	rc = rc ? rc : post_one(side, wr);
	rc = rc ? rc : succeed(side, 1, NULL);
	rc = rc ? rc : same_bytes(from, side->memory, LONG);
	return rc ? rc : (int)ring_surplus(side->ring);
}

TEST_F(verb_fault, of_long_plain_memory_spoils_nothing_that_is_kept)
{
	static const char *const points[] = { "mr_alloc", "mr_map", "mr_dma_map", "mr_dma_sync" };
	static unsigned char plain[LONG + 4096];
	struct side_options options = self->options;
	struct side side;
	unsigned int i, n;

	if (self->sweep.points < 0)
		SKIP(return, NO_FAULTS);
	options.memory = LONG;
	ASSERT_EQ(0, side_open(&side, &options));
	ASSERT_EQ(0, side_handshake(&side, &side.endpoint));
	for (i = 0; i < ARRAY_SIZE(points); i++)
		/* Elsewhere in the pages at each second time, so that all is made anew. */
		for (n = 0; n < 4; n++) {
			pattern(plain, sizeof(plain), 4 * i + n);
			EXPECT_EQ(0, post_plain_twice(&side, points[i], plain + n / 2))
				TH_LOG("%s", points[i]);
		}
	side_close(&side);
}

#define STATUS_ERROR(nr, NAME, error, CLASS, hint) \
	[nr] = error,
static const int status_errors[] = {
	IBCHAN_STATUSES(STATUS_ERROR)
};

struct ending {
	unsigned int named;	/* completions with the status that was asked for */
	unsigned int others;
};

static int end_of(struct side *side, __u64 wr_id, unsigned int status, struct ending *ending)
{
	struct ibchan_cqe cqe;
	int rc = ring_complete(side->ring, wr_id, &cqe);

	if (rc)
		return rc;
	if (cqe.status == status && status != IBCHAN_STATUS_WR_FLUSH_ERR)
		ending->named++;
	else
		ending->others++;
	return -cqe.error == status_errors[cqe.status] ? 0 : -EBADMSG;
}

/* A receive and the send that it gets; the @nth of the two completions has the status. */
static int exchange_with_status(struct side *side, unsigned int nth, unsigned int status,
				struct ending *ending)
{
	int rc = post_one(side, work(side, IBCHAN_OP_RECV, 1, 0, BYTES));

	if (!rc)
		rc = verb_fault("completion", nth, status);
	if (!rc)
		rc = post_one(side, work(side, IBCHAN_OP_SEND, 2, 4096, BYTES));
	if (!rc)
		rc = end_of(side, 1, status, ending);
	return rc ? rc : end_of(side, 2, status, ending);
}

static bool is_broken(void *side)
{
	return side_state(side) == IBCHAN_CHANNEL_BROKEN;
}

static int another_channel(struct side *side, const struct side_options *options)
{
	int rc = destroy(side->fd, side->channel);

	if (!rc)
		rc = side_channel(side, options);
	return rc ? rc : side_handshake(side, &side->endpoint);
}

TEST_F(verb_fault, of_a_completion_is_told_once_with_each_status_and_breaks_the_channel)
{
	struct ibchan_cmd_channel_query query;
	unsigned int status, nth;

	if (self->sweep.points < 0)
		SKIP(return, NO_FAULTS);
	for (status = 1; status < ARRAY_SIZE(status_errors); status++) {
		for (nth = 1; nth <= 2; nth++) {
			struct ending ending = {};

			ASSERT_EQ(0, exchange_with_status(&self->side, nth, status, &ending))
				TH_LOG("status %u", status);
			EXPECT_EQ(status != IBCHAN_STATUS_WR_FLUSH_ERR, ending.named);
			ASSERT_TRUE(eventually(is_broken, &self->side));
			ASSERT_EQ(0, side_query(&self->side, &query));
			EXPECT_EQ(status, query.out.status);
			EXPECT_EQ(status_errors[status], query.out.error);
			EXPECT_EQ(0, ring_surplus(self->side.ring));
			EXPECT_EQ(-ESHUTDOWN,
				  post_one(&self->side, work(&self->side, IBCHAN_OP_SEND, 3,
							     0, BYTES)));
			ASSERT_EQ(0, another_channel(&self->side, &self->options));
			ASSERT_EQ(0, exchange(&self->side, &self->side));
		}
	}
}

TEST_F(verb_fault, refuses_a_point_and_an_error_that_do_not_exist)
{
	if (self->sweep.points < 0)
		SKIP(return, NO_FAULTS);
	EXPECT_EQ(-EINVAL, verb_fault("no_such_verb", 1, -EIO));
	EXPECT_EQ(-EINVAL, verb_fault("qp_create", 1, EIO));
	EXPECT_EQ(-EINVAL, verb_fault("qp_create", 1, 0));
	EXPECT_EQ(-EINVAL, verb_fault("qp_create", 1, -4096));
	EXPECT_EQ(-EINVAL, verb_fault("completion", 1, -EIO));
	EXPECT_EQ(-EINVAL, verb_fault("completion", 1, 22));
}

TEST_HARNESS_MAIN
