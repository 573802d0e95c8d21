/* SPDX-License-Identifier: GPL-2.0-only */
/* What the suites have in common. */
#ifndef IBCHAN_KUNIT_CASES_H
#define IBCHAN_KUNIT_CASES_H

#include <linux/kconfig.h>

#if IS_ENABLED(CONFIG_KUNIT)
#include <kunit/test.h>
#else
#include "plain.h"
#endif

#include "mr.h"
#include "rules.h"

extern struct kunit_suite wr_form_suite;
extern struct kunit_suite wr_range_suite;
extern struct kunit_suite params_suite;
extern struct kunit_suite endpoint_suite;
extern struct kunit_suite state_suite;
extern struct kunit_suite status_suite;
extern struct kunit_suite times_suite;
extern struct kunit_suite busy_suite;
extern struct kunit_suite segments_suite;
extern struct kunit_suite places_suite;
extern struct kunit_suite users_suite;
extern struct kunit_suite wire_suite;

/**
 * struct refusal - how a check has to say no
 * @error: errno, negative
 * @code: enum ibchan_reason_code
 * @element: in the reason
 * @value: in the reason; what is not named is 0
 */
struct refusal {
	int error;
	u32 code;
	u32 element;
	u64 value[3];
};

/* Left in a reason's place, to see that a check writes only what it should. */
#define UNTOUCHED	0x5aU

/* A sequence that is the same on each run (xorshift). */
static inline u32 next_random(u32 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

void expect_reason(struct kunit *test, const struct ibchan_reason *reason,
		   const struct refusal *refusal);

#endif /* IBCHAN_KUNIT_CASES_H */
