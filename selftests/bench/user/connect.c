// SPDX-License-Identifier: GPL-2.0-only
/*
 * connect: what it takes to connect and to close again, by libibchan and by librdmacm,
 * both ends in this thread. For where the monotonic clock counts instructions, on one CPU.
 * Prints a line for each case:
 *
 *	connect CASE OWN-MINIMUM OWN-MEDIAN RDMACM-MINIMUM RDMACM-MEDIAN
 *
 * of one connection, both ends. Work that the kernel leaves for later is part of it: each
 * round goes on until that has been done. What passes while nobody has anything to do is not:
 * a process that runs only then takes that time up by counting, and what it has counted is
 * left out.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "connect.h"

#define ROUNDS		5
#define PER_ROUND	32
#define SETTLE_NS	100000000

#define IDLE_STEP	1000
#define IDLE_STEPS	100

#define IPV4		"10.77.0.1"
#define IPV6		"fd77::1"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

static const struct test {
	const char *name;
	struct job job;
	unsigned int times;
} tests[] = {
	{ "one", { .host = IPV4, .number = 1 }, PER_ROUND },
	{ "shared_cq", { .host = IPV4, .number = 1, .shared_cq = true }, PER_ROUND },
	{ "ipv6", { .host = IPV6, .number = 1 }, PER_ROUND },
	{ "many", { .host = IPV4, .number = MOST }, 1 },
};

static const struct way * const ways[] = { &own_way, &rdmacm_way };

#define WAYS	ARRAY_SIZE(ways)

/* What the idle process shares with its parent. */
static struct {
	unsigned long long steps;
	unsigned long long cost;
} *idle;

void fill(unsigned char *bytes, unsigned int seed)
{
	unsigned int i;

	for (i = 0; i < MESSAGE; i++)
		bytes[i] = seed * 31 + i * 7 + 1;
}

bool has_arrived(const unsigned char *memory, unsigned int seed)
{
	unsigned char expected[MESSAGE];
	unsigned int end;

	fill(expected, seed);
	for (end = 0; end < 2 * MOST; end++)
		if (!memcmp(memory + place_of(end), expected, MESSAGE))
			return true;
	return false;
}

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

	for (i = 0; i < IDLE_STEP; i++)
		__asm__ volatile("");
}

/* As long as nothing comes between. */
static unsigned long long cost_of_spending(void)
{
	unsigned long long least = ~0ULL, cost;
	unsigned int i, j;

	for (i = 0; i < ROUNDS; i++) {
		cost = now();
		for (j = 0; j < IDLE_STEPS; j++)
			spend();
		cost = now() - cost;
		least = cost < least ? cost : least;
	}
	return least / IDLE_STEPS;
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

static pid_t start_idle(void)
{
	pid_t pid;

	idle = mmap(NULL, sizeof(*idle), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		    -1, 0);
	if (idle == MAP_FAILED)
		return -1;
	idle->cost = cost_of_spending();
	pid = fork();
	if (!pid)
		be_idle();
	return pid;
}

/* Instructions so far. */
static unsigned long long idled(void)
{
	return __atomic_load_n(&idle->steps, __ATOMIC_RELAXED) * idle->cost;
}

static void settle(void)
{
	const struct timespec t = { .tv_nsec = SETTLE_NS };

	nanosleep(&t, NULL);
}

/* Instructions of one connection in a round. */
static int measure(const struct way *way, const struct test *test, unsigned long long *cost)
{
	unsigned long long idle_before = idled(), begin = now();
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < test->times; i++)
		rc = way->run(&test->job);
	settle();
	*cost = now() - begin - (idled() - idle_before);
	*cost /= test->times * test->job.number;
	return rc;
}

static int compare(const void *a, const void *b)
{
	const unsigned long long *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int warm_up(const struct test *test)
{
	struct job job = test->job;
	unsigned int i;
	int rc = 0;

	job.verify = true;
	for (i = 0; !rc && i < WAYS; i++)
		rc = ways[i]->open(job.host);
	for (i = 0; !rc && i < WAYS; i++)
		rc = ways[i]->run(&job);
	settle();
	return rc;
}

static int run_test(const struct test *test)
{
	unsigned long long costs[WAYS][ROUNDS];
	unsigned int i, round;
	int rc = warm_up(test);

	for (round = 0; !rc && round < ROUNDS; round++)
		for (i = 0; !rc && i < WAYS; i++)
			rc = measure(ways[i], test, &costs[i][round]);
	for (i = 0; !rc && i < WAYS; i++)
		rc = ways[i]->close();
	if (rc)
		return rc;
	if (!idled())
		return -EPERM;
	printf("connect %s", test->name);
	for (i = 0; i < WAYS; i++) {
		qsort(costs[i], ROUNDS, sizeof(costs[i][0]), compare);
		printf(" %llu %llu", costs[i][0], costs[i][ROUNDS / 2]);
	}
	printf("\n");
	return 0;
}

int main(void)
{
	pid_t child = start_idle();
	unsigned int i;
	int rc = child < 0 ? -errno : 0;

	for (i = 0; !rc && i < ARRAY_SIZE(tests); i++) {
		rc = run_test(&tests[i]);
		if (rc)
			fprintf(stderr, "connect: %s: %s\n", tests[i].name, strerror(-rc));
		fflush(stdout);
	}
	if (child > 0)
		kill(child, SIGKILL);
	return rc ? 1 : 0;
}
