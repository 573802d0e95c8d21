// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "departure.h"
#include "world.h"

#define NETDEV_A	"v0"

#define SELFTESTS	"\"${IBCHAN_SELFTESTS:-selftests}\""
#define ADD		SELFTESTS "/device add \"$1\" \"$2\""

/* How long the deletion of a device may take. */
static long deletion_limit_ms(void)
{
	return slow() ? 20000 : 5000;
}

/* It loses its driver, as one that is pulled out of its slot does. */
static int delete_hca(void)
{
	char path[128], bus[128];
	ssize_t length;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device", DEVICE_A);
	length = readlink(path, bus, sizeof(bus) - 1);
	if (length < 0)
		return -errno;
	bus[length] = '\0';
	return put_line("/sys/bus/pci/drivers/ibchan_hca/unbind", basename(bus));
}

/* On a busy machine a shell takes long to start, and only the deletion is of interest. */
int delete_device(void)
{
	const char *const argv[] = { "rdma", "link", "delete", DEVICE_A, NULL };
	__u64 start = now_ms();
	int rc = access("/sys/module/ibchan_hca", F_OK) ? run_program(argv) : delete_hca();
	long took = now_ms() - start;

	if (!rc && took > deletion_limit_ms()) {
		fprintf(stderr, "# the deletion took %ld ms\n", took);
		return -ETIMEDOUT;
	}
	return rc;
}

static bool has_address(void *arg)
{
	struct ibchan_cmd_port_query port = about_port_of(DEVICE_A);

	return !cmd_port_query(*(int *)arg, &port) && port.out.gid_index != IBCHAN_AUTO;
}

int restore_device(void)
{
	const char *const argv[] = { "sh", "-c", ADD, "sh", DEVICE_A, NETDEV_A, NULL };
	char path[64];
	int fd = node_open();
	int rc = 0;

	if (fd < 0)
		return fd;
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s", DEVICE_A);
	if (!has_address(&fd) && access(path, F_OK))
		rc = run_program(argv);
	if (!rc && !eventually(has_address, &fd))
		rc = -ENODEV;
	close(fd);
	return rc;
}
