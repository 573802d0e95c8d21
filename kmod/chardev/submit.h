/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A chunk of a submit on its way from the caller's memory to the posts: copied
 * (copy.c), pinned where it is not registered (plain.c), resolved (resolve.c), posted
 * (submit.c).
 */
#ifndef IBCHAN_SUBMIT_H
#define IBCHAN_SUBMIT_H

#include <linux/bits.h>
#include <linux/slab.h>

#include "context.h"
#include "restart.h"

/* All that a request of the contract may ask for. */
#define IBCHAN_SUBMIT_OPCODES						\
	(BIT(IBCHAN_OP_SEND) | BIT(IBCHAN_OP_RECV) | BIT(IBCHAN_OP_WRITE) | \
	 BIT(IBCHAN_OP_READ) | BIT(IBCHAN_OP_COMPARE_SWAP) | BIT(IBCHAN_OP_FETCH_ADD))

#define IBCHAN_SUBMIT_FLAGS	(IBCHAN_SUBMIT_SINCE | IBCHAN_DEADLINE)

#define CHUNK_WRS	64
#define CHUNK_PLAIN	16	/* with plain memory: what has completed lets go of its own */
#define CHUNK_RUN	16	/* of one post, which keeps bottom halves off */
#define CHUNK_SGES	64	/* of entries with two or more; at least one entry's */
#define CHUNK_INLINE	2048	/* bytes; at least what one entry of any channel may carry */

/**
 * struct ibchan_submit_scratch - one chunk, as copied and as resolved
 * @entries: the user's requests
 * @user_sges: elements of the requests that have two or more
 * @first_sge: per entry, where in @user_sges its elements begin
 * @num_sges: used of @user_sges
 * @data: what the requests carry inline
 * @first_data: per entry, where in @data its own begin
 * @data_length: per entry, how many bytes they are
 * @num_data: used of @data
 * @has_plain: some element is of plain memory
 * @num_pinned: elements looked at for @pinned
 * @pinned: regions made of plain memory, by the place of the element among all that
 *	are not inline; NULL for others, and for empty ones
 * @wrs: resolved
 * @channels: resolved, per entry
 * @sges: resolved; one for each entry that has just one, too
 */
struct ibchan_submit_scratch {
	struct ibchan_submit_wr entries[CHUNK_WRS];
	struct ibchan_submit_sge user_sges[CHUNK_SGES];
	u32 first_sge[CHUNK_WRS];
	u32 num_sges;
	u8 data[CHUNK_INLINE];
	u32 first_data[CHUNK_WRS];
	u32 data_length[CHUNK_WRS];
	u32 num_data;
	int has_plain;
	u32 num_pinned;
	struct ibchan_mr *pinned[CHUNK_SGES + CHUNK_WRS];
	struct ibchan_wr wrs[CHUNK_WRS];
	struct ibchan_channel *channels[CHUNK_WRS];
	struct ibchan_sge sges[CHUNK_SGES + CHUNK_WRS];
};

static inline void ibchan_submit_refuse(struct ibchan_reason *reason, u32 code, u64 first,
					u64 second)
{
	*reason = (struct ibchan_reason){ .code = code, .value = { first, second } };
}

static inline bool ibchan_entry_is_atomic(const struct ibchan_submit_wr *entry)
{
	return entry->opcode == IBCHAN_OP_COMPARE_SWAP || entry->opcode == IBCHAN_OP_FETCH_ADD;
}

static inline bool ibchan_entry_is_inline(const struct ibchan_submit_wr *entry)
{
	return entry->flags & IBCHAN_WR_INLINE;
}

/* Ranges exclude each other unless the caller does not want that. */
static inline u8 ibchan_kernel_flags(u8 flags)
{
	static_assert(IBCHAN_WR_EXCLUSIVE == IBCHAN_WR_UNCHECKED);

	return flags ^ IBCHAN_WR_EXCLUSIVE;
}

/* Where the elements of an entry were copied to. */
static inline const struct ibchan_submit_sge *
ibchan_entry_sges(const struct ibchan_submit_scratch *s, u32 index)
{
	return s->entries[index].num_sge == 1 ? &s->entries[index].sge :
						&s->user_sges[s->first_sge[index]];
}

/* copy.c */
u32 ibchan_submit_copy(struct ibchan_submit_scratch *s, const struct ibchan_cmd_submit *cmd,
		       u32 left, struct ibchan_reason *reason, int *error);

/* plain.c */
u32 ibchan_submit_pin(struct ibchan_context *ctx, struct ibchan_submit_scratch *s, u32 num,
		      struct ibchan_reason *reason, int *error);
void ibchan_submit_unpin(struct ibchan_submit_scratch *s);

/* resolve.c */
int ibchan_submit_check(const struct ibchan_submit_wr *entry, struct ibchan_reason *reason);
u32 ibchan_submit_resolve(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
			  u32 num, struct ibchan_reason *reason, int *error);
void ibchan_submit_translate(const struct ibchan_submit_scratch *s, u32 index,
			     struct ibchan_reason *reason);

/* Several threads may submit at once: the first takes the context's, others make one. */
static inline struct ibchan_submit_scratch *ibchan_submit_scratch_get(struct ibchan_context *ctx)
{
	struct ibchan_submit_scratch *scratch = xchg(&ctx->scratch, NULL);

	return scratch ?: kvzalloc(sizeof(*scratch), GFP_KERNEL_ACCOUNT);
}

static inline void ibchan_submit_scratch_put(struct ibchan_context *ctx,
					     struct ibchan_submit_scratch *scratch)
{
	scratch = xchg(&ctx->scratch, scratch);
	if (unlikely(scratch))
		kvfree(scratch);
}

#endif /* IBCHAN_SUBMIT_H */
