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
 *	doctor_link.c		an end of the channel
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

/* Room for the longest texts of the messages; longer ones are cut. */
#define SUBJECT_SIZE	160
#define TEXT_SIZE	512

/**
 * struct entry - one statement of a check
 * @next: the statement after this one
 * @severity: SEVERITY_OK: all is well, and only @fact says how
 * @check: which
 * @name: of the finding, stable; NULL for SEVERITY_OK
 * @subject: a device, a port, a file or a peer
 * @fact: the observation; behind it in the same memory the other texts
 * @cause: the reason for it
 * @step: advice
 */
struct entry {
	struct entry *next;
	enum severity severity;
	const char *check;
	const char *name;
	char subject[SUBJECT_SIZE];
	char fact[3 * TEXT_SIZE];
	char *cause;
	char *step;
};

/**
 * struct netdev - a network device, as this process's namespace sees it
 * @name: empty: the port has none
 * @here: it is in this namespace; else nothing below is known
 * @up: switched on
 * @running: it has a carrier
 * @mtu: bytes
 * @address: one of its addresses, link-local ones aside; empty: it has none
 * @vrf: that it is in; empty: in none, or /sys does not tell
 */
struct netdev {
	char name[IF_NAMESIZE];
	bool here;
	bool up;
	bool running;
	unsigned int mtu;
	char address[INET6_ADDRSTRLEN];
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
	char subject[SUBJECT_SIZE];
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
 * @json: print nothing before the end
 * @first: entry
 * @last: entry
 * @printed: entry, the last that was printed
 * @context: NULL: /dev/ibchan cannot be used
 * @node_error: why not, a negative errno
 * @devices: names of all of the machine that this process can learn of
 * @device_count: how many
 * @ports: of the devices that sysfs or the module shows
 * @port_count: how many
 */
struct doctor {
	const char *only;
	bool json;
	struct entry *first;
	struct entry *last;
	struct entry *printed;
	struct ibchan_context *context;
	int node_error;
	char *devices[MAX_DEVICES];
	unsigned int device_count;
	struct port ports[MAX_PORTS];
	unsigned int port_count;
};

/* doctor_report.c: all is well, and how: */
__printf(4, 5)
void doctor_fact(struct doctor *doctor, const char *check, const char *subject,
		 const char *format, ...);
/* Something is wrong. @format has three lines: fact, cause and step. Returns false. */
__printf(5, 6)
bool doctor_find(struct doctor *doctor, enum finding_id id, enum severity severity,
		 const char *subject, const char *format, ...);

/* doctor_report.c: prints the new entries, unless JSON is wanted. */
void doctor_print(struct doctor *doctor);
/* The sum, or all of it as JSON. Returns the worst severity. */
enum severity doctor_conclude(struct doctor *doctor, const char *peer);

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
bool check_node(struct doctor *doctor);
bool check_memlock(struct doctor *doctor);
void check_devices(struct doctor *doctor);
void check_ports(struct doctor *doctor);
/* Says that a port is deaf. */
void find_deaf(struct doctor *doctor, const struct port *port, enum severity severity);

#endif /* _IBCHAN_DOCTOR_H */
