// SPDX-License-Identifier: GPL-2.0-only
/*
 * stream: what messages cost by the short way of libibchan and by rsockets, each end in a thread
 * of its own. For where the monotonic clock counts instructions, on one CPU. Prints a line for
 * each case:
 *
 *	stream CASE OWN-MINIMUM OWN-MEDIAN RSOCKETS-MINIMUM RSOCKETS-MEDIAN
 *
 * of one message and its answer, or of one of many that go one way. What passes while nobody has
 * anything to do is not part of it.
 *
 * stream CASE: only that case, for an emulator's plugin to look at.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../idle/idle.h"
#include "stream.h"

#define ROUNDS		5
#define MOST_BYTES	0x100000

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

static const struct test {
	const char *name;
	size_t bytes;
	unsigned int times;
	bool is_answered;	/* each by one as long */
} tests[] = {
	{ "round_trip_64", 64, 200, true },
	{ "round_trip_4k", 4096, 100, true },
	{ "one_way_64k", 65536, 32, false },
	{ "one_way_1m", MOST_BYTES, 4, false },
};

static const struct way * const ways[] = { &own_way, &rsockets_way };

#define WAYS	ARRAY_SIZE(ways)

static unsigned char out[MOST_BYTES], in[ENDS][MOST_BYTES];

struct job {
	const struct way *way;
	const struct test *test;
};

static bool answers(const struct test *test, unsigned int i)
{
	return test->is_answered || i + 1 == test->times;
}

static size_t answer_bytes(const struct test *test)
{
	return test->is_answered ? test->bytes : 1;
}

/* The last message of many that go one way is answered by a byte. */
static void *serve(void *arg)
{
	const struct job *job = arg;
	const struct test *test = job->test;
	unsigned int i;
	int err = 0;

	for (i = 0; i < test->times && !err; i++) {
		err = job->way->receive(SERVER, in[SERVER], test->bytes);
		if (!err && answers(test, i))
			err = job->way->send(SERVER, in[SERVER], answer_bytes(test));
	}
	return (void *)(intptr_t)err;
}

static int ask(const struct job *job)
{
	const struct test *test = job->test;
	unsigned int i;
	int err = 0;

	for (i = 0; i < test->times && !err; i++) {
		err = job->way->send(CLIENT, out, test->bytes);
		if (!err && answers(test, i))
			err = job->way->receive(CLIENT, in[CLIENT], answer_bytes(test));
	}
	return err;
}

static int run(struct job *job, unsigned long long *cost)
{
	pthread_t thread;
	void *served;
	unsigned long long begin = idle_clock();
	int err = -pthread_create(&thread, NULL, serve, job);

	if (err)
		return err;
	err = ask(job);
	if (err)
		return err;
	pthread_join(thread, &served);
	*cost = (idle_clock() - begin) / job->test->times;
	return (int)(intptr_t)served;
}

/* Whatever the way is, they come as they were sent. */
static int verify(struct job *job)
{
	unsigned long long cost;
	int err;

	memset(in, 0, sizeof(in));
	err = run(job, &cost);
	if (err)
		return err;
	return memcmp(in[SERVER], out, job->test->bytes) ? -EPROTO : 0;
}

static int compare(const void *a, const void *b)
{
	const unsigned long long *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int measure(const struct way *way, const struct test *test)
{
	struct job job = { .way = way, .test = test };
	unsigned long long costs[ROUNDS];
	unsigned int round;
	int err = verify(&job);

	for (round = 0; round < ROUNDS && !err; round++)
		err = run(&job, &costs[round]);
	if (err)
		return err;
	qsort(costs, ROUNDS, sizeof(costs[0]), compare);
	printf(" %llu %llu", costs[0], costs[ROUNDS / 2]);
	return 0;
}

/* Between two instructions that do nothing else: see profile/plugin.c. */
static int profile(const struct way *way, const struct test *test)
{
	struct job job = { .way = way, .test = test };
	unsigned long long cost;
	int err = verify(&job);

	if (err)
		return err;
	__asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0, 0x78, 0x56, 0x34, 0x12");
	err = run(&job, &cost);
	__asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0, 0x79, 0x56, 0x34, 0x12");
	return err;
}

static int profile_test(const char *name)
{
	unsigned int i, way;
	int err = -ENOENT;

	for (i = 0; i < ARRAY_SIZE(tests); i++) {
		if (strcmp(tests[i].name, name))
			continue;
		printf("operations %u\n", tests[i].times);
		err = 0;
		for (way = 0; way < WAYS && !err; way++)
			err = profile(ways[way], &tests[i]);
	}
	print_maps();
	return err;
}

static int run_test(const struct test *test)
{
	unsigned int i;
	int err = 0;

	printf("stream %s", test->name);
	for (i = 0; i < WAYS && !err; i++)
		err = measure(ways[i], test);
	printf("\n");
	return err;
}

static int run_tests(void)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < ARRAY_SIZE(tests) && !err; i++)
		err = run_test(&tests[i]);
	return err;
}

int main(int argc, char **argv)
{
	unsigned int i;
	int err = idle_start();

	for (i = 0; i < MOST_BYTES; i++)
		out[i] = (unsigned char)(i * 7 + i / 251);
	for (i = 0; i < WAYS && !err; i++)
		err = ways[i]->open();
	if (!err)
		err = argc > 1 ? profile_test(argv[1]) : run_tests();
	for (i = 0; i < WAYS && !err; i++)
		err = ways[i]->close();
	if (err)
		fprintf(stderr, "stream: %s\n", strerror(-err));
	idle_stop();
	return err ? 1 : 0;
}
