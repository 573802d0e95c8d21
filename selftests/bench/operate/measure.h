/* SPDX-License-Identifier: GPL-2.0-only */
/* How the two ways are measured, and the lines that tell of it. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "operate.h"

#define ROUNDS		7
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* What of one thing: by ibchan, and by the verbs below. */
enum { OWN, VERBS, WAYS };

extern const struct way * const ways[WAYS];

/*
 * How many of them are measured: one where the device moves no data and has no verbs for user
 * space, so that what is left is libibchan's. Then nothing is looked for at the target.
 */
extern unsigned int num_ways;

/**
 * struct series - what the same costs in each round
 * @cost: of one operation; sorted by series_sort()
 */
struct series {
	unsigned long long cost[ROUNDS];
};

/**
 * struct trial - something that is done both ways
 * @name: group and case
 * @size: bytes; 0: it has none
 * @depth: operations in flight
 * @chain: of one post
 * @repeats: how often @run is called in a round
 * @operations: how many it does each time
 * @sleeps: it waits, and leaves work for later; the clock is that of idle.h
 * @run: does them one way; 0 or a negative errno
 * @arg: for @run
 */
struct trial {
	const char *name;
	unsigned long size;
	unsigned int depth;
	unsigned int chain;
	unsigned int repeats;
	unsigned int operations;
	bool sleeps;
	int (*run)(const struct way *way, const void *arg);
	const void *arg;
};

unsigned long long now(void);
void series_sort(struct series *series);
unsigned long long series_minimum(const struct series *series);
unsigned long long series_median(const struct series *series);

/* One round of @trial, one way. */
int measure_round(const struct trial *trial, unsigned int way, unsigned long long *cost);

/*
 * All rounds, both ways by turns, and the line
 *
 *	ways NAME SIZE DEPTH CHAIN OWN-MINIMUM OWN-MEDIAN VERBS-MINIMUM VERBS-MEDIAN
 *		OWN-CALLS VERBS-CALLS
 *
 * where calls are thousandths of system calls of one operation; -1 where they are not counted.
 * Of one way only:
 *
 *	own NAME MINIMUM MEDIAN CALLS
 */
int measure_ways(const struct trial *trial);

/*
 * Which one is to be profiled: it runs between two instructions that an emulator's plugin
 * looks for, and nothing else runs, nor is measured. NULL: all are measured.
 */
extern const char *profiled;
/* Whether something else than @trial is, or it was. */
int profile(const struct trial *trial, unsigned int way);

/* calls.c: starts to count this thread's system calls, and says how many there were. */
int calls_begin(void);
long long calls_end(int counter);

#endif /* BENCH_MEASURE_H */
