// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registers memory that the driver does not register by itself: the kernel's, and
 * pinned pages of users.
 *
 * A key to it is good only once a registration was posted on some queue pair of its
 * domain. Each domain that needs one gets a channel of its own
 * for that, connected to itself: its service. It is made when it is first needed
 * and replaced when it has broken. Registrations go through it one at a time, and
 * so do invalidations. Deregistering needs no service: where that is gone, the
 * device's region goes without having been invalidated before.
 */
#include <linux/errno.h>
#include <linux/mm.h>
#include <linux/sched/task_stack.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "compat.h"
#include "memory.h"

/* How long a local request may take: it never leaves the device. */
#define SERVICE_TIMEOUT_NS	(5 * (u64)NSEC_PER_SEC)

/* Each port takes packets as short as this, also without a link; the service sends none. */
#define SERVICE_MTU	256

/* A port that no subnet manager has seen has no LID, and the request none to go to. */
#define SERVICE_LID	1

/* One request at a time, and a receive queue that a queue pair must have. */
#define SERVICE_DEPTH	1

/* kvcalloc() gives no more for the list of a range's pages, wherever the range begins. */
#define MAX_KERNEL_RANGE	((u64)(INT_MAX / sizeof(struct page *) - 1) << PAGE_SHIFT)

/* The channel holds its cq. */
static struct ibchan_channel *service_create(struct ibchan_pd *pd, struct ibchan_reason *reason)
{
	const struct ibchan_cq_init init = {
		.entries = 2 * (SERVICE_DEPTH + IBCHAN_MARKERS),
		.flags = IBCHAN_CQ_POLLED,
		/* Any will do for the little it has: it takes no turn. */
		.comp_vector = !!pd->dev->attr.comp_vectors,
		.budget = pd->cost.budget,
	};
	struct ibchan_cq *cq = ibchan_cq_create(pd->dev, &init, reason);
	const struct ibchan_build build = { .pd = pd, .send_cq = cq, .recv_cq = cq };
	struct ibchan_endpoint endpoint;
	struct ibchan_params params;
	struct ibchan_channel *ch;
	int ret;

	if (IS_ERR(cq))
		return ERR_CAST(cq);
	ibchan_params_init(&params);
	params.access = IBCHAN_ACCESS_LOCAL;
	params.mtu = SERVICE_MTU;
	params.max_send_wr = SERVICE_DEPTH;
	params.max_recv_wr = SERVICE_DEPTH;
	params.max_send_sge = 1;
	params.max_recv_sge = 1;
	ch = ibchan_channel_make(&build, &params, 1, reason);
	ibchan_cq_put(cq);
	if (IS_ERR(ch))
		return ch;
	ibchan_channel_endpoint(ch, &endpoint);
	/* Its requests never leave the device, so a limited member may be its own peer. */
	if (endpoint.pkey)
		endpoint.pkey |= cpu_to_be16(IBCHAN_PKEY_FULL_MEMBER);
	if (endpoint.link_layer == IBCHAN_LINK_LAYER_INFINIBAND && !endpoint.lid)
		endpoint.lid = cpu_to_be32(SERVICE_LID);
	ret = ibchan_channel_handshake(ch, &endpoint, reason);
	if (!ret)
		return ch;
	ibchan_channel_end(ch);
	return ERR_PTR(ret);
}

static bool service_works(const struct ibchan_pd *pd)
{
	lockdep_assert_held(&pd->service_lock);
	return pd->service && READ_ONCE(pd->service->state) == IBCHAN_CHANNEL_CONNECTED;
}

static int service_run(struct ibchan_mr *mr, u8 opcode)
{
	const struct ibchan_wr wr = { .opcode = opcode, .data = mr };

	return ibchan_channel_run_until(mr->extent.pd->service, &wr,
					ktime_add_ns(ktime_get(), SERVICE_TIMEOUT_NS), NULL);
}

/* Without a service the device's region goes as it is. */
static bool mr_invalidate(struct ibchan_mr *mr)
{
	guard(mutex)(&mr->extent.pd->service_lock);
	return service_works(mr->extent.pd) && !service_run(mr, IBCHAN_OP_INVALIDATE);
}

static int mr_register(struct ibchan_mr *mr, struct ibchan_reason *reason)
{
	struct ibchan_pd *pd = mr->extent.pd;
	struct ibchan_channel *fresh;

	guard(mutex)(&pd->service_lock);
	if (!service_works(pd)) {
		fresh = service_create(pd, reason);
		if (IS_ERR(fresh))
			return PTR_ERR(fresh);
		if (pd->service)
			ibchan_channel_end(pd->service);
		pd->service = fresh;
		pd->service_end = ibchan_channel_end;
	}
	return service_run(mr, IBCHAN_OP_REGISTER);
}

/*
 * Has the domain's service register a region that is mapped as one segment, or gives the region
 * up. May sleep; without the gate. Returns as ibchan_mr_reg_pages().
 */
struct ibchan_mr *ibchan_mr_register(struct ibchan_mr *mr, struct ibchan_reason *reason)
{
	int ret;

	guard(ibchan_noio)();
	ret = mr_register(mr, reason);
	if (!ret) {
		mr->invalidate = mr_invalidate;
		return mr;
	}
	ibchan_mr_put(mr, NULL, NULL);
	return ERR_PTR(ret);
}

static int check_access(u32 access, u64 length, struct ibchan_reason *reason)
{
	int ret = ibchan_access_check(access, reason);

	return ret || length ? ret : ibchan_refuse(reason, IBCHAN_REASON_EMPTY_RANGE, -EINVAL);
}

/* The table is used up. */
static struct ibchan_mr *reg_table(struct ibchan_pd *pd, struct sg_table *sgt, u32 access,
				   struct ibchan_reason *reason)
{
	struct ibchan_mr *mr = ibchan_mr_map(pd, sgt, access, reason);

	sg_free_table(sgt);
	if (IS_ERR(mr) || !(access & IBCHAN_ACCESS_REMOTE))
		return mr;
	return ibchan_mr_register(mr, reason);
}

/**
 * ibchan_mr_reg_pages - make a region of pages
 * @pd: where
 * @pages: the pages, and where in them the region begins and how long it is
 * @access: IBCHAN_ACCESS_*; with a remote bit the region gets an rkey, and may
 *	have as many pages as the device's max_fast_reg_pages
 * @reason: why not, or NULL
 *
 * The caller owns the memory, and keeps it until the region is deregistered.
 * Allocations keep to the caller's scope, as memalloc_noio_save() begins one. Without remote
 * access the region may be of any size, but an element that spans pages
 * which lie apart counts as several for the device.
 *
 * Context: process, may sleep.
 * Return: the region; -EINVAL for an empty range, one that leaves the pages, too
 * many pages, or access flags that do not go together; -EOPNOTSUPP for unknown
 * flags, and for memory that the device does not reach itself (bounce buffers, a
 * platform without coherent DMA); -ENODEV when the device is gone; -ENOMEM, also
 * when the device cannot map the pages; -EREMOTEIO for memory of another PCI device that this
 * one does not reach; the driver's errno. With a remote bit also
 * -EINTR when the caller is killed, -ETIMEDOUT when the device has not registered
 * the region within 5 s, and what ibchan_channel_build() and
 * ibchan_channel_handshake() answer for the domain's service.
 */
struct ibchan_mr *ibchan_mr_reg_pages(struct ibchan_pd *pd, const struct ibchan_pages *pages,
				      u32 access, struct ibchan_reason *reason)
{
	u64 room = ((u64)pages->num << PAGE_SHIFT) - pages->offset;
	struct sg_table sgt;
	u32 num;
	int ret;

	might_sleep();
	ret = check_access(access, pages->length, reason);
	if (!ret && (pages->offset >= PAGE_SIZE || !pages->num || pages->length > room))
		ret = ibchan_refuse_values(reason, IBCHAN_REASON_OUT_OF_BOUNDS, -EINVAL,
					   (u64[3]) { pages->offset, pages->length,
						     (u64)pages->num << PAGE_SHIFT });
	if (ret)
		return ERR_PTR(ret);
	/* Pages behind the range would become part of it. */
	num = DIV_ROUND_UP_ULL(pages->offset + pages->length, PAGE_SIZE);
	ret = sg_alloc_table_from_pages(&sgt, pages->pages, num, pages->offset, pages->length,
					GFP_KERNEL_ACCOUNT);
	return ret ? ERR_PTR(ret) : reg_table(pd, &sgt, access, reason);
}
EXPORT_SYMBOL_NS_GPL(ibchan_mr_reg_pages, IBCHAN_NS);

/* Finds the pages that a range spans; -EFAULT where there is none. */
static int find_pages(struct ibchan_pages *pages, void *addr)
{
	void *at = PTR_ALIGN_DOWN(addr, PAGE_SIZE);
	struct page *page;
	u32 i;

	for (i = 0; i < pages->num; i++, at += PAGE_SIZE) {
		if (is_vmalloc_addr(at))
			page = vmalloc_to_page(at);
		else
			page = virt_addr_valid(at) ? virt_to_page(at) : NULL;
		/* A mapping of I/O memory has no page, whatever the page tables say. */
		if (!page || !pfn_valid(page_to_pfn(page)))
			return -EFAULT;
		pages->pages[i] = page;
	}
	return 0;
}

/**
 * ibchan_mr_reg_kernel - make a region of a kernel virtual range
 * @pd: where
 * @addr: first byte: kmalloc'ed, vmalloc'ed or whole pages; any alignment
 * @length: bytes, 1 and up
 * @access: as for ibchan_mr_reg_pages()
 * @reason: why not, or NULL
 *
 * As ibchan_mr_reg_pages().
 *
 * Context: process, may sleep.
 * Return: the region; -EINVAL also for a range on the caller's stack, one that wraps
 * around, or one of a terabyte; -EFAULT for an address that has no page; else as
 * ibchan_mr_reg_pages().
 */
struct ibchan_mr *ibchan_mr_reg_kernel(struct ibchan_pd *pd, void *addr, u64 length,
				       u32 access, struct ibchan_reason *reason)
{
	struct ibchan_pages pages = {
		.offset = offset_in_page(addr),
		.length = length,
	};
	struct ibchan_mr *mr;
	u64 end;
	int ret;

	might_sleep();
	ret = check_access(access, length, reason);
	if (ret)
		return ERR_PTR(ret);
	/* Memory of this task's stack could be gone before its work ends. */
	if (check_add_overflow((u64)(uintptr_t)addr, length, &end) || end > ULONG_MAX - PAGE_SIZE ||
	    length > MAX_KERNEL_RANGE || object_is_on_stack(addr))
		return ERR_PTR(-EINVAL);
	pages.num = DIV_ROUND_UP_ULL(pages.offset + length, PAGE_SIZE);
	pages.pages = kvcalloc(pages.num, sizeof(*pages.pages), GFP_KERNEL_ACCOUNT);
	if (!pages.pages)
		return ERR_PTR(-ENOMEM);
	ret = find_pages(&pages, addr);
	mr = ret ? ERR_PTR(ret) : ibchan_mr_reg_pages(pd, &pages, access, reason);
	kvfree(pages.pages);
	return mr;
}
EXPORT_SYMBOL_NS_GPL(ibchan_mr_reg_kernel, IBCHAN_NS);

/* Empty entries are left out: devices dislike them. */
static int copy_table(struct sg_table *sgt, struct scatterlist *sgl, u32 nents)
{
	struct scatterlist *from, *to;
	u32 i, used = 0;
	int ret;

	for_each_sg(sgl, from, nents, i)
		used += !!from->length;
	ret = sg_alloc_table(sgt, used, GFP_KERNEL_ACCOUNT);
	if (ret)
		return ret;
	to = sgt->sgl;
	for_each_sg(sgl, from, nents, i) {
		if (!from->length)
			continue;
		sg_set_page(to, sg_page(from), from->length, from->offset);
		to = sg_next(to);
	}
	return 0;
}

/**
 * ibchan_mr_reg_sg - make a region of a scatterlist
 * @pd: where
 * @sgl: the list; neither changed nor needed afterwards
 * @nents: entries of it
 * @access: as for ibchan_mr_reg_pages(); with a remote bit all entries but the
 *	first begin, and all but the last end, at a page border
 * @reason: why not, or NULL
 *
 * As ibchan_mr_reg_pages(): the pages stay the caller's.
 *
 * Context: process, may sleep.
 * Return: the region; -EINVAL also for entries that do not join; else as
 * ibchan_mr_reg_pages().
 */
struct ibchan_mr *ibchan_mr_reg_sg(struct ibchan_pd *pd, struct scatterlist *sgl,
				   u32 nents, u32 access, struct ibchan_reason *reason)
{
	struct scatterlist *sg;
	struct sg_table sgt;
	u64 length = 0;
	int ret;
	u32 i;

	might_sleep();
	for_each_sg(sgl, sg, nents, i)
		length += sg->length;
	ret = check_access(access, length, reason);
	if (!ret)
		ret = copy_table(&sgt, sgl, nents);
	return ret ? ERR_PTR(ret) : reg_table(pd, &sgt, access, reason);
}
EXPORT_SYMBOL_NS_GPL(ibchan_mr_reg_sg, IBCHAN_NS);
