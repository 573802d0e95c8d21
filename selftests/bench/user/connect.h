/* SPDX-License-Identifier: GPL-2.0-only */
/* What connecting costs: the two ways that are compared. */
#ifndef BENCH_CONNECT_H
#define BENCH_CONNECT_H

#include <stdbool.h>

/* Of every queue pair, on both ways. */
#define DEPTH		16
#define ELEMENTS	16
#define MESSAGE		64
#define MOST		64

/**
 * struct job - connections to make and to close again
 * @host: address of the device, for both ends
 * @number: of connections that are there at the same time, up to MOST
 * @shared_cq: all of them have one cq, that is there already
 * @verify: a message crosses each of them both ways
 */
struct job {
	const char *host;
	unsigned int number;
	bool shared_cq;
	bool verify;
};

/**
 * struct way - one way to do a job
 * @open: what stays from job to job, among it a listener at @host
 * @run: the job
 * @close: the end
 *
 * Each returns 0 or a negative errno.
 */
struct way {
	int (*open)(const char *host);
	int (*run)(const struct job *job);
	int (*close)(void);
};

extern const struct way own_way;
extern const struct way rdmacm_way;

/* What is sent, and behind it a place for each end of a job to receive in. */
#define MEMORY		(MESSAGE * (2 * MOST + 1))

static inline unsigned int place_of(unsigned int end)
{
	return MESSAGE * (end + 1);
}

/* The bytes of a message, told apart by @seed, up to 255; whether an end has got them. */
void fill(unsigned char *bytes, unsigned int seed);
bool has_arrived(const unsigned char *memory, unsigned int seed);

#endif /* BENCH_CONNECT_H */
