/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pages that the allocator gave to another owner, so that it shows when a device still
 * writes to pages that were given away too early.
 */
#ifndef TEST_CANARY_H
#define TEST_CANARY_H

#include <stddef.h>
#include <sys/types.h>

#include <linux/types.h>

#define FRAMES_MAX	64

/* Where pages lie in the machine's memory. */
struct frames {
	unsigned int n;
	__u64 frame[FRAMES_MAX];
};

/* Of the pages that are mapped there now; 0 or -errno. */
int frames_of(const void *addr, size_t length, struct frames *frames);

/* Fresh pages of this process and of another one, filled on every CPU. */
struct canary {
	unsigned char *pages;
	pid_t holder;
	int gate;
	/* How many of them lie in the frames that canary_open() was told. */
	unsigned int met;
};

int canary_open(struct canary *canary, const struct frames *frames);
/* Gives the pages back; 0 if each byte of them was as it should be. */
int canary_close(struct canary *canary);

#endif /* TEST_CANARY_H */
