// SPDX-License-Identifier: LGPL-2.1-or-later
/* The smallest complete program: a channel to itself carries one message. */
#include <ibchan.h>
#include <stdio.h>
#include <stdlib.h>

static struct ibchan_error error;

static void must(int ret)
{
	char text[256];

	if (ret >= 0)
		return;
	if (!error.code)
		error.code = ret;	/* a call that gives no details */
	ibchan_error_text(&error, text, sizeof(text));
	fprintf(stderr, "%s\n", text);
	exit(1);
}

int main(void)
{
	static char out[64] = "hello, channel", in[64];
	struct ibchan_context *context;
	struct ibchan_device *device;
	struct ibchan_pd *pd;
	struct ibchan_cq *cq;
	struct ibchan_mr *out_mr, *in_mr;
	struct ibchan_builder builder;
	struct ibchan_prepared *prepared;
	struct ibchan_endpoint endpoint;
	struct ibchan_channel *channel;
	struct ibchan_completion received;

	must(ibchan_context_open(&context));
	must(ibchan_device_open(context, NULL, &device));	/* the first one */
	must(ibchan_pd_alloc(device, &pd));
	must(ibchan_cq_create(device, IBCHAN_DEFAULT_CQ_ENTRIES, 0, &cq, &error));
	must(ibchan_mr_reg_local(pd, out, sizeof(out), &out_mr, &error));
	must(ibchan_mr_reg_local(pd, in, sizeof(in), &in_mr, &error));

	ibchan_builder_init(&builder, pd, cq);
	must(ibchan_builder_prepare(&builder, &prepared, &error));
	ibchan_prepared_endpoint(prepared, &endpoint);	/* a peer's would come by TCP */
	must(ibchan_prepared_handshake(prepared, &endpoint, &channel, &error));

	struct ibchan_sge from = ibchan_sge_new(out_mr, 0, sizeof(out));

	must(ibchan_post_receive(channel, in_mr, 0, sizeof(in), 1));
	must(ibchan_send(channel, &from, 1, &error));
	must(ibchan_cq_wait(cq, &received, 1, 1, IBCHAN_TIMEOUT_NEVER));
	printf("%u bytes: %s\n", received.bytes, in);
	must(ibchan_context_close(context));	/* ends whatever is left */
	return 0;
}
