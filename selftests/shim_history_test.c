// SPDX-License-Identifier: GPL-2.0-only
/* The history of a channel through the library, and its words. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "shim/end.h"
#include "test.h"
#include "world.h"

FIXTURE(shim_history)
{
	struct calm calm;
	struct ibchan_context *context;
	struct end a;
	struct end b;
};

FIXTURE_SETUP(shim_history)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, open_ends(&self->a, &self->b, &self->context));
}

FIXTURE_TEARDOWN(shim_history)
{
	EXPECT_EQ(0, close_ends(&self->a, &self->b, self->context));
	EXPECT_EQ(0, calm_end(&self->calm));
}

TEST_F(shim_history, is_read_oldest_first)
{
	struct ibchan_history_event events[IBCHAN_HISTORY_MAX];
	int i, num;

	ASSERT_EQ(0, ibchan_channel_break(self->a.channel));
	num = ibchan_channel_history(self->a.channel, events, IBCHAN_HISTORY_MAX, NULL);
	ASSERT_LE(3, num);
	EXPECT_EQ(IBCHAN_HISTORY_BUILT, events[0].kind);
	EXPECT_EQ(IBCHAN_HISTORY_CONNECTED, events[1].kind);
	EXPECT_EQ(IBCHAN_HISTORY_BROKEN, events[num - 1].kind);
	for (i = 0; i < num; i++)
		EXPECT_EQ(i, events[i].number);
	ASSERT_EQ(1, ibchan_channel_history(self->a.channel, events, 1, NULL));
	EXPECT_EQ(IBCHAN_HISTORY_BROKEN, events[0].kind);
	EXPECT_EQ(0, ibchan_channel_history(self->a.channel, events, 0, NULL));
	EXPECT_EQ(-EFAULT, ibchan_channel_history(self->a.channel, NULL, 1, NULL));
}

static const struct {
	struct ibchan_history_event event;
	const char *text;
} texts[] = {
	{ { 1000002000, 0, IBCHAN_HISTORY_BUILT, 0, 0x12, 1ULL << 32 | 3 },
	  "1.000002 #0 BUILT: qpn 0x12, port 1, GID index 3" },
	{ { 0, 1, IBCHAN_HISTORY_HANDSHAKE, EINVAL, IBCHAN_REASON_PEER_MTU, 0 },
	  "0.000000 #1 HANDSHAKE: failed (PEER_MTU): Invalid argument" },
	{ { 0, 2, IBCHAN_HISTORY_CONNECTED, 0, 0x34, 1024 },
	  "0.000000 #2 CONNECTED: to qpn 0x34, mtu 1024" },
	{ { 0, 3, IBCHAN_HISTORY_POST_REFUSED, EAGAIN, IBCHAN_REASON_RING_FULL, 7 },
	  "0.000000 #3 POST_REFUSED: RING_FULL, wr_id 7: Resource temporarily unavailable" },
	{ { 0, 4, IBCHAN_HISTORY_WORK_FAILED, ETIMEDOUT,
	    IBCHAN_STATUS_RETRY_EXC_ERR | IBCHAN_OP_WRITE << 16, 8 },
	  "0.000000 #4 WORK_FAILED: write with wr_id 8: RETRY_EXC_ERR: Connection timed out" },
	{ { 0, 5, IBCHAN_HISTORY_VENDOR_ERROR, 0, 0x81, 0 },
	  "0.000000 #5 VENDOR_ERROR: 0x81" },
	{ { 0, 6, IBCHAN_HISTORY_BROKEN, ECANCELED, 0, 0 },
	  "0.000000 #6 BROKEN: first failed work none: Operation canceled" },
	{ { 0, 7, IBCHAN_HISTORY_PROBES, 0, 4, 5 },
	  "0.000000 #7 PROBES: 5 sent, 4 answered" },
	{ { 0, 8, IBCHAN_HISTORY_CLOSED, ENODEV, 0, 0 },
	  "0.000000 #8 CLOSED: -: No such device" },
	{ { 0, 9, IBCHAN_HISTORY_CM, 0, IBCHAN_STAGE_REQUEST, 0 },
	  "0.000000 #9 CM: asking the peer" },
	{ { 0, 10, IBCHAN_HISTORY_CM, ECONNREFUSED, IBCHAN_STAGE_REQUEST, 8 },
	  "0.000000 #10 CM: failed asking the peer: Connection refused" },
	{ { 0, 11, IBCHAN_HISTORY_DISCONNECTED, 0, 0, 0 },
	  "0.000000 #11 DISCONNECTED: by the peer" },
	{ { 0, 12, IBCHAN_HISTORY_ADDRESS, EADDRNOTAVAIL, 3, 1 },
	  "0.000000 #12 ADDRESS: port 1, GID index 3 has gone: Cannot assign requested address" },
	{ { 0, 13, IBCHAN_HISTORY_ADDRESS, 0, 4, 2 },
	  "0.000000 #13 ADDRESS: port 2, GID index 4" },
	{ { 0, 14, IBCHAN_HISTORY_PORT, 0, 1, 10 }, "0.000000 #14 PORT: port 1 is down" },
	{ { 0, 15, IBCHAN_HISTORY_PORT, 0, 2, 9 }, "0.000000 #15 PORT: port 2 is active" },
	{ { 0, 16, IBCHAN_HISTORY_PORT, 0, 2, 11 }, "0.000000 #16 PORT: port 2 has changed" },
	{ { 0, 17, IBCHAN_HISTORY_WAY_CHANGED, 0, 0, 0 },
	  "0.000000 #17 WAY_CHANGED: to the peer" },
	{ { 0, 18, IBCHAN_HISTORY_WAY_CHANGED, 0, 1, 0 },
	  "0.000000 #18 WAY_CHANGED: from here" },
	{ { 0, 9, 999, 99999, 0, 0 }, "0.000000 #9 unknown: -: unknown error" },
};

TEST(each_kind_of_event_has_its_words)
{
	char buf[256];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		EXPECT_EQ((int)strlen(texts[i].text),
			  ibchan_history_text(&texts[i].event, buf, sizeof(buf)));
		EXPECT_STREQ(texts[i].text, buf);
	}
}

TEST(a_text_that_does_not_fit_is_cut_and_its_length_told)
{
	char buf[8] = "xxxxxxx";

	EXPECT_EQ((int)strlen(texts[0].text), ibchan_history_text(&texts[0].event, buf, 5));
	EXPECT_STREQ("1.00", buf);
	EXPECT_EQ('x', buf[5]);
	EXPECT_EQ((int)strlen(texts[0].text), ibchan_history_text(&texts[0].event, NULL, 0));
}

#define KIND_NAME(nr, NAME) { nr, #NAME },
TEST(each_kind_of_event_has_its_name)
{
	static const struct {
		__u32 kind;
		const char *name;
	} kinds[] = {
		IBCHAN_HISTORY_KINDS(KIND_NAME)
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		EXPECT_STREQ(kinds[i].name, ibchan_history_name(kinds[i].kind));
	EXPECT_STREQ("unknown", ibchan_history_name(0));
	EXPECT_STREQ("unknown", ibchan_history_name(~0U));
}

TEST_HARNESS_MAIN
