/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libibchan: the history of a channel. Include <ibchan.h>. */
#ifndef _IBCHAN_HISTORY_H
#define _IBCHAN_HISTORY_H

#include <ibchan/types.h>

__IBCHAN_BEGIN_DECLS

/**
 * ibchan_channel_history() - the latest events of a channel
 * @channel: connected or broken; its device may have left
 * @events: where to put the youngest ones, in the order in which they happened
 * @num: how many there is room for; IBCHAN_HISTORY_MAX is enough
 * @error: details; NULL is fine
 *
 * For the search for a failure's cause. The kernel always keeps it; works that
 * succeed leave no trace.
 *
 * Return: how many were written; -EFAULT: @events is not writable; another negative errno.
 */
int ibchan_channel_history(struct ibchan_channel *channel, struct ibchan_history_event *events,
			   __u32 num, struct ibchan_error *error);

/**
 * ibchan_history_name() - name of what happened
 * @kind: enum ibchan_history_kind
 *
 * Return: for example "WORK_FAILED".
 */
const char *ibchan_history_name(__u32 kind);

/**
 * ibchan_history_text() - put what happened into words
 * @event: as ibchan_channel_history() gave it
 * @buf: where to, ends with a NUL if @len is not 0
 * @len: bytes of @buf
 *
 * One line without a newline: the time in seconds since the system started, a number,
 * the name and what belongs to it. For example "12.345678 #3 BROKEN: first failed work
 * RETRY_EXC_ERR: Connection timed out". 256 bytes are always enough.
 *
 * Return: the length of the whole text without its NUL, as snprintf() does.
 */
int ibchan_history_text(const struct ibchan_history_event *event, char *buf, size_t len);

__IBCHAN_END_DECLS

#endif /* _IBCHAN_HISTORY_H */
