// SPDX-License-Identifier: LGPL-2.1-or-later
/* Memory regions of dma-bufs. */
#include <errno.h>
#include <stdlib.h>

#include "internal.h"

static int mr_reg_dmabuf(struct ibchan_pd *pd, const struct ibchan_dmabuf_params *params,
			 struct ibchan_mr *mr, struct ibchan_reason *reason)
{
	struct ibchan_cmd_mr_reg_dmabuf cmd = {
		.size = sizeof(cmd),
		.offset = params->offset,
		.length = params->length,
		.fd = params->fd,
		.pd = pd->object.handle,
		.access = params->access,
		.reserved = params->reserved,
	};
	int err = context_check(pd->object.context);

	if (err)
		return err;
	err = context_ioctl(pd->object.context, IBCHAN_CMD_MR_REG_DMABUF, &cmd);
	*reason = cmd.reason;
	mr->object.handle = cmd.out_mr;
	mr->rkey = cmd.out_rkey;
	mr->access = params->access;
	mr->addr = params->addr;
	mr->remote_addr = cmd.out_addr;
	mr->length = params->length;
	return err;
}

int ibchan_mr_reg_dmabuf(struct ibchan_pd *pd, const struct ibchan_dmabuf_params *params,
			 struct ibchan_mr **out, struct ibchan_error *error)
{
	struct ibchan_mr *mr = calloc(1, sizeof(*mr));
	struct ibchan_reason reason = { 0 };
	struct ibchan_dmabuf_params what;
	int err;

	if (!mr)
		return error_set(error, -ENOMEM, NULL);
	err = params_read(&what, sizeof(what), params, &reason) ?:
	      mr_reg_dmabuf(pd, &what, mr, &reason);
	if (err) {
		free(mr);
		return error_set(error, err, &reason);
	}
	object_add(&mr->object, pd->object.context, object_release);
	*out = mr;
	return error_set(error, 0, NULL);
}
