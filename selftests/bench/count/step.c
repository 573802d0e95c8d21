// SPDX-License-Identifier: GPL-2.0-only
/*
 * step [-a] PROGRAM ARGUMENTS...: runs the counted program, and from its first breakpoint on until
 * count_end() one instruction at a time. Prints how many were executed in each function; with -a
 * the address of each instruction, in the order of execution.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "count.h"

struct symbol {
	unsigned long addr;
	unsigned long executed;
	char name[96];
};

static struct symbol *symbols;
static size_t num_symbols;

static void COUNT_ATTRIBUTE(noreturn) fail(const char *what)
{
	fprintf(stderr, "step: %s\n", what);
	exit(1);
}

static int by_address(const void *a, const void *b)
{
	const struct symbol *one = a, *other = b;

	return one->addr < other->addr ? -1 : one->addr > other->addr;
}

static void add_symbol(const char *line)
{
	struct symbol *symbol;
	char type;

	symbols = realloc(symbols, (num_symbols + 1) * sizeof(*symbols));
	if (!symbols)
		fail("no memory");
	symbol = &symbols[num_symbols];
	symbol->executed = 0;
	if (sscanf(line, "%lx %c %95s", &symbol->addr, &type, symbol->name) == 3 &&
	    strchr("tTwW", type))
		num_symbols++;
}

static void read_symbols(const char *program)
{
	char command[4096], line[1024];
	FILE *nm;

	snprintf(command, sizeof(command), "nm '%s'", program);
	nm = popen(command, "r");
	if (!nm)
		fail("nm does not run");
	while (fgets(line, sizeof(line), nm))
		add_symbol(line);
	if (pclose(nm) || !num_symbols)
		fail("nm finds no function");
	qsort(symbols, num_symbols, sizeof(*symbols), by_address);
}

static unsigned long address_of(const char *name)
{
	size_t i;

	for (i = 0; i < num_symbols; i++)
		if (!strcmp(symbols[i].name, name))
			return symbols[i].addr;
	fail("the program has no count_end()");
}

/* The last symbol that is not behind @addr. */
static struct symbol *symbol_at(unsigned long addr)
{
	size_t low = 0, high = num_symbols - 1;

	while (low < high) {
		size_t middle = (low + high + 1) / 2;

		if (symbols[middle].addr <= addr)
			low = middle;
		else
			high = middle - 1;
	}
	return &symbols[low];
}

static unsigned long position(pid_t child)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, child, 0, &regs))
		fail("the program has no registers");
	return regs.rip;
}

/* Until the next breakpoint, or by one instruction. */
static void go_on(pid_t child, int how)
{
	int status;

	if (ptrace(how, child, 0, 0) || waitpid(child, &status, 0) != child)
		fail("the program does not go on");
	if (!WIFSTOPPED(status))
		fail("the program ended before count_end()");
	if (WSTOPSIG(status) == SIGTRAP)
		return;
	fprintf(stderr, "step: signal %d in %s\n", WSTOPSIG(status),
		symbol_at(position(child))->name);
	exit(1);
}

static void step(pid_t child, bool tell)
{
	unsigned long at, end = address_of("count_end");

	if (waitpid(child, NULL, 0) != child)
		fail("the program does not start");
	go_on(child, PTRACE_CONT);
	for (at = position(child); at != end; at = position(child)) {
		symbol_at(at)->executed++;
		if (tell)
			printf("%lx\n", at);
		go_on(child, PTRACE_SINGLESTEP);
	}
	kill(child, SIGKILL);
}

int main(int argc, char **argv)
{
	bool tell = argc > 1 && !strcmp(argv[1], "-a");
	pid_t child;
	size_t i;

	argc -= tell;
	argv += tell;
	if (argc < 2)
		fail("which program?");
	read_symbols(argv[1]);
	child = fork();
	if (child < 0)
		fail("no process");
	if (!child) {
		if (!ptrace(PTRACE_TRACEME, 0, 0, 0))
			execv(argv[1], argv + 1);
		_exit(1);
	}
	step(child, tell);
	for (i = 0; i < num_symbols; i++)
		if (symbols[i].executed && !tell)
			printf("%lu %s\n", symbols[i].executed, symbols[i].name);
	return 0;
}
