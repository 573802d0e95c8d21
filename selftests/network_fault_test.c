// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a network does to packets, and what becomes of links, addresses and peers, under
 * verified traffic of all operations: either everything arrives as it was sent, or the channel
 * breaks once and says why. No byte is ever wrong; traffic.h says how that is seen.
 *
 *	IBCHAN_NETWORK_MS	milliseconds of traffic for each disturbance (default 200)
 *	IBCHAN_SEED		of the places, lengths and contents
 *
 * `make network` runs it again and again with other seeds.
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "cable.h"
#include "test.h"
#include "thread.h"
#include "traffic.h"
#include "work.h"
#include "world.h"

/* However slow the machine; and while a disturbance has not shown. */
#define LEAST_ROUNDS	3
#define MOST_ROUNDS	100

static long traffic_ms(void)
{
	const char *setting = getenv("IBCHAN_NETWORK_MS");

	return setting && *setting ? strtol(setting, NULL, 0) : 200;
}

/* ---- Packets that come to harm ---- */

/* What all devices have counted; a test's own are there for as long as it runs. */
struct packets {
	long sent;
	long received;
	long repeated;	/* requests that had come before */
	long ahead;	/* requests before which one is missing */
	long complaints;	/* that a request is missing */
	long retried;
};

static long hw_counter(const char *name)
{
	const char *const devices[] = { DEVICE_A, DEVICE_B, CABLE_NEAR, CABLE_FAR };
	long value, sum = 0;
	char path[128];
	unsigned int i;
	FILE *file;

	for (i = 0; i < ARRAY_SIZE(devices); i++) {
		snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/%s",
			 devices[i], name);
		file = fopen(path, "re");
		if (file && fscanf(file, "%ld", &value) == 1)
			sum += value;
		if (file)
			fclose(file);
	}
	return sum;
}

static struct packets count_packets(void)
{
	return (struct packets) {
		.sent = hw_counter("sent_pkts"),
		.received = hw_counter("rcvd_pkts"),
		.repeated = hw_counter("duplicate_request"),
		.ahead = hw_counter("out_of_seq_request"),
		.complaints = hw_counter("rcvd_seq_err"),
		.retried = hw_counter("completer_retry_err"),
	};
}

static struct packets packets_since(const struct packets *before)
{
	struct packets now = count_packets();

	return (struct packets) {
		.sent = now.sent - before->sent,
		.received = now.received - before->received,
		.repeated = now.repeated - before->repeated,
		.ahead = now.ahead - before->ahead,
		.complaints = now.complaints - before->complaints,
		.retried = now.retried - before->retried,
	};
}

/* A complaint may acknowledge a read and both atomics; each end breaks with one work. */
static unsigned long may_be_unfilled(const struct traffic *traffic,
				     const struct packets *packets)
{
	return 3 * packets->complaints + 2 * traffic->breaks;
}

static bool packets_are_missing(const struct packets *packets)
{
	return packets->received < packets->sent;
}

static bool packets_come_twice(const struct packets *packets)
{
	return packets->received > packets->sent && packets->repeated;
}

static bool packets_overtake(const struct packets *packets)
{
	return packets->ahead;
}

FIXTURE(disturbed)
{
	struct calm calm;
	struct traffic traffic;
	struct packets before;
	bool netem;	/* is in the way */
};

FIXTURE_VARIANT(disturbed)
{
	const char *netem;
	/* Has it shown? Not asked of what happens too rarely to be sure of. */
	bool (*shows)(const struct packets *packets);
};

#define DISTURBANCE(name, how, seen)					\
FIXTURE_VARIANT_ADD(disturbed, name)					\
{									\
	.netem = how,							\
	.shows = seen,							\
}

DISTURBANCE(by_loss_of_1_in_1000, "loss 0.1%", NULL);
DISTURBANCE(by_loss_of_1_in_100, "loss 1%", NULL);
DISTURBANCE(by_loss_of_1_in_10, "loss 10%", packets_are_missing);
DISTURBANCE(by_duplicates_of_1_in_1000, "duplicate 0.1%", NULL);
DISTURBANCE(by_duplicates_of_1_in_100, "duplicate 1%", NULL);
DISTURBANCE(by_duplicates_of_1_in_10, "duplicate 10%", packets_come_twice);
/* All wait for 2 ms but those. */
DISTURBANCE(by_1_in_1000_that_overtake, "delay 2ms reorder 0.1%", NULL);
DISTURBANCE(by_1_in_100_that_overtake, "delay 2ms reorder 1%", NULL);
DISTURBANCE(by_1_in_10_that_overtake, "delay 2ms reorder 10%", packets_overtake);
/* One bit, anywhere from the Ethernet header to the checksum of RoCE. */
DISTURBANCE(by_a_wrong_bit_in_1_of_1000, "corrupt 0.1%", NULL);
DISTURBANCE(by_a_wrong_bit_in_1_of_100, "corrupt 1%", NULL);
DISTURBANCE(by_a_wrong_bit_in_1_of_10, "corrupt 10%", packets_are_missing);
/* They come when the peer has sent them again. */
DISTURBANCE(by_1_in_1000_that_are_late, "delay 100ms reorder 99.9%", NULL);
DISTURBANCE(by_1_in_100_that_are_late, "delay 100ms reorder 99%", NULL);
DISTURBANCE(by_1_in_10_that_are_late, "delay 100ms reorder 90%", packets_overtake);

/* One tc for both ends: an emulated CPU starts programs slowly. */
static int disturb(const char *netem)
{
	return sh("tc -batch - <<-END\n"
		  "qdisc replace dev v0 root netem %1$s\n"
		  "qdisc replace dev v1 root netem %1$s\n"
		  "END\n", netem);
}

static int calm_down(void)
{
	return sh("tc -force -batch - <<-END\n"
		  "qdisc delete dev v0 root\n"
		  "qdisc delete dev v1 root\n"
		  "END\n");
}

/* A kernel that has queueing disciplines has another one at least. */
static bool has_no_netem(void)
{
	return !sh("tc qdisc replace dev v0 root pfifo") && disturb("");
}

FIXTURE_SETUP(disturbed)
{
	self->netem = false;
	ASSERT_EQ(0, calm_begin(&self->calm));
	traffic_init(&self->traffic, DEVICE_A, DEVICE_B);
	self->traffic.forgives_unfilled = true;
	ASSERT_EQ(0, traffic_open(&self->traffic));
	self->before = count_packets();
}

FIXTURE_TEARDOWN(disturbed)
{
	if (self->netem)
		calm_down();
	traffic_close(&self->traffic);
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* What a channel says whose tries got lost; traffic.c knows when a flush says nothing more. */
static bool has_given_up(const struct traffic_end *end)
{
	if (end->status == IBCHAN_STATUS_WR_FLUSH_ERR)
		return true;
	return end->error == ETIMEDOUT && end->status == IBCHAN_STATUS_RETRY_EXC_ERR;
}

/* Makes channels again that broke, when they did because tries got lost. */
static int mend_after_timeout(struct traffic *traffic)
{
	int i;

	for (i = 0; i < 2; i++) {
		const struct traffic_end *end = &traffic->ends[i];

		if (!end->error || has_given_up(end))
			continue;
		fprintf(stderr, "# error %u, status %u\n", end->error, end->status);
		return -EBADMSG;
	}
	return traffic_mend(traffic);
}

/* Nothing else ends a channel here. */
static int round_or_timeout(struct traffic *traffic)
{
	int rc = traffic_round(traffic);

	return rc == TRAFFIC_BROKE ? mend_after_timeout(traffic) : rc;
}

static bool has_shown(const struct packets *before, bool (*shows)(const struct packets *))
{
	struct packets packets = packets_since(before);

	return !shows || shows(&packets);
}

/* Packets are few where all is slow, and each comes to harm by chance. */
static int run_rounds(struct traffic *traffic, const struct packets *before,
		      bool (*shows)(const struct packets *packets))
{
	__u64 end = now_ms() + traffic_ms();
	int rc = 0;

	while (!rc && (now_ms() < end || traffic->rounds < LEAST_ROUNDS ||
		       (traffic->rounds < MOST_ROUNDS && !has_shown(before, shows))))
		rc = round_or_timeout(traffic);
	return rc;
}

static void tell(const struct traffic *traffic, const struct packets *packets)
{
	fprintf(stderr,
		"# %lu rounds, %lu works, %lu breaks; %ld packets sent, %ld received, %ld repeated, %ld ahead, %ld complaints, %ld retries\n",
		traffic->rounds, traffic->works, traffic->breaks, packets->sent,
		packets->received, packets->repeated, packets->ahead, packets->complaints,
		packets->retried);
	if (traffic->unfilled)
		fprintf(stderr, "# soft-RoCE completed %lu reads or atomics without their data\n",
			traffic->unfilled);
}

TEST_F(disturbed, network_delivers_what_was_sent_or_breaks_the_channel_once)
{
	struct traffic *traffic = &self->traffic;
	int rc = disturb(variant->netem);
	struct packets packets;

	self->netem = true;
	if (rc && has_no_netem())
		SKIP(return, "this kernel has no netem");
	ASSERT_EQ(0, rc);
	ASSERT_EQ(0, run_rounds(traffic, &self->before, variant->shows));
	packets = packets_since(&self->before);
	tell(traffic, &packets);
	if (variant->shows)
		EXPECT_TRUE(variant->shows(&packets));
	EXPECT_LE(traffic->unfilled, may_be_unfilled(traffic, &packets));
	self->netem = false;
	ASSERT_EQ(0, calm_down());
	ASSERT_EQ(0, round_or_timeout(traffic));
	EXPECT_EQ(0, traffic_round(traffic));
}

/* ---- A network that carries nothing for a while ---- */

#define SILENCE_US	2000000

FIXTURE(silence)
{
	struct calm calm;
	struct pair pair;
	struct side_options options;
	int over;
};

FIXTURE_SETUP(silence)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	self->options = side_defaults();
}

FIXTURE_TEARDOWN(silence)
{
	pair_close(&self->pair);
	EXPECT_EQ(0, calm_end(&self->calm));
}

static void *end_silence(void *arg)
{
	moment(SILENCE_US);
	*(int *)arg = calm_down();
	return NULL;
}

/* The status of a message that is sent into two seconds of silence, or -errno. */
static int send_into_silence(FIXTURE_DATA(silence) * self)
{
	const struct side *a = self->pair.a;
	pthread_t thread;
	int rc;

	rc = post_receives(self->pair.b, 1, 1, 64);
	rc = rc ?: disturb("loss 100%");
	if (rc)
		return -EOPNOTSUPP;
	pthread_create(&thread, NULL, end_silence, &self->over);
	rc = post_one(a, work(a, IBCHAN_OP_SEND, 2, 0, 64));
	rc = rc ?: status_of(a, 2);
	pthread_join(thread, NULL);
	return self->over ? -EIO : rc;
}

TEST_F(silence, of_two_seconds_ends_no_channel)
{
	int rc;

	self->options.params.ack_timeout = IBCHAN_AUTO;
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &self->options));
	rc = send_into_silence(self);
	if (rc == -EOPNOTSUPP && has_no_netem())
		SKIP(return, "this kernel has no netem");
	ASSERT_EQ(0, rc);
	ASSERT_EQ(0, succeed(self->pair.b, 1, NULL));
	EXPECT_EQ(0, exchange(self->pair.b, self->pair.a));
}

TEST_F(silence, of_two_seconds_ends_a_channel_whose_builder_has_named_less)
{
	int rc;

	self->options.params.ack_timeout = 10;
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &self->options));
	rc = send_into_silence(self);
	if (rc == -EOPNOTSUPP && has_no_netem())
		SKIP(return, "this kernel has no netem");
	EXPECT_EQ(IBCHAN_STATUS_RETRY_EXC_ERR, rc);
}

/* ---- Peers that end ---- */

/* 134 ms for a try: a peer that is late is not given up, and one that has gone within a second. */
#define ACK_TIMEOUT	15

FIXTURE(connection)
{
	struct calm calm;
	struct traffic traffic;
	struct side *doomed;
	long delay_us;
};

FIXTURE_SETUP(connection)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	traffic_init(&self->traffic, DEVICE_A, DEVICE_B);
	if (!slow())
		self->traffic.options.params.ack_timeout = ACK_TIMEOUT;
	ASSERT_EQ(0, traffic_open(&self->traffic));
	self->doomed = &self->traffic.ends[1].side;
}

FIXTURE_TEARDOWN(connection)
{
	traffic_close(&self->traffic);
	EXPECT_EQ(0, calm_end(&self->calm));
}

static void *destroy_peer(void *arg)
{
	FIXTURE_DATA(connection) * self = arg;

	moment(self->delay_us);
	return (void *)(intptr_t)destroy(self->doomed->fd, self->doomed->channel);
}

/* Rounds until one of them breaks; @destroyed: what the thread was told. */
static int run_until_broken(FIXTURE_DATA(connection) * self, int *destroyed)
{
	pthread_t thread;
	void *result;
	int rc;

	pthread_create(&thread, NULL, destroy_peer, self);
	do
		rc = traffic_round(&self->traffic);
	while (!rc);
	pthread_join(thread, &result);
	*destroyed = (int)(intptr_t)result;
	return rc;
}

/*
 * Rounds until a thread has destroyed the peer's channel somewhere in one of them. Where an end
 * stands still for long the other gives it up first, and the thread finds no channel.
 */
static int run_until_destroyed(FIXTURE_DATA(connection) * self)
{
	unsigned int tries;
	int destroyed, rc;

	for (tries = 0; tries < MOST_ROUNDS; tries++) {
		rc = run_until_broken(self, &destroyed);
		if (destroyed != -ENOENT || rc != TRAFFIC_BROKE)
			return destroyed ? destroyed : rc;
		rc = mend_after_timeout(&self->traffic);
		if (rc)
			return rc;
	}
	return -ENOENT;
}

TEST_F(connection, whose_peer_is_destroyed_under_way_times_out_and_no_byte_is_wrong)
{
	const struct traffic_end *end = &self->traffic.ends[0];
	unsigned int seed = self->traffic.seed;
	__u64 stop = now_ms() + 2 * traffic_ms();
	unsigned int n;

	for (n = 0; now_ms() < stop || n < LEAST_ROUNDS; n++) {
		self->delay_us = rand_r(&seed) % 20000;
		ASSERT_EQ(TRAFFIC_BROKE, run_until_destroyed(self));
		/* It has nothing to say where none of its works were under way. */
		EXPECT_TRUE(!end->error || has_given_up(end))
			TH_LOG("error %u, status %u", end->error, end->status);
		ASSERT_EQ(0, traffic_mend(&self->traffic));
	}
	fprintf(stderr, "# %lu rounds, %lu works, %lu breaks\n", self->traffic.rounds,
		self->traffic.works, self->traffic.breaks);
	EXPECT_EQ(0, traffic_round(&self->traffic));
}

/* ---- Links and addresses that go ---- */

FIXTURE(cable)
{
	struct calm calm;
	struct traffic traffic;
	struct packets before;
	int (*mischief)(void);
	int over;
	int rc;
};

static bool can_open(void *arg)
{
	return !traffic_open(arg);
}

FIXTURE_SETUP(cable)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, cable_lay());
	traffic_init(&self->traffic, CABLE_NEAR, CABLE_FAR);
	/* As soon as the devices have the addresses. */
	ASSERT_TRUE(eventually(can_open, &self->traffic));
	self->before = count_packets();
}

FIXTURE_TEARDOWN(cable)
{
	traffic_close(&self->traffic);
	cable_cut();
	EXPECT_EQ(0, calm_end(&self->calm));
}

static void *do_mischief(void *arg)
{
	FIXTURE_DATA(cable) * self = arg;

	self->rc = self->mischief();
	__atomic_store_n(&self->over, 1, __ATOMIC_RELEASE);
	return NULL;
}

static bool can_mend(void *arg)
{
	return !traffic_mend(arg);
}

/* Traffic while a thread is up to something, and after it; a channel that broke is made again. */
static int run_while(FIXTURE_DATA(cable) * self, int (*mischief)(void))
{
	struct traffic *traffic = &self->traffic;
	pthread_t thread;
	int rc = 0;

	self->mischief = mischief;
	pthread_create(&thread, NULL, do_mischief, self);
	while (rc >= 0 && !__atomic_load_n(&self->over, __ATOMIC_ACQUIRE)) {
		rc = traffic_round(traffic);
		if (rc != TRAFFIC_BROKE)
			continue;
		fprintf(stderr, "# errors %u and %u, statuses %u and %u\n",
			traffic->ends[0].error, traffic->ends[1].error,
			traffic->ends[0].status, traffic->ends[1].status);
		if (!eventually(can_mend, traffic))
			rc = -ETIMEDOUT;
	}
	pthread_join(thread, NULL);
	if (rc >= 0 && self->rc)
		rc = -EIO;
	/* What broke at the very end is mended here. */
	if (rc >= 0 && traffic_round(traffic) == TRAFFIC_BROKE && !eventually(can_mend, traffic))
		rc = -ETIMEDOUT;
	return rc < 0 ? rc : 0;
}

static int links_go_down_and_up(void)
{
	return sh("ip link set w1 down") || cable_links_up() ||
	       sh("ip link set w0 down") || cable_links_up();
}

TEST_F(cable, whose_links_go_down_and_up_delivers_what_was_sent_or_breaks_once)
{
	struct packets packets;

	/* Behind what a link has lost the peer complains. */
	self->traffic.forgives_unfilled = true;
	ASSERT_EQ(0, run_while(self, links_go_down_and_up));
	packets = packets_since(&self->before);
	tell(&self->traffic, &packets);
	EXPECT_LE(self->traffic.unfilled, may_be_unfilled(&self->traffic, &packets));
	EXPECT_EQ(0, traffic_round(&self->traffic));
}

TEST_F(cable, whose_link_stays_down_breaks_the_channel_once)
{
	struct traffic *traffic = &self->traffic;

	ASSERT_EQ(0, traffic_round(traffic));
	ASSERT_EQ(0, sh("ip link set w1 down"));
	ASSERT_EQ(TRAFFIC_BROKE, traffic_round(traffic));
	fprintf(stderr, "# errors %u and %u, statuses %u and %u\n", traffic->ends[0].error,
		traffic->ends[1].error, traffic->ends[0].status, traffic->ends[1].status);
	ASSERT_EQ(0, cable_links_up());
	ASSERT_TRUE(eventually(can_mend, traffic));
	EXPECT_EQ(0, traffic_round(traffic));
}

static int address_goes_and_comes(void)
{
	return sh("ip addr del 10.88.0.1/24 dev w0") || cable_links_up();
}

TEST_F(cable, that_loses_an_address_breaks_the_channel_once)
{
	ASSERT_EQ(0, run_while(self, address_goes_and_comes));
	EXPECT_LE(1, self->traffic.breaks);
	EXPECT_EQ(0, traffic_round(&self->traffic));
}

TEST_HARNESS_MAIN
