// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fail_nth.h"
#include "world.h"

#define KNOBS	"/sys/kernel/debug/"

/* Those who may wait for memory fail as well, and single pages; nobody logs it. */
static const struct {
	const char *path;
	const char *value;
} knobs[] = {
	{ KNOBS "failslab/ignore-gfp-wait", "N" },
	{ KNOBS "failslab/verbose", "0" },
	{ KNOBS "fail_page_alloc/ignore-gfp-wait", "N" },
	{ KNOBS "fail_page_alloc/min-order", "0" },
	{ KNOBS "fail_page_alloc/verbose", "0" },
	{ KNOBS "fail_usercopy/verbose", "0" },
	{ NULL, NULL },
};

int fail_nth_open(void)
{
	size_t i;
	int fd, rc;

	for (i = 0; knobs[i].path; i++) {
		rc = put_line(knobs[i].path, knobs[i].value);
		if (rc)
			return rc;
	}
	fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int fail_nth_arm(int fd, unsigned int nth)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%u", nth);

	return pwrite(fd, text, length, 0) == length ? 0 : -errno;
}

/* To read the rest of the count is a copy as well, and so is the way to end it. */
int fail_nth_disarm(int fd)
{
	char text[16] = "";
	int fired;

	if (pread(fd, text, sizeof(text) - 1, 0) >= 0)
		fired = !atoi(text);
	else if (errno == EFAULT)
		fired = 0;
	else
		return -errno;
	if (!fail_nth_arm(fd, 0) || (errno == EFAULT && !fail_nth_arm(fd, 0)))
		return fired;
	return -errno;
}
