// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests over iWARP. The driver may wait for TCP before it sends one: siw does, as long
 * as TCP tries, which are minutes. The connection manager has one worker for the events of
 * all connections, so a thread of the connection's own asks, and a signal ends its wait.
 *
 * Once the request is sent nothing can be done before the answer: the connection manager
 * waits for it without an end when an id is destroyed, and so do a close and the removal of
 * the device. Drivers have an end: siw gives up 10 s after it has sent the request. Where a
 * port mapper runs and does not answer, 10 s more may pass before TCP is asked.
 *
 * A user's limit on processes does not count kernel threads. So a user's channels have at most
 * MAX_ASKERS threads at a time; a further channel waits until one of these threads ends, and
 * its deadline runs meanwhile.
 */
#include <linux/errno.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/uidgid.h>

#include "cm.h"
#include "compat.h"

/* Threads of one user. */
#define MAX_ASKERS	32

/* Guards the lists, and @asker and @ask_link of each connection; inside the qp lock. */
static DEFINE_MUTEX(ask_lock);
static LIST_HEAD(asking);
static LIST_HEAD(waiting);

static int ask(void *arg);

static int begin_to_ask(struct ibchan_cm *cm)
{
	struct task_struct *asker = kthread_create(ask, cm, "ibchan_ask");

	if (IS_ERR(asker))
		return PTR_ERR(asker);
	cm->asker = get_task_struct(asker);
	list_move_tail(&cm->ask_link, &asking);
	wake_up_process(asker);
	return 0;
}

/* For a connection that has had a thread. A second call does nothing. */
static void end_asking(struct ibchan_cm *cm)
{
	struct ibchan_cm *other;

	guard(mutex)(&ask_lock);
	if (list_empty(&cm->ask_link))
		return;
	list_del_init(&cm->ask_link);
	/* One that cannot get a thread waits on, as long as its deadline lets it. */
	list_for_each_entry(other, &waiting, ask_link) {
		if (!uid_eq(other->uid, cm->uid))
			continue;
		begin_to_ask(other);
		return;
	}
}

static int send_request(struct ibchan_cm *cm)
{
	struct rdma_conn_param param;
	int ret;

	if (!is_connecting(cm->ch))
		return 0;
	ibchan_cm_fill_request(cm, &param);
	ret = rdma_connect(cm->id, &param);
	/* An interrupted wait has no result that matters. */
	if (!ret || !is_connecting(cm->ch))
		return 0;
	return ibchan_cm_fail(cm, ret, ret);
}

/* The signal comes behind a break or a close of the channel, so it is not missed. */
static int ask(void *arg)
{
	struct ibchan_cm *cm = arg;
	int ret;

	/* The channel's end waits for this thread. */
	guard(ibchan_noio)();
	allow_signal(SIGKILL);
	ret = send_request(cm);
	/* A signal that is pending, or comes, would keep the next thread from being made. */
	disallow_signal(SIGKILL);
	/* The close of the channel waits for this thread. */
	end_asking(cm);
	return ret;
}

/*
 * Under the qp lock. 0 when that has begun, or is going to: a failure then breaks the
 * channel. -EAGAIN when there may be no more processes.
 */
int ibchan_cm_ask(struct ibchan_cm *cm)
{
	const struct ibchan_cm *other;
	u32 num = 0;

	lockdep_assert_held(&cm->ch->qp.lock);
	guard(mutex)(&ask_lock);
	list_for_each_entry(other, &asking, ask_link)
		num += uid_eq(other->uid, cm->uid);
	if (num < MAX_ASKERS)
		return begin_to_ask(cm);
	list_add_tail(&cm->ask_link, &waiting);
	return 0;
}

/* A request over iWARP waits for TCP no longer. Without the qp lock. */
void ibchan_cm_interrupt(struct ibchan_channel *ch)
{
	struct ibchan_cm *cm = READ_ONCE(ch->cm);
	struct task_struct *asker;

	/*
	 * Only iWARP has askers. Its callers create them under ask_lock, which allocates: other
	 * transports do not wait for that lock.
	 */
	if (!cm || !ch->qp.gid.iwarp)
		return;
	mutex_lock(&ask_lock);
	asker = cm->asker;
	cm->asker = NULL;
	/* The connection waits for its turn no longer. */
	if (!asker)
		list_del_init(&cm->ask_link);
	mutex_unlock(&ask_lock);
	if (!asker)
		return;
	send_sig(SIGKILL, asker, 1);
	kthread_stop(asker);
	put_task_struct(asker);
	/* A thread that is stopped before it has begun does nothing. */
	end_asking(cm);
}
