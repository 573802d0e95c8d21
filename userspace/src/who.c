// SPDX-License-Identifier: LGPL-2.1-or-later
/* Text for a channel: the devices and addresses of its two ends, and what failed between them. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

/* An IPv4 address is mapped into an IPv6 one; one on InfiniBand looks like the latter. */
static void address_text(const __u8 *gid, char *text)
{
	static const __u8 mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (memcmp(gid, mapped, sizeof(mapped)))
		inet_ntop(AF_INET6, gid, text, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET, gid + sizeof(mapped), text, INET6_ADDRSTRLEN);
}

static void peer_text(const struct ibchan_channel_info *info, char *buf, size_t len)
{
	const long long tenths = info->age_ns / 100000000;
	char address[INET6_ADDRSTRLEN];

	address_text(info->peer_gid, address);
	if (info->peer_qpn)
		snprintf(buf, len, " to %s qpn 0x%x, %lld.%lld s old", address,
			 info->peer_qpn, tenths / 10, tenths % 10);
	else
		snprintf(buf, len, ", no peer yet");
}

const char *ibchan_channel_state_name(__u32 state)
{
	static const char * const names[] = {
		[IBCHAN_CHANNEL_PREPARED] = "prepared",
		[IBCHAN_CHANNEL_CONNECTED] = "connected",
		[IBCHAN_CHANNEL_BROKEN] = "broken",
		[IBCHAN_CHANNEL_CLOSED] = "closed",
		[IBCHAN_CHANNEL_CONNECTING] = "connecting",
	};

	return state < ARRAY_SIZE(names) && names[state] ? names[state] : "unknown";
}

int ibchan_channel_text(const struct ibchan_channel_info *info, char *buf, size_t len)
{
	char address[INET6_ADDRSTRLEN], peer[128];

	address_text(info->endpoint.gid, address);
	peer_text(info, peer, sizeof(peer));
	return snprintf(buf, len, "%.*s port %u (%s)%s", IBCHAN_NAME_SIZE - 1,
			info->device, info->params.port, address, peer);
}

/* The tries that the device has made before it gave up. */
static void tries_text(const struct ibchan_channel_info *info, __u32 status, char *buf, size_t len)
{
	const long long tenths = info->ack_timeout_ns / 100000;

	buf[0] = '\0';
	if (status == IBCHAN_STATUS_RETRY_EXC_ERR)
		snprintf(buf, len, " after %u retries of %lld.%lld ms",
			 info->params.ack_retries, tenths / 10, tenths % 10);
	else if (status == IBCHAN_STATUS_RNR_RETRY_EXC_ERR)
		snprintf(buf, len, " after %u retries", info->params.rnr_retries);
}

/* A work that was flushed says nothing by itself: the end of its channel does. */
static void flush_text(const struct ibchan_channel_info *info, __u32 status, char *buf, size_t len)
{
	const struct ibchan_reason reason = {
		.code = IBCHAN_REASON_BROKEN,
		.value = { (__u64)-(__s64)info->error, info->status },
	};

	if (status == IBCHAN_STATUS_WR_FLUSH_ERR && info->error)
		ibchan_reason_text(&reason, buf, len);
	else
		snprintf(buf, len, "%s", ibchan_status_hint(status));
}

int ibchan_channel_error_text(const struct ibchan_channel_info *info,
			      const struct ibchan_error *error, char *buf, size_t len)
{
	char who[256], what[256], tries[64];

	ibchan_channel_text(info, who, sizeof(who));
	if (error->origin != IBCHAN_ERROR_WORK) {
		ibchan_error_text(error, what, sizeof(what));
		return snprintf(buf, len, "%s: %s", who, what);
	}
	tries_text(info, error->status, tries, sizeof(tries));
	flush_text(info, error->status, what, sizeof(what));
	return snprintf(buf, len, "%s on %s: %s%s: %s", ibchan_opcode_name(error->opcode), who,
			ibchan_status_name(error->status), tries,
			what);
}
