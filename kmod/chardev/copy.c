// SPDX-License-Identifier: GPL-2.0-only
/*
 * Submit, first step, of requests that are not like most: those with a list of elements, with
 * inline data, or with members that not all opcodes have. This step judges members of the contract
 * that the kernel's interface does not have; the rest is left to the post.
 */
#include <linux/errno.h>
#include <linux/uaccess.h>

#include "submit.h"

static u32 max_elements(const struct ibchan_wr *wr)
{
	return ibchan_wr_is_atomic(wr) ? 1 : IBCHAN_MAX_SGE;
}

/* Each word once. */
static int copy_element(union ibchan_submit_element *element,
			const struct ibchan_submit_sge __user *user)
{
	if (!user_read_access_begin(user, sizeof(*user)))
		return -EFAULT;
	unsafe_get_user(element->user.offset, &user->offset, fault);
	unsafe_get_user(element->user.length, &user->length, fault);
	unsafe_get_user(element->user.mr, &user->mr, fault);
	user_read_access_end();
	return 0;
fault:
	user_read_access_end();
	return -EFAULT;
}

/* An empty element of plain memory has no region, and is left out. */
static bool keep_element(struct ibchan_submit_scratch *s, u32 index)
{
	const struct ibchan_submit_sge *user = &s->elements[s->num_elements].user;
	bool plain = user->mr == IBCHAN_MR_PLAIN;

	s->has_plain |= plain;
	if (plain && !user->length)
		return false;
	s->index[s->num_elements++] = index;
	return true;
}

/* The elements of a request that has not just one. -ENOSPC: there is no room in this chunk. */
static int copy_elements(struct ibchan_submit_scratch *s, struct ibchan_wr *wr, u64 addr,
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
	if (num > room - s->num_elements)
		return -ENOSPC;
	for (i = 0; i < num; i++, user++) {
		if (copy_element(&s->elements[s->num_elements], user)) {
			ibchan_submit_refuse(reason, IBCHAN_REASON_ELEMENT_POINTER, addr, 0);
			return -EFAULT;
		}
		wr->num_sge -= !keep_element(s, i);
	}
	return 0;
}

static int copy_data_element(struct ibchan_submit_scratch *s, u32 place,
			     struct ibchan_reason *reason)
{
	const struct ibchan_submit_sge *user = &s->elements[place].user;

	if (user->mr != IBCHAN_MR_PLAIN) {
		ibchan_submit_refuse(reason, IBCHAN_REASON_INLINE_ELEMENT, user->mr, 0);
		return -EINVAL;
	}
	if (copy_from_user(&s->data[s->num_data], u64_to_user_ptr(user->offset), user->length)) {
		ibchan_submit_refuse(reason, IBCHAN_REASON_ELEMENT_POINTER, user->offset, 0);
		return -EFAULT;
	}
	s->num_data += user->length;
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
	u32 i, end = s->num_elements;
	u64 total = 0;
	int ret;

	for (i = first; i < end; i++)
		total += s->elements[i].user.length;
	s->num_elements = first;
	ret = make_room(s, total, reason);
	wr->data = &s->data[s->num_data];
	wr->data_length = total;
	wr->num_sge = 0;
	for (i = first; i < end && !ret; i++) {
		ret = copy_data_element(s, i, reason);
		if (ret)
			reason->element = s->index[i];
	}
	return ret;
}

static bool is_one_sided(const struct ibchan_wr *wr)
{
	return wr->opcode == IBCHAN_OP_WRITE || wr->opcode == IBCHAN_OP_READ ||
	       ibchan_wr_is_atomic(wr);
}

/* Is a member set that neither the opcode nor the flags nor the number of elements asks for? */
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

/**
 * ibchan_submit_copy_odd - copy the rest of a request that is not like most, and judge it
 * @s: has the request, and its element behind those that are used
 * @wr: the request; @wr->sges is that element
 * @reason: why not
 *
 * An entry is judged behind what cannot be copied of it.
 *
 * Context: process, may sleep.
 * Return: 0; -ENOSPC: there is no room in this chunk; -EFAULT; -EINVAL; -EOPNOTSUPP.
 */
int ibchan_submit_copy_odd(struct ibchan_submit_scratch *s, struct ibchan_wr *wr,
			   struct ibchan_reason *reason)
{
	u32 num = wr->num_sge, first = s->num_elements;
	const struct ibchan_submit_sge sge = s->elements[first].user;
	int ret = 0, had_plain = s->has_plain;

	if (num == 1)
		wr->num_sge -= !keep_element(s, 0);
	else
		ret = copy_elements(s, wr, wr->operand, reason);
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

/* NULL: there is no memory. */
struct ibchan_submit_scratch *ibchan_submit_scratch_make(void)
{
	return kvzalloc(sizeof(struct ibchan_submit_scratch), GFP_KERNEL_ACCOUNT);
}
