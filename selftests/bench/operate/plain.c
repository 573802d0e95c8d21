// SPDX-License-Identifier: GPL-2.0-only
/*
 * What plain memory costs above registered memory, against what registering it for one work
 * costs with libibverbs. Of a transfer that long the difference would be a small part, so it
 * is measured on a receive of that size, which a short send completes. Prints
 *
 *	plain NAME SIZE PLAIN-MINIMUM PLAIN-MEDIAN REGISTERED-MINIMUM REGISTERED-MEDIAN
 *		VERBS-MINIMUM VERBS-MEDIAN
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "measure.h"
#include "own.h"

#define SENT	64

static const struct receive {
	const char *name;
	unsigned long size;
	unsigned int repeats;
} receives[] = {
	{ "plain.receive_4k", PAGE, 64 },
	{ "plain.receive_1m", 1UL << 20, 16 },
};

/* A receive and the send that completes it; the target is in the second half. */
struct exchange {
	unsigned char *memory;
	unsigned long size;
	struct ibchan_mr *mr;	/* of the target, or IBCHAN_PLAIN */
};

static int exchange_once(const struct way *way, const void *arg)
{
	const struct exchange *exchange = arg;
	const struct ibchan_sge source = ibchan_sge_unchecked(own.mr, 0, SENT);
	const struct ibchan_sge target = {
		.mr = exchange->mr, .addr = exchange->memory + AREA, .length = exchange->size,
	};
	const struct ibchan_wr wrs[] = {
		{ .channel = own.channel[1], .opcode = IBCHAN_OP_RECV, .sges = &target,
		  .num_sge = 1 },
		{ .channel = own.channel[0], .opcode = IBCHAN_OP_SEND, .sges = &source,
		  .num_sge = 1 },
	};
	int rc = ibchan_post(own.context, wrs, 2, NULL, NULL);

	(void)way;
	return rc ?: own_reap(own.cq, 2);
}

static int register_once(const struct way *way, const void *arg)
{
	const struct exchange *exchange = arg;

	return way->register_once(exchange->memory + AREA, exchange->size);
}

static int verify(const struct exchange *exchange, unsigned char seed)
{
	int rc;

	memset(exchange->memory, seed, SENT);
	memset(exchange->memory + AREA, 0, SENT);
	rc = exchange_once(&own_way, exchange);
	if (!rc && memcmp(exchange->memory, exchange->memory + AREA, SENT))
		return -EBADMSG;
	return rc;
}

enum { PLAIN, REGISTERED, REGISTERING, KINDS };

static void report(const struct receive *receive, struct series *series)
{
	unsigned int i;

	printf("plain %s %lu", receive->name, receive->size);
	for (i = 0; i < KINDS; i++) {
		series_sort(&series[i]);
		printf(" %llu %llu", series_minimum(&series[i]), series_median(&series[i]));
	}
	printf("\n");
	fflush(stdout);
}

static int measure_all(const struct receive *receive, const struct trial trials[KINDS])
{
	struct series series[KINDS];
	unsigned int round, i;
	int rc = 0;

	for (i = 0; profiled && !rc && i < KINDS; i++)
		rc = profile(&trials[i], i == REGISTERING ? VERBS : OWN);
	if (profiled)
		return rc;
	for (round = 0; !rc && round < ROUNDS; round++)
		for (i = 0; !rc && i < KINDS; i++)
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

static int measure_receive(const struct receive *receive, unsigned char *memory)
{
	const struct exchange plain = { memory, receive->size, IBCHAN_PLAIN };
	const struct exchange registered = { memory, receive->size, own.mr };
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

int plain_measure(unsigned char *memory)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < ARRAY_SIZE(receives); i++)
		rc = measure_receive(&receives[i], memory);
	return rc;
}
