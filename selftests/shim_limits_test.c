// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a device really takes: a builder that asks for more is told which knob it was, and how
 * much would do.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <string.h>

#include "shim/end.h"
#include "test.h"
#include "world.h"

/* More than a queue of any device has. */
#define TOO_DEEP	1048576U

FIXTURE(limits)
{
	struct calm calm;
	struct ibchan_context *context;
	struct end end;
	struct ibchan_builder builder;
	struct ibchan_prepared *prepared;
	struct ibchan_error error;
};

FIXTURE_SETUP(limits)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, ibchan_context_open(&self->context, NULL));
	ASSERT_EQ(0, end_objects(&self->end, self->context, 0));
	ibchan_builder_init(&self->builder, self->end.pd, NULL);
	self->prepared = NULL;
}

FIXTURE_TEARDOWN(limits)
{
	if (self->prepared)
		EXPECT_EQ(0, ibchan_prepared_destroy(self->prepared));
	end_close(&self->end);
	EXPECT_EQ(0, ibchan_context_close(self->context));
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* What the refusal says is allowed; 0: it does not name @parameter and @value. */
static __u32 allowed(struct __test_metadata *_metadata, struct _test_data_limits *self,
		     __u32 parameter, __u32 value)
{
	const struct ibchan_reason *reason = &self->error.reason;
	char text[256];

	EXPECT_EQ(-EINVAL, ibchan_builder_prepare(&self->builder, &self->prepared, &self->error));
	ibchan_error_text(&self->error, text, sizeof(text));
	EXPECT_EQ(IBCHAN_REASON_PARAMETER, reason->code)
		TH_LOG("%s", text);
	EXPECT_EQ(parameter, reason->element)
		TH_LOG("%s", text);
	EXPECT_EQ(value, reason->value[0])
		TH_LOG("%s", text);
	EXPECT_LT(reason->value[2], value)
		TH_LOG("%s", text);
	return reason->element == parameter ? reason->value[2] : 0;
}

TEST_F(limits, of_the_send_queue_are_told_by_its_name)
{
	__u32 most;

	self->builder.params.max_send_wr = TOO_DEEP;
	most = allowed(_metadata, self, IBCHAN_PARAMETER_MAX_SEND_WR, TOO_DEEP);
	ASSERT_LT(16, most);
	self->builder.params.max_send_wr = most + 1;
	EXPECT_EQ(most, allowed(_metadata, self, IBCHAN_PARAMETER_MAX_SEND_WR, most + 1));
	self->builder.params.max_send_sge = 1;
	self->builder.params.max_send_wr = most;
	EXPECT_EQ(0, ibchan_builder_prepare(&self->builder, &self->prepared, &self->error))
		TH_LOG("%u", most);
}

TEST_F(limits, of_the_receive_queue_are_told_by_its_name)
{
	self->builder.params.max_recv_wr = TOO_DEEP;
	ASSERT_LT(16, allowed(_metadata, self, IBCHAN_PARAMETER_MAX_RECV_WR, TOO_DEEP));
}

/* The twin: who asks for entries is told about entries. */
TEST_F(limits, of_a_completion_queue_are_told_by_its_name)
{
	self->builder.min_cq_entries = TOO_DEEP;
	ASSERT_LT(16, allowed(_metadata, self, IBCHAN_PARAMETER_CQ_ENTRIES, TOO_DEEP));
}

static struct ibchan_device_attr device_info(const struct _test_data_limits *self)
{
	struct ibchan_device_attr info[8];
	int i, num = ibchan_device_list(self->context, info, 8, NULL);

	for (i = 0; i < num && i < 8; i++)
		if (!strcmp(info[i].name, ibchan_device_name(self->end.device)))
			return info[i];
	return (struct ibchan_device_attr) { 0 };
}

static __u32 known_inline(const struct _test_data_limits *self)
{
	return device_info(self).max_inline_data;
}

TEST_F(limits, of_inline_data_are_told_by_their_name)
{
	__u32 most;

	self->builder.params.max_inline_data = 1024;
	most = allowed(_metadata, self, IBCHAN_PARAMETER_MAX_INLINE_DATA, 1024);
	/* Some HCAs take none. */
	if (device_info(self).driver_id == RDMA_DRIVER_RXE)
		ASSERT_LT(0, most);
	self->builder.params.max_inline_data = most + 1;
	EXPECT_EQ(most, allowed(_metadata, self, IBCHAN_PARAMETER_MAX_INLINE_DATA, most + 1));
	self->builder.params.max_inline_data = most;
	EXPECT_EQ(0, ibchan_builder_prepare(&self->builder, &self->prepared, &self->error));
}

/* One tenant's bad luck is not another's limit. */
TEST_F(limits, that_were_refused_are_not_remembered_and_what_was_given_is)
{
	__u32 most, known = known_inline(self);

	self->builder.params.max_inline_data = 1024;
	most = allowed(_metadata, self, IBCHAN_PARAMETER_MAX_INLINE_DATA, 1024);
	EXPECT_EQ(known, known_inline(self));
	self->builder.params.max_inline_data = most;
	ASSERT_EQ(0, ibchan_builder_prepare(&self->builder, &self->prepared, &self->error));
	known = known_inline(self);
	EXPECT_LE(most, known);
	EXPECT_GT(1024, known);
	/* One that asks for less lets nobody forget it. */
	ASSERT_EQ(0, ibchan_prepared_destroy(self->prepared));
	self->builder.params.max_inline_data = 0;
	self->builder.params.max_send_sge = 1;
	EXPECT_EQ(0, ibchan_builder_prepare(&self->builder, &self->prepared, &self->error));
	EXPECT_EQ(known, known_inline(self));
}

TEST_HARNESS_MAIN
