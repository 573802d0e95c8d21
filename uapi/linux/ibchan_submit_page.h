/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * The submit page of an open /dev/ibchan: memory that the kernel shares with the program,
 * so that it need not be told where a submit stands, nor copy it.
 */
#ifndef _UAPI_LINUX_IBCHAN_SUBMIT_PAGE_H
#define _UAPI_LINUX_IBCHAN_SUBMIT_PAGE_H

#include <linux/ibchan.h>

/* Offset for mmap() of the file: one page, MAP_SHARED, by the process that opened it. */
#define IBCHAN_SUBMIT_PAGE	0x10000000

/* Work requests that it has room for. */
#define IBCHAN_SUBMIT_PAGE_WRS	32

/**
 * struct ibchan_submit_page - what stands in the page
 * @cmd: as for IBCHAN_CMD_SUBMIT; @cmd.entries is not looked at
 * @wrs: its entries; @cmd.entry_num is at least 1
 *
 * fdatasync() and fsync() of the file do the command as IBCHAN_CMD_SUBMIT does it. They fail
 * with the same errno and write the same answer to @cmd. It is for what is posted most:
 * requests with one element of registered memory, and no flag but IBCHAN_WR_UNCHECKED.
 *
 * ENOTTY: the page holds what only the ioctl does, or something that is in a wrong form or
 * names what is not there, which the ioctl says in detail. Nothing has happened, and the page
 * is as it was, but for @cmd.reason and @cmd.out_ready; with @cmd.entries pointing to @wrs,
 * @cmd can be given to the ioctl.
 * EINVAL: also, the page was never mapped.
 * EPERM: another process than the opener, and nothing is written to the page.
 * msync() of the page with MS_SYNC does the same as fdatasync(). Each call posts what stands
 * there, so who has been told EINTR does not repeat it; with a @cmd.size of 0 nothing is
 * posted.
 *
 * A security policy about the ioctls of the file says nothing about the page: that is up to
 * one about opening and mapping.
 *
 * A file has one such page, however often it is mapped. It serves one thread at a time:
 * of what somebody else writes meanwhile any part may be taken for the command. Others use
 * the ioctl.
 */
struct ibchan_submit_page {
	struct ibchan_cmd_submit cmd;
	struct ibchan_submit_wr wrs[IBCHAN_SUBMIT_PAGE_WRS];
};

#endif /* _UAPI_LINUX_IBCHAN_SUBMIT_PAGE_H */
