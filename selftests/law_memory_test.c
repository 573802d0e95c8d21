// SPDX-License-Identifier: GPL-2.0-only
/*
 * Law 1: what a process does to its mapping while the device has work for the pages behind it.
 * Whatever it is, the bytes go into the pages and come out of the pages that were pinned; the
 * pages that the process, or anybody else, has got instead are neither written nor read.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>

#include "canary.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define LENGTH	65536
/* Of the first half the works speak, at the second the peer reads back. */
#define HALF	32768
#define OTHER	0x11

/* A side whose memory is toyed with, and its peer. */
struct stage {
	struct pair pair;
	struct side *own;
	struct side *peer;
	int plain;		/* nothing but a work keeps the memory */
	int file;		/* of the memory, or -1 */
	unsigned char *view;	/* what the process sees now instead of its memory, or NULL */
	size_t seen;		/* bytes of it that still are the memory, or none */
	struct frames frames;
};

static void *other_pages(void *at)
{
	return mmap(at, LENGTH, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
}

/*
 * Gives the side other memory, which is registered instead of its own. Pages that are there
 * before they are pinned come from the allocator's movable lists, as a canary's do.
 */
static int adopt(struct side *side, void *map)
{
	struct ibchan_cmd_mr_reg cmd = {
		.addr = address(map),
		.length = LENGTH,
		.pd = side->pd,
		.access = IBCHAN_ACCESS_SHARED,
	};
	int rc = map == MAP_FAILED ? -errno : destroy(side->fd, side->mr);

	if (rc)
		return rc;
	munmap(side->memory, side->length);
	memset(map, OTHER, LENGTH);
	side->memory = map;
	side->length = LENGTH;
	rc = cmd_mr_reg(side->fd, &cmd);
	side->mr = cmd.out_mr;
	side->rkey = cmd.out_rkey;
	return rc;
}

static int adopt_file(struct stage *stage)
{
	stage->file = memfd_create("law", MFD_CLOEXEC);
	if (stage->file < 0 || ftruncate(stage->file, LENGTH))
		return -errno;
	return adopt(stage->own, mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED,
				      stage->file, 0));
}

/* The pair is built, not connected: a work for a peer that does not answer yet is in flight. */
static int stage_open(struct stage *stage, int of_file, int plain)
{
	struct side_options options = side_defaults();
	int rc;

	memset(stage, 0, sizeof(*stage));
	stage->file = -1;
	stage->plain = plain;
	options.memory = LENGTH;
	options.params.rnr_retries = 7;
	/* For soft-RoCE that is without end. */
	options.params.ack_retries = 7;
	/* 17 ms, for a peer that answers only after a while. */
	options.params.ack_timeout = slow() ? QUICK_ACK_TIMEOUT : 12;
	rc = pair_build(&stage->pair, PAIR_TWO_DEVICES, &options);
	stage->own = stage->pair.a;
	stage->peer = stage->pair.b;
	if (!rc)
		rc = of_file ? adopt_file(stage) : adopt(stage->own, other_pages(NULL));
	if (!rc && plain)
		rc = destroy(stage->own->fd, stage->own->mr);
	if (rc)
		return rc;
	pattern(stage->own->memory, LENGTH, 21);
	pattern(stage->peer->memory, LENGTH, 22);
	return frames_of(stage->own->memory, plain ? HALF : LENGTH, &stage->frames);
}

static void stage_close(struct stage *stage)
{
	/* Games unmap it, or put something else there. */
	if (stage->view)
		munmap(stage->view, LENGTH);
	pair_close(&stage->pair);
	if (stage->file >= 0)
		close(stage->file);
}

/* --- works that are in flight for as long as a test wants --- */

struct flow {
	const char *name;
	int opcode;
	int own_posts;
	int inwards;	/* into the memory, not out of it */
};

static const struct flow flows[] = {
	{ "receive", IBCHAN_OP_RECV, 1, 1 },
	{ "the peer's write", IBCHAN_OP_WRITE, 0, 1 },
	{ "read", IBCHAN_OP_READ, 1, 1 },
	{ "send", IBCHAN_OP_SEND, 1, 0 },
	{ "write", IBCHAN_OP_WRITE, 1, 0 },
	{ "the peer's read", IBCHAN_OP_READ, 0, 0 },
};

/* The first half of a side's memory, which is the region's or is named by its address. */
static struct ibchan_submit_wr half_of(const struct stage *stage, const struct side *side,
				       int opcode, __u64 wr_id)
{
	struct ibchan_submit_wr wr = work(side, opcode, wr_id, 0, HALF);

	if (stage->plain && side == stage->own) {
		wr.sge.offset = address(side->memory);
		wr.sge.mr = IBCHAN_MR_PLAIN;
	}
	return wr;
}

static int is_two_sided(const struct flow *flow)
{
	return flow->opcode == IBCHAN_OP_SEND || flow->opcode == IBCHAN_OP_RECV;
}

static int flow_start(struct stage *stage, const struct flow *flow)
{
	struct side *from = flow->own_posts ? stage->own : stage->peer;
	struct side *to = flow->own_posts ? stage->peer : stage->own;
	struct ibchan_submit_wr wr = half_of(stage, from, flow->opcode, 1);
	int rc;

	if (is_two_sided(flow)) {
		rc = pair_connect(&stage->pair);
	} else {
		work_at(&wr, to, 0);
		rc = side_handshake(from, &to->endpoint);
	}
	return rc ? rc : post_one(from, wr);
}

static int flow_finish(struct stage *stage, const struct flow *flow)
{
	struct side *from = flow->own_posts ? stage->own : stage->peer;
	struct side *to = flow->own_posts ? stage->peer : stage->own;
	int rc;

	if (!is_two_sided(flow)) {
		rc = side_handshake(to, &from->endpoint);
		return rc ? rc : succeed(from, 1, NULL);
	}
	rc = post_one(to, work(to, flow->inwards ? IBCHAN_OP_SEND : IBCHAN_OP_RECV, 2, 0, HALF));
	if (!rc)
		rc = succeed(to, 2, NULL);
	return rc ? rc : succeed(from, 1, NULL);
}

/* --- games --- */

struct game {
	int (*play)(struct stage *stage);
	int of_file;
	/* What a registration of the range says afterwards. */
	int again;
};

/* The process goes on with what it has got instead. */
static int go_on_with(struct stage *stage, void *map)
{
	if (map == MAP_FAILED)
		return -errno;
	stage->view = map;
	memset(map, OTHER, LENGTH);
	return 0;
}

static int play_unmap(struct stage *stage)
{
	return munmap(stage->own->memory, LENGTH) ? -errno : 0;
}

static int play_replace(struct stage *stage)
{
	return go_on_with(stage, other_pages(stage->own->memory));
}

static int play_move(struct stage *stage)
{
	void *moved = mremap(stage->own->memory, LENGTH, LENGTH, MREMAP_MAYMOVE | MREMAP_FIXED,
			     other_pages(NULL));

	if (moved == MAP_FAILED)
		return -errno;
	stage->view = moved;
	stage->seen = LENGTH;
	return 0;
}

static int play_move_and_replace(struct stage *stage)
{
	int rc = play_move(stage);

	if (rc || munmap(stage->view, LENGTH))
		return rc ? rc : -errno;
	stage->seen = 0;
	return go_on_with(stage, other_pages(stage->own->memory));
}

static int play_shrink(struct stage *stage)
{
	void *same = mremap(stage->own->memory, LENGTH, HALF / 2, 0);

	if (same == MAP_FAILED)
		return -errno;
	stage->view = same;
	stage->seen = HALF / 2;
	return 0;
}

static int play_dont_need(struct stage *stage)
{
	if (madvise(stage->own->memory, LENGTH, MADV_DONTNEED))
		return -errno;
	return go_on_with(stage, stage->own->memory);
}

static int play_protect(struct stage *stage)
{
	if (mprotect(stage->own->memory, LENGTH, PROT_READ))
		return -errno;
	stage->view = stage->own->memory;
	stage->seen = LENGTH;
	return 0;
}

static int play_truncate(struct stage *stage)
{
	return ftruncate(stage->file, 0) ? -errno : 0;
}

static int play_truncate_and_extend(struct stage *stage)
{
	if (ftruncate(stage->file, 0) || ftruncate(stage->file, LENGTH))
		return -errno;
	return go_on_with(stage, stage->own->memory);
}

static int play_punch(struct stage *stage)
{
	if (fallocate(stage->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, LENGTH))
		return -errno;
	return go_on_with(stage, stage->own->memory);
}

static int play_close_and_unmap(struct stage *stage)
{
	close(stage->file);
	stage->file = -1;
	return play_unmap(stage);
}

/* --- what must hold --- */

/*
 * Through the region, which still has its pages, though the process may not see them: the peer
 * reads them, and a work that is posted only now writes them.
 */
static int pages_hold(struct stage *stage, const unsigned char *wanted)
{
	struct ibchan_submit_wr read = work(stage->peer, IBCHAN_OP_READ, 9, HALF, HALF);
	struct ibchan_submit_wr write = work(stage->own, IBCHAN_OP_WRITE, 10, 0, HALF);
	unsigned char *seen = stage->peer->memory + HALF;
	int rc;

	work_at(&read, stage->own, 0);
	work_at(&write, stage->peer, HALF);
	rc = post_one(stage->peer, read) ?: succeed(stage->peer, 9, NULL);
	rc = rc ?: same_bytes(wanted, seen, HALF);
	memset(seen, OTHER, HALF);
	rc = rc ?: post_one(stage->own, write) ?: succeed(stage->own, 10, NULL);
	return rc ?: same_bytes(wanted, seen, HALF);
}

static int view_holds(const struct stage *stage, const unsigned char *wanted)
{
	if (!stage->view)
		return 0;
	if (!stage->seen)
		return all_bytes(stage->view, LENGTH, OTHER);
	return same_bytes(wanted, stage->view, stage->seen < HALF ? stage->seen : HALF);
}

static int register_again(const struct stage *stage)
{
	struct ibchan_cmd_mr_reg cmd = {
		.addr = address(stage->own->memory),
		.length = LENGTH,
		.pd = stage->own->pd,
		.access = IBCHAN_ACCESS_LOCAL,
	};
	int rc = cmd_mr_reg(stage->own->fd, &cmd);

	return rc ? rc : destroy(stage->own->fd, cmd.out_mr);
}

static int arrive(struct stage *stage, const struct flow *flow)
{
	static unsigned char own[HALF], peer[HALF];
	int rc;

	pattern(own, HALF, 21);
	pattern(peer, HALF, 22);
	rc = flow_finish(stage, flow);
	if (!rc)
		rc = same_bytes(flow->inwards ? peer : own, stage->peer->memory, HALF);
	if (!rc && !stage->plain)
		rc = pages_hold(stage, flow->inwards ? peer : own);
	return rc ? rc : view_holds(stage, flow->inwards ? peer : own);
}

/* The pages are given to nobody as long as they are pinned, nor written by others' bytes. */
static int play_one(struct stage *stage, const struct game *game, const struct flow *flow)
{
	struct canary canary;
	int intact, rc;

	rc = flow_start(stage, flow);
	if (!rc)
		rc = game->play(stage);
	if (!rc && register_again(stage) != game->again)
		rc = -EPROTO;
	if (!rc)
		rc = canary_open(&canary, &stage->frames);
	if (rc)
		return rc;
	rc = canary.met ? -EFAULT : arrive(stage, flow);
	intact = canary_close(&canary);
	return rc ? rc : intact;
}

static void forget_memory(struct stage *stage)
{
	/* What is there is the view's, or nobody's. */
	if (stage->view != stage->own->memory)
		munmap(stage->own->memory, LENGTH);
	stage->own->memory = NULL;
}

static int play_flow(const struct game *game, const struct flow *flow, int plain)
{
	struct stage stage;
	int rc = stage_open(&stage, game->of_file, plain);

	if (!rc)
		rc = play_one(&stage, game, flow);
	if (!rc && !plain)
		rc = destroy(stage.own->fd, stage.own->mr);
	if (rc)
		fprintf(stderr, "# %s: %d\n", flow->name, rc);
	forget_memory(&stage);
	stage_close(&stage);
	return rc;
}

/* A peer can name nothing but a region. */
static int play(const struct game *game, int plain)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; i < ARRAY_SIZE(flows) && !rc; i++) {
		if (!plain || flows[i].own_posts)
			rc = play_flow(game, &flows[i], plain);
	}
	return rc;
}

FIXTURE(pinned_memory)
{
	struct calm calm;
};

FIXTURE_VARIANT(pinned_memory)
{
	int plain;
};

FIXTURE_VARIANT_ADD(pinned_memory, of_a_region)
{
	.plain = 0,
};

FIXTURE_VARIANT_ADD(pinned_memory, of_a_work)
{
	.plain = 1,
};

FIXTURE_SETUP(pinned_memory)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
}

FIXTURE_TEARDOWN(pinned_memory)
{
	EXPECT_EQ(0, calm_end(&self->calm));
}

TEST_F(pinned_memory, stays_when_it_is_unmapped)
{
	struct game game = { .play = play_unmap, .again = -EFAULT };

	EXPECT_EQ(0, play(&game, variant->plain));
}

TEST_F(pinned_memory, stays_when_another_mapping_takes_its_address)
{
	struct game game = { .play = play_replace };

	EXPECT_EQ(0, play(&game, variant->plain));
}

TEST_F(pinned_memory, moves_with_its_mapping)
{
	struct game game = { .play = play_move, .again = -EFAULT };

	EXPECT_EQ(0, play(&game, variant->plain));
}

TEST_F(pinned_memory, stays_when_its_mapping_has_moved_and_another_took_its_address)
{
	struct game game = { .play = play_move_and_replace };

	EXPECT_EQ(0, play(&game, variant->plain));
}

TEST_F(pinned_memory, stays_whole_when_its_mapping_shrinks)
{
	struct game game = { .play = play_shrink, .again = -EFAULT };

	EXPECT_EQ(0, play(&game, variant->plain));
}

TEST_F(pinned_memory, stays_when_the_process_says_that_it_does_not_need_it)
{
	struct game game = { .play = play_dont_need };

	EXPECT_EQ(0, play(&game, variant->plain));
}

TEST_F(pinned_memory, is_still_written_when_the_process_may_only_read_it)
{
	struct game game = { .play = play_protect, .again = -EFAULT };

	EXPECT_EQ(0, play(&game, variant->plain));
}

TEST_F(pinned_memory, of_a_file_stays_when_the_file_is_truncated)
{
	struct game game = { .play = play_truncate, .of_file = 1, .again = -EFAULT };

	EXPECT_EQ(0, play(&game, variant->plain));
}

TEST_F(pinned_memory, of_a_file_is_not_the_files_when_that_has_grown_again)
{
	struct game game = { .play = play_truncate_and_extend, .of_file = 1 };

	EXPECT_EQ(0, play(&game, variant->plain));
}

TEST_F(pinned_memory, of_a_file_stays_when_a_hole_is_punched_there)
{
	struct game game = { .play = play_punch, .of_file = 1 };

	EXPECT_EQ(0, play(&game, variant->plain));
}

TEST_F(pinned_memory, of_a_file_that_nobody_has_open_stays)
{
	struct game game = { .play = play_close_and_unmap, .of_file = 1, .again = -EFAULT };

	EXPECT_EQ(0, play(&game, variant->plain));
}

static bool pins_are(void *arg)
{
	return pins() == *(long *)arg;
}

/* Without this a canary that meets none of the pages would prove nothing. */
TEST_F(pinned_memory, that_was_given_back_goes_to_others)
{
	struct canary canary;
	struct stage stage;
	long pinned;

	ASSERT_EQ(0, stage_open(&stage, 0, variant->plain));
	ASSERT_EQ(0, flow_start(&stage, &flows[0]));
	pinned = pins() - (variant->plain ? HALF : LENGTH) / getpagesize();
	ASSERT_EQ(0, play_unmap(&stage));
	ASSERT_EQ(0, canary_open(&canary, &stage.frames));
	EXPECT_EQ(0, canary.met);
	EXPECT_EQ(0, canary_close(&canary));
	ASSERT_EQ(0, flow_finish(&stage, &flows[0]));
	if (!variant->plain)
		ASSERT_EQ(0, destroy(stage.own->fd, stage.own->mr));
	stage.own->memory = NULL;
	EXPECT_TRUE(eventually(pins_are, &pinned));
	ASSERT_EQ(0, canary_open(&canary, &stage.frames));
	EXPECT_LT(0, canary.met);
	EXPECT_EQ(0, canary_close(&canary));
	stage_close(&stage);
}

TEST_HARNESS_MAIN
