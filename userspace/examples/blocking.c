// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Blocking: each call posts one work and returns when it has ended. One side asks,
 * the other answers with the question in capitals.
 *
 *	blocking			on one machine
 *	blocking HOST			on the other; an IP address of the first one
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common.h"

#define ROUNDS	100
#define SIZE	256

static void answer(struct side *side, struct ibchan_mr *mr, char *text)
{
	struct ibchan_submit_sge all = ibchan_sge_new(mr, 0, SIZE);
	struct ibchan_cqe got;

	for (int i = 0; i < ROUNDS; i++) {
		struct ibchan_submit_sge reply;

		must("receive", ibchan_receive(side->channel, &all, 1,
					       IBCHAN_TIMEOUT_NEVER, &got, &error));
		for (__u32 j = 0; j < got.bytes; j++)
			text[j] = (char)toupper((unsigned char)text[j]);
		reply = ibchan_sge_new(mr, 0, got.bytes);
		must("send", ibchan_send(side->channel, &reply, 1, IBCHAN_TIMEOUT_NEVER, &error));
	}
}

static void ask(struct side *side, struct ibchan_mr *mr, char *text)
{
	struct ibchan_submit_sge all = ibchan_sge_new(mr, 0, SIZE);
	struct ibchan_cqe got;

	for (int i = 0; i < ROUNDS; i++) {
		char expected[SIZE];
		int length = snprintf(text, SIZE, "question %d of %d?", i + 1, ROUNDS);
		struct ibchan_submit_sge question = ibchan_sge_new(mr, 0, length);

		must("send", ibchan_send(side->channel, &question, 1, IBCHAN_TIMEOUT_NEVER,
					 &error));
		must("receive", ibchan_receive(side->channel, &all, 1, IBCHAN_TIMEOUT_NEVER, &got,
					       &error));
		snprintf(expected, SIZE, "QUESTION %d OF %d?", i + 1, ROUNDS);
		check("that is no answer", got.bytes == (__u32)length &&
		      !memcmp(text, expected, got.bytes));
	}
	printf("the last of %d answers: %.*s\n", ROUNDS, (int)got.bytes, text);
}

int main(int argc, char **argv)
{
	static char text[SIZE];
	struct ibchan_mr *mr;
	struct side side;

	side_open(&side, argc, argv);
	must("memory", ibchan_mr_reg_local(side.pd, text, sizeof(text), &mr, &error));
	side_connect(&side);
	if (side.host)
		ask(&side, mr, text);
	else
		answer(&side, mr, text);
	side_part(&side);
	return ibchan_context_close(side.context);
}
