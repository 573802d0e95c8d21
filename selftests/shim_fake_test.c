// SPDX-License-Identifier: GPL-2.0-only
/*
 * What libibchan does in cases that a real device does not produce at will. The kernel is a
 * fake one: the library's system calls end here, and each test says what completes when.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <ibchan.h>

#include "test.h"

#define MS		1000000LL
#define OBJECTS		4096
#define WORKS		64
#define ENTRIES		4	/* of the fixture's cq */

/* As the kernel lays it out, with room for the largest cq of these tests. */
struct fake_ring {
	struct ibchan_ring layout;
	__u32 tail;
	__u32 head;
	struct ibchan_cqe entries[WORKS];
};

struct fake_object {
	int is_live;
	struct fake_ring *ring;		/* a cq */
	__u32 send_cq, recv_cq;		/* a channel */
	int breaks;
};

struct fake_work {
	__u64 wr_id;
	__u32 channel;
	__u32 cq;
	__u8 opcode;
};

/* Handles count up from 1; works lie in the order of their posts. */
static struct {
	struct fake_object objects[OBJECTS];
	__u32 last;
	struct fake_work works[WORKS];
	__u32 num_works;
	int sleeps;
	int destroy_error;		/* of cqs */
	int requests;			/* that wait */
	int reject_error;
	__u32 abi;			/* of the module; 0: this one */
	__u32 broken;			/* a channel whose event waits; 0: none */
	void (*on_connection)(__u32 channel);
	int (*on_sleep)(struct ibchan_cmd_submit *cmd);
	int (*on_bring_in)(struct ibchan_cmd_submit *cmd);
} fake;

static struct fake_object *object_new(__u32 *handle)
{
	*handle = ++fake.last;
	fake.objects[*handle].is_live = 1;
	return &fake.objects[*handle];
}

/* How many objects the library holds. */
static int live(void)
{
	int n = 0;
	__u32 i;

	for (i = 1; i <= fake.last; i++)
		n += fake.objects[i].is_live;
	return n;
}

static void publish(const struct fake_work *work, int error)
{
	struct fake_ring *ring = fake.objects[work->cq].ring;
	__u32 tail = ring->tail;

	ring->entries[tail & (ring->layout.entries - 1)] = (struct ibchan_cqe) {
		.wr_id = work->wr_id,
		.channel = work->channel,
		.opcode = work->opcode,
		.error = -error,
		.status = error ? IBCHAN_STATUS_WR_FLUSH_ERR : IBCHAN_STATUS_SUCCESS,
	};
	__atomic_store_n(&ring->tail, tail + 1, __ATOMIC_RELEASE);
}

/* The work at @index, 0 and up, of those in flight ends. */
static void complete(__u32 index, int error)
{
	struct fake_work work = fake.works[index];

	fake.num_works--;
	memmove(&fake.works[index], &fake.works[index + 1],
		(fake.num_works - index) * sizeof(work));
	publish(&work, error);
}

static void flush(__u32 channel)
{
	__u32 i = 0;

	while (i < fake.num_works) {
		if (fake.works[i].channel == channel)
			complete(i, ECANCELED);
		else
			i++;
	}
}

static int cq_create(struct ibchan_cmd_cq_create *cmd)
{
	struct fake_object *cq = object_new(&cmd->out_cq);
	__u32 entries = 1;

	while (entries < cmd->entries)
		entries *= 2;
	cmd->out_fd = memfd_create("ring", MFD_CLOEXEC);
	if (cmd->out_fd < 0 || ftruncate(cmd->out_fd, sizeof(*cq->ring)))
		return -errno;
	cq->ring = mmap(NULL, sizeof(*cq->ring), PROT_READ | PROT_WRITE, MAP_SHARED,
			cmd->out_fd, 0);
	if (cq->ring == MAP_FAILED || entries > WORKS)
		return -ENOMEM;
	cq->ring->layout = (struct ibchan_ring) {
		.abi_version = IBCHAN_ABI_VERSION,
		.entry_size = sizeof(struct ibchan_cqe),
		.entries = entries,
		.entries_offset = offsetof(struct fake_ring, entries),
		.tail_offset = offsetof(struct fake_ring, tail),
		.head_offset = offsetof(struct fake_ring, head),
	};
	cmd->out_ring_size = sizeof(*cq->ring);
	return 0;
}

static int channel_build(struct ibchan_cmd_channel_build *cmd)
{
	struct fake_object *channel = object_new(&cmd->out_channel);

	channel->send_cq = cmd->send_cq;
	channel->recv_cq = cmd->recv_cq;
	return 0;
}

static int destroy(const struct ibchan_cmd_destroy *cmd)
{
	struct fake_object *object = &fake.objects[cmd->handle];

	if (!object->is_live)
		return -ENOENT;
	if (object->ring && fake.destroy_error)
		return fake.destroy_error;
	if (object->send_cq)
		flush(cmd->handle);
	if (object->ring)
		munmap(object->ring, sizeof(*object->ring));
	object->is_live = 0;
	return 0;
}

static int channel_break(const struct ibchan_cmd_channel_break *cmd)
{
	fake.objects[cmd->channel].breaks++;
	flush(cmd->channel);
	return 0;
}

static void post(const struct ibchan_submit_wr *wr)
{
	const struct fake_object *channel = &fake.objects[wr->channel];

	fake.works[fake.num_works++] = (struct fake_work) {
		.wr_id = wr->wr_id,
		.channel = wr->channel,
		.cq = wr->opcode == IBCHAN_OP_RECV ? channel->recv_cq : channel->send_cq,
		.opcode = wr->opcode,
	};
}

static int fake_sleep(struct ibchan_cmd_submit *cmd)
{
	const struct fake_object *cq = &fake.objects[cmd->cq];
	struct timespec time = {
		.tv_sec = cmd->timeout_ns / (1000 * MS),
		.tv_nsec = cmd->timeout_ns % (1000 * MS),
	};

	fake.sleeps++;
	if (fake.on_sleep)
		return fake.on_sleep(cmd);
	if (!cq->is_live)
		return -ENOENT;
	if (cq->ring->tail - cmd->tail >= cmd->min_complete)
		return 0;
	/* Nothing will ever come: nobody else is there. */
	if (cmd->timeout_ns < 0)
		abort();
	nanosleep(&time, NULL);
	return -ETIMEDOUT;
}

static int submit(struct ibchan_cmd_submit *cmd)
{
	const struct ibchan_submit_wr *wrs = (const void *)(uintptr_t)cmd->entries;
	__u32 i;

	for (i = 0; i < cmd->entry_num; i++)
		post(&wrs[i]);
	if (cmd->cq && cmd->min_complete)
		return fake_sleep(cmd);
	return cmd->cq && fake.on_bring_in ? fake.on_bring_in(cmd) : 0;
}

static int listener_create(struct ibchan_cmd_listener_create *cmd)
{
	object_new(&cmd->out_listener);
	/* Readable always: a look for a request says whether one waits. */
	cmd->out_fd = eventfd(1, EFD_CLOEXEC);
	return cmd->out_fd < 0 ? -errno : 0;
}

static int request_take(struct ibchan_cmd_request_take *cmd)
{
	if (!fake.requests)
		return -EAGAIN;
	fake.requests--;
	object_new(&cmd->out_request);
	return 0;
}

static int request_reject(const struct ibchan_cmd_request_reject *cmd)
{
	if (!fake.objects[cmd->request].is_live)
		return -ENOENT;
	fake.objects[cmd->request].is_live = fake.reject_error != 0;
	return fake.reject_error;
}

static int connection(struct ibchan_cmd_channel_connection *cmd)
{
	bool breaks = fake.objects[cmd->channel].breaks;

	cmd->out_state = breaks ? IBCHAN_CHANNEL_BROKEN : IBCHAN_CHANNEL_CONNECTED;
	cmd->out_stage = IBCHAN_STAGE_DONE;
	cmd->out_error = breaks ? ECONNRESET : 0;
	if (fake.on_connection)
		fake.on_connection(cmd->channel);
	return 0;
}

static int event_take(struct ibchan_cmd_event_take *cmd)
{
	if (!fake.broken)
		return -EAGAIN;
	cmd->out_channel = fake.broken;
	cmd->out_events = IBCHAN_EVENT_BROKEN;
	fake.broken = 0;
	return 0;
}

static int query(struct ibchan_cmd_query *cmd)
{
	cmd->out.abi_version = fake.abi ?: IBCHAN_ABI_VERSION;
	return 0;
}

static int run(unsigned int command, void *cmd)
{
	switch (command) {
	case IBCHAN_CMD_QUERY:
		return query(cmd);
	case IBCHAN_CMD_DEVICE_OPEN:
		object_new(&((struct ibchan_cmd_device_open *)cmd)->out_device);
		return 0;
	case IBCHAN_CMD_PD_ALLOC:
		object_new(&((struct ibchan_cmd_pd_alloc *)cmd)->out_pd);
		return 0;
	case IBCHAN_CMD_CQ_CREATE:
		return cq_create(cmd);
	case IBCHAN_CMD_CHANNEL_BUILD:
		return channel_build(cmd);
	case IBCHAN_CMD_CHANNEL_HANDSHAKE:
		return 0;
	case IBCHAN_CMD_CHANNEL_BREAK:
		return channel_break(cmd);
	case IBCHAN_CMD_LISTENER_CREATE:
		return listener_create(cmd);
	case IBCHAN_CMD_REQUEST_TAKE:
		return request_take(cmd);
	case IBCHAN_CMD_REQUEST_ACCEPT:
		fake.objects[((struct ibchan_cmd_request_accept *)cmd)->request].is_live = 0;
		return 0;
	case IBCHAN_CMD_REQUEST_REJECT:
		return request_reject(cmd);
	case IBCHAN_CMD_CHANNEL_CONNECTION:
		return connection(cmd);
	case IBCHAN_CMD_EVENT_TAKE:
		return event_take(cmd);
	case IBCHAN_CMD_DESTROY:
		return destroy(cmd);
	case IBCHAN_CMD_SUBMIT:
		return submit(cmd);
	default:
		return -ENOTTY;
	}
}

/* --- what the library calls --- */

int ioctl(int fd, unsigned long command, ...)
{
	va_list args;
	__u32 *cmd;
	int ret;

	(void)fd;
	va_start(args, command);
	cmd = va_arg(args, void *);
	va_end(args);
	ret = run((unsigned int)command, cmd);
	cmd[1] |= IBCHAN_ANSWERED;
	if (!ret)
		return 0;
	errno = -ret;
	return -1;
}

long syscall(long number, ...)
{
	long (*real)(long number, ...) = dlsym(RTLD_NEXT, "syscall");
	va_list args;
	long a, b, c, d;

	va_start(args, number);
	a = va_arg(args, long);
	b = va_arg(args, long);
	c = va_arg(args, long);
	d = va_arg(args, long);
	va_end(args);
	if (number == SYS_openat && !strcmp((const char *)b, "/dev/ibchan"))
		return eventfd(1, EFD_CLOEXEC);
	return real(number, a, b, c, d);
}

/* A ring's file would never be readable; here it cannot be watched at all. */
int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
	long (*real)(long number, ...) = dlsym(RTLD_NEXT, "syscall");
	int ret = (int)real(SYS_epoll_ctl, epoll, op, fd, event);

	return ret && errno == EPERM ? 0 : ret;
}

/* --- the tests --- */

FIXTURE(fake)
{
	struct ibchan_context *context;
	struct ibchan_device *device;
	struct ibchan_pd *pd;
	struct ibchan_cq *cq;
	struct ibchan_channel *channel;
};

static int open_channel(struct ibchan_pd *pd, struct ibchan_cq *cq,
			struct ibchan_channel **channel)
{
	const struct ibchan_endpoint peer = { 0 };
	struct ibchan_prepared *prepared;
	struct ibchan_builder builder;
	int rc;

	ibchan_builder_init(&builder, pd, cq);
	rc = ibchan_builder_prepare(&builder, &prepared, NULL);
	return rc ?: ibchan_prepared_handshake(prepared, &peer, channel, NULL);
}

FIXTURE_SETUP(fake)
{
	/* Freed memory looks like nothing that was in it. */
	mallopt(M_PERTURB, 0x5a);
	ASSERT_EQ(0, ibchan_context_open(&self->context, NULL));
	ASSERT_EQ(0, ibchan_device_open(self->context, "fake", &self->device, NULL));
	ASSERT_EQ(0, ibchan_pd_alloc(self->device, &self->pd, NULL));
	ASSERT_EQ(0, ibchan_cq_create(self->device, ENTRIES, 0, &self->cq, NULL));
	ASSERT_EQ(0, open_channel(self->pd, self->cq, &self->channel));
}

FIXTURE_TEARDOWN(fake)
{
	ASSERT_EQ(0, ibchan_context_close(self->context));
}

static struct ibchan_submit_wr receive_on(struct ibchan_channel *channel)
{
	return ibchan_wr_receive(channel, NULL, 0);
}

static int post_pending(struct ibchan_pending *pending, struct ibchan_channel *channel)
{
	const struct ibchan_submit_wr wr = receive_on(channel);

	return ibchan_pending_post(pending, channel, &wr, NULL);
}

static int post_in(struct ibchan_scope *scope, struct ibchan_pending *pending,
		   struct ibchan_channel *channel)
{
	const struct ibchan_submit_wr wr = receive_on(channel);

	return ibchan_scope_post(scope, pending, channel, &wr, NULL);
}

static __s64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 * MS + now.tv_nsec;
}

/* Posts, completes and asks as many pending works as the fixture's cq has entries. */
static int use_every_place(struct ibchan_channel *channel)
{
	struct ibchan_pending pending[ENTRIES] = { 0 };
	int i, rc = 0;

	for (i = 0; i < ENTRIES && !rc; i++)
		rc = post_pending(&pending[i], channel);
	for (i = 0; i < ENTRIES && !rc; i++)
		complete(0, 0);
	for (i = 0; i < ENTRIES && !rc; i++)
		rc = ibchan_pending_poll(&pending[i]) == 1 ? 0 : -EPROTO;
	return rc;
}

TEST_F(fake, pending_can_be_asked_when_its_place_was_used_again_and_its_queue_is_gone)
{
	struct ibchan_pending pending = { 0 };
	struct ibchan_channel *other;

	ASSERT_EQ(0, open_channel(self->pd, self->cq, &other));
	ASSERT_EQ(0, post_pending(&pending, self->channel));
	ASSERT_EQ(0, ibchan_channel_close(self->channel));
	ASSERT_EQ(0, use_every_place(other));
	ASSERT_EQ(0, ibchan_channel_close(other));
	ASSERT_EQ(0, ibchan_cq_destroy(self->cq));
	ASSERT_EQ(1, ibchan_pending_poll(&pending));
	ASSERT_EQ(-ESTALE, ibchan_pending_result(&pending));
}

/* One channel on a queue of its own, closed before its work is asked. */
static int own_queue_round(struct ibchan_pd *pd)
{
	struct ibchan_pending pending = { 0 };
	struct ibchan_channel *channel;
	int rc;

	rc = open_channel(pd, NULL, &channel) ?: post_pending(&pending, channel);
	rc = rc ?: ibchan_channel_close(channel);
	if (!rc && ibchan_pending_poll(&pending) != 1)
		rc = -EINPROGRESS;
	return rc;
}

TEST_F(fake, channels_on_queues_of_their_own_leave_no_memory_behind)
{
	size_t before;
	int i;

	ASSERT_EQ(0, own_queue_round(self->pd));
	before = mallinfo2().uordblks;
	for (i = 0; i < 1000; i++)
		ASSERT_EQ(0, own_queue_round(self->pd));
	/* The allocator keeps a few to itself. */
	ASSERT_GT(before + 16 * 1000, mallinfo2().uordblks);
	ASSERT_EQ(4, live());
}

TEST_F(fake, queue_of_its_own_that_was_busy_ends_with_the_last_work)
{
	struct ibchan_pending pending[2] = { 0 };
	struct ibchan_channel *channel;

	ASSERT_EQ(0, open_channel(self->pd, NULL, &channel));
	ASSERT_EQ(0, post_pending(&pending[0], channel));
	ASSERT_EQ(0, post_pending(&pending[1], channel));
	fake.destroy_error = -EBUSY;
	ASSERT_EQ(0, ibchan_channel_close(channel));
	fake.destroy_error = 0;
	ASSERT_EQ(5, live());
	ASSERT_EQ(1, ibchan_pending_poll(&pending[0]));
	ASSERT_EQ(5, live());
	ASSERT_EQ(1, ibchan_pending_poll(&pending[1]));
	ASSERT_EQ(4, live());
	ASSERT_EQ(-ECANCELED, ibchan_pending_result(&pending[1]));
}

static jmp_buf out_of_it;

TEST_F(fake, scope_waits_for_a_work_that_an_earlier_scope_was_jumped_over_with)
{
	static struct ibchan_pending pending;
	static struct ibchan_scope scope;

	if (!setjmp(out_of_it)) {
		ibchan_scoped(&scope) {
			ASSERT_EQ(0, post_in(&scope, &pending, self->channel));
			complete(0, 0);
			longjmp(out_of_it, 1);
		}
	}
	ASSERT_EQ(1, ibchan_pending_poll(&pending));
	ibchan_scoped_timeout(&scope, MS)
		ASSERT_EQ(0, post_in(&scope, &pending, self->channel));
	ASSERT_EQ(-ECANCELED, ibchan_pending_result(&pending));
	ASSERT_EQ(1, scope.auto_polled);
}

/* The device has it, and puts it into the ring when it is asked. */
static int complete_when_asked(struct ibchan_cmd_submit *cmd)
{
	(void)cmd;
	if (fake.num_works)
		complete(0, 0);
	return 0;
}

static int device_is_gone(struct ibchan_cmd_submit *cmd)
{
	(void)cmd;
	return -ENODEV;
}

TEST_F(fake, spinning_asks_the_kernel_for_what_is_not_in_the_ring)
{
	struct ibchan_pending pending = { 0 };

	fake.on_bring_in = complete_when_asked;
	ASSERT_EQ(0, post_pending(&pending, self->channel));
	ASSERT_EQ(0, ibchan_pending_spin(&pending));
	ASSERT_EQ(0, ibchan_pending_result(&pending));
}

TEST_F(fake, spinning_ends_when_nothing_will_ever_come)
{
	struct ibchan_pending pending = { 0 };

	fake.on_bring_in = device_is_gone;
	ASSERT_EQ(0, post_pending(&pending, self->channel));
	ASSERT_EQ(-ENODEV, ibchan_pending_spin(&pending));
	ASSERT_EQ(-EINPROGRESS, ibchan_pending_result(&pending));
}

TEST_F(fake, poll_tells_why_a_watched_descriptor_stays_readable)
{
	const struct ibchan_submit_wr wr = receive_on(self->channel);
	struct ibchan_cqe done;

	fake.on_bring_in = device_is_gone;
	ASSERT_EQ(0, ibchan_cq_poll(self->cq, &done, 1));
	ASSERT_LE(0, ibchan_cq_fd(self->cq));
	ASSERT_EQ(0, ibchan_post(self->context, &wr, 1, NULL, NULL));
	complete(0, ENODEV);
	ASSERT_EQ(1, ibchan_cq_poll(self->cq, &done, 1));
	ASSERT_EQ(-ENODEV, ibchan_cq_poll(self->cq, &done, 1));
	fake.on_bring_in = complete_when_asked;
	ASSERT_EQ(0, ibchan_cq_poll(self->cq, &done, 1));
	ASSERT_EQ(0, ibchan_post(self->context, &wr, 1, NULL, NULL));
	ASSERT_EQ(1, ibchan_cq_poll(self->cq, &done, 1));
}

/* Another thread: whenever one sleeps, one more of its works completes, and it reads that. */
static struct {
	struct ibchan_context *context;
	struct ibchan_cq *cq;
	struct ibchan_channel *channel;
	__s64 until_ns;
} busy;

static int another_completes(struct ibchan_cmd_submit *cmd)
{
	const struct ibchan_submit_wr wr = receive_on(busy.channel);
	struct ibchan_cqe done;

	(void)cmd;
	if (now_ns() > busy.until_ns)
		return -EIO;
	if (ibchan_post(busy.context, &wr, 1, NULL, NULL))
		return -EIO;
	complete(fake.num_works - 1, 0);
	return ibchan_cq_poll(busy.cq, &done, 1) == 1 ? 0 : -EIO;
}

TEST_F(fake, waits_end_in_time_beside_the_traffic_of_another_thread)
{
	const struct ibchan_submit_wr wr = receive_on(self->channel);
	struct ibchan_pending pending = { 0 };
	struct ibchan_cqe done;

	busy.context = self->context;
	busy.cq = self->cq;
	busy.until_ns = now_ns() + 10000 * MS;
	ASSERT_EQ(0, open_channel(self->pd, self->cq, &busy.channel));
	fake.on_sleep = another_completes;
	ASSERT_EQ(0, post_pending(&pending, self->channel));
	ASSERT_EQ(-ETIMEDOUT, ibchan_pending_wait(&pending, 0));
	ASSERT_EQ(-ETIMEDOUT, ibchan_pending_wait(&pending, 5 * MS));
	ASSERT_EQ(-ETIMEDOUT, ibchan_cq_wait(self->cq, &done, 1, 1, 0));
	ASSERT_EQ(-ETIMEDOUT, ibchan_cq_wait(self->cq, &done, 1, 1, 5 * MS));
	ASSERT_EQ(-ETIMEDOUT, ibchan_perform(self->channel, &wr, 5 * MS, &done, NULL));
}

TEST_F(fake, scope_remembers_the_error_of_a_work_that_is_posted_again)
{
	struct ibchan_pending pending = { 0 };
	struct ibchan_scope scope;

	ibchan_scope_begin(&scope);
	ASSERT_EQ(0, post_in(&scope, &pending, self->channel));
	complete(0, EIO);
	ASSERT_EQ(-EALREADY, post_pending(&pending, self->channel));
	ibchan_scope_end(&scope);
	ASSERT_EQ(-EIO, ibchan_scope_error(&scope));
	ASSERT_EQ(0, post_pending(&pending, self->channel));
	ASSERT_EQ(-EIO, ibchan_scope_error(&scope));
}

static int listen_at_any(struct ibchan_context *context, struct ibchan_listener **listener)
{
	const struct ibchan_listen_params params = {
		.size = sizeof(params), .host = "127.0.0.1", .service = "7471",
	};

	return ibchan_listener_create(context, &params, listener, NULL);
}

TEST_F(fake, a_request_whose_rejection_finds_it_busy_is_there_for_another_answer)
{
	struct ibchan_listener *listener;
	struct ibchan_request *request;
	int before;

	ASSERT_EQ(0, listen_at_any(self->context, &listener));
	before = live();
	fake.requests = 1;
	ASSERT_EQ(0, ibchan_request_take(listener, 0, &request, NULL));
	fake.reject_error = -EBUSY;
	ASSERT_EQ(-EBUSY, ibchan_request_reject(request, NULL, 0, NULL));
	fake.reject_error = 0;
	ASSERT_EQ(0, ibchan_request_reject(request, NULL, 0, NULL));
	ASSERT_EQ(before, live());
	ASSERT_EQ(0, ibchan_listener_close(listener));
}

/* Of the test that runs. */
static struct ibchan_context *taker;
static int taken;

/* Another thread is told what happens, as soon as it has happened. */
static void break_and_take(__u32 channel)
{
	struct ibchan_happening happening;

	fake.on_connection = NULL;
	fake.objects[channel].breaks = 1;
	fake.broken = channel;
	taken = ibchan_next(taker, 0, &happening, NULL);
}

TEST_F(fake, accept_returns_no_channel_whose_end_another_thread_has_been_told_before)
{
	struct ibchan_listener *listener;
	struct ibchan_channel *channel;
	struct ibchan_builder builder;
	struct ibchan_happening happening;

	ASSERT_EQ(0, listen_at_any(self->context, &listener));
	ibchan_builder_init(&builder, self->pd, self->cq);
	taker = self->context;
	fake.requests = 1;
	fake.on_connection = break_and_take;
	ASSERT_EQ(-EAGAIN, ibchan_builder_accept(&builder, listener, 0, &channel, NULL));
	ASSERT_EQ(-EAGAIN, taken);
	ASSERT_EQ(1, ibchan_listener_lost(listener));

	fake.requests = 1;
	ASSERT_EQ(0, ibchan_builder_accept(&builder, listener, 0, &channel, NULL));
	fake.broken = fake.last;
	ASSERT_EQ(0, ibchan_next(self->context, 0, &happening, NULL));
	ASSERT_EQ(channel, happening.channel);
	ASSERT_EQ(IBCHAN_NEXT_ENDED, happening.kind);
	ASSERT_EQ(0, ibchan_channel_close(channel));
	ASSERT_EQ(0, ibchan_listener_close(listener));
}

TEST(module_of_an_earlier_abi_is_refused_in_words_and_one_of_a_later_serves)
{
	struct ibchan_context *context;
	struct ibchan_error error;

	fake.abi = IBCHAN_ABI_VERSION - 1;
	ASSERT_EQ(-EPROTONOSUPPORT, ibchan_context_open(&context, &error));
	EXPECT_NE(NULL, strstr(ibchan_error_string(&error), "older than this library"));
	fake.abi = IBCHAN_ABI_VERSION + 1;
	ASSERT_EQ(0, ibchan_context_open(&context, &error));
	ASSERT_EQ(0, ibchan_context_close(context));
}

TEST_HARNESS_MAIN
