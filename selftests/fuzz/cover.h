/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a program has reached. A feature is a place in the module's code, where the kernel
 * has KCOV and the module was built for it (make modules KCOV=1), or else only what a command
 * has answered.
 */
#ifndef FUZZ_COVER_H
#define FUZZ_COVER_H

#include <stdbool.h>

#include <linux/types.h>

/* Features seen by anyone, in memory that all share. */
#define COVER_WORDS	32768

struct cover {
	__u64 seen[COVER_WORDS];
	unsigned long features;
	unsigned long places;	/* in the code, among them */
};

/* Of one thread; NULL where there is no KCOV. */
struct kcov;

struct kcov *kcov_open(void);
void kcov_close(struct kcov *kcov);
/* From now on; what was gathered before is forgotten. */
void kcov_start(struct kcov *kcov);
/* How many of the places that the thread has come to are new. */
unsigned int kcov_stop(struct kcov *kcov, struct cover *cover);

/* Is it new? */
bool cover_answer(struct cover *cover, unsigned int action, int rc, __u32 reason);

#endif /* FUZZ_COVER_H */
