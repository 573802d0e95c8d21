// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The descriptor of a cq for poll and epoll.
 *
 * The kernel's own is readable while the ring holds a completion. One that a
 * blocking call set aside is no longer in the ring, so what we give out is an
 * epoll of the kernel's descriptor and of an eventfd for the completions that were set
 * aside. A program that never asks for the descriptor pays nothing.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "internal.h"

/*
 * read(), write() and close() of the C library end a thread that was cancelled,
 * which would keep the lock. The calls themselves do not.
 */
static ssize_t event_count(const struct ibchan_cq *cq, long call)
{
	__u64 count = 1;

	return syscall(call, cq->event_fd, &count, sizeof(count));
}

/* Needs cq->lock. */
void event_update(struct ibchan_cq *cq)
{
	int raise = cq->aside_first != SLOT_NONE;

	if (cq->event_fd < 0 || raise == cq->event_raised)
		return;
	/* Neither can fail: the counter only goes between 0 and 1. */
	if (event_count(cq, raise ? SYS_write : SYS_read) > 0)
		cq->event_raised = raise;
}

/* A descriptor that is readable while one of the two has @events; or a negative errno. */
int epoll_of(int first, int second, __u32 events)
{
	struct epoll_event event = { .events = events };
	int fd = epoll_create1(EPOLL_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	if (!epoll_ctl(fd, EPOLL_CTL_ADD, first, &event) &&
	    !epoll_ctl(fd, EPOLL_CTL_ADD, second, &event))
		return fd;
	err = -errno;
	fd_close(fd);
	return err;
}

static int event_open(struct ibchan_cq *cq)
{
	int fd;
	int err;

	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	err = epoll_of(cq->fd, fd, EPOLLIN);
	if (err < 0) {
		fd_close(fd);
		return err;
	}
	cq->event_fd = fd;
	cq->epoll_fd = err;
	event_update(cq);
	return 0;
}

void event_close(struct ibchan_cq *cq)
{
	if (cq->epoll_fd < 0)
		return;
	fd_close(cq->epoll_fd);
	fd_close(cq->event_fd);
	cq->epoll_fd = -1;
	cq->event_fd = -1;
}

int ibchan_cq_fd(struct ibchan_cq *cq)
{
	int ret = context_check(cq->object.context);

	if (ret)
		return ret;
	lock_take(&cq->lock);
	if (cq->epoll_fd < 0)
		ret = event_open(cq);
	if (!ret)
		ret = cq->epoll_fd;
	lock_give(&cq->lock);
	return ret;
}
