// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cmd.h"
#include "namespace.h"
#include "world.h"

int run_script(const char *script)
{
	const char *const argv[] = { "sh", "-ec", script, NULL };

	return run_program(argv);
}

int netns_mode(const char *mode)
{
	char script[96];

	snprintf(script, sizeof(script), "\"${IBCHAN_SELFTESTS:-selftests}\"/netns-mode %s", mode);
	return run_script(script);
}

int netns_enter_new(void)
{
	return unshare(CLONE_NEWNET) ? -errno : 0;
}

static int map_root(uid_t uid, gid_t gid)
{
	char line[32];
	int rc = put_line("/proc/self/setgroups", "deny");

	snprintf(line, sizeof(line), "0 %u 1", uid);
	if (!rc)
		rc = put_line("/proc/self/uid_map", line);
	snprintf(line, sizeof(line), "0 %u 1", gid);
	return rc ? rc : put_line("/proc/self/gid_map", line);
}

int userns_enter_as_nobody(int more)
{
	int rc = drop_privileges();
	uid_t uid = getuid();
	gid_t gid = getgid();

	if (rc)
		return rc;
	/* Who has changed its user may not write its own files in /proc without this. */
	if (prctl(PR_SET_DUMPABLE, 1) || unshare(CLONE_NEWUSER | more))
		return -errno;
	return map_root(uid, gid);
}

int mountns_enter_without_dev(const char *kept)
{
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount(NODE, kept, NULL, MS_BIND, NULL) ||
	    mount("none", "/dev", "tmpfs", 0, NULL))
		return -errno;
	return 0;
}
