// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a program does wrong, or meets, and what it is told. Each situation is brought about on a
 * scene of its own.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../lib/world.h"
#include "situations.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define SHORT_MS	(100 * MS)
#define TOO_MANY	64

static int scene_connect(struct scene *scene)
{
	return connect_ends(&scene->a, &scene->b);
}

/* --- what is asked for when things are made --- */

static int build(struct scene *scene, struct ibchan_builder *builder, struct ibchan_error *error)
{
	struct ibchan_prepared *prepared;
	int rc = ibchan_builder_prepare(builder, &prepared, error);

	(void)scene;
	if (!rc)
		ibchan_prepared_destroy(prepared);
	return rc;
}

static int build_with(struct scene *scene, const struct ibchan_params *params,
		      __s64 keepalive_ns, struct ibchan_error *error)
{
	struct ibchan_builder builder;

	ibchan_builder_init(&builder, scene->a.pd, scene->a.cq);
	if (params)
		builder.params = *params;
	builder.keepalive_ns = keepalive_ns;
	return build(scene, &builder, error);
}

/* The defaults, but for one. */
#define BUILD_WITH(member, number)						\
	static int build_with_##member(struct scene *scene, struct ibchan_error *error) \
	{									\
		struct ibchan_builder builder;					\
										\
		ibchan_builder_init(&builder, scene->a.pd, scene->a.cq);	\
		builder.params.member = (number);				\
		return build_with(scene, &builder.params, 0, error);		\
	}

BUILD_WITH(mtu, 1500)
BUILD_WITH(rnr_retries, 8)
BUILD_WITH(port, 7)
BUILD_WITH(gid_index, 100)
BUILD_WITH(access, IBCHAN_ACCESS_REMOTE_WRITE)
BUILD_WITH(max_send_sge, 1000)

static int build_with_empty_gid(struct scene *scene, struct ibchan_error *error)
{
	struct ibchan_builder builder;
	struct ibchan_port_attr port;
	int rc = ibchan_port_query(scene->context, ibchan_device_name(scene->a.device), 1, &port,
				   NULL);

	ibchan_builder_init(&builder, scene->a.pd, scene->a.cq);
	builder.params.gid_index = port.gid_entries - 1;
	return rc ?: build_with(scene, &builder.params, 0, error);
}

static int build_with_keepalive(struct scene *scene, struct ibchan_error *error)
{
	return build_with(scene, NULL, 1, error);
}

static int build_without_size(struct scene *scene, struct ibchan_error *error)
{
	struct ibchan_builder builder;

	ibchan_builder_init(&builder, scene->a.pd, scene->a.cq);
	builder.size = 0;
	return build(scene, &builder, error);
}

static int serve_with_reserved(struct scene *scene, struct ibchan_error *error)
{
	const struct ibchan_message_params params = { .size = sizeof(params), .reserved = 1 };
	struct ibchan_server *server;

	(void)scene;
	return ibchan_serve(NULL, NULL, &params, &server, error);
}

/* @make has a builder on a queue of its own, which goes behind it. */
static int on_another_cq(struct scene *scene, __u32 entries, __u32 cq_entries,
			 int (*make)(struct scene *scene, struct ibchan_builder *builder,
				     struct ibchan_error *error),
			 struct ibchan_error *error)
{
	struct ibchan_builder builder;
	struct ibchan_cq *cq;
	int rc = ibchan_cq_create(scene->a.device, entries, cq_entries, &cq, NULL);

	if (rc)
		return rc;
	ibchan_builder_init(&builder, scene->a.pd, cq);
	rc = make(scene, &builder, error);
	ibchan_cq_destroy(cq);
	return rc;
}

static int build_on_a_small_cq(struct scene *scene, struct ibchan_error *error)
{
	return on_another_cq(scene, 4, 4, build, error);
}

static int make_a_cq_of_many_entries(struct scene *scene, struct ibchan_error *error)
{
	struct ibchan_cq *cq;

	return ibchan_cq_create(scene->a.device, 1U << 30, 0, &cq, error);
}

static int make_a_cq_of_many_cq_entries(struct scene *scene, struct ibchan_error *error)
{
	struct ibchan_cq *cq;

	return ibchan_cq_create(scene->a.device, 16, 1U << 30, &cq, error);
}

/* --- memory --- */

static int register_with(struct scene *scene, void *addr, size_t length, __u32 access,
			 struct ibchan_error *error)
{
	const struct ibchan_mr_params params = {
		.size = sizeof(params),
		.addr = addr, .length = length, .access = access,
	};
	struct ibchan_mr *mr;
	int rc = ibchan_mr_reg(scene->a.pd, &params, &mr, error);

	if (!rc)
		ibchan_mr_dereg(mr);
	return rc;
}

static int register_no_memory(struct scene *scene, struct ibchan_error *error)
{
	return register_with(scene, (void *)4096, 4096, IBCHAN_ACCESS_LOCAL, error);
}

static int register_nothing(struct scene *scene, struct ibchan_error *error)
{
	return register_with(scene, scene->a.memory, 0, IBCHAN_ACCESS_LOCAL, error);
}

static int register_for_remote_write_only(struct scene *scene, struct ibchan_error *error)
{
	return register_with(scene, scene->a.memory, 4096, IBCHAN_ACCESS_REMOTE_WRITE, error);
}

/* --- handshakes --- */

static int meet(struct scene *scene, struct ibchan_error *error)
{
	return ibchan_prepared_handshake(scene->a.prepared, &scene->of_b, &scene->a.channel,
					 error);
}

static int meet_somebody_elses_bytes(struct scene *scene, struct ibchan_error *error)
{
	scene->of_b.magic = htobe32(7);
	return meet(scene, error);
}

static int meet_no_version(struct scene *scene, struct ibchan_error *error)
{
	scene->of_b.version = 0;
	return meet(scene, error);
}

static int meet_no_queue_pair(struct scene *scene, struct ibchan_error *error)
{
	scene->of_b.qpn = 0;
	return meet(scene, error);
}

static int meet_a_long_psn(struct scene *scene, struct ibchan_error *error)
{
	scene->of_b.psn = htobe32(0xffffffff);
	return meet(scene, error);
}

static int meet_no_address(struct scene *scene, struct ibchan_error *error)
{
	memset(scene->of_b.gid, 0, sizeof(scene->of_b.gid));
	return meet(scene, error);
}

static int meet_no_mac(struct scene *scene, struct ibchan_error *error)
{
	memset(scene->of_b.mac, 0, sizeof(scene->of_b.mac));
	return meet(scene, error);
}

/* --- names --- */

static int find_no_name(struct scene *scene, struct ibchan_error *error)
{
	struct ibchan_route route;

	return ibchan_route_query(scene->context, "nobody.invalid", NULL, NULL, &route, error);
}

static int connect_to_no_name(struct scene *scene, struct ibchan_error *error)
{
	return ibchan_prepared_connect(scene->a.prepared, "nobody.invalid", "4791", NULL,
				       &scene->a.channel, error);
}

static int listen_on_no_service(struct scene *scene, struct ibchan_error *error)
{
	const struct ibchan_listen_params params = {
		.size = sizeof(params), .service = "no-such-service",
	};
	struct ibchan_listener *listener;

	return ibchan_listener_create(scene->context, &params, &listener, error);
}

/* --- works --- */

static int send_of(struct scene *scene, const struct ibchan_submit_sge *sge,
		   struct ibchan_error *error)
{
	struct ibchan_submit_wr wr = wr_of(&scene->a, IBCHAN_OP_SEND, sge);

	return ibchan_perform(scene->a.channel, &wr, patience_ns(), NULL, error);
}

static int send_before_the_handshake(struct scene *scene, struct ibchan_error *error)
{
	struct ibchan_submit_sge sge = sge_at(&scene->a, 0, 64);

	scene->a.channel = ibchan_prepared_channel(scene->a.prepared);
	send_of(scene, &sge, error);
	scene->a.channel = NULL;
	return error->code;
}

static int send_past_the_end(struct scene *scene, struct ibchan_error *error)
{
	struct ibchan_submit_sge sge = sge_at(&scene->a, MEMORY, 64);

	return scene_connect(scene) ?: send_of(scene, &sge, error);
}

static int send_from_another_domain(struct scene *scene, struct ibchan_error *error)
{
	struct ibchan_submit_sge sge = sge_at(&scene->b, 0, 64);

	return scene_connect(scene) ?: send_of(scene, &sge, error);
}

static int send_on_a_broken_channel(struct scene *scene, struct ibchan_error *error)
{
	struct ibchan_submit_sge sge = sge_at(&scene->a, 0, 64);

	return scene_connect(scene) ?: ibchan_channel_break(scene->a.channel) ?:
	       send_of(scene, &sge, error);
}

static int send_a_long_message(struct scene *scene, struct ibchan_error *error)
{
	struct ibchan_submit_sge small = sge_at(&scene->b, 0, 16), big = sge_at(&scene->a, 0, 64);

	return scene_connect(scene) ?: post_receive(scene->context, &scene->b, &small, 1) ?:
	       send_of(scene, &big, error);
}

static int receive_a_long_message(struct scene *scene, struct ibchan_error *error)
{
	struct ibchan_submit_sge small = sge_at(&scene->b, 0, 16), big = sge_at(&scene->a, 0, 64);
	struct ibchan_submit_wr send, receive;
	int rc = scene_connect(scene);

	if (rc)
		return rc;
	send = wr_of(&scene->a, IBCHAN_OP_SEND, &big);
	receive = wr_of(&scene->b, IBCHAN_OP_RECV, &small);
	/* Whichever comes first, the sender tries again. */
	rc = ibchan_post(scene->context, &send, 1, NULL, error);
	return rc ?: ibchan_perform(scene->b.channel, &receive, patience_ns(), NULL, error);
}

static int send_to_nobody(struct scene *scene, struct ibchan_error *error)
{
	struct ibchan_submit_sge sge = sge_at(&scene->a, 0, 64);
	int rc = scene_connect(scene);

	rc = rc ?: ibchan_channel_close(scene->b.channel);
	scene->b.channel = NULL;
	return rc ?: send_of(scene, &sge, error);
}

static int wait_for_a_message_in_vain(struct scene *scene, struct ibchan_error *error)
{
	struct ibchan_submit_sge sge = sge_at(&scene->a, 0, 64);
	struct ibchan_submit_wr wr;
	int rc = scene_connect(scene);

	wr = wr_of(&scene->a, IBCHAN_OP_RECV, &sge);
	return rc ?: ibchan_perform(scene->a.channel, &wr, SHORT_MS, NULL, error);
}

static int write_to(struct scene *scene, __u32 length, const struct ibchan_remote_region *remote,
		    struct ibchan_error *error)
{
	struct ibchan_submit_sge sge = sge_at(&scene->a, 0, length);

	return ibchan_write(scene->a.channel, &sge, 1, remote, IBCHAN_TIMEOUT_NEVER, error);
}

static int write_with_a_wrong_key(struct scene *scene, struct ibchan_error *error)
{
	struct ibchan_remote_region remote;
	int rc = scene_connect(scene) ?: ibchan_mr_remote_region(scene->b.mr, &remote);

	remote.rkey ^= 0x10;
	return rc ?: write_to(scene, 64, &remote, error);
}

static int write_past_the_end(struct scene *scene, struct ibchan_error *error)
{
	struct ibchan_remote_region remote;
	int rc = scene_connect(scene) ?: ibchan_mr_remote_region(scene->b.mr, &remote);

	remote.length = 10;
	return rc ?: write_to(scene, 64, &remote, error);
}

static int post_one(struct scene *scene, struct ibchan_submit_wr *wr, struct ibchan_error *error)
{
	int rc = scene_connect(scene);

	if (rc)
		return rc;
	wr->channel = ibchan_channel_handle(scene->a.channel);
	return ibchan_post(scene->context, wr, 1, NULL, error);
}

static int post_an_unknown_opcode(struct scene *scene, struct ibchan_error *error)
{
	struct ibchan_submit_wr wr = { .opcode = 77 };

	return post_one(scene, &wr, error);
}

static int post_wrong_flags(struct scene *scene, struct ibchan_error *error)
{
	struct ibchan_submit_wr wr = { .opcode = IBCHAN_OP_RECV, .flags = IBCHAN_WR_IMM };

	return post_one(scene, &wr, error);
}

static int post_a_swap_that_is_none(struct scene *scene, struct ibchan_error *error)
{
	struct ibchan_submit_wr wr = { .opcode = IBCHAN_OP_SEND, .swap = 5 };

	return post_one(scene, &wr, error);
}

static int post_on_no_channel(struct scene *scene, struct ibchan_error *error)
{
	struct ibchan_submit_wr wr = { .opcode = IBCHAN_OP_SEND };

	return ibchan_post(scene->context, &wr, 1, NULL, error);
}

/* Nobody polls: there is nothing to be seen. */
static int post_unsignaled_only(struct scene *scene, struct ibchan_error *error)
{
	struct ibchan_submit_sge sge = sge_at(&scene->a, 0, 64);
	struct ibchan_remote_region remote;
	struct ibchan_submit_wr wr;
	int rc = scene_connect(scene) ?: ibchan_mr_remote_region(scene->b.mr, &remote);
	__u64 end = now_ms() + patience_ms();
	int posted = 0;

	wr = wr_of(&scene->a, IBCHAN_OP_WRITE, &sge);
	wr.flags = IBCHAN_WR_UNSIGNALED;
	wr_at(&wr, &remote);
	while (!rc && posted < 1000 && now_ms() < end) {
		rc = ibchan_post(scene->context, &wr, 1, NULL, error);
		if (!rc)
			posted++;
		else if (rc == -EAGAIN && error->reason.code == IBCHAN_REASON_SEND_QUEUE_FULL)
			rc = 0;
	}
	return rc ?: posted == 1000 ? 0 : -ETIME;
}

static int send_when_a_wrong_key_has_ended_it(struct scene *scene, struct ibchan_error *error)
{
	struct ibchan_submit_sge sge = sge_at(&scene->b, 0, 64);
	struct ibchan_remote_region remote;
	struct ibchan_cqe flushed;
	int rc = scene_connect(scene) ?: ibchan_mr_remote_region(scene->b.mr, &remote);

	remote.rkey ^= 0x10;
	rc = rc ?: post_receive(scene->context, &scene->b, &sge, 1);
	rc = rc ?: write_to(scene, 64, &remote, NULL) == -EREMOTEIO ? 0 : -EBADMSG;
	rc = rc ?: wait_one(scene->b.cq, &flushed) == 1 ? 0 : -EBADMSG;
	return rc ?: ibchan_send(scene->b.channel, &sge, 1, IBCHAN_TIMEOUT_NEVER, error);
}

/* Another prepared channel in the place of @end's. */
static int prepare_again(struct end *end, const struct ibchan_builder *builder)
{
	struct ibchan_prepared *prepared;
	int rc = ibchan_builder_prepare(builder, &prepared, NULL);

	rc = rc ?: ibchan_prepared_destroy(end->prepared);
	if (!rc)
		end->prepared = prepared;
	return rc;
}

static int write_to_a_channel_that_forbids_it(struct scene *scene, struct ibchan_error *error)
{
	struct ibchan_remote_region remote;
	struct ibchan_builder builder;
	int rc;

	ibchan_builder_init(&builder, scene->b.pd, scene->b.cq);
	builder.params.access = IBCHAN_ACCESS_LOCAL;
	rc = prepare_again(&scene->b, &builder);
	rc = rc ?: scene_connect(scene) ?: ibchan_mr_remote_region(scene->b.mr, &remote);
	return rc ?: write_to(scene, 64, &remote, error);
}

static int send_without_a_receive(struct scene *scene, struct ibchan_error *error)
{
	struct ibchan_submit_sge sge = sge_at(&scene->a, 0, 64);
	struct ibchan_builder builder;
	int rc;

	ibchan_builder_init(&builder, scene->a.pd, scene->a.cq);
	builder.params.rnr_retries = 0;
	rc = prepare_again(&scene->a, &builder);
	return rc ?: scene_connect(scene) ?: send_of(scene, &sge, error);
}

/* All the places of a queue, with nothing to end them. */
static int receive_into_a_full_queue(struct scene *scene, struct ibchan_error *error)
{
	struct ibchan_submit_wr wr = { .opcode = IBCHAN_OP_RECV };
	int rc = scene_connect(scene);
	__u32 i;

	if (rc)
		return rc;
	wr.channel = ibchan_channel_handle(scene->a.channel);
	for (i = 0; !rc && i <= IBCHAN_DEFAULT_RECV_WR; i++)
		rc = ibchan_post(scene->context, &wr, 1, NULL, error);
	return rc;
}

static int receive_thrice(struct scene *scene, struct ibchan_builder *builder,
			  struct ibchan_error *error)
{
	struct ibchan_submit_wr wr = { .opcode = IBCHAN_OP_RECV };
	struct ibchan_prepared *prepared;
	int i, rc = ibchan_builder_prepare(builder, &prepared, NULL);

	if (rc)
		return rc;
	wr.channel = ibchan_channel_handle(ibchan_prepared_channel(prepared));
	for (i = 0; !rc && i < 3; i++)
		rc = ibchan_post(scene->context, &wr, 1, NULL, error);
	ibchan_prepared_destroy(prepared);
	return rc;
}

static int receive_without_a_place_in_the_cq(struct scene *scene, struct ibchan_error *error)
{
	return on_another_cq(scene, 2, 64, receive_thrice, error);
}

/* The memory is the device's until the first receive ends. */
static int receive_twice_into_one_place(struct scene *scene, struct ibchan_error *error)
{
	struct ibchan_submit_sge sge = sge_at(&scene->a, 0, 64);
	struct ibchan_submit_wr wr;
	int rc = scene_connect(scene) ?: post_receive(scene->context, &scene->a, &sge, 7);

	wr = wr_of(&scene->a, IBCHAN_OP_RECV, &sge);
	return rc ?: ibchan_post(scene->context, &wr, 1, NULL, error);
}

static int post_many_elements(struct scene *scene, struct ibchan_error *error)
{
	struct ibchan_submit_sge sges[TOO_MANY];
	struct ibchan_submit_wr wr = {
		.opcode = IBCHAN_OP_SEND, .sges = (unsigned long)sges, .num_sge = TOO_MANY,
	};
	unsigned int i;

	for (i = 0; i < TOO_MANY; i++)
		sges[i] = sge_at(&scene->a, i, 1);
	return post_one(scene, &wr, error);
}

static int receive_into_what_may_only_be_read(struct scene *scene, struct ibchan_error *error)
{
	const struct ibchan_mr_params params = {
		.size = sizeof(params), .addr = scene->a.memory, .length = 64,
	};
	struct ibchan_submit_wr wr = { .opcode = IBCHAN_OP_RECV, .num_sge = 1 };
	struct ibchan_mr *mr;
	int rc = ibchan_mr_reg(scene->a.pd, &params, &mr, NULL);

	if (rc)
		return rc;
	wr.sge = ibchan_sge_new(mr, 0, 64);
	rc = post_one(scene, &wr, error);
	ibchan_mr_dereg(mr);
	return rc;
}

static int send_much_inline(struct scene *scene, struct ibchan_error *error)
{
	struct ibchan_submit_wr wr = {
		.opcode = IBCHAN_OP_SEND, .flags = IBCHAN_WR_INLINE, .num_sge = 1,
		.sge = ibchan_sge_plain(scene->a.memory, 4096),
	};

	return post_one(scene, &wr, error);
}

static int add_to_half_a_number(struct scene *scene, struct ibchan_error *error)
{
	struct ibchan_submit_sge sge = sge_at(&scene->a, 0, 4);
	struct ibchan_remote_region remote;
	int rc = scene_connect(scene) ?: ibchan_mr_remote_region(scene->b.mr, &remote);

	return rc ?: ibchan_fetch_add(scene->a.channel, &sge, &remote, 1,
				      IBCHAN_TIMEOUT_NEVER, error);
}

static int send_plain_memory_that_is_not_there(struct scene *scene, struct ibchan_error *error)
{
	struct ibchan_submit_wr wr = {
		.opcode = IBCHAN_OP_SEND, .num_sge = 1, .sge = ibchan_sge_plain((void *)4096, 64),
	};

	return post_one(scene, &wr, error);
}

/* --- connecting by address --- */

static int connect_with(struct scene *scene, const char *host,
			const struct ibchan_connect_params *params, struct ibchan_error *error)
{
	struct ibchan_channel *channel;
	int rc = ibchan_prepared_connect(scene->a.prepared, host, "1", params, &channel, error);

	return rc ?: ibchan_channel_connect_wait(channel, IBCHAN_TIMEOUT_NEVER, error);
}

static int connect_where_nobody_listens(struct scene *scene, struct ibchan_error *error)
{
	return connect_with(scene, "10.77.0.1", NULL, error);
}

/* By IPv6 as well. Who asks for the way only is told the same, with an address of any device. */
static int connect_to_localhost(struct scene *scene, struct ibchan_error *error)
{
	int v6 = connect_with(scene, "::1", NULL, error);
	int rc = connect_with(scene, "localhost", NULL, error);
	struct ibchan_error asked;
	struct ibchan_route route;

	if (v6 != rc || ibchan_route_query(scene->context, "::1", NULL, NULL, &route, &asked) != rc)
		return -EALREADY;
	ibchan_route_query(scene->context, "localhost", NULL, NULL, &route, &asked);
	return asked.code == rc && asked.reason.code == error->reason.code ? rc : -EALREADY;
}

static int connect_where_no_way_leads(struct scene *scene, struct ibchan_error *error)
{
	return connect_with(scene, "192.0.2.1", NULL, error);
}

/* A neighbour that is not there; without the default's 5 s. */
static int connect_to_an_absent_neighbour(struct scene *scene, struct ibchan_error *error)
{
	const struct ibchan_connect_params params = {
		.size = sizeof(params), .address_ns = 300000000,
	};

	return connect_with(scene, "10.77.0.99", &params, error);
}

static int connect_with_much_data(struct scene *scene, struct ibchan_error *error)
{
	const struct ibchan_connect_params params = {
		.size = sizeof(params), .data = scene->a.memory, .length = 4096,
	};

	return connect_with(scene, "10.77.0.1", &params, error);
}

static int connect_with_a_long_stage(struct scene *scene, struct ibchan_error *error)
{
	const struct ibchan_connect_params params = {
		.size = sizeof(params), .connect_ns = INT64_MAX,
	};

	return connect_with(scene, "10.77.0.1", &params, error);
}

static int listen_with_a_long_backlog(struct scene *scene, struct ibchan_error *error)
{
	const struct ibchan_listen_params params = {
		.size = sizeof(params), .backlog = 0xffffffff,
	};
	struct ibchan_listener *listener;

	return ibchan_listener_create(scene->context, &params, &listener, error);
}

/* --- handshakes that the endpoints alone do not allow --- */

static int meet_with_a_long_mtu(struct scene *scene, struct ibchan_error *error)
{
	struct ibchan_builder builder;

	ibchan_builder_init(&builder, scene->a.pd, scene->a.cq);
	builder.params.mtu = 4096;
	return build_with(scene, &builder.params, 0, error);
}

#define ROW(name, code, text, hint)	{ #name, name, code, text, hint }

const struct row rows[] = {
	ROW(build_with_mtu, -EINVAL,
	    "mtu: 1500 is not 256, 512, 1024, 2048 or 4096",
	    "these are what a packet carries of a message; 0 takes *"),
	ROW(build_with_rnr_retries, -EINVAL, "rnr_retries: 8 is not in 0 to 7", ""),
	ROW(build_with_port, -EINVAL, "port: 7 is not in 1 to 1", ""),
	ROW(build_with_gid_index, -EINVAL,
	    "gid_index: *", "`ibchan devices --gids` shows the table; *"),
	ROW(build_with_empty_gid, -EINVAL,
	    "gid_index: entry * of the port's table has no address that a channel can use *",
	    "`ibchan devices --gids` shows the table; *"),
	ROW(build_with_access, -EINVAL,
	    "access remote write is not possible",
	    "access is made of IBCHAN_ACCESS_*; *needs local write with it"),
	ROW(build_with_max_send_sge, -EINVAL, "max_send_sge: 1000 is not in 1 to *", ""),
	ROW(build_with_keepalive, -EINVAL,
	    "the keepalive: 1 ms is not in 100 ms to 3600000 ms",
	    "0 takes the default, IBCHAN_TIMEOUT_NEVER none"),
	ROW(build_without_size, -EINVAL,
	    "size: a struct of 0 bytes has nothing in it",
	    "a struct of parameters begins with its own sizeof"),
	ROW(serve_with_reserved, -EINVAL, "a member that is not used here is not zero", ""),
	ROW(build_on_a_small_cq, -EAGAIN,
	    "the channel needs * entries of the completion queue, 4 are free",
	    "make the completion queue with more cq_entries, *"),
	ROW(make_a_cq_of_many_entries, -EINVAL, "entries: 1073741824 is not in 1 to *", ""),
	ROW(make_a_cq_of_many_cq_entries, -EINVAL, "cq_entries: 1073741824 is not in 1 to *", ""),
	ROW(register_no_memory, -EFAULT,
	    "there is no memory at an address, or it may not be read, or not written", ""),
	ROW(register_nothing, -EINVAL, "the range is empty or wraps around the address space", ""),
	ROW(register_for_remote_write_only, -EINVAL,
	    "access remote write is not possible",
	    "access is made of IBCHAN_ACCESS_*; *needs local write with it"),
	ROW(meet_somebody_elses_bytes, -EINVAL,
	    "this is no endpoint: it begins with 0x7 and not with *", "hand over the bytes that *"),
	ROW(meet_no_version, -EINVAL,
	    "endpoint version: ours 1, theirs 0", "it was damaged on its way; *"),
	ROW(meet_no_queue_pair, -EINVAL,
	    "endpoint queue pair number: theirs 0, 2 and up are allowed",
	    "it was damaged on its way; hand over the bytes that *"),
	ROW(meet_a_long_psn, -EINVAL,
	    "endpoint packet sequence number: theirs 4294967295, 16777215 is the highest",
	    "it was damaged on its way; hand over the bytes that *"),
	ROW(meet_no_address, -EINVAL,
	    "endpoint address: ours IPv4, theirs IPv6", "both addresses must be of one kind: *"),
	ROW(meet_no_mac, -EINVAL,
	    "endpoint MAC: theirs is zero *",
	    "it was damaged on its way; hand over the bytes that *"),
	ROW(find_no_name, ANY,
	    "looking up the name of a host or service: *",
	    "is it spelled right, and does a name server answer? *"),
	ROW(connect_to_no_name, ANY,
	    "looking up the name of a host or service: *",
	    "is it spelled right, and does a name server answer? *"),
	ROW(listen_on_no_service, ANY,
	    "looking up the name of a host or service: *",
	    "is it spelled right, and does a name server answer? *"),
	ROW(send_before_the_handshake, -ENOTCONN,
	    "wr 0: the channel has no peer yet", "ibchan_prepared_handshake() comes first"),
	ROW(send_past_the_end, -EINVAL,
	    "wr 0 element 0: offset 65536 + length 64 exceeds the region's 65536 bytes",
	    "an offset counts from the region's first byte; *"),
	ROW(send_from_another_domain, -EXDEV,
	    "wr 0 element 0: the region belongs to another protection domain *",
	    "register the memory in the protection domain *"),
	ROW(send_on_a_broken_channel, -ESHUTDOWN,
	    "the channel is broken: this side has ended it",
	    "close it and connect a new one; *"),
	ROW(send_a_long_message, ANY, "send failed: REM_*_ERR (remote): *receive * too short*", ""),
	ROW(receive_a_long_message, ANY,
	    "receive failed: LOC_*_ERR (programming): *the message is longer than *", ""),
	ROW(send_to_nobody, -ETIMEDOUT,
	    "send failed: RETRY_EXC_ERR (timeout): no answer: is the peer alive, *", ""),
	ROW(wait_for_a_message_in_vain, -ETIMEDOUT, "that took longer than it may, *", ""),
	ROW(write_with_a_wrong_key, -EREMOTEIO,
	    "write failed: REM_ACCESS_ERR (remote): the peer's region: wrong key, *", ""),
	ROW(write_past_the_end, -EINVAL,
	    "wr 0: 64 bytes do not fit the 10 bytes of the remote region", ""),
	ROW(post_an_unknown_opcode, -EINVAL, "wr 0: opcode 77 does not exist", ""),
	ROW(post_wrong_flags, -EINVAL, "wr 0: flags IMM, this operation allows UNCHECKED", ""),
	ROW(post_a_swap_that_is_none, -EINVAL, "a member that is not used here is not zero", ""),
	ROW(post_on_no_channel, -ENOENT,
	    "wr 0: no such channel in this context (handle 0)", "post on the context that *"),
	ROW(post_unsignaled_only, 0, "no error", ""),
	ROW(send_when_a_wrong_key_has_ended_it, -ESHUTDOWN,
	    /* Some devices say so. */
	    "the channel is broken: @(its device has ended it and does not say why;|the peer asked for memory by a wrong key,) *",
	    "close it and connect a new one; *"),
	ROW(write_to_a_channel_that_forbids_it, -EREMOTEIO,
	    "write failed: REM_*_ERR (remote): *", ""),
	ROW(send_without_a_receive, -ETIMEDOUT,
	    "send failed: RNR_RETRY_EXC_ERR (timeout): the peer had no receive posted; *", ""),
	ROW(receive_into_a_full_queue, -EAGAIN,
	    "wr 0: all * places of the channel's receive queue are in use",
	    "take completions first, or raise max_recv_wr *"),
	ROW(receive_without_a_place_in_the_cq, -EAGAIN,
	    "wr 0: the completion queue is full: *", "take completions first, *"),
	ROW(receive_twice_into_one_place, -EBUSY,
	    "wr 0 element 0: collides with offset 0, length 64 *, which the work with wr_id 7 *",
	    "wait for that work first, *"),
	ROW(post_many_elements, -EINVAL,
	    "wr 0: 64 elements, the channel allows *",
	    "ask for more in max_send_sge or max_recv_sge *"),
	ROW(receive_into_what_may_only_be_read, -EACCES,
	    "wr 0 element 0: needs access local write, the region allows none",
	    "register the memory with that access; *"),
	ROW(send_much_inline, -EINVAL,
	    "wr 0: 4096 bytes of inline data, the channel takes *", "raise max_inline_data *"),
	ROW(add_to_half_a_number, -EINVAL,
	    "wr 0: an atomic has one element of 8 bytes (not 4) *", ""),
	ROW(send_plain_memory_that_is_not_there, -EFAULT,
	    "wr 0 element 0: no memory at 0x1000 for 64 bytes, *", ""),
	ROW(connect_where_nobody_listens, -ECONNREFUSED,
	    "asking the peer: nobody listens there", "`ibchan doctor PEER` *"),
	ROW(connect_to_localhost, -ENODEV,
	    "the peer's address means this host itself, *: 10.77.0.1 would do",
	    "connect to an address of an RDMA device's: *"),
	ROW(connect_where_no_way_leads, -ENETUNREACH,
	    "looking for a device that leads to the peer: there is no route to the peer's network",
	    "`ibchan doctor PEER` *"),
	ROW(connect_to_an_absent_neighbour, -EHOSTUNREACH,
	    "looking for a device that leads to the peer: *, or nobody answers for its address",
	    "`ibchan doctor PEER` *"),
	ROW(connect_with_much_data, -EINVAL,
	    "4096 bytes of private data, * are allowed with this message", ""),
	ROW(connect_with_a_long_stage, -EINVAL, "a stage of 4294967294 ms, * ms are allowed", ""),
	ROW(listen_with_a_long_backlog, -EINVAL, "backlog: 4294967295 is not in 1 to *", ""),
	ROW(meet_with_a_long_mtu, -EINVAL,
	    "mtu 4096 is wanted, port and address have 1024",
	    "an mtu of 0 takes what both sides can"),
};

const unsigned int num_rows = ARRAY_SIZE(rows);
