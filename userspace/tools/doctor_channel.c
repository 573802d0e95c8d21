// SPDX-License-Identifier: LGPL-2.1-or-later
/* ibchan doctor: a channel to the peer, and data over it. */
#include <errno.h>
#include <string.h>

#include "doctor.h"

/* Within one packet, within a page, over several packets: the first time in this order. */
static const __u32 sizes[] = { 1, 64, 4096, DOCTOR_MESSAGE };

/* --- connecting --- */

static void find_failed(const char *subject, const char *what, const struct ibchan_error *error)
{
	const char *hint = ibchan_error_hint(error);
	char text[256];

	ibchan_error_text(error, text, sizeof(text));
	doctor_error("channel", "channel-failed", subject,
		     "%s: %s.\n"
		     "The module or the device's driver has refused it.\n"
		     "%s",
		     what, text,
		     hint[0] ? hint : "Look at dmesg for lines of ibchan and of the driver.");
}

static bool find_rejected(const struct peer *peer)
{
	return doctor_error("channel", "peer-rejects", peer->text,
			    "Somebody listens on port %s of the peer, and has rejected the doctor.\n"
			    "It is another program, a doctor of another version, or a doctor that cannot make a channel itself.\n"
			    "On the peer: ibchan doctor, and ibchan doctor --serve --port PORT with a free port; what it prints tells more.",
			    peer->port);
}

static void judge_connect(const struct peer *peer, int err, const struct ibchan_error *error)
{
	const bool is_default = !strcmp(peer->port, DOCTOR_PORT);

	if (err == -ECONNREFUSED)
		doctor_error("channel", "listener-absent", peer->text,
			     "The peer answers, and says that nobody listens on port %s.\n"
			     "Packets travel both ways; the program on the peer is not running, or listens on another port or address.\n"
			     "On the peer: ibchan doctor --serve%s%s; then run the doctor here again.",
			     peer->port, is_default ? "" : " --port ",
			     is_default ? "" : peer->port);
	else if (err == -ECONNRESET)
		find_rejected(peer);
	else if (peer->roce &&
		 (err == -ETIMEDOUT || err == -EHOSTUNREACH || err == -ENETUNREACH))
		explain_silence(peer);
	else
		find_failed(peer->text, "connect", error);
}

static bool connect_link(const struct peer *peer, struct link *link)
{
	const struct ibchan_connect_params params = {
		.size = sizeof(params),
		.data = greeting,
		.length = sizeof(greeting),
		.address_ns = link->timeout_ns,
		.route_ns = link->timeout_ns,
		.connect_ns = link->timeout_ns,
		.source = peer->source,
	};
	struct ibchan_connection_info info;
	struct ibchan_error error;
	__u64 start = now_ns();
	int err;

	if (ibchan_prepared_connect(link->prepared, peer->text, peer->port, &params, &link->channel,
				    &error)) {
		find_failed(peer->text, "connect", &error);
		return false;
	}
	link->prepared = NULL;
	err = ibchan_channel_connect_wait(link->channel, IBCHAN_TIMEOUT_NEVER, &error);
	if (err) {
		judge_connect(peer, err, &error);
		return false;
	}
	doctor_fact("channel", peer->text, "connected in %.1f ms",
		    (double)(now_ns() - start) / 1e6);
	return (!ibchan_channel_connection(link->channel, &info, NULL) &&
		greeting_is_ours(info.data, info.length)) || find_rejected(peer);
}

/* --- data --- */

static void find_stuck(const struct peer *peer, const char *fact)
{
	doctor_error("data", "peer-stuck", peer->text,
		     "The channel stands, but %s.\n"
		     "The program on the peer is stopped, hangs, or gets no CPU time.\n"
		     "Look at it: ps -o pid,stat,wchan:30,cmd -C ibchan (T is stopped, D waits in the kernel).",
		     fact);
}

/* The peer acknowledges nothing any more. */
static void find_silent(const struct peer *peer)
{
	const bool alive = probe_is_alive(&peer->address);

	doctor_error("data", "peer-gone", peer->text,
		     "The peer was connected, and then acknowledged no packet any more.\n"
		     "%s",
		     alive ?
		     "Its host still answers: its RDMA device was reset, removed or lost this address, or a firewall came up.\n"
		     "On the peer: ibchan doctor; dmesg." :
		     "Its host does not answer either: it is down, or the network is.\n"
		     "Look at the peer's console, the cables and the switch.");
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
	struct ibchan_gid_info gid;
	int rc;

	if (!ibchan_channel_connection(link->channel, &connection, NULL) &&
	    probe_is_lost(&connection.local))
		return true;
	if (ibchan_channel_query(link->channel, &info, NULL))
		return false;
	rc = ibchan_gid_query(link->context, peer->route.device, info.params.port,
			      info.params.gid_index, &gid, NULL);
	return info.error == -EADDRNOTAVAIL || rc == -ENOENT ||
	       (!rc && gid.index != info.params.gid_index);
}

static bool work_has_failed(const struct ibchan_error *error, __u32 status)
{
	return error->origin == IBCHAN_ERROR_WORK && error->status == status;
}

/*
 * Returns the packets' length if it is the first time that packets as long as the channel's are
 * lost, else 0. A side whose message was lost breaks its channel, of which the other hears.
 */
static __u32 narrow_path(const struct link *link, __u32 size, bool back,
			 const struct ibchan_error *error)
{
	struct ibchan_channel_info info;
	bool is_lost;

	if (back)
		is_lost = error->code == -ETIMEDOUT || error->code == -ESHUTDOWN ||
			  work_has_failed(error, IBCHAN_STATUS_WR_FLUSH_ERR);
	else
		is_lost = work_has_failed(error, IBCHAN_STATUS_RETRY_EXC_ERR);
	if (!link->round || link->round >= ARRAY_SIZE(sizes) || !is_lost ||
	    ibchan_channel_query(link->channel, &info, NULL) || size < info.params.mtu)
		return 0;
	return info.params.mtu;
}

static void judge_end(const struct peer *peer, struct link *link, const struct ibchan_error *error)
{
	struct ibchan_channel_info info;
	struct ibchan_error last;

	if (work_has_failed(error, IBCHAN_STATUS_RETRY_EXC_ERR)) {
		find_silent(peer);
	} else if (work_has_failed(error, IBCHAN_STATUS_RNR_RETRY_EXC_ERR)) {
		find_stuck(peer, "the peer has no room for a message");
	} else if (error->code == -ESHUTDOWN ||
		   work_has_failed(error, IBCHAN_STATUS_WR_FLUSH_ERR)) {
		/* The first error has broken the channel; the works that it has flushed did not. */
		if (!ibchan_channel_query(link->channel, &info, NULL) &&
		    info.status == IBCHAN_STATUS_RETRY_EXC_ERR)
			find_silent(peer);
		else
			doctor_error("data", "peer-gone", peer->text,
				     "The peer has closed the channel while data was exchanged.\n"
				     "The program on the peer has ended: killed, crashed, or it found an error.\n"
				     "Look at what it said, and at dmesg on the peer; then start ibchan doctor --serve there again.");
	} else if (error->code == -ETIMEDOUT && error->origin != IBCHAN_ERROR_WORK) {
		/* An empty message tells whether the peer's device is still there. */
		link_say(link, 0, &last);
		if (work_has_failed(&last, IBCHAN_STATUS_RETRY_EXC_ERR))
			find_silent(peer);
		else
			find_stuck(peer, "no answer came");
	} else {
		find_failed(peer->text, "exchange", error);
	}
}

/* @back: the peer has the message of @size bytes. */
static bool judge_exchange(const struct peer *peer, struct link *link, __u32 size, bool back,
			   const struct ibchan_error *error)
{
	const __u32 mtu = narrow_path(link, size, back, error);

	if (address_is_gone(link, peer))
		doctor_error("data", "address-gone", peer->route.device,
			     "This side's own address was taken away while data was exchanged.\n"
			     "Somebody has deleted the address, or the network device has lost it: a DHCP lease that ended, a network manager that was restarted.\n"
			     "Set the address again, for good (ip address; the network manager's log), and connect anew.");
	else if (mtu)
		doctor_error("path", "mtu-mismatch", peer->text,
			     "Shorter messages cross both ways; the first one of %u bytes, in packets of %u, was lost on the way %s.\n"
			     "A switch or a tunnel between has a smaller MTU than both ends.\n"
			     "Set the same MTU everywhere: ip link set NETDEV mtu BYTES; or build channels with a smaller mtu.",
			     size, mtu, back ? "here" : "to the peer");
	else
		judge_end(peer, link, error);
	return false;
}

/* Says whether a message there and an answer of the same length back were right. */
static bool exchange_one(const struct peer *peer, struct link *link, __u32 size)
{
	struct ibchan_error error;
	__u32 bytes;

	if (link_say(link, size, &error))
		return judge_exchange(peer, link, size, false, &error);
	if (link_hear(link, &bytes, &error))
		return judge_exchange(peer, link, size, true, &error);
	if (bytes != size || !link_is_right(link, bytes))
		return doctor_error("data", "data-wrong", peer->text,
				    "A message of %u bytes arrived %s with other bytes than were sent.\n"
				    "Memory, the device or its driver is broken: the network alone cannot do that, packets carry a checksum.\n"
				    "Take the device out of use; look at its firmware's version, and run a memory test.",
				    size, bytes ? "here" : "at the peer");
	link->round++;
	return !link_listen(link, &error) || judge_exchange(peer, link, size, true, &error);
}

/* The best times are told. */
static void exchange(const struct peer *peer, struct link *link)
{
	__u64 best[ARRAY_SIZE(sizes)] = { 0 }, took;
	char text[TEXT_SIZE] = "";
	size_t used = 0, i;
	__u32 round;

	for (round = 0; round < peer->rounds; round++) {
		for (i = 0; i < ARRAY_SIZE(sizes); i++) {
			took = now_ns();
			if (!exchange_one(peer, link, sizes[i]))
				return;
			took = now_ns() - took;
			if (!round || took < best[i])
				best[i] = took;
		}
	}
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u bytes %.0f us",
					 i ? ", " : "", sizes[i], (double)best[i] / 1e3);
	doctor_fact("data", peer->text, "verified; there and back: %s", text);
}

void check_channel(const struct doctor *doctor, const struct peer *peer)
{
	struct link link = { .timeout_ns = peer->timeout_s * NSEC_PER_SEC };
	struct ibchan_error error;

	if (link_open(&link, doctor->context, peer->route.device, &error))
		find_failed(peer->route.device, "make a channel", &error);
	else if (connect_link(peer, &link))
		exchange(peer, &link);
	link_close(&link);
}
