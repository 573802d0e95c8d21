// SPDX-License-Identifier: LGPL-2.1-or-later
/* ibchan doctor: the report, as text or JSON. */
#include <err.h>
#include <jansson.h>
#include <stdarg.h>
#include <string.h>
#include <sysexits.h>

#include "doctor.h"

#define DOCTOR_NAME(id, name, check)	{ name, check },
static const struct {
	const char *name;
	const char *check;
} findings[] = {
	DOCTOR_FINDINGS(DOCTOR_NAME)
};

static const char * const severity_names[] = {
	[SEVERITY_OK] = "ok",
	[SEVERITY_WARNING] = "warning",
	[SEVERITY_ERROR] = "error",
};

static unsigned int counts[ARRAY_SIZE(severity_names)];

/* Of all that was said; NULL: it is printed at once, as text. */
static json_t *facts_json;
static json_t *findings_json;

void report_as_json(void)
{
	facts_json = json_array();
	findings_json = json_array();
	if (!facts_json || !findings_json)
		errx(EX_OSERR, "no memory");
}

/* The doctor's own texts are UTF-8; names and texts from elsewhere may not be. */
static json_t *text(const char *string)
{
	json_t *json = json_string(string);

	return json ? json : json_string("?");
}

void doctor_fact(const char *check, const char *subject, const char *format, ...)
{
	char fact[TEXT_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(fact, sizeof(fact), format, args);
	va_end(args);
	if (facts_json) {
		json_array_append_new(facts_json, json_pack("{s:s, s:o, s:o}", "check", check,
							    "subject", text(subject),
							    "fact", text(fact)));
		return;
	}
	printf("ok       %-10s %s: %s\n", check, subject, fact);
	fflush(stdout);
}

/* Ends @text at its first newline. Returns the rest. */
static char *cut(char *text)
{
	size_t length = strcspn(text, "\n");
	char *rest = text + length + (text[length] ? 1 : 0);

	text[length] = '\0';
	return rest;
}

bool doctor_find(enum finding_id id, enum severity severity, const char *subject,
		 const char *format, ...)
{
	const char *name = findings[id].name, *level = severity_names[severity];
	char fact[3 * TEXT_SIZE];
	char *cause, *step;
	va_list args;

	va_start(args, format);
	vsnprintf(fact, sizeof(fact), format, args);
	va_end(args);
	cause = cut(fact);
	step = cut(cause);
	counts[severity]++;
	if (findings_json) {
		json_array_append_new(findings_json,
				      json_pack("{s:s, s:o, s:o, s:s, s:s, s:o, s:o}",
						"check", findings[id].check,
						"subject", text(subject), "fact", text(fact),
						"id", name, "severity", level,
						"cause", text(cause), "next", text(step)));
		return false;
	}
	printf("%-8s %s: %s\n", level, name, subject);
	printf("         fact   %s\n", fact);
	printf("         cause  %s\n", cause);
	printf("         next   %s\n", step);
	fflush(stdout);
	return false;
}

enum severity report_conclude(const char *peer)
{
	const unsigned int errors = counts[SEVERITY_ERROR], warnings = counts[SEVERITY_WARNING];
	const enum severity worst = errors ? SEVERITY_ERROR :
				    warnings ? SEVERITY_WARNING : SEVERITY_OK;
	json_t *all;

	if (!facts_json) {
		if (worst == SEVERITY_OK)
			puts("nothing is wrong");
		else
			printf("%u error%s, %u warning%s\n", errors, errors == 1 ? "" : "s",
			       warnings, warnings == 1 ? "" : "s");
		return worst;
	}
	all = json_pack("{s:i, s:o, s:s, s:i, s:o, s:o}", "version", 1, "peer",
			peer ? text(peer) : json_null(), "severity", severity_names[worst],
			"exit_code", (int)worst, "findings", findings_json, "facts", facts_json);
	if (!all || json_dumpf(all, stdout, JSON_INDENT(2)))
		errx(EX_OSERR, "doctor: the report could not be written");
	putchar('\n');
	json_decref(all);
	return worst;
}
