/* SPDX-License-Identifier: GPL-2.0-only */
/* Two sides on one device, one of which asks the other by its address. */
#ifndef KCLIENT_MEETING_H
#define KCLIENT_MEETING_H

#include <linux/in.h>
#include <linux/in6.h>
#include <rdma/ibchan_connect.h>

#include "job.h"

/**
 * struct party - one of the two, and what its channel was told
 * @side: what it has; @side.ch is its channel
 * @told: callbacks so far
 * @connected: how often connected() was called
 * @broken: how often broken() was called
 * @connected_as: the first, second, ... callback was connected(); 0: none was
 * @broken_as: the same for broken()
 * @error: what broken() was told
 * @at_connected: called by connected(), if set
 * @at_broken: called by broken(), if set
 * @job: for @at_connected
 */
struct party {
	struct side *side;
	atomic_t told;
	atomic_t connected;
	atomic_t broken;
	int connected_as;
	int broken_as;
	int error;
	void (*at_connected)(struct party *party);
	void (*at_broken)(struct party *party);
	struct job *job;
};

/**
 * struct meeting - who asks, who is asked, and where
 * @w: the world
 * @asking: on the first side
 * @asked: on the second one, and on the same device unless @init says otherwise
 * @init: how the sides are made; may be changed before meeting_begin()
 * @listener: at @address, which the first side's device has; NULL once it is closed
 * @address: where it listens
 * @ready: how often the listener's ready() was called
 */
struct meeting {
	struct world *w;
	struct party asking;
	struct party asked;
	struct pair_init init;
	struct ibchan_listener *listener;
	struct sockaddr_storage address;
	atomic_t ready;
};

struct meeting *meeting_new(struct world *w);
int meeting_begin(struct meeting *m);
struct meeting *meeting_default(struct world *w);
int meeting_listen(struct meeting *m, struct ibchan_device *only);
int device_address(struct world *w, struct ibchan_device *dev,
		   struct sockaddr_storage *address);
struct ibchan_channel *party_try_build(struct party *party, struct side *side,
				       const struct ibchan_params *params);
struct ibchan_channel *party_build(struct party *party, struct side *side,
				   const struct ibchan_params *params);
int meeting_ask(struct meeting *m, const void *data, u32 length);
struct ibchan_request *meeting_take(struct meeting *m);
int meeting_accept(struct meeting *m, struct ibchan_request *request, const void *data,
		   u32 length);
int meeting_connect(struct meeting *m);
int party_outcome(struct party *party);
void party_expect(struct party *party, int connected, int broken, int error);
void meeting_close_listener(struct meeting *m);

#endif /* KCLIENT_MEETING_H */
