// SPDX-License-Identifier: GPL-2.0-only
/*
 * Submit, of requests that are not like most.
 *
 * First step, of those with a list of elements, with inline data, or with members that not all
 * opcodes have. This step judges members of the contract that the kernel's interface does not have;
 * the rest is left to the post.
 *
 * Second step, of those that name memory that is not registered: makes a region of each such
 * element, which lives as long as its work. The channel's domain is kept while its pages are
 * faulted in, and no lock is: a fault takes as long as the server of the page likes. Once the works
 * are posted, they are the regions' users, and the regions go with them. The region of an element
 * that was not posted, or whose work has completed already, goes at once.
 */
#include <linux/errno.h>
#include <linux/uaccess.h>

#include "submit.h"

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
	u32 max = ibchan_wr_is_atomic(wr) ? 1 : IBCHAN_MAX_SGE;

	if (num > max)
		return ibchan_submit_refuse(reason, IBCHAN_REASON_TOO_MANY_ELEMENTS, -EINVAL, num,
					    max);
	/* Each entry has room for one, which is copied before it is judged. */
	if (num > room - s->num_elements)
		return -ENOSPC;
	for (i = 0; i < num; i++) {
		if (copy_from_user(&s->elements[s->num_elements].user, &user[i], sizeof(*user)))
			return ibchan_submit_refuse(reason, IBCHAN_REASON_ELEMENT_POINTER, -EFAULT,
						    addr, 0);
		wr->num_sge -= !keep_element(s, i);
	}
	return 0;
}

/* Data instead of elements: those from @first on are taken back. -ENOSPC as above. */
static int copy_data(struct ibchan_submit_scratch *s, struct ibchan_wr *wr, u32 first,
		     struct ibchan_reason *reason)
{
	u32 i, end = s->num_elements;
	u64 total = 0;
	int ret = 0;

	for (i = first; i < end; i++)
		total += s->elements[i].user.length;
	s->num_elements = first;
	wr->data = &s->data[s->num_data];
	wr->data_length = total;
	wr->num_sge = 0;
	if (total > CHUNK_INLINE - s->num_data)
		return s->num_data ? -ENOSPC :
		       ibchan_submit_refuse(reason, IBCHAN_REASON_INLINE_TOO_LONG, -EINVAL, total,
					    CHUNK_INLINE);
	for (i = first; i < end && !ret; i++) {
		const struct ibchan_submit_sge *user = &s->elements[i].user;

		if (user->mr != IBCHAN_MR_PLAIN)
			ret = ibchan_submit_refuse(reason, IBCHAN_REASON_INLINE_ELEMENT, -EINVAL,
						   user->mr, 0);
		else if (copy_from_user(&s->data[s->num_data], u64_to_user_ptr(user->offset),
					user->length))
			ret = ibchan_submit_refuse(reason, IBCHAN_REASON_ELEMENT_POINTER, -EFAULT,
						   user->offset, 0);
		s->num_data += user->length;
		if (ret)
			reason->element = s->index[i];
	}
	return ret;
}

/* @user: as the caller has it. */
static int check_odd(const struct ibchan_wr *wr, const struct ibchan_submit_wr *user,
		     struct ibchan_reason *reason)
{
	const struct ibchan_submit_sge *sge = &user->sge;
	bool is_atomic = ibchan_wr_is_atomic(wr);
	bool is_one_sided = wr->opcode == IBCHAN_OP_WRITE || wr->opcode == IBCHAN_OP_READ ||
			    is_atomic;

	if (wr->opcode >= BITS_PER_LONG || !(BIT(wr->opcode) & IBCHAN_SUBMIT_OPCODES))
		return ibchan_submit_refuse(reason, IBCHAN_REASON_OPCODE, -EINVAL, wr->opcode, 0);
	if (wr->flags & ~IBCHAN_WR_FLAGS)
		return ibchan_submit_refuse(reason, IBCHAN_REASON_WR_FLAGS, -EOPNOTSUPP,
					    wr->flags ^ IBCHAN_WR_UNCHECKED, IBCHAN_WR_FLAGS);
	/* Is a member set that neither the opcode nor the flags nor the number of elements want? */
	if ((wr->imm && !(wr->flags & IBCHAN_WR_IMM)) ||
	    ((wr->remote_addr || wr->rkey || wr->remote_length) && !is_one_sided) ||
	    (wr->operand && user->num_sge < 2 && !is_atomic) ||
	    (user->num_sge != 1 && (sge->offset || sge->length || sge->mr)))
		return ibchan_submit_refuse(reason, IBCHAN_REASON_RESERVED, -EINVAL, 0, 0);
	return 0;
}

/*
 * Copies request number @num, of any kind, from @addr, and judges it. The tail that this kernel
 * does not know has to be zero. Returns -ENOSPC: there is no room in this chunk; -EFAULT; -E2BIG;
 * -EINVAL; -EOPNOTSUPP.
 */
int ibchan_submit_copy_odd(struct ibchan_submit_scratch *s, u32 num, u64 addr, u32 len,
			   struct ibchan_reason *reason)
{
	u32 first = s->num_elements;
	union ibchan_submit_element *element = &s->elements[first];
	struct ibchan_wr *wr = &s->wrs[num];
	int ret, had_plain = s->has_plain;
	struct ibchan_submit_wr user;

	if (copy_from_user(&user, u64_to_user_ptr(addr), sizeof(user)))
		return -EFAULT;
	ret = len == sizeof(user) ? 1 :
	      check_zeroed_user(u64_to_user_ptr(addr + sizeof(user)), len - sizeof(user));
	if (ret <= 0)
		return ret ?: -E2BIG;
	ret = 0;
	s->odd |= BIT_ULL(num);
	s->handles[num] = user.channel;
	element->user = user.sge;
	wr->wr_id = user.wr_id;
	wr->sges = &element->sge;
	wr->remote_addr = user.remote_addr;
	wr->remote_length = user.remote_length;
	wr->operand = user.operand;
	wr->rkey = user.rkey;
	wr->imm = user.imm;
	wr->opcode = user.opcode;
	wr->flags = user.flags;
	wr->num_sge = user.num_sge;
	wr->head = IBCHAN_SUBMIT_HEAD(wr->head);
	if (user.num_sge == 1)
		wr->num_sge -= !keep_element(s, 0);
	else
		ret = copy_elements(s, wr, user.sges, reason);
	if (!ret && wr->flags & IBCHAN_WR_INLINE) {
		s->has_plain = had_plain;
		ret = copy_data(s, wr, first, reason);
	}
	ret = ret ?: check_odd(wr, &user, reason);
	/* Its length is known, so the contract has the new value in that place. */
	if (wr->opcode == IBCHAN_OP_COMPARE_SWAP) {
		wr->swap = user.swap;
		wr->remote_length = IBCHAN_REMOTE_UNCHECKED;
	}
	return ret;
}

/* Keeps the domain of the entry's channel, and tells how many elements that channel takes. */
static struct ibchan_pd *get_pd(struct ibchan_context *ctx, u32 handle, struct ibchan_plain *plain)
{
	struct ibchan_object *object;

	guard(rcu)();
	object = ibchan_object_find(ctx, handle, OBJECT_CHANNEL);
	if (!object || !ibchan_pd_tryget(object->pd_of_channel))
		return NULL;
	plain->max_sge = ibchan_channel_max_sge(object->channel, plain->opcode);
	return object->pd_of_channel;
}

/* Pins the plain memory of a request. The domain is that of its channel. */
static int pin_request(struct ibchan_context *ctx, struct ibchan_submit_scratch *s, u32 index,
		       struct ibchan_reason *reason)
{
	const struct ibchan_wr *wr = &s->wrs[index];
	struct ibchan_plain plain = { .num_sge = wr->num_sge, .opcode = wr->opcode };
	struct ibchan_pd *pd = get_pd(ctx, s->handles[index], &plain);
	u32 place = ibchan_submit_place(s, wr), end = place + wr->num_sge;
	struct ibchan_mr *mr = NULL;

	if (!pd)
		return ibchan_submit_refuse(reason, IBCHAN_REASON_CHANNEL_HANDLE, -ENOENT,
					    s->handles[index], 0);
	for (; place < end; place++) {
		union ibchan_submit_element *element = &s->elements[place];

		if (element->user.mr != IBCHAN_MR_PLAIN)
			continue;
		plain.addr = element->user.offset;
		plain.length = element->user.length;
		mr = ibchan_mr_pin_user(pd, &plain, reason);
		/* Works that have completed had not let go of their pages yet. */
		if (mr == ERR_PTR(-ENOMEM) && ibchan_context_settle(ctx)) {
			*reason = (struct ibchan_reason) {};
			mr = ibchan_mr_pin_user(pd, &plain, reason);
		}
		if (IS_ERR(mr)) {
			reason->element = s->index[place];
			break;
		}
		s->pinned[s->num_pinned++] = mr;
		element->sge.mr = mr;
		element->sge.offset = 0;
	}
	ibchan_pd_put(pd);
	return PTR_ERR_OR_ZERO(mr);
}

/*
 * Makes regions of the plain memory that the @num requests of a chunk name, and returns how many
 * leading ones may be posted; if not even the first one, its errno. ibchan_submit_unpin() follows.
 */
int ibchan_submit_pin(struct ibchan_context *ctx, struct ibchan_submit_scratch *s, u32 num,
		      struct ibchan_reason *reason)
{
	u32 done;
	int ret;

	WRITE_ONCE(ctx->had_plain, 1);
	for (done = 0; done < num; done++) {
		ret = pin_request(ctx, s, done, reason);
		if (ret && !done)
			return ret;
		if (ret) {
			*reason = (struct ibchan_reason) {};
			break;
		}
	}
	return done;
}

/* Leaves the regions to the works that were posted. */
void ibchan_submit_unpin(struct ibchan_submit_scratch *s)
{
	while (s->num_pinned)
		ibchan_mr_put(s->pinned[--s->num_pinned], NULL, NULL);
}
