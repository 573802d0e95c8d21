// SPDX-License-Identifier: GPL-2.0-only
/*
 * Takes back what a driver has registered while another thread replaced the mapping.
 *
 * Any pages may be pinned then, also some of a file whose server never answers. The driver
 * locks such a page to unpin it, and who waits for the server holds that lock. So this
 * is a worker's, who is a guest of the device: he holds nothing that others need, nobody waits
 * for him but removal, and the process that has registered can be killed. The region stays
 * charged, and keeps its domain, until the driver has let go of it.
 */
#include <linux/slab.h>

#include "verbs.h"

/**
 * struct ibchan_undo - a registration that is taken back
 * @work: does that
 * @guest: in the gate's list
 * @mr: never published
 * @ib: what the driver has registered
 */
struct ibchan_undo {
	struct work_struct work;
	struct ibchan_guest guest;
	struct ibchan_mr *mr;
	struct ib_mr *ib;
};

static void undo_work(struct work_struct *work)
{
	struct ibchan_undo *undo = container_of(work, struct ibchan_undo, work);
	struct ibchan_pd *pd = undo->mr->extent.pd;

	ibchan_mr_end_unknown(pd, undo->ib);
	ibchan_mr_discard(undo->mr);
	ibchan_gate_dismiss(&pd->dev->gate, &undo->guest);
	ibchan_pd_unkeep(pd);
	kfree(undo);
}

/**
 * ibchan_mr_undo - take a registration back
 * @mr: for it; belongs to the worker from now on
 * @ib: what the driver has registered
 * @guest: whose call that was; is no guest any more
 *
 * Context: process, may sleep for memory only; the caller has the domain from its owner.
 */
void ibchan_mr_undo(struct ibchan_mr *mr, struct ib_mr *ib, struct ibchan_guest *guest)
{
	struct ibchan_undo *undo = kmalloc(sizeof(*undo), GFP_KERNEL | __GFP_NOFAIL);

	undo->mr = mr;
	undo->ib = ib;
	ibchan_gate_hand_over(&mr->extent.pd->dev->gate, guest, &undo->guest);
	ibchan_pd_keep(mr->extent.pd);
	INIT_WORK(&undo->work, undo_work);
	queue_work(ibchan_undo_wq, &undo->work);
}
