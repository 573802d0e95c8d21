// SPDX-License-Identifier: GPL-2.0-only
/* A context ends with the process that opened it, even if a child has its file. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/meeting.h"
#include "test.h"
#include "world.h"

#define HOST	"10.77.0.1"

FIXTURE(fork)
{
	struct calm calm;
	struct meeting m;
	int gate[2];	/* a child that keeps a file ends when it is closed */
	int said[2];	/* what the server, or its child, has to say */
	pid_t server;
};

FIXTURE_SETUP(fork)
{
	memset(&self->m, 0, sizeof(self->m));
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, pipe2(self->gate, O_CLOEXEC));
	ASSERT_EQ(0, pipe2(self->said, O_CLOEXEC));
	self->m.host = HOST;
}

FIXTURE_TEARDOWN(fork)
{
	EXPECT_EQ(0, meeting_end(&self->m));
	close(self->gate[1]);
	close(self->gate[0]);
	close(self->said[0]);
	close(self->said[1]);
	EXPECT_EQ(0, calm_end(&self->calm));
}

static void wait_at(const int gate[2])
{
	char byte;

	close(gate[1]);
	while (read(gate[0], &byte, 1) < 0 && errno == EINTR)
		;
}

static int listen_with(struct meeting *m)
{
	int rc = ibchan_context_open(&m->context, NULL);

	rc = rc ?: end_open(&m->asked, m->context, 0, NULL);
	return rc ?: meeting_listen(m, HOST);
}

static int answer_one(struct meeting *m)
{
	struct ibchan_request *request;
	int rc = ibchan_request_take(m->listener, patience_ns(), &request, NULL);

	rc = rc ?: meeting_answer(m, request, NULL);
	return rc ?: outcome(m->asked.channel, &m->error);
}

/* Serves one client; a child of its own holds all that it has. Says its port. */
static int serve(struct meeting *m, const int gate[2], int said)
{
	int rc = listen_with(m);

	if (rc)
		return rc;
	if (!fork()) {
		wait_at(gate);
		_exit(0);
	}
	if (write(said, m->port, sizeof(m->port)) != sizeof(m->port))
		return -EPIPE;
	rc = answer_one(m);
	if (rc || write(said, "", 1) != 1)
		return rc ?: -EPIPE;
	pause();
	return 0;
}

static pid_t start_server(struct meeting *m, const int gate[2], const int said[2])
{
	struct meeting served = {};
	pid_t server;

	fflush(NULL);
	server = fork();
	if (!server)
		_exit(-serve(&served, gate, said[1]));
	if (read(said[0], m->port, sizeof(m->port)) != sizeof(m->port))
		return child_result(server);
	return server;
}

/* A client of the server. */
static int call_server(struct meeting *m)
{
	int rc = ibchan_context_open(&m->context, NULL);

	rc = rc ?: end_open(&m->asking, m->context, 0, NULL);
	rc = rc ?: meeting_ask(m, NULL);
	return rc ?: outcome(m->asking.channel, &m->error);
}

static bool is_broken(void *arg)
{
	struct ibchan_channel_info info;

	return !ibchan_channel_query(arg, &info, NULL) && info.state == IBCHAN_CHANNEL_BROKEN;
}

/* The client's is left. */
static bool has_one_channel(void *arg)
{
	return counter("channels") == *(long *)arg;
}

TEST_F(fork, server_that_is_killed_while_a_child_has_its_file_is_heard_of_by_its_client)
{
	struct meeting late = { .host = HOST };
	long one = 1, begin;
	char byte;

	self->server = start_server(&self->m, self->gate, self->said);
	ASSERT_LT(0, self->server);
	ASSERT_EQ(0, call_server(&self->m));
	ASSERT_EQ(1, read(self->said[0], &byte, 1));
	begin = now_ms();
	ASSERT_EQ(0, kill(self->server, SIGKILL));
	EXPECT_EQ(-EINTR, child_result(self->server));
	EXPECT_TRUE(eventually(is_broken, self->m.asking.channel));
	EXPECT_GT(patience_ms() / 2, (long)now_ms() - begin);
	/* The file is still held, and nothing by it. */
	EXPECT_EQ(2, counter("contexts"));
	EXPECT_TRUE(eventually(has_one_channel, &one));
	strcpy(late.port, self->m.port);
	EXPECT_EQ(-ECONNREFUSED, call_server(&late));
	meeting_close(&late);
	ibchan_context_close(late.context);
}

static void *open_and_end(void *arg)
{
	return (void *)(intptr_t)ibchan_context_open(arg, NULL);
}

/* A process is its memory map: which of its threads opened the file does not matter. */
TEST_F(fork, thread_that_opened_the_context_may_end)
{
	pthread_t thread;
	void *rc;

	ASSERT_EQ(0, pthread_create(&thread, NULL, open_and_end, &self->m.context));
	ASSERT_EQ(0, pthread_join(thread, &rc));
	ASSERT_EQ(NULL, rc);
	ASSERT_EQ(0, end_open(&self->m.asked, self->m.context, 0, NULL));
	ASSERT_EQ(0, meeting_listen(&self->m, HOST));
	ASSERT_EQ(0, end_open(&self->m.asking, self->m.context, 0, NULL));
	ASSERT_EQ(0, meeting_connect(&self->m, NULL, NULL));
	EXPECT_EQ(0, message_crosses(&self->m, &self->m.asking, &self->m.asked));
}

/* What a daemon hears that listened before daemon(3); 0 if it hears what it should. */
static int use_as_daemon(struct meeting *m)
{
	const struct ibchan_listen_params params = { .size = sizeof(params), .host = HOST };
	struct ibchan_listener *listener;
	struct ibchan_request *request;
	char text[256];

	if (ibchan_request_take(m->listener, 0, &request, NULL) != -EPERM)
		return -EBADMSG;
	if (ibchan_listener_create(m->context, &params, &listener, &m->error) != -EPERM)
		return -EBADMSG;
	ibchan_error_text(&m->error, text, sizeof(text));
	if (!has(text, "another process opened the context"))
		return -EBADMSG;
	return has(ibchan_error_hint(&m->error), "daemon()") ? 0 : -EBADMSG;
}

static bool is_gone(void *arg)
{
	return kill(*(pid_t *)arg, 0) && errno == ESRCH;
}

/* The parent that opened it ends at once, as in daemon(3). */
static int become_daemon(const int gate[2], int said)
{
	struct meeting m = {};
	pid_t parent = getpid();
	int rc = listen_with(&m);

	if (rc || fork())
		return rc;
	if (!eventually(is_gone, &parent))
		rc = -ETIMEDOUT;
	rc = rc ?: use_as_daemon(&m);
	if (write(said, &rc, sizeof(rc)) != sizeof(rc))
		_exit(1);
	wait_at(gate);
	_exit(0);
}

TEST_F(fork, daemon_that_listened_before_daemon_is_told_what_to_do)
{
	long none = 0;
	pid_t parent;
	int heard;

	fflush(NULL);
	parent = fork();
	if (!parent)
		_exit(-become_daemon(self->gate, self->said[1]));
	ASSERT_EQ(0, child_result(parent));
	ASSERT_EQ((ssize_t)sizeof(heard), read(self->said[0], &heard, sizeof(heard)));
	EXPECT_EQ(0, heard);
	EXPECT_EQ(1, counter("contexts"));
	EXPECT_TRUE(eventually(has_one_channel, &none));
	EXPECT_EQ(0, counter("mrs_registered"));
}

TEST_HARNESS_MAIN
