// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a host answers, as far as a user without privileges can ask. */
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

/* Usually no program has it: the port of traceroute. */
#define CLOSED_PORT	33434

/* A host tells one peer at most once a second that a port is closed, after the first few. */
#define TRIES		2

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

static long long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* Returns false when nothing has happened. */
static bool wait_for(int fd, short events, long long deadline)
{
	struct pollfd poll_fd = { .fd = fd, .events = events };
	long long left;
	int n;

	do {
		left = deadline - now_ms();
		n = poll(&poll_fd, 1, left > 0 ? (int)left : 0);
	} while (n < 0 && errno == EINTR);
	return n > 0;
}

static enum answer from_errno(int err)
{
	switch (err) {
	case ECONNREFUSED:
		return ANSWER_REFUSED;
	case EMSGSIZE:
		return ANSWER_TOO_LONG;
	case EACCES:
	case EPERM:
		return ANSWER_UNKNOWN;
	case ETIMEDOUT:
	case EAGAIN:
		return ANSWER_NONE;
	default:
		return ANSWER_UNREACHABLE;
	}
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

/* A connected socket gets the errors that are about its peer. Returns -1 with errno. */
static int open_socket(const struct sockaddr *peer, unsigned short port, int type, int protocol)
{
	struct sockaddr_storage address;
	socklen_t length = with_port(peer, port, &address);
	int fd = make_socket(peer->sa_family, type | SOCK_NONBLOCK, protocol);
	int err;

	if (fd < 0)
		return -1;
	if (!connect(fd, (struct sockaddr *)&address, length) || errno == EINPROGRESS)
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

enum answer probe_tcp(const struct sockaddr *peer, unsigned short port, int timeout_ms)
{
	int fd = open_socket(peer, port, SOCK_STREAM, 0);
	enum answer answer = ANSWER_NONE;
	int err = 0;
	socklen_t size = sizeof(err);

	if (fd < 0)
		return from_errno(errno);
	if (wait_for(fd, POLLOUT, now_ms() + timeout_ms)) {
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size);
		answer = err ? from_errno(err) : ANSWER_YES;
	}
	close(fd);
	return answer;
}

/* Packets are to stay whole, whatever is believed of the path. */
static void never_fragment(int fd, int family)
{
	int v4 = IP_PMTUDISC_PROBE;
	int v6 = IPV6_PMTUDISC_PROBE;

	if (family == AF_INET)
		setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &v4, sizeof(v4));
	else
		setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &v6, sizeof(v6));
}

static size_t payload_of(const struct sockaddr *peer, size_t packet)
{
	return packet - UDP_HEADER -
	       (peer->sa_family == AF_INET ? IPV4_HEADER : IPV6_HEADER);
}

/* Sends @data and takes what comes back first. */
static enum answer ask(int fd, const void *data, size_t length, long long deadline)
{
	char buf[64];
	ssize_t n = send(fd, data, length, MSG_NOSIGNAL);

	if (n < 0)
		return from_errno(errno);
	if (!wait_for(fd, POLLIN, deadline))
		return ANSWER_NONE;
	n = recv(fd, buf, sizeof(buf), MSG_TRUNC);
	return n < 0 ? from_errno(errno) : ANSWER_YES;
}

static enum answer ask_bytes(int fd, const struct sockaddr *peer, const void *start,
			     size_t packet, int timeout_ms)
{
	size_t length = payload_of(peer, packet);
	__u8 *data = calloc(1, length);
	enum answer answer;

	if (!data)
		return ANSWER_UNKNOWN;
	if (start)
		memcpy(data, start, sizeof(struct icmphdr));
	never_fragment(fd, peer->sa_family);
	answer = ask(fd, data, length, now_ms() + timeout_ms);
	free(data);
	return answer;
}

enum answer probe_udp(const struct sockaddr *peer, unsigned short port, size_t length,
		      int timeout_ms)
{
	int fd = open_socket(peer, port, SOCK_DGRAM, 0);
	enum answer answer;

	if (fd < 0)
		return from_errno(errno);
	answer = ask_bytes(fd, peer, NULL, length, timeout_ms);
	close(fd);
	return answer;
}

/* The header of an echo is part of what is sent; its number and sum are the kernel's. */
enum answer probe_echo(const struct sockaddr *peer, size_t length, int timeout_ms)
{
	bool v4 = peer->sa_family == AF_INET;
	struct icmphdr header = { .type = v4 ? ICMP_ECHO : ICMP6_ECHO_REQUEST };
	int fd = open_socket(peer, 0, SOCK_DGRAM, v4 ? IPPROTO_ICMP : IPPROTO_ICMPV6);
	enum answer answer;

	if (fd < 0)
		return from_errno(errno);
	answer = ask_bytes(fd, peer, &header, length + sizeof(header), timeout_ms);
	close(fd);
	return answer;
}

bool probe_is_refused(const struct sockaddr *peer, unsigned short port, size_t length,
		      int timeout_ms)
{
	int i;

	for (i = 0; i < TRIES; i++)
		if (probe_udp(peer, port, length, timeout_ms) == ANSWER_REFUSED)
			return true;
	return false;
}

bool probe_is_alive(const struct sockaddr *peer, int timeout_ms)
{
	enum answer answer;

	if (probe_echo(peer, PROBE_SHORT, timeout_ms) == ANSWER_YES)
		return true;
	answer = probe_tcp(peer, CLOSED_PORT, timeout_ms);
	if (answer == ANSWER_YES || answer == ANSWER_REFUSED)
		return true;
	return probe_is_refused(peer, CLOSED_PORT, PROBE_SHORT, timeout_ms);
}

bool probe_is_lost(const struct sockaddr *own)
{
	struct sockaddr_storage address;
	bool is_lost = false;
	socklen_t length;
	int fd;

	if (own->sa_family != AF_INET && own->sa_family != AF_INET6)
		return false;
	fd = make_socket(own->sa_family, SOCK_DGRAM, 0);
	if (fd < 0)
		return false;
	length = with_port(own, 0, &address);
	if (bind(fd, (struct sockaddr *)&address, length))
		is_lost = errno == EADDRNOTAVAIL;
	close(fd);
	return is_lost;
}

static bool echo_returns(const struct sockaddr *peer, size_t length, int timeout_ms)
{
	enum answer answer = ANSWER_NONE;
	int i;

	for (i = 0; i < TRIES && answer == ANSWER_NONE; i++)
		answer = probe_echo(peer, length, timeout_ms);
	return answer == ANSWER_YES;
}

enum answer probe_path(const struct sockaddr *peer, size_t length, int timeout_ms)
{
	if (echo_returns(peer, PROBE_SHORT, timeout_ms))
		return echo_returns(peer, length, timeout_ms) ? ANSWER_YES : ANSWER_NONE;
	if (probe_is_refused(peer, CLOSED_PORT, PROBE_SHORT, timeout_ms))
		return probe_is_refused(peer, CLOSED_PORT, length, timeout_ms) ? ANSWER_YES :
										 ANSWER_NONE;
	return ANSWER_UNKNOWN;
}
