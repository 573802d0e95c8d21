// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "traffic.h"
#include "work.h"
#include "world.h"

/*
 * Each end's memory. What an end sends and writes, and its peer reads, lies in the source;
 * the works then have a part each; what the last part holds nobody ever changes.
 */
#define MEMORY		65536U
#define PART		8192U
#define SOURCE		(2 * PART)
#define LONGEST		6000U
#define ATOMICS		(6 * PART)
#define RESULTS		(ATOMICS + PART / 2)
#define ATOMIC_STEP	64U

#define ASKS		TRAFFIC_RECEIVE

/* Outcomes besides enum ibchan_status. */
#define NOT_POSTED	(-1)
#define UNDER_WAY	(-2)

/* For an emulated debug kernel: 268 ms; an answer that comes later does no harm. */
#define SLOW_ACK_TIMEOUT	16

/* IBCHAN_SEED if that is set; says so. */
static unsigned int traffic_seed(void)
{
	const char *setting = getenv("IBCHAN_SEED");
	unsigned int seed = setting && *setting ? strtoul(setting, NULL, 0) : 20240229;

	fprintf(stderr, "# seed %u\n", seed);
	return seed;
}

static __u32 below(struct traffic *traffic, __u32 limit)
{
	return rand_r(&traffic->seed) % limit;
}

/* ---- What a round does ---- */

static __u32 part_of(enum traffic_work work)
{
	return SOURCE + work * PART;
}

static void plan(struct traffic *traffic, struct traffic_change change, const void *bytes)
{
	memcpy(change.end->wanted + change.offset, bytes, change.length);
	traffic->changes[traffic->num_changes++] = change;
}

static void fill_source(struct traffic *traffic, struct traffic_end *end)
{
	pattern(end->side.memory, SOURCE, below(traffic, 1U << 30));
	memcpy(end->wanted, end->side.memory, SOURCE);
	memcpy(end->before, end->wanted, MEMORY);
}

/* A send or a write: from the source of one end to a part of the other's memory. */
static void plan_message(struct traffic *traffic, struct traffic_end *end,
			 enum traffic_work kind)
{
	int opcode = kind == TRAFFIC_SEND ? IBCHAN_OP_SEND : IBCHAN_OP_WRITE;
	__u32 length = 1 + below(traffic, LONGEST);
	__u32 from = below(traffic, SOURCE - length);
	struct traffic_change change = {
		.end = end->peer,
		.offset = part_of(kind) + below(traffic, PART - length),
		.length = length,
		.outcome = &end->outcome[kind],
	};

	end->wrs[kind] = work(&end->side, opcode, kind, from, length);
	if (kind == TRAFFIC_SEND) {
		change.received = &end->peer->outcome[TRAFFIC_RECEIVE];
		/* There is room behind the message, where nothing may come. */
		end->peer->wrs[TRAFFIC_RECEIVE] =
			work(&end->peer->side, IBCHAN_OP_RECV, TRAFFIC_RECEIVE, change.offset,
			     part_of(kind) + PART - change.offset);
	} else {
		work_at(&end->wrs[kind], &end->peer->side, change.offset);
	}
	plan(traffic, change, end->side.memory + from);
}

static void plan_immediate(struct traffic *traffic, struct traffic_end *end)
{
	struct traffic_end *peer = end->peer;

	plan_message(traffic, end, TRAFFIC_WRITE_IMM);
	work_imm(&end->wrs[TRAFFIC_WRITE_IMM], below(traffic, 1U << 30));
	peer->wrs[TRAFFIC_RECEIVE_IMM] = work_empty(&peer->side, IBCHAN_OP_RECV,
						    TRAFFIC_RECEIVE_IMM);
	traffic->changes[traffic->num_changes - 1].received =
		&peer->outcome[TRAFFIC_RECEIVE_IMM];
}

static void plan_read(struct traffic *traffic, struct traffic_end *end)
{
	__u32 length = 1 + below(traffic, LONGEST);
	__u32 from = below(traffic, SOURCE - length);
	struct traffic_change change = {
		.end = end,
		.offset = part_of(TRAFFIC_READ) + below(traffic, PART - length),
		.length = length,
		.outcome = &end->outcome[TRAFFIC_READ],
		.is_answer = true,
	};

	end->wrs[TRAFFIC_READ] = work(&end->side, IBCHAN_OP_READ, TRAFFIC_READ, change.offset,
				      length);
	work_at(&end->wrs[TRAFFIC_READ], &end->peer->side, from);
	plan(traffic, change, end->peer->side.memory + from);
}

/* Half of the swaps compare with what is not there and change nothing. */
static __u64 after_atomic(struct traffic *traffic, struct ibchan_submit_wr *wr, __u64 value)
{
	wr->operand = below(traffic, 1U << 30);
	if (wr->opcode == IBCHAN_OP_FETCH_ADD)
		return value + wr->operand;
	wr->swap = wr->operand;
	wr->operand = value + below(traffic, 2);
	return wr->operand == value ? wr->swap : value;
}

static void plan_atomic(struct traffic *traffic, struct traffic_end *end, enum traffic_work kind)
{
	int opcode = kind == TRAFFIC_ADD ? IBCHAN_OP_FETCH_ADD : IBCHAN_OP_COMPARE_SWAP;
	struct traffic_change change = {
		.end = end->peer,
		.offset = ATOMICS + kind * ATOMIC_STEP,
		.length = sizeof(__u64),
		.outcome = &end->outcome[kind],
	};
	struct traffic_change result = change;
	struct ibchan_submit_wr *wr = &end->wrs[kind];
	__u64 old, value;

	memcpy(&old, end->peer->wanted + change.offset, sizeof(old));
	result.end = end;
	result.is_answer = true;
	result.offset = RESULTS + kind * ATOMIC_STEP;
	*wr = work(&end->side, opcode, kind, result.offset, sizeof(old));
	work_at(wr, &end->peer->side, change.offset);
	value = after_atomic(traffic, wr, old);
	plan(traffic, change, &value);
	plan(traffic, result, &old);
}

static void plan_round(struct traffic *traffic)
{
	int i;

	traffic->num_changes = 0;
	for (i = 0; i < 2; i++)
		fill_source(traffic, &traffic->ends[i]);
	for (i = 0; i < 2; i++) {
		struct traffic_end *end = &traffic->ends[i];

		plan_message(traffic, end, TRAFFIC_SEND);
		plan_message(traffic, end, TRAFFIC_WRITE);
		plan_immediate(traffic, end);
		plan_read(traffic, end);
		plan_atomic(traffic, end, TRAFFIC_ADD);
		plan_atomic(traffic, end, TRAFFIC_SWAP);
	}
}

/* ---- Posting, completing ---- */

/* What a channel may answer that has broken, was destroyed, or whose device has left. */
static bool is_of_break(int rc)
{
	return rc == -ESHUTDOWN || rc == -ENOENT || rc == -ENODEV;
}

static int post_works(struct traffic_end *end, unsigned int first, unsigned int num)
{
	struct ibchan_cmd_submit cmd = submission(end->wrs + first, num);
	int rc = cmd_submit(end->side.fd, &cmd);
	unsigned int i;

	for (i = 0; i < cmd.entry_num; i++)
		end->outcome[first + i] = UNDER_WAY;
	if (!rc || is_of_break(rc))
		return 0;
	fprintf(stderr, "# a post was refused with %d, reason %u\n", rc, cmd.reason.code);
	return rc;
}

static int traffic_post(struct traffic *traffic)
{
	struct traffic_end *ends = traffic->ends;
	int rc = 0;
	int i, j;

	plan_round(traffic);
	for (i = 0; i < 2; i++) {
		ends[i].error = 0;
		ends[i].status = 0;
		for (j = 0; j < TRAFFIC_WORKS; j++)
			ends[i].outcome[j] = NOT_POSTED;
	}
	for (i = 0; i < 2 && !rc; i++)
		rc = post_works(&ends[i], ASKS, TRAFFIC_WORKS - ASKS);
	for (i = 0; i < 2 && !rc; i++)
		rc = post_works(&ends[i], 0, ASKS);
	return rc;
}

static int check_received(const struct traffic_end *end, const struct ibchan_cqe *cqe)
{
	const struct ibchan_submit_wr *imm = &end->peer->wrs[TRAFFIC_WRITE_IMM];

	if (cqe->wr_id == TRAFFIC_RECEIVE && !cqe->flags &&
	    cqe->bytes == end->peer->wrs[TRAFFIC_SEND].sge.length)
		return 0;
	if (cqe->wr_id == TRAFFIC_RECEIVE_IMM && cqe->flags == IBCHAN_CQE_IMM &&
	    cqe->bytes == imm->sge.length && cqe->imm == imm->imm)
		return 0;
	fprintf(stderr, "# receive %llu: %u bytes, flags %#x, immediate %#x\n",
		(unsigned long long)cqe->wr_id, cqe->bytes, cqe->flags, cqe->imm);
	return -EBADMSG;
}

static int collect_one(struct traffic *traffic, struct traffic_end *end, int work)
{
	struct ibchan_cqe cqe;
	int rc = ring_complete(end->side.ring, work, &cqe);

	if (rc) {
		fprintf(stderr, "# work %d has not completed: %d\n", work, rc);
		return rc;
	}
	end->outcome[work] = cqe.status;
	if (cqe.status)
		return 0;
	traffic->works++;
	return work < ASKS ? 0 : check_received(end, &cqe);
}

static int collect(struct traffic *traffic, int from, int to)
{
	int rc = 0;
	int i, work;

	for (i = 0; i < 2; i++) {
		struct traffic_end *end = &traffic->ends[i];

		for (work = from; work < to && !rc; work++) {
			if (end->outcome[work] == UNDER_WAY)
				rc = collect_one(traffic, end, work);
		}
	}
	return rc;
}

static bool has_failed(const struct traffic *traffic)
{
	int i, work;

	for (i = 0; i < 2; i++) {
		for (work = 0; work < TRAFFIC_WORKS; work++) {
			int outcome = traffic->ends[i].outcome[work];

			if (outcome != UNDER_WAY && outcome != IBCHAN_STATUS_SUCCESS)
				return true;
		}
	}
	return false;
}

/* ---- What a channel says that broke ---- */

#define STATUS_ERRNO(nr, NAME, error, CLASS, hint) \
	[nr] = { error },
static const struct { __u32 error; } status_errnos[] = {
	IBCHAN_STATUSES(STATUS_ERRNO)
};

/*
 * In kernels after 6.1 soft-RoCE flushes all that is in the queue when a request cannot be
 * sent, also the work that failed, whose own status it loses (rxe_req.c, and rxe_comp.c,
 * flush_send_queue()).
 */
static bool driver_loses_status(void)
{
	unsigned int major = 0, minor = 0;
	struct utsname name;

	return !uname(&name) && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor > 1));
}

/* The channel looks at its port where a device could not do a work, or flushed without a cause. */
static bool is_without_link(const struct traffic_end *end)
{
	return end->error == ENETDOWN && (end->status == IBCHAN_STATUS_LOC_QP_OP_ERR ||
					  end->status == IBCHAN_STATUS_WR_FLUSH_ERR);
}

/* A work's status and its errno, or an errno without one. The test may destroy a channel. */
static bool is_named(const struct traffic_end *end)
{
	if (is_without_link(end))
		return true;
	if (end->status == IBCHAN_STATUS_WR_FLUSH_ERR && !driver_loses_status())
		return false;
	if (end->status)
		return end->status <= IBCHAN_STATUS_GENERAL_ERR &&
		       end->error == status_errnos[end->status].error;
	return !end->error || end->error == EADDRNOTAVAIL || end->error == ENODEV ||
	       end->error == ENOENT;
}

static int check_names(const struct traffic *traffic)
{
	int i;

	for (i = 0; i < 2; i++) {
		const struct traffic_end *end = &traffic->ends[i];

		if (is_named(end))
			continue;
		fprintf(stderr, "# a channel broke with error %u, status %u\n", end->error,
			end->status);
		return -EPROTO;
	}
	return 0;
}

static bool a_channel_broke(void *arg)
{
	struct traffic *traffic = arg;
	bool broke = false;
	int i;

	for (i = 0; i < 2; i++) {
		struct traffic_end *end = &traffic->ends[i];
		struct ibchan_cmd_channel_query cmd;
		int rc = side_query(&end->side, &cmd);

		/* The test destroyed it. */
		if (rc == -ENOENT)
			end->error = ENOENT;
		if (!rc && cmd.out.state >= IBCHAN_CHANNEL_BROKEN) {
			end->error = cmd.out.error;
			end->status = cmd.out.status;
		}
		broke |= end->error != 0;
	}
	return broke;
}

/* The end whose channel still works is no use any more, and its receives would wait. */
static int break_both(struct traffic *traffic)
{
	int rc = 0;
	int i;

	if (!eventually(a_channel_broke, traffic)) {
		fprintf(stderr, "# works failed, and no channel says why\n");
		return -EPROTO;
	}
	traffic->breaks++;
	for (i = 0; i < 2 && !rc; i++) {
		struct side *side = &traffic->ends[i].side;

		rc = channel_break(side->fd, side->channel);
		if (rc == -ENOENT || rc == -ENODEV)
			rc = 0;
	}
	return rc ? rc : check_names(traffic);
}

static int broke_once(const struct side *side)
{
	struct ibchan_history_event events[IBCHAN_HISTORY_MAX];
	int num = read_history(side, events, IBCHAN_HISTORY_MAX);
	int i, breaks = 0;

	if (num == -ENOENT)
		return 0;
	for (i = 0; i < num; i++)
		breaks += events[i].kind == IBCHAN_HISTORY_BROKEN;
	if (breaks == 1)
		return 0;
	fprintf(stderr, "# a channel broke %d times\n", breaks);
	return num < 0 ? num : -EPROTO;
}

/* Nothing reaches the memories any more when this has returned. */
static int end_channels(struct traffic *traffic)
{
	int rc = 0;
	int i;

	for (i = 0; i < 2 && !rc; i++) {
		struct side *side = &traffic->ends[i].side;

		rc = broke_once(side);
		if (!rc)
			rc = destroy(side->fd, side->channel);
		if (rc == -ENOENT)
			rc = 0;
	}
	return rc;
}

/* ---- Every byte ---- */

static bool is_known(const struct traffic_change *change)
{
	return !*change->outcome || (change->received && !*change->received);
}

static bool is_either(const struct traffic_change *change, const unsigned char *seen)
{
	const unsigned char *before = change->end->before + change->offset;
	const unsigned char *wanted = change->end->wanted + change->offset;
	__u32 i;

	/* Only atomics change so little. */
	if (change->length == sizeof(__u64) && change->offset >= ATOMICS)
		return !memcmp(seen, before, change->length) ||
		       !memcmp(seen, wanted, change->length);
	for (i = 0; i < change->length; i++) {
		if (seen[i] != before[i] && seen[i] != wanted[i])
			return false;
	}
	return true;
}

static bool is_as_wanted(const struct traffic_change *change)
{
	return !memcmp(change->end->side.memory + change->offset,
		       change->end->wanted + change->offset, change->length);
}

/* What is there counts from now on, if nobody knows what should be, or who knows is wrong. */
static int accept_either(struct traffic *traffic, const struct traffic_change *change)
{
	const unsigned char *seen = change->end->side.memory + change->offset;

	if (is_as_wanted(change))
		return 0;
	if (is_known(change) && !(change->is_answer && traffic->forgives_unfilled)) {
		fprintf(stderr, "# %u bytes at %u are not what a work that succeeded brought\n",
			change->length, change->offset);
		return -EBADMSG;
	}
	if (!is_either(change, seen)) {
		fprintf(stderr, "# %u bytes at %u are neither what was nor what was to be\n",
			change->length, change->offset);
		return -EBADMSG;
	}
	traffic->unfilled += is_known(change);
	memcpy(change->end->wanted + change->offset, seen, change->length);
	return 0;
}

static int verify(struct traffic *traffic)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; i < traffic->num_changes && !rc; i++)
		rc = accept_either(traffic, &traffic->changes[i]);
	for (i = 0; i < 2 && !rc; i++)
		rc = same_bytes(traffic->ends[i].wanted, traffic->ends[i].side.memory, MEMORY);
	return rc;
}

static int nothing_else_came(const struct traffic *traffic)
{
	unsigned int surplus = 0;
	int i;

	for (i = 0; i < 2; i++)
		surplus += ring_surplus(traffic->ends[i].side.ring);
	if (!surplus)
		return 0;
	fprintf(stderr, "# %u completions too many\n", surplus);
	return -EPROTO;
}

static int traffic_settle(struct traffic *traffic)
{
	int rc = collect(traffic, 0, ASKS);
	bool broke = has_failed(traffic);

	traffic->rounds++;
	if (!rc && broke)
		rc = break_both(traffic);
	if (!rc)
		rc = collect(traffic, ASKS, TRAFFIC_WORKS);
	if (!rc && !broke && has_failed(traffic)) {
		fprintf(stderr, "# what was sent has arrived, and a receive failed\n");
		rc = -EPROTO;
	}
	if (!rc)
		rc = nothing_else_came(traffic);
	if (!rc && broke)
		rc = end_channels(traffic);
	if (!rc)
		rc = verify(traffic);
	return rc ? rc : broke ? TRAFFIC_BROKE : 0;
}

int traffic_round(struct traffic *traffic)
{
	int rc = traffic_post(traffic);

	return rc ? rc : traffic_settle(traffic);
}

/* ---- Both ends ---- */

static int connect_ends(struct traffic *traffic)
{
	struct side *near = &traffic->ends[0].side, *far = &traffic->ends[1].side;
	int rc = side_handshake(near, &far->endpoint);

	return rc ? rc : side_handshake(far, &near->endpoint);
}

/* One that could not be connected goes before the next is made. */
int traffic_mend(struct traffic *traffic)
{
	struct traffic_end *ends = traffic->ends;
	int rc = 0;
	int i;

	for (i = 0; i < 2 && !rc; i++) {
		destroy(ends[i].side.fd, ends[i].side.channel);
		rc = side_channel(&ends[i].side, &traffic->options);
	}
	return rc ? rc : connect_ends(traffic);
}

void traffic_init(struct traffic *traffic, const char *near, const char *far)
{
	memset(traffic, 0, sizeof(*traffic));
	traffic->devices[0] = near;
	traffic->devices[1] = far;
	traffic->options = side_defaults();
	traffic->options.memory = MEMORY;
	traffic->options.mr_access = IBCHAN_ACCESS_ALL;
	traffic->options.params.access = IBCHAN_ACCESS_ALL;
	if (slow())
		traffic->options.params.ack_timeout = SLOW_ACK_TIMEOUT;
	traffic->seed = traffic_seed();
}

static int open_end(struct traffic *traffic, int i)
{
	struct traffic_end *end = &traffic->ends[i];
	int rc;

	end->peer = &traffic->ends[!i];
	end->before = malloc(MEMORY);
	end->wanted = malloc(MEMORY);
	if (!end->before || !end->wanted)
		return -ENOMEM;
	traffic->options.device = traffic->devices[i];
	rc = side_open(&end->side, &traffic->options);
	if (rc)
		return rc;
	pattern(end->side.memory, MEMORY, below(traffic, 1U << 30));
	memcpy(end->wanted, end->side.memory, MEMORY);
	return 0;
}

int traffic_open(struct traffic *traffic)
{
	int rc = open_end(traffic, 0);

	if (!rc)
		rc = open_end(traffic, 1);
	if (!rc)
		rc = connect_ends(traffic);
	if (rc)
		traffic_close(traffic);
	return rc;
}

void traffic_close(struct traffic *traffic)
{
	int i;

	for (i = 0; i < 2; i++) {
		struct traffic_end *end = &traffic->ends[i];

		side_close(&end->side);
		free(end->before);
		free(end->wanted);
		end->before = NULL;
		end->wanted = NULL;
	}
}
