// SPDX-License-Identifier: GPL-2.0-only
/* The wire of the short way, without a wire: lengths and counts that no test can send. */
#include <stdlib.h>

#include "frame.h"
#include "test.h"

static int read_one(__u32 kind, __u64 length, __u32 size)
{
	struct frame_offer offer = { .frame = frame_make(kind, 0, length) };
	struct arrival arrival;

	return frame_read(&offer, size, &arrival);
}

TEST(a_frame_comes_as_it_was_made_whatever_its_length_is)
{
	static const __u64 lengths[] = { 1, UINT32_MAX, 1ULL << 32, (1ULL << 32) + 1, 1ULL << 40 };
	struct arrival arrival;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		const struct frame_offer offer = {
			.frame = frame_make(FRAME_OFFER, 0xfffffffe, lengths[i]),
			.addr = htobe64(0x123456789abcULL), .rkey = htobe32(0xdeadbeef),
		};

		ASSERT_EQ(0, frame_read(&offer, sizeof(offer), &arrival));
		EXPECT_EQ(FRAME_OFFER, arrival.kind);
		EXPECT_EQ(0xfffffffe, arrival.taken);
		EXPECT_EQ(lengths[i], arrival.length);
		EXPECT_EQ(0x123456789abcULL, arrival.addr);
		EXPECT_EQ(0xdeadbeef, arrival.rkey);
	}
}

TEST(an_offer_of_no_bytes_of_too_many_or_beyond_the_end_of_memory_is_refused)
{
	struct frame_offer offer = { .frame = frame_make(FRAME_OFFER, 0, 100) };
	struct arrival arrival;

	EXPECT_EQ(-EPROTO, read_one(FRAME_OFFER, 0, sizeof(offer)));
	EXPECT_EQ(-EPROTO, read_one(FRAME_OFFER, (1ULL << 40) + 1, sizeof(offer)));
	EXPECT_EQ(-EPROTO, read_one(FRAME_OFFER, 1ULL << 63, sizeof(offer)));
	EXPECT_EQ(-EPROTO, read_one(FRAME_OFFER, UINT64_MAX, sizeof(offer)));
	offer.addr = htobe64(UINT64_MAX - 100);
	EXPECT_EQ(0, frame_read(&offer, sizeof(offer), &arrival));
	offer.addr = htobe64(UINT64_MAX - 99);
	EXPECT_EQ(-EPROTO, frame_read(&offer, sizeof(offer), &arrival));
	offer.addr = 0;
	offer.reserved = htobe32(1);
	EXPECT_EQ(-EPROTO, frame_read(&offer, sizeof(offer), &arrival));
}

/* Of a message that lies behind the frame, the length is what arrived, and nothing else. */
TEST(a_frame_whose_length_is_not_that_of_what_arrived_is_refused)
{
	const __u32 size = sizeof(struct frame);

	EXPECT_EQ(0, read_one(FRAME_BYTES, 0, size));
	EXPECT_EQ(0, read_one(FRAME_BYTES, 5, size + 5));
	EXPECT_EQ(-EPROTO, read_one(FRAME_BYTES, 5, size + 4));
	EXPECT_EQ(-EPROTO, read_one(FRAME_BYTES, 5, size + 6));
	EXPECT_EQ(-EPROTO, read_one(FRAME_BYTES, 1ULL << 63, size));
	EXPECT_EQ(-EPROTO, read_one(FRAME_BYTES, (1ULL << 32) + 5, size + 5));
	EXPECT_EQ(0, read_one(FRAME_TAKEN, 0, size));
	EXPECT_EQ(-EPROTO, read_one(FRAME_TAKEN, 1, size));
	EXPECT_EQ(-EPROTO, read_one(FRAME_END, 0, size + 1));
	EXPECT_EQ(-EPROTO, read_one(FRAME_END, 0, size - 1));
	EXPECT_EQ(-EPROTO, read_one(FRAME_OFFER, 5, size));
	EXPECT_EQ(-EPROTO, read_one(0, 0, size));
	EXPECT_EQ(-EPROTO, read_one(FRAME_END + 1, 0, size));
	EXPECT_EQ(-EPROTO, read_one(FRAME_TAKEN, 0, 0));
}

TEST(a_window_opens_by_what_was_taken_also_where_the_counts_wrap)
{
	struct window window = { .size = 2, .sent = UINT32_MAX, .taken = UINT32_MAX };

	window.sent++;
	EXPECT_FALSE(window_is_full(&window));
	window.sent++;
	EXPECT_TRUE(window_is_full(&window));
	EXPECT_EQ(0, window_advance(&window, UINT32_MAX));
	EXPECT_TRUE(window_is_full(&window));
	EXPECT_EQ(0, window_advance(&window, 1));
	EXPECT_FALSE(window_is_full(&window));
}

/* A box is in use again when the message that lay in it was taken, and no sooner. */
TEST(a_window_uses_its_boxes_in_turn_also_where_the_counts_wrap)
{
	struct window window = { .size = 3, .sent = UINT32_MAX - 3, .taken = UINT32_MAX - 3 };
	__u32 i;

	for (i = 0; i < 10; i++) {
		EXPECT_EQ(i % 3, window.box);
		window_send(&window);
	}
	EXPECT_EQ(6, window.sent);
}

TEST(a_peer_that_takes_back_or_has_taken_more_than_was_sent_is_refused)
{
	struct window window = { .size = 4, .sent = 3, .taken = 1 };

	EXPECT_EQ(-EPROTO, window_advance(&window, 0));
	EXPECT_EQ(-EPROTO, window_advance(&window, 4));
	EXPECT_EQ(-EPROTO, window_advance(&window, 0x80000001));
	EXPECT_EQ(-EPROTO, window_advance(&window, UINT32_MAX));
	EXPECT_EQ(1, window.taken);
	EXPECT_EQ(0, window_advance(&window, 3));
}

TEST_HARNESS_MAIN
