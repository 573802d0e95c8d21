/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a test sees of the world outside of the contract: time, the kernel's own counters,
 * other processes.
 */
#ifndef TEST_WORLD_H
#define TEST_WORLD_H

#include <stdbool.h>
#include <sys/types.h>

#include <linux/types.h>

/* The debug kernel under emulation: everything takes ten times as long. */
bool slow(void);

/* The running one. */
bool kernel_is_before(int major, int minor);

/* A wait that lasts longer than this has failed. */
long patience_ms(void);

__u64 now_ms(void);

/* Polls a condition that nothing announces; false when patience ends first. */
bool eventually(bool (*holds)(void *arg), void *arg);

/*
 * Waits until no RDMA device has that name: the one over a network device that was deleted goes
 * later than it. False when patience ends first.
 */
bool device_leaves(const char *name);

/*
 * What the kernel holds for ibchan. Every fixture takes it at its start and compares at its
 * end, so that a leak is the failure of the test that made it; unless IBCHAN_AMONG_OTHERS is
 * set, because others hold something meanwhile.
 */
struct calm {
	long pins;
	long charged;
};

int calm_begin(struct calm *calm);
int calm_end(const struct calm *calm);

/* Pages that are pinned now, by anyone. */
long pins(void);

/* KiB that this process is charged for against RLIMIT_MEMLOCK; -errno. */
long charged(void);

/* What @format finds in /proc/PID/status, of this process for 0; -errno. */
long status_number(pid_t pid, const char *format);

/* A counter of the module; -errno. */
long counter(const char *name);

/* The same from any file of "name value" lines. */
long counter_of(const char *path, const char *name);

/* Writes it to a file that takes it whole, as those of the kernel do: 0 or -errno. */
int put_line(const char *path, const char *line);

/* Runs @body in a child and gives its answer: 0, or the -errno that it returned. */
int in_child(int (*body)(void *arg), void *arg);

/*
 * Runs @body in a child until it has written a byte to @ready: the child, which lives on, or its
 * answer if it has ended before.
 */
pid_t child_that_is_ready(int (*body)(int ready, void *arg), void *arg);

/* @child's answer as in_child() gives it; -EINTR when a signal killed it. */
int child_result(pid_t child);

/* Runs a program; its exit code, or -errno. */
int run_program(const char *const argv[]);

/* Become nobody; only ever in a child, or as the last thing that a test does. */
int drop_privileges(void);

#endif /* TEST_WORLD_H */
