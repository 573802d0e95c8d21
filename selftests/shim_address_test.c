// SPDX-License-Identifier: GPL-2.0-only
/* Hosts and services as a program writes them: which are taken, and as what. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/meeting.h"
#include "shim/run.h"
#include "test.h"
#include "thread.h"
#include "world.h"

#define HOST	"10.77.0.1"
#define TOOL	"../userspace/ibchan"

FIXTURE(service)
{
	struct calm calm;
	struct meeting m;
};

FIXTURE_SETUP(service)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, meeting_begin(&self->m, HOST));
	ASSERT_EQ(0, end_open(&self->m.asking, self->m.context, 0, NULL));
}

FIXTURE_TEARDOWN(service)
{
	EXPECT_EQ(0, meeting_end(&self->m));
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* The C library would keep 16 bits of each: 0, 7027, 65535 and 65535. */
static const char *const too_high[] = {
	"65536", "72563", "-1", "99999999999999999999",
};

static bool is_told(int rc, const struct ibchan_error *error)
{
	char text[256];

	ibchan_error_text(error, text, sizeof(text));
	return rc == -EINVAL && error->reason.code == IBCHAN_REASON_PARAMETER &&
	       error->reason.element == IBCHAN_PARAMETER_SERVICE &&
	       strstr(text, "service: ") && strstr(text, "is not in 0 to 65535");
}

TEST_F(service, with_a_number_above_16_bits_is_refused_by_who_connects)
{
	struct ibchan_route route;
	unsigned int i;
	int rc;

	for (i = 0; i < ARRAY_SIZE(too_high); i++) {
		rc = ibchan_route_query(self->m.context, HOST, too_high[i], &route,
					&self->m.error);
		EXPECT_TRUE(is_told(rc, &self->m.error)) TH_LOG("%s: %d", too_high[i], rc);
		rc = ibchan_prepared_connect(self->m.asking.prepared, HOST, too_high[i], NULL,
					     &self->m.asking.channel, &self->m.error);
		EXPECT_TRUE(is_told(rc, &self->m.error)) TH_LOG("%s: %d", too_high[i], rc);
	}
}

TEST_F(service, with_a_number_above_16_bits_is_refused_by_who_listens)
{
	struct ibchan_listen_params params = { 0 };
	struct ibchan_listener *listener;
	struct ibchan_server *server;
	unsigned int i;
	int rc;

	for (i = 0; i < ARRAY_SIZE(too_high); i++) {
		params.service = too_high[i];
		rc = ibchan_listener_create(self->m.context, &params, &listener,
					    &self->m.error);
		EXPECT_TRUE(is_told(rc, &self->m.error)) TH_LOG("%s: %d", too_high[i], rc);
		rc = ibchan_serve(NULL, too_high[i], NULL, &server, &self->m.error);
		EXPECT_TRUE(is_told(rc, &self->m.error)) TH_LOG("%s: %d", too_high[i], rc);
	}
}

TEST_F(service, with_the_highest_number_of_all_is_taken)
{
	struct ibchan_listen_params params = { .host = HOST, .service = "65535" };
	struct ibchan_listener *listener;
	struct ibchan_route route;
	char port[8];

	ASSERT_EQ(0, ibchan_listener_create(self->m.context, &params, &listener,
					    &self->m.error));
	port_of(listener, port, sizeof(port));
	EXPECT_STREQ("65535", port);
	EXPECT_EQ(0, ibchan_listener_close(listener));
	EXPECT_EQ(0, ibchan_route_query(self->m.context, HOST, "65535", &route,
					&self->m.error));
}

/* How a command of the tool ends with the option -p @port, and what it says. */
static int tool_says(const char *command, const char *port, char *text, size_t len)
{
	struct run run;
	int status, rc;

	rc = run_start(&run, TOOL, ARGUMENTS(command, "-p", port, HOST, NULL));
	if (rc)
		return rc;
	run_collect(&run, text, len);
	if (waitpid(run.pid, &status, 0) != run.pid || !WIFEXITED(status))
		return -EIO;
	return WEXITSTATUS(status);
}

TEST_F(service, with_a_number_that_is_no_port_is_wrong_usage_of_the_tool)
{
	static const char *const commands[] = { "pingpong", "doctor" };
	static const char *const ports[] = { "65536", "72563", "0" };
	char text[1024];
	unsigned int i, j;
	int usage;

	if (!run_can(TOOL))
		SKIP(return, "the tool was not built");
	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		usage = i ? 64 : 2;
		for (j = 0; j < ARRAY_SIZE(ports); j++) {
			EXPECT_EQ(usage, tool_says(commands[i], ports[j], text, sizeof(text)));
			EXPECT_NE(NULL, strstr(text, "does not lie between 1 and 65535"))
				TH_LOG("%s", text);
		}
	}
}

TEST_HARNESS_MAIN
