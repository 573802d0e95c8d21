// SPDX-License-Identifier: LGPL-2.1-or-later
/* ibchan devices lists the devices, ports and GIDs that are visible from here. */
#include <argp.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

#define SHOW_LIMITS	0x1
#define SHOW_GIDS	0x2

#define NAME_OF(names, i)	((i) < ARRAY_SIZE(names) && (names)[i] ? (names)[i] : "?")

static const struct argp_option options[] = {
	{ "verbose", 'v', NULL, 0, "show the limits and the GIDs too", 0 },
	{ "gids", 'g', NULL, 0,
	  "show each GID of each port, and why a channel takes it or not", 0 },
	{ "help", 'h', NULL, 0, "give this help list", -1 },
	{ 0 }
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	int *show = state->input;

	(void)arg;
	if (key == 'v')
		*show |= SHOW_LIMITS | SHOW_GIDS;
	else if (key == 'g')
		*show |= SHOW_GIDS;
	else if (key == 'h')
		argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
	else
		return ARGP_ERR_UNKNOWN;
	return 0;
}

static int show_port(struct ibchan_context *context, const char *name, __u32 number)
{
	static const char * const links[] = {
		[IBCHAN_LINK_LAYER_INFINIBAND] = "InfiniBand",
		[IBCHAN_LINK_LAYER_ETHERNET] = "Ethernet",
	};
	char gid[INET6_ADDRSTRLEN] = "no usable GID";
	struct ibchan_port_attr port;
	char index[16] = "-";
	int err = ibchan_port_query(context, name, number, &port, NULL);

	if (err)
		return complain("%s port %u: %s", name, number, strerror(-err));
	if (port.gid_index != IBCHAN_AUTO) {
		gid_text(port.gid, gid, sizeof(gid));
		snprintf(index, sizeof(index), "%u", port.gid_index);
	}
	printf("%-16s %4u  %-7s %-10s %5u %5s  %s\n", name, number,
	       ibchan_port_state_name(port.state), NAME_OF(links, port.link_layer),
	       port.active_mtu, index, gid);
	return 0;
}

static int show_gids(struct ibchan_context *context, const char *name, __u32 port)
{
	static const char * const types[] = {
		[IBCHAN_GID_TYPE_IB] = "IB",
		[IBCHAN_GID_TYPE_ROCE_V1] = "RoCE v1",
		[IBCHAN_GID_TYPE_ROCE_V2] = "RoCE v2",
	};
	struct ibchan_gid_attr info;
	__u32 index = 0;
	int err;

	printf("    %5s  %-7s %-15s %4s %5s  %-24s %s\n", "index", "type", "network device", "vlan",
	       "mtu", "GID", "verdict");
	while (!(err = ibchan_gid_query(context, name, port, index, &info, NULL))) {
		char gid[INET6_ADDRSTRLEN], vlan[8] = "-", mtu[16] = "-";

		if (info.vlan_id != IBCHAN_VLAN_NONE)
			snprintf(vlan, sizeof(vlan), "%u", info.vlan_id);
		if (info.ndev_index)
			snprintf(mtu, sizeof(mtu), "%u", info.ndev_mtu);
		printf("    %5u  %-7s %-15s %4s %5s  %-24s %s: %s\n", info.index,
		       NAME_OF(types, info.type), info.ndev_index ? info.ndev_name : "-", vlan,
		       mtu, gid_text(info.gid, gid, sizeof(gid)),
		       ibchan_gid_verdict_name(info.verdict),
		       ibchan_gid_verdict_text(info.verdict));
		index = info.index + 1;
	}
	if (err == -ENOENT)
		return 0;
	return complain("%s port %u: GIDs: %s", name, port, strerror(-err));
}

static void show_limits(const struct ibchan_device_attr *info)
{
	printf("    node GUID        %016llx\n", (unsigned long long)info->node_guid);
	printf("    user memory      %s\n", info->caps & IBCHAN_DEVICE_USER_MR ? "yes" : "no");
	printf("    atomics          %s\n", info->caps & IBCHAN_DEVICE_ATOMICS ? "yes" : "no");
	printf("    immediate data   %s\n", info->caps & IBCHAN_DEVICE_IMMEDIATE ? "yes" : "no");
	printf("    endpoints        %s\n",
	       info->caps & IBCHAN_DEVICE_ENDPOINTS ? "yes" : "no, rdma_cm only");
	printf("    max qp wr        %u\n", info->max_qp_wr);
	printf("    max sge          send %u, receive %u, read %u\n", info->max_send_sge,
	       info->max_recv_sge, info->max_read_sge);
	printf("    max cqe          %u\n", info->max_cqe);
	printf("    max rd atomic    %u\n", info->max_rd_atomic);
	if (info->max_inline_data == IBCHAN_AUTO)
		printf("    max inline data  not known before the first channel\n");
	else
		printf("    max inline data  %u, or more\n", info->max_inline_data);
	printf("    max mr size      %llu\n", (unsigned long long)info->max_mr_size);
	printf("    driver id        %u\n", info->driver_id);
}

/* Between the two calls a device may come or go. */
static int show_all(struct ibchan_context *context, int show)
{
	int room = ibchan_device_list(context, NULL, 0, NULL), n = room, ret = 0, i;
	struct ibchan_device_attr *infos = calloc(room > 0 ? (size_t)room : 1, sizeof(*infos));
	const struct ibchan_device_attr *info;
	__u32 port;

	if (!infos)
		return complain("out of memory");
	if (room > 0)
		n = ibchan_device_list(context, infos, (__u32)room, NULL);
	if (n < 0)
		ret = complain("device list: %s", strerror(-n));
	else if (!n)
		ret = complain("no RDMA device is visible from here");
	else
		printf("%-16s %4s  %-7s %-10s %5s %5s  %s\n", "device", "port", "state", "link",
		       "mtu", "index", "address");
	for (i = 0; i < n && i < room; i++) {
		info = &infos[i];
		for (port = 1; port <= info->ports; port++) {
			ret |= show_port(context, info->name, port);
			if (show & SHOW_GIDS)
				ret |= show_gids(context, info->name, port);
		}
		if (show & SHOW_LIMITS)
			show_limits(info);
	}
	free(infos);
	return ret;
}

int devices_main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options, .parser = parse,
		.doc = "List the RDMA devices that can be used from here.",
	};
	struct ibchan_context *context;
	int show = 0, ret;

	argp_err_exit_status = EXIT_USAGE;
	argv[0] = "ibchan devices";
	if (argp_parse(&argp, argc, argv, 0, NULL, &show))
		return EXIT_USAGE;
	if (open_context(&context))
		return EXIT_FAILURE;
	ret = show_all(context, show);
	ibchan_context_close(context);
	return ret ? EXIT_FAILURE : EXIT_SUCCESS;
}
