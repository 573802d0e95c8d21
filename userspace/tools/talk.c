// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The conversation of two sides of a pingpong: by TCP, or over a channel that ibchan_dial() makes.
 *
 *	client				server
 *	hello (the plan)	->
 *	word			<->	word		objects are made: endpoint or port, region
 *	word			<->	word		connected
 * and for each phase
 *	word			<->	word		receives are posted
 *	word			<->	word		through
 *	word			<->	word		data is right
 *
 * A side that fails says so in the next word. STATUS_BUSY may come before any of them and only
 * means that the peer is alive.
 */
#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "pingpong.h"

#define HELLO_MAGIC	0x69626370U	/* "ibcp" */
#define HELLO_VERSION	4

enum status { STATUS_OK = 1, STATUS_FAILED, STATUS_BUSY };

#define TRY_NS		(NSEC_PER_SEC / 10)
#define ENDLESS_S	300000000	/* ten years */

/* The first words of a client, each of them in network order on the way. */
struct hello {
	__u32 magic;
	__u32 version;
	struct plan plan;
	__u32 reserved;
};

__s64 limit_ns(const struct side *side)
{
	return (side->timeout_s ?: ENDLESS_S) * NSEC_PER_SEC;
}

int is_late(const struct side *side, __u64 start_ns)
{
	return now_ns() - start_ns > (__u64)limit_ns(side);
}

/* A server that was started together with this client may take a moment. */
static int may_retry(const struct side *side, __u32 *tries)
{
	const struct timespec pause = { .tv_nsec = TRY_NS };

	if (*tries >= limit_ns(side) / TRY_NS)
		return 0;
	if (++*tries == NSEC_PER_SEC / TRY_NS)
		complain("%s: no server there yet, still trying", side->peer_name);
	nanosleep(&pause, NULL);
	return 1;
}

static void name_peer(struct side *side, const struct sockaddr_storage *address)
{
	char host[NI_MAXHOST], port[NI_MAXSERV];

	if (!getnameinfo((const struct sockaddr *)address, sizeof(*address), host, sizeof(host),
			 port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(side->peer_name, sizeof(side->peer_name), "%s:%s", host, port);
}

/* --- over a channel --- */

/* A client that has come over another device than the wanted one is sent away. */
static int is_wanted(struct side *side)
{
	struct ibchan_connection_info connection;
	struct ibchan_channel_info info;

	if (ibchan_channel_connection(side->talk, &connection, NULL) ||
	    ibchan_channel_query(side->talk, &info, NULL))
		return 0;
	name_peer(side, &connection.peer);
	return !side->wanted || !strcmp(side->wanted, info.device);
}

static int talk_by_address(struct side *side)
{
	struct ibchan_message_params params = {
		.size = sizeof(params), .message_bytes = sizeof(struct word),
		.timeout_ns = limit_ns(side), .source = side->host ? side->source : NULL,
	};
	struct ibchan_server *server;
	__u32 tries = 0;
	int err;

	if (side->host) {
		do {
			err = ibchan_dial(side->host, side->port, &params, &side->talk,
					  &side->error);
		} while (err == -ECONNREFUSED && may_retry(side, &tries));
		return err ? complain_error(side->peer_name, &side->error) : 0;
	}
	if (ibchan_serve(side->source, side->port, &params, &server, &side->error))
		return complain_error(side->peer_name, &side->error);
	do {
		ibchan_channel_close(side->talk);
		side->talk = NULL;
		err = ibchan_take(server, limit_ns(side), &side->talk, &side->error);
	} while (err == -EINTR || (!err && !is_wanted(side)));
	ibchan_server_close(server);
	return err ? complain_error(side->peer_name, &side->error) : 0;
}

/* --- over TCP --- */

static int complain_errno(const struct side *side, int err)
{
	if (err == -ETIMEDOUT || err == -EAGAIN)
		return complain("%s: nothing happened for %u s", side->peer_name, side->timeout_s);
	return complain("%s: %s", side->peer_name, strerror(-err));
}

/*
 * Returns a socket that is connected to the server, or listens, at the first address that will do,
 * or a negative errno. The time limits also hold for connect(), and for accept() and what it
 * returns.
 */
static int open_socket(const struct side *side, const struct addrinfo *a, int family)
{
	const struct timeval limit = { .tv_sec = side->timeout_s };
	int fd, err = -EAFNOSUPPORT;
	const int yes = 1, no = 0;

	for (; a; a = a->ai_next) {
		if (family != AF_UNSPEC && a->ai_family != family)
			continue;
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0) {
			err = -errno;
			continue;
		}
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
		if (side->host ? !connect(fd, a->ai_addr, a->ai_addrlen) :
		    !bind(fd, a->ai_addr, a->ai_addrlen) && !listen(fd, 1))
			return fd;
		err = errno == EINPROGRESS ? -ETIMEDOUT : -errno;
		close(fd);
	}
	return err;
}

/* A server takes an IPv6 socket, which serves IPv4 too, where there is IPv6. */
static int talk_by_tcp(struct side *side)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
	struct sockaddr_storage peer = { 0 };
	socklen_t len = sizeof(peer);
	struct addrinfo *list;
	__u32 tries = 0;
	int err, fd;

	err = getaddrinfo(side->host, side->port, &hints, &list);
	if (err)
		return complain("%s: %s", side->peer_name,
				err == EAI_SYSTEM ? strerror(errno) : gai_strerror(err));
	do {
		fd = open_socket(side, list, side->host ? AF_UNSPEC : AF_INET6);
	} while (fd == -ECONNREFUSED && may_retry(side, &tries));
	if (!side->host && fd < 0)
		fd = open_socket(side, list, AF_INET);
	freeaddrinfo(list);
	if (fd < 0)
		return complain_errno(side, fd);
	side->tcp = fd;
	if (side->host)
		return 0;
	do {
		side->tcp = accept4(fd, (struct sockaddr *)&peer, &len, SOCK_CLOEXEC);
	} while (side->tcp < 0 && errno == EINTR);
	err = side->tcp < 0 ? complain_errno(side, -errno) : 0;
	close(fd);
	name_peer(side, &peer);
	return err;
}

/* --- messages --- */

/* The next read says whether a message was lost. */
static void talk_write(struct side *side, const void *buf, size_t len)
{
	if (side->talk)
		ibchan_send_bytes(side->talk, buf, len, limit_ns(side), NULL);
	else
		send(side->tcp, buf, len, MSG_NOSIGNAL);
}

/* Returns 0: @buf has the next message; 1: none has come, without @waits; -1 after a message. */
static int talk_read(struct side *side, void *buf, size_t len, int waits)
{
	struct pollfd pollfd = { .fd = side->tcp, .events = POLLIN };
	ssize_t n;

	do {
		if (side->talk) {
			n = ibchan_receive_bytes(side->talk, buf, len, waits ? limit_ns(side) : 0,
						 &side->error);
		} else if (waits || poll(&pollfd, 1, 0)) {
			n = recv(side->tcp, buf, len, MSG_WAITALL);
			n = n > 0 ? n : n ? -errno : -ECONNRESET;
		} else {
			n = -EAGAIN;
		}
	} while (n == -EINTR);
	if (n == -EAGAIN && !waits)
		return 1;
	if (n < 0 && side->talk && n != -ETIMEDOUT)
		return complain_error(side->peer_name, &side->error);
	if (n < 0)
		return complain_errno(side, (int)n);
	return (size_t)n == len ? 0 : complain("%s: what it says is not for us", side->peer_name);
}

static void say(struct side *side, enum status status)
{
	side->told.status = htobe32(status);
	talk_write(side, &side->told, sizeof(side->told));
}

/* Returns 0: the peer got so far; 1: it has not said so yet; -1 after a message. */
static int hear(struct side *side, int waits)
{
	int ret;

	while (side->heard.status != htobe32(STATUS_OK)) {
		ret = talk_read(side, &side->heard, sizeof(side->heard), waits);
		if (ret)
			return ret;
		if (side->heard.status == htobe32(STATUS_FAILED))
			return complain("%s: the other side failed; its output tells why",
					side->peer_name);
		if (be32toh(side->heard.status) - 1 >= STATUS_BUSY)
			return complain("%s: what it says is not for us", side->peer_name);
	}
	return 0;
}

/* This side reads all that the peer has said, so that the peer has room to say more. */
int tell_busy(struct side *side)
{
	__u64 now = now_ns();

	if (now - side->told_ns < NSEC_PER_SEC)
		return 0;
	side->told_ns = now;
	say(side, STATUS_BUSY);
	return hear(side, 0) < 0 ? -1 : 0;
}

/* @ret is this side's result. Returns 0 if both sides got so far. */
int agree(struct side *side, int ret)
{
	say(side, ret ? STATUS_FAILED : STATUS_OK);
	if (ret || hear(side, 1))
		return -1;
	side->heard.status = 0;
	return 0;
}

/* From the order of bytes here to that of the network, or back. */
static void turn_words(struct hello *hello)
{
	__u32 *word = (__u32 *)hello, *end = (__u32 *)(hello + 1);

	for (; word < end; word++)
		*word = htobe32(*word);
}

static int plan_is_sane(const struct plan *plan)
{
	return (plan->op == IBCHAN_OP_SEND || plan->op == IBCHAN_OP_WRITE ||
		plan->op == IBCHAN_OP_READ) &&
	       plan->phases <= (PHASE_LATENCY | PHASE_BANDWIDTH) &&
	       plan->size <= MAX_SIZE && (plan->size || plan->op == IBCHAN_OP_SEND) &&
	       plan->iters >= 1 && plan->iters <= MAX_ITERS &&
	       plan->depth >= 1 && plan->depth <= MAX_DEPTH;
}

/* From the client to the server. */
static int share_plan(struct side *side)
{
	struct hello hello = {
		.magic = HELLO_MAGIC, .version = HELLO_VERSION, .plan = side->plan,
	};

	turn_words(&hello);
	if (side->host) {
		talk_write(side, &hello, sizeof(hello));
		return 0;
	}
	if (talk_read(side, &hello, sizeof(hello), 1))
		return -1;
	turn_words(&hello);
	if (hello.magic != HELLO_MAGIC)
		return complain("%s: not an ibchan pingpong", side->peer_name);
	if (hello.version != HELLO_VERSION)
		return complain("%s: pingpong version: ours %u, theirs %u", side->peer_name,
				HELLO_VERSION, hello.version);
	if (!plan_is_sane(&hello.plan))
		return complain("%s: asks for something impossible", side->peer_name);
	side->plan = hello.plan;
	return 0;
}

int talk_open(struct side *side)
{
	snprintf(side->peer_name, sizeof(side->peer_name), "%s%s%s", side->host ?: "port",
		 side->host ? ":" : " ", side->port);
	if (side->endpoints ? talk_by_tcp(side) : talk_by_address(side))
		return -1;
	return share_plan(side);
}
