// SPDX-License-Identifier: LGPL-2.1-or-later
/* ibchan: look at the devices, find out what is wrong, and measure a channel. */
#include <argp.h>
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tool.h"

static const struct command {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *help;
} commands[] = {
	{ "devices", devices_main, "list the RDMA devices and their ports" },
	{ "doctor", doctor_main, "find out what is wrong on the way to a working channel" },
	{ "pingpong", pingpong_main,
	  "measure a channel: server without HOST, else client of HOST" },
};

int complain(const char *format, ...)
{
	va_list args;

	fputs("ibchan: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return -1;
}

int complain_error(const char *what, const struct ibchan_error *error)
{
	char text[256];

	ibchan_error_text(error, text, sizeof(text));
	return complain("%s: %s", what, text);
}

int open_context(struct ibchan_context **context)
{
	struct ibchan_error error;

	if (!ibchan_context_open(context, &error))
		return 0;
	return complain("%s", ibchan_error_string(&error));
}

__u32 number_option(struct argp_state *state, const char *arg, int base, __u32 lowest,
		    __u32 highest)
{
	unsigned long long value;
	char *end;

	value = strtoull(arg, &end, base);
	if (*arg < '0' || *arg > '9' || *end || value < lowest || value > highest)
		argp_error(state, "'%s' does not lie between %u and %u", arg, lowest, highest);
	return (__u32)value;
}

/* A name is looked up where it is used. */
const char *port_option(struct argp_state *state, const char *arg)
{
	unsigned long long value;
	char *end;

	value = strtoull(arg, &end, 10);
	if (!*end && (!value || value > 65535))
		argp_error(state, "'%s' does not lie between 1 and 65535", arg);
	return arg;
}

struct ibchan_error work_error(const struct ibchan_cqe *completion)
{
	return (struct ibchan_error) {
		.code = completion->error, .origin = IBCHAN_ERROR_WORK,
		.status = completion->status, .vendor_err = completion->vendor_err,
	};
}

__u64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (__u64)(now.tv_sec * NSEC_PER_SEC + now.tv_nsec);
}

const char *gid_text(const __u8 *gid, char *buf, size_t len)
{
	static const __u8 mapped[12] = { [10] = 0xff, [11] = 0xff };
	int is_v4 = !memcmp(gid, mapped, sizeof(mapped));

	return inet_ntop(is_v4 ? AF_INET : AF_INET6, is_v4 ? gid + 12 : gid, buf,
			 (socklen_t)len) ?: "?";
}

static void usage(FILE *out)
{
	size_t i;

	fputs("Usage: ibchan COMMAND [OPTION...]\n\n", out);
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
	fputs("\nibchan COMMAND --help tells the options.\n", out);
}

int main(int argc, char **argv)
{
	size_t i;

	if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	}
	/* Each line of a command's output shows at once, in a pipe as well. */
	setlinebuf(stdout);
	if (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help")) {
		usage(stdout);
		return 0;
	}
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].main(argc - 1, argv + 1);
	complain("no such command: %s", argv[1]);
	usage(stderr);
	return EXIT_USAGE;
}
