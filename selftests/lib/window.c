// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "window.h"
#include "world.h"

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

	snprintf(line, sizeof(line), "%s %u\n", name, us);
	return put_line(WINDOWS, line);
}

struct entrance {
	const char *name;
	unsigned int before;
};

static bool is_entered(void *arg)
{
	const struct entrance *entrance = arg;
	struct visits visits;

	return !window_visits(entrance->name, &visits) && visits.entered != entrance->before;
}

bool window_is_entered(const char *name, const struct visits *before)
{
	struct entrance entrance = { name, before->entered };

	return eventually(is_entered, &entrance);
}
