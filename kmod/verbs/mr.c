// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory regions: the only place that maps or registers. mr_end.c ends a region.
 *
 * User pages are pinned by the driver (ib_umem), charged to the mm of the caller, and unpinned when
 * the driver deregisters, in any thread; or pin.c has pinned them, and the region unpins them.
 *
 * Kernel memory belongs to its owner and is only mapped. For local access the domain's own key
 * serves, which is why such a region may consist of several segments and has no rkey. For remote
 * access the pages are put into a region that is contiguous for the device; service.c posts its
 * registration. So are pinned pages of more segments than their user can do with.
 *
 * A domain keeps fast-registration regions for plain memory: its pool. To allocate one is expensive
 * (hardware takes a command to its firmware), and a work on plain memory needs one only until it
 * has ended. An idle region is invalidated: its key is not valid, and it refers to no pinned page.
 * All of a pool have room for the same number of pages, so any of them fits. A work with few pages,
 * or with more than that, has a region of its own.
 */
#include <linux/dma-map-ops.h>
#include <linux/errno.h>
#include <linux/iommu.h>
#include <linux/llist.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "private.h"

/* A range of fewer pages has a region of its own, which is small. */
#define POOL_MIN_PAGES	33

/* Pages of 4 MiB: at most what a domain keeps in one region. */
#define POOL_MAX_PAGES	1024

/* @bytes: of kernel memory, see budget.c */
static struct ibchan_mr *mr_alloc(struct ibchan_pd *pd, u64 length, u32 access, u64 bytes,
				  struct ibchan_reason *reason)
{
	struct ibchan_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->extent = (struct ibchan_extent) {
		.pd = pd,
		.length = length,
		.access = access,
		.allows = access | IBCHAN_MAY_GATHER | IBCHAN_MAY_SINK | IBCHAN_IS_WHOLE,
	};
	mr->num_segments = 1;
	ibchan_users_init(&mr->users);
	ibchan_busy_init(&mr->busy);
	ret = ibchan_cost_charge(&mr->cost, pd->cost.budget, bytes, reason);
	if (!ret)
		return mr;
	kfree(mr);
	return ERR_PTR(ret);
}

/*
 * A region that was never published. Where it has something of the device's, the caller is inside
 * the gate, or a guest.
 */
void ibchan_mr_discard(struct ibchan_mr *mr)
{
	if (mr->ib)
		ibchan_mr_end_region(mr->extent.pd, mr->ib);
	ibchan_mr_unmap_table(mr);
	kvfree(mr->segments);
	ibchan_cost_pay_back(&mr->cost);
	kfree(mr);
}

static void mr_publish(struct ibchan_mr *mr)
{
	struct ibchan_device *dev = mr->extent.pd->dev;

	ibchan_pd_hold(mr->extent.pd);
	ibchan_key_list(mr);
	scoped_guard(mutex, &dev->lock)
		list_add_tail(&mr->link, &dev->mrs);
	ibchan_gauge(mrs_registered, 1);
	ibchan_gauge(mr_pages, mr->pages);
}

/* The device has given @mr its region. */
static void set_keys(struct ibchan_mr *mr)
{
	mr->lkey = mr->ib->lkey;
	mr->rkey = mr->extent.access & IBCHAN_ACCESS_REMOTE ? mr->ib->rkey : 0;
}

/*
 * The address that the device knows the range by is the user's own: soft-RoCE wants both to be
 * equal modulo the page, siw wants them equal. An iWARP peer answers a read by an RDMA write into
 * the reader's region, which must allow that; siw needs no such access. The read carries the
 * region's key, so the peer can write all of the region.
 */
static int reg_user(struct ibchan_mr *mr, struct ib_pd *pd, struct ibchan_reason *reason)
{
	const struct ibchan_device *dev = mr->extent.pd->dev;
	u64 addr = mr->addr, length = mr->extent.length;
	u32 access = mr->extent.access;
	struct ib_mr *ib;

	if (!(dev->attr.caps & IBCHAN_DEVICE_ENDPOINTS) && access & IBCHAN_ACCESS_LOCAL_WRITE &&
	    !ibchan_device_has(dev, IBCHAN_QUIRK_READS_INTO_ANY))
		access |= IB_ACCESS_REMOTE_WRITE;
	ib = ibchan_fault_ptr(IBCHAN_FAULT_MR_REG_USER) ?:
	     ib_reg_user_mr(pd, addr, length, addr, access);
	/* A limit of 0 is -EPERM to ib_umem. */
	if (ib == ERR_PTR(-ENOMEM) || (ib == ERR_PTR(-EPERM) && !can_do_mlock()))
		return ibchan_check_memlock(mr->pages, reason) ?: -ENOMEM;
	if (IS_ERR(ib))
		return PTR_ERR(ib);
	mr->ib = ib;
	set_keys(mr);
	return 0;
}

/*
 * The driver pins and registers a range of the caller's. It faults the pages in, so it may wait for
 * as long as a page fault may, without the gate: of all other threads only the removal of the
 * device waits for that. -ENOMEM, also for RLIMIT_MEMLOCK, which @reason tells; -EDQUOT for the
 * domain's budget; -EFAULT, also when the mapping that @range names has changed meanwhile; -ENODEV.
 */
struct ibchan_mr *ibchan_mr_reg_driver(struct ibchan_pd *pd,
				       const struct ibchan_user_range *range,
				       struct ibchan_reason *reason)
{
	u64 pages = ibchan_pages_spanned(range->addr, range->length);
	struct ibchan_mr *mr = mr_alloc(pd, range->length, range->access,
					ibchan_footprint_mr(pages, pages), reason);
	/*
	 * Read before the gate is asked: an admitted guest has a valid domain then, also when
	 * removal sets the pointer to NULL meanwhile.
	 */
	struct ib_pd *ib_pd = READ_ONCE(pd->ib);
	struct ibchan_guest guest;
	int ret;

	if (IS_ERR(mr))
		return mr;
	mr->addr = range->addr;
	mr->pages = pages;
	mr->foreign = true;
	ret = ibchan_gate_admit(pd->dev, &guest);
	if (ret) {
		ibchan_mr_discard(mr);
		return ERR_PTR(ret);
	}
	ret = reg_user(mr, ib_pd, reason);
	ibchan_fault_rest(IBCHAN_WINDOW_REGISTERED);
	if (!ret && range->mapping && READ_ONCE(range->mapping->changed)) {
		ibchan_mr_undo(mr, &guest);
		return ERR_PTR(-EFAULT);
	}
	if (!ret)
		ret = ibchan_device_enter(pd->dev);
	if (!ret) {
		mr_publish(mr);
		ibchan_device_exit(pd->dev);
	} else {
		/* If the device has left, no list has the region: the guest ends it itself. */
		ibchan_mr_discard(mr);
	}
	ibchan_gate_dismiss(pd->dev, &guest);
	return ret ? ERR_PTR(ret) : mr;
}

/* Gives @mr a region of the device's, idle or new, inside the gate. */
static int pool_get(struct ibchan_mr *mr)
{
	struct ibchan_pd *pd = mr->extent.pd;
	struct ibchan_idle idle = {};

	if (mr->room > mr->pages) {
		guard(spinlock)(&pd->pool_lock);
		if (pd->num_idle)
			idle = pd->pool[--pd->num_idle];
	}
	if (!idle.ib)
		idle.ib = ibchan_fault_ptr(IBCHAN_FAULT_MR_ALLOC) ?:
			  ib_alloc_mr(pd->ib, IB_MR_TYPE_MEM_REG, max(mr->room, mr->pages));
	if (IS_ERR(idle.ib))
		return PTR_ERR(idle.ib);
	/* @mr was charged for it. */
	ibchan_cost_pay_back(&idle.cost);
	mr->ib = idle.ib;
	return 0;
}

/*
 * The device has invalidated the region, no work of which has failed. Inside the gate. One of the
 * pool stays with the domain, and so does the part of the charge that is for it.
 */
void ibchan_pool_put(struct ibchan_mr *mr)
{
	struct ibchan_pd *pd = mr->extent.pd;
	struct ibchan_idle *idle;

	if (mr->room <= mr->pages || !mr->ib)
		return;
	guard(spinlock)(&pd->pool_lock);
	if (pd->num_idle == ARRAY_SIZE(pd->pool))
		return;
	idle = &pd->pool[pd->num_idle++];
	*idle = (struct ibchan_idle) { .ib = xchg(&mr->ib, NULL) };
	ibchan_cost_move(&mr->cost, &idle->cost, ibchan_footprint_mr(0, mr->room));
}

/* Deregisters what a domain keeps. The gate is held or closed. */
void ibchan_pool_end(struct ibchan_pd *pd)
{
	struct ibchan_idle *idle;

	while (pd->num_idle) {
		idle = &pd->pool[--pd->num_idle];
		/* The driver of a device that was forgotten is not called. */
		if (pd->ib)
			ibchan_mr_end_region(pd, idle->ib);
		ibchan_cost_pay_back(&idle->cost);
	}
}

/*
 * The table of segments, with an entry behind the last that ends it. The region has the key of all
 * memory. iWARP tells the peer the key of the memory that a read goes to, and the answer is written
 * by it: no read goes there.
 */
static int fill_segments(struct ibchan_mr *mr)
{
	const struct ibchan_device *dev = mr->extent.pd->dev;
	struct scatterlist *sg;
	u64 start = 0;
	u32 i;

	mr->lkey = mr->extent.pd->ib->local_dma_lkey;
	if (rdma_protocol_iwarp(dev->ib, rdma_start_port(dev->ib)))
		mr->extent.allows &= ~IBCHAN_MAY_SINK;
	mr->addr = sg_dma_address(mr->sgt.sgl);
	if (mr->sgt.nents == 1)
		return 0;
	mr->segments = kvcalloc(mr->sgt.nents + 1, sizeof(*mr->segments), GFP_KERNEL_ACCOUNT);
	if (!mr->segments)
		return -ENOMEM;
	mr->extent.allows &= ~IBCHAN_IS_WHOLE;
	for_each_sgtable_dma_sg(&mr->sgt, sg, i) {
		mr->segments[i] = (struct ibchan_segment){ start, sg_dma_address(sg) };
		start += sg_dma_len(sg);
	}
	mr->segments[i].start = start;
	mr->num_segments = mr->sgt.nents;
	return 0;
}

static int fill_contiguous(struct ibchan_mr *mr, struct ibchan_reason *reason)
{
	const struct ibchan_device *dev = mr->extent.pd->dev;
	u32 max = dev->attr.max_fast_reg_pages;
	struct ib_mr *ib;
	int ret, mapped;

	if (!max || (mr->foreign && ibchan_device_has(dev, IBCHAN_QUIRK_REGISTERS_BY_DMA)))
		return ibchan_refuse_values(reason, IBCHAN_REASON_REGION_TOO_LONG, -EOPNOTSUPP,
					    (u64[3]) { mr->pages, 0 });
	if (mr->pages > max)
		return ibchan_refuse_values(reason, IBCHAN_REASON_REGION_TOO_LONG, -EINVAL,
					    (u64[3]) { mr->pages, max });
	ret = pool_get(mr);
	if (ret)
		return ret;
	ib = mr->ib;
	mapped = ibchan_fault(IBCHAN_FAULT_MR_MAP) ?:
		 ib_map_mr_sg(ib, mr->sgt.sgl, mr->sgt.nents, NULL, PAGE_SIZE);
	if (mapped < 0)
		return mapped;
	if (mapped < mr->sgt.nents)
		return ibchan_refuse_values(reason, IBCHAN_REASON_REGION_GAPS, -EINVAL,
					    (u64[3]) { mr->sgt.nents, mapped });
	ib_update_fast_reg_key(ib, ib_inc_rkey(ib->rkey));
	/*
	 * A peer knows memory of a user by the user's address. Of kernel memory the device calls
	 * the first byte by its place in its page, so that peers do not learn where it lies,
	 * unless the device takes no such address.
	 */
	if (!mr->addr)
		mr->addr = ibchan_device_has(dev, IBCHAN_QUIRK_REGISTERS_BY_DMA) ?
			   ib->iova : offset_in_page(ib->iova);
	ib->iova = mr->addr;
	mr->key = ib->rkey;
	set_keys(mr);
	return 0;
}

/*
 * Does the device reach other memory than the pages themselves? Behind an IOMMU each entry of
 * the table is at its place of the mapped segments. The kernel copies parts of the IOMMU's pages
 * only, of which a device that is not trusted must not see the rest. Memory of another PCI device
 * may be reached beside the IOMMU, and is never copied.
 */
static bool is_copied(struct iommu_domain *domain, const struct sg_table *sgt)
{
	u64 inside = iommu_is_dma_domain(domain) && domain->pgsize_bitmap & PAGE_SIZE ?
		     ~PAGE_MASK : U64_MAX;
	struct scatterlist *mapped = sgt->sgl;
	struct scatterlist *sg;
	u64 offset = 0;
	u32 i;

	for_each_sgtable_sg(sgt, sg, i) {
		while (mapped && offset >= sg_dma_len(mapped)) {
			offset -= sg_dma_len(mapped);
			mapped = sg_next(mapped);
		}
		if ((sg->offset | sg->length) & inside && !is_pci_p2pdma_page(sg_page(sg)) &&
		    (!mapped || iommu_iova_to_phys(domain, sg_dma_address(mapped) + offset) !=
				sg_phys(sg)))
			return true;
		offset += sg->length;
	}
	return false;
}

/*
 * The device works on a copy, or has to be told of each write of the cpu's. The core does
 * not say which, and some kernels say so of all memory behind an IOMMU (6.1), or of all of a
 * device's after its first copy (6.12): then it is looked at.
 */
static bool needs_sync(struct ib_device *ib, const struct sg_table *sgt)
{
	struct iommu_domain *domain;
	struct scatterlist *sg;
	bool may = false;
	int i;

	if (ibchan_fault(IBCHAN_FAULT_MR_DMA_SYNC))
		return true;
	if (ib_uses_virt_dma(ib))
		return false;
	for_each_sgtable_dma_sg(sgt, sg, i)
		may |= dma_need_sync(ib->dma_device, sg_dma_address(sg));
	if (!may)
		return false;
	domain = iommu_get_domain_for_dev(ib->dma_device);
	return !domain || !dev_is_dma_coherent(ib->dma_device) || is_copied(domain, sgt);
}

/* @sgt is the region's once it is mapped. */
static int map_table(struct ibchan_mr *mr, struct sg_table *sgt, struct ibchan_reason *reason)
{
	struct ib_device *ib = mr->extent.pd->ib->device;
	int ret;

	mr->direction = mr->extent.access & IBCHAN_ACCESS_LOCAL_WRITE ? DMA_BIDIRECTIONAL :
								  DMA_TO_DEVICE;
	ret = ibchan_fault(IBCHAN_FAULT_MR_DMA_MAP) ?:
	      ib_dma_map_sgtable_attrs(ib, sgt, mr->direction, 0);
	if (ret)
		return ret == -EREMOTEIO ? ret : -ENOMEM;
	mr->sgt = *sgt;
	*sgt = (struct sg_table) {};
	return needs_sync(ib, &mr->sgt) ?
	       ibchan_refuse(reason, IBCHAN_REASON_REGION_COPIED, -EOPNOTSUPP) : 0;
}

/* Inside the gate, or it is closed. */
void ibchan_mr_unmap_table(struct ibchan_mr *mr)
{
	if (!mr->sgt.sgl)
		return;
	ib_dma_unmap_sgtable_attrs(mr->extent.pd->ib->device, &mr->sgt, mr->direction, 0);
	sg_free_table(&mr->sgt);
}

/* Gives @mr back where it fails. The caller frees what is left of @sgt. */
static struct ibchan_mr *mr_map(struct ibchan_mr *mr, struct sg_table *sgt, u32 max_segments,
				struct ibchan_reason *reason)
{
	int ret;

	CLASS(ibchan_command, inside)(mr->extent.pd->dev);
	ret = inside ? map_table(mr, sgt, reason) : -ENODEV;
	if (!ret)
		ret = mr->extent.access & IBCHAN_ACCESS_REMOTE || mr->sgt.nents > max_segments ?
		      fill_contiguous(mr, reason) : fill_segments(mr);
	if (!ret) {
		mr_publish(mr);
		return mr;
	}
	ibchan_mr_discard(mr);
	return ERR_PTR(ret);
}

/*
 * Makes a region of kernel memory. The caller frees what is left of @sgt. A region for remote
 * access is not registered yet. -EINVAL for too many pages, or for segments that do not join at
 * page borders, where access is remote; -EOPNOTSUPP for memory that the device would work on a
 * copy of; -EREMOTEIO for memory of another PCI device that this one does not reach; -EDQUOT for
 * the domain's budget; -ENODEV.
 */
struct ibchan_mr *ibchan_mr_map(struct ibchan_pd *pd, struct sg_table *sgt, u32 access,
				struct ibchan_reason *reason)
{
	u64 pages = 0, length = 0;
	struct scatterlist *sg;
	struct ibchan_mr *mr;
	u32 i;

	for_each_sgtable_sg(sgt, sg, i) {
		pages += ibchan_pages_spanned(sg->offset, sg->length);
		length += sg->length;
	}
	mr = mr_alloc(pd, length, access, ibchan_footprint_mr(pages, pages), reason);
	if (IS_ERR(mr))
		return mr;
	mr->pages = pages;
	return mr_map(mr, sgt, U32_MAX, reason);
}

/* As ibchan_mr_map(), of pinned user memory, which belongs to the region on success. */
struct ibchan_mr *ibchan_mr_map_pinned(struct ibchan_pd *pd, struct ibchan_pinned *pinned,
				       const struct ibchan_user_range *range,
				       struct ibchan_reason *reason)
{
	u64 room = min_t(u32, pd->dev->attr.max_fast_reg_pages, POOL_MAX_PAGES);
	/* Else the device may not be done with the pages of a region that was invalidated. */
	bool can_return = range->access & IBCHAN_ACCESS_LOCAL_WRITE ||
			  !ibchan_device_has(pd->dev, IBCHAN_QUIRK_READS_ON);
	struct sg_table sgt;
	struct ibchan_mr *mr;
	int ret;

	/* More than its pages take, if the device's region is to be of the pool. */
	if (!range->transient || !can_return || pinned->num < POOL_MIN_PAGES || pinned->num > room)
		room = pinned->num;
	mr = mr_alloc(pd, range->length, range->access, ibchan_footprint_mr(pinned->num, room),
		      reason);
	if (IS_ERR(mr))
		return mr;
	ret = sg_alloc_table_from_pages(&sgt, pinned->pages, pinned->num,
					offset_in_page(range->addr), range->length,
					GFP_KERNEL_ACCOUNT);
	if (ret) {
		ibchan_mr_discard(mr);
		return ERR_PTR(ret);
	}
	mr->addr = range->addr;
	mr->foreign = true;
	mr->transient = range->transient;
	mr->room = room;
	mr->pages = pinned->num;
	mr->pinned = *pinned;
	mr = mr_map(mr, &sgt, range->max_segments, reason);
	sg_free_table(&sgt);
	return mr;
}

/**
 * ibchan_mr_rkey - the key by which a peer reaches the region
 * @mr: the region
 *
 * Context: any.
 * Return: the key; 0 unless the region was registered for remote access, and when a peer has
 * invalidated it.
 */
u32 ibchan_mr_rkey(const struct ibchan_mr *mr)
{
	return ibchan_mr_is_invalidated(mr) ? 0 : mr->rkey;
}
EXPORT_SYMBOL_NS_GPL(ibchan_mr_rkey, IBCHAN_NS);

/**
 * ibchan_mr_length - how long a region is
 * @mr: the region
 *
 * Context: any.
 * Return: bytes.
 */
u64 ibchan_mr_length(const struct ibchan_mr *mr)
{
	return mr->extent.length;
}
EXPORT_SYMBOL_NS_GPL(ibchan_mr_length, IBCHAN_NS);

/**
 * ibchan_mr_remote - a region as its peer knows it
 * @mr: the region
 * @remote: filled on success
 *
 * Context: any.
 * Return: 0; -EACCES for a region that was not registered for remote access;
 * -EKEYREVOKED for one that a peer has invalidated.
 */
int ibchan_mr_remote(const struct ibchan_mr *mr, struct ibchan_remote *remote)
{
	if (!(mr->extent.access & IBCHAN_ACCESS_REMOTE))
		return -EACCES;
	if (ibchan_mr_is_invalidated(mr))
		return -EKEYREVOKED;
	*remote = (struct ibchan_remote){
		.addr = mr->addr,
		.length = mr->extent.length,
		.rkey = mr->rkey,
	};
	return 0;
}
EXPORT_SYMBOL_NS_GPL(ibchan_mr_remote, IBCHAN_NS);

/**
 * ibchan_mr_pages - how many pages a region keeps pinned, or mapped
 * @mr: the region
 *
 * Context: any.
 * Return: pages of PAGE_SIZE; a page that it covers only in part counts.
 */
u64 ibchan_mr_pages(const struct ibchan_mr *mr)
{
	return mr->pages;
}
EXPORT_SYMBOL_NS_GPL(ibchan_mr_pages, IBCHAN_NS);

/*
 * Maps a scatterlist for one work. @out has at most as many elements as @list has entries, with the
 * key to all of the domain's memory, which never leaves this machine. Returns how many, or -EIO.
 */
int ibchan_mr_map_list(struct ibchan_pd *pd, const struct ibchan_sg_range *list, struct ib_sge *out)
{
	struct scatterlist *sg;
	int i, num;

	num = ib_dma_map_sg(pd->ib->device, list->sgl, list->entries, list->direction);
	if (num <= 0)
		return -EIO;
	for_each_sg(list->sgl, sg, num, i)
		out[i] = (struct ib_sge){
			.addr = sg_dma_address(sg),
			.length = sg_dma_len(sg),
			.lkey = pd->ib->local_dma_lkey,
		};
	return num;
}

/* The device is through with it. Any context but NMI. */
void ibchan_mr_unmap_list(struct ibchan_pd *pd, const struct ibchan_sg_range *list)
{
	ib_dma_unmap_sg(pd->ib->device, list->sgl, list->entries, list->direction);
}
