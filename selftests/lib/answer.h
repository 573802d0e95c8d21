/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the kernel has to say to work requests that it may refuse.
 */
#ifndef TEST_ANSWER_H
#define TEST_ANSWER_H

#include "side.h"

struct answer {
	int rc;
	struct ibchan_cmd_submit cmd;
};

/* Posts @n works and waits for nothing. */
struct answer ask(const struct side *side, const struct ibchan_submit_wr *wrs, unsigned int n);
struct answer ask_one(const struct side *side, const struct ibchan_submit_wr *wr);

/* 0 if nothing was posted and the first work refused for this; else a line says what differs. */
int is_refusal(const struct answer *answer, int error, unsigned int code);
int has_values(const struct answer *answer, __u64 first, __u64 second, __u64 third);

#endif /* TEST_ANSWER_H */
