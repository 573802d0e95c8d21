// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "window.h"

#define WINDOWS	"/sys/kernel/debug/ibchan/windows"

int window_visits(const char *name, struct visits *visits)
{
	FILE *file = fopen(WINDOWS, "re");
	int rc = -EINVAL;
	char other[32];

	if (!file)
		return -errno;
	while (rc && fscanf(file, "%31s %u %u", other, &visits->entered, &visits->left) == 3)
		rc = strcmp(other, name) ? -EINVAL : 0;
	fclose(file);
	return rc;
}

int window_widen(const char *name, unsigned int us)
{
	char line[64];
	int length = snprintf(line, sizeof(line), "%s %u\n", name, us);
	int fd = open(WINDOWS, O_WRONLY | O_CLOEXEC);
	int rc = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, line, length) != length)
		rc = -errno;
	close(fd);
	return rc;
}
