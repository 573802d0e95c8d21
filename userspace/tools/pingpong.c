// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * ibchan pingpong: the options, the conversation, and the figures.
 *
 *	client				server
 *	hello (the plan)	->
 *	status			<->	status		objects are made
 *	offer			<->	offer		endpoint or port, remote region
 *	status			<->	status		connected
 * and for each phase
 *	status			<->	status		receives are posted
 *	status			<->	status		through
 *	status			<->	status		data is right
 *
 * A side that fails says so in the next status. STATUS_BUSY may come before any of them and only
 * means that the peer is alive.
 */
#include <argp.h>
#include <arpa/inet.h>
#include <endian.h>
#include <netdb.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pingpong.h"

#define HELLO_MAGIC	0x69626370U	/* "ibcp" */
#define HELLO_VERSION	3

#define STATUS_OK	1
#define STATUS_FAILED	2
#define STATUS_BUSY	3

#define DEFAULT_PORT	"18515"		/* as in ibv_rc_pingpong and perftest */
#define DEFAULT_SIZE	4096
#define DEFAULT_ITERS	1000
#define DEFAULT_TIMEOUT	30
#define DEFAULT_DEPTH	16
#define DEFAULT_MEMORY	(4 << 20)	/* bytes of a buffer that depth aims at */

/* The first words of a client, each of them in network order on the way. */
struct hello {
	__u32 magic;
	__u32 version;
	struct plan plan;
	__u32 reserved;
};

enum long_key {
	KEY_OP = 0x100,
	KEY_LAT,
	KEY_BW,
	KEY_ROW,
	KEY_SPIN,
	KEY_TIMEOUT,
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "Both sides:", 1 },
	{ "port", 'p', "PORT", 0,
	  "of the connection, or of TCP with -e (default " DEFAULT_PORT ")", 0 },
	{ "endpoints", 'e', NULL, 0,
	  "meet by TCP and exchange endpoints, instead of connecting by address", 0 },
	{ "ib-dev", 'd', "NAME", 0,
	  "device (default: the one that leads to the other side; with -e, the first)", 0 },
	{ "ib-port", 'i', "N", 0, "its port (default: the first active)", 0 },
	{ "gid-idx", 'g', "N", 0,
	  "GID index, by address the one of the address to have here (default: by rule)", 0 },
	{ "mtu", 'm', "BYTES", 0, "256 to 4096 (default: what both sides can)", 0 },
	{ "qp-timeout", 'u', "N", 0,
	  "a packet is sent again after 4.096 us * 2^N, 0 to 31 (default: as the library chooses)",
	  0 },
	{ "timeout", KEY_TIMEOUT, "SECONDS", 0, "for each wait (default 30); 0: no limit", 0 },
	{ "spin", KEY_SPIN, NULL, 0,
	  "wait without sleeping, as perftest does; needs a CPU for each side", 0 },
	{ "row", KEY_ROW, NULL, 0,
	  "one line for a program, separated by tabs: op, size, messages, bytes, min, median and p99 latency in ns, bytes/s, \"address\" or \"endpoints\", \"verified\"",
	  0 },
	{ NULL, 0, NULL, 0, "Client; the server follows:", 2 },
	{ "op", KEY_OP, "OP", 0, "send (default), write or read", 0 },
	{ "size", 's', "BYTES", 0, "of a message (default 4096)", 0 },
	{ "iters", 'n', "N", 0, "messages of a phase (default 1000)", 0 },
	{ "tx-depth", 't', "N", 0,
	  "messages in flight, 1 to 128 (default: up to 16, as 4 MiB allow)", 0 },
	{ "lat", KEY_LAT, NULL, 0, "only the latency", 0 },
	{ "bw", KEY_BW, NULL, 0, "only the bandwidth", 0 },
	{ "help", 'h', NULL, 0, "give this help list", -1 },
	{ 0 }
};

/* The options that are numbers: between what, and the place of each in struct side. */
static const struct {
	int key;
	__u32 lowest;
	__u32 highest;
	size_t place;
} numbers[] = {
	{ 'i', 1, 255, offsetof(struct side, ib_port) },
	{ 'g', 0, 65535, offsetof(struct side, gid_index) },
	{ 'm', 256, 4096, offsetof(struct side, mtu) },
	{ 'u', 0, 31, offsetof(struct side, ack_timeout) },
	{ KEY_TIMEOUT, 0, 1000000, offsetof(struct side, talk.timeout_s) },
	{ 's', 0, MAX_SIZE, offsetof(struct side, plan.size) },
	{ 'n', 1, MAX_ITERS, offsetof(struct side, plan.iters) },
	{ 't', 1, MAX_DEPTH, offsetof(struct side, plan.depth) },
};

static __u32 operation(struct argp_state *state, const char *arg)
{
	static const __u32 ops[] = { IBCHAN_OP_SEND, IBCHAN_OP_WRITE, IBCHAN_OP_READ };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ops); i++)
		if (!strcmp(arg, ibchan_opcode_name(ops[i])))
			return ops[i];
	argp_error(state, "'%s' is not send, write or read", arg);
	return 0;
}

static void finish_options(struct argp_state *state, struct side *side)
{
	struct plan *plan = &side->plan;
	const __u32 depth = plan->size ? DEFAULT_MEMORY / plan->size : DEFAULT_DEPTH;

	if (side->mtu & (side->mtu - 1))
		argp_error(state, "'%u': an MTU is 256, 512, 1024, 2048 or 4096", side->mtu);
	if (!plan->phases)
		plan->phases = PHASE_LATENCY | PHASE_BANDWIDTH;
	if (!plan->depth)
		plan->depth = depth > DEFAULT_DEPTH ? DEFAULT_DEPTH : depth > 2 ? depth : 2;
	if (!plan->size && plan->op != IBCHAN_OP_SEND)
		argp_error(state, "a %s needs at least 1 byte", ibchan_opcode_name(plan->op));
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct side *side = state->input;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (numbers[i].key != key)
			continue;
		*(__u32 *)((char *)side + numbers[i].place) =
			number_option(state, arg, 0, numbers[i].lowest, numbers[i].highest);
		return 0;
	}
	switch (key) {
	case 'p':
		side->talk.port = port_option(state, arg);
		break;
	case 'e':
		side->endpoints = 1;
		break;
	case 'd':
		side->talk.device = arg;
		break;
	case KEY_SPIN:
		side->spin = 1;
		break;
	case KEY_ROW:
		side->row = 1;
		break;
	case KEY_OP:
		side->plan.op = operation(state, arg);
		break;
	case KEY_LAT:
		side->plan.phases |= PHASE_LATENCY;
		break;
	case KEY_BW:
		side->plan.phases |= PHASE_BANDWIDTH;
		break;
	case 'h':
		argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
		break;
	case ARGP_KEY_ARG:
		if (state->arg_num)
			return ARGP_ERR_UNKNOWN;
		side->talk.host = arg;
		break;
	case ARGP_KEY_END:
		finish_options(state, side);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* --- the conversation --- */

static void put_status(struct side *side, __u32 status)
{
	__be32 wire = htobe32(status);

	talk_write(&side->talk, &wire, sizeof(wire));
}

/* Returns 0: the peer got so far; 1: it has not said so yet; -1 after a message. */
static int get_status(struct side *side, int waits)
{
	__be32 wire;
	int ret;

	if (side->peer_is_through)
		return 0;
	do {
		ret = talk_read(&side->talk, &wire, sizeof(wire), waits);
		if (ret)
			return ret;
	} while (be32toh(wire) == STATUS_BUSY);
	switch (be32toh(wire)) {
	case STATUS_OK:
		side->peer_is_through = 1;
		return 0;
	case STATUS_FAILED:
		return complain("%s: the other side failed; its output tells why", side->talk.name);
	default:
		return complain("%s: what it says is not for us", side->talk.name);
	}
}

/* This side reads all that the peer has said, so that the peer has room to say more. */
int peer_tell_busy(struct side *side)
{
	put_status(side, STATUS_BUSY);
	return get_status(side, 0) < 0 ? -1 : 0;
}

/* @ret is this side's result. Returns 0 if both sides got so far. */
static int agree(struct side *side, int ret)
{
	put_status(side, ret ? STATUS_FAILED : STATUS_OK);
	if (ret || get_status(side, 1))
		return -1;
	side->peer_is_through = 0;
	return 0;
}

/* From the order of bytes here to that of the network, or back. */
static void turn_words(struct hello *hello)
{
	__u32 *word = (__u32 *)hello, *end = (__u32 *)(hello + 1);

	for (; word < end; word++)
		*word = htobe32(*word);
}

static void put_plan(struct talk *talk, const struct plan *plan)
{
	struct hello hello = { .magic = HELLO_MAGIC, .version = HELLO_VERSION, .plan = *plan };

	turn_words(&hello);
	talk_write(talk, &hello, sizeof(hello));
}

static int plan_is_sane(const struct plan *plan)
{
	return (plan->op == IBCHAN_OP_SEND || plan->op == IBCHAN_OP_WRITE ||
		plan->op == IBCHAN_OP_READ) &&
	       plan->phases <= (PHASE_LATENCY | PHASE_BANDWIDTH) &&
	       plan->size <= MAX_SIZE && (plan->size || plan->op == IBCHAN_OP_SEND) &&
	       plan->iters >= 1 && plan->iters <= MAX_ITERS &&
	       plan->depth >= 1 && plan->depth <= MAX_DEPTH;
}

static int get_plan(struct talk *talk, struct plan *plan)
{
	struct hello hello;

	if (talk_read(talk, &hello, sizeof(hello), 1))
		return -1;
	turn_words(&hello);
	if (hello.magic != HELLO_MAGIC)
		return complain("%s: not an ibchan pingpong", talk->name);
	if (hello.version != HELLO_VERSION)
		return complain("%s: pingpong version: ours %u, theirs %u", talk->name,
				HELLO_VERSION, hello.version);
	if (!plan_is_sane(&hello.plan))
		return complain("%s: asks for something impossible", talk->name);
	*plan = hello.plan;
	return 0;
}

/* --- the figures --- */

/* The sum of the measurements. */
struct figures {
	unsigned long long messages;	/* that carried data, both ways */
	unsigned long long bytes;	/* in them */
	unsigned long long min_ns;	/* latency, the best round */
	unsigned long long median_ns;	/* latency, half the rounds were better */
	unsigned long long p99_ns;	/* latency, 99 of 100 rounds were no worse */
	unsigned long long bytes_per_s;	/* streamed */
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

static void report_path(const struct side *side)
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

static void report_result(const struct side *side)
{
	const struct figures sum = sum_up(side);
	const char *op = ibchan_opcode_name(side->plan.op);

	if (side->row) {
		printf("%s\t%u\t%llu\t%llu\t%llu\t%llu\t%llu\t%llu\t%s\tverified\n", op,
		       side->plan.size, sum.messages, sum.bytes, sum.min_ns, sum.median_ns,
		       sum.p99_ns, sum.bytes_per_s, way(side));
		return;
	}
	printf("%-10s %s, %u bytes\n", "message", op, side->plan.size);
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

/* --- from the first word to the last --- */

/* A region that does not hold all slots would only fail later. */
static int read_offer(struct side *side, const struct offer *theirs)
{
	const __u64 needed = side->plan.op == IBCHAN_OP_SEND ? 0 :
			     (__u64)side->stride * side->plan.depth;
	struct ibchan_error error;

	if (side->endpoints && ibchan_endpoint_from_bytes(&side->peer, theirs->endpoint,
							  sizeof(theirs->endpoint), &error))
		return complain_error(side->talk.name, &error);
	if (ibchan_remote_region_from_bytes(&side->remote, theirs->region,
					    sizeof(theirs->region)) ||
	    side->remote.length < needed)
		return complain("%s: its remote region is of no use", side->talk.name);
	return 0;
}

static int connect_sides(struct side *side)
{
	struct offer offer = { .port = 0 };
	int ret = side_offer(side, &offer);

	if (ret)
		return agree(side, ret);
	talk_write(&side->talk, &offer, sizeof(offer));
	if (talk_read(&side->talk, &offer, sizeof(offer), 1))
		return -1;
	ret = read_offer(side, &offer);
	return agree(side, ret ? ret : side_connect(side, &offer));
}

static int run_phase(struct side *side, __u32 phase)
{
	if (!(side->plan.phases & phase))
		return 0;
	if (agree(side, traffic_arm(side, phase)) || agree(side, traffic_run(side)))
		return -1;
	return agree(side, traffic_verify(side));
}

static int run(struct side *side)
{
	side->latency_ns = calloc(side->plan.iters, sizeof(__u64));
	if (!side->latency_ns)
		return complain("no memory for %u rounds", side->plan.iters);
	if (agree(side, side_open(side)) || connect_sides(side))
		return -1;
	if (!side->row)
		report_path(side);
	if (run_phase(side, PHASE_LATENCY) || run_phase(side, PHASE_BANDWIDTH))
		return -1;
	if (side->talk.host)
		report_result(side);
	if (!side->row)
		puts("verified");
	return 0;
}

static int meet(struct side *side)
{
	struct talk *talk = &side->talk;

	if (!talk->host && !side->row) {
		printf("waiting for a client on %s %s\n", side->endpoints ? "TCP port" : "port",
		       talk->port);
		fflush(stdout);
	}
	if (side->endpoints ? talk_by_tcp(talk) : side_find_source(side) || talk_by_address(talk))
		return -1;
	if (!talk->host)
		return get_plan(talk, &side->plan);
	put_plan(talk, &side->plan);
	return 0;
}

static const char doc[] =
	"Measure a channel between two processes, and check the data.\n"
	"Start the server without HOST, then the client with the server's HOST,\n"
	"which is an IP address of one of its RDMA devices, or a name of one.\n"
	"\vLatency is half the time there and back for send and write, the whole\n"
	"time of one read for read. For write, each side watches its memory for\n"
	"the other's write.";

int pingpong_main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "[HOST]",
		.doc = doc,
	};
	struct side side = {
		.plan = { .op = IBCHAN_OP_SEND, .size = DEFAULT_SIZE, .iters = DEFAULT_ITERS },
		.gid_index = IBCHAN_AUTO,
		.ack_timeout = IBCHAN_AUTO,
		.talk = { .port = DEFAULT_PORT, .timeout_s = DEFAULT_TIMEOUT, .fd = -1 },
	};
	int failed;

	argp_err_exit_status = EXIT_USAGE;
	argv[0] = "ibchan pingpong";
	if (argp_parse(&argp, argc, argv, 0, NULL, &side))
		return EXIT_USAGE;
	failed = open_context(&side.context) || meet(&side) || run(&side);
	talk_end(&side.talk);
	side_close(&side);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
