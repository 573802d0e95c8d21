// SPDX-License-Identifier: LGPL-2.1-or-later
/* ibchan doctor: a channel to the peer, and data over it. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "doctor.h"
#include "doctor_link.h"
#include "doctor_peer.h"
#include "probe.h"

/* Within one packet, within a page, over several packets: the first time in this order. */
static const __u32 sizes[] = { 1, 64, 4096, DOCTOR_MESSAGE };

static __u64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (__u64)now.tv_sec * 1000000000U + (__u64)now.tv_nsec;
}

/* --- connecting --- */

static void find_failed(struct doctor *doctor, const char *subject, const char *what,
			const struct ibchan_error *error)
{
	const char *hint = ibchan_error_hint(error);
	char text[256];

	ibchan_error_text(error, text, sizeof(text));
	doctor_find(doctor, FINDING_CHANNEL_FAILED, SEVERITY_ERROR, subject,
		    "%s: %s.\n"
		    "The module or the device's driver has refused it.\n"
		    "%s",
		    what, text,
		    hint[0] ? hint : "Look at dmesg for lines of ibchan and of the driver.");
}

static void find_rejected(struct doctor *doctor, struct peer *peer)
{
	doctor_find(doctor, FINDING_PEER_REJECTS, SEVERITY_ERROR, peer->text,
		    "Somebody listens on port %s of the peer, and has rejected the doctor.\n"
		    "It is another program, a doctor of another version, or a doctor that cannot make a channel itself.\n"
		    "On the peer: ibchan doctor, and ibchan doctor --serve --port PORT with a free port; what it prints tells more.",
		    peer->port);
}

static void judge_connect(struct doctor *doctor, struct peer *peer, int err,
			  const struct ibchan_error *error)
{
	const bool is_default = !strcmp(peer->port, DOCTOR_PORT);

	if (err == -ECONNREFUSED)
		doctor_find(doctor, FINDING_LISTENER_ABSENT, SEVERITY_ERROR, peer->text,
			    "The peer answers, and says that nobody listens on port %s.\n"
			    "Packets travel both ways; the program on the peer is not running, or listens on another port or address.\n"
			    "On the peer: ibchan doctor --serve%s%s; then run the doctor here again.",
			    peer->port, is_default ? "" : " --port ",
			    is_default ? "" : peer->port);
	else if (err == -ECONNRESET)
		find_rejected(doctor, peer);
	else if (peer->roce &&
		 (err == -ETIMEDOUT || err == -EHOSTUNREACH || err == -ENETUNREACH))
		explain_silence(doctor, peer);
	else
		find_failed(doctor, peer->text, "connect", error);
}

static int begin(struct link *link, struct peer *peer, struct ibchan_error *error)
{
	struct ibchan_connect_params params = {
		.size = sizeof(params),
		.length = sizeof(struct greeting),
		.address_ns = link->timeout_ns,
		.route_ns = link->timeout_ns,
		.connect_ns = link->timeout_ns,
		.source = peer->source,
	};
	struct greeting greeting;
	int err;

	greeting_init(&greeting);
	params.data = &greeting;
	err = ibchan_prepared_connect(link->prepared, peer->text, peer->port, &params,
				      &link->channel, error);
	if (!err)
		link->prepared = NULL;
	return err;
}

static bool connect_link(struct doctor *doctor, struct peer *peer, struct link *link)
{
	struct ibchan_connection_info info;
	struct ibchan_error error;
	__u64 start = now_ns();
	int err = begin(link, peer, &error);

	if (err) {
		find_failed(doctor, peer->text, "connect", &error);
		return false;
	}
	err = ibchan_channel_connect_wait(link->channel, IBCHAN_TIMEOUT_NEVER, &error);
	if (err) {
		judge_connect(doctor, peer, err, &error);
		return false;
	}
	doctor_fact(doctor, "channel", peer->text, "connected in %.1f ms",
		    (double)(now_ns() - start) / 1e6);
	if (!ibchan_channel_connection(link->channel, &info, NULL) &&
	    greeting_is_ours(info.data, info.length))
		return true;
	find_rejected(doctor, peer);
	return false;
}

/* --- data --- */

/**
 * struct attempt - a message, and its answer of the same length
 * @size: bytes
 * @back: the peer has the message
 */
struct attempt {
	__u32 size;
	bool back;
};

static void find_stuck(struct doctor *doctor, struct peer *peer, const char *fact)
{
	doctor_find(doctor, FINDING_PEER_STUCK, SEVERITY_ERROR, peer->text,
		    "The channel stands, but %s.\n"
		    "The program on the peer is stopped, hangs, or gets no CPU time.\n"
		    "Look at it: ps -o pid,stat,wchan:30,cmd -C ibchan (T is stopped, D waits in the kernel).",
		    fact);
}

static bool find_gone(struct doctor *doctor, struct peer *peer, bool broken_by_peer)
{
	static const char silent[] =
		"The peer was connected, and then acknowledged no packet any more.";

	if (broken_by_peer)
		return doctor_find(doctor, FINDING_PEER_GONE, SEVERITY_ERROR, peer->text,
				   "The peer has closed the channel while data was exchanged.\n"
				   "The program on the peer has ended: killed, crashed, or it found an error.\n"
				   "Look at what it said, and at dmesg on the peer; then start ibchan doctor --serve there again.");
	if (probe_is_alive((const struct sockaddr *)&peer->address))
		return doctor_find(doctor, FINDING_PEER_GONE, SEVERITY_ERROR, peer->text,
				   "%s\n"
				   "Its host still answers: its RDMA device was reset, removed or lost this address, or a firewall came up.\n"
				   "On the peer: ibchan doctor; dmesg.", silent);
	return doctor_find(doctor, FINDING_PEER_GONE, SEVERITY_ERROR, peer->text,
			   "%s\n"
			   "Its host does not answer either: it is down, or the network is.\n"
			   "Look at the peer's console, the cables and the switch.", silent);
}

static bool gid_is_gone(const struct link *link, const struct peer *peer,
			const struct ibchan_params *params)
{
	struct ibchan_gid_info gid;
	int rc = ibchan_gid_query(link->context, peer->route.device, params->port,
				  params->gid_index, &gid, NULL);

	return rc == -ENOENT || (!rc && gid.index != params->gid_index);
}

/*
 * Before the channel hears of the loss, the device may fail works, because it has no route any
 * more; and a peer on the same machine, which uses the same address, may disconnect. The entry of
 * the GID table goes last.
 */
static bool address_is_gone(const struct link *link, const struct peer *peer)
{
	struct ibchan_connection_info connection;
	struct ibchan_channel_info info;

	if (!ibchan_channel_connection(link->channel, &connection, NULL) &&
	    probe_is_lost((const struct sockaddr *)&connection.local))
		return true;
	return !ibchan_channel_query(link->channel, &info, NULL) &&
	       (info.error == -EADDRNOTAVAIL || gid_is_gone(link, peer, &info.params));
}

/*
 * Returns the packets' length if it is the first time that packets as long as the channel's are
 * lost, else 0. A side whose message was lost breaks its channel, of which the other hears.
 */
static __u32 narrow_path(const struct link *link, const struct attempt *attempt,
			 const struct ibchan_error *error)
{
	const bool of_work = error->origin == IBCHAN_ERROR_WORK;
	struct ibchan_channel_info info;
	bool is_lost;

	if (attempt->back)
		is_lost = error->code == -ETIMEDOUT || error->code == -ESHUTDOWN ||
			  (of_work && error->status == IBCHAN_STATUS_WR_FLUSH_ERR);
	else
		is_lost = of_work && error->status == IBCHAN_STATUS_RETRY_EXC_ERR;
	if (!link->round || link->round >= ARRAY_SIZE(sizes) || !is_lost ||
	    ibchan_channel_query(link->channel, &info, NULL) || attempt->size < info.params.mtu)
		return 0;
	return info.params.mtu;
}

static void judge_end(struct doctor *doctor, struct peer *peer, struct link *link,
		      const struct ibchan_error *error)
{
	const __u32 status = error->origin == IBCHAN_ERROR_WORK ? error->status :
								  IBCHAN_STATUS_SUCCESS;
	struct ibchan_channel_info info;
	struct ibchan_error last;

	if (status == IBCHAN_STATUS_RETRY_EXC_ERR) {
		find_gone(doctor, peer, false);
	} else if (status == IBCHAN_STATUS_RNR_RETRY_EXC_ERR) {
		find_stuck(doctor, peer, "the peer has no room for a message");
	} else if (error->code == -ESHUTDOWN || status == IBCHAN_STATUS_WR_FLUSH_ERR) {
		/* The first error has broken the channel; the works that it has flushed did not. */
		find_gone(doctor, peer, ibchan_channel_query(link->channel, &info, NULL) ||
			  info.status != IBCHAN_STATUS_RETRY_EXC_ERR);
	} else if (error->code == -ETIMEDOUT && !status) {
		/* An empty message tells whether the peer's device is still there. */
		link_say(link, 0, &last);
		if (last.origin == IBCHAN_ERROR_WORK &&
		    last.status == IBCHAN_STATUS_RETRY_EXC_ERR)
			find_gone(doctor, peer, false);
		else
			find_stuck(doctor, peer, "no answer came");
	} else {
		find_failed(doctor, peer->text, "exchange", error);
	}
}

static void judge_exchange(struct doctor *doctor, struct peer *peer, struct link *link,
			   const struct attempt *attempt, const struct ibchan_error *error)
{
	const __u32 mtu = narrow_path(link, attempt, error);

	if (address_is_gone(link, peer))
		doctor_find(doctor, FINDING_ADDRESS_GONE, SEVERITY_ERROR, peer->route.device,
			    "This side's own address was taken away while data was exchanged.\n"
			    "Somebody has deleted the address, or the network device has lost it: a DHCP lease that ended, a network manager that was restarted.\n"
			    "Set the address again, for good (ip address; the network manager's log), and connect anew.");
	else if (mtu)
		doctor_find(doctor, FINDING_MTU_MISMATCH, SEVERITY_ERROR, peer->text,
			    "Shorter messages cross both ways; the first one of %u bytes, in packets of %u, was lost on the way %s.\n"
			    "A switch or a tunnel between has a smaller MTU than both ends.\n"
			    "Set the same MTU everywhere: ip link set NETDEV mtu BYTES; or build channels with a smaller mtu.",
			    attempt->size, mtu, attempt->back ? "here" : "to the peer");
	else
		judge_end(doctor, peer, link, error);
}

/* Says whether a message there and back was right. */
static bool exchange_one(struct doctor *doctor, struct peer *peer, struct link *link, __u32 size)
{
	struct attempt attempt = { .size = size };
	struct ibchan_error error;
	__u32 bytes;
	int err = link_say(link, size, &error);

	if (!err) {
		attempt.back = true;
		err = link_hear(link, &bytes, &error);
	}
	if (err) {
		judge_exchange(doctor, peer, link, &attempt, &error);
		return false;
	}
	if (bytes != size || !link_is_right(link, bytes))
		return doctor_find(doctor, FINDING_DATA_WRONG, SEVERITY_ERROR, peer->text,
				   "A message of %u bytes arrived %s with other bytes than were sent.\n"
				   "Memory, the device or its driver is broken: the network alone cannot do that, packets carry a checksum.\n"
				   "Take the device out of use; look at its firmware's version, and run a memory test.",
				   size, bytes ? "here" : "at the peer");
	link->round++;
	if (!link_listen(link, &error))
		return true;
	judge_exchange(doctor, peer, link, &attempt, &error);
	return false;
}

static void say_times(struct doctor *doctor, struct peer *peer, const __u64 *best)
{
	char text[TEXT_SIZE] = "";
	size_t used = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u bytes %.0f us",
					 i ? ", " : "", sizes[i], (double)best[i] / 1e3);
	doctor_fact(doctor, "data", peer->text, "verified; there and back: %s", text);
}

static void exchange(struct doctor *doctor, struct peer *peer, struct link *link)
{
	__u64 best[ARRAY_SIZE(sizes)] = { 0 };
	unsigned int round;
	__u64 took;
	size_t i;

	for (round = 0; round < peer->rounds; round++) {
		for (i = 0; i < ARRAY_SIZE(sizes); i++) {
			took = now_ns();
			if (!exchange_one(doctor, peer, link, sizes[i]))
				return;
			took = now_ns() - took;
			if (!round || took < best[i])
				best[i] = took;
		}
	}
	say_times(doctor, peer, best);
}

void check_channel(struct doctor *doctor, struct peer *peer)
{
	struct link link = { .timeout_ns = peer->timeout_ms * 1000000LL };
	struct ibchan_error error;

	if (link_open(&link, doctor->context, peer->route.device, &error))
		find_failed(doctor, peer->route.device, "make a channel", &error);
	else if (connect_link(doctor, peer, &link))
		exchange(doctor, peer, &link);
	link_close(&link);
}
