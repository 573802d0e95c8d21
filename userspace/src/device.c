// SPDX-License-Identifier: LGPL-2.1-or-later
/* Devices and ports. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* -EINVAL if @name with its NUL does not fit. */
int device_name_copy(char *to, const char *name)
{
	size_t len = strnlen(name, IBCHAN_NAME_SIZE);

	if (len == IBCHAN_NAME_SIZE)
		return -EINVAL;
	memcpy(to, name, len + 1);
	return 0;
}

static int device_query(struct ibchan_context *context, __u32 index,
			struct ibchan_device_info *info)
{
	struct ibchan_cmd_device_query cmd = {
		.size = sizeof(cmd),
		.index = index,
	};
	int err = context_ioctl(context, IBCHAN_CMD_DEVICE_QUERY, &cmd);

	if (err)
		return err;
	*info = (struct ibchan_device_info) {
		.node_guid = cmd.out.node_guid,
		.max_mr_size = cmd.out.max_mr_size,
		.max_plain_bytes = cmd.out.max_plain_bytes,
		.ports = cmd.out.ports,
		.caps = cmd.out.caps,
		.max_qp_wr = cmd.out.max_qp_wr,
		.max_send_sge = cmd.out.max_send_sge,
		.max_recv_sge = cmd.out.max_recv_sge,
		.max_read_sge = cmd.out.max_read_sge,
		.max_cqe = cmd.out.max_cqe,
		.max_rd_atomic = cmd.out.max_rd_atomic,
		.driver_id = cmd.out.driver_id,
		.max_inline_data = cmd.out.max_inline_data,
	};
	memcpy(info->name, cmd.out.name, sizeof(info->name));
	info->name[sizeof(info->name) - 1] = '\0';
	return 0;
}

int ibchan_device_list(struct ibchan_context *context,
		       struct ibchan_device_info *infos, __u32 n, struct ibchan_error *error)
{
	struct ibchan_device_info spare;
	__u32 i;
	int err;

	for (i = 0; ; i++) {
		err = device_query(context, i, i < n ? &infos[i] : &spare);
		if (err == -ENOENT)
			return error_set(error, 0, NULL) + (int)i;
		if (err)
			return error_set(error, err, NULL);
	}
}

/* Of an open device; all ones when they cannot be told. */
void device_limits(const struct ibchan_device *device, struct ibchan_device_info *info)
{
	__u32 i;

	for (i = 0; !device_query(device->object.context, i, info); i++)
		if (!strcmp(info->name, ibchan_device_name(device)))
			return;
	memset(info, 0xff, sizeof(*info));
}

static void device_release(struct object *object)
{
	struct ibchan_device *device = (struct ibchan_device *)object;
	struct device_name *name;

	while ((name = device->names) != &device->first) {
		device->names = name->older;
		free(name);
	}
	object_release(object);
}

int ibchan_device_open(struct ibchan_context *context, const char *name,
		       struct ibchan_device **out, struct ibchan_error *error)
{
	struct ibchan_cmd_device_open cmd = { .size = sizeof(cmd) };
	struct ibchan_device *device = calloc(1, sizeof(*device));
	struct ibchan_device_info first;
	int err = device ? context_check(context) : -ENOMEM;

	if (!err && !name) {
		err = device_query(context, 0, &first);
		name = first.name;
		if (err == -ENOENT)
			err = -ENODEV;
	}
	if (!err)
		err = device_name_copy(cmd.name, name) ?:
		      context_ioctl(context, IBCHAN_CMD_DEVICE_OPEN, &cmd);
	if (err) {
		free(device);
		return error_set(error, err, NULL);
	}
	memcpy(device->first.text, cmd.name, sizeof(device->first.text));
	device->names = &device->first;
	device->object.handle = cmd.out_device;
	object_add(&device->object, context, device_release);
	*out = device;
	return error_set(error, 0, NULL);
}

int ibchan_device_close(struct ibchan_device *device)
{
	return device ? object_destroy(&device->object) : 0;
}

/* A name that has come before is there already; without memory the last one has to do. */
static const char *name_keep(struct ibchan_device *device, struct device_name *head,
			     const char *text)
{
	struct device_name *name;

	for (name = head; name; name = name->older)
		if (!strncmp(name->text, text, sizeof(name->text)))
			return name->text;
	name = calloc(1, sizeof(*name));
	if (!name)
		return head->text;
	memcpy(name->text, text, sizeof(name->text) - 1);
	do {
		name->older = head;
	} while (!__atomic_compare_exchange_n(&device->names, &head, name, 0, __ATOMIC_RELEASE,
					      __ATOMIC_ACQUIRE));
	return name->text;
}

const char *ibchan_device_name(const struct ibchan_device *device)
{
	struct ibchan_cmd_device_query cmd = {
		.size = sizeof(cmd),
		.flags = IBCHAN_DEVICE_QUERY_HANDLE,
		.index = device->object.handle,
	};
	struct device_name *head = __atomic_load_n(&device->names, __ATOMIC_ACQUIRE);

	if (context_ioctl(device->object.context, IBCHAN_CMD_DEVICE_QUERY, &cmd))
		return head->text;
	return name_keep((struct ibchan_device *)device, head, cmd.out.name);
}

int ibchan_port_query(struct ibchan_context *context, const char *name,
		      __u32 port, struct ibchan_port_info *info, struct ibchan_error *error)
{
	struct ibchan_cmd_port_query cmd = {
		.size = sizeof(cmd),
		.port = port,
	};
	int err = device_name_copy(cmd.name, name);

	if (!err)
		err = context_ioctl(context, IBCHAN_CMD_PORT_QUERY, &cmd);
	if (err)
		return error_set(error, err, NULL);
	*info = (struct ibchan_port_info) {
		.port = port,
		.state = cmd.out.state,
		.link_layer = cmd.out.link_layer,
		.active_mtu = cmd.out.active_mtu,
		.max_mtu = cmd.out.max_mtu,
		.lid = cmd.out.lid,
		.gid_index = cmd.out.gid_index,
		.gid_entries = cmd.out.gid_entries,
		.max_message = cmd.out.max_message,
	};
	memcpy(info->gid, cmd.out.gid, sizeof(info->gid));
	return error_set(error, 0, NULL);
}

static void gid_info_fill(struct ibchan_gid_info *info, const struct ibchan_cmd_gid_query *cmd)
{
	*info = (struct ibchan_gid_info) {
		.index = cmd->out.index,
		.verdict = cmd->out.verdict,
		.type = cmd->out.type,
		.ndev_index = cmd->out.ndev_index,
		.ndev_mtu = cmd->out.ndev_mtu,
		.vlan_id = cmd->out.vlan_id,
	};
	memcpy(info->mac, cmd->out.mac, sizeof(info->mac));
	memcpy(info->gid, cmd->out.gid, sizeof(info->gid));
	memcpy(info->ndev_name, cmd->out.ndev_name, sizeof(info->ndev_name));
	info->ndev_name[sizeof(info->ndev_name) - 1] = '\0';
}

int ibchan_gid_query(struct ibchan_context *context, const char *name,
		     __u32 port, __u32 index, struct ibchan_gid_info *info,
		     struct ibchan_error *error)
{
	struct ibchan_cmd_gid_query cmd = {
		.size = sizeof(cmd),
		.port = port,
		.index = index,
	};
	int err = device_name_copy(cmd.name, name);

	if (!err)
		err = context_ioctl(context, IBCHAN_CMD_GID_QUERY, &cmd);
	if (!err)
		gid_info_fill(info, &cmd);
	return error_set(error, err, NULL);
}
