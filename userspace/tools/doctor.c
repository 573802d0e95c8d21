// SPDX-License-Identifier: LGPL-2.1-or-later
/* ibchan doctor: options, the order of the checks, and the report, as text or JSON. */
#include <argp.h>
#include <err.h>
#include <jansson.h>
#include <stdarg.h>
#include <sysexits.h>

#include "doctor.h"

#define DEFAULT_TIMEOUT	5
#define MAX_TIMEOUT	600
#define MAX_ROUNDS	1000000

/* --- the report --- */

static const char * const severity_names[] = {
	[SEVERITY_OK] = "ok", [SEVERITY_WARNING] = "warning", [SEVERITY_ERROR] = "error",
};

static unsigned int counts[ARRAY_SIZE(severity_names)];

/* All that was said; NULL: it is printed at once, as text. */
static json_t *facts;
static json_t *findings;

const char *words(const char *format, ...)
{
	static char room[64 << 10];
	static size_t used;
	char *text = room + used;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(room) - used, format, args);
	va_end(args);
	/* The last byte is kept, as an empty text. */
	used += strlen(text);
	used += used + 1 < sizeof(room);
	return text;
}

/* The doctor's own texts are UTF-8; names and texts from elsewhere may not be. */
static json_t *json_text(const char *string)
{
	return json_string(string) ?: json_string("?");
}

/* Ends @text at its first newline. Returns the rest. */
static char *cut(char *text)
{
	char *end = strchrnul(text, '\n');
	char *rest = *end ? end + 1 : end;

	*end = '\0';
	return rest;
}

bool doctor_say(enum severity severity, const char *check, const char *id, const char *subject,
		const char *format, ...)
{
	const char *level = severity_names[severity];
	char fact[1536], *cause, *next;
	va_list args;

	va_start(args, format);
	vsnprintf(fact, sizeof(fact), format, args);
	va_end(args);
	cause = cut(fact);
	next = cut(cause);
	counts[severity]++;
	if (facts)
		json_array_append_new(id ? findings : facts,
				      json_pack("{s:s, s:o, s:o, s:s*, s:s*, s:o*, s:o*}",
						"check", check, "subject", json_text(subject),
						"fact", json_text(fact), "id", id,
						"severity", id ? level : NULL,
						"cause", id ? json_text(cause) : NULL,
						"next", id ? json_text(next) : NULL));
	else if (id)
		printf("%-8s %s: %s\n"
		       "         fact   %s\n"
		       "         cause  %s\n"
		       "         next   %s\n", level, id, subject, fact, cause, next);
	else
		printf("%-8s %-10s %s: %s\n", level, check, subject, fact);
	return !id;
}

/* The sum, or all of it as JSON. Returns the worst severity. */
static enum severity conclude(const char *peer)
{
	const unsigned int errors = counts[SEVERITY_ERROR], warnings = counts[SEVERITY_WARNING];
	const enum severity worst = errors ? SEVERITY_ERROR :
				    warnings ? SEVERITY_WARNING : SEVERITY_OK;
	json_t *all;

	if (facts) {
		all = json_pack("{s:i, s:o?, s:s, s:i, s:o, s:o}", "version", 1,
				"peer", peer ? json_text(peer) : NULL,
				"severity", severity_names[worst], "exit_code", (int)worst,
				"findings", findings, "facts", facts);
		if (!all || json_dumpf(all, stdout, JSON_INDENT(2)))
			errx(EX_OSERR, "doctor: the report could not be written");
		putchar('\n');
		json_decref(all);
	} else if (worst == SEVERITY_OK) {
		puts("nothing is wrong");
	} else {
		printf("%u error%s, %u warning%s\n", errors, errors == 1 ? "" : "s", warnings,
		       warnings == 1 ? "" : "s");
	}
	return worst;
}

/* --- the command line --- */

enum long_key { KEY_JSON = 0x100, KEY_SERVE, KEY_TIMEOUT };

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

static bool serve;	/* be the peer of others */

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct doctor *doctor = state->input;
	struct peer *peer = &doctor->peer;

	if (key == 'd') {
		doctor->only = arg;
	} else if (key == 'p') {
		peer->port = port_option(state, arg);
	} else if (key == 'S') {
		peer->source = arg;
	} else if (key == 'n') {
		peer->rounds = number_option(state, arg, 10, 1, MAX_ROUNDS);
	} else if (key == KEY_TIMEOUT) {
		peer->timeout_s = number_option(state, arg, 10, 1, MAX_TIMEOUT);
	} else if (key == KEY_JSON) {
		facts = json_array();
		findings = json_array();
		if (!facts || !findings)
			errx(EX_OSERR, "no memory");
	} else if (key == KEY_SERVE) {
		serve = true;
	} else if (key == 'h') {
		argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
	} else if (key == ARGP_KEY_ARG && !state->arg_num) {
		peer->name = arg;
	} else if (key != ARGP_KEY_END) {
		return ARGP_ERR_UNKNOWN;
	} else if (serve && (peer->name || facts || doctor->only || peer->source)) {
		argp_error(state, "--serve goes with --port only");
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
		.options = options, .parser = parse, .args_doc = "[PEER]", .doc = doc,
	};
	static struct doctor doctor = {
		.peer = { .port = DOCTOR_PORT, .rounds = 1, .timeout_s = DEFAULT_TIMEOUT },
	};

	argp_err_exit_status = EX_USAGE;
	argv[0] = "ibchan doctor";
	if (argp_parse(&argp, argc, argv, 0, NULL, &doctor))
		return EX_USAGE;
	if (serve)
		return doctor_serve(doctor.peer.port) ? SEVERITY_ERROR : SEVERITY_OK;
	if (check_machine(&doctor) && doctor.peer.name && check_peer(&doctor))
		check_channel(&doctor);
	ibchan_context_close(doctor.context);
	return (int)conclude(doctor.peer.name);
}
