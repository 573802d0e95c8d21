// SPDX-License-Identifier: GPL-2.0-only
/*
 * The programs that once led the fuzzer somewhere (make fuzz), each of them once more.
 */
#define _GNU_SOURCE
#include <unistd.h>

#include "fuzz/engine.h"
#include "test.h"
#include "world.h"

/* The corpus lies in a folder beside this program. */
static int load(struct shared *shared)
{
	char path[4096] = "";
	char *name;

	if (readlink("/proc/self/exe", path, sizeof(path) - 32) < 0)
		return -errno;
	name = strrchr(path, '/') + 1;
	strcpy(name, "fuzz/corpus.txt");
	return corpus_load(shared, path);
}

TEST(programs_of_the_corpus_do_no_harm_while_threads_race)
{
	const struct watch_options options = {};
	struct shared *shared = shared_create();
	struct calm calm;

	ASSERT_NE(NULL, shared);
	ASSERT_EQ(0, load(shared));
	ASSERT_EQ(0, calm_begin(&calm));
	shared->threads = 3;
	shared->seed = 20240229;
	shared->replay = true;
	EXPECT_EQ(0, watch(shared, &options));
	EXPECT_LE(shared->num_loaded, shared->executions);
	EXPECT_EQ(0, calm_end(&calm));
}

TEST_HARNESS_MAIN
