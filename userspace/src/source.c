// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The sources of a context: ibchan_next() asks them in the order in which they came by
 * something to tell. One that has told goes to the end, so none keeps others waiting.
 *
 * A source that nobody has asked yet is in the list as well: the first asking puts its descriptor
 * into the set. So a program without ibchan_next() has no descriptors for it.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "source.h"

/*
 * The eventfd is readable while a source is listed that no thread is about to ask. Needs
 * happenings->lock.
 */
static void show(struct happenings *happenings)
{
	const bool raise = happenings->first && !happenings->is_asking;
	__u64 count = 1;

	if (happenings->event_fd < 0 || raise == happenings->is_raised || happenings->is_asking)
		return;
	/* read() and write() of the C library end a thread that was cancelled. */
	if (syscall(raise ? SYS_write : SYS_read, happenings->event_fd, &count, sizeof(count)) > 0)
		happenings->is_raised = raise;
}

static void unlist(struct happenings *happenings, struct source *source)
{
	*source->link = source->next;
	if (source->next)
		source->next->link = source->link;
	else
		happenings->end = source->link;
	happenings->num--;
	__atomic_store_n(&source->is_listed, false, __ATOMIC_RELAXED);
}

void source_add(struct ibchan_context *context, struct source *source)
{
	struct happenings *happenings = &context->happenings;

	/* The thread that has taken it out of the list, to ask it, sees the caller's writes. */
	if (__atomic_load_n(&source->is_listed, __ATOMIC_RELAXED))
		return;
	lock_take(&happenings->lock);
	if (!source->is_listed && !source->is_gone) {
		source->is_known = true;
		__atomic_store_n(&source->is_listed, true, __ATOMIC_RELAXED);
		source->next = NULL;
		source->link = happenings->end;
		*source->link = source;
		happenings->end = &source->next;
		happenings->num++;
		show(happenings);
	}
	lock_give(&happenings->lock);
}

struct source *source_take(struct happenings *happenings)
{
	struct source *source;

	lock_take(&happenings->lock);
	source = happenings->first;
	if (source)
		unlist(happenings, source);
	lock_give(&happenings->lock);
	return source;
}

unsigned int sources_asked(struct happenings *happenings, bool is_asking)
{
	unsigned int num;

	lock_take(&happenings->lock);
	happenings->is_asking = is_asking;
	num = happenings->num;
	show(happenings);
	lock_give(&happenings->lock);
	return num;
}

int source_watch(struct ibchan_context *context, struct source *source, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = source };

	if (source->is_watched || source->is_deaf)
		return 0;
	if (epoll_ctl(context->happenings.epoll_fd, EPOLL_CTL_ADD, fd, &event))
		return -errno;
	source->fd = fd;
	source->is_watched = true;
	return 0;
}

static void unwatch(struct ibchan_context *context, struct source *source)
{
	if (source->is_watched)
		epoll_ctl(context->happenings.epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
	source->is_watched = false;
}

void source_deafen(struct ibchan_context *context, struct source *source)
{
	unwatch(context, source);
	source->is_deaf = true;
}

/*
 * A source that was listed may be asked at this moment by another thread, which the caller waits
 * for. The set is shared with a child, where the files are the parent's.
 */
void source_remove(struct ibchan_context *context, struct source *source)
{
	struct happenings *happenings = &context->happenings;

	if (context_check(context))
		return;
	lock_take(&happenings->lock);
	source->is_gone = true;
	lock_give(&happenings->lock);
	/* Nobody lists it from here on, so this stays as it is. */
	if (!source->is_known)
		return;
	lock_take(&happenings->asking);
	lock_take(&happenings->lock);
	if (source->is_listed)
		unlist(happenings, source);
	show(happenings);
	lock_give(&happenings->lock);
	unwatch(context, source);
	lock_give(&happenings->asking);
}

void source_return(struct ibchan_context *context, struct source *source)
{
	lock_take(&context->happenings.lock);
	source->is_gone = false;
	lock_give(&context->happenings.lock);
	if (source->is_known)
		source_add(context, source);
}

static int set_open(struct ibchan_context *context)
{
	struct happenings *happenings = &context->happenings;
	int word = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int set = word < 0 ? -errno : epoll_of(word, context->fd, EPOLLIN, context);

	if (set < 0) {
		fd_close(word);
		return set;
	}
	lock_take(&happenings->lock);
	happenings->event_fd = word;
	__atomic_store_n(&happenings->epoll_fd, set, __ATOMIC_RELEASE);
	show(happenings);
	lock_give(&happenings->lock);
	return 0;
}

int happenings_open(struct ibchan_context *context)
{
	int err = 0;

	if (__atomic_load_n(&context->happenings.epoll_fd, __ATOMIC_ACQUIRE) >= 0)
		return 0;
	lock_take(&context->happenings.asking);
	if (context->happenings.epoll_fd < 0)
		err = set_open(context);
	lock_give(&context->happenings.asking);
	return err;
}
