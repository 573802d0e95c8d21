// SPDX-License-Identifier: LGPL-2.1-or-later
/* Packets that a user without privileges can send to a host, and its answers. */
#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "doctor.h"

/* Usually no program has it: the port of traceroute. */
#define CLOSED_PORT	33434

/* A host tells one peer at most once a second that a port is closed, after the first few. */
#define TRIES		2

/* How long an answer may take: longer than refusals are held back. */
static const struct timeval patience = { .tv_sec = 1, .tv_usec = 200000 };

/* Of a probe; no port sends longer packets than 4096 bytes and their headers. */
#define MOST_BYTES	8192

#define IPV4_HEADER	20
#define IPV6_HEADER	40
#define UDP_HEADER	8

/* Empty: as the routes say. */
static char netdev[IF_NAMESIZE];

void probe_by(const char *name)
{
	snprintf(netdev, sizeof(netdev), "%s", name);
}

static int make_socket(int family, int type, int protocol)
{
	int fd = socket(family, type | SOCK_CLOEXEC, protocol);

	if (fd >= 0 && netdev[0])
		setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, netdev, strlen(netdev));
	return fd;
}

/* A port has the same place in the addresses of both families. */
static struct sockaddr_storage with_port(const struct sockaddr_storage *address,
					 unsigned short port)
{
	struct sockaddr_storage with = *address;

	((struct sockaddr_in *)&with)->sin_port = htons(port);
	return with;
}

/*
 * Sends one packet, and takes the first one that comes back. A connected socket gets the errors
 * that are about its peer. Packets are to stay whole, whatever is believed of the path.
 */
static int ask(const struct sockaddr_storage *peer, int protocol, unsigned short port,
	       size_t length)
{
	const struct sockaddr_storage to = with_port(peer, port);
	const int whole = IP_PMTUDISC_PROBE;	/* the number of IPv6 is the same */
	const bool v4 = peer->ss_family == AF_INET, echo = protocol == IPPROTO_ICMP;
	__u8 data[MOST_BYTES] = { 0 };
	int err = 0, fd;

	/* The header of an echo is part of the data; the kernel fills in its number and sum. */
	if (echo)
		data[0] = v4 ? ICMP_ECHO : ICMP6_ECHO_REQUEST;
	length -= (v4 ? IPV4_HEADER : IPV6_HEADER) + (echo ? 0 : UDP_HEADER);
	if (length > sizeof(data))
		return -EMSGSIZE;
	fd = make_socket(peer->ss_family, protocol == IPPROTO_TCP ? SOCK_STREAM : SOCK_DGRAM,
			 echo && !v4 ? IPPROTO_ICMPV6 : protocol);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &whole, sizeof(whole));
	setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &whole, sizeof(whole));
	if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) ||
	    (protocol != IPPROTO_TCP && (send(fd, data, length, MSG_NOSIGNAL) < 0 ||
					 recv(fd, NULL, 0, MSG_TRUNC) < 0)))
		err = errno == EAGAIN || errno == EINPROGRESS ? -ETIMEDOUT : -errno;
	close(fd);
	return err;
}

/* TCP asks again by itself. */
int probe(const struct sockaddr_storage *peer, int protocol, unsigned short port, size_t length)
{
	int i, err = ask(peer, protocol, port, length);

	for (i = 1; i < TRIES && err == -ETIMEDOUT && protocol != IPPROTO_TCP; i++)
		err = ask(peer, protocol, port, length);
	return err;
}

bool probe_is_alive(const struct sockaddr_storage *peer)
{
	int err;

	if (!probe(peer, IPPROTO_ICMP, 0, PROBE_SHORT))
		return true;
	err = probe(peer, IPPROTO_TCP, CLOSED_PORT, PROBE_SHORT);
	return !err || err == -ECONNREFUSED ||
	       probe(peer, IPPROTO_UDP, CLOSED_PORT, PROBE_SHORT) == -ECONNREFUSED;
}

bool probe_is_lost(const struct sockaddr_storage *own)
{
	const struct sockaddr_storage address = with_port(own, 0);
	int fd = make_socket(own->ss_family, SOCK_DGRAM, 0);
	bool is_lost;

	if (fd < 0)
		return false;
	is_lost = bind(fd, (const struct sockaddr *)&address, sizeof(address)) &&
		  errno == EADDRNOTAVAIL;
	close(fd);
	return is_lost;
}

int probe_path(const struct sockaddr_storage *peer, size_t length)
{
	if (!probe(peer, IPPROTO_ICMP, 0, PROBE_SHORT))
		return probe(peer, IPPROTO_ICMP, 0, length) ? -EMSGSIZE : 0;
	if (probe(peer, IPPROTO_UDP, CLOSED_PORT, PROBE_SHORT) != -ECONNREFUSED)
		return -ENODATA;
	return probe(peer, IPPROTO_UDP, CLOSED_PORT, length) == -ECONNREFUSED ? 0 : -EMSGSIZE;
}
