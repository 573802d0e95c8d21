// SPDX-License-Identifier: LGPL-2.1-or-later
/* The flight recorder of a channel: to read it, and to put it into words. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

#define HISTORY_NAME(nr, NAME)						\
	[nr] = #NAME,
static const char * const kind_names[] = {
	IBCHAN_HISTORY_KINDS(HISTORY_NAME)
};

int ibchan_channel_history(struct ibchan_channel *channel, struct ibchan_history_event *events,
			   __u32 num, struct ibchan_error *error)
{
	struct ibchan_cmd_channel_history cmd = {
		.size = sizeof(cmd),
		.entries = (uintptr_t)events,
		.entry_len = sizeof(*events),
		.entry_num = num,
		.channel = channel->object.handle,
	};
	int err = context_ioctl(channel->object.context, IBCHAN_CMD_CHANNEL_HISTORY, &cmd);

	return error_set(error, err, NULL) ?: (int)cmd.entry_num;
}

const char *ibchan_history_name(__u32 kind)
{
	return kind < ARRAY_SIZE(kind_names) && kind_names[kind] ? kind_names[kind] :
								   "unknown";
}

/* By the numbers that the kernel's enum ib_event_type has. */
static const char *port_event(__u64 event)
{
	switch (event) {
	case 9:
		return "is active";
	case 10:
		return "is down";
	default:
		return "has changed";
	}
}

/* The details that its kind alone has. */
static int detail_text(const struct ibchan_history_event *event, char *buf, size_t len)
{
	unsigned long long value = event->value;

	switch (event->kind) {
	case IBCHAN_HISTORY_BUILT:
		return snprintf(buf, len, "qpn 0x%x, port %llu, GID index %llu", event->detail,
				value >> 32, value & UINT32_MAX);
	case IBCHAN_HISTORY_HANDSHAKE:
		return snprintf(buf, len, "failed (%s)", ibchan_reason_name(event->detail));
	case IBCHAN_HISTORY_CONNECTED:
		return snprintf(buf, len, "to qpn 0x%x, mtu %llu", event->detail, value);
	case IBCHAN_HISTORY_POST_REFUSED:
		return snprintf(buf, len, "%s, wr_id %llu", ibchan_reason_name(event->detail),
				value);
	case IBCHAN_HISTORY_WORK_FAILED:
		return snprintf(buf, len, "%s with wr_id %llu: %s",
				ibchan_opcode_name(event->detail >> 16), value,
				ibchan_status_name(event->detail & 0xffff));
	case IBCHAN_HISTORY_VENDOR_ERROR:
		return snprintf(buf, len, "0x%x", event->detail);
	case IBCHAN_HISTORY_BROKEN:
		return snprintf(buf, len, "first failed work %s",
				event->detail ? ibchan_status_name(event->detail) : "none");
	case IBCHAN_HISTORY_PROBES:
		return snprintf(buf, len, "%llu sent, %u answered", value, event->detail);
	case IBCHAN_HISTORY_ADDRESS:
		return snprintf(buf, len, "port %llu, GID index %u%s", value, event->detail,
				event->error ? " has gone" : "");
	case IBCHAN_HISTORY_PORT:
		return snprintf(buf, len, "port %u %s", event->detail, port_event(value));
	case IBCHAN_HISTORY_CM:
		return snprintf(buf, len, "%s%s", event->error ? "failed " : "",
				ibchan_stage_name(event->detail));
	case IBCHAN_HISTORY_DISCONNECTED:
		return snprintf(buf, len, "by the peer");
	case IBCHAN_HISTORY_WAY_CHANGED:
		return snprintf(buf, len, "%s", event->detail ? "from here" : "to the peer");
	default:
		return snprintf(buf, len, "-");
	}
}

int ibchan_history_text(const struct ibchan_history_event *event, char *buf, size_t len)
{
	const char *words = event->error ? errno_words((int)event->error) : NULL;
	char detail[160];

	detail_text(event, detail, sizeof(detail));
	return snprintf(buf, len, "%llu.%06llu #%u %s: %s%s%s",
			(unsigned long long)(event->time_ns / 1000000000),
			(unsigned long long)(event->time_ns / 1000 % 1000000),
			event->number, ibchan_history_name(event->kind), detail,
			event->error ? ": " : "",
			event->error ? (words ? words : "unknown error") : "");
}
