/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Chance that can be had again, what it makes of a command, and which answers are right then.
 */
#ifndef TEST_DICE_H
#define TEST_DICE_H

#include <stdbool.h>
#include <stddef.h>

#include <linux/types.h>

struct dice {
	__u64 state;
};

__u32 roll(struct dice *dice);

/* A number that lies at some border. */
__u64 interesting(struct dice *dice);

/* Changes up to four members of @bytes, or all of it but the first 8. */
void spoil(struct dice *dice, void *bytes, size_t size);

/* Is @rc 0, or an errno of the contract's list? */
bool is_documented(int rc);

#endif /* TEST_DICE_H */
