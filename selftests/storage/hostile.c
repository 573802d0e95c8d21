// SPDX-License-Identifier: GPL-2.0-only
/*
 * hostile SOURCE ADDRESS PORT NQN: a host that breaks the NVMe/RDMA protocol in all ways it knows,
 * with verbs of its own. Each kind has a connection of its own, and is refused: by a reject with
 * the status that the specification has for it, by an error of the command, or by the end of the
 * connection. After each, a host that behaves still gets its answers.
 * Prints a line for each kind, "ok - KIND" or "not ok - KIND: what came instead"; exits 1 unless
 * all are ok.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <linux/types.h>

#include <rdma/rdma_cma.h>

#define RECEIVES	32
#define CAPSULE		64
#define RESPONSE	16
#define MEMORY		(2UL << 20)
#define DATA		65536		/* where data begin in memory */
#define PATIENCE_MS	5000

/* What became of a command, besides an NVMe status of 0 and up. */
enum outcome { LOST = -1, NOTHING = -2 };

/* What a request for a queue says. */
struct wish {
	__u16 recfmt, qid, hrqsize, hsqsize;
	__u8 reserved[24];
};

/* A queue of ours. */
struct queue {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	char *memory;
	__u16 command_id;
	unsigned int posted;
	__u16 controller;
};

static const char *source, *address, *service, *nqn;

static void put16(char *at, __u16 value)
{
	value = htole16(value);
	memcpy(at, &value, sizeof(value));
}

static void put32(char *at, __u32 value)
{
	value = htole32(value);
	memcpy(at, &value, sizeof(value));
}

static void put64(char *at, __u64 value)
{
	value = htole64(value);
	memcpy(at, &value, sizeof(value));
}

static long long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* --- queues --- */

static void queue_close(struct queue *queue)
{
	if (!queue)
		return;
	/* The end of the id tells the target; to disconnect would wait for its answer. */
	if (queue->id) {
		if (queue->id->qp)
			rdma_destroy_qp(queue->id);
		if (queue->mr)
			ibv_dereg_mr(queue->mr);
		rdma_destroy_id(queue->id);
	}
	if (queue->memory)
		munmap(queue->memory, MEMORY);
	free(queue);
}

static int resolve(struct rdma_cm_id *id)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(atoi(service)) };
	struct sockaddr_in from = { .sin_family = AF_INET };

	if (inet_pton(AF_INET, address, &to.sin_addr) != 1 ||
	    inet_pton(AF_INET, source, &from.sin_addr) != 1)
		return -1;
	return rdma_resolve_addr(id, (struct sockaddr *)&from, (struct sockaddr *)&to, 2000) ||
	       rdma_resolve_route(id, 2000) ? -1 : 0;
}

/* A queue that is not connected yet; NULL when this machine cannot. */
static struct queue *queue_new(void)
{
	struct ibv_qp_init_attr init = {
		.cap = {
			.max_send_wr = 256, .max_recv_wr = 256,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct queue *queue = calloc(1, sizeof(*queue));

	if (!queue)
		return NULL;
	queue->memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			     -1, 0);
	if (queue->memory == MAP_FAILED)
		queue->memory = NULL;
	if (!queue->memory || rdma_create_id(NULL, &queue->id, NULL, RDMA_PS_TCP))
		goto failed;
	if (resolve(queue->id) || rdma_create_qp(queue->id, NULL, &init))
		goto failed;
	queue->mr = ibv_reg_mr(queue->id->pd, queue->memory, MEMORY, IBV_ACCESS_LOCAL_WRITE |
			       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	if (queue->mr)
		return queue;
failed:
	perror("hostile: queue");
	queue_close(queue);
	return NULL;
}

static int post_receive(struct queue *queue)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)queue->memory + 32768 + queue->posted % 256 * RESPONSE,
		.length = RESPONSE,
		.lkey = queue->mr->lkey,
	};
	struct ibv_recv_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .wr_id = queue->posted % 256,
	};

	queue->posted++;
	return ibv_post_recv(queue->id->qp, &wr, &bad);
}

/* 0 when it was accepted, the status of the target's reject, or -1. */
static int queue_connect(struct queue *queue, const struct wish *wish, __u8 reads)
{
	struct rdma_conn_param param = {
		.private_data = wish, .private_data_len = sizeof(*wish),
		.responder_resources = reads, .retry_count = 7, .rnr_retry_count = 7,
		.flow_control = 1,
	};
	const __u8 *reject;
	int i;

	for (i = 0; i < RECEIVES; i++)
		if (post_receive(queue))
			return -1;
	if (!rdma_connect(queue->id, &param))
		return 0;
	if (!queue->id->event || queue->id->event->event != RDMA_CM_EVENT_REJECTED ||
	    queue->id->event->param.conn.private_data_len < 4)
		return -1;
	reject = queue->id->event->param.conn.private_data;
	return reject[2] | reject[3] << 8 ?: -1;
}

/* --- commands --- */

static char *command_new(struct queue *queue, __u8 opcode)
{
	char *command = queue->memory;

	memset(command, 0, CAPSULE);
	command[0] = opcode;
	command[1] = 0x40;	/* data are told by a list, here of none */
	command[39] = 0x40;
	put16(command + 2, ++queue->command_id);
	return command;
}

static void set_keyed(char *command, __u64 addr, __u32 length, __u32 key)
{
	put64(command + 24, addr);
	put32(command + 32, length);
	put32(command + 35, key);
	command[39] = 0x40;
}

static void set_data(struct queue *queue, char *command, __u32 length)
{
	set_keyed(command, (uintptr_t)queue->memory + DATA, length, queue->mr->rkey);
}

static void set_offset(char *command, __u64 offset, __u32 length)
{
	put64(command + 24, offset);
	put32(command + 32, length);
	memset(command + 36, 0, 3);
	command[39] = 0x01;
}

static int post_send(struct queue *queue, __u32 length)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)queue->memory, .length = length, .lkey = queue->mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = !!length, .opcode = IBV_WR_SEND, .wr_id = 1000,
	};

	return ibv_post_send(queue->id->qp, &wr, &bad);
}

/* A completion of a receive: 0; LOST when the target disconnects, NOTHING when none comes. */
static int reap(struct queue *queue, struct ibv_wc *wc)
{
	struct pollfd news = { .fd = queue->id->channel->fd, .events = POLLIN };
	long long deadline = now_ms() + PATIENCE_MS;
	int num;

	while (!(num = ibv_poll_cq(queue->id->recv_cq, 1, wc)) && now_ms() < deadline)
		if (poll(&news, 1, 1) > 0)
			return LOST;
	if (!num)
		return NOTHING;
	return num == 1 && wc->status == IBV_WC_SUCCESS ? 0 : LOST;
}

/* The status of the next response; its result is left in *result. */
static int await_response(struct queue *queue, __u32 *result)
{
	const __u8 *response;
	struct ibv_wc wc;
	int ret = reap(queue, &wc);

	if (ret)
		return ret;
	response = (__u8 *)queue->memory + 32768 + wc.wr_id * RESPONSE;
	memcpy(result, response, sizeof(*result));
	*result = le32toh(*result);
	post_receive(queue);
	while (ibv_poll_cq(queue->id->send_cq, 1, &wc) > 0)
		;
	return (response[14] | response[15] << 8) >> 1;
}

static int run(struct queue *queue, __u32 length)
{
	__u32 result;

	return post_send(queue, length) ? LOST : await_response(queue, &result);
}

/* The Connect command, right in all that it says. */
static char *connect_command(struct queue *queue, __u16 qid, __u16 controller)
{
	char *command = command_new(queue, 0x7f), *data = queue->memory + DATA;

	command[4] = 0x01;
	put16(command + 42, qid);
	put16(command + 44, 31);
	put32(command + 48, 60000);
	set_data(queue, command, 1024);
	memset(data, 0, 1024);
	data[0] = 1;
	put16(data + 16, controller);
	snprintf(data + 256, 256, "%s", nqn);
	snprintf(data + 512, 256, "nqn.2014-08.example.ibchan:hostile");
	return command;
}

static struct queue *queue_open(__u16 qid)
{
	const struct wish wish = {
		.qid = htole16(qid), .hrqsize = htole16(32), .hsqsize = htole16(31),
	};
	struct queue *queue = queue_new();

	if (queue && queue_connect(queue, &wish, 4)) {
		queue_close(queue);
		return NULL;
	}
	return queue;
}

/* A controller, enabled. */
static struct queue *admin_open(void)
{
	struct queue *queue = queue_open(0);
	__u32 result;
	char *command;

	if (!queue)
		return NULL;
	connect_command(queue, 0, 0xffff);
	if (post_send(queue, CAPSULE) || await_response(queue, &result))
		goto failed;
	queue->controller = result;
	command = command_new(queue, 0x7f);	/* Property Set, controller configuration */
	put32(command + 44, 0x14);
	put64(command + 48, 0x00460001);
	if (!run(queue, CAPSULE))
		return queue;
failed:
	queue_close(queue);
	return NULL;
}

/* Its first queue for I/O. */
static struct queue *io_open(const struct queue *admin)
{
	struct queue *queue = queue_open(1);

	if (!queue)
		return NULL;
	connect_command(queue, 1, admin->controller);
	if (!run(queue, CAPSULE))
		return queue;
	queue_close(queue);
	return NULL;
}

static int keep_alive(struct queue *queue)
{
	command_new(queue, 0x18);
	return run(queue, CAPSULE);
}

/* --- kinds --- */

/* How a command is made wrong: see make_wrong() and make_admin_wrong(). */
enum wrong { SHORT, EARLY, BYTE, CONTENT, LIST, WRAP, KEY, OFFSET, AGAIN, IDENTIFY };

/**
 * struct kind - one way to break the protocol
 * @name: printed
 * @run: does it; returns a status, LOST or NOTHING, or for a request the status of the reject
 * @a: for @run
 * @b: for @run
 * @want: REFUSED: any error; GONE: the connection ends; ANY: it is done, and must not hurt others;
 *	else the status of a reject
 * @wrong: for wrong_connect() and wrong_admin()
 */
struct kind {
	const char *name;
	int (*run)(const struct kind *kind);
	__u64 a;
	__u64 b;
	enum { REFUSED = 0, BAD_FORMAT = 2, BAD_QID = 3, BAD_SEND = 4, BAD_RECV = 5,
	       GONE = 100, ANY } want;
	enum wrong wrong;
};

/* a: recfmt and qid; b: hrqsize and hsqsize; the lower half comes first. */
static int ask(const struct kind *kind)
{
	const struct wish wish = {
		.recfmt = htole16(kind->a), .qid = htole16(kind->a >> 16),
		.hrqsize = htole16(kind->b), .hsqsize = htole16(kind->b >> 16),
	};
	struct queue *queue = queue_new();
	int ret = queue ? queue_connect(queue, &wish, 4) : NOTHING;

	queue_close(queue);
	return ret;
}

/* a: how many queues that come and go without a word. */
static int come_and_go(const struct kind *kind)
{
	struct queue *queue;
	__u64 i;
	int ret = 0;

	for (i = 0; i < kind->a && !ret; i++) {
		queue = queue_open(0);
		ret = queue ? 0 : NOTHING;
		queue_close(queue);
	}
	return ret;
}

/* The target is to read what we do not serve. */
static int serve_nothing(const struct kind *kind)
{
	const struct wish wish = { .hrqsize = htole16(32), .hsqsize = htole16(31) };
	struct queue *queue = queue_new();
	int ret = NOTHING;

	(void)kind;
	if (queue && !queue_connect(queue, &wish, 0)) {
		connect_command(queue, 0, 0xffff);
		ret = run(queue, CAPSULE);
	}
	queue_close(queue);
	return ret;
}

/* Returns how long the capsule is. */
static __u32 make_wrong(struct queue *queue, char *command, const struct kind *kind)
{
	switch (kind->wrong) {
	case SHORT: /* a: bytes of the capsule */
		return kind->a;
	case EARLY: /* a: opcode, b: fctype of another command */
		command_new(queue, kind->a)[4] = kind->b;
		break;
	case BYTE: /* a: where in the command, b: the byte there */
		command[kind->a] = kind->b;
		break;
	case CONTENT: /* a: where in its data, b: how many bytes are not zero there */
		memset(queue->memory + DATA + kind->a, 'x', kind->b);
		break;
	case LIST: /* a: what is added to the address, b: length */
		set_keyed(command, (uintptr_t)queue->memory + DATA + kind->a, kind->b,
			  queue->mr->rkey);
		break;
	case WRAP: /* a: address, b: length */
		set_keyed(command, kind->a, kind->b, queue->mr->rkey);
		break;
	case KEY: /* a: what the key differs in, b: type of the list */
		put32(command + 35, queue->mr->rkey ^ kind->a);
		command[39] = kind->b;
		break;
	case OFFSET: /* a: offset, b: length; no data go with the command */
		set_offset(command, kind->a, kind->b);
		break;
	default:
		break;
	}
	return CAPSULE;
}

static int wrong_connect(const struct kind *kind)
{
	struct queue *queue = queue_open(0);
	int ret = NOTHING;
	char *command;

	if (queue) {
		command = connect_command(queue, 0, 0xffff);
		ret = run(queue, make_wrong(queue, command, kind));
	}
	queue_close(queue);
	return ret;
}

/* a: the lower half of the type of a list, the upper one being b; all that are not known. */
static int unknown_lists(const struct kind *kind)
{
	struct queue *queue = queue_open(0);
	int type, ret = 0, worst = REFUSED + 1;

	for (type = kind->b << 4; queue && type < (int)(kind->b + 1) << 4; type++) {
		if (type == 0x01 || type == 0x40 || type == 0x4f)
			continue;
		connect_command(queue, 0, 0xffff)[39] = type;
		ret = run(queue, CAPSULE);
		if (ret <= 0)
			worst = ret;
	}
	queue_close(queue);
	return worst;
}

/* How a command to a controller is made wrong. */
static void make_admin_wrong(struct queue *admin, const struct kind *kind)
{
	char *command;

	switch (kind->wrong) {
	case AGAIN: /* it is connected */
		connect_command(admin, 0, 0xffff);
		break;
	case IDENTIFY: /* a: bytes of its list, b: what the key differs in */
		command = command_new(admin, 0x06);
		command[40] = 1;
		set_keyed(command, (uintptr_t)admin->memory + DATA, kind->a,
			  admin->mr->rkey ^ kind->b);
		break;
	default: /* a: opcode, b: the first dword of its own */
		command = command_new(admin, kind->a);
		put32(command + 40, kind->b);
		set_data(admin, command, 4096);
	}
}

static int wrong_admin(const struct kind *kind)
{
	struct queue *admin = admin_open();
	int ret = NOTHING;

	if (admin) {
		make_admin_wrong(admin, kind);
		ret = run(admin, CAPSULE);
	}
	queue_close(admin);
	return ret;
}

/* More events than a controller keeps: a of them. */
static int many_events(const struct kind *kind)
{
	struct queue *admin = admin_open();
	int ret = NOTHING;
	__u64 i;

	for (i = 0; admin && i < kind->a && ret == NOTHING; i++) {
		command_new(admin, 0x0c);
		if (i + 1 < kind->a)
			post_send(admin, CAPSULE);
		else
			ret = run(admin, CAPSULE);
	}
	queue_close(admin);
	return ret;
}

/* The first I/O queue; a: it is there already, b: what the controller's number differs in. */
static int wrong_io_queue(const struct kind *kind)
{
	struct queue *admin = admin_open(), *first = admin && kind->a ? io_open(admin) : NULL;
	struct queue *io = admin && !kind->a == !first ? queue_open(1) : NULL;
	int ret = NOTHING;

	if (io) {
		connect_command(io, 1, admin->controller ^ kind->b);
		ret = run(io, CAPSULE);
	}
	queue_close(io);
	queue_close(first);
	queue_close(admin);
	return ret;
}

/* An I/O command, its parts wrong by number: see below. */
static void spoil(struct queue *io, char *command, __u64 how)
{
	switch (how) {
	case 0: /* another namespace */
		put32(command + 4, 77);
		break;
	case 1: /* none, and all */
		put32(command + 4, 0xffffffff);
		break;
	case 2: /* behind the end */
		put64(command + 40, 1ULL << 40);
		break;
	case 3: /* an address that wraps */
		put64(command + 40, ~0ULL);
		break;
	case 4: /* more blocks than bytes */
		put16(command + 48, 0xffff);
		break;
	case 5: /* fewer bytes than a block */
		set_data(io, command, 100);
		break;
	case 6: /* no such command */
		command[0] = 0x91;
		break;
	case 7: /* data in the capsule, which has none */
		set_offset(command, 0, 512);
		break;
	}
}

/* a: opcode, b: see spoil(). */
static int wrong_io(const struct kind *kind)
{
	struct queue *admin = admin_open(), *io = admin ? io_open(admin) : NULL;
	int ret = NOTHING;
	char *command;

	if (io) {
		command = command_new(io, kind->a);
		put32(command + 4, 1);
		set_data(io, command, 512);
		spoil(io, command, kind->b);
		ret = run(io, CAPSULE);
	}
	queue_close(io);
	queue_close(admin);
	return ret;
}

/*
 * a: opcode; b: how many, of 64 KiB each, none of which is waited for. They are right, and at
 * 32 MiB of the disk, where no other host keeps anything.
 */
static int leave_in_the_middle(const struct kind *kind)
{
	struct queue *admin = admin_open(), *io = admin ? io_open(admin) : NULL;
	char *command;
	__u64 i;

	for (i = 0; io && i < kind->b; i++) {
		command = command_new(io, kind->a);
		put32(command + 4, 1);
		put64(command + 40, 65536);
		put16(command + 48, 127);
		set_data(io, command, 65536);
		post_send(io, CAPSULE);
	}
	queue_close(io);
	queue_close(admin);
	return io ? 0 : NOTHING;
}

/* a: commands at once, more than the queue is deep. */
static int flood(const struct kind *kind)
{
	struct queue *admin = admin_open();
	__u64 i;

	for (i = 0; admin && i < kind->a; i++) {
		command_new(admin, 0x18);
		if (post_send(admin, CAPSULE))
			break;
	}
	queue_close(admin);
	return admin ? 0 : NOTHING;
}

#define KIND(run, name, a, b, want)	{ name, run, a, b, want, 0 }
#define CONNECT(how, name, a, b, want)	{ name, wrong_connect, a, b, want, how }
#define ADMIN(how, name, a, b, want)	{ name, wrong_admin, a, b, want, how }
#define LISTS(half)	KIND(unknown_lists, "lists of types " #half "_", 0, 0x##half, REFUSED)

static const struct kind kinds[] = {
	KIND(ask, "a request of another format", 1, 32 | 31 << 16, BAD_FORMAT),
	KIND(ask, "a request of no format", 0xffff, 32 | 31 << 16, BAD_FORMAT),
	KIND(ask, "a request for queue 129", 129 << 16, 32 | 31 << 16, BAD_QID),
	KIND(ask, "a request for queue 65535", 0xffff0000, 32 | 31 << 16, BAD_QID),
	KIND(ask, "an admin queue that is too deep", 0, 32 | 32 << 16, BAD_SEND),
	KIND(ask, "an admin queue of 65536", 0, 0xffff0020, BAD_SEND),
	KIND(ask, "an I/O queue that is too deep", 1 << 16, 32 | 1024 << 16, BAD_SEND),
	KIND(ask, "a queue that takes no response", 0, 31 << 16, BAD_RECV),
	KIND(come_and_go, "queues that come and go", 20, 0, ANY),
	KIND(serve_nothing, "a host that serves no reads", 0, 0, REFUSED),
	CONNECT(SHORT, "a capsule of no bytes", 0, 0, GONE),
	CONNECT(SHORT, "a capsule of 1 byte", 1, 0, GONE),
	CONNECT(SHORT, "a capsule of 16 bytes", 16, 0, GONE),
	CONNECT(SHORT, "a capsule of 63 bytes", 63, 0, GONE),
	CONNECT(EARLY, "Identify before Connect", 0x06, 0, REFUSED),
	CONNECT(EARLY, "a read before Connect", 0x02, 0, REFUSED),
	CONNECT(EARLY, "a write before Connect", 0x01, 0, REFUSED),
	CONNECT(EARLY, "Keep Alive before Connect", 0x18, 0, REFUSED),
	CONNECT(EARLY, "Property Set before Connect", 0x7f, 0x00, REFUSED),
	CONNECT(EARLY, "Property Get before Connect", 0x7f, 0x04, REFUSED),
	CONNECT(EARLY, "a fabrics command that nobody knows", 0x7f, 0x77, REFUSED),
	CONNECT(BYTE, "the first of two fused commands", 1, 0x41, REFUSED),
	CONNECT(BYTE, "the second of two fused commands", 1, 0x42, REFUSED),
	CONNECT(BYTE, "data told by pages", 1, 0x00, REFUSED),
	CONNECT(BYTE, "metadata told by a list", 1, 0x80, REFUSED),
	CONNECT(BYTE, "a Connect of another format", 40, 1, REFUSED),
	CONNECT(BYTE, "a Connect of another queue", 42, 3, REFUSED),
	CONNECT(BYTE, "a Connect of queue 65280", 43, 0xff, REFUSED),
	CONNECT(BYTE, "a Connect with a queue of one", 44, 0, REFUSED),
	/* Of an admin queue, whose size later targets do not hold against that of I/O queues. */
	CONNECT(BYTE, "a Connect with a queue of 65280", 45, 0xff, ANY),
	CONNECT(CONTENT, "a Connect to a controller", 16, 2, REFUSED),
	CONNECT(CONTENT, "a subsystem that nobody knows", 256, 8, REFUSED),
	CONNECT(CONTENT, "a subsystem's name without an end", 256, 256, REFUSED),
	CONNECT(LIST, "a Connect of no data", 0, 0, REFUSED),
	CONNECT(LIST, "a Connect of too few data", 0, 1023, REFUSED),
	CONNECT(LIST, "a Connect of too many data", 0, 1025, REFUSED),
	CONNECT(LIST, "a Connect of 1 MiB", 0, 1 << 20, REFUSED),
	CONNECT(LIST, "a list of more than 1 MiB", 0, (1 << 20) + 1, REFUSED),
	CONNECT(LIST, "a list of 16 MiB", 0, 0xffffff, REFUSED),
	CONNECT(WRAP, "a list at the end of all addresses", ~0ULL - 1022, 1024, REFUSED),
	CONNECT(WRAP, "a list at address 0", 0, 1024, GONE),
	CONNECT(LIST, "a list behind the region", MEMORY, 1024, GONE),
	CONNECT(KEY, "a key that there is not", 0x5500, 0x40, GONE),
	CONNECT(KEY, "a key that there is not, to be invalidated", 0x5500, 0x4f, GONE),
	CONNECT(OFFSET, "an offset of which there is nothing", 0, 1024, REFUSED),
	CONNECT(OFFSET, "an offset behind all data", 4096, 1024, REFUSED),
	CONNECT(OFFSET, "an offset that wraps", ~0ULL, 1024, REFUSED),
	CONNECT(OFFSET, "an offset that wraps to 0", ~0ULL - 1023, 1024, REFUSED),
	CONNECT(OFFSET, "an offset of 2^63", 1ULL << 63, 1, REFUSED),
	CONNECT(OFFSET, "data of 4 GiB in a capsule", 0, 0xffffffff, REFUSED),
	LISTS(0), LISTS(1), LISTS(2), LISTS(3), LISTS(4), LISTS(5), LISTS(7), LISTS(a), LISTS(f),
	KIND(wrong_admin, "an admin command that nobody knows", 0x9a, 0, REFUSED),
	KIND(wrong_admin, "an I/O queue made by command", 0x05, 1, REFUSED),
	KIND(wrong_admin, "an Identify of what there is not", 0x06, 0xff, REFUSED),
	KIND(wrong_admin, "a feature that there is not", 0x0a, 0xff, REFUSED),
	ADMIN(IDENTIFY, "an Identify of too few bytes", 512, 0, REFUSED),
	ADMIN(IDENTIFY, "an Identify of no bytes", 0, 0, REFUSED),
	ADMIN(IDENTIFY, "an Identify to a key that there is not", 4096, 0x5500, GONE),
	KIND(many_events, "more events than are kept", 9, 0, REFUSED),
	ADMIN(AGAIN, "a second Connect", 0, 0, REFUSED),
	KIND(wrong_io_queue, "an I/O queue of another controller", 0, 0x4000, REFUSED),
	KIND(wrong_io_queue, "an I/O queue that is there already", 1, 0, REFUSED),
	KIND(wrong_io, "a read of another namespace", 0x02, 0, REFUSED),
	KIND(wrong_io, "a read of all namespaces", 0x02, 1, REFUSED),
	KIND(wrong_io, "a read behind the end", 0x02, 2, REFUSED),
	KIND(wrong_io, "a write at the last address", 0x01, 3, REFUSED),
	KIND(wrong_io, "a read of more than there is room for", 0x02, 4, REFUSED),
	KIND(wrong_io, "a write of a part of a block", 0x01, 5, REFUSED),
	KIND(wrong_io, "an I/O command that nobody knows", 0x02, 6, REFUSED),
	KIND(wrong_io, "a read into a capsule", 0x02, 7, REFUSED),
	KIND(wrong_io, "a write of data that did not come", 0x01, 7, REFUSED),
	KIND(leave_in_the_middle, "a host that leaves in the middle of reads", 0x02, 16, ANY),
	KIND(leave_in_the_middle, "one that leaves in the middle of writes", 0x01, 16, ANY),
	KIND(flood, "more commands than the queue is deep", 200, 0, ANY),
};

#define NUM_KINDS	(sizeof(kinds) / sizeof(*kinds))

static bool is_as_wanted(const struct kind *kind, int got)
{
	switch (kind->want) {
	case REFUSED:
		return got > 0 || got == LOST;
	case GONE:
		return got == LOST;
	case ANY:
		return got != NOTHING;
	default:
		return got == (int)kind->want;
	}
}

int main(int argc, char **argv)
{
	struct queue *other;
	size_t i, bad = 0;
	int got, answer;

	if (argc != 5) {
		fprintf(stderr, "usage: hostile SOURCE ADDRESS PORT NQN\n");
		return 2;
	}
	source = argv[1], address = argv[2], service = argv[3], nqn = argv[4];
	setvbuf(stdout, NULL, _IOLBF, 0);
	other = admin_open();
	if (!other) {
		fprintf(stderr, "hostile: a host that behaves cannot connect\n");
		return 1;
	}
	for (i = 0; i < NUM_KINDS; i++) {
		got = kinds[i].run(&kinds[i]);
		answer = keep_alive(other);
		if (is_as_wanted(&kinds[i], got) && !answer) {
			printf("ok - %s\n", kinds[i].name);
			continue;
		}
		printf("not ok - %s: %d; another host: %d\n", kinds[i].name, got, answer);
		bad++;
	}
	queue_close(other);
	printf("%zu kinds, %zu not refused\n", i, bad);
	return bad ? 1 : 0;
}
