// SPDX-License-Identifier: GPL-2.0-only
/*
 * connect: what it takes to connect and to close again, by libibchan and by librdmacm,
 * both ends in this thread. For where the monotonic clock counts instructions, on one CPU.
 * Prints a line for each case:
 *
 *	connect CASE OWN-MINIMUM OWN-MEDIAN RDMACM-MINIMUM RDMACM-MEDIAN
 *
 * of one connection, both ends. Work that the kernel leaves for later is part of it: each
 * round goes on until that has been done. What passes while nobody has anything to do is not.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../idle/idle.h"
#include "connect.h"

#define ROUNDS		5
#define PER_ROUND	32

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

/* Instructions of one connection in a round. */
static int measure(const struct way *way, const struct test *test, unsigned long long *cost)
{
	unsigned long long begin = idle_clock();
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < test->times; i++)
		rc = way->run(&test->job);
	idle_settle();
	*cost = (idle_clock() - begin) / (test->times * test->job.number);
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
	idle_settle();
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
	unsigned int i;
	int rc = idle_start();

	for (i = 0; !rc && i < ARRAY_SIZE(tests); i++) {
		rc = run_test(&tests[i]);
		if (rc)
			fprintf(stderr, "connect: %s: %s\n", tests[i].name, strerror(-rc));
		fflush(stdout);
	}
	idle_stop();
	return rc ? 1 : 0;
}
