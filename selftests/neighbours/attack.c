// SPDX-License-Identifier: GPL-2.0-only
/*
 * attack NAME DEVICE HOST UID: as a user without privileges that may open the node, make life
 * hard for other users of DEVICE, whose address HOST is. Says "ready" when it is under way, and
 * does not end by itself. `neighbours` runs it, as root, because FUSE files have to be mounted.
 *
 *	fuse		registers memory of a file whose server does not answer
 *	swap		has such a file's page pinned, and keeps its lock
 *	userfault	registers memory that does not come, under userfaultfd
 *	plain		posts such memory
 *	rings		600 files, in each a thread that hangs, and then a ring that is spoiled
 *	objects		16 000 objects, looked through, and given back at once
 *	requests	connection requests that no server takes
 *	dead_requests	8000 connection requests whose askers die, and then more of them
 *	keepalives	4000 idle channels that ask their peers for life as often as may be
 *	queues		full completion queues, given back at once
 *	memlock		registrations that RLIMIT_MEMLOCK refuses, with plain memory to be freed
 *	deferred	plain memory of works in flight, given back
 *	files		files that a process with 60 000 mappings of a library opens and closes
 *	memory		as many large completion queues as the user may have
 *	channels	thousands of channels, closed at once, again and again
 *	ends		queues that wait for an event which never comes, and are given back
 *	addresses	ten addresses of DEVICE come and go beside thousands of channels
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "attack.h"
#include "missing.h"
#include "pager.h"
#include "work.h"
#include "world.h"

#define MEBI		(1024UL * 1024)
/* What a distribution allows at least. */
#define MEMLOCK		(8 * MEBI)
#define FILES		4096

/* Fast registration takes 512 pages of soft-RoCE's memory; more only its driver registers. */
#define LARGE		(520 * PAGE)
#define NUM_LARGE	3	/* files of that many pages */
#define BROKEN_FILES	600
#define OBJECTS		16000
#define IDLE_CHANNELS	4000
#define SHARED_BY	256	/* channels of one queue */
#define ENTRIES_EACH	8	/* of that queue */
#define CQ_ENTRIES	32767
#define FULL		8000	/* completions that nobody takes */
#define LARGE_QUEUES	128	/* 4 MiB each */
#define MANY_CHANNELS	8000	/* of a process */
#define MANY_MIB	"512"	/* enough for them */
#define RECEIVES	16	/* that each of these ends with */
#define LEAVING		3	/* processes whose queues wait for an event */
#define WAITING		64	/* such queues of a file */
#define ADDRESSES	10
#define MOVE_MS		200	/* for which they stay, and stay away */

struct scene scene;

static void say_ready(void)
{
	puts("ready");
	fflush(stdout);
}

int stay(void)
{
	say_ready();
	while (pause())
		;
	return 0;
}

int keep_busy(unsigned int num, int (*body)(void))
{
	unsigned int i;
	int rc = body();

	for (i = 0; i < num && !rc; i++) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			if (body())
				poll(NULL, 0, 10);
	}
	return rc ?: stay();
}

struct side_options options(void)
{
	struct side_options options = side_defaults();

	options.device = scene.device;
	options.memory = PAGE;
	return options;
}

int open_file(struct side *side)
{
	const struct side_options chosen = options();
	int rc;

	memset(side, 0, sizeof(*side));
	side->fd = node_open();
	if (side->fd < 0)
		return side->fd;
	rc = device_open(side->fd, scene.device, &side->device);
	rc = rc ?: pd_alloc(side->fd, side->device, &side->pd);
	return rc ?: side_cq(side, &chosen);
}

static int open_loop(struct side *side, const struct side_options *chosen)
{
	int rc = side_open(side, chosen);

	return rc ?: side_handshake(side, &side->endpoint);
}

/* ---- Pages that never come ---- */

struct range {
	struct side side;
	void *addr;
	size_t length;
	__u32 access;	/* 0: IBCHAN_ACCESS_SHARED */
	pthread_t thread;
};

static void *register_range(void *arg)
{
	const struct range *range = arg;
	struct ibchan_cmd_mr_reg cmd = {
		.addr = address(range->addr),
		.length = range->length,
		.pd = range->side.pd,
		.access = range->access ?: IBCHAN_ACCESS_SHARED,
	};

	cmd_mr_reg(range->side.fd, &cmd);
	return NULL;
}

static void *post_range(void *arg)
{
	const struct range *range = arg;
	struct ibchan_submit_wr wr = work_empty(&range->side, IBCHAN_OP_SEND, 1);

	wr.num_sge = 1;
	wr.sge.offset = address(range->addr);
	wr.sge.length = range->length;
	wr.sge.mr = IBCHAN_MR_PLAIN;
	post_one(&range->side, wr);
	return NULL;
}

/* @range's thread does not come back from @body. */
static int hang(struct range *range, void *(*body)(void *range))
{
	return -pthread_create(&range->thread, NULL, body, range);
}

static void register_file(const struct pager *pager)
{
	/* Read only: a private page that was written is a copy, which its file cannot drop. */
	struct range range = {
		.length = pager->state->length, .access = IBCHAN_ACCESS_REMOTE_READ,
	};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	range.addr = pager_map(pager, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	if (range.addr != MAP_FAILED && !open_file(&range.side))
		register_range(&range);
	_exit(1);
}

/* Each in a process of its own: on 6.1 a fault holds the lock that mmap() needs. */
static int attack_fuse(void)
{
	unsigned int i;
	pid_t child;

	for (i = 0; i < HANGING; i++) {
		child = fork();
		if (!child)
			register_file(&scene.pagers[i]);
		if (child < 0)
			return -errno;
	}
	for (i = 0; i < HANGING; i++)
		if (!pager_is_waited_for(&scene.pagers[i]))
			return -ETIMEDOUT;
	return stay();
}

/*
 * @num ranges of @pages each, whose threads all wait in @body; @open_side makes what they need.
 */
static int hang_all(struct range *ranges, unsigned int num, unsigned int pages,
		    int (*open_side)(struct side *side), void *(*body)(void *range))
{
	unsigned int i;
	int rc = missing_begin(&scene.missing);

	for (i = 0; i < num && !rc; i++) {
		ranges[i].length = pages * PAGE;
		ranges[i].addr = missing_pages(&scene.missing, ranges[i].length);
		rc = ranges[i].addr == MAP_FAILED ? -errno : open_side(&ranges[i].side);
		rc = rc ?: hang(&ranges[i], body);
	}
	return rc ?: missing_is_wanted_by(&scene.missing, num) ? rc : -ETIMEDOUT;
}

static int attack_userfault(void)
{
	static struct range ranges[HANGING];

	return hang_all(ranges, HANGING, MEBI / PAGE, open_file, register_range) ?: stay();
}

static int open_own_peer(struct side *side)
{
	const struct side_options chosen = options();

	return open_loop(side, &chosen);
}

static int attack_plain(void)
{
	static struct range ranges[HANGING];

	return hang_all(ranges, HANGING, 16, open_own_peer, post_range) ?: stay();
}

/* A thread of each hangs in a command, and then the file is to be broken. */
static int attack_rings(void)
{
	static struct range ranges[BROKEN_FILES];
	unsigned int i;
	int rc = hang_all(ranges, BROKEN_FILES, 1, open_file, register_range);

	for (i = 0; i < BROKEN_FILES && !rc; i++)
		rc = ring_spoil(ranges[i].side.ring);
	return rc ?: stay();
}

/* ---- Many of everything ---- */

static void look_everywhere(int fd)
{
	struct ibchan_cmd_event_take event = {};
	struct ibchan_cmd_query query = {};

	cmd_event_take(fd, &event);
	cmd_query(fd, &query);
}

/* As many as he is allowed, and then they all go at once. */
static int fill_with_objects(void)
{
	struct side side;
	unsigned int i;
	__u32 pd;
	int rc = open_file(&side);

	for (i = 0; i < OBJECTS && !rc; i++) {
		if (pd_alloc(side.fd, side.device, &pd))
			break;
		if (!(i % 64))
			look_everywhere(side.fd);
	}
	for (i = 0; i < 1000 && !rc; i++)
		look_everywhere(side.fd);
	side_close(&side);
	return rc;
}

static int attack_objects(void)
{
	return keep_busy(BUSY, fill_with_objects);
}

/* The next channel of those that share a queue; each is its own peer. */
static int open_next(struct side *side, bool is_first, const struct side_options *chosen)
{
	int rc = is_first ? side_open(side, chosen) : side_channel(side, chosen);

	return rc ?: side_handshake(side, &side->endpoint);
}

/* Up to @num channels, as the budget of a user allows: SHARED_BY of them on each of @sides. */
static int open_many(struct side *sides, unsigned int num, struct side_options *chosen)
{
	unsigned int i;
	int rc = 0;

	chosen->params.max_send_wr = 1;
	chosen->params.max_recv_wr = 1;
	chosen->cq_entries = SHARED_BY * ENTRIES_EACH;
	for (i = 0; i < num && !rc; i++)
		rc = open_next(&sides[i / SHARED_BY], !(i % SHARED_BY), chosen);
	fprintf(stderr, "%u channels\n", i);
	return i > SHARED_BY && (rc == -ENOMEM || rc == -EDQUOT) ? 0 : rc;
}

static int attack_keepalives(void)
{
	static struct side sides[IDLE_CHANNELS / SHARED_BY + 1];
	struct side_options chosen = options();

	chosen.options.keepalive_ms = IBCHAN_KEEPALIVE_MIN_MS;
	return open_many(sides, IDLE_CHANNELS, &chosen) ?: stay();
}

/* A channel with receives, which have no memory, and so share none. */
static int open_receiving(struct side *side, const struct side_options *chosen)
{
	struct ibchan_submit_wr wrs[RECEIVES];
	unsigned int i;
	int rc = side_channel(side, chosen);

	for (i = 0; i < RECEIVES; i++)
		wrs[i] = work_empty(side, IBCHAN_OP_RECV, i);
	rc = rc ?: side_handshake(side, &side->endpoint);
	return rc ?: post(side, wrs, RECEIVES);
}

/* Another queue in @side's file; the one before keeps its handle. */
static int change_queue(struct side *side, const struct side_options *chosen)
{
	ring_unmap(&side->own_ring);
	return side_cq(side, chosen);
}

/* One file has them all, so they end together. */
static int open_and_close_many(void)
{
	struct side_options chosen = options();
	static struct side side;
	unsigned int i;
	int rc;

	chosen.params.max_send_wr = 1;
	chosen.params.max_recv_wr = RECEIVES;
	chosen.cq_entries = SHARED_BY * (RECEIVES + ENTRIES_EACH);
	chosen.ring_entries = SHARED_BY * RECEIVES;
	rc = open_file(&side);
	for (i = 0; i < MANY_CHANNELS && !rc; i++) {
		if (!(i % SHARED_BY))
			rc = change_queue(&side, &chosen);
		rc = rc ?: open_receiving(&side, &chosen);
	}
	side_close(&side);
	return i > SHARED_BY && (rc == -ENOMEM || rc == -EDQUOT) ? 0 : rc;
}

static int attack_channels(void)
{
	return keep_busy(BUSY, open_and_close_many);
}

/*
 * The completions of a message to itself are there as the queue asks for an event, which then comes
 * with the next completion: there is none.
 */
static int open_waiting(struct side *side, const struct side_options *chosen)
{
	int rc = change_queue(side, chosen);

	rc = rc ?: side_channel(side, chosen);
	rc = rc ?: side_handshake(side, &side->endpoint);
	rc = rc ?: post_one(side, work_empty(side, IBCHAN_OP_RECV, 1));
	return rc ?: post_one(side, work_empty(side, IBCHAN_OP_SEND, 2));
}

static int leave_waiting(void)
{
	struct side_options chosen = options();
	static struct side side;
	unsigned int i;
	int rc;

	chosen.params.max_send_wr = 1;
	chosen.params.max_recv_wr = 1;
	chosen.cq_entries = ENTRIES_EACH;
	chosen.ring_entries = 2;
	rc = open_file(&side);
	for (i = 0; i < WAITING && !rc; i++)
		rc = open_waiting(&side, &chosen);
	side_close(&side);
	/* Those that wait are charged for until they have gone. */
	return i && rc == -EDQUOT ? 0 : rc;
}

static int attack_ends(void)
{
	return keep_busy(LEAVING, leave_waiting);
}

static int attack_addresses(void)
{
	static struct side sides[MANY_CHANNELS / SHARED_BY + 1];
	struct side_options chosen = options();

	return open_many(sides, MANY_CHANNELS, &chosen) ?: stay();
}

/* A queue of completions that nobody has taken, which goes at once. */
static int fill_queue(void)
{
	struct side_options chosen = options();
	struct ibchan_submit_wr wrs[16];
	struct side side;
	unsigned int i;
	int rc;

	chosen.cq_entries = CQ_ENTRIES;
	chosen.ring_entries = 32768;
	chosen.params.max_recv_wr = FULL;
	rc = open_loop(&side, &chosen);
	for (i = 0; i < 16; i++)
		wrs[i] = work_empty(&side, IBCHAN_OP_RECV, i);
	for (i = 0; i < FULL / 16 && !rc; i++)
		rc = post(&side, wrs, 16);
	rc = rc ?: channel_break(side.fd, side.channel);
	side_close(&side);
	return rc;
}

static int attack_queues(void)
{
	return keep_busy(BUSY, fill_queue);
}

/* Kernel memory: as many large queues as he gets. */
static int attack_memory(void)
{
	struct side_options chosen = options();
	struct side side;
	unsigned int i;
	int rc;

	chosen.cq_entries = CQ_ENTRIES;
	chosen.ring_entries = 1;
	rc = open_file(&side);
	if (rc)
		return rc;
	for (i = 0; i < LARGE_QUEUES && !rc; i++) {
		struct ring ring = *side.ring;

		rc = side_cq(&side, &chosen);
		/* The mapping and the descriptor of the queue stay. */
		*side.ring = ring;
	}
	fprintf(stderr, "%u queues of %u entries, then %s\n", i, CQ_ENTRIES, strerror(-rc));
	return stay();
}

/* ---- Floods ---- */

static int listen_here(const struct side *side, struct ibchan_cmd_listener_create *listener)
{
	*listener = (struct ibchan_cmd_listener_create) { .address.family = AF_INET };
	inet_pton(AF_INET, scene.host, listener->address.bytes);
	return cmd_listener_create(side->fd, listener);
}

/* Asks a listener that takes nobody, and one that does not exist, and goes. */
static int ask_and_go(void)
{
	struct ibchan_cmd_listener_create listener = { .out_fd = -1 };
	struct ibchan_cmd_channel_connect ask = {};
	const struct side_options chosen = options();
	struct side side;
	unsigned int i;
	int rc = side_open(&side, &chosen);

	rc = rc ?: listen_here(&side, &listener);
	for (i = 0; i < 64 && !rc; i++) {
		ask.peer = listener.out_address;
		ask.peer.port += i % 2;
		ask.channel = side.channel;
		rc = cmd_channel_connect(side.fd, &ask);
		rc = rc ?: side_channel(&side, &chosen);
	}
	/* No more at a time: the next ones are asked for by another file. */
	if (i && (rc == -EAGAIN || rc == -ENOMEM))
		rc = 0;
	if (listener.out_fd >= 0)
		close(listener.out_fd);
	side_close(&side);
	return rc;
}

static int attack_requests(void)
{
	return keep_busy(BUSY, ask_and_go);
}

static int open_range(struct range *range, size_t length)
{
	const struct side_options chosen = options();

	range->length = length;
	range->addr = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);
	if (range->addr == MAP_FAILED)
		return -errno;
	return open_loop(&range->side, &chosen);
}

static void close_range_of(struct range *range)
{
	side_close(&range->side);
	munmap(range->addr, range->length);
}

/* Plain memory of many pieces, given back while it is in flight or a little later. */
static int post_and_go(void)
{
	struct range range;
	unsigned int i;
	int rc = open_range(&range, MEBI / 2);

	for (i = 0; i < 8 && !rc; i++)
		post_range(&range);
	close_range_of(&range);
	return rc;
}

static int attack_deferred(void)
{
	return keep_busy(BUSY, post_and_go);
}

/* More than the limit allows, again and again: each time the module looks what is to come back. */
static int ask_for_too_much(void)
{
	struct range range;
	unsigned int i;
	int rc = open_range(&range, 2 * MEMLOCK);

	for (i = 0; i < 256 && !rc; i++) {
		range.length = PAGE;
		post_range(&range);
		range.length = 2 * MEMLOCK;
		register_range(&range);
	}
	close_range_of(&range);
	return rc;
}

static int attack_memlock(void)
{
	return keep_busy(BUSY, ask_for_too_much);
}

/* ---- What root does ---- */

/*
 * As `fusermount` would do for him. Of some files the driver pins the pages and lacks the first
 * one, which goes while it pins the others; of the rest no page comes at all.
 */
static int start_pagers(void)
{
	const struct pager_rules drops = { .first_page = 1, .drops = true };
	const struct pager_rules silent = { .first_page = 0 };
	unsigned int i;
	int rc = 0;

	for (i = 0; i < HANGING && !rc; i++)
		rc = i < NUM_LARGE ? pager_begin(&scene.pagers[i], LARGE, &drops) :
				     pager_begin(&scene.pagers[i], 16 * PAGE, &silent);
	return rc;
}

static int netdev_of(const char *device, char *name, int size)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/gid_attrs/ndevs/0", device);
	file = fopen(path, "r");
	if (!file)
		return -errno;
	if (!fgets(name, size, file))
		name[0] = 0;
	fclose(file);
	name[strcspn(name, "\n")] = 0;
	return name[0] ? 0 : -ENODEV;
}

/* Ten addresses come, or go, in one run of `ip`. */
static int move_addresses(const char *netdev, const char *verb)
{
	FILE *ip = popen("ip -force -batch - 2>/dev/null", "w");
	unsigned int i;

	if (!ip)
		return -errno;
	for (i = 1; i <= ADDRESSES; i++)
		fprintf(ip, "address %s 10.77.1.%u/32 dev %s\n", verb, i, netdev);
	return pclose(ip) < 0 ? -errno : 0;
}

/* A user may have more on a machine that has more memory. */
static int allow_more(void)
{
	return put_line("/sys/module/ibchan/parameters/user_memory", MANY_MIB);
}

/* As a network does whose addresses move; `neighbours` takes away what is left. */
static int start_moving(void)
{
	char netdev[32];
	int rc = allow_more() ?: netdev_of(scene.device, netdev, sizeof(netdev));

	if (rc || fork())
		return rc;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		move_addresses(netdev, "add");
		poll(NULL, 0, MOVE_MS);
		move_addresses(netdev, "delete");
		poll(NULL, 0, MOVE_MS);
	}
}

/* ---- Who he is ---- */

static const struct attack {
	const char *name;
	int (*run)(void);
	int (*as_root)(void);	/* before that */
} attacks[] = {
	{ "fuse", attack_fuse, start_pagers },
	{ "swap", attack_swap, serve_pages },
	{ "userfault", attack_userfault, NULL },
	{ "plain", attack_plain, NULL },
	{ "rings", attack_rings, NULL },
	{ "objects", attack_objects, NULL },
	{ "requests", attack_requests, NULL },
	{ "dead_requests", attack_dead_requests, NULL },
	{ "keepalives", attack_keepalives, NULL },
	{ "queues", attack_queues, NULL },
	{ "memlock", attack_memlock, NULL },
	{ "deferred", attack_deferred, NULL },
	{ "files", attack_files, NULL },
	{ "memory", attack_memory, NULL },
	{ "channels", attack_channels, allow_more },
	{ "ends", attack_ends, NULL },
	{ "addresses", attack_addresses, start_moving },
	{}
};

static int become(uid_t id)
{
	const struct rlimit memlock = { MEMLOCK, MEMLOCK }, files = { FILES * 2, FILES * 2 };

	if (setrlimit(RLIMIT_MEMLOCK, &memlock) || setrlimit(RLIMIT_NOFILE, &files))
		return -errno;
	if (setgroups(0, NULL) || setresgid(id, id, id) || setresuid(id, id, id))
		return -errno;
	return 0;
}

static const struct attack *find(const char *name)
{
	const struct attack *attack;

	for (attack = attacks; attack->name; attack++)
		if (!strcmp(attack->name, name))
			return attack;
	return NULL;
}

int main(int argc, char **argv)
{
	const struct attack *attack = argc == 5 ? find(argv[1]) : NULL;
	int rc;

	if (!attack) {
		fprintf(stderr, "usage: attack NAME DEVICE HOST UID\n");
		return 2;
	}
	scene.device = argv[2];
	scene.host = argv[3];
	rc = attack->as_root ? attack->as_root() : 0;
	rc = rc ?: become(atoi(argv[4]));
	rc = rc ?: attack->run();
	printf("ended with %d: %s\n", rc, strerror(-rc));
	return 1;
}
