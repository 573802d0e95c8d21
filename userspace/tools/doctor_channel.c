// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * ibchan doctor: a channel to the peer, and data over it, from both ends. The asking side sends
 * messages, the serving side answers each with one of the same length, and both check every byte:
 *
 *	doctor			doctor --serve
 *	request (greeting)  ->
 *		    <-  accepted (greeting)
 *	message		    ->
 *		    <-  answer		empty: the message was wrong
 *	and so on, until the asking side closes the channel
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "doctor.h"

/* 268 ms, as a code: soft devices are slow, and seven tries still end within a usual wait. */
#define ACK_TIMEOUT	16

#define SEED_ASKS	0x35
#define SEED_SERVES	0xca

/* Within one packet, within a page, over several packets: the first time in this order. */
static const __u32 sizes[] = { 1, 64, 4096, DOCTOR_MESSAGE };

/* Goes with the request, and with its answer: the name and the version of the language. */
static const __u8 greeting[] = { 'i', 'b', 'c', 'd', 0, 0, 0, 1 };

/* Zeros may follow: a message of the connection manager has one length. */
static bool greeting_is_ours(const void *data, __u32 length)
{
	return length >= sizeof(greeting) && !memcmp(data, greeting, sizeof(greeting));
}

/* --- an end of the channel --- */

struct link {
	bool serves;			/* it answers */
	struct ibchan_device *device;	/* and so on to @prepared: in the order of their making */
	struct ibchan_pd *pd;
	struct ibchan_mr *mr;
	struct ibchan_prepared *prepared;
	struct ibchan_channel *channel;	/* prepared, or connected */
	__u8 *memory;			/* that messages go out from, and then where they arrive */
	__u32 round;			/* messages that were answered */
	__s64 timeout_ns;		/* for each wait */
};

/* For calls that give no details. Returns @code, which is negative. */
static int explain(struct ibchan_error *error, int code)
{
	*error = (struct ibchan_error) { .code = code, .origin = IBCHAN_ERROR_CALL };
	return code;
}

/* Makes room for the peer's next message. */
static int link_listen(struct link *link, struct ibchan_error *error)
{
	return ibchan_post_receive(link->channel, link->mr, DOCTOR_MESSAGE, DOCTOR_MESSAGE, 0,
				   error);
}

/* Up to a channel that is prepared and listens. */
static int link_open(struct link *link, struct ibchan_context *context, const char *device,
		     struct ibchan_error *error)
{
	struct ibchan_builder builder;
	int err;

	/* Whole pages of any size, so that the limit of pinned memory is met by what is said. */
	link->memory = aligned_alloc(DOCTOR_MESSAGE, DOCTOR_MEMORY);
	if (!link->memory)
		return explain(error, -ENOMEM);
	err = ibchan_device_open(context, device, &link->device, error) ?:
	      ibchan_pd_alloc(link->device, &link->pd, error) ?:
	      ibchan_mr_reg_local(link->pd, link->memory, DOCTOR_MEMORY, &link->mr, error);
	if (err)
		return err;
	ibchan_builder_init(&builder, link->pd, NULL);
	builder.params.access = IBCHAN_ACCESS_LOCAL_WRITE;
	builder.params.ack_timeout = ACK_TIMEOUT;
	builder.params.max_send_wr = 2;
	builder.params.max_recv_wr = 2;
	builder.params.max_send_sge = 1;
	builder.params.max_recv_sge = 1;
	err = ibchan_builder_prepare(&builder, &link->prepared, error);
	if (err)
		return err;
	link->channel = ibchan_prepared_channel(link->prepared);
	return link_listen(link, error);
}

/* Waits for a message, and tells its bytes. */
static int link_hear(struct link *link, __u32 *bytes, struct ibchan_error *error)
{
	struct ibchan_cqe got;
	int n = ibchan_cq_wait(ibchan_channel_recv_cq(link->channel), &got, 1, 1, link->timeout_ns);

	if (n < 0)
		return explain(error, n);
	*error = work_error(&got);
	*bytes = got.bytes;
	return got.error;
}

/* Sends a message of this round, or an empty one. */
static int link_say(struct link *link, __u32 bytes, struct ibchan_error *error)
{
	struct pattern pattern = { .seed = link->serves ? SEED_SERVES : SEED_ASKS, .size = bytes };
	struct ibchan_submit_sge sge = ibchan_sge_new(link->mr, 0, bytes);
	struct ibchan_submit_wr wr = ibchan_wr_send(link->channel, &sge, bytes ? 1 : 0);

	pattern_put(&pattern, link->memory, link->round, 1);
	return ibchan_perform(link->channel, &wr, link->timeout_ns, NULL, error);
}

/* Is what came last the peer's message of this round? */
static bool link_is_right(const struct link *link, __u32 bytes)
{
	struct pattern pattern = { .seed = link->serves ? SEED_ASKS : SEED_SERVES, .size = bytes };

	return bytes && pattern_is(&pattern, link->memory + DOCTOR_MESSAGE, link->round, 1);
}

/* Takes one that was opened in part, too. */
static void link_close(struct link *link)
{
	if (link->prepared)
		ibchan_prepared_destroy(link->prepared);
	else
		ibchan_channel_close(link->channel);
	ibchan_mr_dereg(link->mr);
	ibchan_pd_free(link->pd);
	ibchan_device_close(link->device);
	free(link->memory);
}

/* --- what is wrong with the way to it --- */

static bool find_failed(const char *subject, const char *what, const struct ibchan_error *error)
{
	const char *hint = ibchan_error_hint(error);
	char text[256];

	ibchan_error_text(error, text, sizeof(text));
	return doctor_error("channel", "channel-failed", subject,
			    "%s: %s.\n"
			    "The module or the device's driver has refused it.\n"
			    "%s",
			    what, text, hint[0] ? hint :
			    "Look at dmesg for lines of ibchan and of the driver.");
}

static bool judge_connect(const struct peer *peer, int err, const struct ibchan_error *error)
{
	const bool is_default = !strcmp(peer->port, DOCTOR_PORT);

	if (err == -ECONNREFUSED)
		return doctor_error("channel", "listener-absent", peer->text,
				    "The peer answers, and says that nobody listens on port %s.\n"
				    "Packets travel both ways; the program on the peer is not running, or listens on another port or address.\n"
				    "On the peer: ibchan doctor --serve%s%s; then run the doctor here again.",
				    peer->port, is_default ? "" : " --port ",
				    is_default ? "" : peer->port);
	if (err == -ECONNRESET)
		return doctor_error("channel", "peer-rejects", peer->text,
				    "Somebody listens on port %s of the peer, and has rejected the doctor.\n"
				    "It is another program, a doctor of another version, or a doctor that cannot make a channel itself.\n"
				    "On the peer: ibchan doctor, and ibchan doctor --serve --port PORT with a free port; what it prints tells more.",
				    peer->port);
	if (peer->roce && (err == -ETIMEDOUT || err == -EHOSTUNREACH || err == -ENETUNREACH))
		return explain_silence(peer);
	return find_failed(peer->text, "connect", error);
}

static bool connect_link(const struct peer *peer, struct link *link)
{
	const struct ibchan_connect_params params = {
		.size = sizeof(params), .data = greeting, .length = sizeof(greeting),
		.address_ns = link->timeout_ns, .route_ns = link->timeout_ns,
		.connect_ns = link->timeout_ns, .source = peer->source,
	};
	struct ibchan_connection_info info;
	struct ibchan_error error;
	__u64 start = now_ns();
	int err;

	if (ibchan_prepared_connect(link->prepared, peer->text, peer->port, &params, &link->channel,
				    &error))
		return find_failed(peer->text, "connect", &error);
	link->prepared = NULL;
	err = ibchan_channel_connect_wait(link->channel, IBCHAN_TIMEOUT_NEVER, &error);
	if (!err) {
		doctor_fact("channel", peer->text, "connected in %.1f ms",
			    (double)(now_ns() - start) / 1e6);
		if (ibchan_channel_connection(link->channel, &info, NULL) ||
		    !greeting_is_ours(info.data, info.length))
			err = -ECONNRESET;
	}
	return !err || judge_connect(peer, err, &error);
}

/* --- what is wrong with the data --- */

/*
 * Before the channel hears of the loss, the device may fail works, because it has no route any
 * more; and a peer on the same machine, which uses the same address, may disconnect. The entry of
 * the GID table goes last.
 */
static bool address_is_gone(const struct doctor *doctor, const struct link *link,
			    const struct ibchan_channel_info *info)
{
	struct ibchan_connection_info connection;
	struct ibchan_gid_attr gid;
	int rc;

	if (!ibchan_channel_connection(link->channel, &connection, NULL) &&
	    address_is_lost(&doctor->peer, &connection.local))
		return true;
	rc = ibchan_gid_query(doctor->context, doctor->peer.route.device, info->params.port,
			      info->params.gid_index, &gid, NULL);
	return info->error == -EADDRNOTAVAIL || rc == -ENOENT ||
	       (!rc && gid.index != info->params.gid_index);
}

/* Why an exchange has ended that had begun well. @flushed: the channel was broken before. */
static bool judge_end(const struct peer *peer, struct link *link, bool silent, bool flushed,
		      const struct ibchan_error *error)
{
	const bool full = error->status == IBCHAN_STATUS_RNR_RETRY_EXC_ERR;
	const bool late = error->code == -ETIMEDOUT && error->origin != IBCHAN_ERROR_WORK;
	struct ibchan_error last;

	/* An empty message tells whether the peer's device is still there. */
	if (late && link_say(link, 0, &last))
		silent = last.status == IBCHAN_STATUS_RETRY_EXC_ERR;
	if (silent)
		return doctor_error("data", "peer-gone", peer->text,
				    "The peer was connected, and then acknowledged no packet any more.\n"
				    "%s",
				    peer_is_alive(peer) ?
				    "Its host still answers: its RDMA device was reset, removed or lost this address, or a firewall came up.\n"
				    "On the peer: ibchan doctor; dmesg." :
				    "Its host does not answer either: it is down, or the network is.\n"
				    "Look at the peer's console, the cables and the switch.");
	if (full || late)
		return doctor_error("data", "peer-stuck", peer->text,
				    "The channel stands, but %s.\n"
				    "The program on the peer is stopped, hangs, or gets no CPU time.\n"
				    "Look at it: ps -o pid,stat,wchan:30,cmd -C ibchan (T is stopped, D waits in the kernel).",
				    full ? "the peer has no room for a message" : "no answer came");
	if (flushed)
		return doctor_error("data", "peer-gone", peer->text,
				    "The peer has closed the channel while data was exchanged.\n"
				    "The program on the peer has ended: killed, crashed, or it found an error.\n"
				    "Look at what it said, and at dmesg on the peer; then start ibchan doctor --serve there again.");
	return find_failed(peer->text, "exchange", error);
}

/*
 * @back: the peer has the message of @size bytes. A side whose message was lost breaks its channel,
 * and the other side hears of the break. If packets as long as the channel's are lost for the first
 * time, the way is too narrow for them.
 */
static bool judge_exchange(const struct doctor *doctor, struct link *link, __u32 size, bool back,
			   const struct ibchan_error *error)
{
	const bool flushed = error->code == -ESHUTDOWN ||
			     error->status == IBCHAN_STATUS_WR_FLUSH_ERR;
	const bool silent = error->status == IBCHAN_STATUS_RETRY_EXC_ERR;
	const bool lost = back ? flushed || error->code == -ETIMEDOUT : silent;
	struct ibchan_channel_info info = { 0 };

	ibchan_channel_query(link->channel, &info, NULL);
	if (address_is_gone(doctor, link, &info))
		return doctor_error("data", "address-gone", doctor->peer.route.device,
				    "This side's own address was taken away while data was exchanged.\n"
				    "Somebody has deleted the address, or the network device has lost it: a DHCP lease that ended, a network manager that was restarted.\n"
				    "Set the address again, for good (ip address; the network manager's log), and connect anew.");
	if (lost && link->round && link->round < ARRAY_SIZE(sizes) &&
	    info.params.mtu && info.params.mtu <= size)
		return doctor_error("path", "mtu-mismatch", doctor->peer.text,
				    "Shorter messages cross both ways; the first one of %u bytes, in packets of %u, was lost on the way %s.\n"
				    "A switch or a tunnel between has a smaller MTU than both ends.\n"
				    "Set the same MTU everywhere: ip link set NETDEV mtu BYTES; or build channels with a smaller mtu.",
				    size, info.params.mtu, back ? "here" : "to the peer");
	/* The first error has broken the channel; the works that it has flushed did not. */
	return judge_end(&doctor->peer, link,
			 silent || (flushed && info.status == IBCHAN_STATUS_RETRY_EXC_ERR), flushed,
			 error);
}

/* --- data --- */

/* Says whether a message there and an answer of the same length back were right. */
static bool exchange_one(const struct doctor *doctor, struct link *link, __u32 size)
{
	struct ibchan_error error;
	__u32 bytes;

	if (link_say(link, size, &error))
		return judge_exchange(doctor, link, size, false, &error);
	if (link_hear(link, &bytes, &error))
		return judge_exchange(doctor, link, size, true, &error);
	if (bytes != size || !link_is_right(link, bytes))
		return doctor_error("data", "data-wrong", doctor->peer.text,
				    "A message of %u bytes arrived %s with other bytes than were sent.\n"
				    "Memory, the device or its driver is broken: the network alone cannot do that, packets carry a checksum.\n"
				    "Take the device out of use; look at its firmware's version, and run a memory test.",
				    size, bytes ? "here" : "at the peer");
	link->round++;
	return !link_listen(link, &error) || judge_exchange(doctor, link, size, true, &error);
}

/* The best times are told. */
static void exchange(const struct doctor *doctor, struct link *link)
{
	__u64 best[ARRAY_SIZE(sizes)] = { 0 }, took;
	const char *text = "";
	__u32 round;
	size_t i;

	for (round = 0; round < doctor->peer.rounds; round++) {
		for (i = 0; i < ARRAY_SIZE(sizes); i++) {
			took = now_ns();
			if (!exchange_one(doctor, link, sizes[i]))
				return;
			took = now_ns() - took;
			if (!round || took < best[i])
				best[i] = took;
		}
	}
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		text = words("%s%s%u bytes %.0f us", text, i ? ", " : "", sizes[i],
			     (double)best[i] / 1e3);
	doctor_fact("data", doctor->peer.text, "verified; there and back: %s", text);
}

void check_channel(const struct doctor *doctor)
{
	const struct peer *peer = &doctor->peer;
	struct link link = { .timeout_ns = peer->timeout_s * NSEC_PER_SEC };
	struct ibchan_error error;

	if (link_open(&link, doctor->context, peer->route.device, &error))
		find_failed(peer->route.device, "make a channel", &error);
	else if (connect_link(peer, &link))
		exchange(doctor, &link);
	link_close(&link);
}

/* --- the peer of any number of doctors --- */

/* A doctor that is gone without a word holds nothing for longer than this. */
#define PATIENCE_NS	(60 * NSEC_PER_SEC)

/* Served at a time. Others wait as requests that nobody has taken yet. */
#define MOST	32

static struct ibchan_context *server_context;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t one_has_left = PTHREAD_COND_INITIALIZER;
static unsigned int present;	/* under @lock */

static void change_present(int change)
{
	pthread_mutex_lock(&lock);
	present += change;
	pthread_cond_signal(&one_has_left);
	pthread_mutex_unlock(&lock);
}

/* Takes the request, or rejects it. */
static int accept_request(struct link *link, struct ibchan_request *request, const char *device,
			  struct ibchan_error *error)
{
	const struct ibchan_connect_params params = {
		.size = sizeof(params), .data = greeting, .length = sizeof(greeting),
	};
	int err = link_open(link, server_context, device, error) ?:
		  ibchan_request_accept(request, link->prepared, &params, &link->channel, error);

	if (err) {
		ibchan_request_reject(request, NULL, 0, NULL);
		return err;
	}
	link->prepared = NULL;
	return ibchan_channel_connect_wait(link->channel, link->timeout_ns, error);
}

/* Serves one that has sent the greeting. */
static void *serve_one(void *request)
{
	struct link link = { .serves = true, .timeout_ns = PATIENCE_NS };
	struct ibchan_request_info info;
	char name[INET6_ADDRSTRLEN] = "";
	struct ibchan_error error;
	__u32 bytes;

	ibchan_request_query(request, &info);
	address_text((struct sockaddr *)&info.peer, name, sizeof(name));
	if (accept_request(&link, request, info.device, &error)) {
		complain_error(name, &error);
	} else {
		printf("%s: connected over %s\n", name, info.device);
		/* Until the peer closes the channel, which is the usual end. */
		while (!link_hear(&link, &bytes, &error)) {
			if (!link_is_right(&link, bytes))
				bytes = 0;
			if (link_listen(&link, &error) || link_say(&link, bytes, &error))
				break;
			link.round++;
		}
		printf("%s: %u messages answered\n", name, link.round);
	}
	link_close(&link);
	change_present(-1);
	return NULL;
}

/* Takes the request whatever becomes of it. */
static void take_in(struct ibchan_request *request)
{
	struct ibchan_request_info info;
	pthread_t thread;

	ibchan_request_query(request, &info);
	if (greeting_is_ours(info.data, info.length)) {
		change_present(1);
		if (!pthread_create(&thread, NULL, serve_one, request)) {
			pthread_detach(thread);
			return;
		}
		change_present(-1);
	}
	ibchan_request_reject(request, NULL, 0, NULL);
}

int doctor_serve(const char *port)
{
	struct ibchan_listen_params params = { .size = sizeof(params), .service = port };
	struct ibchan_listener *listener;
	struct ibchan_request *request;
	struct ibchan_error error;
	unsigned int there = 0, most;
	int err = 0;

	/* Threads may be using the context later: the end of the process closes it. */
	if (open_context(&server_context))
		return -1;
	if (ibchan_listener_create(server_context, &params, &listener, &error))
		return complain_error("listen", &error);
	printf("answering doctors on port %s\n", port);
	do {
		/* One that leaves gives back objects that were too many. */
		most = err == -EMFILE ? there : MOST;
		pthread_mutex_lock(&lock);
		while (present >= most)
			pthread_cond_wait(&one_has_left, &lock);
		there = present;
		pthread_mutex_unlock(&lock);
		err = ibchan_request_take(listener, IBCHAN_TIMEOUT_NEVER, &request, NULL);
		if (!err)
			take_in(request);
	} while (!err || err == -EINTR || (err == -EMFILE && there));
	return complain("listen: %s", strerror(-err));
}
