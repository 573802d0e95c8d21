/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The suite faults: verbs fail, and completions, cqs and devices report errors that
 * soft-RoCE never has. Only in a module that is built with FAULTS=1, beside an
 * ibchan.ko that is built so as well.
 */
#ifndef KCLIENT_FAULTS_H
#define KCLIENT_FAULTS_H

#include "../faults/faults.h"

#include "job.h"

/* What verbs are made to fail with: no driver has this one. */
#define FAULT_ERROR	(-ENOLCK)

/**
 * struct fault - a point that was armed
 * @point: which
 * @at: it has fired once it was passed so often
 */
struct fault {
	enum ibchan_fault_point point;
	u32 at;
};

void faults_off(void);
struct fault fault_arm(enum ibchan_fault_point point, u32 nth, int error);
int fault_fired(const struct fault *fault);
int fault_pair(struct world *w, const struct pair_init *init);
int fault_fresh_pair(struct world *w, const struct pair_init *init);
int fault_fresh_channels(struct world *w, const struct ibchan_params *params);
int fault_poll_until(int (*holds)(void *arg), void *arg);
int fault_data_flows(struct world *w);

#define SETUP_CASES(X)								\
	X(each_verb_that_fails_during_setup_fails_its_call_and_leaves_nothing)	\
	X(a_handshake_that_failed_at_any_step_may_be_tried_again)		\
	X(a_handshake_whose_undo_failed_too_works_at_the_third_try)		\
	X(a_channel_that_is_stuck_half_way_can_be_closed)			\
	X(a_handshake_that_fails_behind_a_posted_receive_breaks_the_channel)	\
	X(a_registration_whose_post_fails_makes_no_region)			\
	X(a_registration_whose_completion_fails_makes_no_region)		\
	X(a_region_whose_invalidation_fails_is_given_back_all_the_same)		\
	X(regions_survive_the_service_that_registered_them)

#define POST_CASES(X)								\
	X(receives_that_the_device_does_not_take_never_were)			\
	X(writes_that_the_device_does_not_take_never_were)			\
	X(a_batch_of_two_chains_can_fail_in_the_second)				\
	X(a_list_that_the_device_does_not_take_never_was)			\
	X(a_list_of_which_the_device_takes_a_part_ends_with_its_channel)	\
	X(a_message_behind_a_list_that_is_not_taken_leaves_the_list_be)		\
	X(a_mixed_batch_ends_at_the_queue_that_fails)

#define END_CASES(X)								\
	X(closing_is_bounded_whichever_marker_is_missing)			\
	X(closing_is_bounded_when_the_queue_pair_does_not_stop)			\
	X(a_queue_pair_that_does_not_stop_keeps_its_works)			\
	X(a_deadline_ends_a_call_although_the_queue_pair_does_not_stop)		\
	X(a_poll_that_fails_loses_nothing)					\
	X(waiters_go_on_when_the_cq_cannot_be_armed)				\
	X(done_is_called_when_the_cq_cannot_be_armed)				\
	X(waiters_are_woken_when_the_driver_reports_and_does_not_arm)		\
	X(done_is_called_when_the_driver_reports_and_does_not_arm)		\
	X(a_poll_that_fails_while_closing_neither_loses_nor_repeats)		\
	X(a_poll_that_fails_after_the_drain_neither_loses_nor_repeats)		\
	X(a_completion_that_comes_twice_ends_nothing_and_breaks_its_channel)	\
	X(a_completion_that_comes_twice_does_not_end_what_was_posted_since)	\
	X(closing_is_bounded_whichever_completion_comes_twice)

#define STATUS_CASES(X)								\
	X(a_send_that_fails_tells_its_status)					\
	X(a_receive_that_fails_tells_its_status)				\
	X(an_unsignaled_work_by_wr_id_that_fails_is_told)			\
	X(a_flush_that_nothing_explains_cancels_its_channel)

#define EVENT_CASES(X)								\
	X(a_cq_error_breaks_the_channels_of_that_cq_and_no_others)		\
	X(what_is_posted_ends_where_only_an_event_tells_of_the_failure)		\
	X(a_queue_pair_that_the_peer_has_ended_says_how)			\
	X(a_cq_may_go_right_after_its_error)					\
	X(a_channel_may_be_closed_when_its_cq_error_is_told)			\
	X(a_cq_error_ends_every_kind_of_wait)					\
	X(a_fatal_event_breaks_the_channels_of_that_device_and_no_others)	\
	X(a_device_that_lives_on_after_a_fatal_event_can_be_used)

#define SOFTIRQ_CASES(X)							\
	X(a_completion_event_is_followed_by_a_softirq_wherever_it_comes)	\
	X(a_flood_of_completions_leaves_other_softirqs_their_turn)		\
	X(events_without_a_cause_neither_lose_nor_repeat_works)

#define CONNECT_CASES(X)							\
	X(an_accept_that_fails_at_any_step_breaks_both_sides_once)		\
	X(an_answer_that_fails_at_any_step_breaks_both_sides_once)

#define DECLARE_CASE(name) void name(struct world *w);
SETUP_CASES(DECLARE_CASE)
POST_CASES(DECLARE_CASE)
END_CASES(DECLARE_CASE)
STATUS_CASES(DECLARE_CASE)
EVENT_CASES(DECLARE_CASE)
SOFTIRQ_CASES(DECLARE_CASE)
CONNECT_CASES(DECLARE_CASE)

#endif /* KCLIENT_FAULTS_H */
