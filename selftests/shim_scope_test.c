// SPDX-License-Identifier: GPL-2.0-only
/*
 * libibchan's scopes: two channels, each with a cq of its own.
 *
 * A thread that leaves a block early must be seen to wait for what is in flight: the peer
 * sends only once that thread sleeps in the kernel.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/end.h"
#include "test.h"
#include "world.h"

FIXTURE(scope)
{
	struct calm calm;
	struct ibchan_context *context;
	struct end a, b;
};

FIXTURE_SETUP(scope)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, open_ends(&self->a, &self->b, &self->context));
}

FIXTURE_TEARDOWN(scope)
{
	EXPECT_EQ(0, close_ends(&self->a, &self->b, self->context));
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* A receive at place 0, 1, ... of @end, 16 bytes long. */
static int post_in(struct ibchan_scope *scope, struct ibchan_pending *pending,
		   const struct end *end, int place)
{
	struct ibchan_submit_sge sge = sge_at(end, 16 * place, 16);
	struct ibchan_submit_wr wr = wr_of(end, IBCHAN_OP_RECV, &sge);

	wr.wr_id = place;
	return ibchan_scope_post(scope, pending, end->channel, &wr, NULL);
}

static int send_bytes(const struct end *from, size_t bytes)
{
	struct ibchan_submit_sge out = sge_at(from, HALF, bytes);

	return ibchan_send(from->channel, &out, 1, IBCHAN_TIMEOUT_NEVER, NULL);
}

/* The ways out of a block, each a function that posts and leaves. */
struct exit {
	const char *name;
	int (*leave)(struct ibchan_scope *scope, struct ibchan_pending *pending,
		     const struct end *end);
};

static int by_its_end(struct ibchan_scope *scope, struct ibchan_pending *pending,
		      const struct end *end)
{
	int rc = -1;

	ibchan_scoped(scope)
		rc = post_in(scope, pending, end, 0);
	return rc;
}

static int by_return(struct ibchan_scope *scope, struct ibchan_pending *pending,
		     const struct end *end)
{
	ibchan_scoped(scope) {
		if (!post_in(scope, pending, end, 0))
			return 0;
	}
	return -1;
}

static int by_break(struct ibchan_scope *scope, struct ibchan_pending *pending,
		    const struct end *end)
{
	int rc = -1;

	ibchan_scoped(scope) {
		rc = post_in(scope, pending, end, 0);
		if (!rc)
			break;
		rc = -2;
	}
	return rc;
}

static int by_continue(struct ibchan_scope *scope, struct ibchan_pending *pending,
		       const struct end *end)
{
	int rc = -1;

	ibchan_scoped(scope) {
		rc = post_in(scope, pending, end, 0);
		if (!rc)
			continue;
		rc = -2;
	}
	return rc;
}

static int by_goto(struct ibchan_scope *scope, struct ibchan_pending *pending,
		   const struct end *end)
{
	ibchan_scoped(scope) {
		if (!post_in(scope, pending, end, 0))
			goto out;
	}
	return -1;
out:
	return 0;
}

static int by_the_plain_calls(struct ibchan_scope *scope, struct ibchan_pending *pending,
			      const struct end *end)
{
	int rc;

	ibchan_scope_begin(scope);
	rc = post_in(scope, pending, end, 0);
	ibchan_scope_end(scope);
	return rc;
}

static const struct exit exits[] = {
	{ "end", by_its_end },
	{ "return", by_return },
	{ "break", by_break },
	{ "continue", by_continue },
	{ "goto", by_goto },
	{ "begin and end", by_the_plain_calls },
	{ NULL, NULL },
};

TEST_F(scope, completes_what_is_in_flight_on_every_way_out)
{
	struct ibchan_pending pending = { 0 };
	struct ibchan_scope scope;
	pthread_t thread;
	int i;

	for (i = 0; exits[i].leave; i++) {
		struct late_send late = { &self->a, sge_at(&self->a, 0, i + 1), gettid(), -1 };

		TH_LOG("%s", exits[i].name);
		memset(&scope, 0xff, sizeof(scope));
		ASSERT_EQ(0, pthread_create(&thread, NULL, send_late, &late));
		EXPECT_EQ(0, exits[i].leave(&scope, &pending, &self->b));
		EXPECT_EQ(0, ibchan_pending_result(&pending));
		EXPECT_EQ(i + 1, pending.completion.bytes);
		EXPECT_EQ(1, scope.auto_polled);
		EXPECT_EQ(0, scope.num_failed);
		EXPECT_EQ(0, ibchan_scope_error(&scope));
		ASSERT_EQ(0, pthread_join(thread, NULL));
		ASSERT_EQ(0, late.rc);
	}
}

TEST_F(scope, that_nothing_was_posted_in_just_ends)
{
	struct ibchan_scope scope;
	int rounds = 0;

	ibchan_scoped(&scope)
		rounds++;
	ibchan_scoped_timeout(&scope, 0)
		rounds++;
	ibchan_scoped_manual(&scope)
		rounds++;
	ASSERT_EQ(3, rounds);
	ASSERT_EQ(0, scope.auto_polled);
	ASSERT_EQ(0, ibchan_scope_error(&scope));
}

/* A thread that waits in a block to be cancelled, and does so asleep nowhere. */
struct cancelled {
	struct ibchan_scope scope;
	struct ibchan_pending pending;
	const struct end *end;
	pid_t tid;
	int in_block;
};

static void *cancelled_thread(void *arg)
{
	struct cancelled *call = arg;

	__atomic_store_n(&call->tid, gettid(), __ATOMIC_RELEASE);
	ibchan_scoped(&call->scope) {
		if (post_in(&call->scope, &call->pending, call->end, 0))
			break;
		__atomic_store_n(&call->in_block, 1, __ATOMIC_RELEASE);
		for (;;)
			pthread_testcancel();
	}
	return NULL;
}

static bool in_block(void *arg)
{
	struct cancelled *call = arg;

	return __atomic_load_n(&call->in_block, __ATOMIC_ACQUIRE);
}

TEST_F(scope, completes_what_is_in_flight_when_its_thread_is_cancelled)
{
	struct late_send late = { &self->a, sge_at(&self->a, 0, 9), 0, -1 };
	struct cancelled call = { .end = &self->b };
	pthread_t thread;
	void *answer;

	ASSERT_EQ(0, pthread_create(&thread, NULL, cancelled_thread, &call));
	ASSERT_TRUE(eventually(in_block, &call));
	ASSERT_EQ(0, pthread_cancel(thread));
	late.waiter = __atomic_load_n(&call.tid, __ATOMIC_ACQUIRE);
	send_late(&late);
	ASSERT_EQ(0, late.rc);
	ASSERT_EQ(0, pthread_join(thread, &answer));
	ASSERT_EQ(PTHREAD_CANCELED, answer);
	ASSERT_EQ(0, ibchan_pending_result(&call.pending));
	ASSERT_EQ(9, call.pending.completion.bytes);
}

/*
 * Not one of them ends the thread: what was begun is done, and no lock is kept. The
 * descriptor makes the queue tell of completions by read() and write().
 */
struct careless {
	struct ibchan_context *context;
	struct end *from, *to;
	int fd;
};

static int many_calls(const struct careless *call)
{
	struct ibchan_submit_sge sge = sge_at(call->to, 512, 16);
	struct ibchan_pending pending = { 0 };
	struct ibchan_cqe done;
	struct ibchan_context *context;
	struct ibchan_scope scope;
	int rc;

	rc = ibchan_context_open(&context, NULL) ?: ibchan_context_close(context);
	rc = rc ?: post_receive(call->context, call->to, &sge, 1);
	ibchan_scope_begin_manual(&scope);
	rc = rc ?: post_in(&scope, &pending, call->to, 0);
	rc = rc ?: send_bytes(call->from, 1) ?: send_bytes(call->from, 2);
	ibchan_scope_end(&scope);
	rc = rc ?: ibchan_pending_result(&pending);
	if (!rc && ibchan_cq_poll(call->to->cq, &done, 1) != 1)
		rc = -EPROTO;
	return rc;
}

static void *careless_thread(void *arg)
{
	long rc;

	pthread_cancel(pthread_self());
	rc = many_calls(arg);
	return (void *)rc;
}

TEST_F(scope, is_in_no_call_of_the_library_the_end_of_a_cancelled_thread)
{
	struct careless call = { self->context, &self->a, &self->b, ibchan_cq_fd(self->b.cq) };
	pthread_t thread;
	void *answer;

	ASSERT_LE(0, call.fd);
	ASSERT_EQ(0, pthread_create(&thread, NULL, careless_thread, &call));
	ASSERT_EQ(0, pthread_join(thread, &answer));
	ASSERT_EQ(NULL, answer);
	ASSERT_EQ(0, many_calls(&call));
}

TEST_F(scope, keeps_its_own_error_apart_from_those_that_auto_polling_found)
{
	struct ibchan_pending works[4] = { 0 };
	struct ibchan_scope scope;
	int i;

	ibchan_scoped(&scope) {
		for (i = 0; i < 4; i++)
			ASSERT_EQ(0, post_in(&scope, &works[i], &self->b, i));
		ASSERT_EQ(0, send_bytes(&self->a, 1));
		ASSERT_EQ(0, ibchan_pending_wait(&works[0], patience_ns()));
		ASSERT_EQ(0, ibchan_channel_break(self->b.channel));
		ASSERT_EQ(0, ibchan_pending_wait(&works[2], patience_ns()));
		ASSERT_EQ(-EDOM, ibchan_scope_fail(&scope, -EDOM));
		ASSERT_EQ(-EILSEQ, ibchan_scope_fail(&scope, -EILSEQ));
	}
	ASSERT_EQ(-EDOM, scope.error);
	ASSERT_EQ(-EDOM, ibchan_scope_error(&scope));
	ASSERT_EQ(2, scope.auto_polled);
	ASSERT_EQ(2, scope.num_failed);
	ASSERT_EQ(&works[1], scope.failed);
	ASSERT_EQ(&works[3], works[1].next_failed);
	ASSERT_EQ(NULL, works[3].next_failed);
	ASSERT_EQ(-ECANCELED, works[1].completion.error);
	ASSERT_EQ(3, works[3].completion.wr_id);
}

TEST_F(scope, has_the_error_of_the_first_work_that_failed_unseen)
{
	struct ibchan_pending works[2] = { 0 };
	struct ibchan_scope scope;
	int i;

	ibchan_scoped(&scope) {
		for (i = 0; i < 2; i++)
			ASSERT_EQ(0, post_in(&scope, &works[i], &self->b, i));
		ASSERT_EQ(0, ibchan_channel_break(self->b.channel));
	}
	ASSERT_EQ(0, scope.error);
	ASSERT_EQ(-ECANCELED, ibchan_scope_error(&scope));
	ASSERT_EQ(2, scope.num_failed);
	ASSERT_EQ(&works[0], scope.failed);
}

TEST_F(scope, refuses_a_work_that_is_another_scopes_or_that_nobody_has_looked_at)
{
	struct ibchan_pending pending = { 0 }, other = { 0 };
	struct ibchan_scope outer, inner;

	ibchan_scoped(&outer) {
		ASSERT_EQ(0, post_in(&outer, &pending, &self->b, 0));
		ibchan_scoped(&inner) {
			ASSERT_EQ(-EALREADY, post_in(&inner, &pending, &self->b, 1));
			ASSERT_EQ(0, post_in(&inner, &other, &self->b, 1));
			ASSERT_EQ(0, send_bytes(&self->a, 1));
			ASSERT_EQ(0, send_bytes(&self->a, 2));
		}
		ASSERT_EQ(2, other.completion.bytes);
		/* It has ended, and nobody knows how. */
		ASSERT_EQ(-EALREADY, post_in(&outer, &pending, &self->b, 2));
		ASSERT_EQ(1, ibchan_pending_poll(&pending));
		ASSERT_EQ(0, post_in(&outer, &pending, &self->b, 2));
		ASSERT_EQ(0, send_bytes(&self->a, 3));
	}
	ASSERT_EQ(3, pending.completion.bytes);
	ASSERT_EQ(1, outer.auto_polled);
	ASSERT_EQ(1, inner.auto_polled);
}

TEST_F(scope, breaks_the_channels_of_what_is_in_flight_when_its_time_is_over)
{
	struct ibchan_pending done = { 0 }, first = { 0 }, second = { 0 };
	struct ibchan_channel_info info;
	struct ibchan_scope scope;

	ibchan_scoped_timeout(&scope, 50 * MS) {
		ASSERT_EQ(0, post_in(&scope, &first, &self->b, 1));
		ASSERT_EQ(0, post_in(&scope, &second, &self->b, 2));
		/* Nobody looks at this one, but it has ended: its channel stays whole. */
		ASSERT_EQ(0, post_in(&scope, &done, &self->a, 0));
		ASSERT_EQ(0, send_bytes(&self->b, 4));
	}
	ASSERT_EQ(0, ibchan_pending_result(&done));
	ASSERT_EQ(4, done.completion.bytes);
	ASSERT_EQ(-ECANCELED, ibchan_pending_result(&first));
	ASSERT_EQ(-ECANCELED, ibchan_pending_result(&second));
	ASSERT_EQ(3, scope.auto_polled);
	ASSERT_EQ(2, scope.num_failed);
	ASSERT_EQ(&first, scope.failed);
	ASSERT_EQ(0, ibchan_channel_query(self->b.channel, &info, NULL));
	ASSERT_EQ(IBCHAN_CHANNEL_BROKEN, info.state);
	ASSERT_EQ(0, info.recvs_in_flight);
	ASSERT_EQ(0, ibchan_channel_query(self->a.channel, &info, NULL));
	ASSERT_EQ(IBCHAN_CHANNEL_CONNECTED, info.state);
}

TEST_F(scope, that_is_manual_may_have_an_end_too)
{
	struct ibchan_pending pending = { 0 };
	struct ibchan_scope scope;

	ibchan_scoped_manual_timeout(&scope, 20 * MS) {
		ASSERT_EQ(0, post_in(&scope, &pending, &self->b, 0));
		/* An error of the block's own: nobody complains about the work. */
		ibchan_scope_fail(&scope, -EAGAIN);
	}
	ASSERT_EQ(-ECANCELED, ibchan_pending_result(&pending));
	ASSERT_EQ(-EAGAIN, ibchan_scope_error(&scope));
	/* Ended twice, it ends once. */
	ibchan_scope_end(&scope);
	ASSERT_EQ(1, scope.auto_polled);
	ASSERT_EQ(1, scope.num_failed);
}

TEST_F(scope, that_is_manual_takes_a_dropped_work_for_one_that_was_looked_at)
{
	struct ibchan_pending pending = { 0 };
	struct ibchan_scope scope;

	ibchan_scoped_manual(&scope) {
		ASSERT_EQ(0, post_in(&scope, &pending, &self->b, 0));
		ASSERT_EQ(0, send_bytes(&self->a, 3));
		ibchan_pending_drop(&pending);
	}
	ASSERT_EQ(0, scope.auto_polled);
	ASSERT_EQ(3, pending.completion.bytes);
}

TEST_F(scope, with_time_left_waits_for_what_is_in_flight)
{
	struct late_send late = { &self->a, sge_at(&self->a, 0, 5), gettid(), -1 };
	struct ibchan_pending pending = { 0 };
	struct ibchan_scope scope;
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, send_late, &late));
	ibchan_scoped_timeout(&scope, patience_ns())
		EXPECT_EQ(0, post_in(&scope, &pending, &self->b, 0));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_EQ(0, late.rc);
	ASSERT_EQ(0, ibchan_pending_result(&pending));
	ASSERT_EQ(5, pending.completion.bytes);
}

/* What goes to the standard error output until it is put back. */
struct captured {
	int pipe[2];
	int stderr_fd;
	char text[512];
};

static int capture(struct captured *captured)
{
	fflush(stderr);
	if (pipe2(captured->pipe, O_NONBLOCK | O_CLOEXEC))
		return -errno;
	captured->stderr_fd = dup(STDERR_FILENO);
	return dup2(captured->pipe[1], STDERR_FILENO) < 0 ? -errno : 0;
}

static void release(struct captured *captured)
{
	ssize_t n;

	dup2(captured->stderr_fd, STDERR_FILENO);
	n = read(captured->pipe[0], captured->text, sizeof(captured->text) - 1);
	captured->text[n > 0 ? n : 0] = '\0';
	close(captured->stderr_fd);
	close(captured->pipe[0]);
	close(captured->pipe[1]);
}

/* What a manual scope says of a work that is done, @look-ed at or not. */
static int manual_block(struct end *a, struct end *b, int look, int fail,
			struct captured *captured)
{
	struct ibchan_pending pending = { 0 };
	struct ibchan_scope scope;
	int rc;

	rc = capture(captured);
	if (rc)
		return rc;
	ibchan_scoped_manual(&scope) {
		rc = post_in(&scope, &pending, b, 0) ?: send_bytes(a, 3);
		if (!rc && look)
			rc = ibchan_pending_wait(&pending, patience_ns());
		if (fail)
			ibchan_scope_fail(&scope, -EDOM);
	}
	release(captured);
	return rc ?: ibchan_pending_result(&pending);
}

static int lines(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

TEST_F(scope, manual_tells_loudly_of_a_work_left_unpolled_and_completes_it)
{
	static const char words[] = "ibchan: a manual scope has left 1 works unpolled, at 0x";
	struct captured captured;

	ASSERT_EQ(0, manual_block(&self->a, &self->b, 0, 0, &captured));
	ASSERT_EQ(0, strncmp(captured.text, words, strlen(words)));
	ASSERT_EQ(1, lines(captured.text));
}

TEST_F(scope, manual_says_nothing_when_all_was_polled_or_the_block_has_failed)
{
	struct captured captured;

	ASSERT_EQ(0, manual_block(&self->a, &self->b, 1, 0, &captured));
	ASSERT_STREQ("", captured.text);
	ASSERT_EQ(0, manual_block(&self->a, &self->b, 0, 1, &captured));
	ASSERT_STREQ("", captured.text);
}

static jmp_buf out_of_it;

static void post_and_jump(struct end *end)
{
	struct ibchan_pending works[2] = { 0 };
	struct ibchan_scope scope;

	ibchan_scoped(&scope) {
		if (!post_in(&scope, &works[0], end, 0) && !post_in(&scope, &works[1], end, 1))
			longjmp(out_of_it, 1);
	}
}

TEST_F(scope, that_was_jumped_over_leaves_its_works_pending_until_close)
{
	struct ibchan_cqe done;
	struct ibchan_channel_info info;

	if (!setjmp(out_of_it)) {
		post_and_jump(&self->b);
		ASSERT_TRUE(false);
	}
	ASSERT_EQ(0, ibchan_channel_query(self->b.channel, &info, NULL));
	ASSERT_EQ(2, info.recvs_in_flight);
	ASSERT_EQ(-EBUSY, ibchan_mr_dereg(self->b.mr));
	ASSERT_EQ(0, send_bytes(&self->a, 1));
	ASSERT_EQ(0, ibchan_cq_poll(self->b.cq, &done, 1));
	ASSERT_EQ(0, ibchan_channel_close(self->b.channel));
	self->b.channel = NULL;
	ASSERT_EQ(0, ibchan_cq_poll(self->b.cq, &done, 1));
	ASSERT_EQ(0, ibchan_mr_dereg(self->b.mr));
	self->b.mr = NULL;
}

TEST(scope_is_left_in_order_by_a_cxx_exception)
{
	char own[PATH_MAX] = "", program[PATH_MAX + 32];
	const char *const argv[] = { program, NULL };

	ASSERT_LT(0, readlink("/proc/self/exe", own, sizeof(own) - 1));
	snprintf(program, sizeof(program), "%s/shim_exception", dirname(own));
	if (access(program, X_OK))
		SKIP(return, "it was not built: no C++ compiler");
	ASSERT_EQ(0, run_program(argv));
}

/* Compiles a block in @language with one more @option. */
static int compile_block(const char *language, const char *option)
{
	char include[512], uapi[512], source[] = "/tmp/block-XXXXXX";
	const char *const argv[] = {
		"cc", "-fsyntax-only", option, include, uapi, "-x", language, source, NULL,
	};
	int fd = mkstemp(source);
	int rc;

	if (fd < 0)
		return -errno;
	dprintf(fd, "#include <ibchan.h>\n"
		"int f(struct ibchan_scope *s) { ibchan_scoped_manual(s) { return 1; } return 0; }\n");
	close(fd);
	snprintf(include, sizeof(include), "-I%s/userspace/include", TREE);
	snprintf(uapi, sizeof(uapi), "-I%s/uapi", TREE);
	rc = run_program(argv);
	unlink(source);
	return rc;
}

TEST(scope_as_a_block_needs_fexceptions_to_compile)
{
	if (access("/usr/bin/cc", X_OK) || access("/usr/bin/c++", X_OK))
		SKIP(return, "no compiler here");
	ASSERT_EQ(0, compile_block("c", "-fexceptions"));
	ASSERT_EQ(1, compile_block("c", "-fno-exceptions"));
	ASSERT_EQ(0, compile_block("c++", "-fexceptions"));
	ASSERT_EQ(1, compile_block("c++", "-fno-exceptions"));
}

TEST_HARNESS_MAIN
