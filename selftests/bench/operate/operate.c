// SPDX-License-Identifier: GPL-2.0-only
/*
 * operate: what things cost by libibchan and by libibverbs, both ends in this thread. Where
 * the monotonic clock counts instructions, on one CPU, these are exact; run it there in the
 * class that makes room for all other threads (SCHED_IDLE). Elsewhere they are
 * nanoseconds. Its lines are those of measure.h, plain.c and scale.c.
 *
 * operate NAME: only that case, for an emulator's plugin to look at.
 *
 * operate --own [NAME]: only libibchan, on a device that moves no data; see measure.h.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "../idle/idle.h"
#include "measure.h"

#define AGE	4096

/* soft-RoCE finds regions by a number that grows, and takes longer when it is long. */
static int age(unsigned char *memory)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < AGE; i++)
		rc = verbs_way.register_once(memory, PAGE);
	return rc;
}

int main(int argc, char **argv)
{
	unsigned char *memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int rc = memory == MAP_FAILED ? -errno : 0;
	unsigned int i;

	if (argc > 1 && !strcmp(argv[1], "--own")) {
		num_ways = 1;
		argv++;
		argc--;
	}
	if (argc > 1)
		profiled = argv[1];
	for (i = 0; !rc && i < num_ways; i++)
		rc = ways[i]->open(memory);
	if (num_ways == WAYS)
		rc = rc ?: age(memory);
	else
		rc = rc ?: entry_measure();
	rc = rc ?: shapes_measure(memory);
	rc = rc ?: setup_measure();
	rc = rc ?: plain_measure(memory);
	if (profiled)
		print_maps();
	else if (num_ways == WAYS)
		rc = rc ?: scale_measure(memory);
	for (i = 0; !rc && i < num_ways; i++)
		rc = ways[i]->close();
	if (rc)
		fprintf(stderr, "operate: %s\n", strerror(-rc));
	return rc ? 1 : 0;
}
