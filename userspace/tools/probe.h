/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Packets that a user without privileges can send to a host, and its answers. */
#ifndef _IBCHAN_PROBE_H
#define _IBCHAN_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <linux/types.h>

/* RoCE v2 travels in UDP to this port. */
#define ROCE_PORT	4791

/* The shortest IP packet that is worth asking with. */
#define PROBE_SHORT	64

/**
 * enum answer - the outcome of a probe
 * @ANSWER_NONE: nothing, in time
 * @ANSWER_YES: the wanted answer
 * @ANSWER_REFUSED: the host is there, and no program has that port
 * @ANSWER_UNKNOWN: this process may not ask, or there is no way for such a packet
 */
enum answer {
	ANSWER_NONE,
	ANSWER_YES,
	ANSWER_REFUSED,
	ANSWER_UNKNOWN,
};

/* From now on all go by this network device or VRF, where the kernel allows it. */
void probe_by(const char *name);

/* @length is that of the IP packet, which stays whole. */

/* Does the host say that no program has that port? Asks again: such answers are held back. */
bool probe_is_refused(const struct sockaddr *peer, unsigned short port, size_t length);

/* Answers anything at all, a refusal as well? */
bool probe_is_alive(const struct sockaddr *peer);

/* Is no address of this host any more? False where nobody can tell. */
bool probe_is_lost(const struct sockaddr *own);

/*
 * Says whether IP packets of @length bytes get through whole: ANSWER_YES, ANSWER_NONE; or
 * ANSWER_UNKNOWN where the peer does not even answer short ones.
 */
enum answer probe_path(const struct sockaddr *peer, size_t length);

#endif /* _IBCHAN_PROBE_H */
