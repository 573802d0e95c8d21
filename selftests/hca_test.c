// SPDX-License-Identifier: GPL-2.0-only
/*
 * What only a device that is like hardware shows: InfiniBand ports, completion vectors, works
 * that wait in the device. Runs on the HCAs for tests (see selftests/hca); other devices skip it.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cable.h"
#include "gid.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define PARAMETERS	"/sys/module/ibchan_hca/parameters/"
#define FAST_REG_ONLY	"/sys/module/ibchan/parameters/fast_reg_only"

/* Of hca0's first port; it gets its own LID back behind a test. */
#define FIRST_LID	1
#define OTHER_LID	77

static bool has_hca(void)
{
	return !access(PARAMETERS, F_OK);
}

static bool is_infiniband(const struct side *side)
{
	return has_hca() && side && side->endpoint.link_layer == IBCHAN_LINK_LAYER_INFINIBAND;
}

static int set_lid_of(int port, int lid)
{
	char line[32];

	snprintf(line, sizeof(line), "0 %d %d", port, lid);
	return put_line(PARAMETERS "lid", line);
}

static int set_lid(int lid)
{
	return set_lid_of(1, lid);
}

static int set_number(const char *name, long value)
{
	char path[128], line[32];

	snprintf(path, sizeof(path), PARAMETERS "%s", name);
	snprintf(line, sizeof(line), "%ld", value);
	return put_line(path, line);
}

static int set_pkey(int index, int pkey)
{
	char line[32];

	snprintf(line, sizeof(line), "0 1 %d %d", index, pkey);
	return put_line(PARAMETERS "pkey", line);
}

/* ---- InfiniBand ---- */

FIXTURE(infiniband)
{
	struct calm calm;
	struct pair pair;
	struct side *a;
	struct side *b;
	struct ibchan_endpoint peer;	/* b's, as a sees it */
};

FIXTURE_SETUP(infiniband)
{
	struct side_options options = side_defaults();

	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, pair_build(&self->pair, PAIR_TWO_DEVICES, &options));
	self->a = self->pair.a;
	self->b = self->pair.b;
	self->peer = self->b->endpoint;
}

/* The core reads the port's table some time after the device has told of a change. */
static bool pkey_is(const char *device, __u16 pkey)
{
	struct side_options options = side_defaults();
	struct side side;
	bool is;

	options.device = device;
	if (side_open(&side, &options))
		return false;
	is = be16toh(side.endpoint.pkey) == pkey;
	side_close(&side);
	return is;
}

static bool is_limited_member(void *device)
{
	return pkey_is(device, 0x7fff);
}

static bool is_full_member(void *device)
{
	return pkey_is(device, 0xffff);
}

FIXTURE_TEARDOWN(infiniband)
{
	if (is_infiniband(self->a)) {
		EXPECT_EQ(0, set_lid(FIRST_LID));
		EXPECT_EQ(0, set_pkey(0, 0xffff));
		EXPECT_EQ(0, set_pkey(1, 0x8001));
		EXPECT_TRUE(eventually(is_full_member, (void *)DEVICE_A));
	}
	pair_close(&self->pair);
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* The handshake says so, and the channel takes the sound endpoint afterwards. */
static int refuses(struct side *side, const struct ibchan_endpoint *peer, __u32 code)
{
	int rc = side_handshake(side, peer);

	if (rc != -EINVAL)
		return rc ? rc : -ENODATA;
	if (side->reason.code != code)
		return side->reason.code;
	return side_state(side) == IBCHAN_CHANNEL_PREPARED ? 0 : -EBADFD;
}

TEST_F(infiniband, a_lid_that_is_no_ports_is_refused)
{
	static const __u32 bad[] = { 0, 0xc000, 0xffff, 0x10002 };
	unsigned int i;

	if (!is_infiniband(self->a))
		SKIP(return, "the ports are no InfiniBand ports");
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		self->peer.lid = htobe32(bad[i]);
		EXPECT_EQ(0, refuses(self->a, &self->peer, IBCHAN_REASON_PEER_LID));
		EXPECT_EQ(bad[i], self->a->reason.value[1]);
	}
	EXPECT_EQ(0, pair_connect(&self->pair));
}

TEST_F(infiniband, a_peer_of_another_partition_is_refused)
{
	if (!is_infiniband(self->a))
		SKIP(return, "the ports are no InfiniBand ports");
	self->peer.pkey = htobe16(0x8001);
	EXPECT_EQ(0, refuses(self->a, &self->peer, IBCHAN_REASON_PEER_PKEY));
	EXPECT_EQ(0xffff, self->a->reason.value[0]);
	EXPECT_EQ(0x8001, self->a->reason.value[1]);
	EXPECT_EQ(0, pair_connect(&self->pair));
}

TEST_F(infiniband, a_peer_of_another_subnet_is_refused)
{
	if (!is_infiniband(self->a))
		SKIP(return, "the ports are no InfiniBand ports");
	self->peer.gid[7] ^= 1;
	EXPECT_EQ(0, refuses(self->a, &self->peer, IBCHAN_REASON_PEER_SUBNET));
	EXPECT_EQ(0, pair_connect(&self->pair));
}

TEST_F(infiniband, a_kind_of_ip_address_is_refused_by_name)
{
	struct side_options options = side_defaults();
	struct side side;

	if (!is_infiniband(self->a))
		SKIP(return, "the ports are no InfiniBand ports");
	options.params.gid_index = IBCHAN_AUTO_IPV4;
	EXPECT_EQ(-EINVAL, side_open(&side, &options));
	EXPECT_EQ(IBCHAN_REASON_PARAMETER, side.reason.code);
	EXPECT_EQ(IBCHAN_PARAMETER_GID_INDEX, side.reason.element);
	side_close(&side);
}

TEST_F(infiniband, a_lid_that_changes_before_the_handshake_is_noticed_there)
{
	if (!is_infiniband(self->a))
		SKIP(return, "the ports are no InfiniBand ports");
	ASSERT_EQ(0, set_lid(OTHER_LID));
	EXPECT_EQ(-EADDRNOTAVAIL, side_handshake(self->a, &self->b->endpoint));
	EXPECT_EQ(IBCHAN_REASON_GID_GONE, self->a->reason.code);
	ASSERT_EQ(0, set_lid(FIRST_LID));
	EXPECT_EQ(0, pair_connect(&self->pair));
}

static bool is_broken(void *side)
{
	return side_state(side) == IBCHAN_CHANNEL_BROKEN;
}

TEST_F(infiniband, a_lid_that_changes_later_breaks_who_used_it)
{
	struct ibchan_cmd_channel_query query;

	if (!is_infiniband(self->a))
		SKIP(return, "the ports are no InfiniBand ports");
	ASSERT_EQ(0, pair_connect(&self->pair));
	ASSERT_EQ(0, set_lid(OTHER_LID));
	EXPECT_TRUE(eventually(is_broken, self->a));
	ASSERT_EQ(0, side_query(self->a, &query));
	EXPECT_EQ(EADDRNOTAVAIL, query.out.error);
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, side_state(self->b));
	ASSERT_EQ(0, set_lid(FIRST_LID));
}

static int read_port_queries(void)
{
	FILE *file = fopen(PARAMETERS "port_queries", "re");
	int queries = -EBADMSG;

	if (!file)
		return -errno;
	if (fscanf(file, "%d", &queries) != 1)
		queries = -EBADMSG;
	fclose(file);
	return queries;
}

/* How often ports are asked when the second one gets another LID; a channel there tells the end. */
static int count_queries_of_event(int new_lid)
{
	struct side_options options = side_defaults();
	struct side told;
	int before, queries = -ENODEV;

	options.params.port = 2;
	if (!side_open(&told, &options) && !side_handshake(&told, &told.endpoint)) {
		before = read_port_queries();
		if (!set_lid_of(2, new_lid) && eventually(is_broken, &told))
			queries = read_port_queries() - before;
	}
	side_close(&told);
	return queries;
}

#define MANY	8

TEST_F(infiniband, a_port_is_asked_once_in_an_event_however_many_channels_it_has)
{
	struct side_options options = side_defaults();
	struct side many[MANY];
	int few, i;

	if (!is_infiniband(self->a))
		SKIP(return, "the ports are no InfiniBand ports");
	options.params.port = 1;
	few = count_queries_of_event(OTHER_LID);
	for (i = 0; i < MANY; i++)
		ASSERT_EQ(0, side_open(&many[i], &options));
	EXPECT_LT(0, few);
	EXPECT_EQ(few, count_queries_of_event(FIRST_LID + 1));
	for (i = 0; i < MANY; i++)
		side_close(&many[i]);
}

/* The domain's own channel registers it, for a device whose driver must not. */
TEST_F(infiniband, a_limited_member_of_its_partition_registers_memory)
{
	struct side_options options = side_defaults();
	struct side side;

	if (!is_infiniband(self->a))
		SKIP(return, "the ports are no InfiniBand ports");
	ASSERT_EQ(0, set_pkey(1, 0x0001));
	ASSERT_EQ(0, set_pkey(0, 0x7fff));
	ASSERT_TRUE(eventually(is_limited_member, (void *)DEVICE_A));
	ASSERT_EQ(0, put_line(FAST_REG_ONLY, "1"));
	EXPECT_EQ(0, side_open(&side, &options));
	EXPECT_EQ(0, put_line(FAST_REG_ONLY, "0"));
	/* Its twin: another limited member does not hear it. */
	EXPECT_EQ(-EINVAL, side_handshake(&side, &side.endpoint));
	EXPECT_EQ(IBCHAN_REASON_PEER_PKEY, side.reason.code);
	side_close(&side);
}

TEST_F(infiniband, two_ports_of_one_device_reach_each_other)
{
	struct side_options options = side_defaults();
	struct side second;

	if (!is_infiniband(self->a))
		SKIP(return, "the ports are no InfiniBand ports");
	options.params.port = 2;
	ASSERT_EQ(0, side_open(&second, &options));
	EXPECT_EQ(2, second.params.port);
	EXPECT_EQ(FIRST_LID + 1, be32toh(second.endpoint.lid));
	EXPECT_EQ(0, side_handshake(&second, &self->a->endpoint));
	EXPECT_EQ(0, side_handshake(self->a, &second.endpoint));
	EXPECT_EQ(0, exchange(&second, self->a));
	side_close(&second);
}

/* A port without a LID is down. */
TEST_F(infiniband, a_device_whose_first_port_is_down_is_used_by_its_second)
{
	struct side_options options = side_defaults();
	struct side second;

	if (!is_infiniband(self->a))
		SKIP(return, "the ports are no InfiniBand ports");
	options.params.port = 1;
	ASSERT_EQ(0, set_lid(0));
	EXPECT_EQ(-ENETDOWN, side_open(&second, &options));
	side_close(&second);
	options.params.port = 0;
	ASSERT_EQ(0, side_open(&second, &options));
	EXPECT_EQ(2, second.params.port);
	EXPECT_EQ(FIRST_LID + 1, be32toh(second.endpoint.lid));
	ASSERT_EQ(0, side_handshake(&second, &self->b->endpoint));
	ASSERT_EQ(0, side_handshake(self->b, &second.endpoint));
	EXPECT_EQ(0, exchange(&second, self->b));
	side_close(&second);
}

/* ---- Any HCA ---- */

FIXTURE(hca)
{
	struct calm calm;
	struct pair pair;
	struct side *a;
	struct side *b;
};

FIXTURE_SETUP(hca)
{
	struct side_options options = side_defaults();

	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &options));
	self->a = self->pair.a;
	self->b = self->pair.b;
}

FIXTURE_TEARDOWN(hca)
{
	if (has_hca())
		EXPECT_EQ(0, set_number("flushes_when_asked", 0));
	pair_close(&self->pair);
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* Of the first device: how many there are, and how many cqs each has. */
static int read_vectors(unsigned int *cqs, int max)
{
	FILE *file = fopen(PARAMETERS "vectors", "re");
	char name[64];
	int num = 0;

	if (!file)
		return -errno;
	if (fscanf(file, "%63s", name) != 1 || strcmp(name, DEVICE_A))
		num = -EBADMSG;
	while (num >= 0 && num < max && fscanf(file, "%u", &cqs[num]) == 1)
		num++;
	fclose(file);
	return num;
}

#define MAX_VECTORS	8

TEST_F(hca, completion_queues_are_spread_over_the_vectors)
{
	unsigned int before[MAX_VECTORS] = {}, after[MAX_VECTORS] = {};
	int vectors;
	struct ibchan_cmd_cq_create cmd;
	int i;

	if (!has_hca())
		SKIP(return, "these devices are no HCAs");
	vectors = read_vectors(before, MAX_VECTORS);
	ASSERT_LT(0, vectors);
	for (i = 0; i < 2 * vectors; i++) {
		cmd = (struct ibchan_cmd_cq_create) { .device = self->a->device, .entries = 8 };
		ASSERT_EQ(0, cmd_cq_create(self->a->fd, &cmd));
		close(cmd.out_fd);
	}
	EXPECT_EQ(vectors, read_vectors(after, MAX_VECTORS));
	for (i = 0; i < vectors; i++)
		EXPECT_EQ(before[i] + 2, after[i]);
}

/* What consumers have had the HCAs do that they must not; -1: there is no such file. */
static long faults(void)
{
	FILE *file = fopen(PARAMETERS "faults", "re");
	long number, sum = 0;

	if (!file)
		return -1;
	while (fscanf(file, "%ld%*[,\n]", &number) == 1)
		sum += number;
	fclose(file);
	return sum;
}

/* A message that waits in the device, and a receive for it. */
static int post_late(const struct side *from, const struct side *to, __u32 length)
{
	int rc = set_number("delay_us", 100000);

	if (!rc)
		rc = post_one(to, work(to, IBCHAN_OP_RECV, 1, 0, length));
	if (!rc)
		rc = post_one(from, work(from, IBCHAN_OP_SEND, 2, 0, length));
	return set_number("delay_us", 0) ? : rc;
}

TEST_F(hca, memory_of_a_work_that_the_device_has_not_begun_is_kept)
{
	struct ibchan_cqe cqe;

	if (!has_hca())
		SKIP(return, "these devices are no HCAs");
	pattern(self->a->memory, 4096, 1);
	ASSERT_EQ(0, post_late(self->a, self->b, 4096));
	EXPECT_EQ(-EBUSY, destroy(self->a->fd, self->a->mr));
	EXPECT_EQ(0, succeed(self->b, 1, &cqe));
	EXPECT_EQ(0, same_bytes(self->a->memory, self->b->memory, 4096));
	EXPECT_EQ(0, succeed(self->a, 2, &cqe));
	EXPECT_EQ(0, destroy(self->a->fd, self->a->mr));
	EXPECT_EQ(0, faults());
}

TEST_F(hca, a_channel_that_is_closed_with_works_in_the_device_leaves_no_access_behind)
{
	struct side_options options = side_defaults();
	struct ibchan_cqe cqe;
	struct pair later;

	if (!has_hca())
		SKIP(return, "these devices are no HCAs");
	ASSERT_EQ(0, pair_open(&later, PAIR_TWO_DEVICES, &options));
	ASSERT_EQ(0, post_late(self->a, self->b, 4096));
	ASSERT_EQ(0, post_late(later.a, later.b, 4096));
	side_close(self->a);
	/* By then the device would have begun with what was posted before. */
	EXPECT_EQ(0, succeed(later.b, 1, &cqe));
	EXPECT_EQ(0, faults());
	pair_close(&later);
}

/* Receives of 64 bytes at both ends, then a message. The device flushes no queue by itself. */
static int send_beyond(struct side *from, struct side *to, __u32 length)
{
	return set_number("flushes_when_asked", 1) ?: post_receives(from, 10, 2, 64) ?:
	       post_receives(to, 20, 3, 64) ?:
	       post_one(from, work(from, IBCHAN_OP_SEND, 1, 1024, length));
}

TEST_F(hca, a_failure_flushes_both_queues_of_both_ends_where_the_device_waits_to_be_asked)
{
	__u64 id;

	if (!has_hca())
		SKIP(return, "these devices are no HCAs");
	ASSERT_EQ(0, send_beyond(self->a, self->b, 128));
	EXPECT_EQ(IBCHAN_STATUS_LOC_LEN_ERR, status_of(self->b, 20));
	EXPECT_EQ(IBCHAN_STATUS_REM_INV_REQ_ERR, status_of(self->a, 1));
	for (id = 0; id < 2; id++) {
		EXPECT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, status_of(self->b, 21 + id));
		EXPECT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, status_of(self->a, 10 + id));
	}
}

TEST_F(hca, a_message_that_fits_flushes_nothing_there)
{
	if (!has_hca())
		SKIP(return, "these devices are no HCAs");
	ASSERT_EQ(0, send_beyond(self->a, self->b, 64));
	EXPECT_EQ(0, succeed(self->b, 20, NULL));
	EXPECT_EQ(0, succeed(self->a, 1, NULL));
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, side_state(self->a));
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, side_state(self->b));
}

/* Works of two channels end in any order, those of one in theirs. */
TEST_F(hca, works_that_wait_for_different_times_end_in_the_order_of_their_channel)
{
	struct ibchan_cqe cqe;
	__u64 i;

	if (!has_hca())
		SKIP(return, "these devices are no HCAs");
	ASSERT_EQ(0, post_receives(self->b, 1, 16, 64));
	ASSERT_EQ(0, set_number("jitter_us", 5000));
	for (i = 1; i <= 16; i++)
		EXPECT_EQ(0, post_one(self->a, work(self->a, IBCHAN_OP_SEND, i, 0, 64)));
	ASSERT_EQ(0, set_number("jitter_us", 0));
	for (i = 1; i <= 16; i++) {
		EXPECT_EQ(0, succeed(self->a, i, &cqe));
		EXPECT_EQ(0, succeed(self->b, i, &cqe));
	}
	EXPECT_EQ(0, faults());
}

/* ---- Objects that the device keeps for a while ---- */

/* In the order of the parameter. */
enum { QUEUE_PAIRS, COMPLETION_QUEUES, REGIONS, KINDS };

static int keep(int kind, int times)
{
	char line[32];

	snprintf(line, sizeof(line), "%d,%d,%d", kind == QUEUE_PAIRS ? times : 0,
		 kind == COMPLETION_QUEUES ? times : 0, kind == REGIONS ? times : 0);
	return put_line(PARAMETERS "failing_destroys", line);
}

/* How many refusals are left, or -1. */
static long refusals(int kind)
{
	FILE *file = fopen(PARAMETERS "failing_destroys", "re");
	long left[KINDS] = { -1, -1, -1 };

	if (!file)
		return -1;
	if (fscanf(file, "%ld,%ld,%ld", &left[0], &left[1], &left[2]) != KINDS)
		left[kind] = -1;
	fclose(file);
	return left[kind];
}

static bool has_none_left(void *kind)
{
	return !refusals(*(int *)kind);
}

/* Opens and closes a pair while @kind stays @times times. */
static int close_while_kept(int kind, int times)
{
	struct side_options options = side_defaults();
	struct pair pair;
	int rc = pair_open(&pair, PAIR_TWO_DEVICES, &options);

	if (!rc)
		rc = exchange(pair.a, pair.b);
	if (!rc)
		rc = keep(kind, times);
	pair_close(&pair);
	if (!rc && !eventually(has_none_left, &kind))
		rc = -EBUSY;
	return rc;
}

/* The fixture looks whether anything has stayed. */
TEST_F(hca, what_the_device_does_not_destroy_at_once_goes_all_the_same)
{
	static const int times[] = { 1, 2, 20 };
	unsigned int i;
	int kind;

	if (!has_hca())
		SKIP(return, "these devices are no HCAs");
	for (kind = 0; kind < KINDS; kind++) {
		for (i = 0; i < sizeof(times) / sizeof(*times); i++)
			EXPECT_EQ(0, close_while_kept(kind, times[i]))
				TH_LOG("kind %d, %d times", kind, times[i]);
		EXPECT_EQ(0, keep(kind, 0));
	}
	EXPECT_EQ(0, counter("leaked"));
	EXPECT_EQ(0, faults());
}

static void *destroy_region(void *arg)
{
	const struct side *side = arg;

	return (void *)(long)destroy(side->fd, side->mr);
}

/* The device may use everything until then, so nothing is given back before. */
TEST_F(hca, memory_stays_pinned_until_the_device_lets_go_of_it)
{
	struct side *a = self->a;
	long before = pins(), held = 0, rest;
	pthread_t thread;
	void *result;

	if (!has_hca())
		SKIP(return, "these devices are no HCAs");
	ASSERT_EQ(0, keep(REGIONS, 20));
	ASSERT_EQ(0, pthread_create(&thread, NULL, destroy_region, a));
	while (pthread_tryjoin_np(thread, &result)) {
		long now = pins();

		/* It may have gone since. */
		if (refusals(REGIONS) <= 0)
			continue;
		EXPECT_EQ(before, now);
		held++;
	}
	EXPECT_EQ(NULL, result);
	EXPECT_GT(before, pins());
	rest = refusals(REGIONS);
	ASSERT_EQ(0, keep(REGIONS, 0));
	if (rest == 20)
		SKIP(return, "what the device registers is only invalidated, and kept for others");
	EXPECT_EQ(0, rest);
	EXPECT_LT(0, held);
	EXPECT_EQ(0, counter("leaked"));
	EXPECT_EQ(0, faults());
}

/* ---- By address ---- */

#define READY_TO_USE	0x14	/* the asking side's word that the connection is up */

FIXTURE(address)
{
	struct calm calm;
	struct side asking;
	struct side asked;
	struct ibchan_cmd_listener_create listen;
};

FIXTURE_SETUP(address)
{
	struct side_options options = side_defaults();

	self->listen = (struct ibchan_cmd_listener_create){ .out_fd = -1 };
	ASSERT_EQ(0, calm_begin(&self->calm));
	/* Of one device: a host's own addresses lead nowhere else. */
	ASSERT_EQ(0, side_open(&self->asking, &options));
	ASSERT_EQ(0, side_open(&self->asked, &options));
	self->listen.address = (struct ibchan_address){ .family = AF_INET };
	memcpy(self->listen.address.bytes, self->asked.endpoint.gid + 12, 4);
}

FIXTURE_TEARDOWN(address)
{
	if (self->listen.out_fd >= 0)
		close(self->listen.out_fd);
	side_close(&self->asking);
	side_close(&self->asked);
	EXPECT_EQ(0, calm_end(&self->calm));
}

static bool is_connected(void *side)
{
	return side_state(side) == IBCHAN_CHANNEL_CONNECTED;
}

static int connect_both(struct side *asking, struct side *asked,
			struct ibchan_cmd_listener_create *listen)
{
	struct ibchan_cmd_channel_connect connect = { .channel = asking->channel };
	int rc = cmd_listener_create(asked->fd, listen);

	connect.peer = listen->out_address;
	if (!rc)
		rc = cmd_channel_connect(asking->fd, &connect);
	if (!rc)
		rc = side_accept(asked, listen->out_listener, listen->out_fd);
	if (!rc && !eventually(is_connected, asking))
		rc = -ECONNREFUSED;
	return rc;
}

TEST_F(address, a_side_whose_peers_last_word_is_lost_is_connected_by_its_first_message)
{
	struct ibchan_cqe cqe;

	if (!has_hca() || is_infiniband(&self->asking))
		SKIP(return, "the ports are no Ethernet ports of HCAs");
	ASSERT_EQ(0, post_one(&self->asked, work(&self->asked, IBCHAN_OP_RECV, 1, 0, 64)));
	ASSERT_EQ(0, set_number("lost_attribute", READY_TO_USE));
	EXPECT_EQ(0, connect_both(&self->asking, &self->asked, &self->listen));
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTING, side_state(&self->asked));
	EXPECT_EQ(0, post_one(&self->asking, work(&self->asking, IBCHAN_OP_SEND, 2, 0, 64)));
	EXPECT_EQ(0, succeed(&self->asked, 1, &cqe));
	EXPECT_TRUE(eventually(is_connected, &self->asked));
	EXPECT_EQ(0, set_number("lost_attribute", 0));
	EXPECT_EQ(0, faults());
}

/* The port that its channel says it uses, or -errno. */
static int port_of(const struct side *side)
{
	struct ibchan_cmd_channel_query query;
	int rc = side_query(side, &query);

	return rc ?: (int)query.out.params.port;
}

/* Which port a channel uses is chosen when it is made, and by address once more. */
TEST_F(address, of_the_second_port_makes_the_channel_tell_that_port)
{
	struct side_options options = side_defaults();
	struct ibchan_cmd_device_query device;
	struct side second;

	ASSERT_EQ(0, side_device(&self->asking, &device));
	if (is_infiniband(&self->asking) || device.out.ports < 2)
		SKIP(return, "the device has no second Ethernet port");
	options.params.port = 2;
	ASSERT_EQ(0, side_open(&second, &options));
	ASSERT_EQ(1, port_of(&self->asking));
	memcpy(self->listen.address.bytes, second.endpoint.gid + 12, 4);
	EXPECT_EQ(0, connect_both(&self->asking, &self->asked, &self->listen));
	EXPECT_EQ(2, port_of(&self->asking));
	EXPECT_TRUE(eventually(is_connected, &self->asked));
	EXPECT_EQ(2, port_of(&self->asked));
	EXPECT_EQ(0, exchange(&self->asking, &self->asked));
	side_close(&second);
	EXPECT_EQ(0, faults());
}

/* The twin. */
TEST_F(address, of_the_first_port_leaves_the_channel_there)
{
	if (!has_hca() || is_infiniband(&self->asking))
		SKIP(return, "the ports are no Ethernet ports of HCAs");
	EXPECT_EQ(0, connect_both(&self->asking, &self->asked, &self->listen));
	EXPECT_TRUE(eventually(is_connected, &self->asked));
	EXPECT_EQ(1, port_of(&self->asking));
	EXPECT_EQ(1, port_of(&self->asked));
	EXPECT_EQ(0, exchange(&self->asking, &self->asked));
	EXPECT_EQ(0, faults());
}

/* ---- RoCE v1 ---- */

#define RDMA_CM	"/sys/kernel/config/rdma_cm/"

/* What rdma_cm takes on the first device. */
static int prefer(const char *mode)
{
	char path[128];

	sh("mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config;"
	   "mkdir -p " RDMA_CM "%s", DEVICE_A);
	snprintf(path, sizeof(path), RDMA_CM "%s/ports/1/default_roce_mode", DEVICE_A);
	return put_line(path, mode);
}

/* The entry that it has come to use. */
static int entry_of(const struct side *side, struct ibchan_cmd_gid_query *gid)
{
	struct ibchan_cmd_channel_query query;
	int rc = side_query(side, &query);

	return rc ?: gid_query(side->fd, DEVICE_A, query.out.params.gid_index, gid);
}

/* Another address comes into both halves of the table, and goes. */
static int change_another_entry(const struct side *side, const char *ndev)
{
	struct expected_gid other = {
		.fd = side->fd,
		.device = DEVICE_A,
		.address = "10.89.0.1",
		.verdict = IBCHAN_GID_VERDICT_ROCE_V1,
	};
	int rc = sh("ip addr add 10.89.0.1/24 dev %s", ndev) ? -EIO : gid_await(&other);

	other.verdict = -ENOENT;
	return rc ?: sh("ip addr del 10.89.0.1/24 dev %s", ndev) ? -EIO : gid_await(&other);
}

TEST_F(address, of_roce_v1_that_rdma_cm_has_chosen_outlives_the_change_of_another_one)
{
	struct ibchan_cmd_gid_query gid;

	if (!has_hca() || is_infiniband(&self->asking))
		SKIP(return, "the ports are no Ethernet ports of HCAs");
	if (gid_find(self->asking.fd, DEVICE_A, "10.77.0.1", NULL, &gid) ||
	    gid.out.type != IBCHAN_GID_TYPE_ROCE_V1)
		SKIP(return, "the HCA is like one that speaks RoCE v2 only");
	ASSERT_EQ(0, entry_of(&self->asking, &gid));
	EXPECT_EQ(IBCHAN_GID_TYPE_ROCE_V2, gid.out.type);
	ASSERT_EQ(0, prefer("IB/RoCE v1"));
	EXPECT_EQ(0, connect_both(&self->asking, &self->asked, &self->listen));
	EXPECT_EQ(0, prefer("RoCE v2"));
	EXPECT_TRUE(eventually(is_connected, &self->asked));
	EXPECT_EQ(0, entry_of(&self->asking, &gid));
	EXPECT_EQ(IBCHAN_GID_TYPE_ROCE_V1, gid.out.type);
	EXPECT_EQ(0, change_another_entry(&self->asking, gid.out.ndev_name));
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, side_state(&self->asking));
	EXPECT_EQ(0, exchange(&self->asking, &self->asked));
	EXPECT_EQ(0, exchange(&self->asked, &self->asking));
	EXPECT_EQ(0, sh("rmdir " RDMA_CM "%s", DEVICE_A));
}

TEST_HARNESS_MAIN
