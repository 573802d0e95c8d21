// SPDX-License-Identifier: GPL-2.0-only
/*
 * libibchan in a sandbox: a filter of system calls answers in the kernel's place. Nothing
 * that it says makes a work posted. A filter is one thread's alone, so the other threads
 * see what it has left behind.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <linux/ibchan.h>

#include "shim/dialer.h"
#include "shim/end.h"
#include "shim/meeting.h"
#include "test.h"
#include "thread.h"
#include "world.h"

#define ARGUMENT(n)	(offsetof(struct seccomp_data, args) + (n) * sizeof(__u64))
#define ANY_COMMAND	0U
#define INSTRUCTIONS	6

/* This thread's ioctls with @command are answered with @error, which may be 0. */
static int filter(unsigned int command, int error)
{
	struct sock_filter any[INSTRUCTIONS] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARGUMENT(1)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, command, 0, command ? 1 : 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {
		.len = INSTRUCTIONS,
		.filter = any,
	};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -errno : 0;
}

FIXTURE(sandbox)
{
	struct calm calm;
	struct ibchan_context *context;
	struct end a, b;
};

FIXTURE_VARIANT(sandbox)
{
	int error;
	int answer;
};

FIXTURE_VARIANT_ADD(sandbox, that_says_no)
{
	.error = EPERM,
	.answer = -EPERM,
};

FIXTURE_VARIANT_ADD(sandbox, that_says_yes)
{
	.error = 0,
	.answer = -EBADMSG,
};

FIXTURE_SETUP(sandbox)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, open_ends(&self->a, &self->b, &self->context));
}

FIXTURE_TEARDOWN(sandbox)
{
	EXPECT_EQ(0, close_ends(&self->a, &self->b, self->context));
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* What calls of a thread in the sandbox answered. */
struct boxed {
	struct end *end;
	struct end *other;
	struct ibchan_context *context;
	struct ibchan_remote_region remote;
	int error;
	int filter;
	int rc[7];
	__u32 accepted;
};

static void *post_in_the_box(void *arg)
{
	struct boxed *boxed = arg;
	struct end *end = boxed->end;
	struct ibchan_submit_sge sge = sge_at(end, 0, 64);
	struct ibchan_pending pending = { 0 };
	struct ibchan_cqe done;
	struct ibchan_submit_wr wrs[20];
	__u32 accepted;
	int i;

	for (i = 0; i < 20; i++) {
		wrs[i] = wr_of(end, IBCHAN_OP_WRITE, &sge);
		wr_at(&wrs[i], &boxed->remote);
	}
	boxed->filter = filter(IBCHAN_CMD_SUBMIT, boxed->error);
	if (boxed->filter)
		return NULL;
	/* More often than there are places, by each of the ways on which a post can go. */
	for (i = 0; i < 3 * (int)IBCHAN_DEFAULT_SEND_WR; i++) {
		accepted = 99;
		boxed->rc[0] = ibchan_post(boxed->context, wrs, 1, &accepted, NULL);
		boxed->accepted += accepted;
		accepted = 99;
		boxed->rc[1] = ibchan_post(boxed->context, wrs, 20, &accepted, NULL);
		boxed->accepted += accepted;
		boxed->rc[2] = ibchan_perform(end->channel, wrs, patience_ns(), NULL, NULL);
		boxed->rc[3] = ibchan_pending_post(&pending, end->channel, wrs, NULL);
	}
	boxed->rc[4] = ibchan_write(end->channel, &sge, 1, &boxed->remote,
				    IBCHAN_TIMEOUT_NEVER, NULL);
	boxed->rc[5] = ibchan_cq_wait(end->cq, &done, 1, 1, patience_ns());
	return NULL;
}

static int run_boxed(void *(*body)(void *arg), struct boxed *boxed)
{
	pthread_t thread;
	int rc = pthread_create(&thread, NULL, body, boxed);

	return -(rc ?: pthread_join(thread, NULL));
}

/* All places of the channel's queue are there. */
static int fill_and_empty(struct ibchan_context *context, const struct end *end,
			  const struct ibchan_remote_region *remote)
{
	struct ibchan_cqe done[IBCHAN_DEFAULT_SEND_WR];
	struct ibchan_submit_sge sge = sge_at(end, 0, 64);
	struct ibchan_submit_wr wrs[IBCHAN_DEFAULT_SEND_WR];
	__u32 i, accepted;
	int rc;

	for (i = 0; i < IBCHAN_DEFAULT_SEND_WR; i++) {
		wrs[i] = wr_of(end, IBCHAN_OP_WRITE, &sge);
		wr_at(&wrs[i], remote);
	}
	rc = ibchan_post(context, wrs, IBCHAN_DEFAULT_SEND_WR, &accepted, NULL);
	if (rc)
		return rc;
	return ibchan_cq_wait(end->cq, done, accepted, accepted, patience_ns());
}

TEST_F(sandbox, posts_nothing_and_loses_no_place)
{
	struct boxed boxed = {
		.end = &self->a,
		.context = self->context,
		.error = variant->error,
	};
	int i;

	ASSERT_EQ(0, ibchan_mr_remote_region(self->b.mr, &boxed.remote));
	ASSERT_EQ(0, run_boxed(post_in_the_box, &boxed));
	if (boxed.filter)
		SKIP(return, "this kernel filters no system calls: %d", boxed.filter);
	EXPECT_EQ(0, boxed.accepted);
	for (i = 0; i < 6; i++)
		EXPECT_EQ(variant->answer, boxed.rc[i]) TH_LOG("call %d", i);
	EXPECT_EQ(IBCHAN_DEFAULT_SEND_WR,
		  fill_and_empty(self->context, &self->a, &boxed.remote));
}

static void *make_in_the_box(void *arg)
{
	struct boxed *boxed = arg;
	struct ibchan_context_attr info;
	struct ibchan_device *device;
	struct ibchan_pd *pd;
	struct ibchan_cq *cq;
	struct ibchan_mr *mr;

	boxed->filter = filter(ANY_COMMAND, boxed->error);
	if (boxed->filter)
		return NULL;
	boxed->rc[0] = ibchan_device_open(boxed->context, "any", &device, NULL);
	boxed->rc[1] = ibchan_pd_alloc(boxed->end->device, &pd, NULL);
	boxed->rc[2] = ibchan_cq_create(boxed->end->device, 16, 0, &cq, NULL);
	boxed->rc[3] = ibchan_mr_reg_local(boxed->end->pd, boxed->end->memory, 64, &mr, NULL);
	boxed->rc[4] = ibchan_context_query(boxed->context, &info, NULL);
	boxed->rc[5] = ibchan_device_list(boxed->context, NULL, 0, NULL);
	return NULL;
}

TEST_F(sandbox, makes_no_object_and_lists_no_device)
{
	struct boxed boxed = {
		.end = &self->a,
		.context = self->context,
		.error = variant->error,
	};
	int i;

	ASSERT_EQ(0, run_boxed(make_in_the_box, &boxed));
	if (boxed.filter)
		SKIP(return, "this kernel filters no system calls: %d", boxed.filter);
	for (i = 0; i < 6; i++)
		EXPECT_EQ(variant->answer, boxed.rc[i]) TH_LOG("call %d", i);
}

static void *end_in_the_box(void *arg)
{
	struct boxed *boxed = arg;
	struct ibchan_endpoint own;
	struct ibchan_channel *channel;
	struct ibchan_channel_info info;

	ibchan_prepared_endpoint(boxed->other->prepared, &own);
	boxed->filter = filter(ANY_COMMAND, boxed->error);
	if (boxed->filter)
		return NULL;
	boxed->rc[0] = ibchan_channel_break(boxed->end->channel);
	boxed->rc[1] = ibchan_channel_query(boxed->end->channel, &info, NULL);
	boxed->rc[2] = ibchan_mr_dereg(boxed->other->mr);
	boxed->rc[3] = ibchan_prepared_handshake(boxed->other->prepared, &own, &channel, NULL);
	return NULL;
}

TEST_F(sandbox, ends_and_connects_nothing)
{
	struct end other = { 0 };
	struct boxed boxed = { .end = &self->a, .other = &other, .error = variant->error };
	struct ibchan_channel_info info;
	int i;

	ASSERT_EQ(0, end_open(&other, self->context, 0, NULL));
	EXPECT_EQ(0, run_boxed(end_in_the_box, &boxed));
	if (!boxed.filter) {
		for (i = 0; i < 4; i++)
			EXPECT_EQ(variant->answer, boxed.rc[i]) TH_LOG("call %d", i);
		EXPECT_EQ(0, ibchan_channel_query(self->a.channel, &info, NULL));
		EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, info.state);
		/* The region is there, and the channel can still be connected. */
		EXPECT_EQ(0, end_loop(&other));
	}
	end_close(&other);
	if (boxed.filter)
		SKIP(return, "this kernel filters no system calls: %d", boxed.filter);
}

/* The twin: a filter that is about something else. */
static void *write_in_a_wide_box(void *arg)
{
	struct boxed *boxed = arg;
	struct ibchan_submit_sge sge = sge_at(boxed->end, 0, 64);

	struct ibchan_pd *pd;

	boxed->filter = filter(IBCHAN_CMD_PD_ALLOC, boxed->error);
	if (boxed->filter)
		return NULL;
	boxed->rc[0] = ibchan_write(boxed->end->channel, &sge, 1, &boxed->remote,
				    IBCHAN_TIMEOUT_NEVER, NULL);
	boxed->rc[1] = ibchan_pd_alloc(boxed->end->device, &pd, NULL);
	return NULL;
}

TEST_F(sandbox, that_lets_posts_through_changes_nothing)
{
	struct boxed boxed = { .end = &self->a, .error = variant->error };

	ASSERT_EQ(0, ibchan_mr_remote_region(self->b.mr, &boxed.remote));
	ASSERT_EQ(0, run_boxed(write_in_a_wide_box, &boxed));
	if (boxed.filter)
		SKIP(return, "this kernel filters no system calls: %d", boxed.filter);
	EXPECT_EQ(0, boxed.rc[0]);
	EXPECT_EQ(variant->answer, boxed.rc[1]);
}

/* Longer than what is copied: the peer reads it. */
#define LONG_MESSAGE	20000

struct hasty {
	struct ibchan_channel *channel;
	unsigned char bytes[LONG_MESSAGE];
	int error;
	int filter;
	int rc;
};

static void *send_hastily(void *arg)
{
	struct hasty *hasty = arg;

	hasty->filter = filter(IBCHAN_CMD_CHANNEL_BREAK, hasty->error);
	if (!hasty->filter)
		hasty->rc = ibchan_send_bytes(hasty->channel, hasty->bytes, LONG_MESSAGE, 20 * MS,
					      NULL);
	return NULL;
}

/* Of a thread that may not break its channel. */
TEST_F(sandbox, a_message_that_was_not_read_in_time_cannot_be_read_later)
{
	struct dialer dialer = { .host = "10.77.0.1" };
	struct hasty hasty = { .error = variant->error };
	unsigned char got[LONG_MESSAGE];
	struct ibchan_channel *taken;
	struct ibchan_server *server;
	pthread_t thread;

	ASSERT_EQ(0, ibchan_serve(NULL, NULL, NULL, &server, NULL));
	port_of_server(server, dialer.port, sizeof(dialer.port));
	ASSERT_EQ(0, pthread_create(&dialer.thread, NULL, dial, &dialer));
	ASSERT_EQ(0, ibchan_take(server, patience_ns(), &taken, NULL));
	ASSERT_EQ(0, join_soon(dialer.thread, NULL));
	ASSERT_EQ(0, dialer.rc);
	hasty.channel = dialer.channel;
	ASSERT_EQ(0, pthread_create(&thread, NULL, send_hastily, &hasty));
	ASSERT_EQ(0, join_soon(thread, NULL));
	EXPECT_EQ(0, hasty.filter);
	EXPECT_EQ(-ECONNABORTED, hasty.rc);
	EXPECT_EQ(-EPROTO, ibchan_receive_bytes(taken, got, LONG_MESSAGE, patience_ns(), NULL));
	EXPECT_EQ(0, ibchan_channel_close(dialer.channel));
	EXPECT_EQ(0, ibchan_channel_close(taken));
	EXPECT_EQ(0, ibchan_server_close(server));
}

TEST_HARNESS_MAIN
