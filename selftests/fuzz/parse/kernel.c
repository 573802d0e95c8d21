// SPDX-License-Identifier: GPL-2.0-only
/* What kmod/rules/endpoint.c and kmod/connect/cm_data.c call. */
#include "kernel.h"

int ibchan_refuse_values(struct ibchan_reason *reason, u32 code, int error, const u64 value[3])
{
	if (!reason)
		return error;
	reason->code = code;
	memcpy(reason->value, value, sizeof(reason->value));
	return error;
}

int ibchan_refuse(struct ibchan_reason *reason, u32 code, int error)
{
	return ibchan_refuse_values(reason, code, error, (u64[3]) {});
}
