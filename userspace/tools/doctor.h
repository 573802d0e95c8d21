/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ibchan doctor finds the faults on the way to a working channel.
 *
 *	doctor.c		options, the order of the checks, and the report
 *	doctor_local.c		the checks that need no peer
 *	doctor_peer.c		those on the way to a peer, and packets to it
 *	doctor_channel.c	a channel to it, and the peer of doctors
 */
#ifndef _IBCHAN_DOCTOR_H
#define _IBCHAN_DOCTOR_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <ibchan.h>

#include "tool.h"

/* The exit code, from 0 on; that of a wrong command line is EX_USAGE. */
enum severity { SEVERITY_OK, SEVERITY_WARNING, SEVERITY_ERROR };

/* A port of a device, and its network device as this process's namespace sees it. */
struct port {
	const char *device;		/* one of those of struct doctor */
	unsigned int number;		/* 1 and up */
	const char *subject;		/* both in words */
	bool ethernet;			/* link layer; else InfiniBand */
	bool iwarp;			/* needs no GID */
	bool visible;			/* to this process; true where the module cannot be asked */
	unsigned int state;		/* enum ibchan_port_state */
	const char *physical;		/* the name of its physical state */
	unsigned int active_mtu;	/* bytes; 0: the module cannot be asked */
	unsigned int gids;		/* in use, up to the first that will do */
	char gid[INET6_ADDRSTRLEN];	/* that a channel takes, in words; empty: none will do */
	char netdev[IF_NAMESIZE];	/* empty: none */
	bool here;			/* it is in this namespace; else nothing below is known */
	unsigned int flags;		/* IFF_* */
	unsigned int netdev_mtu;	/* bytes */
	char vrf[IF_NAMESIZE];		/* that it is in; empty: in none, or /sys does not tell */
	bool deaf;			/* in a VRF soft-RoCE receives nothing */
};

/* The peer that is asked, and what is known of it. */
struct peer {
	const char *name;			/* as the user gave it; NULL: nobody is asked */
	const char *port;			/* that its doctor listens on */
	const char *source;	/* address of this host to connect from; NULL: as the route says */
	__u32 rounds;				/* how often all sizes of messages are sent */
	__u32 timeout_s;			/* for each wait */
	char text[64];				/* its address */
	struct ibchan_route route;		/* how to get there; if nothing does: its peer */
	bool roce;				/* over RoCE v2, so that UDP tells something */
	const char *vrf;			/* of this host's port; NULL: none is known */
};

#define MAX_DEVICES	64
#define MAX_PORTS	128

/* One run. */
struct doctor {
	const char *only;		/* device to look at; NULL: all */
	struct ibchan_context *context;	/* NULL: /dev/ibchan cannot be used */
	/* names of all of the machine that this process can learn of */
	const char *devices[MAX_DEVICES];
	unsigned int device_count;	/* how many */
	/* how many of them the module shows to this process; all where it cannot be asked */
	unsigned int visible;
	struct port ports[MAX_PORTS];	/* of the devices that sysfs or the module shows */
	unsigned int port_count;	/* how many */
	struct peer peer;
};

/*
 * The one report is printed as it grows, or at its end as JSON. A finding has an @id that stays as
 * it is, which ibchan-doctor(1) explains, and a @format of three lines: fact, cause and step.
 * Without an @id all is well, and the one line says how. Returns whether it is.
 */
__printf(5, 6)
bool doctor_say(enum severity severity, const char *check, const char *id, const char *subject,
		const char *format, ...);
#define doctor_fact(check, ...)		doctor_say(SEVERITY_OK, check, NULL, __VA_ARGS__)
#define doctor_error(check, id, ...)	doctor_say(SEVERITY_ERROR, check, id, __VA_ARGS__)

/* A part of a report, which lives as long as the program. */
__printf(1, 2)
const char *words(const char *format, ...);

/* --- doctor_local.c --- */

/* Finds all that is wrong here. Opens the context, if it can. False: a channel cannot be made. */
bool check_machine(struct doctor *doctor);
bool find_deaf(const struct port *port, enum severity severity);
/* False for a link-local address. */
bool address_text(const struct sockaddr *address, char *buf, socklen_t size);
/*
 * The first address of a network device and a family (0: of any), link-local ones aside. NULL:
 * there is none; empty: nobody can tell.
 */
const char *netdev_address(const char *netdev, int family);

/* --- doctor_peer.c --- */

/* Needs the module. False: there is no way for a channel. */
bool check_peer(struct doctor *doctor);
/* Finds out why nothing has come back over RoCE. */
bool explain_silence(const struct peer *peer);
/* Does it answer anything at all, a refusal as well? */
bool peer_is_alive(const struct peer *peer);
/* Is @own no address of this host any more? False where nobody can tell. */
bool address_is_lost(const struct peer *peer, const struct sockaddr_storage *own);

/* --- doctor_channel.c --- */

/* The port of rdma_cm programs that have none of their own. */
#define DOCTOR_PORT	"7471"

/* Largest message, and what a channel pins: one each way. */
#define DOCTOR_MESSAGE	(64U << 10)
#define DOCTOR_MEMORY	(2 * DOCTOR_MESSAGE)

void check_channel(const struct doctor *doctor);
/* Returns only when it fails, after a message, and then -1. */
int doctor_serve(const char *port);

#endif /* _IBCHAN_DOCTOR_H */
