/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pending works, as scopes need them. */
#ifndef _LIBIBCHAN_PENDING_H
#define _LIBIBCHAN_PENDING_H

#include "wait.h"

#pragma GCC visibility push(hidden)

int pending_has_ended(struct ibchan_pending *pending);
void pending_finish(struct ibchan_pending *pending);
int pending_end(struct ibchan_pending *pending, const struct deadline *deadline);
void pending_lose(struct ibchan_pending *pending, int error);

#pragma GCC visibility pop

#endif /* _LIBIBCHAN_PENDING_H */
