// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../idle/idle.h"
#include "measure.h"

/* Long ones without effect. */
#define MARK(byte) \
	__asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0, " #byte ", 0x56, 0x34, 0x12")

const char *profiled;

const struct way * const ways[WAYS] = { &own_way, &verbs_way };

unsigned int num_ways = WAYS;

unsigned long long others_ran;

void let_others_run(void)
{
	others_ran++;
	sched_yield();
}

unsigned long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	const unsigned long long *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

void series_sort(struct series *series)
{
	qsort(series->cost, ROUNDS, sizeof(series->cost[0]), compare);
}

unsigned long long series_minimum(const struct series *series)
{
	return series->cost[0];
}

unsigned long long series_median(const struct series *series)
{
	return series->cost[ROUNDS / 2];
}

static int run_all(const struct trial *trial, unsigned int way)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < trial->repeats; i++)
		rc = trial->run(ways[way], trial->arg);
	return rc;
}

static int measure_sleeping(const struct trial *trial, unsigned int way,
			    unsigned long long *cost)
{
	unsigned long long begin = idle_clock();
	int rc = run_all(trial, way);

	idle_settle();
	*cost = idle_clock() - begin;
	return rc;
}

static int measure_awake(const struct trial *trial, unsigned int way, unsigned long long *cost)
{
	unsigned long long begin = now();
	int rc = run_all(trial, way);

	*cost = now() - begin;
	return rc;
}

int measure_round(const struct trial *trial, unsigned int way, unsigned long long *cost)
{
	int rc = trial->sleeps ? measure_sleeping(trial, way, cost) :
				 measure_awake(trial, way, cost);

	*cost /= trial->repeats * trial->operations;
	return rc;
}

int profile(const struct trial *trial, unsigned int way)
{
	int rc;

	if (strcmp(trial->name, profiled))
		return 0;
	rc = run_all(trial, way);
	MARK(0x78);
	rc = rc ?: run_all(trial, way);
	MARK(0x79);
	printf("operations %u\n", trial->repeats * trial->operations);
	return rc;
}

/* Thousandths of one operation; -1: not known. */
static int count_calls(const struct trial *trial, unsigned int way, long long *calls)
{
	unsigned long long before = others_ran;
	int counter = calls_begin();
	int rc = run_all(trial, way);

	*calls = calls_end(counter);
	if (*calls > 0)
		*calls -= (long long)(others_ran - before);
	if (*calls > 0)
		*calls = *calls * 1000 / trial->repeats / trial->operations;
	return rc;
}

static void report(const struct trial *trial, const struct series *series,
		   const long long *calls)
{
	if (num_ways == 1) {
		printf("own %s %llu %llu %lld\n", trial->name, series_minimum(&series[OWN]),
		       series_median(&series[OWN]), calls[OWN]);
		fflush(stdout);
		return;
	}
	printf("ways %s %lu %u %u %llu %llu %llu %llu %lld %lld\n", trial->name, trial->size,
	       trial->depth, trial->chain, series_minimum(&series[OWN]),
	       series_median(&series[OWN]), series_minimum(&series[VERBS]),
	       series_median(&series[VERBS]), calls[OWN], calls[VERBS]);
	fflush(stdout);
}

static int profile_ways(const struct trial *trial)
{
	unsigned int way;
	int rc = 0;

	for (way = 0; !rc && way < num_ways; way++)
		rc = profile(trial, way);
	return rc;
}

int measure_ways(const struct trial *trial)
{
	struct series series[WAYS];
	unsigned int round, way;
	long long calls[WAYS];
	int rc = 0;

	if (profiled)
		return profile_ways(trial);
	for (round = 0; !rc && round < ROUNDS; round++)
		for (way = 0; !rc && way < num_ways; way++)
			rc = measure_round(trial, way, &series[way].cost[round]);
	for (way = 0; !rc && way < num_ways; way++) {
		series_sort(&series[way]);
		rc = count_calls(trial, way, &calls[way]);
	}
	if (rc)
		fprintf(stderr, "operate: %s\n", trial->name);
	else
		report(trial, series, calls);
	return rc;
}
