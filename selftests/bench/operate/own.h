/* SPDX-License-Identifier: GPL-2.0-only */
/* What operations by libibchan have in common. */
#ifndef BENCH_OWN_H
#define BENCH_OWN_H

#include <ibchan.h>

#include "operate.h"

#define CQ_ENTRIES(depth)	(4 * (depth))
/* And two for each of two channels. */
#define CQ_ROOM(depth)		(CQ_ENTRIES(depth) + 4)

/* The first channel posts, the second receives; a receive goes along with its send. */
struct own {
	struct ibchan_context *context;
	struct ibchan_device *device;
	struct ibchan_pd *pd;
	struct ibchan_cq *cq;
	struct ibchan_mr *mr;
	struct ibchan_channel *channel[2];
	struct ibchan_remote_region remote;
	struct ibchan_remote_region first;	/* of it: what the first work names */
	struct ibchan_submit_wr wrs[2 * DEPTH];
	struct ibchan_submit_sge source[DEPTH];
	struct ibchan_submit_sge target[DEPTH];
};

extern struct own own;

/* Channels on one cq, with room for @depth works each way. */
void own_builder(struct ibchan_builder *builder, struct ibchan_cq *cq, unsigned int depth);
int own_connect(const struct ibchan_builder *builder, struct ibchan_channel *channel[2]);
/* Takes @left completions; all must be of works that succeeded. */
int own_reap(struct ibchan_cq *cq, unsigned int left);

#endif /* BENCH_OWN_H */
