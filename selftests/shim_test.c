// SPDX-License-Identifier: GPL-2.0-only
/*
 * libibchan's words, bytes and objects: what needs no traffic.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim/end.h"
#include "test.h"
#include "world.h"

/* ---- Without a device ---- */

static const char *reason_text(const struct ibchan_reason *reason)
{
	static char text[256];

	ibchan_reason_text(reason, text, sizeof(text));
	return text;
}

TEST(text_of_the_memlock_limit_says_used_limit_needed_and_its_hint_what_to_do)
{
	const struct ibchan_error error = {
		.code = -ENOMEM,
		.origin = IBCHAN_ERROR_CALL,
		.reason = { .code = IBCHAN_REASON_MEMLOCK, .value = { 65536, 65536, 4096 } },
	};

	ASSERT_STREQ("RLIMIT_MEMLOCK: 65536 bytes pinned, limit 65536, 4096 more needed",
		     reason_text(&error.reason));
	ASSERT_TRUE(has(ibchan_error_hint(&error), "raise `ulimit -l`, grant CAP_IPC_LOCK"));
}

TEST(bare_code_has_words_of_its_own_whatever_failed_before)
{
	ASSERT_STREQ("the channel is broken", ibchan_strerror(-ESHUTDOWN));
	ASSERT_STREQ("no error", ibchan_strerror(0));
	ASSERT_STREQ("no error", ibchan_strerror(3));
	ASSERT_STREQ(strerror(ENOSPC), ibchan_strerror(-ENOSPC));
	ASSERT_TRUE(has(ibchan_strerror(-100000), "does not know"));
	ASSERT_TRUE(has(ibchan_strerror(INT_MIN), "does not know"));
}

TEST(port_has_a_word_for_its_state)
{
	const struct ibchan_reason reason = {
		.code = IBCHAN_REASON_PORT_DOWN, .value = { 2, IBCHAN_PORT_INIT },
	};

	ASSERT_STREQ("active", ibchan_port_state_name(IBCHAN_PORT_ACTIVE));
	ASSERT_STREQ("unknown", ibchan_port_state_name(99));
	ASSERT_STREQ("connecting", ibchan_channel_state_name(IBCHAN_CHANNEL_CONNECTING));
	ASSERT_STREQ("unknown", ibchan_channel_state_name(99));
	ASSERT_STREQ("asking the peer", ibchan_stage_name(IBCHAN_STAGE_REQUEST));
	ASSERT_STREQ("unknown", ibchan_stage_name(99));
	ASSERT_STREQ("port 2 is not active: its state is init", reason_text(&reason));
}

TEST(text_that_does_not_fit_is_cut_and_its_length_told)
{
	const struct ibchan_reason reason = { .code = IBCHAN_REASON_NOT_CONNECTED };
	char whole[256], cut[10];
	int len = ibchan_reason_text(&reason, whole, sizeof(whole));

	memset(cut, 'x', sizeof(cut));
	ASSERT_EQ((int)strlen(whole), len);
	ASSERT_EQ(len, ibchan_reason_text(&reason, cut, sizeof(cut)));
	ASSERT_EQ(sizeof(cut) - 1, strlen(cut));
	ASSERT_EQ(0, strncmp(whole, cut, sizeof(cut) - 1));
	ASSERT_EQ(len, ibchan_reason_text(&reason, NULL, 0));
}

#define REASON_NUMBER(nr, NAME)	(nr),
static const __u32 refusals[] = { IBCHAN_REASONS(REASON_NUMBER) };

TEST(text_of_every_refusal_is_complete_and_fits_256_bytes)
{
	struct ibchan_reason reason = {
		.wr = -1U, .element = -1U, .value = { -1ULL, -1ULL, -1ULL },
	};
	char text[256], none[32];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(refusals); i++) {
		reason.code = refusals[i];
		snprintf(none, sizeof(none), "reason %u", reason.code);
		ASSERT_LT(ibchan_reason_text(&reason, text, sizeof(text)), (int)sizeof(text));
		ASSERT_FALSE(has(text, "{"));
		ASSERT_FALSE(has(text, "}"));
		ASSERT_FALSE(has(text, none));
		ASSERT_STRNE("unknown", ibchan_reason_name(reason.code));
	}
	/* A newer kernel's. */
	reason.code = 12345;
	ASSERT_LT(0, ibchan_reason_text(&reason, text, sizeof(text)));
	ASSERT_STREQ("unknown", ibchan_reason_name(reason.code));
}

TEST(status_has_the_verbs_name_a_class_and_a_hint)
{
	__u32 status;

	ASSERT_STREQ("RNR_RETRY_EXC_ERR", ibchan_status_name(IBCHAN_STATUS_RNR_RETRY_EXC_ERR));
	ASSERT_STREQ("timeout", ibchan_status_class_name(IBCHAN_STATUS_RNR_RETRY_EXC_ERR));
	ASSERT_TRUE(has(ibchan_status_hint(IBCHAN_STATUS_RNR_RETRY_EXC_ERR), "receive"));
	for (status = 1; status <= IBCHAN_STATUS_GENERAL_ERR; status++) {
		ASSERT_STRNE("unknown", ibchan_status_name(status));
		ASSERT_LT(0, strlen(ibchan_status_hint(status)));
	}
	ASSERT_STREQ("none", ibchan_status_class_name(IBCHAN_STATUS_SUCCESS));
	ASSERT_STREQ("unknown", ibchan_status_name(999));
	ASSERT_EQ(IBCHAN_CLASS_UNKNOWN, ibchan_status_class(999));
}

TEST(remote_region_gives_only_parts_that_lie_inside)
{
	const struct ibchan_remote_region whole = { 4096, 100, 7, 0 };
	struct ibchan_remote_region part = { 0 };

	ASSERT_EQ(0, ibchan_remote_region_sub(&whole, 10, 90, &part));
	ASSERT_EQ(4106, part.addr);
	ASSERT_EQ(90, part.length);
	ASSERT_EQ(7, part.rkey);
	ASSERT_EQ(0, ibchan_remote_region_sub(&whole, 100, 0, &part));
	ASSERT_EQ(-EINVAL, ibchan_remote_region_sub(&whole, 10, 91, &part));
	ASSERT_EQ(-EINVAL, ibchan_remote_region_sub(&whole, 101, 0, &part));
	ASSERT_EQ(-EINVAL, ibchan_remote_region_sub(&whole, -1ULL, 2, &part));
	ASSERT_EQ(4196, part.addr);
}

TEST(remote_region_gives_no_part_whose_address_wraps)
{
	const struct ibchan_remote_region whole = { -64ULL, 4096, 7, 0 };
	struct ibchan_remote_region part = { 0 };

	ASSERT_EQ(0, ibchan_remote_region_sub(&whole, 0, 63, &part));
	ASSERT_EQ(-64ULL, part.addr);
	ASSERT_EQ(-EINVAL, ibchan_remote_region_sub(&whole, 0, 65, &part));
	ASSERT_EQ(-EINVAL, ibchan_remote_region_sub(&whole, 64, 8, &part));
	ASSERT_EQ(-EINVAL, ibchan_remote_region_nth(&whole, 64, 2, &part));
	ASSERT_EQ(-64ULL, part.addr);
	ASSERT_EQ(63, part.length);
}

TEST(remote_region_gives_an_unchecked_part_as_it_was_asked_for)
{
	const struct ibchan_remote_region whole = { 4096, 100, 7, 0 };
	struct ibchan_remote_region part;

	part = ibchan_remote_region_sub_unchecked(&whole, 200, 50);
	ASSERT_EQ(4296, part.addr);
	ASSERT_EQ(50, part.length);
	ASSERT_EQ(7, part.rkey);
}

struct shared_memory {
	__u32 magic;
	__aligned_u64 counter;
	char name[12];
};

TEST(remote_region_gives_members_and_elements_that_lie_inside)
{
	const struct ibchan_remote_region whole = { 4096, sizeof(struct shared_memory) - 1, 7, 0 };
	struct ibchan_remote_region part = { 0 };

	ASSERT_EQ(0, ibchan_remote_region_field(&whole, struct shared_memory, counter, &part));
	ASSERT_EQ(4096 + offsetof(struct shared_memory, counter), part.addr);
	ASSERT_EQ(8, part.length);
	ASSERT_EQ(0, ibchan_remote_region_field(&whole, struct shared_memory, name[11], &part));
	ASSERT_EQ(1, part.length);
	ASSERT_EQ(-EINVAL, ibchan_remote_region_sub(&part, 1, 1, &part));
	ASSERT_EQ(0, ibchan_remote_region_element(&whole, __u16, 3, &part));
	ASSERT_EQ(4102, part.addr);
	ASSERT_EQ(2, part.length);
	ASSERT_EQ(-EINVAL, ibchan_remote_region_element(&whole, struct shared_memory, 0, &part));
	ASSERT_EQ(-EINVAL, ibchan_remote_region_element(&whole, __u16, whole.length / 2, &part));
	/* An offset that wraps around does not lead back inside. */
	ASSERT_EQ(-EINVAL, ibchan_remote_region_element(&whole, __u16, 1ULL << 63, &part));
	ASSERT_EQ(-EINVAL, ibchan_remote_region_nth(&whole, 1ULL << 63, 2, &part));
	ASSERT_EQ(4102, part.addr);
}

TEST(remote_region_travels_as_bytes_in_network_order)
{
	const struct ibchan_remote_region region = { 0x0102030405060708ULL, 0x10, 0xa1a2a3a4, 0 };
	__u8 bytes[IBCHAN_REMOTE_REGION_SIZE];
	struct ibchan_remote_region back;

	ibchan_remote_region_to_bytes(&region, bytes);
	ASSERT_EQ(0x01, bytes[0]);
	ASSERT_EQ(0x10, bytes[15]);
	ASSERT_EQ(0xa4, bytes[19]);
	ASSERT_EQ(0, ibchan_remote_region_from_bytes(&back, bytes, sizeof(bytes)));
	ASSERT_EQ(0, memcmp(&region, &back, sizeof(back)));
	ASSERT_EQ(-EINVAL, ibchan_remote_region_from_bytes(&back, bytes, sizeof(bytes) - 1));
	memset(bytes, 0xff, 16);
	ASSERT_EQ(-EINVAL, ibchan_remote_region_from_bytes(&back, bytes, sizeof(bytes)));
}

/* The table of the InfiniBand specification, in microseconds. */
TEST(rnr_timer_codes_stand_for_the_times_of_the_specification)
{
	static const __u32 us[32] = {
		655360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 1920,
		2560, 3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440, 81920, 122880,
		163840, 245760, 327680, 491520,
	};
	int code;

	for (code = 0; code < 32; code++) {
		ASSERT_EQ(us[code] * 1000LL, ibchan_rnr_timer_to_ns(code));
		ASSERT_EQ(code, ibchan_rnr_timer_from_ns(us[code] * 1000LL));
	}
	ASSERT_EQ(-EINVAL, ibchan_rnr_timer_to_ns(32));
	ASSERT_EQ(1, ibchan_rnr_timer_from_ns(0));
	ASSERT_EQ(2, ibchan_rnr_timer_from_ns(10001));
	ASSERT_EQ(0, ibchan_rnr_timer_from_ns(491520001));
	ASSERT_EQ(-EINVAL, ibchan_rnr_timer_from_ns(655360001));
	ASSERT_EQ(-EINVAL, ibchan_rnr_timer_from_ns(-1));
}

TEST(ack_timeout_codes_double_from_8_microseconds_on)
{
	int code;

	for (code = 1; code < 32; code++) {
		ASSERT_EQ(4096LL << code, ibchan_ack_timeout_to_ns(code));
		ASSERT_EQ(code, ibchan_ack_timeout_from_ns(4096LL << code));
	}
	ASSERT_EQ(536870912, ibchan_ack_timeout_to_ns(IBCHAN_DEFAULT_ACK_TIMEOUT));
	ASSERT_EQ(IBCHAN_TIMEOUT_NEVER, ibchan_ack_timeout_to_ns(0));
	ASSERT_EQ(-EINVAL, ibchan_ack_timeout_to_ns(32));
	ASSERT_EQ(1, ibchan_ack_timeout_from_ns(0));
	ASSERT_EQ(2, ibchan_ack_timeout_from_ns(8193));
	ASSERT_EQ(0, ibchan_ack_timeout_from_ns(IBCHAN_TIMEOUT_NEVER));
	ASSERT_EQ(-EINVAL, ibchan_ack_timeout_from_ns((4096LL << 31) + 1));
	ASSERT_EQ(-EINVAL, ibchan_ack_timeout_from_ns(-2));
}

TEST(endpoint_from_strangers_is_refused_with_both_values)
{
	struct ibchan_endpoint endpoint = {
		.magic = htonl(IBCHAN_ENDPOINT_MAGIC),
		.version = htons(IBCHAN_ENDPOINT_VERSION),
		.qpn = htonl(17),
	};
	__u8 bytes[IBCHAN_ENDPOINT_SIZE];
	struct ibchan_endpoint back;
	struct ibchan_error error;
	char text[256];

	ibchan_endpoint_to_bytes(&endpoint, bytes);
	ASSERT_EQ(0, ibchan_endpoint_from_bytes(&back, bytes, sizeof(bytes), &error));
	ASSERT_EQ(0, memcmp(&endpoint, &back, sizeof(back)));
	ASSERT_EQ(IBCHAN_ERROR_NONE, error.origin);
	ASSERT_EQ(-EINVAL, ibchan_endpoint_from_bytes(&back, bytes, 63, &error));
	EXPECT_STREQ("length: 63 is not in 64 to 64", ibchan_error_string(&error));
	bytes[5] = 7;
	ASSERT_EQ(0, ibchan_endpoint_from_bytes(&back, bytes, sizeof(bytes), &error));
	bytes[5] = 0;
	ASSERT_EQ(-EINVAL, ibchan_endpoint_from_bytes(&back, bytes, sizeof(bytes), &error));
	ibchan_error_text(&error, text, sizeof(text));
	ASSERT_STREQ("endpoint version: ours 1, theirs 0", text);
	bytes[0] = 0;
	ASSERT_EQ(-EINVAL, ibchan_endpoint_from_bytes(&back, bytes, sizeof(bytes), &error));
	ASSERT_EQ(IBCHAN_REASON_ENDPOINT_MAGIC, error.reason.code);
}

TEST(header_compiles_alone_as_cxx17)
{
	char include[512], uapi[512], header[512];
	const char *const argv[] = {
		"c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only",
		"-x", "c++", include, uapi, header, NULL,
	};

	if (access("/usr/bin/c++", X_OK))
		SKIP(return, "no C++ compiler here");
	snprintf(include, sizeof(include), "-I%s/userspace/include", TREE);
	snprintf(uapi, sizeof(uapi), "-I%s/uapi", TREE);
	snprintf(header, sizeof(header), "%s/userspace/include/ibchan.h", TREE);
	ASSERT_EQ(0, run_program(argv));
}

/* Where `make lib` has put its results: IBCHAN_LIB, or beside our own folder. */
static void lib_path(char *path, size_t len, const char *file)
{
	char self[PATH_MAX] = "";

	if (getenv("IBCHAN_LIB")) {
		snprintf(path, len, "%s/%s", getenv("IBCHAN_LIB"), file);
		return;
	}
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		self[0] = '\0';
	snprintf(path, len, "%s/../userspace/%s", dirname(self), file);
}

TEST(tool_refuses_a_command_line_that_makes_no_sense)
{
	static const char *const bad[][5] = {
		{ "pingpong", "--size", "1x", NULL },
		{ "pingpong", "--mtu", "1000", NULL },
		{ "pingpong", "--op", "atomic", NULL },
		{ "pingpong", "--tx-depth", "0", NULL },
		{ "pingpong", "one", "two", NULL },
		{ "pingpong", "--op=write", "--size=0", "x", NULL },
		{ "devices", "extra", NULL },
		{ "nothing", NULL },
		{ NULL },
	};
	const char *argv[7] = { NULL };
	char path[PATH_MAX + 64];
	size_t i;

	lib_path(path, sizeof(path), "ibchan");
	if (access(path, X_OK))
		SKIP(return, "it was not built");
	argv[0] = path;
	ASSERT_EQ(2, run_program(argv));
	for (i = 0; bad[i][0]; i++) {
		memcpy(&argv[1], bad[i], sizeof(bad[i]));
		ASSERT_EQ(2, run_program(argv)) {
			TH_LOG("%s %s", bad[i][0], bad[i][1]);
		}
	}
	argv[1] = "--help";
	argv[2] = NULL;
	ASSERT_EQ(0, run_program(argv));
	argv[1] = "devices";
	argv[2] = "--gids";
	argv[3] = NULL;
	ASSERT_EQ(0, run_program(argv));
}

/* ---- Objects ---- */

FIXTURE(context)
{
	struct calm calm;
	struct ibchan_context *context;
};

FIXTURE_SETUP(context)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, ibchan_context_open(&self->context, NULL));
}

FIXTURE_TEARDOWN(context)
{
	EXPECT_EQ(0, ibchan_context_close(self->context));
	EXPECT_EQ(0, calm_end(&self->calm));
}

TEST_F(context, lists_devices_that_can_be_opened_by_name)
{
	struct ibchan_device_attr infos[8] = { 0 };
	struct ibchan_device *device;
	int n = ibchan_device_list(self->context, infos, 8, NULL);
	int i;

	ASSERT_LT(0, n);
	ASSERT_EQ(n, ibchan_device_list(self->context, NULL, 0, NULL));
	for (i = 0; i < n; i++) {
		ASSERT_LT(0, infos[i].ports);
		ASSERT_NE(0, infos[i].max_qp_wr);
		ASSERT_EQ(0, ibchan_device_open(self->context, infos[i].name, &device, NULL));
		EXPECT_STREQ(infos[i].name, ibchan_device_name(device));
		EXPECT_EQ(0, ibchan_device_close(device));
	}
	ASSERT_EQ(0, ibchan_device_open(self->context, NULL, &device, NULL));
	EXPECT_STREQ(infos[0].name, ibchan_device_name(device));
	EXPECT_EQ(0, ibchan_device_close(device));
}

TEST_F(context, refuses_a_device_that_is_not_there)
{
	char name[IBCHAN_NAME_SIZE + 1];
	struct ibchan_device *device;

	memset(name, 'x', IBCHAN_NAME_SIZE);
	name[IBCHAN_NAME_SIZE] = '\0';
	ASSERT_EQ(-ENODEV, ibchan_device_open(self->context, "no such", &device, NULL));
	ASSERT_EQ(-EINVAL, ibchan_device_open(self->context, name, &device, NULL));
}

TEST_F(context, tells_of_ports_that_exist)
{
	char name[IBCHAN_NAME_SIZE];
	struct ibchan_port_attr port;

	ASSERT_EQ(0, device_name(self->context, 0, name));
	ASSERT_EQ(0, ibchan_port_query(self->context, name, 1, &port, NULL));
	ASSERT_EQ(4, port.state);
	ASSERT_LE(256, port.active_mtu);
	ASSERT_LE(port.active_mtu, port.max_message);
	ASSERT_GE(IBCHAN_MAX_MESSAGE, port.max_message);
	ASSERT_EQ(-EINVAL, ibchan_port_query(self->context, name, 0, &port, NULL));
	ASSERT_EQ(-EINVAL, ibchan_port_query(self->context, name, 200, &port, NULL));
	ASSERT_EQ(-ENODEV, ibchan_port_query(self->context, "no such", 1, &port, NULL));
}

TEST_F(context, tells_of_each_gid_and_why_it_is_taken_or_not)
{
	char name[IBCHAN_NAME_SIZE];
	struct ibchan_port_attr port;
	struct ibchan_gid_attr gid;
	unsigned int chosen = 0;
	__u32 index = 0;
	int rc;

	ASSERT_EQ(0, device_name(self->context, 0, name));
	ASSERT_EQ(0, ibchan_port_query(self->context, name, 1, &port, NULL));
	while (!(rc = ibchan_gid_query(self->context, name, 1, index, &gid, NULL))) {
		index = gid.index + 1;
		EXPECT_STRNE("unknown", ibchan_gid_verdict_name(gid.verdict));
		if (gid.verdict == IBCHAN_GID_VERDICT_CHOSEN) {
			chosen++;
			EXPECT_EQ(port.gid_index, gid.index);
			EXPECT_STRNE("", gid.ndev_name);
		}
	}
	EXPECT_EQ(-ENOENT, rc);
	EXPECT_EQ(1, chosen);
	EXPECT_EQ(-EINVAL, ibchan_gid_query(self->context, name, 0, 0, &gid, NULL));
	EXPECT_EQ(-ENODEV, ibchan_gid_query(self->context, "no such", 1, 0, &gid, NULL));
	EXPECT_STREQ("LINK_LOCAL", ibchan_gid_verdict_name(IBCHAN_GID_VERDICT_LINK_LOCAL));
	EXPECT_TRUE(has(ibchan_gid_verdict_text(IBCHAN_GID_VERDICT_NDEV_DOWN), "down"));
	EXPECT_STREQ("unknown", ibchan_gid_verdict_name(99999));
	EXPECT_NE(NULL, ibchan_gid_verdict_text(99999));
}

TEST_F(context, gives_objects_back_in_reverse_order_only)
{
	struct ibchan_context_attr info;
	struct ibchan_device *device;
	struct ibchan_pd *pd;

	ASSERT_EQ(0, ibchan_device_open(self->context, NULL, &device, NULL));
	ASSERT_EQ(0, ibchan_pd_alloc(device, &pd, NULL));
	EXPECT_EQ(0, ibchan_context_query(self->context, &info, NULL));
	EXPECT_EQ(2, info.handles);
	EXPECT_EQ(-EBUSY, ibchan_device_close(device));
	EXPECT_EQ(0, ibchan_pd_free(pd));
	EXPECT_EQ(0, ibchan_device_close(device));
	EXPECT_EQ(0, ibchan_context_query(self->context, &info, NULL));
	EXPECT_EQ(0, info.handles);
}

/* Descriptors that a program would have that replaced this one. */
static int kept_by_exec(void)
{
	int fd, flags, n = 0;

	for (fd = 0; fd < 64; fd++) {
		flags = fcntl(fd, F_GETFD);
		n += flags >= 0 && !(flags & FD_CLOEXEC);
	}
	return n;
}

TEST_F(context, ends_all_that_is_left_in_it_when_it_is_closed_or_by_exec)
{
	const struct ibchan_listen_params params = { .size = sizeof(params) };
	struct ibchan_context *context;
	struct ibchan_listener *listener;
	struct end a = { 0 }, b = { 0 };
	struct ibchan_submit_sge in;
	int kept = kept_by_exec();

	ASSERT_EQ(0, ibchan_context_open(&context, NULL));
	EXPECT_EQ(0, ibchan_listener_create(context, &params, &listener, NULL));
	EXPECT_LE(0, ibchan_next_fd(context));
	EXPECT_EQ(0, end_open(&a, context, 0, NULL));
	EXPECT_EQ(0, end_open(&b, context, 0, a.cq));
	EXPECT_EQ(0, connect_ends(&a, &b));
	EXPECT_LE(0, ibchan_cq_fd(a.cq));
	in = sge_at(&b, 0, 8);
	EXPECT_EQ(0, post_receive(context, &b, &in, 1));
	EXPECT_EQ(kept, kept_by_exec());
	EXPECT_EQ(0, ibchan_context_close(context));
	munmap(a.memory, MEMORY);
	munmap(b.memory, MEMORY);
	/* The fixture finds out whether anything was left behind. */
}

TEST_F(context, accepts_null_wherever_something_is_given_back)
{
	ASSERT_EQ(0, ibchan_channel_close(NULL));
	ASSERT_EQ(0, ibchan_prepared_destroy(NULL));
	ASSERT_EQ(0, ibchan_cq_destroy(NULL));
	ASSERT_EQ(0, ibchan_mr_dereg(NULL));
	ASSERT_EQ(0, ibchan_pd_free(NULL));
	ASSERT_EQ(0, ibchan_device_close(NULL));
	ASSERT_EQ(0, ibchan_context_close(NULL));
}

TEST_F(context, registers_memory_for_peers_or_for_itself)
{
	struct ibchan_remote_region region;
	struct ibchan_error error;
	struct end end = { 0 };
	struct ibchan_mr *mr;

	ASSERT_EQ(0, end_objects(&end, self->context, 0));
	EXPECT_EQ(0, ibchan_mr_remote_region(end.mr, &region));
	EXPECT_EQ((__u64)(uintptr_t)end.memory, region.addr);
	EXPECT_EQ(MEMORY, region.length);
	EXPECT_EQ(0, ibchan_mr_reg_local(end.pd, end.memory, 1, &mr, &error));
	EXPECT_EQ(0, error.code);
	EXPECT_EQ(-EACCES, ibchan_mr_remote_region(mr, &region));
	EXPECT_EQ(0, ibchan_mr_dereg(mr));
	end_close(&end);
}

TEST_HARNESS_MAIN
