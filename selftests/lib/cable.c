// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>

#include "cable.h"
#include "namespace.h"

#define NEAR_MAC	"02:00:00:88:00:01"
#define FAR_MAC		"02:00:00:88:00:02"

int sh(const char *format, ...)
{
	char line[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	return run_script(line);
}

/* Traffic between two devices of one namespace, without asking who has an address. */
static int ndev_tuned(const char *ndev)
{
	return sh("echo 1 >/proc/sys/net/ipv4/conf/%1$s/accept_local;"
		  "echo 0 >/proc/sys/net/ipv4/conf/%1$s/rp_filter;"
		  "echo 0 >/proc/sys/net/ipv6/conf/%1$s/accept_dad", ndev);
}

/* One ip for many lines: an emulated CPU starts programs slowly. */
#define IP(lines)	"ip -batch - <<-END\n" lines "END\n"

static int ndevs_addressed(const char *near, const char *far, const char *net)
{
	return sh(IP("link set %1$s up\n"
		     "link set %2$s up\n"
		     "addr replace %3$s.1/24 dev %1$s\n"
		     "addr replace %3$s.2/24 dev %2$s\n"
		     "neigh replace %3$s.2 lladdr " FAR_MAC " dev %1$s nud permanent\n"
		     "neigh replace %3$s.1 lladdr " NEAR_MAC " dev %2$s nud permanent\n"),
		  near, far, net);
}

int ndevs_up(const char *near, const char *far, const char *net)
{
	return ndev_tuned(near) || ndev_tuned(far) || ndevs_addressed(near, far, net);
}

int cable_links_up(void)
{
	return ndevs_addressed("w0", "w1", "10.88.0");
}

#define PAIR	"type veth peer name w1 address " FAR_MAC

int cable_lay(void)
{
	return sh(IP("link add w0 address " NEAR_MAC " " PAIR "\n")) ||
	       ndevs_up("w0", "w1", "10.88.0") ||
	       sh("rdma link add " CABLE_NEAR " type rxe netdev w0;"
		  "rdma link add " CABLE_FAR " type rxe netdev w1");
}

void cable_cut(void)
{
	sh("rdma link delete " CABLE_NEAR " || :; rdma link delete " CABLE_FAR " || :;"
	   "ip link delete w0");
}
