/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What programs act on: one file of /dev/ibchan with objects of every kind, and memory of
 * every kind. Threads share it. It is used up after a while, and then there is another one.
 */
#ifndef FUZZ_SCENE_H
#define FUZZ_SCENE_H

#include <pthread.h>

#include "program.h"

#define SCENE_HANDLES	20
#define SCENE_RECENT	16	/* a power of two */
#define SCENE_OPENED	64

/* Memory for the kernel to read, write, pin and fail at; see scene_pointer(). */
#define ARENA_BYTES	(16 * 4096)

struct scene {
	struct example_objects objects;
	struct side looped;	/* a channel that is its own peer */
	__u32 foreign_pd;	/* a second one, and a region in it */
	__u32 foreign_mr;
	__u8 templates[NUM_EXAMPLES][EXAMPLE_ROOM];
	__u32 handles[SCENE_HANDLES];
	__u32 recent[SCENE_RECENT];
	unsigned int num_recent;
	int opened[SCENE_OPENED];	/* descriptors from the kernel; -1: none */
	unsigned int num_opened;
	__u8 *arena;
	__u8 *mirror;		/* of the page that the arena has for reading only */
	int memfd;
	int first_fd;	/* from this number on descriptors are the scene's */
	int killed_by;		/* the signal that ended a child; 0: none has */
	pthread_mutex_t reader;	/* who moves the ring's head */
	/* The words of the ring that the kernel believes may be damaged. */
	bool wild;
};

/* For all scenes of this process. */
int arena_create(struct scene *scene);
/* 0 or -errno, and a line that says what could not be made. No other thread runs. */
int scene_open(struct scene *scene, bool wild);
void scene_close(struct scene *scene);
/* All that programs know the addresses of, but for what lies far from everything. */
bool scene_is_below(const struct scene *scene, const void *bound);

/* If @arg is where nothing can be written, @bytes get there all the same. */
void arena_mirror(struct scene *scene, __u64 arg, const void *bytes, size_t size);

/* What a value of the kind stands for. */
__u64 scene_pointer(const struct scene *scene, __u64 value);
__u32 scene_handle(const struct scene *scene, __u64 value);
__u32 scene_key(const struct scene *scene, __u64 value);
int scene_fd(const struct scene *scene, __u64 value);

void scene_made(struct scene *scene, __u32 handle);
void scene_opened(struct scene *scene, int fd);
/* One of those descriptors, which is the caller's to close then, or -1. */
int scene_take_fd(struct scene *scene, __u64 value);
/* Other pages in a part of the arena; what the kernel has pinned stays its own. */
void arena_renew(struct scene *scene, __u64 offset, __u64 length);

#endif /* FUZZ_SCENE_H */
