/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What ibchan_exporter.ko does for a test program: dma-bufs of any size that can be mapped by
 * programs and, unless told otherwise, by the kernel. How many there are, and what is done
 * with them, stands in /sys/module/ibchan_exporter/parameters: buffers, mappings, accesses. While
 * "fence" is Y there, who begins an access by the CPU waits, until a signal comes.
 */
#ifndef TEST_DMABUF_EXPORTER_H
#define TEST_DMABUF_EXPORTER_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define EXPORTER_NODE		"/dev/ibchan_exporter"
#define EXPORTER_PARAMETERS	"/sys/module/ibchan_exporter/parameters/"

#define EXPORTER_NO_VMAP	0x1U	/* the kernel cannot map it */
#define EXPORTER_IO_MAPPING	0x2U	/* the kernel maps it as I/O memory */
#define EXPORTER_READ_ONLY	0x4U	/* opened for reading alone */
#define EXPORTER_CONTIGUOUS	0x8U	/* one piece; else pages from here and there */
#define EXPORTER_NO_PAGES	0x10U	/* the kernel maps something that has no pages */
#define EXPORTER_FLAGS		0x1fU

/**
 * struct exporter_request - a new dma-buf
 * @pages: its size
 * @flags: EXPORTER_*
 * @out_fd: descriptor
 * @reserved: 0
 */
struct exporter_request {
	__u32 pages;
	__u32 flags;
	__s32 out_fd;
	__u32 reserved;
};

#define EXPORTER_EXPORT		_IOWR(0xBD, 0, struct exporter_request)

#endif /* TEST_DMABUF_EXPORTER_H */
