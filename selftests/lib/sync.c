// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sync.h"

int sync_begin(struct sync *sync)
{
	sync->aio = 0;
	sync->fd = memfd_create("sync", MFD_CLOEXEC);
	return sync->fd < 0 || syscall(SYS_io_setup, 1, &sync->aio) ? -errno : 0;
}

int sync_by_worker(const struct sync *sync, struct timespec *limit)
{
	struct iocb iocb = { .aio_fildes = sync->fd, .aio_lio_opcode = IOCB_CMD_FDSYNC };
	struct iocb *iocbs = &iocb;
	struct io_event event;
	long num;

	if (syscall(SYS_io_submit, sync->aio, 1, &iocbs) != 1)
		return -errno;
	num = syscall(SYS_io_getevents, sync->aio, 1, 1, &event, limit);
	return num == 1 ? (int)event.res : num ? -errno : -ETIMEDOUT;
}

void sync_end(struct sync *sync)
{
	if (sync->aio)
		syscall(SYS_io_destroy, sync->aio);
	if (sync->fd >= 0)
		close(sync->fd);
}
