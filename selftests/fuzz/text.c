// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs as text: "pd_alloc; mr_reg addr=*0x2 length=0x1388 pd=%0x0". A member without a
 * name is +offset:width. What a value begins with says how it is to be understood.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

static const char sigils[NUM_VALUE_KINDS] = {
	[VALUE_NUMBER] = '0',
	[VALUE_FLIP] = '^',
	[VALUE_HANDLE] = '@',
	[VALUE_RESULT] = '%',
	[VALUE_RECENT] = '~',
	[VALUE_POINTER] = '*',
	[VALUE_KEY] = '!',
	[VALUE_FD] = '&',
};

static void put(struct text *text, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text->at, text->left, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= text->left)
		n = text->left ? text->left - 1 : 0;
	text->at += n;
	text->left -= n;
}

static const struct field *field_at(const struct field *fields, const struct patch *patch)
{
	const struct field *field;

	for (field = fields; field->name; field++) {
		if (field->offset == patch->offset && field->size == patch->width)
			return field;
	}
	return NULL;
}

static void print_patch(const struct step *step, const struct patch *patch, struct text *text)
{
	const struct field *field = field_at(action_fields(step->action), patch);

	if (!field)
		field = field_at(common_fields(), patch);
	if (field)
		put(text, " %s=", field->name);
	else
		put(text, " +%u:%u=", patch->offset, patch->width);
	if (patch->kind != VALUE_NUMBER)
		put(text, "%c", sigils[patch->kind]);
	put(text, "0x%llx", (unsigned long long)patch->value);
}

void program_print(const struct program *program, struct text *text)
{
	unsigned int i, j;

	for (i = 0; i < program->num_steps; i++) {
		const struct step *step = &program->steps[i];

		put(text, "%s%s", i ? "; " : "", action_name(step->action));
		for (j = 0; j < step->num_patches; j++)
			print_patch(step, &step->patches[j], text);
	}
}

static const struct field *field_named(const struct field *fields, const char *name)
{
	const struct field *field;

	for (field = fields; field->name; field++) {
		if (!strcmp(field->name, name))
			return field;
	}
	return NULL;
}

static int parse_place(const struct step *step, const char *name, struct patch *patch)
{
	const struct field *field = field_named(action_fields(step->action), name);
	unsigned int offset, width;

	if (!field)
		field = field_named(common_fields(), name);
	if (field) {
		patch->offset = field->offset;
		patch->width = field->size;
	} else if (sscanf(name, "+%u:%u", &offset, &width) == 2 && offset < sizeof(struct room)) {
		patch->offset = offset;
		patch->width = width;
	} else {
		return -EINVAL;
	}
	return patch->width <= 8 && patch->offset + patch->width <= sizeof(struct room) ?
	       0 : -EINVAL;
}

static int parse_value(const char *value, struct patch *patch)
{
	const char *sigil = memchr(sigils, value[0], sizeof(sigils));
	char *end;

	if (!sigil)
		return -EINVAL;
	patch->kind = sigil - sigils;
	patch->value = strtoull(value + (patch->kind != VALUE_NUMBER), &end, 0);
	return *end ? -EINVAL : 0;
}

static int parse_patch(struct step *step, char *word)
{
	struct patch *patch = &step->patches[step->num_patches];
	char *value = strchr(word, '=');

	if (!value || step->num_patches == MAX_PATCHES)
		return -EINVAL;
	*value++ = '\0';
	if (parse_place(step, word, patch) || parse_value(value, patch))
		return -EINVAL;
	step->num_patches++;
	return 0;
}

static int parse_action(struct step *step, const char *name)
{
	for (step->action = 0; step->action < NUM_ACTIONS; step->action++) {
		if (name && !strcmp(action_name(step->action), name))
			return 0;
	}
	return -EINVAL;
}

static const char blanks[] = "\n\t ";

static int parse_step(struct step *step, char *text)
{
	char *save, *word = strtok_r(text, blanks, &save);

	memset(step, 0, sizeof(*step));
	if (parse_action(step, word))
		goto bad;
	for (word = strtok_r(NULL, blanks, &save); word; word = strtok_r(NULL, blanks, &save)) {
		if (parse_patch(step, word))
			goto bad;
	}
	return 0;
bad:
	fprintf(stderr, "# not understood: %s\n", word ? word : "nothing");
	return -EINVAL;
}

int program_parse(struct program *program, char *line)
{
	char *save, *text;

	program->num_steps = 0;
	for (text = strtok_r(line, ";", &save); text; text = strtok_r(NULL, ";", &save)) {
		if (program->num_steps == MAX_STEPS ||
		    parse_step(&program->steps[program->num_steps], text))
			return -EINVAL;
		program->num_steps++;
	}
	return program->num_steps ? 0 : -EINVAL;
}
