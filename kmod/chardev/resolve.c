// SPDX-License-Identifier: GPL-2.0-only
/*
 * Submit, next to last step: copied requests become the kernel's own. What the
 * contract knows and the kernel's interface does not is judged here; the rest is left
 * to the post.
 *
 * RCU is held throughout, until the post has taken references of its own.
 */
#include <linux/errno.h>

#include "submit.h"

static bool is_empty_plain(const struct ibchan_submit_sge *sge)
{
	return sge->mr == IBCHAN_MR_PLAIN && !sge->length;
}

static bool sge_is_zero(const struct ibchan_submit_sge *sge)
{
	return !sge->offset && !sge->length && !sge->mr;
}

static int check_known(const struct ibchan_submit_wr *entry, struct ibchan_reason *reason)
{
	if (entry->opcode >= BITS_PER_LONG || !(BIT(entry->opcode) & IBCHAN_SUBMIT_OPCODES)) {
		ibchan_submit_refuse(reason, IBCHAN_REASON_OPCODE, entry->opcode, 0);
		return -EINVAL;
	}
	if (entry->flags & ~IBCHAN_WR_FLAGS) {
		ibchan_submit_refuse(reason, IBCHAN_REASON_WR_FLAGS, entry->flags,
				     IBCHAN_WR_FLAGS);
		return -EOPNOTSUPP;
	}
	return 0;
}

static bool is_one_sided(const struct ibchan_submit_wr *entry)
{
	return entry->opcode == IBCHAN_OP_WRITE || entry->opcode == IBCHAN_OP_READ ||
	       ibchan_entry_is_atomic(entry);
}

/* What neither the opcode nor the flags nor the number of elements asks for is 0. */
static bool has_surplus(const struct ibchan_submit_wr *entry)
{
	return (entry->swap && entry->opcode != IBCHAN_OP_COMPARE_SWAP) ||
	       (entry->imm && !(entry->flags & IBCHAN_WR_IMM)) ||
	       ((entry->remote_addr || entry->rkey) && !is_one_sided(entry)) ||
	       (entry->sges && entry->num_sge < 2 && !ibchan_entry_is_atomic(entry)) ||
	       (entry->num_sge != 1 && !sge_is_zero(&entry->sge));
}

static int check_reserved(const struct ibchan_submit_wr *entry,
			  struct ibchan_reason *reason)
{
	if (!has_surplus(entry))
		return 0;
	ibchan_submit_refuse(reason, IBCHAN_REASON_RESERVED, 0, 0);
	return -EINVAL;
}

/**
 * ibchan_submit_check - what can be said about an entry by itself
 * @entry: the entry
 * @reason: why not
 *
 * Context: any.
 * Return: 0; -EINVAL; -EOPNOTSUPP for an unknown flag.
 */
int ibchan_submit_check(const struct ibchan_submit_wr *entry, struct ibchan_reason *reason)
{
	int ret = check_known(entry, reason);

	return ret ?: check_reserved(entry, reason);
}

static int resolve_sge(struct ibchan_context *ctx, const struct ibchan_submit_sge *user,
		       struct ibchan_sge *sge, struct ibchan_reason *reason)
{
	struct ibchan_object *object = ibchan_object_find(ctx, user->mr, OBJECT_MR);

	if (!object) {
		ibchan_submit_refuse(reason, IBCHAN_REASON_MR_HANDLE, user->mr, 0);
		return -ENOENT;
	}
	sge->mr = object->mr;
	sge->offset = user->offset;
	sge->length = user->length;
	return 0;
}

/*
 * The elements of an entry, from @first on among all that are not inline. An empty element of
 * plain memory has no region, and is left out.
 */
static int resolve_sges(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
			u32 index, u32 first, struct ibchan_reason *reason)
{
	const struct ibchan_submit_sge *user = ibchan_entry_sges(s, index);
	struct ibchan_sge *sges = &s->sges[first];
	struct ibchan_wr *wr = &s->wrs[index];
	int ret;
	u32 i;

	wr->sges = sges;
	for (i = 0; i < s->entries[index].num_sge; i++) {
		struct ibchan_sge *sge = &sges[wr->num_sge];

		if (is_empty_plain(&user[i]))
			continue;
		if (user[i].mr == IBCHAN_MR_PLAIN) {
			sge->mr = s->pinned[first + i];
			sge->offset = 0;
			sge->length = user[i].length;
			wr->num_sge++;
			continue;
		}
		ret = resolve_sge(ctx, &user[i], sge, reason);
		if (ret) {
			reason->element = i;
			return ret;
		}
		wr->num_sge++;
	}
	return 0;
}

/* Each member once: the request before in the same place had others. */
static void fill_wr(struct ibchan_wr *wr, const struct ibchan_submit_wr *entry)
{
	bool atomic = ibchan_entry_is_atomic(entry);

	wr->wr_id = entry->wr_id;
	wr->work = NULL;
	wr->sges = NULL;
	wr->data = NULL;
	wr->data_length = 0;
	wr->remote_addr = entry->remote_addr;
	wr->remote_length = IBCHAN_REMOTE_UNCHECKED;
	wr->operand = atomic ? entry->operand : 0;
	wr->swap = entry->swap;
	wr->rkey = entry->rkey;
	wr->imm = entry->imm;
	wr->num_sge = 0;
	wr->opcode = entry->opcode;
	wr->flags = ibchan_kernel_flags(entry->flags);
}

/* The request, without elements. */
static int resolve_entry(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
			 u32 index, struct ibchan_reason *reason)
{
	const struct ibchan_submit_wr *entry = &s->entries[index];
	struct ibchan_object *object;
	int ret = ibchan_submit_check(entry, reason);

	if (ret)
		return ret;
	object = ibchan_object_find(ctx, entry->channel, OBJECT_CHANNEL);
	if (!object) {
		ibchan_submit_refuse(reason, IBCHAN_REASON_CHANNEL_HANDLE, entry->channel, 0);
		return -ENOENT;
	}
	s->channels[index] = object->channel;
	fill_wr(&s->wrs[index], entry);
	return 0;
}

/**
 * ibchan_submit_resolve - make a chunk's requests the kernel's own
 * @ctx: the context
 * @s: copied, and pinned
 * @num: how many of them
 * @reason: why one was refused
 * @error: of the first refused one; else as it was
 *
 * Context: under RCU.
 * Return: how many leading ones are resolved.
 */
u32 ibchan_submit_resolve(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
			  u32 num, struct ibchan_reason *reason, int *error)
{
	u32 first_sge = 0;
	u32 i;
	int ret;

	for (i = 0; i < num; i++) {
		const struct ibchan_submit_wr *entry = &s->entries[i];

		ret = resolve_entry(ctx, s, i, reason);
		if (!ret && ibchan_entry_is_inline(entry)) {
			s->wrs[i].data = &s->data[s->first_data[i]];
			s->wrs[i].data_length = s->data_length[i];
			continue;
		}
		if (!ret)
			ret = resolve_sges(ctx, s, i, first_sge, reason);
		if (ret) {
			*error = ret;
			break;
		}
		first_sge += entry->num_sge;
	}
	return i;
}

/* The index of an element in its entry, from its index among the entry's resolved elements. */
static u32 user_element(const struct ibchan_submit_scratch *s, u32 index, u32 element)
{
	const struct ibchan_submit_sge *user = ibchan_entry_sges(s, index);
	u32 i;

	for (i = 0; i < s->entries[index].num_sge; i++)
		if (!is_empty_plain(&user[i]) && !element--)
			return i;
	return 0;
}

/**
 * ibchan_submit_translate - a refusal of a post in the contract's terms
 * @s: resolved
 * @index: the entry that was refused
 * @reason: why
 *
 * Context: any.
 */
void ibchan_submit_translate(const struct ibchan_submit_scratch *s, u32 index,
			     struct ibchan_reason *reason)
{
	const struct ibchan_submit_wr *entry = &s->entries[index];

	if (reason->code == IBCHAN_REASON_WR_FLAGS) {
		reason->value[0] = entry->flags;
		reason->value[1] = (reason->value[1] | IBCHAN_WR_UNCHECKED) & IBCHAN_WR_FLAGS;
	}
	if (!ibchan_entry_is_inline(entry))
		reason->element = user_element(s, index, reason->element);
}
