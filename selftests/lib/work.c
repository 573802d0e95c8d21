// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "work.h"

struct ibchan_submit_wr work_empty(const struct side *side, int opcode, __u64 wr_id)
{
	return (struct ibchan_submit_wr) {
		.channel = side->channel,
		.opcode = opcode,
		.wr_id = wr_id,
	};
}

struct ibchan_submit_wr work(const struct side *side, int opcode, __u64 wr_id, __u64 offset,
			     __u32 length)
{
	struct ibchan_submit_wr wr = work_empty(side, opcode, wr_id);

	wr.num_sge = 1;
	wr.sge.offset = offset;
	wr.sge.length = length;
	wr.sge.mr = side->mr;
	return wr;
}

void work_at(struct ibchan_submit_wr *wr, const struct side *peer, __u64 offset)
{
	wr->remote_addr = address(peer->memory) + offset;
	wr->rkey = peer->rkey;
	wr->remote_length = IBCHAN_REMOTE_UNCHECKED;
}

void work_imm(struct ibchan_submit_wr *wr, __u32 imm)
{
	wr->flags |= IBCHAN_WR_IMM;
	wr->imm = imm;
}

void work_elements(struct ibchan_submit_wr *wr, const struct ibchan_submit_sge *sges,
		   unsigned int n)
{
	wr->num_sge = n;
	memset(&wr->sge, 0, sizeof(wr->sge));
	wr->sges = 0;
	if (n == 1)
		wr->sge = *sges;
	else if (n)
		wr->sges = address(sges);
}

struct ibchan_cmd_submit submission(const struct ibchan_submit_wr *wrs, unsigned int n)
{
	return (struct ibchan_cmd_submit) {
		.entries = address(wrs),
		.entry_len = sizeof(*wrs),
		.entry_num = n,
	};
}

int post(const struct side *side, const struct ibchan_submit_wr *wrs, unsigned int n)
{
	struct ibchan_cmd_submit cmd = submission(wrs, n);
	int rc = cmd_submit(side->fd, &cmd);

	return !rc && cmd.entry_num != n ? -EBADMSG : rc;
}

int post_one(const struct side *side, struct ibchan_submit_wr wr)
{
	return post(side, &wr, 1);
}

int post_receives(const struct side *side, __u64 first, unsigned int n, __u32 length)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; i < n && !rc; i++)
		rc = post_one(side, work(side, IBCHAN_OP_RECV, first + i,
					 (__u64)i * length, length));
	return rc;
}

int succeed(const struct side *side, __u64 wr_id, struct ibchan_cqe *cqe)
{
	struct ibchan_cqe unused;
	int rc;

	if (!cqe)
		cqe = &unused;
	rc = ring_complete(side->ring, wr_id, cqe);
	if (rc)
		return rc;
	if (cqe->status || cqe->error) {
		fprintf(stderr, "# work %llu: status %u, error %d, vendor error %u\n",
			(unsigned long long)wr_id, cqe->status, cqe->error, cqe->vendor_err);
		return -EIO;
	}
	return cqe->channel == side->channel ? 0 : -EBADMSG;
}

int status_of(const struct side *side, __u64 wr_id)
{
	struct ibchan_cqe cqe;
	int rc = ring_complete(side->ring, wr_id, &cqe);

	return rc ? rc : cqe.status;
}

/* Ids that no test takes for itself. */
#define EXCHANGE_SEND	0xe0000001ULL
#define EXCHANGE_RECV	0xe0000002ULL
#define EXCHANGE_BYTES	256

int exchange(const struct side *a, const struct side *b)
{
	__u64 target = b->length - EXCHANGE_BYTES;
	int rc;

	pattern(a->memory, EXCHANGE_BYTES, 77);
	rc = post_one(b, work(b, IBCHAN_OP_RECV, EXCHANGE_RECV, target, EXCHANGE_BYTES));
	if (!rc)
		rc = post_one(a, work(a, IBCHAN_OP_SEND, EXCHANGE_SEND, 0, EXCHANGE_BYTES));
	if (!rc)
		rc = succeed(a, EXCHANGE_SEND, NULL);
	if (!rc)
		rc = succeed(b, EXCHANGE_RECV, NULL);
	if (!rc)
		rc = same_bytes(a->memory, b->memory + target, EXCHANGE_BYTES);
	return rc;
}

void pattern(unsigned char *bytes, size_t length, unsigned int seed)
{
	__u32 state = seed * 2654435761U + 1;
	size_t i;

	for (i = 0; i < length; i++) {
		state = state * 1664525U + 1013904223U;
		bytes[i] = state >> 24;
	}
}

int same_bytes(const unsigned char *wanted, const unsigned char *seen, size_t length)
{
	size_t i;

	if (!memcmp(wanted, seen, length))
		return 0;
	for (i = 0; wanted[i] == seen[i]; i++)
		;
	fprintf(stderr, "# byte %zu of %zu is %#x and should be %#x\n", i, length, seen[i],
		wanted[i]);
	return -EBADMSG;
}

int all_bytes(const unsigned char *seen, size_t length, unsigned char wanted)
{
	size_t i;

	for (i = 0; i < length; i++) {
		if (seen[i] == wanted)
			continue;
		fprintf(stderr, "# byte %zu of %zu is %#x and should be %#x\n", i, length,
			seen[i], wanted);
		return -EBADMSG;
	}
	return 0;
}
