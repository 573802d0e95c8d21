/* SPDX-License-Identifier: GPL-2.0-only */
/* Allocations of memory, from anywhere in the kernel, and who asks for them. */
#ifndef KCLIENT_ALLOCATIONS_H
#define KCLIENT_ALLOCATIONS_H

#include "world.h"

int allocations_watch(struct world *w);
void allocations_unwatch(struct world *w);
void allocations_begin(void);
void allocations_end(struct world *w);
int allocations_by(const char *caller);
int allocations_with_io_by(const char *caller);

#endif /* KCLIENT_ALLOCATIONS_H */
