// SPDX-License-Identifier: GPL-2.0-only
#define NDEBUG
#include "../../userspace/src/internal.h"
#include "fake.h"

struct ibchan_mr *fake_mr(void *addr, __u64 length)
{
	static struct ibchan_mr mr;

	mr.object.handle = FAKE_MR;
	mr.addr = addr;
	mr.length = length;
	return &mr;
}

struct ibchan_submit_sge sge_new_without_debug(struct ibchan_mr *mr, size_t offset, size_t length)
{
	return ibchan_sge_new(mr, offset, length);
}
