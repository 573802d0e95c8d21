// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "scene.h"
#include "work.h"

/*
 * Far from all other mappings, so that a wrong address a little before or behind it is one
 * where nothing is: whatever the kernel writes there for a program it must not hit the fuzzer.
 */
#define ARENA_PLACE	((void *)(uintptr_t)(sizeof(void *) == 8 ? 0x100000000000ULL : 0x40000000))
/*
 * The same for a ring: what goes on behind a scene's memory would damage it, and what goes on
 * behind a ring would damage a program. More than one byte is different, too.
 */
#define RING_PLACE	((char *)(uintptr_t)(sizeof(void *) == 8 ? 0x107060000000ULL : 0x43300000))
#define PAGE		4096ULL
#define READ_ONLY_AT	(8 * PAGE)
#define HOLE_AT		(9 * PAGE)

/* One page is for reading only, and the next one is not mapped. */
static int spoil_arena(struct scene *scene)
{
	if (ftruncate(scene->memfd, PAGE))
		return -errno;
	scene->mirror = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, scene->memfd, 0);
	if (scene->mirror == MAP_FAILED ||
	    mmap(scene->arena + READ_ONLY_AT, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED,
		 scene->memfd, 0) == MAP_FAILED ||
	    munmap(scene->arena + HOLE_AT, PAGE))
		return -errno;
	return 0;
}

int arena_create(struct scene *scene)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;

	pthread_mutex_init(&scene->reader, NULL);
	scene->arena = mmap(ARENA_PLACE, ARENA_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (scene->arena == MAP_FAILED)
		return -errno;
	memset(scene->arena, 0x5a, ARENA_BYTES);
	scene->memfd = memfd_create("fuzz", MFD_CLOEXEC);
	return scene->memfd < 0 ? -errno : spoil_arena(scene);
}

void arena_mirror(struct scene *scene, __u64 arg, const void *bytes, size_t size)
{
	if (arg == address(scene->arena) + READ_ONLY_AT)
		memcpy(scene->mirror, bytes, size);
}

void arena_renew(struct scene *scene, __u64 offset, __u64 length)
{
	__u64 page = offset / PAGE % (READ_ONLY_AT / PAGE);
	__u64 pages = 1 + length / PAGE % (READ_ONLY_AT / PAGE - page);

	mmap(scene->arena + page * PAGE, pages * PAGE, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* The upper bits of @value are added. */
__u64 scene_pointer(const struct scene *scene, __u64 value)
{
	const __u64 places[16] = {
		0,
		address(scene->arena),
		address(scene->arena) + 4000,
		address(scene->arena) + READ_ONLY_AT,
		address(scene->arena) + HOLE_AT,
		address(scene->arena) + HOLE_AT - 8,
		0xffff888000000000ULL,
		0x8000000000000000ULL,
		/* Memory of the ring could be registered, and then written by the device. */
		address(scene->wild ? (const void *)scene->objects.side.ring->header :
			(const void *)scene->arena),
		address(scene->looped.memory),
		address(scene->objects.side.memory),
		address(scene->arena) + ARENA_BYTES - PAGE,
		~0ULL - 7,
		address(scene->arena) + 1,
		address(scene->looped.memory) + 32768,
		address(scene->arena) + 2 * PAGE,
	};

	return places[value & 15] + (value >> 4);
}

__u32 scene_handle(const struct scene *scene, __u64 value)
{
	return scene->handles[value % SCENE_HANDLES];
}

__u32 scene_key(const struct scene *scene, __u64 value)
{
	const __u32 keys[] = {
		scene->looped.rkey, scene->objects.side.rkey, scene->objects.broken.rkey, 0,
	};

	return keys[value & 3];
}

int scene_fd(const struct scene *scene, __u64 value)
{
	const int fds[] = {
		scene->objects.side.fd, scene->objects.side.ring->fd, scene->objects.listener_fd,
		scene->objects.dmabuf, scene->memfd, -1, 9999, AT_FDCWD,
	};

	if (value % 16 >= 8)
		return scene->opened[(scene->num_opened - value) % SCENE_OPENED];
	return fds[value % 8];
}

void scene_made(struct scene *scene, __u32 handle)
{
	unsigned int place = __atomic_fetch_add(&scene->num_recent, 1, __ATOMIC_RELAXED);

	scene->recent[place % SCENE_RECENT] = handle;
}

void scene_opened(struct scene *scene, int fd)
{
	unsigned int place = __atomic_fetch_add(&scene->num_opened, 1, __ATOMIC_RELAXED);
	int old = __atomic_exchange_n(&scene->opened[place % SCENE_OPENED], fd, __ATOMIC_RELAXED);

	if (old >= 0)
		close(old);
}

int scene_take_fd(struct scene *scene, __u64 value)
{
	return __atomic_exchange_n(&scene->opened[value % SCENE_OPENED], -1, __ATOMIC_RELAXED);
}

static void note_handles(struct scene *scene)
{
	const struct example_objects *objects = &scene->objects;
	const __u32 handles[SCENE_HANDLES] = {
		objects->side.device, objects->side.pd, objects->side.mr,
		objects->side.ring->cq, objects->side.channel, objects->listener,
		objects->broken.channel, objects->broken.mr,
		scene->looped.channel, scene->looped.mr,
		objects->request, objects->asking, objects->taken, objects->eventful,
		objects->doomed, 0, IBCHAN_MR_PLAIN, 1,
		scene->foreign_pd, scene->foreign_mr,
	};

	memcpy(scene->handles, handles, sizeof(handles));
}

/* Once for all steps: what an example needs beside its struct is made here. */
static int prepare_templates(struct scene *scene)
{
	unsigned int i;
	int rc;

	for (i = 0; i < NUM_EXAMPLES; i++) {
		rc = example_prepare(&examples[i], &scene->objects, scene->templates[i]);
		if (rc) {
			fprintf(stderr, "# the example of %s: %d\n", examples[i].name, rc);
			return rc;
		}
	}
	return 0;
}

/* In the same file, but not to be used with its channels. */
static int make_foreign(struct scene *scene)
{
	const struct side *side = &scene->objects.side;
	struct ibchan_cmd_mr_reg cmd = {
		.addr = address(side->memory),
		.length = side->length,
		.access = IBCHAN_ACCESS_SHARED,
	};
	int rc = pd_alloc(side->fd, side->device, &scene->foreign_pd);

	cmd.pd = scene->foreign_pd;
	if (!rc)
		rc = cmd_mr_reg(side->fd, &cmd);
	scene->foreign_mr = cmd.out_mr;
	return rc;
}

static int make_objects(struct scene *scene)
{
	struct side_options options = side_defaults();
	int rc = example_objects_open(&scene->objects);

	if (!rc)
		rc = side_share(&scene->looped, &scene->objects.side, &options);
	if (!rc)
		rc = side_handshake(&scene->looped, &scene->looped.endpoint);
	if (!rc)
		rc = make_foreign(scene);
	if (rc)
		fprintf(stderr, "# the objects of a scene: %d\n", rc);
	return rc;
}

static int move_ring(struct ring *ring)
{
	char *old = (char *)ring->header;
	char *map = mremap(old, ring->size, ring->size, MREMAP_MAYMOVE | MREMAP_FIXED, RING_PLACE);

	if (map == MAP_FAILED)
		return -errno;
	ring->header = (const void *)map;
	ring->head = (__u32 *)(map + ((char *)ring->head - old));
	ring->tail = (__u32 *)(map + ((char *)ring->tail - old));
	return 0;
}

bool scene_is_below(const struct scene *scene, const void *bound)
{
	return address(scene->objects.side.memory) < address(bound) &&
	       address(scene->looped.memory) < address(bound);
}

int scene_open(struct scene *scene, bool wild)
{
	unsigned int i;
	int rc;

	/* The lowest number that is free. */
	scene->first_fd = dup(scene->memfd);
	close(scene->first_fd);
	scene->wild = wild;
	scene->num_recent = 0;
	scene->num_opened = 0;
	memset(scene->recent, 0, sizeof(scene->recent));
	for (i = 0; i < SCENE_OPENED; i++)
		scene->opened[i] = -1;
	memset(&scene->looped, 0, sizeof(scene->looped));
	rc = make_objects(scene);
	if (!rc)
		rc = move_ring(scene->objects.side.ring);
	if (!rc)
		rc = prepare_templates(scene);
	note_handles(scene);
	return rc;
}

/* Also what the kernel has made and the fuzzer does not know of, because it was told elsewhere. */
void scene_close(struct scene *scene)
{
	side_close(&scene->looped);
	example_objects_close(&scene->objects);
	close_range(scene->first_fd, ~0U, 0);
}
