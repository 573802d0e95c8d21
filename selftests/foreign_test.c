// SPDX-License-Identifier: GPL-2.0-only
/* Peers by address that are no ibchan, and what they offer. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "ghost.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define PORT	7721

FIXTURE(peer)
{
	struct calm calm;
	struct side side;
	struct ghost ghost;
	struct ibchan_address address;
};

FIXTURE_VARIANT(peer)
{
	int (*meet)(struct side *side, struct ghost *ghost, const struct ibchan_address *address);
};

static bool is_connected(void *side)
{
	return side_state(side) == IBCHAN_CHANNEL_CONNECTED;
}

static int meet_asked(struct side *side, struct ghost *ghost,
		      const struct ibchan_address *address)
{
	struct ibchan_cmd_channel_connect connect = {
		.channel = side->channel, .peer = *address,
	};
	int rc = ghost_listen(ghost, address);

	if (!rc)
		rc = cmd_channel_connect(side->fd, &connect);
	if (!rc)
		rc = ghost_accept(ghost);
	return rc || eventually(is_connected, side) ? rc : -ECONNREFUSED;
}

static int meet_asking(struct side *side, struct ghost *ghost,
		       const struct ibchan_address *address)
{
	struct ibchan_cmd_listener_create listen = { .address = *address };
	int rc = cmd_listener_create(side->fd, &listen);

	if (rc)
		return rc;
	rc = ghost_ask(ghost, address);
	rc = rc ?: side_accept(side, listen.out_listener, listen.out_fd);
	rc = rc ?: ghost_connected(ghost);
	close(listen.out_fd);
	return rc || eventually(is_connected, side) ? rc : -ECONNREFUSED;
}

FIXTURE_VARIANT_ADD(peer, asked) { .meet = meet_asked };
FIXTURE_VARIANT_ADD(peer, asking) { .meet = meet_asking };

FIXTURE_SETUP(peer)
{
	struct side_options options = side_defaults();

	memset(&self->ghost, 0, sizeof(self->ghost));
	self->address = (struct ibchan_address){ .family = AF_INET, .port = htons(PORT) };
	inet_pton(AF_INET, "10.77.0.1", self->address.bytes);
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, side_open(&self->side, &options));
}

FIXTURE_TEARDOWN(peer)
{
	ghost_close(&self->ghost);
	side_close(&self->side);
	EXPECT_EQ(0, calm_end(&self->calm));
}

static struct ibchan_submit_wr one_sided(const struct side *side, int opcode, __u32 length)
{
	struct ibchan_submit_wr wr = work(side, opcode, 1, 0, length);

	work_at(&wr, side, 64);
	return wr;
}

/* A device would keep them for ever. */
TEST_F(peer, that_serves_no_reads_is_sent_none)
{
	struct ibchan_cmd_channel_query query;
	struct ibchan_submit_wr wr;
	struct answer answer;

	self->ghost.more_reads = -1;
	ASSERT_EQ(0, variant->meet(&self->side, &self->ghost, &self->address));
	ASSERT_EQ(0, side_query(&self->side, &query));
	EXPECT_EQ(0, query.params.max_rd_atomic);
	wr = one_sided(&self->side, IBCHAN_OP_READ, 64);
	answer = ask_one(&self->side, &wr);
	EXPECT_EQ(0, is_refusal(&answer, EOPNOTSUPP, IBCHAN_REASON_PEER_NO_READS));
	wr = one_sided(&self->side, IBCHAN_OP_FETCH_ADD, 8);
	answer = ask_one(&self->side, &wr);
	EXPECT_EQ(0, is_refusal(&answer, EOPNOTSUPP, IBCHAN_REASON_PEER_NO_READS));
	EXPECT_EQ(0, post_one(&self->side, one_sided(&self->side, IBCHAN_OP_WRITE, 64)));
}

TEST_F(peer, that_serves_a_read_is_sent_it)
{
	ASSERT_EQ(0, variant->meet(&self->side, &self->ghost, &self->address));
	EXPECT_EQ(0, post_one(&self->side, one_sided(&self->side, IBCHAN_OP_READ, 64)));
}

static int lesser(int a, int b)
{
	return a < b ? a : b;
}

/* What one combination of two numbers, which no two stacks choose alike, comes to. */
static void expect_agreed(struct __test_metadata *_metadata, FIXTURE_DATA(peer) * self, int serves,
			  int starts)
{
	const int ours = self->side.params.max_rd_atomic;
	struct ibchan_cmd_channel_query query;
	struct ibchan_submit_wr wr;
	struct answer answer;

	ASSERT_EQ(0, side_query(&self->side, &query));
	EXPECT_EQ(lesser(ours, serves), (int)query.params.max_rd_atomic);
	EXPECT_EQ(0, post_one(&self->side, one_sided(&self->side, IBCHAN_OP_WRITE, 64)));
	/* Beside what the write is from, which is in flight. */
	wr = work(&self->side, IBCHAN_OP_READ, 2, 128, 64);
	work_at(&wr, &self->side, 64);
	answer = ask_one(&self->side, &wr);
	EXPECT_EQ(0, serves ? answer.rc :
			      is_refusal(&answer, EOPNOTSUPP, IBCHAN_REASON_PEER_NO_READS));
	/* Only a peer that asks hears what both can. */
	if (self->ghost.told.qp_num) {
		EXPECT_EQ(lesser(ours, serves), (int)self->ghost.told.responder_resources);
		EXPECT_EQ(lesser(ours, starts), (int)self->ghost.told.initiator_depth);
	}
}

/* A storage host serves reads and starts none; its target reads and writes. */
TEST_F(peer, is_sent_as_many_reads_as_it_serves_whatever_it_starts)
{
	static const int numbers[] = { 0, 2, 4, 16, 255 };
	const struct side_options options = side_defaults();
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(numbers); i++) {
		for (j = 0; j < ARRAY_SIZE(numbers); j++) {
			memset(&self->ghost, 0, sizeof(self->ghost));
			self->ghost.more_reads = numbers[i] - 1;
			self->ghost.more_started = numbers[j] - 1;
			ASSERT_EQ(0, variant->meet(&self->side, &self->ghost, &self->address)) {
				TH_LOG("serves %d, starts %d", numbers[i], numbers[j]);
			}
			expect_agreed(_metadata, self, numbers[i], numbers[j]);
			ghost_close(&self->ghost);
			side_close(&self->side);
			ASSERT_EQ(0, side_open(&self->side, &options));
		}
	}
}

TEST_HARNESS_MAIN
