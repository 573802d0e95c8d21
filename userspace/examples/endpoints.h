/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The other way to a channel: two programs that have a connection already, here by TCP,
 * tell each other their endpoints over it. It works between any two devices that reach
 * each other, where a connection by address needs an IP address that leads there.
 */
#ifndef _EXAMPLES_ENDPOINTS_H
#define _EXAMPLES_ENDPOINTS_H

#include "common.h"

/* A listening socket; a connection from it. */
int tcp_listen(const struct options *options);
int tcp_accept(int listener);

/*
 * Sends @length bytes and receives as many; both sides do it at the same time. 0 when the
 * other one is gone.
 */
int swap(int tcp, const void *mine, void *theirs, size_t length);

/* A channel to the process at the other end of @tcp; NULL when that is gone. */
struct ibchan_channel *endpoints_connect(struct ibchan_prepared *prepared, int tcp);

/* The same, after waiting for the other side, or connecting to it; for side_connect(). */
struct ibchan_channel *endpoints_meet(struct ibchan_prepared *prepared,
				      const struct options *options, const void *mine,
				      void *theirs, size_t length);

#endif /* _EXAMPLES_ENDPOINTS_H */
