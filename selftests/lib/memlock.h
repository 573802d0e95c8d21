/* SPDX-License-Identifier: GPL-2.0-only */
/* What the process may keep pinned. */
#ifndef TEST_MEMLOCK_H
#define TEST_MEMLOCK_H

#include <sys/resource.h>

/* CAP_IPC_LOCK stands above the limit, so it must go: 0 or -errno. */
int lose_ipc_lock(void);

int limit_memlock(rlim_t bytes);

#endif /* TEST_MEMLOCK_H */
