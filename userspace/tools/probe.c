// SPDX-License-Identifier: LGPL-2.1-or-later
/* Packets that a user without privileges can send to a host, and its answers. */
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "probe.h"

/* Usually no program has it: the port of traceroute. */
#define CLOSED_PORT	33434

/* A host tells one peer at most once a second that a port is closed, after the first few. */
#define TRIES		2

/* How long an answer may take: longer than refusals are held back. */
#define PROBE_MS	1200

/* Of a probe; no port sends longer packets than 4096 bytes and their headers. */
#define MOST_BYTES	8192

#define IPV4_HEADER	20
#define IPV6_HEADER	40
#define UDP_HEADER	8	/* that of an echo is as long */

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

/* Says whether something has happened. */
static bool wait_for(int fd, short events)
{
	struct pollfd poll_fd = { .fd = fd, .events = events };

	return poll(&poll_fd, 1, PROBE_MS) > 0;
}

static enum answer from_errno(int err)
{
	if (err == ECONNREFUSED)
		return ANSWER_REFUSED;
	return err == ETIMEDOUT || err == EAGAIN ? ANSWER_NONE : ANSWER_UNKNOWN;
}

static socklen_t with_port(const struct sockaddr *peer, unsigned short port,
			   struct sockaddr_storage *address)
{
	memset(address, 0, sizeof(*address));
	if (peer->sa_family == AF_INET) {
		memcpy(address, peer, sizeof(struct sockaddr_in));
		((struct sockaddr_in *)address)->sin_port = htons(port);
		return sizeof(struct sockaddr_in);
	}
	memcpy(address, peer, sizeof(struct sockaddr_in6));
	((struct sockaddr_in6 *)address)->sin6_port = htons(port);
	return sizeof(struct sockaddr_in6);
}

/* A connected socket gets the errors that are about its peer. Returns it, or a negative errno. */
static int open_socket(const struct sockaddr *peer, unsigned short port, int type, int protocol)
{
	struct sockaddr_storage address;
	socklen_t length = with_port(peer, port, &address);
	int fd = make_socket(peer->sa_family, type | SOCK_NONBLOCK, protocol);
	int err;

	if (fd < 0)
		return -errno;
	if (!connect(fd, (struct sockaddr *)&address, length) || errno == EINPROGRESS)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static enum answer probe_tcp(const struct sockaddr *peer, unsigned short port)
{
	int fd = open_socket(peer, port, SOCK_STREAM, 0);
	enum answer answer = ANSWER_NONE;
	int err = 0;
	socklen_t size = sizeof(err);

	if (fd < 0)
		return from_errno(-fd);
	if (wait_for(fd, POLLOUT)) {
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size);
		answer = err ? from_errno(err) : ANSWER_YES;
	}
	close(fd);
	return answer;
}

/*
 * Sends a packet that begins with @start, and takes the first one that comes back. Packets are to
 * stay whole, whatever is believed of the path.
 */
static enum answer ask(const struct sockaddr *peer, unsigned short port, int protocol,
		       const struct icmphdr *start, size_t packet)
{
	const int probe_v4 = IP_PMTUDISC_PROBE, probe_v6 = IPV6_PMTUDISC_PROBE;
	const bool v4 = peer->sa_family == AF_INET;
	const size_t length = packet - UDP_HEADER - (v4 ? IPV4_HEADER : IPV6_HEADER);
	int fd = open_socket(peer, port, SOCK_DGRAM, protocol);
	enum answer answer = ANSWER_NONE;
	__u8 data[MOST_BYTES] = { 0 };

	if (fd < 0)
		return from_errno(-fd);
	if (start)
		memcpy(data, start, sizeof(*start));
	if (v4)
		setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe_v4, sizeof(probe_v4));
	else
		setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &probe_v6, sizeof(probe_v6));
	if (length > sizeof(data))
		answer = ANSWER_UNKNOWN;
	else if (send(fd, data, length, MSG_NOSIGNAL) < 0)
		answer = from_errno(errno);
	else if (wait_for(fd, POLLIN))
		answer = recv(fd, NULL, 0, MSG_TRUNC) < 0 ? from_errno(errno) : ANSWER_YES;
	close(fd);
	return answer;
}

/* The header of an echo is part of the data; the kernel fills in its number and sum. */
static enum answer probe_echo(const struct sockaddr *peer, size_t length)
{
	const bool v4 = peer->sa_family == AF_INET;
	const struct icmphdr header = { .type = v4 ? ICMP_ECHO : ICMP6_ECHO_REQUEST };

	return ask(peer, 0, v4 ? IPPROTO_ICMP : IPPROTO_ICMPV6, &header, length + sizeof(header));
}

bool probe_is_refused(const struct sockaddr *peer, unsigned short port, size_t length)
{
	int i;

	for (i = 0; i < TRIES; i++)
		if (ask(peer, port, 0, NULL, length) == ANSWER_REFUSED)
			return true;
	return false;
}

bool probe_is_alive(const struct sockaddr *peer)
{
	enum answer answer;

	if (probe_echo(peer, PROBE_SHORT) == ANSWER_YES)
		return true;
	answer = probe_tcp(peer, CLOSED_PORT);
	return answer == ANSWER_YES || answer == ANSWER_REFUSED ||
	       probe_is_refused(peer, CLOSED_PORT, PROBE_SHORT);
}

bool probe_is_lost(const struct sockaddr *own)
{
	struct sockaddr_storage address;
	bool is_lost;
	int fd;

	if (own->sa_family != AF_INET && own->sa_family != AF_INET6)
		return false;
	fd = make_socket(own->sa_family, SOCK_DGRAM, 0);
	if (fd < 0)
		return false;
	is_lost = bind(fd, (struct sockaddr *)&address, with_port(own, 0, &address)) &&
		  errno == EADDRNOTAVAIL;
	close(fd);
	return is_lost;
}

static bool echo_returns(const struct sockaddr *peer, size_t length)
{
	enum answer answer = ANSWER_NONE;
	int i;

	for (i = 0; i < TRIES && answer == ANSWER_NONE; i++)
		answer = probe_echo(peer, length);
	return answer == ANSWER_YES;
}

enum answer probe_path(const struct sockaddr *peer, size_t length)
{
	if (echo_returns(peer, PROBE_SHORT))
		return echo_returns(peer, length) ? ANSWER_YES : ANSWER_NONE;
	if (probe_is_refused(peer, CLOSED_PORT, PROBE_SHORT))
		return probe_is_refused(peer, CLOSED_PORT, length) ? ANSWER_YES :
										 ANSWER_NONE;
	return ANSWER_UNKNOWN;
}
