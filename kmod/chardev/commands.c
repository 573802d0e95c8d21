// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bodies of commands: devices that are looked at, objects of a file that are made, asked about and
 * given back. A body works on the kernel's copy of the command's struct and has no unwinding: see
 * uabi.c.
 */
#include <linux/dma-buf.h>
#include <linux/errno.h>
#include <linux/file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <net/net_namespace.h>

#include "compat.h"
#include "submit.h"

int ibchan_run_query(struct ibchan_call *call)
{
	struct ibchan_cmd_query *cmd = call->cmd;
	struct ibchan_device *dev;
	u32 devices = 0;

	for (dev = ibchan_device_get_nth(0, ibchan_caller_net()); !IS_ERR(dev);
	     dev = ibchan_device_get_nth(devices, ibchan_caller_net())) {
		ibchan_device_put(dev);
		devices++;
	}
	cmd->out.abi_version = IBCHAN_ABI_VERSION;
	cmd->out.max_sge = IBCHAN_MAX_SGE;
	cmd->out.max_ring_entries = IBCHAN_MAX_RING_ENTRIES;
	cmd->out.max_handles = READ_ONCE(ibchan_max_handles);
	cmd->out.devices = devices;
	cmd->out.opcodes = IBCHAN_SUBMIT_OPCODES;
	cmd->out.wr_flags = IBCHAN_WR_FLAGS;
	cmd->out.submit_flags = IBCHAN_SUBMIT_FLAGS;
	cmd->out.cq_flags = IBCHAN_CQ_CREATE_SOLICITED;
	guard(spinlock)(&call->ctx->lock);
	cmd->out.handles = call->ctx->num_objects;
	cmd->out.pinned_bytes = call->ctx->pinned_bytes;
	return 0;
}

int ibchan_run_device_query(struct ibchan_call *call)
{
	struct ibchan_cmd_device_query *cmd = call->cmd;
	const struct ibchan_object *object;
	struct ibchan_device *dev;
	int ret;

	if (cmd->flags & IBCHAN_DEVICE_QUERY_HANDLE) {
		object = ibchan_call_find(call, cmd->index, OBJECT_DEVICE);
		if (IS_ERR(object))
			return PTR_ERR(object);
		return ibchan_device_query(object->device, &cmd->out);
	}
	dev = ibchan_device_get_nth(cmd->index, ibchan_caller_net());
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	ret = ibchan_device_query(dev, &cmd->out);
	ibchan_device_put(dev);
	return ret;
}

/* Looks among the devices that the caller sees. A name in a command has its final NUL. */
static struct ibchan_device *named_device(const char *name)
{
	if (strnlen(name, IBCHAN_NAME_SIZE) == IBCHAN_NAME_SIZE)
		return ERR_PTR(-EINVAL);
	return ibchan_device_get(name, ibchan_caller_net());
}

int ibchan_run_port_query(struct ibchan_call *call)
{
	struct ibchan_cmd_port_query *cmd = call->cmd;
	struct ibchan_device *dev = named_device(cmd->name);
	int ret;

	if (IS_ERR(dev))
		return PTR_ERR(dev);
	ret = ibchan_port_query(dev, cmd->port, ibchan_caller_net(), &cmd->out);
	ibchan_device_put(dev);
	return ret;
}

int ibchan_run_gid_query(struct ibchan_call *call)
{
	struct ibchan_cmd_gid_query *cmd = call->cmd;
	struct ibchan_gid_attr attr = { .index = cmd->index };
	struct ibchan_device *dev = named_device(cmd->name);
	int ret;

	if (IS_ERR(dev))
		return PTR_ERR(dev);
	ret = ibchan_gid_query(dev, cmd->port, ibchan_caller_net(), &attr);
	if (!ret)
		cmd->out = attr;
	ibchan_device_put(dev);
	return ret;
}

/* Keeps the object that a body made, or passes its error on. */
static int fulfil(struct ibchan_call *call, void *made)
{
	if (IS_ERR(made))
		return PTR_ERR(made);
	call->new->any = made;
	return 0;
}

/* The file of a new object gets a descriptor, which the answer names. */
int ibchan_call_file(struct ibchan_call *call, struct file *file, __s32 *out_fd)
{
	int fd;

	if (IS_ERR(file))
		return PTR_ERR(file);
	call->new_file = file;
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	call->new_fd = fd;
	*out_fd = fd;
	return 0;
}

int ibchan_run_device_open(struct ibchan_call *call)
{
	struct ibchan_cmd_device_open *cmd = call->cmd;
	int ret = ibchan_call_reserve(call, OBJECT_DEVICE, &cmd->out_device, NULL, NULL);

	ret = ret ?: fulfil(call, named_device(cmd->name));
	if (ret)
		return ret;
	call->new->net = get_net(ibchan_caller_net());
	return ibchan_device_charge(call->new->device, IBCHAN_CHARGE_HANDLE,
				    &call->new->charge, NULL);
}

int ibchan_run_pd_alloc(struct ibchan_call *call)
{
	struct ibchan_cmd_pd_alloc *cmd = call->cmd;
	struct ibchan_object *device = call->object;
	int ret = ibchan_call_reserve(call, OBJECT_PD, &cmd->out_pd, device, NULL);

	ret = ret ?: fulfil(call, ibchan_pd_alloc(device->device));
	if (ret)
		return ret;
	ibchan_object_adopt(call->new, device);
	return ibchan_pd_charge_to(call->new->pd, call->ctx->budget);
}

int ibchan_run_mr_reg(struct ibchan_call *call)
{
	struct ibchan_cmd_mr_reg *cmd = call->cmd;
	struct ibchan_object *pd = call->object;
	struct ibchan_mr *mr;
	int ret;

	ret = ibchan_call_reserve(call, OBJECT_MR, &cmd->out_mr, pd->parent, &cmd->reason);
	if (ret)
		return ret;
	mr = ibchan_mr_reg_user(pd->pd, cmd->addr, cmd->length, cmd->access, &cmd->reason);
	if (mr == ERR_PTR(-ENOMEM) && ibchan_context_settle(call->ctx)) {
		cmd->reason = (struct ibchan_reason) {};
		mr = ibchan_mr_reg_user(pd->pd, cmd->addr, cmd->length, cmd->access,
					&cmd->reason);
	}
	ret = fulfil(call, mr);
	if (!ret)
		cmd->out_rkey = ibchan_mr_rkey(mr);
	return ret;
}

int ibchan_run_mr_reg_dmabuf(struct ibchan_call *call)
{
	struct ibchan_cmd_mr_reg_dmabuf *cmd = call->cmd;
	struct ibchan_dmabuf range = { .offset = cmd->offset, .length = cmd->length };
	struct ibchan_object *pd = call->object;
	/* A region without a remote key has no address for a peer. */
	struct ibchan_remote remote = {};
	int ret;

	ret = ibchan_call_reserve(call, OBJECT_MR, &cmd->out_mr, pd->parent, &cmd->reason);
	if (ret)
		return ret;
	range.dmabuf = dma_buf_get(cmd->fd);
	if (IS_ERR(range.dmabuf))
		return PTR_ERR(range.dmabuf);
	ret = fulfil(call, ibchan_mr_reg_dmabuf(pd->pd, &range, cmd->access, &cmd->reason));
	dma_buf_put(range.dmabuf);
	/* The call was waiting for the exporter's fences and has left nothing behind. */
	if (ret)
		return ret == -EINTR ? -ERESTARTNOHAND : ret;
	ibchan_mr_remote(call->new->mr, &remote);
	cmd->out_addr = remote.addr;
	cmd->out_rkey = remote.rkey;
	return 0;
}

int ibchan_run_cq_create(struct ibchan_call *call)
{
	struct ibchan_cmd_cq_create *cmd = call->cmd;
	struct ibchan_cq_init init = {
		.entries = cmd->cq_entries,
		/* Submit arms the cq where no thread waits. */
		.flags = IBCHAN_CQ_POLLED |
			 (cmd->flags & IBCHAN_CQ_CREATE_SOLICITED ? IBCHAN_CQ_SOLICITED : 0),
		.sink = &ibchan_ring_sink,
		.budget = call->ctx->budget,
	};
	struct ibchan_user_ring *ring;
	int ret;

	if (!cmd->entries || cmd->entries > IBCHAN_MAX_RING_ENTRIES)
		return ibchan_refuse_parameter(&cmd->reason, IBCHAN_PARAMETER_ENTRIES, cmd->entries,
					       1, IBCHAN_MAX_RING_ENTRIES);
	ret = ibchan_call_reserve(call, OBJECT_CQ, &cmd->out_cq, call->object, &cmd->reason);
	if (ret)
		return ret;
	ring = ibchan_ring_create(call->ctx, cmd->entries, &cmd->reason);
	if (IS_ERR(ring))
		return PTR_ERR(ring);
	init.priv = ring;
	ring->cq = ibchan_cq_create(call->object->device, &init, &cmd->reason);
	if (IS_ERR(ring->cq)) {
		ret = PTR_ERR(ring->cq);
		ibchan_ring_put(ring);
		return ret;
	}
	call->new->ring = ring;
	ibchan_object_adopt(call->new, call->object);
	cmd->out_ring_size = ring->num_pages << PAGE_SHIFT;
	return ibchan_call_file(call, ibchan_ring_file(ring, call->file), &cmd->out_fd);
}

int ibchan_run_channel_build(struct ibchan_call *call)
{
	struct ibchan_cmd_channel_build *cmd = call->cmd;
	struct ibchan_object *pd = call->object;
	struct ibchan_object *send = ibchan_call_find(call, cmd->send_cq, OBJECT_CQ);
	struct ibchan_object *recv = cmd->recv_cq == cmd->send_cq ? send :
				     ibchan_call_find(call, cmd->recv_cq, OBJECT_CQ);
	struct ibchan_build build;
	int ret;

	if (IS_ERR(send) || IS_ERR(recv))
		return -ENOENT;
	ret = ibchan_call_reserve(call, OBJECT_CHANNEL, &cmd->out_channel, pd->parent,
				  &cmd->reason);
	if (ret)
		return ret;
	build = (struct ibchan_build){
		.pd = pd->pd,
		.send_cq = send->ring->cq,
		.recv_cq = recv->ring->cq,
		.net = pd->parent->net,
		.cookie = call->new->id,
		.connected = ibchan_user_connected,
		.broken = ibchan_user_broken,
		.priv = call->new,
		.exclusive = true,
		.options = cmd->options,
	};
	ret = fulfil(call, ibchan_channel_build(&build, &cmd->params, &cmd->reason));
	if (ret)
		return ret;
	ibchan_channel_endpoint(call->new->channel, &cmd->out_endpoint);
	ibchan_object_adopt(call->new, pd);
	call->new->pd_of_channel = pd->pd;
	return 0;
}

int ibchan_run_channel_handshake(struct ibchan_call *call)
{
	struct ibchan_cmd_channel_handshake *cmd = call->cmd;
	int ret = ibchan_channel_handshake(call->object->channel, &cmd->endpoint, &cmd->reason);

	/* No event tells of a handshake to callers that wait for the end of connecting. */
	if (wq_has_sleeper(&call->ctx->event_wait))
		wake_up_all(&call->ctx->event_wait);
	return ret;
}

int ibchan_run_channel_query(struct ibchan_call *call)
{
	struct ibchan_cmd_channel_query *cmd = call->cmd;

	ibchan_channel_query(call->object->channel, &cmd->out);
	return 0;
}

int ibchan_run_channel_break(struct ibchan_call *call)
{
	struct ibchan_channel *ch = call->object->channel;

	/* A channel that has a handle is closed only when its device has gone. */
	if (ibchan_channel_state(ch) == IBCHAN_CHANNEL_CLOSED)
		return -ENODEV;
	ibchan_channel_break(ch, -ECANCELED);
	return 0;
}

/* Members of the caller's structs that this kernel does not know become zero. */
int ibchan_run_channel_history(struct ibchan_call *call)
{
	struct ibchan_cmd_channel_history *cmd = call->cmd;
	u8 __user *to = u64_to_user_ptr(cmd->entries);
	struct ibchan_history_event *events;
	int ret = 0;
	u32 i;

	if (cmd->entry_len < sizeof(*events) || cmd->entry_len > PAGE_SIZE)
		return -EINVAL;
	events = kcalloc(IBCHAN_HISTORY_MAX, sizeof(*events), GFP_KERNEL_ACCOUNT);
	if (!events)
		return -ENOMEM;
	cmd->entry_num = ibchan_channel_history(call->object->channel, events,
						min_t(u32, cmd->entry_num, IBCHAN_HISTORY_MAX));
	ibchan_call_release(call);
	for (i = 0; i < cmd->entry_num && !ret; i++, to += cmd->entry_len)
		if (copy_to_user(to, &events[i], sizeof(*events)) ||
		    clear_user(to + sizeof(*events), cmd->entry_len - sizeof(*events)))
			ret = -EFAULT;
	kfree(events);
	return ret;
}

int ibchan_run_destroy(struct ibchan_call *call)
{
	struct ibchan_cmd_destroy *cmd = call->cmd;

	return ibchan_object_destroy(call->ctx, cmd->handle);
}
