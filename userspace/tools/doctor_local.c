// SPDX-License-Identifier: LGPL-2.1-or-later
/* ibchan doctor: the checks that need no peer, by what the module, /sys and the system say. */
#include <arpa/inet.h>
#include <errno.h>
#include <glob.h>
#include <grp.h>
#include <ifaddrs.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <linux/capability.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>

#include "doctor.h"

#define NODE		"/dev/ibchan"
#define SYS_DEVICES	"/sys/class/infiniband"
#define SYS_PORT	SYS_DEVICES "/%s/ports/%u"	/* of a device, a number */

/* A line of a file, without its end. False: there is none. */
__printf(3, 4)
static bool read_line(char *line, size_t size, const char *format, ...)
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

/* --- the module --- */

/* Says whether modprobe would find it. */
static bool module_is_installed(const char *release)
{
	FILE *file = fopen(words("/lib/modules/%s/modules.dep", release), "re");
	bool found = false;
	char line[512];

	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file)) {
		line[strcspn(line, ":")] = '\0';
		found = strstr(line, "/ibchan.ko");
	}
	fclose(file);
	return found;
}

static bool find_no_module(void)
{
	const char *fact = access("/sys/module", F_OK) ?
		"There is no " NODE ", and /sys, which tells of modules, is not mounted." :
		"The module is not loaded: there is no /sys/module/ibchan.";
	struct utsname name;
	bool installed;

	uname(&name);
	installed = module_is_installed(name.release);
	return doctor_error("module", "module-absent", "ibchan",
			    "%s\n"
			    "It is %sinstalled for kernel %s%s.\n"
			    "%s",
			    fact, installed ? "" : "not ", name.release,
			    installed ? ", and nobody has loaded it" : "",
			    installed ? "modprobe ibchan" :
			    "dkms install ibchan/VERSION, or make modules and insmod; then run the doctor again.");
}

/* --- its node --- */

static const char *user_name(uid_t uid)
{
	const struct passwd *user = getpwuid(uid);

	return user ? words("%s", user->pw_name) : words("%u", uid);
}

static bool find_not_permitted(int err)
{
	static const char * const ways[] = {
		"Something beside the mode forbids it, such as the device list of a container.\n"
		"Start the container with --device /dev/ibchan, or ask the security module's log.",
		"The udev rule that opens the node to group rdma is not in force.\n"
		"make install puts 60-ibchan.rules there; then udevadm control --reload and udevadm trigger /dev/ibchan.",
	};
	const char *owner = "?", *group = "?", *self = user_name(geteuid());
	const char *way = ways[err != -EPERM];
	const struct group *known;
	struct stat node = { 0 };

	if (!stat(NODE, &node)) {
		owner = user_name(node.st_uid);
		known = getgrgid(node.st_gid);
		group = known ? words("%s", known->gr_name) : words("%u", node.st_gid);
	}
	if (err != -EPERM && (node.st_mode & 0060))
		way = words("The user is not in group %s.\n"
			    "usermod -a -G %s %s, and log in again.", group, group, self);
	return doctor_error("node", "node-not-permitted", NODE,
			    "User %s may not open the node, which belongs to %s:%s with mode %04o (%s).\n"
			    "%s", self, owner, group, node.st_mode & 07777, strerror(-err), way);
}

static bool is_absent(int err)
{
	return err == -ENOENT || err == -ENXIO || err == -ENODEV;
}

/*
 * Where the node opens, the module is there. A node that the user may not open says nothing of the
 * module. Opens the context, if it can.
 */
static bool check_module(struct doctor *doctor)
{
	int err = ibchan_context_open(&doctor->context, NULL);
	const bool shown = !access("/sys/module/ibchan", F_OK);
	struct ibchan_context_attr info;
	char version[64];
	const char *why;
	bool old;

	if (!shown && is_absent(err))
		return find_no_module();
	read_line(version, sizeof(version), "/sys/module/ibchan/version");
	if (!err || shown)
		doctor_fact("module", "ibchan", "loaded%s%s", version[0] ? ", " : "", version);
	if (!err)
		err = ibchan_context_query(doctor->context, &info, NULL);
	if (!err)
		return doctor_fact("node", NODE, "opened, ABI %u", info.abi_version);
	if (err == -EACCES || err == -EPERM)
		return find_not_permitted(err);
	if (is_absent(err))
		return doctor_error("node", "node-absent", NODE,
				    "The module is loaded, but its node does not work: %s.\n"
				    "This process has a /dev of its own, such as a container's.\n"
				    "Start the container with --device /dev/ibchan.",
				    strerror(-err));
	old = err == -EPROTONOSUPPORT;
	why = old ? "The module and this tool are of different versions.\n"
		    "Install module and tool from one version; rmmod ibchan; modprobe ibchan." :
		    "The errno says all that is known.\n"
		    "Look at dmesg for lines of ibchan.";
	return doctor_error(old ? "module" : "node", old ? "module-incompatible" : "node-unusable",
			    NODE,
			    "Opening the node failed: %s.\n"
			    "%s", strerror(-err), why);
}

/* --- pinned memory --- */

/* A capability in a user namespace of its own does not count. */
static bool may_lock_without_limit(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = { 0 };
	char map[64];

	if (syscall(SYS_capget, &header, caps) || !(caps[0].effective >> CAP_IPC_LOCK & 1))
		return false;
	return read_line(map, sizeof(map), "/proc/self/uid_map") && strstr(map, "4294967295");
}

/* This process has pinned nothing yet. */
static bool check_memlock(void)
{
	struct rlimit limit = { 0 };

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur == RLIM_INFINITY || may_lock_without_limit())
		return doctor_fact("memlock", "RLIMIT_MEMLOCK", "no limit for this process");
	if (limit.rlim_cur >= DOCTOR_MEMORY)
		return doctor_fact("memlock", "RLIMIT_MEMLOCK", "%llu bytes",
				   (unsigned long long)limit.rlim_cur);
	return doctor_error("memlock", "memlock-low", "RLIMIT_MEMLOCK",
			    "The process may pin %llu bytes; the doctor's own channel needs %u.\n"
			    "The limit is low (hard limit: %llu), and the process has no CAP_IPC_LOCK.\n"
			    "ulimit -l unlimited; for good: memlock in /etc/security/limits.conf, LimitMEMLOCK= of the service, --ulimit memlock=-1 of the container.",
			    (unsigned long long)limit.rlim_cur, DOCTOR_MEMORY,
			    (unsigned long long)limit.rlim_max);
}

/* --- what devices and ports there are --- */

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
	doctor->devices[doctor->device_count++] = words("%s", name);
	return true;
}

/*
 * The second folder knows devices of other network namespaces too; the module shows devices
 * whether or not /sys is there.
 */
static void scan_devices(struct doctor *doctor)
{
	static struct ibchan_device_attr infos[MAX_DEVICES];
	char name[IBCHAN_NAME_SIZE];
	glob_t found;
	size_t i;
	int n, k;

	if (!glob("/sys/class/infiniband{/*,_verbs/*/ibdev}", GLOB_BRACE, NULL, &found)) {
		for (i = 0; i < found.gl_pathc; i++)
			if (read_line(name, sizeof(name), "%s", found.gl_pathv[i]))
				add_device(doctor, name);
			else if (strcmp(basename(found.gl_pathv[i]), "ibdev"))
				add_device(doctor, basename(found.gl_pathv[i]));
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

/*
 * Up to a GID that will do: without the module, by its rule, on what sysfs says. The port's network
 * device is that of the first entry in use, which may be a VLAN or a bond.
 */
static void read_gids(struct port *port)
{
	struct in6_addr address;
	unsigned int entry;
	char line[64];

	for (entry = 0; !port->gid[0] &&
	     read_line(line, sizeof(line), SYS_PORT "/gids/%u", port->device, port->number, entry);
	     entry++) {
		if (!line[strspn(line, "0:")])
			continue;
		if (!port->gids++)
			read_line(port->netdev, sizeof(port->netdev),
				  SYS_PORT "/gid_attrs/ndevs/%u", port->device, port->number,
				  entry);
		if (inet_pton(AF_INET6, line, &address) != 1 || IN6_IS_ADDR_LINKLOCAL(&address))
			continue;
		read_line(line, sizeof(line), SYS_PORT "/gid_attrs/types/%u", port->device,
			  port->number, entry);
		if (!strcmp(line, "RoCE v2"))
			gid_text(address.s6_addr, port->gid, sizeof(port->gid));
	}
}

static void read_sys(struct port *port)
{
	char line[32];
	glob_t found;

	if (read_line(line, sizeof(line), SYS_PORT "/phys_state", port->device, port->number))
		port->physical = words("%s", strchr(line, ' ') ? strchr(line, ' ') + 1 : line);
	read_line(line, sizeof(line), SYS_PORT "/link_layer", port->device, port->number);
	port->ethernet = !strcmp(line, "Ethernet");
	read_line(line, sizeof(line), SYS_DEVICES "/%s/node_type", port->device);
	port->iwarp = strstr(line, "RNIC");
	read_gids(port);
	/* An empty table does not tell; soft devices are made over one, and hardware has one. */
	if (port->netdev[0] ||
	    read_line(port->netdev, sizeof(port->netdev), SYS_DEVICES "/%s/parent", port->device) ||
	    glob(words(SYS_DEVICES "/%s/device/net/*", port->device), 0, NULL, &found))
		return;
	if (found.gl_pathc >= port->number)
		snprintf(port->netdev, sizeof(port->netdev), "%s",
			 basename(found.gl_pathv[port->number - 1]));
	globfree(&found);
}

/* /sys may be another namespace's; these calls are not. */
static bool ask_netdev(const char *name, unsigned long what, struct ifreq *request)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool ok;

	snprintf(request->ifr_name, sizeof(request->ifr_name), "%.*s", IF_NAMESIZE - 1, name);
	ok = !ioctl(fd, what, request);
	close(fd);
	return ok;
}

/* A bond, a team or a bridge is a master of others, as a VRF is; the driver's name tells. */
static void read_netdev(struct port *port)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
	struct ifreq request = { 0 }, driver = { .ifr_data = (char *)&info };
	char master[64] = "";
	const char *name;

	port->here = ask_netdev(port->netdev, SIOCGIFFLAGS, &request);
	if (!port->here)
		return;
	port->flags = (unsigned short)request.ifr_flags;
	if (ask_netdev(port->netdev, SIOCGIFMTU, &request))
		port->netdev_mtu = (unsigned int)request.ifr_mtu;
	if (readlink(words("/sys/class/net/%s/master", port->netdev), master,
		     sizeof(master) - 1) < 0)
		return;
	name = basename(master);
	if (!ask_netdev(name, SIOCETHTOOL, &driver) || strcmp(info.driver, "vrf"))
		return;
	snprintf(port->vrf, sizeof(port->vrf), "%.*s", IF_NAMESIZE - 1, name);
	/* Only soft-RoCE has such a file. */
	port->deaf = !access(words(SYS_DEVICES "/%s/parent", port->device), F_OK);
}

/* False: neither sysfs nor the module knows the port. */
static bool scan_port(struct doctor *doctor, const char *device, unsigned int number)
{
	struct port *port = &doctor->ports[doctor->port_count];
	struct ibchan_port_attr info = { .gid_index = IBCHAN_AUTO };
	struct ibchan_gid_attr gid;
	char state[32];
	bool shown;

	read_line(state, sizeof(state), SYS_PORT "/state", device, number);
	shown = doctor->context && !ibchan_port_query(doctor->context, device, number, &info, NULL);
	if (doctor->port_count == MAX_PORTS || (!state[0] && !shown))
		return false;
	doctor->port_count++;
	port->device = device;
	port->number = number;
	port->subject = words("%s port %u", device, number);
	port->visible = shown || !doctor->context;
	port->state = (unsigned int)atoi(state);
	port->physical = "unknown";
	if (state[0])
		read_sys(port);
	/* The module's own rule chooses the GID, as a channel will meet it. */
	if (doctor->context)
		port->gid[0] = '\0';
	if (shown) {
		port->state = info.state;
		port->active_mtu = info.active_mtu;
		port->ethernet = info.link_layer != IBCHAN_LINK_LAYER_INFINIBAND;
		port->iwarp = info.link_layer == IBCHAN_LINK_LAYER_IWARP;
	}
	if (info.gid_index != IBCHAN_AUTO) {
		gid_text(info.gid, port->gid, sizeof(port->gid));
		/* Without sysfs, only the module tells of the port's network device. */
		if (!port->netdev[0] &&
		    !ibchan_gid_query(doctor->context, device, number, info.gid_index, &gid, NULL))
			snprintf(port->netdev, sizeof(port->netdev), "%.*s", IF_NAMESIZE - 1,
				 gid.ndev_name);
	}
	if (port->netdev[0])
		read_netdev(port);
	return true;
}

/* --- what is wrong with them --- */

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

const char *netdev_address(const char *netdev, int family)
{
	const char *address = NULL;
	char text[INET6_ADDRSTRLEN];
	struct ifaddrs *all, *a;

	if (getifaddrs(&all))
		return "";
	for (a = all; a && !address; a = a->ifa_next)
		if (!strcmp(a->ifa_name, netdev) && address_text(a->ifa_addr, text, sizeof(text)) &&
		    (!family || a->ifa_addr->sa_family == family))
			address = words("%s", text);
	freeifaddrs(all);
	return address;
}

static bool netdev_is_elsewhere(const struct port *port)
{
	return port->ethernet && port->netdev[0] && !port->here;
}

static void check_devices(const struct doctor *doctor)
{
	const struct port *first = doctor->ports, *port = first, *end = port + doctor->port_count;
	const unsigned int count = doctor->device_count;
	const char *mode = "unknown", *only = doctor->only, *plural = count == 1 ? "" : "s";
	char line[8];

	if (read_line(line, sizeof(line), "/sys/module/ib_core/parameters/netns_mode"))
		mode = line[0] == 'Y' ? "shared" : "exclusive";
	/* Neither the module nor /sys can be asked. */
	if (!doctor->context && access("/sys/class", F_OK))
		return;
	while (port < end && netdev_is_elsewhere(port))
		port++;
	if (!count)
		doctor_error("device", "device-absent", only ? only : "RDMA devices", "%s", only ?
			     "There is no RDMA device with this name.\n"
			     "The name is misspelt, or its driver is not loaded.\n"
			     "rdma link lists the devices." :
			     "There is no RDMA device on this machine.\n"
			     "There is no adapter, or its driver is not loaded.\n"
			     "Load the driver (mlx5_ib, irdma, ...), or try soft-RoCE: modprobe rdma_rxe; rdma link add rxe0 type rxe netdev NETDEV.");
	else if (!doctor->visible)
		doctor_error("namespace", "wrong-namespace", doctor->devices[0],
			     "The machine has %u RDMA device%s, none of them visible in this network namespace.\n"
			     "Devices belong to one network namespace each (mode %s), and these belong to another.\n"
			     "rdma dev set %s netns NAME moves it here; rdma system set netns shared shows all devices everywhere.",
			     count, plural, mode, doctor->devices[0]);
	else if (first < end && port == end)
		doctor_error("namespace", "wrong-namespace", first->device,
			     "%1$s is visible, but its network device %2$s is not in this network namespace.\n"
			     "The device's addresses belong to another namespace (mode %3$s); a channel may not use them from here.\n"
			     "Run in the namespace of %2$s (ip netns exec NAME ...), or move %2$s here (ip link set %2$s netns NAME).",
			     first->device, first->netdev, mode);
	else
		doctor_fact("namespace", mode, "%u of %u device%s visible", doctor->visible, count,
			    plural);
}

static void find_port_down(const struct port *port, enum severity severity)
{
	const bool no_manager = !port->ethernet && port->state == IBCHAN_PORT_INIT;
	const char *name = port->netdev, *way;

	if (no_manager)
		way = "The link is there, but no subnet manager has set the port up.\n"
		      "Start opensm on one host, or the subnet manager of the switch.";
	else if (!port->ethernet)
		way = "The link is not there.\n"
		      "Look at the cable and at the switch: iblinkinfo, ibportstate.";
	else if (!name[0])
		way = "The device does not tell which network device it is over.\n"
		      "rdma link and ip link show what there is.";
	else if (!(port->flags & IFF_UP))
		way = words("The network device %s is switched off.\n"
			    "ip link set %s up", name, name);
	else if (!(port->flags & IFF_RUNNING))
		way = words("The network device %s has no carrier.\n"
			    "Look at the cable and at the switch or the other end: ip -d link show %s; ethtool %s.",
			    name, name, name);
	else
		way = words("The network device %s is up; the RDMA port has not followed.\n"
			    "Run the doctor again in a second; then look at dmesg for lines of the driver.",
			    name);
	doctor_say(severity, "port", no_manager ? "port-no-subnet-manager" : "port-down",
		   port->subject,
		   "The port is not active (state %u, physical state %s).\n"
		   "%s", port->state, port->physical, way);
}

static void find_no_gid(const struct port *port, enum severity severity)
{
	const char *name = port->netdev, *address = netdev_address(name, 0), *way;

	if (address && address[0])
		way = words("%s has the address %s, but the device has no GID for it yet.\n"
			    "Run the doctor again in a second; then delete the address and add it again.",
			    name, address);
	else
		way = words("The network device %s has no IP address that will do.\n"
			    "ip address add ADDRESS/LENGTH dev %s", name, name);
	doctor_say(severity, "gid", "gid-absent", port->subject,
		   "None of the %u GIDs of the port will do: a channel needs one of RoCE v2 whose address its network device has, and no other host.\n"
		   "%s", port->gids, way);
}

bool find_deaf(const struct port *port, enum severity severity)
{
	return doctor_say(severity, "vrf", "soft-roce-in-vrf", port->subject,
			  "%s is a soft-RoCE device, and %s is in the VRF %s: it receives nothing.\n"
			  "A VRF hands packets on as its own, and the driver looks for a device that is over the VRF itself; no sysctl changes that.\n"
			  "ip link set %s nomaster; or take an adapter, which does not see the VRF.",
			  port->device, port->netdev, port->vrf, port->netdev);
}

static void say_port(const struct port *port)
{
	doctor_fact("port", port->subject, "active%s%s",
		    port->active_mtu ? words(", MTU %u", port->active_mtu) : "",
		    !port->netdev[0] ? "" :
		    words(" over %s with MTU %u", port->netdev, port->netdev_mtu));
	if (port->gid[0])
		doctor_fact("gid", port->subject, "%s", port->gid);
	if (port->vrf[0])
		doctor_fact("vrf", port->subject,
			    "in %s: by address it connects from its own address only, as a source",
			    port->vrf);
}

static bool port_is_usable(const struct port *port)
{
	if (!port->visible || port->state != IBCHAN_PORT_ACTIVE || port->deaf)
		return false;
	return !port->ethernet || (port->here && (port->iwarp || port->gid[0]));
}

/* An unused second port is not worth an error as long as another one works. */
static void check_ports(const struct doctor *doctor)
{
	const struct port *port, *end = doctor->ports + doctor->port_count;
	enum severity severity = SEVERITY_ERROR;

	for (port = doctor->ports; port < end; port++)
		if (port_is_usable(port))
			severity = SEVERITY_WARNING;
	for (port = doctor->ports; port < end; port++) {
		/* The doctor judges no port of another namespace. */
		if (!port->visible || netdev_is_elsewhere(port))
			continue;
		if (port->state != IBCHAN_PORT_ACTIVE)
			find_port_down(port, severity);
		else if (port->deaf)
			find_deaf(port, severity);
		else if (!port_is_usable(port))
			find_no_gid(port, severity);
		else
			say_port(port);
	}
}

bool check_machine(struct doctor *doctor)
{
	bool ready = check_module(doctor);
	unsigned int i, number;

	ready &= check_memlock();
	scan_devices(doctor);
	for (i = 0; i < doctor->device_count; i++)
		for (number = 1; scan_port(doctor, doctor->devices[i], number); number++)
			;
	check_devices(doctor);
	check_ports(doctor);
	return ready;
}
