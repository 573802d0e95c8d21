// SPDX-License-Identifier: GPL-2.0-only
/* The suite faults: its table, and what its cases share. */
#include <linux/delay.h>

#include "faults.h"
#include "suites.h"

/* Whatever a case before has left armed. */
void faults_off(void)
{
	int point;

	for (point = 0; point < IBCHAN_FAULTS_NUM; point++)
		ibchan_fault_set(point, 0, 0);
}

/* The point is not being passed meanwhile. */
struct fault fault_arm(enum ibchan_fault_point point, u32 nth, int error)
{
	struct fault fault = { .point = point, .at = ibchan_fault_passed(point) + nth };

	ibchan_fault_set(point, nth, error);
	return fault;
}

int fault_fired(const struct fault *fault)
{
	return (s32)(ibchan_fault_passed(fault->point) - fault->at) >= 0;
}

int fault_pair(struct world *w, const struct pair_init *init)
{
	struct pair_init defaults;

	faults_off();
	pair_defaults(&defaults);
	return world_pair(w, init ?: &defaults);
}

/*
 * Nothing is left of the pair before. On a cq that stays, an event that was asked for
 * and has not come would have a softirq reap what the case is to reap itself.
 */
int fault_fresh_pair(struct world *w, const struct pair_init *init)
{
	int i;

	world_give_back(w);
	for (i = 0; i < 2; i++)
		w->side[i] = (struct side){ .world = w };
	return fault_pair(w, init);
}

/* The sides go on with new channels on the same cqs. */
int fault_fresh_channels(struct world *w, const struct ibchan_params *params)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	int i;

	faults_off();
	for (i = 0; i < 2; i++) {
		if (w->side[i].ch)
			side_close(&w->side[i]);
		w->side[i].ch = side_build(&w->side[i], params);
		if (!w->side[i].ch)
			return -ENODEV;
		atomic_set(&w->side[i].broken, 0);
		w->side[i].error = 0;
	}
	return side_connect(w, a->ch, b->ch) ?: side_connect(w, b->ch, a->ch);
}

/* For what no callback tells. Returns whether it held in the end. */
int fault_poll_until(int (*holds)(void *arg), void *arg)
{
	ktime_t end = after_ms(patience);

	while (!holds(arg)) {
		if (ktime_after(ktime_get(), end))
			return 0;
		usleep_range(20, 100);
	}
	return 1;
}

/* One message each way. */
int fault_data_flows(struct world *w)
{
	struct job *jobs = world_jobs(w, 2);
	int i, ended = 0;

	for (i = 0; i < 2; i++) {
		struct side *from = &w->side[i], *to = &w->side[!i];

		fill_pattern(from->buf, 2048, i + 1);
		if (!expect_eq(w, job_receive(&jobs[i], to, 4096, 2048), 0))
			return 0;
		expect_eq(w, ibchan_channel_send(from->ch, side_sge(from, 0, 2048), 1, NULL), 0);
		ended += job_ended(&jobs[i]);
		expect(w, has_pattern(to->buf + 4096, 2048, i + 1));
	}
	return ended == 2;
}

#define LIST_CASE(name) CASE(name),
#define LIST_ETHERNET_CASE(name) ETHERNET_CASE(name),
static const struct test_case faults_cases[] = {
	SETUP_CASES(LIST_CASE)
	POST_CASES(LIST_CASE)
	STATUS_CASES(LIST_CASE)
	EVENT_CASES(LIST_CASE)
	SOFTIRQ_CASES(LIST_CASE)
	CONNECT_CASES(LIST_ETHERNET_CASE)
	END_CASES(LIST_CASE)
};

SUITE(faults);
