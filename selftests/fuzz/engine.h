/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Threads that run programs on one scene after another, in a process of their own. Another
 * process watches over them: what both know of lies in memory that they share.
 */
#ifndef FUZZ_ENGINE_H
#define FUZZ_ENGINE_H

#include "runner.h"

#define MAX_THREADS	8
#define MAX_PROGRAMS	8192
#define TRAIL		4	/* programs of each thread that are remembered */

struct trail {
	struct program programs[TRAIL];
	unsigned long num;
	unsigned int step;	/* of the last one */
};

struct shared {
	/* What is wanted. */
	__u64 seed;
	unsigned int threads;
	bool replay;	/* the corpus once, and nothing new */
	bool trace;	/* tell of each step before it is taken */
	bool stop;
	/* How it goes. */
	struct cover cover;
	bool has_kcov;
	unsigned long executions;
	unsigned long scenes;
	struct trail trails[MAX_THREADS];
	bool failed;
	char failure[1024];
	struct program culprit;
	/* The corpus: at first what was loaded. */
	unsigned int num_loaded;
	unsigned int num_replayed;
	unsigned int num_known;
	struct program programs[MAX_PROGRAMS];
	bool leads[MAX_PROGRAMS];	/* to somewhere that those before it do not */
};

/* Memory for this process and its children; NULL without memory. */
struct shared *shared_create(void);

/* Runs until @shared->stop, or a failure, or the end of the replay. */
void engine_run(struct shared *shared);

/* The same in a child that is watched: 0, or 1 when something was found. */
struct watch_options {
	unsigned int seconds;	/* 0: until it ends by itself */
	const char *splats;	/* expressions for what the kernel log must not have, or NULL */
};

int watch(struct shared *shared, const struct watch_options *options);

/* 0 or -errno, and a line that says what is wrong. */
int corpus_load(struct shared *shared, const char *path);
/* Those that lead somewhere. */
int corpus_save(const struct shared *shared, const char *path);

#endif /* FUZZ_ENGINE_H */
