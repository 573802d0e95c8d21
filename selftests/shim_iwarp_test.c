// SPDX-License-Identifier: GPL-2.0-only
/*
 * Channels over iWARP, which connects by address only and can less: on kernels that have siw.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "namespace.h"
#include "shim/meeting.h"
#include "shim/siw.h"
#include "dmabuf.h"
#include "test.h"
#include "thread.h"
#include "world.h"

#define DEVICE	SIW_DEVICE
#define HOST	SIW_HOST
#define HOST6	SIW_HOST6

/* Packets to it are dropped without a word. */
#define NOBODY	"10.78.0.99"

/* Much less than TCP tries, which is a minute at least. */
#define SOON_MS	30000
#define MESSAGE_DATA	188	/* private data that go with any message */

/* The last one of the list. */
#define INDEX	7

/* The code that a test ends with for the harness to count it as skipped. */
#define SKIPPED	255

static bool has_siw;

static void __attribute__((constructor)) load_siw(void)
{
	has_siw = siw_load();
}

/* One device serves all tests; when the program ends, not the process of a test, it goes. */
static void __attribute__((destructor)) remove_device(void)
{
	siw_remove();
}

FIXTURE(iwarp)
{
	struct calm calm;
	struct meeting m;
};

static int prepare(struct end *end, struct ibchan_context *context, struct ibchan_error *error)
{
	struct ibchan_builder builder;
	int rc = end_objects(end, context, INDEX);

	rc = rc ?: ibchan_cq_create(end->device, 0, 0, &end->own_cq, error);
	if (rc)
		return rc;
	end->cq = end->own_cq;
	ibchan_builder_init(&builder, end->pd, end->cq);
	return ibchan_builder_prepare(&builder, &end->prepared, error);
}

static const char *text_of(const struct ibchan_error *error)
{
	static char text[256];

	ibchan_error_text(error, text, sizeof(text));
	return text;
}

FIXTURE_SETUP(iwarp)
{
	memset(&self->m, 0, sizeof(self->m));
	/* After a return the harness would go on with the test. */
	if (!has_siw)
		SKIP(_exit(SKIPPED), "this kernel has no siw");
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, siw_add());
	ASSERT_EQ(0, ibchan_context_open(&self->m.context, NULL));
	ASSERT_EQ(0, prepare(&self->m.asking, self->m.context, &self->m.error)) {
		TH_LOG("%s", text_of(&self->m.error));
	}
	ASSERT_STREQ(DEVICE, ibchan_device_name(self->m.asking.device));
	ASSERT_EQ(0, prepare(&self->m.asked, self->m.context, &self->m.error));
	ASSERT_EQ(0, meeting_listen(&self->m, HOST));
}

FIXTURE_TEARDOWN(iwarp)
{
	EXPECT_EQ(0, meeting_end(&self->m));
	EXPECT_EQ(0, calm_end(&self->calm));
}

static int write_crosses(FIXTURE_DATA(iwarp) * self, const struct end *from,
			 const struct end *to)
{
	struct ibchan_submit_sge pieces[2] = { sge_at(from, 0, 2000), sge_at(from, 2500, 500) };
	struct ibchan_remote_region remote;
	int rc;

	fill(from->memory, CROSSING, 5);
	memset(to->memory, 0, CROSSING);
	rc = ibchan_mr_remote_region(to->mr, &remote);
	rc = rc ?: ibchan_write(from->channel, pieces, 2, &remote,
				IBCHAN_TIMEOUT_NEVER, &self->m.error);
	rc = rc ?: message_crosses(&self->m, from, to);
	if (rc)
		return rc;
	return memcmp(from->memory, to->memory, 2000) ||
	       memcmp(from->memory + 2500, to->memory + 2000, 500) ? -EBADMSG : 0;
}

static int read_crosses(FIXTURE_DATA(iwarp) * self, const struct end *reader,
			const struct end *from, const struct ibchan_submit_sge *target,
			const unsigned char *memory)
{
	struct ibchan_remote_region remote;
	int rc;

	fill(from->memory, CROSSING, 9);
	rc = ibchan_mr_remote_region(from->mr, &remote);
	rc = rc ?: ibchan_read(reader->channel, target, 1, &remote,
			       IBCHAN_TIMEOUT_NEVER, &self->m.error);
	return rc ?: memcmp(from->memory, memory, CROSSING) ? -EBADMSG : 0;
}

TEST_F(iwarp, carries_messages_writes_and_reads_both_ways)
{
	struct ibchan_submit_sge target;

	ASSERT_EQ(0, meeting_connect(&self->m, NULL, NULL));
	EXPECT_EQ(0, message_crosses(&self->m, &self->m.asking, &self->m.asked));
	EXPECT_EQ(0, message_crosses(&self->m, &self->m.asked, &self->m.asking));
	EXPECT_EQ(0, write_crosses(self, &self->m.asking, &self->m.asked));
	EXPECT_EQ(0, write_crosses(self, &self->m.asked, &self->m.asking));
	target = sge_at(&self->m.asking, 8192, CROSSING);
	EXPECT_EQ(0, read_crosses(self, &self->m.asking, &self->m.asked, &target,
				  self->m.asking.memory + 8192));
	target = sge_at(&self->m.asked, 8192, CROSSING);
	EXPECT_EQ(0, read_crosses(self, &self->m.asked, &self->m.asking, &target,
				  self->m.asked.memory + 8192));
}

TEST_F(iwarp, reads_into_a_region_that_no_peer_has_a_key_to)
{
	unsigned char *memory = self->m.asking.memory + HALF;
	struct ibchan_remote_region remote;
	struct ibchan_submit_sge target;
	struct ibchan_mr *mr;

	ASSERT_EQ(0, meeting_connect(&self->m, NULL, NULL));
	ASSERT_EQ(0, ibchan_mr_reg_local(self->m.asking.pd, memory, HALF, &mr, &self->m.error));
	EXPECT_EQ(-EACCES, ibchan_mr_remote_region(mr, &remote));
	target = ibchan_sge_unchecked(mr, 0, CROSSING);
	EXPECT_EQ(0, read_crosses(self, &self->m.asking, &self->m.asked, &target, memory));
	EXPECT_EQ(0, ibchan_mr_dereg(mr));
}

TEST_F(iwarp, carries_messages_of_plain_memory)
{
	unsigned char *memory = self->m.asking.memory + HALF;
	struct ibchan_submit_sge source = ibchan_sge_plain(memory, 4096);
	struct ibchan_submit_sge target = sge_at(&self->m.asked, 0, 4096);
	struct ibchan_cqe completion;

	ASSERT_EQ(0, meeting_connect(&self->m, NULL, NULL));
	fill(memory, 4096, 3);
	ASSERT_EQ(0, post_receive(self->m.context, &self->m.asked, &target, 1));
	EXPECT_EQ(0, ibchan_send(self->m.asking.channel, &source, 1,
				 IBCHAN_TIMEOUT_NEVER, &self->m.error));
	ASSERT_EQ(1, wait_one(self->m.asked.cq, &completion));
	EXPECT_EQ(0, completion.error);
	EXPECT_EQ(0, memcmp(memory, self->m.asked.memory, 4096));
	source.length = 4097;
	EXPECT_EQ(-EINVAL, ibchan_send(self->m.asking.channel, &source, 1,
				       IBCHAN_TIMEOUT_NEVER, &self->m.error));
	EXPECT_EQ(IBCHAN_REASON_REGION_TOO_LONG, self->m.error.reason.code);
	EXPECT_EQ(0, message_crosses(&self->m, &self->m.asking, &self->m.asked));
}

/* Of what is not possible nothing is posted, so the channel stays as it was. */
static int refused(FIXTURE_DATA(iwarp) * self, struct ibchan_submit_wr wr, __u32 code)
{
	struct ibchan_remote_region remote;
	__u32 accepted = 1;
	int rc;

	if (wr.opcode != IBCHAN_OP_SEND) {
		ibchan_mr_remote_region(self->m.asked.mr, &remote);
		wr_at(&wr, &remote);
	}
	rc = ibchan_post(self->m.context, &wr, 1, &accepted, &self->m.error);
	if (accepted || self->m.error.reason.code != code)
		return -EBADMSG;
	return rc;
}

TEST_F(iwarp, refuses_what_it_cannot_and_stays_connected)
{
	struct ibchan_submit_sge sges[2] = {
		sge_at(&self->m.asking, 0, 8), sge_at(&self->m.asking, 4096, 8),
	};
	struct ibchan_submit_wr wr;

	ASSERT_EQ(0, meeting_connect(&self->m, NULL, NULL));
	wr = wr_of(&self->m.asking, IBCHAN_OP_SEND, sges);
	wr.flags = IBCHAN_WR_IMM;
	EXPECT_EQ(-EOPNOTSUPP, refused(self, wr, IBCHAN_REASON_WR_FLAGS));
	EXPECT_EQ(0, self->m.error.reason.value[1] & IBCHAN_WR_IMM);
	wr.opcode = IBCHAN_OP_WRITE;
	EXPECT_EQ(-EOPNOTSUPP, refused(self, wr, IBCHAN_REASON_WR_FLAGS));
	wr.opcode = IBCHAN_OP_READ;
	wr.flags = IBCHAN_WR_FENCE;
	EXPECT_EQ(-EOPNOTSUPP, refused(self, wr, IBCHAN_REASON_WR_FLAGS));
	wr.flags = 0;
	wr_elements(&wr, sges, 2);
	EXPECT_EQ(-EINVAL, refused(self, wr, IBCHAN_REASON_TOO_MANY_ELEMENTS));
	EXPECT_EQ(1, self->m.error.reason.value[1]);
	sges[0] = ibchan_sge_plain(self->m.asking.memory, 8);
	wr_elements(&wr, sges, 1);
	EXPECT_EQ(-EOPNOTSUPP, refused(self, wr, IBCHAN_REASON_IWARP));
	wr.sge = sge_at(&self->m.asking, 0, 8);
	wr.opcode = IBCHAN_OP_FETCH_ADD;
	EXPECT_EQ(-EOPNOTSUPP, refused(self, wr, IBCHAN_REASON_OPCODE));
	wr.opcode = IBCHAN_OP_COMPARE_SWAP;
	EXPECT_EQ(-EOPNOTSUPP, refused(self, wr, IBCHAN_REASON_OPCODE));
	EXPECT_EQ(0, message_crosses(&self->m, &self->m.asking, &self->m.asked));
	EXPECT_EQ(0, message_crosses(&self->m, &self->m.asked, &self->m.asking));
}

/* Its key would be that of all memory, and a read tells the peer. */
TEST_F(iwarp, refuses_to_read_into_a_dmabuf_and_sends_from_it)
{
	int fd = dmabuf_export(1, 0);
	const struct ibchan_dmabuf_params params = {
		.size = sizeof(params),
		.fd = fd, .length = getpagesize(), .access = IBCHAN_ACCESS_LOCAL_WRITE,
	};
	struct ibchan_submit_sge target = sge_at(&self->m.asked, 0, 64), sge;
	struct ibchan_submit_wr wr;
	struct ibchan_mr *mr;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, meeting_connect(&self->m, NULL, NULL));
	ASSERT_EQ(0, ibchan_mr_reg_dmabuf(self->m.asking.pd, &params, &mr, &self->m.error));
	sge = ibchan_sge_new(mr, 0, 64);
	wr = wr_of(&self->m.asking, IBCHAN_OP_READ, &sge);
	EXPECT_EQ(-EOPNOTSUPP, refused(self, wr, IBCHAN_REASON_IWARP));
	ASSERT_EQ(0, post_receive(self->m.context, &self->m.asked, &target, 1));
	EXPECT_EQ(0, ibchan_send(self->m.asking.channel, &sge, 1,
				 IBCHAN_TIMEOUT_NEVER, &self->m.error));
	EXPECT_EQ(0, ibchan_mr_dereg(mr));
	close(fd);
}

TEST_F(iwarp, sends_behind_a_fence)
{
	struct ibchan_submit_sge target = sge_at(&self->m.asked, 0, 64);
	struct ibchan_submit_sge source = sge_at(&self->m.asking, 0, 64);
	struct ibchan_submit_wr wr = wr_of(&self->m.asking, IBCHAN_OP_SEND, &source);
	struct ibchan_cqe completion;

	ASSERT_EQ(0, meeting_connect(&self->m, NULL, NULL));
	ASSERT_EQ(0, post_receive(self->m.context, &self->m.asked, &target, 1));
	wr.channel = ibchan_channel_handle(self->m.asking.channel);
	wr.flags = IBCHAN_WR_FENCE | IBCHAN_WR_SOLICITED;
	EXPECT_EQ(0, ibchan_perform(self->m.asking.channel, &wr, patience_ns(), NULL,
				    &self->m.error));
	ASSERT_EQ(1, wait_one(self->m.asked.cq, &completion));
	EXPECT_EQ(0, completion.error);
}

TEST_F(iwarp, tells_by_capability_what_it_cannot)
{
	struct ibchan_device_attr infos[INDEX + 1];
	int n = ibchan_device_list(self->m.context, infos, INDEX + 1, NULL);
	const __u32 lacks = IBCHAN_DEVICE_IMMEDIATE | IBCHAN_DEVICE_ENDPOINTS |
			    IBCHAN_DEVICE_ATOMICS;

	ASSERT_LE(2, n);
	EXPECT_STREQ(DEVICE, infos[n - 1].name);
	EXPECT_EQ(0, infos[n - 1].caps & lacks);
	EXPECT_EQ(1, infos[n - 1].max_read_sge);
	EXPECT_EQ(4096, infos[n - 1].max_plain_bytes);
	EXPECT_EQ(lacks, infos[0].caps & lacks);
}

TEST_F(iwarp, has_as_many_elements_as_the_device_unless_more_are_asked_for)
{
	struct ibchan_prepared *prepared = NULL;
	struct ibchan_builder builder;
	struct ibchan_channel_info channel;
	struct ibchan_device_attr infos[INDEX + 1], info;
	int n = ibchan_device_list(self->m.context, infos, INDEX + 1, NULL);

	ASSERT_LE(2, n);
	info = infos[n - 1];
	ASSERT_GT(IBCHAN_DEFAULT_SEND_SGE, info.max_send_sge);
	ASSERT_GT(IBCHAN_DEFAULT_RECV_SGE, info.max_recv_sge);
	ASSERT_EQ(0, ibchan_channel_query(ibchan_prepared_channel(self->m.asking.prepared),
					  &channel, NULL));
	EXPECT_EQ(info.max_send_sge, channel.params.max_send_sge);
	EXPECT_EQ(info.max_recv_sge, channel.params.max_recv_sge);
	ibchan_builder_init(&builder, self->m.asking.pd, self->m.asking.cq);
	builder.params.max_send_sge = info.max_send_sge + 1;
	EXPECT_EQ(-EINVAL, ibchan_builder_prepare(&builder, &prepared, &self->m.error));
	EXPECT_EQ(IBCHAN_REASON_PARAMETER, self->m.error.reason.code);
	EXPECT_EQ(IBCHAN_PARAMETER_MAX_SEND_SGE, self->m.error.reason.element);
	EXPECT_EQ(info.max_send_sge, self->m.error.reason.value[2]);
	builder.params.max_send_sge = info.max_send_sge;
	builder.params.max_recv_sge = info.max_recv_sge + 1;
	EXPECT_EQ(-EINVAL, ibchan_builder_prepare(&builder, &prepared, &self->m.error));
	EXPECT_EQ(IBCHAN_PARAMETER_MAX_RECV_SGE, self->m.error.reason.element);
}

TEST_F(iwarp, connects_over_ipv6)
{
	struct ibchan_listen_params params = { .size = sizeof(params), .host = HOST6 };

	ASSERT_EQ(0, ibchan_listener_close(self->m.listener));
	ASSERT_EQ(0, ibchan_listener_create(self->m.context, &params, &self->m.listener,
					    &self->m.error));
	port_of(self->m.listener, self->m.port, sizeof(self->m.port));
	self->m.host = HOST6;
	ASSERT_EQ(0, meeting_connect(&self->m, NULL, NULL));
	EXPECT_EQ(0, message_crosses(&self->m, &self->m.asking, &self->m.asked));
}

TEST_F(iwarp, lets_either_side_send_first)
{
	ASSERT_EQ(0, meeting_connect(&self->m, NULL, NULL));
	EXPECT_EQ(0, message_crosses(&self->m, &self->m.asked, &self->m.asking));
	EXPECT_EQ(0, message_crosses(&self->m, &self->m.asking, &self->m.asked));
}

TEST_F(iwarp, is_not_connected_by_endpoints)
{
	struct end roce = { 0 };
	struct ibchan_endpoint own, other;

	ASSERT_EQ(0, end_open(&roce, self->m.context, 0, NULL));
	ibchan_prepared_endpoint(self->m.asking.prepared, &own);
	ibchan_prepared_endpoint(roce.prepared, &other);
	EXPECT_EQ(IBCHAN_LINK_LAYER_IWARP, own.link_layer);
	EXPECT_EQ(-EOPNOTSUPP, ibchan_prepared_handshake(self->m.asking.prepared, &own,
							 &self->m.asking.channel, &self->m.error));
	EXPECT_EQ(IBCHAN_REASON_IWARP, self->m.error.reason.code);
	EXPECT_TRUE(has(text_of(&self->m.error), "only by address"));
	EXPECT_EQ(-EINVAL, ibchan_prepared_handshake(roce.prepared, &own, &roce.channel,
						     &self->m.error));
	EXPECT_EQ(IBCHAN_REASON_LINK_LAYER, self->m.error.reason.code);
	end_close(&roce);
	EXPECT_EQ(0, meeting_connect(&self->m, NULL, NULL));
}

TEST_F(iwarp, takes_as_much_private_data_as_any_message_and_no_more)
{
	unsigned char data[MESSAGE_DATA + 1];
	struct ibchan_connect_params params = {
		.size = sizeof(params), .data = data, .length = sizeof(data),
	};
	struct ibchan_connection_info info;

	fill(data, sizeof(data), 11);
	EXPECT_EQ(-EINVAL, meeting_ask(&self->m, &params));
	EXPECT_EQ(IBCHAN_REASON_PRIVATE_DATA, self->m.error.reason.code);
	params.length = MESSAGE_DATA;
	ASSERT_EQ(0, meeting_connect(&self->m, &params, &params));
	ASSERT_EQ(0, ibchan_channel_connection(self->m.asked.channel, &info, NULL));
	EXPECT_EQ(MESSAGE_DATA, info.length);
	EXPECT_EQ(0, memcmp(info.data, data, MESSAGE_DATA));
	ASSERT_EQ(0, ibchan_channel_connection(self->m.asking.channel, &info, NULL));
	EXPECT_EQ(MESSAGE_DATA, info.length);
	EXPECT_EQ(0, memcmp(info.data, data, MESSAGE_DATA));
}

TEST_F(iwarp, says_that_nobody_listens)
{
	strcpy(self->m.port, "1");
	ASSERT_EQ(0, meeting_ask(&self->m, NULL));
	EXPECT_EQ(-ECONNREFUSED, outcome(self->m.asking.channel, &self->m.error));
	EXPECT_EQ(IBCHAN_REASON_CONNECT, self->m.error.reason.code);
	EXPECT_EQ(IBCHAN_STAGE_REQUEST, self->m.error.reason.value[0]);
}

TEST_F(iwarp, brings_a_rejection_of_as_much_data_as_any_message)
{
	unsigned char data[MESSAGE_DATA];
	struct ibchan_connection_info info;
	struct ibchan_request *request;

	memset(data, 0xd7, sizeof(data));
	ASSERT_EQ(0, meeting_ask(&self->m, NULL));
	ASSERT_EQ(0, ibchan_request_take(self->m.listener, patience_ns(), &request, NULL));
	EXPECT_EQ(-EINVAL, ibchan_request_reject(request, data, sizeof(data) + 1, NULL));
	EXPECT_EQ(0, ibchan_request_reject(request, data, sizeof(data), NULL));
	EXPECT_EQ(-ECONNRESET, outcome(self->m.asking.channel, &self->m.error));
	ASSERT_EQ(0, ibchan_channel_connection(self->m.asking.channel, &info, NULL));
	EXPECT_EQ(0, memcmp(info.data, data, sizeof(data)));
}

static int broken_with(FIXTURE_DATA(iwarp) * self, struct ibchan_channel *channel)
{
	struct ibchan_connection_info info;
	__u64 end = now_ms() + patience_ms();

	while (!outcome(channel, &self->m.error))
		if (now_ms() > end)
			return -ETIMEDOUT;
	return ibchan_channel_connection(channel, &info, NULL) ?: info.error;
}

TEST_F(iwarp, breaks_one_side_when_the_other_closes)
{
	ASSERT_EQ(0, meeting_connect(&self->m, NULL, NULL));
	ASSERT_EQ(0, ibchan_channel_close(self->m.asking.channel));
	self->m.asking.channel = NULL;
	EXPECT_EQ(-ECONNRESET, broken_with(self, self->m.asked.channel));
}

#define WORKS	8

static int all_flushed(struct ibchan_cq *cq)
{
	struct ibchan_cqe completion;
	__u32 seen = 0;
	int i;

	for (i = 0; i < WORKS; i++) {
		if (wait_one(cq, &completion) != 1)
			return -ETIMEDOUT;
		if (completion.error != -ECANCELED || completion.wr_id >= WORKS)
			return -EBADMSG;
		seen |= 1U << completion.wr_id;
	}
	return seen == (1U << WORKS) - 1 ? 0 : -EBADMSG;
}

TEST_F(iwarp, completes_all_works_of_both_sides_when_one_breaks)
{
	struct ibchan_submit_sge target;
	int i;

	ASSERT_EQ(0, meeting_connect(&self->m, NULL, NULL));
	for (i = 0; i < WORKS; i++) {
		target = sge_at(&self->m.asking, i * 64, 64);
		ASSERT_EQ(0, post_receive(self->m.context, &self->m.asking, &target, i));
		target = sge_at(&self->m.asked, i * 64, 64);
		ASSERT_EQ(0, post_receive(self->m.context, &self->m.asked, &target, i));
	}
	ASSERT_EQ(0, ibchan_channel_break(self->m.asked.channel));
	EXPECT_EQ(0, all_flushed(self->m.asking.cq));
	EXPECT_EQ(0, all_flushed(self->m.asked.cq));
	EXPECT_EQ(-ECONNRESET, broken_with(self, self->m.asking.channel));
}

/* On iWARP nothing holds a message back until there is a receive for it. */
TEST_F(iwarp, ends_for_both_when_a_message_finds_no_receive)
{
	struct ibchan_submit_sge source = sge_at(&self->m.asking, 0, 64);
	struct ibchan_submit_wr wr;

	ASSERT_EQ(0, meeting_connect(&self->m, NULL, NULL));
	wr = wr_of(&self->m.asking, IBCHAN_OP_SEND, &source);
	/* A second one might find TCP ended, which is another error. */
	ASSERT_EQ(0, ibchan_post(self->m.context, &wr, 1, NULL, NULL));
	EXPECT_EQ(-ECONNRESET, broken_with(self, self->m.asking.channel));
	EXPECT_EQ(-ECONNRESET, broken_with(self, self->m.asked.channel));
}

static __u64 time_to_close(struct end *end)
{
	__u64 begin = now_ms();

	if (ibchan_channel_close(end->channel))
		return -1;
	end->channel = NULL;
	return now_ms() - begin;
}

TEST_F(iwarp, ends_at_the_deadline_while_tcp_still_tries)
{
	const struct ibchan_connect_params params = {
		.size = sizeof(params), .connect_ns = 1000 * MS,
	};
	__u64 begin = now_ms();

	self->m.host = NOBODY;
	ASSERT_EQ(0, meeting_ask(&self->m, &params));
	EXPECT_EQ(-ETIMEDOUT, outcome(self->m.asking.channel, &self->m.error));
	EXPECT_EQ(IBCHAN_STAGE_REQUEST, self->m.error.reason.value[0]);
	EXPECT_EQ(-ETIMEDOUT, broken_with(self, self->m.asking.channel));
	EXPECT_EQ(0, ibchan_channel_close(self->m.asking.channel));
	self->m.asking.channel = NULL;
	EXPECT_GT(SOON_MS, now_ms() - begin);
}

TEST_F(iwarp, holds_nobody_up_while_tcp_tries)
{
	struct ibchan_channel *waiting;
	struct end third;

	self->m.host = NOBODY;
	ASSERT_EQ(0, meeting_ask(&self->m, NULL));
	waiting = self->m.asking.channel;
	self->m.host = HOST;
	memset(&third, 0, sizeof(third));
	ASSERT_EQ(0, prepare(&third, self->m.context, &self->m.error));
	self->m.asking.channel = NULL;
	self->m.asking.prepared = third.prepared;
	third.prepared = NULL;
	EXPECT_EQ(0, meeting_connect(&self->m, NULL, NULL));
	third.channel = self->m.asking.channel;
	self->m.asking.channel = waiting;
	EXPECT_EQ(0, message_crosses(&self->m, &third, &self->m.asked));
	EXPECT_EQ(-ETIMEDOUT, ibchan_channel_connect_wait(waiting, 0, &self->m.error));
	EXPECT_GT(SOON_MS, time_to_close(&self->m.asking));
	EXPECT_EQ(0, message_crosses(&self->m, &self->m.asked, &third));
	end_close(&third);
}

/* Threads of one user, and more channels than that. */
#define ASKERS		32
#define CHANNELS	(ASKERS + 8)

static bool is_asker(const char *pid)
{
	char path[300], comm[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (!fgets(comm, sizeof(comm), file))
		comm[0] = 0;
	fclose(file);
	return !strcmp(comm, "ibchan_ask\n");
}

static unsigned int count_askers(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	unsigned int num = 0;

	while (dir && (entry = readdir(dir)))
		num += is_asker(entry->d_name);
	if (dir)
		closedir(dir);
	return num;
}

static bool all_threads_ask(void *arg)
{
	(void)arg;
	return count_askers() == ASKERS;
}

static bool nobody_asks(void *arg)
{
	(void)arg;
	return !count_askers();
}

/* Channels that ask where nobody answers; how many there are now. */
static int ask_nobody(FIXTURE_DATA(iwarp) * self, struct ibchan_cq *cq,
		      struct ibchan_channel **channels, unsigned int *num)
{
	struct ibchan_prepared *prepared;
	struct ibchan_builder builder;
	int rc = 0;

	ibchan_builder_init(&builder, self->m.asking.pd, cq);
	builder.params.max_send_wr = 1;
	builder.params.max_recv_wr = 1;
	for (*num = 0; !rc && *num < CHANNELS; *num += !rc) {
		rc = ibchan_builder_prepare(&builder, &prepared, &self->m.error);
		if (rc)
			return rc;
		rc = ibchan_prepared_connect(prepared, NOBODY, "1", NULL, &channels[*num],
					     &self->m.error);
		if (rc)
			ibchan_prepared_destroy(prepared);
	}
	return rc;
}

TEST_F(iwarp, asks_by_no_more_threads_than_a_user_may_have_and_then_in_turn)
{
	struct ibchan_channel *channels[CHANNELS];
	struct ibchan_request *request;
	unsigned int num, i;
	struct ibchan_cq *cq;

	ASSERT_EQ(0, ibchan_cq_create(self->m.asking.device, 16 * CHANNELS, 0, &cq,
				      &self->m.error));
	EXPECT_EQ(0, ask_nobody(self, cq, channels, &num)) {
		TH_LOG("%s", text_of(&self->m.error));
	}
	EXPECT_TRUE(eventually(all_threads_ask, NULL)) TH_LOG("%u", count_askers());
	/* Behind all others. */
	EXPECT_EQ(0, meeting_ask(&self->m, NULL));
	EXPECT_EQ(-ETIMEDOUT, ibchan_request_take(self->m.listener, 300 * MS, &request, NULL));
	EXPECT_EQ(ASKERS, count_askers());
	for (i = 0; i < num; i++)
		EXPECT_EQ(0, ibchan_channel_close(channels[i]));
	ASSERT_EQ(0, ibchan_request_take(self->m.listener, patience_ns(), &request, NULL));
	EXPECT_EQ(0, meeting_answer(&self->m, request, NULL));
	EXPECT_EQ(0, meeting_outcomes(&self->m));
	EXPECT_TRUE(eventually(nobody_asks, NULL)) TH_LOG("%u", count_askers());
	EXPECT_EQ(0, ibchan_cq_destroy(cq));
}

TEST_F(iwarp, that_breaks_before_the_answer_flushes_its_receives_at_once)
{
	struct ibchan_channel *channel;
	struct ibchan_request *request;
	int i;

	channel = ibchan_prepared_channel(self->m.asking.prepared);
	for (i = 0; i < WORKS; i++)
		ASSERT_EQ(0, ibchan_post_receive(channel, self->m.asking.mr, i * 64, 64, i, NULL));
	ASSERT_EQ(0, meeting_ask(&self->m, NULL));
	ASSERT_EQ(0, ibchan_request_take(self->m.listener, patience_ns(), &request, NULL));
	ASSERT_EQ(0, ibchan_channel_break(self->m.asking.channel));
	EXPECT_EQ(0, all_flushed(self->m.asking.cq));
	EXPECT_GT(0, outcome(self->m.asking.channel, &self->m.error));
	ASSERT_EQ(0, meeting_answer(&self->m, request, NULL));
	EXPECT_EQ(-ECONNRESET, broken_with(self, self->m.asked.channel));
	EXPECT_GT(SOON_MS, time_to_close(&self->m.asking));
}

TEST_F(iwarp, closes_before_the_answer_when_the_driver_gives_up)
{
	struct ibchan_request *request;

	ASSERT_EQ(0, meeting_ask(&self->m, NULL));
	ASSERT_EQ(0, ibchan_request_take(self->m.listener, patience_ns(), &request, NULL));
	EXPECT_GT(SOON_MS, time_to_close(&self->m.asking));
	EXPECT_EQ(0, ibchan_request_reject(request, NULL, 0, NULL));
}

/* Who closes for as long as the driver waits for the answer; 0: nobody. */
static pid_t closer;

static void *close_slowly(void *end)
{
	__atomic_store_n(&closer, gettid(), __ATOMIC_RELEASE);
	time_to_close(end);
	__atomic_store_n(&closer, 0, __ATOMIC_RELEASE);
	return NULL;
}

TEST_F(iwarp, that_closes_before_the_answer_holds_up_no_command_of_its_file)
{
	struct ibchan_channel_info info;
	struct ibchan_request *request;
	struct end third = { 0 };
	pthread_t thread;

	ASSERT_EQ(0, meeting_ask(&self->m, NULL));
	ASSERT_EQ(0, ibchan_request_take(self->m.listener, patience_ns(), &request, NULL));
	ASSERT_EQ(0, pthread_create(&thread, NULL, close_slowly, &self->m.asking));
	EXPECT_TRUE(eventually(waits_killably, &closer));
	ASSERT_EQ(0, prepare(&third, self->m.context, &self->m.error));
	EXPECT_EQ(0, ibchan_channel_query(ibchan_prepared_channel(third.prepared), &info, NULL));
	EXPECT_EQ(0, ibchan_channel_break(ibchan_prepared_channel(third.prepared)));
	EXPECT_NE(0, __atomic_load_n(&closer, __ATOMIC_ACQUIRE))
		TH_LOG("a command has waited for the close");
	EXPECT_EQ(0, ibchan_request_reject(request, NULL, 0, NULL));
	pthread_join(thread, NULL);
	end_close(&third);
}

/* Who hears that the peer has hung up, before it hears of the device, keeps that error. */
static bool is_of_departure(int error)
{
	return error == -ENODEV || error == -ECONNRESET;
}

/* The channels of a device that leaves are told one after the other. */
static bool has_lost_its_device(void *channel)
{
	return outcome(channel, NULL) == -ENODEV;
}

TEST_F(iwarp, that_loses_its_device_ends_with_enodev)
{
	struct ibchan_submit_sge target = sge_at(&self->m.asking, 0, 64);
	struct ibchan_cqe completion;
	int asking, asked;

	ASSERT_EQ(0, meeting_connect(&self->m, NULL, NULL));
	ASSERT_EQ(0, post_receive(self->m.context, &self->m.asking, &target, 1));
	ASSERT_EQ(0, run_script("rdma link delete " DEVICE));
	ASSERT_EQ(1, wait_one(self->m.asking.cq, &completion));
	EXPECT_NE(0, completion.error);
	EXPECT_EQ(-ENODEV, post_receive(self->m.context, &self->m.asking, &target, 2));
	EXPECT_EQ(-ENODEV, post_receive(self->m.context, &self->m.asked, &target, 3));
	EXPECT_TRUE(eventually(has_lost_its_device, self->m.asking.channel));
	EXPECT_TRUE(eventually(has_lost_its_device, self->m.asked.channel));
	asking = broken_with(self, self->m.asking.channel);
	asked = broken_with(self, self->m.asked.channel);
	EXPECT_TRUE(is_of_departure(asking) && is_of_departure(asked))
		TH_LOG("errors %d and %d", asking, asked);
	EXPECT_TRUE(asking == -ENODEV || asked == -ENODEV);
}

TEST_F(iwarp, that_loses_its_device_while_a_request_waits_is_told_so)
{
	struct pollfd pollfd = { .events = POLLIN };
	struct ibchan_request *request;

	ASSERT_EQ(0, meeting_ask(&self->m, NULL));
	pollfd.fd = ibchan_listener_fd(self->m.listener);
	ASSERT_EQ(1, poll(&pollfd, 1, patience_ms()));
	ASSERT_EQ(0, run_script("rdma link delete " DEVICE));
	EXPECT_EQ(-ENODEV, ibchan_request_take(self->m.listener, patience_ns(), &request, NULL));
	EXPECT_GT(0, outcome(self->m.asking.channel, &self->m.error));
}

TEST_HARNESS_MAIN
