/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One thread that runs programs.
 */
#ifndef FUZZ_RUNNER_H
#define FUZZ_RUNNER_H

#include "cover.h"
#include "scene.h"

struct runner {
	struct scene *scene;
	struct cover *cover;
	struct kcov *kcov;
	struct room *room;	/* by itself: wrong addresses are often near it */
	/* What the steps of the program have made; 0: nothing. */
	__u32 results[MAX_STEPS];
};

struct outcome {
	int rc;		/* what the kernel said */
	bool fresh;	/* it has come to where nobody has been */
};

/* The nth one; once. 0 or a negative errno. */
int runner_open(struct runner *runner, unsigned int n);

/* Runs the nth step of @program, after those before it. */
struct outcome runner_step(struct runner *runner, const struct program *program, unsigned int n);

#endif /* FUZZ_RUNNER_H */
