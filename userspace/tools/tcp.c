// SPDX-License-Identifier: LGPL-2.1-or-later
/* The connection on which two sides of a pingpong agree. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tcp.h"
#include "tool.h"

/* Between two tries to reach a server that is not there yet. */
#define RETRY_MS	100

static long long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static long long tcp_deadline(const struct tcp *tcp)
{
	return tcp->timeout_s ? now_ms() + tcp->timeout_s * 1000LL : -1;
}

/* Returns 0 when the socket is ready, else a negative errno. */
static int wait_ready(int fd, short events, long long deadline)
{
	struct pollfd poll_fd = { .fd = fd, .events = events };
	long long left = -1;
	int n;

	do {
		if (deadline >= 0) {
			left = deadline - now_ms();
			left = left > 0 ? left : 0;
		}
		n = poll(&poll_fd, 1, (int)left);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n ? 0 : -ETIMEDOUT;
}

/* One failure ends the connection; what is tried on it later fails silently. */
static int complain_tcp(struct tcp *tcp, const char *what, int err)
{
	tcp_close(tcp);
	if (err == -ETIMEDOUT)
		return complain("%s: %s: nothing happened for %d s", tcp->name,
				what, tcp->timeout_s);
	return complain("%s: %s: %s", tcp->name, what, strerror(-err));
}

static void name_peer(struct tcp *tcp, const struct sockaddr_storage *addr,
		      socklen_t len)
{
	char host[NI_MAXHOST];
	char port[NI_MAXSERV];

	if (getnameinfo((const struct sockaddr *)addr, len, host, sizeof(host),
			port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(tcp->name, sizeof(tcp->name), "client");
	else
		snprintf(tcp->name, sizeof(tcp->name), "%s:%s", host, port);
}

static int addresses(const char *host, const char *port, int flags,
		     struct addrinfo **list)
{
	const struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = flags,
	};
	int err = getaddrinfo(host, port, &hints, list);

	if (err)
		return complain("%s:%s: %s", host ? host : "*", port,
				err == EAI_SYSTEM ? strerror(errno) :
						    gai_strerror(err));
	return 0;
}

/* An IPv6 socket that takes IPv4 too, where there is IPv6. */
static int listen_on(const struct addrinfo *address)
{
	int fd = socket(address->ai_family,
			SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int yes = 1;
	int no = 0;
	int err;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (address->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	if (!bind(fd, address->ai_addr, address->ai_addrlen) && !listen(fd, 1))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static int listen_any(const char *port)
{
	static const int families[] = { AF_INET6, AF_INET };
	struct addrinfo *list;
	struct addrinfo *a;
	int fd = -EAFNOSUPPORT;
	size_t i;

	if (addresses(NULL, port, AI_PASSIVE, &list))
		return -1;
	for (i = 0; i < ARRAY_SIZE(families) && fd < 0; i++)
		for (a = list; a && fd < 0; a = a->ai_next)
			if (a->ai_family == families[i])
				fd = listen_on(a);
	freeaddrinfo(list);
	if (fd < 0)
		return complain("cannot listen on port %s: %s", port,
				strerror(-fd));
	return fd;
}

static void no_delay(int fd)
{
	int yes = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

int tcp_accept(struct tcp *tcp, const char *port)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);
	int listener = listen_any(port);
	int err;

	tcp->fd = -1;
	if (listener < 0)
		return -1;
	snprintf(tcp->name, sizeof(tcp->name), "port %s", port);
	err = wait_ready(listener, POLLIN, tcp_deadline(tcp));
	if (!err) {
		tcp->fd = accept4(listener, (struct sockaddr *)&peer, &len,
				  SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (tcp->fd < 0)
			err = -errno;
	}
	close(listener);
	if (err)
		return complain_tcp(tcp, "waiting for a client", err);
	name_peer(tcp, &peer, len);
	no_delay(tcp->fd);
	return 0;
}

static int connect_to(const struct addrinfo *address, long long deadline)
{
	int fd = socket(address->ai_family,
			SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err = 0;
	socklen_t len = sizeof(err);

	if (fd < 0)
		return -errno;
	if (connect(fd, address->ai_addr, address->ai_addrlen)) {
		err = -errno;
		if (err == -EINPROGRESS)
			err = wait_ready(fd, POLLOUT, deadline);
		if (!err) {
			getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);
			err = -err;
		}
	}
	if (!err)
		return fd;
	close(fd);
	return err;
}

static int connect_any(const struct addrinfo *list, long long deadline)
{
	int fd = -EADDRNOTAVAIL;

	for (; list && fd < 0; list = list->ai_next)
		fd = connect_to(list, deadline);
	return fd;
}

/* A server that was started together with us may take a moment. */
int tcp_connect(struct tcp *tcp, const char *host, const char *port)
{
	const struct timespec pause = { .tv_nsec = RETRY_MS * 1000000 };
	long long deadline = tcp_deadline(tcp);
	struct addrinfo *list;
	int said = 0;

	tcp->fd = -1;
	snprintf(tcp->name, sizeof(tcp->name), "%s:%s", host, port);
	if (addresses(host, port, 0, &list))
		return -1;
	for (;;) {
		tcp->fd = connect_any(list, deadline);
		if (tcp->fd != -ECONNREFUSED ||
		    (deadline >= 0 && now_ms() >= deadline))
			break;
		if (said++ == 1000 / RETRY_MS)
			complain("%s: no server there yet, still trying",
				 tcp->name);
		nanosleep(&pause, NULL);
	}
	freeaddrinfo(list);
	if (tcp->fd < 0)
		return complain_tcp(tcp, "connect", tcp->fd);
	no_delay(tcp->fd);
	return 0;
}

int tcp_write(struct tcp *tcp, const void *buf, size_t len)
{
	long long deadline = tcp_deadline(tcp);
	const char *from = buf;
	ssize_t n;
	int err;

	if (tcp->fd < 0)
		return -1;
	while (len) {
		n = send(tcp->fd, from, len, MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return complain_tcp(tcp, "send", -errno);
		if (n > 0) {
			from += n;
			len -= (size_t)n;
			continue;
		}
		err = wait_ready(tcp->fd, POLLOUT, deadline);
		if (err)
			return complain_tcp(tcp, "send", err);
	}
	return 0;
}

int tcp_read(struct tcp *tcp, void *buf, size_t len)
{
	long long deadline = tcp_deadline(tcp);
	char *to = buf;
	ssize_t n;
	int err;

	if (tcp->fd < 0)
		return -1;
	while (len) {
		err = wait_ready(tcp->fd, POLLIN, deadline);
		if (err)
			return complain_tcp(tcp, "receive", err);
		n = recv(tcp->fd, to, len, 0);
		if (!n)
			return complain_tcp(tcp, "receive", -ECONNRESET);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return complain_tcp(tcp, "receive", -errno);
		if (n > 0) {
			to += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

void tcp_close(struct tcp *tcp)
{
	if (tcp->fd >= 0)
		close(tcp->fd);
	tcp->fd = -1;
}
