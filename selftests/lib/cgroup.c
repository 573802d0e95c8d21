// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup.h"
#include "cmd.h"
#include "world.h"

#define ROOT	"/sys/fs/cgroup"
#define OWN	ROOT "/ibchan-test"

static bool has_controller(void)
{
	char words[256] = "";
	FILE *file = fopen(ROOT "/cgroup.controllers", "re");

	if (!file)
		return false;
	if (!fgets(words, sizeof(words), file))
		words[0] = '\0';
	fclose(file);
	return strstr(words, "rdma");
}

int cgroup_join(void)
{
	return put_line(OWN "/cgroup.procs", "0");
}

int cgroup_leave(void)
{
	return put_line(ROOT "/cgroup.procs", "0");
}

int cgroup_begin(void)
{
	int rc;

	if (!has_controller())
		return -EOPNOTSUPP;
	rc = put_line(ROOT "/cgroup.subtree_control", "+rdma");
	if (rc)
		return rc;
	/* A test that failed may have left it. */
	if (mkdir(OWN, 0755) && errno != EEXIST)
		return -errno;
	return cgroup_join();
}

static bool is_removed(void *arg)
{
	(void)arg;
	return !rmdir(OWN);
}

/*
 * 6.1 and 6.12 free a cgroup that still has limits of its own and leave what holds them on
 * the device's list, which the end of the device then walks. Limits of "max" are none.
 */
static void drop_limits(void)
{
	cgroup_limit(DEVICE_A, "max", "max");
	cgroup_limit(DEVICE_B, "max", "max");
}

int cgroup_end(void)
{
	int rc = cgroup_leave();

	if (rc)
		return rc;
	drop_limits();
	/* A process that was waited for leaves its cgroup a moment later. */
	return eventually(is_removed, NULL) ? 0 : -EBUSY;
}

int cgroup_limit(const char *device, const char *handles, const char *objects)
{
	char text[128];

	snprintf(text, sizeof(text), "%s hca_handle=%s hca_object=%s", device, handles, objects);
	return put_line(OWN "/rdma.max", text);
}

int cgroup_usage(const char *device, struct cgroup_usage *usage)
{
	FILE *file = fopen(OWN "/rdma.current", "re");
	struct cgroup_usage read;
	char name[64];
	int rc = -ENODEV;

	if (!file)
		return -errno;
	while (rc && fscanf(file, "%63s hca_handle=%ld hca_object=%ld", name, &read.handles,
			    &read.objects) == 3) {
		if (strcmp(name, device))
			continue;
		*usage = read;
		rc = 0;
	}
	fclose(file);
	return rc;
}
