// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registers dma-bufs as regions.
 *
 * A dma-buf is memory of an exporter: a GPU, a camera, a heap. A soft device works
 * on memory with the CPU and is nothing that an exporter could map a dma-buf for.
 * So the exporter maps it for the CPU, which also keeps it in place, and the pages
 * of that mapping become a region, as other kernel memory does.
 *
 * The mapping, and a reference to the dma-buf, go when nothing uses the region any
 * more. That calls the exporter, which may sleep, so it is done where the region is
 * deregistered, without the gate: a device that leaves waits for no exporter, and
 * the shells that it leaves behind keep theirs until they are given back.
 */
#include <linux/dma-buf.h>
#include <linux/errno.h>
#include <linux/iosys-map.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "compat.h"
#include "memory.h"

MODULE_INFO(import_ns, "DMA_BUF");

/* A dma-buf that a region lies in */
struct dmabuf_backing {
	struct ibchan_backing base;	/* the region's view of it */
	struct dma_buf *dmabuf;	/* holds a reference */
	struct iosys_map map;	/* where the exporter has mapped it */
	/* of the CPU access that the region is to the exporter */
	enum dma_data_direction direction;
};

static void backing_put(struct dmabuf_backing *backing)
{
	dma_buf_vunmap_unlocked(backing->dmabuf, &backing->map);
	dma_buf_put(backing->dmabuf);
	kfree(backing);
}

static void backing_release(struct ibchan_backing *base)
{
	struct dmabuf_backing *backing = container_of(base, struct dmabuf_backing, base);

	dma_buf_end_cpu_access(backing->dmabuf, backing->direction);
	backing_put(backing);
}

static struct dmabuf_backing *backing_get(struct dma_buf *dmabuf, u32 access,
					  struct ibchan_reason *reason)
{
	struct dmabuf_backing *backing;
	int ret;

	if (!dmabuf->ops->vmap)
		return ERR_PTR(ibchan_refuse(reason, IBCHAN_REASON_DMABUF_NOT_MAPPED, -EOPNOTSUPP));
	backing = kzalloc(sizeof(*backing), GFP_KERNEL_ACCOUNT);
	if (!backing)
		return ERR_PTR(-ENOMEM);
	backing->base.release = backing_release;
	backing->dmabuf = dmabuf;
	backing->direction = access & IBCHAN_ACCESS_LOCAL_WRITE ? DMA_BIDIRECTIONAL :
								   DMA_FROM_DEVICE;
	ret = dma_buf_vmap_unlocked(dmabuf, &backing->map);
	if (ret) {
		kfree(backing);
		return ERR_PTR(ret);
	}
	get_dma_buf(dmabuf);
	/* The exporter waits until others are through with the memory, or a signal comes. */
	if (backing->map.is_iomem)
		ret = ibchan_refuse(reason, IBCHAN_REASON_DMABUF_NO_PAGES, -EOPNOTSUPP);
	else
		ret = dma_buf_begin_cpu_access(dmabuf, backing->direction);
	if (!ret)
		return backing;
	backing_put(backing);
	return ERR_PTR(ret == -ERESTARTSYS ? -EINTR : ret);
}

static int check_dmabuf(struct ibchan_device *dev, const struct ibchan_dmabuf *range,
			u32 access, struct ibchan_reason *reason)
{
	fmode_t needed = FMODE_READ | (access & IBCHAN_ACCESS_LOCAL_WRITE ? FMODE_WRITE : 0);
	u64 size = range->dmabuf->size;

	if (!(dev->attr.caps & IBCHAN_DEVICE_DMABUF))
		return ibchan_refuse_values(reason, IBCHAN_REASON_DMABUF_DEVICE, -EOPNOTSUPP,
					    (u64[3]) { dev->attr.driver_id });
	if (!range->length)
		return ibchan_refuse(reason, IBCHAN_REASON_EMPTY_RANGE, -EINVAL);
	if (range->offset > size || range->length > size - range->offset)
		return ibchan_refuse_values(reason, IBCHAN_REASON_OUT_OF_BOUNDS, -EINVAL,
					    (u64[3]) { range->offset, range->length, size });
	if ((range->dmabuf->file->f_mode & needed) != needed)
		return ibchan_refuse(reason, IBCHAN_REASON_DMABUF_MODE, -EACCES);
	return 0;
}

/**
 * ibchan_mr_reg_dmabuf - make a region of a dma-buf
 * @pd: where, on a soft device: one that has IBCHAN_DEVICE_DMABUF
 * @range: the dma-buf, and where in it the region begins and how long it is
 * @access: as for ibchan_mr_reg_pages()
 * @reason: why not, or NULL
 *
 * The region takes a reference to the dma-buf and has it mapped for the CPU until
 * the region is given back. To the exporter it is one CPU access, which begins
 * here: fences that are on the dma-buf by now are waited for, what another device
 * begins later is for its users to keep apart from works on the region.
 *
 * Context: process, may sleep; no lock of the exporter's is held.
 * Return: the region; -EOPNOTSUPP on a device with DMA of its own, or where the
 * exporter cannot map the dma-buf for the CPU, or only in memory without pages;
 * -EINVAL also for a range that is empty or leaves the dma-buf; -EACCES when the
 * dma-buf's file was not opened for reading, or for writing where @access has
 * local write; -EINTR when a signal comes; the exporter's errno; else as
 * ibchan_mr_reg_pages().
 */
struct ibchan_mr *ibchan_mr_reg_dmabuf(struct ibchan_pd *pd, const struct ibchan_dmabuf *range,
				       u32 access, struct ibchan_reason *reason)
{
	struct dmabuf_backing *backing;
	struct ibchan_mr *mr;
	int ret = ibchan_access_check(access, reason);

	might_sleep();
	if (!ret)
		ret = check_dmabuf(pd->dev, range, access, reason);
	if (ret)
		return ERR_PTR(ret);
	backing = backing_get(range->dmabuf, access, reason);
	if (IS_ERR(backing))
		return ERR_CAST(backing);
	mr = ibchan_mr_reg_kernel(pd, backing->map.vaddr + range->offset, range->length, access,
				  reason);
	if (!IS_ERR(mr)) {
		mr->backing = &backing->base;
		mr->foreign = true;
		return mr;
	}
	backing_release(&backing->base);
	if (PTR_ERR(mr) != -EFAULT)
		return mr;
	return ERR_PTR(ibchan_refuse(reason, IBCHAN_REASON_DMABUF_NO_PAGES, -EOPNOTSUPP));
}
EXPORT_SYMBOL_NS_GPL(ibchan_mr_reg_dmabuf, IBCHAN_NS);
