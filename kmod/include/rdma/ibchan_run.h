/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The blocking level: one call, one result. <rdma/ibchan.h> includes this file.
 *
 * The work has ended before the call returns, for any reason that it returns.
 */
#ifndef _RDMA_IBCHAN_RUN_H
#define _RDMA_IBCHAN_RUN_H

/**
 * struct ibchan_outcome - how a blocking call went
 * @posted: 0: the request was refused and @reason says why; 1: it was posted and
 *	@completion says how it ended
 * @reason: see @posted
 * @completion: see @posted
 */
struct ibchan_outcome {
	int posted;
	struct ibchan_reason reason;
	struct ibchan_completion completion;
};

int ibchan_channel_run(struct ibchan_channel *ch, const struct ibchan_wr *wr,
		       struct ibchan_outcome *outcome);
int ibchan_channel_run_until(struct ibchan_channel *ch, const struct ibchan_wr *wr,
			     ktime_t deadline, struct ibchan_outcome *outcome);

/*
 * Blocking calls by opcode: ibchan_channel_run() and ibchan_channel_run_until() with
 * a request of <rdma/ibchan_wr.h>. Calls of more than five arguments are not among them: a
 * write or read with a deadline, a compare and swap. Those two functions do it with
 * ibchan_wr_write(), ibchan_wr_read() or ibchan_wr_compare_swap().
 */

/**
 * ibchan_channel_send - send, and wait until the peer has it
 * @ch: the channel
 * @sges: where the message lies
 * @num_sge: of them, 0 to the channel's max_send_sge
 * @outcome: how it went, in detail; NULL is fine
 *
 * Context: process, may sleep.
 * Return: as ibchan_channel_run().
 */
static inline int ibchan_channel_send(struct ibchan_channel *ch, const struct ibchan_sge *sges,
				      u16 num_sge, struct ibchan_outcome *outcome)
{
	struct ibchan_wr wr = ibchan_wr_send(sges, num_sge);

	return ibchan_channel_run(ch, &wr, outcome);
}

/**
 * ibchan_channel_send_until - send, and wait until the peer has it, for so long
 * @ch: the channel
 * @sges: where the message lies
 * @num_sge: of them, 0 to the channel's max_send_sge
 * @deadline: of the monotonic clock; the channel breaks when it passes
 * @outcome: how it went, in detail; NULL is fine
 *
 * Context: process, may sleep.
 * Return: as ibchan_channel_run_until().
 */
static inline int ibchan_channel_send_until(struct ibchan_channel *ch,
					    const struct ibchan_sge *sges, u16 num_sge,
					    ktime_t deadline, struct ibchan_outcome *outcome)
{
	struct ibchan_wr wr = ibchan_wr_send(sges, num_sge);

	return ibchan_channel_run_until(ch, &wr, deadline, outcome);
}

/**
 * ibchan_channel_receive - wait for a message
 * @ch: the channel
 * @sges: where it goes
 * @num_sge: of them, 0 to the channel's max_recv_sge
 * @outcome: how it went, with its length and immediate; NULL is fine
 *
 * Context: process, may sleep.
 * Return: as ibchan_channel_run().
 */
static inline int ibchan_channel_receive(struct ibchan_channel *ch, const struct ibchan_sge *sges,
					 u16 num_sge, struct ibchan_outcome *outcome)
{
	struct ibchan_wr wr = ibchan_wr_receive(sges, num_sge);

	return ibchan_channel_run(ch, &wr, outcome);
}

/**
 * ibchan_channel_receive_until - wait for a message, for so long
 * @ch: the channel
 * @sges: where it goes
 * @num_sge: of them, 0 to the channel's max_recv_sge
 * @deadline: of the monotonic clock; the channel breaks when it passes
 * @outcome: how it went, with its length and immediate; NULL is fine
 *
 * Context: process, may sleep.
 * Return: as ibchan_channel_run_until().
 */
static inline int ibchan_channel_receive_until(struct ibchan_channel *ch,
					       const struct ibchan_sge *sges, u16 num_sge,
					       ktime_t deadline,
					       struct ibchan_outcome *outcome)
{
	struct ibchan_wr wr = ibchan_wr_receive(sges, num_sge);

	return ibchan_channel_run_until(ch, &wr, deadline, outcome);
}

/**
 * ibchan_channel_write - write into the peer's memory, and wait until that is done
 * @ch: the channel
 * @sges: the elements to write
 * @num_sge: of them, 0 to the channel's max_send_sge
 * @remote: where to; see ibchan_wr_one_sided()
 * @outcome: how it went, in detail; NULL is fine
 *
 * Context: process, may sleep.
 * Return: as ibchan_channel_run().
 */
static inline int ibchan_channel_write(struct ibchan_channel *ch, const struct ibchan_sge *sges,
				       u16 num_sge, const struct ibchan_remote *remote,
				       struct ibchan_outcome *outcome)
{
	struct ibchan_wr wr = ibchan_wr_write(sges, num_sge, remote);

	return ibchan_channel_run(ch, &wr, outcome);
}

/**
 * ibchan_channel_read - read the peer's memory, and wait until that is done
 * @ch: the channel
 * @sges: where it goes
 * @num_sge: of them, as for ibchan_wr_read()
 * @remote: the memory to read; see ibchan_wr_one_sided()
 * @outcome: how it went, in detail; NULL is fine
 *
 * Context: process, may sleep.
 * Return: as ibchan_channel_run().
 */
static inline int ibchan_channel_read(struct ibchan_channel *ch, const struct ibchan_sge *sges,
				      u16 num_sge, const struct ibchan_remote *remote,
				      struct ibchan_outcome *outcome)
{
	struct ibchan_wr wr = ibchan_wr_read(sges, num_sge, remote);

	return ibchan_channel_run(ch, &wr, outcome);
}

/**
 * ibchan_channel_fetch_add - add to a word of the peer's, and wait until that is done
 * @ch: the channel
 * @sge: 8 bytes; receives what the peer's were before, in the byte order of the host
 * @remote: the peer's word, at a multiple of 8
 * @add: the number to add; the sum wraps
 * @outcome: how it went, in detail; NULL is fine
 *
 * Context: process, may sleep.
 * Return: as ibchan_channel_run(); see also ibchan_wr_compare_swap().
 */
static inline int ibchan_channel_fetch_add(struct ibchan_channel *ch, const struct ibchan_sge *sge,
					   const struct ibchan_remote *remote, u64 add,
					   struct ibchan_outcome *outcome)
{
	struct ibchan_wr wr = ibchan_wr_fetch_add(sge, remote, add);

	return ibchan_channel_run(ch, &wr, outcome);
}

#endif /* _RDMA_IBCHAN_RUN_H */
