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

static void add_device(struct doctor *doctor, const char *name)
{
	unsigned int i;

	if (doctor->only && strcmp(doctor->only, name))
		return;
	for (i = 0; i < doctor->device_count; i++)
		if (!strcmp(doctor->devices[i], name))
			return;
	if (i == MAX_DEVICES)
		return;
	doctor->devices[i] = strdup(name);
	if (!doctor->devices[i])
		errx(EX_OSERR, "doctor: out of memory");
	doctor->device_count++;
}

/* The module shows devices whether or not /sys is there. */
static void list_devices(struct doctor *doctor)
{
	static struct ibchan_device_info infos[MAX_DEVICES];
	int i, n;

	if (!doctor->context)
		return;
	n = ibchan_device_list(doctor->context, infos, MAX_DEVICES, NULL);
	for (i = 0; i < n && i < MAX_DEVICES; i++)
		add_device(doctor, infos[i].name);
}

/* The second folder knows devices of other network namespaces too. */
static void scan_devices(struct doctor *doctor)
{
	char name[IBCHAN_NAME_SIZE];
	glob_t found;
	size_t i;

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
	list_devices(doctor);
}

/* --- network devices --- */

static void read_flags(struct netdev *netdev)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { 0 };

	if (fd < 0)
		return;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", netdev->name);
	if (!ioctl(fd, SIOCGIFFLAGS, &request)) {
		netdev->here = true;
		netdev->up = request.ifr_flags & IFF_UP;
		netdev->running = request.ifr_flags & IFF_RUNNING;
	}
	if (netdev->here && !ioctl(fd, SIOCGIFMTU, &request))
		netdev->mtu = (unsigned int)request.ifr_mtu;
	close(fd);
}

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

static void read_address(struct netdev *netdev)
{
	struct ifaddrs *all;
	struct ifaddrs *a;

	if (getifaddrs(&all))
		return;
	for (a = all; a && !netdev->address[0]; a = a->ifa_next)
		if (!strcmp(a->ifa_name, netdev->name))
			address_text(a->ifa_addr, netdev->address, sizeof(netdev->address));
	freeifaddrs(all);
}

/* A bond, a team or a bridge is a master, too. */
static bool is_vrf(const char *name)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
	struct ifreq request = { .ifr_data = (char *)&info };
	bool is_one;

	if (fd < 0)
		return false;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%.*s", IF_NAMESIZE - 1, name);
	is_one = !ioctl(fd, SIOCETHTOOL, &request) && !strcmp(info.driver, "vrf");
	close(fd);
	return is_one;
}

static void read_vrf(struct netdev *netdev)
{
	char path[64], master[64];
	const char *name;
	ssize_t length;

	snprintf(path, sizeof(path), "/sys/class/net/%s/master", netdev->name);
	length = readlink(path, master, sizeof(master) - 1);
	if (length < 0)
		return;
	master[length] = '\0';
	name = strrchr(master, '/') ? strrchr(master, '/') + 1 : master;
	if (is_vrf(name))
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
				    SYS_DEVICES "/%s/ports/%u/gid_attrs/ndevs/%u",
				    port->device, port->number, entry))
		return;
	if (read_line(netdev->name, sizeof(netdev->name), SYS_DEVICES "/%s/parent",
		      port->device))
		return;
	snprintf(pattern, sizeof(pattern), SYS_DEVICES "/%s/device/net/*", port->device);
	if (glob(pattern, 0, NULL, &found))
		return;
	if (found.gl_pathc >= port->number)
		snprintf(netdev->name, sizeof(netdev->name), "%s",
			 strrchr(found.gl_pathv[port->number - 1], '/') + 1);
	globfree(&found);
}

static bool gid_is_set(const char *gid)
{
	return gid[0] && strspn(gid, "0:") != strlen(gid);
}

/* Without the module: the same rule by what sysfs says. */
static void judge_gid(struct port *port, const char *gid, unsigned int entry)
{
	struct in6_addr address;
	char type[32];

	if (inet_pton(AF_INET6, gid, &address) != 1 ||
	    IN6_IS_ADDR_LINKLOCAL(&address))
		return;
	read_line(type, sizeof(type), SYS_DEVICES "/%s/ports/%u/gid_attrs/types/%u",
		  port->device, port->number, entry);
	if (strcmp(type, "RoCE v2"))
		return;
	gid_text(address.s6_addr, port->gid, sizeof(port->gid));
}

/* Up to one that will do. Returns the first entry in use. */
static unsigned int scan_gids(struct port *port)
{
	unsigned int first = 0;
	unsigned int entry;
	char gid[64];

	for (entry = 0; !port->gid[0] &&
	     read_line(gid, sizeof(gid), SYS_DEVICES "/%s/ports/%u/gids/%u", port->device,
		       port->number, entry); entry++) {
		if (!gid_is_set(gid))
			continue;
		if (!port->gids++)
			first = entry;
		judge_gid(port, gid, entry);
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

	if (read_line(line, sizeof(line), SYS_DEVICES "/%s/ports/%u/phys_state", port->device,
		      port->number))
		snprintf(port->physical, sizeof(port->physical), "%s",
			 strchr(line, ' ') ? strchr(line, ' ') + 1 : line);
	read_line(line, sizeof(line), SYS_DEVICES "/%s/ports/%u/link_layer", port->device,
		  port->number);
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

	read_line(state, sizeof(state), SYS_DEVICES "/%s/ports/%u/state", device, number);
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
	/* /sys may be another namespace's; these calls are not, but for the last. */
	if (port->netdev.name[0])
		read_flags(&port->netdev);
	if (port->netdev.here) {
		read_address(&port->netdev);
		read_vrf(&port->netdev);
	}
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
