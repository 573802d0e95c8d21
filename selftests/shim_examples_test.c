// SPDX-License-Identifier: GPL-2.0-only
/*
 * The example programs, the tool's pingpong, and a program that was built outside of the tree
 * with what `make install` put into a folder. They check the data themselves and end with a
 * line that says so.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <libgen.h>
#include <netinet/in.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shim/end.h"
#include "shim/run.h"
#include "test.h"
#include "thread.h"
#include "world.h"

static int runs(const char *file, const char *expected)
{
	static const char *const none[] = { NULL };
	struct run run;
	int rc = run_start(&run, file, none);

	return rc ? rc : run_ends_with(&run, expected);
}

FIXTURE(example) {
	struct calm calm;
};

FIXTURE_SETUP(example)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
}

FIXTURE_TEARDOWN(example)
{
	EXPECT_EQ(0, calm_end(&self->calm));
}

TEST_F(example, smallest_program_carries_its_message)
{
	EXPECT_EQ(0, runs("../userspace/examples/hello", "64 bytes: hello, channel\n"));
}

TEST_F(example, program_built_by_pkg_config_from_what_was_installed_carries_its_message)
{
	EXPECT_EQ(0, runs("outside/hello", "64 bytes: hello, channel\n"));
}

FIXTURE(pair) {
	struct calm calm;
};

/* The programs connect by the same code: each does so in another way. */
FIXTURE_VARIANT(pair) {
	const char *file;
	const char *const *server_args;
	const char *const *client_args;
	const char *server_says;
	const char *client_says;
};

FIXTURE_VARIANT_ADD(pair, blocking) {
	.file = "../userspace/examples/blocking",
	.server_args = ARGUMENTS(NULL),
	.client_args = ARGUMENTS("10.77.0.1", NULL),
	.server_says = "",
	.client_says = "the last of 100 answers: QUESTION 100 OF 100?\n",
};

FIXTURE_VARIANT_ADD(pair, scoped) {
	.file = "../userspace/examples/scoped",
	.server_args = ARGUMENTS(NULL),
	.client_args = ARGUMENTS("fd77::1", NULL),
	.server_says = "8 pieces each way, all as they were sent\n",
	.client_says = "8 pieces each way, all as they were sent\n",
};

FIXTURE_VARIANT_ADD(pair, one_sided) {
	.file = "../userspace/examples/one_sided",
	.server_args = ARGUMENTS("-d", "rxe1", NULL),
	.client_args = ARGUMENTS("-d", "rxe1", "10.77.0.2", NULL),
	.server_says = "64 squares are right\n",
	.client_says = "64 squares written\n",
};

FIXTURE_SETUP(pair)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
}

FIXTURE_TEARDOWN(pair)
{
	EXPECT_EQ(0, calm_end(&self->calm));
}

static int runs_as_pair(const FIXTURE_VARIANT(pair) * variant,
			const char *const server_args[], const char *const client_args[])
{
	struct run server, client;
	int client_rc;
	int rc;

	rc = run_start(&server, variant->file, server_args);
	rc = rc ?: run_start(&client, variant->file, client_args);
	if (rc)
		return rc;
	client_rc = run_ends_with(&client, variant->client_says);
	rc = run_ends_with(&server, variant->server_says);
	return client_rc ?: rc;
}

TEST_F(pair, of_two_processes_exchanges_data_and_both_say_so)
{
	EXPECT_EQ(0, runs_as_pair(variant, variant->server_args, variant->client_args));
}

TEST_F(pair, does_the_same_with_endpoints_across_two_devices)
{
	EXPECT_EQ(0, runs_as_pair(variant, ARGUMENTS("-e", "-d", "rxe0", NULL),
				  ARGUMENTS("-e", "-d", "rxe1", "localhost", NULL)));
}

/* As soon as it listens. */
static bool dials_loop(void *arg)
{
	return !ibchan_dial("10.77.0.1", "7472", NULL, arg, NULL);
}

static int echoes(struct ibchan_channel *channel, const char *text)
{
	char got[64] = "";
	int rc = ibchan_send_bytes(channel, text, strlen(text), patience_ns(), NULL);

	if (rc)
		return rc;
	rc = (int)ibchan_receive_bytes(channel, got, sizeof(got), patience_ns(), NULL);
	return rc == (int)strlen(text) && !strcmp(text, got) ? 0 : -EPROTO;
}

TEST_F(example, loop_sends_each_client_what_it_has_sent)
{
	struct ibchan_channel *clients[2];
	struct run server;

	ASSERT_EQ(0, run_start(&server, "../userspace/examples/loop", ARGUMENTS("7472", NULL)));
	EXPECT_TRUE(eventually(dials_loop, &clients[0]));
	EXPECT_TRUE(eventually(dials_loop, &clients[1]));
	EXPECT_EQ(0, echoes(clients[0], "one"));
	EXPECT_EQ(0, echoes(clients[1], "two"));
	EXPECT_EQ(0, ibchan_channel_close(clients[1]));
	EXPECT_EQ(0, echoes(clients[0], "three"));
	EXPECT_EQ(0, ibchan_channel_close(clients[0]));
	EXPECT_EQ(0, kill(server.pid, SIGKILL));
	child_result(server.pid);
	close(server.output);
}

static int fails_with(const char *file, const char *const arguments[], const char *says)
{
	char text[1024];
	struct run run;
	int rc = run_start(&run, file, arguments);

	if (rc)
		return rc;
	run_collect(&run, text, sizeof(text));
	rc = child_result(run.pid);
	if (rc == -1 && strstr(text, says))
		return 0;
	fprintf(stderr, "# answer %d, printed: %s\n", rc, text);
	return -EPROTO;
}

TEST_F(example, a_device_that_is_not_there_is_said_in_words)
{
	static const char *const arguments[] = { "-d", "no_such_device", "localhost", NULL };
	struct run run;
	char text[256];

	ASSERT_EQ(0, run_start(&run, "../userspace/examples/blocking", arguments));
	run_collect(&run, text, sizeof(text));
	EXPECT_EQ(-1, child_result(run.pid));
	EXPECT_STREQ("blocking: device: there is no such device, or it has gone\n", text);
}

#define TOOL	"../userspace/ibchan"

/* Asked in each test: the older harnesses go on after a fixture that skips. */
FIXTURE(tool) {
	struct calm calm;
};

FIXTURE_SETUP(tool)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
}

FIXTURE_TEARDOWN(tool)
{
	EXPECT_EQ(0, calm_end(&self->calm));
}

FIXTURE(pingpong) {
	struct calm calm;
};

/* An emulated CPU may be slower than the half second that hardware gets for an ack. */
#define PINGPONG(...)	ARGUMENTS("pingpong", "--row", "-u", "18", __VA_ARGS__)

/* They connect by the same code: each does so in another way. */
FIXTURE_VARIANT(pingpong) {
	const char *op;
	const char *const *server_args;
	const char *const *client_args;
};

FIXTURE_VARIANT_ADD(pingpong, send) {
	.op = "send",
	.server_args = PINGPONG(NULL),
	.client_args = PINGPONG("--op", "send", "-n", "40", "10.77.0.1", NULL),
};

FIXTURE_VARIANT_ADD(pingpong, write) {
	.op = "write",
	.server_args = PINGPONG(NULL),
	.client_args = PINGPONG("--op", "write", "-n", "40", "fd77::1", NULL),
};

FIXTURE_VARIANT_ADD(pingpong, read) {
	.op = "read",
	.server_args = PINGPONG("-d", "rxe1", "-g", "1", NULL),
	.client_args = PINGPONG("-d", "rxe1", "-g", "1", "--op", "read", "-n", "40", "10.77.0.2",
				NULL),
};

FIXTURE_SETUP(pingpong)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
}

FIXTURE_TEARDOWN(pingpong)
{
	EXPECT_EQ(0, calm_end(&self->calm));
}

static int row_ends_with(struct run *client, const char *expected)
{
	char text[1024];
	size_t length = strlen(expected), used;
	int rc;

	run_collect(client, text, sizeof(text));
	rc = child_result(client->pid);
	used = strlen(text);
	if (!rc && used > length && !strcmp(text + used - length, expected))
		return 0;
	fprintf(stderr, "# answer %d, printed: %s\n", rc, text);
	return rc ?: -EPROTO;
}

static int plays_against(struct run *server, const char *const client_args[],
			 const char *expected)
{
	struct run client;
	int rc = run_start(&client, TOOL, client_args);

	rc = rc ?: row_ends_with(&client, expected);
	return run_ends_with(server, "") ?: rc;
}

static int plays(const char *const server_args[], const char *const client_args[],
		 const char *expected)
{
	struct run server;
	int rc = run_start(&server, TOOL, server_args);

	return rc ?: plays_against(&server, client_args, expected);
}

TEST_F(pingpong, connects_by_address)
{
	if (!run_can(TOOL))
		SKIP(return, "the tool was not built");
	EXPECT_EQ(0, plays(variant->server_args, variant->client_args,
			   "\taddress\tverified\n"));
}

TEST_F(pingpong, crosses_devices_with_endpoints)
{
	if (!run_can(TOOL))
		SKIP(return, "the tool was not built");
	EXPECT_EQ(0, plays(PINGPONG("--endpoints", "-d", "rxe0", NULL),
			   PINGPONG("-e", "-d", "rxe1", "--op", variant->op, "-n", "40",
				    "localhost", NULL),
			   "\tendpoints\tverified\n"));
}

TEST_F(tool, pingpong_sends_away_who_is_none_and_waits_on)
{
	struct run server;

	if (!run_can(TOOL))
		SKIP(return, "the tool was not built");
	ASSERT_EQ(0, run_start(&server, TOOL, PINGPONG(NULL)));
	EXPECT_EQ(0, fails_with("../userspace/examples/blocking",
				ARGUMENTS("-p", "18515", "10.77.0.1", NULL),
				"blocking: 10.77.0.1: asking the peer: the peer has ended "));
	EXPECT_EQ(0, plays_against(&server, PINGPONG("-n", "40", "10.77.0.1", NULL),
				   "\taddress\tverified\n"));
}

TEST_F(tool, pingpong_says_that_nobody_listens)
{
	if (!run_can(TOOL))
		SKIP(return, "the tool was not built");
	EXPECT_EQ(0, fails_with(TOOL, PINGPONG("--timeout", "1", "10.77.0.1", NULL),
				"nobody listens"));
}

TEST_F(tool, pingpong_says_that_the_device_does_not_lead_there)
{
	struct run server;
	char text[1024];

	if (!run_can(TOOL))
		SKIP(return, "the tool was not built");
	ASSERT_EQ(0, run_start(&server, TOOL, PINGPONG(NULL)));
	EXPECT_EQ(0, fails_with(TOOL, PINGPONG("-d", "rxe1", "10.77.0.1", NULL),
				"looking for a device that leads to the peer"));
	run_collect(&server, text, sizeof(text));
	EXPECT_EQ(-1, child_result(server.pid));
	EXPECT_NE(NULL, strstr(text, "the other side failed")) {
		TH_LOG("%s", text);
	}
}

TEST_F(tool, pingpong_checks_a_stream_of_sends_of_any_depth_and_size)
{
	static const char *const plans[][2] = {
		{ "1", "0" }, { "2", "1" }, { "3", "15" }, { "5", "16" }, { "7", "17" },
		{ "128", "5000" },
	};
	struct run server;
	unsigned int i;

	if (!run_can(TOOL))
		SKIP(return, "the tool was not built");
	for (i = 0; i < ARRAY_SIZE(plans); i++) {
		ASSERT_EQ(0, run_start(&server, TOOL, PINGPONG(NULL)));
		EXPECT_EQ(0, plays_against(&server,
					   PINGPONG("-t", plans[i][0], "-s", plans[i][1], "-n",
						    "300", "10.77.0.1", NULL),
					   "\taddress\tverified\n"));
	}
}

/* Until it has printed that it is connected. */
static int await_connected(const struct run *run)
{
	struct pollfd pollfd = { .fd = run->output, .events = POLLIN };
	char text[1024] = "";
	size_t used = 0;
	ssize_t n;

	while (!strstr(text, "path")) {
		if (poll(&pollfd, 1, patience_ms()) != 1 || used + 1 == sizeof(text))
			return -ETIMEDOUT;
		n = read(run->output, text + used, sizeof(text) - 1 - used);
		if (n <= 0)
			return -ECONNRESET;
		used += n;
		text[used] = '\0';
	}
	return 0;
}

TEST_F(tool, pingpong_ends_with_words_when_its_peer_is_killed)
{
	struct run server, client;
	char text[1024];

	if (!run_can(TOOL))
		SKIP(return, "the tool was not built");
	ASSERT_EQ(0, run_start(&server, TOOL, ARGUMENTS("pingpong", "-u", "18", NULL)));
	ASSERT_EQ(0, run_start(&client, TOOL, PINGPONG("-n", "100000000", "10.77.0.1", NULL)));
	EXPECT_EQ(0, await_connected(&server));
	kill(server.pid, SIGKILL);
	run_collect(&server, text, sizeof(text));
	EXPECT_NE(0, child_result(server.pid));
	run_collect(&client, text, sizeof(text));
	EXPECT_EQ(-1, child_result(client.pid));
	EXPECT_NE(NULL, strstr(text, "ibchan: "));
}

#define ASKED	40
#define SERVED	32	/* by one doctor --serve at a time */

/* Many that ask one server. */
struct crowd {
	struct ibchan_context *context;
	struct end ends[ASKED];
};

/* As a doctor does. */
static int ask_doctor(struct end *end, const char *port)
{
	static const unsigned char greeting[8] = { 'i', 'b', 'c', 'd', 0, 0, 0, 1 };
	const struct ibchan_connect_params params = {
		.size = sizeof(params),
		.data = greeting, .length = sizeof(greeting),
	};
	int rc = ibchan_prepared_connect(end->prepared, "10.77.0.1", port, &params, &end->channel,
					 NULL);

	if (!rc)
		end->prepared = NULL;
	return rc;
}

static int crowd_ask(struct crowd *crowd, const char *port)
{
	int rc = ibchan_context_open(&crowd->context, NULL);
	int i;

	for (i = 0; i < ASKED && !rc; i++) {
		rc = end_open(&crowd->ends[i], crowd->context, 0, NULL);
		rc = rc ?: ask_doctor(&crowd->ends[i], port);
	}
	return rc;
}

static int connected(const struct crowd *crowd)
{
	struct ibchan_channel_info info;
	int i, n = 0;

	for (i = 0; i < ASKED; i++)
		if (crowd->ends[i].channel &&
		    !ibchan_channel_query(crowd->ends[i].channel, &info, NULL))
			n += info.state == IBCHAN_CHANNEL_CONNECTED;
	return n;
}

static bool as_many_as_are_served(void *crowd)
{
	return connected(crowd) >= SERVED;
}

static bool prints(struct run *run, const char *word)
{
	struct pollfd pollfd = { .fd = run->output, .events = POLLIN };
	char text[256] = "";

	return poll(&pollfd, 1, patience_ms()) == 1 &&
	       read(run->output, text, sizeof(text) - 1) > 0 && strstr(text, word);
}

TEST_F(tool, doctor_serves_so_many_at_a_time_and_the_others_later)
{
	static struct crowd crowd;
	struct run server;
	char text[8192];
	int i;

	if (!run_can(TOOL))
		SKIP(return, "the tool was not built");
	ASSERT_EQ(0, run_start(&server, TOOL, ARGUMENTS("doctor", "--serve", "-p", "7499", NULL)));
	EXPECT_TRUE(prints(&server, "answering"));
	EXPECT_EQ(0, crowd_ask(&crowd, "7499"));
	EXPECT_TRUE(eventually(as_many_as_are_served, &crowd));
	EXPECT_GE(SERVED + 1, status_number(server.pid, "Threads: %ld"));
	EXPECT_LT(1, status_number(server.pid, "Threads: %ld"));
	EXPECT_EQ(SERVED, connected(&crowd));
	for (i = 0; i < ASKED && connected(&crowd) == SERVED; i++)
		end_close(&crowd.ends[i]);
	EXPECT_TRUE(eventually(as_many_as_are_served, &crowd));
	while (i < ASKED)
		end_close(&crowd.ends[i++]);
	EXPECT_EQ(0, ibchan_context_close(crowd.context));
	kill(server.pid, SIGKILL);
	run_collect(&server, text, sizeof(text));
	child_result(server.pid);
}

#define ROOM	2	/* descriptors for clients: each takes one */

/* A process has its descriptors below the limit, where a few numbers are left. */
static int leave_room(pid_t pid)
{
	struct rlimit limit = { 0 };
	char path[64], target[64];
	int room = 0;

	while (room < ROOM) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, (int)limit.rlim_cur++);
		room += readlink(path, target, sizeof(target)) < 0;
	}
	limit.rlim_max = limit.rlim_cur;
	return prlimit(pid, RLIMIT_NOFILE, &limit, NULL) ? -errno : 0;
}

/* A client that asks and waits for the answer. */
static int meet_doctor(struct crowd *crowd, int client, const char *port)
{
	struct end *end = &crowd->ends[client];
	int rc = end_open(end, crowd->context, 0, NULL) ?: ask_doctor(end, port);

	return rc ?: ibchan_channel_connect_wait(end->channel, patience_ns(), NULL);
}

/* The server hears some time later that a client has gone. */
static bool serves_again(void *arg)
{
	struct crowd *crowd = arg;

	end_close(&crowd->ends[0]);
	return !meet_doctor(crowd, 0, "7498");
}

static long cpu_ms(pid_t pid)
{
	clockid_t clock;
	struct timespec time;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &time))
		return -errno;
	return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* Whether a server does next to nothing for a while. */
static bool rests(pid_t pid)
{
	long before = cpu_ms(pid);

	moment(400000);
	return cpu_ms(pid) - before < 200;
}

TEST_F(tool, doctor_that_has_few_descriptors_sends_others_away_and_serves_again)
{
	static struct crowd crowd;
	struct run server;
	char text[8192];
	int i;

	if (!run_can(TOOL))
		SKIP(return, "the tool was not built");
	ASSERT_EQ(0, ibchan_context_open(&crowd.context, NULL));
	ASSERT_EQ(0, run_start(&server, TOOL, ARGUMENTS("doctor", "--serve", "-p", "7498", NULL)));
	EXPECT_TRUE(prints(&server, "answering"));
	EXPECT_EQ(0, leave_room(server.pid));
	for (i = 0; i < ROOM; i++)
		EXPECT_EQ(0, meet_doctor(&crowd, i, "7498"));
	for (; i < 3 * ROOM; i++)
		EXPECT_EQ(-ECONNRESET, meet_doctor(&crowd, i, "7498"));
	EXPECT_EQ(ROOM, connected(&crowd));
	EXPECT_TRUE(rests(server.pid));
	EXPECT_TRUE(eventually(serves_again, &crowd));
	while (i)
		end_close(&crowd.ends[--i]);
	EXPECT_EQ(0, ibchan_context_close(crowd.context));
	EXPECT_EQ(0, waitpid(server.pid, NULL, WNOHANG));
	kill(server.pid, SIGKILL);
	run_collect(&server, text, sizeof(text));
	child_result(server.pid);
}

#define OBJECTS	"/sys/module/ibchan/parameters/max_handles"

static int line_of(const char *path, char *line, int size)
{
	FILE *file = fopen(path, "re");
	char *got = file ? fgets(line, size, file) : NULL;

	if (file)
		fclose(file);
	return got ? 0 : -EIO;
}

TEST_F(tool, doctor_that_may_have_no_more_objects_rests_until_a_client_leaves)
{
	static struct crowd crowd;
	struct run server;
	char text[8192], objects[16];

	if (!run_can(TOOL))
		SKIP(return, "the tool was not built");
	ASSERT_EQ(0, ibchan_context_open(&crowd.context, NULL));
	ASSERT_EQ(0, run_start(&server, TOOL, ARGUMENTS("doctor", "--serve", "-p", "7497", NULL)));
	EXPECT_TRUE(prints(&server, "answering"));
	EXPECT_EQ(0, meet_doctor(&crowd, 0, "7497"));
	EXPECT_EQ(0, end_open(&crowd.ends[1], crowd.context, 0, NULL));
	ASSERT_EQ(0, line_of(OBJECTS, objects, sizeof(objects)));
	EXPECT_EQ(0, put_line(OBJECTS, "1"));
	EXPECT_EQ(0, ask_doctor(&crowd.ends[1], "7497"));
	EXPECT_TRUE(rests(server.pid));
	EXPECT_EQ(1, connected(&crowd));
	EXPECT_EQ(0, put_line(OBJECTS, objects));
	end_close(&crowd.ends[0]);
	EXPECT_EQ(0, ibchan_channel_connect_wait(crowd.ends[1].channel, patience_ns(), NULL));
	EXPECT_EQ(0, waitpid(server.pid, NULL, WNOHANG));
	end_close(&crowd.ends[1]);
	EXPECT_EQ(0, ibchan_context_close(crowd.context));
	kill(server.pid, SIGKILL);
	run_collect(&server, text, sizeof(text));
	child_result(server.pid);
}

TEST_HARNESS_MAIN
