/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libibchan: work requests by opcode, and posts of one element. Include <ibchan.h>. */
#ifndef _IBCHAN_WR_H
#define _IBCHAN_WR_H

#include <ibchan/work.h>

__IBCHAN_BEGIN_DECLS

/**
 * ibchan_wr_send() - a request that sends
 * @channel: where to post it
 * @sges: elements, gathered; two or more stay in place until it is posted
 * @num_sge: how many
 *
 * Flags and a wr_id are set in the result, an immediate by ibchan_wr_set_imm().
 *
 * Buffers: none until it is posted.
 * Return: the request.
 */
struct ibchan_submit_wr ibchan_wr_send(struct ibchan_channel *channel,
				       const struct ibchan_submit_sge *sges, __u32 num_sge);

/**
 * ibchan_wr_receive() - a request that receives
 * @channel: where to post it
 * @sges: elements, scattered into; two or more stay in place until it is posted
 * @num_sge: how many
 *
 * Buffers: none until it is posted.
 * Return: the request.
 */
struct ibchan_submit_wr ibchan_wr_receive(struct ibchan_channel *channel,
					  const struct ibchan_submit_sge *sges, __u32 num_sge);

/**
 * ibchan_wr_write() - a request that writes into the peer's memory
 * @channel: where to post it
 * @sges: elements, gathered; two or more stay in place until it is posted
 * @num_sge: how many
 * @remote: where to: from the first byte of it on, and not beyond its end
 *
 * Buffers: none until it is posted.
 * Return: the request.
 */
struct ibchan_submit_wr ibchan_wr_write(struct ibchan_channel *channel,
					const struct ibchan_submit_sge *sges, __u32 num_sge,
					const struct ibchan_remote_region *remote);

/**
 * ibchan_wr_read() - a request that reads the peer's memory
 * @channel: where to post it
 * @sges: elements, scattered into; two or more stay in place until it is posted
 * @num_sge: how many
 * @remote: where from: its first byte on, and not beyond its end
 *
 * Buffers: none until it is posted.
 * Return: the request.
 */
struct ibchan_submit_wr ibchan_wr_read(struct ibchan_channel *channel,
				       const struct ibchan_submit_sge *sges, __u32 num_sge,
				       const struct ibchan_remote_region *remote);

/**
 * ibchan_wr_compare_swap() - a request that replaces a word of the peer's if it is as expected
 * @channel: where to post it
 * @sge: one element of 8 bytes, which receives the word as it was
 * @remote: the word: 8 bytes at a multiple of 8
 * @compare: the value that is expected
 * @swap: the value that replaces it
 *
 * Buffers: none until it is posted.
 * Return: the request.
 */
struct ibchan_submit_wr ibchan_wr_compare_swap(struct ibchan_channel *channel,
					       const struct ibchan_submit_sge *sge,
					       const struct ibchan_remote_region *remote,
					       __u64 compare, __u64 swap);

/**
 * ibchan_wr_fetch_add() - a request that adds to a word of the peer's
 * @channel: where to post it
 * @sge: one element of 8 bytes, which receives the word as it was
 * @remote: the word: 8 bytes at a multiple of 8
 * @add: the number to add
 *
 * Buffers: none until it is posted.
 * Return: the request.
 */
struct ibchan_submit_wr ibchan_wr_fetch_add(struct ibchan_channel *channel,
					    const struct ibchan_submit_sge *sge,
					    const struct ibchan_remote_region *remote, __u64 add);

/**
 * ibchan_wr_set_imm() - let an immediate go along
 * @wr: sends or writes
 * @imm: 32 bits for the peer, in host order
 */
void ibchan_wr_set_imm(struct ibchan_submit_wr *wr, __u32 imm);

/**
 * ibchan_post_send() - send a range of a region
 * @channel: connected
 * @mr: the region
 * @offset: from its first byte
 * @length: bytes
 * @wr_id: any number; comes back in the completion
 * @error: details; NULL is fine
 *
 * One work of one element, to be polled by ibchan_cq_poll().
 *
 * Buffers: the range belongs to the device until the work's completion was handed out by
 * ibchan_cq_poll() or ibchan_cq_wait(); not if the post was refused.
 *
 * Return: as ibchan_post() for one request.
 */
int ibchan_post_send(struct ibchan_channel *channel, struct ibchan_mr *mr, size_t offset,
		     size_t length, __u64 wr_id, struct ibchan_error *error);

/**
 * ibchan_post_receive() - receive into a range of a region
 * @channel: connected
 * @mr: the region
 * @offset: from its first byte
 * @length: bytes
 * @wr_id: any number; comes back in the completion
 * @error: details; NULL is fine
 *
 * Buffers: as ibchan_post_send().
 * Return: as ibchan_post() for one request.
 */
int ibchan_post_receive(struct ibchan_channel *channel, struct ibchan_mr *mr, size_t offset,
			size_t length, __u64 wr_id, struct ibchan_error *error);

/**
 * ibchan_post_write() - write a range of a region into the peer's memory
 * @channel: connected
 * @sge: the range
 * @remote: where to, as in ibchan_wr_write()
 * @wr_id: any number; comes back in the completion
 * @error: details; NULL is fine
 *
 * Buffers: as ibchan_post_send().
 * Return: as ibchan_post() for one request.
 */
int ibchan_post_write(struct ibchan_channel *channel, struct ibchan_submit_sge sge,
		      const struct ibchan_remote_region *remote, __u64 wr_id,
		      struct ibchan_error *error);

/**
 * ibchan_post_read() - read the peer's memory into a range of a region
 * @channel: connected
 * @sge: the range
 * @remote: where from, as in ibchan_wr_read()
 * @wr_id: any number; comes back in the completion
 * @error: details; NULL is fine
 *
 * Buffers: as ibchan_post_send().
 * Return: as ibchan_post() for one request.
 */
int ibchan_post_read(struct ibchan_channel *channel, struct ibchan_submit_sge sge,
		     const struct ibchan_remote_region *remote, __u64 wr_id,
		     struct ibchan_error *error);

__IBCHAN_END_DECLS

#endif /* _IBCHAN_WR_H */
