/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The only home of what differs between kernels. Kbuild looks at the headers that it builds against
 * and defines IBCHAN_HAVE_*: stable trees carry newer interfaces, so version numbers would lie.
 */
#ifndef IBCHAN_COMPAT_H
#define IBCHAN_COMPAT_H

#include <linux/export.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#ifdef IBCHAN_HAVE_IPV6_STUBS
#include <net/ipv6_stubs.h>
#else
#include <net/ipv6.h>
#include <net/ndisc.h>
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
#define ibchan_nd_tbl	ipv6_stub->nd_tbl
#else
#define ibchan_nd_tbl	(&nd_tbl)
#define ibchan_ip6_route(net, flow)	ip6_dst_lookup_flow(net, NULL, flow, NULL)
#endif

/* Before 6.3 a pin for long cannot be killed while it waits for a page fault. */
#ifndef IBCHAN_PIN_IS_UNKILLABLE
#define IBCHAN_PIN_IS_UNKILLABLE 0
#endif

/* Before 6.5 a pin for long may be for writing into a shared mapping of any file. */
#ifndef IBCHAN_PIN_TAKES_FILES
#define IBCHAN_PIN_TAKES_FILES 0
#endif

/* Sparse does not see that a guard unlocks, which each does wherever its block ends. */
#ifdef __CHECKER__
#define class_rcu_constructor()			((class_rcu_t){ .lock = (void *)1 })
#define class_spinlock_constructor(l)		((class_spinlock_t){ .lock = (l) })
#define class_spinlock_irq_constructor(l)	((class_spinlock_irq_t){ .lock = (l) })
#define class_spinlock_irqsave_constructor(l)	((class_spinlock_irqsave_t){ .lock = (l) })
#endif

#endif /* IBCHAN_COMPAT_H */
