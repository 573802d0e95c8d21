/* SPDX-License-Identifier: GPL-2.0-only */
/* What the process may keep pinned. */
#ifndef TEST_MEMLOCK_H
#define TEST_MEMLOCK_H

#include <linux/capability.h>
#include <sys/resource.h>

/*
 * 0 or -errno. CAP_IPC_LOCK stands above the limit of pinned memory, CAP_SYS_RESOURCE above that of
 * kernel memory.
 */
int lose_capability(int capability);

int limit_memlock(rlim_t bytes);

#endif /* TEST_MEMLOCK_H */
