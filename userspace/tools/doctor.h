/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ibchan doctor finds the faults on the way to a working channel.
 *
 *	doctor.c		options, the order of the checks, and the report
 *	doctor_scan.c		devices and ports, from /sys, /proc and the module
 *	doctor_local.c		the checks that need no peer
 *	doctor_peer.c		those on the way to a peer
 *	doctor_channel.c	a channel to it
 *	doctor_serve.c		the peer of doctors
 *	doctor_link.c		an end of the channel, and the words of its language
 *	doctor_probe.c		packets to a host, and its answers
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

/* Room for the longest texts of a finding; longer ones are cut. */
#define TEXT_SIZE	512

/* A network device, as this process's namespace sees it. */
struct netdev {
	char name[IF_NAMESIZE];		/* empty: the port has none */
	bool here;			/* it is in this namespace; else nothing below is known */
	bool up;			/* switched on */
	bool running;			/* it has a carrier */
	unsigned int mtu;		/* bytes */
	/* one of its addresses, link-local ones aside; empty: it has none */
	char address[INET6_ADDRSTRLEN];
	bool has_ipv4;			/* among its addresses is one of IPv4 */
	bool has_ipv6;			/* the same of IPv6, link-local ones aside */
	char vrf[IF_NAMESIZE];		/* that it is in; empty: in none, or /sys does not tell */
};

/* A port of a device. */
struct port {
	const char *device;			/* one of those of struct doctor */
	unsigned int number;			/* 1 and up */
	char subject[IBCHAN_NAME_SIZE + 16];	/* both in words */
	bool ethernet;				/* link layer; else InfiniBand */
	bool iwarp;				/* needs no GID */
	bool soft;				/* soft-RoCE */
	/* the module shows the device to this process; true where it cannot be asked */
	bool visible;
	unsigned int state;			/* enum ibchan_port_state */
	char physical[32];			/* the name of its physical state */
	unsigned int active_mtu;		/* bytes; 0: the module cannot be asked */
	/* entries of the table that are in use, up to the first that will do */
	unsigned int gids;
	/* the one that a channel takes, in words; empty: none will do */
	char gid[INET6_ADDRSTRLEN];
	struct netdev netdev;			/* of an Ethernet port */
};

#define MAX_DEVICES	64
#define MAX_PORTS	128

/* One run. */
struct doctor {
	const char *only;		/* device to look at; NULL: all */
	struct ibchan_context *context;	/* NULL: /dev/ibchan cannot be used */
	int node_error;			/* why not, a negative errno */
	/* names of all of the machine that this process can learn of */
	char *devices[MAX_DEVICES];
	unsigned int device_count;	/* how many */
	/* how many of them the module shows to this process; all where it cannot be asked */
	unsigned int visible;
	struct port ports[MAX_PORTS];	/* of the devices that sysfs or the module shows */
	unsigned int port_count;	/* how many */
};

/* The peer that is asked, and what is known of it. */
struct peer {
	const char *name;			/* as the user gave it */
	const char *port;			/* that its doctor listens on */
	const char *source;	/* address of this host to connect from; NULL: as the route says */
	__u32 rounds;				/* how often all sizes of messages are sent */
	__u32 timeout_s;			/* for each wait */
	char text[64];				/* its address */
	struct sockaddr_storage address;	/* the same */
	struct ibchan_route route;		/* how to get there */
	bool roce;				/* over RoCE v2, so that UDP tells something */
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

/* --- doctor_link.c --- */

/*
 * The doctor's own channel. The asking side sends messages, the serving side answers each with
 * one of the same length, and both check every byte:
 *
 *	doctor			doctor --serve
 *	request (greeting)  ->
 *		    <-  accepted (greeting)
 *	message		    ->
 *		    <-  answer		empty: the message was wrong
 *	and so on, until the asking side closes the channel
 */

/* The port of rdma_cm programs that have none of their own. */
#define DOCTOR_PORT	"7471"

/* Largest message, and what a link pins: one each way. */
#define DOCTOR_MESSAGE	(64U << 10)
#define DOCTOR_MEMORY	(2 * DOCTOR_MESSAGE)

/* One end of the doctor's channel. */
struct link {
	bool serves;			/* it answers */
	struct ibchan_context *context;	/* lent */
	struct ibchan_device *device;	/* and so on to @prepared: in the order of their making */
	struct ibchan_pd *pd;
	struct ibchan_mr *mr;
	struct ibchan_prepared *prepared;
	struct ibchan_channel *channel;	/* prepared, or connected */
	__u8 *out;			/* memory that messages go out from */
	__u8 *in;			/* memory that messages arrive in */
	__u32 round;			/* messages that were answered */
	__s64 timeout_ns;		/* for each wait */
};

/* All return 0 or a negative errno, with details in @error, which is not NULL. */
int link_open(struct link *link, struct ibchan_context *context, const char *device,
	      struct ibchan_error *error);
/* Makes room for the peer's next message; link_open() does so, too. */
int link_listen(struct link *link, struct ibchan_error *error);
/* Waits for a message, and tells its bytes. */
int link_hear(struct link *link, __u32 *bytes, struct ibchan_error *error);
/* Sends a message of this round, or an empty one. */
int link_say(struct link *link, __u32 bytes, struct ibchan_error *error);
/* Is what came last the peer's message of this round? */
bool link_is_right(const struct link *link, __u32 bytes);
/* Takes one that was opened in part, too. */
void link_close(struct link *link);

/* Goes with the request, and with its answer: the name and the version of the language. */
static const __u8 greeting[] = { 'i', 'b', 'c', 'd', 0, 0, 0, 1 };

/* Zeros may follow: a message of the connection manager has one length. */
static inline bool greeting_is_ours(const void *data, __u32 length)
{
	return length >= sizeof(greeting) && !memcmp(data, greeting, sizeof(greeting));
}

/* doctor_serve.c: returns only when it fails, after a message. */
int doctor_serve(const char *port);

/* --- doctor_probe.c --- */

/* RoCE v2 travels in UDP to this port. */
#define ROCE_PORT	4791

/* The shortest IP packet that is worth asking with. */
#define PROBE_SHORT	64

/* From now on all go by this network device or VRF, where the kernel allows it. */
void probe_by(const char *name);

/*
 * Asks for an echo (IPPROTO_ICMP, for IPv6 as well), or a @port of UDP or TCP, by an IP packet of
 * @length bytes that stays whole. Returns 0: an answer came; -ECONNREFUSED: the host is there, and
 * no program has that port; -ETIMEDOUT: nothing came in time; others: this process may not ask, or
 * there is no way for such a packet.
 */
int probe(const struct sockaddr_storage *peer, int protocol, unsigned short port, size_t length);

/* Answers anything at all, a refusal as well? */
bool probe_is_alive(const struct sockaddr_storage *peer);

/* Is no address of this host any more? False where nobody can tell. */
bool probe_is_lost(const struct sockaddr_storage *own);

/*
 * Do IP packets of @length bytes get through whole? Returns 0: yes; -EMSGSIZE: short ones only;
 * -ENODATA: the peer does not even answer those.
 */
int probe_path(const struct sockaddr_storage *peer, size_t length);

#endif /* _IBCHAN_DOCTOR_H */
