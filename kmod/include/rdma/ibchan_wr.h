/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What goes into a work request: elements, remote regions, requests by opcode.
 * <rdma/ibchan.h> includes this file.
 *
 * An element comes in three strengths. Whatever its strength, the post checks it
 * against the region again, so that none of them can harm memory.
 */
#ifndef _RDMA_IBCHAN_WR_H
#define _RDMA_IBCHAN_WR_H

#include <linux/bug.h>
#include <linux/limits.h>
#include <linux/stddef.h>
#include <linux/string.h>

/**
 * ibchan_sge_unchecked - an element, as given
 * @mr: the region
 * @offset: from its first byte
 * @length: bytes
 */
static inline struct ibchan_sge ibchan_sge_unchecked(struct ibchan_mr *mr, u64 offset,
						     u32 length)
{
	return (struct ibchan_sge){ .mr = mr, .offset = offset, .length = length };
}

/**
 * ibchan_sge_checked - an element that lies within its region
 * @mr: the region
 * @offset: from its first byte
 * @length: bytes
 * @sge: filled on success
 *
 * Return: 0; -EINVAL for a range that leaves the region; -EOVERFLOW for one that
 * is inside but longer than an element can be (4 GiB - 1).
 */
static inline int ibchan_sge_checked(struct ibchan_mr *mr, u64 offset, u64 length,
				     struct ibchan_sge *sge)
{
	u64 size = ibchan_mr_length(mr);

	if (offset > size || length > size - offset)
		return -EINVAL;
	if (length > U32_MAX)
		return -EOVERFLOW;
	*sge = ibchan_sge_unchecked(mr, offset, length);
	return 0;
}

/**
 * ibchan_sge_new - an element that the caller knows to be right
 * @mr: the region
 * @offset: from its first byte
 * @length: bytes
 *
 * Built with DEBUG, a wrong one is warned about where it is made.
 */
static inline struct ibchan_sge ibchan_sge_new(struct ibchan_mr *mr, u64 offset, u32 length)
{
	struct ibchan_sge sge = ibchan_sge_unchecked(mr, offset, length);

#ifdef DEBUG
	WARN_ON_ONCE(ibchan_sge_checked(mr, offset, length, &sge));
#endif
	return sge;
}

/**
 * ibchan_remote_sub_unchecked - a part of a remote region, as given
 * @remote: the region
 * @offset: from its first byte
 * @length: bytes
 */
static inline struct ibchan_remote ibchan_remote_sub_unchecked(const struct ibchan_remote *remote,
							       u64 offset, u64 length)
{
	return (struct ibchan_remote){
		.addr = remote->addr + offset,
		.length = length,
		.rkey = remote->rkey,
	};
}

/**
 * ibchan_remote_sub - a part of a remote region
 * @remote: the region
 * @offset: from its first byte
 * @length: bytes
 * @sub: filled on success; may be @remote
 *
 * Return: 0; -EINVAL for a range that leaves the region.
 */
static inline int ibchan_remote_sub(const struct ibchan_remote *remote, u64 offset,
				    u64 length, struct ibchan_remote *sub)
{
	if (offset > remote->length || length > remote->length - offset)
		return -EINVAL;
	*sub = ibchan_remote_sub_unchecked(remote, offset, length);
	return 0;
}

/**
 * ibchan_remote_field - a member of the struct that lies at the start of a region
 * @remote: the region
 * @type: the struct
 * @member: of it
 * @sub: filled on success
 *
 * Return: as ibchan_remote_sub().
 */
#define ibchan_remote_field(remote, type, member, sub)			\
	ibchan_remote_sub(remote, offsetof(type, member),		\
			  sizeof_field(type, member), sub)

/**
 * ibchan_remote_element - an element of the array that lies at the start of a region
 * @remote: the region
 * @type: of an element
 * @index: 0 and up
 * @sub: filled on success
 *
 * Return: as ibchan_remote_sub(); -EINVAL also where the offset would wrap.
 */
#define ibchan_remote_element(remote, type, index, sub)			\
	ibchan_remote_nth(remote, sizeof(type), index, sub)

static inline int ibchan_remote_nth(const struct ibchan_remote *remote, u64 size,
				    u64 index, struct ibchan_remote *sub)
{
	u64 offset;

	if (check_mul_overflow(index, size, &offset))
		return -EINVAL;
	return ibchan_remote_sub(remote, offset, size, sub);
}

/* Bytes of a packed remote region. */
#define IBCHAN_REMOTE_SIZE	20

/**
 * ibchan_remote_pack - a remote region as bytes, for the peer
 * @remote: the region
 * @bytes: IBCHAN_REMOTE_SIZE of them: address, length, key, in network order
 */
static inline void ibchan_remote_pack(const struct ibchan_remote *remote, u8 *bytes)
{
	__be64 addr = cpu_to_be64(remote->addr);
	__be64 length = cpu_to_be64(remote->length);
	__be32 rkey = cpu_to_be32(remote->rkey);

	memcpy(bytes, &addr, sizeof(addr));
	memcpy(bytes + 8, &length, sizeof(length));
	memcpy(bytes + 16, &rkey, sizeof(rkey));
}

/**
 * ibchan_remote_unpack - a remote region from the peer's bytes
 * @remote: filled on success
 * @bytes: IBCHAN_REMOTE_SIZE of them, any
 *
 * Return: 0; -EINVAL for a range that wraps around.
 */
static inline int ibchan_remote_unpack(struct ibchan_remote *remote, const u8 *bytes)
{
	__be64 addr, length;
	__be32 rkey;
	u64 end;

	memcpy(&addr, bytes, sizeof(addr));
	memcpy(&length, bytes + 8, sizeof(length));
	memcpy(&rkey, bytes + 16, sizeof(rkey));
	if (check_add_overflow(be64_to_cpu(addr), be64_to_cpu(length), &end))
		return -EINVAL;
	*remote = (struct ibchan_remote){
		.addr = be64_to_cpu(addr),
		.length = be64_to_cpu(length),
		.rkey = be32_to_cpu(rkey),
	};
	return 0;
}

/* Requests by opcode. Flags, wr_id and work are set afterwards where wanted. */

static inline struct ibchan_wr ibchan_wr_send(struct ibchan_sge *sges, u16 num_sge)
{
	return (struct ibchan_wr){
		.opcode = IBCHAN_OP_SEND, .sges = sges, .num_sge = num_sge,
	};
}

static inline struct ibchan_wr ibchan_wr_receive(struct ibchan_sge *sges, u16 num_sge)
{
	return (struct ibchan_wr){
		.opcode = IBCHAN_OP_RECV, .sges = sges, .num_sge = num_sge,
	};
}

static inline struct ibchan_wr ibchan_wr_one_sided(u8 opcode, struct ibchan_sge *sges,
						   u16 num_sge,
						   const struct ibchan_remote *remote)
{
	return (struct ibchan_wr){
		.opcode = opcode,
		.sges = sges,
		.num_sge = num_sge,
		.remote_addr = remote->addr,
		.remote_length = remote->length,
		.rkey = remote->rkey,
	};
}

static inline struct ibchan_wr ibchan_wr_write(struct ibchan_sge *sges, u16 num_sge,
					       const struct ibchan_remote *remote)
{
	return ibchan_wr_one_sided(IBCHAN_OP_WRITE, sges, num_sge, remote);
}

static inline struct ibchan_wr ibchan_wr_read(struct ibchan_sge *sges, u16 num_sge,
					      const struct ibchan_remote *remote)
{
	return ibchan_wr_one_sided(IBCHAN_OP_READ, sges, num_sge, remote);
}

/* @sge receives what the peer's 8 bytes were before, in the byte order of the host. */
static inline struct ibchan_wr ibchan_wr_compare_swap(struct ibchan_sge *sge,
						      const struct ibchan_remote *remote,
						      u64 compare, u64 swap)
{
	struct ibchan_wr wr = ibchan_wr_one_sided(IBCHAN_OP_COMPARE_SWAP, sge, 1, remote);

	wr.operand = compare;
	wr.swap = swap;
	return wr;
}

static inline struct ibchan_wr ibchan_wr_fetch_add(struct ibchan_sge *sge,
						   const struct ibchan_remote *remote,
						   u64 add)
{
	struct ibchan_wr wr = ibchan_wr_one_sided(IBCHAN_OP_FETCH_ADD, sge, 1, remote);

	wr.operand = add;
	return wr;
}

static inline void ibchan_wr_set_imm(struct ibchan_wr *wr, u32 imm)
{
	wr->imm = imm;
	wr->flags |= IBCHAN_WR_IMM;
}

/* The bytes are taken during the post: they need no region, and may go after it. */
static inline void ibchan_wr_set_inline(struct ibchan_wr *wr, const void *data, u32 length)
{
	wr->data = data;
	wr->data_length = length;
	wr->flags |= IBCHAN_WR_INLINE;
}

/* Blocking calls by opcode: see ibchan_channel_run(). */

static inline int ibchan_channel_send(struct ibchan_channel *ch, struct ibchan_sge *sges,
				      u16 num_sge, struct ibchan_outcome *outcome)
{
	struct ibchan_wr wr = ibchan_wr_send(sges, num_sge);

	return ibchan_channel_run(ch, &wr, outcome);
}

static inline int ibchan_channel_receive(struct ibchan_channel *ch, struct ibchan_sge *sges,
					 u16 num_sge, struct ibchan_outcome *outcome)
{
	struct ibchan_wr wr = ibchan_wr_receive(sges, num_sge);

	return ibchan_channel_run(ch, &wr, outcome);
}

static inline int ibchan_channel_write(struct ibchan_channel *ch, struct ibchan_sge *sges,
				       u16 num_sge, const struct ibchan_remote *remote,
				       struct ibchan_outcome *outcome)
{
	struct ibchan_wr wr = ibchan_wr_write(sges, num_sge, remote);

	return ibchan_channel_run(ch, &wr, outcome);
}

static inline int ibchan_channel_read(struct ibchan_channel *ch, struct ibchan_sge *sges,
				      u16 num_sge, const struct ibchan_remote *remote,
				      struct ibchan_outcome *outcome)
{
	struct ibchan_wr wr = ibchan_wr_read(sges, num_sge, remote);

	return ibchan_channel_run(ch, &wr, outcome);
}

/* One element, one call, by wr_id: the level of the queue pair. */

static inline int ibchan_post_one(struct ibchan_channel *ch, u8 opcode,
				  struct ibchan_sge *sge, u64 wr_id)
{
	struct ibchan_wr wr = {
		.opcode = opcode, .sges = sge, .num_sge = 1, .wr_id = wr_id,
	};
	u32 accepted;

	return ibchan_post(ch, &wr, 1, &accepted, NULL);
}

/**
 * ibchan_post_send - send a range of a region
 * @ch: the channel
 * @mr: the region
 * @offset: from its first byte
 * @length: bytes
 * @wr_id: comes back in the completion
 *
 * Context and return: as ibchan_post().
 */
static inline int ibchan_post_send(struct ibchan_channel *ch, struct ibchan_mr *mr,
				   u64 offset, u32 length, u64 wr_id)
{
	struct ibchan_sge sge = ibchan_sge_unchecked(mr, offset, length);

	return ibchan_post_one(ch, IBCHAN_OP_SEND, &sge, wr_id);
}

/**
 * ibchan_post_receive - receive into a range of a region
 * @ch: the channel
 * @mr: the region
 * @offset: from its first byte
 * @length: bytes
 * @wr_id: comes back in the completion
 *
 * Context and return: as ibchan_post().
 */
static inline int ibchan_post_receive(struct ibchan_channel *ch, struct ibchan_mr *mr,
				      u64 offset, u32 length, u64 wr_id)
{
	struct ibchan_sge sge = ibchan_sge_unchecked(mr, offset, length);

	return ibchan_post_one(ch, IBCHAN_OP_RECV, &sge, wr_id);
}

#endif /* _RDMA_IBCHAN_WR_H */
