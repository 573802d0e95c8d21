// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes regions of user memory, and chooses the way and the bounds by driver and mapping.
 *
 * A driver that can registers the range itself (mr.c). For the others we pin the
 * pages and have the domain's service register them, as kernel memory is, so such a
 * region has as many pages as one fast registration takes.
 *
 * Plain memory is never for a peer, so as long as the elements of a work are not too
 * many, the domain's own key serves, segment by segment; else it is registered like that.
 */
#include <linux/backing-dev.h>
#include <linux/bits.h>
#include <linux/errno.h>
#include <linux/hugetlb_inline.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/uaccess.h>
#include <linux/userfaultfd_k.h>

#include "compat.h"
#include "fault.h"
#include "memory.h"

/* Bytes to fault in between two looks at signals. */
#define FAULT_IN_STEP	SZ_2M

static bool fast_reg_only;
module_param(fast_reg_only, bool, 0644);
MODULE_PARM_DESC(fast_reg_only,
		 "Never let the driver register user memory, as if it could not (default N)");

/* A driver that pins pages of files for writing has to be watched, which takes notifiers. */
#define MAY_ASK_DRIVERS	(!IBCHAN_PIN_TAKES_FILES || IS_ENABLED(CONFIG_MMU_NOTIFIER))

static int check_addresses(u64 addr, u64 length, struct ibchan_reason *reason)
{
	u64 end;

	if (!length)
		return ibchan_refuse(reason, IBCHAN_REASON_EMPTY_RANGE, -EINVAL);
	if (check_add_overflow(addr, length, &end) || !access_ok(u64_to_user_ptr(addr), length))
		return -EFAULT;
	return 0;
}

static int refuse_pages(u64 pages, u64 max, struct ibchan_reason *reason)
{
	return ibchan_refuse_values(reason, IBCHAN_REASON_REGION_TOO_LONG, -EINVAL,
				    (u64[3]) { pages, max });
}

/* Properties of the mappings in a range of addresses. */
enum {
	RANGE_SLOW = BIT(0),		/* a file system or a user program serves its faults */
	RANGE_STORED = BIT(1),		/* a write changes a file that a file system stores */
	RANGE_READ_ONLY = BIT(2),	/* a shared mapping that cannot be written */
	RANGE_HOLE = BIT(3),		/* nothing is mapped somewhere */
};

static unsigned int look_at_vma(struct vm_area_struct *vma)
{
	/* A file that is nothing but memory has no storage behind it. */
	bool stored = vma->vm_file && !is_vm_hugetlb_page(vma) &&
		      (!vma->vm_file->f_mapping ||
		       mapping_can_writeback(vma->vm_file->f_mapping));
	unsigned int found = stored || userfaultfd_armed(vma) ? RANGE_SLOW : 0;

	if (!(vma->vm_flags & VM_SHARED))
		return found;
	if (!(vma->vm_flags & VM_WRITE))
		return found | RANGE_READ_ONLY;
	if (stored || (vma->vm_ops && (vma->vm_ops->page_mkwrite || vma->vm_ops->pfn_mkwrite)))
		found |= RANGE_STORED;
	return found;
}

static unsigned int look_at(u64 addr, u64 length)
{
	u64 end = addr + length;
	struct vm_area_struct *vma;
	unsigned int found = 0;

	mmap_read_lock(current->mm);
	while (addr < end) {
		vma = find_vma(current->mm, addr);
		if (!vma || vma->vm_start > addr)
			found |= RANGE_HOLE;
		if (!vma || vma->vm_start >= end)
			break;
		found |= look_at_vma(vma);
		addr = vma->vm_end;
	}
	mmap_read_unlock(current->mm);
	return found;
}

/* Why memory could not be pinned; @code, if it is not that the device would write a file. */
static int refuse_fault(u64 addr, u64 length, u32 access, u32 code, struct ibchan_reason *reason)
{
	if (access & IBCHAN_ACCESS_LOCAL_WRITE && look_at(addr, length) & RANGE_STORED)
		code = IBCHAN_REASON_FILE_WRITTEN;
	if (code == IBCHAN_REASON_NONE)
		return -EFAULT;
	return ibchan_refuse_values(reason, code, -EFAULT, (u64[3]) { addr, length });
}

/*
 * Taken before the driver takes them, faults can be interrupted by a kill on each kernel, and
 * the device can leave meanwhile.
 */
static int fault_in(u64 addr, u64 length, u32 access)
{
	u64 end = addr + length;
	size_t step, left;

	for (; addr < end; addr += step) {
		if (fatal_signal_pending(current))
			return -EINTR;
		step = min_t(u64, end - addr, FAULT_IN_STEP);
		left = access & IBCHAN_ACCESS_LOCAL_WRITE ?
			fault_in_safe_writeable(u64_to_user_ptr(addr), step) :
			fault_in_readable(u64_to_user_ptr(addr), step);
		if (left)
			return fatal_signal_pending(current) ? -EINTR : -EFAULT;
		cond_resched();
	}
	return 0;
}

/*
 * Pins the range. The region is one segment for the device, with a key of its own, or the
 * domain's serves.
 */
static struct ibchan_mr *reg_pinned(struct ibchan_pd *pd, const struct ibchan_user_range *range,
				    struct ibchan_reason *reason)
{
	unsigned int flags = range->access & IBCHAN_ACCESS_LOCAL_WRITE ? FOLL_WRITE :
			     range->transient ? 0 : FOLL_WRITE | FOLL_FORCE;
	struct ibchan_pinned pinned;
	struct ibchan_mr *mr;
	int ret = ibchan_pin(&pinned, range, flags, reason);

	if (ret)
		return ERR_PTR(ret);
	mr = ibchan_mr_map_pinned(pd, &pinned, range, reason);
	if (IS_ERR(mr)) {
		ibchan_unpin(&pinned, false);
		return mr;
	}
	return ibchan_mr_is_contiguous(mr) ? ibchan_mr_register(mr, reason) : mr;
}

static struct ibchan_mr *reg_fast(struct ibchan_pd *pd, const struct ibchan_user_range *range,
				  struct ibchan_reason *reason)
{
	u64 pages = ibchan_pages_spanned(range->addr, range->length);
	u32 max = pd->dev->attr.max_fast_reg_pages;

	if (pages > max)
		return ERR_PTR(refuse_pages(pages, max, reason));
	return reg_pinned(pd, range, reason);
}

/* To what is only read, ib_umem of 6.1 wants to write; a shared mapping may refuse that. */
static struct ibchan_mr *reg_by_driver(struct ibchan_pd *pd, const struct ibchan_user_range *range,
				       struct ibchan_reason *reason)
{
	struct ibchan_mr *mr = ibchan_mr_reg_driver(pd, range, reason);
	u64 pages = ibchan_pages_spanned(range->addr, range->length);
	u32 max = pd->dev->attr.max_fast_reg_pages;

	if (mr != ERR_PTR(-EFAULT) || range->access & IBCHAN_ACCESS_LOCAL_WRITE ||
	    !(look_at(range->addr, range->length) & RANGE_READ_ONLY))
		return mr;
	if (pages <= max)
		return reg_pinned(pd, range, reason);
	return ERR_PTR(ibchan_refuse_values(reason, IBCHAN_REASON_READ_ONLY_SHARED, -EOPNOTSUPP,
					    (u64[3]) { pages, max }));
}

/*
 * The device can leave while ibchan pins pages that are slow to come; while the driver pins
 * them, removal waits. So the driver gets only ranges that have too many pages for the
 * domain's service, or that the service cannot register.
 */
static struct ibchan_mr *reg_slow(struct ibchan_pd *pd, const struct ibchan_user_range *range,
				  struct ibchan_reason *reason)
{
	struct ibchan_mr *mr = reg_fast(pd, range, reason);
	int ret = PTR_ERR_OR_ZERO(mr);

	/* Any other error may be the service's own, or says that there are too many pages. */
	if (!ret || ret == -EFAULT || ret == -EINTR || ret == -ENOMEM || ret == -ENODEV)
		return mr;
	if (reason)
		*reason = (struct ibchan_reason) {};
	ret = fault_in(range->addr, range->length, range->access);
	return ret ? ERR_PTR(ret) : reg_by_driver(pd, range, reason);
}

static struct ibchan_mr *reg_as_mapped(struct ibchan_pd *pd, const struct ibchan_user_range *range,
				       struct ibchan_reason *reason)
{
	unsigned int found = look_at(range->addr, range->length);
	int ret;

	/*
	 * A hole may become any mapping, and no watch tells that. A stack grows into it here,
	 * before the second look.
	 */
	if (range->mapping && found & RANGE_HOLE) {
		ret = fault_in(range->addr, range->length, range->access);
		if (ret)
			return ERR_PTR(ret);
		found = look_at(range->addr, range->length);
		if (found & RANGE_HOLE)
			return ERR_PTR(-EFAULT);
	}
	/* 6.1 lets a driver pin such pages, and the deregistration may then wait for ever. */
	if (range->access & IBCHAN_ACCESS_LOCAL_WRITE && found & RANGE_STORED)
		return ERR_PTR(-EFAULT);
	ibchan_fault_rest(IBCHAN_WINDOW_LOOKED);
	return found & RANGE_SLOW ? reg_slow(pd, range, reason) : reg_by_driver(pd, range, reason);
}

static struct ibchan_mr *reg_user(struct ibchan_pd *pd, struct ibchan_user_range *range,
				  struct ibchan_reason *reason)
{
	struct ibchan_mapping mapping;
	struct ibchan_mr *mr;
	int ret;

	if (!MAY_ASK_DRIVERS || READ_ONCE(fast_reg_only) ||
	    !ibchan_device_has(pd->dev, IBCHAN_QUIRK_REGISTERS_USER_MEMORY))
		return reg_fast(pd, range, reason);
	ret = ibchan_check_memlock(ibchan_pages_spanned(range->addr, range->length), reason);
	if (ret)
		return ERR_PTR(ret);
	/* Memory that the device only reads is not written back when it is unpinned: no watch. */
	if (!(range->access & IBCHAN_ACCESS_LOCAL_WRITE))
		return reg_as_mapped(pd, range, reason);
	ret = ibchan_mapping_begin(&mapping, range->addr, range->length);
	if (ret)
		return ERR_PTR(ret);
	range->mapping = &mapping;
	mr = reg_as_mapped(pd, range, reason);
	ibchan_mapping_end(&mapping);
	return mr;
}

/**
 * ibchan_mr_reg_user - pin and register a range of the caller's memory
 * @pd: where
 * @addr: first byte; any alignment
 * @length: bytes, 1 to the device's largest
 * @access: IBCHAN_ACCESS_*
 * @reason: why not, or NULL
 *
 * The pages are charged to the caller's RLIMIT_MEMLOCK. They stay pinned until
 * the region is deregistered, whatever becomes of the mapping or the process.
 *
 * Context: process, may sleep; current->mm is the memory's.
 * Return: the region; -EINVAL for an empty or too long range or access flags
 * that do not go together; -EOPNOTSUPP for unknown flags, or a device that can
 * register no user memory for the kernel; -EFAULT for memory that is not there, or
 * for local write that is mapped from a file that a file system stores, and shared, or that
 * is mapped anew meanwhile; -EINTR when the caller is killed, -ERESTARTNOINTR for a signal
 * before anything has been done; -ENOMEM, also when RLIMIT_MEMLOCK does not
 * allow it, which @reason tells; -EDQUOT when the domain's budget does not allow it;
 * -ENODEV when the device is gone; the driver's errno; where the driver cannot do it,
 * also what ibchan_mr_reg_pages() answers for shared memory. A shared mapping that is
 * read-only can be registered without local write, on 6.1 with as many pages as
 * max_fast_reg_pages, else -EOPNOTSUPP.
 */
struct ibchan_mr *ibchan_mr_reg_user(struct ibchan_pd *pd, u64 addr, u64 length,
				     u32 access, struct ibchan_reason *reason)
{
	struct ibchan_user_range range = { .addr = addr, .length = length, .access = access };
	const struct ibchan_device_attr *attr = &pd->dev->attr;
	struct ibchan_mr *mr;
	int ret = ibchan_access_check(access, reason);

	might_sleep();
	if (ret)
		return ERR_PTR(ret);
	if (!(attr->caps & IBCHAN_DEVICE_USER_MR))
		return ERR_PTR(ibchan_refuse_values(reason, IBCHAN_REASON_DRIVER_NOT_SAFE,
						    -EOPNOTSUPP, (u64[3]) { attr->driver_id }));
	if (length > attr->max_mr_size)
		return ERR_PTR(-EINVAL);
	ret = check_addresses(addr, length, reason);
	if (ret)
		return ERR_PTR(ret);
	mr = reg_user(pd, &range, reason);
	if (mr == ERR_PTR(-EFAULT))
		return ERR_PTR(refuse_fault(addr, length, access, IBCHAN_REASON_NONE, reason));
	return mr;
}
EXPORT_SYMBOL_NS_GPL(ibchan_mr_reg_user, IBCHAN_NS);

static int check_plain(const struct ibchan_device *dev, const struct ibchan_plain *plain,
		       struct ibchan_reason *reason)
{
	u64 pages, max = dev->attr.max_plain_bytes >> PAGE_SHIFT;
	int ret;

	if (plain->opcode >= IBCHAN_OPS || ibchan_ops[plain->opcode].traits & OP_SERVICE)
		return ibchan_refuse_values(reason, IBCHAN_REASON_OPCODE, -EINVAL,
					    (u64[3]) { plain->opcode });
	/* The answer would go to the key of all memory: see reg_user() in mr.c. */
	if (plain->opcode == IBCHAN_OP_READ && !(dev->attr.caps & IBCHAN_DEVICE_ENDPOINTS))
		return ibchan_refuse_values(reason, IBCHAN_REASON_IWARP, -EOPNOTSUPP,
					    (u64[3]) { 1 });
	if (plain->num_sge > plain->max_sge)
		return ibchan_refuse_elements(plain->num_sge, plain->max_sge, reason);
	ret = check_addresses(plain->addr, plain->length, reason);
	if (ret)
		return ret;
	pages = ibchan_pages_spanned(plain->addr, plain->length);
	return pages > max ? refuse_pages(pages, max, reason) : 0;
}

/**
 * ibchan_mr_pin_user - make a region of a range of the caller's memory, for one work
 * @pd: domain of the channel where the work is going to be posted
 * @plain: the range, and what the work is
 * @reason: why not, or NULL
 *
 * The region is to be named in one element of one work, from its first byte on. Its
 * owner gives it up with ibchan_mr_put() behind the post; then it goes with the work,
 * a little after its end, or with the channel if the work fails. The pages are charged
 * to the caller's RLIMIT_MEMLOCK until then; the device may write them where the
 * opcode says so.
 *
 * Context: process, may sleep for as long as a page fault may; current->mm is the
 * memory's.
 * Return: the region; -EINVAL for an empty range, one of more than the device's
 * max_plain_bytes, more elements than the channel takes, or an opcode that is not
 * one; -EFAULT for memory that is not there or may not be written; -ENOMEM, also when
 * RLIMIT_MEMLOCK does not allow it, which @reason tells; -EOPNOTSUPP for memory that
 * the device would work on a copy of; -EDQUOT when the domain's budget does not allow it;
 * -EINTR when the caller is killed; -ENODEV when the device is gone; other errors of the
 * kernel for pages that cannot be pinned for long; for memory in many segments also those of
 * ibchan_mr_reg_pages() for shared memory.
 */
struct ibchan_mr *ibchan_mr_pin_user(struct ibchan_pd *pd, const struct ibchan_plain *plain,
				     struct ibchan_reason *reason)
{
	struct ibchan_user_range range = {
		.addr = plain->addr,
		.length = plain->length,
		/* An equal share of the work's segments for each element: all of them fit. */
		.max_segments = max(plain->max_sge / max_t(u32, plain->num_sge, 1), 1U),
		.transient = 1,
	};
	struct ibchan_mr *mr = ERR_PTR(check_plain(pd->dev, plain, reason));

	might_sleep();
	if (!mr) {
		range.access = ibchan_ops[plain->opcode].needed & IBCHAN_ACCESS_ALL;
		mr = reg_pinned(pd, &range, reason);
	}
	if (mr == ERR_PTR(-EFAULT))
		return ERR_PTR(refuse_fault(plain->addr, plain->length, range.access,
					    IBCHAN_REASON_MEMORY_NOT_THERE, reason));
	return mr;
}
EXPORT_SYMBOL_NS_GPL(ibchan_mr_pin_user, IBCHAN_NS);
