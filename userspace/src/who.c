// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Text for a channel: the devices and addresses of its two ends, what failed between them, and what
 * its flight recorder has kept.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

const char *ibchan_channel_state_name(__u32 state)
{
	static const char * const names[] = {
		[IBCHAN_CHANNEL_PREPARED] = "prepared",
		[IBCHAN_CHANNEL_CONNECTED] = "connected",
		[IBCHAN_CHANNEL_BROKEN] = "broken",
		[IBCHAN_CHANNEL_CLOSED] = "closed",
		[IBCHAN_CHANNEL_CONNECTING] = "connecting",
	};

	return NAME_OF(names, state);
}

const char *ibchan_stage_name(__u32 stage)
{
	static const char * const names[] = {
		[IBCHAN_STAGE_NONE] = "not connected by address",
		[IBCHAN_STAGE_ADDRESS] = "looking for a device that leads to the peer",
		[IBCHAN_STAGE_ROUTE] = "looking for the way to the peer",
		[IBCHAN_STAGE_REQUEST] = "asking the peer",
		[IBCHAN_STAGE_ACCEPT] = "telling the peer that it is accepted",
		[IBCHAN_STAGE_DONE] = "connected",
	};

	return NAME_OF(names, stage);
}

const char *ibchan_history_name(__u32 kind)
{
#define HISTORY_NAME(nr, NAME)						\
	[nr] = #NAME,
	static const char * const names[] = {
		IBCHAN_HISTORY_KINDS(HISTORY_NAME)
	};

	return NAME_OF(names, kind);
}

int ibchan_channel_text(const struct ibchan_channel_info *info, char *buf, size_t len)
{
	const long long tenths = info->age_ns / 100000000;
	char own[INET6_ADDRSTRLEN], address[INET6_ADDRSTRLEN];
	char peer[128] = ", no peer yet";

	gid_text(info->endpoint.gid, own);
	gid_text(info->peer_gid, address);
	if (info->peer_qpn)
		snprintf(peer, sizeof(peer), " to %s qpn 0x%x, %lld.%lld s old", address,
			 info->peer_qpn, tenths / 10, tenths % 10);
	return snprintf(buf, len, "%.*s port %u (%s)%s", IBCHAN_NAME_SIZE - 1, info->device,
			info->params.port, own, peer);
}

int ibchan_channel_error_text(const struct ibchan_channel_info *info,
			      const struct ibchan_error *error, char *buf, size_t len)
{
	const struct ibchan_reason end = {
		.code = IBCHAN_REASON_BROKEN, .value = { (__u64)-(__s64)info->error, info->status },
	};
	const long long tenths = info->ack_timeout_ns / 100000;
	char who[256], what[256], tries[64] = "";

	ibchan_channel_text(info, who, sizeof(who));
	if (error->origin != IBCHAN_ERROR_WORK) {
		ibchan_error_text(error, what, sizeof(what));
		return snprintf(buf, len, "%s: %s", who, what);
	}
	/* The device has made these before it gave up. */
	if (error->status == IBCHAN_STATUS_RETRY_EXC_ERR)
		snprintf(tries, sizeof(tries), " after %u retries of %lld.%lld ms",
			 info->params.ack_retries, tenths / 10, tenths % 10);
	else if (error->status == IBCHAN_STATUS_RNR_RETRY_EXC_ERR)
		snprintf(tries, sizeof(tries), " after %u retries", info->params.rnr_retries);
	/* A work that was flushed says nothing by itself: the end of its channel does. */
	if (error->status == IBCHAN_STATUS_WR_FLUSH_ERR && info->error)
		ibchan_reason_text(&end, what, sizeof(what));
	else
		snprintf(what, sizeof(what), "%s", ibchan_status_hint(error->status));
	return snprintf(buf, len, "%s on %s: %s%s: %s", ibchan_opcode_name(error->opcode), who,
			ibchan_status_name(error->status), tries, what);
}

int ibchan_channel_history(struct ibchan_channel *channel, struct ibchan_history_event *events,
			   __u32 num, struct ibchan_error *error)
{
	struct ibchan_cmd_channel_history cmd = {
		.size = sizeof(cmd),
		.entries = (uintptr_t)events, .entry_len = sizeof(*events), .entry_num = num,
		.channel = channel->object.handle,
	};
	int err = context_ioctl(channel->object.context, IBCHAN_CMD_CHANNEL_HISTORY, &cmd);

	return error_set(error, err, NULL) ?: (int)cmd.entry_num;
}

/* The details that its kind alone has. */
static int detail_text(const struct ibchan_history_event *event, char *buf, size_t len)
{
	const unsigned long long value = event->value;
	const __u32 detail = event->detail;

	switch (event->kind) {
	case IBCHAN_HISTORY_BUILT:
		return snprintf(buf, len, "qpn 0x%x, port %llu, GID index %llu", detail,
				value >> 32, value & UINT32_MAX);
	case IBCHAN_HISTORY_HANDSHAKE:
		return snprintf(buf, len, "failed (%s)", ibchan_reason_name(detail));
	case IBCHAN_HISTORY_CONNECTED:
		return snprintf(buf, len, "to qpn 0x%x, mtu %llu", detail, value);
	case IBCHAN_HISTORY_POST_REFUSED:
		return snprintf(buf, len, "%s, wr_id %llu", ibchan_reason_name(detail), value);
	case IBCHAN_HISTORY_WORK_FAILED:
		return snprintf(buf, len, "%s with wr_id %llu: %s",
				ibchan_opcode_name(detail >> 16), value,
				ibchan_status_name(detail & 0xffff));
	case IBCHAN_HISTORY_VENDOR_ERROR:
		return snprintf(buf, len, "0x%x", detail);
	case IBCHAN_HISTORY_BROKEN:
		return snprintf(buf, len, "first failed work %s",
				detail ? ibchan_status_name(detail) : "none");
	case IBCHAN_HISTORY_PROBES:
		return snprintf(buf, len, "%llu sent, %u answered", value, detail);
	case IBCHAN_HISTORY_ADDRESS:
		return snprintf(buf, len, "port %llu, GID index %u%s", value, detail,
				event->error ? " has gone" : "");
	case IBCHAN_HISTORY_PORT:
		/* By the numbers that the kernel's enum ib_event_type has. */
		return snprintf(buf, len, "port %u %s", detail, value == 9 ? "is active" :
				value == 10 ? "is down" : "has changed");
	case IBCHAN_HISTORY_CM:
		return snprintf(buf, len, "%s%s", event->error ? "failed " : "",
				ibchan_stage_name(detail));
	case IBCHAN_HISTORY_DISCONNECTED:
		return snprintf(buf, len, "by the peer");
	case IBCHAN_HISTORY_WAY_CHANGED:
		return snprintf(buf, len, "%s", detail ? "from here" : "to the peer");
	default:
		return snprintf(buf, len, "-");
	}
}

int ibchan_history_text(const struct ibchan_history_event *event, char *buf, size_t len)
{
	const unsigned long long us = event->time_ns / 1000;
	char detail[160];

	detail_text(event, detail, sizeof(detail));
	return snprintf(buf, len, "%llu.%06llu #%u %s: %s%s%s", us / 1000000, us % 1000000,
			event->number, ibchan_history_name(event->kind), detail,
			event->error ? ": " : "",
			event->error ? errno_words((int)event->error) ?: "unknown error" : "");
}
