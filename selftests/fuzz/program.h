/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the fuzzer runs. A program is a few steps; a step is an example of a command with some
 * of its bytes changed by patches, or one of the fuzzer's own deeds (see deeds.h). A step does
 * one thing: its execution is what is counted.
 */
#ifndef FUZZ_PROGRAM_H
#define FUZZ_PROGRAM_H

#include "deeds.h"
#include "dice.h"
#include "example.h"

#define MAX_STEPS	8
#define MAX_PATCHES	6
#define MAX_WRS		4
#define MAX_SGES	(IBCHAN_MAX_SGE + 1)

/* What the patches change: all that a step hands to the kernel. */
struct room {
	union {
		__u8 bytes[EXAMPLE_ROOM];
		struct deed deed;
	};
	__u64 arg;		/* address that the ioctl gets */
	__u32 number;		/* of the ioctl */
	__s32 fd;
	struct ibchan_submit_wr wrs[MAX_WRS];
	struct ibchan_submit_sge sges[MAX_SGES];
};

/* How a value is to be understood; what it stands for differs from scene to scene. */
enum value_kind {
	VALUE_NUMBER,
	VALUE_FLIP,	/* bits to turn over */
	VALUE_HANDLE,	/* nth object that the scene begins with */
	VALUE_RESULT,	/* what the program's nth step has made */
	VALUE_RECENT,	/* what somebody made of late */
	VALUE_POINTER,	/* nth place in memory, plus the value's upper bits */
	VALUE_KEY,	/* for remote access to the nth region */
	VALUE_FD,	/* nth descriptor */
	NUM_VALUE_KINDS
};

struct patch {
	__u16 offset;	/* within struct room */
	__u8 width;	/* 1, 2, 4 or 8 bytes */
	__u8 kind;	/* enum value_kind */
	__u64 value;
};

struct step {
	__u32 action;	/* enum example_index; NUM_EXAMPLES: a deed */
	__u32 num_patches;
	struct patch patches[MAX_PATCHES];
};

#define NUM_ACTIONS	(NUM_EXAMPLES + 1)

struct program {
	__u32 num_steps;
	struct step steps[MAX_STEPS];
};

/* What a member of a command is, and so what is worth putting there. */
enum field_kind {
	FIELD_NUMBER,	/* 0 to @limit is the usual range */
	FIELD_FLAGS,	/* @limit has the known ones */
	FIELD_HANDLE,
	FIELD_POINTER,
	FIELD_FD,
	FIELD_KEY,
	FIELD_BYTES,	/* each of them may be anything */
	FIELD_TIME_NS,	/* of a wait in the call */
	FIELD_TIME_MS,
	FIELD_NEW_HANDLE,	/* the answer has an object's handle there */
	FIELD_NEW_FD,
	FIELD_REASON,
};

struct field {
	const char *name;
	__u16 offset;
	__u16 size;
	__u32 kind;
	__u64 limit;
};

const char *action_name(unsigned int action);
/* Those of the action's own struct; they end with one that has no name. */
const struct field *action_fields(unsigned int action);
/* Those that each step has around it: the call, the work requests. */
const struct field *common_fields(void);
/* The one of a kind, or NULL. */
const struct field *action_field(unsigned int action, unsigned int kind);

/* A program as one line: "name member=value...; name..." */
struct text {
	char *at;
	size_t left;
};

void program_print(const struct program *program, struct text *text);
/* 0, or -EINVAL after a line that says what is wrong. @line is changed. */
int program_parse(struct program *program, char *line);

struct library {
	const struct program *programs;
	unsigned int num;
};

/* A new program, now and then out of one or two of @known. */
void program_invent(struct program *program, struct dice *dice, const struct library *known);

#endif /* FUZZ_PROGRAM_H */
