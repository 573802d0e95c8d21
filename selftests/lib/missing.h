/* SPDX-License-Identifier: GPL-2.0-only */
/* Pages of the caller's own that do not come, by userfaultfd: who touches one waits. */
#ifndef TEST_MISSING_H
#define TEST_MISSING_H

#include <stdbool.h>
#include <stddef.h>

struct missing {
	int fd;
};

/* 0; -EOPNOTSUPP where the kernel has no userfaultfd; -errno. */
int missing_begin(struct missing *missing);

/* MAP_FAILED with errno set. */
void *missing_pages(struct missing *missing, size_t length);

/* Waits until so many more threads are in a fault on one of them. */
bool missing_is_wanted_by(struct missing *missing, unsigned int threads);

/* They come after all. */
void missing_end(struct missing *missing);

#endif /* TEST_MISSING_H */
