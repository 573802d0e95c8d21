// SPDX-License-Identifier: LGPL-2.1-or-later
/* The figures of a pingpong. */
#include <arpa/inet.h>
#include <endian.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#include "pingpong.h"
#include "tool.h"

/**
 * struct figures - the sum of a result
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

static struct figures sum_up(const struct plan *plan, struct result *result)
{
	int ways = plan->op == IBCHAN_OP_READ ? 1 : 2;
	struct figures sum = {
		.messages = (__u64)ways * result->rounds + result->messages,
	};

	sum.bytes = sum.messages * plan->size;
	if (result->rounds) {
		qsort(result->latency_ns, result->rounds, sizeof(__u64),
		      compare);
		sum.min_ns = result->latency_ns[0];
		sum.median_ns = result->latency_ns[result->rounds / 2];
		sum.p99_ns = result->latency_ns[((__u64)result->rounds * 99 +
						 99) / 100 - 1];
	}
	if (result->bandwidth_ns)
		sum.bytes_per_s = (__u64)((double)result->messages *
					  plan->size * 1e9 /
					  (double)result->bandwidth_ns);
	return sum;
}

static void report_end(const char *which, const struct ibchan_endpoint *end)
{
	char gid[INET6_ADDRSTRLEN];

	if (end->link_layer == IBCHAN_LINK_LAYER_INFINIBAND)
		printf("%-10s qpn 0x%06x, psn 0x%06x, lid %u\n", which,
		       be32toh(end->qpn), be32toh(end->psn), be32toh(end->lid));
	else
		printf("%-10s qpn 0x%06x, psn 0x%06x, %s\n", which,
		       be32toh(end->qpn), be32toh(end->psn),
		       gid_text(end->gid, gid, sizeof(gid)));
}

static void report_address(const char *which, __u32 qpn,
			   const struct sockaddr_storage *address)
{
	char host[INET6_ADDRSTRLEN] = "?";
	/* At the same place for both families. */
	unsigned int port = ntohs(((const struct sockaddr_in *)address)->sin_port);

	getnameinfo((const struct sockaddr *)address, sizeof(*address), host,
		    sizeof(host), NULL, 0, NI_NUMERICHOST);
	printf("%-10s qpn 0x%06x, %s port %u\n", which, qpn, host, port);
}

static const char *way(const struct side *side)
{
	return side->local->endpoints ? "endpoints" : "address";
}

static void report_ends(const struct side *side, const struct ibchan_channel_info *info,
			const struct ibchan_endpoint *peer)
{
	struct ibchan_connection_info connection;

	printf("%-10s by %s%s\n", "connected", way(side),
	       side->local->endpoints ? "" : " (rdma_cm)");
	if (side->local->endpoints) {
		report_end("local", &info->endpoint);
		report_end("remote", peer);
	} else if (!ibchan_channel_connection(side->channel, &connection, NULL)) {
		report_address("local", be32toh(info->endpoint.qpn), &connection.local);
		report_address("remote", info->peer_qpn, &connection.peer);
	}
}

void report_path(const struct side *side, const struct ibchan_endpoint *peer)
{
	struct ibchan_channel_info info;

	if (ibchan_channel_query(side->channel, &info, NULL))
		return;
	report_ends(side, &info, peer);
	printf("%-10s %s, port %u, ", "path", ibchan_device_name(side->device),
	       info.params.port);
	/* By address, the connection manager has chosen it. */
	if (side->local->endpoints)
		printf("gid index %u, ", info.params.gid_index);
	printf("mtu %u\n", info.params.mtu);
	fflush(stdout);
}

void report_result(const struct plan *plan, struct result *result)
{
	const struct figures sum = sum_up(plan, result);

	printf("%-10s %s, %u bytes\n", "message", ibchan_opcode_name(plan->op),
	       plan->size);
	if (result->rounds)
		printf("%-10s min %.2f us, median %.2f us, p99 %.2f us (%u rounds)\n",
		       "latency", (double)sum.min_ns / 1e3,
		       (double)sum.median_ns / 1e3, (double)sum.p99_ns / 1e3,
		       result->rounds);
	if (result->messages)
		printf("%-10s %.2f MB/s, %.0f messages/s (%u messages, %u in flight)\n",
		       "bandwidth", (double)sum.bytes_per_s / 1e6,
		       result->messages * 1e9 / (double)result->bandwidth_ns,
		       result->messages, plan->depth);
}

void report_row(const struct side *side, struct result *result)
{
	const struct plan *plan = side->plan;
	const struct figures sum = sum_up(plan, result);

	printf("%s\t%u\t%llu\t%llu\t%llu\t%llu\t%llu\t%llu\t%s\tverified\n",
	       ibchan_opcode_name(plan->op), plan->size,
	       (unsigned long long)sum.messages, (unsigned long long)sum.bytes,
	       (unsigned long long)sum.min_ns,
	       (unsigned long long)sum.median_ns,
	       (unsigned long long)sum.p99_ns,
	       (unsigned long long)sum.bytes_per_s,
	       way(side));
}
