// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The blocking calls: one work, posted and waited for in one system call. It is kept like any
 * pending work, its ticket is on the stack.
 */
#include <errno.h>

#include "wait.h"

/* The wait has failed with @err: the work becomes one for any poll, unless it completes by now. */
static noinline int leave(const struct ticket *ticket, int err, struct ibchan_cqe *completion)
{
	if (err == -ESTALE)
		return err;
	lock_take(&ticket->cq->lock);
	if (ticket_leave(ticket, completion) > 0)
		err = 0;
	ticket_unlock(ticket->cq);
	return err;
}

/* As ibchan_perform(), with a request that this changes. */
static noinline int perform(struct ibchan_channel *channel, struct ibchan_submit_wr *wr,
			    __s64 timeout_ns, struct ibchan_cqe *completion,
			    struct ibchan_error *error)
{
	const struct ibchan_cq *cq = completes_on(channel, wr);
	struct ibchan_cmd_submit cmd;
	struct ibchan_cqe unwanted;
	struct deadline deadline;
	struct ticket ticket;
	int err = deadline_begin(&deadline, channel->object.context, timeout_ns);

	if (unlikely(err))
		return refuse_begin(err, timeout_ns, error);
	if (!completion)
		completion = &unwanted;
	await_nothing(&cmd);
	cmd.timeout_ns = timeout_ns;
	submit_wait(&cmd, cq, ring_tail(cq), 1);
	err = post_kept(channel, wr, &cmd, &ticket);
	if (unlikely(!ticket.cq))
		return error_set(error, err, &cmd.reason);
	err = ticket_wait(&ticket, &deadline, err, completion);
	if (unlikely(err))
		err = leave(&ticket, err, completion);
	if (unlikely(err))
		return error_set(error, err, NULL);
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

int ibchan_perform(struct ibchan_channel *channel, const struct ibchan_submit_wr *wr,
		   __s64 timeout_ns, struct ibchan_cqe *completion, struct ibchan_error *error)
{
	struct ibchan_submit_wr own = *wr;

	return perform(channel, &own, timeout_ns, completion, error);
}

int ibchan_send(struct ibchan_channel *channel, const struct ibchan_submit_sge *sges,
		__u32 num_sge, __s64 timeout_ns, struct ibchan_error *error)
{
	struct ibchan_submit_wr wr = ibchan_wr_send(channel, sges, num_sge);

	return perform(channel, &wr, timeout_ns, NULL, error);
}

int ibchan_receive(struct ibchan_channel *channel, const struct ibchan_submit_sge *sges,
		   __u32 num_sge, __s64 timeout_ns, struct ibchan_cqe *completion,
		   struct ibchan_error *error)
{
	struct ibchan_submit_wr wr = ibchan_wr_receive(channel, sges, num_sge);

	return perform(channel, &wr, timeout_ns, completion, error);
}

int ibchan_write(struct ibchan_channel *channel, const struct ibchan_submit_sge *sges,
		 __u32 num_sge, const struct ibchan_remote_region *remote, __s64 timeout_ns,
		 struct ibchan_error *error)
{
	struct ibchan_submit_wr wr = ibchan_wr_write(channel, sges, num_sge, remote);

	return perform(channel, &wr, timeout_ns, NULL, error);
}

int ibchan_read(struct ibchan_channel *channel, const struct ibchan_submit_sge *sges,
		__u32 num_sge, const struct ibchan_remote_region *remote, __s64 timeout_ns,
		struct ibchan_error *error)
{
	struct ibchan_submit_wr wr = ibchan_wr_read(channel, sges, num_sge, remote);

	return perform(channel, &wr, timeout_ns, NULL, error);
}

int ibchan_compare_swap(struct ibchan_channel *channel, const struct ibchan_submit_sge *sge,
			const struct ibchan_remote_region *remote,
			const struct ibchan_swap *values, __s64 timeout_ns,
			struct ibchan_error *error)
{
	struct ibchan_submit_wr wr = ibchan_wr_compare_swap(channel, sge, remote,
							     values->compare, values->swap);

	return perform(channel, &wr, timeout_ns, NULL, error);
}

int ibchan_fetch_add(struct ibchan_channel *channel, const struct ibchan_submit_sge *sge,
		     const struct ibchan_remote_region *remote, __u64 add, __s64 timeout_ns,
		     struct ibchan_error *error)
{
	struct ibchan_submit_wr wr = ibchan_wr_fetch_add(channel, sge, remote, add);

	return perform(channel, &wr, timeout_ns, NULL, error);
}
