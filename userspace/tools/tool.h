/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The commands of the ibchan tool share these. */
#ifndef _IBCHAN_TOOL_H
#define _IBCHAN_TOOL_H

#include <ibchan.h>

#define NSEC_PER_SEC	1000000000LL

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define ATTRIBUTE(name, ...)	__attribute__((name(__VA_ARGS__)))
#define __printf(string, first)	ATTRIBUTE(format, printf, string, first)

/* 2: the command line was wrong; 1: anything else failed. Not of the doctor. */
#define EXIT_USAGE	2

struct argp_state;

int devices_main(int argc, char **argv);
int doctor_main(int argc, char **argv);
int pingpong_main(int argc, char **argv);

/*
 * Errors are said once, where they are found, on the standard error output.
 * Both return -1, for "return complain(...)".
 */
__printf(1, 2)
int complain(const char *format, ...);
int complain_error(const char *what, const struct ibchan_error *error);

/* ibchan_context_open(), which says why it fails, and what to do. */
int open_context(struct ibchan_context **context);

/* Of options: a number; the name of a port, or its number. They end the program at another word. */
__u32 number_option(struct argp_state *state, const char *arg, int base, __u32 lowest,
		    __u32 highest);
const char *port_option(struct argp_state *state, const char *arg);

/* How a work has failed. */
struct ibchan_error work_error(const struct ibchan_cqe *completion);

/* The monotonic clock's. */
__u64 now_ns(void);

/* A GID as people write it: an IPv4 address where it holds one. */
const char *gid_text(const __u8 *gid, char *buf, size_t len);

/*
 * The bytes of the messages that the tool checks: pattern.c.
 *
 * A slot is filled once with bytes that depend on the side and the place. Each round then puts its
 * number into the first and the last eight bytes, its stamp, or into all of a message that is
 * shorter than both. So a timed round costs the same for any size, and a message that is old, torn
 * or someone else's still shows.
 */
struct pattern {
	__u8 seed;	/* differs between the two sides */
	size_t size;	/* bytes of a message */
};

/* The last byte of a message differs from those of the 255 rounds before. */
__u8 pattern_byte(const struct pattern *pattern, size_t place, __u32 round);

/* Of @round's message, all bytes if @whole is set, else the stamp. The second looks for it. */
void pattern_put(const struct pattern *pattern, __u8 *buf, __u32 round, int whole);
int pattern_is(const struct pattern *pattern, const __u8 *buf, __u32 round, int whole);

#endif /* _IBCHAN_TOOL_H */
