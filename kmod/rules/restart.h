/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Commands that only wait, and signals. A stop, a debugger and the freezer interrupt a wait
 * as a signal with a handler does. The kernel runs an interrupted command again where no
 * handler ran; so that the wait keeps its end, that goes into the caller's struct.
 *
 * A command that may have changed something is not run again.
 */
#ifndef IBCHAN_RESTART_H
#define IBCHAN_RESTART_H

#include <linux/errno.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/ibchan.h>

/* Nanoseconds from now on that a command may wait; negative: no limit. */
static inline s64 ibchan_time_left(u32 flags, s64 timeout_ns)
{
	if (likely(!(flags & IBCHAN_DEADLINE)) || timeout_ns <= 0)
		return timeout_ns;
	return max_t(s64, timeout_ns - ktime_get_ns(), 0);
}

/* A signal has interrupted a command that only waits. Returns what the command answers. */
static inline int ibchan_wait_again(__u32 *flags, __s64 *timeout_ns, ktime_t start)
{
	if (!(*flags & IBCHAN_DEADLINE) && *timeout_ns > 0) {
		*timeout_ns = ktime_add_safe(start, *timeout_ns);
		*flags |= IBCHAN_DEADLINE;
	}
	return -ERESTARTNOHAND;
}

#endif /* IBCHAN_RESTART_H */
