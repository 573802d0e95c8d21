/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ibchan doctor finds the faults on the way to a working channel.
 *
 *	doctor.c		options, and the order of the checks
 *	doctor_report.c		the report, as text or JSON
 *	doctor_scan.c		devices and ports, from /sys, /proc and the module
 *	doctor_local.c		the checks that need no peer
 *	doctor_peer.c		those on the way to a peer
 *	doctor_channel.c	a channel to it
 *	doctor_serve.c		the peer of doctors
 *	doctor_link.c		an end of the channel, and the words of its language
 *	probe.c			packets to a host, and its answers
 */
#ifndef _IBCHAN_DOCTOR_H
#define _IBCHAN_DOCTOR_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>

#include <ibchan.h>

#include "tool.h"

/* The exit code; that of a wrong command line is EX_USAGE. */
enum severity {
	SEVERITY_OK = 0,
	SEVERITY_WARNING = 1,
	SEVERITY_ERROR = 2,
};

/*
 * Each finding has a name that stays as it is, and the check that it comes from. The
 * manual page ibchan-doctor(1) explains each.
 */
#define DOCTOR_FINDINGS(X)						\
	X(MODULE_ABSENT, "module-absent", "module")			\
	X(MODULE_INCOMPATIBLE, "module-incompatible", "module")		\
	X(NODE_ABSENT, "node-absent", "node")				\
	X(NODE_NOT_PERMITTED, "node-not-permitted", "node")		\
	X(NODE_UNUSABLE, "node-unusable", "node")			\
	X(MEMLOCK_LOW, "memlock-low", "memlock")			\
	X(DEVICE_ABSENT, "device-absent", "device")			\
	X(WRONG_NAMESPACE, "wrong-namespace", "namespace")		\
	X(PORT_DOWN, "port-down", "port")				\
	X(PORT_NO_SUBNET_MANAGER, "port-no-subnet-manager", "port")	\
	X(GID_ABSENT, "gid-absent", "gid")				\
	X(SOFT_ROCE_IN_VRF, "soft-roce-in-vrf", "vrf")			\
	X(PEER_UNKNOWN, "peer-unknown", "route")			\
	X(ADDRESS_ABSENT, "address-absent", "route")			\
	X(SOURCE_UNUSABLE, "source-unusable", "route")			\
	X(SOURCE_NEEDED, "source-needed", "route")			\
	X(ROUTE_ABSENT, "route-absent", "route")			\
	X(ROUTE_NOT_RDMA, "route-not-rdma", "route")			\
	X(DEVICE_DOES_NOT_ROUTE, "device-does-not-route", "route")	\
	X(PEER_UNREACHABLE, "peer-unreachable", "route")		\
	X(MTU_MISMATCH, "mtu-mismatch", "path")				\
	X(ROCE_ABSENT, "roce-absent", "path")				\
	X(UDP_BLOCKED, "udp-4791-blocked", "path")			\
	X(PEER_SILENT, "peer-silent", "path")				\
	X(LISTENER_ABSENT, "listener-absent", "channel")		\
	X(PEER_REJECTS, "peer-rejects", "channel")			\
	X(CHANNEL_FAILED, "channel-failed", "channel")			\
	X(PEER_STUCK, "peer-stuck", "data")				\
	X(PEER_GONE, "peer-gone", "data")				\
	X(ADDRESS_GONE, "address-gone", "data")				\
	X(DATA_WRONG, "data-wrong", "data")

#define DOCTOR_ID(id, name, check)	FINDING_##id,
enum finding_id {
	DOCTOR_FINDINGS(DOCTOR_ID)
};

/* Room for the longest texts of a finding; longer ones are cut. */
#define TEXT_SIZE	512

/**
 * struct netdev - a network device, as this process's namespace sees it
 * @name: empty: the port has none
 * @here: it is in this namespace; else nothing below is known
 * @up: switched on
 * @running: it has a carrier
 * @mtu: bytes
 * @address: one of its addresses, link-local ones aside; empty: it has none
 * @has_ipv4: among its addresses is one of IPv4
 * @has_ipv6: the same of IPv6, link-local ones aside
 * @vrf: that it is in; empty: in none, or /sys does not tell
 */
struct netdev {
	char name[IF_NAMESIZE];
	bool here;
	bool up;
	bool running;
	unsigned int mtu;
	char address[INET6_ADDRSTRLEN];
	bool has_ipv4;
	bool has_ipv6;
	char vrf[IF_NAMESIZE];
};

/**
 * struct port - a port of a device
 * @device: one of those of struct doctor
 * @number: 1 and up
 * @subject: both in words
 * @ethernet: link layer; else InfiniBand
 * @iwarp: needs no GID
 * @soft: soft-RoCE
 * @visible: the module shows the device to this process; true where it cannot be asked
 * @state: enum ibchan_port_state
 * @physical: the name of its physical state
 * @active_mtu: bytes; 0: the module cannot be asked
 * @gids: entries of the table that are in use, up to the first that will do
 * @gid: the one that a channel takes, in words; empty: none will do
 * @netdev: of an Ethernet port
 */
struct port {
	const char *device;
	unsigned int number;
	char subject[IBCHAN_NAME_SIZE + 16];
	bool ethernet;
	bool iwarp;
	bool soft;
	bool visible;
	unsigned int state;
	char physical[32];
	unsigned int active_mtu;
	unsigned int gids;
	char gid[INET6_ADDRSTRLEN];
	struct netdev netdev;
};

#define MAX_DEVICES	64
#define MAX_PORTS	128

/**
 * struct doctor - one run
 * @only: device to look at; NULL: all
 * @context: NULL: /dev/ibchan cannot be used
 * @node_error: why not, a negative errno
 * @devices: names of all of the machine that this process can learn of
 * @device_count: how many
 * @visible: how many of them the module shows to this process; all where it cannot be asked
 * @ports: of the devices that sysfs or the module shows
 * @port_count: how many
 */
struct doctor {
	const char *only;
	struct ibchan_context *context;
	int node_error;
	char *devices[MAX_DEVICES];
	unsigned int device_count;
	unsigned int visible;
	struct port ports[MAX_PORTS];
	unsigned int port_count;
};

/**
 * struct peer - the peer that is asked, and what is known of it
 * @name: as the user gave it
 * @port: that its doctor listens on
 * @source: address of this host to connect from; NULL: as the route says
 * @rounds: how often all sizes of messages are sent
 * @timeout_s: for each wait
 * @text: its address
 * @address: the same
 * @route: how to get there
 * @roce: over RoCE v2, so that UDP tells something
 */
struct peer {
	const char *name;
	const char *port;
	const char *source;
	__u32 rounds;
	__u32 timeout_s;
	char text[64];
	struct sockaddr_storage address;
	struct ibchan_route route;
	bool roce;
};

/* doctor_report.c; there is one report, which is printed as it grows, or at its end as JSON. */
void report_as_json(void);
/* All is well, and how: */
__printf(3, 4)
void doctor_fact(const char *check, const char *subject, const char *format, ...);
/* Something is wrong. @format has three lines: fact, cause and step. Returns false. */
__printf(4, 5)
bool doctor_find(enum finding_id id, enum severity severity, const char *subject,
		 const char *format, ...);
#define doctor_error(id, ...)	doctor_find(id, SEVERITY_ERROR, __VA_ARGS__)
/* The sum, or all of it as JSON. Returns the worst severity. */
enum severity report_conclude(const char *peer);

/* doctor_scan.c: a line of a file, without its end; false: there is none. */
__printf(3, 4)
bool read_line(char *line, size_t size, const char *format, ...);
void doctor_scan(struct doctor *doctor);
bool port_is_usable(const struct port *port);
/* Soft-RoCE receives nothing where its network device is in a VRF. */
bool port_is_deaf(const struct port *port);
/* False for a link-local address. */
bool address_text(const struct sockaddr *address, char *buf, socklen_t size);

/* doctor_local.c; false: a channel cannot be made. The first opens the context, if it can. */
bool check_module(struct doctor *doctor);
bool check_node(const struct doctor *doctor);
bool check_memlock(void);
void check_devices(const struct doctor *doctor);
void check_ports(const struct doctor *doctor);
void find_deaf(const struct port *port, enum severity severity);

/* doctor_peer.c: needs the module. The second finds out why nothing has come back over RoCE. */
void check_peer(const struct doctor *doctor, struct peer *peer);
void explain_silence(const struct peer *peer);

/* doctor_channel.c: a channel, and data over it. */
void check_channel(const struct doctor *doctor, const struct peer *peer);

/* doctor_serve.c: returns only when it fails, after a message. */
int doctor_serve(const char *port);

#endif /* _IBCHAN_DOCTOR_H */
