// SPDX-License-Identifier: GPL-2.0-only
/*
 * Submit, first step: a chunk of requests from the caller's memory, each field once.
 * Copying may sleep, so nothing is looked up meanwhile.
 *
 * A chunk ends early at the first entry that cannot be copied: what comes before it
 * is posted all the same. It also ends where the room for elements or for inline data
 * is used up; the next chunk begins with that entry.
 */
#include <linux/errno.h>
#include <linux/uaccess.h>

#include "submit.h"

#define ENTRY_WORDS	(sizeof(struct ibchan_submit_wr) / sizeof(u64))

/* Word by word: so few bytes are not worth a string instruction. */
static int copy_words(u64 *to, const u64 __user *from)
{
	u32 i;

	if (!user_read_access_begin(from, ENTRY_WORDS * sizeof(u64)))
		return -EFAULT;
#pragma GCC unroll 8
	for (i = 0; i < ENTRY_WORDS; i++)
		unsafe_get_user(to[i], &from[i], fault);
	user_read_access_end();
	return 0;
fault:
	user_read_access_end();
	return -EFAULT;
}

static int copy_entry(struct ibchan_submit_wr *entry, u64 addr, u32 len)
{
	static_assert(sizeof(*entry) % sizeof(u64) == 0);

	if (likely(len == sizeof(*entry)))
		return copy_words((u64 *)entry, u64_to_user_ptr(addr));
	return copy_struct_from_user(entry, sizeof(*entry), u64_to_user_ptr(addr), len);
}

/* An atomic has its operand where others have the address of their elements. */
static u32 max_elements(const struct ibchan_submit_wr *entry)
{
	return ibchan_entry_is_atomic(entry) ? 1 : IBCHAN_MAX_SGE;
}

/* -ENOSPC: there is no room left in this chunk. */
static int copy_sges(struct ibchan_submit_scratch *s, u32 index,
		     struct ibchan_reason *reason)
{
	struct ibchan_submit_wr *entry = &s->entries[index];
	size_t size = entry->num_sge * sizeof(s->user_sges[0]);

	s->first_sge[index] = s->num_sges;
	if (entry->num_sge < 2)
		return 0;
	if (entry->num_sge > max_elements(entry)) {
		ibchan_submit_refuse(reason, IBCHAN_REASON_TOO_MANY_ELEMENTS, entry->num_sge,
				     max_elements(entry));
		return -EINVAL;
	}
	if (entry->num_sge > CHUNK_SGES - s->num_sges)
		return -ENOSPC;
	if (copy_from_user(&s->user_sges[s->num_sges], u64_to_user_ptr(entry->sges), size)) {
		ibchan_submit_refuse(reason, IBCHAN_REASON_ELEMENT_POINTER, entry->sges, 0);
		return -EFAULT;
	}
	s->num_sges += entry->num_sge;
	return 0;
}

static bool has_plain(const struct ibchan_submit_scratch *s, u32 index)
{
	const struct ibchan_submit_sge *sges = ibchan_entry_sges(s, index);
	u32 i;

	for (i = 0; i < s->entries[index].num_sge; i++)
		if (sges[i].mr == IBCHAN_MR_PLAIN)
			return true;
	return false;
}

static int copy_data_element(struct ibchan_submit_scratch *s,
			     const struct ibchan_submit_sge *sge, struct ibchan_reason *reason)
{
	if (sge->mr != IBCHAN_MR_PLAIN) {
		ibchan_submit_refuse(reason, IBCHAN_REASON_INLINE_ELEMENT, sge->mr, 0);
		return -EINVAL;
	}
	if (copy_from_user(&s->data[s->num_data], u64_to_user_ptr(sge->offset), sge->length)) {
		ibchan_submit_refuse(reason, IBCHAN_REASON_ELEMENT_POINTER, sge->offset, 0);
		return -EFAULT;
	}
	s->num_data += sge->length;
	return 0;
}

static u64 total_length(const struct ibchan_submit_sge *sges, u32 num)
{
	u64 total = 0;
	u32 i;

	for (i = 0; i < num; i++)
		total += sges[i].length;
	return total;
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

static int copy_data(struct ibchan_submit_scratch *s, u32 index, struct ibchan_reason *reason)
{
	const struct ibchan_submit_sge *sges = ibchan_entry_sges(s, index);
	u32 num = s->entries[index].num_sge;
	u64 total = total_length(sges, num);
	int ret;
	u32 i;

	ret = make_room(s, total, reason);
	s->first_data[index] = s->num_data;
	s->data_length[index] = total;
	for (i = 0; i < num && !ret; i++) {
		ret = copy_data_element(s, &sges[i], reason);
		if (ret)
			reason->element = i;
	}
	return ret;
}

static int copy_one(struct ibchan_submit_scratch *s, u32 index, u64 addr, u32 len,
		    struct ibchan_reason *reason)
{
	int ret = copy_entry(&s->entries[index], addr, len);

	if (!ret)
		ret = copy_sges(s, index, reason);
	if (ret)
		return ret;
	if (ibchan_entry_is_inline(&s->entries[index]))
		return copy_data(s, index, reason);
	s->has_plain |= has_plain(s, index);
	return 0;
}

/**
 * ibchan_submit_copy - copy the next requests
 * @s: filled
 * @cmd: says where the requests are, and in entry_num how many are done already
 * @left: how many requests there are behind the done ones, 1 and up
 * @reason: why one could not be copied
 * @error: of the first one that could not be copied, or 0
 *
 * Context: process, may sleep.
 * Return: how many were copied.
 */
u32 ibchan_submit_copy(struct ibchan_submit_scratch *s, const struct ibchan_cmd_submit *cmd,
		       u32 left, struct ibchan_reason *reason, int *error)
{
	u32 want = min_t(u32, left, CHUNK_WRS);
	u64 addr = cmd->entries + (u64)cmd->entry_num * cmd->entry_len;
	u32 num;

	*error = 0;
	s->num_sges = 0;
	s->num_data = 0;
	s->has_plain = 0;
	for (num = 0; num < want; num++, addr += cmd->entry_len) {
		if (s->has_plain && num >= CHUNK_PLAIN)
			break;
		*error = copy_one(s, num, addr, cmd->entry_len, reason);
		if (*error)
			break;
	}
	if (*error == -ENOSPC)
		*error = 0;
	return num;
}
