// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ring.h"
#include "world.h"

int ring_map(struct ring *ring, int file, const struct ibchan_cmd_cq_create *cmd)
{
	char *map = mmap(NULL, cmd->out_ring_size, PROT_READ | PROT_WRITE, MAP_SHARED,
			 cmd->out_fd, 0);

	if (map == MAP_FAILED) {
		int rc = -errno;

		close(cmd->out_fd);
		return rc;
	}
	ring->file = file;
	ring->fd = cmd->out_fd;
	ring->cq = cmd->out_cq;
	ring->size = cmd->out_ring_size;
	ring->header = (const struct ibchan_ring *)map;
	ring->tail = (__u32 *)(map + ring->header->tail_offset);
	ring->head = (__u32 *)(map + ring->header->head_offset);
	ring->stashed = 0;
	return 0;
}

void ring_unmap(struct ring *ring)
{
	if (!ring->header)
		return;
	/* One that fails because a fault is injected works the next time. */
	if (munmap((void *)ring->header, ring->size))
		munmap((void *)ring->header, ring->size);
	close(ring->fd);
	ring->header = NULL;
}

unsigned int ring_unread(const struct ring *ring)
{
	return __atomic_load_n(ring->tail, __ATOMIC_ACQUIRE) - *ring->head;
}

static const struct ibchan_cqe *ring_entry(const struct ring *ring, __u32 count)
{
	size_t index = count & (ring->header->entries - 1);

	return (const struct ibchan_cqe *)((const char *)ring->header +
					   ring->header->entries_offset +
					   index * ring->header->entry_size);
}

unsigned int ring_read(struct ring *ring, struct ibchan_cqe *cqes, unsigned int max)
{
	unsigned int unread = ring_unread(ring);
	unsigned int n = unread < max ? unread : max;
	__u32 head = *ring->head;
	unsigned int i;

	for (i = 0; i < n; i++)
		cqes[i] = *ring_entry(ring, head + i);
	__atomic_store_n(ring->head, head + n, __ATOMIC_RELEASE);
	return n;
}

int ring_wait(struct ring *ring, unsigned int min, long ms)
{
	struct ibchan_cmd_submit cmd = {
		.entry_len = sizeof(struct ibchan_submit_wr),
		.cq = ring->cq,
		.min_complete = min,
		.timeout_ns = ms < 0 ? IBCHAN_TIMEOUT_NEVER : ms * 1000000LL,
	};

	return cmd_submit(ring->file, &cmd);
}

static void ring_fill_stash(struct ring *ring)
{
	ring->stashed += ring_read(ring, ring->stash + ring->stashed, RING_STASH - ring->stashed);
}

static bool ring_take(struct ring *ring, __u64 wr_id, struct ibchan_cqe *cqe)
{
	unsigned int i;

	for (i = 0; i < ring->stashed; i++) {
		if (ring->stash[i].wr_id != wr_id)
			continue;
		*cqe = ring->stash[i];
		ring->stashed--;
		memmove(ring->stash + i, ring->stash + i + 1,
			(ring->stashed - i) * sizeof(*cqe));
		return true;
	}
	return false;
}

int ring_complete(struct ring *ring, __u64 wr_id, struct ibchan_cqe *cqe)
{
	__u64 end = now_ms() + patience_ms();

	for (;;) {
		__u64 now = now_ms();
		int rc;

		ring_fill_stash(ring);
		if (ring_take(ring, wr_id, cqe))
			return 0;
		if (now >= end)
			return -ETIMEDOUT;
		rc = ring_wait(ring, 1, end - now);
		if (rc && rc != -EINTR && rc != -ETIMEDOUT)
			return rc;
	}
}

unsigned int ring_surplus(struct ring *ring)
{
	ring_wait(ring, 0, 0);
	ring_fill_stash(ring);
	return ring->stashed;
}

int ring_spoil(struct ring *ring)
{
	struct pollfd pollfd = { .fd = ring->fd, .events = POLLIN };

	*ring->head += 1000;
	return poll(&pollfd, 1, 0) == 1 && pollfd.revents & POLLERR ? 0 : -EBADMSG;
}
