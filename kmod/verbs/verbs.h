/* SPDX-License-Identifier: GPL-2.0-only */
/* The door of verbs/: all objects of an ib_device. */
#ifndef IBCHAN_VERBS_H
#define IBCHAN_VERBS_H

#include "rules.h"

#include "chain.h"
#include "cq.h"
#include "device.h"
#include "mr.h"
#include "pd.h"
#include "qp.h"

#endif /* IBCHAN_VERBS_H */
