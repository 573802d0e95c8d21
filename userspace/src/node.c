// SPDX-License-Identifier: LGPL-2.1-or-later
/* /dev/ibchan: to open it, and why that fails. */
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "internal.h"

#define NODE	"/dev/ibchan"
#define MODULE	"/sys/module/ibchan"

struct node_row {
	const char *words;
	const char *hint;
};

static const struct node_row no_sign = {
	"there is no such node, and no sign of the kernel module",
	"`modprobe ibchan` loads the module; a container is started with --device " NODE,
};

static const struct node_row no_node = {
	"there is no such node, though the kernel module is loaded",
	"this process has a /dev of its own: a container is started with --device " NODE,
};

static const struct node_row no_module = {
	"the node is there, but the kernel module is not loaded",
	"`modprobe ibchan` loads the module",
};

static const struct node_row not_permitted = {
	"this user may not open it",
	"members of the node's group may, which is rdma once `make install` has put the udev rule there: `usermod -a -G rdma USER`, and log in again",
};

static const struct node_row forbidden = {
	"something beside its mode forbids to open it, as the device list of a container does",
	"start the container with --device " NODE ", or look at the log of the security module",
};

/* For what IBCHAN_REASON_NODE carries; NULL: the errno says all that is known. */
static const struct node_row *row_of(const struct ibchan_reason *reason)
{
	switch (reason->value[0]) {
	case ENOENT:
		return reason->value[1] ? &no_node : &no_sign;
	case ENXIO:
	case ENODEV:
		return &no_module;
	case EACCES:
		return &not_permitted;
	case EPERM:
		return &forbidden;
	default:
		return NULL;
	}
}

const char *node_words(const struct ibchan_reason *reason)
{
	const struct node_row *row = row_of(reason);

	return row ? row->words : ibchan_strerror(-(int)(reason->value[0] & 0xfff));
}

const char *node_hint(const struct ibchan_reason *reason)
{
	const struct node_row *row = row_of(reason);

	return row ? row->hint : "";
}

/* Returns the descriptor, or a negative errno and the @reason. */
int node_open(struct ibchan_reason *reason)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, NODE, O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	fd = -errno;
	*reason = (struct ibchan_reason) {
		.code = IBCHAN_REASON_NODE,
		.value = { (__u64)-fd, !syscall(SYS_faccessat, AT_FDCWD, MODULE, F_OK) },
	};
	return fd;
}
