// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Scoped: both sides send one half of a buffer and receive into the other half, piece
 * by piece, all pieces at once. Whichever way the block is left, its works have ended
 * behind it, so the buffer may be looked at there.
 *
 *	scoped				on one machine
 *	scoped HOST			on the other; an IP address of the first one
 */
#include <stdio.h>
#include <string.h>

#include "common.h"

#define PIECES		8
#define PIECE		4096
#define TIMEOUT_NS	(30 * 1000000000LL)

static unsigned char buffer[2][PIECES][PIECE], expected[PIECES][PIECE];

static void fill(unsigned char bytes[PIECES][PIECE], int side)
{
	for (int piece = 0; piece < PIECES; piece++)
		for (int byte = 0; byte < PIECE; byte++)
			bytes[piece][byte] = (unsigned char)(side * 101 + piece * 31 + byte * 7);
}

static int exchange(struct side *side, struct ibchan_mr *mr)
{
	static struct ibchan_pending in[PIECES], out[PIECES];
	struct ibchan_channel *channel = side->channel;
	struct ibchan_scope scope;

	/* A peer that never sends: the end of the scope breaks the channel then. */
	ibchan_scoped_timeout(&scope, TIMEOUT_NS) {
		int ret = 0;

		for (int i = 0; i < PIECES && !ret; i++) {
			struct ibchan_submit_sge from = ibchan_sge_new(mr, i * PIECE, PIECE);
			struct ibchan_submit_sge to = ibchan_sge_new(mr, (PIECES + i) * PIECE,
								     PIECE);
			struct ibchan_submit_wr send = ibchan_wr_send(channel, &from, 1);
			struct ibchan_submit_wr receive = ibchan_wr_receive(channel, &to, 1);

			ret = ibchan_scope_post(&scope, &in[i], channel, &receive, &error) ?:
			      ibchan_scope_post(&scope, &out[i], channel, &send, &error);
		}
		if (ret < 0)
			ibchan_scope_fail(&scope, ret);
	}
	/* Of works that failed, the block's own error or the first one of them. */
	if (scope.failed)
		fprintf(stderr, "%s\n", ibchan_status_hint(scope.failed->completion.status));
	return ibchan_scope_error(&scope);
}

int main(int argc, char **argv)
{
	struct ibchan_mr *mr;
	struct side side;
	int me;

	side_open(&side, argc, argv);
	me = side.host ? 1 : 0;
	must("memory", ibchan_mr_reg_local(side.pd, buffer, sizeof(buffer), &mr, &error));
	fill(buffer[0], me);
	fill(expected, !me);
	side_connect(&side);
	must("exchange", exchange(&side, mr));
	check("the data is wrong", !memcmp(buffer[1], expected, sizeof(expected)));
	printf("%d pieces each way, all as they were sent\n", PIECES);
	side_part(&side);
	return ibchan_context_close(side.context);
}
