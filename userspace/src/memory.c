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
	struct ibchan_cmd_pd_alloc cmd = {
		.size = sizeof(cmd),
		.device = device->object.handle,
	};
	struct ibchan_pd *pd;
	int err = context_check(context);

	if (err)
		return error_set(error, err, NULL);
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return error_set(error, -ENOMEM, NULL);
	err = context_ioctl(context, IBCHAN_CMD_PD_ALLOC, &cmd);
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

static int mr_reg(struct ibchan_pd *pd, const struct ibchan_mr_params *params,
		  struct ibchan_mr *mr, struct ibchan_reason *reason)
{
	struct ibchan_cmd_mr_reg cmd = {
		.size = sizeof(cmd),
		.addr = (uintptr_t)params->addr,
		.length = params->length,
		.pd = pd->object.handle,
		.access = params->access,
	};
	int err = context_check(pd->object.context);

	if (err)
		return err;
	err = context_ioctl(pd->object.context, IBCHAN_CMD_MR_REG, &cmd);
	*reason = cmd.reason;
	mr->object.handle = cmd.out_mr;
	mr->rkey = cmd.out_rkey;
	mr->access = params->access;
	mr->addr = params->addr;
	mr->remote_addr = cmd.addr;
	mr->length = params->length;
	return err;
}

int ibchan_mr_reg(struct ibchan_pd *pd, const struct ibchan_mr_params *params,
		  struct ibchan_mr **out, struct ibchan_error *error)
{
	struct ibchan_mr *mr = calloc(1, sizeof(*mr));
	struct ibchan_reason reason = { 0 };
	struct ibchan_mr_params what;
	int err;

	if (!mr)
		return error_set(error, -ENOMEM, NULL);
	err = params_read(&what, sizeof(what), params, &reason) ?: mr_reg(pd, &what, mr, &reason);
	if (err) {
		free(mr);
		return error_set(error, err, &reason);
	}
	object_add(&mr->object, pd->object.context, object_release);
	*out = mr;
	return error_set(error, 0, NULL);
}

int ibchan_mr_reg_local(struct ibchan_pd *pd, void *addr, size_t length,
			struct ibchan_mr **mr, struct ibchan_error *error)
{
	const struct ibchan_mr_params params = {
		.size = sizeof(params),
		.addr = addr,
		.length = length,
		.access = IBCHAN_ACCESS_LOCAL,
	};

	return ibchan_mr_reg(pd, &params, mr, error);
}

int ibchan_mr_reg_shared(struct ibchan_pd *pd, void *addr, size_t length,
			 struct ibchan_mr **mr, struct ibchan_error *error)
{
	const struct ibchan_mr_params params = {
		.size = sizeof(params),
		.addr = addr,
		.length = length,
		.access = IBCHAN_ACCESS_SHARED,
	};

	return ibchan_mr_reg(pd, &params, mr, error);
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
		.addr = mr->remote_addr,
		.length = mr->length,
		.rkey = mr->rkey,
	};
	return 0;
}

struct ibchan_remote_region
ibchan_remote_region_sub_unchecked(const struct ibchan_remote_region *region,
				   __u64 offset, __u64 length)
{
	return (struct ibchan_remote_region) {
		.addr = region->addr + offset,
		.length = length,
		.rkey = region->rkey,
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

/* On the wire: address, length, key. */
#define WIRE_LENGTH	sizeof(__be64)
#define WIRE_RKEY	(2 * sizeof(__be64))

static_assert(WIRE_RKEY + sizeof(__be32) == IBCHAN_REMOTE_REGION_SIZE,
	      "the size is part of the interface");

void ibchan_remote_region_to_bytes(const struct ibchan_remote_region *region, void *bytes)
{
	const __be64 addr = htobe64(region->addr);
	const __be64 length = htobe64(region->length);
	const __be32 rkey = htobe32(region->rkey);
	__u8 *wire = bytes;

	memcpy(wire, &addr, sizeof(addr));
	memcpy(wire + WIRE_LENGTH, &length, sizeof(length));
	memcpy(wire + WIRE_RKEY, &rkey, sizeof(rkey));
}

int ibchan_remote_region_from_bytes(struct ibchan_remote_region *region,
				    const void *bytes, size_t size)
{
	const __u8 *wire = bytes;
	__be64 addr, length;
	__be32 rkey;
	__u64 end;

	if (size != IBCHAN_REMOTE_REGION_SIZE)
		return -EINVAL;
	memcpy(&addr, wire, sizeof(addr));
	memcpy(&length, wire + WIRE_LENGTH, sizeof(length));
	memcpy(&rkey, wire + WIRE_RKEY, sizeof(rkey));
	if (__builtin_add_overflow(be64toh(addr), be64toh(length), &end))
		return -EINVAL;
	*region = (struct ibchan_remote_region) {
		.addr = be64toh(addr),
		.length = be64toh(length),
		.rkey = be32toh(rkey),
	};
	return 0;
}
