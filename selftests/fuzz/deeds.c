// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scene.h"

/* Reads of a descriptor may block, so only when something is there; a page is enough. */
#define SOME_BYTES	4096

static int answer_of(long rc)
{
	return rc < 0 ? -errno : 0;
}

/* Whoever reads the tail stores the head before another does, or it would go backwards. */
void deed_reap(struct scene *scene)
{
	const struct ring *ring = scene->objects.side.ring;

	pthread_mutex_lock(&scene->reader);
	__atomic_store_n(ring->head, __atomic_load_n(ring->tail, __ATOMIC_ACQUIRE),
			 __ATOMIC_RELEASE);
	pthread_mutex_unlock(&scene->reader);
}

void deed_store(struct scene *scene, __u64 offset, __u32 value)
{
	const struct ring *ring = scene->objects.side.ring;
	__u32 *words = (__u32 *)ring->header;
	__u32 *word = &words[offset % (ring->size / sizeof(*words))];

	if (scene->wild || (word != ring->head && word != ring->tail))
		__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

static int do_reap(struct scene *scene, const struct deed *deed)
{
	(void)deed;
	deed_reap(scene);
	return 0;
}

static int do_store(struct scene *scene, const struct deed *deed)
{
	deed_store(scene, deed->offset / sizeof(__u32), deed->value);
	return 0;
}

static int do_map(struct scene *scene, const struct deed *deed)
{
	size_t length = deed->value % 4 ? scene->objects.side.ring->size : deed->value % 65536;
	int flags = deed->flags & 0x8 ? MAP_PRIVATE : MAP_SHARED;
	char *map = mmap(NULL, length, deed->flags & (PROT_READ | PROT_WRITE | PROT_EXEC), flags,
			 scene_fd(scene, deed->flags >> 4), deed->offset & ~4095ULL);
	/* A part of it may go on its own; where it was, another thread may have something. */
	size_t part = deed->flags & 0x80 ? 4096 : 0;

	if (map == MAP_FAILED)
		return -errno;
	if (part)
		munmap(map, part);
	if (length > part)
		munmap(map + part, length - part);
	return 0;
}

static int do_poll(struct scene *scene, const struct deed *deed)
{
	struct pollfd pollfd = {
		.fd = scene_fd(scene, deed->offset),
		.events = deed->flags,
	};

	return answer_of(poll(&pollfd, 1, 0));
}

static bool is_readable(int fd)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };

	return poll(&pollfd, 1, 0) == 1 && pollfd.revents & POLLIN;
}

static int do_read(struct scene *scene, const struct deed *deed)
{
	char bytes[SOME_BYTES];
	int fd = scene_fd(scene, deed->offset);

	return is_readable(fd) ? answer_of(read(fd, bytes, sizeof(bytes))) : 0;
}

static int do_write(struct scene *scene, const struct deed *deed)
{
	static const char bytes[SOME_BYTES];
	int fd = scene_fd(scene, deed->offset);

	return fd == scene->memfd ? 0 : answer_of(write(fd, bytes, deed->value % SOME_BYTES));
}

static int do_close(struct scene *scene, const struct deed *deed)
{
	int fd = scene_take_fd(scene, deed->value);

	return fd < 0 ? 0 : answer_of(close(fd));
}

static int do_renew(struct scene *scene, const struct deed *deed)
{
	arena_renew(scene, deed->offset, deed->value * SOME_BYTES);
	return 0;
}

/* It makes one call: what kills it has damaged its memory, which is a copy of the fuzzer's. */
static int bury(struct scene *scene, pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	if (WIFSIGNALED(status))
		__atomic_store_n(&scene->killed_by, WTERMSIG(status), __ATOMIC_RELAXED);
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
}

/* With the same file, but not from the memory map that opened it. */
static int do_child(struct scene *scene, const struct deed *deed)
{
	unsigned int which = deed->value % NUM_EXAMPLES;
	pid_t child = fork();

	if (!child)
		_exit(-cmd_raw(scene->objects.side.fd, examples[which].number,
			       scene->templates[which]));
	return child < 0 ? -errno : bury(scene, child);
}

#define DEED_FUNCTION(NAME, name)					\
	[DEED_##NAME] = do_##name,

static int (*const deeds[NUM_DEEDS])(struct scene *scene, const struct deed *deed) = {
	DEEDS(DEED_FUNCTION)
};

int deed_do(struct scene *scene, const struct deed *deed)
{
	return deeds[deed->what % NUM_DEEDS](scene, deed);
}
