// SPDX-License-Identifier: GPL-2.0-only
/*
 * The laws through libibchan, where its own tests do not prove them: every call on what a
 * child has inherited.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "shim/end.h"
#include "test.h"
#include "work.h"
#include "world.h"

FIXTURE(law)
{
	struct calm calm;
	struct ibchan_context *context;
	struct end a, b;
};

FIXTURE_SETUP(law)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, open_ends(&self->a, &self->b, &self->context));
}

FIXTURE_TEARDOWN(law)
{
	EXPECT_EQ(0, close_ends(&self->a, &self->b, self->context));
	EXPECT_EQ(0, calm_end(&self->calm));
}

struct heritage {
	struct ibchan_context *context;
	struct end *end;
	struct ibchan_prepared *prepared;
	struct ibchan_pending pending, dropped;
	struct ibchan_scope scope;
};

#define CALL(call) { #call, call }

struct call {
	const char *name;
	int rc;
};

/* Each of them is refused; the first that is not has its name on a line. */
static int all_refused(const struct call *calls, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (calls[i].rc == -EPERM)
			continue;
		fprintf(stderr, "# %s: %d\n", calls[i].name, calls[i].rc);
		return -EBADMSG;
	}
	return 0;
}

static int refuses_to_make(struct heritage *h)
{
	struct ibchan_mr_params params = {
		.size = sizeof(params),
		.addr = h->end->memory, .length = 64, .access = IBCHAN_ACCESS_LOCAL,
	};
	struct ibchan_prepared *prepared;
	struct ibchan_endpoint endpoint;
	struct ibchan_channel *channel;
	struct ibchan_builder builder;
	struct ibchan_device *device;
	struct ibchan_mr *mr;
	struct ibchan_cq *cq;
	struct ibchan_pd *pd;

	ibchan_builder_init(&builder, h->end->pd, h->end->cq);
	ibchan_prepared_endpoint(h->prepared, &endpoint);
	const struct call calls[] = {
		CALL(ibchan_device_open(h->context, NULL, &device, NULL)),
		CALL(ibchan_pd_alloc(h->end->device, &pd, NULL)),
		CALL(ibchan_mr_reg(h->end->pd, &params, &mr, NULL)),
		CALL(ibchan_mr_reg_local(h->end->pd, h->end->memory, 64, &mr, NULL)),
		CALL(ibchan_mr_reg_shared(h->end->pd, h->end->memory, 64, &mr, NULL)),
		CALL(ibchan_cq_create(h->end->device, 0, 0, &cq, NULL)),
		CALL(ibchan_builder_prepare(&builder, &prepared, NULL)),
		CALL(ibchan_prepared_handshake(h->prepared, &endpoint, &channel, NULL)),
	};

	return all_refused(calls, ARRAY_SIZE(calls));
}

static int refuses_to_post(struct heritage *h)
{
	struct ibchan_channel *channel = h->end->channel;
	struct ibchan_submit_sge sge = sge_at(h->end, 4096, 64);
	struct ibchan_submit_wr recv = wr_of(h->end, IBCHAN_OP_RECV, &sge);
	struct ibchan_submit_wr send = wr_of(h->end, IBCHAN_OP_SEND, &sge);
	struct ibchan_pending pending = { 0 };
	struct ibchan_remote_region remote;
	struct ibchan_scope scope;

	if (ibchan_mr_remote_region(h->end->mr, &remote))
		return -EACCES;
	ibchan_scope_begin(&scope);
	const struct call calls[] = {
		CALL(ibchan_post(h->context, &recv, 1, NULL, NULL)),
		CALL(ibchan_post_send(channel, h->end->mr, 0, 1, 0, NULL)),
		CALL(ibchan_post_receive(channel, h->end->mr, 0, 1, 0, NULL)),
		CALL(ibchan_perform(channel, &send, IBCHAN_TIMEOUT_NEVER, NULL, NULL)),
		CALL(ibchan_send(channel, &sge, 1, IBCHAN_TIMEOUT_NEVER, NULL)),
		CALL(ibchan_receive(channel, &sge, 1, IBCHAN_TIMEOUT_NEVER, NULL, NULL)),
		CALL(ibchan_write(channel, &sge, 1, &remote, IBCHAN_TIMEOUT_NEVER, NULL)),
		CALL(ibchan_read(channel, &sge, 1, &remote, IBCHAN_TIMEOUT_NEVER, NULL)),
		CALL(ibchan_pending_post(&pending, channel, &recv, NULL)),
		CALL(ibchan_scope_post(&scope, &pending, channel, &recv, NULL)),
		CALL(ibchan_channel_break(channel)),
	};

	ibchan_scope_end(&scope);
	return all_refused(calls, ARRAY_SIZE(calls));
}

static int refuses_to_wait(struct heritage *h)
{
	struct ibchan_cqe done;
	const struct call calls[] = {
		CALL(ibchan_cq_poll(h->end->cq, &done, 1)),
		CALL(ibchan_cq_wait(h->end->cq, &done, 1, 1, IBCHAN_TIMEOUT_NEVER)),
		CALL(ibchan_cq_fd(h->end->cq)),
		CALL(ibchan_pending_poll(&h->pending)),
		CALL(ibchan_pending_spin(&h->pending)),
		CALL(ibchan_pending_wait(&h->pending, IBCHAN_TIMEOUT_NEVER)),
	};
	int rc = all_refused(calls, ARRAY_SIZE(calls));

	if (rc || ibchan_pending_result(&h->dropped) != -EINPROGRESS)
		return rc ? rc : -EBADMSG;
	ibchan_pending_drop(&h->dropped);
	return ibchan_pending_result(&h->dropped) == -EPERM ? 0 : -EBADMSG;
}

/* What only looks works, and tells what the parent would hear. */
static int lets_look(struct heritage *h)
{
	struct ibchan_context_attr context;
	struct ibchan_channel_info channel;
	struct ibchan_device_attr device;

	if (ibchan_context_query(h->context, &context, NULL) ||
	    ibchan_device_list(h->context, &device, 1, NULL) < 1 ||
	    ibchan_channel_query(h->end->channel, &channel, NULL))
		return -EBADMSG;
	if (channel.state != IBCHAN_CHANNEL_CONNECTED || channel.recvs_in_flight != 2)
		return -EBADMSG;
	if (ibchan_mr_addr(h->end->mr) != h->end->memory || ibchan_mr_length(h->end->mr) != MEMORY)
		return -EBADMSG;
	return ibchan_channel_send_cq(h->end->channel) == h->end->cq ? 0 : -EBADMSG;
}

static int touch_everything(void *arg)
{
	struct heritage *h = arg;
	int rc = refuses_to_make(h);

	rc = rc ?: refuses_to_post(h);
	rc = rc ?: refuses_to_wait(h);
	rc = rc ?: lets_look(h);
	/* What it gives back is its copy. */
	ibchan_scope_end(&h->scope);
	if (!rc && ibchan_scope_error(&h->scope) != -EPERM)
		rc = -EBADMSG;
	rc = rc ?: ibchan_prepared_destroy(h->prepared);
	end_close(h->end);
	return rc ?: ibchan_context_close(h->context);
}

TEST_F(law, a_child_gets_an_error_from_each_call_on_what_it_inherited)
{
	struct ibchan_submit_sge in[2] = { sge_at(&self->b, 0, 64), sge_at(&self->b, 64, 64) };
	struct ibchan_submit_wr wr = wr_of(&self->b, IBCHAN_OP_RECV, &in[0]);
	struct ibchan_submit_sge out = sge_at(&self->a, 0, 64);
	struct heritage heritage = { .context = self->context, .end = &self->b };
	struct ibchan_builder builder;

	ibchan_builder_init(&builder, self->b.pd, self->b.cq);
	ASSERT_EQ(0, ibchan_builder_prepare(&builder, &heritage.prepared, NULL));
	ibchan_scope_begin(&heritage.scope);
	ASSERT_EQ(0, ibchan_scope_post(&heritage.scope, &heritage.pending, self->b.channel, &wr,
				       NULL));
	wr.sge = in[1];
	ASSERT_EQ(0, ibchan_pending_post(&heritage.dropped, self->b.channel, &wr, NULL));
	EXPECT_EQ(0, in_child(touch_everything, &heritage));

	/* The parent's are all there. */
	pattern(self->a.memory, 64, 1);
	ASSERT_EQ(0, ibchan_send(self->a.channel, &out, 1, IBCHAN_TIMEOUT_NEVER, NULL));
	ibchan_scope_end(&heritage.scope);
	EXPECT_EQ(0, ibchan_scope_error(&heritage.scope));
	EXPECT_EQ(64, heritage.pending.completion.bytes);
	EXPECT_EQ(0, same_bytes(self->a.memory, self->b.memory, 64));
	ASSERT_EQ(0, ibchan_send(self->a.channel, &out, 1, IBCHAN_TIMEOUT_NEVER, NULL));
	ASSERT_EQ(0, ibchan_pending_wait(&heritage.dropped, patience_ns()));
	EXPECT_EQ(64, heritage.dropped.completion.bytes);
	EXPECT_EQ(0, ibchan_prepared_destroy(heritage.prepared));
}

TEST_HARNESS_MAIN
