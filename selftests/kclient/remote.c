// SPDX-License-Identifier: GPL-2.0-only
/* What peers reach, and what they do not (M1, M4, B10's first half, law 11). */
#include <linux/slab.h>
#include <linux/string.h>

#include "job.h"
#include "suites.h"

/* Regions of the peer's over each kind of memory, written and read from outside. */
static void reach(struct world *w, u8 *memory, u32 length)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_remote remote;
	struct ibchan_mr *mr;

	mr = world_mr(w, b->pd, memory, length, IBCHAN_ACCESS_SHARED);
	if (!mr || !expect_eq(w, ibchan_mr_remote(mr, &remote), 0))
		return;
	fill_pattern(a->buf, length, 1);
	expect_eq(w, ibchan_channel_write(a->ch, side_sge(a, 0, length), 1, &remote, NULL), 0);
	expect(w, has_pattern(memory, length, 1));
	fill_pattern(memory, length, 2);
	expect_eq(w, ibchan_channel_read(a->ch, side_sge(a, 0, length), 1, &remote, NULL), 0);
	expect(w, has_pattern(a->buf, length, 2));
}

static void shared_lowmem_and_vmalloc_are_reached_alike(struct world *w)
{
	u8 *low = world_kalloc(w, 30000), *high = world_valloc(w, 30000);

	if (!low || !high || world_default_pair(w))
		return;
	reach(w, low, 30000);
	reach(w, high, 30000);
	reach(w, low + 123, 20001);
	reach(w, high + 123, 20001);
}

static int remote_status(struct world *w, u8 opcode, const struct ibchan_remote *remote,
			 u32 length)
{
	struct side *a = &w->side[0];
	struct ibchan_outcome outcome = {};
	struct ibchan_wr wr;

	wr = ibchan_wr_one_sided(opcode, side_sge(a, 0, length), 1, remote);
	/* Not checked here, so that the peer's device has to. */
	wr.remote_length = IBCHAN_REMOTE_UNCHECKED;
	ibchan_channel_run(a->ch, &wr, &outcome);
	expect_eq(w, outcome.posted, 1);
	return outcome.completion.status;
}

static void one_byte_before_a_shared_region_is_refused_by_its_device(struct world *w)
{
	struct side *b = &w->side[1];
	struct ibchan_remote remote;
	struct ibchan_mr *mr;

	if (world_default_pair(w))
		return;
	/* Begins inside a page, so that the byte before it is there. */
	mr = world_mr(w, b->pd, b->buf + 100, 4000, IBCHAN_ACCESS_SHARED);
	if (!mr || !expect_eq(w, ibchan_mr_remote(mr, &remote), 0))
		return;
	remote.addr--;
	fill_pattern(b->buf, 8192, 1);
	expect_eq(w, remote_status(w, IBCHAN_OP_WRITE, &remote, 8), IBCHAN_STATUS_REM_ACCESS_ERR);
	expect(w, has_pattern(b->buf, 8192, 1));
}

static void a_region_without_remote_read_cannot_be_read(struct world *w)
{
	struct side *b = &w->side[1];

	if (world_default_pair(w) ||
	    !side_share_as(b, IBCHAN_ACCESS_LOCAL | IBCHAN_ACCESS_REMOTE_WRITE))
		return;
	expect_eq(w, remote_status(w, IBCHAN_OP_WRITE, &b->remote, 8), IBCHAN_STATUS_SUCCESS);
	expect_eq(w, remote_status(w, IBCHAN_OP_READ, &b->remote, 8),
		  IBCHAN_STATUS_REM_ACCESS_ERR);
}

/* Whoever learns a key of another domain cannot use it on this channel. */
static void a_key_of_another_domain_is_refused_by_its_device(struct world *w)
{
	struct side *b = &w->side[1];
	struct ibchan_remote remote;
	struct ibchan_pd *pd;
	struct ibchan_mr *mr;

	if (world_default_pair(w))
		return;
	pd = world_pd(w, b->dev);
	mr = pd ? world_mr(w, pd, b->buf, 4096, IBCHAN_ACCESS_SHARED) : NULL;
	if (!mr || !expect_eq(w, ibchan_mr_remote(mr, &remote), 0))
		return;
	expect_eq(w, remote_status(w, IBCHAN_OP_WRITE, &remote, 8), IBCHAN_STATUS_REM_ACCESS_ERR);
}

static void many_shared_regions_have_their_own_keys(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_remote remotes[16];
	struct ibchan_mr *mr;
	int i, j;

	if (world_default_pair(w))
		return;
	for (i = 0; i < 16; i++) {
		mr = world_mr(w, b->pd, b->buf + i * 4096, 4096, IBCHAN_ACCESS_SHARED);
		if (!mr || !expect_eq(w, ibchan_mr_remote(mr, &remotes[i]), 0))
			return;
		for (j = 0; j < i; j++)
			expect(w, remotes[j].rkey != remotes[i].rkey);
	}
	for (i = 0; i < 16; i++) {
		fill_pattern(a->buf, 4096, i);
		expect_eq(w, ibchan_channel_write(a->ch, side_sge(a, 0, 4096), 1, &remotes[i],
						  NULL), 0);
	}
	for (i = 0; i < 16; i++)
		expect(w, has_pattern(b->buf + i * 4096, 4096, i));
}

static void a_part_of_a_remote_region_stays_inside(struct world *w)
{
	const struct ibchan_remote remote = { .addr = 1000, .length = 100, .rkey = 5 };
	struct ibchan_remote sub;

	expect_eq(w, ibchan_remote_sub(&remote, 40, 60, &sub), 0);
	expect(w, sub.addr == 1040 && sub.length == 60 && sub.rkey == 5);
	expect_eq(w, ibchan_remote_sub(&remote, 100, 0, &sub), 0);
	expect_eq(w, ibchan_remote_sub(&remote, 40, 61, &sub), -EINVAL);
	expect_eq(w, ibchan_remote_sub(&remote, 101, 0, &sub), -EINVAL);
	expect_eq(w, ibchan_remote_sub(&remote, U64_MAX, 2, &sub), -EINVAL);
	sub = ibchan_remote_sub_unchecked(&remote, 90, 20);
	expect(w, sub.addr == 1090 && sub.length == 20);
	sub = remote;
	expect_eq(w, ibchan_remote_sub(&sub, 10, 10, &sub), 0);
	expect_eq(w, sub.addr, 1010);
}

struct sample {
	u32 head;
	u64 counter;
	u8 tail[20];
};

static void fields_and_elements_of_a_remote_region_have_names(struct world *w)
{
	const struct ibchan_remote remote = { .addr = 4096, .length = 100, .rkey = 5 };
	struct ibchan_remote small = remote;
	struct ibchan_remote sub;

	expect_eq(w, ibchan_remote_field(&remote, struct sample, counter, &sub), 0);
	expect_eq(w, sub.addr, 4096 + offsetof(struct sample, counter));
	expect_eq(w, sub.length, 8);
	small.length = 15;
	expect_eq(w, ibchan_remote_field(&small, struct sample, counter, &sub), -EINVAL);
	expect_eq(w, ibchan_remote_element(&remote, u32, 24, &sub), 0);
	expect_eq(w, sub.addr, 4096 + 96);
	expect_eq(w, ibchan_remote_element(&remote, u32, 25, &sub), -EINVAL);
	expect_eq(w, ibchan_remote_element(&remote, u64, 1ULL << 61, &sub), -EINVAL);
}

static void a_remote_region_travels_as_bytes(struct world *w)
{
	const struct ibchan_remote remote = {
		.addr = 0x1122334455667788ULL, .length = 0x0102030405ULL, .rkey = 0xa1b2c3d4,
	};
	static const u8 expected[IBCHAN_REMOTE_SIZE] = {
		0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
		0, 0, 0, 1, 2, 3, 4, 5, 0xa1, 0xb2, 0xc3, 0xd4,
	};
	struct ibchan_remote back = {};
	u8 bytes[IBCHAN_REMOTE_SIZE];

	ibchan_remote_pack(&remote, bytes);
	expect(w, !memcmp(bytes, expected, sizeof(bytes)));
	expect_eq(w, ibchan_remote_unpack(&back, bytes), 0);
	expect_eq(w, back.addr, remote.addr);
	expect_eq(w, back.length, remote.length);
	expect_eq(w, back.rkey, remote.rkey);
	memset(bytes, 0xff, sizeof(bytes));
	expect_eq(w, ibchan_remote_unpack(&back, bytes), -EINVAL);
	expect_eq(w, back.rkey, remote.rkey);
}

static void a_request_beyond_the_remote_region_is_refused_here(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_outcome outcome = {};

	if (world_default_pair(w) || !side_share(b))
		return;
	b->remote.length = 63;
	expect_eq(w, ibchan_channel_write(a->ch, side_sge(a, 0, 64), 1, &b->remote, &outcome),
		  -EINVAL);
	expect_eq(w, outcome.reason.code, IBCHAN_REASON_REMOTE_BOUNDS);
	expect_eq(w, outcome.reason.value[0], 64);
	expect_eq(w, outcome.reason.value[1], 63);
	expect_eq(w, ibchan_channel_write(a->ch, side_sge(a, 0, 63), 1, &b->remote, NULL), 0);
}

/* @a sends what invalidates a key of @b's. Returns whether @b has heard of it. */
static bool invalidate(struct side *a, struct side *b, u32 rkey)
{
	struct job *send = world_jobs(a->world, 1), *receive = world_jobs(a->world, 1);
	struct ibchan_sge sge = ibchan_sge_unchecked(a->local, 0, 8);
	struct ibchan_wr wr = ibchan_wr_send_invalidate(&sge, 1, rkey);

	expect_eq(a->world, job_receive(receive, b, SIDE_BYTES - 64, 64), 0);
	expect_eq(a->world, job_post(send, a->ch, &wr, NULL), 0);
	if (!job_ended(receive) || !job_ended(send) || receive->completion.error)
		return false;
	expect_eq(a->world, send->completion.opcode, IBCHAN_OP_SEND_INVALIDATE);
	expect_eq(a->world, receive->completion.bytes, 8);
	expect_eq(a->world, receive->completion.flags, IBCHAN_CQE_INVALIDATED);
	return expect_eq(a->world, receive->completion.imm, rkey);
}

static void expect_invalidated(struct side *side, struct ibchan_mr *mr)
{
	struct ibchan_sge sges[2] = {
		ibchan_sge_unchecked(side->local, 0, 8), ibchan_sge_unchecked(mr, 64, 8),
	};
	const struct ibchan_wr wrs[] = {
		ibchan_wr_send(sges, 2),
		ibchan_wr_receive(sges, 2),
		ibchan_wr_write(sges, 2, &side->remote),
		ibchan_wr_read(sges, 2, &side->remote),
	};
	struct ibchan_reason reason;
	struct ibchan_remote remote;
	int i;

	for (i = 0; i < ARRAY_SIZE(wrs); i++) {
		reason = (struct ibchan_reason) {};
		expect_eq(side->world, ibchan_post_wr(side->ch, &wrs[i], &reason), -EKEYREVOKED);
		expect_eq(side->world, reason.code, IBCHAN_REASON_MR_INVALIDATED);
		expect_eq(side->world, reason.wr, 0);
		expect_eq(side->world, reason.element, 1);
	}
	expect_eq(side->world, ibchan_mr_remote(mr, &remote), -EKEYREVOKED);
	expect_eq(side->world, ibchan_mr_rkey(mr), 0);
}

static void posts_on_a_region_that_a_peer_has_invalidated_are_refused(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_mr *ended, *other;
	struct ibchan_remote remote;
	struct ibchan_sge sge;

	if (world_default_pair(w) || !side_share(b) || !side_share(a))
		return;
	ended = b->shared;
	other = world_mr(w, b->pd, b->buf, SIDE_BYTES, IBCHAN_ACCESS_ALL);
	sge = ibchan_sge_unchecked(ended, 0, 8);
	expect_eq(w, ibchan_channel_write(b->ch, &sge, 1, &a->remote, NULL), 0);
	if (!other || !invalidate(a, b, b->remote.rkey))
		return;
	expect_invalidated(b, ended);
	/* No other region has ended, nor the channel. */
	sge = ibchan_sge_unchecked(other, 0, 8);
	expect_eq(w, ibchan_channel_write(b->ch, &sge, 1, &a->remote, NULL), 0);
	expect_eq(w, ibchan_mr_remote(other, &remote), 0);
	expect_eq(w, ibchan_channel_write(a->ch, side_sge(a, 0, 8), 1, &remote, NULL), 0);
	expect_eq(w, channel_state(b->ch), IBCHAN_CHANNEL_CONNECTED);
}

static void an_invalidated_region_can_be_registered_anew(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	int i;

	if (world_default_pair(w))
		return;
	for (i = 0; i < 8; i++) {
		if (!side_share(b) || !invalidate(a, b, b->remote.rkey))
			return;
		expect_eq(w, ibchan_mr_try_dereg(b->shared), 0);
		if (!side_share(b))
			return;
		expect_eq(w, ibchan_channel_write(a->ch, side_sge(a, 0, 8), 1, &b->remote, NULL),
			  0);
		expect_eq(w, ibchan_channel_write(a->ch, side_sge(a, 0, 8), 1, &b->remote, NULL),
			  0);
	}
}

/*
 * A device that looks at domains refuses it. soft-RoCE does not: then the domain of the key hears
 * of nothing, and can still give the region up.
 */
static void a_key_of_another_domain_ends_nothing_of_the_channels_own(struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibchan_mr *foreign;
	struct ibchan_remote remote;
	struct ibchan_pd *pd;
	bool told;

	if (world_default_pair(w) || !side_share(b) || !side_share(a))
		return;
	pd = world_pd(w, b->dev);
	foreign = pd ? world_mr(w, pd, b->buf, SIDE_BYTES, IBCHAN_ACCESS_ALL) : NULL;
	if (!foreign)
		return;
	told = invalidate(a, b, ibchan_mr_rkey(foreign));
	expect_eq(w, ibchan_mr_remote(foreign, &remote), 0);
	expect_eq(w, ibchan_mr_remote(b->shared, &remote), 0);
	if (told)
		expect_eq(w, ibchan_channel_write(b->ch, side_sge(b, 0, 8), 1, &a->remote, NULL),
			  0);
	expect_eq(w, ibchan_mr_try_dereg(foreign), 0);
}

static const struct test_case remote_cases[] = {
	CASE(shared_lowmem_and_vmalloc_are_reached_alike),
	CASE(one_byte_before_a_shared_region_is_refused_by_its_device),
	CASE(a_region_without_remote_read_cannot_be_read),
	CASE(a_key_of_another_domain_is_refused_by_its_device),
	CASE(many_shared_regions_have_their_own_keys),
	CASE(a_part_of_a_remote_region_stays_inside),
	CASE(fields_and_elements_of_a_remote_region_have_names),
	CASE(a_remote_region_travels_as_bytes),
	CASE(a_request_beyond_the_remote_region_is_refused_here),
	CASE(posts_on_a_region_that_a_peer_has_invalidated_are_refused),
	CASE(an_invalidated_region_can_be_registered_anew),
	CASE(a_key_of_another_domain_ends_nothing_of_the_channels_own),
};

SUITE(remote);
