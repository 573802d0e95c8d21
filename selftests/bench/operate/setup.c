// SPDX-License-Identifier: GPL-2.0-only
/* What is made before the first operation: registrations, and connected pairs. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>

#include "../idle/idle.h"
#include "measure.h"

#define PAIRS	32

struct registration {
	const char *name;
	unsigned long length;
	unsigned int repeats;
	int flags;
};

/* Where one is measured. */
struct range {
	unsigned char *memory;
	unsigned long length;
};

static const struct registration registrations[] = {
	{ "setup.mr_4k", PAGE, 64, 0 },
	{ "setup.mr_1m", 1UL << 20, 8, 0 },
	{ "setup.mr_256m", 256UL << 20, 1, 0 },
	{ "setup.mr_256m_huge", 256UL << 20, 1, MAP_HUGETLB },
};

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
		.run = register_once,
		.arg = range,
	};
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < WAYS; i++)
		rc = register_once(ways[i], range);
	return rc ?: measure_both(&trial);
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

/* In the class @policy; who sleeps makes room without being asked to. */
static int set_class(int policy)
{
	const struct sched_param param = { 0 };

	return sched_setscheduler(0, policy, &param) ? -errno : 0;
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
	int class = sched_getscheduler(0);
	unsigned int i;
	int rc = set_class(SCHED_OTHER);

	rc = rc ?: idle_start();
	for (i = 0; !rc && i < WAYS; i++)
		rc = pair_once(ways[i], NULL);
	rc = rc ?: measure_both(&trial);
	idle_stop();
	return rc ?: set_class(class);
}

int setup_measure(void)
{
	unsigned int i;
	int rc = measure_pairs();

	for (i = 0; !rc && i < ARRAY_SIZE(registrations); i++)
		rc = measure_registration(&registrations[i]);
	return rc;
}
