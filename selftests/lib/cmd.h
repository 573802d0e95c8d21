/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The commands of /dev/ibchan as functions, and nothing else between a test and the kernel:
 * cmd_<name>(fd, &struct) fills in @size and answers 0 or -errno.
 */
#ifndef TEST_CMD_H
#define TEST_CMD_H

#include <stdint.h>
#include <stdlib.h>

#include <linux/ibchan.h>

#define NODE		"/dev/ibchan"

/* The guest's devices: soft-RoCE's, on the two ends of one veth pair, or others by name. */
#define DEVICE_A	device_from("IBCHAN_DEVICE_A", "rxe0")
#define DEVICE_B	device_from("IBCHAN_DEVICE_B", "rxe1")

static inline const char *device_from(const char *variable, const char *otherwise)
{
	const char *name = getenv(variable);

	return name ? name : otherwise;
}

/* A pointer as the commands carry it. */
static inline __u64 address(const void *pointer)
{
	return (uintptr_t)pointer;
}

int cmd_raw(int fd, unsigned long number, void *arg);

#define CMD_FUNCTION(nr, NAME, name)						\
static inline int cmd_##name(int fd, struct ibchan_cmd_##name *cmd)		\
{										\
	cmd->size = sizeof(*cmd);						\
	return cmd_raw(fd, IBCHAN_CMD_##NAME, cmd);				\
}

IBCHAN_COMMANDS(CMD_FUNCTION)
#undef CMD_FUNCTION

/* The ones whose answer is one handle, or none. */
int node_open(void);
/* To ask about port 1 of it. */
struct ibchan_cmd_port_query about_port_of(const char *device);
int device_open(int fd, const char *name, __u32 *device);
int pd_alloc(int fd, __u32 device, __u32 *pd);
int channel_break(int fd, __u32 channel);
int destroy(int fd, __u32 handle);

#endif /* TEST_CMD_H */
