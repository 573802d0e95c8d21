// SPDX-License-Identifier: GPL-2.0-only
/*
 * Parameters, presets and the PCI driver: see hca.h.
 *
 *	insmod ibchan_hca.ko [like=mlx5|mlx4|irdma|bnxt|cxgb4|hfi1] [netdevs=v0,v1] ...
 *
 * With network devices the ports are Ethernet, one for each device or, of four, two; without
 * they are InfiniBand. The devices are called hca0 and hca1. What consumers have had them do
 * that they must not is in the kernel log, one line each, and in the parameter `faults`, a
 * number for each enum hca_fault.
 */
#include <linux/dma-mapping.h>
#include <linux/iommu.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "hca.h"

#define EDU_VENDOR	0x1234
#define EDU_DEVICE	0x11e8

DEFINE_SPINLOCK(hca_lock);
LIST_HEAD(hca_devices);
struct workqueue_struct *hca_wq;

static char *like = "mlx5";
module_param(like, charp, 0444);
MODULE_PARM_DESC(like, "whose limits and habits the devices have");

static char *netdevs[2 * HCA_PORTS];
static int num_netdevs;
module_param_array(netdevs, charp, &num_netdevs, 0444);
MODULE_PARM_DESC(netdevs,
		 "network devices of the first one's ports, then of the second one's (default: InfiniBand)");

static int node = NUMA_NO_NODE;
module_param(node, int, 0444);
MODULE_PARM_DESC(node, "NUMA node that the devices are near to");

unsigned int hca_delay_us;
module_param_named(delay_us, hca_delay_us, uint, 0644);
MODULE_PARM_DESC(delay_us, "how long a work waits before it runs");
EXPORT_SYMBOL_GPL(hca_delay_us);

unsigned int hca_jitter_us;
module_param_named(jitter_us, hca_jitter_us, uint, 0644);
MODULE_PARM_DESC(jitter_us, "how much longer it may wait, at random");

bool hca_null;
module_param_named(null, hca_null, bool, 0644);
MODULE_PARM_DESC(null, "works run in the call that posts them and move no data");
EXPORT_SYMBOL_GPL(hca_null);

bool hca_hard_irq = true;
module_param_named(hard_irq, hca_hard_irq, bool, 0644);
MODULE_PARM_DESC(hard_irq, "completion events come in hard interrupt context, not in a worker");

bool hca_flushes_when_asked;
module_param_named(flushes_when_asked, hca_flushes_when_asked, bool, 0644);
MODULE_PARM_DESC(flushes_when_asked,
		 "a queue pair that failed flushes when its consumer moves it to ERR, not before");

static unsigned int failing_destroys[HCA_DESTROYS];
module_param_array(failing_destroys, uint, NULL, 0644);
MODULE_PARM_DESC(failing_destroys, "so many times queue pairs, completion queues, regions stay (EBUSY)");

/* "0 1 77": port 1 of hca0 gets LID 77. */
static int set_lid(const char *text, const struct kernel_param *param)
{
	u32 number, port;
	u16 lid;

	if (sscanf(text, "%u %u %hu", &number, &port, &lid) != 3)
		return -EINVAL;
	return hca_set_lid(number, port, lid);
}

static const struct kernel_param_ops lid_ops = { .set = set_lid };
module_param_cb(lid, &lid_ops, NULL, 0200);
MODULE_PARM_DESC(lid, "device number, port and new LID of an InfiniBand port");

/* "0 1 0 32767": entry 0 of port 1 of hca0 becomes P_Key 0x7fff. */
static int set_pkey(const char *text, const struct kernel_param *param)
{
	u32 number, port, index;
	u16 pkey;

	if (sscanf(text, "%u %u %u %hu", &number, &port, &index, &pkey) != 4)
		return -EINVAL;
	return hca_set_pkey(number, port, index, pkey);
}

static const struct kernel_param_ops pkey_ops = { .set = set_pkey };
module_param_cb(pkey, &pkey_ops, NULL, 0200);
MODULE_PARM_DESC(pkey, "device number, port, index and new P_Key of an InfiniBand port");

/* One line for each device: completion queues on each vector. */
static int get_vectors(char *text, const struct kernel_param *param)
{
	struct hca_device *hca;
	int length = 0;
	u32 i;

	spin_lock_irq(&hca_lock);
	list_for_each_entry(hca, &hca_devices, link) {
		length += sysfs_emit_at(text, length, "%s", hca->ib.name);
		for (i = 0; i < hca->preset->vectors; i++)
			length += sysfs_emit_at(text, length, " %u", hca->cqs_on_vector[i]);
		length += sysfs_emit_at(text, length, "\n");
	}
	spin_unlock_irq(&hca_lock);
	return length;
}

static const struct kernel_param_ops vectors_ops = { .get = get_vectors };
module_param_cb(vectors, &vectors_ops, NULL, 0444);
MODULE_PARM_DESC(vectors, "completion queues on each vector");

atomic_t hca_port_queries;

static int get_port_queries(char *text, const struct kernel_param *param)
{
	return sysfs_emit(text, "%u\n", atomic_read(&hca_port_queries));
}

static const struct kernel_param_ops port_queries_ops = { .get = get_port_queries };
module_param_cb(port_queries, &port_queries_ops, NULL, 0444);
MODULE_PARM_DESC(port_queries, "how often ports of all devices were queried");

unsigned int hca_lost_attribute;
module_param_named(lost_attribute, hca_lost_attribute, uint, 0644);
MODULE_PARM_DESC(lost_attribute, "management datagrams with this attribute are lost, say 0x14: ready to use");

static bool expected;
module_param(expected, bool, 0644);
MODULE_PARM_DESC(expected, "faults are what a test wants: they are counted only");

static unsigned int faults[HCA_FAULTS];
module_param_array(faults, uint, NULL, 0644);
MODULE_PARM_DESC(faults, "unmapped, direction, beyond mapping, beyond region, no region, cq overrun, bad unmap");

/*
 * Read in the drivers' sources. mlx4, mlx5 and rdmavt take no inline data of kernel queue pairs,
 * mlx5 has no key for all memory, and that of irdma and cxgb4 is 0. cxgb4's devices connect by
 * TCP: here only their limits are.
 */
static const struct hca_preset presets[] = {
	{ "mlx5", RDMA_DRIVER_MLX5, .max_sge = 30, .max_fast_reg_pages = 65536, .vectors = 8,
	  .grh_required = true },
	{ "mlx4", RDMA_DRIVER_MLX4, .max_sge = 32, .max_fast_reg_pages = 511, .vectors = 4,
	  .local_dma_lkey = true, .lkey = HCA_RESERVED_LKEY, .roce_v1 = true },
	{ "irdma", RDMA_DRIVER_IRDMA, .max_sge = 13, .max_inline = 101,
	  .max_fast_reg_pages = 262144, .vectors = 4, .local_dma_lkey = true,
	  .reports_missed = true },
	{ "bnxt", RDMA_DRIVER_BNXT_RE, .max_sge = 6, .max_inline = 96, .max_fast_reg_pages = 512,
	  .vectors = 2, .local_dma_lkey = true, .lkey = HCA_RESERVED_LKEY,
	  .reports_missed = true, .arms_nothing = true },
	{ "cxgb4", RDMA_DRIVER_CXGB4, .max_sge = 4, .max_inline = 64, .max_fast_reg_pages = 128,
	  .vectors = 1, .local_dma_lkey = true, .reports_missed = true },
	{ "ocrdma", RDMA_DRIVER_OCRDMA, .max_sge = 16, .max_fast_reg_pages = 64, .vectors = 4,
	  .local_dma_lkey = true, .registers_by_dma = true },
	{ "hfi1", RDMA_DRIVER_HFI1, .max_sge = 16, .max_fast_reg_pages = 65536, .vectors = 1,
	  .virt_dma = true, .reports_missed = true },
};

static const char * const fault_names[HCA_FAULTS] = {
	[HCA_UNMAPPED] = "memory that is not mapped for it",
	[HCA_DIRECTION] = "memory that is mapped for the other direction",
	[HCA_BEYOND_MAPPING] = "bytes beside what is mapped for it",
	[HCA_BEYOND_REGION] = "bytes beside a region",
	[HCA_NO_REGION] = "a region that is gone or not valid",
	[HCA_CQ_OVERRUN] = "a completion queue without room",
	[HCA_BAD_UNMAP] = "memory that was not mapped like this",
};

/**
 * hca_report - a consumer has had the device do what it must not
 * @hca: the device
 * @fault: what
 * @what: what was done
 * @addr: with which address
 *
 * Context: any.
 */
void hca_report(struct hca_device *hca, enum hca_fault fault, const char *what, u64 addr)
{
	faults[fault]++;
	if (!expected)
		pr_err_ratelimited("HCA fault: %s: %s: %s at 0x%llx\n", hca->ib.name,
				   fault_names[fault], what, addr);
}

/* Does an object stay this time? */
bool hca_keeps(enum hca_destroy what)
{
	bool keeps;

	spin_lock_irq(&hca_lock);
	keeps = failing_destroys[what];
	if (keeps)
		failing_destroys[what]--;
	spin_unlock_irq(&hca_lock);
	return keeps;
}

/* How many there were. */
unsigned int hca_faults_of(enum hca_fault fault)
{
	return READ_ONCE(faults[fault]);
}
EXPORT_SYMBOL_GPL(hca_faults_of);

/* Those that a test causes are not left behind. */
void hca_expect_faults(bool expects)
{
	if (!expects)
		memset(faults, 0, sizeof(faults));
	expected = expects;
}
EXPORT_SYMBOL_GPL(hca_expect_faults);

/* For tests, which keep the module. */
struct hca_device *hca_first(void)
{
	struct hca_device *hca;

	spin_lock_irq(&hca_lock);
	hca = list_first_entry_or_null(&hca_devices, struct hca_device, link);
	spin_unlock_irq(&hca_lock);
	return hca;
}
EXPORT_SYMBOL_GPL(hca_first);

static const struct hca_preset *find_preset(void)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(presets); i++)
		if (!strcmp(presets[i].name, like))
			return &presets[i];
	return NULL;
}

static void init_device(struct hca_device *hca, struct device *bus, int number)
{
	hca->bus = bus;
	hca->ib.dev.parent = bus;
	hca->number = number;
	hca->is_roce = num_netdevs;
	hca->domain = iommu_get_domain_for_dev(bus);
	if (hca->domain && !(hca->domain->type & __IOMMU_DOMAIN_PAGING))
		hca->domain = NULL;
	xa_init_flags(&hca->mrs, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&hca->qps, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);
	hca->next_key = 1;
	hca->next_qpn = 2;
	hca->ib.node_type = RDMA_NODE_IB_CA;
	hca->ib.node_guid = cpu_to_be64(0x0002c90000770000ULL + number);
	hca->ib.phys_port_cnt = hca->is_roce ? num_netdevs / 2 : HCA_PORTS;
	hca->ib.num_comp_vectors = hca->preset->vectors;
	hca->ib.local_dma_lkey = hca->preset->lkey;
	hca->ib.ops.driver_id = hca->preset->driver_id;
	ib_set_device_ops(&hca->ib, &hca_device_ops);
	ib_set_device_ops(&hca->ib, &hca_memory_ops);
	ib_set_device_ops(&hca->ib, &hca_cq_ops);
	ib_set_device_ops(&hca->ib, &hca_qp_ops);
	hca_ports_init(hca);
}

static int set_dma_limits(struct device *bus)
{
	dma_set_max_seg_size(bus, UINT_MAX);
	return dma_set_mask_and_coherent(bus, DMA_BIT_MASK(64));
}

static void list_device(struct hca_device *hca)
{
	spin_lock_irq(&hca_lock);
	list_add_tail(&hca->link, &hca_devices);
	spin_unlock_irq(&hca_lock);
	hca_shadow_add(hca);
}

static void unlist_device(struct hca_device *hca)
{
	spin_lock_irq(&hca_lock);
	list_del(&hca->link);
	spin_unlock_irq(&hca_lock);
	hca_shadow_remove(hca);
}

static int register_device(struct hca_device *hca)
{
	char name[IB_DEVICE_NAME_MAX];
	int ret = 0;

	snprintf(name, sizeof(name), "hca%d", hca->number);
	if (hca->is_roce)
		ret = hca_netdevs_take(hca, netdevs + hca->number % 2 * hca->ib.phys_port_cnt);
	if (ret)
		return ret;
	list_device(hca);
	ret = ib_register_device(&hca->ib, name, hca->preset->virt_dma ? NULL : hca->bus);
	if (!ret && hca->is_roce) {
		ret = hca_netdev_watch(hca);
		if (ret)
			ib_unregister_device(&hca->ib);
	}
	if (!ret)
		return 0;
	unlist_device(hca);
	hca_netdevs_give_back(hca);
	return ret;
}

static int free_number(void)
{
	struct hca_device *hca;
	int used = 0;

	list_for_each_entry(hca, &hca_devices, link)
		used |= BIT(hca->number);
	return ffz(used);
}

static int probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct hca_device *hca;
	int ret = pcim_enable_device(pdev);

	if (!ret)
		ret = set_dma_limits(&pdev->dev);
	if (ret)
		return ret;
	pci_set_master(pdev);
	/* A kernel that cannot split its memory has the first one only. */
	if (node != NUMA_NO_NODE && node_online(node))
		set_dev_node(&pdev->dev, node);
	if (free_number() >= HCA_MAX)
		return -ENOSPC;
	hca = ib_alloc_device(hca_device, ib);
	if (!hca)
		return -ENOMEM;
	hca->preset = find_preset();
	init_device(hca, &pdev->dev, free_number());
	ret = register_device(hca);
	if (ret) {
		ib_dealloc_device(&hca->ib);
		return ret;
	}
	pci_set_drvdata(pdev, hca);
	pr_info("%s: like %s, %s, %s\n", hca->ib.name, like,
		hca->is_roce ? "Ethernet" : "InfiniBand",
		hca->domain ? "behind an IOMMU" : "no IOMMU");
	return 0;
}

static void leave(struct pci_dev *pdev)
{
	struct hca_device *hca = pci_get_drvdata(pdev);

	if (hca->is_roce)
		hca_netdev_unwatch(hca);
	ib_unregister_device(&hca->ib);
	unlist_device(hca);
	hca_netdevs_give_back(hca);
	WARN_ON(!xa_empty(&hca->mrs) || !xa_empty(&hca->qps));
	xa_destroy(&hca->mrs);
	xa_destroy(&hca->qps);
	ib_dealloc_device(&hca->ib);
}

static const struct pci_device_id ids[] = {
	{ PCI_DEVICE(EDU_VENDOR, EDU_DEVICE) },
	{}
};
MODULE_DEVICE_TABLE(pci, ids);

static struct pci_driver driver = {
	.name = "ibchan_hca",
	.id_table = ids,
	.probe = probe,
	.remove = leave,
};

static int __init hca_init(void)
{
	int ret;

	if (!find_preset() || num_netdevs % 2)
		return -EINVAL;
	hca_wq = alloc_workqueue("ibchan_hca", WQ_UNBOUND | WQ_HIGHPRI | WQ_MEM_RECLAIM, 0);
	if (!hca_wq)
		return -ENOMEM;
	ret = hca_shadow_start();
	if (!ret) {
		ret = pci_register_driver(&driver);
		if (!ret)
			return 0;
		hca_shadow_stop();
	}
	destroy_workqueue(hca_wq);
	return ret;
}

static void __exit hca_exit(void)
{
	pci_unregister_driver(&driver);
	hca_shadow_stop();
	destroy_workqueue(hca_wq);
}

module_init(hca_init);
module_exit(hca_exit);

MODULE_DESCRIPTION("A host channel adapter without hardware, for tests");
MODULE_LICENSE("GPL");
