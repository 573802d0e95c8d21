/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Threads that build channels on a device, connect them, register memory, post and close,
 * until the device leaves or they are told to end.
 */
#ifndef KCLIENT_BUILDER_H
#define KCLIENT_BUILDER_H

#include "job.h"

#define BUILDER_SLOTS	4	/* channels of a builder that are open at a time */

/**
 * struct slot - a channel of a builder's, and what became of it
 * @ch: it; NULL: none was handed out yet
 * @peer: what it is connected to; NULL: itself
 * @mr: registered beside it
 * @jobs: posted on it, the first @posted of them
 * @posted: works accepted
 * @told: how often broken() was called
 * @error: what broken() was told last
 */
struct slot {
	struct ibchan_channel *ch;
	struct ibchan_channel *peer;
	struct ibchan_mr *mr;
	struct job *jobs;
	u32 posted;
	atomic_t told;
	int error;
};

/**
 * struct builder - a thread that uses a device until that has gone
 * @thread: it
 * @near: what its channels are built from
 * @far: the same for their peers; NULL: each channel is its own peer
 * @bears: whether an error is one that the network may cause; NULL: none is
 * @slots: its channels; the oldest one is closed to build another
 * @started: it runs, or has
 * @stop: it is to end
 * @rounds: channels that it built, connected and posted on
 * @wrong: expectations that did not hold
 */
struct builder {
	struct thread thread;
	struct side *near;
	struct side *far;
	int (*bears)(int error);
	struct slot slots[BUILDER_SLOTS];
	int started;
	int stop;
	u32 rounds;
	u32 wrong;
};

int builder_start(struct builder *builder);
void builder_stop(struct builder *builder);
int builder_join(struct builder *builder);
void builder_close(struct builder *builder);

#endif /* KCLIENT_BUILDER_H */
