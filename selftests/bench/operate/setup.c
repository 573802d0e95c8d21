// SPDX-License-Identifier: GPL-2.0-only
/* What is made before the first operation: registrations, and connected pairs. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

#include "../idle/idle.h"
#include "measure.h"

#define PAIRS	32

/**
 * struct registration - memory that is registered and given up again and again
 * @name: group and case
 * @length: bytes
 * @repeats: times in a round
 * @flags: of mmap()
 * @settles: what is freed behind a grace period counts, too: where that is a part of the
 *	cost, it would come at any time
 */
struct registration {
	const char *name;
	unsigned long length;
	unsigned int repeats;
	int flags;
	bool settles;
};

/* Where one is measured. */
struct range {
	unsigned char *memory;
	unsigned long length;
};

static const struct registration registrations[] = {
	{ "setup.mr_4k", PAGE, 512, 0, true },
	{ "setup.mr_1m", 1UL << 20, 8, 0, false },
	{ "setup.mr_256m", 256UL << 20, 1, 0, false },
	{ "setup.mr_256m_huge", 256UL << 20, 1, MAP_HUGETLB, false },
};

/* In the class @policy; who sleeps makes room without being asked to. */
static int set_class(int policy)
{
	const struct sched_param param = { 0 };

	return sched_setscheduler(0, policy, &param) ? -errno : 0;
}

/* All ways, with somebody who runs when nobody else does. */
static int measure_settling(const struct trial *trial)
{
	int class = sched_getscheduler(0);
	unsigned int i;
	int rc = set_class(SCHED_OTHER);

	rc = rc ?: idle_start();
	for (i = 0; !rc && i < num_ways; i++)
		rc = trial->run(ways[i], trial->arg);
	rc = rc ?: measure_ways(trial);
	idle_stop();
	return rc ?: set_class(class);
}

static int register_once(const struct way *way, const void *arg)
{
	const struct range *range = arg;

	return way->register_once(range->memory, range->length);
}

static int map(struct range *range, int flags)
{
	unsigned long at;

	range->memory = mmap(NULL, range->length, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
	if (range->memory == MAP_FAILED)
		return -errno;
	for (at = 0; at < range->length; at += PAGE)
		range->memory[at] = 1;
	return 0;
}

static int measure_range(const struct registration *registration, const struct range *range)
{
	const struct trial trial = {
		.name = registration->name,
		.size = registration->length,
		.repeats = registration->repeats,
		.operations = 1,
		.sleeps = registration->settles,
		.run = register_once,
		.arg = range,
	};
	unsigned int i;
	int rc = 0;

	if (trial.sleeps)
		return measure_settling(&trial);
	for (i = 0; !rc && i < num_ways; i++)
		rc = register_once(ways[i], range);
	return rc ?: measure_ways(&trial);
}

static int measure_registration(const struct registration *registration)
{
	struct range range = { .length = registration->length };
	int rc = map(&range, registration->flags);

	if (rc)
		return rc;
	rc = measure_range(registration, &range);
	munmap(range.memory, range.length);
	return rc;
}

static int pair_once(const struct way *way, const void *arg)
{
	(void)arg;
	return way->pair_once();
}

static int measure_pairs(void)
{
	const struct trial trial = {
		.name = "setup.pair",
		.repeats = PAIRS,
		.operations = 1,
		.sleeps = true,
		.run = pair_once,
	};

	return measure_settling(&trial);
}

int setup_measure(void)
{
	unsigned int i;
	int rc = measure_pairs();

	for (i = 0; !rc && i < ARRAY_SIZE(registrations); i++)
		if (num_ways == WAYS || registrations[i].settles)
			rc = measure_registration(&registrations[i]);
	return rc;
}
