/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Windows between two steps of the module that last longer, where it was built with FAULTS=1.
 */
#ifndef TEST_WINDOW_H
#define TEST_WINDOW_H

#include <stdbool.h>

/* Visits of a window while it was wide. */
struct visits {
	unsigned int entered;
	unsigned int left;
};

/* 0, or -errno; -ENOENT: no such module, -EINVAL: no such window. */
int window_visits(const char *name, struct visits *visits);

/* Each visit lasts so many microseconds from now on; 0: no longer than it must. */
int window_widen(const char *name, unsigned int us);

/* Waits until it has been entered more often than @before says. */
bool window_is_entered(const char *name, const struct visits *before);

#endif /* TEST_WINDOW_H */
