/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Listeners, for the calls that take requests from them. */
#ifndef _LIBIBCHAN_LISTEN_H
#define _LIBIBCHAN_LISTEN_H

#include <sys/socket.h>

#include "source.h"

/* Peers of a listener that are accepted at a time, and not connected yet. */
#define MAX_ACCEPTING	32

/* Where requests come in. */
struct ibchan_listener {
	struct object object;		/* see struct object */
	struct source source;		/* of requests, for ibchan_next() */
	int fd;				/* the kernel's descriptor; immutable */
	struct sockaddr_storage address;	/* immutable */
	void *priv;			/* the caller's */
	struct lock lock;		/* guards all below */
	/* Of peers that ibchan_builder_accept() has answered and not returned, the oldest first. */
	struct ibchan_channel *accepting;
	__u64 lost;			/* peers that were taken and have not been connected */
};

#pragma GCC visibility push(hidden)

bool request_waits(const struct ibchan_listener *listener);
bool request_has_given_up(int err);

#pragma GCC visibility pop

#endif /* _LIBIBCHAN_LISTEN_H */
