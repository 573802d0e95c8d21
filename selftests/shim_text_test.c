// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the library says: each situation is brought about, and its code, its text and its hint
 * are those of the table in shim/situations.c. What no situation brings about is listed here,
 * with where it is said.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "shim/situations.h"
#include "test.h"
#include "world.h"

static int scene_open(struct scene *scene)
{
	int rc;

	memset(scene, 0, sizeof(*scene));
	rc = ibchan_context_open(&scene->context, NULL);
	rc = rc ?: end_open(&scene->a, scene->context, 0, NULL);
	rc = rc ?: end_open(&scene->b, scene->context, 1, NULL);
	if (!rc)
		ibchan_prepared_endpoint(scene->b.prepared, &scene->of_b);
	return rc;
}

static void scene_close(struct scene *scene)
{
	end_close(&scene->b);
	end_close(&scene->a);
	ibchan_context_close(scene->context);
}

/* The advice is not part of what has happened, nor the other way around. */
static bool repeats(const char *text, const char *hint)
{
	return *hint && (strstr(text, hint) || strstr(hint, text));
}

static bool is_told(const struct row *row, int rc, const struct ibchan_error *error)
{
	const char *hint = ibchan_error_hint(error);
	char text[256];
	int length = ibchan_error_text(error, text, sizeof(text));

	if ((row->code == ANY ? rc < 0 : rc == row->code) && rc == error->code &&
	    length < (int)sizeof(text) && !repeats(text, hint) &&
	    !fnmatch(row->text, text, FNM_NOESCAPE | FNM_EXTMATCH) &&
	    !fnmatch(row->hint, hint, FNM_NOESCAPE | FNM_EXTMATCH))
		return true;
	fprintf(stderr, "# %s: %d (%d): %s: \"%s\", \"%s\"\n", row->name, rc, error->code,
		ibchan_reason_name(error->reason.code), text, hint);
	return false;
}

/**
 * struct elsewhere - what the library can say, and no situation here brings about
 * @code: enum ibchan_reason_code
 * @where: who sees it, or why nobody does
 */
static const struct elsewhere {
	__u32 code;
	const char *where;
} elsewhere[] = {
	{ IBCHAN_REASON_ELEMENT_POINTER, "callers of the kernel that lie about their own list" },
	{ IBCHAN_REASON_MR_HANDLE, "a region that another thread deregisters" },
	{ IBCHAN_REASON_MESSAGE_TOO_LONG, "more than a device takes: gibibytes on some" },
	{ IBCHAN_REASON_MESSAGES_UNTAKEN, "shim_message_test" },
	{ IBCHAN_REASON_MR_GOING, "a region that another thread deregisters" },
	{ IBCHAN_REASON_DEVICE_GONE, "device_test" },
	{ IBCHAN_REASON_POST_FAILED, "kernel-tests faults" },
	{ IBCHAN_REASON_MEMLOCK, "memory_test" },
	{ IBCHAN_REASON_DRIVER_NOT_SAFE, "drivers that no test has" },
	{ IBCHAN_REASON_NO_GID, "address_test" },
	{ IBCHAN_REASON_PORT_DOWN, "address_test" },
	{ IBCHAN_REASON_ENDPOINT_RESERVED, "connect_test" },
	{ IBCHAN_REASON_LINK_LAYER, "two kinds of ports" },
	{ IBCHAN_REASON_PEER_MTU, "kernel-tests kunit" },
	{ IBCHAN_REASON_PEER_GID, "address_test" },
	{ IBCHAN_REASON_VERBS, "kernel-tests faults" },
	{ IBCHAN_REASON_GID_GONE, "address_test" },
	{ IBCHAN_REASON_PEER_RD_ATOMIC, "kernel-tests kunit" },
	{ IBCHAN_REASON_NO_SINK, "kernel consumers" },
	{ IBCHAN_REASON_WORK_IN_FLIGHT, "kernel consumers" },
	{ IBCHAN_REASON_NO_DONE, "kernel consumers" },
	{ IBCHAN_REASON_INTERRUPTS_OFF, "kernel consumers" },
	{ IBCHAN_REASON_PEER_NO_READS, "foreign_test" },
	{ IBCHAN_REASON_FOREIGN, "shim_connect_mtu_test" },
	{ IBCHAN_REASON_SOURCE, "shim_address_test" },
	{ IBCHAN_REASON_MR_INVALIDATED, "kernel-tests kclient" },
	{ IBCHAN_REASON_REGION_TOO_LONG, "kernel consumers, and devices of short lists" },
	{ IBCHAN_REASON_REGION_GAPS, "kernel consumers" },
	{ IBCHAN_REASON_REGION_COPIED, "kernel consumers" },
	{ IBCHAN_REASON_INLINE_ELEMENT, "callers of the kernel: the library sends addresses" },
	{ IBCHAN_REASON_DMABUF_DEVICE, "dmabuf_test" },
	{ IBCHAN_REASON_DMABUF_NOT_MAPPED, "dmabuf_test" },
	{ IBCHAN_REASON_DMABUF_NO_PAGES, "dmabuf_test" },
	{ IBCHAN_REASON_DMABUF_MODE, "dmabuf_test" },
	{ IBCHAN_REASON_REQUEST_DEVICE, "shim_connect_test" },
	{ IBCHAN_REASON_ADDRESS_FAMILY, "callers of the kernel" },
	{ IBCHAN_REASON_CM, "shim_connect_test" },
	{ IBCHAN_REASON_NO_ROUTE, "address_test" },
	{ IBCHAN_REASON_NEXT_HOP, "address_test" },
	{ IBCHAN_REASON_NO_PKEY, "InfiniBand" },
	{ IBCHAN_REASON_PEER_LID, "InfiniBand; kernel-tests kunit" },
	{ IBCHAN_REASON_PEER_PKEY, "InfiniBand; kernel-tests kunit" },
	{ IBCHAN_REASON_PEER_SUBNET, "InfiniBand; kernel-tests kunit" },
	{ IBCHAN_REASON_CGROUP, "cgroup_test" },
	{ IBCHAN_REASON_USER_MEMORY, "budget_test" },
	{ IBCHAN_REASON_FILE_WRITTEN, "kinds_test" },
	{ IBCHAN_REASON_READ_ONLY_SHARED, "memory_test" },
	{ IBCHAN_REASON_IWARP, "shim_iwarp_test" },
	{ IBCHAN_REASON_NODE, "shim_open_test" },
	{ IBCHAN_REASON_SEND_QUEUE_FULL, "who does not poll; post_test" },
};

#define REASON_NUMBER(nr, NAME)	(nr),
static const __u32 reasons[] = { IBCHAN_REASONS(REASON_NUMBER) };

#define REASONS_END	128

static bool is_elsewhere(__u32 code)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(elsewhere); i++)
		if (elsewhere[i].code == code)
			return true;
	return false;
}

/* Each reason has its situation, or its line above, and not both. */
static int reasons_missing(const bool *seen)
{
	int missing = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(reasons); i++) {
		if (seen[reasons[i]] != is_elsewhere(reasons[i]))
			continue;
		fprintf(stderr, "# %s: %s\n", ibchan_reason_name(reasons[i]),
			seen[reasons[i]] ? "is seen, and listed as not" : "is not seen");
		missing++;
	}
	return missing;
}

TEST(each_situation_is_told_as_the_table_says)
{
	bool seen[REASONS_END] = { false };
	struct ibchan_error error;
	struct scene scene;
	unsigned int i;
	int rc;

	for (i = 0; i < num_rows; i++) {
		memset(&error, 0, sizeof(error));
		ASSERT_EQ(0, scene_open(&scene)) TH_LOG("%s", rows[i].name);
		rc = rows[i].bring_about(&scene, &error);
		EXPECT_TRUE(is_told(&rows[i], rc, &error));
		ASSERT_GT(REASONS_END, error.reason.code);
		seen[error.reason.code] = true;
		scene_close(&scene);
	}
	EXPECT_EQ(0, reasons_missing(seen));
}

/* Numbers up to beyond the end of each table, and some that are far beyond. */
#define TABLE_END	300

static const __u32 beyond[] = { 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff };

static __u32 number_at(unsigned int i)
{
	return i < TABLE_END ? i : beyond[i - TABLE_END];
}

#define NUM_NUMBERS	(TABLE_END + ARRAY_SIZE(beyond))

static bool is_told_somehow(const struct ibchan_error *error)
{
	char text[512];

	return ibchan_error_text(error, text, sizeof(text)) > 0 && *text &&
	       ibchan_error_hint(error) && *ibchan_error_string(error);
}

TEST(each_number_of_a_parameter_is_told_whether_there_is_one_or_not)
{
	struct ibchan_error error = {
		.origin = IBCHAN_ERROR_CALL,
		.code = -EINVAL,
		.reason = { .code = IBCHAN_REASON_PARAMETER, .value = { 5, 6, 7 } },
	};
	char text[64];
	unsigned int i;

	for (i = 0; i < NUM_NUMBERS; i++) {
		error.reason.element = number_at(i);
		EXPECT_TRUE(is_told_somehow(&error)) TH_LOG("%x", number_at(i));
	}
	error.reason.element = IBCHAN_PARAMETER_BACKLOG + 1;
	ibchan_error_text(&error, text, sizeof(text));
	EXPECT_STREQ("unknown: 5 is not in 6 to 7", text);
	error.reason.element = IBCHAN_PARAMETER_BACKLOG;
	ibchan_error_text(&error, text, sizeof(text));
	EXPECT_STREQ("backlog: 5 is not in 6 to 7", text);
}

/* As in a Turkish locale of one byte: the C library's own tables, but for the I. */
static bool is_turkish;

const int **__ctype_tolower_loc(void)
{
	static int table[384];
	static const int *middle = table + 128;
	int c;

	for (c = -128; c < 256; c++)
		table[128 + c] = c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
	if (is_turkish)
		table[128 + 'I'] = 0xfd;
	return &middle;
}

TEST(a_parameter_is_told_the_same_in_a_turkish_locale)
{
	const struct ibchan_error error = {
		.origin = IBCHAN_ERROR_CALL,
		.code = -EINVAL,
		.reason = {
			.code = IBCHAN_REASON_PARAMETER,
			.element = IBCHAN_PARAMETER_MAX_INLINE_DATA,
			.value = { 5, 6, 7 },
		},
	};
	char text[64];

	is_turkish = true;
	ibchan_error_text(&error, text, sizeof(text));
	is_turkish = false;
	EXPECT_STREQ("max_inline_data: 5 is not in 6 to 7", text);
}

/* Values that are numbers of further tables, and that are of none. */
TEST(each_number_of_a_reason_is_told_with_values_of_any_size)
{
	static const __u64 values[] = { 0, 1, 7, 22, 200, 0x7fffffff, 0xffffffff, ~0ULL };
	struct ibchan_error error = { .origin = IBCHAN_ERROR_CALL, .code = -EINVAL };
	unsigned int i, j, k;

	for (i = 0; i < NUM_NUMBERS; i++) {
		error.reason.code = number_at(i);
		for (j = 0; j < ARRAY_SIZE(values); j++) {
			for (k = 0; k < ARRAY_SIZE(error.reason.value); k++)
				error.reason.value[k] = values[(j + k) % ARRAY_SIZE(values)];
			EXPECT_TRUE(is_told_somehow(&error)) TH_LOG("%x", number_at(i));
		}
	}
}

static bool end_has(__u64 code, __u32 status, const char *words)
{
	struct ibchan_error error = {
		.origin = IBCHAN_ERROR_CALL,
		.code = -ESHUTDOWN,
		.reason = { .code = IBCHAN_REASON_BROKEN, .value = { code, status } },
	};
	char text[256];

	ibchan_error_text(&error, text, sizeof(text));
	return strstr(text, words);
}

/* Of a port that is down, the errno knows more. */
TEST(an_end_is_told_as_its_first_failed_work_is)
{
	EXPECT_TRUE(end_has(EIO, IBCHAN_STATUS_LOC_QP_OP_ERR,
			    "the message is longer than its elements, first failed work LOC_QP"));
	EXPECT_TRUE(end_has(ENETDOWN, IBCHAN_STATUS_LOC_QP_OP_ERR,
			    "broken: no port of the device is active, first failed work LOC_QP"));
	EXPECT_TRUE(end_has(ECANCELED, IBCHAN_STATUS_SUCCESS, "broken: this side has ended it"));
}

TEST(each_number_of_a_failed_work_is_told)
{
	struct ibchan_error error = { .origin = IBCHAN_ERROR_WORK, .code = -EIO };
	unsigned int i;

	for (i = 0; i < NUM_NUMBERS; i++) {
		error.opcode = number_at(i);
		error.status = number_at(i);
		EXPECT_TRUE(is_told_somehow(&error)) TH_LOG("%x", number_at(i));
	}
}

TEST(each_number_of_a_table_has_a_name)
{
	struct ibchan_history_event event = { 0 };
	char text[512];
	unsigned int i;
	__u32 number;

	for (i = 0; i < NUM_NUMBERS; i++) {
		number = number_at(i);
		event.kind = number;
		event.detail = number;
		event.error = number;
		EXPECT_TRUE(*ibchan_reason_name(number)) TH_LOG("%x", number);
		EXPECT_TRUE(*ibchan_status_name(number)) TH_LOG("%x", number);
		EXPECT_TRUE(*ibchan_status_class_name(number)) TH_LOG("%x", number);
		EXPECT_TRUE(ibchan_status_hint(number)) TH_LOG("%x", number);
		EXPECT_TRUE(*ibchan_port_state_name(number)) TH_LOG("%x", number);
		EXPECT_TRUE(*ibchan_opcode_name(number)) TH_LOG("%x", number);
		EXPECT_TRUE(*ibchan_gid_verdict_name(number)) TH_LOG("%x", number);
		EXPECT_TRUE(*ibchan_gid_verdict_text(number)) TH_LOG("%x", number);
		EXPECT_TRUE(*ibchan_history_name(number)) TH_LOG("%x", number);
		EXPECT_LT(0, ibchan_history_text(&event, text, sizeof(text)));
		EXPECT_TRUE(*ibchan_strerror((int)number)) TH_LOG("%x", number);
	}
}

TEST_HARNESS_MAIN
