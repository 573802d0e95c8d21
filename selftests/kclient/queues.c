// SPDX-License-Identifier: GPL-2.0-only
/* Queues cannot overrun (law 8). */
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/mm.h>

#include "job.h"
#include "suites.h"

static int narrow_pair(struct world *w, u32 depth)
{
	struct pair_init init;

	pair_defaults(&init);
	init.params.max_send_wr = depth;
	init.params.max_recv_wr = depth;
	return world_pair(w, &init);
}

static void a_batch_larger_than_the_queue_is_accepted_in_part(struct world *w)
{
	struct side *b = &w->side[1];
	struct job *jobs = world_jobs(w, 8);
	struct ibchan_reason reason = {};
	struct ibchan_wr wrs[8];
	u32 accepted = 99;
	int i;

	if (narrow_pair(w, 5))
		return;
	for (i = 0; i < 8; i++)
		wrs[i] = job_wr(&jobs[i], IBCHAN_OP_RECV, b, 0, 8);
	expect_eq(w, ibchan_post(b->ch, wrs, 8, &accepted, &reason), -EAGAIN);
	expect_eq(w, accepted, 5);
	expect_eq(w, reason.code, IBCHAN_REASON_RECV_QUEUE_FULL);
	expect_eq(w, reason.wr, 5);
	side_close(b);
	expect_eq(w, jobs_ended(jobs, 5), 5);
	expect_eq(w, jobs_ended(jobs + 5, 3), 0);
}

/* What a sink without room answers, until it has been asked too often. */
static struct {
	int error;
	int asked;
} full_sink;

#define ASKED_TOO_OFTEN	100

static int reserve_or_fail(void *priv, u32 num)
{
	int ret = side_sink.reserve(priv, num);

	if (ret > 0)
		return ret;
	return full_sink.asked++ < ASKED_TOO_OFTEN ? full_sink.error : -ELOOP;
}

static int pair_with_full_sink(struct world *w, int room)
{
	struct ibchan_sink *sink = world_alloc(w, sizeof(*sink));
	struct pair_init init;
	int ret;

	pair_defaults(&init);
	*sink = side_sink;
	sink->reserve = reserve_or_fail;
	init.sink = sink;
	ret = world_pair(w, &init);
	w->side[1].room = room;
	return ret;
}

/* Receives by wr_id, of which the sink has room for so many. */
static void expect_sink_refuses(struct side *side, u32 num, u32 room, int error)
{
	struct world *w = side->world;
	struct ibchan_reason reason = { .code = IBCHAN_REASON_NONE };
	int before = channel_in_flight(side->ch);
	struct ibchan_wr wrs[4];
	u32 accepted = 99;
	u32 i;

	full_sink.error = error;
	full_sink.asked = 0;
	side->room = atomic_read(&side->reserved) + room;
	for (i = 0; i < num; i++) {
		wrs[i] = ibchan_wr_receive(side_sge(side, 0, 8), 1);
		wrs[i].wr_id = i;
	}
	expect_eq(w, ibchan_post(side->ch, wrs, num, &accepted, &reason), error);
	expect_eq(w, accepted, room);
	expect_eq(w, reason.wr, room);
	expect(w, full_sink.asked);
	expect_eq(w, channel_in_flight(side->ch), before + room);
	expect_eq(w, atomic_read(&side->reserved), before + room);
}

static const int sink_errors[] = {
	-ENOSPC, -EAGAIN, -ENOMEM, -EBUSY, -ENOBUFS, -EINVAL, -EXFULL,
};

static void a_sink_that_is_full_in_the_middle_of_a_batch_lets_the_first_ones_go(struct world *w)
{
	struct side *b = &w->side[1];
	int i;

	if (pair_with_full_sink(w, 0))
		return;
	for (i = 0; i < ARRAY_SIZE(sink_errors); i++)
		expect_sink_refuses(b, 4, 2, sink_errors[i]);
	side_close(b);
	expect_eq(w, atomic_read(&b->logged), 2 * ARRAY_SIZE(sink_errors));
	expect_eq(w, atomic_read(&b->reserved), 0);
}

/* A send queue is a different path through the post. */
static void a_sink_without_room_refuses_sends_too(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_sge sge;
	struct ibchan_wr wr;
	u32 accepted = 99;

	if (pair_with_full_sink(w, INT_MAX) || !side_share(b))
		return;
	a->room = 0;
	full_sink.error = -ENOSPC;
	full_sink.asked = 0;
	sge = ibchan_sge_unchecked(a->local, 0, 8);
	wr = ibchan_wr_write(&sge, 1, &b->remote);
	expect_eq(w, ibchan_post(a->ch, &wr, 1, &accepted, NULL), -ENOSPC);
	expect_eq(w, accepted, 0);
	expect(w, full_sink.asked);
	/* Works with a done() do not need the sink. */
	expect_eq(w, ibchan_channel_write(a->ch, &sge, 1, &b->remote, NULL), 0);
	a->room = 1;
	expect_eq(w, ibchan_post(a->ch, &wr, 1, &accepted, NULL), 0);
	expect_soon(w, atomic_read(&a->logged) == 1);
	expect_eq(w, atomic_read(&a->reserved), 0);
}

static void room_is_given_back_when_the_request_is_refused(struct world *w)
{
	struct side *b = &w->side[1];

	if (world_default_pair(w))
		return;
	expect_eq(w, ibchan_post_receive(b->ch, b->local, SIDE_BYTES, 1, 0), -EINVAL);
	expect_eq(w, atomic_read(&b->reserved), 0);
	expect_eq(w, ibchan_post_receive(b->ch, b->local, 0, 1, 0), 0);
	expect_eq(w, atomic_read(&b->reserved), 1);
}

static void the_space_of_a_closed_channel_is_free_again(struct world *w)
{
	struct side *a = &w->side[0];
	struct pair_init init;
	int i;

	pair_defaults(&init);
	init.cq_entries = 34;
	if (world_sides(w, &init))
		return;
	for (i = 0; i < 5; i++) {
		side_close(a);
		a->ch = side_build(a, &init.params);
		if (!a->ch)
			return;
	}
}

/* What a file says, ended by 0; 0, or an errno. */
static int read_text(const char *path, char *text, int size)
{
	struct file *file = filp_open(path, O_RDONLY, 0);
	loff_t at = 0;
	ssize_t len;

	if (IS_ERR(file))
		return PTR_ERR(file);
	len = kernel_read(file, text, size - 1, &at);
	filp_close(file, NULL);
	if (len < 0)
		return len;
	text[len] = '\0';
	return 0;
}

/* Of the first HCA for tests, as its module tells them: "hca0 2 0 1"; -1: there is none. */
static int cqs_on_vector(u32 vector)
{
	char text[256], *rest = text, *word = NULL;
	int num;
	u32 i;

	if (read_text("/sys/module/ibchan_hca/parameters/vectors", text, sizeof(text)))
		return -1;
	/* Its name comes first. */
	for (i = 0; i <= vector; i++)
		word = strsep(&rest, "\n ");
	return !word || kstrtoint(word, 10, &num) ? -1 : num;
}

static void a_completion_vector_can_be_chosen_among_the_devices(struct world *w)
{
	struct ibchan_device *dev = world_device(w, 0);
	struct ibchan_cq_init init = { .entries = 8 };
	struct ibchan_reason reason = {};
	struct ibchan_device_attr attr;
	int before;

	if (!dev || ibchan_device_query(dev, &attr) || !expect(w, attr.comp_vectors))
		return;
	init.comp_vector = attr.comp_vectors;
	before = cqs_on_vector(attr.comp_vectors);
	world_cq(w, dev, &init);
	if (before >= 0)
		expect_eq(w, cqs_on_vector(attr.comp_vectors), before + 1);
	init.comp_vector = 1;
	before = cqs_on_vector(1);
	world_cq(w, dev, &init);
	if (before >= 0)
		expect_eq(w, cqs_on_vector(1), before + 1);
	init.comp_vector = attr.comp_vectors + 1;
	expect_eq(w, PTR_ERR(ibchan_cq_create(dev, &init, &reason)), -EINVAL);
	expect_eq(w, reason.code, IBCHAN_REASON_PARAMETER);
	expect_eq(w, reason.element, IBCHAN_PARAMETER_COMP_VECTOR);
	expect_eq(w, reason.value[0], attr.comp_vectors + 1);
	expect_eq(w, reason.value[2], attr.comp_vectors);
}

static int node_of(const void *memory)
{
	return page_to_nid(virt_to_page(memory));
}

static int node_of_first_device(void)
{
	char path[96], text[16];
	int node;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/numa_node", device_names[0]);
	if (read_text(path, text, sizeof(text)) || kstrtoint(strim(text), 10, &node))
		return NUMA_NO_NODE;
	return node;
}

/* Whichever cpu has made them. */
static void a_cq_and_a_channel_are_near_their_device(struct world *w)
{
	struct side *a = &w->side[0];
	int node = node_of_first_device();

	if (node == NUMA_NO_NODE || !node_state(node, N_MEMORY) || node == numa_mem_id()) {
		world_skip(w, "the device is near no other node than this cpu");
		return;
	}
	if (world_default_pair(w))
		return;
	expect_eq(w, node_of(a->send_cq), node);
	expect_eq(w, node_of(a->ch), node);
	/* What nobody asked to be there is near this cpu. */
	expect_eq(w, node_of(a->buf), numa_mem_id());
}

/* soft-RoCE and soft-iWARP have no interrupts to save. */
static bool moderates(struct world *w)
{
	struct ibchan_device *dev = world_device(w, 0);
	struct ibchan_cq_init init = {
		.entries = 8, .moderation_count = 2, .moderation_us = 10,
	};
	struct ibchan_device_attr attr;
	struct ibchan_cq *cq;

	if (!dev || ibchan_device_query(dev, &attr))
		return false;
	if (attr.driver_id != RDMA_DRIVER_RXE && attr.driver_id != RDMA_DRIVER_SIW)
		return world_cq(w, dev, &init);
	cq = ibchan_cq_create(dev, &init, NULL);
	expect_eq(w, PTR_ERR_OR_ZERO(cq), -EOPNOTSUPP);
	return false;
}

static void half_a_moderation_is_refused(struct world *w)
{
	struct ibchan_device *dev = world_device(w, 0);
	struct ibchan_cq_init init = { .entries = 8, .moderation_count = 2 };

	if (!dev)
		return;
	expect_eq(w, PTR_ERR(ibchan_cq_create(dev, &init, NULL)), -EINVAL);
	init = (struct ibchan_cq_init) { .entries = 8, .moderation_us = 10 };
	expect_eq(w, PTR_ERR(ibchan_cq_create(dev, &init, NULL)), -EINVAL);
}

#define MODERATED	8
#define PERIOD_US	60000

/* How often the receiver was notified of so many messages. */
static int notified_of(struct world *w, struct job *jobs, u32 num)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	u32 i;

	atomic_set(&b->notified, 0);
	for (i = 0; i < num; i++) {
		atomic_set(&jobs[i].ended, 0);
		expect_eq(w, job_receive(&jobs[i], b, 0, 8), 0);
	}
	ibchan_cq_arm(b->recv_cq);
	for (i = 0; i < num; i++) {
		atomic_set(&jobs[num + i].ended, 0);
		expect_eq(w, job_send(&jobs[num + i], a, 0, 8), 0);
	}
	expect_soon(w, jobs_ended(jobs, num) == num);
	ibchan_cq_arm(a->send_cq);
	expect_soon(w, jobs_ended(jobs + num, num) == num);
	return atomic_read(&b->notified);
}

/* A machine that is so slow that the period ends meanwhile is tried again. */
static void moderation_makes_one_event_of_several_completions(struct world *w)
{
	struct job *jobs = world_jobs(w, 2 * MODERATED);
	struct pair_init init;
	int tries, num = 0;
	ktime_t start;

	if (!moderates(w))
		return;
	pair_defaults(&init);
	init.two_cqs = 1;
	init.cq_flags = IBCHAN_CQ_POLLED;
	init.moderation_count = MODERATED;
	init.moderation_us = PERIOD_US;
	if (world_pair(w, &init))
		return;
	for (tries = 0; tries < 20; tries++) {
		start = ktime_get();
		num = notified_of(w, jobs, MODERATED);
		if (ktime_us_delta(ktime_get(), start) < PERIOD_US)
			break;
	}
	expect(w, tries < 20);
	expect_eq(w, num, 1);
	/* The last ones do not wait for others. */
	expect_eq(w, notified_of(w, jobs, 1), 1);
}

/* Exactly as many entries as can be in flight, all in use, over and over. */
static void a_cq_of_the_exact_size_never_overruns(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct job *jobs = world_jobs(w, 16);
	struct pair_init init;
	int round, i;

	pair_defaults(&init);
	init.cq_entries = 34;
	if (world_pair(w, &init) || !side_share(b))
		return;
	for (round = 0; round < 10; round++) {
		for (i = 0; i < 16; i++) {
			atomic_set(&jobs[i].ended, 0);
			expect_eq(w, job_write(&jobs[i], a, 8, &b->remote), 0);
		}
		if (!expect_soon(w, jobs_ended(jobs, 16) == 16))
			return;
	}
	expect_eq(w, jobs_repeated(jobs, 16), 0);
	expect_eq(w, channel_state(a->ch), IBCHAN_CHANNEL_CONNECTED);
}

static const struct test_case queues_cases[] = {
	CASE(a_batch_larger_than_the_queue_is_accepted_in_part),
	CASE(a_sink_that_is_full_in_the_middle_of_a_batch_lets_the_first_ones_go),
	CASE(a_sink_without_room_refuses_sends_too),
	CASE(room_is_given_back_when_the_request_is_refused),
	CASE(the_space_of_a_closed_channel_is_free_again),
	CASE(a_completion_vector_can_be_chosen_among_the_devices),
	CASE(a_cq_and_a_channel_are_near_their_device),
	CASE(half_a_moderation_is_refused),
	CASE(moderation_makes_one_event_of_several_completions),
	CASE(a_cq_of_the_exact_size_never_overruns),
};

SUITE(queues);
