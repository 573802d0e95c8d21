// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "encounter.h"
#include "window.h"
#include "work.h"
#include "world.h"

#define SOURCE		0	/* in the side's memory: what is read */
#define TARGETS		16384	/* what is received */

static size_t place(__u64 id)
{
	return id % (ENCOUNTER_MEMORY / ENCOUNTER_BYTES) * ENCOUNTER_BYTES;
}

/* A read and, every second time, a receive; alone it takes the short way through the module. */
static int post_into(struct encounter *encounter, __u32 region, __u64 base, const struct ring *ring)
{
	struct ibchan_submit_wr wrs[2] = {};
	unsigned int i, num = encounter->round % 2 + 1;
	__u64 id = __atomic_fetch_add(&encounter->next_id, 2, __ATOMIC_RELAXED);
	struct ibchan_cmd_submit cmd = submission(wrs, num);
	int rc;

	wrs[0] = work(&encounter->side, IBCHAN_OP_READ, id, base + place(id), ENCOUNTER_BYTES);
	wrs[0].sge.mr = region;
	wrs[0].flags = num == 1 ? IBCHAN_WR_UNCHECKED : 0;
	work_at(&wrs[0], &encounter->side, SOURCE);
	wrs[1] = work(&encounter->side, IBCHAN_OP_RECV, id + 1, TARGETS + place(id),
		      ENCOUNTER_BYTES);
	if (ring) {
		cmd.cq = ring->cq;
		cmd.min_complete = 1;
		cmd.timeout_ns = patience_ms() * 1000000LL;
	}
	rc = cmd_submit(encounter->side.fd, &cmd);
	__atomic_fetch_add(&encounter->accepted, cmd.entry_num, __ATOMIC_RELAXED);
	for (i = 0; i < cmd.entry_num; i++)
		__atomic_fetch_or(&encounter->ids, 1ULL << (id + i), __ATOMIC_RELAXED);
	return rc;
}

int encounter_post(struct encounter *encounter)
{
	return post_into(encounter, encounter->region, 0, NULL);
}

int encounter_post_plain(struct encounter *encounter)
{
	return post_into(encounter, IBCHAN_MR_PLAIN, address(encounter->memory), NULL);
}

int encounter_finish(struct encounter *encounter)
{
	return post_into(encounter, encounter->region, 0, encounter->side.ring);
}

int encounter_break(struct encounter *encounter)
{
	return channel_break(encounter->side.fd, encounter->side.channel);
}

int encounter_destroy(struct encounter *encounter)
{
	return destroy(encounter->side.fd, encounter->side.channel);
}

int encounter_dereg(struct encounter *encounter)
{
	return destroy(encounter->side.fd, encounter->region);
}

int encounter_destroy_cq(struct encounter *encounter)
{
	return destroy(encounter->side.fd, encounter->side.own_ring.cq);
}

int encounter_query(struct encounter *encounter)
{
	int state = side_state(&encounter->side);

	return state < 0 ? state : 0;
}

int encounter_register(struct encounter *encounter)
{
	struct ibchan_cmd_mr_reg cmd = {
		.addr = address(encounter->memory),
		.length = ENCOUNTER_MEMORY,
		.pd = encounter->side.pd,
		.access = IBCHAN_ACCESS_LOCAL,
	};
	int rc = cmd_mr_reg(encounter->side.fd, &cmd);

	return rc ? rc : destroy(encounter->side.fd, cmd.out_mr);
}

int encounter_build(struct encounter *encounter)
{
	struct side_options options = side_defaults();
	struct side other = encounter->side;
	int rc = side_channel(&other, &options);

	return rc ? rc : destroy(other.fd, other.channel);
}

int encounter_fork(struct encounter *encounter)
{
	pid_t child = fork();

	if (!child) {
		memset(encounter->memory, 0xee, ENCOUNTER_MEMORY);
		memset(encounter->side.memory, 0xee, encounter->side.length);
		_exit(0);
	}
	return child_result(child);
}

int encounter_close(struct encounter *encounter)
{
	encounter->closed = true;
	side_close(&encounter->side);
	return 0;
}

static int open_region(struct encounter *encounter)
{
	struct ibchan_cmd_mr_reg cmd = {
		.length = ENCOUNTER_MEMORY,
		.pd = encounter->side.pd,
		.access = IBCHAN_ACCESS_LOCAL,
	};
	int rc;

	encounter->memory = mmap(NULL, ENCOUNTER_MEMORY, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (encounter->memory == MAP_FAILED) {
		encounter->memory = NULL;
		return -errno;
	}
	cmd.addr = address(encounter->memory);
	rc = cmd_mr_reg(encounter->side.fd, &cmd);
	encounter->region = cmd.out_mr;
	return rc;
}

int encounter_open(struct encounter *encounter, unsigned int round)
{
	struct side_options options = side_defaults();
	int rc;

	memset(encounter, 0, sizeof(*encounter));
	encounter->round = round;
	encounter->visit_us = slow() ? 50000 : 5000;
	rc = side_open(&encounter->side, &options);
	if (!rc)
		rc = side_handshake(&encounter->side, &encounter->side.endpoint);
	if (!rc)
		rc = open_region(encounter);
	if (!rc)
		pattern(encounter->side.memory + SOURCE, ENCOUNTER_BYTES, round);
	return rc;
}

void encounter_end(struct encounter *encounter)
{
	side_close(&encounter->side);
	if (encounter->memory)
		munmap(encounter->memory, ENCOUNTER_MEMORY);
	encounter->memory = NULL;
}

/* What a completion says of its work: is it possible, and new? */
static int check_completion(struct encounter *encounter, const struct ibchan_cqe *cqe)
{
	__u64 bit = cqe->wr_id < 64 ? 1ULL << cqe->wr_id : 0;

	if (!(encounter->ids & bit)) {
		fprintf(stderr, "# work %llu ended, and had ended or was never accepted\n",
			(unsigned long long)cqe->wr_id);
		return -EBADMSG;
	}
	encounter->ids &= ~bit;
	if (cqe->status)
		return cqe->error ? 0 : -EBADMSG;
	if (cqe->opcode != IBCHAN_OP_READ)
		return -EBADMSG;
	return same_bytes(encounter->side.memory + SOURCE, encounter->memory + place(cqe->wr_id),
			  ENCOUNTER_BYTES);
}

static bool all_are_there(void *arg)
{
	struct encounter *encounter = arg;

	return ring_surplus(encounter->side.ring) >= encounter->accepted;
}

int encounter_settle(struct encounter *encounter)
{
	struct ring *ring = encounter->side.ring;
	unsigned int i;
	int rc = 0;

	if (encounter->closed)
		return 0;
	encounter_break(encounter);
	if (!eventually(all_are_there, encounter)) {
		fprintf(stderr, "# %u accepted, %u completed\n", encounter->accepted,
			ring->stashed);
		return -ETIMEDOUT;
	}
	for (i = 0; i < ring->stashed && !rc; i++)
		rc = check_completion(encounter, &ring->stash[i]);
	return rc;
}

/* ---- the two of them ---- */

struct first {
	pthread_t thread;
	struct encounter *encounter;
	racer *run;
	int told;
	bool back;
};

static void stay_on(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	/* With one CPU only they meet less often. */
	sched_setaffinity(0, sizeof(set), &set);
}

static void *first_body(void *arg)
{
	struct first *first = arg;

	stay_on(0);
	first->told = first->run(first->encounter);
	__atomic_store_n(&first->back, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Spins, as he does: 1 while he is there, 0 when he was; -ENODATA: he does not come by. */
static int await_visit(const struct first *first, const char *window, unsigned int before)
{
	__u64 end = now_ms() + patience_ms();
	struct visits visits;
	int rc;

	do {
		rc = window_visits(window, &visits);
		if (!rc && visits.entered != before)
			return visits.entered != visits.left;
	} while (!rc && now_ms() < end);
	if (!rc)
		fprintf(stderr, "# nobody came to the window %s; the first is %s: %d\n", window,
			__atomic_load_n(&first->back, __ATOMIC_ACQUIRE) ? "back" : "away",
			first->told);
	return rc ? rc : -ENODATA;
}

int encounter_hold(struct encounter *encounter, const char *window, racer *run, racer *second,
		   int told[2])
{
	struct first first = { .encounter = encounter, .run = run };
	struct visits visits;
	int came, rc;

	rc = window_visits(window, &visits);
	if (!rc)
		rc = window_widen(window, encounter->visit_us);
	if (!rc)
		rc = -pthread_create(&first.thread, NULL, first_body, &first);
	if (rc)
		return rc;
	stay_on(1);
	came = await_visit(&first, window, visits.entered);
	told[1] = second(encounter);
	rc = window_widen(window, 0);
	pthread_join(first.thread, NULL);
	told[0] = first.told;
	return rc ? rc : came;
}
