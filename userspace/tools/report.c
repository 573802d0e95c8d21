// SPDX-License-Identifier: LGPL-2.1-or-later
/* The figures of a pingpong. */
#include <arpa/inet.h>
#include <endian.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>

#include "pingpong.h"

/**
 * struct figures - the sum of the measurements
 * @messages: that carried data, both ways
 * @bytes: in them
 * @min_ns: latency, the best round
 * @median_ns: latency, half the rounds were better
 * @p99_ns: latency, 99 of 100 rounds were no worse
 * @bytes_per_s: streamed
 */
struct figures {
	__u64 messages;
	__u64 bytes;
	__u64 min_ns;
	__u64 median_ns;
	__u64 p99_ns;
	__u64 bytes_per_s;
};

static int compare(const void *a, const void *b)
{
	__u64 x = *(const __u64 *)a;
	__u64 y = *(const __u64 *)b;

	return (x > y) - (x < y);
}

static struct figures sum_up(const struct side *side)
{
	const __u64 ways = side->plan.op == IBCHAN_OP_READ ? 1 : 2;
	struct figures sum = { .messages = ways * side->rounds + side->messages };
	__u64 *ns = side->latency_ns;

	sum.bytes = sum.messages * side->plan.size;
	if (side->rounds) {
		qsort(ns, side->rounds, sizeof(__u64), compare);
		sum.min_ns = ns[0];
		sum.median_ns = ns[side->rounds / 2];
		sum.p99_ns = ns[((__u64)side->rounds * 99 + 99) / 100 - 1];
	}
	if (side->bandwidth_ns)
		sum.bytes_per_s = (__u64)((double)side->messages * side->plan.size * 1e9 /
					  (double)side->bandwidth_ns);
	return sum;
}

static void report_end(const char *which, const struct ibchan_endpoint *end)
{
	char gid[INET6_ADDRSTRLEN];

	printf("%-10s qpn 0x%06x, psn 0x%06x, ", which, be32toh(end->qpn), be32toh(end->psn));
	if (end->link_layer == IBCHAN_LINK_LAYER_INFINIBAND)
		printf("lid %u\n", be32toh(end->lid));
	else
		printf("%s\n", gid_text(end->gid, gid, sizeof(gid)));
}

static void report_address(const char *which, __u32 qpn,
			   const struct sockaddr_storage *address)
{
	char host[INET6_ADDRSTRLEN] = "?", port[8] = "?";

	getnameinfo((const struct sockaddr *)address, sizeof(*address), host, sizeof(host), port,
		    sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
	printf("%-10s qpn 0x%06x, %s port %s\n", which, qpn, host, port);
}

static const char *way(const struct side *side)
{
	return side->endpoints ? "endpoints" : "address";
}

void report_path(const struct side *side)
{
	struct ibchan_connection_info connection;
	struct ibchan_channel_info info;

	if (ibchan_channel_query(side->channel, &info, NULL))
		return;
	printf("%-10s by %s%s\n", "connected", way(side), side->endpoints ? "" : " (rdma_cm)");
	if (side->endpoints) {
		report_end("local", &info.endpoint);
		report_end("remote", &side->peer);
	} else if (!ibchan_channel_connection(side->channel, &connection, NULL)) {
		report_address("local", be32toh(info.endpoint.qpn), &connection.local);
		report_address("remote", info.peer_qpn, &connection.peer);
	}
	printf("%-10s %s, port %u, ", "path", ibchan_device_name(side->device), info.params.port);
	/* By address, the connection manager has chosen it. */
	if (side->endpoints)
		printf("gid index %u, ", info.params.gid_index);
	printf("mtu %u\n", info.params.mtu);
	fflush(stdout);
}

static void report_row(const struct side *side, const struct figures *sum)
{
	printf("%s\t%u\t%llu\t%llu\t%llu\t%llu\t%llu\t%llu\t%s\tverified\n",
	       ibchan_opcode_name(side->plan.op), side->plan.size,
	       (unsigned long long)sum->messages, (unsigned long long)sum->bytes,
	       (unsigned long long)sum->min_ns, (unsigned long long)sum->median_ns,
	       (unsigned long long)sum->p99_ns, (unsigned long long)sum->bytes_per_s, way(side));
}

void report_result(const struct side *side)
{
	const struct figures sum = sum_up(side);

	if (side->row) {
		report_row(side, &sum);
		return;
	}
	printf("%-10s %s, %u bytes\n", "message", ibchan_opcode_name(side->plan.op),
	       side->plan.size);
	if (side->rounds)
		printf("%-10s min %.2f us, median %.2f us, p99 %.2f us (%u rounds)\n", "latency",
		       (double)sum.min_ns / 1e3, (double)sum.median_ns / 1e3,
		       (double)sum.p99_ns / 1e3, side->rounds);
	if (side->messages)
		printf("%-10s %.2f MB/s, %.0f messages/s (%u messages, %u in flight)\n",
		       "bandwidth", (double)sum.bytes_per_s / 1e6,
		       side->messages * 1e9 / (double)side->bandwidth_ns, side->messages,
		       side->plan.depth);
}
