// SPDX-License-Identifier: GPL-2.0-only
/*
 * Any bytes as what the connection manager brings from a peer. The first byte of the input
 * says whether this side counts credits, whether what it sends is filled up with zeros on
 * the way, and whether it tells of shorter packets; the others are the peer's, and then what
 * this side sends.
 */
#include "fuzz.h"
#include "kernel.h"
#include "cm.h"

#define CREDITS		0x1
#define FILLED		0x2
#define SHORTER		0x8
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

static void take_and_check(struct ibchan_channel *ch, const u8 *data, size_t size)
{
	u8 *bytes = copy_of(data, size);
	const struct rdma_conn_param param = {
		.private_data = size ? bytes : NULL,
		.private_data_len = size,
	};
	u8 taken[IBCHAN_PRIVATE_DATA_SIZE];
	struct ibchan_reason reason = {};
	struct ibchan_cm_credits credits;
	u32 length = ibchan_cm_data_take(&param, taken, &credits);
	int rc = ibchan_cm_data_check(ch, &credits, &reason);
	const bool has_mtu = size >= sizeof(struct ibchan_cm_mtu) && !memcmp(data, "IBCM", 4);
	size_t front = (credits.magic ? sizeof(credits) : 0) +
		       (has_mtu ? sizeof(struct ibchan_cm_mtu) : 0);

	must(length <= sizeof(taken), "no more than the caller has room for");
	must(front + length <= size, "no more than came");
	must(!memcmp(taken, bytes + front, length), "the bytes that came");
	must(!memchr_inv(taken + length, 0, sizeof(taken) - length), "zeros behind them");
	must(!rc || rc == -EINVAL, "0 or -EINVAL");
	must(rc || !ch->flow == !credits.rkey, "both count credits, or none");
	must(!rc == !reason.code, "a reason if and only if it is refused");
	must(has_mtu || !ibchan_cm_data_mtu(&param), "a length where there is one");
	free(bytes);
}

/* As long as a rejection of ibchan's is, whose mark comes last. */
#define REJECTION	(IBCHAN_REJECT_DATA + 4)

/* A rejection has no header, whatever it looks like, and maybe a mark behind. */
static void rejected(const u8 *data, size_t size)
{
	u8 *bytes = copy_of(data, size);
	const struct rdma_conn_param param = {
		.private_data = size ? bytes : NULL,
		.private_data_len = size,
	};
	const bool marked = size == REJECTION &&
			    !memcmp(data + IBCHAN_REJECT_DATA, "IBCJ", 4);
	u32 came = marked ? IBCHAN_REJECT_DATA : min_t(u32, size, IBCHAN_PRIVATE_DATA_SIZE);
	u8 taken[IBCHAN_PRIVATE_DATA_SIZE];

	must(ibchan_cm_data_rejected(&param, taken) == came, "as many as came and have room");
	must(!memcmp(taken, bytes, came), "the bytes that came with a rejection");
	must(!memchr_inv(taken + came, 0, sizeof(taken) - came), "zeros behind those");
	must(ibchan_cm_data_none(&param) == (!size || !memchr_inv(bytes, 0, size)),
	     "nothing where nothing came");
	free(bytes);
}

/* As many bytes as ibchan_check_data() lets a caller send. */
static u32 possible_length(const struct ibchan_channel *ch, u32 room, const u8 *data, size_t size)
{
	u32 length = min_t(u32, size, room);
	u32 most = room - ibchan_cm_data_room(ch, data, length);

	return min_t(u32, length, most);
}

/* What one side writes the other one reads, whatever bytes they are. */
static void there_and_back(struct ibchan_channel *ch, u8 how, const u8 *data, size_t size)
{
	const bool filled = how & FILLED;
	u32 mtu = how & SHORTER ? MTU : 0;
	u32 room = IBCHAN_PRIVATE_DATA_SIZE - (mtu ? sizeof(struct ibchan_cm_mtu) : 0);
	u32 length = possible_length(ch, room, data, size);
	struct ibchan_cm cm = { .ch = ch };
	struct rdma_conn_param param = {};
	u8 taken[IBCHAN_PRIVATE_DATA_SIZE];
	struct ibchan_cm_credits credits;
	u8 message[LARGEST] = {};
	u32 came;

	ibchan_cm_data_fill(&cm, data, length);
	if (mtu)
		ibchan_cm_data_tell_mtu(&cm, mtu);
	must(cm.length <= sizeof(cm.data), "no more than a message carries");
	memcpy(message, cm.data, cm.length);
	param.private_data = message;
	param.private_data_len = filled ? LARGEST : cm.length;
	came = ibchan_cm_data_take(&param, taken, &credits);
	must(filled ? came >= length : came == length, "as long as it was");
	must(!memcmp(taken, data, length), "what was sent");
	must(!memchr_inv(taken + length, 0, sizeof(taken) - length), "nothing but what was sent");
	must(ibchan_cm_data_mtu(&param) == mtu, "the length that was sent");
	must(credits.rkey == (ch->flow ? ch->flow->rkey : 0), "the key that was sent");
	must(credits.addr == (ch->flow ? ch->flow->addr : 0), "the address that was sent");
}

int fuzz_one(const u8 *data, size_t size)
{
	struct ibchan_flow flow = { .rkey = htobe32(0x1234), .addr = htobe64(0x5678) };
	struct ibchan_channel ch = {};

	if (!size || size - 1 > LARGEST)
		return 0;
	ch.flow = data[0] & CREDITS ? &flow : NULL;
	take_and_check(&ch, data + 1, size - 1);
	rejected(data + 1, size - 1);
	there_and_back(&ch, data[0], data + 1, size - 1);
	return 0;
}

unsigned int fuzz_seed(unsigned int nr, u8 *data)
{
	const struct ibchan_cm_credits credits = {
		.magic = htobe32(0x49424352), .rkey = htobe32(1), .addr = htobe64(2),
	};

	const struct ibchan_cm_mtu mtu = { .magic = htobe32(0x4942434d), .mtu = htobe32(MTU) };

	if (nr > 24)
		return 0;
	memset(data, 0x5a, MAX_SEED);
	data[0] = nr & (CREDITS | FILLED | SHORTER);
	if (nr & 16)
		memcpy(data + 1, &mtu, sizeof(mtu));
	else if (nr & 4)
		memcpy(data + 1, &credits, sizeof(credits));
	if (nr != 24)
		return 1 + 64;
	memcpy(data + 1 + IBCHAN_REJECT_DATA, "IBCJ", 4);
	return 1 + REJECTION;
}
