// SPDX-License-Identifier: GPL-2.0-only
/* What the examples say when a call has failed, by the code that they have in common. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/wait.h>

/* The tests have one of that name. */
#define side_open	examples_side_open
#include "../userspace/examples/common.c"

#include "test.h"

/* What must() prints of @ret in a process that it ends, with @told in the place for details. */
static int says(const struct ibchan_error *told, int ret, char *text, size_t len)
{
	int ends[2], status = 0;
	size_t used = 0;
	ssize_t n = 1;
	pid_t pid;

	if (pipe(ends))
		return -errno;
	pid = fork();
	if (!pid) {
		dup2(ends[1], STDERR_FILENO);
		error = *told;
		must("call", ret);
		_exit(0);
	}
	close(ends[1]);
	while (n > 0 && used + 1 < len) {
		n = read(ends[0], text + used, len - 1 - used);
		used += n > 0 ? n : 0;
	}
	text[used] = '\0';
	close(ends[0]);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EPROTO;
}

static const struct ibchan_error of_older_call = {
	.code = -EINVAL,
	.origin = IBCHAN_ERROR_CALL,
	.reason = { .code = IBCHAN_REASON_EMPTY_RANGE },
};

TEST(details_of_a_call_are_told_when_it_has_failed)
{
	char text[256];

	ASSERT_EQ(1, says(&of_older_call, -EINVAL, text, sizeof(text)));
	ASSERT_NE(NULL, strstr(text, "call: the range is empty")) TH_LOG("%s", text);
}

TEST(details_of_an_older_call_are_not_told_of_one_that_gives_none)
{
	char text[256];

	ASSERT_EQ(1, says(&of_older_call, -ENODEV, text, sizeof(text)));
	ASSERT_EQ(NULL, strstr(text, "range")) TH_LOG("%s", text);
	ASSERT_NE(NULL, strstr(text, ibchan_strerror(-ENODEV))) TH_LOG("%s", text);
}

/* Nor of one with the same code, when a call has succeeded in between. */
TEST(details_of_an_older_call_are_forgotten_when_a_call_succeeds)
{
	error = of_older_call;
	ASSERT_EQ(3, must("call", 3));
	ASSERT_EQ(0, error.reason.code);
}

TEST_HARNESS_MAIN
