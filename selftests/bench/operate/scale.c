// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether an operation costs more where there are many channels, or many regions. Prints
 *
 *	scale NAME NUMBER MINIMUM MEDIAN FIRST-MINIMUM FIRST-MEDIAN
 *
 * where FIRST is the same with the least number.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"
#include "own.h"

#define CHANNELS	1000
#define REGIONS		100000
#define OPERATIONS	1000

/* So that the queues of all channels together fit one cq of soft-RoCE: it holds 32 Ki. */
#define QUEUE		14
#define CQ_OF_ALL	(CHANNELS * (2 * QUEUE + 2))

static const unsigned int numbers[] = { 1, 10, 100, CHANNELS };
static const unsigned int regions[] = { 1, 100, 10000, REGIONS };

/* Channels, each its own peer. */
struct crowd {
	struct ibchan_cq *cq;
	struct ibchan_channel *channels[CHANNELS];
	unsigned int number;
};

static int write_once(struct ibchan_channel *channel, struct ibchan_cq *cq)
{
	const struct ibchan_submit_sge source = ibchan_sge_unchecked(own.mr, 0, STRIDE);
	struct ibchan_remote_region remote;
	struct ibchan_submit_wr wr;
	int rc = ibchan_remote_region_sub(&own.remote, AREA, STRIDE, &remote);

	wr = ibchan_wr_write(channel, &source, 1, &remote);
	rc = rc ?: ibchan_post(own.context, &wr, 1, NULL, NULL);
	return rc ?: own_reap(cq, 1);
}

/* All take turns, so that none is remembered from the last time. */
static int write_by_turns(const struct way *way, const void *arg)
{
	const struct crowd *crowd = arg;
	unsigned int i;
	int rc = 0;

	(void)way;
	for (i = 0; !rc && i < OPERATIONS; i++)
		rc = write_once(crowd->channels[i % crowd->number], crowd->cq);
	return rc;
}

static int measure_series(const struct trial *trial, struct series *series)
{
	unsigned int round;
	int rc = trial->run(&own_way, trial->arg);

	for (round = 0; !rc && round < ROUNDS; round++)
		rc = measure_round(trial, OWN, &series->cost[round]);
	series_sort(series);
	return rc;
}

static void report(const char *name, unsigned int number, const struct series *series,
		   const struct series *first)
{
	printf("scale %s_%u %u %llu %llu %llu %llu\n", name, number, number,
	       series_minimum(series), series_median(series), series_minimum(first),
	       series_median(first));
	fflush(stdout);
}

static int connect_to_itself(const struct ibchan_builder *builder,
			     struct ibchan_channel **channel)
{
	struct ibchan_prepared *prepared;
	struct ibchan_endpoint endpoint;
	int rc = ibchan_builder_prepare(builder, &prepared, NULL);

	if (rc)
		return rc;
	ibchan_prepared_endpoint(prepared, &endpoint);
	return ibchan_prepared_handshake(prepared, &endpoint, channel, NULL);
}

static int grow(struct crowd *crowd, unsigned int number)
{
	struct ibchan_builder builder;
	int rc = 0;

	own_builder(&builder, crowd->cq, DEPTH);
	builder.params.max_send_wr = QUEUE;
	builder.params.max_recv_wr = QUEUE;
	for (; !rc && crowd->number < number; crowd->number++)
		rc = connect_to_itself(&builder, &crowd->channels[crowd->number]);
	return rc;
}

static int verify(struct ibchan_channel *channel, struct ibchan_cq *cq, unsigned char *memory)
{
	int rc;

	memset(memory, 0x5a, STRIDE);
	memset(memory + AREA, 0, STRIDE);
	rc = write_once(channel, cq);
	if (!rc && memcmp(memory, memory + AREA, STRIDE))
		return -EBADMSG;
	return rc;
}

static int measure_crowd(struct crowd *crowd, unsigned char *memory)
{
	const struct trial trial = {
		.name = "scale.channels", .repeats = 1, .operations = OPERATIONS,
		.run = write_by_turns, .arg = crowd,
	};
	struct series series, first;
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < ARRAY_SIZE(numbers); i++) {
		rc = grow(crowd, numbers[i]);
		rc = rc ?: verify(crowd->channels[numbers[i] - 1], crowd->cq, memory);
		rc = rc ?: measure_series(&trial, &series);
		if (!i)
			first = series;
		if (!rc)
			report("scale.channels", numbers[i], &series, &first);
	}
	return rc;
}

static int measure_channels(unsigned char *memory)
{
	struct crowd *crowd = calloc(1, sizeof(*crowd));
	int rc = crowd ? 0 : -ENOMEM;
	unsigned int i;

	rc = rc ?: ibchan_cq_create(own.device, CQ_ENTRIES(DEPTH), CQ_OF_ALL, &crowd->cq, NULL);
	rc = rc ?: measure_crowd(crowd, memory);
	for (i = 0; !rc && i < crowd->number; i++)
		rc = ibchan_channel_close(crowd->channels[i]);
	rc = rc ?: ibchan_cq_destroy(crowd->cq);
	free(crowd);
	return rc;
}

/* One page, again and again: what grows is the number of registrations. */
static int register_up_to(struct ibchan_mr **mrs, unsigned int *number, unsigned int wanted,
			  unsigned char *memory)
{
	const struct ibchan_mr_params params = {
		.size = sizeof(params),
		.addr = memory, .length = PAGE, .access = IBCHAN_ACCESS_ALL,
	};
	int rc = 0;

	for (; !rc && *number < wanted; ++*number)
		rc = ibchan_mr_reg(own.pd, &params, &mrs[*number], NULL);
	return rc;
}

static int measure_with_regions(struct ibchan_mr **mrs, unsigned int *number,
				unsigned char *memory)
{
	struct crowd crowd = { .cq = own.cq, .channels = { own.channel[0] }, .number = 1 };
	const struct trial trial = {
		.name = "scale.regions", .repeats = 1, .operations = OPERATIONS,
		.run = write_by_turns, .arg = &crowd,
	};
	struct series series, first;
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < ARRAY_SIZE(regions); i++) {
		rc = register_up_to(mrs, number, regions[i], memory);
		rc = rc ?: measure_series(&trial, &series);
		if (!i)
			first = series;
		if (!rc)
			report("scale.regions", regions[i], &series, &first);
	}
	return rc;
}

static int measure_regions(unsigned char *memory)
{
	struct ibchan_mr **mrs = calloc(REGIONS, sizeof(*mrs));
	unsigned int number = 0;
	int rc = mrs ? measure_with_regions(mrs, &number, memory) : -ENOMEM;

	while (!rc && number)
		rc = ibchan_mr_dereg(mrs[--number]);
	free(mrs);
	return rc;
}

int scale_measure(unsigned char *memory)
{
	int rc = measure_channels(memory);

	return rc ?: measure_regions(memory);
}
