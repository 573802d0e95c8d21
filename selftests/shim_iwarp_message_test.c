// SPDX-License-Identifier: GPL-2.0-only
/* The short way over iWARP, where a message that finds no receive ends the connection. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "shim/dialer.h"
#include "shim/meeting.h"
#include "shim/siw.h"
#include "test.h"
#include "thread.h"
#include "world.h"

/* The code that a test ends with for the harness to count it as skipped. */
#define SKIPPED	255

static bool has_siw;

static void __attribute__((constructor)) load_siw(void)
{
	has_siw = siw_load();
}

static void __attribute__((destructor)) remove_device(void)
{
	siw_remove();
}

FIXTURE(iwarp_message)
{
	struct calm calm;
};

FIXTURE_SETUP(iwarp_message)
{
	/* After a return the harness would go on with the test. */
	if (!has_siw)
		SKIP(_exit(SKIPPED), "this kernel has no siw");
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, siw_add());
}

FIXTURE_TEARDOWN(iwarp_message)
{
	EXPECT_EQ(0, calm_end(&self->calm));
}

#define LONG_MESSAGE	100000

static void *send_short_and_long(void *arg)
{
	static unsigned char bytes[LONG_MESSAGE];
	struct dialer *dialer = arg;

	dial(dialer);
	fill(bytes, LONG_MESSAGE, 5);
	if (!dialer->rc)
		dialer->rc = ibchan_send_bytes(dialer->channel, bytes, 100, patience_ns(), NULL);
	if (!dialer->rc)
		dialer->rc = ibchan_send_bytes(dialer->channel, bytes, LONG_MESSAGE,
					       patience_ns(), NULL);
	return NULL;
}

/* Many more than there are receives: none may find its peer without one. */
TEST_F(iwarp_message, of_each_kind_comes_as_it_was_sent)
{
	static unsigned char sent[LONG_MESSAGE], got[LONG_MESSAGE];
	struct dialer dialer = { .host = SIW_HOST };
	struct ibchan_server *server;
	struct ibchan_channel *taken;
	int i;

	fill(sent, LONG_MESSAGE, 5);
	ASSERT_EQ(0, ibchan_serve(SIW_HOST, NULL, NULL, &server, NULL));
	port_of_server(server, dialer.port, sizeof(dialer.port));
	ASSERT_EQ(0, pthread_create(&dialer.thread, NULL, send_short_and_long, &dialer));
	ASSERT_EQ(0, ibchan_take(server, patience_ns(), &taken, NULL));
	EXPECT_EQ(100, ibchan_receive_bytes(taken, got, LONG_MESSAGE, patience_ns(), NULL));
	EXPECT_EQ(0, memcmp(sent, got, 100));
	EXPECT_EQ(LONG_MESSAGE, ibchan_receive_bytes(taken, got, LONG_MESSAGE, patience_ns(),
						     NULL));
	EXPECT_EQ(0, memcmp(sent, got, LONG_MESSAGE));
	ASSERT_EQ(0, join_soon(dialer.thread, NULL));
	ASSERT_EQ(0, dialer.rc);
	for (i = 0; i < 100; i++) {
		EXPECT_EQ(0, ibchan_send_bytes(taken, &i, sizeof(i), patience_ns(), NULL));
		EXPECT_EQ(sizeof(i), ibchan_receive_bytes(dialer.channel, got, sizeof(i),
							  patience_ns(), NULL));
		EXPECT_EQ(0, memcmp(got, &i, sizeof(i)));
	}
	EXPECT_EQ(0, ibchan_channel_close(dialer.channel));
	EXPECT_EQ(-ENODATA, ibchan_receive_bytes(taken, got, 1, patience_ns(), NULL));
	EXPECT_EQ(0, ibchan_channel_close(taken));
	EXPECT_EQ(0, ibchan_server_close(server));
}

TEST_HARNESS_MAIN
