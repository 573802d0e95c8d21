/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Parts of a work request: elements, remote regions, requests by opcode.
 * <rdma/ibchan.h> includes this file.
 *
 * An element comes in three strengths: unchecked, checked, and new, which is checked
 * in builds with DEBUG only. The post checks each of them against the
 * region again, so that none of them can harm memory.
 *
 * Nothing here sleeps.
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
 *
 * Context: any.
 * Return: the element. A post refuses it with -EINVAL if it leaves the region.
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
 * Context: any.
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
 *
 * Context: any.
 * Return: the element, also a wrong one, which a post refuses.
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
 *
 * Context: any.
 * Return: the part. If it leaves the region, only the peer's device can notice.
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
 * Context: any.
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
 * Context: any.
 * Return: 0; -EINVAL for a region that ends before the member does.
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
 * Context: any.
 * Return: 0; -EINVAL for an element that leaves the region.
 */
#define ibchan_remote_element(remote, type, index, sub)			\
	ibchan_remote_nth(remote, sizeof(type), index, sub)

/**
 * ibchan_remote_nth - an element of the array at the start of a region, by the element's size
 * @remote: the region
 * @size: bytes of an element
 * @index: 0 and up
 * @sub: filled on success
 *
 * Context: any.
 * Return: 0; -EINVAL for an element that leaves the region, also where its offset
 * would wrap.
 */
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
 *
 * Context: any.
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
 * Context: any.
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

/*
 * Requests by opcode. Flags, wr_id and work are set afterwards where wanted.
 *
 * A list of elements may be NULL where @num_sge is 0. How long it may be and what
 * else a request must satisfy, the post checks.
 */

/**
 * ibchan_wr_send - a send
 * @sges: where the message lies
 * @num_sge: of them, 0 to the channel's max_send_sge
 *
 * Context: any.
 * Return: the request.
 */
static inline struct ibchan_wr ibchan_wr_send(const struct ibchan_sge *sges, u16 num_sge)
{
	return (struct ibchan_wr){
		.opcode = IBCHAN_OP_SEND, .sges = sges, .num_sge = num_sge,
	};
}

/**
 * ibchan_wr_receive - a receive, for one send or write with immediate of the peer's
 * @sges: where a message goes; there may be more room than it needs
 * @num_sge: of them, 0 to the channel's max_recv_sge
 *
 * Context: any.
 * Return: the request.
 */
static inline struct ibchan_wr ibchan_wr_receive(const struct ibchan_sge *sges, u16 num_sge)
{
	return (struct ibchan_wr){
		.opcode = IBCHAN_OP_RECV, .sges = sges, .num_sge = num_sge,
	};
}

/**
 * ibchan_wr_one_sided - a request that names memory of the peer
 * @opcode: write, read, or an atomic
 * @sges: the ranges on this side
 * @num_sge: of them
 * @remote: the range on the peer's side; a post refuses elements that are longer
 *	than it together
 *
 * Context: any.
 * Return: the request.
 */
static inline struct ibchan_wr ibchan_wr_one_sided(u8 opcode, const struct ibchan_sge *sges,
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

/**
 * ibchan_wr_write - a write into the peer's memory
 * @sges: the elements to write
 * @num_sge: of them, 0 to the channel's max_send_sge
 * @remote: where to; see ibchan_wr_one_sided()
 *
 * Context: any.
 * Return: the request.
 */
static inline struct ibchan_wr ibchan_wr_write(const struct ibchan_sge *sges, u16 num_sge,
					       const struct ibchan_remote *remote)
{
	return ibchan_wr_one_sided(IBCHAN_OP_WRITE, sges, num_sge, remote);
}

/**
 * ibchan_wr_read - a read of the peer's memory
 * @sges: where it goes
 * @num_sge: of them, 0 to the channel's max_send_sge or the device's max_read_sge,
 *	whichever is less
 * @remote: the memory to read; see ibchan_wr_one_sided()
 *
 * As many bytes are read as the elements have room for.
 *
 * Context: any.
 * Return: the request.
 */
static inline struct ibchan_wr ibchan_wr_read(const struct ibchan_sge *sges, u16 num_sge,
					      const struct ibchan_remote *remote)
{
	return ibchan_wr_one_sided(IBCHAN_OP_READ, sges, num_sge, remote);
}

/**
 * ibchan_wr_sgl - a write from, or a read into, a scatterlist
 * @opcode: IBCHAN_OP_WRITE or IBCHAN_OP_READ
 * @sgl: the list, not mapped for DMA; with what it names it stays as it is until the work's
 *	done(), and goes into no other request. From the post until then it is mapped: a cpu
 *	that writes to its memory, or reads what a read brings, may be at odds with the device
 * @entries: of @sgl, 1 to the channel's max_sgl
 * @remote: the range on the peer's side; a post refuses a list that is longer
 *
 * One request and one done(), but as many places of the send queue as ibchan_sgl_places() says,
 * which are all there or none is taken. The memory needs no region; no key to it exists. It
 * needs a work of the caller's. The list is as long in all as a message may be, and no longer.
 * Where one of its parts fails, done() tells that part's error.
 *
 * Context: any.
 * Return: the request. A post refuses it with -EOPNOTSUPP for a read over iWARP, which would
 * tell the peer a key to all memory; with -EIO where the memory cannot be mapped for the device.
 */
static inline struct ibchan_wr ibchan_wr_sgl(u8 opcode, struct scatterlist *sgl, u16 entries,
					     const struct ibchan_remote *remote)
{
	struct ibchan_wr wr = ibchan_wr_one_sided(opcode, NULL, entries, remote);

	wr.sgl = sgl;
	wr.flags = IBCHAN_WR_SGL;
	return wr;
}

/**
 * ibchan_wr_send_invalidate - a send that ends the use of a key of the peer's
 * @sges: where the message lies
 * @num_sge: of them, 0 to the channel's max_send_sge
 * @rkey: of a region that the peer has made by fast registration
 *
 * The peer's receive tells the key (IBCHAN_CQE_INVALIDATED). From then on, neither may use the
 * region: the peer's own posts on it, and its ibchan_mr_remote(), answer -EKEYREVOKED, until it
 * has registered the memory anew. A key that the peer does not have ends the connection.
 *
 * How much of a peer one can invalidate so is the device's matter: hardware lets nothing be
 * invalidated but fast registrations of the domain that the message came to, siw any region of
 * that domain, soft-RoCE the fast registrations of all domains, also those without remote access:
 * large elements of plain memory have such. Where the domain is another one, nobody there is told,
 * and the next request on the region fails.
 *
 * Context: any.
 * Return: the request.
 */
static inline struct ibchan_wr ibchan_wr_send_invalidate(const struct ibchan_sge *sges, u16 num_sge,
							 u32 rkey)
{
	return (struct ibchan_wr){
		.opcode = IBCHAN_OP_SEND_INVALIDATE, .sges = sges, .num_sge = num_sge, .rkey = rkey,
	};
}

/**
 * ibchan_wr_compare_swap - an atomic compare and swap of 8 bytes of the peer's
 * @sge: 8 bytes; receives what the peer's were before, in the byte order of the host
 * @remote: the peer's word, at a multiple of 8
 * @compare: the value it must have to change
 * @swap: its new value
 *
 * Context: any.
 * Return: the request. A post refuses it with -EOPNOTSUPP where the device has no
 * atomics (IBCHAN_DEVICE_ATOMICS).
 */
static inline struct ibchan_wr ibchan_wr_compare_swap(const struct ibchan_sge *sge,
						      const struct ibchan_remote *remote,
						      u64 compare, u64 swap)
{
	struct ibchan_wr wr = ibchan_wr_one_sided(IBCHAN_OP_COMPARE_SWAP, sge, 1, remote);

	wr.operand = compare;
	wr.swap = swap;
	return wr;
}

/**
 * ibchan_wr_fetch_add - an atomic addition to 8 bytes of the peer's
 * @sge: 8 bytes; receives what the peer's were before, in the byte order of the host
 * @remote: the peer's word, at a multiple of 8
 * @add: the number to add; the sum wraps
 *
 * Context: any.
 * Return: the request; see ibchan_wr_compare_swap().
 */
static inline struct ibchan_wr ibchan_wr_fetch_add(const struct ibchan_sge *sge,
						   const struct ibchan_remote *remote,
						   u64 add)
{
	struct ibchan_wr wr = ibchan_wr_one_sided(IBCHAN_OP_FETCH_ADD, sge, 1, remote);

	wr.operand = add;
	return wr;
}

/**
 * ibchan_wr_set_imm - give a send or write a number that the receive will tell
 * @wr: the request; any other one is refused with -EINVAL then
 * @imm: any, in host order
 *
 * A write with an immediate uses up a receive of the peer's.
 *
 * Context: any.
 */
static inline void ibchan_wr_set_imm(struct ibchan_wr *wr, u32 imm)
{
	wr->imm = imm;
	wr->flags |= IBCHAN_WR_IMM;
}

/**
 * ibchan_wr_set_inline - have a send or write carry kernel memory in the request itself
 * @wr: the request, without elements; any other one is refused with -EINVAL then
 * @data: needs no region, and may go when the post has returned
 * @length: bytes, 0 to the channel's max_inline_data, which is 0 unless asked for
 *
 * Context: any.
 */
static inline void ibchan_wr_set_inline(struct ibchan_wr *wr, const void *data, u32 length)
{
	wr->data = data;
	wr->data_length = length;
	wr->flags |= IBCHAN_WR_INLINE;
}

/**
 * ibchan_post_wr - post one request
 * @ch: the channel
 * @wr: the request
 * @reason: why it was refused, or NULL
 *
 * Context: process or softirq, not with interrupts off.
 * Return: as ibchan_post().
 */
static inline int ibchan_post_wr(struct ibchan_channel *ch, const struct ibchan_wr *wr,
				 struct ibchan_reason *reason)
{
	u32 accepted;

	return ibchan_post(ch, wr, 1, &accepted, reason);
}

/* One element, one call, by wr_id: the level of the queue pair. */

/**
 * ibchan_post_one - post a send or a receive of one element
 * @ch: the channel
 * @opcode: IBCHAN_OP_SEND or IBCHAN_OP_RECV
 * @sge: the element
 * @wr_id: comes back in the completion
 *
 * Context: process or softirq, not with interrupts off.
 * Return: as ibchan_post().
 */
static inline int ibchan_post_one(struct ibchan_channel *ch, u8 opcode,
				  const struct ibchan_sge *sge, u64 wr_id)
{
	struct ibchan_wr wr = {
		.opcode = opcode, .sges = sge, .num_sge = 1, .wr_id = wr_id,
	};

	return ibchan_post_wr(ch, &wr, NULL);
}

/**
 * ibchan_post_send - send a range of a region
 * @ch: the channel
 * @mr: the region
 * @offset: from its first byte
 * @length: bytes
 * @wr_id: comes back in the completion
 *
 * Context: process or softirq, not with interrupts off.
 * Return: as ibchan_post().
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
 * Context: process or softirq, not with interrupts off.
 * Return: as ibchan_post().
 */
static inline int ibchan_post_receive(struct ibchan_channel *ch, struct ibchan_mr *mr,
				      u64 offset, u32 length, u64 wr_id)
{
	struct ibchan_sge sge = ibchan_sge_unchecked(mr, offset, length);

	return ibchan_post_one(ch, IBCHAN_OP_RECV, &sge, wr_id);
}

#endif /* _RDMA_IBCHAN_WR_H */
