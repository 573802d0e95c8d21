// SPDX-License-Identifier: GPL-2.0-only
/* Posts of scatterlists of which the device takes a part, or nothing. */
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "faults.h"

#define ENTRIES		100
#define ENTRY_BYTES	64

/**
 * struct cut - a list with a message behind it, in one post
 * @w: the world
 * @sgl: the list
 * @jobs: the list's, the message's, and the peer's receive
 * @wrs: the list and the message
 * @places: that the list takes
 */
struct cut {
	struct world *w;
	struct scatterlist sgl[ENTRIES];
	struct job *jobs;
	struct ibchan_wr wrs[2];
	u32 places;
};

static int make_cut(struct cut *cut, struct world *w)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct pair_init init;
	int i;

	cut->w = w;
	pair_defaults(&init);
	init.max_sgl = ENTRIES;
	init.params.max_send_wr = ENTRIES + 1;
	if (fault_fresh_pair(w, &init) || !side_share(b))
		return -ENODEV;
	cut->jobs = world_jobs(w, 3);
	if (!cut->jobs)
		return -ENOMEM;
	sg_init_table(cut->sgl, ENTRIES);
	for (i = 0; i < ENTRIES; i++)
		sg_set_buf(&cut->sgl[i], a->buf + i * 2 * ENTRY_BYTES, ENTRY_BYTES);
	cut->wrs[0] = ibchan_wr_sgl(IBCHAN_OP_WRITE, cut->sgl, ENTRIES, &b->remote);
	cut->wrs[0].work = &cut->jobs[0].work;
	cut->wrs[1] = job_wr(&cut->jobs[1], IBCHAN_OP_SEND, a, 0, ENTRY_BYTES);
	cut->places = ibchan_sgl_places(a->ch, IBCHAN_OP_WRITE, ENTRIES);
	expect_eq(w, job_receive(&cut->jobs[2], b, SIDE_BYTES - ENTRY_BYTES, ENTRY_BYTES), 0);
	return 0;
}

/* The device takes @taken WRs. Returns how many requests were accepted. */
static u32 post_cut(struct cut *cut, u32 taken)
{
	struct fault fault = fault_arm(IBCHAN_FAULT_POST_SEND, taken + 1, FAULT_ERROR);
	struct ibchan_reason reason = {};
	u32 accepted = ~0U;

	expect_eq(cut->w, ibchan_post(cut->w->side[0].ch, cut->wrs, 2, &accepted, &reason),
		  FAULT_ERROR);
	expect(cut->w, fault_fired(&fault));
	expect_eq(cut->w, reason.code, IBCHAN_REASON_POST_FAILED);
	expect_eq(cut->w, reason.wr, accepted);
	faults_off();
	return accepted;
}

/* The device takes @taken requests; what it did not take can be posted again. */
static void post_in_two(struct world *w, u32 taken)
{
	struct cut *cut = kzalloc(sizeof(*cut), GFP_KERNEL);
	struct side *a = &w->side[0];
	u32 accepted;

	if (!cut || make_cut(cut, w))
		goto out;
	expect_eq(w, post_cut(cut, taken ? cut->places : 0), taken);
	expect_eq(w, channel_state(a->ch), IBCHAN_CHANNEL_CONNECTED);
	expect(w, channel_in_flight(a->ch) <= taken * cut->places);
	expect_eq(w, ibchan_post(a->ch, cut->wrs + taken, 2 - taken, &accepted, NULL), 0);
	expect_soon(w, jobs_ended(cut->jobs, 3) == 3);
	expect_eq(w, jobs_repeated(cut->jobs, 3), 0);
	expect_eq(w, cut->jobs[0].completion.error, 0);
out:
	world_give_back(w);
	kfree(cut);
}

void a_list_that_the_device_does_not_take_never_was(struct world *w)
{
	post_in_two(w, 0);
}

void a_message_behind_a_list_that_is_not_taken_leaves_the_list_be(struct world *w)
{
	post_in_two(w, 1);
}

/* It uses the list's memory, so the list has been posted; it ends with the channel. */
void a_list_of_which_the_device_takes_a_part_ends_with_its_channel(struct world *w)
{
	struct cut *cut = kzalloc(sizeof(*cut), GFP_KERNEL);
	struct side *a = &w->side[0];
	u32 taken, places = 2;

	for (taken = 1; cut && taken < places; taken++) {
		if (make_cut(cut, w))
			break;
		places = cut->places;
		if (places == 1) {
			world_skip(w, "the device takes the list in one WR");
			break;
		}
		expect_eq(w, post_cut(cut, taken), 1);
		expect_soon(w, jobs_ended(cut->jobs, 1) == 1);
		expect(w, cut->jobs[0].completion.error);
		expect_eq(w, jobs_ended(cut->jobs + 1, 1), 0);
		expect_soon(w, channel_state(a->ch) == IBCHAN_CHANNEL_BROKEN);
		/* broken() is called behind that. */
		expect_soon(w, READ_ONCE(a->error) == FAULT_ERROR);
		side_close(a);
		side_close(&w->side[1]);
		expect_eq(w, jobs_repeated(cut->jobs, 3), 0);
	}
	world_give_back(w);
	kfree(cut);
}
