// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Words for what a call returns, where there is nothing else to go by; and all that there is to go
 * by in one string.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

struct code_row {
	int code;
	const char *words;
};

/* The meaning of a code here, where the C library's words would lead astray. */
static const struct code_row code_rows[] = {
	{ EPERM, "this process did not open the context, or a filter of system calls said no" },
	{ ENOENT, "there is no such thing any more, or nobody knows that name" },
	{ EINTR, "a signal has ended the wait; no work is lost" },
	{ EIO, "the device failed" },
	{ E2BIG, "a struct has members that this library does not know" },
	{ EAGAIN, "not now: a queue is full, nothing is there, or a name server is silent" },
	{ ENOMEM, "out of memory, or of memory that may be locked (ulimit -l)" },
	{ EACCES, "the memory region or the channel does not allow this access" },
	{ EFAULT, "there is no memory at an address, or none that allows this access" },
	{ EBUSY, "it is still in use" },
	{ EXDEV, "these belong to different devices, contexts or protection domains" },
	{ ENODEV, "there is no such device, or it has gone" },
	{ EMFILE, "the context, or the process, has as many objects as it may" },
	{ EPROTO, "the memory shared with the kernel is damaged; close the context" },
	{ EOVERFLOW, "an element is longer than 4 GiB" },
	{ EMSGSIZE, "the message is longer than what it was to go to" },
	{ EOPNOTSUPP, "this device, or this kernel module, cannot do that" },
	{ EADDRINUSE, "somebody listens on that port already" },
	{ EADDRNOTAVAIL, "that address is not, or not any more, one of this host's RDMA devices" },
	{ ENETDOWN, "no port of the device is active" },
	{ ENETUNREACH, "there is no route to the peer's network" },
	{ EHOSTUNREACH, "there is no route to the peer, or nobody answers for its address" },
	{ ENODATA, "the peer has closed the channel, and no message of it is left" },
	{ ECONNABORTED, "the device has ended the channel" },
	{ ECONNRESET, "the peer has ended the connection, or rejected it" },
	{ ECONNREFUSED, "nobody listens there" },
	{ EISCONN, "the channel has a peer already" },
	{ ENOTCONN, "the channel has no peer yet" },
	{ ESHUTDOWN, "the channel is broken" },
	{ ETIMEDOUT, "that took longer than it may, or the peer does not answer" },
	{ EREMOTEIO, "the peer refused, or could not carry out, what it was asked for" },
	{ ECANCELED, "the channel was ended on this side, or before the work was done" },
	{ EPROTONOSUPPORT, "the kernel module is older than this library" },
	{ EPROTOTYPE, "the peer does not take messages as ibchan_dial() and ibchan_serve() do" },
	{ EDQUOT, "the RDMA cgroup, or the user's objects in kernel memory, are at their limit" },
};

/* In English, whatever the locale. NULL: the C library does not know it. */
const char *errno_words(int code)
{
#ifdef __GLIBC__
	return strerrordesc_np(code);
#else
	return strerror(code);
#endif
}

const char *ibchan_strerror(int code)
{
	const char *words;
	unsigned int i;

	if (code >= 0)
		return "no error";
	/* There is no number to the other side of this one. */
	if (code == INT_MIN)
		code++;
	for (i = 0; i < ARRAY_SIZE(code_rows); i++)
		if (code_rows[i].code == -code)
			return code_rows[i].words;
	words = errno_words(-code);
	return words ? words : "an error that this library does not know";
}

const char *ibchan_error_string(const struct ibchan_error *error)
{
	static __thread char string[512];
	const char *hint = ibchan_error_hint(error);
	int length = ibchan_error_text(error, string, sizeof(string));

	if (*hint && (size_t)length < sizeof(string))
		snprintf(string + length, sizeof(string) - (size_t)length, ". %s", hint);
	return string;
}
