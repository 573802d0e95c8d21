// SPDX-License-Identifier: GPL-2.0-only
/*
 * ibchan_exporter.ko: dma-bufs for the tests. No device takes part: attaching is refused.
 *
 * Programs map a buffer by its page frames, as a driver maps a device's memory, so that the
 * mapping itself cannot be pinned.
 */
#include <linux/dma-buf.h>
#include <linux/fcntl.h>
#include <linux/fs.h>
#include <linux/io.h>
#include <linux/iosys-map.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>

#include "exporter.h"

#define MAX_PAGES	4096U

/* A page of the PCI hole of a PC, which no memory lies in. */
#define NO_PAGES_ADDRESS	0xfed40000UL

static DEFINE_MUTEX(lock);		/* the counters */

static int buffers;
module_param(buffers, int, 0444);
MODULE_PARM_DESC(buffers, "Buffers that exist");

static int mappings;
module_param(mappings, int, 0444);
MODULE_PARM_DESC(mappings, "Buffers that the kernel has mapped");

static int accesses;
module_param(accesses, int, 0444);
MODULE_PARM_DESC(accesses, "Accesses by the CPU that have begun and not ended");

static DECLARE_WAIT_QUEUE_HEAD(fence_wait);
static bool fence;

static int set_fence(const char *value, const struct kernel_param *param)
{
	int ret = param_set_bool(value, param);

	wake_up_all(&fence_wait);
	return ret;
}

static const struct kernel_param_ops fence_ops = {
	.set = set_fence,
	.get = param_get_bool,
};

module_param_cb(fence, &fence_ops, &fence, 0644);
MODULE_PARM_DESC(fence, "Accesses by the CPU wait, as for another device's fence");

/**
 * struct buffer - the memory behind one dma-buf
 * @flags: EXPORTER_*
 * @num: pages
 * @pages: these
 */
struct buffer {
	u32 flags;
	u32 num;
	struct page *pages[];
};

static void count(int *counter, int change)
{
	mutex_lock(&lock);
	*counter += change;
	mutex_unlock(&lock);
}

static void buffer_free(struct buffer *buffer)
{
	u32 i;

	for (i = 0; i < buffer->num; i++)
		if (buffer->pages[i])
			__free_page(buffer->pages[i]);
	kvfree(buffer);
}

/* Pages next to each other, each of which can be freed for itself. */
static int fill_contiguous(struct buffer *buffer)
{
	unsigned int order = get_order((unsigned long)buffer->num << PAGE_SHIFT);
	struct page *first = alloc_pages(GFP_KERNEL | __GFP_ZERO, order);
	u32 i;

	if (!first)
		return -ENOMEM;
	split_page(first, order);
	for (i = 0; i < 1U << order; i++) {
		if (i < buffer->num)
			buffer->pages[i] = first + i;
		else
			__free_page(first + i);
	}
	return 0;
}

/* The first of two pages each, so that no two of them lie next to each other. */
static int fill_scattered(struct buffer *buffer)
{
	u32 i;

	for (i = 0; i < buffer->num; i++) {
		struct page *two = alloc_pages(GFP_KERNEL | __GFP_ZERO, 1);

		if (!two)
			return -ENOMEM;
		split_page(two, 1);
		__free_page(two + 1);
		buffer->pages[i] = two;
	}
	return 0;
}

static struct buffer *buffer_alloc(const struct exporter_request *request)
{
	struct buffer *buffer = kvzalloc(struct_size(buffer, pages, request->pages), GFP_KERNEL);
	int ret;

	if (!buffer)
		return NULL;
	buffer->flags = request->flags;
	buffer->num = request->pages;
	ret = request->flags & EXPORTER_CONTIGUOUS ? fill_contiguous(buffer) :
						     fill_scattered(buffer);
	if (!ret)
		return buffer;
	buffer_free(buffer);
	return NULL;
}

static struct sg_table *map_dma_buf(struct dma_buf_attachment *attachment,
				    enum dma_data_direction direction)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static void unmap_dma_buf(struct dma_buf_attachment *attachment, struct sg_table *sgt,
			  enum dma_data_direction direction)
{
}

static void release(struct dma_buf *dmabuf)
{
	buffer_free(dmabuf->priv);
	count(&buffers, -1);
}

static int begin_cpu_access(struct dma_buf *dmabuf, enum dma_data_direction direction)
{
	int ret = wait_event_interruptible(fence_wait, !READ_ONCE(fence));

	if (!ret)
		count(&accesses, 1);
	return ret;
}

static int end_cpu_access(struct dma_buf *dmabuf, enum dma_data_direction direction)
{
	count(&accesses, -1);
	return 0;
}

static int map_for_programs(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	struct buffer *buffer = dmabuf->priv;
	u32 i = vma->vm_pgoff;
	unsigned long addr;
	int ret = 0;

	for (addr = vma->vm_start; addr < vma->vm_end && !ret; addr += PAGE_SIZE, i++)
		ret = remap_pfn_range(vma, addr, page_to_pfn(buffer->pages[i]), PAGE_SIZE,
				      vma->vm_page_prot);
	return ret;
}

static void *map_pages(struct buffer *buffer)
{
	if (buffer->flags & EXPORTER_NO_PAGES)
		return (void __force *)ioremap(NO_PAGES_ADDRESS, PAGE_SIZE);
	if (buffer->flags & EXPORTER_CONTIGUOUS)
		return page_address(buffer->pages[0]);
	return vmap(buffer->pages, buffer->num, VM_MAP, PAGE_KERNEL);
}

static void unmap_pages(struct buffer *buffer, void *vaddr)
{
	if (buffer->flags & EXPORTER_NO_PAGES)
		iounmap((void __iomem __force *)vaddr);
	else if (!(buffer->flags & EXPORTER_CONTIGUOUS))
		vunmap(vaddr);
}

static int map_for_kernel(struct dma_buf *dmabuf, struct iosys_map *map)
{
	struct buffer *buffer = dmabuf->priv;
	void *vaddr = map_pages(buffer);

	if (!vaddr)
		return -ENOMEM;
	if (buffer->flags & EXPORTER_IO_MAPPING)
		iosys_map_set_vaddr_iomem(map, (void __iomem __force *)vaddr);
	else
		iosys_map_set_vaddr(map, vaddr);
	count(&mappings, 1);
	return 0;
}

static void unmap_for_kernel(struct dma_buf *dmabuf, struct iosys_map *map)
{
	struct buffer *buffer = dmabuf->priv;

	unmap_pages(buffer, map->is_iomem ? (void __force *)map->vaddr_iomem : map->vaddr);
	count(&mappings, -1);
}

#define COMMON_OPS						\
	.map_dma_buf = map_dma_buf,				\
	.unmap_dma_buf = unmap_dma_buf,				\
	.release = release,					\
	.begin_cpu_access = begin_cpu_access,			\
	.end_cpu_access = end_cpu_access,			\
	.mmap = map_for_programs

static const struct dma_buf_ops ops = {
	COMMON_OPS,
	.vmap = map_for_kernel,
	.vunmap = unmap_for_kernel,
};

static const struct dma_buf_ops ops_without_vmap = {
	COMMON_OPS,
};

static struct dma_buf *export(struct buffer *buffer)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);

	info.ops = buffer->flags & EXPORTER_NO_VMAP ? &ops_without_vmap : &ops;
	info.size = (size_t)buffer->num << PAGE_SHIFT;
	info.flags = buffer->flags & EXPORTER_READ_ONLY ? O_RDONLY : O_RDWR;
	info.priv = buffer;
	return dma_buf_export(&info);
}

/* A dma-buf takes its buffer with it when it goes. */
static int new_descriptor(const struct exporter_request *request)
{
	struct buffer *buffer = buffer_alloc(request);
	struct dma_buf *dmabuf;
	int fd;

	if (!buffer)
		return -ENOMEM;
	dmabuf = export(buffer);
	if (IS_ERR(dmabuf)) {
		buffer_free(buffer);
		return PTR_ERR(dmabuf);
	}
	count(&buffers, 1);
	fd = dma_buf_fd(dmabuf, O_CLOEXEC);
	if (fd < 0)
		dma_buf_put(dmabuf);
	return fd;
}

static long exporter_ioctl(struct file *file, unsigned int number, unsigned long arg)
{
	struct exporter_request __user *user = (void __user *)arg;
	struct exporter_request request;
	int fd;

	if (number != EXPORTER_EXPORT)
		return -ENOTTY;
	if (copy_from_user(&request, user, sizeof(request)))
		return -EFAULT;
	if (!request.pages || request.pages > MAX_PAGES || request.reserved ||
	    request.flags & ~EXPORTER_FLAGS)
		return -EINVAL;
	fd = new_descriptor(&request);
	return fd < 0 ? fd : put_user(fd, &user->out_fd);
}

static const struct file_operations exporter_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = exporter_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static struct miscdevice exporter = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "ibchan_exporter",
	.fops = &exporter_fops,
};
module_misc_device(exporter);

MODULE_INFO(import_ns, "DMA_BUF");
MODULE_DESCRIPTION("dma-bufs for the tests of ibchan");
MODULE_LICENSE("GPL");
