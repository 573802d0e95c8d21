// SPDX-License-Identifier: GPL-2.0-only
/* endpoint.c: a header that is written is read, a later version is served, other bytes are none. */
#include <linux/kernel.h>
#include <linux/string.h>

#include "cases.h"

/* What a request of InfiniBand carries, and more than any message does. */
#define REQUEST		56
#define LARGEST		255

#define LENGTH		5

static struct ibchan_wire own, peers;
static u8 bytes[LARGEST];

static int wire_suite_init(struct kunit *test)
{
	own = (struct ibchan_wire) {
		.version = IBCHAN_WIRE_VERSION,
		.room = IBCHAN_WIRE_HEADER,
		.length = LENGTH,
		.mtu = IB_MTU_1024,
		.flags = IBCHAN_WIRE_WRITES,
	};
	memset(bytes, 0, sizeof(bytes));
	return 0;
}

static void cross(u32 size)
{
	ibchan_wire_write(&own, IBCHAN_WIRE_REQUEST, bytes);
	ibchan_wire_read(bytes, size, IBCHAN_WIRE_REQUEST, &peers);
}

static void expect_none(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, !memchr_inv(&peers, 0, sizeof(peers)));
}

static void expect_same(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, peers.version, own.version);
	KUNIT_EXPECT_EQ(test, peers.room, own.room);
	KUNIT_EXPECT_EQ(test, peers.length, own.length);
	KUNIT_EXPECT_EQ(test, peers.mtu, own.mtu);
	KUNIT_EXPECT_EQ(test, peers.flags, own.flags);
}

static void what_one_side_writes_the_other_reads(struct kunit *test)
{
	cross(REQUEST);
	expect_same(test);
	cross(IBCHAN_WIRE_HEADER + LENGTH);
	expect_same(test);
}

/* Each byte is part of the contract. */
static void a_header_has_eight_bytes_in_network_order(struct kunit *test)
{
	static const u8 expected[] = { 0xc4, 0x1b, 1, 8, 5, 3, 0x00, 0x01, 0, 0, 0, 0 };

	cross(REQUEST);
	KUNIT_EXPECT_EQ(test, memcmp(bytes, expected, sizeof(expected)), 0);
}

static void a_peer_of_a_later_version_is_served_with_what_both_know(struct kunit *test)
{
	u32 version;

	for (version = IBCHAN_WIRE_VERSION; version <= U8_MAX; version++) {
		own.version = version;
		own.flags = 0xffff;
		/* What belongs to the bits that this version does not know. */
		own.room = REQUEST - LENGTH;
		own.mtu = 0xff;
		cross(REQUEST);
		KUNIT_EXPECT_EQ(test, peers.version, (u8)IBCHAN_WIRE_VERSION);
		KUNIT_EXPECT_EQ(test, peers.flags, (u16)IBCHAN_WIRE_WRITES);
		KUNIT_EXPECT_EQ(test, peers.room, own.room);
		KUNIT_EXPECT_EQ(test, peers.length, (u8)LENGTH);
		KUNIT_EXPECT_EQ(test, peers.mtu, (u8)0);
	}
	own.version = 0;
	cross(REQUEST);
	expect_none(test);
}

static void each_kind_of_header_is_read_as_that_only(struct kunit *test)
{
	static const u16 kinds[] = {
		IBCHAN_WIRE_REQUEST, IBCHAN_WIRE_ANSWER, IBCHAN_WIRE_REJECTION,
	};
	int i, j;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		ibchan_wire_write(&own, kinds[i], bytes);
		for (j = 0; j < ARRAY_SIZE(kinds); j++) {
			ibchan_wire_read(bytes, REQUEST, kinds[j], &peers);
			KUNIT_EXPECT_EQ(test, !peers.version, i != j);
		}
	}
}

static void a_message_that_ends_too_soon_has_no_header(struct kunit *test)
{
	u32 size;

	for (size = 0; size < IBCHAN_WIRE_HEADER + LENGTH; size++) {
		cross(size);
		expect_none(test);
	}
	ibchan_wire_read(NULL, 0, IBCHAN_WIRE_REQUEST, &peers);
	expect_none(test);
}

/* What else may be taken is within the message, and no longer than any place for it. */
static void each_length_in_a_message_of_each_size_is_judged(struct kunit *test)
{
	u32 size, room, length, at = 0;

	for (size = 0; size <= LARGEST; size += 5) {
		for (room = 0; room <= U8_MAX; room++) {
			length = (at += 7) & U8_MAX;
			own.room = room;
			own.length = length;
			cross(size);
			KUNIT_EXPECT_EQ_MSG(test, !peers.version,
					    size < IBCHAN_WIRE_HEADER ||
					    room < IBCHAN_WIRE_HEADER ||
					    length > IBCHAN_PRIVATE_DATA_SIZE ||
					    room + length > size,
					    "size %u, room %u, length %u", size, room, length);
		}
	}
}

static void random_bytes_are_no_header_or_stay_within_the_message(struct kunit *test)
{
	u32 random = 0x49424357, round, size, i;

	for (round = 0; round < 20000; round++) {
		size = next_random(&random) % (LARGEST + 1);
		for (i = 0; i < size; i++)
			bytes[i] = next_random(&random);
		/* Half of them begin as one. */
		bytes[0] = round & 1 ? IBCHAN_WIRE_ANSWER >> 8 : bytes[0];
		bytes[1] = round & 1 ? IBCHAN_WIRE_ANSWER & 0xff : bytes[1];
		ibchan_wire_read(bytes, size, IBCHAN_WIRE_ANSWER, &peers);
		if (!peers.version) {
			expect_none(test);
			continue;
		}
		KUNIT_EXPECT_TRUE(test, peers.room + peers.length <= size);
		KUNIT_EXPECT_TRUE(test, peers.length <= IBCHAN_PRIVATE_DATA_SIZE);
		KUNIT_EXPECT_TRUE(test, peers.mtu <= IB_MTU_4096);
		KUNIT_EXPECT_TRUE(test, !(peers.flags & ~IBCHAN_WIRE_FLAGS));
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(what_one_side_writes_the_other_reads),
	KUNIT_CASE(a_header_has_eight_bytes_in_network_order),
	KUNIT_CASE(a_peer_of_a_later_version_is_served_with_what_both_know),
	KUNIT_CASE(each_kind_of_header_is_read_as_that_only),
	KUNIT_CASE(a_message_that_ends_too_soon_has_no_header),
	KUNIT_CASE(each_length_in_a_message_of_each_size_is_judged),
	KUNIT_CASE(random_bytes_are_no_header_or_stay_within_the_message),
	{}
};

struct kunit_suite wire_suite = {
	.name = "ibchan_wire",
	.init = wire_suite_init,
	.test_cases = cases,
};
