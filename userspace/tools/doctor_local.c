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
	struct entry *entry = doctor_find(doctor, FINDING_MODULE_ABSENT, SEVERITY_ERROR, "ibchan");
	struct utsname name;

	uname(&name);
	if (access("/sys/module", F_OK))
		entry_fact(entry,
			   "There is no %s, and /sys, which tells of modules, is not mounted.",
			   NODE);
	else
		entry_fact(entry, "The module is not loaded: there is no /sys/module/ibchan.");
	if (module_is_installed(name.release)) {
		entry_cause(entry, "It is installed for kernel %s, and nobody has loaded it.",
			    name.release);
		entry_step(entry, "modprobe ibchan");
	} else {
		entry_cause(entry, "It is not installed for kernel %s.", name.release);
		entry_step(entry,
			   "dkms install ibchan/VERSION, or make modules and insmod; then run the doctor again.");
	}
	return false;
}

/* What opens its node is there, and a node that may not be opened says nothing of the module. */
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

static const char *name_or_number(const char *name, unsigned int number, char *buf, size_t size)
{
	if (name)
		snprintf(buf, size, "%s", name);
	else
		snprintf(buf, size, "%u", number);
	return buf;
}

static const char *user_name(uid_t uid, char *buf, size_t size)
{
	const struct passwd *user = getpwuid(uid);

	return name_or_number(user ? user->pw_name : NULL, uid, buf, size);
}

static const char *group_name(gid_t gid, char *buf, size_t size)
{
	const struct group *group = getgrgid(gid);

	return name_or_number(group ? group->gr_name : NULL, gid, buf, size);
}

static void find_not_permitted(struct doctor *doctor, int err)
{
	struct entry *entry = doctor_find(doctor, FINDING_NODE_NOT_PERMITTED, SEVERITY_ERROR,
					  NODE);
	char owner[64] = "?", group[64] = "?", self[64];
	struct stat node = { 0 };

	if (!stat(NODE, &node)) {
		user_name(node.st_uid, owner, sizeof(owner));
		group_name(node.st_gid, group, sizeof(group));
	}
	user_name(geteuid(), self, sizeof(self));
	entry_fact(entry,
		   "User %s may not open the node, which belongs to %s:%s with mode %04o (%s).",
		   self, owner, group, node.st_mode & 07777, strerror(-err));
	if (err == -EPERM) {
		entry_cause(entry,
			    "Something beside the mode forbids it, such as the device list of a container.");
		entry_step(entry,
			   "Start the container with --device /dev/ibchan, or ask the security module's log.");
	} else if (node.st_mode & 0060) {
		entry_cause(entry, "The user is not in group %s.", group);
		entry_step(entry, "usermod -a -G %s %s, and log in again.", group, self);
	} else {
		entry_cause(entry,
			    "The udev rule that opens the node to group rdma is not in force.");
		entry_step(entry,
			   "make install puts 60-ibchan.rules there; then udevadm control --reload and udevadm trigger /dev/ibchan.");
	}
}

static void find_no_node(struct doctor *doctor, int err)
{
	struct entry *entry = doctor_find(doctor, FINDING_NODE_ABSENT, SEVERITY_ERROR, NODE);

	entry_fact(entry, "The module is loaded, but its node does not work: %s.",
		   strerror(-err));
	entry_cause(entry, "This process has a /dev of its own, such as a container's.");
	entry_step(entry, "Start the container with --device /dev/ibchan.");
}

static void find_bad_node(struct doctor *doctor, int err)
{
	bool other = err == -EPROTONOSUPPORT;
	struct entry *entry = doctor_find(doctor, other ? FINDING_MODULE_INCOMPATIBLE :
						  FINDING_NODE_UNUSABLE, SEVERITY_ERROR, NODE);

	entry_fact(entry, "Opening the node failed: %s.", strerror(-err));
	if (other) {
		entry_cause(entry, "The module and this tool are of different versions.");
		entry_step(entry,
			   "Install module and tool from one version; rmmod ibchan; modprobe ibchan.");
	} else {
		entry_cause(entry, "The errno says all that is known.");
		entry_step(entry, "Look at dmesg for lines of ibchan.");
	}
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
		find_not_permitted(doctor, err);
		return false;
	case -ENOENT:
	case -ENXIO:
	case -ENODEV:
		find_no_node(doctor, err);
		return false;
	default:
		find_bad_node(doctor, err);
		return false;
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

/* What a user namespace gives does not count. */
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
	struct entry *entry;

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
	entry = doctor_find(doctor, FINDING_MEMLOCK_LOW, SEVERITY_ERROR, "RLIMIT_MEMLOCK");
	entry_fact(entry, "The process may pin %llu bytes; the doctor's own channel needs %u.",
		   (unsigned long long)limit.rlim_cur, DOCTOR_MEMORY);
	entry_cause(entry,
		    "The limit is low (hard limit: %llu), and the process has no CAP_IPC_LOCK.",
		    (unsigned long long)limit.rlim_max);
	entry_step(entry,
		   "ulimit -l unlimited; for good: memlock in /etc/security/limits.conf, LimitMEMLOCK= of the service, --ulimit memlock=-1 of the container.");
	return false;
}

/* --- devices and namespaces --- */

static void find_no_device(struct doctor *doctor)
{
	struct entry *entry = doctor_find(doctor, FINDING_DEVICE_ABSENT, SEVERITY_ERROR,
					  doctor->only ? doctor->only : "RDMA devices");

	if (doctor->only) {
		entry_fact(entry, "There is no RDMA device with this name.");
		entry_cause(entry, "The name is misspelt, or its driver is not loaded.");
		entry_step(entry, "rdma link lists the devices.");
		return;
	}
	entry_fact(entry, "There is no RDMA device on this machine.");
	entry_cause(entry, "There is no adapter, or its driver is not loaded.");
	entry_step(entry,
		   "Load the driver (mlx5_ib, irdma, ...), or try soft-RoCE: modprobe rdma_rxe; rdma link add rxe0 type rxe netdev NETDEV.");
}

static const char *namespace_mode(void)
{
	char line[8];

	if (!read_line(line, sizeof(line), "/sys/module/ib_core/parameters/netns_mode"))
		return "unknown";
	return line[0] == 'Y' ? "shared" : "exclusive";
}

static bool is_visible(const struct ibchan_device_info *infos, int n, const char *name)
{
	while (n-- > 0)
		if (!strcmp(infos[n].name, name))
			return true;
	return false;
}

/* How many of the devices the module shows to this process. */
static unsigned int count_visible(struct doctor *doctor)
{
	static struct ibchan_device_info infos[MAX_DEVICES];
	unsigned int visible = 0;
	unsigned int i;
	int n;

	if (!doctor->context)
		return doctor->device_count;
	n = ibchan_device_list(doctor->context, infos, MAX_DEVICES, NULL);
	if (n > MAX_DEVICES)
		n = MAX_DEVICES;
	for (i = 0; i < doctor->device_count; i++)
		visible += is_visible(infos, n, doctor->devices[i]);
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

static void find_exclusive(struct doctor *doctor)
{
	struct entry *entry = doctor_find(doctor, FINDING_WRONG_NAMESPACE, SEVERITY_ERROR,
					  doctor->devices[0]);

	entry_fact(entry,
		   "The machine has %u RDMA device%s, none of them visible in this network namespace.",
		   doctor->device_count, doctor->device_count == 1 ? "" : "s");
	entry_cause(entry,
		    "Devices belong to one network namespace each (mode %s), and these belong to another.",
		    namespace_mode());
	entry_step(entry,
		   "rdma dev set %s netns NAME moves it here; rdma system set netns shared shows all devices everywhere.",
		   doctor->devices[0]);
}

static void find_elsewhere(struct doctor *doctor, const struct port *port)
{
	struct entry *entry = doctor_find(doctor, FINDING_WRONG_NAMESPACE, SEVERITY_ERROR,
					  port->device);

	entry_fact(entry,
		   "%s is visible, but its network device %s is not in this network namespace.",
		   port->device, port->netdev.name);
	entry_cause(entry,
		    "The device's addresses belong to another namespace (mode %s); a channel may not use them from here.",
		    namespace_mode());
	entry_step(entry,
		   "Run in the namespace of %s (ip netns exec NAME ...), or move %s here (ip link set %s netns NAME).",
		   port->netdev.name, port->netdev.name, port->netdev.name);
}

/* Neither the module nor /sys can be asked. */
static bool nobody_knows(const struct doctor *doctor)
{
	return !doctor->context && access("/sys/class", F_OK);
}

void check_devices(struct doctor *doctor)
{
	unsigned int visible = count_visible(doctor);
	const struct port *elsewhere = all_ports_elsewhere(doctor);

	if (nobody_knows(doctor))
		return;
	if (!doctor->device_count)
		find_no_device(doctor);
	else if (!visible)
		find_exclusive(doctor);
	else if (elsewhere)
		find_elsewhere(doctor, elsewhere);
	else
		doctor_fact(doctor, "namespace", namespace_mode(), "%u of %u device%s visible",
			    visible, doctor->device_count, doctor->device_count == 1 ? "" : "s");
}

/* --- ports --- */

static void explain_netdev_down(struct entry *entry, const struct port *port)
{
	const struct netdev *netdev = &port->netdev;

	if (!netdev->name[0]) {
		entry_cause(entry, "The device does not tell which network device it is over.");
		entry_step(entry, "rdma link and ip link show what there is.");
	} else if (!netdev->up) {
		entry_cause(entry, "The network device %s is switched off.", netdev->name);
		entry_step(entry, "ip link set %s up", netdev->name);
	} else if (!netdev->running) {
		entry_cause(entry, "The network device %s has no carrier.", netdev->name);
		entry_step(entry,
			   "Look at the cable and at the switch or the other end: ip -d link show %s; ethtool %s.",
			   netdev->name, netdev->name);
	} else {
		entry_cause(entry, "The network device %s is up; the RDMA port has not followed.",
			    netdev->name);
		entry_step(entry,
			   "Run the doctor again in a second; then look at dmesg for lines of the driver.");
	}
}

static void find_port_down(struct doctor *doctor, const struct port *port,
			   enum severity severity)
{
	bool unmanaged = !port->ethernet && port->state == PORT_INIT;
	struct entry *entry;

	entry = doctor_find(doctor, unmanaged ? FINDING_PORT_NO_SUBNET_MANAGER :
			    FINDING_PORT_DOWN, severity, port->subject);
	entry_fact(entry, "The port is not active (state %u, physical state %s).", port->state,
		   port->physical);
	if (port->ethernet) {
		explain_netdev_down(entry, port);
	} else if (unmanaged) {
		entry_cause(entry, "The link is there, but no subnet manager has set the port up.");
		entry_step(entry, "Start opensm on one host, or the subnet manager of the switch.");
	} else {
		entry_cause(entry, "The link is not there.");
		entry_step(entry, "Look at the cable and at the switch: iblinkinfo, ibportstate.");
	}
}

static void find_no_gid(struct doctor *doctor, const struct port *port, enum severity severity)
{
	const struct netdev *netdev = &port->netdev;
	struct entry *entry;

	entry = doctor_find(doctor, FINDING_GID_ABSENT, severity, port->subject);
	entry_fact(entry,
		   "None of the %u GIDs of the port will do: a channel needs one of RoCE v2 whose address its network device has, and no other host.",
		   port->gids);
	if (!netdev->address[0]) {
		entry_cause(entry, "The network device %s has no IP address that will do.",
			    netdev->name);
		entry_step(entry, "ip address add ADDRESS/LENGTH dev %s", netdev->name);
	} else {
		entry_cause(entry, "%s has the address %s, but the device has no GID for it yet.",
			    netdev->name, netdev->address);
		entry_step(entry,
			   "Run the doctor again in a second; then delete the address and add it again.");
	}
}

void find_deaf(struct doctor *doctor, const struct port *port, enum severity severity)
{
	struct entry *entry = doctor_find(doctor, FINDING_SOFT_ROCE_IN_VRF, severity,
					  port->subject);

	entry_fact(entry, "%s is a soft-RoCE device, and %s is in the VRF %s: it receives nothing.",
		   port->device, port->netdev.name, port->netdev.vrf);
	entry_cause(entry,
		    "A VRF hands packets on as its own, and the driver looks for a device that is over the VRF itself; no sysctl changes that.");
	entry_step(entry,
		   "ip link set %s nomaster; or take an adapter, which does not see the VRF.",
		   port->netdev.name);
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

/* What lies in another namespace is not judged from here. */
static bool is_elsewhere(const struct port *port)
{
	return !port->visible ||
	       (port->ethernet && port->netdev.name[0] && !port->netdev.here);
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
		if (is_elsewhere(port))
			continue;
		if (port->state != PORT_ACTIVE)
			find_port_down(doctor, port, severity);
		else if (port_is_deaf(port))
			find_deaf(doctor, port, severity);
		else if (!port_is_usable(port))
			find_no_gid(doctor, port, severity);
		else
			say_port(doctor, port);
	}
}
