// SPDX-License-Identifier: LGPL-2.1-or-later
/* Protection domains, memory regions, and naming the peer's. */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

int ibchan_pd_alloc(struct ibchan_device *device, struct ibchan_pd **out,
		    struct ibchan_error *error)
{
	struct ibchan_context *context = device->object.context;
	struct ibchan_cmd_pd_alloc cmd = { .size = sizeof(cmd), .device = device->object.handle };
	struct ibchan_pd *pd = calloc(1, sizeof(*pd));
	int err = pd ? context_command(context, IBCHAN_CMD_PD_ALLOC, &cmd) : -ENOMEM;

	if (err) {
		free(pd);
		return error_set(error, err, NULL);
	}
	pd->object.handle = cmd.out_pd;
	pd->device = device;
	object_add(&pd->object, context, object_release);
	*out = pd;
	return error_set(error, 0, NULL);
}

int ibchan_pd_free(struct ibchan_pd *pd)
{
	return pd ? object_destroy(&pd->object) : 0;
}

/* @mr is filled in, unless the command failed with @err. */
static int mr_add(struct ibchan_pd *pd, struct ibchan_mr *mr, int err, struct ibchan_mr **out)
{
	if (err) {
		free(mr);
		return err;
	}
	object_add(&mr->object, pd->object.context, object_release);
	*out = mr;
	return 0;
}

int ibchan_mr_reg(struct ibchan_pd *pd, const struct ibchan_mr_params *params,
		  struct ibchan_mr **out, struct ibchan_error *error)
{
	struct ibchan_cmd_mr_reg cmd = { .size = sizeof(cmd), .pd = pd->object.handle };
	struct ibchan_mr *mr = malloc(sizeof(*mr));
	struct ibchan_mr_params what;
	int err = mr ? params_read(&what, sizeof(what), params, &cmd.reason) : -ENOMEM;

	if (!err) {
		cmd.addr = (uintptr_t)what.addr;
		cmd.length = what.length;
		cmd.access = what.access;
		err = context_command(pd->object.context, IBCHAN_CMD_MR_REG, &cmd);
		*mr = (struct ibchan_mr) {
			.object.handle = cmd.out_mr, .rkey = cmd.out_rkey, .access = what.access,
			.addr = what.addr, .remote_addr = cmd.addr, .length = what.length,
		};
	}
	return error_set(error, mr_add(pd, mr, err, out), &cmd.reason);
}

int ibchan_mr_reg_dmabuf(struct ibchan_pd *pd, const struct ibchan_dmabuf_params *params,
			 struct ibchan_mr **out, struct ibchan_error *error)
{
	struct ibchan_cmd_mr_reg_dmabuf cmd = { .size = sizeof(cmd), .pd = pd->object.handle };
	struct ibchan_mr *mr = malloc(sizeof(*mr));
	struct ibchan_dmabuf_params what;
	int err = mr ? params_read(&what, sizeof(what), params, &cmd.reason) : -ENOMEM;

	if (!err) {
		cmd.offset = what.offset;
		cmd.length = what.length;
		cmd.fd = what.fd;
		cmd.access = what.access;
		cmd.reserved = what.reserved;
		err = context_command(pd->object.context, IBCHAN_CMD_MR_REG_DMABUF, &cmd);
		*mr = (struct ibchan_mr) {
			.object.handle = cmd.out_mr, .rkey = cmd.out_rkey, .access = what.access,
			.addr = what.addr, .remote_addr = cmd.out_addr, .length = what.length,
		};
	}
	return error_set(error, mr_add(pd, mr, err, out), &cmd.reason);
}

static int reg(struct ibchan_pd *pd, void *addr, size_t length, __u32 access,
	       struct ibchan_mr **mr, struct ibchan_error *error)
{
	const struct ibchan_mr_params params = {
		.size = sizeof(params), .access = access, .addr = addr, .length = length,
	};

	return ibchan_mr_reg(pd, &params, mr, error);
}

int ibchan_mr_reg_local(struct ibchan_pd *pd, void *addr, size_t length, struct ibchan_mr **mr,
			struct ibchan_error *error)
{
	return reg(pd, addr, length, IBCHAN_ACCESS_LOCAL, mr, error);
}

int ibchan_mr_reg_shared(struct ibchan_pd *pd, void *addr, size_t length, struct ibchan_mr **mr,
			 struct ibchan_error *error)
{
	return reg(pd, addr, length, IBCHAN_ACCESS_SHARED, mr, error);
}

int ibchan_mr_dereg(struct ibchan_mr *mr)
{
	return mr ? object_destroy(&mr->object) : 0;
}

void *ibchan_mr_addr(const struct ibchan_mr *mr)
{
	return mr->addr;
}

__u64 ibchan_mr_length(const struct ibchan_mr *mr)
{
	return mr->length;
}

int ibchan_mr_remote_region(const struct ibchan_mr *mr, struct ibchan_remote_region *region)
{
	if (!(mr->access & IBCHAN_ACCESS_REMOTE))
		return -EACCES;
	*region = (struct ibchan_remote_region) {
		.addr = mr->remote_addr, .length = mr->length, .rkey = mr->rkey,
	};
	return 0;
}

struct ibchan_remote_region
ibchan_remote_region_sub_unchecked(const struct ibchan_remote_region *region,
				   __u64 offset, __u64 length)
{
	return (struct ibchan_remote_region) {
		.addr = region->addr + offset, .length = length, .rkey = region->rkey,
	};
}

int ibchan_remote_region_sub(const struct ibchan_remote_region *region, __u64 offset, __u64 length,
			     struct ibchan_remote_region *sub)
{
	__u64 end;

	if (offset > region->length || length > region->length - offset ||
	    __builtin_add_overflow(region->addr, offset + length, &end))
		return -EINVAL;
	*sub = ibchan_remote_region_sub_unchecked(region, offset, length);
	return 0;
}

int ibchan_remote_region_nth(const struct ibchan_remote_region *region, __u64 size, __u64 index,
			     struct ibchan_remote_region *sub)
{
	__u64 offset;

	if (__builtin_mul_overflow(index, size, &offset))
		return -EINVAL;
	return ibchan_remote_region_sub(region, offset, size, sub);
}

struct remote_wire {
	__be64 addr;
	__be64 length;
	__be32 rkey;
} __packed;

static_assert(sizeof(struct remote_wire) == IBCHAN_REMOTE_REGION_SIZE,
	      "the size is part of the interface");

void ibchan_remote_region_to_bytes(const struct ibchan_remote_region *region, void *bytes)
{
	const struct remote_wire wire = {
		htobe64(region->addr), htobe64(region->length), htobe32(region->rkey),
	};

	memcpy(bytes, &wire, sizeof(wire));
}

int ibchan_remote_region_from_bytes(struct ibchan_remote_region *region, const void *bytes,
				    size_t size)
{
	struct remote_wire wire;
	__u64 end;

	if (size != sizeof(wire))
		return -EINVAL;
	memcpy(&wire, bytes, sizeof(wire));
	if (__builtin_add_overflow(be64toh(wire.addr), be64toh(wire.length), &end))
		return -EINVAL;
	*region = (struct ibchan_remote_region) {
		.addr = be64toh(wire.addr), .length = be64toh(wire.length),
		.rkey = be32toh(wire.rkey),
	};
	return 0;
}
