// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests over iWARP. The driver may wait for TCP before it sends one: siw does, as long
 * as TCP tries, which are minutes. The connection manager has one worker for everybody's
 * events, so a thread of the connection's own does that, and a signal ends its wait.
 *
 * Once the request is sent nothing can be done before the answer: the connection manager
 * waits for it without an end when an id is destroyed, and so do a close and the removal of
 * the device. Drivers have an end: siw gives up 10 s after it has sent the request. Where a
 * port mapper runs and does not answer, 10 s more may pass before TCP is asked.
 */
#include <linux/errno.h>
#include <linux/kthread.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include "cm.h"
#include "compat.h"

/* Who interrupts it has broken or closed the channel before, so no signal is missed. */
static int ask(void *arg)
{
	struct ibchan_cm *cm = arg;
	struct rdma_conn_param param;
	int ret;

	allow_signal(SIGKILL);
	if (READ_ONCE(cm->ch->state) != IBCHAN_CHANNEL_CONNECTING)
		return 0;
	ibchan_cm_fill_request(cm, &param);
	ret = rdma_connect(cm->id, &param);
	/* What an interrupted wait says, is of no interest. */
	if (!ret || READ_ONCE(cm->ch->state) != IBCHAN_CHANNEL_CONNECTING)
		return 0;
	return ibchan_cm_fail(cm, ret, ret);
}

/**
 * ibchan_cm_ask - send a request over iWARP
 * @cm: the connection, its route known
 *
 * Context: process, may sleep; under the qp lock.
 * Return: 0 when that has begun, and what goes wrong then breaks the channel; -ENOMEM, or
 * -EAGAIN when there may be no more processes.
 */
int ibchan_cm_ask(struct ibchan_cm *cm)
{
	struct task_struct *asker = kthread_create(ask, cm, "ibchan_ask");

	lockdep_assert_held(&cm->ch->qp_lock);
	if (IS_ERR(asker))
		return PTR_ERR(asker);
	cm->asker = get_task_struct(asker);
	wake_up_process(asker);
	return 0;
}

static struct task_struct *take_asker(struct ibchan_cm *cm)
{
	struct task_struct *asker;

	guard(mutex)(&cm->ch->qp_lock);
	asker = cm->asker;
	cm->asker = NULL;
	return asker;
}

/**
 * ibchan_cm_interrupt - a request over iWARP waits for TCP no longer
 * @ch: broken or closed
 *
 * Context: process, may sleep; without the qp lock.
 */
void ibchan_cm_interrupt(struct ibchan_channel *ch)
{
	struct ibchan_cm *cm = READ_ONCE(ch->cm);
	struct task_struct *asker = cm ? take_asker(cm) : NULL;

	if (!asker)
		return;
	send_sig(SIGKILL, asker, 1);
	kthread_stop(asker);
	put_task_struct(asker);
}
