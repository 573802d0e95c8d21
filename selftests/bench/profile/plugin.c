// SPDX-License-Identifier: GPL-2.0-only
/*
 * A plugin of QEMU's: counts how often each instruction of the guest runs between two that
 * mean nothing else (operate/measure.c has them), and writes the counts to a file, one for
 * each such stretch: FILE.0, FILE.1 and so on, with lines of an address and a number.
 *
 *	-plugin plugin.so,out=FILE
 *
 * There is no package with the interface's header, so what is used of it is in plugin.h.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

#define EXPORT		__attribute__((visibility("default")))
#define API_VERSION	1

/* Addresses that may ever run; a power of two. */
#define PLACES		0x400000

EXPORT int qemu_plugin_version = API_VERSION;

/* Long ones without effect, each with a number of its own. */
static const unsigned char begin_mark[] = { 0x0f, 0x1f, 0x84, 0, 0x78, 0x56, 0x34, 0x12 };
static const unsigned char end_mark[] = { 0x0f, 0x1f, 0x84, 0, 0x79, 0x56, 0x34, 0x12 };

static struct {
	unsigned long long address;
	unsigned long long times;
} *counts;

static const char *out;
static unsigned int stretches;

/* Of that address; the table has more places than a guest has instructions. */
static unsigned long long *counter_of(unsigned long long address)
{
	unsigned int i = (address * 0x9e3779b97f4a7c15ULL) >> 42;

	while (counts[i].address && counts[i].address != address)
		i = (i + 1) & (PLACES - 1);
	counts[i].address = address;
	return &counts[i].times;
}

static void begin(unsigned int cpu, void *data)
{
	unsigned int i;

	(void)cpu;
	(void)data;
	for (i = 0; i < PLACES; i++)
		counts[i].times = 0;
}

static void end(unsigned int cpu, void *data)
{
	char name[4096];
	unsigned int i;
	FILE *file;

	(void)cpu;
	(void)data;
	snprintf(name, sizeof(name), "%s.%u", out, stretches++);
	file = fopen(name, "w");
	if (!file) {
		perror(name);
		exit(1);
	}
	for (i = 0; i < PLACES; i++)
		if (counts[i].times)
			fprintf(file, "%016llx %llu\n", counts[i].address,
				counts[i].times);
	fclose(file);
}

static bool is_mark(const struct qemu_plugin_insn *insn, const unsigned char *mark)
{
	return qemu_plugin_insn_size(insn) == sizeof(begin_mark) &&
	       !memcmp(qemu_plugin_insn_data(insn), mark, sizeof(begin_mark));
}

static void count(struct qemu_plugin_insn *insn)
{
	qemu_plugin_register_vcpu_insn_exec_inline(insn, INLINE_ADD_U64,
						   counter_of(qemu_plugin_insn_vaddr(insn)), 1);
	if (is_mark(insn, begin_mark))
		qemu_plugin_register_vcpu_insn_exec_cb(insn, begin, NO_REGISTERS, NULL);
	if (is_mark(insn, end_mark))
		qemu_plugin_register_vcpu_insn_exec_cb(insn, end, NO_REGISTERS, NULL);
}

static void translate(unsigned long long id, struct qemu_plugin_tb *tb)
{
	size_t i, num = qemu_plugin_tb_n_insns(tb);

	(void)id;
	for (i = 0; i < num; i++)
		count(qemu_plugin_tb_get_insn(tb, i));
}

EXPORT int qemu_plugin_install(unsigned long long id, const struct qemu_info *info, int argc,
			       char **argv)
{
	(void)info;
	if (argc != 1 || strncmp(argv[0], "out=", 4))
		return -1;
	out = argv[0] + 4;
	counts = calloc(PLACES, sizeof(*counts));
	if (!counts)
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	return 0;
}
