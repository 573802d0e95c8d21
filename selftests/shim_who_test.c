// SPDX-License-Identifier: GPL-2.0-only
/* Errors name both ends and the cause: the facts of a channel, and the lines made of them. */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "shim/end.h"
#include "test.h"
#include "world.h"

FIXTURE(shim_who)
{
	struct calm calm;
	struct ibchan_context *context;
	struct end a;
	struct end b;
};

FIXTURE_SETUP(shim_who)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, open_ends(&self->a, &self->b, &self->context));
}

FIXTURE_TEARDOWN(shim_who)
{
	EXPECT_EQ(0, close_ends(&self->a, &self->b, self->context));
	EXPECT_EQ(0, calm_end(&self->calm));
}

TEST_F(shim_who, tells_both_ends_and_the_age)
{
	struct ibchan_channel_info a, b;
	__s64 age;

	ASSERT_EQ(0, ibchan_channel_query(self->a.channel, &a, NULL));
	ASSERT_EQ(0, ibchan_channel_query(self->b.channel, &b, NULL));
	EXPECT_EQ(be32toh(b.endpoint.qpn), a.peer_qpn);
	EXPECT_EQ(be32toh(a.endpoint.qpn), b.peer_qpn);
	EXPECT_EQ(0, memcmp(a.peer_gid, b.endpoint.gid, sizeof(b.endpoint.gid)));
	EXPECT_STREQ("rxe0", a.device);
	EXPECT_STREQ("rxe1", b.device);
	EXPECT_EQ(ibchan_ack_timeout_to_ns(a.params.ack_timeout), a.ack_timeout_ns);
	EXPECT_EQ(IBCHAN_DEFAULT_KEEPALIVE_MS * MS, a.keepalive_ns);
	EXPECT_EQ(IBCHAN_FACTS_NO_OPCODE, a.failed_opcode);
	age = a.age_ns;
	EXPECT_LT(0, age);
	ASSERT_EQ(0, ibchan_channel_query(self->a.channel, &a, NULL));
	EXPECT_LT(age, a.age_ns);
}

/* The module has a number of the library's for it. */
TEST_F(shim_who, names_the_work_that_failed_first_as_its_request_did)
{
	struct ibchan_channel_info info;
	struct ibchan_cqe done;

	ASSERT_EQ(0, ibchan_channel_close(self->b.channel));
	self->b.channel = NULL;
	ASSERT_EQ(0, ibchan_post_send(self->a.channel, self->a.mr, 0, 64, 0x77777777777, NULL));
	ASSERT_EQ(1, ibchan_cq_wait(self->a.cq, &done, 1, 1, patience_ns()));
	ASSERT_EQ(0, ibchan_channel_query(self->a.channel, &info, NULL));
	EXPECT_EQ(0x77777777777, info.failed_wr_id);
	EXPECT_EQ(done.status, info.status);
}

/* The peer is gone, so the send gets no answer. */
TEST_F(shim_who, makes_a_line_of_a_failed_call)
{
	struct ibchan_submit_sge sge = sge_at(&self->a, 0, 64);
	struct ibchan_channel_info info;
	struct ibchan_error error;
	char line[640], wanted[256];

	ASSERT_EQ(0, ibchan_channel_close(self->b.channel));
	self->b.channel = NULL;
	ASSERT_EQ(-ETIMEDOUT, ibchan_send(self->a.channel, &sge, 1, IBCHAN_TIMEOUT_NEVER, &error));
	EXPECT_EQ(IBCHAN_OP_SEND, error.opcode);
	ASSERT_EQ(0, ibchan_channel_query(self->a.channel, &info, NULL));
	EXPECT_EQ(IBCHAN_OP_SEND, info.failed_opcode);
	EXPECT_GT((int)sizeof(line),
		  ibchan_channel_error_text(&info, &error, line, sizeof(line)));
	snprintf(wanted, sizeof(wanted),
		 "send on rxe0 port 1 (10.77.0.1) to 10.77.0.2 qpn 0x%x, ", info.peer_qpn);
	EXPECT_EQ(0, strncmp(line, wanted, strlen(wanted)))
		TH_LOG("%s", line);
	snprintf(wanted, sizeof(wanted), " s old: RETRY_EXC_ERR after %u retries of %llu.",
		 info.params.ack_retries, (unsigned long long)info.ack_timeout_ns / 1000000);
	EXPECT_NE(NULL, strstr(line, wanted))
		TH_LOG("%s", line);
	EXPECT_NE(NULL, strstr(line, " ms: no answer"))
		TH_LOG("%s", line);
}

static struct ibchan_channel_info example(void)
{
	struct ibchan_channel_info info = {
		.params = { .port = 2, .ack_retries = 3, .rnr_retries = 5 },
		.endpoint.gid = { 0xfd, [15] = 1 },
		.peer_qpn = 0xabc, .peer_gid = { 0xfd, [15] = 2 },
		.device = "mlx5_0", .age_ns = 65432100000, .ack_timeout_ns = 8192,
	};

	return info;
}

TEST(a_channel_has_a_line)
{
	struct ibchan_channel_info info = example();
	const char *whole = "mlx5_0 port 2 (fd00::1) to fd00::2 qpn 0xabc, 65.4 s old";
	char line[256];

	EXPECT_EQ((int)strlen(whole), ibchan_channel_text(&info, line, sizeof(line)));
	EXPECT_STREQ(whole, line);
	EXPECT_EQ((int)strlen(whole), ibchan_channel_text(&info, line, 7));
	EXPECT_STREQ("mlx5_0", line);
	EXPECT_EQ((int)strlen(whole), ibchan_channel_text(&info, NULL, 0));
	info.peer_qpn = 0;
	ibchan_channel_text(&info, line, sizeof(line));
	EXPECT_STREQ("mlx5_0 port 2 (fd00::1), no peer yet", line);
}

TEST(a_failed_work_is_told_with_what_the_device_has_tried)
{
	struct ibchan_channel_info info = example();
	struct ibchan_error error = {
		.code = -ETIMEDOUT, .origin = IBCHAN_ERROR_WORK,
		.status = IBCHAN_STATUS_RNR_RETRY_EXC_ERR, .opcode = IBCHAN_OP_WRITE,
	};
	char line[640];

	ibchan_channel_error_text(&info, &error, line, sizeof(line));
	EXPECT_NE(NULL, strstr(line, "write on mlx5_0"));
	EXPECT_NE(NULL, strstr(line, "RNR_RETRY_EXC_ERR after 5 retries: "));
	error.status = IBCHAN_STATUS_RETRY_EXC_ERR;
	info.ack_timeout_ns = 4096ULL << 14;
	ibchan_channel_error_text(&info, &error, line, sizeof(line));
	EXPECT_NE(NULL, strstr(line, ", 65.4 s old: RETRY_EXC_ERR after 3 retries of 67.1 ms: "));
	error.status = IBCHAN_STATUS_REM_ACCESS_ERR;
	ibchan_channel_error_text(&info, &error, line, sizeof(line));
	EXPECT_NE(NULL, strstr(line, " old: REM_ACCESS_ERR: "));
}

TEST(a_refused_call_is_told_with_its_reason)
{
	struct ibchan_channel_info info = example();
	struct ibchan_error error = {
		.code = -EAGAIN, .origin = IBCHAN_ERROR_CALL,
		.reason = { .code = IBCHAN_REASON_SEND_QUEUE_FULL, .value = { 16 } },
	};
	char line[640], reason[256];

	ibchan_error_text(&error, reason, sizeof(reason));
	ibchan_channel_error_text(&info, &error, line, sizeof(line));
	EXPECT_EQ(0, strncmp(line, "mlx5_0 port 2 ", 14));
	EXPECT_NE(NULL, strstr(line, reason));
}

TEST_HARNESS_MAIN
