/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * siw, the soft device that does iWARP over TCP, where the kernel has it. It sits on a network
 * device of its own, so that no soft-RoCE device has the address.
 */
#ifndef TEST_SHIM_SIW_H
#define TEST_SHIM_SIW_H

#include <stdbool.h>

#define SIW_DEVICE	"siw0"
#define SIW_HOST	"10.78.0.1"
#define SIW_HOST6	"fd78::1"

/* Loads the driver; whether there is one. */
bool siw_load(void);

/* Makes the device, unless it is there; 0, or that went wrong. */
int siw_add(void);

/* Takes it away, if it is there. */
void siw_remove(void);

#endif /* TEST_SHIM_SIW_H */
