// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is mapped for the device: see hca.h. The IOMMU's table knows pages only, so the
 * functions that map and unmap are probed, and what they were told is kept beside it: first
 * byte, length, direction.
 */
#include <linux/dma-mapping.h>
#include <linux/interval_tree.h>
#include <linux/kprobes.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "hca.h"

/* As many calls may be under way at once. */
#define MAX_CALLS	128

struct mapping {
	struct interval_tree_node node;
	enum dma_data_direction direction;
};

/* What a function that maps was called with. */
struct call {
	struct hca_device *hca;
	union {
		struct scatterlist *sg;
		struct sg_table *table;
		u64 length;
	};
	enum dma_data_direction direction;
};

static DEFINE_RAW_SPINLOCK(shadow_lock);
static struct hca_device *watched[HCA_MAX];

static struct hca_device *find_hca(const struct device *bus)
{
	struct hca_device *hca;
	int i;

	for (i = 0; i < HCA_MAX; i++) {
		hca = READ_ONCE(watched[i]);
		if (hca && hca->bus == bus)
			return hca;
	}
	return NULL;
}

static void add_mapping(struct hca_device *hca, u64 addr, u64 length,
			enum dma_data_direction direction)
{
	struct mapping *mapping = kzalloc(sizeof(*mapping), GFP_ATOMIC | __GFP_NOWARN);
	unsigned long flags;

	if (WARN_ON_ONCE(!mapping))
		return;
	mapping->node.start = addr;
	mapping->node.last = addr + length - 1;
	mapping->direction = direction;
	raw_spin_lock_irqsave(&shadow_lock, flags);
	interval_tree_insert(&mapping->node, &hca->mappings);
	raw_spin_unlock_irqrestore(&shadow_lock, flags);
}

static struct mapping *find_exact(struct hca_device *hca, u64 addr, u64 length,
				  enum dma_data_direction direction)
{
	struct interval_tree_node *node;

	for (node = interval_tree_iter_first(&hca->mappings, addr, addr); node;
	     node = interval_tree_iter_next(node, addr, addr)) {
		struct mapping *mapping = container_of(node, struct mapping, node);

		if (node->start == addr && node->last == addr + length - 1 &&
		    mapping->direction == direction)
			return mapping;
	}
	return NULL;
}

/* What a wrong call unmaps all the same. */
static struct mapping *find_start(struct hca_device *hca, u64 addr)
{
	struct interval_tree_node *node = interval_tree_iter_first(&hca->mappings, addr, addr);

	while (node && node->start != addr)
		node = interval_tree_iter_next(node, addr, addr);
	return node ? container_of(node, struct mapping, node) : NULL;
}

static void remove_mapping(struct hca_device *hca, u64 addr, u64 length,
			   enum dma_data_direction direction)
{
	struct mapping *mapping;
	unsigned long flags;
	bool fits;

	raw_spin_lock_irqsave(&shadow_lock, flags);
	mapping = find_exact(hca, addr, length, direction);
	fits = mapping;
	if (!fits)
		mapping = find_start(hca, addr);
	if (mapping)
		interval_tree_remove(&mapping->node, &hca->mappings);
	raw_spin_unlock_irqrestore(&shadow_lock, flags);
	if (!fits)
		hca_report(hca, HCA_BAD_UNMAP, "unmapped", addr);
	kfree(mapping);
}

/* --- what is probed --- */

static int begin(struct kretprobe_instance *instance, struct pt_regs *regs, int direction)
{
	struct call *call = (void *)instance->data;

	call->hca = find_hca((void *)regs_get_kernel_argument(regs, 0));
	call->direction = regs_get_kernel_argument(regs, direction);
	return !call->hca;
}

#ifdef HCA_MAP_BY_PHYS
#define MAP_ONE		"dma_map_phys"
#define UNMAP_ONE	"dma_unmap_phys"
#define LENGTH		2
#define DIRECTION	3
#else
#define MAP_ONE		"dma_map_page_attrs"
#define UNMAP_ONE	"dma_unmap_page_attrs"
#define LENGTH		3
#define DIRECTION	4
#endif

static int map_one_begins(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	((struct call *)instance->data)->length = regs_get_kernel_argument(regs, LENGTH);
	return begin(instance, regs, DIRECTION);
}

static int map_one_ends(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct call *call = (void *)instance->data;
	u64 addr = regs_return_value(regs);

	if (addr != DMA_MAPPING_ERROR)
		add_mapping(call->hca, addr, call->length, call->direction);
	return 0;
}

static void add_list(const struct call *call, struct scatterlist *sgl, u32 nents)
{
	struct scatterlist *sg;
	u32 i;

	for_each_sg(sgl, sg, nents, i)
		add_mapping(call->hca, sg_dma_address(sg), sg_dma_len(sg), call->direction);
}

static int map_list_begins(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	((struct call *)instance->data)->sg = (void *)regs_get_kernel_argument(regs, 1);
	return begin(instance, regs, 3);
}

static int map_list_ends(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct call *call = (void *)instance->data;
	int nents = regs_return_value(regs);

	if (nents > 0)
		add_list(call, call->sg, nents);
	return 0;
}

static int map_table_begins(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	((struct call *)instance->data)->table = (void *)regs_get_kernel_argument(regs, 1);
	return begin(instance, regs, 2);
}

static int map_table_ends(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct call *call = (void *)instance->data;

	if (!(int)regs_return_value(regs))
		add_list(call, call->table->sgl, call->table->nents);
	return 0;
}

static int unmap_one(struct kprobe *probe, struct pt_regs *regs)
{
	struct hca_device *hca = find_hca((void *)regs_get_kernel_argument(regs, 0));

	if (hca)
		remove_mapping(hca, regs_get_kernel_argument(regs, 1),
			       regs_get_kernel_argument(regs, 2),
			       regs_get_kernel_argument(regs, 3));
	return 0;
}

/* The consumer passes all entries of its list; fewer may be mapped. */
static int unmap_list(struct kprobe *probe, struct pt_regs *regs)
{
	struct hca_device *hca = find_hca((void *)regs_get_kernel_argument(regs, 0));
	struct scatterlist *sgl = (void *)regs_get_kernel_argument(regs, 1);
	struct scatterlist *sg;
	u32 i;

	if (!hca)
		return 0;
	for_each_sg(sgl, sg, (int)regs_get_kernel_argument(regs, 2), i) {
		if (!sg_dma_len(sg))
			break;
		remove_mapping(hca, sg_dma_address(sg), sg_dma_len(sg),
			       regs_get_kernel_argument(regs, 3));
	}
	return 0;
}

#define MAP_PROBE(symbol, begins, ends) {				\
	.kp.symbol_name = symbol, .entry_handler = begins,		\
	.handler = ends, .data_size = sizeof(struct call),		\
	.maxactive = MAX_CALLS,						\
}

static struct kretprobe map_probes[] = {
	MAP_PROBE(MAP_ONE, map_one_begins, map_one_ends),
	MAP_PROBE("dma_map_sg_attrs", map_list_begins, map_list_ends),
	MAP_PROBE("dma_map_sgtable", map_table_begins, map_table_ends),
};

static struct kprobe unmap_probes[] = {
	{ .symbol_name = UNMAP_ONE, .pre_handler = unmap_one },
	{ .symbol_name = "dma_unmap_sg_attrs", .pre_handler = unmap_list },
};

static void stop_probes(u32 maps, u32 unmaps)
{
	while (unmaps)
		unregister_kprobe(&unmap_probes[--unmaps]);
	while (maps) {
		unregister_kretprobe(&map_probes[--maps]);
		/* What was missed would be reported as unmapped: say why. */
		if (map_probes[maps].nmissed)
			pr_warn("%s: missed %d calls\n", map_probes[maps].kp.symbol_name,
				map_probes[maps].nmissed);
	}
}

int hca_shadow_start(void)
{
	u32 maps, unmaps = 0;
	int ret = 0;

	for (maps = 0; !ret && maps < ARRAY_SIZE(map_probes); maps++)
		ret = register_kretprobe(&map_probes[maps]);
	for (; !ret && unmaps < ARRAY_SIZE(unmap_probes); unmaps++)
		ret = register_kprobe(&unmap_probes[unmaps]);
	if (!ret)
		return 0;
	/* The last one that was tried is not registered. */
	if (unmaps)
		stop_probes(maps, unmaps - 1);
	else
		stop_probes(maps - 1, 0);
	return ret;
}

void hca_shadow_stop(void)
{
	stop_probes(ARRAY_SIZE(map_probes), ARRAY_SIZE(unmap_probes));
}

/* --- what is asked --- */

void hca_shadow_add(struct hca_device *hca)
{
	hca->mappings = RB_ROOT_CACHED;
	WRITE_ONCE(watched[hca->number], hca);
}

/* Nothing is mapped any more; whatever is, its consumer has forgotten. */
void hca_shadow_remove(struct hca_device *hca)
{
	struct interval_tree_node *node, *next;

	WRITE_ONCE(watched[hca->number], NULL);
	/* The probes' handlers run with preemption off. */
	synchronize_rcu();
	for (node = interval_tree_iter_first(&hca->mappings, 0, ULONG_MAX); node; node = next) {
		next = interval_tree_iter_next(node, 0, ULONG_MAX);
		hca_report(hca, HCA_BAD_UNMAP, "left mapped", node->start);
		interval_tree_remove(node, &hca->mappings);
		kfree(container_of(node, struct mapping, node));
	}
}

/**
 * hca_shadow_check - may the device access bytes?
 * @hca: the device
 * @addr: the first one's DMA address
 * @bytes: how many are wanted; how many may be accessed
 * @writes: the device writes
 *
 * Return: HCA_FAULTS: yes; else what is wrong.
 */
enum hca_fault hca_shadow_check(struct hca_device *hca, u64 addr, u32 *bytes, bool writes)
{
	enum dma_data_direction forbidden = writes ? DMA_TO_DEVICE : DMA_FROM_DEVICE;
	enum hca_fault fault = HCA_BEYOND_MAPPING;
	struct interval_tree_node *node;
	unsigned long flags;

	raw_spin_lock_irqsave(&shadow_lock, flags);
	for (node = interval_tree_iter_first(&hca->mappings, addr, addr);
	     node && fault != HCA_FAULTS; node = interval_tree_iter_next(node, addr, addr)) {
		fault = HCA_DIRECTION;
		if (container_of(node, struct mapping, node)->direction == forbidden)
			continue;
		*bytes = min_t(u64, *bytes, node->last - addr + 1);
		fault = HCA_FAULTS;
	}
	raw_spin_unlock_irqrestore(&shadow_lock, flags);
	return fault;
}
