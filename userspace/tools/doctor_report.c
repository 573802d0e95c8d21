// SPDX-License-Identifier: LGPL-2.1-or-later
/* ibchan doctor: the report, as text or JSON. */
#include <err.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
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

/* --- entries --- */

/* Ends @text at its first newline. Returns the rest. */
static char *cut(char *text)
{
	size_t length = strcspn(text, "\n");
	char *rest = text + length + (text[length] ? 1 : 0);

	text[length] = '\0';
	return rest;
}

__printf(4, 0)
static struct entry *entry_add(struct doctor *doctor, const char *check, const char *subject,
			       const char *format, va_list args)
{
	struct entry *entry = calloc(1, sizeof(*entry));

	if (!entry)
		errx(EX_OSERR, "doctor: out of memory");
	entry->check = check;
	snprintf(entry->subject, sizeof(entry->subject), "%s", subject);
	vsnprintf(entry->fact, sizeof(entry->fact), format, args);
	entry->cause = cut(entry->fact);
	entry->step = cut(entry->cause);
	if (doctor->last)
		doctor->last->next = entry;
	else
		doctor->first = entry;
	doctor->last = entry;
	return entry;
}

void doctor_fact(struct doctor *doctor, const char *check, const char *subject,
		 const char *format, ...)
{
	va_list args;

	va_start(args, format);
	entry_add(doctor, check, subject, format, args);
	va_end(args);
}

bool doctor_find(struct doctor *doctor, enum finding_id id, enum severity severity,
		 const char *subject, const char *format, ...)
{
	struct entry *entry;
	va_list args;

	va_start(args, format);
	entry = entry_add(doctor, findings[id].check, subject, format, args);
	va_end(args);
	entry->name = findings[id].name;
	entry->severity = severity;
	return false;
}

/* --- as text --- */

static void print_entry(const struct entry *entry)
{
	if (!entry->name) {
		printf("ok       %-10s %s: %s\n", entry->check, entry->subject, entry->fact);
		return;
	}
	printf("%-8s %s: %s\n", severity_names[entry->severity], entry->name, entry->subject);
	printf("         fact   %s\n", entry->fact);
	printf("         cause  %s\n", entry->cause);
	printf("         next   %s\n", entry->step);
}

void doctor_print(struct doctor *doctor)
{
	struct entry *entry = doctor->printed ? doctor->printed->next : doctor->first;

	if (doctor->json)
		return;
	for (; entry; entry = entry->next) {
		print_entry(entry);
		doctor->printed = entry;
	}
	fflush(stdout);
}

static unsigned int count(const struct doctor *doctor, enum severity severity)
{
	const struct entry *entry;
	unsigned int n = 0;

	for (entry = doctor->first; entry; entry = entry->next)
		n += entry->severity == severity;
	return n;
}

static void print_sum(unsigned int errors, unsigned int warnings)
{
	if (!errors && !warnings)
		puts("nothing is wrong");
	else
		printf("%u error%s, %u warning%s\n", errors, errors == 1 ? "" : "s", warnings,
		       warnings == 1 ? "" : "s");
}

/* --- as JSON --- */

/* The doctor's own texts are UTF-8; names and texts from elsewhere may not be. */
static json_t *text(const char *string)
{
	json_t *json = json_string(string);

	return json ? json : json_string("?");
}

static json_t *entry_json(const struct entry *entry)
{
	json_t *json = json_pack("{s:s, s:o, s:o}", "check", entry->check, "subject",
				 text(entry->subject), "fact", text(entry->fact));

	if (!json || !entry->name)
		return json;
	json_object_set_new(json, "id", json_string(entry->name));
	json_object_set_new(json, "severity", json_string(severity_names[entry->severity]));
	json_object_set_new(json, "cause", text(entry->cause));
	json_object_set_new(json, "next", text(entry->step));
	return json;
}

static void print_json(const struct doctor *doctor, enum severity worst, const char *peer)
{
	json_t *facts = json_array();
	json_t *wrong = json_array();
	const struct entry *entry;
	json_t *all;

	for (entry = doctor->first; entry; entry = entry->next)
		json_array_append_new(entry->name ? wrong : facts, entry_json(entry));
	all = json_pack("{s:i, s:o, s:s, s:i, s:o, s:o}", "version", 1, "peer",
			peer ? text(peer) : json_null(), "severity", severity_names[worst],
			"exit_code", (int)worst, "findings", wrong, "facts", facts);
	if (!all || json_dumpf(all, stdout, JSON_INDENT(2)))
		errx(EX_OSERR, "doctor: the report could not be written");
	putchar('\n');
	json_decref(all);
}

enum severity doctor_conclude(struct doctor *doctor, const char *peer)
{
	unsigned int warnings = count(doctor, SEVERITY_WARNING);
	unsigned int errors = count(doctor, SEVERITY_ERROR);
	enum severity worst = errors ? SEVERITY_ERROR :
			      warnings ? SEVERITY_WARNING : SEVERITY_OK;
	struct entry *entry;

	if (doctor->json) {
		print_json(doctor, worst, peer);
	} else {
		doctor_print(doctor);
		print_sum(errors, warnings);
	}
	while ((entry = doctor->first)) {
		doctor->first = entry->next;
		free(entry);
	}
	return worst;
}
