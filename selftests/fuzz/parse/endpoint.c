// SPDX-License-Identifier: GPL-2.0-only
/*
 * Any bytes as a peer's endpoint. The first byte of the input says what this side is; its
 * own endpoint is made as the module makes it.
 */
#include "fault.h"
#include "fuzz.h"
#include "kernel.h"

static const u8 ipv4[16] = { [10] = 0xff, [11] = 0xff, [12] = 10, [13] = 77, [15] = 1 };
static const u8 ipv6[16] = { 0xfd, 0x77, [15] = 1 };
static const u8 mac[6] = { 2, 0, 0, 0x77, 0, 1 };

#define MAX_LID		0xbfff

/* Of the first byte: which family, and whether this side takes writes. */
#define KIND(choice)	((choice) & 3)
#define WRITES		0x4

enum kind { KIND_IPV4, KIND_IPV6, KIND_INFINIBAND, KIND_IWARP };

static void build(struct ibchan_endpoint *ours, u8 choice)
{
	const struct ibchan_params params = {
		.send_psn = 0x123456, .max_rd_atomic = 16, .mtu = 4096,
		.access = choice & WRITES ? IBCHAN_ACCESS_SHARED : IBCHAN_ACCESS_LOCAL,
	};
	struct ibchan_gid gid = { .iwarp = KIND(choice) == KIND_IWARP };

	if (KIND(choice) == KIND_IPV4 || KIND(choice) == KIND_IPV6)
		gid.family = KIND(choice) == KIND_IPV4 ? 4 : 6;
	if (KIND(choice) == KIND_INFINIBAND) {
		gid.lid = 1;
		gid.pkey = 0xffff;
	}
	memcpy(gid.gid.raw, KIND(choice) == KIND_IPV4 ? ipv4 : ipv6, sizeof(ipv4));
	memcpy(gid.mac, mac, sizeof(mac));
	ibchan_endpoint_build(ours, &gid, &params, 17);
}

/* What a queue pair is told must be within what the verbs take. */
static void check_accepted(const struct ibchan_endpoint *ours, const struct ibchan_endpoint *theirs)
{
	must(be32toh(theirs->qpn) - 2 <= 0xffffff - 2, "a qpn of 24 bits, not 0 or 1");
	must(be32toh(theirs->psn) <= 0xffffff, "a psn of 24 bits");
	must(theirs->mtu >= 1 && theirs->mtu <= 5, "an mtu of enum ib_mtu");
	must(theirs->max_dest_rd_atomic, "room for a read");
	must(theirs->link_layer == ours->link_layer, "the same link layer");
	if (ours->link_layer == IBCHAN_LINK_LAYER_INFINIBAND) {
		must(be32toh(theirs->lid) - 1 < MAX_LID, "the LID of a port");
		must((be16toh(theirs->pkey) & 0x7fff) == 0x7fff, "the same partition");
	}
	if (ours->link_layer != IBCHAN_LINK_LAYER_ETHERNET)
		return;
	must(ibchan_gid_family(ours->gid) == ibchan_gid_family(theirs->gid), "the same family");
	must(!(theirs->mac[0] & 1), "the Ethernet address of one");
}

int fuzz_one(const u8 *data, size_t size)
{
	struct ibchan_endpoint ours, theirs = {};
	struct ibchan_reason reason = {};
	int rc;

	if (!size)
		return 0;
	build(&ours, data[0]);
	memcpy(&theirs, data + 1, min_t(size_t, size - 1, sizeof(theirs)));
	rc = ibchan_endpoint_check(&ours, &theirs, MAX_LID, &reason);
	must(!rc || rc == -EINVAL, "0 or -EINVAL");
	must(!rc == !reason.code, "a reason if and only if it is refused");
	must(rc == ibchan_endpoint_check(&ours, &theirs, MAX_LID, NULL),
	     "the same without a reason");
	if (KIND(data[0]) == KIND_IPV4)
		must(reason.code == endpoint_fault((const u8 *)&theirs), "the contract's reason");
	if (!rc)
		check_accepted(&ours, &theirs);
	return 0;
}

/* One that is accepted, to begin with, for each kind of side. */
unsigned int fuzz_seed(unsigned int nr, u8 *data)
{
	struct ibchan_endpoint ours;

	if (nr > (KIND_IWARP | WRITES))
		return 0;
	build(&ours, nr);
	data[0] = nr;
	memcpy(data + 1, &ours, sizeof(ours));
	return 1 + sizeof(ours);
}
