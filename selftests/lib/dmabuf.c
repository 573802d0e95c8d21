// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/dma-heap.h>
#include <linux/udmabuf.h>

#include "dmabuf.h"
#include "world.h"

#define UDMABUF_NODE	"/dev/udmabuf"
#define HEAP_NODE	"/dev/dma_heap/system"

/* Asks the exporter behind @node; its answer, or -errno. */
static int ask(const char *node, unsigned long number, void *request)
{
	int fd = open(node, O_RDWR | O_CLOEXEC);
	int rc;

	if (fd < 0)
		return -errno;
	rc = ioctl(fd, number, request);
	if (rc < 0)
		rc = -errno;
	close(fd);
	return rc;
}

int dmabuf_export(unsigned int pages, unsigned int flags)
{
	struct exporter_request request = { .pages = pages, .flags = flags };
	int rc = ask(EXPORTER_NODE, EXPORTER_EXPORT, &request);

	if (rc == -ENOENT)
		fprintf(stderr, "# %s is missing: run-tests loads what make test-modules builds\n",
			EXPORTER_NODE);
	return rc ? rc : request.out_fd;
}

/* It keeps the memory; the file may be closed. */
int dmabuf_from_memfd(unsigned int pages)
{
	struct udmabuf_create request = { .flags = UDMABUF_FLAGS_CLOEXEC };
	int memfd, rc;

	memfd = memfd_create("ibchan", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (memfd < 0)
		return -errno;
	request.memfd = memfd;
	request.size = (__u64)pages * getpagesize();
	if (ftruncate(memfd, request.size) || fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		rc = -errno;
	else
		rc = ask(UDMABUF_NODE, UDMABUF_CREATE, &request);
	close(memfd);
	return rc;
}

int dmabuf_from_heap(unsigned int pages)
{
	struct dma_heap_allocation_data request = {
		.len = (__u64)pages * getpagesize(),
		.fd_flags = O_RDWR | O_CLOEXEC,
	};
	int rc = ask(HEAP_NODE, DMA_HEAP_IOCTL_ALLOC, &request);

	return rc ? rc : (int)request.fd;
}

unsigned char *dmabuf_map(int fd, size_t length)
{
	void *map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return map == MAP_FAILED ? NULL : map;
}

long exporter_counter(const char *name)
{
	char path[128];
	long value;
	FILE *file;
	int n;

	snprintf(path, sizeof(path), EXPORTER_PARAMETERS "%s", name);
	file = fopen(path, "r");
	if (!file)
		return -errno;
	n = fscanf(file, "%ld", &value);
	fclose(file);
	return n == 1 ? value : -EIO;
}

static bool none_left(void *arg)
{
	(void)arg;
	return !exporter_counter("buffers") && !exporter_counter("mappings") &&
	       !exporter_counter("accesses");
}

int exporter_idle(void)
{
	if (eventually(none_left, NULL))
		return 0;
	fprintf(stderr, "# the exporter counts %ld buffers, %ld mappings, %ld accesses\n",
		exporter_counter("buffers"), exporter_counter("mappings"),
		exporter_counter("accesses"));
	return -EBUSY;
}

struct ibchan_cmd_mr_reg_dmabuf dmabuf_region(const struct side *side, int fd, __u64 offset,
					      __u64 length, __u32 access)
{
	return (struct ibchan_cmd_mr_reg_dmabuf) {
		.offset = offset,
		.length = length,
		.fd = fd,
		.pd = side->pd,
		.access = access,
	};
}
