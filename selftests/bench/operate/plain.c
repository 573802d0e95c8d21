// SPDX-License-Identifier: GPL-2.0-only
/*
 * What plain memory costs above registered memory, against what registering it for one work
 * costs with libibverbs. Of a transfer that long the difference would be a small part, so it
 * is measured on a receive of that size, which a short send completes. Prints
 *
 *	plain NAME SIZE PLAIN-MINIMUM PLAIN-MEDIAN REGISTERED-MINIMUM REGISTERED-MEDIAN
 *		VERBS-MINIMUM VERBS-MEDIAN
 *
 * or, where libibchan alone is measured, what plain memory costs above:
 *
 *	own NAME MINIMUM MEDIAN 0
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "measure.h"
#include "own.h"

#define SENT	64
#define HUGE	(2UL << 20)
#define MANY	16

static const struct receive {
	const char *name;
	unsigned long size;
	unsigned int repeats;
	bool huge;	/* into a huge page, which a large allocation gets where the kernel may */
	bool many;	/* into so many ranges by turns that nobody remembers where they lie */
} receives[] = {
	{ "plain.receive_4k", PAGE, 64, false, false },
	{ "plain.receive_1m", 1UL << 20, 16, false, false },
	{ "plain.receive_1m_huge", 1UL << 20, 16, true, false },
	{ "plain.receive_1m_many", 1UL << 20, 16, false, true },
};

/* A receive and the send that completes it. */
struct exchange {
	unsigned char *source;
	unsigned char *target;
	unsigned long size;
	struct ibchan_mr *mr;	/* of the target; NULL: it is plain memory */
	unsigned int ranges;	/* of @size, side by side from @target on */
};

/* Which range is next. */
static unsigned int turn;

static int exchange_once(const struct way *way, const void *arg)
{
	const struct exchange *exchange = arg;
	const struct ibchan_submit_sge source = ibchan_sge_unchecked(own.mr, 0, SENT);
	const unsigned long at = turn++ % exchange->ranges * exchange->size;
	const struct ibchan_submit_sge target = exchange->mr ?
		ibchan_sge_unchecked(exchange->mr, exchange->target + at -
				     (unsigned char *)ibchan_mr_addr(exchange->mr),
				     exchange->size) :
		ibchan_sge_plain(exchange->target + at, exchange->size);
	const struct ibchan_submit_wr wrs[] = {
		ibchan_wr_receive(own.channel[1], &target, 1),
		ibchan_wr_send(own.channel[0], &source, 1),
	};
	int rc = ibchan_post(own.context, wrs, 2, NULL, NULL);

	(void)way;
	return rc ?: own_reap(own.cq, 2);
}

static int register_once(const struct way *way, const void *arg)
{
	const struct exchange *exchange = arg;

	return way->register_once(exchange->target, exchange->size);
}

static int verify(const struct exchange *exchange, unsigned char seed)
{
	int rc;

	memset(exchange->source, seed, SENT);
	memset(exchange->target, 0, SENT);
	turn = 0;
	rc = exchange_once(&own_way, exchange);
	if (!rc && num_ways == WAYS && memcmp(exchange->source, exchange->target, SENT))
		return -EBADMSG;
	return rc;
}

enum { PLAIN, REGISTERED, REGISTERING, KINDS };

/* Only libibverbs is measured when it registers. */
static unsigned int num_kinds(void)
{
	return num_ways == WAYS ? KINDS : REGISTERING;
}

static void report(const struct receive *receive, struct series *series)
{
	unsigned int i;

	for (i = 0; i < num_kinds(); i++)
		series_sort(&series[i]);
	if (num_ways == 1) {
		printf("own %s %llu %llu 0\n", receive->name,
		       series_minimum(&series[PLAIN]) - series_minimum(&series[REGISTERED]),
		       series_median(&series[PLAIN]) - series_median(&series[REGISTERED]));
		fflush(stdout);
		return;
	}
	printf("plain %s %lu", receive->name, receive->size);
	for (i = 0; i < KINDS; i++)
		printf(" %llu %llu", series_minimum(&series[i]), series_median(&series[i]));
	printf("\n");
	fflush(stdout);
}

static int measure_all(const struct receive *receive, const struct trial trials[KINDS])
{
	struct series series[KINDS];
	unsigned int round, i;
	int rc = 0;

	for (i = 0; profiled && !rc && i < num_kinds(); i++)
		rc = profile(&trials[i], i == REGISTERING ? VERBS : OWN);
	if (profiled)
		return rc;
	for (round = 0; !rc && round < ROUNDS; round++)
		for (i = 0; !rc && i < num_kinds(); i++)
			rc = measure_round(&trials[i], i == REGISTERING ? VERBS : OWN,
					   &series[i].cost[round]);
	if (rc)
		fprintf(stderr, "operate: %s\n", receive->name);
	else
		report(receive, series);
	return rc;
}

static struct trial trial_of(const struct receive *receive, const struct exchange *exchange,
			     int (*run)(const struct way *way, const void *arg))
{
	return (struct trial) {
		.name = receive->name, .repeats = receive->repeats, .operations = 1,
		.run = run, .arg = exchange,
	};
}

/* The target is registered as a whole, for comparison. */
static int measure_into(const struct receive *receive, unsigned char *memory,
			unsigned char *target, struct ibchan_mr *mr)
{
	const unsigned int ranges = receive->many ? MANY : 1;
	const struct exchange plain = { memory, target, receive->size, NULL, ranges };
	const struct exchange registered = { memory, target, receive->size, mr, ranges };
	const struct trial trials[KINDS] = {
		[PLAIN] = trial_of(receive, &plain, exchange_once),
		[REGISTERED] = trial_of(receive, &registered, exchange_once),
		[REGISTERING] = trial_of(receive, &plain, register_once),
	};
	int rc = verify(&plain, 1);

	rc = rc ?: verify(&registered, 2);
	rc = rc ?: measure_all(receive, trials);
	return rc ?: verify(&plain, 3);
}

static unsigned char *align_huge(unsigned char *address)
{
	return address + (-(uintptr_t)address & (HUGE - 1));
}

static int measure_huge(const struct receive *receive, unsigned char *memory)
{
	unsigned char *room = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibchan_mr_params params = {
		.size = sizeof(params), .length = HUGE, .access = IBCHAN_ACCESS_ALL,
	};
	struct ibchan_mr *mr;
	int rc;

	if (room == MAP_FAILED)
		return -errno;
	params.addr = align_huge(room);
	rc = madvise(params.addr, HUGE, MADV_HUGEPAGE) ? -errno : 0;
	rc = rc ?: ibchan_mr_reg(own.pd, &params, &mr, NULL);
	rc = rc ?: measure_into(receive, memory, params.addr, mr);
	rc = rc ?: ibchan_mr_dereg(mr);
	munmap(room, 2 * HUGE);
	return rc;
}

static int measure_many(const struct receive *receive, unsigned char *memory)
{
	struct ibchan_mr_params params = {
		.size = sizeof(params),
		.length = MANY * receive->size, .access = IBCHAN_ACCESS_ALL,
	};
	struct ibchan_mr *mr;
	int rc;

	params.addr = mmap(NULL, params.length, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (params.addr == MAP_FAILED)
		return -errno;
	rc = madvise(params.addr, params.length, MADV_NOHUGEPAGE) ? -errno : 0;
	rc = rc ?: ibchan_mr_reg(own.pd, &params, &mr, NULL);
	rc = rc ?: measure_into(receive, memory, params.addr, mr);
	rc = rc ?: ibchan_mr_dereg(mr);
	munmap(params.addr, params.length);
	return rc;
}

static int measure(const struct receive *receive, unsigned char *memory)
{
	if (receive->huge)
		return measure_huge(receive, memory);
	if (receive->many)
		return measure_many(receive, memory);
	return measure_into(receive, memory, memory + AREA, own.mr);
}

int plain_measure(unsigned char *memory)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < ARRAY_SIZE(receives); i++)
		rc = measure(&receives[i], memory);
	return rc;
}
