/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* ibchan doctor: the peer. */
#ifndef _IBCHAN_DOCTOR_PEER_H
#define _IBCHAN_DOCTOR_PEER_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "doctor.h"

/**
 * struct peer - the peer that is asked, and what is known of it
 * @name: as the user gave it
 * @port: that its doctor listens on
 * @source: address of this host to connect from; NULL: as the route says
 * @rounds: how often all sizes of messages are sent
 * @timeout_ms: for each wait
 * @text: its address
 * @address: the same
 * @route: how to get there
 * @roce: over RoCE v2, so that UDP tells something
 */
struct peer {
	const char *name;
	const char *port;
	const char *source;
	unsigned int rounds;
	int timeout_ms;
	char text[64];
	struct sockaddr_storage address;
	struct ibchan_route route;
	bool roce;
};

/* doctor_peer.c: needs the module. */
void check_peer(struct doctor *doctor, struct peer *peer);
/* Finds out why nothing has come back over RoCE. */
void explain_silence(struct doctor *doctor, struct peer *peer);

/* doctor_channel.c: a channel, and data over it. */
void check_channel(struct doctor *doctor, struct peer *peer);

/* doctor_serve.c: returns only when it fails, after a message. */
int doctor_serve(const char *port);

#endif /* _IBCHAN_DOCTOR_PEER_H */
