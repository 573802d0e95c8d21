// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/userfaultfd.h>

#include "missing.h"
#include "world.h"

int missing_begin(struct missing *missing)
{
	struct uffdio_api api = { .api = UFFD_API };

	if (access("/proc/sys/vm/unprivileged_userfaultfd", F_OK))
		return -EOPNOTSUPP;
	missing->fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	return missing->fd < 0 || ioctl(missing->fd, UFFDIO_API, &api) ? -errno : 0;
}

void *missing_pages(struct missing *missing, size_t length)
{
	struct uffdio_register region = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	void *pages = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);

	region.range = (struct uffdio_range) { (uintptr_t)pages, length };
	return pages == MAP_FAILED || ioctl(missing->fd, UFFDIO_REGISTER, &region) ?
	       MAP_FAILED : pages;
}

bool missing_is_wanted_by(struct missing *missing, unsigned int threads)
{
	struct pollfd pollfd = { .fd = missing->fd, .events = POLLIN };
	struct uffd_msg message;

	for (; threads; threads--)
		if (poll(&pollfd, 1, patience_ms()) != 1 ||
		    read(missing->fd, &message, sizeof(message)) != sizeof(message))
			return false;
	return true;
}

void missing_end(struct missing *missing)
{
	close(missing->fd);
	missing->fd = -1;
}
