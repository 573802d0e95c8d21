/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Listeners, for the calls that take requests from them. */
#ifndef _LIBIBCHAN_LISTEN_H
#define _LIBIBCHAN_LISTEN_H

#include <sys/socket.h>

#include "source.h"

/**
 * struct ibchan_listener - where requests come in
 * @object: see struct object
 * @source: of requests, for ibchan_next()
 * @fd: the kernel's descriptor; immutable
 * @address: immutable
 * @priv: the caller's
 * @lock: guards all below
 * @accepting: channels of peers that ibchan_builder_accept() has answered and not returned, the
 *	oldest first
 * @lost: peers that were taken and have not been connected
 */
struct ibchan_listener {
	struct object object;
	struct source source;
	int fd;
	struct sockaddr_storage address;
	void *priv;
	struct lock lock;
	struct ibchan_channel *accepting;
	__u64 lost;
};

#pragma GCC visibility push(hidden)

/* listen.c */
bool request_waits(const struct ibchan_listener *listener);
bool request_has_given_up(int err);

/* accept.c */
void accepting_close(struct ibchan_listener *listener);

#pragma GCC visibility pop

#endif /* _LIBIBCHAN_LISTEN_H */
