// SPDX-License-Identifier: GPL-2.0-only
/*
 * Any bytes at all in a command give an errno that the contract names, and nothing else: no
 * crash, no hang, no leak. The seed is fixed, so that a failure can be had again; IBCHAN_SEED
 * takes another one.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "dice.h"
#include "example.h"
#include "fault.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define WORKS	8

static struct dice first_dice(void)
{
	const char *seed = getenv("IBCHAN_SEED");

	return (struct dice) { seed ? strtoull(seed, NULL, 0) : 20240229 };
}

/* A wait that nobody would end is the one thing that a command may rightly do for ever. */
static void bound_the_wait(struct dice *dice, __s64 *timeout_ns)
{
	if (*timeout_ns == IBCHAN_TIMEOUT_NEVER || *timeout_ns > 1000000)
		*timeout_ns = roll(dice) % 1000000;
}

FIXTURE(random)
{
	struct calm calm;
	struct dice dice;
};

FIXTURE_SETUP(random)
{
	self->dice = first_dice();
	fprintf(stderr, "# seed %llu\n", self->dice.state);
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
		bound_the_wait(dice, &((struct ibchan_cmd_submit *)room)->timeout_ns);
	if (example->number == IBCHAN_CMD_CHANNEL_CONNECTION)
		bound_the_wait(dice, &((struct ibchan_cmd_channel_connection *)room)->timeout_ns);
	if (example->number == IBCHAN_CMD_ROUTE_QUERY)
		((struct ibchan_cmd_route_query *)room)->timeout_ms = 1 + roll(dice) % 10;
	rc = cmd_raw(objects->side.fd, example->number, room);
	if (example->undo)
		example->undo(objects, room, rc);
	if (is_documented(rc))
		return 0;
	fprintf(stderr, "# %s: %d\n", example->name, rc);
	return rc;
}

/* ---- Endpoints, as a broken or a hostile peer would send them ---- */

/* One change in an otherwise good endpoint says most; now and then there is more. */
static void mutate(struct dice *dice, struct ibchan_endpoint *endpoint)
{
	__u8 *bytes = (__u8 *)endpoint;
	size_t at = roll(dice) % sizeof(*endpoint);
	size_t i;

	switch (roll(dice) % 8) {
	case 0:
		for (i = 0; i < sizeof(*endpoint); i++)
			bytes[i] = roll(dice);
		break;
	case 1:
		memset(bytes + at, 0, sizeof(*endpoint) - at);
		break;
	case 2:
		memmove(bytes, bytes + at, sizeof(*endpoint) - at);
		break;
	case 3:
		bytes[at] = roll(dice);
		break;
	case 4:
		bytes[at] = roll(dice);
		bytes[roll(dice) % sizeof(*endpoint)] = roll(dice);
		break;
	default:
		bytes[at] ^= 1 << roll(dice) % 8;
	}
}

/* A channel that has taken the bytes for a peer gives way to a new one. */
static int offer(struct side *side, const struct side_options *options,
		 const struct ibchan_endpoint *endpoint)
{
	struct ibchan_cmd_channel_handshake cmd = {
		.channel = side->channel, .endpoint = *endpoint,
	};
	__u32 fault = endpoint_fault((const __u8 *)endpoint);
	int rc = cmd_channel_handshake(side->fd, &cmd);

	/* Addresses of other networks are not reached from here. */
	if (!fault && memcmp(endpoint->gid, side->endpoint.gid, 15) &&
	    rc == -EHOSTUNREACH && cmd.reason.code == IBCHAN_REASON_NO_ROUTE)
		return 0;
	if (cmd.reason.code != fault || rc != (fault ? -EINVAL : 0)) {
		fprintf(stderr, "# %d, reason %u instead of %u\n", rc, cmd.reason.code, fault);
		return -EBADMSG;
	}
	if (rc)
		return side_state(side) == IBCHAN_CHANNEL_PREPARED ? 0 : -EBADMSG;
	rc = destroy(side->fd, side->channel);
	return rc ? rc : side_channel(side, options);
}

static void show(const struct ibchan_endpoint *endpoint)
{
	size_t i;

	fprintf(stderr, "# the endpoint:");
	for (i = 0; i < sizeof(*endpoint); i++)
		fprintf(stderr, " %02x", ((const __u8 *)endpoint)[i]);
	fprintf(stderr, "\n");
}

TEST_F(random, endpoints_are_refused_with_the_reason_or_taken_for_a_peer)
{
	struct side_options options = side_defaults();
	unsigned int i, rounds = slow() ? 3000 : 10000;
	struct ibchan_endpoint endpoint;
	struct side side;

	ASSERT_EQ(0, side_open(&side, &options));
	for (i = 0; i < rounds; i++) {
		endpoint = side.endpoint;
		mutate(&self->dice, &endpoint);
		ASSERT_EQ(0, offer(&side, &options, &endpoint)) {
			TH_LOG("endpoint %u", i);
			show(&endpoint);
		}
	}
	ASSERT_EQ(0, side_handshake(&side, &side.endpoint));
	EXPECT_EQ(0, exchange(&side, &side));
	side_close(&side);
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

TEST_HARNESS_MAIN
