// SPDX-License-Identifier: LGPL-2.1-or-later
/* ibchan doctor: options, and the order of the checks. */
#include <argp.h>
#include <err.h>
#include <stdlib.h>
#include <sysexits.h>

#include "doctor.h"

#define DEFAULT_TIMEOUT	5
#define MAX_TIMEOUT	600
#define MAX_ROUNDS	1000000

/* The command line. */
struct arguments {
	struct peer peer;	/* its name is NULL: look at this side only */
	const char *device;	/* NULL: all */
	bool json;		/* instead of text */
	bool serve;		/* be the peer of others */
};

enum long_key {
	KEY_JSON = 0x100,
	KEY_SERVE,
	KEY_TIMEOUT,
};

static const struct argp_option options[] = {
	{ "ib-dev", 'd', "NAME", 0, "look at this device only", 0 },
	{ "port", 'p', "PORT", 0, "name or number (default " DOCTOR_PORT ")", 0 },
	{ "source", 'S', "ADDRESS", 0,
	  "address of this host to connect from (default: as the route says)", 0 },
	{ "rounds", 'n', "N", 0, "send messages of each size so often (default 1)", 0 },
	{ "timeout", KEY_TIMEOUT, "SECONDS", 0, "for each wait, 1 to 600 (default 5)", 0 },
	{ "serve", KEY_SERVE, NULL, 0, "be the peer of any number of doctors", 0 },
	{ "json", KEY_JSON, NULL, 0, "one JSON object instead of text", 0 },
	{ "help", 'h', NULL, 0, "give this help list", -1 },
	{ 0 }
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *args = state->input;
	struct peer *peer = &args->peer;

	switch (key) {
	case 'd':
		args->device = arg;
		break;
	case 'p':
		peer->port = port_option(state, arg);
		break;
	case 'S':
		peer->source = arg;
		break;
	case 'n':
		peer->rounds = number_option(state, arg, 10, 1, MAX_ROUNDS);
		break;
	case KEY_TIMEOUT:
		peer->timeout_s = number_option(state, arg, 10, 1, MAX_TIMEOUT);
		break;
	case KEY_JSON:
		args->json = true;
		break;
	case KEY_SERVE:
		args->serve = true;
		break;
	case 'h':
		argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
		break;
	case ARGP_KEY_ARG:
		if (state->arg_num)
			return ARGP_ERR_UNKNOWN;
		peer->name = arg;
		break;
	case ARGP_KEY_END:
		if (args->serve && (peer->name || args->json || args->device || peer->source))
			argp_error(state, "--serve goes with --port only");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const char doc[] =
	"Find out what is wrong on the way to a working channel, on this machine and to PEER.\n"
	"On PEER, run ibchan doctor --serve.\n"
	"\vExits with 0: nothing is wrong; 1: warnings; 2: errors; 64: wrong usage.";

int doctor_main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "[PEER]",
		.doc = doc,
	};
	struct arguments args = {
		.peer = { .port = DOCTOR_PORT, .rounds = 1, .timeout_s = DEFAULT_TIMEOUT },
	};
	struct doctor *doctor;
	bool ready;

	argp_err_exit_status = EX_USAGE;
	argv[0] = "ibchan doctor";
	if (argp_parse(&argp, argc, argv, 0, NULL, &args))
		return EX_USAGE;
	if (args.serve)
		return doctor_serve(args.peer.port) ? SEVERITY_ERROR : SEVERITY_OK;
	doctor = calloc(1, sizeof(*doctor));
	if (!doctor)
		errx(EX_OSERR, "doctor: out of memory");
	doctor->only = args.device;
	if (args.json)
		report_as_json();
	ready = check_module(doctor) && check_node(doctor);
	doctor_scan(doctor);
	ready &= check_memlock();
	check_devices(doctor);
	check_ports(doctor);
	if (ready && args.peer.name)
		check_peer(doctor, &args.peer);
	ibchan_context_close(doctor->context);
	while (doctor->device_count)
		free(doctor->devices[--doctor->device_count]);
	free(doctor);
	return (int)report_conclude(args.peer.name);
}
