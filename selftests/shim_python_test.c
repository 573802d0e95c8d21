// SPDX-License-Identifier: GPL-2.0-only
/*
 * The Python binding: bindings/laws.py has the tests, each runs in an interpreter of its own. The
 * machine's interpreter cannot load a library that was built with a sanitizer or for 32 bits.
 */
#define _GNU_SOURCE
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"
#include "world.h"

FIXTURE(python)
{
	struct calm calm;
};

FIXTURE_SETUP(python)
{
	char own[PATH_MAX] = "", path[2 * PATH_MAX];

	ASSERT_EQ(0, calm_begin(&self->calm));
#if !defined(__x86_64__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP(return, "the machine's interpreter cannot load this build of the library");
#endif
	ASSERT_LT(0, readlink("/proc/self/exe", own, sizeof(own) - 1));
	snprintf(path, sizeof(path), "%s/../userspace", dirname(own));
	setenv("LD_LIBRARY_PATH", path, 1);
	snprintf(path, sizeof(path), "%s/../userspace/bindings/python", getenv("IBCHAN_SELFTESTS"));
	setenv("PYTHONPATH", path, 1);
}

FIXTURE_TEARDOWN(python)
{
	EXPECT_EQ(0, calm_end(&self->calm));
}

static int run_law(const char *name)
{
	char file[PATH_MAX];
	/* Later interpreters warn of any fork() beside threads. */
	const char *const argv[] = {
		"python3", "-B", "-W", "error", "-W", "ignore::DeprecationWarning",
		file, name, NULL,
	};

	snprintf(file, sizeof(file), "%s/bindings/laws.py", getenv("IBCHAN_SELFTESTS"));
	return run_program(argv);
}

#define LAW(name)				\
	TEST_F(python, name)			\
	{					\
		EXPECT_EQ(0, run_law(#name));	\
	}

LAW(buffers_of_any_kind_come_as_they_were_sent)
LAW(a_buffer_that_is_being_sent_cannot_be_resized)
LAW(a_buffer_that_is_forgotten_while_it_is_sent_comes_whole)
LAW(a_buffer_that_is_received_into_cannot_be_resized)
LAW(a_buffer_of_two_receives_has_what_the_cpu_copied_last)
LAW(messages_of_no_bytes_and_of_many_come_as_they_were_sent)
LAW(a_loop_takes_the_messages_that_a_selector_tells_of)
LAW(a_loop_is_told_of_the_end_once_and_by_whom)
LAW(a_loop_posts_when_there_is_room_and_lends_what_is_long)
LAW(a_close_of_a_context_ends_the_next_of_another_thread)
LAW(memory_that_is_read_only_is_not_received_into)
LAW(a_close_ends_the_calls_of_other_threads)
LAW(a_close_ends_the_take_of_another_thread)
LAW(a_close_in_a_handler_ends_the_call_that_it_has_interrupted)
LAW(a_child_that_was_forked_beside_a_call_can_close)
LAW(a_channel_that_is_dropped_ends_for_its_peer)
LAW(errors_are_those_that_python_has)
LAW(a_handler_that_raises_ends_a_receive)
LAW(a_handler_that_returns_ends_nothing)
LAW(a_child_that_was_forked_has_nothing_of_it)
LAW(the_shortest_programs_carry_their_message)

TEST_HARNESS_MAIN
