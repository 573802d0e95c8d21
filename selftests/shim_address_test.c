// SPDX-License-Identifier: GPL-2.0-only
/* Hosts and services as a program writes them: which are taken, and as what. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cable.h"
#include "shim/meeting.h"
#include "shim/run.h"
#include "test.h"
#include "thread.h"
#include "world.h"

#define HOST	"10.77.0.1"
#define MAPPED	"::ffff:" HOST
#define BESIDE	"10.79.0.1"	/* on lo */
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
		rc = ibchan_route_query(self->m.context, HOST, too_high[i], NULL, &route,
					&self->m.error);
		EXPECT_TRUE(is_told(rc, &self->m.error)) TH_LOG("%s: %d", too_high[i], rc);
		rc = ibchan_prepared_connect(self->m.asking.prepared, HOST, too_high[i], NULL,
					     &self->m.asking.channel, &self->m.error);
		EXPECT_TRUE(is_told(rc, &self->m.error)) TH_LOG("%s: %d", too_high[i], rc);
	}
}

TEST_F(service, with_a_number_above_16_bits_is_refused_by_who_listens)
{
	struct ibchan_listen_params params = { .size = sizeof(params) };
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
	struct ibchan_listen_params params = {
		.size = sizeof(params), .host = HOST, .service = "65535",
	};
	struct ibchan_listener *listener;
	struct ibchan_route route;
	char port[8];

	ASSERT_EQ(0, ibchan_listener_create(self->m.context, &params, &listener,
					    &self->m.error));
	port_of(listener, port, sizeof(port));
	EXPECT_STREQ("65535", port);
	EXPECT_EQ(0, ibchan_listener_close(listener));
	EXPECT_EQ(0, ibchan_route_query(self->m.context, HOST, "65535", NULL, &route,
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

FIXTURE(source)
{
	struct calm calm;
	struct meeting m;
};

FIXTURE_SETUP(source)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, sh("ip addr add " BESIDE "/32 dev lo"));
	ASSERT_EQ(0, meeting_begin(&self->m, HOST));
	ASSERT_EQ(0, end_open(&self->m.asking, self->m.context, 0, NULL));
	ASSERT_EQ(0, end_open(&self->m.asked, self->m.context, 0, NULL));
}

FIXTURE_TEARDOWN(source)
{
	EXPECT_EQ(0, meeting_end(&self->m));
	EXPECT_EQ(0, sh("ip addr del " BESIDE "/32 dev lo"));
	EXPECT_EQ(0, calm_end(&self->calm));
}

static const struct bad_source {
	const char *address;
	int rc;
	const char *words;
} bad_sources[] = {
	{ "192.0.2.77", -EADDRNOTAVAIL, "address 192.0.2.77: this host does not have it" },
	{ BESIDE, -ENODEV, "address " BESIDE ": no RDMA device of this host has it" },
	{ "fd77::1", -EAFNOSUPPORT, "address fd77::1: the peer has no address of that family" },
};

static bool source_is_told(const struct bad_source *bad, int rc, const struct ibchan_error *error)
{
	char text[256];

	ibchan_error_text(error, text, sizeof(text));
	return rc == bad->rc && error->reason.code == IBCHAN_REASON_SOURCE &&
	       strstr(text, bad->words) && *ibchan_error_hint(error);
}

TEST_F(source, that_will_not_do_is_refused_by_who_looks_for_a_device)
{
	const struct bad_source *bad;
	struct ibchan_device *device;
	struct ibchan_route route;
	int rc;

	for (bad = bad_sources; bad < bad_sources + ARRAY_SIZE(bad_sources); bad++) {
		rc = ibchan_route_query(self->m.context, HOST, NULL, bad->address, &route,
					&self->m.error);
		EXPECT_TRUE(source_is_told(bad, rc, &self->m.error)) TH_LOG("%d", rc);
		rc = ibchan_device_open_for(self->m.context, HOST, bad->address, &device,
					    &self->m.error);
		EXPECT_TRUE(source_is_told(bad, rc, &self->m.error)) TH_LOG("%d", rc);
	}
}

TEST_F(source, that_will_not_do_is_refused_by_who_connects_and_the_channel_stays)
{
	struct ibchan_connect_params params = { .size = sizeof(params) };
	const struct bad_source *bad;
	int rc;

	for (bad = bad_sources; bad < bad_sources + ARRAY_SIZE(bad_sources); bad++) {
		params.source = bad->address;
		rc = meeting_ask(&self->m, &params);
		ASSERT_TRUE(source_is_told(bad, rc, &self->m.error)) TH_LOG("%d", rc);
	}
	params.source = HOST;
	EXPECT_EQ(0, meeting_connect(&self->m, &params, NULL));
	EXPECT_EQ(0, messages_cross(&self->m));
}

/* A program that was built before there was a source. */
TEST_F(source, is_not_read_behind_the_end_of_the_parameters)
{
	struct ibchan_message_params params = {
		.size = offsetof(struct ibchan_message_params, source),
		.source = "192.0.2.77",
	};
	struct ibchan_server *server;

	ASSERT_EQ(0, ibchan_serve(HOST, NULL, &params, &server, &self->m.error));
	EXPECT_EQ(0, ibchan_server_close(server));
	params.size = sizeof(params);
	EXPECT_EQ(-EINVAL, ibchan_serve(HOST, NULL, &params, &server, &self->m.error));
}

FIXTURE(mapped)
{
	struct calm calm;
	struct meeting m;
};

FIXTURE_SETUP(mapped)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, meeting_begin(&self->m, MAPPED));
	ASSERT_EQ(0, end_open(&self->m.asking, self->m.context, 0, NULL));
	ASSERT_EQ(0, end_open(&self->m.asked, self->m.context, 0, NULL));
}

FIXTURE_TEARDOWN(mapped)
{
	EXPECT_EQ(0, meeting_end(&self->m));
	EXPECT_EQ(0, calm_end(&self->calm));
}

static bool is_host(const struct sockaddr_storage *address)
{
	const struct sockaddr_in *in = (const void *)address;

	return in->sin_family == AF_INET && in->sin_addr.s_addr == inet_addr(HOST);
}

TEST_F(mapped, address_of_ipv4_leads_to_a_listener_at_such_an_address)
{
	struct sockaddr_storage address;

	ibchan_listener_address(self->m.listener, &address);
	EXPECT_TRUE(is_host(&address));
	EXPECT_EQ(0, meeting_connect(&self->m, NULL, NULL)) TH_LOG("%d", self->m.error.code);
}

TEST_F(mapped, address_of_ipv4_is_one_where_a_channel_comes_from)
{
	const struct ibchan_connect_params params = { .size = sizeof(params), .source = MAPPED };
	struct ibchan_connection_info info;

	self->m.host = HOST;
	ASSERT_EQ(0, meeting_connect(&self->m, &params, NULL)) TH_LOG("%d", self->m.error.code);
	ASSERT_EQ(0, ibchan_channel_connection(self->m.asking.channel, &info, NULL));
	EXPECT_TRUE(is_host(&info.local));
}

TEST_F(mapped, address_of_ipv4_has_the_route_of_the_address_itself)
{
	struct ibchan_route mapped, plain;

	ASSERT_EQ(0, ibchan_route_query(self->m.context, HOST, "7471", NULL, &plain, NULL));
	ASSERT_EQ(0, ibchan_route_query(self->m.context, MAPPED, "7471", NULL, &mapped, NULL));
	EXPECT_TRUE(is_host(&mapped.peer));
	EXPECT_EQ(0, memcmp(&plain.peer, &mapped.peer, sizeof(plain.peer)));
	EXPECT_STREQ(plain.device, mapped.device);
	EXPECT_EQ(AF_INET, mapped.source.ss_family);
}

TEST_HARNESS_MAIN
