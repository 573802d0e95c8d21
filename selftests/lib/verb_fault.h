/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Verbs that fail on demand, in a module that was built with FAULTS=1.
 */
#ifndef TEST_VERB_FAULT_H
#define TEST_VERB_FAULT_H

#define VERB_POINTS_MAX	64

struct verb_point {
	char name[32];
	long passed;
};

/* Fills in all points, at most VERB_POINTS_MAX: how many, or -errno; -ENOENT: no such module. */
int verb_points(struct verb_point *points);

/* The @nth passage from now on fails with @error, for a completion a status; 0: none does. */
int verb_fault(const char *point, unsigned int nth, int error);

/* Passages since the module was loaded; -errno. */
long verb_passed(const char *point);

#endif /* TEST_VERB_FAULT_H */
