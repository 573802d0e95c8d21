// SPDX-License-Identifier: GPL-2.0-only
/*
 * Any bytes at all in a command give an errno that the contract names, and nothing else: no
 * crash, no hang, no leak. The seed is fixed, so that a failure can be had again; IBCHAN_SEED
 * takes another one.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "example.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define WORKS	8

struct dice {
	__u64 state;
};

static __u32 roll(struct dice *dice)
{
	dice->state = dice->state * 6364136223846793005ULL + 1442695040888963407ULL;
	return dice->state >> 32;
}

static struct dice first_dice(void)
{
	const char *seed = getenv("IBCHAN_SEED");

	return (struct dice) { seed ? strtoull(seed, NULL, 0) : 20240229 };
}

static __u64 interesting(struct dice *dice)
{
	static const __u64 values[] = {
		0, 1, 2, 7, 8, 63, 64, 4095, 4096, 0x7fffffff, 0x80000000, 0xffffffff,
		0x100000000ULL, 0x7fffffffffffffffULL, 1ULL << 63, ~0ULL, ~0ULL - 4095,
	};

	return values[roll(dice) % ARRAY_SIZE(values)];
}

/* Changes up to four members of @bytes, or all of it. */
static void spoil(struct dice *dice, void *bytes, size_t size)
{
	unsigned int times = roll(dice) % 5;
	size_t i;

	if (roll(dice) % 16 == 0) {
		for (i = 8; i < size; i++)
			((__u8 *)bytes)[i] = roll(dice);
		return;
	}
	while (times--) {
		size_t width = 1U << roll(dice) % 4;
		__u64 value = roll(dice) % 2 ? interesting(dice) : roll(dice);

		i = roll(dice) % size / width * width;
		if (i + width <= size)
			memcpy((char *)bytes + i, &value, width);
	}
}

/* The errnos of the contract's list. */
static bool is_documented(int rc)
{
	static const int documented[] = {
		0, ENOTTY, E2BIG, EOPNOTSUPP, EINVAL, EFAULT, ENOENT, EPERM, EBUSY, EAGAIN, EACCES,
		EXDEV, ENOTCONN, EISCONN, ESHUTDOWN, ENODEV, ETIMEDOUT, EINTR, EPROTO,
		EADDRNOTAVAIL, ENETDOWN, ENOMEM, EMFILE, EBADF,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(documented); i++) {
		if (rc == -documented[i])
			return true;
	}
	return false;
}

/* A wait that nobody would end is the one thing that a command may rightly do for ever. */
static void bound_the_wait(struct dice *dice, struct ibchan_cmd_submit *cmd)
{
	if (cmd->timeout_ns == IBCHAN_TIMEOUT_NEVER || cmd->timeout_ns > 1000000)
		cmd->timeout_ns = roll(dice) % 1000000;
}

FIXTURE(random)
{
	struct calm calm;
	struct dice dice;
};

FIXTURE_SETUP(random)
{
	self->dice = first_dice();
	ASSERT_EQ(0, calm_begin(&self->calm));
}

FIXTURE_TEARDOWN(random)
{
	EXPECT_EQ(0, calm_end(&self->calm));
}

static int one_command(struct dice *dice, struct example_objects *objects)
{
	const struct example *example = &examples[roll(dice) % NUM_EXAMPLES];
	__u64 room[EXAMPLE_ROOM / sizeof(__u64)];
	int rc = example_prepare(example, objects, room);

	/* What an earlier command broke or gave back; the next objects will do. */
	if (rc)
		return 0;
	spoil(dice, room, example->size + 16);
	if (example->number == IBCHAN_CMD_SUBMIT)
		bound_the_wait(dice, (struct ibchan_cmd_submit *)room);
	rc = cmd_raw(objects->side.fd, example->number, room);
	if (example->undo)
		example->undo(objects, room, rc);
	if (is_documented(rc))
		return 0;
	fprintf(stderr, "# %s: %d\n", example->name, rc);
	return rc;
}

TEST_F(random, commands_give_only_errnos_that_the_contract_names)
{
	unsigned int i, rounds = slow() ? 20 : 40, each = slow() ? 60 : 250;
	struct example_objects objects;

	while (rounds--) {
		ASSERT_EQ(0, example_objects_open(&objects));
		for (i = 0; i < each; i++)
			ASSERT_EQ(0, one_command(&self->dice, &objects))
				TH_LOG("round %u from the end, command %u", rounds, i);
		example_objects_close(&objects);
	}
}

/* Works of all kinds within one channel that is its own peer. */
static struct ibchan_submit_wr some_work(struct dice *dice, const struct side *side)
{
	struct ibchan_submit_wr wr = work(side, roll(dice) % 4, roll(dice), roll(dice) % 65536,
					  roll(dice) % 8192);

	if (wr.opcode == IBCHAN_OP_WRITE || wr.opcode == IBCHAN_OP_READ)
		work_at(&wr, side, roll(dice) % 32768);
	else if (wr.opcode == IBCHAN_OP_SEND && roll(dice) % 4 == 0)
		work_imm(&wr, roll(dice));
	if (roll(dice) % 3 == 0)
		spoil(dice, &wr, sizeof(wr));
	return wr;
}

struct tally {
	unsigned long accepted;
	unsigned long completed;
};

/* Posts a batch; everything that the kernel accepted must complete at some time. */
static int one_batch(struct dice *dice, const struct side *side, struct tally *tally)
{
	struct ibchan_submit_wr wrs[WORKS];
	struct ibchan_cmd_submit cmd;
	unsigned int i;
	int rc;

	for (i = 0; i < WORKS; i++)
		wrs[i] = some_work(dice, side);
	cmd = submission(wrs, roll(dice) % (WORKS + 1));
	if (roll(dice) % 2) {
		cmd.cq = side->ring->cq;
		cmd.min_complete = roll(dice) % 3;
		cmd.timeout_ns = roll(dice) % 200000;
	}
	rc = cmd_submit(side->fd, &cmd);
	tally->accepted += cmd.entry_num;
	tally->completed += ring_surplus(side->ring);
	side->ring->stashed = 0;
	if (is_documented(rc) && cmd.entry_num <= WORKS)
		return 0;
	fprintf(stderr, "# submit: %d, %u accepted\n", rc, cmd.entry_num);
	return -EBADMSG;
}

struct drain {
	const struct side *side;
	struct tally *tally;
};

static bool is_drained(void *arg)
{
	struct drain *drain = arg;

	drain->tally->completed += ring_surplus(drain->side->ring);
	drain->side->ring->stashed = 0;
	return drain->tally->completed == drain->tally->accepted;
}

TEST_F(random, works_are_refused_or_complete)
{
	unsigned int i, rounds = slow() ? 20 : 60;
	struct side_options options = side_defaults();
	struct tally tally = {};
	struct side side;

	while (rounds--) {
		struct drain drain = { &side, &tally };

		ASSERT_EQ(0, side_open(&side, &options));
		ASSERT_EQ(0, side_handshake(&side, &side.endpoint));
		for (i = 0; i < 20; i++)
			ASSERT_EQ(0, one_batch(&self->dice, &side, &tally))
				TH_LOG("round %u from the end, batch %u", rounds, i);
		ASSERT_EQ(0, channel_break(side.fd, side.channel));
		EXPECT_TRUE(eventually(is_drained, &drain))
			TH_LOG("%lu accepted, %lu completed", tally.accepted, tally.completed);
		side_close(&side);
	}
	EXPECT_LT(0, tally.accepted);
}

TEST_F(random, submit_structs_over_a_good_batch_do_no_harm)
{
	unsigned int i, rounds = slow() ? 200 : 1000;
	struct side_options options = side_defaults();
	struct ibchan_submit_wr wrs[WORKS];
	struct side side;

	ASSERT_EQ(0, side_open(&side, &options));
	ASSERT_EQ(0, side_handshake(&side, &side.endpoint));
	for (i = 0; i < WORKS; i++)
		wrs[i] = work_empty(&side, i % 2 ? IBCHAN_OP_SEND : IBCHAN_OP_RECV, i);
	for (i = 0; i < rounds; i++) {
		struct ibchan_cmd_submit cmd = submission(wrs, WORKS);
		int rc;

		cmd.cq = side.ring->cq;
		spoil(&self->dice, &cmd, sizeof(cmd));
		bound_the_wait(&self->dice, &cmd);
		rc = cmd_raw(side.fd, IBCHAN_CMD_SUBMIT, &cmd);
		ASSERT_TRUE(is_documented(rc))
			TH_LOG("round %u: %d", i, rc);
		ring_surplus(side.ring);
		side.ring->stashed = 0;
	}
	side_close(&side);
}

TEST_HARNESS_MAIN
