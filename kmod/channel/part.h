/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Features of upper floors that have a part in each channel: keepalive (watch.c) and the
 * connection by address (cm_end.c). A channel calls them by this table.
 */
#ifndef IBCHAN_PART_H
#define IBCHAN_PART_H

#include <linux/types.h>

#include "only.h"

struct ibchan_channel;
struct ibchan_endpoint;
struct ibchan_facts;
struct ibchan_reason;

/**
 * struct ibchan_channel_part - when a part of a channel is called
 * @init: its memory has just been cleared
 * @make: it is not built yet; an error refuses it
 * @connected: connected by endpoints, and the state says so; under the qp lock
 * @interrupt: it is broken, and nobody has the qp lock; ends what holds that for long
 * @disconnect: it is broken, and its works are flushed
 * @stop: it is closed; nothing of the part runs any more
 * @forget_marker: its queue pair is about to go
 * @defers_marker: the part posts the marker of the send queue, later
 * @heard_peer: a message of the peer's has come, before its word that it is connected
 * @tells_peer: the peer does not notice by itself that the device has ended the queue pair,
 *	and @disconnect tells it
 * @flush: the device has forgotten what was posted; under the right to reap the cq
 * @unlist: it is closed; under the device's lock
 * @end: its queue pair is gone, or never was, and neither may be the part: @make was not
 *	called or has failed; without the gate
 * @free: its memory goes
 * @fill_facts: under the qp lock
 *
 * Each may be NULL. @flush, @defers_marker, @heard_peer, @tells_peer and @free must not sleep;
 * all others run in process context and may.
 */
struct ibchan_channel_part {
	void (*init)(struct ibchan_channel *ch);
	int (*make)(struct ibchan_channel *ch, struct ibchan_reason *reason);
	void (*connected)(struct ibchan_channel *ch, const struct ibchan_endpoint *peer);
	void (*interrupt)(struct ibchan_channel *ch);
	void (*disconnect)(struct ibchan_channel *ch);
	void (*stop)(struct ibchan_channel *ch);
	void (*forget_marker)(struct ibchan_channel *ch);
	bool (*defers_marker)(struct ibchan_channel *ch);
	void (*heard_peer)(struct ibchan_channel *ch);
	bool (*tells_peer)(struct ibchan_channel *ch);
	void (*flush)(struct ibchan_channel *ch);
	void (*unlist)(struct ibchan_channel *ch);
	void (*end)(struct ibchan_channel *ch);
	void (*free)(struct ibchan_channel *ch);
	void (*fill_facts)(const struct ibchan_channel *ch, struct ibchan_facts *facts);
};

/* The last one is NULL. Set once, before the first channel is built. */
extern const struct ibchan_channel_part *const *ibchan_channel_parts;

/* Calls @what of each part that has it. */
#define ibchan_parts_call(what, ...)						\
do {										\
	const struct ibchan_channel_part *const *part;				\
										\
	for (part = ibchan_channel_parts; *part; part++)			\
		if ((**part).what)						\
			(**part).what(__VA_ARGS__);				\
} while (0)

/* The same, up to the first one that does not return 0, which is the value. */
#define ibchan_parts_ask(what, ...)						\
({										\
	const struct ibchan_channel_part *const *part;				\
	int answer = 0;								\
										\
	for (part = ibchan_channel_parts; *part && !answer; part++)		\
		if ((**part).what)						\
			answer = (**part).what(__VA_ARGS__);			\
	answer;									\
})

#endif /* IBCHAN_PART_H */
