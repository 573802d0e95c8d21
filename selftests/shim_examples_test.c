// SPDX-License-Identifier: GPL-2.0-only
/*
 * The example programs, and one that was built outside of the tree with what `make install`
 * put into a folder. They check the data themselves and end with a line that says so.
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"
#include "world.h"

/* A program that runs, and the end of a pipe with what it prints. */
struct run {
	pid_t pid;
	int output;
};

/* Beside our own folder, where the programs of the library are. */
static void find(char *path, size_t len, const char *file)
{
	char self[PATH_MAX] = "";

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		self[0] = '\0';
	snprintf(path, len, "%s/%s", dirname(self), file);
}

static int start(struct run *run, const char *file, const char *const arguments[])
{
	char path[PATH_MAX + 64];
	char *argv[8] = { path };
	int ends[2];

	find(path, sizeof(path), file);
	for (int i = 0; arguments[i]; i++)
		argv[i + 1] = (char *)arguments[i];
	if (pipe(ends))
		return -errno;
	run->pid = fork();
	if (!run->pid) {
		dup2(ends[1], STDOUT_FILENO);
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		execv(path, argv);
		_exit(127);
	}
	close(ends[1]);
	run->output = ends[0];
	return run->pid < 0 ? -errno : 0;
}

/* Until it closes its output, or patience ends; then it is killed, which shows. */
static void collect(struct run *run, char *text, size_t len)
{
	struct pollfd pollfd = { .fd = run->output, .events = POLLIN };
	size_t used = 0;
	ssize_t n = 1;

	while (n > 0 && used + 1 < len) {
		if (poll(&pollfd, 1, patience_ms()) != 1) {
			kill(run->pid, SIGKILL);
			break;
		}
		n = read(run->output, text + used, len - 1 - used);
		used += n > 0 ? n : 0;
	}
	text[used] = '\0';
	close(run->output);
}

/* 0 if it ended well and printed just that line; else a line says what it did. */
static int ends_with(struct run *run, const char *expected)
{
	char text[1024];
	int rc;

	collect(run, text, sizeof(text));
	rc = child_result(run->pid);
	if (!rc && !strcmp(text, expected))
		return 0;
	printf("# answer %d, printed: %s\n", rc, text);
	return rc ? rc : -EPROTO;
}

static int runs(const char *file, const char *expected)
{
	static const char *const none[] = { NULL };
	struct run run;
	int rc = start(&run, file, none);

	return rc ? rc : ends_with(&run, expected);
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

FIXTURE_VARIANT(pair) {
	const char *file;
	const char *server_says;
	const char *client_says;
};

FIXTURE_VARIANT_ADD(pair, blocking) {
	.file = "../userspace/examples/blocking",
	.server_says = "",
	.client_says = "the last of 100 answers: QUESTION 100 OF 100?\n",
};

FIXTURE_VARIANT_ADD(pair, scoped) {
	.file = "../userspace/examples/scoped",
	.server_says = "8 pieces each way, all as they were sent\n",
	.client_says = "8 pieces each way, all as they were sent\n",
};

FIXTURE_VARIANT_ADD(pair, one_sided) {
	.file = "../userspace/examples/one_sided",
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

TEST_F(pair, of_two_processes_exchanges_data_and_both_say_so)
{
	static const char *const server_args[] = { NULL };
	static const char *const client_args[] = { "localhost", NULL };
	struct run server, client;

	ASSERT_EQ(0, start(&server, variant->file, server_args));
	ASSERT_EQ(0, start(&client, variant->file, client_args));
	EXPECT_EQ(0, ends_with(&client, variant->client_says));
	EXPECT_EQ(0, ends_with(&server, variant->server_says));
}

TEST_F(pair, across_two_devices_does_the_same)
{
	static const char *const server_args[] = { "-d", "rxe0", NULL };
	static const char *const client_args[] = { "-d", "rxe1", "localhost", NULL };
	struct run server, client;

	ASSERT_EQ(0, start(&server, variant->file, server_args));
	ASSERT_EQ(0, start(&client, variant->file, client_args));
	EXPECT_EQ(0, ends_with(&client, variant->client_says));
	EXPECT_EQ(0, ends_with(&server, variant->server_says));
}

#define CLIENTS		3
#define CLIENT_SAYS	"50 messages came back, the last as: desrever eb ot 94 egassem\n"

TEST_F(example, epoll_server_serves_clients_at_the_same_time)
{
	static const char *const server_args[] = { "-n", "3", NULL };
	static const char *const client_args[] = { "localhost", NULL };
	static const char file[] = "../userspace/examples/epoll_server";
	struct run server, clients[CLIENTS];

	ASSERT_EQ(0, start(&server, file, server_args));
	for (int i = 0; i < CLIENTS; i++)
		ASSERT_EQ(0, start(&clients[i], file, client_args));
	for (int i = 0; i < CLIENTS; i++)
		EXPECT_EQ(0, ends_with(&clients[i], CLIENT_SAYS));
	EXPECT_EQ(0, ends_with(&server, "3 clients served\n"));
}

TEST_F(example, a_device_that_is_not_there_is_said_in_words)
{
	static const char *const arguments[] = { "-d", "no_such_device", "localhost", NULL };
	struct run run;
	char text[256];

	ASSERT_EQ(0, start(&run, "../userspace/examples/blocking", arguments));
	collect(&run, text, sizeof(text));
	EXPECT_EQ(-1, child_result(run.pid));
	EXPECT_STREQ("blocking: device: No such device\n", text);
}

TEST_HARNESS_MAIN
