// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "cmd.h"
#include "departure.h"
#include "world.h"

#define NETDEV_A	"v0"

#define SELFTESTS	"\"${IBCHAN_SELFTESTS:-selftests}\""
#define DELETE		SELFTESTS "/device delete \"$1\""
#define ADD		SELFTESTS "/device add \"$1\" \"$2\""

/* How long the deletion of a device may take. */
static long deletion_limit_ms(void)
{
	return slow() ? 20000 : 5000;
}

/* On a busy machine a shell takes long to start, and only the deletion is of interest. */
int delete_device(void)
{
	const char *const soft_roce[] = { "rdma", "link", "delete", DEVICE_A, NULL };
	const char *const hca[] = { "sh", "-c", DELETE, "sh", DEVICE_A, NULL };
	const char *const *argv = access("/sys/module/ibchan_hca", F_OK) ? soft_roce : hca;
	__u64 start = now_ms();
	int rc = run_program(argv);
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

	return !cmd_port_query(*(int *)arg, &port) && port.out_gid_index != IBCHAN_AUTO;
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
