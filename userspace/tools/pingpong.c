// SPDX-License-Identifier: LGPL-2.1-or-later
/* ibchan pingpong: the options, the course of a measurement, and the figures. */
#include <argp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pingpong.h"

#define DEFAULT_PORT	"18515"		/* as in ibv_rc_pingpong and perftest */
#define DEFAULT_DEPTH	16
#define DEFAULT_MEMORY	(4 << 20)	/* bytes of a buffer that depth aims at */

enum long_key { KEY_OP = 0x100, KEY_LAT, KEY_BW, KEY_ROW, KEY_SPIN, KEY_TIMEOUT };

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

/* Options that are a number, between what, or a flag; and the place of each in struct side. */
static const struct {
	int key;
	size_t place;
	__u32 lowest;	/* what a flag adds */
	__u32 highest;
} numbers[] = {
	{ 'e', offsetof(struct side, endpoints), 1, 0 },
	{ 'i', offsetof(struct side, ib_port), 1, 255 },
	{ 'g', offsetof(struct side, gid_index), 0, 65535 },
	{ 'm', offsetof(struct side, mtu), 256, 4096 },
	{ 'u', offsetof(struct side, ack_timeout), 0, 31 },
	{ KEY_TIMEOUT, offsetof(struct side, timeout_s), 0, 1000000 },
	{ KEY_SPIN, offsetof(struct side, spin), 1, 0 },
	{ KEY_ROW, offsetof(struct side, row), 1, 0 },
	{ 's', offsetof(struct side, plan.size), 0, MAX_SIZE },
	{ 'n', offsetof(struct side, plan.iters), 1, MAX_ITERS },
	{ 't', offsetof(struct side, plan.depth), 1, MAX_DEPTH },
	{ KEY_LAT, offsetof(struct side, plan.phases), PHASE_LATENCY, 0 },
	{ KEY_BW, offsetof(struct side, plan.phases), PHASE_BANDWIDTH, 0 },
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
	__u32 *place;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (numbers[i].key != key)
			continue;
		place = (__u32 *)((char *)side + numbers[i].place);
		if (arg)
			*place = number_option(state, arg, 0, numbers[i].lowest,
					       numbers[i].highest);
		else
			*place |= numbers[i].lowest;
		return 0;
	}
	if (key == 'p')
		side->port = port_option(state, arg);
	else if (key == 'd')
		side->wanted = arg;
	else if (key == KEY_OP)
		side->plan.op = operation(state, arg);
	else if (key == 'h')
		argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
	else if (key == ARGP_KEY_ARG && !state->arg_num)
		side->host = arg;
	else if (key == ARGP_KEY_END)
		finish_options(state, side);
	else
		return ARGP_ERR_UNKNOWN;
	return 0;
}

/* --- the figures --- */

static int compare(const void *a, const void *b)
{
	__u64 x = *(const __u64 *)a, y = *(const __u64 *)b;

	return (x > y) - (x < y);
}

static void report_path(const struct side *side)
{
	struct ibchan_channel_info info;
	char text[256];

	if (ibchan_channel_query(side->channel, &info, NULL))
		return;
	ibchan_channel_text(&info, text, sizeof(text));
	printf("%-10s by %s\n", "connected", side->endpoints ? "endpoints" : "address (rdma_cm)");
	printf("%-10s %s, mtu %u\n", "path", text, info.params.mtu);
}

static void report_result(const struct side *side)
{
	const struct plan *plan = &side->plan;
	const __u32 rounds = plan->phases & PHASE_LATENCY ? plan->iters : 0;
	const __u32 streamed = plan->phases & PHASE_BANDWIDTH ? plan->iters : 0;
	const double per_s = streamed ? streamed * 1e9 / (double)side->bandwidth_ns : 0;
	const char *op = ibchan_opcode_name(plan->op);
	unsigned long long messages, min, median, p99;
	__u64 *ns = side->latency_ns;

	if (rounds)
		qsort(ns, rounds, sizeof(*ns), compare);
	messages = (plan->op == IBCHAN_OP_READ ? 1ULL : 2ULL) * rounds + streamed;
	min = ns[0];
	median = ns[plan->iters / 2];
	p99 = ns[((__u64)plan->iters * 99 + 99) / 100 - 1];
	if (side->row) {
		printf("%s\t%u\t%llu\t%llu\t%llu\t%llu\t%llu\t%llu\t%s\tverified\n", op,
		       plan->size, messages, messages * plan->size, min, median, p99,
		       (unsigned long long)(per_s * plan->size),
		       side->endpoints ? "endpoints" : "address");
		return;
	}
	printf("%-10s %s, %u bytes\n", "message", op, plan->size);
	if (rounds)
		printf("%-10s min %.2f us, median %.2f us, p99 %.2f us (%u rounds)\n", "latency",
		       (double)min / 1e3, (double)median / 1e3, (double)p99 / 1e3, plan->iters);
	if (streamed)
		printf("%-10s %.2f MB/s, %.0f messages/s (%u messages, %u in flight)\n",
		       "bandwidth", per_s * plan->size / 1e6, per_s, plan->iters, plan->depth);
}

/* --- from the first word to the last --- */

static int run(struct side *side)
{
	if (open_context(&side->context))
		return -1;
	if (!side->host && !side->row)
		printf("waiting for a client on %s %s\n", side->endpoints ? "TCP port" : "port",
		       side->port);
	if (side_find_source(side) || talk_open(side) || agree(side, side_open(side)) ||
	    agree(side, side_connect(side)))
		return -1;
	if (!side->row)
		report_path(side);
	if (traffic_phase(side, PHASE_LATENCY) || traffic_phase(side, PHASE_BANDWIDTH))
		return -1;
	if (side->host)
		report_result(side);
	if (!side->row)
		puts("verified");
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
		.options = options, .parser = parse, .args_doc = "[HOST]", .doc = doc,
	};
	struct side side = {
		.plan = { .op = IBCHAN_OP_SEND, .size = 4096, .iters = 1000 },
		.port = DEFAULT_PORT, .gid_index = IBCHAN_AUTO, .ack_timeout = IBCHAN_AUTO,
		.timeout_s = 30, .tcp = -1,
	};
	int failed;

	argp_err_exit_status = EXIT_USAGE;
	argv[0] = "ibchan pingpong";
	if (argp_parse(&argp, argc, argv, 0, NULL, &side))
		return EXIT_USAGE;
	failed = run(&side);
	side_close(&side);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
