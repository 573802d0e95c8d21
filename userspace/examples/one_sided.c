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

/*
 * The peer fills in the squares. The key for that goes with the answer to its request.
 * Any peer that has the key can do it, so only one gets it.
 */
static void offer(struct side *side, const struct options *options)
{
	unsigned char bytes[IBCHAN_REMOTE_REGION_SIZE], unused[IBCHAN_REMOTE_REGION_SIZE];
	struct ibchan_remote_region region;
	struct ibchan_cqe got;
	struct ibchan_mr *mr;

	for (int i = 0; i < CELLS; i++)
		cells[i].number = 3 * i + 1;
	must("memory", ibchan_mr_reg_shared(side->pd, cells, sizeof(cells), &mr, &error));
	must("region", ibchan_mr_remote_region(mr, &region));
	ibchan_remote_region_to_bytes(&region, bytes);
	side_connect(side, options, bytes, unused, sizeof(bytes));

	/* The immediate takes a receive, which needs no memory. */
	must("receive", ibchan_receive(side->channel, NULL, 0, IBCHAN_TIMEOUT_NEVER, &got, &error));
	check("the peer says something else",
	      got.flags & IBCHAN_CQE_IMM && got.imm == DONE);
	for (__u64 i = 0; i < CELLS; i++)
		check("a square is wrong",
		      cells[i].square == (3 * i + 1) * (3 * i + 1));
	printf("%d squares are right\n", CELLS);

	/* Once this has returned, the key is worth nothing. */
	must("deregister", ibchan_mr_dereg(mr));
}

/* One square to its place in the peer's memory; the last one says so. */
static void write_square(struct side *side, struct ibchan_mr *mr, int i,
			 const struct ibchan_remote_region *region)
{
	struct ibchan_submit_sge from = ibchan_sge_new(mr, (char *)&cells[i].square - (char *)cells,
						sizeof(cells[i].square));
	struct ibchan_remote_region to;
	struct ibchan_submit_wr wr;

	must("cell", ibchan_remote_region_element(region, struct cell, i, &to));
	must("square", ibchan_remote_region_field(&to, struct cell, square, &to));
	wr = ibchan_wr_write(side->channel, &from, 1, &to);
	if (i == CELLS - 1)
		ibchan_wr_set_imm(&wr, DONE);
	must("write", ibchan_perform(side->channel, &wr, IBCHAN_TIMEOUT_NEVER, NULL, &error));
}

static void use(struct side *side, const struct options *options)
{
	unsigned char bytes[IBCHAN_REMOTE_REGION_SIZE], unused[IBCHAN_REMOTE_REGION_SIZE] = { 0 };
	struct ibchan_remote_region region;
	struct ibchan_submit_sge all;
	struct ibchan_mr *mr;

	side_connect(side, options, unused, bytes, sizeof(bytes));
	must("region", ibchan_remote_region_from_bytes(&region, bytes, sizeof(bytes)));
	must("memory", ibchan_mr_reg_local(side->pd, cells, sizeof(cells), &mr, &error));
	all = ibchan_sge_new(mr, 0, sizeof(cells));
	must("read", ibchan_read(side->channel, &all, 1, &region, IBCHAN_TIMEOUT_NEVER, &error));
	for (int i = 0; i < CELLS; i++) {
		cells[i].square = cells[i].number * cells[i].number;
		write_square(side, mr, i, &region);
	}
	printf("%d squares written\n", CELLS);
}

int main(int argc, char **argv)
{
	struct options options;
	struct side side;

	options_read(&options, argc, argv);
	side_open(&side, &options);
	if (options.host)
		use(&side, &options);
	else
		offer(&side, &options);
	side_part(&side, &options);
	return ibchan_context_close(side.context);
}
