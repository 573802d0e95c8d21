/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Points at which tests make verbs fail, and windows between two steps that they widen:
 * selftests/faults/. A module that is not built with IBCHAN_FAULTS=1 has none of this.
 */
#ifndef IBCHAN_FAULT_H
#define IBCHAN_FAULT_H

#ifdef IBCHAN_FAULTS
#include "../../selftests/faults/faults.h"
#else
#define ibchan_fault(point)			0
#define ibchan_fault_ptr(point)			NULL
#define ibchan_fault_cut(point, num, error)	({ (void)(error); (num); })
#define ibchan_fault_completion(wc)		do { } while (0)
#define ibchan_fault_linger(window)		do { } while (0)
#define ibchan_fault_rest(window)		do { } while (0)
#define ibchan_fault_debugfs_init(root)		do { } while (0)
#endif

#endif /* IBCHAN_FAULT_H */
