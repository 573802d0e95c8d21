// SPDX-License-Identifier: LGPL-2.1-or-later
/* Descriptors for poll and epoll. */
#include <errno.h>
#include <sys/epoll.h>

#include "internal.h"

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
