// SPDX-License-Identifier: LGPL-2.1-or-later
/* Devices and ports. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* -EINVAL if @name with its NUL does not fit. */
static int device_name_copy(char *to, const char *name)
{
	size_t len = strnlen(name, IBCHAN_NAME_SIZE);

	if (len == IBCHAN_NAME_SIZE)
		return -EINVAL;
	memcpy(to, name, len + 1);
	return 0;
}

/* @flags: IBCHAN_DEVICE_QUERY_HANDLE: @index is the handle of a device that is open. */
static int device_query(struct ibchan_context *context, __u32 flags, __u32 index,
			struct ibchan_device_attr *attr)
{
	struct ibchan_cmd_device_query cmd = {
		.size = sizeof(cmd), .flags = flags, .index = index,
	};
	int err = context_ioctl(context, IBCHAN_CMD_DEVICE_QUERY, &cmd);

	if (!err)
		*attr = cmd.out;
	return err;
}

int ibchan_device_list(struct ibchan_context *context, struct ibchan_device_attr *attrs, __u32 n,
		       struct ibchan_error *error)
{
	struct ibchan_device_attr spare;
	__u32 i;
	int err;

	for (i = 0; ; i++) {
		err = device_query(context, 0, i, i < n ? &attrs[i] : &spare);
		if (err == -ENOENT)
			return error_set(error, 0, NULL) + (int)i;
		if (err)
			return error_set(error, err, NULL);
	}
}

/* Of an open device; all ones when they cannot be told. */
void device_limits(const struct ibchan_device *device, struct ibchan_device_attr *attr)
{
	if (device_query(device->object.context, IBCHAN_DEVICE_QUERY_HANDLE, device->object.handle,
			 attr))
		memset(attr, 0xff, sizeof(*attr));
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
	struct ibchan_device_attr first;
	int err = device ? context_check(context) : -ENOMEM;

	if (!err && !name) {
		err = device_query(context, 0, 0, &first);
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
	struct device_name *head = __atomic_load_n(&device->names, __ATOMIC_ACQUIRE);
	struct ibchan_device_attr attr;

	if (device_query(device->object.context, IBCHAN_DEVICE_QUERY_HANDLE, device->object.handle,
			 &attr))
		return head->text;
	return name_keep((struct ibchan_device *)device, head, attr.name);
}

int ibchan_port_query(struct ibchan_context *context, const char *name, __u32 port,
		      struct ibchan_port_attr *attr, struct ibchan_error *error)
{
	struct ibchan_cmd_port_query cmd = { .size = sizeof(cmd), .port = port };
	int err = device_name_copy(cmd.name, name) ?:
		  context_ioctl(context, IBCHAN_CMD_PORT_QUERY, &cmd);

	if (!err)
		*attr = cmd.out;
	return error_set(error, err, NULL);
}

int ibchan_gid_query(struct ibchan_context *context, const char *name, __u32 port, __u32 index,
		     struct ibchan_gid_attr *attr, struct ibchan_error *error)
{
	struct ibchan_cmd_gid_query cmd = { .size = sizeof(cmd), .port = port, .index = index };
	int err = device_name_copy(cmd.name, name) ?:
		  context_ioctl(context, IBCHAN_CMD_GID_QUERY, &cmd);

	if (!err)
		*attr = cmd.out;
	return error_set(error, err, NULL);
}
