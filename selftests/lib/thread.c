// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>

#include "thread.h"
#include "world.h"

/* What @format finds at the beginning of /proc/TID/@file. */
static int scan(pid_t tid, const char *file, const char *format, void *value)
{
	char path[64];
	FILE *stream;
	int n;

	snprintf(path, sizeof(path), "/proc/%d/%s", tid, file);
	stream = fopen(path, "re");
	if (!stream)
		return -errno;
	n = fscanf(stream, format, value);
	fclose(stream);
	return n == 1 ? 0 : -ENODATA;
}

/* Architectures without a poll() of their own have ppoll(), and 32 bits two of that. */
static bool is_waiting_call(long call)
{
	switch (call) {
	case SYS_ioctl:
#ifdef SYS_poll
	case SYS_poll:
#endif
	case SYS_ppoll:
#ifdef SYS_ppoll_time64
	case SYS_ppoll_time64:
#endif
		return true;
	default:
		return false;
	}
}

/* A stopped thread is in a call as well, in another state. */
static bool waits_in_kernel(pid_t tid, char wanted)
{
	char state;
	long call;

	return !scan(tid, "stat", "%*d (%*[^)]) %c", &state) && state == wanted &&
	       !scan(tid, "syscall", "%ld", &call) && is_waiting_call(call);
}

bool sleeps_in_kernel(pid_t tid)
{
	return waits_in_kernel(tid, 'S');
}

bool waits_killably(void *tid)
{
	return waits_in_kernel(__atomic_load_n((pid_t *)tid, __ATOMIC_ACQUIRE), 'D');
}

bool is_asleep(void *tid)
{
	return sleeps_in_kernel(__atomic_load_n((pid_t *)tid, __ATOMIC_ACQUIRE));
}

long times_asleep(pid_t tid)
{
	return status_number(tid, "voluntary_ctxt_switches: %ld");
}

int join_soon(pthread_t thread, void **result)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += patience_ms() / 1000;
	return -pthread_timedjoin_np(thread, result, &end);
}

void moment(unsigned int us)
{
	const struct timespec time = { us / 1000000, us % 1000000 * 1000L };

	ppoll(NULL, 0, &time, NULL);
}
