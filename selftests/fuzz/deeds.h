/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a process can do to a file of /dev/ibchan beside its commands.
 */
#ifndef FUZZ_DEEDS_H
#define FUZZ_DEEDS_H

#include <linux/types.h>

/* DEED(NAME, name) */
#define DEEDS(X)							\
	X(REAP, reap)		/* the reader's head goes up to the tail */	\
	X(STORE, store)		/* a word into the mapped ring */	\
	X(MAP, map)		/* map a descriptor: flags, length, offset */ \
	X(POLL, poll)							\
	X(READ, read)							\
	X(WRITE, write)							\
	X(CLOSE, close)		/* a descriptor that the kernel has made */ \
	X(RENEW, renew)		/* other pages where registered ones are mapped */ \
	X(CHILD, child)		/* a child process asks for something */

#define DEED_INDEX(NAME, name) DEED_##NAME,
enum deed_index {
	DEEDS(DEED_INDEX)
	NUM_DEEDS
};

#undef DEED_INDEX

struct deed {
	__u32 size;	/* as a command has it; unused */
	__u32 what;	/* enum deed_index, modulo their number */
	__u64 offset;
	__u64 value;
	__u64 flags;
};

struct scene;

/* Its result, as the kernel gives it. */
int deed_do(struct scene *scene, const struct deed *deed);
/* The reader's part of the ring: takes all there is. */
void deed_reap(struct scene *scene);
/* A word of the ring, but the two counters only in a wild scene. */
void deed_store(struct scene *scene, __u64 offset, __u32 value);

#endif /* FUZZ_DEEDS_H */
