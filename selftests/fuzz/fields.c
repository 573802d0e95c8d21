// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the members of the commands are. A command that is not here does not compile.
 */
#include "program.h"

#define SIZE_OF(type, member...)	sizeof(((type *)NULL)->member)
#define FIELD(command, member, what, most)				\
	{ #member, offsetof(struct ibchan_cmd_##command, member),	\
	  SIZE_OF(struct ibchan_cmd_##command, member), FIELD_##what, most }
#define ADDRESS(command, member)					\
	FIELD(command, member.family, NUMBER, 10),			\
	FIELD(command, member.port, NUMBER, 0xffff),			\
	FIELD(command, member.scope_id, NUMBER, 4),			\
	FIELD(command, member.bytes, BYTES, 0)
#define END	{ NULL, 0, 0, 0, 0 }

static const struct field fields_query[] = { END };

static const struct field fields_device_query[] = {
	FIELD(device_query, index, NUMBER, 2),
	FIELD(device_query, flags, FLAGS, IBCHAN_DEVICE_QUERY_HANDLE), END
};

static const struct field fields_port_query[] = {
	FIELD(port_query, port, NUMBER, 2), FIELD(port_query, name, BYTES, 0), END
};

static const struct field fields_device_open[] = {
	FIELD(device_open, name, BYTES, 0), FIELD(device_open, reserved, NUMBER, 0),
	FIELD(device_open, out_device, NEW_HANDLE, 0), END
};

static const struct field fields_pd_alloc[] = {
	FIELD(pd_alloc, device, HANDLE, 0), FIELD(pd_alloc, out_pd, NEW_HANDLE, 0), END
};

static const struct field fields_mr_reg[] = {
	FIELD(mr_reg, addr, POINTER, 0), FIELD(mr_reg, length, NUMBER, 65536),
	FIELD(mr_reg, pd, HANDLE, 0), FIELD(mr_reg, access, FLAGS, IBCHAN_ACCESS_ALL),
	FIELD(mr_reg, out_mr, NEW_HANDLE, 0), FIELD(mr_reg, reason, REASON, 0), END
};

static const struct field fields_cq_create[] = {
	FIELD(cq_create, flags, FLAGS, IBCHAN_CQ_CREATE_SOLICITED),
	FIELD(cq_create, device, HANDLE, 0), FIELD(cq_create, entries, NUMBER, 4096),
	FIELD(cq_create, cq_entries, NUMBER, 4096),
	FIELD(cq_create, out_cq, NEW_HANDLE, 0), FIELD(cq_create, out_fd, NEW_FD, 0),
	FIELD(cq_create, reason, REASON, 0), END
};

#define PARAM(member, most)	FIELD(channel_build, params.member, NUMBER, most)

static const struct field fields_channel_build[] = {
	FIELD(channel_build, pd, HANDLE, 0), FIELD(channel_build, send_cq, HANDLE, 0),
	FIELD(channel_build, recv_cq, HANDLE, 0),
	FIELD(channel_build, params.access, FLAGS, IBCHAN_ACCESS_ALL),
	PARAM(max_send_wr, 64), PARAM(max_recv_wr, 64), PARAM(max_send_sge, IBCHAN_MAX_SGE),
	PARAM(max_recv_sge, IBCHAN_MAX_SGE), PARAM(rnr_retries, 7), PARAM(ack_retries, 7),
	PARAM(min_rnr_timer, 31), PARAM(ack_timeout, 31), PARAM(mtu, 4096),
	PARAM(send_psn, 0xffffff), PARAM(recv_psn, 0xffffff), PARAM(port, 2),
	PARAM(gid_index, 4), PARAM(max_rd_atomic, 128), PARAM(traffic_class, 255),
	PARAM(service_level, 15), PARAM(max_inline_data, 512),
	FIELD(channel_build, options.keepalive_ms, NUMBER, IBCHAN_KEEPALIVE_MAX_MS),
	FIELD(channel_build, options.reserved, BYTES, 0),
	FIELD(channel_build, out_channel, NEW_HANDLE, 0),
	FIELD(channel_build, reason, REASON, 0), END
};

#define ENDPOINT(member, most)	FIELD(channel_handshake, endpoint.member, NUMBER, most)

static const struct field fields_channel_handshake[] = {
	FIELD(channel_handshake, channel, HANDLE, 0),
	FIELD(channel_handshake, reserved, NUMBER, 0),
	ENDPOINT(magic, IBCHAN_ENDPOINT_MAGIC), ENDPOINT(version, 0xff00),
	ENDPOINT(link_layer, 3), ENDPOINT(mtu, 5), ENDPOINT(qpn, 0xffffffff),
	ENDPOINT(psn, 0xffffffff), ENDPOINT(max_dest_rd_atomic, 255), ENDPOINT(flags, 1),
	ENDPOINT(lid, 0xffff),
	FIELD(channel_handshake, endpoint.gid, BYTES, 0),
	FIELD(channel_handshake, endpoint.mac, BYTES, 0),
	FIELD(channel_handshake, endpoint.reserved1, BYTES, 0),
	FIELD(channel_handshake, endpoint.reserved, BYTES, 0),
	FIELD(channel_handshake, reason, REASON, 0), END
};

static const struct field fields_channel_query[] = {
	FIELD(channel_query, channel, HANDLE, 0), END
};

static const struct field fields_channel_break[] = {
	FIELD(channel_break, channel, HANDLE, 0), FIELD(channel_break, reserved, NUMBER, 0), END
};

static const struct field fields_submit[] = {
	FIELD(submit, flags, FLAGS, IBCHAN_SUBMIT_SINCE | IBCHAN_DEADLINE),
	FIELD(submit, entries, POINTER, 0),
	FIELD(submit, entry_len, NUMBER, 4096), FIELD(submit, entry_num, NUMBER, MAX_WRS),
	FIELD(submit, cq, HANDLE, 0), FIELD(submit, min_complete, NUMBER, MAX_WRS),
	FIELD(submit, timeout_ns, TIME_NS, 1000000), FIELD(submit, tail, NUMBER, 16),
	FIELD(submit, reason, REASON, 0), END
};

static const struct field fields_destroy[] = {
	FIELD(destroy, handle, HANDLE, 0), FIELD(destroy, reserved, NUMBER, 0), END
};

static const struct field fields_mr_reg_dmabuf[] = {
	FIELD(mr_reg_dmabuf, offset, NUMBER, 8192), FIELD(mr_reg_dmabuf, length, NUMBER, 8192),
	FIELD(mr_reg_dmabuf, fd, FD, 0), FIELD(mr_reg_dmabuf, pd, HANDLE, 0),
	FIELD(mr_reg_dmabuf, access, FLAGS, IBCHAN_ACCESS_ALL),
	FIELD(mr_reg_dmabuf, reserved, NUMBER, 0),
	FIELD(mr_reg_dmabuf, out_mr, NEW_HANDLE, 0), FIELD(mr_reg_dmabuf, reason, REASON, 0), END
};

static const struct field fields_channel_connect[] = {
	FIELD(channel_connect, channel, HANDLE, 0),
	FIELD(channel_connect, flags, FLAGS, IBCHAN_CONNECT_FLAGS),
	FIELD(channel_connect, data_length, NUMBER, IBCHAN_PRIVATE_DATA_SIZE),
	ADDRESS(channel_connect, peer), ADDRESS(channel_connect, source),
	FIELD(channel_connect, address_ms, NUMBER, IBCHAN_MAX_STAGE_MS),
	FIELD(channel_connect, route_ms, NUMBER, IBCHAN_MAX_STAGE_MS),
	FIELD(channel_connect, connect_ms, NUMBER, IBCHAN_MAX_STAGE_MS),
	FIELD(channel_connect, data, BYTES, 0), FIELD(channel_connect, reserved, NUMBER, 0),
	FIELD(channel_connect, num_others, NUMBER, IBCHAN_CONNECT_OTHERS),
	ADDRESS(channel_connect, others[0]), ADDRESS(channel_connect, others[6]),
	FIELD(channel_connect, reason, REASON, 0), END
};

static const struct field fields_channel_connection[] = {
	FIELD(channel_connection, channel, HANDLE, 0),
	FIELD(channel_connection, flags, FLAGS, IBCHAN_DEADLINE),
	FIELD(channel_connection, timeout_ns, TIME_NS, 1000000),
	FIELD(channel_connection, reserved, NUMBER, 0), END
};

static const struct field fields_listener_create[] = {
	FIELD(listener_create, device, HANDLE, 0),
	FIELD(listener_create, backlog, NUMBER, IBCHAN_MAX_BACKLOG),
	ADDRESS(listener_create, address),
	FIELD(listener_create, out_listener, NEW_HANDLE, 0),
	FIELD(listener_create, out_fd, NEW_FD, 0), FIELD(listener_create, reason, REASON, 0), END
};

static const struct field fields_request_take[] = {
	FIELD(request_take, listener, HANDLE, 0), FIELD(request_take, reserved, NUMBER, 0),
	FIELD(request_take, out_request, NEW_HANDLE, 0), END
};

static const struct field fields_request_accept[] = {
	FIELD(request_accept, request, HANDLE, 0), FIELD(request_accept, channel, HANDLE, 0),
	FIELD(request_accept, connect_ms, NUMBER, IBCHAN_MAX_STAGE_MS),
	FIELD(request_accept, data_length, NUMBER, IBCHAN_PRIVATE_DATA_SIZE),
	FIELD(request_accept, data, BYTES, 0), FIELD(request_accept, reserved, NUMBER, 0),
	FIELD(request_accept, reason, REASON, 0), END
};

static const struct field fields_request_reject[] = {
	FIELD(request_reject, request, HANDLE, 0),
	FIELD(request_reject, data_length, NUMBER, IBCHAN_PRIVATE_DATA_SIZE),
	FIELD(request_reject, data, BYTES, 0), FIELD(request_reject, reserved, NUMBER, 0), END
};

static const struct field fields_event_take[] = { END };

static const struct field fields_route_query[] = {
	ADDRESS(route_query, peer), ADDRESS(route_query, source),
	FIELD(route_query, timeout_ms, TIME_MS, 10), FIELD(route_query, reserved, NUMBER, 0), END
};

static const struct field fields_gid_query[] = {
	FIELD(gid_query, name, BYTES, 0), FIELD(gid_query, port, NUMBER, 2),
	FIELD(gid_query, index, NUMBER, 4), END
};

static const struct field fields_channel_history[] = {
	FIELD(channel_history, entries, POINTER, 0),
	FIELD(channel_history, entry_len, NUMBER, 4096),
	FIELD(channel_history, entry_num, NUMBER, IBCHAN_HISTORY_MAX),
	FIELD(channel_history, channel, HANDLE, 0),
	FIELD(channel_history, reserved, NUMBER, 0), END
};

#define DEED_FIELD(member, what, most)					\
	{ #member, offsetof(struct deed, member), SIZE_OF(struct deed, member), \
	  FIELD_##what, most }

static const struct field deed_fields[] = {
	DEED_FIELD(what, NUMBER, NUM_DEEDS - 1), DEED_FIELD(offset, NUMBER, 8192),
	DEED_FIELD(value, NUMBER, 64), DEED_FIELD(flags, FLAGS, 0xff), END
};

#define ROOM(label, member, what, most)					\
	{ label, offsetof(struct room, member), SIZE_OF(struct room, member), FIELD_##what, most }
#define WR(nr)								\
	ROOM("wr" #nr ".channel", wrs[nr].channel, HANDLE, 0),		\
	ROOM("wr" #nr ".opcode", wrs[nr].opcode, NUMBER, IBCHAN_OP_FETCH_ADD),	\
	ROOM("wr" #nr ".flags", wrs[nr].flags, FLAGS, IBCHAN_WR_FLAGS),	\
	ROOM("wr" #nr ".num_sge", wrs[nr].num_sge, NUMBER, MAX_SGES),	\
	ROOM("wr" #nr ".sges", wrs[nr].sges, POINTER, 0),		\
	ROOM("wr" #nr ".remote_addr", wrs[nr].remote_addr, POINTER, 0),	\
	ROOM("wr" #nr ".rkey", wrs[nr].rkey, KEY, 0),			\
	ROOM("wr" #nr ".imm", wrs[nr].imm, NUMBER, 0),			\
	ROOM("wr" #nr ".swap", wrs[nr].swap, NUMBER, 1),		\
	ROOM("wr" #nr ".sge.offset", wrs[nr].sge.offset, POINTER, 65536),	\
	ROOM("wr" #nr ".sge.length", wrs[nr].sge.length, NUMBER, 65536),	\
	ROOM("wr" #nr ".sge.mr", wrs[nr].sge.mr, HANDLE, 0),		\
	ROOM("sge" #nr ".offset", sges[nr].offset, POINTER, 65536),	\
	ROOM("sge" #nr ".length", sges[nr].length, NUMBER, 65536),	\
	ROOM("sge" #nr ".mr", sges[nr].mr, HANDLE, 0)

static const struct field room_fields[] = {
	{ "size", 0, sizeof(__u32), FIELD_NUMBER, EXAMPLE_ROOM },
	{ "flags", sizeof(__u32), sizeof(__u32), FIELD_FLAGS, 0 },
	ROOM("arg", arg, POINTER, 0), ROOM("number", number, NUMBER, 0), ROOM("fd", fd, FD, 0),
	WR(0), WR(1), WR(2), WR(3), END
};

#define FIELDS(nr, NAME, name)						\
	[EXAMPLE_##NAME] = fields_##name,

static const struct field *const tables[NUM_ACTIONS] = {
	IBCHAN_COMMANDS(FIELDS)
	[NUM_EXAMPLES] = deed_fields,
};

const char *action_name(unsigned int action)
{
	return action < NUM_EXAMPLES ? examples[action].name : "deed";
}

const struct field *action_fields(unsigned int action)
{
	return tables[action];
}

const struct field *common_fields(void)
{
	return room_fields;
}

const struct field *action_field(unsigned int action, unsigned int kind)
{
	const struct field *field;

	for (field = tables[action]; field->name; field++) {
		if (field->kind == kind)
			return field;
	}
	return NULL;
}
