/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libibchan: contexts and devices. Include <ibchan.h>. */
#ifndef _IBCHAN_CONTEXT_H
#define _IBCHAN_CONTEXT_H

#include <ibchan/types.h>

__IBCHAN_BEGIN_DECLS

/**
 * ibchan_context_open() - open /dev/ibchan
 * @context: where to put it
 * @error: details; NULL is fine
 *
 * The file closes on exec.
 *
 * Return: 0; -ENOENT: there is no node: the module is not loaded, or the process is in a
 * container that was not given it; -ENXIO: the module is not loaded; -EACCES: the caller may not
 * open the node (group rdma may); -EPERM: a container, or a security module, forbids it;
 * -EPROTONOSUPPORT: the module speaks another ABI; -EMFILE, -ENFILE: too many open files.
 */
int ibchan_context_open(struct ibchan_context **context, struct ibchan_error *error);

/**
 * ibchan_context_close() - end the context and all that is in it
 * @context: NULL is fine
 *
 * Every handle of the context is gone afterwards, and no pending work may be asked
 * for any more. The kernel breaks the channels, drains them and lets the memory go.
 *
 * Buffers: all may be reused on return, unless another process has got the
 * file or a completion queue's descriptor: then once that is closed, too.
 *
 * Return: 0.
 */
int ibchan_context_close(struct ibchan_context *context);

/**
 * ibchan_context_fd() - the file behind a context
 * @context: open
 *
 * For raw ioctls, but none that posts to a cq of the library's: the library could not tell which
 * request such a completion belongs to. The descriptor belongs to the context: do not close it.
 *
 * Return: the descriptor.
 */
int ibchan_context_fd(const struct ibchan_context *context);

/**
 * ibchan_context_query() - limits and use
 * @context: open
 * @attr: where to put the answer
 * @error: details; NULL is fine
 *
 * Return: 0 or a negative errno.
 */
int ibchan_context_query(struct ibchan_context *context, struct ibchan_context_attr *attr,
			 struct ibchan_error *error);

/**
 * ibchan_device_list() - the devices that can be seen from here
 * @context: open
 * @attrs: array to fill; may be NULL when @n is 0
 * @n: its length
 * @error: details; NULL is fine
 *
 * Return: how many devices there are, which may be more than @n; or a negative errno.
 */
int ibchan_device_list(struct ibchan_context *context, struct ibchan_device_attr *attrs, __u32 n,
		       struct ibchan_error *error);

/**
 * ibchan_device_open() - hold a device
 * @context: open
 * @name: NULL: the first one
 * @device: where to put it
 * @error: details; NULL is fine
 *
 * The caller's network namespace is remembered with it.
 *
 * Return: 0; -ENODEV: no such device, or not visible from here; -EINVAL: @name is too long;
 * -EPERM: see Fork; -EMFILE, -EDQUOT: see Limits in <ibchan.h>.
 */
int ibchan_device_open(struct ibchan_context *context, const char *name,
		       struct ibchan_device **device, struct ibchan_error *error);

/**
 * ibchan_device_close() - let a device go
 * @device: NULL is fine
 *
 * Return: 0; -EBUSY: a pd or a cq of it exists.
 */
int ibchan_device_close(struct ibchan_device *device);

/**
 * ibchan_device_name() - name of an open device
 * @device: open
 *
 * The kernel is asked: a device can be renamed while it is open.
 *
 * Return: the name, as it is now; the text stays as it is, as long as @device.
 */
const char *ibchan_device_name(const struct ibchan_device *device);

/**
 * ibchan_port_query() - one port of a device
 * @context: open
 * @name: of the device, which need not be open
 * @port: 1 and up
 * @attr: where to put the answer
 * @error: details; NULL is fine
 *
 * Return: 0; -ENODEV: no such device; -EINVAL: no such port, or @name is too long.
 */
int ibchan_port_query(struct ibchan_context *context, const char *name, __u32 port,
		      struct ibchan_port_attr *attr, struct ibchan_error *error);

/**
 * ibchan_gid_query() - the addresses of a port, and what the rule says about them
 * @context: open
 * @name: of the device, which need not be open
 * @port: 1 and up
 * @index: the first entry to look at
 * @attr: told of the first entry in use from @index on
 * @error: details; NULL is fine
 *
 * To see all of a table, begin with @index 0 and go on at the told one's index + 1.
 *
 * Return: 0; -ENOENT: no entry from @index on is in use; -ENODEV: no such device;
 * -EINVAL: no such port, or @name is too long.
 */
int ibchan_gid_query(struct ibchan_context *context, const char *name, __u32 port, __u32 index,
		     struct ibchan_gid_attr *attr, struct ibchan_error *error);

/**
 * ibchan_gid_verdict_name() - the name of a verdict on a GID
 * @verdict: enum ibchan_gid_verdict
 *
 * Return: as in IBCHAN_GID_VERDICTS, "unknown" for another number.
 */
const char *ibchan_gid_verdict_name(__u32 verdict);

/**
 * ibchan_gid_verdict_text() - the meaning of a verdict on a GID, and a remedy
 * @verdict: enum ibchan_gid_verdict
 *
 * Return: a text that is never NULL.
 */
const char *ibchan_gid_verdict_text(__u32 verdict);

__IBCHAN_END_DECLS

#endif /* _IBCHAN_CONTEXT_H */
