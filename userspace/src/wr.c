// SPDX-License-Identifier: LGPL-2.1-or-later
/* Work requests by opcode, and posts of one element. */
#include <ibchan.h>

#include "internal.h"

struct ibchan_wr ibchan_wr_send(struct ibchan_channel *channel,
				const struct ibchan_sge *sges, __u32 num_sge)
{
	return (struct ibchan_wr) {
		.channel = channel, .opcode = IBCHAN_OP_SEND, .sges = sges, .num_sge = num_sge,
	};
}

struct ibchan_wr ibchan_wr_receive(struct ibchan_channel *channel,
				   const struct ibchan_sge *sges, __u32 num_sge)
{
	struct ibchan_wr wr = ibchan_wr_send(channel, sges, num_sge);

	wr.opcode = IBCHAN_OP_RECV;
	return wr;
}

struct ibchan_wr ibchan_wr_write(struct ibchan_channel *channel,
				 const struct ibchan_sge *sges, __u32 num_sge,
				 const struct ibchan_remote_region *remote)
{
	struct ibchan_wr wr = ibchan_wr_send(channel, sges, num_sge);

	wr.opcode = IBCHAN_OP_WRITE;
	wr.remote = *remote;
	return wr;
}

struct ibchan_wr ibchan_wr_read(struct ibchan_channel *channel,
				const struct ibchan_sge *sges, __u32 num_sge,
				const struct ibchan_remote_region *remote)
{
	struct ibchan_wr wr = ibchan_wr_write(channel, sges, num_sge, remote);

	wr.opcode = IBCHAN_OP_READ;
	return wr;
}

struct ibchan_wr ibchan_wr_compare_swap(struct ibchan_channel *channel,
					const struct ibchan_sge *sge,
					const struct ibchan_remote_region *remote,
					__u64 compare, __u64 swap)
{
	struct ibchan_wr wr = ibchan_wr_write(channel, sge, 1, remote);

	wr.opcode = IBCHAN_OP_COMPARE_SWAP;
	wr.operand = compare;
	wr.swap = swap;
	return wr;
}

struct ibchan_wr ibchan_wr_fetch_add(struct ibchan_channel *channel,
				     const struct ibchan_sge *sge,
				     const struct ibchan_remote_region *remote, __u64 add)
{
	struct ibchan_wr wr = ibchan_wr_write(channel, sge, 1, remote);

	wr.opcode = IBCHAN_OP_FETCH_ADD;
	wr.operand = add;
	return wr;
}

void ibchan_wr_set_imm(struct ibchan_wr *wr, __u32 imm)
{
	wr->imm = imm;
	wr->flags |= IBCHAN_WR_IMM;
}

static int post_one(struct ibchan_wr wr, __u64 wr_id)
{
	wr.wr_id = wr_id;
	return ibchan_post(wr.channel->object.context, &wr, 1, NULL, NULL);
}

int ibchan_post_send(struct ibchan_channel *channel, struct ibchan_mr *mr,
		     size_t offset, size_t length, __u64 wr_id)
{
	const struct ibchan_sge sge = ibchan_sge_unchecked(mr, offset, length);

	return post_one(ibchan_wr_send(channel, &sge, 1), wr_id);
}

int ibchan_post_receive(struct ibchan_channel *channel, struct ibchan_mr *mr,
			size_t offset, size_t length, __u64 wr_id)
{
	const struct ibchan_sge sge = ibchan_sge_unchecked(mr, offset, length);

	return post_one(ibchan_wr_receive(channel, &sge, 1), wr_id);
}

int ibchan_post_write(struct ibchan_channel *channel, struct ibchan_sge sge,
		      const struct ibchan_remote_region *remote, __u64 wr_id)
{
	return post_one(ibchan_wr_write(channel, &sge, 1, remote), wr_id);
}

int ibchan_post_read(struct ibchan_channel *channel, struct ibchan_sge sge,
		     const struct ibchan_remote_region *remote, __u64 wr_id)
{
	return post_one(ibchan_wr_read(channel, &sge, 1, remote), wr_id);
}
