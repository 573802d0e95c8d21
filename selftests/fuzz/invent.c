// SPDX-License-Identifier: GPL-2.0-only
/*
 * How programs come about: out of nothing, or out of those that are known to lead somewhere.
 */
#include <string.h>

#include "program.h"

static bool one_in(struct dice *dice, unsigned int n)
{
	return roll(dice) % n == 0;
}

static __u64 some_number(struct dice *dice, __u64 limit)
{
	switch (roll(dice) % 8) {
	case 0:
		return interesting(dice);
	case 1:
		return limit;
	case 2:
		return limit + 1;
	case 3:
		return limit - 1;
	case 4:
		return roll(dice);
	default:
		return roll(dice) % (limit + 1 ? limit + 1 : ~0U);
	}
}

static void set(struct patch *patch, unsigned int kind, __u64 value)
{
	patch->kind = kind;
	patch->value = value;
}

static void some_handle(struct dice *dice, struct patch *patch)
{
	switch (roll(dice) % 8) {
	case 0:
		set(patch, VALUE_NUMBER, some_number(dice, 64));
		break;
	case 1:
	case 2:
		set(patch, VALUE_RECENT, roll(dice) % 16);
		break;
	case 3:
	case 4:
		set(patch, VALUE_RESULT, roll(dice) % MAX_STEPS);
		break;
	default:
		set(patch, VALUE_HANDLE, roll(dice) % 32);
	}
}

/* Where a pointer belongs an offset may do as well: elements have either. */
static void some_pointer(struct dice *dice, struct patch *patch, __u64 limit)
{
	__u64 upper = one_in(dice, 3) ? some_number(dice, 4096) : 0;

	if (one_in(dice, limit ? 2 : 8))
		set(patch, VALUE_NUMBER, some_number(dice, limit));
	else
		set(patch, VALUE_POINTER, upper << 4 | roll(dice) % 16);
}

/* What is right for the kind of member. */
static void fitting(struct dice *dice, const struct field *field, struct patch *patch)
{
	switch (field->kind) {
	case FIELD_HANDLE:
	case FIELD_NEW_HANDLE:
		some_handle(dice, patch);
		break;
	case FIELD_POINTER:
		some_pointer(dice, patch, field->limit);
		break;
	case FIELD_FD:
	case FIELD_NEW_FD:
		set(patch, VALUE_FD, roll(dice) % 16);
		break;
	case FIELD_KEY:
		set(patch, VALUE_KEY, roll(dice) % 4);
		break;
	case FIELD_FLAGS:
		set(patch, VALUE_NUMBER, roll(dice) & field->limit);
		break;
	case FIELD_BYTES:
		patch->offset += roll(dice) % field->size;
		patch->width = 1;
		set(patch, VALUE_NUMBER, roll(dice) & 0xff);
		break;
	case FIELD_TIME_NS:
		set(patch, VALUE_NUMBER,
		    one_in(dice, 64) ? ~0ULL : some_number(dice, field->limit));
		break;
	default:
		set(patch, VALUE_NUMBER, some_number(dice, field->limit));
	}
}

static unsigned int count(const struct field *fields)
{
	unsigned int n = 0;

	while (fields[n].name)
		n++;
	return n;
}

static const struct field *some_field(struct dice *dice, unsigned int action)
{
	const struct field *own = action_fields(action);
	const struct field *common = common_fields();
	unsigned int num = count(own);

	/* The work requests are for submit only; what comes before them is for all. */
	if (action == EXAMPLE_SUBMIT && one_in(dice, 2))
		return &common[roll(dice) % count(common)];
	if (!num || one_in(dice, 12))
		return &common[roll(dice) % 5];
	return &own[roll(dice) % num];
}

/* Anywhere in the struct and a little behind it. */
static void anywhere(struct dice *dice, unsigned int action, struct patch *patch)
{
	size_t size = action < NUM_EXAMPLES ? examples[action].size + 16 : sizeof(struct deed);

	patch->width = 1U << roll(dice) % 4;
	patch->offset = roll(dice) % size / patch->width * patch->width;
	set(patch, VALUE_NUMBER, interesting(dice));
}

static void some_patch(struct dice *dice, unsigned int action, struct patch *patch)
{
	const struct field *field = some_field(dice, action);

	if (one_in(dice, 16)) {
		anywhere(dice, action, patch);
		return;
	}
	patch->offset = field->offset;
	patch->width = field->size;
	if (patch->width > 8 || field->kind == FIELD_BYTES) {
		patch->width = 1;
		patch->offset += roll(dice) % field->size;
		set(patch, VALUE_NUMBER, roll(dice) & 0xff);
	} else if (one_in(dice, 8)) {
		set(patch, VALUE_FLIP, 1ULL << roll(dice) % (8 * patch->width));
	} else {
		fitting(dice, field, patch);
	}
}

static void add_patch(struct dice *dice, struct step *step)
{
	unsigned int place = step->num_patches;

	if (place == MAX_PATCHES)
		place = roll(dice) % MAX_PATCHES;
	else
		step->num_patches++;
	some_patch(dice, step->action, &step->patches[place]);
}

static void some_step(struct dice *dice, struct step *step)
{
	unsigned int patches = roll(dice) % 4;

	memset(step, 0, sizeof(*step));
	step->action = roll(dice) % NUM_ACTIONS;
	/* What the others prepare. */
	if (one_in(dice, 6))
		step->action = EXAMPLE_SUBMIT;
	if (step->action == NUM_EXAMPLES && !patches)
		patches = 2;
	while (patches--)
		add_patch(dice, step);
}

static void insert_step(struct dice *dice, struct program *program, const struct step *step)
{
	unsigned int place = roll(dice) % (program->num_steps + 1);

	if (program->num_steps == MAX_STEPS)
		return;
	memmove(&program->steps[place + 1], &program->steps[place],
		(program->num_steps - place) * sizeof(*step));
	program->steps[place] = *step;
	program->num_steps++;
}

static void remove_step(struct dice *dice, struct program *program)
{
	unsigned int place = roll(dice) % program->num_steps;

	if (program->num_steps == 1)
		return;
	program->num_steps--;
	memmove(&program->steps[place], &program->steps[place + 1],
		(program->num_steps - place) * sizeof(program->steps[0]));
}

static const struct program *some_known(struct dice *dice, const struct library *known)
{
	return &known->programs[roll(dice) % known->num];
}

static void change(struct dice *dice, struct program *program, const struct library *known)
{
	struct step *step = &program->steps[roll(dice) % program->num_steps];
	const struct program *other = some_known(dice, known);
	struct step fresh;

	switch (roll(dice) % 8) {
	case 0:
		some_step(dice, &fresh);
		insert_step(dice, program, &fresh);
		break;
	case 1:
		remove_step(dice, program);
		break;
	case 2:
		insert_step(dice, program, &other->steps[roll(dice) % other->num_steps]);
		break;
	case 3:
		if (step->num_patches)
			step->num_patches--;
		break;
	default:
		add_patch(dice, step);
	}
}

void program_invent(struct program *program, struct dice *dice, const struct library *known)
{
	unsigned int n = 1 + roll(dice) % 4;

	if (known->num && !one_in(dice, 8)) {
		*program = *some_known(dice, known);
		while (n--)
			change(dice, program, known);
		return;
	}
	program->num_steps = 0;
	while (n--)
		some_step(dice, &program->steps[program->num_steps++]);
}
