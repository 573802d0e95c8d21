/* SPDX-License-Identifier: GPL-2.0-only */
/* What the library's own objects look like where no device would make one. */
#ifndef TEST_SHIM_FAKE_H
#define TEST_SHIM_FAKE_H

#include <ibchan.h>

#define FAKE_MR		0x1234

/* A region of that handle that is registered nowhere, for calls that only look at its bounds. */
struct ibchan_mr *fake_mr(void *addr, __u64 length);

/* ibchan_sge_new() as a caller with NDEBUG has it. */
struct ibchan_submit_sge sge_new_without_debug(struct ibchan_mr *mr, size_t offset, size_t length);

#endif /* TEST_SHIM_FAKE_H */
