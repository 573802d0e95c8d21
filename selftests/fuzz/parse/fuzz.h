/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the fuzzers of parsing code have in common; libFuzzer calls the first two.
 */
#ifndef PARSE_FUZZ_H
#define PARSE_FUZZ_H

#include <stdio.h>
#include <stdlib.h>

#include <linux/types.h>

#define MAX_SEED	256

int fuzz_one(const __u8 *data, size_t size) __asm__("LLVMFuzzerTestOneInput");
int fuzz_begin(int *argc, char ***argv) __asm__("LLVMFuzzerInitialize");

/* Fills @data with the nth input, at most MAX_SEED bytes; its length, or 0 behind the last. */
unsigned int fuzz_seed(unsigned int nr, __u8 *data);

/* The abort makes libFuzzer keep the input. */
static inline void must(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "this does not hold: %s\n", what);
	abort();
}

#endif /* PARSE_FUZZ_H */
