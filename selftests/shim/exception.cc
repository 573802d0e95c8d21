// SPDX-License-Identifier: GPL-2.0-only
/*
 * A C++ program that leaves a scope by an exception: exit code 0 if the work posted in it
 * has ended by then. It runs for shim_scope_test.
 */
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include <ibchan.h>

static char memory[4096];

struct objects {
	struct ibchan_context *context;
	struct ibchan_device *device;
	struct ibchan_pd *pd;
	struct ibchan_cq *cq;
	struct ibchan_mr *mr;
	struct ibchan_channel *channel;
};

static int must(int ret)
{
	if (ret < 0)
		throw std::runtime_error(std::strerror(-ret));
	return ret;
}

/* A channel to itself. */
static void open_channel(struct objects *o)
{
	struct ibchan_prepared *prepared;
	struct ibchan_endpoint endpoint;
	struct ibchan_builder builder;

	must(ibchan_context_open(&o->context, nullptr));
	must(ibchan_device_open(o->context, nullptr, &o->device, NULL));
	must(ibchan_pd_alloc(o->device, &o->pd, NULL));
	must(ibchan_cq_create(o->device, 0, 0, &o->cq, nullptr));
	must(ibchan_mr_reg_local(o->pd, memory, sizeof(memory), &o->mr, nullptr));
	ibchan_builder_init(&builder, o->pd, o->cq);
	must(ibchan_builder_prepare(&builder, &prepared, nullptr));
	ibchan_prepared_endpoint(prepared, &endpoint);
	must(ibchan_prepared_handshake(prepared, &endpoint, &o->channel, nullptr));
}

static void throw_in_scope(struct objects *o, struct ibchan_scope *scope,
			   struct ibchan_pending *pending)
{
	const struct ibchan_submit_sge sge = ibchan_sge_new(o->mr, 0, 64);
	const struct ibchan_submit_wr wr = ibchan_wr_receive(o->channel, &sge, 1);

	ibchan_scoped_timeout(scope, 20000000) {
		must(ibchan_scope_post(scope, pending, o->channel, &wr, nullptr));
		throw std::domain_error("out of the block");
	}
}

int main()
{
	struct ibchan_pending pending = {};
	struct ibchan_scope scope;
	struct objects o = {};

	try {
		open_channel(&o);
		throw_in_scope(&o, &scope, &pending);
	} catch (const std::domain_error &e) {
		if (ibchan_pending_result(&pending) != -ECANCELED || scope.auto_polled != 1)
			return 2;
		return ibchan_context_close(o.context) ? 3 : 0;
	} catch (const std::exception &e) {
		std::fprintf(stderr, "%s\n", e.what());
	}
	return 1;
}
