// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The context: one open /dev/ibchan.
 *
 * A child must not touch an inherited ring, because the mapping does not exist
 * there. The guard page tells: the kernel hands a child a zeroed one.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "source.h"

#define GUARD_SIZE	1	/* rounded up to a page by the kernel */

/*
 * Each command begins with a size and flags. The kernel sets a flag in each answer: anything that
 * answers in its place, say a filter of system calls, has done nothing, whatever it says.
 */
int context_ioctl(const struct ibchan_context *context, unsigned int command, void *arg)
{
	__u32 *flags = (__u32 *)arg + 1;
	int err;

	*flags &= ~IBCHAN_ANSWERED;
	err = ioctl(context->fd, command, arg) < 0 ? -errno : 0;
	return err || *flags & IBCHAN_ANSWERED ? err : -EBADMSG;
}

/* For what only the process may do that opened the context: all but queries and destroying. */
int context_command(const struct ibchan_context *context, unsigned int command, void *arg)
{
	return context_check(context) ?: context_ioctl(context, command, arg);
}

int context_submit(const struct ibchan_context *context, struct ibchan_cmd_submit *cmd)
{
	int err;

	cmd->size = sizeof(*cmd);
	cmd->entry_len = sizeof(struct ibchan_submit_wr);
	err = context_ioctl(context, IBCHAN_CMD_SUBMIT, cmd);
	if (unlikely(!(cmd->flags & IBCHAN_ANSWERED))) {
		cmd->entry_num = 0;
		cmd->reason = (struct ibchan_reason) { 0 };
	}
	return err;
}

/*
 * No call of the library ends a thread that was cancelled: open(), close() and
 * the like would, in the middle of something. Less than 0: there is none.
 */
void fd_close(int fd)
{
	if (fd >= 0)
		syscall(SYS_close, fd);
}

/*
 * The library calls functions at which the C library ends a cancelled thread between these two
 * only. Returns what cancel_back() takes.
 */
int cancel_off(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

void cancel_back(int state)
{
	pthread_setcancelstate(state, NULL);
}

/* How many of @fds are ready; 0: none within @left_ns, where less than 0 has no end; -errno. */
int fds_wait(struct pollfd *fds, unsigned int num, __s64 left_ns)
{
	struct timespec limit = {
		.tv_sec = left_ns / NSEC_PER_SEC, .tv_nsec = left_ns % NSEC_PER_SEC,
	};
	int state = cancel_off();
	int ret = ppoll(fds, num, left_ns < 0 ? NULL : &limit, NULL);

	ret = ret < 0 ? -errno : ret;
	cancel_back(state);
	return ret;
}

/* 1: @fd is readable; 0 and -errno as above. */
int fd_wait(int fd, __s64 left_ns)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };

	return fds_wait(&pollfd, 1, left_ns);
}

/*
 * A descriptor that is readable while one of the two has @events; or a negative errno. With those
 * of @second comes the pointer @with, with those of @first NULL.
 */
int epoll_of(int first, int second, __u32 events, void *with)
{
	struct epoll_event of_first = { .events = events };
	struct epoll_event of_second = { .events = events, .data.ptr = with };
	int fd = epoll_create1(EPOLL_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	if (!epoll_ctl(fd, EPOLL_CTL_ADD, first, &of_first) &&
	    !epoll_ctl(fd, EPOLL_CTL_ADD, second, &of_second))
		return fd;
	err = -errno;
	fd_close(fd);
	return err;
}

/* Of an epoll set: an edge is told once. */
void edges_forget(int set)
{
	struct epoll_event events[4];
	int state = cancel_off();

	epoll_pwait(set, events, ARRAY_SIZE(events), 0, NULL);
	cancel_back(state);
}

/* For objects that are nothing but memory. */
void object_release(struct object *object)
{
	free(object);
}

/* The same; tells channels from other objects. */
void channel_release(struct object *object)
{
	free(object);
}

static struct object **object_place(struct ibchan_context *context, __u32 handle)
{
	return &context->objects[handle % OBJECT_PLACES];
}

/* Makes the object one that closing the context frees. */
void object_add(struct object *object, struct ibchan_context *context,
		void (*release)(struct object *object))
{
	object->context = context;
	object->release = release;
	pthread_mutex_lock(&context->lock);
	object->link = object_place(context, object->handle);
	object->next = *object->link;
	if (object->next)
		object->next->link = &object->next;
	/* A child that is forked here goes through the list. */
	__atomic_store_n(object->link, object, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&context->lock);
}

/*
 * The calls that wait for something to happen to a hidden object poll this, edge-triggered: nobody
 * reads it. A negative errno when there can be none.
 */
int context_word_fd(struct ibchan_context *context)
{
	int fd;

	pthread_mutex_lock(&context->lock);
	if (context->word_fd < 0)
		context->word_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	fd = context->word_fd < 0 ? -errno : context->word_fd;
	pthread_mutex_unlock(&context->lock);
	return fd;
}

/* Needs context->lock. */
static struct object *find(struct ibchan_context *context, __u32 handle)
{
	struct object *object = *object_place(context, handle);

	while (object && object->handle != handle)
		object = object->next;
	return object;
}

/* NULL: it was closed, or is none of this context. */
struct ibchan_channel *channel_find(struct ibchan_context *context, __u32 handle)
{
	struct object *object;

	pthread_mutex_lock(&context->lock);
	object = find(context, handle);
	if (object && object->release != channel_release)
		object = NULL;
	pthread_mutex_unlock(&context->lock);
	return (struct ibchan_channel *)object;
}

/*
 * Puts down what has happened to a channel: a handle stands for one object only, of whatever kind.
 * Of a hidden one nothing is told, and who waits for it has the word. One that is not there has
 * been closed meanwhile.
 */
void object_happened(struct ibchan_context *context, __u32 handle, __u32 events)
{
	const __u64 word = 1;
	struct object *object;

	pthread_mutex_lock(&context->lock);
	object = find(context, handle);
	if (object)
		object->happened |= events & ~object->known;
	/* Full, after 2^64 words, the eventfd would make no edge. */
	if (object && object->hidden && context->word_fd >= 0)
		syscall(SYS_write, context->word_fd, &word, sizeof(word));
	else if (object && !object->hidden)
		source_add(context, &((struct ibchan_channel *)object)->source);
	pthread_mutex_unlock(&context->lock);
}

/* Takes those of the events that have happened; they are told now. */
__u32 object_happenings(struct object *object, __u32 of)
{
	__u32 happened;

	pthread_mutex_lock(&object->context->lock);
	happened = object->happened & of;
	object->happened &= ~of;
	pthread_mutex_unlock(&object->context->lock);
	return happened;
}

/* No event of the object is told: the caller of a blocking call does not know it yet. */
void object_hide(struct object *object)
{
	pthread_mutex_lock(&object->context->lock);
	object->hidden = true;
	pthread_mutex_unlock(&object->context->lock);
}

/*
 * All that happens to the object is told from now on. False: one of @but has happened already, and
 * nothing is told.
 */
bool object_show(struct object *object, __u32 but)
{
	bool shown;

	pthread_mutex_lock(&object->context->lock);
	shown = !(object->happened & but);
	object->hidden = !shown;
	object->known = IBCHAN_EVENT_CONNECTED;
	object->happened &= ~object->known;
	pthread_mutex_unlock(&object->context->lock);
	return shown;
}

/*
 * In a child another thread of the parent may have been changing the list when the
 * memory was copied. There the objects stay until the context is closed.
 */
void object_free(struct object *object)
{
	struct ibchan_context *context = object->context;

	if (context_check(context))
		return;
	pthread_mutex_lock(&context->lock);
	*object->link = object->next;
	if (object->next)
		object->next->link = object->link;
	pthread_mutex_unlock(&context->lock);
	object->release(object);
}

/*
 * Destroys what the kernel holds. In a child only the copy in its memory goes
 * away: the kernel would destroy the parent's object. @stays: the object is as it was.
 */
int object_end(const struct object *object, bool *stays)
{
	struct ibchan_cmd_destroy cmd = { .size = sizeof(cmd), .handle = object->handle };
	int err;

	*stays = false;
	if (context_check(object->context))
		return 0;
	err = context_ioctl(object->context, IBCHAN_CMD_DESTROY, &cmd);
	*stays = err == -EBUSY || !(cmd.flags & IBCHAN_ANSWERED);
	return err;
}

int object_destroy(struct object *object)
{
	bool stays;
	int err = object_end(object, &stays);

	if (!stays)
		object_free(object);
	return err;
}

/* Fills the caller's details, if wanted, and passes the code through. */
int error_set(struct ibchan_error *error, int code, const struct ibchan_reason *reason)
{
	if (!error)
		return code;
	*error = (struct ibchan_error) {
		.code = code, .origin = code ? IBCHAN_ERROR_CALL : IBCHAN_ERROR_NONE,
	};
	if (code && reason)
		error->reason = *reason;
	return code;
}

/*
 * Reads a struct of the caller's that begins with its size; NULL: all of it is 0, the default.
 * Members that a program built for an earlier library does not know are 0; those that one built for
 * a later one leaves at 0 are as if they were not there. A size of none cuts no pointer in half.
 */
int params_read(void *to, size_t known, const void *from, struct ibchan_reason *reason)
{
	size_t size, at;

	memset(to, 0, known);
	if (!from)
		return 0;
	size = *(const __u32 *)from;
	if (size < sizeof(__u64)) {
		*reason = out_of_range(IBCHAN_PARAMETER_SIZE, size, 0, 0);
		return -EINVAL;
	}
	for (at = known; at < size; at++)
		if (((const char *)from)[at])
			return -E2BIG;
	memcpy(to, from, size < known ? size & ~(sizeof(__u64) - 1) : known);
	return 0;
}

static int guard_map(struct ibchan_context *context)
{
	__u32 *page = mmap(NULL, GUARD_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	int err;

	if (page == MAP_FAILED)
		return -errno;
	if (madvise(page, GUARD_SIZE, MADV_WIPEONFORK)) {
		err = -errno;
		munmap(page, GUARD_SIZE);
		return err;
	}
	*page = GUARD_PARENT;
	context->guard = page;
	return 0;
}

/* Returns the descriptor, or a negative errno and the @reason. */
static int node_open(struct ibchan_reason *reason)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, "/dev/ibchan", O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	fd = -errno;
	*reason = (struct ibchan_reason) {
		.code = IBCHAN_REASON_NODE,
		.value = {
			(__u64)-fd, !syscall(SYS_faccessat, AT_FDCWD, "/sys/module/ibchan", F_OK),
		},
	};
	return fd;
}

static int context_setup(struct ibchan_context *context, struct ibchan_reason *reason)
{
	struct ibchan_cmd_query cmd = { .size = sizeof(cmd) };
	int err;

	context->fd = node_open(reason);
	if (context->fd < 0)
		return context->fd;
	err = context_ioctl(context, IBCHAN_CMD_QUERY, &cmd);
	/* An older kernel says how old it is, and knows nothing of IBCHAN_ANSWERED. */
	if (err == -ENOTTY || (cmd.out.abi_version && cmd.out.abi_version < IBCHAN_ABI_VERSION))
		err = -EPROTONOSUPPORT;
	if (!err)
		err = guard_map(context);
	if (err)
		fd_close(context->fd);
	return err;
}

int ibchan_context_open(struct ibchan_context **out, struct ibchan_error *error)
{
	struct ibchan_context *context = calloc(1, sizeof(*context));
	struct ibchan_reason reason = { 0 };
	int err = context ? context_setup(context, &reason) : -ENOMEM;

	if (err) {
		free(context);
		return error_set(error, err, &reason);
	}
	pthread_mutex_init(&context->lock, NULL);
	context->word_fd = -1;
	context->happenings.epoll_fd = -1;
	context->happenings.event_fd = -1;
	context->happenings.end = &context->happenings.first;
	/* getrandom() of the C library ends a thread that was cancelled. */
	syscall(SYS_getrandom, &context->seed, sizeof(context->seed), GRND_NONBLOCK);
	*out = context;
	return error_set(error, 0, NULL);
}

/* The kernel ends what the file held once its last reference is gone. */
int ibchan_context_close(struct ibchan_context *context)
{
	struct object *object, *next;
	__u32 i;

	if (!context)
		return 0;
	for (i = 0; i < OBJECT_PLACES; i++) {
		for (object = context->objects[i]; object; object = next) {
			next = object->next;
			object->release(object);
		}
	}
	fd_close(context->fd);
	fd_close(context->word_fd);
	fd_close(context->happenings.epoll_fd);
	fd_close(context->happenings.event_fd);
	if (!context_check(context))
		pthread_mutex_destroy(&context->lock);
	munmap(context->guard, GUARD_SIZE);
	free(context);
	return 0;
}

int ibchan_context_fd(const struct ibchan_context *context)
{
	return context->fd;
}

int ibchan_context_query(struct ibchan_context *context, struct ibchan_context_attr *attr,
			 struct ibchan_error *error)
{
	struct ibchan_cmd_query cmd = { .size = sizeof(cmd) };
	int err = context_ioctl(context, IBCHAN_CMD_QUERY, &cmd);

	if (!err)
		*attr = cmd.out;
	return error_set(error, err, NULL);
}
