// SPDX-License-Identifier: GPL-2.0-only
/* What a device and its ports are like: see hca.h. */
#include <linux/etherdevice.h>
#include <linux/netdevice.h>
#include <net/addrconf.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_mad.h>

#include "hca.h"

/* --- InfiniBand --- */

static const u16 partitions[HCA_PKEYS] = { 0xffff, 0x8001, 0x0002 };

/* No device has LID 0, and none the LID of another one. */
void hca_ports_init(struct hca_device *hca)
{
	u32 i;

	for (i = 0; i < HCA_PORTS; i++) {
		struct hca_port *port = &hca->ports[i];

		memcpy(port->pkeys, partitions, sizeof(port->pkeys));
		if (hca->is_roce)
			continue;
		port->lid = 1 + hca->number * HCA_PORTS + i;
		port->gids[0].global.subnet_prefix = cpu_to_be64(0xfe80000000000000ULL);
		port->gids[0].global.interface_id =
			cpu_to_be64(0x0002c90000770000ULL + port->lid);
	}
}

static void tell_port(struct hca_device *hca, u32 port, enum ib_event_type type)
{
	struct ib_event event = { .device = &hca->ib, .element.port_num = port, .event = type };

	ib_dispatch_event(&event);
}

static struct hca_device *find_number(u32 number)
{
	struct hca_device *hca;

	list_for_each_entry(hca, &hca_devices, link)
		if (hca->number == number)
			return hca;
	return NULL;
}

/* As a subnet manager does. The caller keeps the device. */
int hca_set_lid(u32 number, u32 port, u16 lid)
{
	struct hca_device *hca;

	spin_lock_irq(&hca_lock);
	hca = find_number(number);
	if (hca && (hca->is_roce || !port || port > hca->ib.phys_port_cnt))
		hca = NULL;
	if (hca)
		hca->ports[port - 1].lid = lid;
	spin_unlock_irq(&hca_lock);
	if (!hca)
		return -EINVAL;
	tell_port(hca, port, IB_EVENT_LID_CHANGE);
	return 0;
}

/* The same for an entry of its P_Key table. */
int hca_set_pkey(u32 number, u32 port, u32 index, u16 pkey)
{
	struct hca_device *hca;

	spin_lock_irq(&hca_lock);
	hca = find_number(number);
	if (hca && (hca->is_roce || !port || port > hca->ib.phys_port_cnt || index >= HCA_PKEYS))
		hca = NULL;
	if (hca)
		hca->ports[port - 1].pkeys[index] = pkey;
	spin_unlock_irq(&hca_lock);
	if (!hca)
		return -EINVAL;
	tell_port(hca, port, IB_EVENT_PKEY_CHANGE);
	return 0;
}

/* --- Ethernet --- */

static struct hca_port *port_on(struct hca_device *hca, const struct net_device *ndev)
{
	u32 i;

	for (i = 0; i < hca->ib.phys_port_cnt; i++)
		if (hca->ports[i].ndev == ndev)
			return &hca->ports[i];
	return NULL;
}

static u32 number_of(const struct hca_device *hca, const struct hca_port *port)
{
	return port - hca->ports + 1;
}

static void forget_netdev(struct hca_device *hca, struct hca_port *port)
{
	struct net_device *ndev;

	ib_device_set_netdev(&hca->ib, NULL, number_of(hca, port));
	spin_lock_irq(&hca_lock);
	ndev = port->ndev;
	port->ndev = NULL;
	spin_unlock_irq(&hca_lock);
	dev_put(ndev);
}

static int netdev_event(struct notifier_block *block, unsigned long type, void *info)
{
	struct hca_device *hca = container_of(block, struct hca_device, netdevs);
	struct hca_port *port = port_on(hca, netdev_notifier_info_to_dev(info));

	/* At its own end the notifier hears that all of them go. */
	if (READ_ONCE(hca->leaving) || !port)
		return NOTIFY_DONE;
	if (type == NETDEV_UNREGISTER)
		forget_netdev(hca, port);
	else if (type == NETDEV_UP || type == NETDEV_DOWN || type == NETDEV_CHANGE)
		tell_port(hca, number_of(hca, port),
			  hca_port_is_up(port) ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR);
	return NOTIFY_DONE;
}

static int netdev_take(struct hca_device *hca, struct hca_port *port, const char *name)
{
	struct net_device *ndev = dev_get_by_name(&init_net, name);
	int ret;

	if (!ndev)
		return -ENODEV;
	ret = ib_device_set_netdev(&hca->ib, ndev, number_of(hca, port));
	if (ret)
		dev_put(ndev);
	else
		port->ndev = ndev;
	return ret;
}

/* Before the device is registered; @names are those of its ports. */
int hca_netdevs_take(struct hca_device *hca, char *const *names)
{
	int ret = 0;
	u32 i;

	for (i = 0; i < hca->ib.phys_port_cnt && !ret; i++)
		ret = netdev_take(hca, &hca->ports[i], names[i]);
	if (ret)
		hca_netdevs_give_back(hca);
	return ret;
}

/* As long as the device is registered: both tell of what is there already. */
int hca_netdev_watch(struct hca_device *hca)
{
	hca->netdevs.notifier_call = netdev_event;
	return register_netdevice_notifier(&hca->netdevs);
}

void hca_netdev_unwatch(struct hca_device *hca)
{
	WRITE_ONCE(hca->leaving, true);
	unregister_netdevice_notifier(&hca->netdevs);
}

/* Behind the device's last use of them. */
void hca_netdevs_give_back(struct hca_device *hca)
{
	u32 i;

	for (i = 0; i < HCA_PORTS; i++) {
		dev_put(hca->ports[i].ndev);
		hca->ports[i].ndev = NULL;
	}
}

static void set_gid(const struct ib_gid_attr *attr, const union ib_gid *gid)
{
	struct hca_device *hca = to_hca(attr->device);

	spin_lock_irq(&hca_lock);
	hca->ports[attr->port_num - 1].gids[attr->index] = *gid;
	spin_unlock_irq(&hca_lock);
}

static int add_gid(const struct ib_gid_attr *attr, void **context)
{
	set_gid(attr, &attr->gid);
	return 0;
}

static int del_gid(const struct ib_gid_attr *attr, void **context)
{
	set_gid(attr, &(union ib_gid) {});
	return 0;
}

/* --- questions --- */

static int query_device(struct ib_device *ib, struct ib_device_attr *attr,
			struct ib_udata *udata)
{
	struct hca_device *hca = to_hca(ib);
	const struct hca_preset *preset = hca->preset;

	attr->sys_image_guid = ib->node_guid;
	attr->max_mr_size = 1ULL << 40;
	attr->page_size_cap = PAGE_SIZE;
	attr->vendor_id = 0x1234;
	attr->max_qp = 1 << 16;
	attr->max_qp_wr = HCA_MAX_WR;
	attr->device_cap_flags = IB_DEVICE_RC_RNR_NAK_GEN | IB_DEVICE_SRQ_RESIZE |
				 IB_DEVICE_PORT_ACTIVE_EVENT | IB_DEVICE_SYS_IMAGE_GUID;
	if (preset->max_fast_reg_pages)
		attr->device_cap_flags |= IB_DEVICE_MEM_MGT_EXTENSIONS;
	if (preset->local_dma_lkey)
		attr->kernel_cap_flags |= IBK_LOCAL_DMA_LKEY;
	attr->max_send_sge = preset->max_sge;
	attr->max_recv_sge = preset->max_sge;
	attr->max_sge_rd = preset->max_sge;
	attr->max_cq = 1 << 16;
	attr->max_cqe = HCA_MAX_CQE - 1;
	attr->max_mr = 1 << 20;
	attr->max_pd = 1 << 16;
	attr->max_qp_rd_atom = 16;
	attr->max_res_rd_atom = 16 * attr->max_qp;
	attr->max_qp_init_rd_atom = 16;
	attr->atomic_cap = IB_ATOMIC_HCA;
	attr->max_ah = 1 << 16;
	attr->max_srq = 1 << 12;
	attr->max_srq_wr = HCA_MAX_WR;
	attr->max_srq_sge = preset->max_sge;
	attr->max_fast_reg_page_list_len = preset->max_fast_reg_pages;
	attr->max_pkeys = HCA_PKEYS;
	attr->local_ca_ack_delay = 15;
	return 0;
}

static int query_port(struct ib_device *ib, u32 number, struct ib_port_attr *attr)
{
	struct hca_device *hca = to_hca(ib);
	struct hca_port *port = &hca->ports[number - 1];
	bool is_up;

	atomic_inc(&hca_port_queries);
	spin_lock_irq(&hca_lock);
	is_up = hca_port_is_up(port);
	attr->active_mtu = port->ndev ? iboe_get_mtu(port->ndev->mtu) : IB_MTU_4096;
	spin_unlock_irq(&hca_lock);
	attr->state = is_up ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = is_up ? IB_PORT_PHYS_STATE_LINK_UP : IB_PORT_PHYS_STATE_DISABLED;
	attr->max_mtu = IB_MTU_4096;
	attr->gid_tbl_len = hca->is_roce ? HCA_GIDS : 1;
	attr->ip_gids = hca->is_roce;
	attr->max_msg_sz = 1U << 31;
	attr->pkey_tbl_len = hca->is_roce ? 1 : HCA_PKEYS;
	attr->lid = port->lid;
	attr->sm_lid = hca->is_roce ? 0 : 1;
	attr->max_vl_num = 1;
	attr->active_width = IB_WIDTH_4X;
	attr->active_speed = IB_SPEED_EDR;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	return 0;
}

static int get_port_immutable(struct ib_device *ib, u32 port, struct ib_port_immutable *immutable)
{
	struct hca_device *hca = to_hca(ib);

	/* Without an agent for management packets there is no subnet manager to ask. */
	immutable->core_cap_flags = hca->is_roce ? RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP :
						   RDMA_CORE_CAP_PROT_IB;
	if (hca->is_roce && hca->preset->roce_v1)
		immutable->core_cap_flags |= RDMA_CORE_PORT_IBA_ROCE;
	if (!hca->is_roce && hca->preset->grh_required)
		immutable->core_cap_flags |= RDMA_CORE_CAP_IB_GRH_REQUIRED;
	immutable->gid_tbl_len = hca->is_roce ? HCA_GIDS : 1;
	immutable->pkey_tbl_len = hca->is_roce ? 1 : HCA_PKEYS;
	immutable->max_mad_size = hca->is_roce ? IB_MGMT_MAD_SIZE : 0;
	return 0;
}

static enum rdma_link_layer get_link_layer(struct ib_device *ib, u32 port)
{
	return to_hca(ib)->is_roce ? IB_LINK_LAYER_ETHERNET : IB_LINK_LAYER_INFINIBAND;
}

static int query_gid(struct ib_device *ib, u32 port, int index, union ib_gid *gid)
{
	if (index >= HCA_GIDS)
		return -EINVAL;
	*gid = to_hca(ib)->ports[port - 1].gids[index];
	return 0;
}

static int query_pkey(struct ib_device *ib, u32 port, u16 index, u16 *pkey)
{
	if (index >= HCA_PKEYS)
		return -EINVAL;
	*pkey = to_hca(ib)->ports[port - 1].pkeys[index];
	return 0;
}

/* --- small objects --- */

static int alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static int dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	hca_command();
	return 0;
}

static int create_ah(struct ib_ah *ib, struct rdma_ah_init_attr *init, struct ib_udata *udata)
{
	struct hca_ah *ah = container_of(ib, struct hca_ah, ib);
	const struct ib_gid_attr *sgid = rdma_ah_read_grh(init->ah_attr)->sgid_attr;

	if (init->ah_attr->type != RDMA_AH_ATTR_TYPE_ROCE || !sgid)
		return -EOPNOTSUPP;
	ah->attr = *init->ah_attr;
	ah->sgid = sgid->gid;
	ah->network = rdma_gid_attr_network_type(sgid);
	return 0;
}

static int destroy_ah(struct ib_ah *ib, u32 flags)
{
	return 0;
}

const struct ib_device_ops hca_device_ops = {
	.owner = THIS_MODULE,
	.uverbs_abi_ver = 1,
	.add_gid = add_gid,
	.alloc_pd = alloc_pd,
	.create_ah = create_ah,
	.dealloc_pd = dealloc_pd,
	.del_gid = del_gid,
	.destroy_ah = destroy_ah,
	.get_link_layer = get_link_layer,
	.get_port_immutable = get_port_immutable,
	.query_device = query_device,
	.query_gid = query_gid,
	.query_pkey = query_pkey,
	.query_port = query_port,

	INIT_RDMA_OBJ_SIZE(ib_ah, hca_ah, ib),
	INIT_RDMA_OBJ_SIZE(ib_pd, hca_pd, ib),
};
