// SPDX-License-Identifier: GPL-2.0-only
/* Regions, and how the device reaches their bytes: see hca.h. */
#include <linux/iommu.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <rdma/iter.h>

#include "hca.h"

/* The part of a key that the consumer chooses. */
#define KEY_BITS	8

/* --- making regions --- */

static void mr_free(struct hca_mr *mr)
{
	if (mr->umem)
		ib_umem_release(mr->umem);
	kvfree(mr->table);
	kvfree(mr->pages);
	kfree(mr);
}

/* With a key of its own that nothing had for long. */
static struct hca_mr *mr_alloc(struct ib_pd *pd, enum hca_mr_kind kind, u32 max_pages)
{
	struct hca_device *hca = to_hca(pd->device);
	struct hca_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	u32 index;

	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->kind = kind;
	mr->max_pages = max_pages;
	mr->shift = PAGE_SHIFT;
	mr->pages = kvcalloc(max_pages ?: 1, sizeof(*mr->pages), GFP_KERNEL);
	mr->table = kvcalloc(max_pages ?: 1, sizeof(*mr->table), GFP_KERNEL);
	if (!mr->pages || !mr->table ||
	    xa_alloc_cyclic_irq(&hca->mrs, &index, mr, XA_LIMIT(1, (1 << 24) - 2), &hca->next_key,
				GFP_KERNEL) < 0) {
		mr_free(mr);
		return ERR_PTR(-ENOMEM);
	}
	mr->key = index << KEY_BITS;
	mr->ib.lkey = mr->key;
	mr->ib.rkey = mr->key;
	/* The core sets it when the driver has returned; the device may be quicker. */
	mr->ib.pd = pd;
	return mr;
}

static void mr_enable(struct hca_mr *mr, int access)
{
	spin_lock_irq(&hca_lock);
	mr->access = access;
	mr->valid = true;
	spin_unlock_irq(&hca_lock);
}

static struct ib_mr *get_dma_mr(struct ib_pd *pd, int access)
{
	struct hca_mr *mr = mr_alloc(pd, HCA_MR_DMA, 0);

	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->length = U64_MAX;
	mr_enable(mr, access);
	return &mr->ib;
}

static int fill_user_pages(struct hca_mr *mr)
{
	struct ib_block_iter block;

	rdma_umem_for_each_dma_block(mr->umem, &block, PAGE_SIZE) {
		if (mr->num_pages == mr->max_pages)
			return -EINVAL;
		mr->pages[mr->num_pages++] = rdma_block_iter_dma_address(&block);
	}
	return 0;
}

#ifdef HCA_UMEM_BY_VA
#define ib_umem_get ib_umem_get_va
#endif

static struct ib_mr *register_user(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access)
{
	struct ib_umem *umem = ib_umem_get(pd->device, start, length, access);
	struct hca_mr *mr;
	int ret;

	if (IS_ERR(umem))
		return ERR_CAST(umem);
	mr = mr_alloc(pd, HCA_MR_USER, ib_umem_num_pages(umem));
	if (IS_ERR(mr)) {
		ib_umem_release(umem);
		return ERR_CAST(mr);
	}
	mr->umem = umem;
	mr->iova = iova;
	mr->length = length;
	ret = fill_user_pages(mr);
	if (!ret) {
		mr_enable(mr, access);
		return &mr->ib;
	}
	xa_erase_irq(&to_hca(pd->device)->mrs, mr->key >> KEY_BITS);
	mr_free(mr);
	return ERR_PTR(ret);
}

#ifdef HCA_MR_HAS_DMAH
static struct ib_mr *reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access,
				 struct ib_dmah *dmah, struct ib_udata *udata)
{
	return dmah ? ERR_PTR(-EOPNOTSUPP) : register_user(pd, start, length, iova, access);
}
#else
static struct ib_mr *reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access,
				 struct ib_udata *udata)
{
	return register_user(pd, start, length, iova, access);
}
#endif

static struct ib_mr *alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 pages)
{
	struct hca_mr *mr;

	if (type != IB_MR_TYPE_MEM_REG)
		return ERR_PTR(-EOPNOTSUPP);
	if (pages > to_hca(pd->device)->preset->max_fast_reg_pages)
		return ERR_PTR(-EINVAL);
	mr = mr_alloc(pd, HCA_MR_FAST, pages);
	return IS_ERR(mr) ? ERR_CAST(mr) : &mr->ib;
}

static int dereg_mr(struct ib_mr *ib, struct ib_udata *udata)
{
	struct hca_mr *mr = to_hca_mr(ib);
	struct hca_device *hca = to_hca(ib->device);

	hca_command();
	/* The core takes for granted that a domain's own one goes. */
	if (mr->kind != HCA_MR_DMA && hca_keeps(HCA_DESTROY_MR))
		return -EBUSY;
	spin_lock_irq(&hca_lock);
	xa_erase(&hca->mrs, mr->key >> KEY_BITS);
	spin_unlock_irq(&hca_lock);
	mr_free(mr);
	return 0;
}

static int set_page(struct ib_mr *ib, u64 addr)
{
	struct hca_mr *mr = to_hca_mr(ib);

	if (mr->num_table == mr->max_pages)
		return -ENOMEM;
	mr->table[mr->num_table++] = addr;
	return 0;
}

static int map_mr_sg(struct ib_mr *ib, struct scatterlist *sg, int nents, unsigned int *offset)
{
	to_hca_mr(ib)->num_table = 0;
	return ib_sg_to_pages(ib, sg, nents, offset, set_page);
}

const struct ib_device_ops hca_memory_ops = {
	.alloc_mr = alloc_mr,
	.dereg_mr = dereg_mr,
	.get_dma_mr = get_dma_mr,
	.map_mr_sg = map_mr_sg,
	.reg_user_mr = reg_user_mr,
};

/* --- what works do to regions; under the lock --- */

/* Returns whether the region was free to be registered. */
int hca_fast_register(struct hca_device *hca, const struct hca_wqe *wqe)
{
	struct hca_mr *mr = xa_load(&hca->mrs, wqe->rkey >> KEY_BITS);

	if (!mr || mr != wqe->mr || mr->kind != HCA_MR_FAST || mr->valid)
		return -EINVAL;
	/* Then the offset is beyond the page, and the device would reach other memory. */
	if (hca->preset->registers_by_dma &&
	    mr->ib.iova - mr->table[0] >= mr->ib.page_size)
		return -EINVAL;
	memcpy(mr->pages, mr->table, mr->num_table * sizeof(*mr->table));
	mr->num_pages = mr->num_table;
	mr->shift = ilog2(mr->ib.page_size);
	mr->iova = mr->ib.iova;
	mr->length = mr->ib.length;
	mr->key = wqe->rkey;
	mr->access = wqe->access;
	mr->valid = true;
	return 0;
}

int hca_invalidate(struct hca_device *hca, struct ib_pd *pd, u32 key)
{
	struct hca_mr *mr = xa_load(&hca->mrs, key >> KEY_BITS);

	if (!mr || mr->kind != HCA_MR_FAST || mr->ib.pd != pd || !mr->valid || mr->key != key)
		return -EINVAL;
	mr->valid = false;
	return 0;
}

/* --- reaching bytes; under the lock --- */

static struct hca_mr *find_mr(const struct hca_cursor *cursor, int access)
{
	u32 key = cursor->sge->lkey;
	struct hca_mr *mr = xa_load(&cursor->hca->mrs, key >> KEY_BITS);

	if (!mr || !mr->valid || mr->key != key || mr->ib.pd != cursor->pd ||
	    (mr->access & access) != access)
		return NULL;
	return mr;
}

/* The consumer has not asked for the key of all memory by a region. */
static bool is_global_key(const struct hca_cursor *cursor)
{
	return !cursor->remote_access && cursor->hca->preset->local_dma_lkey &&
	       cursor->sge->lkey == cursor->hca->ib.local_dma_lkey;
}

static int access_needed(const struct hca_cursor *cursor, bool writes)
{
	if (cursor->remote_access)
		return cursor->remote_access;
	return writes ? IB_ACCESS_LOCAL_WRITE : 0;
}

static bool is_inside(const struct hca_mr *mr, u64 addr, u64 bytes)
{
	return mr->kind == HCA_MR_DMA ||
	       (addr >= mr->iova && addr - mr->iova <= mr->length &&
		bytes <= mr->length - (addr - mr->iova));
}

/* The DMA address of a region's byte, and how many follow it there. */
static u64 dma_address(const struct hca_mr *mr, u64 addr, u32 *bytes)
{
	u64 size = 1ULL << mr->shift;
	u64 in_page = addr & (size - 1);
	u64 page;

	if (mr->kind == HCA_MR_DMA)
		return addr;
	page = (addr - (mr->iova & ~(size - 1))) >> mr->shift;
	*bytes = min_t(u64, *bytes, size - in_page);
	return mr->pages[page] + in_page;
}

/* The bus sees the device's address, and the IOMMU what that is now. */
static u8 *bus_to_bytes(struct hca_device *hca, u64 addr, u32 *bytes, bool writes)
{
	enum hca_fault fault;
	phys_addr_t phys;

	if (hca->preset->virt_dma)
		return (u8 *)(uintptr_t)addr;
	*bytes = min_t(u32, *bytes, PAGE_SIZE - offset_in_page(addr));
	fault = hca_shadow_check(hca, addr, bytes, writes);
	phys = hca->domain ? iommu_iova_to_phys(hca->domain, addr) : addr;
	if (!phys || !pfn_valid(PHYS_PFN(phys)))
		fault = HCA_UNMAPPED;
	if (fault == HCA_FAULTS)
		return phys_to_virt(phys);
	hca_report(hca, fault, writes ? "written" : "read", addr);
	return NULL;
}

/* Leaves empty elements behind. */
static bool find_element(struct hca_cursor *cursor)
{
	while (cursor->num && cursor->skip == cursor->sge->length) {
		cursor->sge++;
		cursor->num--;
		cursor->skip = 0;
	}
	return cursor->num;
}

/**
 * hca_reach - where the next bytes are
 * @cursor: at them
 * @writes: the device writes there
 * @bytes: how many are wanted; how many of them lie together
 *
 * Return: them; NULL if the device must not, or cannot, reach them.
 */
u8 *hca_reach(struct hca_cursor *cursor, bool writes, u32 *bytes)
{
	struct hca_mr *mr;
	u64 addr;

	if (cursor->data)
		return cursor->data + cursor->skip;
	if (!find_element(cursor))
		return NULL;
	*bytes = min_t(u64, *bytes, cursor->sge->length - cursor->skip);
	addr = cursor->sge->addr + cursor->skip;
	if (is_global_key(cursor))
		return bus_to_bytes(cursor->hca, addr, bytes, writes);
	mr = find_mr(cursor, access_needed(cursor, writes));
	if (mr && is_inside(mr, addr, *bytes)) {
		addr = dma_address(mr, addr, bytes);
		return bus_to_bytes(cursor->hca, addr, bytes, writes);
	}
	if (!cursor->remote_access)
		hca_report(cursor->hca, mr ? HCA_BEYOND_REGION : HCA_NO_REGION, "named", addr);
	return NULL;
}

void hca_advance(struct hca_cursor *cursor, u32 bytes)
{
	u32 part;

	while (!cursor->data && bytes && find_element(cursor)) {
		part = min_t(u64, bytes, cursor->sge->length - cursor->skip);
		cursor->skip += part;
		bytes -= part;
	}
	if (cursor->data)
		cursor->skip += bytes;
}

/**
 * hca_move - move bytes as two devices do
 * @to: where
 * @from: whence
 * @bytes: how many
 *
 * Return: 0; -EFAULT: @from cannot be read; -EACCES: @to cannot be written.
 */
int hca_move(struct hca_cursor *to, struct hca_cursor *from, u32 bytes)
{
	u8 *source, *target;
	u32 part;

	while (bytes) {
		part = bytes;
		source = hca_reach(from, false, &part);
		if (!source)
			return -EFAULT;
		target = hca_reach(to, true, &part);
		if (!target)
			return -EACCES;
		memcpy(target, source, part);
		hca_advance(from, part);
		hca_advance(to, part);
		bytes -= part;
	}
	return 0;
}
