// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gid.h"
#include "world.h"

void gid_of(const char *text, __u8 *gid)
{
	memset(gid, 0, IBCHAN_GID_SIZE);
	if (inet_pton(AF_INET6, text, gid) == 1)
		return;
	memset(gid + 10, 0xff, 2);
	inet_pton(AF_INET, text, gid + 12);
}

int gid_query(int fd, const char *device, __u32 index, struct ibchan_cmd_gid_query *cmd)
{
	*cmd = (struct ibchan_cmd_gid_query) { .port = 1, .index = index };
	strcpy(cmd->name, device);
	return cmd_gid_query(fd, cmd);
}

int gid_find(int fd, const char *device, const char *text, const char *ndev,
	     struct ibchan_cmd_gid_query *cmd)
{
	__u8 gid[IBCHAN_GID_SIZE];
	__u32 index = 0;
	int rc;

	gid_of(text, gid);
	for (;; index = cmd->out.index + 1) {
		rc = gid_query(fd, device, index, cmd);
		if (rc || (!memcmp(gid, cmd->out.gid, sizeof(gid)) &&
			   (!ndev || !strcmp(ndev, cmd->out.ndev_name))))
			return rc;
	}
}

/* The verdict, or -errno. */
static int judge(struct expected_gid *expected)
{
	int rc = gid_find(expected->fd, expected->device, expected->address, expected->ndev,
			  &expected->seen);

	return rc ? rc : (int)expected->seen.out.verdict;
}

static bool is_judged(void *arg)
{
	struct expected_gid *expected = arg;

	return judge(expected) == expected->verdict;
}

int gid_await(struct expected_gid *expected)
{
	if (eventually(is_judged, expected))
		return 0;
	fprintf(stderr, "# %s %s: verdict %d instead of %d\n", expected->device,
		expected->address, judge(expected), expected->verdict);
	return -ETIMEDOUT;
}

bool neighbour_is_asked(void *text)
{
	FILE *table = fopen("/proc/net/arp", "re");
	char line[256], address[64];
	bool is_asked = false;
	unsigned int state;

	while (table && !is_asked && fgets(line, sizeof(line), table))
		is_asked = sscanf(line, "%63s %*s %x", address, &state) == 2 && !state &&
			   !strcmp(text, address);
	if (table)
		fclose(table);
	return is_asked;
}
