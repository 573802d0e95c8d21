/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A chunk of a submit on its way from the caller's memory to the posts: copied (submit.c, and
 * odd.c what is not like most), pinned where it is not registered (odd.c), resolved, and posted
 * (both submit.c).
 */
#ifndef IBCHAN_SUBMIT_H
#define IBCHAN_SUBMIT_H

#include <linux/bits.h>
#include <linux/slab.h>

#include "context.h"
#include "head.h"
#include "refuse.h"

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

/* An element as the contract has it, and as the post wants it */
union ibchan_submit_element {
	struct ibchan_sge sge;	/* as the post reads it */
	struct {
		struct ibchan_mr *mr;	/* the region, once it is found */
		union {
			struct ibchan_submit_sge user;	/* what was copied */
			u64 words[2];	/* the same */
		};
	};
};

#define SAME_PLACE(member)						\
	static_assert(offsetof(union ibchan_submit_element, sge.member) == \
		      offsetof(union ibchan_submit_element, user.member))
SAME_PLACE(offset);
SAME_PLACE(length);
#undef SAME_PLACE
static_assert(sizeof(union ibchan_submit_element) == sizeof(struct ibchan_sge));

/* One chunk */
struct ibchan_submit_scratch {
	u32 accepted;	/* of a run, as the post tells */
	/* the requests; members that none of them has are 0 from the start */
	struct ibchan_wr wrs[CHUNK_WRS];
	u32 handles[CHUNK_WRS];	/* of their channels */
	struct ibchan_channel *others[CHUNK_WRS];	/* that have taken a run, but the last */
	u64 odd;	/* bit n: request n is not like most */
	u32 num_elements;	/* used of @elements */
	int has_plain;	/* some element is of plain memory */
	u32 num_pinned;	/* used of @pinned */
	u32 num_data;	/* used of @data */
	/* of all requests but the inline ones */
	union ibchan_submit_element elements[CHUNK_SGES + CHUNK_WRS];
	/* of each of an odd request, as the caller has it */
	u8 index[CHUNK_SGES + CHUNK_WRS];
	struct ibchan_mr *pinned[CHUNK_SGES + CHUNK_WRS];	/* regions made of plain memory */
	u8 data[CHUNK_INLINE];	/* inline data of the requests */
};

static_assert(CHUNK_WRS <= 64);	/* bits of @odd */

/* Ranges exclude each other unless the caller does not want that. */
#define IBCHAN_SUBMIT_HEAD(head)	((head) ^ IBCHAN_HEAD(0, IBCHAN_WR_EXCLUSIVE))
static_assert(IBCHAN_WR_EXCLUSIVE == IBCHAN_WR_UNCHECKED);

/* Returns @error. */
static inline int ibchan_submit_refuse(struct ibchan_reason *reason, u32 code, int error, u64 first,
				       u64 second)
{
	return ibchan_refuse_values(reason, code, error, (u64[3]) { first, second });
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

/* Returns the number that an element of request @num has in the caller's request. */
static inline u32 ibchan_submit_index(const struct ibchan_submit_scratch *s, u32 num, u32 element)
{
	return s->odd & BIT_ULL(num) ?
	       s->index[ibchan_submit_place(s, &s->wrs[num]) + element] : 0;
}

/* odd.c */
int ibchan_submit_copy_odd(struct ibchan_submit_scratch *s, u32 num, u64 addr, u32 len,
			   struct ibchan_reason *reason);
int ibchan_submit_pin(struct ibchan_context *ctx, struct ibchan_submit_scratch *s, u32 num,
		      struct ibchan_reason *reason);
void ibchan_submit_unpin(struct ibchan_submit_scratch *s);

#endif /* IBCHAN_SUBMIT_H */
