// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The blocking calls: one work, posted and waited for in one system call. It is
 * kept like any pending work, its ticket is on the stack.
 */
#include <errno.h>

#include "post.h"
#include "wait.h"

/**
 * struct call - a work and its caller, who waits for it
 * @channel: where it is posted
 * @wr: the request
 * @deadline: of the wait
 * @ends: a work that has not ended by then ends with its channel; else it is left to polls
 * @completion: how it ended
 * @reason: why it was refused
 */
struct call {
	struct ibchan_channel *channel;
	const struct ibchan_submit_wr *wr;
	struct deadline deadline;
	bool ends;
	struct ibchan_cqe *completion;
	struct ibchan_reason reason;
};

/*
 * The wait ends before the work does, which then becomes one for any poll, unless
 * it has completed at that moment.
 */
static int leave(struct call *call, const struct ticket *ticket, int err)
{
	struct ibchan_cq *cq = ticket->cq;
	int ret;

	lock_take(&cq->lock);
	ret = ticket_leave(ticket, call->completion);
	ticket_unlock(cq);
	return ret > 0 ? 0 : err;
}

/*
 * Breaks the channel, whose works end soon then. A work that has succeeded by now succeeds all the
 * same. Where the channel cannot be broken, the call does not wait for the work: the result says
 * why not.
 */
static int end(struct call *call, const struct ticket *ticket, int err)
{
	const struct deadline never = { .timeout_ns = IBCHAN_TIMEOUT_NEVER };
	int ret = ibchan_channel_break(call->channel);

	if (!ret)
		ret = ticket_wait(ticket, &never, 0, call->completion);
	if (!ret)
		return call->completion->error ? err : 0;
	return ret == -ESTALE ? ret : leave(call, ticket, ret);
}

static int perform(struct call *call)
{
	const struct ibchan_cq *cq = completes_on(call->channel, call->wr);
	struct ibchan_cmd_submit cmd;
	struct ticket ticket;
	int err;

	await_nothing(&cmd);
	cmd.timeout_ns = call->deadline.timeout_ns;
	submit_wait(&cmd, cq, ring_tail(cq), 1);
	err = post_kept(call->channel, call->wr, &cmd, &ticket, &call->reason);
	if (!ticket.cq)
		return err;
	err = ticket_wait(&ticket, &call->deadline, err, call->completion);
	if (!err || err == -ESTALE)
		return err;
	return call->ends ? end(call, &ticket, err) : leave(call, &ticket, err);
}

/* The work was done, well or badly. */
static int error_of_work(struct ibchan_error *error, const struct ibchan_cqe *completion)
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

static noinline int perform_call(struct call *call, __s64 timeout_ns, struct ibchan_error *error)
{
	int err = context_check(call->channel->object.context);

	if (timeout_ns < IBCHAN_TIMEOUT_NEVER)
		err = -EINVAL;
	call->reason = (struct ibchan_reason) { 0 };
	if (!err) {
		deadline_set(&call->deadline, timeout_ns);
		err = perform(call);
	}
	return err ? error_set(error, err, &call->reason) :
		     error_of_work(error, call->completion);
}

int ibchan_perform(struct ibchan_channel *channel, const struct ibchan_submit_wr *wr,
		   __s64 timeout_ns, struct ibchan_cqe *completion, struct ibchan_error *error)
{
	struct ibchan_cqe unwanted;
	struct call call;

	call.channel = channel;
	call.wr = wr;
	call.ends = false;
	call.completion = completion ? completion : &unwanted;
	return perform_call(&call, timeout_ns, error);
}

int perform_to_the_end(struct ibchan_channel *channel, const struct ibchan_submit_wr *wr,
		       __s64 timeout_ns, struct ibchan_error *error)
{
	struct ibchan_cqe unwanted;
	struct call call = {
		.channel = channel, .wr = wr, .ends = true, .completion = &unwanted,
	};

	return perform_call(&call, timeout_ns, error);
}

int ibchan_send(struct ibchan_channel *channel, const struct ibchan_submit_sge *sges,
		__u32 num_sge, __s64 timeout_ns, struct ibchan_error *error)
{
	const struct ibchan_submit_wr wr = ibchan_wr_send(channel, sges, num_sge);

	return ibchan_perform(channel, &wr, timeout_ns, NULL, error);
}

int ibchan_receive(struct ibchan_channel *channel,
		   const struct ibchan_submit_sge *sges, __u32 num_sge,
		   __s64 timeout_ns, struct ibchan_cqe *completion,
		   struct ibchan_error *error)
{
	const struct ibchan_submit_wr wr = ibchan_wr_receive(channel, sges, num_sge);

	return ibchan_perform(channel, &wr, timeout_ns, completion, error);
}

int ibchan_write(struct ibchan_channel *channel, const struct ibchan_submit_sge *sges,
		 __u32 num_sge, const struct ibchan_remote_region *remote,
		 __s64 timeout_ns, struct ibchan_error *error)
{
	const struct ibchan_submit_wr wr = ibchan_wr_write(channel, sges, num_sge, remote);

	return ibchan_perform(channel, &wr, timeout_ns, NULL, error);
}

int ibchan_read(struct ibchan_channel *channel, const struct ibchan_submit_sge *sges,
		__u32 num_sge, const struct ibchan_remote_region *remote,
		__s64 timeout_ns, struct ibchan_error *error)
{
	const struct ibchan_submit_wr wr = ibchan_wr_read(channel, sges, num_sge, remote);

	return ibchan_perform(channel, &wr, timeout_ns, NULL, error);
}

int ibchan_compare_swap(struct ibchan_channel *channel,
			const struct ibchan_submit_sge *sge,
			const struct ibchan_remote_region *remote,
			const struct ibchan_swap *values,
			__s64 timeout_ns, struct ibchan_error *error)
{
	const struct ibchan_submit_wr wr = ibchan_wr_compare_swap(channel, sge, remote,
							   values->compare, values->swap);

	return ibchan_perform(channel, &wr, timeout_ns, NULL, error);
}

int ibchan_fetch_add(struct ibchan_channel *channel,
		     const struct ibchan_submit_sge *sge,
		     const struct ibchan_remote_region *remote, __u64 add,
		     __s64 timeout_ns, struct ibchan_error *error)
{
	const struct ibchan_submit_wr wr = ibchan_wr_fetch_add(channel, sge, remote, add);

	return ibchan_perform(channel, &wr, timeout_ns, NULL, error);
}
