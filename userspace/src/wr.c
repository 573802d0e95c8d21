// SPDX-License-Identifier: LGPL-2.1-or-later
/* Work requests and their elements, in the form of the contract; and posts of one element. */
#include <ibchan.h>

#include "internal.h"

/* No message has as many bytes: a post refuses it. */
static __u32 length_of(size_t length)
{
	return length < UINT32_MAX ? (__u32)length : UINT32_MAX;
}

struct ibchan_submit_sge ibchan_sge_plain(void *addr, size_t length)
{
	return (struct ibchan_submit_sge) {
		.offset = (uintptr_t)addr,
		.length = length_of(length),
		.mr = IBCHAN_MR_PLAIN,
	};
}

struct ibchan_submit_sge ibchan_sge_unchecked(const struct ibchan_mr *mr, size_t offset,
					      size_t length)
{
	return (struct ibchan_submit_sge) {
		.offset = offset,
		.length = length_of(length),
		.mr = mr->object.handle,
	};
}

int ibchan_sge_checked(const struct ibchan_mr *mr, __u64 offset, __u64 length,
		       struct ibchan_submit_sge *sge)
{
	if (offset > mr->length || length > mr->length - offset)
		return -EINVAL;
	if (length > UINT32_MAX)
		return -EOVERFLOW;
	*sge = ibchan_sge_unchecked(mr, (size_t)offset, (size_t)length);
	return 0;
}

/* More elements than the contract can count are as good as the most that it can. */
static struct ibchan_submit_wr make(struct ibchan_channel *channel, __u8 opcode,
				    const struct ibchan_submit_sge *sges, __u32 num_sge)
{
	struct ibchan_submit_wr wr = {
		.channel = channel->object.handle,
		.opcode = opcode,
		.num_sge = (__u16)min(num_sge, UINT16_MAX),
	};

	if (num_sge == 1)
		wr.sge = *sges;
	else if (num_sge)
		wr.sges = (uintptr_t)sges;
	return wr;
}

static struct ibchan_submit_wr make_remote(struct ibchan_channel *channel, __u8 opcode,
					   const struct ibchan_submit_sge *sges, __u32 num_sge,
					   const struct ibchan_remote_region *remote)
{
	struct ibchan_submit_wr wr = make(channel, opcode, sges, num_sge);

	wr.remote_addr = remote->addr;
	wr.rkey = remote->rkey;
	wr.remote_length = remote->length;
	return wr;
}

struct ibchan_submit_wr ibchan_wr_send(struct ibchan_channel *channel,
				       const struct ibchan_submit_sge *sges, __u32 num_sge)
{
	return make(channel, IBCHAN_OP_SEND, sges, num_sge);
}

struct ibchan_submit_wr ibchan_wr_receive(struct ibchan_channel *channel,
					  const struct ibchan_submit_sge *sges, __u32 num_sge)
{
	return make(channel, IBCHAN_OP_RECV, sges, num_sge);
}

struct ibchan_submit_wr ibchan_wr_write(struct ibchan_channel *channel,
					const struct ibchan_submit_sge *sges, __u32 num_sge,
					const struct ibchan_remote_region *remote)
{
	return make_remote(channel, IBCHAN_OP_WRITE, sges, num_sge, remote);
}

struct ibchan_submit_wr ibchan_wr_read(struct ibchan_channel *channel,
				       const struct ibchan_submit_sge *sges, __u32 num_sge,
				       const struct ibchan_remote_region *remote)
{
	return make_remote(channel, IBCHAN_OP_READ, sges, num_sge, remote);
}

/*
 * The contract has the new value where others have the length of the peer's region. A region that
 * is too short has no word, and a post refuses an address that is none.
 */
struct ibchan_submit_wr ibchan_wr_compare_swap(struct ibchan_channel *channel,
					       const struct ibchan_submit_sge *sge,
					       const struct ibchan_remote_region *remote,
					       __u64 compare, __u64 swap)
{
	struct ibchan_submit_wr wr = make_remote(channel, IBCHAN_OP_COMPARE_SWAP, sge, 1, remote);

	if (remote->length < sizeof(__u64))
		wr.remote_addr |= 1;
	wr.operand = compare;
	wr.swap = swap;
	return wr;
}

struct ibchan_submit_wr ibchan_wr_fetch_add(struct ibchan_channel *channel,
					    const struct ibchan_submit_sge *sge,
					    const struct ibchan_remote_region *remote, __u64 add)
{
	struct ibchan_submit_wr wr = make_remote(channel, IBCHAN_OP_FETCH_ADD, sge, 1, remote);

	wr.operand = add;
	return wr;
}

void ibchan_wr_set_imm(struct ibchan_submit_wr *wr, __u32 imm)
{
	wr->imm = imm;
	wr->flags |= IBCHAN_WR_IMM;
}

static int post_one(struct ibchan_channel *channel, struct ibchan_submit_wr wr, __u64 wr_id,
		    struct ibchan_error *error)
{
	wr.wr_id = wr_id;
	return ibchan_post(channel->object.context, &wr, 1, NULL, error);
}

int ibchan_post_send(struct ibchan_channel *channel, struct ibchan_mr *mr, size_t offset,
		     size_t length, __u64 wr_id, struct ibchan_error *error)
{
	const struct ibchan_submit_sge sge = ibchan_sge_unchecked(mr, offset, length);

	return post_one(channel, ibchan_wr_send(channel, &sge, 1), wr_id, error);
}

int ibchan_post_receive(struct ibchan_channel *channel, struct ibchan_mr *mr, size_t offset,
			size_t length, __u64 wr_id, struct ibchan_error *error)
{
	const struct ibchan_submit_sge sge = ibchan_sge_unchecked(mr, offset, length);

	return post_one(channel, ibchan_wr_receive(channel, &sge, 1), wr_id, error);
}

int ibchan_post_write(struct ibchan_channel *channel, struct ibchan_submit_sge sge,
		      const struct ibchan_remote_region *remote, __u64 wr_id,
		      struct ibchan_error *error)
{
	return post_one(channel, ibchan_wr_write(channel, &sge, 1, remote), wr_id, error);
}

int ibchan_post_read(struct ibchan_channel *channel, struct ibchan_submit_sge sge,
		     const struct ibchan_remote_region *remote, __u64 wr_id,
		     struct ibchan_error *error)
{
	return post_one(channel, ibchan_wr_read(channel, &sge, 1, remote), wr_id, error);
}
