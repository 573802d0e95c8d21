// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "idle.h"

/* Grace periods, and timers of workqueues, are over by then. */
#define SETTLE_NS	100000000

#define STEP		1000
#define STEPS		100
#define ROUNDS		5

/* What the process shares with its parent. */
static struct {
	unsigned long long steps;
	unsigned long long cost;
} *idle;

static pid_t child;

static unsigned long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* The same number of instructions every time. */
static void spend(void)
{
	unsigned int i;

	for (i = 0; i < STEP; i++)
		__asm__ volatile("");
}

/* As long as nothing comes between. */
static unsigned long long cost_of_spending(void)
{
	unsigned long long least = ~0ULL, cost;
	unsigned int i, j;

	for (i = 0; i < ROUNDS; i++) {
		cost = now();
		for (j = 0; j < STEPS; j++)
			spend();
		cost = now() - cost;
		least = cost < least ? cost : least;
	}
	return least / STEPS;
}

/* Runs when nobody else wants to, until its parent is gone. */
static void be_idle(void)
{
	const struct sched_param param = { 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (sched_setscheduler(0, SCHED_IDLE, &param))
		_exit(1);
	for (;;) {
		spend();
		__atomic_fetch_add(&idle->steps, 1, __ATOMIC_RELAXED);
	}
}

static unsigned long long steps(void)
{
	return __atomic_load_n(&idle->steps, __ATOMIC_RELAXED);
}

int idle_start(void)
{
	idle = mmap(NULL, sizeof(*idle), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		    -1, 0);
	if (idle == MAP_FAILED)
		return -errno;
	idle->cost = cost_of_spending();
	child = fork();
	if (child < 0)
		return -errno;
	if (!child)
		be_idle();
	idle_settle();
	return steps() ? 0 : -EPERM;
}

void idle_stop(void)
{
	if (child > 0)
		kill(child, SIGKILL);
	child = 0;
}

unsigned long long idle_clock(void)
{
	return now() - steps() * idle->cost;
}

void idle_settle(void)
{
	const struct timespec t = { .tv_nsec = SETTLE_NS };

	nanosleep(&t, NULL);
}

void print_maps(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];

	if (!maps)
		return;
	while (fgets(line, sizeof(line), maps))
		printf("map %s", line);
	fclose(maps);
}
