/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The only home of what differs between kernels. Kbuild looks at the headers
 * that it builds against and defines IBCHAN_HAVE_*: stable trees carry newer
 * interfaces, so version numbers would lie.
 */
#ifndef IBCHAN_COMPAT_H
#define IBCHAN_COMPAT_H

#include <linux/export.h>
#include <linux/mm.h>
#ifdef IBCHAN_HAVE_IPV6_STUBS
#include <net/ipv6_stubs.h>
#else
#include <net/ipv6.h>
#endif

#ifndef IBCHAN_HAVE_VM_FLAGS_SET
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags &= ~flags;
}
#endif

/*
 * The namespace of all exported symbols, in the form that EXPORT_SYMBOL_NS_GPL()
 * wants it here. A consumer says MODULE_INFO(import_ns, "IBCHAN").
 */
#ifdef IBCHAN_HAVE_STRING_SYMBOL_NS
#define IBCHAN_NS "IBCHAN"
#else
#define IBCHAN_NS IBCHAN
#endif

/* For what is written in full before it is read; kernels zero the rest of the stack. */
#if !defined(__uninitialized) && __has_attribute(uninitialized)
#define __uninitialized	__attribute__((uninitialized))
#endif
#ifndef __uninitialized
#define __uninitialized
#endif

/* The plain form once took the lock of the dma-buf's fences itself. */
#ifndef IBCHAN_HAVE_DMA_BUF_VMAP_UNLOCKED
#define dma_buf_vmap_unlocked(dmabuf, map)	dma_buf_vmap(dmabuf, map)
#define dma_buf_vunmap_unlocked(dmabuf, map)	dma_buf_vunmap(dmabuf, map)
#endif

/* Where IPv6 can be a module, other code calls its functions through a table. */
#ifdef IBCHAN_HAVE_IPV6_STUBS
#define ibchan_ip6_route(net, flow)	\
	ipv6_stub->ipv6_dst_lookup_flow(net, NULL, flow, NULL)
#else
#define ibchan_ip6_route(net, flow)	ip6_dst_lookup_flow(net, NULL, flow, NULL)
#endif

/*
 * What a driver does no header tells, so Kbuild goes by version here. From the
 * rewrite of its flushing until the repair that 7.2 has, soft-RoCE may run a
 * received packet a second time when its qp is moved to ERR just then: into the
 * next receive, or through a null pointer. Moving it to RESET stops it first; not so
 * in 6.1, where its tasks also run outside of the tasklets that RESET disables.
 */
#ifndef IBCHAN_RXE_ERR_IS_UNSAFE
#define IBCHAN_RXE_ERR_IS_UNSAFE 0
#endif

/*
 * In 6.1 a qp that goes to ERR behind a packet that names a region may keep its reference
 * to that; the call that deregisters the region then waits for 50 s, after which the region
 * is freed all the same. RESET drops the reference.
 */
#ifndef IBCHAN_RXE_ERR_KEEPS_MR
#define IBCHAN_RXE_ERR_KEEPS_MR 0
#endif

/*
 * In 6.1 soft-RoCE flushes in tasklets, and moving a qp to ERR does not sleep: it marks the
 * qp and schedules them. With bottom halves off they run when those are on again, in the
 * thread that closes, and no other thread has to be woken for them.
 */
#ifndef IBCHAN_RXE_FLUSHES_IN_BH
#define IBCHAN_RXE_FLUSHES_IN_BH 0
#endif

/*
 * Before 6.10 soft-RoCE sends a packet again in another task than the one that hears that it
 * has come, so it may still read from a region whose work has ended. The call that
 * deregisters the region waits for that; an invalidation does not.
 */
#ifndef IBCHAN_RXE_READS_ON
#define IBCHAN_RXE_READS_ON 0
#endif

/* Before 6.3 a pin for long cannot be killed while it waits for a page fault. */
#ifndef IBCHAN_PIN_IS_UNKILLABLE
#define IBCHAN_PIN_IS_UNKILLABLE 0
#endif

/* Before 6.5 a pin for long may be for writing into a shared mapping of any file. */
#ifndef IBCHAN_PIN_TAKES_FILES
#define IBCHAN_PIN_TAKES_FILES 0
#endif

#endif /* IBCHAN_COMPAT_H */
