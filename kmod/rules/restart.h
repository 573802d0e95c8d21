/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Has the kernel run an interrupted command again if that command only waits. A stop, a debugger
 * and the freezer interrupt a wait as a signal with a handler does. The kernel runs the command
 * again where no handler ran; so that the wait keeps its end, that goes into the caller's struct.
 *
 * A command that may have changed something is not run again.
 */
#ifndef IBCHAN_RESTART_H
#define IBCHAN_RESTART_H

#include <linux/errno.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/ibchan.h>

/* How long a command may wait, in nanoseconds from now on; negative: no limit. */
static inline s64 ibchan_time_left(u32 flags, s64 timeout_ns)
{
	if (likely(!(flags & IBCHAN_DEADLINE)) || timeout_ns <= 0)
		return timeout_ns;
	return max_t(s64, timeout_ns - ktime_get_ns(), 0);
}

/* A signal has interrupted a command that began to wait at @start. Returns its answer. */
static inline int ibchan_wait_again(__u32 *flags, __s64 *timeout_ns, ktime_t start)
{
	if (!(*flags & IBCHAN_DEADLINE) && *timeout_ns > 0) {
		*timeout_ns = ktime_add_safe(start, *timeout_ns);
		*flags |= IBCHAN_DEADLINE;
	}
	return -ERESTARTNOHAND;
}

#endif /* IBCHAN_RESTART_H */
