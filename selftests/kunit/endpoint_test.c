// SPDX-License-Identifier: GPL-2.0-only
/* endpoint.c: what is written, what is accepted, and every field damaged. */
#include <linux/kernel.h>
#include <linux/string.h>

#include "cases.h"

static const u8 ipv4_gid[16] = {
	[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 77, [14] = 0, [15] = 2,
};

static const u8 ipv6_gid[16] = { 0xfd, 0x77, [15] = 2 };

static struct ibchan_endpoint ours, theirs;
static u32 max_lid;

/* Two RoCE ends with IPv4 addresses. */
static int endpoint_suite_init(struct kunit *test)
{
	max_lid = 0xbfff;
	ours = (struct ibchan_endpoint){
		.magic = cpu_to_be32(IBCHAN_ENDPOINT_MAGIC),
		.version = cpu_to_be16(IBCHAN_ENDPOINT_VERSION),
		.link_layer = IBCHAN_LINK_LAYER_ETHERNET,
		.mtu = 3,
		.qpn = cpu_to_be32(17),
		.psn = cpu_to_be32(0x123456),
		.mac = { 2, 0, 0, 0x77, 0, 1 },
		.max_dest_rd_atomic = 16,
	};
	memcpy(ours.gid, ipv4_gid, sizeof(ours.gid));
	theirs = ours;
	theirs.qpn = cpu_to_be32(18);
	ours.gid[15] = 1;
	return 0;
}

static void use_ipv6(void)
{
	memcpy(ours.gid, ipv6_gid, sizeof(ours.gid));
	memcpy(theirs.gid, ipv6_gid, sizeof(theirs.gid));
	ours.gid[15] = 1;
}

static void use_infiniband(void)
{
	ours.link_layer = IBCHAN_LINK_LAYER_INFINIBAND;
	theirs.link_layer = IBCHAN_LINK_LAYER_INFINIBAND;
	memset(theirs.mac, 0, sizeof(theirs.mac));
	ours.lid = cpu_to_be32(1);
	theirs.lid = cpu_to_be32(2);
	ours.pkey = cpu_to_be16(0xffff);
	theirs.pkey = cpu_to_be16(0xffff);
}

static void expect_accepted(struct kunit *test)
{
	struct ibchan_reason reason = { .wr = UNTOUCHED, .element = UNTOUCHED };

	KUNIT_EXPECT_EQ(test, ibchan_endpoint_check(&ours, &theirs, max_lid, &reason), 0);
	KUNIT_EXPECT_EQ(test, reason.code, (u32)IBCHAN_REASON_NONE);
	KUNIT_EXPECT_EQ(test, ibchan_endpoint_check(&ours, &theirs, max_lid, NULL), 0);
}

static void expect_refused(struct kunit *test, u32 code, u64 our_value, u64 their_value)
{
	struct ibchan_reason reason = { .wr = UNTOUCHED, .element = UNTOUCHED };

	KUNIT_EXPECT_EQ_MSG(test, ibchan_endpoint_check(&ours, &theirs, max_lid, &reason), -EINVAL,
			    "reason %u", code);
	expect_reason(test, &reason, &(struct refusal){
		-EINVAL, code, UNTOUCHED, { our_value, their_value },
	});
	KUNIT_EXPECT_EQ(test, ibchan_endpoint_check(&ours, &theirs, max_lid, NULL), -EINVAL);
}

static void a_sound_endpoint_is_accepted(struct kunit *test)
{
	expect_accepted(test);
	use_ipv6();
	expect_accepted(test);
	use_infiniband();
	expect_accepted(test);
}

static void another_magic_is_refused(struct kunit *test)
{
	int bit;

	for (bit = 0; bit < 32; bit++) {
		u32 magic = IBCHAN_ENDPOINT_MAGIC ^ (1U << bit);

		theirs.magic = cpu_to_be32(magic);
		expect_refused(test, IBCHAN_REASON_ENDPOINT_MAGIC, IBCHAN_ENDPOINT_MAGIC, magic);
	}
	theirs.magic = cpu_to_be32(IBCHAN_ENDPOINT_MAGIC);
	expect_accepted(test);
}

static void a_later_version_is_accepted_and_none_is_refused(struct kunit *test)
{
	u32 version;

	for (version = 1; version <= U16_MAX; version++) {
		theirs.version = cpu_to_be16(version);
		expect_accepted(test);
	}
	theirs.version = 0;
	expect_refused(test, IBCHAN_REASON_ENDPOINT_VERSION, IBCHAN_ENDPOINT_VERSION, 0);
}

/* They are a later version's. */
static void what_is_not_known_is_ignored(struct kunit *test)
{
	int i;

	for (i = 0; i < 8; i++) {
		theirs.flags = 1 << i;
		if (theirs.flags == IBCHAN_ENDPOINT_GRH)
			expect_refused(test, IBCHAN_REASON_ENDPOINT_RESERVED, 0, 0);
		else
			expect_accepted(test);
	}
	theirs.flags = 0;
	memset(theirs.reserved1, 0x80, sizeof(theirs.reserved1));
	memset(theirs.reserved, 0x80, sizeof(theirs.reserved));
	expect_accepted(test);
}

static void another_link_layer_is_refused(struct kunit *test)
{
	u32 layer;

	for (layer = 0; layer <= U8_MAX; layer++) {
		theirs.link_layer = layer;
		if (layer != IBCHAN_LINK_LAYER_ETHERNET)
			expect_refused(test, IBCHAN_REASON_LINK_LAYER,
				       IBCHAN_LINK_LAYER_ETHERNET, layer);
	}
	ours.link_layer = IBCHAN_LINK_LAYER_INFINIBAND;
	theirs.link_layer = IBCHAN_LINK_LAYER_ETHERNET;
	expect_refused(test, IBCHAN_REASON_LINK_LAYER, IBCHAN_LINK_LAYER_INFINIBAND,
		       IBCHAN_LINK_LAYER_ETHERNET);
}

static void a_queue_pair_number_has_24_bits_and_is_not_for_management(struct kunit *test)
{
	static const u32 bad[] = { 0, 1, 0x1000000, 0x80000002, U32_MAX };
	int i;

	theirs.qpn = cpu_to_be32(2);
	expect_accepted(test);
	theirs.qpn = cpu_to_be32(0xffffff);
	expect_accepted(test);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		theirs.qpn = cpu_to_be32(bad[i]);
		expect_refused(test, IBCHAN_REASON_PEER_QPN, 2, bad[i]);
	}
}

static void a_sequence_number_has_24_bits(struct kunit *test)
{
	static const u32 bad[] = { 0x1000000, 0x80000000, U32_MAX };
	int i;

	theirs.psn = 0;
	expect_accepted(test);
	theirs.psn = cpu_to_be32(0xffffff);
	expect_accepted(test);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		theirs.psn = cpu_to_be32(bad[i]);
		expect_refused(test, IBCHAN_REASON_PEER_PSN, 0xffffff, bad[i]);
	}
}

static void an_mtu_is_one_of_five(struct kunit *test)
{
	u32 mtu;

	for (mtu = 0; mtu <= U8_MAX; mtu++) {
		theirs.mtu = mtu;
		if (mtu >= 1 && mtu <= 5)
			expect_accepted(test);
		else
			expect_refused(test, IBCHAN_REASON_PEER_MTU, ours.mtu, mtu);
	}
}

static void a_peer_serves_one_read_at_least(struct kunit *test)
{
	theirs.max_dest_rd_atomic = 0;
	expect_refused(test, IBCHAN_REASON_PEER_RD_ATOMIC, 1, 0);
	theirs.max_dest_rd_atomic = 1;
	expect_accepted(test);
	theirs.max_dest_rd_atomic = 255;
	expect_accepted(test);
}

static void an_ipv4_and_an_ipv6_end_cannot_talk(struct kunit *test)
{
	memcpy(theirs.gid, ipv6_gid, sizeof(theirs.gid));
	expect_refused(test, IBCHAN_REASON_GID_FAMILY, 4, 6);
	memcpy(theirs.gid, ipv4_gid, sizeof(theirs.gid));
	memcpy(ours.gid, ipv6_gid, sizeof(ours.gid));
	expect_refused(test, IBCHAN_REASON_GID_FAMILY, 6, 4);
}

static void set_ipv4(u32 address)
{
	__be32 value = cpu_to_be32(address);

	memcpy(&theirs.gid[12], &value, sizeof(value));
}

static void an_ipv4_address_is_of_one_machine(struct kunit *test)
{
	static const u32 bad[] = { 0, 0xe0000000, 0xe0000001, 0xefffffff, 0xffffffff };
	static const u32 good[] = { 0x0a4d0001, 0x7f000001, 0xdfffffff, 1 };
	int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		set_ipv4(bad[i]);
		expect_refused(test, IBCHAN_REASON_PEER_GID, 0, 0);
	}
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		set_ipv4(good[i]);
		expect_accepted(test);
	}
}

static void an_ipv6_address_is_of_one_machine(struct kunit *test)
{
	use_ipv6();
	memset(theirs.gid, 0, sizeof(theirs.gid));
	expect_refused(test, IBCHAN_REASON_PEER_GID, 0, 0);
	theirs.gid[0] = 0xff;
	theirs.gid[1] = 0x02;
	theirs.gid[15] = 1;
	expect_refused(test, IBCHAN_REASON_PEER_GID, 0, 0);
	theirs.gid[0] = 0xfe;
	theirs.gid[1] = 0x80;
	expect_accepted(test);
}

static void a_mac_address_is_of_one_machine(struct kunit *test)
{
	static const u8 bad[][6] = {
		{ 0 }, { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff }, { 1 }, { 3, 0, 0, 0, 0, 1 },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		memcpy(theirs.mac, bad[i], sizeof(theirs.mac));
		expect_refused(test, IBCHAN_REASON_PEER_MAC, 0, 0);
	}
	memcpy(theirs.mac, ours.mac, sizeof(theirs.mac));
	expect_accepted(test);
}

/* There the GID may stay empty, and no Ethernet address stands behind it. */
static void infiniband_needs_no_ethernet_address(struct kunit *test)
{
	use_infiniband();
	memset(theirs.gid, 0, sizeof(theirs.gid));
	expect_accepted(test);
	theirs.lid = cpu_to_be32(4711);
	expect_accepted(test);
}

static void an_infiniband_lid_must_be_a_ports(struct kunit *test)
{
	static const u32 good[] = { 1, 0xbfff };
	static const u32 bad[] = { 0, 0xc000, 0xffff, 0x10001, U32_MAX };
	int i;

	use_infiniband();
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		theirs.lid = cpu_to_be32(good[i]);
		expect_accepted(test);
	}
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		theirs.lid = cpu_to_be32(bad[i]);
		expect_refused(test, IBCHAN_REASON_PEER_LID, 0xbfff, bad[i]);
	}
	/* Omni-Path has more of them. */
	max_lid = 0xefffffff;
	theirs.lid = cpu_to_be32(0x10001);
	expect_accepted(test);
}

static void use_partitions(u16 our_pkey, u16 their_pkey)
{
	ours.pkey = cpu_to_be16(our_pkey);
	theirs.pkey = cpu_to_be16(their_pkey);
}

static void infiniband_peers_must_be_in_one_partition(struct kunit *test)
{
	use_infiniband();
	use_partitions(0xffff, 0x7fff);
	expect_accepted(test);
	use_partitions(0x0001, 0x8001);
	expect_accepted(test);
	use_partitions(0x7fff, 0x7fff);
	expect_refused(test, IBCHAN_REASON_PEER_PKEY, 0x7fff, 0x7fff);
	use_partitions(0xffff, 0x8001);
	expect_refused(test, IBCHAN_REASON_PEER_PKEY, 0xffff, 0x8001);
	use_partitions(0xffff, 0);
	expect_refused(test, IBCHAN_REASON_PEER_PKEY, 0xffff, 0);
}

static void an_infiniband_peer_must_be_in_the_same_subnet(struct kunit *test)
{
	use_infiniband();
	use_ipv6();
	theirs.gid[7] = 1;
	expect_refused(test, IBCHAN_REASON_PEER_SUBNET, 0xfd77000000000000ULL,
		       0xfd77000000000001ULL);
	ours.gid[7] = 1;
	expect_accepted(test);
}

static void a_partition_and_a_grh_are_infinibands_only(struct kunit *test)
{
	theirs.pkey = cpu_to_be16(0xffff);
	expect_refused(test, IBCHAN_REASON_ENDPOINT_RESERVED, 0, 0);
	theirs.pkey = 0;
	theirs.flags = IBCHAN_ENDPOINT_GRH;
	expect_refused(test, IBCHAN_REASON_ENDPOINT_RESERVED, 0, 0);
	use_infiniband();
	expect_accepted(test);
}

static void the_family_is_told_by_the_mapped_prefix_alone(struct kunit *test)
{
	u8 gid[16];
	int i;

	memcpy(gid, ipv4_gid, sizeof(gid));
	KUNIT_EXPECT_EQ(test, ibchan_gid_family(gid), (u8)4);
	for (i = 0; i < 12; i++) {
		gid[i] ^= 1;
		KUNIT_EXPECT_EQ_MSG(test, ibchan_gid_family(gid), (u8)6, "byte %d", i);
		gid[i] ^= 1;
	}
	for (i = 12; i < 16; i++) {
		gid[i] ^= 0xff;
		KUNIT_EXPECT_EQ(test, ibchan_gid_family(gid), (u8)4);
	}
}

static void a_default_p_key_beats_a_full_one_and_that_a_limited_one(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, ibchan_pkey_rank(0xffff), 3);
	KUNIT_EXPECT_EQ(test, ibchan_pkey_rank(0x8001), 2);
	KUNIT_EXPECT_EQ(test, ibchan_pkey_rank(0xfffe), 2);
	KUNIT_EXPECT_EQ(test, ibchan_pkey_rank(0x7fff), 1);
	KUNIT_EXPECT_EQ(test, ibchan_pkey_rank(0x0001), 1);
	/* Partition 0 does not exist; that is what an empty entry looks like. */
	KUNIT_EXPECT_EQ(test, ibchan_pkey_rank(0x0000), 0);
	KUNIT_EXPECT_EQ(test, ibchan_pkey_rank(0x8000), 0);
}

#define QPN	0xabcdef

static struct ibchan_gid gid;
static struct ibchan_params params;
static struct ibchan_endpoint built;

static void build(void)
{
	ibchan_endpoint_build(&built, &gid, &params, QPN);
}

static void make_own(void)
{
	params = (struct ibchan_params) {
		.send_psn = 0x654321, .max_rd_atomic = 7, .mtu = 1024,
	};
	gid = (struct ibchan_gid) { .family = 4 };
	memcpy(gid.gid.raw, ipv4_gid, sizeof(ipv4_gid));
	memcpy(gid.mac, ours.mac, sizeof(ours.mac));
}

static void an_endpoint_is_built_from_its_channel(struct kunit *test)
{
	make_own();
	gid.lid = 9;
	build();
	KUNIT_EXPECT_EQ(test, be32_to_cpu(built.magic), IBCHAN_ENDPOINT_MAGIC);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(built.version), (u16)IBCHAN_ENDPOINT_VERSION);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(built.qpn), (u32)QPN);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(built.psn), 0x654321U);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(built.lid), 9U);
	KUNIT_EXPECT_EQ(test, built.mtu, (u8)3);
	KUNIT_EXPECT_EQ(test, built.flags, (u8)0);
	KUNIT_EXPECT_EQ(test, built.max_dest_rd_atomic, (u8)7);
	KUNIT_EXPECT_EQ(test, memcmp(built.gid, ipv4_gid, sizeof(ipv4_gid)), 0);
	KUNIT_EXPECT_EQ(test, memcmp(built.mac, ours.mac, sizeof(ours.mac)), 0);
}

static void an_endpoint_says_whether_writes_are_taken(struct kunit *test)
{
	make_own();
	params.access = IBCHAN_ACCESS_SHARED;
	build();
	KUNIT_EXPECT_EQ(test, built.flags, (u8)IBCHAN_ENDPOINT_REMOTE_WRITE);
	params.access = IBCHAN_ACCESS_LOCAL | IBCHAN_ACCESS_REMOTE_READ;
	build();
	KUNIT_EXPECT_EQ(test, built.flags, (u8)0);
}

static void what_is_built_is_accepted(struct kunit *test)
{
	make_own();
	build();
	KUNIT_EXPECT_EQ(test, built.link_layer, (u8)IBCHAN_LINK_LAYER_ETHERNET);
	theirs = built;
	expect_accepted(test);
	ours = built;
	expect_accepted(test);
	gid.family = 0;
	gid.lid = 9;
	gid.pkey = 0xffff;
	gid.grh = 1;
	params.mtu = 4096;
	build();
	KUNIT_EXPECT_TRUE(test, built.flags & IBCHAN_ENDPOINT_GRH);
	KUNIT_EXPECT_EQ(test, built.link_layer, (u8)IBCHAN_LINK_LAYER_INFINIBAND);
	ours = built;
	theirs = built;
	expect_accepted(test);
}

static void an_endpoint_of_iwarp_says_so(struct kunit *test)
{
	make_own();
	gid.family = 0;
	gid.iwarp = 1;
	build();
	KUNIT_EXPECT_EQ(test, built.link_layer, (u8)IBCHAN_LINK_LAYER_IWARP);
}

/* The rules once more, on the bytes of a peer that talks IPv4 over Ethernet. */
static bool header_is_sound(const u8 *b)
{
	static const u8 magic[] = { 0x49, 0x42, 0x43, 0x48 };

	return !memcmp(b, magic, sizeof(magic)) && (b[4] || b[5]) && b[6] == 2 &&
	       b[7] >= 1 && b[7] <= 5 && !b[8] && (b[9] || b[10] || b[11] >= 2) && !b[12];
}

static bool address_is_sound(const u8 *b)
{
	static const u8 prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(&b[16], prefix, sizeof(prefix)) &&
	       memchr_inv(&b[28], 0, 4) && (b[28] & 0xf0) != 0xe0 &&
	       memchr_inv(&b[28], 0xff, 4) && !(b[32] & 1) && memchr_inv(&b[32], 0, 6);
}

static bool bytes_are_sound(const u8 *b)
{
	return header_is_sound(b) && address_is_sound(b) && b[38] &&
	       !(b[39] & IBCHAN_ENDPOINT_GRH) && !memchr_inv(&b[56], 0, 2);
}

static void expect_verdict_on_bytes(struct kunit *test)
{
	int expected = bytes_are_sound((const u8 *)&theirs) ? 0 : -EINVAL;
	struct ibchan_reason reason = {};

	KUNIT_EXPECT_EQ_MSG(test, ibchan_endpoint_check(&ours, &theirs, max_lid, &reason), expected,
			    "%*ph", (int)sizeof(theirs), &theirs);
	KUNIT_EXPECT_EQ(test, !reason.code, !expected);
}

static void each_byte_with_each_value_is_judged_by_the_rules(struct kunit *test)
{
	u8 *bytes = (u8 *)&theirs;
	int i, value;

	for (i = 0; i < sizeof(theirs); i++) {
		u8 kept = bytes[i];

		for (value = 0; value <= U8_MAX; value++) {
			bytes[i] = value;
			expect_verdict_on_bytes(test);
		}
		bytes[i] = kept;
	}
}

static void damaged_endpoints_are_judged_by_the_rules(struct kunit *test)
{
	const struct ibchan_endpoint sound = theirs;
	u32 random = 0x49424348, round, n;

	for (round = 0; round < 20000; round++) {
		theirs = sound;
		for (n = 1 + next_random(&random) % 3; n; n--)
			((u8 *)&theirs)[next_random(&random) % sizeof(theirs)] =
				next_random(&random);
		expect_verdict_on_bytes(test);
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(a_sound_endpoint_is_accepted),
	KUNIT_CASE(another_magic_is_refused),
	KUNIT_CASE(a_later_version_is_accepted_and_none_is_refused),
	KUNIT_CASE(what_is_not_known_is_ignored),
	KUNIT_CASE(another_link_layer_is_refused),
	KUNIT_CASE(a_queue_pair_number_has_24_bits_and_is_not_for_management),
	KUNIT_CASE(a_sequence_number_has_24_bits),
	KUNIT_CASE(an_mtu_is_one_of_five),
	KUNIT_CASE(a_peer_serves_one_read_at_least),
	KUNIT_CASE(an_ipv4_and_an_ipv6_end_cannot_talk),
	KUNIT_CASE(an_ipv4_address_is_of_one_machine),
	KUNIT_CASE(an_ipv6_address_is_of_one_machine),
	KUNIT_CASE(a_mac_address_is_of_one_machine),
	KUNIT_CASE(infiniband_needs_no_ethernet_address),
	KUNIT_CASE(an_infiniband_lid_must_be_a_ports),
	KUNIT_CASE(infiniband_peers_must_be_in_one_partition),
	KUNIT_CASE(an_infiniband_peer_must_be_in_the_same_subnet),
	KUNIT_CASE(a_partition_and_a_grh_are_infinibands_only),
	KUNIT_CASE(the_family_is_told_by_the_mapped_prefix_alone),
	KUNIT_CASE(a_default_p_key_beats_a_full_one_and_that_a_limited_one),
	KUNIT_CASE(an_endpoint_is_built_from_its_channel),
	KUNIT_CASE(an_endpoint_says_whether_writes_are_taken),
	KUNIT_CASE(what_is_built_is_accepted),
	KUNIT_CASE(an_endpoint_of_iwarp_says_so),
	KUNIT_CASE(each_byte_with_each_value_is_judged_by_the_rules),
	KUNIT_CASE(damaged_endpoints_are_judged_by_the_rules),
	{}
};

struct kunit_suite endpoint_suite = {
	.name = "ibchan_endpoint",
	.init = endpoint_suite_init,
	.test_cases = cases,
};
