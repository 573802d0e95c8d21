// SPDX-License-Identifier: LGPL-2.1-or-later
/* The smallest complete program: a channel to itself carries one message. */
#include <err.h>
#include <ibchan.h>
#include <stdio.h>

static struct ibchan_error error;

static void must(int ret)	/* of a call that gives no details */
{
	if (ret < 0)
		errx(1, "%s", ibchan_strerror(ret));
}

static void must_say(int ret)	/* of one that gives them in @error */
{
	if (ret < 0)
		errx(1, "%s", ibchan_error_string(&error));
}

int main(void)
{
	static char text[2][64] = { "hello, channel" };
	struct ibchan_context *context;
	struct ibchan_device *device;
	struct ibchan_pd *pd;
	struct ibchan_mr *mr;
	struct ibchan_builder builder;
	struct ibchan_prepared *prepared;
	struct ibchan_endpoint endpoint;
	struct ibchan_channel *channel;
	struct ibchan_cqe received;

	must_say(ibchan_context_open(&context, &error));
	must_say(ibchan_device_open(context, NULL, &device, &error));	/* the first one */
	must_say(ibchan_pd_alloc(device, &pd, &error));
	must_say(ibchan_mr_reg_local(pd, text, sizeof(text), &mr, &error));
	ibchan_builder_init(&builder, pd, NULL);	/* with a completion queue of its own */
	must_say(ibchan_builder_prepare(&builder, &prepared, &error));
	ibchan_prepared_endpoint(prepared, &endpoint);	/* a peer's would come by TCP */
	must_say(ibchan_prepared_handshake(prepared, &endpoint, &channel, &error));

	struct ibchan_submit_sge from = ibchan_sge_new(mr, 0, 64);
	struct ibchan_cq *cq = ibchan_channel_recv_cq(channel);

	must(ibchan_post_receive(channel, mr, 64, 64, 1, NULL));
	must_say(ibchan_send(channel, &from, 1, IBCHAN_TIMEOUT_NEVER, &error));
	must(ibchan_cq_wait(cq, &received, 1, 1, IBCHAN_TIMEOUT_NEVER));
	printf("%u bytes: %s\n", received.bytes, text[1]);
	return ibchan_context_close(context);	/* ends whatever is left */
}
