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
	struct entry *entry = doctor_find(doctor, FINDING_CHANNEL_FAILED, SEVERITY_ERROR,
					  subject);
	const char *hint = ibchan_error_hint(error);
	char text[256];

	ibchan_error_text(error, text, sizeof(text));
	entry_fact(entry, "%s: %s.", what, text);
	entry_cause(entry, "The module or the device's driver has refused it.");
	entry_step(entry,
		   "%s",
		   hint[0] ? hint : "Look at dmesg for lines of ibchan and of the driver.");
}

static void find_no_listener(struct doctor *doctor, struct peer *peer)
{
	struct entry *entry = doctor_find(doctor, FINDING_LISTENER_ABSENT, SEVERITY_ERROR,
					  peer->text);

	entry_fact(entry, "The peer answers, and says that nobody listens on port %s.",
		   peer->port);
	entry_cause(entry,
		    "Packets travel both ways; the program on the peer is not running, or listens on another port or address.");
	entry_step(entry, "On the peer: ibchan doctor --serve%s%s; then run the doctor here again.",
		   strcmp(peer->port, DOCTOR_PORT) ? " --port " : "",
		   strcmp(peer->port, DOCTOR_PORT) ? peer->port : "");
}

static void find_rejected(struct doctor *doctor, struct peer *peer)
{
	struct entry *entry = doctor_find(doctor, FINDING_PEER_REJECTS, SEVERITY_ERROR,
					  peer->text);

	entry_fact(entry, "Somebody listens on port %s of the peer, and has rejected the doctor.",
		   peer->port);
	entry_cause(entry,
		    "It is another program, a doctor of another version, or a doctor that cannot make a channel itself.");
	entry_step(entry,
		   "On the peer: ibchan doctor, and ibchan doctor --serve --port PORT with a free port; what it prints tells more.");
}

static void judge_connect(struct doctor *doctor, struct peer *peer, int err,
			  const struct ibchan_error *error)
{
	bool silent = err == -ETIMEDOUT || err == -EHOSTUNREACH || err == -ENETUNREACH;

	if (err == -ECONNREFUSED)
		find_no_listener(doctor, peer);
	else if (err == -ECONNRESET)
		find_rejected(doctor, peer);
	else if (silent && peer->roce)
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
		link_connected(link);
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
	struct entry *entry = doctor_find(doctor, FINDING_PEER_STUCK, SEVERITY_ERROR,
					  peer->text);

	entry_fact(entry, "The channel stands, but %s.", fact);
	entry_cause(entry, "The program on the peer is stopped, hangs, or gets no CPU time.");
	entry_step(entry,
		   "Look at it: ps -o pid,stat,wchan:30,cmd -C ibchan (T is stopped, D waits in the kernel).");
}

static void find_address_gone(struct doctor *doctor, struct peer *peer)
{
	struct entry *entry = doctor_find(doctor, FINDING_ADDRESS_GONE, SEVERITY_ERROR,
					  peer->route.device);

	entry_fact(entry, "This side's own address was taken away while data was exchanged.");
	entry_cause(entry,
		    "Somebody has deleted the address, or the network device has lost it: a DHCP lease that ended, a network manager that was restarted.");
	entry_step(entry,
		   "Set the address again, for good (ip address; the network manager's log), and connect anew.");
}

static void find_gone(struct doctor *doctor, struct peer *peer, bool broken_by_peer)
{
	struct entry *entry = doctor_find(doctor, FINDING_PEER_GONE, SEVERITY_ERROR, peer->text);

	if (broken_by_peer) {
		entry_fact(entry, "The peer has closed the channel while data was exchanged.");
		entry_cause(entry,
			    "The program on the peer has ended: killed, crashed, or it found an error.");
		entry_step(entry,
			   "Look at what it said, and at dmesg on the peer; then start ibchan doctor --serve there again.");
		return;
	}
	entry_fact(entry, "The peer was connected, and then acknowledged no packet any more.");
	if (probe_is_alive((const struct sockaddr *)&peer->address, PROBE_MS)) {
		entry_cause(entry,
			    "Its host still answers: its RDMA device was reset, removed or lost this address, or a firewall came up.");
		entry_step(entry, "On the peer: ibchan doctor; dmesg.");
	} else {
		entry_cause(entry,
			    "Its host does not answer either: it is down, or the network is.");
		entry_step(entry, "Look at the peer's console, the cables and the switch.");
	}
}

static void find_wrong_data(struct doctor *doctor, struct peer *peer, __u32 size, bool there)
{
	struct entry *entry = doctor_find(doctor, FINDING_DATA_WRONG, SEVERITY_ERROR, peer->text);

	entry_fact(entry, "A message of %u bytes arrived %s with other bytes than were sent.", size,
		   there ? "at the peer" : "here");
	entry_cause(entry,
		    "Memory, the device or its driver is broken: the network alone cannot do that, packets carry a checksum.");
	entry_step(entry,
		   "Take the device out of use; look at its firmware's version, and run a memory test.");
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

/* The first error says what has broken the channel; the works that it has flushed do not. */
static void judge_broken(struct doctor *doctor, struct peer *peer, struct link *link)
{
	struct ibchan_channel_info info;

	find_gone(doctor, peer, ibchan_channel_query(link->channel, &info, NULL) ||
		  info.status != IBCHAN_STATUS_RETRY_EXC_ERR);
}

/* One more message, an empty one, tells whether the peer's device is still there. */
static void judge_silence(struct doctor *doctor, struct peer *peer, struct link *link)
{
	struct ibchan_error error;

	link_say(link, 0, &error);
	if (error.origin == IBCHAN_ERROR_WORK && error.status == IBCHAN_STATUS_RETRY_EXC_ERR)
		find_gone(doctor, peer, false);
	else
		find_stuck(doctor, peer, "no answer came");
}

static void find_narrow_path(struct doctor *doctor, struct peer *peer,
			     const struct attempt *attempt, __u32 mtu)
{
	struct entry *entry = doctor_find(doctor, FINDING_MTU_MISMATCH, SEVERITY_ERROR,
					  peer->text);

	entry_fact(entry,
		   "Shorter messages cross both ways; the first one of %u bytes, in packets of %u, was lost on the way %s.",
		   attempt->size, mtu, attempt->back ? "here" : "to the peer");
	entry_cause(entry, "A switch or a tunnel between has a smaller MTU than both ends.");
	entry_step(entry,
		   "Set the same MTU everywhere: ip link set NETDEV mtu BYTES; or build channels with a smaller mtu.");
}

/* A side whose message was lost breaks its channel, of which the other hears. */
static bool is_lost(const struct ibchan_error *error, bool back)
{
	bool of_work = error->origin == IBCHAN_ERROR_WORK;

	if (!back)
		return of_work && error->status == IBCHAN_STATUS_RETRY_EXC_ERR;
	return error->code == -ETIMEDOUT || error->code == -ESHUTDOWN ||
	       (of_work && error->status == IBCHAN_STATUS_WR_FLUSH_ERR);
}

/* The packets' length if it is the first time that packets as long as the channel's are lost. */
static __u32 narrow_path(const struct link *link, const struct attempt *attempt,
			 const struct ibchan_error *error)
{
	struct ibchan_channel_info info;

	if (!link->round || link->round >= ARRAY_SIZE(sizes) || !is_lost(error, attempt->back) ||
	    ibchan_channel_query(link->channel, &info, NULL) || attempt->size < info.params.mtu)
		return 0;
	return info.params.mtu;
}

static void judge_exchange(struct doctor *doctor, struct peer *peer, struct link *link,
			   const struct attempt *attempt, const struct ibchan_error *error)
{
	bool of_work = error->origin == IBCHAN_ERROR_WORK;
	__u32 mtu = narrow_path(link, attempt, error);

	if (address_is_gone(link, peer))
		find_address_gone(doctor, peer);
	else if (mtu)
		find_narrow_path(doctor, peer, attempt, mtu);
	else if (error->code == -ETIMEDOUT && !of_work)
		judge_silence(doctor, peer, link);
	else if (of_work && error->status == IBCHAN_STATUS_RETRY_EXC_ERR)
		find_gone(doctor, peer, false);
	else if (of_work && error->status == IBCHAN_STATUS_RNR_RETRY_EXC_ERR)
		find_stuck(doctor, peer, "the peer has no room for a message");
	else if (error->code == -ESHUTDOWN ||
		 (of_work && error->status == IBCHAN_STATUS_WR_FLUSH_ERR))
		judge_broken(doctor, peer, link);
	else
		find_failed(doctor, peer->text, "exchange", error);
}

/* Returns 1 when a message there and back was right. */
static int exchange_one(struct doctor *doctor, struct peer *peer, struct link *link, __u32 size)
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
		return 0;
	}
	if (bytes != size || !link_is_right(link, bytes)) {
		find_wrong_data(doctor, peer, size, !bytes);
		return 0;
	}
	link->round++;
	if (!link_listen(link, &error))
		return 1;
	judge_exchange(doctor, peer, link, &attempt, &error);
	return 0;
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
