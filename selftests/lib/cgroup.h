/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A cgroup of the test's own with the RDMA controller.
 */
#ifndef TEST_CGROUP_H
#define TEST_CGROUP_H

/* What a cgroup holds on one device. */
struct cgroup_usage {
	long handles;
	long objects;
};

/* Makes it and joins it; -EOPNOTSUPP where the kernel has no RDMA controller. */
int cgroup_begin(void);
/* Leaves it and removes it; its other processes have to go first. */
int cgroup_end(void);

int cgroup_join(void);
int cgroup_leave(void);

/* How many at most: numbers, or "max". */
int cgroup_limit(const char *device, const char *handles, const char *objects);
/* -ENODEV: the cgroup knows no such device. */
int cgroup_usage(const char *device, struct cgroup_usage *usage);

#endif /* TEST_CGROUP_H */
