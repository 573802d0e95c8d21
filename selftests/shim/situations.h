/* SPDX-License-Identifier: GPL-2.0-only */
/* Situations of a program that uses libibchan, and what it is told in each. */
#ifndef TEST_SHIM_SITUATIONS_H
#define TEST_SHIM_SITUATIONS_H

#include <limits.h>

#include "end.h"

/* Two ends of devices with a cable between them, connected where that is said. */
struct scene {
	struct ibchan_context *context;
	struct end a;
	struct end b;
	struct ibchan_endpoint of_b;
};

/* Which one depends on the device, or on the machine; the text does not. */
#define ANY	INT_MIN

/**
 * struct row - a situation, and what is said of it
 * @name: of the function
 * @bring_about: what a program does; returns the code of the call that fails
 * @code: that code, or ANY
 * @text: of the error, with wildcards as in the names of files
 * @hint: the same for its hint
 */
struct row {
	const char *name;
	int (*bring_about)(struct scene *scene, struct ibchan_error *error);
	int code;
	const char *text;
	const char *hint;
};

extern const struct row rows[];
extern const unsigned int num_rows;

#endif /* TEST_SHIM_SITUATIONS_H */
