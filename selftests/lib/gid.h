/* SPDX-License-Identifier: GPL-2.0-only */
/* Addresses as a device's table has them, what is thought of them, and who is asked for. */
#ifndef TEST_GID_H
#define TEST_GID_H

#include <stdbool.h>

#include "cmd.h"

/* An address as it is written, IPv4 or IPv6, as a GID. */
void gid_of(const char *text, __u8 *gid);

/* The entry of the first port at @index, or the next one that is in use. */
int gid_query(int fd, const char *device, __u32 index, struct ibchan_cmd_gid_query *cmd);

/* The entry with this address, on this network device if that is not NULL. */
int gid_find(int fd, const char *device, const char *text, const char *ndev,
	     struct ibchan_cmd_gid_query *cmd);

/* What is waited for: a verdict on an address, or -ENOENT. */
struct expected_gid {
	int fd;
	const char *device;
	const char *address;
	const char *ndev;
	int verdict;
	struct ibchan_cmd_gid_query seen;
};

/* A worker of the kernel's brings addresses into the table; nothing says when. */
int gid_await(struct expected_gid *expected);

/*
 * For eventually(): the kernel asks who has the IPv4 address @text, so somebody waits for the
 * answer, but too shortly to run a program.
 */
bool neighbour_is_asked(void *text);

#endif /* TEST_GID_H */
