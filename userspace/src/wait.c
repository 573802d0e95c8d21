// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Everything that sleeps: waiting for completions, and for one's own work.
 *
 * The thread that reads the ring, this one or another, puts the result of a kept work
 * into its slot. So any number of threads may wait on one cq: each sleeps in the
 * kernel until something has been published since it last looked, then sorts
 * the ring under the lock, and is through if any thread has found its own work meanwhile.
 * The lock is not held in a sleep, so that a thread may jump out of it.
 *
 * EINTR and ETIMEDOUT of the kernel speak of the wait alone; works that were posted stay posted.
 */
#include <errno.h>
#include <time.h>

#include "wait.h"

__s64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

/* Only for a wait with a limit. */
void deadline_start(struct deadline *deadline)
{
	if (__builtin_add_overflow(now_ns(), deadline->timeout_ns, &deadline->end_ns))
		deadline->timeout_ns = IBCHAN_TIMEOUT_NEVER;
}

/* Negative: no end. */
__s64 deadline_left(const struct deadline *deadline)
{
	__s64 left;

	if (deadline->timeout_ns <= 0)
		return deadline->timeout_ns;
	left = deadline->end_ns - now_ns();
	return left > 0 ? left : 0;
}

/*
 * Until @fd is readable. Once the time is over the answer is an error, even if something has come:
 * things might come without end.
 */
int fd_await(int fd, const struct deadline *deadline)
{
	const __s64 left = deadline_left(deadline);
	int ret;

	if (!left)
		return too_late(deadline);
	ret = fd_wait(fd, left);
	return ret ? min(ret, 0) : -ETIMEDOUT;
}

/*
 * Once the time is over the answer is an error, whatever came: another thread's
 * completions might come without end.
 */
static int sleep_for(const struct ibchan_cq *cq, __u32 tail, __u32 min,
		     const struct deadline *deadline)
{
	const __s64 left = deadline_left(deadline);
	struct ibchan_cmd_submit cmd = { .timeout_ns = left };
	int err;

	submit_wait(&cmd, cq, tail, min);
	err = context_submit(cq->object.context, &cmd);
	return err || left ? err : -ETIMEDOUT;
}

/* Until more than @tail were published, or the time is over. Nothing is taken. */
int cq_sleep(const struct ibchan_cq *cq, __u32 tail, const struct deadline *deadline)
{
	return sleep_for(cq, tail, 1, deadline);
}

int ibchan_cq_wait(struct ibchan_cq *cq, struct ibchan_cqe *completions,
		   __u32 n, __u32 min, __s64 timeout_ns)
{
	struct deadline deadline;
	__u32 tail, got = 0;
	int wait = deadline_begin(&deadline, cq->object.context, timeout_ns);

	if (wait)
		return wait;
	if (!min || min > n)
		return -EINVAL;
	for (;;) {
		got += cq_take(cq, completions + got, n - got, &tail);
		/* One last look has been taken after the wait ended. */
		if (got >= min || wait)
			break;
		wait = sleep_for(cq, tail, min - got, &deadline);
	}
	return got ? (int)got : wait;
}

/* The rest of ticket_look(), which has taken the lock. */
int ticket_sort(const struct ticket *ticket, struct ibchan_cqe *completion, __u32 *tail)
{
	struct ibchan_cq *cq = ticket->cq;
	int ret;

	ring_sort(cq);
	if (tail)
		*tail = cq->sorted;
	ret = ticket_fetch(ticket, completion);
	ticket_unlock(cq);
	return ret;
}

/* The rest of ticket_wait(), behind a look up to @tail. */
int ticket_wait_longer(const struct ticket *ticket, const struct deadline *deadline, int err,
		       __u32 tail, struct ibchan_cqe *completion)
{
	int ret;

	do {
		if (err && err != -EINTR)
			return err;
		err = cq_sleep(ticket->cq, tail, deadline);
		ret = ticket_look(ticket, completion, &tail);
	} while (!ret);
	return min(ret, 0);
}
