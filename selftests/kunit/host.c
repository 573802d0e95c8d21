// SPDX-License-Identifier: GPL-2.0-only
/*
 * ibchan_kunit.ko in user space: `on-host` links the module, as it was built for a kernel, with
 * these few functions that it has of one. What is pure calls no others.
 */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* <linux/printk.h> */
struct va_format {
	const char *fmt;
	va_list *va;
};

/* Of the last line of the plan's own level. */
static bool has_failed;

static void print_nested(const char *format, va_list arguments)
{
	const char *before = va_arg(arguments, char *), *file = va_arg(arguments, char *);
	int line = va_arg(arguments, int);
	const struct va_format *nested = va_arg(arguments, struct va_format *);

	(void)format;
	printf("    # %s: %s:%d: expected ", before, file, line);
	vprintf(nested->fmt, *nested->va);
	putchar('\n');
}

/* A level precedes each format, and the module's name. Only a failure's has "%pV". */
int _printk(const char *format, ...);
int _printk(const char *format, ...)
{
	va_list arguments;

	format = strchr(format, ' ') + 1;
	va_start(arguments, format);
	if (strstr(format, "%pV"))
		print_nested(format, arguments);
	else
		vprintf(format, arguments);
	va_end(arguments);
	if (strstr(format, "expected"))
		has_failed = true;
	return 0;
}

#define NOTHING(name)	void name(void); void name(void) { }

NOTHING(__fentry__)
NOTHING(_raw_spin_lock)
NOTHING(_raw_spin_unlock)
NOTHING(__local_bh_enable_ip)

#define ENDS(name)	void name(void); void name(void) { abort(); }

ENDS(fortify_panic)
ENDS(__fortify_panic)

/* As the compiler calls them where it must not leave the jump to the CPU's guess. */
#define THUNK(name, jump)	asm(".globl " #name "\n" #name ": " jump)

THUNK(__x86_return_thunk, "ret");
THUNK(__x86_indirect_thunk_rax, "jmp *%rax");
THUNK(__x86_indirect_thunk_rdx, "jmp *%rdx");

void *memchr_inv(const void *bytes, int c, size_t n);
void *memchr_inv(const void *bytes, int c, size_t n)
{
	const unsigned char *byte;

	for (byte = bytes; n--; byte++)
		if (*byte != (unsigned char)c)
			return (void *)byte;
	return NULL;
}

int init_module(void);

int main(void)
{
	/* Where the stack's canary and the count of what must not be preempted are, per CPU. */
	static unsigned char per_cpu[4096];

	if (syscall(SYS_arch_prctl, ARCH_SET_GS, per_cpu)) {
		perror("arch_prctl");
		return 1;
	}
	init_module();
	return has_failed;
}
