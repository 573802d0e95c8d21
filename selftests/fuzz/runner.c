// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "runner.h"
#include "work.h"

/*
 * An address of a room with a bit turned over must not be one of the fuzzer's own memory, nor
 * of the next room, the arena or a ring: all of these differ in more than one bit.
 */
#define ROOM_PLACE	(sizeof(void *) == 8 ? 0x103050000000ULL : 0x45500000ULL)
#define ROOM_STRIDE	(sizeof(void *) == 8 ? 0x330000000ULL : 0x330000ULL)
#define PAGE		4096

int runner_open(struct runner *runner, unsigned int n)
{
	void *place = (void *)(uintptr_t)(ROOM_PLACE + n * ROOM_STRIDE);
	char *pages = mmap(place, 3 * PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (pages == MAP_FAILED)
		return -errno;
	runner->room = (struct room *)(pages + PAGE);
	return 0;
}

static __u64 meaning(const struct runner *runner, const struct patch *patch, __u64 before)
{
	const struct scene *scene = runner->scene;

	switch (patch->kind) {
	case VALUE_FLIP:
		return before ^ patch->value;
	case VALUE_HANDLE:
		return scene_handle(scene, patch->value);
	case VALUE_RESULT:
		return runner->results[patch->value % MAX_STEPS];
	case VALUE_RECENT:
		return scene->recent[(scene->num_recent - patch->value) % SCENE_RECENT];
	case VALUE_POINTER:
		return scene_pointer(scene, patch->value);
	case VALUE_KEY:
		return scene_key(scene, patch->value);
	case VALUE_FD:
		return scene_fd(scene, patch->value);
	default:
		return patch->value;
	}
}

static void apply(struct runner *runner, const struct patch *patch)
{
	void *place = (char *)runner->room + patch->offset;
	__u64 value = 0;

	memcpy(&value, place, patch->width);
	value = meaning(runner, patch, value);
	memcpy(place, &value, patch->width);
}

/* A receive and three kinds of work for it, on the channel that is its own peer. */
static void fill_wrs(struct room *room, const struct scene *scene)
{
	static const __u8 opcodes[MAX_WRS] = {
		IBCHAN_OP_RECV, IBCHAN_OP_SEND, IBCHAN_OP_WRITE, IBCHAN_OP_READ,
	};
	const struct side *side = &scene->looped;
	unsigned int i;

	for (i = 0; i < MAX_WRS; i++)
		room->wrs[i] = work(side, opcodes[i], i, 4096 * i, 64);
	for (i = 0; i < MAX_SGES; i++)
		room->sges[i] = (struct ibchan_submit_sge) {
			.offset = 16384 + 128 * i, .length = 64, .mr = side->mr,
		};
	work_at(&room->wrs[2], side, 32768);
	work_at(&room->wrs[3], side, 36864);
	work_elements(&room->wrs[2], room->sges, 2);
}

static void fill_room(struct runner *runner, unsigned int action)
{
	const struct scene *scene = runner->scene;
	struct room *room = runner->room;

	memset(room, 0, sizeof(*room));
	if (action == NUM_EXAMPLES)
		return;
	memcpy(room->bytes, scene->templates[action], EXAMPLE_ROOM);
	room->arg = address(room->bytes);
	room->number = examples[action].number;
	room->fd = scene->objects.side.fd;
	if (action == EXAMPLE_SUBMIT) {
		struct ibchan_cmd_submit *cmd = (struct ibchan_cmd_submit *)room->bytes;

		fill_wrs(room, scene);
		cmd->entries = address(room->wrs);
		cmd->entry_num = 2;
	} else if (action == EXAMPLE_CHANNEL_HISTORY) {
		((struct ibchan_cmd_channel_history *)room->bytes)->entries =
			address(scene->arena);
	}
}

/*
 * A wait that nobody would end is the one thing that a command may rightly do for ever: one
 * without any limit is ended by a signal, others are short.
 */
static void bound_the_wait(struct room *room, unsigned int action)
{
	const struct field *field = action_field(action, FIELD_TIME_NS);
	__s64 ns;
	__u32 ms;

	if (field) {
		memcpy(&ns, room->bytes + field->offset, sizeof(ns));
		if (ns > (__s64)field->limit)
			ns %= field->limit;
		memcpy(room->bytes + field->offset, &ns, sizeof(ns));
	}
	field = action_field(action, FIELD_TIME_MS);
	if (field) {
		memcpy(&ms, room->bytes + field->offset, sizeof(ms));
		ms = 1 + ms % field->limit;
		memcpy(room->bytes + field->offset, &ms, sizeof(ms));
	}
}

static __u32 word_of(const struct room *room, unsigned int action, unsigned int kind)
{
	const struct field *field = action_field(action, kind);
	__u32 word = 0;

	if (field)
		memcpy(&word, room->bytes + field->offset, sizeof(word));
	return word;
}

/* Is the answer where the fuzzer can read it, and the one of that command? */
static bool is_ordinary(const struct room *room, unsigned int action)
{
	return action < NUM_EXAMPLES && room->arg == address(room->bytes) &&
	       room->number == examples[action].number;
}

static void keep(struct runner *runner, const struct step *step, unsigned int n)
{
	const struct room *room = runner->room;

	if (!is_ordinary(room, step->action))
		return;
	runner->results[n] = word_of(room, step->action, FIELD_NEW_HANDLE);
	if (runner->results[n])
		scene_made(runner->scene, runner->results[n]);
	if (action_field(step->action, FIELD_NEW_FD))
		scene_opened(runner->scene, word_of(room, step->action, FIELD_NEW_FD));
}

static int run_command(struct runner *runner, const struct step *step, unsigned int n)
{
	struct room *room = runner->room;
	int rc;

	bound_the_wait(room, step->action);
	arena_mirror(runner->scene, room->arg, room->bytes, sizeof(room->bytes));
	kcov_start(runner->kcov);
	rc = cmd_raw(room->fd, room->number, (void *)(uintptr_t)room->arg);
	if (!rc)
		keep(runner, step, n);
	return rc;
}

struct outcome runner_step(struct runner *runner, const struct program *program, unsigned int n)
{
	const struct step *step = &program->steps[n];
	struct outcome outcome;
	__u32 given, reason;
	unsigned int i;

	if (!n)
		memset(runner->results, 0, sizeof(runner->results));
	fill_room(runner, step->action);
	for (i = 0; i < step->num_patches; i++)
		apply(runner, &step->patches[i]);
	given = word_of(runner->room, step->action, FIELD_REASON);
	if (step->action == NUM_EXAMPLES) {
		kcov_start(runner->kcov);
		outcome.rc = deed_do(runner->scene, &runner->room->deed);
	} else {
		outcome.rc = run_command(runner, step, n);
	}
	outcome.fresh = kcov_stop(runner->kcov, runner->cover);
	reason = word_of(runner->room, step->action, FIELD_REASON);
	/* What is there unchanged is not the kernel's. */
	if (reason == given || !is_ordinary(runner->room, step->action))
		reason = 0;
	if (cover_answer(runner->cover, step->action, outcome.rc, reason))
		outcome.fresh = true;
	return outcome;
}
