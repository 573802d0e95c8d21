// SPDX-License-Identifier: GPL-2.0-only
/*
 * status.c: the row of each status that the verbs have. What a row has to say is written
 * here again, so that a change to IBCHAN_STATUSES has to be made twice.
 */
#include <linux/kernel.h>
#include <linux/string.h>

#include "cases.h"

struct row {
	u32 status;
	const char *name;
	u32 error;
	u32 class;
};

#define ROW(NAME, errno_, CLASS)					\
	[IB_WC_##NAME] = { IBCHAN_STATUS_##NAME, #NAME, errno_, IBCHAN_CLASS_##CLASS }

static const struct row rows[] = {
	ROW(SUCCESS, 0, NONE),
	ROW(LOC_LEN_ERR, EMSGSIZE, PROGRAMMING),
	ROW(LOC_QP_OP_ERR, EIO, PROGRAMMING),
	ROW(LOC_EEC_OP_ERR, EIO, PROGRAMMING),
	ROW(LOC_PROT_ERR, EFAULT, PROGRAMMING),
	ROW(WR_FLUSH_ERR, ECANCELED, TRANSPORT),
	ROW(MW_BIND_ERR, EIO, LOCAL_RESOURCE),
	ROW(BAD_RESP_ERR, EPROTO, TRANSPORT),
	ROW(LOC_ACCESS_ERR, EACCES, PROGRAMMING),
	ROW(REM_INV_REQ_ERR, EREMOTEIO, REMOTE),
	ROW(REM_ACCESS_ERR, EREMOTEIO, REMOTE),
	ROW(REM_OP_ERR, EREMOTEIO, REMOTE),
	ROW(RETRY_EXC_ERR, ETIMEDOUT, TIMEOUT),
	ROW(RNR_RETRY_EXC_ERR, ETIMEDOUT, TIMEOUT),
	ROW(LOC_RDD_VIOL_ERR, EIO, PROGRAMMING),
	ROW(REM_INV_RD_REQ_ERR, EREMOTEIO, REMOTE),
	ROW(REM_ABORT_ERR, ECONNABORTED, REMOTE),
	ROW(INV_EECN_ERR, EIO, PROGRAMMING),
	ROW(INV_EEC_STATE_ERR, EIO, PROGRAMMING),
	ROW(FATAL_ERR, EIO, FATAL),
	ROW(RESP_TIMEOUT_ERR, ETIMEDOUT, TIMEOUT),
	ROW(GENERAL_ERR, EIO, UNKNOWN),
};

/* A completion's status is handed on as it is. */
static void each_status_has_the_verbs_number_and_name_its_errno_and_its_class(struct kunit *test)
{
	u32 i;

	KUNIT_EXPECT_EQ(test, (u32)ARRAY_SIZE(rows), (u32)IB_WC_GENERAL_ERR + 1);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		KUNIT_EXPECT_EQ_MSG(test, rows[i].status, i, "%s", rows[i].name);
		KUNIT_EXPECT_STREQ(test, ibchan_status_name(i), rows[i].name);
		KUNIT_EXPECT_EQ_MSG(test, ibchan_status_error(i), rows[i].error, "%s",
				    rows[i].name);
		KUNIT_EXPECT_EQ_MSG(test, ibchan_status_class(i), rows[i].class, "%s",
				    rows[i].name);
	}
}

static void each_error_has_a_hint_and_success_has_none(struct kunit *test)
{
	u32 i;

	KUNIT_EXPECT_STREQ(test, ibchan_status_hint(IB_WC_SUCCESS), "");
	for (i = 1; i < ARRAY_SIZE(rows); i++)
		KUNIT_EXPECT_TRUE_MSG(test, strlen(ibchan_status_hint(i)) > 10, "%s",
				      rows[i].name);
}

/* A hint that is somebody else's would send the reader the wrong way. */
static void the_hints_of_common_errors_differ(struct kunit *test)
{
	static const u32 common[] = {
		IB_WC_LOC_LEN_ERR, IB_WC_LOC_QP_OP_ERR, IB_WC_LOC_PROT_ERR,
		IB_WC_WR_FLUSH_ERR, IB_WC_BAD_RESP_ERR, IB_WC_LOC_ACCESS_ERR,
		IB_WC_REM_INV_REQ_ERR, IB_WC_REM_ACCESS_ERR, IB_WC_REM_OP_ERR,
		IB_WC_RETRY_EXC_ERR, IB_WC_RNR_RETRY_EXC_ERR, IB_WC_REM_ABORT_ERR,
		IB_WC_FATAL_ERR, IB_WC_RESP_TIMEOUT_ERR, IB_WC_GENERAL_ERR,
	};
	u32 i, j;

	for (i = 0; i < ARRAY_SIZE(common); i++)
		for (j = 0; j < i; j++)
			KUNIT_EXPECT_TRUE_MSG(test, strcmp(ibchan_status_hint(common[i]),
							   ibchan_status_hint(common[j])),
					      "%u and %u", common[i], common[j]);
}

static void a_status_behind_the_last_is_unknown(struct kunit *test)
{
	static const u32 unknown[] = {
		ARRAY_SIZE(rows), ARRAY_SIZE(rows) + 1, 255, 256, 1U << 31, U32_MAX,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(unknown); i++) {
		KUNIT_EXPECT_EQ(test, ibchan_status_error(unknown[i]), (u32)EIO);
		KUNIT_EXPECT_EQ(test, ibchan_status_class(unknown[i]),
				(u32)IBCHAN_CLASS_UNKNOWN);
		KUNIT_EXPECT_STREQ(test, ibchan_status_name(unknown[i]), "UNKNOWN");
		KUNIT_EXPECT_TRUE(test, strlen(ibchan_status_hint(unknown[i])) > 10);
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(each_status_has_the_verbs_number_and_name_its_errno_and_its_class),
	KUNIT_CASE(each_error_has_a_hint_and_success_has_none),
	KUNIT_CASE(the_hints_of_common_errors_differ),
	KUNIT_CASE(a_status_behind_the_last_is_unknown),
	{}
};

struct kunit_suite status_suite = {
	.name = "ibchan_status",
	.test_cases = cases,
};
