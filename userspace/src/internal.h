/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The library's own types.
 *
 * Levels, each calls its own or the ones above it in this list:
 *	text.c		words for errors; no state but a string of each thread
 *	context.c	the file, the fork guard, ioctl, destroying
 *	source.c	the list of what ibchan_next() has to ask
 *	device.c memory.c
 *	lock.c		a mutex; no state
 *	slots.h ring.c	the mapped ring of a cq, and the slots; need cq->lock
 *	cq.c		create, destroy, poll
 *	post.c		work requests, and how they become a SUBMIT
 *	channel.c	builder, endpoint, handshake, codes of times
 *	who.c		what happened to a channel, and words for that
 *	connect.c	connecting by address
 *	wait.c		everything that sleeps
 *	listen.c	the answering side
 *	call.c		the blocking calls
 *	scope.c		pending works, whose result stays until the caller asks, and blocks of them
 *	next.c		ibchan_next()
 *	stream.c message.c dial.c	the short way; frame.h is its wire
 */
#ifndef _LIBIBCHAN_INTERNAL_H
#define _LIBIBCHAN_INTERNAL_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ibchan.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define ATTRIBUTE(name, ...)	__attribute__((name(__VA_ARGS__)))
#define __printf(string, first)	ATTRIBUTE(format, printf, string, first)
#define noinline		ATTRIBUTE(noinline)
#define __packed		ATTRIBUTE(packed)
#define forced_inline		inline ATTRIBUTE(always_inline)
#define likely(condition)	__builtin_expect(!!(condition), 1)
#define unlikely(condition)	__builtin_expect(!!(condition), 0)
#define min(a, b)		((a) < (b) ? (a) : (b))

#define NSEC_PER_SEC	1000000000LL
#define NSEC_PER_MSEC	1000000LL

struct ibchan_happening;

/*
 * A mutex for what each post and each completion locks, inline where no thread waits: of
 * pthread's, a pair of calls costs 50 instructions more, a twentieth of what a post
 * costs altogether. One that is all zero is free.
 */
struct lock {
	int state;	/* LOCK_* */
};

enum {
	LOCK_FREE,
	LOCK_HELD,
	LOCK_AWAITED,	/* held; the holder wakes a thread when it gives the lock back */
};

/*
 * The thread sanitizer of a program knows pthread's mutexes, and what they order. It has to
 * be told of the ones here.
 */
#pragma weak __tsan_acquire
#pragma weak __tsan_release
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);

/* A file has 16384 objects at most, unless an administrator wants more. */
#define OBJECT_PLACES	256

/* A channel, a listener, a cq or a server, which can tell of a happening. */
struct source {
	/* asks it, and returns enum told; one thread at a time does; set before it is added */
	int (*tell)(struct source *source, struct ibchan_happening *happening);
	/* its descriptor; only the thread that asks uses this and the next two */
	int fd;
	bool is_watched;	/* @fd is in the set of happenings */
	bool is_deaf;		/* @fd has nothing to tell any more, and is not watched again */
	/* of those to be asked; this and all below under the happenings' lock */
	struct source *next;
	struct source **link;	/* the pointer to it */
	bool is_listed;		/* it is to be asked */
	bool is_known;		/* it was listed once */
	bool is_gone;		/* it is closed, and not listed any more */
};

/* The sources that ibchan_next() of a context has to ask. */
struct happenings {
	/* held by the thread that asks sources; taken before any lock of an object */
	struct lock asking;
	/* sources to be asked before the next look at descriptors; of who asks */
	unsigned int round;
	int epoll_fd;		/* the set of all descriptors, or -1; immutable once it is there */
	struct lock lock;	/* guards the rest; behind it no other lock is taken */
	int event_fd;		/* in that set, readable while a source is listed */
	bool is_raised;		/* it is */
	bool is_asking;		/* a thread is asking, and shows by @event_fd what it leaves */
	struct source *first;	/* the source that is asked next */
	struct source **end;	/* where the pointer to another one goes */
	unsigned int num;	/* sources that are listed */
};

/* The beginning of every handle of the interface. */
struct object {
	struct ibchan_context *context;		/* immutable */
	/* frees the memory; the kernel's object is gone or the parent's */
	void (*release)(struct object *object);
	__u32 handle;				/* in the kernel; immutable */
	/* no event of it is told; under the context's lock */
	bool hidden;
	/* IBCHAN_EVENT_* that were taken and not told; under that lock */
	__u32 happened;
	/* of them, what its owner knows anyway; under that lock */
	__u32 known;
	/* of the objects whose handles share a place in the context; under its lock */
	struct object *next;
	struct object **link;			/* the pointer to it; under its lock */
};

/* One open file. */
struct ibchan_context {
	/* a page that is all zero in a child, so that a fork is noticed */
	__u32 *guard;
	int fd;
	/* eventfd, written when an event of a hidden object was taken, or -1 */
	int word_fd;
	__u64 seed;				/* random, for the tags of completion queues */
	pthread_mutex_t lock;			/* guards @objects and @word_fd */
	struct object *objects[OBJECT_PLACES];	/* all that closing has to free, by handle */
	struct happenings happenings;
};

/* The objects below are immutable once made, unless a member says more. */

/* A caller keeps the pointer to a name, so each name stays as long as the device. */
struct device_name {
	struct device_name *older;
	char text[IBCHAN_NAME_SIZE];
};

struct ibchan_device {
	struct object object;
	struct device_name first;
	struct device_name *names;
};

struct ibchan_pd {
	struct object object;
	struct ibchan_device *device;
};

struct ibchan_mr {
	struct object object;
	__u32 rkey;
	__u32 access;
	void *addr;
	__u64 remote_addr;	/* of the same byte, for peers */
	__u64 length;
};

/* Ends a list of slots. */
#define SLOT_NONE	0xffffffffU

/*
 * A work from its post until its owner fetches the completion.
 *
 * The kernel sees another wr_id: see slot_wr_id(). Works that are polled for have no slot.
 */
struct slot {
	__u64 wr_id;			/* the caller's */
	struct ibchan_channel *channel;	/* NULL once it was closed */
	__u32 next;			/* in the list of free slots, or of the stale ones */
	__u32 state;			/* enum slot_state */
	/* of the works that had this slot, the how manieth this is */
	__u64 generation;
	struct ibchan_cqe cqe;		/* from SLOT_DONE on */
};

/* Where a work is. */
enum slot_state {
	SLOT_FREE,	/* nowhere */
	SLOT_KEPT,	/* in flight; its completion is for the holder of its ticket */
	/* in flight, and its owner waits no longer: its completion is for any poll */
	SLOT_LEFT,
	SLOT_DONE,	/* complete, for the holder of its ticket */
	/* the same, but its channel was closed, so that another work may take the slot */
	SLOT_STALE,
};

/*
 * The owner's reference to a kept work.
 *
 * Nothing points from a slot to its owner: a thread that jumps out of a blocking call, or
 * out of the block where a pending work lives, leaves a slot behind, and no more.
 */
struct ticket {
	struct ibchan_cq *cq;	/* where it completes */
	__u32 index;		/* of its slot */
	__u64 generation;	/* of its slot; another one there means another work */
};

/* The kernel's ring in our memory; immutable but for *@head. */
struct ring_map {
	void *base;		/* start of the mapping */
	size_t size;		/* bytes of it */
	const __u32 *tail;	/* the kernel advances it */
	__u32 *head;		/* we do, under the cq's lock */
	unsigned char *cqes;	/* the first entry; between head and tail the entries are ours */
	__u32 entry_size;	/* bytes from one to the next */
	__u32 entries;		/* a power of two */
};

/*
 * Completion queue.
 *
 * A cq that is destroyed while a ticket is out stays as a shell without a ring, so that the ticket
 * still means something, until the last ticket is taken back or the context is closed.
 */
struct ibchan_cq {
	struct object object;
	struct source source;	/* of completions, for ibchan_next() */
	int fd;			/* the kernel's descriptor; immutable */
	struct ring_map ring;
	struct lock lock;	/* guards all below, and reading the ring */
	__u32 head;		/* entries taken out of the ring; *@ring.head follows */
	__u32 sorted;		/* in the entries before it no kept work's completion is left */
	struct slot *slots;	/* as many as the ring has entries */
	__u32 used;		/* of them that have ever been; the others have no content */
	__u32 free;		/* list of free slots */
	/* from the context's seed; wr_ids of kept works, as the kernel sees them, begin with it */
	__u64 tag;
	__u32 stale_first;	/* oldest slot that is SLOT_STALE */
	__u32 stale_last;	/* youngest */
	__u32 kept;		/* tickets that were not taken back, of stale slots, too */
	int closed;		/* only the holders of tickets know it any more */
	bool is_watched;	/* ibchan_cq_fd() was called */
};

struct messages;

struct ibchan_channel {
	struct object object;
	struct source source;
	struct ibchan_pd *pd;
	struct ibchan_cq *send_cq;
	struct ibchan_cq *recv_cq;
	struct ibchan_cq *own_cq;	/* one of these two, or NULL */
	struct messages *messages;	/* of the short way, or NULL */
	int (*closing)(struct messages *m);	/* tells the peer, before the channel ends */
	void (*closed)(struct messages *m);	/* frees them, behind the channel */
	void *priv;			/* the caller's */
	bool is_ending;	/* it has broken, and ibchan_next() is to tell; of its thread */
	struct ibchan_channel *next_accepting;	/* in a listener, under its lock */
	struct ibchan_params params;
	struct ibchan_endpoint endpoint;
};

/* A channel before its handshake: the same object. */
struct ibchan_prepared {
	struct ibchan_channel channel;
};

#define GUARD_PARENT	0x70617265U

/* -EPERM in a child of the process that opened the context. */
static inline int context_check(const struct ibchan_context *context)
{
	return *context->guard == GUARD_PARENT ? 0 : -EPERM;
}

/*
 * Private also in the static library, which keeps hidden names to itself: a
 * program may have its own of the same name.
 */
#pragma GCC visibility push(hidden)

/* context.c */
int context_ioctl(const struct ibchan_context *context, unsigned int command, void *arg);
int context_command(const struct ibchan_context *context, unsigned int command, void *arg);
int context_submit(const struct ibchan_context *context, struct ibchan_cmd_submit *cmd);
void fd_close(int fd);
int cancel_off(void);
void cancel_back(int state);
struct pollfd;
int fds_wait(struct pollfd *fds, unsigned int num, __s64 left_ns);
int fd_wait(int fd, __s64 left_ns);
int epoll_of(int first, int second, __u32 events, void *with);
void edges_forget(int set);
int context_word_fd(struct ibchan_context *context);
void object_hide(struct object *object);
bool object_show(struct object *object, __u32 but);
struct ibchan_channel *channel_find(struct ibchan_context *context, __u32 handle);
void object_happened(struct ibchan_context *context, __u32 handle, __u32 events);
__u32 object_happenings(struct object *object, __u32 of);
void object_add(struct object *object, struct ibchan_context *context,
		void (*release)(struct object *object));
void object_free(struct object *object);
int object_end(const struct object *object, bool *stays);
int object_destroy(struct object *object);
void object_release(struct object *object);
void channel_release(struct object *object);
int error_set(struct ibchan_error *error, int code, const struct ibchan_reason *reason);
int params_read(void *to, size_t known, const void *from, struct ibchan_reason *reason);

/* connect.c */
struct addrinfo;
int address_find(const char *host, const char *service, bool passive, struct addrinfo **list,
		 struct ibchan_reason *reason);
void address_to_kernel(const struct sockaddr *from, struct ibchan_address *to);
void address_from_kernel(const struct ibchan_address *from, struct sockaddr_storage *to);
int route_of_list(struct ibchan_context *context, const struct addrinfo *list, const char *source,
		  __s64 ns, const struct addrinfo **found, struct ibchan_route *route,
		  struct ibchan_error *error);
int connect_to_list(struct ibchan_prepared *prepared, const struct addrinfo *list,
		    const struct ibchan_connect_params *with, struct ibchan_channel **out,
		    struct ibchan_error *error);
int connect_data(const void *from, size_t length, void *data, __u32 *data_length,
		 struct ibchan_reason *reason);

/* device.c */
void device_limits(const struct ibchan_device *device, struct ibchan_device_attr *info);

/* ring.c; all but the first one and cq_orphan() with cq->lock held */
int ring_map(struct ibchan_cq *cq, size_t size);
__u32 slot_fresh(struct ibchan_cq *cq);
void cq_orphan(struct ibchan_cq *cq, const struct ibchan_channel *channel);
int ticket_fetch(const struct ticket *ticket, struct ibchan_cqe *completion);
int ticket_leave(const struct ticket *ticket, struct ibchan_cqe *completion);
__u32 ring_take_any(struct ibchan_cq *cq, struct ibchan_cqe *completions, __u32 n, __u32 got);
void ring_sort(struct ibchan_cq *cq);
void ring_make_room(struct ibchan_cq *cq);

/* post.c */
int post_kept(struct ibchan_channel *channel, struct ibchan_submit_wr *wr,
	      struct ibchan_cmd_submit *cmd, struct ticket *ticket);

/* text.c; @text: INET6_ADDRSTRLEN bytes */
void gid_text(const void *gid, char *text);
const char *errno_words(int code);
const char *name_of(const char * const *names, size_t n, __u64 number);
#define NAME_OF(names, number)	name_of(names, ARRAY_SIZE(names), number)

/* channel.c */
int ms_of_ns(__s64 ns, __u32 *ms);

/* cq.c */
int cq_bring_in(const struct ibchan_cq *cq);
void cq_close(struct ibchan_cq *cq);
void unlock_last(struct ibchan_cq *cq);
__u64 callers_wr_id(struct ibchan_context *context, __u64 wr_id);

/* lock.c */
struct deadline;
void lock_wait(struct lock *lock);
void lock_wake(struct lock *lock);
/* 0; -ETIMEDOUT; -EINTR: a signal came. For a lock that is held in a sleep. */
int lock_take_until(struct lock *lock, const struct deadline *deadline);

#pragma GCC visibility pop

static inline struct ibchan_reason out_of_range(__u32 parameter, __u64 value, __u64 lowest,
						__u64 highest)
{
	return (struct ibchan_reason) {
		.code = IBCHAN_REASON_PARAMETER, .element = parameter,
		.value = { value, lowest, highest },
	};
}

static inline bool lock_try(struct lock *lock)
{
	int state = LOCK_FREE;

	return __atomic_compare_exchange_n(&lock->state, &state, LOCK_HELD, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void lock_take(struct lock *lock)
{
	if (!lock_try(lock))
		lock_wait(lock);
	if (__tsan_acquire)
		__tsan_acquire(lock);
}

static inline void lock_give(struct lock *lock)
{
	if (__tsan_release)
		__tsan_release(lock);
	if (__atomic_exchange_n(&lock->state, LOCK_FREE, __ATOMIC_RELEASE) == LOCK_AWAITED)
		lock_wake(lock);
}

#endif /* _LIBIBCHAN_INTERNAL_H */
