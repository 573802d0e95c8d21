/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A TCP connection on which two sides agree. Every wait has an end; every
 * failure is said with the peer's name.
 */
#ifndef _IBCHAN_TCP_H
#define _IBCHAN_TCP_H

#include <stddef.h>

/**
 * struct tcp - one connection
 * @fd: the socket, never blocking
 * @timeout_s: for each wait, in seconds; 0: no limit
 * @name: of the peer, "host:port"
 */
struct tcp {
	int fd;
	int timeout_s;
	char name[1100];
};

/* All return 0, or -1; the first failure of a connection says why. */
int tcp_accept(struct tcp *tcp, const char *port);
int tcp_connect(struct tcp *tcp, const char *host, const char *port);
int tcp_write(struct tcp *tcp, const void *buf, size_t len);
int tcp_read(struct tcp *tcp, void *buf, size_t len);
void tcp_close(struct tcp *tcp);

#endif /* _IBCHAN_TCP_H */
