// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "dmabuf.h"
#include "example.h"
#include "work.h"
#include "world.h"

static int fill_query(struct example_objects *objects, void *arg)
{
	(void)objects;
	(void)arg;
	return 0;
}

static int fill_device_query(struct example_objects *objects, void *arg)
{
	(void)objects;
	(void)arg;
	return 0;
}

static int fill_port_query(struct example_objects *objects, void *arg)
{
	struct ibchan_cmd_port_query *cmd = arg;

	(void)objects;
	strcpy(cmd->name, DEVICE_A);
	cmd->port = 1;
	return 0;
}

static int fill_device_open(struct example_objects *objects, void *arg)
{
	struct ibchan_cmd_device_open *cmd = arg;

	(void)objects;
	strcpy(cmd->name, DEVICE_A);
	return 0;
}

static int fill_pd_alloc(struct example_objects *objects, void *arg)
{
	struct ibchan_cmd_pd_alloc *cmd = arg;

	cmd->device = objects->side.device;
	return 0;
}

static int fill_mr_reg(struct example_objects *objects, void *arg)
{
	struct ibchan_cmd_mr_reg *cmd = arg;

	cmd->addr = address(objects->side.memory);
	cmd->length = 5000;
	cmd->pd = objects->side.pd;
	cmd->access = IBCHAN_ACCESS_LOCAL;
	return 0;
}

static int fill_cq_create(struct example_objects *objects, void *arg)
{
	struct ibchan_cmd_cq_create *cmd = arg;

	cmd->device = objects->side.device;
	cmd->entries = 16;
	cmd->cq_entries = 64;
	return 0;
}

static int fill_channel_build(struct example_objects *objects, void *arg)
{
	struct ibchan_cmd_channel_build *cmd = arg;

	cmd->pd = objects->side.pd;
	cmd->send_cq = objects->side.ring->cq;
	cmd->recv_cq = objects->side.ring->cq;
	cmd->params = default_params();
	return 0;
}

static int fill_channel_handshake(struct example_objects *objects, void *arg)
{
	struct ibchan_cmd_channel_handshake *cmd = arg;

	cmd->channel = objects->side.channel;
	cmd->endpoint = objects->side.endpoint;
	return 0;
}

static int fill_channel_query(struct example_objects *objects, void *arg)
{
	struct ibchan_cmd_channel_query *cmd = arg;

	cmd->channel = objects->side.channel;
	return 0;
}

static int fill_channel_break(struct example_objects *objects, void *arg)
{
	struct ibchan_cmd_channel_break *cmd = arg;

	cmd->channel = objects->broken.channel;
	return 0;
}

static int fill_submit(struct example_objects *objects, void *arg)
{
	struct ibchan_cmd_submit *cmd = arg;

	cmd->entry_len = sizeof(struct ibchan_submit_wr);
	cmd->cq = objects->side.ring->cq;
	return 0;
}

static int fill_destroy(struct example_objects *objects, void *arg)
{
	struct ibchan_cmd_destroy *cmd = arg;
	int rc = pd_alloc(objects->side.fd, objects->side.device, &objects->doomed);

	cmd->handle = objects->doomed;
	return rc;
}

static int fill_mr_reg_dmabuf(struct example_objects *objects, void *arg)
{
	struct ibchan_cmd_mr_reg_dmabuf *cmd = arg;

	cmd->offset = 100;
	cmd->length = 5000;
	cmd->fd = objects->dmabuf;
	cmd->pd = objects->side.pd;
	cmd->access = IBCHAN_ACCESS_LOCAL;
	return 0;
}

/* Nobody listens there, which is soon known. */
static int fill_channel_connect(struct example_objects *objects, void *arg)
{
	struct ibchan_cmd_channel_connect *cmd = arg;

	cmd->channel = objects->side.channel;
	cmd->peer = objects->address;
	cmd->peer.port = htons(1);
	return 0;
}

static int fill_channel_connection(struct example_objects *objects, void *arg)
{
	struct ibchan_cmd_channel_connection *cmd = arg;

	cmd->channel = objects->side.channel;
	return 0;
}

static int fill_listener_create(struct example_objects *objects, void *arg)
{
	struct ibchan_cmd_listener_create *cmd = arg;

	cmd->device = objects->side.device;
	cmd->address.family = AF_INET;
	return 0;
}

static int wait_readable(int fd, int ms)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };

	return poll(&pollfd, 1, ms) == 1 ? 0 : -ETIMEDOUT;
}

/* One more channel in the file, as side_channel() makes it. */
static int new_channel(struct example_objects *objects, __u32 *channel)
{
	struct ibchan_cmd_channel_build cmd = {};
	int rc;

	fill_channel_build(objects, &cmd);
	rc = cmd_channel_build(objects->side.fd, &cmd);
	*channel = cmd.out_channel;
	return rc;
}

/* Only what was used up is made again: the tables prepare an example often. */
static int ask_listener(struct example_objects *objects)
{
	struct ibchan_cmd_channel_connect cmd = { .peer = objects->address };
	int rc;

	if (!wait_readable(objects->listener_fd, 0))
		return 0;
	if (objects->asking)
		destroy(objects->side.fd, objects->asking);
	rc = new_channel(objects, &objects->asking);
	cmd.channel = objects->asking;
	if (!rc)
		rc = cmd_channel_connect(objects->side.fd, &cmd);
	return rc ? rc : wait_readable(objects->listener_fd, patience_ms());
}

static int fill_request_take(struct example_objects *objects, void *arg)
{
	struct ibchan_cmd_request_take *cmd = arg;

	cmd->listener = objects->listener;
	return ask_listener(objects);
}

static int take_request(struct example_objects *objects)
{
	struct ibchan_cmd_request_take cmd = { .listener = objects->listener };
	int rc;

	if (objects->request)
		return 0;
	rc = ask_listener(objects);
	if (!rc)
		rc = cmd_request_take(objects->side.fd, &cmd);
	if (rc)
		return rc;
	if (objects->taken)
		destroy(objects->side.fd, objects->taken);
	objects->taken = objects->asking;
	objects->asking = 0;
	objects->request = cmd.out_request;
	return 0;
}

static int fill_request_accept(struct example_objects *objects, void *arg)
{
	struct ibchan_cmd_request_accept *cmd = arg;
	int rc = take_request(objects);

	cmd->request = objects->request;
	cmd->channel = objects->side.channel;
	return rc;
}

static int fill_request_reject(struct example_objects *objects, void *arg)
{
	struct ibchan_cmd_request_reject *cmd = arg;
	int rc = take_request(objects);

	cmd->request = objects->request;
	return rc;
}

static int fill_event_take(struct example_objects *objects, void *arg)
{
	int rc;

	(void)arg;
	if (!wait_readable(objects->side.fd, 0))
		return 0;
	if (objects->eventful)
		destroy(objects->side.fd, objects->eventful);
	rc = new_channel(objects, &objects->eventful);
	return rc ? rc : channel_break(objects->side.fd, objects->eventful);
}

static int fill_route_query(struct example_objects *objects, void *arg)
{
	struct ibchan_cmd_route_query *cmd = arg;

	cmd->peer = objects->address;
	return 0;
}

static int fill_gid_query(struct example_objects *objects, void *arg)
{
	struct ibchan_cmd_gid_query *cmd = arg;

	(void)objects;
	strcpy(cmd->name, DEVICE_A);
	cmd->port = 1;
	return 0;
}

static int fill_channel_history(struct example_objects *objects, void *arg)
{
	struct ibchan_cmd_channel_history *cmd = arg;

	cmd->entry_len = sizeof(struct ibchan_history_event);
	cmd->channel = objects->side.channel;
	return 0;
}

static void undo_device_open(struct example_objects *objects, void *arg, int rc)
{
	if (!rc)
		destroy(objects->side.fd, ((struct ibchan_cmd_device_open *)arg)->out_device);
}

static void undo_pd_alloc(struct example_objects *objects, void *arg, int rc)
{
	if (!rc)
		destroy(objects->side.fd, ((struct ibchan_cmd_pd_alloc *)arg)->out_pd);
}

static void undo_mr_reg(struct example_objects *objects, void *arg, int rc)
{
	if (!rc)
		destroy(objects->side.fd, ((struct ibchan_cmd_mr_reg *)arg)->out_mr);
}

static void undo_cq_create(struct example_objects *objects, void *arg, int rc)
{
	struct ibchan_cmd_cq_create *cmd = arg;

	if (rc)
		return;
	destroy(objects->side.fd, cmd->out_cq);
	close(cmd->out_fd);
}

static void undo_channel_build(struct example_objects *objects, void *arg, int rc)
{
	if (!rc)
		destroy(objects->side.fd, ((struct ibchan_cmd_channel_build *)arg)->out_channel);
}

/* A connected channel stays connected, so the next example gets another one. */
static void undo_channel_handshake(struct example_objects *objects, void *arg, int rc)
{
	struct side_options options = side_defaults();

	(void)arg;
	if (rc)
		return;
	destroy(objects->side.fd, objects->side.channel);
	side_channel(&objects->side, &options);
}

static void undo_listener_create(struct example_objects *objects, void *arg, int rc)
{
	struct ibchan_cmd_listener_create *cmd = arg;

	if (rc)
		return;
	destroy(objects->side.fd, cmd->out_listener);
	close(cmd->out_fd);
}

static void undo_request_take(struct example_objects *objects, void *arg, int rc)
{
	if (!rc)
		destroy(objects->side.fd, ((struct ibchan_cmd_request_take *)arg)->out_request);
}

static void undo_request_reject(struct example_objects *objects, void *arg, int rc)
{
	(void)arg;
	if (!rc)
		objects->request = 0;
}

static void undo_request_accept(struct example_objects *objects, void *arg, int rc)
{
	undo_channel_handshake(objects, arg, rc);
	undo_request_reject(objects, arg, rc);
}

static void undo_destroy(struct example_objects *objects, void *arg, int rc)
{
	(void)arg;
	if (rc && objects->doomed)
		destroy(objects->side.fd, objects->doomed);
	objects->doomed = 0;
}

static void undo_mr_reg_dmabuf(struct example_objects *objects, void *arg, int rc)
{
	if (!rc)
		destroy(objects->side.fd, ((struct ibchan_cmd_mr_reg_dmabuf *)arg)->out_mr);
}

#define HANDLE(name, member)	offsetof(struct ibchan_cmd_##name, member)

/* What is particular to each command: EXAMPLE_<name>. */
#define EXAMPLE_query		.from_anyone = 1, .answers = 1
#define EXAMPLE_device_query	.from_anyone = 1, .answers = 1,		\
				.flags = IBCHAN_DEVICE_QUERY_HANDLE
#define EXAMPLE_port_query	.from_anyone = 1, .answers = 1
#define EXAMPLE_device_open	.answers = 1, .undo = undo_device_open,		\
				.reserved = { HANDLE(device_open, reserved) }
#define EXAMPLE_pd_alloc	.answers = 1, .undo = undo_pd_alloc,		\
				.handles = { HANDLE(pd_alloc, device) }
#define EXAMPLE_mr_reg		.answers = 1, .undo = undo_mr_reg,		\
				.handles = { HANDLE(mr_reg, pd) }
#define EXAMPLE_cq_create	.answers = 1, .undo = undo_cq_create,		\
				.flags = IBCHAN_CQ_CREATE_SOLICITED,		\
				.handles = { HANDLE(cq_create, device) }
#define EXAMPLE_channel_build	.answers = 1, .undo = undo_channel_build,	\
				.handles = { HANDLE(channel_build, pd),		\
					     HANDLE(channel_build, send_cq),	\
					     HANDLE(channel_build, recv_cq) },	\
				.reserved = { HANDLE(channel_build, options.reserved) }
#define EXAMPLE_channel_handshake						\
				.uses_up = 1, .undo = undo_channel_handshake,			\
				.handles = { HANDLE(channel_handshake, channel) },	\
				.reserved = { HANDLE(channel_handshake, reserved) }
#define EXAMPLE_channel_query	.from_anyone = 1, .answers = 1,			\
				.handles = { HANDLE(channel_query, channel) }
#define EXAMPLE_channel_break	.handles = { HANDLE(channel_break, channel) },	\
				.reserved = { HANDLE(channel_break, reserved) }
#define EXAMPLE_submit		.answers = 1, .may_be_none = 1,			\
				.flags = IBCHAN_SUBMIT_SINCE | IBCHAN_DEADLINE,	\
				.handles = { HANDLE(submit, cq) },		\
				.reserved = { HANDLE(submit, tail) }
#define EXAMPLE_destroy		.uses_up = 1, .from_anyone = 1, .any_kind = 1,	\
				.undo = undo_destroy,				\
				.handles = { HANDLE(destroy, handle) },		\
				.reserved = { HANDLE(destroy, reserved) }
#define EXAMPLE_mr_reg_dmabuf	.needs = EXAMPLE_DMABUF, .answers = 1,		\
				.undo = undo_mr_reg_dmabuf,			\
				.handles = { HANDLE(mr_reg_dmabuf, pd) },	\
				.reserved = { HANDLE(mr_reg_dmabuf, reserved) }

#define EXAMPLE_channel_connect	.needs = EXAMPLE_IPV4, .uses_up = 1,			\
				.flags = IBCHAN_CONNECT_FLAGS,			\
				.undo = undo_channel_handshake,			\
				.handles = { HANDLE(channel_connect, channel) },	\
				.reserved = { HANDLE(channel_connect, reserved),	\
					      HANDLE(channel_connect, others[0].family) }
#define EXAMPLE_channel_connection						\
				.from_anyone = 1, .answers = 1,			\
				.flags = IBCHAN_DEADLINE,			\
				.handles = { HANDLE(channel_connection, channel) },	\
				.reserved = { HANDLE(channel_connection, reserved) }
#define EXAMPLE_listener_create	.needs = EXAMPLE_IPV4, .answers = 1, .may_be_none = 1,	\
				.undo = undo_listener_create,			\
				.handles = { HANDLE(listener_create, device) }
#define EXAMPLE_request_take	.needs = EXAMPLE_IPV4, .uses_up = 1, .answers = 1,	\
				.undo = undo_request_take,			\
				.handles = { HANDLE(request_take, listener) },	\
				.reserved = { HANDLE(request_take, reserved) }
#define EXAMPLE_request_accept	.needs = EXAMPLE_IPV4, .uses_up = 1,			\
				.flags = IBCHAN_CONNECT_FLAGS,			\
				.undo = undo_request_accept,			\
				.handles = { HANDLE(request_accept, request),	\
					     HANDLE(request_accept, channel) },	\
				.reserved = { HANDLE(request_accept, reserved) }
#define EXAMPLE_request_reject	.needs = EXAMPLE_IPV4, .uses_up = 1,			\
				.undo = undo_request_reject,			\
				.handles = { HANDLE(request_reject, request) },	\
				.reserved = { HANDLE(request_reject, reserved) }
#define EXAMPLE_event_take	.uses_up = 1, .answers = 1
#define EXAMPLE_route_query	.needs = EXAMPLE_IPV4, .from_anyone = 1, .answers = 1,	\
				.reserved = { HANDLE(route_query, reserved) }
#define EXAMPLE_gid_query	.from_anyone = 1, .answers = 1

#define EXAMPLE_channel_history	.from_anyone = 1, .answers = 1,			\
				.handles = { HANDLE(channel_history, channel) },	\
				.reserved = { HANDLE(channel_history, reserved) }

#define EXAMPLE(nr, NAME, cmd_name) {						\
	.name = #cmd_name,							\
	.number = IBCHAN_CMD_##NAME,						\
	.size = sizeof(struct ibchan_cmd_##cmd_name),				\
	.fill = fill_##cmd_name,						\
	EXAMPLE_##cmd_name							\
},

const struct example examples[NUM_EXAMPLES] = {
	IBCHAN_COMMANDS(EXAMPLE)
};

/* The endpoint's address is the one by which peers would connect. */
static bool has_ipv4(const struct ibchan_endpoint *endpoint)
{
	static const __u8 prefix[12] = { [10] = 0xff, 0xff };

	return !memcmp(endpoint->gid, prefix, sizeof(prefix));
}

static int find_lacks(struct example_objects *objects)
{
	struct ibchan_cmd_device_query device;
	int rc = side_device(&objects->side, &device);

	if (!rc && !(device.out.caps & IBCHAN_DEVICE_DMABUF))
		objects->lacks |= EXAMPLE_DMABUF;
	if (!rc && !has_ipv4(&objects->side.endpoint))
		objects->lacks |= EXAMPLE_IPV4;
	return rc;
}

/* At the address of the side's device. */
static int open_listener(struct example_objects *objects)
{
	struct ibchan_cmd_listener_create cmd = { .device = objects->side.device };
	int rc;

	cmd.address.family = AF_INET;
	memcpy(cmd.address.bytes, objects->side.endpoint.gid + 12, 4);
	rc = cmd_listener_create(objects->side.fd, &cmd);
	objects->listener = cmd.out_listener;
	objects->listener_fd = cmd.out_fd;
	objects->address = cmd.out_address;
	return rc;
}

/* Then what the file holds does not depend on which examples came before. */
static int open_connections(struct example_objects *objects)
{
	int rc = open_listener(objects);

	if (!rc)
		rc = take_request(objects);
	return rc ? rc : ask_listener(objects);
}

int example_objects_open(struct example_objects *objects)
{
	struct side_options options = side_defaults();
	int rc;

	memset(objects, 0, sizeof(*objects));
	objects->listener_fd = -1;
	rc = side_open(&objects->side, &options);
	if (!rc)
		rc = find_lacks(objects);
	if (!rc)
		rc = side_share(&objects->broken, &objects->side, &options);
	if (!rc && !(objects->lacks & EXAMPLE_IPV4))
		rc = open_connections(objects);
	if (!rc)
		rc = fill_event_take(objects, NULL);
	if (rc)
		return rc;
	objects->dmabuf = dmabuf_export(2, 0);
	return objects->dmabuf < 0 ? objects->dmabuf : 0;
}

void example_objects_close(struct example_objects *objects)
{
	if (objects->listener_fd >= 0)
		close(objects->listener_fd);
	side_close(&objects->broken);
	side_close(&objects->side);
	if (objects->dmabuf > 0)
		close(objects->dmabuf);
	objects->dmabuf = 0;
}

unsigned int example_from(const struct example_objects *objects, unsigned int i)
{
	while (i < NUM_EXAMPLES && (examples[i].needs & objects->lacks))
		i++;
	return i;
}

int example_held(const struct example_objects *objects)
{
	struct ibchan_cmd_query cmd = {};
	int rc = cmd_query(objects->side.fd, &cmd);

	return rc ? rc : (int)cmd.out.handles;
}

__u32 example_handle(const struct example_objects *objects, unsigned int kind)
{
	const __u32 handles[EXAMPLE_KINDS] = {
		objects->side.device, objects->side.pd, objects->side.mr,
		objects->side.ring->cq, objects->side.channel, objects->listener,
	};

	return handles[kind];
}

int example_prepare(const struct example *example, struct example_objects *objects, void *arg)
{
	memset(arg, 0, EXAMPLE_ROOM);
	*(__u32 *)arg = example->size;
	return example->fill(objects, arg);
}

int example_run(const struct example *example, struct example_objects *objects)
{
	__u64 arg[EXAMPLE_ROOM / sizeof(__u64)];
	int rc = example_prepare(example, objects, arg);

	if (rc)
		return rc;
	rc = cmd_raw(objects->side.fd, example->number, arg);
	if (example->undo)
		example->undo(objects, arg, rc);
	return rc;
}
