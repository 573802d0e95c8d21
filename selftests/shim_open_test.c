// SPDX-License-Identifier: GPL-2.0-only
/* What a program is told that cannot open /dev/ibchan. Each case has a /dev of its own. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ibchan.h>

#include "shim/run.h"
#include "test.h"
#include "world.h"

#define NODE		"/dev/ibchan"
#define NOBODY		65534
#define UNUSED_MAJOR	4000
#define HELLO		"../userspace/examples/hello"

FIXTURE(node)
{
	struct calm calm;
};

FIXTURE_SETUP(node)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
}

FIXTURE_TEARDOWN(node)
{
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* An empty folder instead of the one at @path, for this process and its children. */
static int hide(const char *path)
{
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", path, "tmpfs", 0, NULL))
		return -errno;
	return 0;
}

/* Whether opening fails with @code, and text and hint contain these. */
static bool opening_says(int code, const char *text, const char *hint)
{
	struct ibchan_context *context;
	struct ibchan_error error = { 0 };
	char said[256];
	int rc = ibchan_context_open(&context, &error);

	ibchan_error_text(&error, said, sizeof(said));
	if (rc == code && error.code == code && error.reason.code == IBCHAN_REASON_NODE &&
	    !strncmp(said, NODE ": ", strlen(NODE ": ")) && strstr(said, text) &&
	    strstr(ibchan_error_hint(&error), hint))
		return true;
	fprintf(stderr, "# %d: %s. %s\n", rc, said, ibchan_error_hint(&error));
	return false;
}

TEST_F(node, that_is_not_there_is_told_and_that_the_module_is_loaded)
{
	ASSERT_EQ(0, hide("/dev"));
	EXPECT_TRUE(opening_says(-ENOENT, "though the kernel module is loaded",
				 "--device " NODE));
}

TEST_F(node, that_is_not_there_is_told_where_nothing_tells_of_the_module)
{
	ASSERT_EQ(0, hide("/dev"));
	ASSERT_EQ(0, mount("none", "/sys/module", "tmpfs", 0, NULL));
	EXPECT_TRUE(opening_says(-ENOENT, "no sign of the kernel module", "modprobe ibchan"));
}

TEST_F(node, of_a_module_that_has_gone_is_told)
{
	ASSERT_EQ(0, hide("/dev"));
	ASSERT_EQ(0, mknod(NODE, S_IFCHR | 0666, makedev(UNUSED_MAJOR, 0)));
	EXPECT_TRUE(opening_says(-ENXIO, "the kernel module is not loaded", "modprobe ibchan"));
}

TEST_F(node, that_a_user_may_not_open_is_told_with_the_group)
{
	struct stat stat_of;

	ASSERT_EQ(0, stat(NODE, &stat_of));
	ASSERT_EQ(0, stat_of.st_mode & 06);
	ASSERT_EQ(0, setegid(NOBODY));
	ASSERT_EQ(0, seteuid(NOBODY));
	EXPECT_TRUE(opening_says(-EACCES, "this user may not open it", "rdma"));
	EXPECT_EQ(0, seteuid(0));
	EXPECT_EQ(0, setegid(0));
}

TEST_F(node, that_a_container_may_not_open_is_told)
{
	const struct ibchan_error error = {
		.origin = IBCHAN_ERROR_CALL,
		.code = -EPERM,
		.reason = { .code = IBCHAN_REASON_NODE, .value = { EPERM, 1 } },
	};

	EXPECT_NE(NULL, strstr(ibchan_error_string(&error), "the device list of a container"));
	EXPECT_NE(NULL, strstr(ibchan_error_string(&error), "--device " NODE));
}

TEST_F(node, that_is_not_there_is_told_by_the_calls_that_open_it_themselves)
{
	struct ibchan_channel *channel;
	struct ibchan_server *server;
	struct ibchan_error error;

	ASSERT_EQ(0, hide("/dev"));
	EXPECT_EQ(-ENOENT, ibchan_dial("10.77.0.1", "7471", NULL, &channel, &error));
	EXPECT_EQ(IBCHAN_REASON_NODE, error.reason.code);
	EXPECT_EQ(-ENOENT, ibchan_serve(NULL, "7471", NULL, &server, &error));
	EXPECT_EQ(IBCHAN_REASON_NODE, error.reason.code);
}

TEST_F(node, that_is_not_there_is_told_by_the_first_example)
{
	static const char *const none[] = { NULL };
	struct run run;
	char text[1024];
	int status;

	ASSERT_EQ(0, hide("/dev"));
	ASSERT_EQ(0, run_start(&run, HELLO, none));
	run_collect(&run, text, sizeof(text));
	ASSERT_EQ(run.pid, waitpid(run.pid, &status, 0));
	EXPECT_EQ(1, WEXITSTATUS(status));
	EXPECT_NE(NULL, strstr(text, NODE ": there is no such node")) TH_LOG("%s", text);
}

TEST_HARNESS_MAIN
