/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A chunk of a submit on its way from the caller's memory to the posts: copied (submit.c, and
 * copy.c what is not like most), pinned where it is not registered (plain.c), resolved, and posted
 * (both submit.c).
 */
#ifndef IBCHAN_SUBMIT_H
#define IBCHAN_SUBMIT_H

#include <linux/bits.h>
#include <linux/slab.h>

#include "context.h"
#include "head.h"
#include "restart.h"

/* All that a request of the contract may ask for. */
#define IBCHAN_SUBMIT_OPCODES						\
	(BIT(IBCHAN_OP_SEND) | BIT(IBCHAN_OP_RECV) | BIT(IBCHAN_OP_WRITE) | \
	 BIT(IBCHAN_OP_READ) | BIT(IBCHAN_OP_COMPARE_SWAP) | BIT(IBCHAN_OP_FETCH_ADD))

#define IBCHAN_SUBMIT_FLAGS	(IBCHAN_SUBMIT_SINCE | IBCHAN_DEADLINE)

#define CHUNK_WRS	64
#define CHUNK_PLAIN	16	/* with plain memory: a completed work lets go of its pages */
#define CHUNK_RUN	16	/* of one post, which keeps bottom halves off */
#define CHUNK_SGES	64	/* of entries with two or more; at least one entry's */
#define CHUNK_INLINE	2048	/* bytes; at least what one entry of any channel may carry */

/**
 * union ibchan_submit_element - an element as the contract has it, and as the post wants it
 * @sge: as the post reads it
 * @mr: the region, once the handle is resolved
 * @user: what was copied
 */
union ibchan_submit_element {
	struct ibchan_sge sge;
	struct {
		struct ibchan_mr *mr;
		struct ibchan_submit_sge user;
	};
};

#define SAME_PLACE(member)						\
	static_assert(offsetof(union ibchan_submit_element, sge.member) == \
		      offsetof(union ibchan_submit_element, user.member))
SAME_PLACE(offset);
SAME_PLACE(length);
#undef SAME_PLACE
static_assert(sizeof(union ibchan_submit_element) == sizeof(struct ibchan_sge));

/**
 * struct ibchan_submit_scratch - one chunk
 * @wrs: the requests; members that none of them has are 0 from the start
 * @handles: of their channels
 * @channels: the same, resolved
 * @elements: of all requests but the inline ones
 * @index: of each in the request, as the caller has it
 * @num_elements: used of @elements
 * @has_plain: some element is of plain memory
 * @is_mixed: not all that were posted are of the first one's channel
 * @num_pinned: used of @pinned
 * @pinned: regions made of plain memory
 * @num_data: used of @data
 * @data: inline data of the requests
 */
struct ibchan_submit_scratch {
	struct ibchan_wr wrs[CHUNK_WRS];
	u32 handles[CHUNK_WRS];
	struct ibchan_channel *channels[CHUNK_WRS];
	u32 num_elements;
	int has_plain;
	u32 num_pinned;
	bool is_mixed;
	u32 num_data;
	union ibchan_submit_element elements[CHUNK_SGES + CHUNK_WRS];
	u8 index[CHUNK_SGES + CHUNK_WRS];
	struct ibchan_mr *pinned[CHUNK_SGES + CHUNK_WRS];
	u8 data[CHUNK_INLINE];
};

static inline void ibchan_submit_refuse(struct ibchan_reason *reason, u32 code, u64 first,
					u64 second)
{
	*reason = (struct ibchan_reason){ .code = code, .value = { first, second } };
}

static inline bool ibchan_wr_is_atomic(const struct ibchan_wr *wr)
{
	return wr->opcode == IBCHAN_OP_COMPARE_SWAP || wr->opcode == IBCHAN_OP_FETCH_ADD;
}

/* The place of a request's first element. */
static inline u32 ibchan_submit_place(const struct ibchan_submit_scratch *s,
				      const struct ibchan_wr *wr)
{
	return (const union ibchan_submit_element *)wr->sges - s->elements;
}

/* copy.c */
struct ibchan_submit_scratch *ibchan_submit_scratch_make(void);
int ibchan_submit_copy_odd(struct ibchan_submit_scratch *s, struct ibchan_wr *wr,
			   struct ibchan_reason *reason);

/* plain.c */
u32 ibchan_submit_pin(struct ibchan_context *ctx, struct ibchan_submit_scratch *s, u32 num,
		      struct ibchan_reason *reason, int *error);
void ibchan_submit_unpin(struct ibchan_submit_scratch *s);

/* Several threads may submit at once: the first takes the context's, others make one. */
static inline struct ibchan_submit_scratch *ibchan_submit_scratch_get(struct ibchan_context *ctx)
{
	struct ibchan_submit_scratch *scratch = xchg(&ctx->scratch, NULL);

	return likely(scratch) ? scratch : ibchan_submit_scratch_make();
}

static inline void ibchan_submit_scratch_put(struct ibchan_context *ctx,
					     struct ibchan_submit_scratch *scratch)
{
	scratch = xchg(&ctx->scratch, scratch);
	if (unlikely(scratch))
		kvfree(scratch);
}

#endif /* IBCHAN_SUBMIT_H */
