// SPDX-License-Identifier: GPL-2.0-only
/* Peers by address that are no ibchan, and what they offer. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
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
		.channel = side->channel, .peer = *address, .flags = IBCHAN_CONNECT_FOREIGN,
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
	rc = rc ?: side_accept_any(side, listen.out_listener, listen.out_fd,
				   IBCHAN_CONNECT_FOREIGN);
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
	EXPECT_EQ(0, query.out.params.max_rd_atomic);
	wr = one_sided(&self->side, IBCHAN_OP_READ, 64);
	answer = ask_one(&self->side, &wr);
	EXPECT_EQ(0, is_refusal(&answer, EOPNOTSUPP, IBCHAN_REASON_PEER_NO_READS));
	wr = one_sided(&self->side, IBCHAN_OP_FETCH_ADD, 8);
	answer = ask_one(&self->side, &wr);
	EXPECT_EQ(0, is_refusal(&answer, EOPNOTSUPP, IBCHAN_REASON_PEER_NO_READS));
	EXPECT_EQ(0, post_one(&self->side, one_sided(&self->side, IBCHAN_OP_WRITE, 64)));
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
	EXPECT_EQ(lesser(ours, serves), (int)query.out.params.max_rd_atomic);
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

/* What it says of its receives is no promise to take writes. */
TEST_F(peer, is_not_asked_whether_it_lives_whatever_its_bits_say)
{
	const struct side_options options = side_defaults();
	struct ibchan_cmd_channel_query query;
	int bits;

	for (bits = 0; bits < 4; bits++) {
		memset(&self->ghost, 0, sizeof(self->ghost));
		self->ghost.srq = bits & 1;
		self->ghost.flow_control = bits >> 1;
		ASSERT_EQ(0, variant->meet(&self->side, &self->ghost, &self->address));
		ASSERT_EQ(0, side_query(&self->side, &query));
		EXPECT_EQ(0, query.out.facts.notice_ms) {
			TH_LOG("srq %d, flow control %d", bits & 1, bits >> 1);
		}
		ghost_close(&self->ghost);
		side_close(&self->side);
		ASSERT_EQ(0, side_open(&self->side, &options));
	}
}

/* ---- Private data: what a consumer gives, the other one gets, and nothing else ---- */

#define REQUEST_DATA	56
#define ANSWER_DATA	IBCHAN_PRIVATE_DATA_SIZE
#define REJECT_DATA	148

FIXTURE(data)
{
	struct calm calm;
	struct side side;
	struct ghost ghost;
	struct ibchan_address address;
	__u32 listener;
	int listener_fd;
	__u32 request;
	unsigned char bytes[ANSWER_DATA];
};

/* @begin, then a pattern: @most bytes, or as many as go with the message. */
FIXTURE_VARIANT(data)
{
	const char *begin;
	__u32 most;
};

FIXTURE_VARIANT_ADD(data, nothing) { .begin = "" };
FIXTURE_VARIANT_ADD(data, one_byte) { .begin = "", .most = 1 };
FIXTURE_VARIANT_ADD(data, largest) { .begin = "", .most = ANSWER_DATA };
FIXTURE_VARIANT_ADD(data, kind_only) { .begin = "\xc4\x1b", .most = 2 };
FIXTURE_VARIANT_ADD(data, like_an_answer) { .begin = "\xc4\x1c\x01\x08", .most = ANSWER_DATA };
FIXTURE_VARIANT_ADD(data, like_a_rejection) { .begin = "\xc4\x1d\x01\x08", .most = 40 };
FIXTURE_VARIANT_ADD(data, like_a_request_of_version_0) { .begin = "\xc4\x1b", .most = 40 };
FIXTURE_VARIANT_ADD(data, like_a_longer_request) { .begin = "\xc4\x1b\x01\x08\xff", .most = 56 };
FIXTURE_VARIANT_ADD(data, like_a_shorter_header) { .begin = "\xc4\x1b\x01\x07", .most = 40 };

FIXTURE_SETUP(data)
{
	struct side_options options = side_defaults();
	size_t i, length = strlen(variant->begin);

	memset(&self->ghost, 0, sizeof(self->ghost));
	self->listener_fd = -1;
	for (i = 0; i < sizeof(self->bytes); i++)
		self->bytes[i] = 0x5a ^ i;
	memcpy(self->bytes, variant->begin, length);
	self->address = (struct ibchan_address){ .family = AF_INET, .port = htons(PORT) };
	inet_pton(AF_INET, "10.77.0.1", self->address.bytes);
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, side_open(&self->side, &options));
}

FIXTURE_TEARDOWN(data)
{
	ghost_close(&self->ghost);
	if (self->listener_fd >= 0)
		close(self->listener_fd);
	side_close(&self->side);
	EXPECT_EQ(0, calm_end(&self->calm));
}

static __u32 most(const FIXTURE_VARIANT(data) * variant, __u32 room)
{
	return variant->most < room ? variant->most : room;
}

static void give_ghost(FIXTURE_DATA(data) * self, __u32 length)
{
	self->ghost.data = self->bytes;
	self->ghost.length = length;
}

/* The ghost listens, and the side asks it. */
static int ask_ghost(FIXTURE_DATA(data) * self, __u32 flags, __u32 length)
{
	struct ibchan_cmd_channel_connect connect = {
		.channel = self->side.channel, .peer = self->address,
		.flags = flags, .data_length = length,
	};
	int rc = ghost_listen(&self->ghost, &self->address);

	memcpy(connect.data, self->bytes, length);
	rc = rc ?: cmd_channel_connect(self->side.fd, &connect);
	return rc ?: ghost_asked(&self->ghost);
}

/* The side listens, and the ghost asks it. */
static int asked_by_ghost(FIXTURE_DATA(data) * self, struct ibchan_cmd_request_take *take)
{
	struct ibchan_cmd_listener_create listen = { .address = self->address };
	int rc = cmd_listener_create(self->side.fd, &listen);
	struct pollfd pollfd = { .fd = listen.out_fd, .events = POLLIN };

	if (rc)
		return rc;
	self->listener_fd = listen.out_fd;
	rc = ghost_ask(&self->ghost, &self->address);
	if (rc || poll(&pollfd, 1, patience_ms()) != 1)
		return rc ?: -ETIMEDOUT;
	take->listener = listen.out_listener;
	rc = cmd_request_take(self->side.fd, take);
	self->request = take->out_request;
	return rc;
}

static int answer_ghost(FIXTURE_DATA(data) * self, __u32 length)
{
	struct ibchan_cmd_request_accept accept = {
		.request = self->request, .channel = self->side.channel, .data_length = length,
		.flags = IBCHAN_CONNECT_FOREIGN,
	};

	memcpy(accept.data, self->bytes, length);
	return cmd_request_accept(self->side.fd, &accept);
}

/* Whether @length bytes came, with zeros alone behind them. */
static bool came(const FIXTURE_DATA(data) * self, const __u8 *data, __u32 room, __u32 length)
{
	__u32 i;

	for (i = length; i < room; i++)
		if (data[i])
			return false;
	return !memcmp(data, self->bytes, length);
}

static int connection_of(const struct side *side, struct ibchan_cmd_channel_connection *cmd)
{
	*cmd = (struct ibchan_cmd_channel_connection) {
		.channel = side->channel, .timeout_ns = patience_ms() * 1000000LL,
	};
	return cmd_channel_connection(side->fd, cmd);
}

TEST_F(data, of_who_asks_come_to_a_foreign_server_and_nothing_else)
{
	const __u32 length = most(variant, REQUEST_DATA);

	ASSERT_EQ(0, ask_ghost(self, IBCHAN_CONNECT_FOREIGN, length));
	EXPECT_TRUE(came(self, self->ghost.asked.private_data, REQUEST_DATA, length));
	EXPECT_EQ(0, self->ghost.asked.srq);
	EXPECT_EQ(1, self->ghost.asked.flow_control);
}

TEST_F(data, of_a_foreign_server_come_to_who_asks_and_nothing_else)
{
	const __u32 length = most(variant, ANSWER_DATA);
	struct ibchan_cmd_channel_connection connection;

	ASSERT_EQ(0, ask_ghost(self, IBCHAN_CONNECT_FOREIGN, 0));
	give_ghost(self, length);
	ASSERT_EQ(0, ghost_yes(&self->ghost));
	ASSERT_EQ(0, connection_of(&self->side, &connection));
	EXPECT_EQ(ANSWER_DATA, connection.out_data_length);
	EXPECT_TRUE(came(self, connection.out_data, ANSWER_DATA, length));
}

TEST_F(data, of_a_foreign_client_come_to_the_server_and_nothing_else)
{
	const __u32 length = most(variant, REQUEST_DATA);
	struct ibchan_cmd_request_take take = { .listener = 0 };

	give_ghost(self, length);
	ASSERT_EQ(0, asked_by_ghost(self, &take));
	EXPECT_EQ(REQUEST_DATA, take.out_data_length);
	EXPECT_TRUE(came(self, take.out_data, ANSWER_DATA, length));
}

static void expect_answered(struct __test_metadata *_metadata, FIXTURE_DATA(data) * self,
			    __u32 length)
{
	struct ibchan_cmd_request_take take = { .listener = 0 };

	ASSERT_EQ(0, asked_by_ghost(self, &take));
	ASSERT_EQ(0, answer_ghost(self, length));
	ASSERT_EQ(0, ghost_connected(&self->ghost));
	EXPECT_TRUE(came(self, self->ghost.told.private_data, ANSWER_DATA, length)) {
		TH_LOG("srq %d, flow control %d", self->ghost.srq, self->ghost.flow_control);
	}
	EXPECT_EQ(0, self->ghost.told.srq);
	EXPECT_EQ(1, self->ghost.told.flow_control);
}

TEST_F(data, of_the_server_come_to_a_foreign_client_whatever_its_bits_say)
{
	const struct side_options options = side_defaults();
	int bits;

	for (bits = 0; bits < 4; bits++) {
		memset(&self->ghost, 0, sizeof(self->ghost));
		self->ghost.srq = bits & 1;
		self->ghost.flow_control = bits >> 1;
		expect_answered(_metadata, self, most(variant, ANSWER_DATA));
		ghost_close(&self->ghost);
		close(self->listener_fd);
		self->listener_fd = -1;
		side_close(&self->side);
		ASSERT_EQ(0, side_open(&self->side, &options));
	}
}

TEST_F(data, of_a_rejection_come_to_a_foreign_client_and_nothing_else)
{
	struct ibchan_cmd_request_reject reject = { .data_length = most(variant, REJECT_DATA) };
	struct ibchan_cmd_request_take take = { .listener = 0 };

	ASSERT_EQ(0, asked_by_ghost(self, &take));
	reject.request = self->request;
	memcpy(reject.data, self->bytes, reject.data_length);
	ASSERT_EQ(0, cmd_request_reject(self->side.fd, &reject));
	ASSERT_EQ(0, ghost_rejected(&self->ghost));
	EXPECT_TRUE(came(self, self->ghost.told.private_data, REJECT_DATA, reject.data_length));
}

TEST_F(data, of_a_foreign_servers_rejection_come_to_who_asks_and_nothing_else)
{
	const __u32 length = most(variant, REJECT_DATA);
	struct ibchan_cmd_channel_connection connection;

	ASSERT_EQ(0, ask_ghost(self, IBCHAN_CONNECT_FOREIGN, 0));
	give_ghost(self, length);
	ASSERT_EQ(0, ghost_no(&self->ghost));
	ASSERT_EQ(0, connection_of(&self->side, &connection));
	EXPECT_EQ(length ? ECONNRESET : ECONNREFUSED, connection.out_error);
	EXPECT_TRUE(came(self, connection.out_data, ANSWER_DATA, length));
}

FIXTURE(foreign_peer)
{
	struct calm calm;
	struct side side;
	struct ghost ghost;
	struct ibchan_address address;
};

FIXTURE_SETUP(foreign_peer)
{
	memset(&self->ghost, 0, sizeof(self->ghost));
	memset(&self->side, 0, sizeof(self->side));
	self->address = (struct ibchan_address){ .family = AF_INET, .port = htons(PORT) };
	inet_pton(AF_INET, "10.77.0.1", self->address.bytes);
	ASSERT_EQ(0, calm_begin(&self->calm));
}

FIXTURE_TEARDOWN(foreign_peer)
{
	ghost_close(&self->ghost);
	side_close(&self->side);
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* With a shared receive queue or without, it would go on with longer packets. */
TEST_F(foreign_peer, with_an_srq_is_told_of_no_other_mtu)
{
	static const __u8 nothing[REJECT_DATA];
	struct side_options options = side_defaults();

	options.params.mtu = 256;
	ASSERT_EQ(0, side_open(&self->side, &options));
	self->ghost.srq = 1;
	EXPECT_EQ(-EPROTO, meet_asking(&self->side, &self->ghost, &self->address));
	EXPECT_EQ(0, memcmp(nothing, self->ghost.told.private_data, sizeof(nothing)));
}

static int ask_as_ibchan(FIXTURE_DATA(foreign_peer) * self)
{
	const struct side_options options = side_defaults();
	struct ibchan_cmd_channel_connect connect = { .peer = self->address };
	int rc = side_open(&self->side, &options);

	connect.channel = self->side.channel;
	rc = rc ?: ghost_listen(&self->ghost, &self->address);
	rc = rc ?: cmd_channel_connect(self->side.fd, &connect);
	return rc ?: ghost_asked(&self->ghost);
}

static int error_of(const struct side *side)
{
	struct ibchan_cmd_channel_connection connection;

	return connection_of(side, &connection) ?: -(int)connection.out_error;
}

TEST_F(foreign_peer, that_answers_an_ibchan_is_refused)
{
	ASSERT_EQ(0, ask_as_ibchan(self));
	EXPECT_EQ(-EPROTO, ghost_yes(&self->ghost));
	EXPECT_EQ(-EPROTOTYPE, error_of(&self->side));
}

/* It has not said what it is. */
TEST_F(foreign_peer, that_sends_back_what_it_got_is_refused)
{
	ASSERT_EQ(0, ask_as_ibchan(self));
	self->ghost.data = self->ghost.asked.private_data;
	self->ghost.length = REQUEST_DATA;
	EXPECT_EQ(-EPROTO, ghost_yes(&self->ghost));
	EXPECT_EQ(-EPROTOTYPE, error_of(&self->side));
}

TEST_F(foreign_peer, that_asks_is_refused_in_words_and_served_when_it_may_be_none)
{
	const struct side_options options = side_defaults();
	struct ibchan_cmd_listener_create listen = { .address = self->address };
	struct ibchan_cmd_request_accept accept = {};
	struct ibchan_cmd_request_take take = {};
	struct pollfd pollfd = { .events = POLLIN };

	ASSERT_EQ(0, side_open(&self->side, &options));
	ASSERT_EQ(0, cmd_listener_create(self->side.fd, &listen));
	ASSERT_EQ(0, ghost_ask(&self->ghost, &self->address));
	pollfd.fd = listen.out_fd;
	ASSERT_EQ(1, poll(&pollfd, 1, patience_ms()));
	take.listener = listen.out_listener;
	ASSERT_EQ(0, cmd_request_take(self->side.fd, &take));
	accept.request = take.out_request;
	accept.channel = self->side.channel;
	EXPECT_EQ(-EPROTOTYPE, cmd_request_accept(self->side.fd, &accept));
	EXPECT_EQ(IBCHAN_REASON_FOREIGN, accept.reason.code);
	EXPECT_EQ(IBCHAN_CHANNEL_PREPARED, side_state(&self->side));
	accept.flags = IBCHAN_CONNECT_FOREIGN;
	EXPECT_EQ(0, cmd_request_accept(self->side.fd, &accept));
	EXPECT_EQ(0, ghost_connected(&self->ghost));
	EXPECT_TRUE(eventually(is_connected, &self->side));
	close(listen.out_fd);
}

/* ---- Peers of a later version, which know what this one does not ---- */

#define PRIVATE		"later"

FIXTURE(later)
{
	struct calm calm;
	struct side side;
	struct ghost ghost;
	struct ibchan_address address;
	unsigned char bytes[40];
};

/* A header that is longer, bits and an mtu that are not known; the private data behind it. */
static void speak_later(FIXTURE_DATA(later) * self, bool answers)
{
	const size_t room = sizeof(self->bytes) - sizeof(PRIVATE);

	ghost_speak(&self->ghost, answers);
	memset(self->bytes, 0xe7, sizeof(self->bytes));
	memcpy(self->bytes, self->ghost.header, GHOST_HEADER);
	self->bytes[2] = IBCHAN_ENDPOINT_VERSION + 1;
	self->bytes[3] = room;
	self->bytes[4] = sizeof(PRIVATE);
	self->bytes[5] = 0x77;
	self->bytes[6] = 0xff;
	self->bytes[7] = 0xff;
	memcpy(self->bytes + room, PRIVATE, sizeof(PRIVATE));
	self->ghost.data = self->bytes;
	self->ghost.length = sizeof(self->bytes);
}

FIXTURE_SETUP(later)
{
	const struct side_options options = side_defaults();

	memset(&self->ghost, 0, sizeof(self->ghost));
	self->address = (struct ibchan_address){ .family = AF_INET, .port = htons(PORT) };
	inet_pton(AF_INET, "10.77.0.1", self->address.bytes);
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, side_open(&self->side, &options));
}

FIXTURE_TEARDOWN(later)
{
	ghost_close(&self->ghost);
	side_close(&self->side);
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* As an ibchan: its private data alone, and it is watched. */
static void expect_served(struct __test_metadata *_metadata, FIXTURE_DATA(later) * self)
{
	struct ibchan_cmd_channel_connection connection;
	struct ibchan_cmd_channel_query query;

	ASSERT_EQ(0, connection_of(&self->side, &connection));
	EXPECT_EQ(IBCHAN_STAGE_DONE, connection.out_stage);
	EXPECT_EQ(sizeof(PRIVATE), connection.out_data_length);
	EXPECT_EQ(0, memcmp(PRIVATE, connection.out_data, sizeof(PRIVATE)));
	ASSERT_EQ(0, side_query(&self->side, &query));
	EXPECT_NE(0, query.out.facts.notice_ms);
}

TEST_F(later, version_that_asks_is_served)
{
	struct ibchan_cmd_listener_create listen = { .address = self->address };

	ASSERT_EQ(0, cmd_listener_create(self->side.fd, &listen));
	speak_later(self, false);
	ASSERT_EQ(0, ghost_ask(&self->ghost, &self->address));
	ASSERT_EQ(0, side_accept(&self->side, listen.out_listener, listen.out_fd));
	ASSERT_EQ(0, ghost_connected(&self->ghost));
	EXPECT_TRUE(eventually(is_connected, &self->side));
	EXPECT_EQ(IBCHAN_ENDPOINT_VERSION, self->ghost.told.private_data[2]);
	expect_served(_metadata, self);
	close(listen.out_fd);
}

TEST_F(later, version_that_answers_is_served)
{
	struct ibchan_cmd_channel_connect connect = {
		.channel = self->side.channel, .peer = self->address,
	};

	ASSERT_EQ(0, ghost_listen(&self->ghost, &self->address));
	ASSERT_EQ(0, cmd_channel_connect(self->side.fd, &connect));
	ASSERT_EQ(0, ghost_asked(&self->ghost));
	EXPECT_EQ(IBCHAN_ENDPOINT_VERSION, self->ghost.asked.private_data[2]);
	speak_later(self, true);
	ASSERT_EQ(0, ghost_yes(&self->ghost));
	expect_served(_metadata, self);
}

/* What it says with a rejection comes, too. */
TEST_F(later, version_that_rejects_is_understood)
{
	struct ibchan_cmd_channel_connect connect = {
		.channel = self->side.channel, .peer = self->address,
	};
	struct ibchan_cmd_channel_connection connection;

	ASSERT_EQ(0, ghost_listen(&self->ghost, &self->address));
	ASSERT_EQ(0, cmd_channel_connect(self->side.fd, &connect));
	ASSERT_EQ(0, ghost_asked(&self->ghost));
	speak_later(self, true);
	self->bytes[1] = 0x1d;
	ASSERT_EQ(0, ghost_no(&self->ghost));
	ASSERT_EQ(0, connection_of(&self->side, &connection));
	EXPECT_EQ(ECONNRESET, connection.out_error);
	EXPECT_EQ(sizeof(PRIVATE), connection.out_data_length);
	EXPECT_EQ(0, memcmp(PRIVATE, connection.out_data, sizeof(PRIVATE)));
}

TEST_HARNESS_MAIN
