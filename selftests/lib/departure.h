/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The guest's first soft-RoCE device leaves, and comes back.
 */
#ifndef TEST_DEPARTURE_H
#define TEST_DEPARTURE_H

/* -ETIMEDOUT, after a line that says how long it took, when it took too long. */
int delete_device(void);

/* Makes sure that the device is there, with the address that a channel needs. */
int restore_device(void);

#endif /* TEST_DEPARTURE_H */
