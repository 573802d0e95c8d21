// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Everything that sleeps: waiting for completions, and the blocking calls.
 *
 * A blocking call puts a struct waiter into the slot of its work. Whoever reads
 * the ring, this thread or another, fills it in. So any number of threads may
 * block on one cq: each sleeps in the kernel until something has been published
 * since it last looked, then empties the ring under the lock, and is through if
 * its own work was among what anybody found.
 *
 * EINTR and ETIMEDOUT of the kernel speak of the wait alone; what was posted
 * stays posted.
 */
#include <errno.h>
#include <time.h>

#include "post.h"

#define NSEC_PER_SEC	1000000000LL

/**
 * struct deadline - the end of a call's time
 * @timeout_ns: what the caller gave; IBCHAN_TIMEOUT_NEVER: no end
 * @end_ns: on the monotonic clock; not used without an end
 */
struct deadline {
	__s64 timeout_ns;
	__s64 end_ns;
};

static __s64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

static void deadline_set(struct deadline *deadline, __s64 timeout_ns)
{
	deadline->timeout_ns = timeout_ns;
	deadline->end_ns = 0;
	if (timeout_ns > 0 &&
	    __builtin_add_overflow(now_ns(), timeout_ns, &deadline->end_ns))
		deadline->timeout_ns = IBCHAN_TIMEOUT_NEVER;
}

static __s64 deadline_left(const struct deadline *deadline)
{
	__s64 left;

	if (deadline->timeout_ns <= 0)
		return deadline->timeout_ns;
	left = deadline->end_ns - now_ns();
	return left > 0 ? left : 0;
}

/* Asks for a sleep until @min completions were published behind @tail. */
static void submit_wait(struct ibchan_cmd_submit *cmd,
			const struct ibchan_cq *cq, __u32 tail, __u32 min)
{
	cmd->flags = IBCHAN_SUBMIT_SINCE;
	cmd->cq = cq->object.handle;
	cmd->tail = tail;
	cmd->min_complete = min;
}

static int sleep_since(const struct ibchan_cq *cq, __u32 tail, __u32 min,
		       const struct deadline *deadline)
{
	struct ibchan_cmd_submit cmd = {
		.size = sizeof(cmd),
		.entry_len = sizeof(struct ibchan_submit_wr),
		.timeout_ns = deadline_left(deadline),
	};

	submit_wait(&cmd, cq, tail, min);
	return context_ioctl(cq->object.context, IBCHAN_CMD_SUBMIT, &cmd);
}

/* Takes up to @n; tells in @tail from where on to wait for more. */
static int take(struct ibchan_cq *cq, struct ibchan_completion *completions,
		__u32 n, __u32 *tail)
{
	int ret;

	pthread_mutex_lock(&cq->lock);
	ret = ring_take(cq, completions, n);
	*tail = cq->head;
	pthread_mutex_unlock(&cq->lock);
	return ret;
}

int ibchan_cq_wait(struct ibchan_cq *cq, struct ibchan_completion *completions,
		   __u32 n, __u32 min, __s64 timeout_ns)
{
	struct deadline deadline;
	__u32 got = 0;
	__u32 tail;
	int wait = 0;
	int ret = context_check(cq->object.context);

	if (ret)
		return ret;
	if (!min || min > n || timeout_ns < IBCHAN_TIMEOUT_NEVER)
		return -EINVAL;
	deadline_set(&deadline, timeout_ns);
	for (;;) {
		ret = take(cq, completions + got, n - got, &tail);
		if (ret < 0)
			break;
		got += (__u32)ret;
		/* One last look has been taken after the wait ended. */
		if (got >= min || wait)
			break;
		wait = sleep_since(cq, tail, min - got, &deadline);
	}
	if (got)
		return (int)got;
	return ret < 0 ? ret : wait;
}

/* Empties the ring. Returns 1 when the waiter has its completion. */
static int look(struct ibchan_cq *cq, const struct waiter *waiter, __u32 *tail)
{
	int ret;

	pthread_mutex_lock(&cq->lock);
	ret = ring_set_aside(cq);
	*tail = cq->head;
	if (waiter->done)
		ret = 1;
	pthread_mutex_unlock(&cq->lock);
	return ret;
}

/*
 * From here on the completion goes to whoever polls. Returns 0 if it came to
 * the waiter at the last moment, else @err.
 */
static int leave(struct ibchan_cq *cq, const struct waiter *waiter,
		 __u32 index, int err)
{
	pthread_mutex_lock(&cq->lock);
	if (waiter->done)
		err = 0;
	else
		cq->slots[index].waiter = NULL;
	pthread_mutex_unlock(&cq->lock);
	return err;
}

/* @err is what became of the wait that the post went along with. */
static int wait_done(struct ibchan_cq *cq, const struct waiter *waiter,
		     __u32 index, const struct deadline *deadline, int err)
{
	__u32 tail;
	int ret;

	for (;;) {
		ret = look(cq, waiter, &tail);
		if (ret > 0)
			return 0;
		if (ret < 0)
			err = ret;
		if (err && err != -EINTR)
			return leave(cq, waiter, index, err);
		err = sleep_since(cq, tail, 1, deadline);
	}
}

static int perform(const struct ibchan_wr *wr, __s64 timeout_ns,
		   struct waiter *waiter, struct ibchan_reason *reason)
{
	struct ibchan_cmd_submit cmd = { .timeout_ns = timeout_ns };
	struct deadline deadline;
	struct ibchan_cq *cq;
	struct chunk chunk;
	int err;

	chunk_init(&chunk, wr->channel->object.context);
	err = chunk_add(&chunk, wr, reason);
	if (err)
		return err;
	cq = chunk.cqs[0];
	submit_wait(&cmd, cq, ring_tail(cq), 1);
	err = chunk_take_slots(&chunk, wr, waiter, reason);
	if (err)
		return err;
	deadline_set(&deadline, timeout_ns);
	err = chunk_submit(&chunk, &cmd);
	if (!cmd.entry_num) {
		*reason = cmd.reason;
		return err;
	}
	return wait_done(cq, waiter, (__u32)chunk.wrs[0].wr_id, &deadline, err);
}

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

/* The work was done, well or badly. */
static int error_of_work(struct ibchan_error *error,
			 const struct ibchan_completion *completion)
{
	error_set(error, completion->error, NULL);
	if (error && completion->error) {
		error->origin = IBCHAN_ERROR_WORK;
		error->status = completion->status;
		error->vendor_err = completion->vendor_err;
	}
	return completion->error;
}

int ibchan_perform(const struct ibchan_wr *wr, __s64 timeout_ns,
		   struct ibchan_completion *completion,
		   struct ibchan_error *error)
{
	struct ibchan_reason reason = { 0 };
	struct waiter waiter = { 0 };
	int err = check_perform(wr, timeout_ns, &reason);

	if (!err)
		err = perform(wr, timeout_ns, &waiter, &reason);
	if (err)
		return error_set(error, err, &reason);
	if (completion)
		*completion = waiter.completion;
	return error_of_work(error, &waiter.completion);
}

int ibchan_send(struct ibchan_channel *channel, const struct ibchan_sge *sges,
		__u32 num_sge, struct ibchan_error *error)
{
	const struct ibchan_wr wr = {
		.channel = channel,
		.opcode = IBCHAN_OP_SEND,
		.sges = sges,
		.num_sge = num_sge,
	};

	return ibchan_perform(&wr, IBCHAN_TIMEOUT_NEVER, NULL, error);
}

int ibchan_receive(struct ibchan_channel *channel,
		   const struct ibchan_sge *sges, __u32 num_sge,
		   struct ibchan_completion *completion,
		   struct ibchan_error *error)
{
	const struct ibchan_wr wr = {
		.channel = channel,
		.opcode = IBCHAN_OP_RECV,
		.sges = sges,
		.num_sge = num_sge,
	};

	return ibchan_perform(&wr, IBCHAN_TIMEOUT_NEVER, completion, error);
}

int ibchan_write(struct ibchan_channel *channel, const struct ibchan_sge *sges,
		 __u32 num_sge, const struct ibchan_remote_region *remote,
		 struct ibchan_error *error)
{
	const struct ibchan_wr wr = {
		.channel = channel,
		.opcode = IBCHAN_OP_WRITE,
		.sges = sges,
		.num_sge = num_sge,
		.remote = *remote,
	};

	return ibchan_perform(&wr, IBCHAN_TIMEOUT_NEVER, NULL, error);
}

int ibchan_read(struct ibchan_channel *channel, const struct ibchan_sge *sges,
		__u32 num_sge, const struct ibchan_remote_region *remote,
		struct ibchan_error *error)
{
	const struct ibchan_wr wr = {
		.channel = channel,
		.opcode = IBCHAN_OP_READ,
		.sges = sges,
		.num_sge = num_sge,
		.remote = *remote,
	};

	return ibchan_perform(&wr, IBCHAN_TIMEOUT_NEVER, NULL, error);
}
