// SPDX-License-Identifier: LGPL-2.1-or-later
/* ibchan doctor: the checks that need no peer. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "doctor.h"

#define NODE		"/dev/ibchan"
#define CAP_IPC_LOCK	14

/* --- the module --- */

/* Says whether modprobe would find it. */
static bool module_is_installed(const char *release)
{
	char path[256];
	char line[512];
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/lib/modules/%s/modules.dep", release);
	file = fopen(path, "re");
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

/* A module whose node opens is there; a node that may not be opened says nothing of the module. */
bool check_module(struct doctor *doctor)
{
	int err = ibchan_context_open(&doctor->context, NULL);
	char version[64];
	bool shown = !access("/sys/module/ibchan", F_OK);

	doctor->node_error = err;
	if (!shown && (err == -ENOENT || err == -ENXIO || err == -ENODEV))
		return find_no_module();
	read_line(version, sizeof(version), "/sys/module/ibchan/version");
	if (!err || shown)
		doctor_fact("module", "ibchan", "loaded%s%s", version[0] ? ", " : "", version);
	return true;
}

/* --- its node --- */

static void user_name(uid_t uid, char *buf, size_t size)
{
	const struct passwd *user = getpwuid(uid);

	snprintf(buf, size, "%u", uid);
	if (user)
		snprintf(buf, size, "%s", user->pw_name);
}

static bool find_not_permitted(int err)
{
	char owner[64] = "?", group[64] = "?", self[64], way[TEXT_SIZE];
	const struct group *known = NULL;
	struct stat node = { 0 };

	if (!stat(NODE, &node)) {
		user_name(node.st_uid, owner, sizeof(owner));
		snprintf(group, sizeof(group), "%u", node.st_gid);
		known = getgrgid(node.st_gid);
	}
	if (known)
		snprintf(group, sizeof(group), "%s", known->gr_name);
	user_name(geteuid(), self, sizeof(self));
	if (err == -EPERM)
		snprintf(way, sizeof(way),
			 "Something beside the mode forbids it, such as the device list of a container.\n"
			 "Start the container with --device /dev/ibchan, or ask the security module's log.");
	else if (node.st_mode & 0060)
		snprintf(way, sizeof(way),
			 "The user is not in group %s.\n"
			 "usermod -a -G %s %s, and log in again.", group, group, self);
	else
		snprintf(way, sizeof(way),
			 "The udev rule that opens the node to group rdma is not in force.\n"
			 "make install puts 60-ibchan.rules there; then udevadm control --reload and udevadm trigger /dev/ibchan.");
	return doctor_error("node", "node-not-permitted", NODE,
			    "User %s may not open the node, which belongs to %s:%s with mode %04o (%s).\n"
			    "%s",
			    self, owner, group, node.st_mode & 07777, strerror(-err), way);
}

bool check_node(const struct doctor *doctor)
{
	struct ibchan_context_info info;
	int err = doctor->node_error;

	if (!err)
		err = ibchan_context_query(doctor->context, &info, NULL);
	switch (err) {
	case 0:
		doctor_fact("node", NODE, "opened, ABI %u", info.abi_version);
		return true;
	case -EACCES:
	case -EPERM:
		return find_not_permitted(err);
	case -ENOENT:
	case -ENXIO:
	case -ENODEV:
		return doctor_error("node", "node-absent", NODE,
				    "The module is loaded, but its node does not work: %s.\n"
				    "This process has a /dev of its own, such as a container's.\n"
				    "Start the container with --device /dev/ibchan.",
				    strerror(-err));
	case -EPROTONOSUPPORT:
		return doctor_error("module", "module-incompatible", NODE,
				    "Opening the node failed: %s.\n"
				    "The module and this tool are of different versions.\n"
				    "Install module and tool from one version; rmmod ibchan; modprobe ibchan.",
				    strerror(-err));
	default:
		return doctor_error("node", "node-unusable", NODE,
				    "Opening the node failed: %s.\n"
				    "The errno says all that is known.\n"
				    "Look at dmesg for lines of ibchan.",
				    strerror(-err));
	}
}

/* --- pinned memory --- */

static unsigned long long status_value(const char *key, int base)
{
	unsigned long long value = 0;
	char line[256];
	FILE *file = fopen("/proc/self/status", "re");

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, key, strlen(key)))
			value = strtoull(line + strlen(key), NULL, base);
	fclose(file);
	return value;
}

/* A capability in a user namespace of its own does not count. */
static bool may_lock_without_limit(void)
{
	char map[64];

	if (!(status_value("CapEff:", 16) >> CAP_IPC_LOCK & 1))
		return false;
	return !read_line(map, sizeof(map), "/proc/self/uid_map") || strstr(map, "4294967295");
}

bool check_memlock(void)
{
	unsigned long long used = status_value("VmPin:", 10) << 10;
	struct rlimit limit = { 0 };

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur == RLIM_INFINITY || may_lock_without_limit())
		doctor_fact("memlock", "RLIMIT_MEMLOCK", "no limit for this process");
	else if (used + DOCTOR_MEMORY <= limit.rlim_cur)
		doctor_fact("memlock", "RLIMIT_MEMLOCK", "%llu bytes",
			    (unsigned long long)limit.rlim_cur);
	else
		return doctor_error("memlock", "memlock-low", "RLIMIT_MEMLOCK",
				    "The process may pin %llu bytes; the doctor's own channel needs %u.\n"
				    "The limit is low (hard limit: %llu), and the process has no CAP_IPC_LOCK.\n"
				    "ulimit -l unlimited; for good: memlock in /etc/security/limits.conf, LimitMEMLOCK= of the service, --ulimit memlock=-1 of the container.",
				    (unsigned long long)limit.rlim_cur, DOCTOR_MEMORY,
				    (unsigned long long)limit.rlim_max);
	return true;
}

/* --- devices and namespaces --- */

/* If all ports are Ethernet and their network devices in other namespaces: the first. Else NULL. */
static const struct port *all_ports_elsewhere(const struct doctor *doctor)
{
	const struct port *port = doctor->ports, *end = port + doctor->port_count;

	for (; port < end; port++)
		if (!port->ethernet || !port->netdev.name[0] || port->netdev.here)
			return NULL;
	return doctor->port_count ? doctor->ports : NULL;
}

static void find_no_device(const char *only)
{
	if (only)
		doctor_error("device", "device-absent", only,
			     "There is no RDMA device with this name.\n"
			     "The name is misspelt, or its driver is not loaded.\n"
			     "rdma link lists the devices.");
	else
		doctor_error("device", "device-absent", "RDMA devices",
			     "There is no RDMA device on this machine.\n"
			     "There is no adapter, or its driver is not loaded.\n"
			     "Load the driver (mlx5_ib, irdma, ...), or try soft-RoCE: modprobe rdma_rxe; rdma link add rxe0 type rxe netdev NETDEV.");
}

void check_devices(const struct doctor *doctor)
{
	const struct port *elsewhere = all_ports_elsewhere(doctor);
	const unsigned int count = doctor->device_count;
	const char *mode = "unknown", *plural = count == 1 ? "" : "s";
	char line[8];

	if (read_line(line, sizeof(line), "/sys/module/ib_core/parameters/netns_mode"))
		mode = line[0] == 'Y' ? "shared" : "exclusive";
	/* Neither the module nor /sys can be asked. */
	if (!doctor->context && access("/sys/class", F_OK))
		return;
	if (!count)
		find_no_device(doctor->only);
	else if (!doctor->visible)
		doctor_error("namespace", "wrong-namespace", doctor->devices[0],
			     "The machine has %u RDMA device%s, none of them visible in this network namespace.\n"
			     "Devices belong to one network namespace each (mode %s), and these belong to another.\n"
			     "rdma dev set %s netns NAME moves it here; rdma system set netns shared shows all devices everywhere.",
			     count, plural, mode, doctor->devices[0]);
	else if (elsewhere)
		doctor_error("namespace", "wrong-namespace", elsewhere->device,
			     "%1$s is visible, but its network device %2$s is not in this network namespace.\n"
			     "The device's addresses belong to another namespace (mode %3$s); a channel may not use them from here.\n"
			     "Run in the namespace of %2$s (ip netns exec NAME ...), or move %2$s here (ip link set %2$s netns NAME).",
			     elsewhere->device, elsewhere->netdev.name, mode);
	else
		doctor_fact("namespace", mode, "%u of %u device%s visible", doctor->visible, count,
			    plural);
}

/* --- ports --- */

static void find_port_down(const struct port *port, enum severity severity)
{
	const bool no_manager = !port->ethernet && port->state == IBCHAN_PORT_INIT;
	const char *name = port->netdev.name;
	char way[TEXT_SIZE];

	if (no_manager)
		snprintf(way, sizeof(way),
			 "The link is there, but no subnet manager has set the port up.\n"
			 "Start opensm on one host, or the subnet manager of the switch.");
	else if (!port->ethernet)
		snprintf(way, sizeof(way),
			 "The link is not there.\n"
			 "Look at the cable and at the switch: iblinkinfo, ibportstate.");
	else if (!name[0])
		snprintf(way, sizeof(way),
			 "The device does not tell which network device it is over.\n"
			 "rdma link and ip link show what there is.");
	else if (!port->netdev.up)
		snprintf(way, sizeof(way),
			 "The network device %s is switched off.\n"
			 "ip link set %s up", name, name);
	else if (!port->netdev.running)
		snprintf(way, sizeof(way),
			 "The network device %s has no carrier.\n"
			 "Look at the cable and at the switch or the other end: ip -d link show %s; ethtool %s.",
			 name, name, name);
	else
		snprintf(way, sizeof(way),
			 "The network device %s is up; the RDMA port has not followed.\n"
			 "Run the doctor again in a second; then look at dmesg for lines of the driver.",
			 name);
	doctor_say(severity, "port", no_manager ? "port-no-subnet-manager" : "port-down",
		   port->subject,
		   "The port is not active (state %u, physical state %s).\n"
		   "%s", port->state, port->physical, way);
}

static void find_no_gid(const struct port *port, enum severity severity)
{
	const struct netdev *netdev = &port->netdev;
	char way[TEXT_SIZE];

	if (netdev->address[0])
		snprintf(way, sizeof(way),
			 "%s has the address %s, but the device has no GID for it yet.\n"
			 "Run the doctor again in a second; then delete the address and add it again.",
			 netdev->name, netdev->address);
	else
		snprintf(way, sizeof(way),
			 "The network device %s has no IP address that will do.\n"
			 "ip address add ADDRESS/LENGTH dev %s", netdev->name, netdev->name);
	doctor_say(severity, "gid", "gid-absent", port->subject,
		   "None of the %u GIDs of the port will do: a channel needs one of RoCE v2 whose address its network device has, and no other host.\n"
		   "%s", port->gids, way);
}

void find_deaf(const struct port *port, enum severity severity)
{
	doctor_say(severity, "vrf", "soft-roce-in-vrf", port->subject,
		   "%s is a soft-RoCE device, and %s is in the VRF %s: it receives nothing.\n"
		   "A VRF hands packets on as its own, and the driver looks for a device that is over the VRF itself; no sysctl changes that.\n"
		   "ip link set %s nomaster; or take an adapter, which does not see the VRF.",
		   port->device, port->netdev.name, port->netdev.vrf, port->netdev.name);
}

static void say_port(const struct port *port)
{
	char mtu[32] = "", over[64] = "";

	if (port->active_mtu)
		snprintf(mtu, sizeof(mtu), ", MTU %u", port->active_mtu);
	if (port->netdev.name[0])
		snprintf(over, sizeof(over), " over %s with MTU %u", port->netdev.name,
			 port->netdev.mtu);
	doctor_fact("port", port->subject, "active%s%s", mtu, over);
	if (port->gid[0])
		doctor_fact("gid", port->subject, "%s", port->gid);
	if (port->netdev.vrf[0])
		doctor_fact("vrf", port->subject,
			    "in %s: by address it connects from its own address only, as a source",
			    port->netdev.vrf);
}

/* An unused second port is not worth an error as long as another one works. */
void check_ports(const struct doctor *doctor)
{
	const struct port *port, *end = doctor->ports + doctor->port_count;
	enum severity severity = SEVERITY_ERROR;

	for (port = doctor->ports; port < end; port++)
		if (port_is_usable(port))
			severity = SEVERITY_WARNING;
	for (port = doctor->ports; port < end; port++) {
		/* The doctor judges no port of another namespace. */
		if (!port->visible ||
		    (port->ethernet && port->netdev.name[0] && !port->netdev.here))
			continue;
		if (port->state != IBCHAN_PORT_ACTIVE)
			find_port_down(port, severity);
		else if (port_is_deaf(port))
			find_deaf(port, severity);
		else if (!port_is_usable(port))
			find_no_gid(port, severity);
		else
			say_port(port);
	}
}
