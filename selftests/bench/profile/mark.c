// SPDX-License-Identifier: GPL-2.0-only
/*
 * mark begin|end: run the instruction between two of which the profile counts (plugin.c), for
 * programs that do not have it themselves.
 */
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "begin")) {
		__asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0, 0x78, 0x56, 0x34, 0x12");
		return 0;
	}
	if (argc == 2 && !strcmp(argv[1], "end")) {
		__asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0, 0x79, 0x56, 0x34, 0x12");
		return 0;
	}
	fputs("usage: mark begin|end\n", stderr);
	return 2;
}
