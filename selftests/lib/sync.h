/* SPDX-License-Identifier: GPL-2.0-only */
/* What a worker of the machine's own does for whoever asks: an fdatasync() by AIO. */
#ifndef TEST_SYNC_H
#define TEST_SYNC_H

#include <time.h>

#include <linux/aio_abi.h>

struct sync {
	int fd;
	aio_context_t aio;
};

int sync_begin(struct sync *sync);

/* Until the worker has done it: 0; -ETIMEDOUT behind @limit, if that is not NULL; -errno. */
int sync_by_worker(const struct sync *sync, struct timespec *limit);

/* Waits for what has not come: not for who was told -ETIMEDOUT. */
void sync_end(struct sync *sync);

#endif /* TEST_SYNC_H */
