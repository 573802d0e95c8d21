// SPDX-License-Identifier: GPL-2.0-only
/*
 * Management datagrams of Ethernet ports, by which rdma_cm connects: see hca.h. A datagram
 * that finds no port, or no receive there, is lost, as on a wire.
 */
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/netdevice.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_pack.h>

#include "hca.h"

/* What a datagram's receive begins with. */
static void fill_header(union rdma_network_hdr *header, const struct hca_ah *ah)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(&ah->attr);
	struct iphdr *ip = &header->roce4grh;

	memset(header, 0, sizeof(*header));
	if (ah->network == RDMA_NETWORK_IPV4) {
		ip->version = 4;
		ip->ihl = 5;
		ip->ttl = grh->hop_limit;
		ip->tos = grh->traffic_class;
		memcpy(&ip->saddr, ah->sgid.raw + 12, 4);
		memcpy(&ip->daddr, grh->dgid.raw + 12, 4);
		return;
	}
	header->ibgrh.version_tclass_flow =
		cpu_to_be32(6 << 28 | grh->traffic_class << 20 | (grh->flow_label & 0xfffff));
	header->ibgrh.hop_limit = grh->hop_limit;
	header->ibgrh.sgid = ah->sgid;
	header->ibgrh.dgid = grh->dgid;
}

static bool takes(const struct hca_port *port, const struct hca_ah *ah)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(&ah->attr);
	int i;

	if (!port->ndev || !hca_port_is_up(port) ||
	    !ether_addr_equal(ah->attr.roce.dmac, port->ndev->dev_addr))
		return false;
	for (i = 0; i < HCA_GIDS; i++)
		if (!memcmp(&port->gids[i], &grh->dgid, sizeof(grh->dgid)))
			return true;
	return false;
}

static struct hca_qp *find_target(const struct hca_ah *ah)
{
	struct hca_device *hca;
	u32 port;

	list_for_each_entry(hca, &hca_devices, link)
		for (port = 0; port < hca->ib.phys_port_cnt; port++)
			if (takes(&hca->ports[port], ah))
				return hca->gsi[port];
	return NULL;
}

/* Datagrams of one kind may be lost for a test. */
static bool is_lost(struct hca_cursor *from)
{
	struct ib_mad_hdr header;
	struct hca_cursor peek = *from, to = { .data = (u8 *)&header };

	return hca_lost_attribute && !hca_move(&to, &peek, sizeof(header)) &&
	       be16_to_cpu(header.attr_id) == hca_lost_attribute;
}

static int receive(struct hca_qp *target, struct hca_qp *qp, struct hca_wqe *wqe)
{
	struct hca_wqe *recv = hca_queue_next(&target->rq);
	union rdma_network_hdr header;
	struct ib_wc wc = {
		.opcode = IB_WC_RECV,
		.byte_len = wqe->length + sizeof(header),
		.src_qp = qp->ib.qp_num,
		.wc_flags = IB_WC_GRH | IB_WC_WITH_NETWORK_HDR_TYPE | IB_WC_WITH_SMAC,
		.network_hdr_type = wqe->ah->network,
	};
	struct hca_cursor to, header_from = { .data = (u8 *)&header };
	struct hca_cursor from = {
		.hca = to_hca(qp->ib.device),
		.pd = qp->ib.pd,
		.sge = wqe->sge,
		.num = wqe->num_sge,
	};
	int ret;

	if (is_lost(&from) || !recv || recv->length < wc.byte_len || target->state != IB_QPS_RTS)
		return IB_WC_SUCCESS;
	fill_header(&header, wqe->ah);
	memcpy(wc.smac, hca_port_of(qp)->ndev->dev_addr, ETH_ALEN);
	to = (struct hca_cursor) {
		.hca = to_hca(target->ib.device),
		.pd = target->ib.pd,
		.sge = recv->sge,
		.num = recv->num_sge,
	};
	ret = hca_move(&to, &header_from, sizeof(header));
	if (!ret)
		ret = hca_move(&to, &from, wqe->length);
	if (ret == -EFAULT)
		return IB_WC_LOC_PROT_ERR;
	if (!ret)
		hca_complete_recv(target, &wc, wqe->flags & IB_SEND_SOLICITED);
	return IB_WC_SUCCESS;
}

/**
 * hca_send_datagram - run a work of a port's management queue pair
 * @qp: that
 * @wqe: the work
 *
 * Context: under the lock.
 * Return: what it ends with.
 */
int hca_send_datagram(struct hca_qp *qp, struct hca_wqe *wqe)
{
	struct hca_qp *target = find_target(wqe->ah);

	if (!target || wqe->remote_qpn != 1 || !hca_port_is_up(hca_port_of(qp)))
		return IB_WC_SUCCESS;
	return receive(target, qp, wqe);
}
