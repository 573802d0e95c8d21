// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands of listeners, each of which has a descriptor of its own to poll, and of the
 * requests that are taken from them.
 */
#include <linux/anon_inodes.h>
#include <linux/errno.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <rdma/ibchan_connect.h>

#include "budget.h"
#include "context.h"

/* A listener and its descriptor */
struct ibchan_user_listener {
	struct kref kref;	/* the handle and the file */
	spinlock_t lock;	/* guards @listener */
	struct ibchan_listener *listener;	/* NULL when the handle has gone */
	wait_queue_head_t wait;	/* callers that poll the file */
	struct ibchan_cost cost;	/* of kernel memory, until the handle has gone */
};

static void listener_ready(void *priv)
{
	wake_up_all(&((struct ibchan_user_listener *)priv)->wait);
}

static void listener_free(struct kref *kref)
{
	kfree(container_of(kref, struct ibchan_user_listener, kref));
}

/* The handle goes, maybe before there is a listener. The descriptor may live on, and hangs up. */
void ibchan_user_listener_end(struct ibchan_user_listener *user)
{
	struct ibchan_listener *listener;

	spin_lock(&user->lock);
	listener = user->listener;
	user->listener = NULL;
	spin_unlock(&user->lock);
	wake_up_all(&user->wait);
	if (listener)
		ibchan_listener_close(listener);
	ibchan_cost_pay_back(&user->cost);
	kref_put(&user->kref, listener_free);
}

static __poll_t listener_poll(struct file *file, poll_table *table)
{
	struct ibchan_user_listener *user = file->private_data;
	int waiting = -ENODEV;

	poll_wait(file, &user->wait, table);
	spin_lock(&user->lock);
	if (user->listener)
		waiting = ibchan_listener_waiting(user->listener);
	spin_unlock(&user->lock);
	if (waiting < 0)
		return EPOLLERR | EPOLLHUP;
	return waiting ? EPOLLIN | EPOLLRDNORM : 0;
}

static int listener_release(struct inode *inode, struct file *file)
{
	struct ibchan_user_listener *user = file->private_data;

	kref_put(&user->kref, listener_free);
	return 0;
}

static const struct file_operations listener_fops = {
	.owner = THIS_MODULE,
	.poll = listener_poll,
	.release = listener_release,
	.llseek = noop_llseek,
};

int ibchan_run_listener_create(struct ibchan_call *call)
{
	struct ibchan_cmd_listener_create *cmd = call->cmd;
	struct sockaddr_storage address;
	struct ibchan_listener_init init = {
		.net = ibchan_caller_net(),
		.address = (struct sockaddr *)&address,
		.backlog = cmd->backlog,
		.ready = listener_ready,
		.budget = call->ctx->budget,
	};
	struct ibchan_object *device = NULL;
	struct ibchan_user_listener *user;
	struct ibchan_listener *listener;
	struct file *file;
	int ret;

	if (cmd->device) {
		device = ibchan_call_find(call, cmd->device, OBJECT_DEVICE);
		if (IS_ERR(device))
			return PTR_ERR(device);
		init.net = device->net;
		init.dev = device->device;
	}
	ret = ibchan_call_reserve(call, OBJECT_LISTENER, &cmd->out_listener, NULL, NULL);
	ret = ret ?: ibchan_address_in(&cmd->address, &address);
	if (ret)
		return ret;
	user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);
	if (!user)
		return -ENOMEM;
	kref_init(&user->kref);
	spin_lock_init(&user->lock);
	init_waitqueue_head(&user->wait);
	/* From here on the dispatcher ends it if the command fails. */
	call->new->listener = user;
	if (device)
		ibchan_object_adopt(call->new, device);
	init.priv = user;
	ret = ibchan_cost_charge(&user->cost, init.budget, IBCHAN_FOOTPRINT_LISTENER, &cmd->reason);
	if (ret)
		return ret;
	listener = ibchan_listener_create(&init, &cmd->reason);
	if (IS_ERR(listener))
		return PTR_ERR(listener);
	user->listener = listener;
	ibchan_listener_address(listener, &address);
	ibchan_address_out(&address, &cmd->out_address);
	file = anon_inode_getfile("[ibchan-listener]", &listener_fops, user, O_RDONLY | O_CLOEXEC);
	if (!IS_ERR(file))
		kref_get(&user->kref);
	return ibchan_call_file(call, file, &cmd->out_fd);
}

int ibchan_run_request_take(struct ibchan_call *call)
{
	struct ibchan_cmd_request_take *cmd = call->cmd;
	struct ibchan_request_attr attr;
	struct ibchan_request *request;
	int ret = ibchan_call_reserve(call, OBJECT_REQUEST, &cmd->out_request, NULL, NULL);

	if (ret)
		return ret;
	request = ibchan_request_take(call->object->listener->listener);
	if (IS_ERR(request))
		return PTR_ERR(request);
	call->new->request = request;
	ibchan_request_query(request, &attr);
	memcpy(cmd->out_device, attr.device, sizeof(cmd->out_device));
	cmd->out_port = attr.port;
	cmd->out_data_length = attr.length;
	ibchan_address_out(&attr.local, &cmd->out_local);
	ibchan_address_out(&attr.peer, &cmd->out_peer);
	memcpy(cmd->out_data, attr.data, sizeof(cmd->out_data));
	return 0;
}

/* A request goes with its answer; after an error it stays for another answer. */
static void request_answered(struct ibchan_call *call, struct ibchan_object *request, int error)
{
	if (error)
		ibchan_object_unclaim(call->ctx, request);
	else
		ibchan_object_forget(call->ctx, request);
}

int ibchan_run_request_accept(struct ibchan_call *call)
{
	struct ibchan_cmd_request_accept *cmd = call->cmd;
	const struct ibchan_connect connect = {
		.data = cmd->data,
		.length = cmd->data_length,
		.flags = cmd->flags,
		.connect_ms = cmd->connect_ms,
	};
	struct ibchan_object *request;
	int ret;

	request = ibchan_object_claim(call->ctx, cmd->request, OBJECT_REQUEST);
	if (IS_ERR(request))
		return PTR_ERR(request);
	ret = ibchan_request_accept(request->request, call->object->channel, &connect,
				    &cmd->reason);
	request_answered(call, request, ret);
	return ret;
}

int ibchan_run_request_reject(struct ibchan_call *call)
{
	struct ibchan_cmd_request_reject *cmd = call->cmd;
	struct ibchan_object *request;
	int ret;

	request = ibchan_object_claim(call->ctx, cmd->request, OBJECT_REQUEST);
	if (IS_ERR(request))
		return PTR_ERR(request);
	ret = ibchan_request_reject(request->request, cmd->data, cmd->data_length);
	request_answered(call, request, ret);
	return ret;
}
