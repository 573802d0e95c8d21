// SPDX-License-Identifier: LGPL-2.1-or-later
/* ibchan doctor: devices and ports, from /sys, /proc and the module. */
#include <arpa/inet.h>
#include <err.h>
#include <glob.h>
#include <ifaddrs.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>

#include "doctor.h"

#define SYS_DEVICES	"/sys/class/infiniband"
#define SYS_PORT	SYS_DEVICES "/%s/ports/%u"	/* of a device, a number */

bool read_line(char *line, size_t size, const char *format, ...)
{
	char path[256];
	va_list args;
	FILE *file;
	bool ok;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	line[0] = '\0';
	file = fopen(path, "re");
	if (!file)
		return false;
	ok = fgets(line, (int)size, file);
	fclose(file);
	line[strcspn(line, "\n")] = '\0';
	return ok;
}

/* --- devices --- */

/* Says whether the doctor looks at the device. */
static bool add_device(struct doctor *doctor, const char *name)
{
	unsigned int i;

	if (doctor->only && strcmp(doctor->only, name))
		return false;
	for (i = 0; i < doctor->device_count; i++)
		if (!strcmp(doctor->devices[i], name))
			return true;
	if (i == MAX_DEVICES)
		return false;
	doctor->devices[i] = strdup(name);
	if (!doctor->devices[i])
		errx(EX_OSERR, "doctor: out of memory");
	doctor->device_count++;
	return true;
}

/*
 * The second folder knows devices of other network namespaces too; the module shows devices
 * whether or not /sys is there.
 */
static void scan_devices(struct doctor *doctor)
{
	static struct ibchan_device_info infos[MAX_DEVICES];
	char name[IBCHAN_NAME_SIZE];
	glob_t found;
	size_t i;
	int n, k;

	if (!glob(SYS_DEVICES "/*", 0, NULL, &found)) {
		for (i = 0; i < found.gl_pathc; i++)
			add_device(doctor, strrchr(found.gl_pathv[i], '/') + 1);
		globfree(&found);
	}
	if (!glob("/sys/class/infiniband_verbs/*/ibdev", 0, NULL, &found)) {
		for (i = 0; i < found.gl_pathc; i++)
			if (read_line(name, sizeof(name), "%s", found.gl_pathv[i]))
				add_device(doctor, name);
		globfree(&found);
	}
	doctor->visible = doctor->device_count;
	if (!doctor->context)
		return;
	doctor->visible = 0;
	n = ibchan_device_list(doctor->context, infos, MAX_DEVICES, NULL);
	for (k = 0; k < n && k < MAX_DEVICES; k++)
		doctor->visible += add_device(doctor, infos[k].name);
}

/* --- network devices --- */

bool address_text(const struct sockaddr *address, char *buf, socklen_t size)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;

	if (!address)
		return false;
	if (address->sa_family == AF_INET)
		return inet_ntop(AF_INET, &v4->sin_addr, buf, size);
	return address->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr) &&
	       inet_ntop(AF_INET6, &v6->sin6_addr, buf, size);
}

static int ask_netdev(const char *name, unsigned long what, struct ifreq *request)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int ret;

	if (fd < 0)
		return -1;
	snprintf(request->ifr_name, sizeof(request->ifr_name), "%.*s", IF_NAMESIZE - 1, name);
	ret = ioctl(fd, what, request);
	close(fd);
	return ret;
}

/* /sys may be another namespace's; these calls are not. */
static void read_netdev(struct netdev *netdev)
{
	struct ifreq request = { 0 };
	char text[INET6_ADDRSTRLEN];
	struct ifaddrs *all, *a;

	if (ask_netdev(netdev->name, SIOCGIFFLAGS, &request))
		return;
	netdev->here = true;
	netdev->up = request.ifr_flags & IFF_UP;
	netdev->running = request.ifr_flags & IFF_RUNNING;
	if (!ask_netdev(netdev->name, SIOCGIFMTU, &request))
		netdev->mtu = (unsigned int)request.ifr_mtu;
	if (getifaddrs(&all)) {
		/* Nobody can say that one is missing. */
		netdev->has_ipv4 = true;
		netdev->has_ipv6 = true;
		return;
	}
	for (a = all; a; a = a->ifa_next) {
		if (strcmp(a->ifa_name, netdev->name) ||
		    !address_text(a->ifa_addr, text, sizeof(text)))
			continue;
		netdev->has_ipv4 |= a->ifa_addr->sa_family == AF_INET;
		netdev->has_ipv6 |= a->ifa_addr->sa_family == AF_INET6;
		if (!netdev->address[0])
			memcpy(netdev->address, text, sizeof(text));
	}
	freeifaddrs(all);
}

/* A bond, a team or a bridge is a master, too; the driver's name tells. */
static void read_vrf(struct netdev *netdev)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
	struct ifreq request = { .ifr_data = (char *)&info };
	char path[64], master[64];
	const char *name;
	ssize_t length;

	snprintf(path, sizeof(path), "/sys/class/net/%s/master", netdev->name);
	length = readlink(path, master, sizeof(master) - 1);
	if (length < 0)
		return;
	master[length] = '\0';
	name = strrchr(master, '/') ? strrchr(master, '/') + 1 : master;
	if (!ask_netdev(name, SIOCETHTOOL, &request) && !strcmp(info.driver, "vrf"))
		snprintf(netdev->vrf, sizeof(netdev->vrf), "%.*s", IF_NAMESIZE - 1, name);
}

/* --- ports --- */

/*
 * The device that an entry of the table belongs to, which may be a VLAN or a bond; for an
 * empty table what soft devices are made over, or what the hardware has.
 */
static void find_netdev(struct port *port, unsigned int entry)
{
	struct netdev *netdev = &port->netdev;
	char pattern[128];
	glob_t found;

	if (port->gids && read_line(netdev->name, sizeof(netdev->name),
				    SYS_PORT "/gid_attrs/ndevs/%u", port->device, port->number,
				    entry))
		return;
	if (read_line(netdev->name, sizeof(netdev->name), SYS_DEVICES "/%s/parent", port->device))
		return;
	snprintf(pattern, sizeof(pattern), SYS_DEVICES "/%s/device/net/*", port->device);
	if (glob(pattern, 0, NULL, &found))
		return;
	if (found.gl_pathc >= port->number)
		snprintf(netdev->name, sizeof(netdev->name), "%s",
			 strrchr(found.gl_pathv[port->number - 1], '/') + 1);
	globfree(&found);
}

/*
 * Up to a GID that will do: without the module, by its rule, on what sysfs says. Returns the first
 * entry in use.
 */
static unsigned int scan_gids(struct port *port)
{
	unsigned int first = 0, entry;
	struct in6_addr address;
	char line[64];

	for (entry = 0; !port->gid[0] &&
	     read_line(line, sizeof(line), SYS_PORT "/gids/%u", port->device, port->number, entry);
	     entry++) {
		if (!line[strspn(line, "0:")])
			continue;
		if (!port->gids++)
			first = entry;
		if (inet_pton(AF_INET6, line, &address) != 1 || IN6_IS_ADDR_LINKLOCAL(&address))
			continue;
		read_line(line, sizeof(line), SYS_PORT "/gid_attrs/types/%u", port->device,
			  port->number, entry);
		if (!strcmp(line, "RoCE v2"))
			gid_text(address.s6_addr, port->gid, sizeof(port->gid));
	}
	return first;
}

/* The module's own rule chooses the GID, as a channel will meet it. */
static void read_module(struct doctor *doctor, struct port *port,
			const struct ibchan_port_info *info)
{
	struct ibchan_gid_info gid;

	port->state = info->state;
	port->active_mtu = info->active_mtu;
	port->ethernet = info->link_layer != IBCHAN_LINK_LAYER_INFINIBAND;
	port->iwarp = info->link_layer == IBCHAN_LINK_LAYER_IWARP;
	if (info->gid_index == IBCHAN_AUTO)
		return;
	gid_text(info->gid, port->gid, sizeof(port->gid));
	/* Without sysfs, only the module tells of the port's network device. */
	if (!port->netdev.name[0] && !ibchan_gid_query(doctor->context, port->device, port->number,
						       info->gid_index, &gid, NULL))
		snprintf(port->netdev.name, sizeof(port->netdev.name), "%.*s", IF_NAMESIZE - 1,
			 gid.ndev_name);
}

static void read_sys(struct port *port)
{
	char path[128];
	char line[32];

	if (read_line(line, sizeof(line), SYS_PORT "/phys_state", port->device, port->number))
		snprintf(port->physical, sizeof(port->physical), "%s",
			 strchr(line, ' ') ? strchr(line, ' ') + 1 : line);
	read_line(line, sizeof(line), SYS_PORT "/link_layer", port->device, port->number);
	port->ethernet = !strcmp(line, "Ethernet");
	read_line(line, sizeof(line), SYS_DEVICES "/%s/node_type", port->device);
	port->iwarp = strstr(line, "RNIC");
	snprintf(path, sizeof(path), SYS_DEVICES "/%s/parent", port->device);
	port->soft = !access(path, F_OK);
	find_netdev(port, scan_gids(port));
}

/* False: neither sysfs nor the module knows the port. */
static bool scan_port(struct doctor *doctor, const char *device, unsigned int number)
{
	struct port *port = &doctor->ports[doctor->port_count];
	struct ibchan_port_info info;
	char state[32];
	bool shown;

	read_line(state, sizeof(state), SYS_PORT "/state", device, number);
	shown = doctor->context && !ibchan_port_query(doctor->context, device, number, &info, NULL);
	if (doctor->port_count == MAX_PORTS || (!state[0] && !shown))
		return false;
	doctor->port_count++;
	port->device = device;
	port->number = number;
	port->visible = shown || !doctor->context;
	port->state = (unsigned int)atoi(state);
	snprintf(port->subject, sizeof(port->subject), "%s port %u", device, number);
	snprintf(port->physical, sizeof(port->physical), "unknown");
	if (state[0])
		read_sys(port);
	if (doctor->context)
		port->gid[0] = '\0';
	if (shown)
		read_module(doctor, port, &info);
	if (port->netdev.name[0])
		read_netdev(&port->netdev);
	if (port->netdev.here)
		read_vrf(&port->netdev);
	return true;
}

void doctor_scan(struct doctor *doctor)
{
	unsigned int number;
	unsigned int i;

	scan_devices(doctor);
	for (i = 0; i < doctor->device_count; i++)
		for (number = 1; scan_port(doctor, doctor->devices[i], number); number++)
			;
}

bool port_is_deaf(const struct port *port)
{
	return port->soft && port->netdev.vrf[0];
}

bool port_is_usable(const struct port *port)
{
	if (!port->visible || port->state != IBCHAN_PORT_ACTIVE || port_is_deaf(port))
		return false;
	return !port->ethernet || (port->netdev.here && (port->iwarp || port->gid[0]));
}
