/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dma-bufs to register: from the tests' own exporter, which run-tests loads, and from those
 * that a kernel may bring.
 */
#ifndef TEST_DMABUF_H
#define TEST_DMABUF_H

#include "../dmabuf/exporter.h"
#include "side.h"

/* A descriptor, or -errno; -ENOENT where there is no such exporter. */
int dmabuf_export(unsigned int pages, unsigned int flags);
int dmabuf_from_memfd(unsigned int pages);
int dmabuf_from_heap(unsigned int pages);

/* Mapped into this process; NULL if that fails. */
unsigned char *dmabuf_map(int fd, size_t length);

/* One of the exporter's counters: "buffers", "mappings" or "accesses"; -errno. */
long exporter_counter(const char *name);
/* Waits until it has none of all three left: 0, or -EBUSY after a line that says what. */
int exporter_idle(void);

/* What registers @length bytes at @offset of the dma-buf @fd in @side's pd. */
struct ibchan_cmd_mr_reg_dmabuf dmabuf_region(const struct side *side, int fd, __u64 offset,
					      __u64 length, __u32 access);

#endif /* TEST_DMABUF_H */
