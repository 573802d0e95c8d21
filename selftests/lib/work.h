/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Work requests: to make, to post, to complete.
 */
#ifndef TEST_WORK_H
#define TEST_WORK_H

#include "side.h"

/* One element: @length bytes at @offset of @side's memory. */
struct ibchan_submit_wr work(const struct side *side, int opcode, __u64 wr_id, __u64 offset,
			     __u32 length);
/* The same without any element. */
struct ibchan_submit_wr work_empty(const struct side *side, int opcode, __u64 wr_id);

void work_at(struct ibchan_submit_wr *wr, const struct side *peer, __u64 offset);
void work_imm(struct ibchan_submit_wr *wr, __u32 imm);
void work_elements(struct ibchan_submit_wr *wr, const struct ibchan_submit_sge *sges,
		   unsigned int n);

/* The command that posts @n works and waits for nothing. */
struct ibchan_cmd_submit submission(const struct ibchan_submit_wr *wrs, unsigned int n);

int post(const struct side *side, const struct ibchan_submit_wr *wrs, unsigned int n);
int post_one(const struct side *side, struct ibchan_submit_wr wr);
/* Posts @n receives of @length bytes each with the ids @first, @first + 1, ... */
int post_receives(const struct side *side, __u64 first, unsigned int n, __u32 length);

/* Waits for one completion that must have succeeded: 0, or what went wrong. */
int succeed(const struct side *side, __u64 wr_id, struct ibchan_cqe *cqe);
/* Waits for one completion: its enum ibchan_status, or -errno. */
int status_of(const struct side *side, __u64 wr_id);

/* One message from @a to @b and its contents: is the connection all right? */
int exchange(const struct side *a, const struct side *b);

/* Reproducible bytes; never a run of equal ones. */
void pattern(unsigned char *bytes, size_t length, unsigned int seed);
/* 0, or -EBADMSG after a line that says where. */
int same_bytes(const unsigned char *wanted, const unsigned char *seen, size_t length);
int all_bytes(const unsigned char *seen, size_t length, unsigned char wanted);

#endif /* TEST_WORK_H */
