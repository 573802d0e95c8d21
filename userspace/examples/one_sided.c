// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One-sided: one side offers memory, the other reads and writes it while the first
 * does nothing. A last write carries an immediate, which tells the first that all
 * is there.
 *
 *	one_sided			on the machine that offers
 *	one_sided HOST			on the other; an IP address of the first one
 */
#include <stdio.h>
#include <string.h>

#include "common.h"

#define CELLS	64
#define DONE	0x600d

struct cell {
	__u64 number;
	__u64 square;
};

static struct cell cells[CELLS];

/* The peer fills in the squares. Any peer that has the key can do it, so only one gets it. */
static void offer(struct side *side)
{
	unsigned char bytes[IBCHAN_REMOTE_REGION_SIZE];
	struct ibchan_submit_sge key = ibchan_sge_plain(bytes, sizeof(bytes));
	struct ibchan_remote_region region;
	struct ibchan_cqe got;
	struct ibchan_mr *mr;

	for (int i = 0; i < CELLS; i++)
		cells[i].number = 3 * i + 1;
	must("memory", ibchan_mr_reg_shared(side->pd, cells, sizeof(cells), &mr, &error));
	must("region", ibchan_mr_remote_region(mr, &region));
	ibchan_remote_region_to_bytes(&region, bytes);
	must("key", ibchan_send(side->channel, &key, 1, IBCHAN_TIMEOUT_NEVER, &error));

	/* The immediate takes a receive, which needs no memory. */
	must("receive", ibchan_receive(side->channel, NULL, 0, IBCHAN_TIMEOUT_NEVER, &got, &error));
	check("the peer says something else", got.flags & IBCHAN_CQE_IMM && got.imm == DONE);
	for (__u64 i = 0; i < CELLS; i++)
		check("a square is wrong", cells[i].square == (3 * i + 1) * (3 * i + 1));
	printf("%d squares are right\n", CELLS);

	/* Once this has returned, the key is worth nothing. */
	must("deregister", ibchan_mr_dereg(mr));
}

/* Each square goes to its place in the peer's memory; the last one says so. */
static void use(struct side *side)
{
	unsigned char bytes[IBCHAN_REMOTE_REGION_SIZE];
	struct ibchan_submit_sge sge = ibchan_sge_plain(bytes, sizeof(bytes));
	struct ibchan_remote_region region, to;
	struct ibchan_submit_wr wr;
	struct ibchan_mr *mr;

	must("key", ibchan_receive(side->channel, &sge, 1, IBCHAN_TIMEOUT_NEVER, NULL, &error));
	must("region", ibchan_remote_region_from_bytes(&region, bytes, sizeof(bytes)));
	must("memory", ibchan_mr_reg_local(side->pd, cells, sizeof(cells), &mr, &error));
	sge = ibchan_sge_new(mr, 0, sizeof(cells));
	must("read", ibchan_read(side->channel, &sge, 1, &region, IBCHAN_TIMEOUT_NEVER, &error));
	for (int i = 0; i < CELLS; i++) {
		cells[i].square = cells[i].number * cells[i].number;
		sge = ibchan_sge_new(mr, (char *)&cells[i].square - (char *)cells, sizeof(__u64));
		must("cell", ibchan_remote_region_element(&region, struct cell, i, &to));
		must("square", ibchan_remote_region_field(&to, struct cell, square, &to));
		wr = ibchan_wr_write(side->channel, &sge, 1, &to);
		if (i == CELLS - 1)
			ibchan_wr_set_imm(&wr, DONE);
		must("write", ibchan_perform(side->channel, &wr, IBCHAN_TIMEOUT_NEVER, NULL,
					     &error));
	}
	printf("%d squares written\n", CELLS);
}

int main(int argc, char **argv)
{
	struct side side;

	side_open(&side, argc, argv);
	side_connect(&side);
	if (side.host)
		use(&side);
	else
		offer(&side);
	side_part(&side);
	return ibchan_context_close(side.context);
}
