/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A clock for work that sleeps, where time is a count of instructions: it stands while no
 * thread has anything to do. A process that runs only then takes that time up by counting, and what
 * it has counted is left out.
 */
#ifndef BENCH_IDLE_H
#define BENCH_IDLE_H

/* Once, and the end. 0 or a negative errno. */
int idle_start(void);
void idle_stop(void);

/* Instructions of the time in which some thread has had something to do. */
unsigned long long idle_clock(void);

/* Until what the kernel has left for later has been done. */
void idle_settle(void);

/* The program's map, by which a profile finds the library of an address. */
void print_maps(void);

#endif /* BENCH_IDLE_H */
