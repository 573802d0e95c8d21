// SPDX-License-Identifier: GPL-2.0-only
/* Commands that ask about devices, their ports and the addresses of these. */
#include <linux/errno.h>

#include "query.h"

static void fill_device(struct ibchan_cmd_device_query *cmd,
			const struct ibchan_device_attr *attr)
{
	memcpy(cmd->name, attr->name, sizeof(cmd->name));
	cmd->out_ports = attr->ports;
	cmd->out_node_guid = attr->node_guid;
	cmd->out_caps = attr->caps;
	cmd->out_max_qp_wr = attr->max_qp_wr;
	cmd->out_max_send_sge = attr->max_send_sge;
	cmd->out_max_recv_sge = attr->max_recv_sge;
	cmd->out_max_read_sge = attr->max_read_sge;
	cmd->out_max_cqe = attr->max_cqe;
	cmd->out_max_rd_atomic = attr->max_rd_atomic;
	cmd->out_driver_id = attr->driver_id;
	cmd->out_max_mr_size = attr->max_mr_size;
	cmd->out_max_plain_bytes = attr->max_plain_bytes;
	cmd->out_max_fast_reg_pages = attr->max_fast_reg_pages;
	cmd->out_max_inline_data = attr->max_inline_data;
}

int ibchan_run_device_query(struct ibchan_call *call)
{
	struct ibchan_cmd_device_query *cmd = call->cmd;
	const struct ibchan_object *object;
	struct ibchan_device_attr attr;
	struct ibchan_device *dev;
	int ret;

	if (cmd->flags & IBCHAN_DEVICE_QUERY_HANDLE) {
		object = ibchan_call_find(call, cmd->index, OBJECT_DEVICE);
		if (IS_ERR(object))
			return PTR_ERR(object);
		ret = ibchan_device_query(object->device, &attr);
	} else {
		dev = ibchan_device_get_nth(cmd->index, ibchan_caller_net());
		if (IS_ERR(dev))
			return PTR_ERR(dev);
		ret = ibchan_device_query(dev, &attr);
		ibchan_device_put(dev);
	}
	if (!ret)
		fill_device(cmd, &attr);
	return ret;
}

/* Looks among the devices that the caller sees. */
static struct ibchan_device *named_device(const char *name)
{
	if (!ibchan_name_ends(name))
		return ERR_PTR(-EINVAL);
	return ibchan_device_get(name, ibchan_caller_net());
}

int ibchan_run_port_query(struct ibchan_call *call)
{
	struct ibchan_cmd_port_query *cmd = call->cmd;
	struct ibchan_port_attr attr;
	struct ibchan_device *dev;
	int ret;

	dev = named_device(cmd->name);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	ret = ibchan_port_query(dev, cmd->port, ibchan_caller_net(), &attr);
	ibchan_device_put(dev);
	if (ret)
		return ret;
	cmd->out_state = attr.state;
	cmd->out_link_layer = attr.link_layer;
	cmd->out_active_mtu = attr.active_mtu;
	cmd->out_max_mtu = attr.max_mtu;
	cmd->out_lid = attr.lid;
	cmd->out_gid_index = attr.gid_index;
	cmd->out_gid_entries = attr.gid_entries;
	cmd->out_max_message = attr.max_message;
	memcpy(cmd->out_gid, attr.gid, sizeof(cmd->out_gid));
	return 0;
}

int ibchan_run_gid_query(struct ibchan_call *call)
{
	struct ibchan_cmd_gid_query *cmd = call->cmd;
	struct ibchan_gid_attr attr = { .index = cmd->index };
	struct ibchan_device *dev;
	int ret;

	dev = named_device(cmd->name);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	ret = ibchan_gid_query(dev, cmd->port, ibchan_caller_net(), &attr);
	ibchan_device_put(dev);
	if (ret)
		return ret;
	cmd->out_index = attr.index;
	cmd->out_verdict = attr.verdict;
	cmd->out_type = attr.type;
	cmd->out_ndev_index = attr.ndev_index;
	cmd->out_ndev_mtu = attr.ndev_mtu;
	cmd->out_vlan_id = attr.vlan_id;
	memcpy(cmd->out_mac, attr.mac, sizeof(cmd->out_mac));
	memcpy(cmd->out_gid, attr.gid, sizeof(cmd->out_gid));
	memcpy(cmd->out_ndev_name, attr.ndev_name, sizeof(cmd->out_ndev_name));
	return 0;
}
