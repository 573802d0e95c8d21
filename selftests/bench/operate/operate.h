/* SPDX-License-Identifier: GPL-2.0-only */
/* What an operation costs from user space: the two ways that are compared. */
#ifndef BENCH_OPERATE_H
#define BENCH_OPERATE_H

#include <stdbool.h>

#define DEPTH		64
/* Elements that a request may have: the default of libibchan's builder. */
#define ELEMENTS	16
/* Of the pairs that are made only to be given up again. */
#define PAIR_DEPTH	16
#define PAIR_ELEMENTS	1
/* Reads and atomics in flight, of all queue pairs. */
#define RD_ATOMIC	16
#define AREA		0x100000
/* Sources, and behind them targets. */
#define MEMORY		(2 * AREA)
/* Apart, as works in flight have to be. */
#define STRIDE		64
#define PAGE		4096UL

enum what { WRITE, SEND, READ, ADD };

/**
 * struct shape - operations between two queue pairs of one device
 * @name: group and case
 * @what: WRITE; SEND and the receive that takes it; READ; ADD: fetch and add
 * @size: bytes of each; 8 for ADD
 * @depth: in flight at a time, up to DEPTH
 * @chain: of one post; divides @depth
 * @blocking: libibchan waits in the call; @depth is 1
 * @unchecked: libibchan does not compare ranges
 * @repeats: how often @depth operations are done in a round
 */
struct shape {
	const char *name;
	enum what what;
	unsigned int size;
	unsigned int depth;
	unsigned int chain;
	bool blocking;
	bool unchecked;
	unsigned int repeats;
};

/**
 * struct way - one way to do them
 * @open: connect; the memory is registered
 * @load: make ready whatever stays the same from time to time
 * @run: post @depth operations and reap them all
 * @register_once: register this memory and give it up again
 * @pair_once: make a completion queue and two queue pairs on it, connect them, and give all
 *	of it up again
 * @close: the end
 *
 * Each returns 0 or a negative errno.
 */
struct way {
	int (*open)(unsigned char *memory);
	int (*load)(const struct shape *shape);
	int (*run)(const struct shape *shape);
	int (*register_once)(void *addr, unsigned long length);
	int (*pair_once)(void);
	int (*close)(void);
};

extern const struct way own_way;
extern const struct way verbs_way;

static inline unsigned int place_of(const struct shape *shape, unsigned int i)
{
	return i * (shape->size > STRIDE ? shape->size : STRIDE);
}

/*
 * For who looks and finds nothing: soft-RoCE of later kernels works in a thread, which may
 * not get the one CPU before the next tick. These calls are not counted as an operation's.
 */
extern unsigned long long others_ran;
void let_others_run(void);

/* Groups of cases; each prints a line for each case. @memory is what the ways are open on. */
int entry_measure(void);
int shapes_measure(unsigned char *memory);
int setup_measure(void);
int plain_measure(unsigned char *memory);
int scale_measure(unsigned char *memory);

#endif /* BENCH_OPERATE_H */
