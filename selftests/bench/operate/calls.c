// SPDX-License-Identifier: GPL-2.0-only
/*
 * System calls, as the kernel counts them. To begin rewrites code that every CPU runs, so
 * this is for a machine with one.
 */
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "measure.h"

#define EVENT	"/sys/kernel/tracing/events/raw_syscalls/sys_enter/id"

/* What ends the counting is a call itself. */
#define OF_COUNTING	1

static int event_id(unsigned long long *id)
{
	FILE *file = fopen(EVENT, "r");
	int found;

	if (!file)
		return -1;
	found = fscanf(file, "%llu", id);
	fclose(file);
	return found == 1 ? 0 : -1;
}

int calls_begin(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.disabled = 1,
	};
	unsigned long long id;
	int counter;

	if (sysconf(_SC_NPROCESSORS_ONLN) > 1 || event_id(&id))
		return -1;
	attr.config = id;
	counter = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	if (counter >= 0)
		ioctl(counter, PERF_EVENT_IOC_ENABLE, 0);
	return counter;
}

long long calls_end(int counter)
{
	unsigned long long count;
	ssize_t got;

	if (counter < 0)
		return -1;
	ioctl(counter, PERF_EVENT_IOC_DISABLE, 0);
	got = read(counter, &count, sizeof(count));
	close(counter);
	return got == sizeof(count) ? (long long)(count - OF_COUNTING) : -1;
}
