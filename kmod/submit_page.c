// SPDX-License-Identifier: GPL-2.0-only
/*
 * The submit page: a submit that stands in memory which the file shares with its opener.
 * fdatasync() hands over what was written there, as it does for memory of other devices
 * whose drivers write it out on demand. Unlike ioctl() it asks no security module; they are
 * asked when the file is opened and the page is mapped, and each call looks whether it is the
 * opener's.
 */
#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/ibchan_submit_page.h>

#include "context.h"

static_assert(sizeof(struct ibchan_submit_page) <= PAGE_SIZE);

/* The one of the file; it stays until the file is released. */
static struct ibchan_submit_page *get_page_of(struct ibchan_context *ctx)
{
	struct ibchan_submit_page *fresh, *page = READ_ONCE(ctx->submit_page);

	if (page)
		return page;
	fresh = (void *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
	if (!fresh)
		return NULL;
	page = cmpxchg(&ctx->submit_page, NULL, fresh);
	if (!page)
		return fresh;
	free_page((unsigned long)fresh);
	return page;
}

void ibchan_submit_page_free(struct ibchan_context *ctx)
{
	free_page((unsigned long)ctx->submit_page);
}

/**
 * ibchan_context_mmap - map the submit page of an open file
 * @file: the file
 * @vma: where
 *
 * Return: 0; -EPERM for another process than the one that opened the file; -EINVAL for
 * anything else than the whole page, shared and not executable; -ENOMEM.
 */
int ibchan_context_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct ibchan_context *ctx = file->private_data;
	struct ibchan_submit_page *shared;
	struct page *page;

	if (current->mm != ctx->mm)
		return -EPERM;
	if (vma->vm_pgoff != IBCHAN_SUBMIT_PAGE >> PAGE_SHIFT)
		return -EINVAL;
	shared = get_page_of(ctx);
	if (!shared)
		return -ENOMEM;
	page = virt_to_page(shared);
	return ibchan_map_shared(vma, &page, 1);
}

/**
 * ibchan_context_fsync - do the submit that stands in the page
 * @file: the file
 * @start: not used: there is one page
 * @end: not used
 * @datasync: not used: there is nothing but data
 *
 * Return: as <linux/ibchan_submit_page.h> says.
 */
int ibchan_context_fsync(struct file *file, loff_t start, loff_t end, int datasync)
{
	struct ibchan_context *ctx = file->private_data;
	struct ibchan_submit_page *page = READ_ONCE(ctx->submit_page);
	int ret;

	if (unlikely(!page))
		return -EINVAL;
	ret = ibchan_submit_shared(ctx, page);
	return likely(ret <= 0) ? ret : -ENOTTY;
}
