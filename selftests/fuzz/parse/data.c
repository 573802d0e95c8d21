// SPDX-License-Identifier: GPL-2.0-only
/*
 * Any bytes as what the connection manager brings from a peer. The first byte of the input
 * says whether what this side sends is filled up with zeros on the way, whether it takes writes,
 * whether it answers, and whether the peer may be no ibchan; the others are the peer's, and then
 * what this side sends.
 */
#include "fuzz.h"
#include "kernel.h"
#include "cm.h"

#define FILLED		0x1
#define WRITES		0x2
#define ANSWER		0x4
#define PLAIN		0x8
#define MTU		1024
#define LARGEST		255	/* what the message's length can say */

/* In a place of its own, so that a read past its end is seen. */
static u8 *copy_of(const u8 *data, size_t size)
{
	u8 *copy = malloc(size ? size : 1);

	must(!!copy, "memory");
	memcpy(copy, data, size);
	return copy;
}

/* Bytes in front of the private data; 0 if no header of @kind is there. */
static size_t room_of(const u8 *data, size_t size, u16 kind)
{
	if (size < 8 || data[0] != kind >> 8 || data[1] != (kind & 0xff) || !data[2])
		return 0;
	if (data[3] < 8 || data[3] + data[4] > size || data[4] > IBCHAN_PRIVATE_DATA_SIZE)
		return 0;
	return data[3];
}

static void take_and_check(u8 how, const u8 *data, size_t size)
{
	const u16 kind = how & ANSWER ? IBCHAN_WIRE_ANSWER : IBCHAN_WIRE_REQUEST;
	const bool plain = how & PLAIN;
	u8 *bytes = copy_of(data, size);
	const struct rdma_conn_param param = {
		.private_data = size ? bytes : NULL,
		.private_data_len = size,
	};
	const size_t room = room_of(data, size, kind);
	u8 taken[IBCHAN_PRIVATE_DATA_SIZE];
	struct ibchan_reason reason = {};
	struct ibchan_wire wire;
	u32 came, mtu;
	int rc;

	ibchan_cm_data_wire(&param, kind, &wire);
	must(wire.room == room && !wire.version == !room, "a header where there is one");
	must(!room || (wire.version <= data[2] && wire.version <= IBCHAN_WIRE_VERSION),
	     "the smaller version");
	mtu = ibchan_cm_wire_mtu(&wire);
	must(!mtu || (mtu >= 256 && mtu <= 4096), "an mtu that there is");
	came = ibchan_cm_data_take(&param, &wire, taken);
	rc = ibchan_cm_data_check(&wire, plain, &reason);
	must(came <= sizeof(taken), "no more than the caller has room for");
	must(room + came <= size, "no more than came");
	must(!room || came == data[4], "as many as the peer says");
	must(!memcmp(taken, bytes + room, came), "the bytes that came");
	must(!memchr_inv(taken + came, 0, sizeof(taken) - came), "zeros behind them");
	must(rc == (room || plain ? 0 : -EPROTOTYPE), "one of two verdicts");
	must(!rc == !reason.code, "a reason if and only if it is refused");
	free(bytes);
}

static void rejected(bool plain, const u8 *data, size_t size)
{
	u8 *bytes = copy_of(data, size);
	const struct rdma_conn_param param = {
		.private_data = size ? bytes : NULL,
		.private_data_len = size,
	};
	const size_t room = plain ? 0 : room_of(data, size, IBCHAN_WIRE_REJECTION);
	u32 came = room ? data[4] : min_t(u32, size, IBCHAN_PRIVATE_DATA_SIZE);
	struct ibchan_cm cm = { .plain = plain };

	ibchan_cm_data_rejected(&cm, &param);
	must(cm.heard && cm.length == came, "as many as came and have room");
	must(!memcmp(cm.data, bytes + room, came), "the bytes that came with a rejection");
	must(!memchr_inv(cm.data + came, 0, sizeof(cm.data) - came), "zeros behind those");
	must(ibchan_cm_data_none(&param) == (!size || !memchr_inv(bytes, 0, size)),
	     "nothing where nothing came");
	free(bytes);
}

/* What one side writes the other one reads, whatever bytes they are. */
static void there_and_back(struct ibchan_channel *ch, u8 how, const u8 *data, size_t size)
{
	const u16 kind = how & ANSWER ? IBCHAN_WIRE_ANSWER : IBCHAN_WIRE_REQUEST;
	const u32 room = ibchan_cm_data_room(how & PLAIN);
	const u32 length = min_t(u32, size, IBCHAN_PRIVATE_DATA_SIZE - room);
	struct ibchan_cm cm = { .ch = ch, .plain = how & PLAIN };
	struct ibchan_wire wire = {};
	struct rdma_conn_param param = {};
	u8 taken[IBCHAN_PRIVATE_DATA_SIZE];
	u8 message[LARGEST] = {};
	u32 came;

	ibchan_cm_data_fill(&cm, data, length);
	ibchan_cm_data_head(&cm, kind);
	must(cm.length == room + length, "all of it, and no more than a message carries");
	must(room || !memcmp(cm.data, data, length), "what was sent, and nothing else");
	memcpy(message, cm.data, cm.length);
	param.private_data = message;
	param.private_data_len = how & FILLED ? LARGEST : cm.length;
	if (room)
		ibchan_cm_data_wire(&param, kind, &wire);
	came = ibchan_cm_data_take(&param, &wire, taken);
	must(how & FILLED && !room ? came >= length : came == length, "as long as it was");
	must(!memcmp(taken, data, length), "what was sent");
	must(!memchr_inv(taken + length, 0, sizeof(taken) - length), "nothing but what was sent");
	if (!room)
		return;
	must(ibchan_cm_wire_mtu(&wire) == MTU, "the length that was sent");
	must(!(wire.flags & IBCHAN_WIRE_WRITES) == !(how & WRITES), "whether it takes writes");
	ibchan_cm_data_wire(&param, IBCHAN_WIRE_REJECTION, &wire);
	must(!wire.version, "of one kind only");
}

int fuzz_one(const u8 *data, size_t size)
{
	struct ibchan_channel ch = {};

	if (!size || size - 1 > LARGEST)
		return 0;
	ch.qp.params.mtu = MTU;
	ch.qp.params.access = data[0] & WRITES ? IBCHAN_ACCESS_REMOTE_WRITE : 0;
	take_and_check(data[0], data + 1, size - 1);
	rejected(data[0] & PLAIN, data + 1, size - 1);
	there_and_back(&ch, data[0], data + 1, size - 1);
	return 0;
}

/* Headers of each kind, longer than this version's, of this version and the next, too long ones. */
unsigned int fuzz_seed(unsigned int nr, u8 *data)
{
	static const u8 header[] = { 0xc4, 0x1b, 1, 20, 30, 3, 0x01, 0x01 };

	if (nr > 64)
		return 0;
	memset(data, 0x5a, MAX_SEED);
	data[0] = nr & 0xf;
	memcpy(data + 1, header, sizeof(header));
	data[2] += nr % 3;
	data[3] += nr % 2;
	data[5] = nr % 5 ? 30 : 45;
	data[7] = nr % 7 & 1;
	return 1 + 64;
}
