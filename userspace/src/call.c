// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The blocking calls: one work, posted and waited for in one system call. It is kept like any
 * pending work, its ticket is on the stack.
 */
#include <errno.h>

#include "slots.h"
#include "wait.h"

static int perform(struct ibchan_channel *channel, const struct ibchan_submit_wr *wr,
		   const struct deadline *deadline, struct ibchan_cqe *completion,
		   struct ibchan_reason *reason)
{
	const struct ibchan_cq *cq = completes_on(channel, wr);
	struct ibchan_cmd_submit cmd;
	struct ticket ticket;
	int err;

	await_nothing(&cmd);
	cmd.timeout_ns = deadline->timeout_ns;
	submit_wait(&cmd, cq, ring_tail(cq), 1);
	err = post_kept(channel, wr, &cmd, &ticket, reason);
	if (!ticket.cq)
		return err;
	err = ticket_wait(&ticket, deadline, err, completion);
	if (!err || err == -ESTALE)
		return err;
	/* The work becomes one for any poll, unless it has completed at this moment. */
	lock_take(&ticket.cq->lock);
	if (ticket_leave(&ticket, completion) > 0)
		err = 0;
	ticket_unlock(ticket.cq);
	return err;
}

int ibchan_perform(struct ibchan_channel *channel, const struct ibchan_submit_wr *wr,
		   __s64 timeout_ns, struct ibchan_cqe *completion, struct ibchan_error *error)
{
	struct ibchan_reason reason = { 0 };
	struct ibchan_cqe unwanted;
	struct deadline deadline;
	int err = deadline_begin(&deadline, channel->object.context, timeout_ns);

	if (!completion)
		completion = &unwanted;
	if (!err)
		err = perform(channel, wr, &deadline, completion, &reason);
	if (unlikely(err))
		return error_set(error, err, &reason);
	/* The work was done, well or badly. */
	if (likely(!error))
		return completion->error;
	error_set(error, completion->error, NULL);
	if (completion->error) {
		error->origin = IBCHAN_ERROR_WORK;
		error->opcode = completion->opcode;
		error->status = completion->status;
		error->vendor_err = completion->vendor_err;
	}
	return completion->error;
}

int ibchan_send(struct ibchan_channel *channel, const struct ibchan_submit_sge *sges,
		__u32 num_sge, __s64 timeout_ns, struct ibchan_error *error)
{
	const struct ibchan_submit_wr wr = ibchan_wr_send(channel, sges, num_sge);

	return ibchan_perform(channel, &wr, timeout_ns, NULL, error);
}

int ibchan_receive(struct ibchan_channel *channel, const struct ibchan_submit_sge *sges,
		   __u32 num_sge, __s64 timeout_ns, struct ibchan_cqe *completion,
		   struct ibchan_error *error)
{
	const struct ibchan_submit_wr wr = ibchan_wr_receive(channel, sges, num_sge);

	return ibchan_perform(channel, &wr, timeout_ns, completion, error);
}

int ibchan_write(struct ibchan_channel *channel, const struct ibchan_submit_sge *sges,
		 __u32 num_sge, const struct ibchan_remote_region *remote, __s64 timeout_ns,
		 struct ibchan_error *error)
{
	const struct ibchan_submit_wr wr = ibchan_wr_write(channel, sges, num_sge, remote);

	return ibchan_perform(channel, &wr, timeout_ns, NULL, error);
}

int ibchan_read(struct ibchan_channel *channel, const struct ibchan_submit_sge *sges,
		__u32 num_sge, const struct ibchan_remote_region *remote, __s64 timeout_ns,
		struct ibchan_error *error)
{
	const struct ibchan_submit_wr wr = ibchan_wr_read(channel, sges, num_sge, remote);

	return ibchan_perform(channel, &wr, timeout_ns, NULL, error);
}

int ibchan_compare_swap(struct ibchan_channel *channel, const struct ibchan_submit_sge *sge,
			const struct ibchan_remote_region *remote,
			const struct ibchan_swap *values, __s64 timeout_ns,
			struct ibchan_error *error)
{
	const struct ibchan_submit_wr wr = ibchan_wr_compare_swap(channel, sge, remote,
							   values->compare, values->swap);

	return ibchan_perform(channel, &wr, timeout_ns, NULL, error);
}

int ibchan_fetch_add(struct ibchan_channel *channel, const struct ibchan_submit_sge *sge,
		     const struct ibchan_remote_region *remote, __u64 add, __s64 timeout_ns,
		     struct ibchan_error *error)
{
	const struct ibchan_submit_wr wr = ibchan_wr_fetch_add(channel, sge, remote, add);

	return ibchan_perform(channel, &wr, timeout_ns, NULL, error);
}
