// SPDX-License-Identifier: GPL-2.0-only
/*
 * Submit, first step: a chunk of requests from the caller's memory, each word once, to where
 * the post wants it. Copying may sleep, so nothing is looked up meanwhile: handles are kept.
 * What the contract knows and the kernel's interface does not is judged here; the rest is left
 * to the post.
 *
 * A chunk ends early at the first entry that cannot be copied: what comes before it
 * is posted all the same. It also ends where the room for elements or for inline data
 * is used up; the next chunk begins with that entry.
 */
#include <linux/errno.h>
#include <linux/uaccess.h>

#include "submit.h"

/* The opcode, the flags and the number of elements: as in struct ibchan_wr. */
static const u32 __user *head_of(const struct ibchan_submit_wr __user *user)
{
#define SAME_PLACE(member)						\
	static_assert(offsetof(struct ibchan_submit_wr, member) -	\
		      offsetof(struct ibchan_submit_wr, opcode) ==	\
		      offsetof(struct ibchan_wr, member) - offsetof(struct ibchan_wr, head))
	SAME_PLACE(opcode);
	SAME_PLACE(flags);
	SAME_PLACE(num_sge);
#undef SAME_PLACE

	return (const u32 __user *)&user->opcode;
}

static u32 max_elements(const struct ibchan_wr *wr)
{
	return ibchan_wr_is_atomic(wr) ? 1 : IBCHAN_MAX_SGE;
}

static int copy_sge(struct ibchan_submit_scratch *s, const struct ibchan_submit_sge __user *user)
{
	u32 place = s->num_sges;

	if (!user_read_access_begin(user, sizeof(*user)))
		return -EFAULT;
	unsafe_get_user(s->sges[place].offset, &user->offset, fault);
	unsafe_get_user(s->sges[place].length, &user->length, fault);
	unsafe_get_user(s->mrs[place], &user->mr, fault);
	user_read_access_end();
	return 0;
fault:
	user_read_access_end();
	return -EFAULT;
}

/* An empty element of plain memory has no region, and is left out. */
static bool keep_sge(struct ibchan_submit_scratch *s, u32 element)
{
	u32 place = s->num_sges;
	bool plain = s->mrs[place] == IBCHAN_MR_PLAIN;

	s->has_plain |= plain;
	if (plain && !s->sges[place].length)
		return false;
	s->element[place] = element;
	s->num_sges++;
	return true;
}

/* The elements of a request that has not just one. -ENOSPC: there is no room in this chunk. */
static int copy_sges(struct ibchan_submit_scratch *s, struct ibchan_wr *wr, u64 addr,
		     struct ibchan_reason *reason)
{
	const struct ibchan_submit_sge __user *user = u64_to_user_ptr(addr);
	u32 i, num = wr->num_sge, room = CHUNK_SGES + (wr - s->wrs);

	if (num > max_elements(wr)) {
		ibchan_submit_refuse(reason, IBCHAN_REASON_TOO_MANY_ELEMENTS, num,
				     max_elements(wr));
		return -EINVAL;
	}
	/* Each entry has room for one, which is copied before it is judged. */
	if (num > room - s->num_sges)
		return -ENOSPC;
	for (i = 0; i < num; i++, user++) {
		if (copy_sge(s, user)) {
			ibchan_submit_refuse(reason, IBCHAN_REASON_ELEMENT_POINTER, addr, 0);
			return -EFAULT;
		}
		wr->num_sge -= !keep_sge(s, i);
	}
	return 0;
}

static int copy_data_element(struct ibchan_submit_scratch *s, u32 place,
			     struct ibchan_reason *reason)
{
	const struct ibchan_sge *sge = &s->sges[place];

	if (s->mrs[place] != IBCHAN_MR_PLAIN) {
		ibchan_submit_refuse(reason, IBCHAN_REASON_INLINE_ELEMENT, s->mrs[place], 0);
		return -EINVAL;
	}
	if (copy_from_user(&s->data[s->num_data], u64_to_user_ptr(sge->offset), sge->length)) {
		ibchan_submit_refuse(reason, IBCHAN_REASON_ELEMENT_POINTER, sge->offset, 0);
		return -EFAULT;
	}
	s->num_data += sge->length;
	return 0;
}

/* -ENOSPC: there is no room left in this chunk. */
static int make_room(struct ibchan_submit_scratch *s, u64 total, struct ibchan_reason *reason)
{
	if (total <= CHUNK_INLINE - s->num_data)
		return 0;
	if (s->num_data)
		return -ENOSPC;
	ibchan_submit_refuse(reason, IBCHAN_REASON_INLINE_TOO_LONG, total, CHUNK_INLINE);
	return -EINVAL;
}

/* Data instead of elements: those from @first on are taken back. */
static int copy_data(struct ibchan_submit_scratch *s, struct ibchan_wr *wr, u32 first,
		     struct ibchan_reason *reason)
{
	u32 i, end = s->num_sges;
	u64 total = 0;
	int ret;

	for (i = first; i < end; i++)
		total += s->sges[i].length;
	s->num_sges = first;
	ret = make_room(s, total, reason);
	wr->data = &s->data[s->num_data];
	wr->data_length = total;
	wr->num_sge = 0;
	for (i = first; i < end && !ret; i++) {
		ret = copy_data_element(s, i, reason);
		if (ret)
			reason->element = s->element[i];
	}
	return ret;
}

static bool is_one_sided(const struct ibchan_wr *wr)
{
	return wr->opcode == IBCHAN_OP_WRITE || wr->opcode == IBCHAN_OP_READ ||
	       ibchan_wr_is_atomic(wr);
}

/* What neither the opcode nor the flags nor the number of elements asks for is 0. */
static bool has_surplus(const struct ibchan_wr *wr, u32 num_sge,
			const struct ibchan_submit_sge *sge)
{
	return (wr->imm && !(wr->flags & IBCHAN_WR_IMM)) ||
	       ((wr->remote_addr || wr->rkey || wr->remote_length) && !is_one_sided(wr)) ||
	       (wr->operand && num_sge < 2 && !ibchan_wr_is_atomic(wr)) ||
	       (num_sge != 1 && (sge->offset || sge->length || sge->mr));
}

/* @num_sge and @sge: as the caller has them. */
static int check_odd(const struct ibchan_wr *wr, u32 num_sge, const struct ibchan_submit_sge *sge,
		     struct ibchan_reason *reason)
{
	if (wr->opcode >= BITS_PER_LONG || !(BIT(wr->opcode) & IBCHAN_SUBMIT_OPCODES)) {
		ibchan_submit_refuse(reason, IBCHAN_REASON_OPCODE, wr->opcode, 0);
		return -EINVAL;
	}
	if (wr->flags & ~IBCHAN_WR_FLAGS) {
		ibchan_submit_refuse(reason, IBCHAN_REASON_WR_FLAGS,
				     wr->flags ^ IBCHAN_WR_UNCHECKED, IBCHAN_WR_FLAGS);
		return -EOPNOTSUPP;
	}
	if (has_surplus(wr, num_sge, sge)) {
		ibchan_submit_refuse(reason, IBCHAN_REASON_RESERVED, 0, 0);
		return -EINVAL;
	}
	return 0;
}

/* Most have one element, and nothing that others have. */
static bool is_odd(const struct ibchan_wr *wr)
{
	return wr->head & IBCHAN_ODD_HEAD || wr->num_sge != 1 || wr->operand | wr->imm ||
	       (!(wr->opcode & IBCHAN_OP_WRITE) &&
		wr->remote_addr | wr->rkey | wr->remote_length);
}

/* All that is not like most. Entries are judged here, behind what cannot be copied of them. */
static noinline int copy_odd(struct ibchan_submit_scratch *s, struct ibchan_wr *wr,
			     struct ibchan_reason *reason)
{
	u32 num = wr->num_sge, first = s->num_sges;
	struct ibchan_submit_sge sge = {
		.offset = s->sges[first].offset,
		.length = s->sges[first].length,
		.mr = s->mrs[first],
	};
	int ret = 0, had_plain = s->has_plain;

	if (num == 1)
		wr->num_sge -= !keep_sge(s, 0);
	else
		ret = copy_sges(s, wr, wr->operand, reason);
	if (!ret && wr->flags & IBCHAN_WR_INLINE) {
		s->has_plain = had_plain;
		ret = copy_data(s, wr, first, reason);
	}
	ret = ret ?: check_odd(wr, num, &sge, reason);
	/* Its length is known, so the contract has the new value in that place. */
	if (wr->opcode == IBCHAN_OP_COMPARE_SWAP) {
		wr->swap = wr->remote_length;
		wr->remote_length = IBCHAN_REMOTE_UNCHECKED;
	}
	return ret;
}

/*
 * Of what the post reads, only these words come from the caller. The pointers are the kernel's: no
 * request that is not inline looks at @data, which that of an earlier chunk may have left.
 */
static int copy_one(struct ibchan_submit_scratch *s, u32 index,
		    const struct ibchan_submit_wr __user *user, struct ibchan_reason *reason)
{
	struct ibchan_wr *wr = &s->wrs[index];
	struct ibchan_sge *sge = &s->sges[s->num_sges];
	u32 head, *mr = &s->mrs[s->num_sges];

	static_assert(IBCHAN_WR_EXCLUSIVE == IBCHAN_WR_UNCHECKED);
	if (!user_read_access_begin(user, sizeof(*user)))
		return -EFAULT;
	unsafe_get_user(s->handles[index], &user->channel, fault);
	unsafe_get_user(head, head_of(user), fault);
	unsafe_get_user(wr->wr_id, &user->wr_id, fault);
	unsafe_get_user(wr->operand, &user->operand, fault);
	unsafe_get_user(wr->remote_addr, &user->remote_addr, fault);
	unsafe_get_user(wr->rkey, &user->rkey, fault);
	unsafe_get_user(wr->imm, &user->imm, fault);
	unsafe_get_user(sge->offset, &user->sge.offset, fault);
	unsafe_get_user(sge->length, &user->sge.length, fault);
	unsafe_get_user(*mr, &user->sge.mr, fault);
	unsafe_get_user(wr->remote_length, &user->remote_length, fault);
	user_read_access_end();
	/* Ranges exclude each other unless the caller does not want that. */
	wr->head = head ^ IBCHAN_HEAD(0, IBCHAN_WR_EXCLUSIVE);
	wr->sges = sge;
	if (unlikely(is_odd(wr) || *mr == IBCHAN_MR_PLAIN))
		return copy_odd(s, wr, reason);
	s->element[s->num_sges++] = 0;
	return 0;
fault:
	user_read_access_end();
	return -EFAULT;
}

/* What this kernel does not know is zero. */
static noinline int check_rest(u64 addr, u32 len)
{
	u32 known = sizeof(struct ibchan_submit_wr);
	int ret = check_zeroed_user(u64_to_user_ptr(addr + known), len - known);

	return ret > 0 ? 0 : ret ?: -E2BIG;
}

/* NULL: there is no memory. */
struct ibchan_submit_scratch *ibchan_submit_scratch_make(void)
{
	return kvzalloc(sizeof(struct ibchan_submit_scratch), GFP_KERNEL_ACCOUNT);
}

/**
 * ibchan_submit_copy - copy the next requests
 * @s: filled
 * @cmd: says where the requests are, and in entry_num how many are done already
 * @left: how many requests there are behind the done ones, 1 and up
 * @reason: why one could not be copied
 * @error: of the first one that could not be copied; else as it was
 *
 * Context: process, may sleep.
 * Return: how many were copied.
 */
u32 ibchan_submit_copy(struct ibchan_submit_scratch *s, const struct ibchan_cmd_submit *cmd,
		       u32 left, struct ibchan_reason *reason, int *error)
{
	u64 addr = cmd->entries + (u64)cmd->entry_num * cmd->entry_len;
	u32 num, want = min_t(u32, left, CHUNK_WRS), len = cmd->entry_len;
	int ret = 0;

	s->num_sges = 0;
	s->num_data = 0;
	s->has_plain = 0;
	for (num = 0; num < want; num++, addr += len) {
		if (s->has_plain && num >= CHUNK_PLAIN)
			break;
		if (unlikely(len != sizeof(struct ibchan_submit_wr)))
			ret = check_rest(addr, len);
		ret = ret ?: copy_one(s, num, u64_to_user_ptr(addr), reason);
		if (unlikely(ret))
			break;
	}
	if (unlikely(ret && ret != -ENOSPC))
		*error = ret;
	return num;
}
