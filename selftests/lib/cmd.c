// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>

#include "cmd.h"

int cmd_raw(int fd, unsigned long number, void *arg)
{
	return ioctl(fd, number, arg) ? -errno : 0;
}

int node_open(void)
{
	int fd = open(NODE, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int device_open(int fd, const char *name, __u32 *device)
{
	struct ibchan_cmd_device_open cmd = {};
	int rc;

	strncpy(cmd.name, name, sizeof(cmd.name) - 1);
	rc = cmd_device_open(fd, &cmd);
	*device = cmd.out_device;
	return rc;
}

struct ibchan_cmd_port_query about_port_of(const char *device)
{
	struct ibchan_cmd_port_query port = { .port = 1 };

	strncpy(port.name, device, sizeof(port.name) - 1);
	return port;
}

int pd_alloc(int fd, __u32 device, __u32 *pd)
{
	struct ibchan_cmd_pd_alloc cmd = { .device = device };
	int rc = cmd_pd_alloc(fd, &cmd);

	*pd = cmd.out_pd;
	return rc;
}

int channel_break(int fd, __u32 channel)
{
	struct ibchan_cmd_channel_break cmd = { .channel = channel };

	return cmd_channel_break(fd, &cmd);
}

int destroy(int fd, __u32 handle)
{
	struct ibchan_cmd_destroy cmd = { .handle = handle };

	return cmd_destroy(fd, &cmd);
}
