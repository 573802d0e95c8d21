// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waits of a process that is stopped, traced or frozen, and waits that a handler interrupts:
 * the first go on to their own end, the second end with EINTR and lose nothing.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dmabuf.h"
#include "test.h"
#include "thread.h"
#include "work.h"
#include "world.h"

#define MS		1000000LL
#define CGROUP		"/sys/fs/cgroup/ibchan-stop"
#define FENCE		EXPORTER_PARAMETERS "fence"

/* How long the waits take that come to their end, and what they may be late by. */
#define WAIT_MS		(slow() ? 20000 : 3000)
#define LATE_MS		(WAIT_MS * 3 / 4)

/* What the child tells; @end_ms is 0 while it waits. */
struct report {
	int begins;
	int rc;
	__u64 start_ms;
	__u64 end_ms;
	__u32 accepted;
	__u32 receives;
};

struct sleeper {
	pid_t pid;
	struct report *report;
	long slept;	/* how often, before it was let go */
};

FIXTURE(stopped)
{
	struct calm calm;
	struct report *reports;
	struct sleeper sleepers[3];
};

FIXTURE_SETUP(stopped)
{
	unsigned int i;

	ASSERT_EQ(0, calm_begin(&self->calm));
	self->reports = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->reports);
	memset(self->sleepers, 0, sizeof(self->sleepers));
	for (i = 0; i < ARRAY_SIZE(self->sleepers); i++)
		self->sleepers[i].report = &self->reports[i];
}

/* One process that has just ended may still be in it. */
static bool cgroup_is_gone(void *arg)
{
	(void)arg;
	return !rmdir(CGROUP) || errno == ENOENT;
}

FIXTURE_TEARDOWN(stopped)
{
	unsigned int i;

	put_line(FENCE, "N");
	for (i = 0; i < ARRAY_SIZE(self->sleepers); i++) {
		if (!self->sleepers[i].pid)
			continue;
		kill(self->sleepers[i].pid, SIGKILL);
		waitpid(self->sleepers[i].pid, NULL, 0);
	}
	munmap(self->reports, 4096);
	EXPECT_TRUE(eventually(cgroup_is_gone, NULL));
	EXPECT_EQ(0, calm_end(&self->calm));
}

static int begin(struct report *report)
{
	report->start_ms = now_ms();
	__atomic_store_n(&report->begins, 1, __ATOMIC_RELEASE);
	return 0;
}

/* --- what a child waits for --- */

static int wait_for_completion(struct report *report, long long timeout_ns)
{
	struct side_options options = side_defaults();
	struct ibchan_cmd_submit cmd = submission(NULL, 0);
	struct side side;
	int rc = side_open(&side, &options);

	if (rc)
		return rc;
	cmd.cq = side.ring->cq;
	cmd.min_complete = 1;
	cmd.timeout_ns = timeout_ns;
	return begin(report) ?: cmd_submit(side.fd, &cmd);
}

static int wait_behind_post(struct report *report, long long timeout_ns)
{
	struct side_options options = side_defaults();
	struct ibchan_cmd_channel_query query;
	struct ibchan_submit_wr wr;
	struct ibchan_cmd_submit cmd;
	struct side side;
	int rc = side_open(&side, &options);

	if (rc)
		return rc;
	wr = work(&side, IBCHAN_OP_RECV, 1, 0, 64);
	cmd = submission(&wr, 1);
	cmd.cq = side.ring->cq;
	cmd.min_complete = 1;
	cmd.timeout_ns = timeout_ns;
	begin(report);
	rc = cmd_submit(side.fd, &cmd);
	report->accepted = cmd.entry_num;
	report->receives = side_query(&side, &query) ? ~0U : query.out.recvs_in_flight;
	return rc;
}

/* Whoever listens does not take the request. */
static int wait_for_connection(struct report *report, long long timeout_ns)
{
	struct side_options options = side_defaults();
	struct ibchan_cmd_listener_create listener = { .address.family = AF_INET };
	struct ibchan_cmd_channel_connection cmd = { .timeout_ns = timeout_ns };
	struct ibchan_cmd_channel_connect connect = { 0 };
	struct side side;
	int rc = side_open(&side, &options);

	inet_pton(AF_INET, "10.77.0.1", listener.address.bytes);
	rc = rc ?: cmd_listener_create(side.fd, &listener);
	connect.channel = side.channel;
	connect.peer = listener.out_address;
	rc = rc ?: cmd_channel_connect(side.fd, &connect);
	cmd.channel = side.channel;
	return rc ?: begin(report) ?: cmd_channel_connection(side.fd, &cmd);
}

static int register_dmabuf(const struct side *side, int fd)
{
	struct ibchan_cmd_mr_reg_dmabuf cmd;

	cmd = dmabuf_region(side, fd, 0, 4096, IBCHAN_ACCESS_LOCAL);
	return cmd_mr_reg_dmabuf(side->fd, &cmd);
}

/* Another device has still to do with the memory. */
static int wait_for_fence(struct report *report, long long timeout_ns)
{
	struct side_options options = side_defaults();
	int fd = dmabuf_export(1, 0);
	struct side side;
	int rc = side_open(&side, &options);

	(void)timeout_ns;
	if (rc || fd < 0)
		return rc ?: fd;
	return begin(report) ?: register_dmabuf(&side, fd);
}

/* --- the child --- */

/* In the kernel, and has not come back. */
static bool is_waiting(void *arg)
{
	const struct sleeper *sleeper = arg;

	return __atomic_load_n(&sleeper->report->begins, __ATOMIC_ACQUIRE) &&
	       sleeps_in_kernel(sleeper->pid);
}

/*
 * It has run since and waits again. Its state alone does not tell: who is frozen sleeps as well,
 * and who has been let go need not have run yet.
 */
static bool is_waiting_again(void *arg)
{
	const struct sleeper *sleeper = arg;

	return times_asleep(sleeper->pid) > sleeper->slept && is_waiting(arg);
}

static int sleeper_start(struct sleeper *sleeper,
			 int (*wait)(struct report *report, long long timeout_ns),
			 long long timeout_ns)
{
	struct report *report = sleeper->report;

	fflush(NULL);
	sleeper->pid = fork();
	if (!sleeper->pid) {
		report->rc = wait(report, timeout_ns);
		__atomic_store_n(&report->end_ms, now_ms(), __ATOMIC_RELEASE);
		_exit(0);
	}
	return eventually(is_waiting, sleeper) ? 0 : -ETIMEDOUT;
}

static bool has_come_back(void *arg)
{
	const struct sleeper *sleeper = arg;

	return __atomic_load_n(&sleeper->report->end_ms, __ATOMIC_ACQUIRE);
}

/* --- what is done to it --- */

static int stop(pid_t pid)
{
	int status;

	if (kill(pid, SIGSTOP) || waitpid(pid, &status, WUNTRACED) != pid)
		return -errno;
	return WIFSTOPPED(status) ? 0 : -ECHILD;
}

static int go_on(pid_t pid)
{
	return kill(pid, SIGCONT) ? -errno : 0;
}

static int attach(pid_t pid)
{
	int status;

	if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) || waitpid(pid, &status, __WALL) != pid)
		return -errno;
	return WIFSTOPPED(status) ? 0 : -ECHILD;
}

static int detach(pid_t pid)
{
	return ptrace(PTRACE_DETACH, pid, NULL, NULL) ? -errno : 0;
}

static bool is_frozen(void *arg)
{
	(void)arg;
	return counter_of(CGROUP "/cgroup.events", "frozen") == 1;
}

static int freeze(pid_t pid)
{
	char line[16];
	int rc;

	if (mkdir(CGROUP, 0755) && errno != EEXIST)
		return -errno;
	snprintf(line, sizeof(line), "%d", pid);
	rc = put_line(CGROUP "/cgroup.procs", line) ?: put_line(CGROUP "/cgroup.freeze", "1");
	return rc ?: eventually(is_frozen, NULL) ? rc : -ETIMEDOUT;
}

static int thaw(pid_t pid)
{
	(void)pid;
	return put_line(CGROUP "/cgroup.freeze", "0");
}

static const struct interruption {
	const char *name;
	int (*begin)(pid_t pid);
	int (*end)(pid_t pid);
} interruptions[] = {
	{ "a stop", stop, go_on },
	{ "a debugger", attach, detach },
	{ "the freezer", freeze, thaw },
};

/* Everything has been interrupted since before its end, and goes on behind that. */
static bool is_past_the_end(void *arg)
{
	const struct sleeper *last = arg;

	return now_ms() >= last->report->start_ms + WAIT_MS + 100;
}

static bool ended_in_time(const struct sleeper *sleeper)
{
	__u64 ms = sleeper->report->end_ms - sleeper->report->start_ms;

	return ms >= (__u64)WAIT_MS - 1 && ms < (__u64)WAIT_MS + LATE_MS;
}

/* Each kind of wait is stopped and goes on at once; it does not end. */
TEST_F(stopped, waits_without_an_end_go_on_and_do_not_end)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(interruptions); i++) {
		struct sleeper *sleeper = &self->sleepers[i];

		ASSERT_EQ(0, sleeper_start(sleeper, wait_for_completion, IBCHAN_TIMEOUT_NEVER));
		if (interruptions[i].begin == freeze && access("/sys/fs/cgroup/cgroup.procs", W_OK))
			continue;
		ASSERT_EQ(0, interruptions[i].begin(sleeper->pid))
			TH_LOG("%s", interruptions[i].name);
		sleeper->slept = times_asleep(sleeper->pid);
		ASSERT_LT(0, sleeper->slept);
		ASSERT_EQ(0, interruptions[i].end(sleeper->pid));
		EXPECT_TRUE(eventually(is_waiting_again, sleeper))
			TH_LOG("%s: %d", interruptions[i].name, sleeper->report->rc);
		EXPECT_FALSE(has_come_back(sleeper));
	}
}

TEST_F(stopped, waits_for_a_dma_bufs_fence_go_on_and_register_it)
{
	unsigned int i, n = ARRAY_SIZE(interruptions);

	if (put_line(FENCE, "Y"))
		SKIP(return, "ibchan_exporter is not loaded");
	if (access("/sys/fs/cgroup/cgroup.procs", W_OK))
		n--;
	for (i = 0; i < n; i++) {
		struct sleeper *sleeper = &self->sleepers[i];

		EXPECT_EQ(0, sleeper_start(sleeper, wait_for_fence, 0));
		EXPECT_EQ(0, interruptions[i].begin(sleeper->pid));
		sleeper->slept = times_asleep(sleeper->pid);
		EXPECT_EQ(0, interruptions[i].end(sleeper->pid));
		EXPECT_TRUE(eventually(is_waiting_again, sleeper))
			TH_LOG("%s: %d", interruptions[i].name, sleeper->report->rc);
	}
	ASSERT_EQ(0, put_line(FENCE, "N"));
	for (i = 0; i < n; i++) {
		EXPECT_TRUE(eventually(has_come_back, &self->sleepers[i]));
		EXPECT_EQ(0, self->sleepers[i].report->rc)
			TH_LOG("%s", interruptions[i].name);
	}
	EXPECT_EQ(0, exporter_idle());
}

TEST_F(stopped, waits_keep_their_deadline_through_a_stop_a_debugger_and_the_freezer)
{
	struct sleeper *sleepers = self->sleepers;
	unsigned int i, n = ARRAY_SIZE(interruptions);

	if (access("/sys/fs/cgroup/cgroup.procs", W_OK))
		n--;
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, sleeper_start(&sleepers[i], wait_for_completion, WAIT_MS * MS));
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, interruptions[i].begin(sleepers[i].pid));
	ASSERT_TRUE(eventually(is_past_the_end, &sleepers[n - 1]));
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, interruptions[i].end(sleepers[i].pid));
	for (i = 0; i < n; i++) {
		ASSERT_TRUE(eventually(has_come_back, &sleepers[i]));
		EXPECT_EQ(-ETIMEDOUT, sleepers[i].report->rc)
			TH_LOG("%s", interruptions[i].name);
		EXPECT_TRUE(ended_in_time(&sleepers[i]))
			TH_LOG("%s", interruptions[i].name);
	}
}

TEST_F(stopped, waits_for_connections_keep_their_deadline_too)
{
	struct sleeper *sleeper = &self->sleepers[0];

	ASSERT_EQ(0, sleeper_start(sleeper, wait_for_connection, WAIT_MS * MS))
		TH_LOG("%d", sleeper->report->rc);
	ASSERT_EQ(0, stop(sleeper->pid));
	ASSERT_TRUE(eventually(is_past_the_end, sleeper));
	ASSERT_EQ(0, go_on(sleeper->pid));
	ASSERT_TRUE(eventually(has_come_back, sleeper));
	EXPECT_EQ(-ETIMEDOUT, sleeper->report->rc);
	EXPECT_TRUE(ended_in_time(sleeper));
}

/* Run again, it would post again. */
TEST_F(stopped, submits_with_entries_end_with_the_work_posted_once)
{
	struct sleeper *sleeper = &self->sleepers[0];

	ASSERT_EQ(0, sleeper_start(sleeper, wait_behind_post, IBCHAN_TIMEOUT_NEVER));
	ASSERT_EQ(0, stop(sleeper->pid));
	ASSERT_EQ(0, go_on(sleeper->pid));
	ASSERT_TRUE(eventually(has_come_back, sleeper));
	EXPECT_EQ(-EINTR, sleeper->report->rc);
	EXPECT_EQ(1, sleeper->report->accepted);
	EXPECT_EQ(1, sleeper->report->receives);
}

/* --- handlers --- */

static unsigned int handled;

static void on_signal(int signal)
{
	(void)signal;
	__atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
}

/* SIGALRM again and again, so that no wait can miss it. */
static int alarm_begin(int flags)
{
	const struct sigaction action = { .sa_handler = on_signal, .sa_flags = flags };
	const struct itimerval often = { { .tv_usec = 20000 }, { .tv_usec = 20000 } };

	return sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &often, NULL) ?
	       -errno : 0;
}

static void alarm_end(void)
{
	const struct itimerval never = { { 0 }, { 0 } };

	setitimer(ITIMER_REAL, &never, NULL);
}

FIXTURE(handled)
{
	struct calm calm;
	struct pair pair;
};

FIXTURE_SETUP(handled)
{
	struct side_options options = side_defaults();

	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &options));
}

FIXTURE_TEARDOWN(handled)
{
	alarm_end();
	put_line(FENCE, "N");
	pair_close(&self->pair);
	EXPECT_EQ(0, calm_end(&self->calm));
}

TEST_F(handled, wait_for_a_dma_bufs_fence_ends_with_eintr_and_leaves_nothing)
{
	struct side *a = self->pair.a;
	int fd, rc;

	if (put_line(FENCE, "Y"))
		SKIP(return, "ibchan_exporter is not loaded");
	fd = dmabuf_export(1, 0);
	rc = alarm_begin(SA_RESTART);
	EXPECT_EQ(-EINTR, rc ?: register_dmabuf(a, fd));
	alarm_end();
	ASSERT_EQ(0, put_line(FENCE, "N"));
	EXPECT_EQ(0, exporter_counter("mappings"));
	EXPECT_EQ(0, exporter_counter("accesses"));
	EXPECT_EQ(0, register_dmabuf(a, fd));
	EXPECT_EQ(1, exporter_counter("accesses"));
	close(fd);
	pair_close(&self->pair);
	EXPECT_EQ(0, exporter_idle());
}

TEST_F(handled, wait_that_is_made_again_with_its_struct_keeps_its_deadline)
{
	struct ibchan_cmd_submit cmd = submission(NULL, 0);
	__u64 start = now_ms();
	int rc, interrupted = 0;

	cmd.cq = self->pair.a->ring->cq;
	cmd.min_complete = 1;
	cmd.timeout_ns = 300 * MS;
	ASSERT_EQ(0, alarm_begin(0));
	while ((rc = cmd_submit(self->pair.a->fd, &cmd)) == -EINTR && interrupted < 100000)
		interrupted++;
	alarm_end();
	EXPECT_EQ(-ETIMEDOUT, rc);
	EXPECT_LT(0, interrupted);
	EXPECT_EQ(IBCHAN_DEADLINE | IBCHAN_ANSWERED, cmd.flags);
	EXPECT_LE(299, now_ms() - start);
	EXPECT_GT(patience_ms(), (long)(now_ms() - start));
}

TEST_F(handled, look_that_does_not_wait_is_never_interrupted)
{
	struct ibchan_cmd_submit cmd;
	__u64 end = now_ms() + patience_ms();
	int rc = -ETIMEDOUT;

	handled = 0;
	ASSERT_EQ(0, alarm_begin(0));
	while (rc == -ETIMEDOUT && handled < 10 && now_ms() < end) {
		cmd = submission(NULL, 0);
		cmd.cq = self->pair.a->ring->cq;
		cmd.min_complete = 1;
		rc = cmd_submit(self->pair.a->fd, &cmd);
	}
	alarm_end();
	EXPECT_EQ(-ETIMEDOUT, rc);
	EXPECT_LE(10, handled);
}

TEST_HARNESS_MAIN
