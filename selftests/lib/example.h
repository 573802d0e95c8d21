/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One valid example of every command, generated from the contract's own list: a command
 * without one does not compile. What holds for all commands is proved on these.
 */
#ifndef TEST_EXAMPLE_H
#define TEST_EXAMPLE_H

#include "side.h"

#define EXAMPLE_MAX_HANDLES	4
#define EXAMPLE_MAX_RESERVED	2
/* Of handles: device, pd, mr, cq, channel. */
#define EXAMPLE_KINDS		6
/* What not each device has, and some examples need. */
#define EXAMPLE_DMABUF		1	/* IBCHAN_DEVICE_DMABUF */
#define EXAMPLE_IPV4		2	/* an IPv4 address, to connect by */
/* Enough for every struct and a tail behind it. */
#define EXAMPLE_ROOM		1024

/* The objects that the examples speak of. */
struct example_objects {
	struct side side;	/* its channel has no peer yet */
	struct side broken;	/* another channel of the same file */
	__u32 doomed;		/* what the next example of destroy names */
	int dmabuf;		/* descriptor of a dma-buf */
	__u32 listener;		/* in the same file */
	int listener_fd;
	struct ibchan_address address;	/* of the listener */
	__u32 asking;		/* a channel that asks the listener; 0: none */
	__u32 taken;		/* the channel whose request was taken; 0: none */
	__u32 request;		/* what was taken from the listener; 0: nothing */
	__u32 eventful;		/* a channel that was broken; 0: none */
	unsigned int lacks;	/* of what examples need: what the device does not have */
};

struct example {
	const char *name;
	unsigned long number;
	size_t size;
	/* Fills in everything but @size; may make an object for the command to use up. */
	int (*fill)(struct example_objects *objects, void *arg);
	/* Undoes what @arg did, if @rc says that it succeeded, and what fill did. */
	void (*undo)(struct example_objects *objects, void *arg, int rc);
	/* The flags that it knows. */
	__u32 flags;
	/* Offsets of u32 handles, and of members that must be 0; they end with a 0. */
	size_t handles[EXAMPLE_MAX_HANDLES];
	size_t reserved[EXAMPLE_MAX_RESERVED];
	/* Works from a process that is not the one that opened the file. */
	int from_anyone;
	/* Writes something back on success. */
	int answers;
	/* A handle of any kind will do. */
	int any_kind;
	/* EXAMPLE_DMABUF, EXAMPLE_IPV4; else 0. */
	unsigned int needs;
	/* Handle 0 stands for none. */
	int may_be_none;
	/* What it uses up is made again in the objects: for one thread only. */
	int uses_up;
};

#define EXAMPLE_INDEX(nr, NAME, name) EXAMPLE_##NAME,
enum example_index {
	IBCHAN_COMMANDS(EXAMPLE_INDEX)
	NUM_EXAMPLES
};

#undef EXAMPLE_INDEX

extern const struct example examples[NUM_EXAMPLES];

/* The first one, from @i on, whose needs the objects' device meets; or NUM_EXAMPLES. */
unsigned int example_from(const struct example_objects *objects, unsigned int i);

#define for_each_example(i, objects)						\
	for ((i) = example_from(objects, 0); (i) < NUM_EXAMPLES;			\
	     (i) = example_from(objects, (i) + 1))

int example_objects_open(struct example_objects *objects);
void example_objects_close(struct example_objects *objects);
/* Objects that the file holds, or -errno. */
int example_held(const struct example_objects *objects);
/* The handle of the nth kind; all different; 0 where the device lacks what it needs. */
__u32 example_handle(const struct example_objects *objects, unsigned int kind);

/* Zeroes @arg, which has EXAMPLE_ROOM bytes, and makes it a valid command. */
int example_prepare(const struct example *example, struct example_objects *objects, void *arg);
/* example_prepare(), the command, undo; its result. */
int example_run(const struct example *example, struct example_objects *objects);

#endif /* TEST_EXAMPLE_H */
