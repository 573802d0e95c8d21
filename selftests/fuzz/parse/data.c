// SPDX-License-Identifier: GPL-2.0-only
/*
 * Any bytes as what the connection manager brings from a peer. The first byte of the input
 * says whether this side counts credits, whether what it sends is filled up with zeros on
 * the way, whether it takes writes, whether it answers, and with shorter packets, and whether
 * the peer may be no ibchan; the others are the peer's, and then what this side sends.
 */
#include "fuzz.h"
#include "kernel.h"
#include "cm.h"

#define CREDITS		0x1
#define FILLED		0x2
#define WRITES		0x4
#define SHORTER		0x8
#define ANSWER		0x10
#define PLAIN		0x20
#define MTU		1024
#define LARGEST		255	/* what the message's length can say */

static const struct rdma_cm_id id;

/* In a place of its own, so that a read past its end is seen. */
static u8 *copy_of(const u8 *data, size_t size)
{
	u8 *copy = malloc(size ? size : 1);

	must(!!copy, "memory");
	memcpy(copy, data, size);
	return copy;
}

static const u8 magic[] = { 0xc4, 0x1b, 1 };

/* Of what in fact lies in front; 0 if it is none of @kind. */
static size_t front_of(const u8 *data, size_t size, u8 kind)
{
	size_t length;

	if (size < 4 || memcmp(data, magic, sizeof(magic)))
		return 0;
	if ((data[3] & 0x8c) != kind || data[3] >> 4 > IB_MTU_4096)
		return 0;
	length = data[3] & IBCHAN_FRONT_CREDITS ? 16 : 4;
	return length <= size ? length : 0;
}

static void take_and_check(struct ibchan_channel *ch, u8 kind, const u8 *data, size_t size)
{
	u8 *bytes = copy_of(data, size);
	const struct rdma_conn_param param = {
		.private_data = size ? bytes : NULL,
		.private_data_len = size,
	};
	const size_t length = front_of(data, size, kind);
	u8 taken[IBCHAN_PRIVATE_DATA_SIZE];
	struct ibchan_reason reason = {};
	struct ibchan_cm_front front;
	u32 came, mtu;
	int rc;

	ibchan_cm_data_front(&id, &param, kind, &front);
	must(!front.magic == !length, "a front where there is one");
	must(length == 16 || (!front.rkey && !front.addr), "a key where there is one");
	mtu = ibchan_cm_front_mtu(&front);
	must(!mtu || (mtu >= 256 && mtu <= 4096), "an mtu that there is");
	came = ibchan_cm_data_take(&param, &front, taken);
	rc = ibchan_cm_data_check(ch, &front, &reason);
	must(came <= sizeof(taken), "no more than the caller has room for");
	must(length + came <= size, "no more than came");
	must(!memcmp(taken, bytes + length, came), "the bytes that came");
	must(!memchr_inv(taken + came, 0, sizeof(taken) - came), "zeros behind them");
	must(!rc || rc == -EINVAL, "0 or -EINVAL");
	must(rc || !ch->flow == !front.rkey, "both count credits, or none");
	must(!rc == !reason.code, "a reason if and only if it is refused");
	free(bytes);
}

/* As long as a rejection of ibchan's is, whose mark comes last. */
#define REJECTION	(IBCHAN_REJECT_DATA + 4)

/* A rejection has no header, whatever it looks like, and maybe a mark behind. */
static void rejected(bool plain, const u8 *data, size_t size)
{
	u8 *bytes = copy_of(data, size);
	const struct rdma_conn_param param = {
		.private_data = size ? bytes : NULL,
		.private_data_len = size,
	};
	const bool marked = !plain && size == REJECTION &&
			    !memcmp(data + IBCHAN_REJECT_DATA, "IBCJ", 4);
	u32 came = marked ? IBCHAN_REJECT_DATA : min_t(u32, size, IBCHAN_PRIVATE_DATA_SIZE);
	struct ibchan_cm cm = { .plain = plain };

	ibchan_cm_data_rejected(&cm, &param);
	must(cm.heard && cm.length == came, "as many as came and have room");
	must(!memcmp(cm.data, bytes, came), "the bytes that came with a rejection");
	must(!memchr_inv(cm.data + came, 0, sizeof(cm.data) - came), "zeros behind those");
	must(ibchan_cm_data_none(&param) == (!size || !memchr_inv(bytes, 0, size)),
	     "nothing where nothing came");
	free(bytes);
}

/* What one side writes the other one reads, whatever bytes they are. */
static void there_and_back(struct ibchan_channel *ch, u8 how, const u8 *data, size_t size)
{
	const u8 kind = how & ANSWER ? IBCHAN_FRONT_ANSWER : IBCHAN_FRONT_REQUEST;
	const u32 mtu = how & SHORTER && how & ANSWER ? MTU : 0;
	const u32 room = ibchan_cm_data_room(ch, how & PLAIN);
	const u32 length = min_t(u32, size, IBCHAN_PRIVATE_DATA_SIZE - room);
	struct ibchan_cm cm = { .ch = ch, .plain = how & PLAIN };
	struct ibchan_cm_front front = {};
	struct rdma_conn_param param = {};
	u8 taken[IBCHAN_PRIVATE_DATA_SIZE];
	u8 message[LARGEST] = {};
	u32 came;

	ibchan_cm_data_fill(&cm, data, length);
	if (how & ANSWER)
		ibchan_cm_data_answer(&cm, mtu);
	must(cm.length == room + length, "all of it, and no more than a message carries");
	must(room || !memcmp(cm.data, data, length), "what was sent, and nothing else");
	memcpy(message, cm.data, cm.length);
	param.private_data = message;
	param.private_data_len = how & FILLED ? LARGEST : cm.length;
	if (room)
		ibchan_cm_data_front(&id, &param, kind, &front);
	came = ibchan_cm_data_take(&param, &front, taken);
	must(how & FILLED ? came >= length : came == length, "as long as it was");
	must(!memcmp(taken, data, length), "what was sent");
	must(!memchr_inv(taken + length, 0, sizeof(taken) - length), "nothing but what was sent");
	if (!room)
		return;
	must(ibchan_cm_front_mtu(&front) == mtu, "the length that was sent");
	must(!(front.what & IBCHAN_FRONT_WRITES) == !(how & WRITES), "whether it takes writes");
	must(front.rkey == (ch->flow ? ch->flow->rkey : 0), "the key that was sent");
	must(front.addr == (ch->flow ? ch->flow->addr : 0), "the address that was sent");
	ibchan_cm_data_front(&id, &param, kind ^ IBCHAN_FRONT_ANSWER, &front);
	must(!front.magic, "of one kind only");
}

int fuzz_one(const u8 *data, size_t size)
{
	struct ibchan_flow flow = { .rkey = htobe32(0x1234), .addr = htobe64(0x5678) };
	struct ibchan_channel ch = {};

	if (!size || size - 1 > LARGEST)
		return 0;
	ch.flow = data[0] & CREDITS ? &flow : NULL;
	ch.qp.params.access = data[0] & WRITES ? IBCHAN_ACCESS_REMOTE_WRITE : 0;
	take_and_check(&ch, data[0] & ANSWER ? IBCHAN_FRONT_ANSWER : IBCHAN_FRONT_REQUEST,
		       data + 1, size - 1);
	rejected(data[0] & PLAIN, data + 1, size - 1);
	there_and_back(&ch, data[0], data + 1, size - 1);
	return 0;
}

/* Fronts of both kinds with and without credits, data like them, and a rejection. */
unsigned int fuzz_seed(unsigned int nr, u8 *data)
{
	static const u8 what[] = { 0x1, 0x3, 0x5, 0x37, 0x60, 0x8 };

	if (nr > 64)
		return 0;
	memset(data, 0x5a, MAX_SEED);
	data[0] = nr & 0x3f;
	memcpy(data + 1, magic, sizeof(magic));
	data[1 + sizeof(magic)] = what[nr % (sizeof(what) / sizeof(*what))];
	if (nr != 64)
		return 1 + 64;
	memcpy(data + 1 + IBCHAN_REJECT_DATA, "IBCJ", 4);
	return 1 + REJECTION;
}
