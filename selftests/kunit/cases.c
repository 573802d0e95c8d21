// SPDX-License-Identifier: GPL-2.0-only
/* See cases.h. */
#include "cases.h"

void expect_reason(struct kunit *test, const struct ibchan_reason *reason,
		   const struct refusal *refusal)
{
	int i;

	KUNIT_EXPECT_EQ(test, reason->code, refusal->code);
	KUNIT_EXPECT_EQ(test, reason->element, refusal->element);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ_MSG(test, reason->value[i], refusal->value[i], "value %d", i);
}
