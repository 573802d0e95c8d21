// SPDX-License-Identifier: GPL-2.0-only
/* What a device reports, on demand: see faults.h. */
#include <linux/module.h>

#include "channel.h"
#include "compat.h"
#include "faults.h"

/**
 * ibchan_fault_raise_cq_error - have a cq report that it has lost completions
 * @cq: the queue
 *
 * Context: any.
 */
void ibchan_fault_raise_cq_error(struct ibchan_cq *cq)
{
	struct ib_event event = {
		.device = cq->ib->device,
		.element.cq = cq->ib,
		.event = IB_EVENT_CQ_ERR,
	};

	cq->ib->event_handler(&event, cq->ib->cq_context);
}
EXPORT_SYMBOL_NS_GPL(ibchan_fault_raise_cq_error, IBCHAN_NS);

/**
 * ibchan_fault_raise_cq_event - have a cq report a completion, whether there is one or not
 * @cq: the queue
 *
 * Context: any but NMI, as a driver's.
 */
void ibchan_fault_raise_cq_event(struct ibchan_cq *cq)
{
	cq->ib->comp_handler(cq->ib, cq->ib->cq_context);
}
EXPORT_SYMBOL_NS_GPL(ibchan_fault_raise_cq_event, IBCHAN_NS);

/**
 * ibchan_fault_raise_qp_event - have a device report something of a queue pair
 * @ch: its channel
 * @event: IB_EVENT_QP_*
 *
 * Context: any but NMI, as a driver's.
 */
void ibchan_fault_raise_qp_event(struct ibchan_channel *ch, u32 event)
{
	struct ib_event report = {
		.device = ch->qp.ib->device,
		.element.qp = ch->qp.ib,
		.event = event,
	};

	ch->qp.ib->event_handler(&report, ch->qp.ib->qp_context);
}
EXPORT_SYMBOL_NS_GPL(ibchan_fault_raise_qp_event, IBCHAN_NS);

/**
 * ibchan_fault_raise_fatal - have a device report that it has failed
 * @dev: the device
 *
 * Context: process.
 */
void ibchan_fault_raise_fatal(struct ibchan_device *dev)
{
	struct ib_event event = {
		.device = dev->ib,
		.element.port_num = rdma_start_port(dev->ib),
		.event = IB_EVENT_DEVICE_FATAL,
	};

	ib_dispatch_event(&event);
}
EXPORT_SYMBOL_NS_GPL(ibchan_fault_raise_fatal, IBCHAN_NS);
