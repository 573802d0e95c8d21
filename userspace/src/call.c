// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The blocking calls: one work, posted and waited for in one system call. It is
 * kept like any pending work, its ticket is on the stack.
 */
#include <errno.h>

#include "post.h"
#include "wait.h"

static int check_perform(const struct ibchan_wr *wr, __s64 timeout_ns,
			 struct ibchan_reason *reason)
{
	if (timeout_ns < IBCHAN_TIMEOUT_NEVER)
		return -EINVAL;
	if (!wr->channel) {
		reason->code = IBCHAN_REASON_CHANNEL_HANDLE;
		return -ENOENT;
	}
	return context_check(wr->channel->object.context);
}

/*
 * The wait ends before the work does, which then becomes one for any poll, unless
 * it has completed at that moment.
 */
static int leave(const struct ticket *ticket,
		 struct ibchan_completion *completion, int err)
{
	struct ibchan_cq *cq = ticket->cq;
	int ret;

	lock_take(&cq->lock);
	ret = ticket_leave(ticket, completion);
	ticket_unlock(cq);
	return ret > 0 ? 0 : err;
}

/*
 * Breaks the channel, whose works end soon then. A work that has succeeded by now succeeds all the
 * same. Where the channel cannot be broken, the call does not wait for the work: the result says
 * why not.
 */
static int end(const struct ibchan_wr *wr, const struct ticket *ticket,
	       struct ibchan_completion *completion, int err)
{
	const struct deadline never = { .timeout_ns = IBCHAN_TIMEOUT_NEVER };
	int ret = ibchan_channel_break(wr->channel);

	if (!ret)
		ret = ticket_wait(ticket, &never, 0, completion);
	if (!ret)
		return completion->error ? err : 0;
	return ret == -ESTALE ? ret : leave(ticket, completion, ret);
}

static int perform(const struct ibchan_wr *wr, __s64 timeout_ns, bool ends,
		   struct ibchan_completion *completion,
		   struct ibchan_reason *reason)
{
	const struct ibchan_cq *cq = wr_cq(wr);
	struct ibchan_cmd_submit cmd;
	struct deadline deadline;
	struct ticket ticket;
	int err;

	await_nothing(&cmd);
	cmd.timeout_ns = timeout_ns;
	deadline_set(&deadline, timeout_ns);
	submit_wait(&cmd, cq, ring_tail(cq), 1);
	err = post_kept(wr, &cmd, &ticket, reason);
	if (!ticket.cq)
		return err;
	err = ticket_wait(&ticket, &deadline, err, completion);
	if (!err || err == -ESTALE)
		return err;
	return ends ? end(wr, &ticket, completion, err) :
		      leave(&ticket, completion, err);
}

/* The work was done, well or badly. */
static int error_of_work(struct ibchan_error *error,
			 const struct ibchan_completion *completion)
{
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

static noinline int perform_call(const struct ibchan_wr *wr, __s64 timeout_ns, bool ends,
				 struct ibchan_completion *out, struct ibchan_error *error)
{
	struct ibchan_completion completion;
	struct ibchan_reason reason = { 0 };
	int err = check_perform(wr, timeout_ns, &reason);

	if (!err)
		err = perform(wr, timeout_ns, ends, &completion, &reason);
	if (err)
		return error_set(error, err, &reason);
	if (out)
		*out = completion;
	return error_of_work(error, &completion);
}

int ibchan_perform(const struct ibchan_wr *wr, __s64 timeout_ns,
		   struct ibchan_completion *completion, struct ibchan_error *error)
{
	return perform_call(wr, timeout_ns, false, completion, error);
}

int perform_to_the_end(const struct ibchan_wr *wr, __s64 timeout_ns,
		       struct ibchan_error *error)
{
	return perform_call(wr, timeout_ns, true, NULL, error);
}

int ibchan_send(struct ibchan_channel *channel, const struct ibchan_sge *sges,
		__u32 num_sge, struct ibchan_error *error)
{
	const struct ibchan_wr wr = ibchan_wr_send(channel, sges, num_sge);

	return ibchan_perform(&wr, IBCHAN_TIMEOUT_NEVER, NULL, error);
}

int ibchan_receive(struct ibchan_channel *channel,
		   const struct ibchan_sge *sges, __u32 num_sge,
		   struct ibchan_completion *completion,
		   struct ibchan_error *error)
{
	const struct ibchan_wr wr = ibchan_wr_receive(channel, sges, num_sge);

	return ibchan_perform(&wr, IBCHAN_TIMEOUT_NEVER, completion, error);
}

int ibchan_write(struct ibchan_channel *channel, const struct ibchan_sge *sges,
		 __u32 num_sge, const struct ibchan_remote_region *remote,
		 struct ibchan_error *error)
{
	const struct ibchan_wr wr = ibchan_wr_write(channel, sges, num_sge, remote);

	return ibchan_perform(&wr, IBCHAN_TIMEOUT_NEVER, NULL, error);
}

int ibchan_read(struct ibchan_channel *channel, const struct ibchan_sge *sges,
		__u32 num_sge, const struct ibchan_remote_region *remote,
		struct ibchan_error *error)
{
	const struct ibchan_wr wr = ibchan_wr_read(channel, sges, num_sge, remote);

	return ibchan_perform(&wr, IBCHAN_TIMEOUT_NEVER, NULL, error);
}

int ibchan_compare_swap(struct ibchan_channel *channel,
			const struct ibchan_sge *sge,
			const struct ibchan_remote_region *remote,
			const struct ibchan_swap *values,
			struct ibchan_error *error)
{
	const struct ibchan_wr wr = ibchan_wr_compare_swap(channel, sge, remote,
							   values->compare, values->swap);

	return ibchan_perform(&wr, IBCHAN_TIMEOUT_NEVER, NULL, error);
}

int ibchan_fetch_add(struct ibchan_channel *channel,
		     const struct ibchan_sge *sge,
		     const struct ibchan_remote_region *remote, __u64 add,
		     struct ibchan_error *error)
{
	const struct ibchan_wr wr = ibchan_wr_fetch_add(channel, sge, remote, add);

	return ibchan_perform(&wr, IBCHAN_TIMEOUT_NEVER, NULL, error);
}
