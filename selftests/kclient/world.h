/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The world of one case: what it makes, what it expects, what it gives back.
 *
 * A case gets an empty world. Whatever it makes through these functions is given
 * back by the runner when the case has returned, however it returned, in the
 * order listeners, requests, channels, regions, cqs, domains, devices, memory: so a
 * case that fails half-way leaves nothing behind. Giving back is a test too: what is
 * still busy then fails the case.
 */
#ifndef KCLIENT_WORLD_H
#define KCLIENT_WORLD_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <rdma/ibchan.h>

/* Bytes of a side's buffer. */
#define SIDE_BYTES	SZ_128K

/* Completions by wr_id that a side remembers. */
#define SIDE_LOG	64

/* How long anything may take that is sure to come, in milliseconds. */
extern unsigned int patience;

/* The two devices. */
extern char *device_names[2];

struct task_struct;
struct world;

/**
 * struct side - one end of a connection
 * @world: its world
 * @dev: its device
 * @pd: everything of this side is in it
 * @send_cq: where sends complete
 * @recv_cq: where receives complete; often the same
 * @ch: the channel; NULL once the case has closed it
 * @buf: SIDE_BYTES of kmalloc memory
 * @local: a region over @buf, for this side only
 * @shared: a region over @buf for the peer; see side_share()
 * @remote: what the peer knows of @shared
 * @options: of the channel
 * @max_sgl: of the channel
 * @broken: how often the channel's broken() was called
 * @error: what broken() was told last
 * @gone: how often the sink's gone() was called
 * @notified: how often the sink's notify() was called
 * @reserved: room that the sink has given out and not got back
 * @room: what @reserved may be at most
 * @logged: completions by wr_id that have come
 * @log: the first SIDE_LOG of them
 */
struct side {
	struct world *world;
	struct ibchan_device *dev;
	struct ibchan_pd *pd;
	struct ibchan_cq *send_cq;
	struct ibchan_cq *recv_cq;
	struct ibchan_channel *ch;
	u8 *buf;
	struct ibchan_mr *local;
	struct ibchan_mr *shared;
	struct ibchan_remote remote;
	struct ibchan_options options;
	u16 max_sgl;
	atomic_t broken;
	int error;
	atomic_t gone;
	atomic_t notified;
	atomic_t reserved;
	int room;
	atomic_t logged;
	struct ibchan_completion log[SIDE_LOG];
};

/* What a world gives back, in this order. */
enum thing_kind {
	THING_LISTENER, THING_REQUEST, THING_CHANNEL, THING_MR, THING_CQ, THING_PD,
	THING_DEVICE, THING_MEMORY, THING_KINDS
};

/**
 * struct world - see above
 * @name: of the case
 * @failures: expectations that did not hold
 * @skipped: why the case could not be run; NULL: it was
 * @wait: woken by each callback
 * @lock: guards @things
 * @things: what there is to give back, the youngest first
 * @closing: counts channels that were given up
 * @watchdog: breaks all channels when a case hangs
 * @side: the two ends
 */
struct world {
	const char *name;
	u32 failures;
	const char *skipped;
	wait_queue_head_t wait;
	spinlock_t lock;	/* things */
	struct list_head things[THING_KINDS];
	struct ibchan_closing closing;
	struct delayed_work watchdog;
	struct side side[2];
};

/**
 * struct pair_init - how two sides are made
 * @params: of both channels
 * @sink: of all cqs
 * @cq_entries: as in ibchan_cq_init
 * @cq_flags: IBCHAN_CQ_*
 * @moderation_count: as in ibchan_cq_init
 * @moderation_us: as in ibchan_cq_init
 * @two_cqs: each side has one for sends and one for receives
 * @options: of both channels
 * @max_sgl: as in ibchan_build
 * @loop: both sides are on the first device and in one pd
 */
struct pair_init {
	struct ibchan_params params;
	const struct ibchan_sink *sink;
	u32 cq_entries;
	u32 cq_flags;
	u16 moderation_count;
	u16 moderation_us;
	int two_cqs;
	int loop;
	u16 max_sgl;
	struct ibchan_options options;
};

/* The sink that all sides have unless a case wants another; @priv is the side. */
extern const struct ibchan_sink side_sink;

struct world *world_new(const char *name);
void world_give_back(struct world *w);
void world_free(struct world *w);
int world_expect(struct world *w, int holds, const char *what, const char *file, int line);
int world_expect_eq(struct world *w, s64 got, s64 want, const char *what, const char *where);
void world_skip(struct world *w, const char *why);
void world_break_all(struct world *w, int error);

void *world_alloc(struct world *w, size_t size);
void *world_kalloc(struct world *w, size_t size);
void *world_valloc(struct world *w, size_t size);
void world_keep(struct world *w, enum thing_kind kind, void *object);
int world_forget(struct world *w, enum thing_kind kind, void *object);

void pair_defaults(struct pair_init *init);
int world_sides(struct world *w, const struct pair_init *init);
int world_pair(struct world *w, const struct pair_init *init);
int world_default_pair(struct world *w);

struct ibchan_device *world_device(struct world *w, int index);
struct ibchan_pd *world_pd(struct world *w, struct ibchan_device *dev);
struct ibchan_cq *world_cq(struct world *w, struct ibchan_device *dev,
			   const struct ibchan_cq_init *init);
struct ibchan_mr *world_mr(struct world *w, struct ibchan_pd *pd, void *addr, u64 length,
			   u32 access);
struct ibchan_mr *world_keep_mr(struct world *w, struct ibchan_mr *mr);

void side_build_init(struct side *side, struct ibchan_build *build);
struct ibchan_channel *side_build(struct side *side, const struct ibchan_params *params);
int side_connect(struct world *w, struct ibchan_channel *ch, struct ibchan_channel *peer);
u32 world_inline_room(struct world *w, u32 wanted);
const struct ibchan_remote *side_share(struct side *side);
const struct ibchan_remote *side_share_as(struct side *side, u32 access);
struct ibchan_sge *side_sge(struct side *side, u64 offset, u32 length);
void side_close(struct side *side);
u32 channel_state(struct ibchan_channel *ch);
int channel_in_flight(struct ibchan_channel *ch);

void fill_pattern(u8 *bytes, size_t length, u32 seed);
int has_pattern(const u8 *bytes, size_t length, u32 seed);
int log_lines_with(const char *text);

ktime_t after_ms(unsigned int ms);

/* Both return whether it held, so that a case can stop where going on makes no sense. */
#define expect(w, condition) \
	world_expect(w, !!(condition), #condition, __FILE__, __LINE__)
#define expect_eq(w, got, want) \
	world_expect_eq(w, (s64)(got), (s64)(want), #got " == " #want, \
			__FILE__ ":" __stringify(__LINE__))

/* For what callbacks bring about: waits, and says whether it has come. */
#define expect_soon(w, condition) \
	world_expect(w, !!wait_event_timeout((w)->wait, condition, \
					     msecs_to_jiffies(patience)), \
		     #condition, __FILE__, __LINE__)

#endif /* KCLIENT_WORLD_H */
