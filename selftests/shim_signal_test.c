// SPDX-License-Identifier: GPL-2.0-only
/*
 * What signals and the cancellation of threads do to calls of libibchan: they end no call
 * but a caller's own wait, and nothing is lost by it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shim/meeting.h"
#include "test.h"
#include "thread.h"
#include "world.h"

#define HOST	"10.77.0.1"
#define CLIENTS	20

static unsigned int handled;

static void count(int number)
{
	(void)number;
	__atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
}

static int handle(void (*handler)(int number))
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };

	return sigaction(SIGALRM, &action, NULL) ? -errno : 0;
}

/* A timer whose signals are this thread's alone. */
static int tick_here(timer_t *timer, long period_ns)
{
	const struct itimerspec spec = {
		.it_value.tv_nsec = period_ns,
		.it_interval.tv_nsec = period_ns,
	};
	struct sigevent event = {
		.sigev_notify = SIGEV_THREAD_ID,
		.sigev_signo = SIGALRM,
	};

	event._sigev_un._tid = gettid();
	if (timer_create(CLOCK_MONOTONIC, &event, timer))
		return -errno;
	return timer_settime(*timer, 0, &spec, NULL) ? -errno : 0;
}

FIXTURE(signals)
{
	struct calm calm;
	struct meeting m;
	struct ibchan_builder builder;
};

FIXTURE_SETUP(signals)
{
	handled = 0;
	ASSERT_EQ(0, handle(count));
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, meeting_begin(&self->m, HOST));
	ASSERT_EQ(0, end_open(&self->m.asking, self->m.context, 0, NULL));
	ASSERT_EQ(0, end_open(&self->m.asked, self->m.context, 0, NULL));
	ibchan_builder_init(&self->builder, self->m.asked.pd, NULL);
}

FIXTURE_TEARDOWN(signals)
{
	EXPECT_EQ(0, meeting_end(&self->m));
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* Many that connect one after the other, and stay. */
struct clients {
	struct meeting *m;
	struct ibchan_channel *channels[CLIENTS];
	int connected;
	int rc;
};

static void *connect_all(void *arg)
{
	struct clients *clients = arg;
	struct meeting *m = clients->m;
	struct ibchan_builder builder;
	timer_t timer;

	ibchan_builder_init(&builder, m->asking.pd, NULL);
	clients->rc = tick_here(&timer, 2 * MS);
	while (!clients->rc && clients->connected < CLIENTS) {
		clients->rc = ibchan_builder_connect(&builder, m->host, m->port, NULL,
						     &clients->channels[clients->connected],
						     NULL);
		if (!clients->rc)
			clients->connected++;
	}
	timer_delete(timer);
	return NULL;
}

/* How many of CLIENTS the caller gets; who is interrupted asks again. */
static int accept_all(const struct ibchan_builder *builder, struct ibchan_listener *listener,
		      struct ibchan_channel **channels, int *failed)
{
	__u64 end = now_ms() + patience_ms();
	int accepted = 0;
	int rc;

	while (accepted < CLIENTS && now_ms() < end) {
		rc = ibchan_builder_accept(builder, listener, 500 * MS, &channels[accepted], NULL);
		if (!rc)
			accepted++;
		else if (rc != -EINTR && rc != -ETIMEDOUT)
			(*failed)++;
	}
	return accepted;
}

TEST_F(signals, of_a_timer_lose_no_client_and_no_request)
{
	struct clients clients = { .m = &self->m };
	struct ibchan_channel *accepted[CLIENTS];
	int i, n, failed = 0;
	pthread_t thread;
	timer_t timer;

	ASSERT_EQ(0, pthread_create(&thread, NULL, connect_all, &clients));
	ASSERT_EQ(0, tick_here(&timer, 2 * MS));
	n = accept_all(&self->builder, self->m.listener, accepted, &failed);
	EXPECT_EQ(0, timer_delete(timer));
	EXPECT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, clients.rc);
	EXPECT_EQ(CLIENTS, clients.connected);
	EXPECT_EQ(CLIENTS, n);
	EXPECT_EQ(0, failed);
	EXPECT_LE(10, handled);
	for (i = 0; i < n; i++)
		EXPECT_EQ(0, ibchan_channel_close(accepted[i]));
	for (i = 0; i < clients.connected; i++)
		EXPECT_EQ(0, ibchan_channel_close(clients.channels[i]));
}

static void *connect_one(void *arg)
{
	struct clients *clients = arg;
	struct meeting *m = clients->m;
	struct ibchan_builder builder;

	ibchan_builder_init(&builder, m->asking.pd, NULL);
	clients->rc = ibchan_builder_connect(&builder, m->host, m->port, NULL,
					     &clients->channels[0], NULL);
	return NULL;
}

TEST_F(signals, end_a_wait_for_a_request_and_the_next_one_is_accepted)
{
	struct clients clients = { .m = &self->m };
	struct ibchan_channel *channel;
	pthread_t thread;
	timer_t timer;

	ASSERT_EQ(0, tick_here(&timer, 20 * MS));
	EXPECT_EQ(-EINTR, ibchan_builder_accept(&self->builder, self->m.listener, patience_ns(),
						&channel, NULL));
	EXPECT_EQ(0, timer_delete(timer));
	ASSERT_EQ(0, pthread_create(&thread, NULL, connect_one, &clients));
	EXPECT_EQ(0, ibchan_builder_accept(&self->builder, self->m.listener, patience_ns(),
					   &channel, NULL));
	EXPECT_EQ(0, pthread_join(thread, NULL));
	ASSERT_EQ(0, clients.rc);
	EXPECT_EQ(0, ibchan_channel_close(channel));
	EXPECT_EQ(0, ibchan_channel_close(clients.channels[0]));
}

/* The way to a host is asked for with a bound of its own. */
TEST_F(signals, do_not_end_a_look_at_the_way)
{
	struct ibchan_device *device;
	__u64 end = now_ms() + patience_ms();
	timer_t timer;

	ASSERT_EQ(0, tick_here(&timer, MS));
	while (handled < 50 && now_ms() < end) {
		ASSERT_EQ(0, ibchan_device_open_for(self->m.context, HOST, NULL, &device, NULL));
		ASSERT_EQ(0, ibchan_device_close(device));
	}
	EXPECT_EQ(0, timer_delete(timer));
	EXPECT_LE(50, handled);
}

static struct ibchan_channel *victim;

static void break_victim(int number)
{
	(void)number;
	ibchan_channel_break(victim);
	__atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
}

/* A thread that makes a blocking call. */
struct receiver {
	struct blocking call;
	pid_t tid;
};

static void *receive(void *arg)
{
	struct receiver *receiver = arg;

	__atomic_store_n(&receiver->tid, gettid(), __ATOMIC_RELEASE);
	return receive_thread(&receiver->call);
}

TEST_F(signals, whose_handler_breaks_the_channel_end_a_blocking_call)
{
	struct receiver receiver = { .call.end = &self->m.asking };
	pthread_t thread;

	ASSERT_EQ(0, connect_ends(&self->m.asking, &self->m.asked));
	receiver.call.sge = sge_at(&self->m.asking, 0, 8);
	victim = self->m.asking.channel;
	ASSERT_EQ(0, handle(break_victim));
	ASSERT_EQ(0, pthread_create(&thread, NULL, receive, &receiver));
	EXPECT_TRUE(eventually(is_asleep, &receiver.tid));
	EXPECT_EQ(0, pthread_kill(thread, SIGALRM));
	EXPECT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(-ECANCELED, receiver.call.rc);
	EXPECT_EQ(IBCHAN_ERROR_WORK, receiver.call.error.origin);
	EXPECT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, receiver.call.error.status);
	EXPECT_EQ(1, handled);
	EXPECT_EQ(0, ibchan_channel_break(victim));
}

static bool has_arrived(const struct meeting *m, const struct ibchan_cqe *completion)
{
	return !completion->error && completion->bytes == CROSSING &&
	       !memcmp(m->asking.memory + HALF, m->asked.memory + HALF, CROSSING);
}

/* A message crosses, although the wait for it is interrupted again and again. */
static int crosses_all_the_same(struct meeting *m)
{
	struct ibchan_cqe completion;
	int rc = message_crosses(m, &m->asking, &m->asked);

	while (rc == -EINTR) {
		rc = wait_one(m->asked.cq, &completion);
		if (rc == 1)
			return has_arrived(m, &completion) ? 0 : -EBADMSG;
		rc = rc ?: -ETIMEDOUT;
	}
	return rc;
}

/*
 * Nearly all of this time is spent under the queue's lock: a message that crosses is in system
 * calls for most of its time.
 */
static int polls_in_vain(struct ibchan_cq *cq)
{
	struct ibchan_cqe completion;
	int i, rc = 0;

	for (i = 0; !rc && i < 10000; i++)
		rc = ibchan_cq_poll(cq, &completion, 1);
	return rc > 0 ? -EBADMSG : rc;
}

/* Two channels share a queue, and with it all that the library locks. */
TEST_F(signals, may_break_a_channel_wherever_they_interrupt_another)
{
	__u64 end = now_ms() + patience_ms();
	struct end other = { 0 };
	timer_t timer;
	int rc = 0;

	ASSERT_EQ(0, connect_ends(&self->m.asking, &self->m.asked));
	ASSERT_EQ(0, end_open(&other, self->m.context, 0, self->m.asking.cq));
	victim = ibchan_prepared_channel(other.prepared);
	ASSERT_EQ(0, handle(break_victim));
	ASSERT_EQ(0, tick_here(&timer, MS));
	while (!rc && handled < 50 && now_ms() < end)
		rc = crosses_all_the_same(&self->m) ?: polls_in_vain(self->m.asking.cq);
	EXPECT_EQ(0, timer_delete(timer));
	EXPECT_EQ(0, rc);
	EXPECT_LE(50, handled);
	end_close(&other);
}

TEST_F(signals, find_errno_as_it_was_when_they_break_a_channel)
{
	int fd = ibchan_context_fd(self->m.context), kept = dup(fd), rc;

	ASSERT_LE(0, kept);
	ASSERT_EQ(0, close(fd));
	errno = ERANGE;
	rc = ibchan_channel_break(ibchan_prepared_channel(self->m.asking.prepared));
	EXPECT_EQ(ERANGE, errno);
	EXPECT_EQ(-EBADF, rc);
	ASSERT_EQ(fd, dup2(kept, fd));
	ASSERT_EQ(0, close(kept));
}

/* A thread that was cancelled, and what the calls that it made all the same answered. */
struct cancelled {
	struct meeting *m;
	const struct ibchan_builder *builder;
	struct ibchan_channel *channel;
	int rc[5];
	unsigned int calls;
	pid_t tid;
	int has_left;
};

static void note(struct cancelled *cancelled, int rc)
{
	cancelled->rc[cancelled->calls++] = rc;
}

static void *call_when_cancelled(void *arg)
{
	struct cancelled *cancelled = arg;
	struct ibchan_listen_params params = {
		.size = sizeof(params), .host = "localhost", .service = "no such service",
	};
	struct meeting *m = cancelled->m;
	struct ibchan_listener *listener;
	struct ibchan_request *request;
	struct ibchan_device *device;

	pthread_cancel(pthread_self());
	note(cancelled, ibchan_request_take(m->listener, 10 * MS, &request, NULL));
	note(cancelled, ibchan_builder_accept(cancelled->builder, m->listener, 10 * MS,
					      &cancelled->channel, NULL));
	note(cancelled, ibchan_listener_create(m->context, &params, &listener, NULL));
	note(cancelled, ibchan_device_open_for(m->context, "no such host", NULL, &device, NULL));
	note(cancelled, ibchan_builder_connect(cancelled->builder, "no such host", "1", NULL,
					       &cancelled->channel, NULL));
	pthread_testcancel();
	cancelled->has_left = 1;
	return NULL;
}

TEST_F(signals, cancellation_ends_a_thread_in_no_call)
{
	struct cancelled cancelled = { .m = &self->m, .builder = &self->builder };
	pthread_t thread;
	unsigned int i;
	void *result;

	ASSERT_EQ(0, pthread_create(&thread, NULL, call_when_cancelled, &cancelled));
	ASSERT_EQ(0, pthread_join(thread, &result));
	EXPECT_EQ(PTHREAD_CANCELED, result);
	EXPECT_EQ(0, cancelled.has_left);
	EXPECT_EQ(5, cancelled.calls);
	EXPECT_EQ(-ETIMEDOUT, cancelled.rc[0]);
	EXPECT_EQ(-ETIMEDOUT, cancelled.rc[1]);
	/* Not what a name server says that nobody has. */
	for (i = 2; i < 5; i++)
		EXPECT_EQ(-ENOENT, cancelled.rc[i]) TH_LOG("call %u", i);
}

static void *accept_one(void *arg)
{
	struct cancelled *cancelled = arg;

	__atomic_store_n(&cancelled->tid, gettid(), __ATOMIC_RELEASE);
	note(cancelled, ibchan_builder_accept(cancelled->builder, cancelled->m->listener,
					      patience_ns(), &cancelled->channel, NULL));
	pthread_testcancel();
	cancelled->has_left = 1;
	return NULL;
}

TEST_F(signals, cancellation_of_who_waits_for_a_request_loses_it_not)
{
	struct cancelled cancelled = { .m = &self->m, .builder = &self->builder };
	struct clients clients = { .m = &self->m };
	pthread_t thread;
	void *result;

	ASSERT_EQ(0, pthread_create(&thread, NULL, accept_one, &cancelled));
	EXPECT_TRUE(eventually(is_asleep, &cancelled.tid));
	ASSERT_EQ(0, pthread_cancel(thread));
	connect_one(&clients);
	ASSERT_EQ(0, pthread_join(thread, &result));
	EXPECT_EQ(PTHREAD_CANCELED, result);
	EXPECT_EQ(0, cancelled.has_left);
	EXPECT_EQ(0, clients.rc);
	ASSERT_EQ(1, cancelled.calls);
	ASSERT_EQ(0, cancelled.rc[0]);
	EXPECT_EQ(0, ibchan_channel_close(cancelled.channel));
	EXPECT_EQ(0, ibchan_channel_close(clients.channels[0]));
}

TEST_HARNESS_MAIN
