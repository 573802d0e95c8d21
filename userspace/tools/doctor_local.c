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
#include "doctor_link.h"

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

static bool find_no_module(struct doctor *doctor)
{
	const char *fact = access("/sys/module", F_OK) ?
		"There is no " NODE ", and /sys, which tells of modules, is not mounted." :
		"The module is not loaded: there is no /sys/module/ibchan.";
	struct utsname name;

	uname(&name);
	if (module_is_installed(name.release))
		return doctor_find(doctor, FINDING_MODULE_ABSENT, SEVERITY_ERROR, "ibchan",
				   "%s\n"
				   "It is installed for kernel %s, and nobody has loaded it.\n"
				   "modprobe ibchan",
				   fact, name.release);
	return doctor_find(doctor, FINDING_MODULE_ABSENT, SEVERITY_ERROR, "ibchan",
			   "%s\n"
			   "It is not installed for kernel %s.\n"
			   "dkms install ibchan/VERSION, or make modules and insmod; then run the doctor again.",
			   fact, name.release);
}

/* A module whose node opens is there; a node that may not be opened says nothing of the module. */
bool check_module(struct doctor *doctor)
{
	int err = ibchan_context_open(&doctor->context, NULL);
	char version[64];
	bool shown = !access("/sys/module/ibchan", F_OK);

	doctor->node_error = err;
	if (!shown && (err == -ENOENT || err == -ENXIO || err == -ENODEV))
		return find_no_module(doctor);
	read_line(version, sizeof(version), "/sys/module/ibchan/version");
	if (!err || shown)
		doctor_fact(doctor, "module", "ibchan", "loaded%s%s", version[0] ? ", " : "",
			    version);
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

static bool find_not_permitted(struct doctor *doctor, int err)
{
	char owner[64] = "?", group[64] = "?", self[64], fact[TEXT_SIZE];
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
	snprintf(fact, sizeof(fact),
		 "User %s may not open the node, which belongs to %s:%s with mode %04o (%s).",
		 self, owner, group, node.st_mode & 07777, strerror(-err));
	if (err == -EPERM)
		return doctor_find(doctor, FINDING_NODE_NOT_PERMITTED, SEVERITY_ERROR, NODE,
				   "%s\n"
				   "Something beside the mode forbids it, such as the device list of a container.\n"
				   "Start the container with --device /dev/ibchan, or ask the security module's log.",
				   fact);
	if (node.st_mode & 0060)
		return doctor_find(doctor, FINDING_NODE_NOT_PERMITTED, SEVERITY_ERROR, NODE,
				   "%s\n"
				   "The user is not in group %s.\n"
				   "usermod -a -G %s %s, and log in again.",
				   fact, group, group, self);
	return doctor_find(doctor, FINDING_NODE_NOT_PERMITTED, SEVERITY_ERROR, NODE,
			   "%s\n"
			   "The udev rule that opens the node to group rdma is not in force.\n"
			   "make install puts 60-ibchan.rules there; then udevadm control --reload and udevadm trigger /dev/ibchan.",
			   fact);
}

bool check_node(struct doctor *doctor)
{
	struct ibchan_context_info info;
	int err = doctor->node_error;

	if (!err)
		err = ibchan_context_query(doctor->context, &info, NULL);
	switch (err) {
	case 0:
		doctor_fact(doctor, "node", NODE, "opened, ABI %u", info.abi_version);
		return true;
	case -EACCES:
	case -EPERM:
		return find_not_permitted(doctor, err);
	case -ENOENT:
	case -ENXIO:
	case -ENODEV:
		return doctor_find(doctor, FINDING_NODE_ABSENT, SEVERITY_ERROR, NODE,
				   "The module is loaded, but its node does not work: %s.\n"
				   "This process has a /dev of its own, such as a container's.\n"
				   "Start the container with --device /dev/ibchan.",
				   strerror(-err));
	case -EPROTONOSUPPORT:
		return doctor_find(doctor, FINDING_MODULE_INCOMPATIBLE, SEVERITY_ERROR, NODE,
				   "Opening the node failed: %s.\n"
				   "The module and this tool are of different versions.\n"
				   "Install module and tool from one version; rmmod ibchan; modprobe ibchan.",
				   strerror(-err));
	default:
		return doctor_find(doctor, FINDING_NODE_UNUSABLE, SEVERITY_ERROR, NODE,
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

bool check_memlock(struct doctor *doctor)
{
	unsigned long long used = status_value("VmPin:", 10) << 10;
	struct rlimit limit = { 0 };

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur == RLIM_INFINITY || may_lock_without_limit()) {
		doctor_fact(doctor, "memlock", "RLIMIT_MEMLOCK", "no limit for this process");
		return true;
	}
	if (used + DOCTOR_MEMORY <= limit.rlim_cur) {
		doctor_fact(doctor, "memlock", "RLIMIT_MEMLOCK", "%llu bytes",
			    (unsigned long long)limit.rlim_cur);
		return true;
	}
	return doctor_find(doctor, FINDING_MEMLOCK_LOW, SEVERITY_ERROR, "RLIMIT_MEMLOCK",
			   "The process may pin %llu bytes; the doctor's own channel needs %u.\n"
			   "The limit is low (hard limit: %llu), and the process has no CAP_IPC_LOCK.\n"
			   "ulimit -l unlimited; for good: memlock in /etc/security/limits.conf, LimitMEMLOCK= of the service, --ulimit memlock=-1 of the container.",
			   (unsigned long long)limit.rlim_cur, DOCTOR_MEMORY,
			   (unsigned long long)limit.rlim_max);
}

/* --- devices and namespaces --- */

/* How many of the devices the module shows to this process. */
static unsigned int count_visible(struct doctor *doctor)
{
	static struct ibchan_device_info infos[MAX_DEVICES];
	unsigned int visible = 0;
	unsigned int i;
	int n, k;

	if (!doctor->context)
		return doctor->device_count;
	n = ibchan_device_list(doctor->context, infos, MAX_DEVICES, NULL);
	for (i = 0; i < doctor->device_count; i++)
		for (k = 0; k < n && k < MAX_DEVICES; k++)
			visible += !strcmp(infos[k].name, doctor->devices[i]);
	return visible;
}

/* If all ports are Ethernet and their network devices in other namespaces: the first. Else NULL. */
static const struct port *all_ports_elsewhere(const struct doctor *doctor)
{
	const struct port *elsewhere = NULL;
	const struct port *port = doctor->ports;

	for (; port < doctor->ports + doctor->port_count; port++) {
		if (!port->ethernet || !port->netdev.name[0] || port->netdev.here)
			return NULL;
		if (!elsewhere)
			elsewhere = port;
	}
	return elsewhere;
}

static bool find_no_device(struct doctor *doctor)
{
	if (doctor->only)
		return doctor_find(doctor, FINDING_DEVICE_ABSENT, SEVERITY_ERROR, doctor->only,
				   "There is no RDMA device with this name.\n"
				   "The name is misspelt, or its driver is not loaded.\n"
				   "rdma link lists the devices.");
	return doctor_find(doctor, FINDING_DEVICE_ABSENT, SEVERITY_ERROR, "RDMA devices",
			   "There is no RDMA device on this machine.\n"
			   "There is no adapter, or its driver is not loaded.\n"
			   "Load the driver (mlx5_ib, irdma, ...), or try soft-RoCE: modprobe rdma_rxe; rdma link add rxe0 type rxe netdev NETDEV.");
}

void check_devices(struct doctor *doctor)
{
	const unsigned int visible = count_visible(doctor), count = doctor->device_count;
	const struct port *elsewhere = all_ports_elsewhere(doctor);
	const char *mode = "unknown";
	char line[8];

	if (read_line(line, sizeof(line), "/sys/module/ib_core/parameters/netns_mode"))
		mode = line[0] == 'Y' ? "shared" : "exclusive";
	/* Neither the module nor /sys can be asked. */
	if (!doctor->context && access("/sys/class", F_OK))
		return;
	if (!count)
		find_no_device(doctor);
	else if (!visible)
		doctor_find(doctor, FINDING_WRONG_NAMESPACE, SEVERITY_ERROR, doctor->devices[0],
			    "The machine has %u RDMA device%s, none of them visible in this network namespace.\n"
			    "Devices belong to one network namespace each (mode %s), and these belong to another.\n"
			    "rdma dev set %s netns NAME moves it here; rdma system set netns shared shows all devices everywhere.",
			    count, count == 1 ? "" : "s", mode, doctor->devices[0]);
	else if (elsewhere)
		doctor_find(doctor, FINDING_WRONG_NAMESPACE, SEVERITY_ERROR, elsewhere->device,
			    "%1$s is visible, but its network device %2$s is not in this network namespace.\n"
			    "The device's addresses belong to another namespace (mode %3$s); a channel may not use them from here.\n"
			    "Run in the namespace of %2$s (ip netns exec NAME ...), or move %2$s here (ip link set %2$s netns NAME).",
			    elsewhere->device, elsewhere->netdev.name, mode);
	else
		doctor_fact(doctor, "namespace", mode, "%u of %u device%s visible", visible, count,
			    count == 1 ? "" : "s");
}

/* --- ports --- */

static bool find_ethernet_down(struct doctor *doctor, const struct port *port,
			       enum severity severity, const char *fact)
{
	const char *name = port->netdev.name;

	if (!name[0])
		return doctor_find(doctor, FINDING_PORT_DOWN, severity, port->subject,
				   "%s\n"
				   "The device does not tell which network device it is over.\n"
				   "rdma link and ip link show what there is.", fact);
	if (!port->netdev.up)
		return doctor_find(doctor, FINDING_PORT_DOWN, severity, port->subject,
				   "%s\n"
				   "The network device %s is switched off.\n"
				   "ip link set %s up", fact, name, name);
	if (!port->netdev.running)
		return doctor_find(doctor, FINDING_PORT_DOWN, severity, port->subject,
				   "%s\n"
				   "The network device %s has no carrier.\n"
				   "Look at the cable and at the switch or the other end: ip -d link show %s; ethtool %s.",
				   fact, name, name, name);
	return doctor_find(doctor, FINDING_PORT_DOWN, severity, port->subject,
			   "%s\n"
			   "The network device %s is up; the RDMA port has not followed.\n"
			   "Run the doctor again in a second; then look at dmesg for lines of the driver.",
			   fact, name);
}

static bool find_port_down(struct doctor *doctor, const struct port *port,
			   enum severity severity)
{
	char fact[TEXT_SIZE];

	snprintf(fact, sizeof(fact), "The port is not active (state %u, physical state %s).",
		 port->state, port->physical);
	if (port->ethernet)
		return find_ethernet_down(doctor, port, severity, fact);
	if (port->state == IBCHAN_PORT_INIT)
		return doctor_find(doctor, FINDING_PORT_NO_SUBNET_MANAGER, severity, port->subject,
				   "%s\n"
				   "The link is there, but no subnet manager has set the port up.\n"
				   "Start opensm on one host, or the subnet manager of the switch.",
				   fact);
	return doctor_find(doctor, FINDING_PORT_DOWN, severity, port->subject,
			   "%s\n"
			   "The link is not there.\n"
			   "Look at the cable and at the switch: iblinkinfo, ibportstate.",
			   fact);
}

static bool find_no_gid(struct doctor *doctor, const struct port *port, enum severity severity)
{
	static const char needed[] =
		"one of RoCE v2 whose address its network device has, and no other host";
	const struct netdev *netdev = &port->netdev;

	if (!netdev->address[0])
		return doctor_find(doctor, FINDING_GID_ABSENT, severity, port->subject,
				   "None of the %u GIDs of the port will do: a channel needs %s.\n"
				   "The network device %s has no IP address that will do.\n"
				   "ip address add ADDRESS/LENGTH dev %s",
				   port->gids, needed, netdev->name, netdev->name);
	return doctor_find(doctor, FINDING_GID_ABSENT, severity, port->subject,
			   "None of the %u GIDs of the port will do: a channel needs %s.\n"
			   "%s has the address %s, but the device has no GID for it yet.\n"
			   "Run the doctor again in a second; then delete the address and add it again.",
			   port->gids, needed, netdev->name, netdev->address);
}

void find_deaf(struct doctor *doctor, const struct port *port, enum severity severity)
{
	doctor_find(doctor, FINDING_SOFT_ROCE_IN_VRF, severity, port->subject,
		    "%s is a soft-RoCE device, and %s is in the VRF %s: it receives nothing.\n"
		    "A VRF hands packets on as its own, and the driver looks for a device that is over the VRF itself; no sysctl changes that.\n"
		    "ip link set %s nomaster; or take an adapter, which does not see the VRF.",
		    port->device, port->netdev.name, port->netdev.vrf, port->netdev.name);
}

static void say_port(struct doctor *doctor, const struct port *port)
{
	char over[64] = "";

	if (port->netdev.name[0])
		snprintf(over, sizeof(over), " over %s with MTU %u", port->netdev.name,
			 port->netdev.mtu);
	if (port->active_mtu)
		doctor_fact(doctor, "port", port->subject, "active, MTU %u%s", port->active_mtu,
			    over);
	else
		doctor_fact(doctor, "port", port->subject, "active%s", over);
	if (port->gid[0])
		doctor_fact(doctor, "gid", port->subject, "%s", port->gid);
	if (port->netdev.vrf[0])
		doctor_fact(doctor, "vrf", port->subject,
			    "in %s: by address it connects from its own address only, as a source",
			    port->netdev.vrf);
}

/* An unused second port is not worth an error as long as another one works. */
void check_ports(struct doctor *doctor)
{
	enum severity severity = SEVERITY_ERROR;
	const struct port *end = doctor->ports + doctor->port_count;
	const struct port *port;

	for (port = doctor->ports; port < end; port++)
		if (port_is_usable(port))
			severity = SEVERITY_WARNING;
	for (port = doctor->ports; port < end; port++) {
		/* The doctor judges no port of another namespace. */
		if (!port->visible ||
		    (port->ethernet && port->netdev.name[0] && !port->netdev.here))
			continue;
		if (port->state != IBCHAN_PORT_ACTIVE)
			find_port_down(doctor, port, severity);
		else if (port_is_deaf(port))
			find_deaf(doctor, port, severity);
		else if (!port_is_usable(port))
			find_no_gid(doctor, port, severity);
		else
			say_port(doctor, port);
	}
}
