// SPDX-License-Identifier: GPL-2.0-only
/*
 * bites MISTAKE: make it. A flavor that is worth running ends this program with
 * exit code 99; without one it ends with 0.
 */
#include <kselftest.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define SIZE	16

/* The compiler knows nothing of a callee, so it cannot see through the mistakes. */
#define opaque	__attribute__((noipa))

static int shared;
static int written;

static opaque char *bytes_new(void)
{
	return malloc(SIZE);
}

static opaque void bytes_set(char *bytes)
{
	*bytes = 1;
}

static opaque int bytes_set_already(const char *bytes)
{
	return *bytes ? 2 : 0;
}

static opaque int increment(int number)
{
	return number + 1;
}

static int nothing(void)
{
	return 0;
}

static int past_the_end(void)
{
	char *bytes = bytes_new();

	bytes_set(bytes + SIZE);
	free(bytes);
	return 0;
}

static int overflow(void)
{
	return increment(0x7fffffff) == 0;
}

/*
 * One after the other, because of two at the very same moment the sanitizer may miss both;
 * but a relaxed look does not order what lies around it.
 */
static void *writer(void *unused)
{
	(void)unused;
	while (!__atomic_load_n(&written, __ATOMIC_RELAXED))
		sched_yield();
	shared++;
	return NULL;
}

static int race(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, writer, NULL))
		return 1;
	shared++;
	__atomic_store_n(&written, 1, __ATOMIC_RELAXED);
	return pthread_join(thread, NULL);
}

static int leak(void)
{
	bytes_set(bytes_new());
	return 0;
}

static int uninitialised(void)
{
	char *bytes = bytes_new();
	int ret = bytes_set_already(bytes);

	free(bytes);
	return ret;
}

static int word_of_32_bits(void)
{
	return sizeof(void *) == 4 ? 99 : 0;
}

static const struct {
	const char *name;
	int (*make)(void);
} mistakes[] = {
	{ "nothing", nothing },
	{ "past_the_end", past_the_end },
	{ "overflow", overflow },
	{ "race", race },
	{ "leak", leak },
	{ "uninitialised", uninitialised },
	{ "word_of_32_bits", word_of_32_bits },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 2 && i < ARRAY_SIZE(mistakes); i++)
		if (!strcmp(mistakes[i].name, argv[1]))
			return mistakes[i].make();
	return 1;
}
