// SPDX-License-Identifier: GPL-2.0-only
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/kcov.h>

#include "cover.h"

#define KCOV		"/sys/kernel/debug/kcov"
#define ENTRIES		65536
#define NUM_BITS	(64U * COVER_WORDS)

struct kcov {
	int fd;
	unsigned long *places;
};

struct kcov *kcov_open(void)
{
	struct kcov *kcov = calloc(1, sizeof(*kcov));

	if (!kcov)
		return NULL;
	kcov->fd = open(KCOV, O_RDWR | O_CLOEXEC);
	if (kcov->fd < 0 || ioctl(kcov->fd, KCOV_INIT_TRACE, ENTRIES))
		goto fail;
	kcov->places = mmap(NULL, ENTRIES * sizeof(unsigned long), PROT_READ | PROT_WRITE,
			    MAP_SHARED, kcov->fd, 0);
	if (kcov->places != MAP_FAILED && !ioctl(kcov->fd, KCOV_ENABLE, KCOV_TRACE_PC))
		return kcov;
fail:
	close(kcov->fd);
	free(kcov);
	return NULL;
}

void kcov_close(struct kcov *kcov)
{
	if (!kcov)
		return;
	ioctl(kcov->fd, KCOV_DISABLE, 0);
	munmap(kcov->places, ENTRIES * sizeof(unsigned long));
	close(kcov->fd);
	free(kcov);
}

void kcov_start(struct kcov *kcov)
{
	if (kcov)
		__atomic_store_n(&kcov->places[0], 0, __ATOMIC_RELAXED);
}

static bool is_new(struct cover *cover, unsigned int bit)
{
	__u64 mask = 1ULL << bit % 64;
	__u64 *word = &cover->seen[bit / 64 % COVER_WORDS];

	if (*word & mask || __atomic_fetch_or(word, mask, __ATOMIC_RELAXED) & mask)
		return false;
	__atomic_fetch_add(&cover->features, 1, __ATOMIC_RELAXED);
	return true;
}

/* The module is far smaller than the half of the bits that is for its code. */
unsigned int kcov_stop(struct kcov *kcov, struct cover *cover)
{
	unsigned long i, num;
	unsigned int fresh = 0;

	if (!kcov)
		return 0;
	num = __atomic_load_n(&kcov->places[0], __ATOMIC_RELAXED);
	for (i = 1; i <= num && i < ENTRIES; i++)
		fresh += is_new(cover, kcov->places[i] % (NUM_BITS / 2));
	__atomic_fetch_add(&cover->places, fresh, __ATOMIC_RELAXED);
	return fresh;
}

bool cover_answer(struct cover *cover, unsigned int action, int rc, __u32 reason)
{
	__u64 hash = (((__u64)action << 40) ^ ((__u64)reason << 16) ^ (__u32)-rc) *
		     0x9e3779b97f4a7c15ULL;

	return is_new(cover, NUM_BITS / 2 + (hash >> 40) % (NUM_BITS / 2));
}
