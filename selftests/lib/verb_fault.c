// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>

#include "verb_fault.h"
#include "world.h"

#define FAULTS	"/sys/kernel/debug/ibchan/faults"

int verb_points(struct verb_point *points)
{
	FILE *file = fopen(FAULTS, "re");
	int num = 0;

	if (!file)
		return -errno;
	while (num < VERB_POINTS_MAX &&
	       fscanf(file, "%31s %ld", points[num].name, &points[num].passed) == 2)
		num++;
	fclose(file);
	return num;
}

int verb_fault(const char *point, unsigned int nth, int error)
{
	char line[64];

	snprintf(line, sizeof(line), "%s %u %d\n", point, nth, error);
	return put_line(FAULTS, line);
}

long verb_passed(const char *point)
{
	return counter_of(FAULTS, point);
}
