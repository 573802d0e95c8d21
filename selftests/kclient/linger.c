// SPDX-License-Identifier: GPL-2.0-only
/* The accepting side closes before its peer has heard of the answer. */
#include "asker.h"
#include "suites.h"

/* How many ids may linger on a device, and how long: see cm_end.c. */
#define MAX_LINGERING	64
#define LINGER_MS	10000

static void a_peer_that_hears_of_the_answer_after_the_close_hears_of_the_end(struct world *w)
{
	struct asker *asker = world_alloc(w, sizeof(*asker));
	struct meeting *m = meeting_default(w);

	if (m && !asker_is_left(asker, m, 0) && expect_eq(w, asker_hears(asker), 0)) {
		expect_soon(w, READ_ONCE(asker->ended));
		expect_eq(w, asker->rejected, 0);
	}
	asker_end(asker);
}

static void a_peer_that_says_nothing_is_sent_away_when_its_time_is_over(struct world *w)
{
	struct asker *asker = world_alloc(w, sizeof(*asker));
	struct meeting *m = meeting_default(w);
	ktime_t begin = ktime_get();
	u32 time_ms = patience / 10;

	if (m && !asker_is_left(asker, m, time_ms)) {
		expect_soon(w, READ_ONCE(asker->rejected));
		expect(w, ktime_ms_delta(ktime_get(), begin) >= time_ms);
		expect_eq(w, asker->ended, 0);
	}
	asker_end(asker);
}

static int count_rejected(const struct asker *askers, u32 num)
{
	int count = 0;
	u32 i;

	for (i = 0; i < num; i++)
		count += READ_ONCE(askers[i].rejected);
	return count;
}

static bool is_late(ktime_t begin)
{
	return ktime_ms_delta(ktime_get(), begin) >= LINGER_MS;
}

/* One more than that is sent away at once, and no other. */
static void peers_that_say_nothing_are_not_waited_for_without_bound(struct world *w)
{
	struct asker *askers = world_alloc(w, (MAX_LINGERING + 1) * sizeof(*askers));
	struct meeting *m = meeting_default(w);
	ktime_t begin = ktime_get();
	int rejected;
	u32 i;

	for (i = 0; m && i <= MAX_LINGERING && !w->failures; i++)
		asker_is_left(&askers[i], m, 0);
	if (is_late(begin)) {
		w->skipped = "a slow machine: the time of the first is over";
	} else {
		expect_soon(w, READ_ONCE(askers[MAX_LINGERING].rejected));
		rejected = count_rejected(askers, MAX_LINGERING);
		if (!is_late(begin))
			expect_eq(w, rejected, 0);
	}
	for (i = 0; i <= MAX_LINGERING; i++)
		asker_end(&askers[i]);
}

static const struct test_case linger_cases[] = {
	ETHERNET_CASE(peers_that_say_nothing_are_not_waited_for_without_bound),
	ETHERNET_CASE(a_peer_that_hears_of_the_answer_after_the_close_hears_of_the_end),
	ETHERNET_CASE(a_peer_that_says_nothing_is_sent_away_when_its_time_is_over),
};

SUITE(linger);
