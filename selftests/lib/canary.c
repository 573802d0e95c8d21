// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "canary.h"
#include "work.h"
#include "world.h"

#define PAGEMAP		"/proc/self/pagemap"
#define PRESENT		0x8000000000000000ULL
#define FRAME_MASK	0x007fffffffffffffULL

/*
 * Half a MiB for each process: the pages that were freed last are handed out first, and there are
 * no more than FRAMES_MAX of them.
 */
#define CANARY_PAGES	128
#define CANARY_BYTE	0xa7

static size_t page_size(void)
{
	return sysconf(_SC_PAGESIZE);
}

static int read_frames(const void *addr, __u64 *frames, unsigned int n)
{
	int fd = open(PAGEMAP, O_RDONLY | O_CLOEXEC);
	ssize_t size = n * sizeof(*frames);
	ssize_t got;

	if (fd < 0)
		return -errno;
	got = pread(fd, frames, size, (uintptr_t)addr / page_size() * sizeof(*frames));
	close(fd);
	return got == size ? 0 : -EIO;
}

int frames_of(const void *addr, size_t length, struct frames *frames)
{
	unsigned int i;
	int rc;

	frames->n = length / page_size();
	if (frames->n > FRAMES_MAX)
		return -E2BIG;
	rc = read_frames(addr, frames->frame, frames->n);
	for (i = 0; i < frames->n && !rc; i++) {
		if (!(frames->frame[i] & PRESENT))
			rc = -ENOENT;
		frames->frame[i] &= FRAME_MASK;
		/* Without the right to see them all are 0. */
		if (!frames->frame[i])
			rc = -EPERM;
	}
	return rc;
}

static bool is_among(const struct frames *frames, __u64 frame)
{
	unsigned int i;

	for (i = 0; i < frames->n; i++) {
		if (frames->frame[i] == frame)
			return true;
	}
	return false;
}

static int count_met(const unsigned char *pages, const struct frames *frames)
{
	static __u64 own[CANARY_PAGES];
	unsigned int i, met = 0;
	int rc = read_frames(pages, own, CANARY_PAGES);

	for (i = 0; i < CANARY_PAGES && !rc; i++)
		met += is_among(frames, own[i] & FRAME_MASK);
	return rc ? rc : (int)met;
}

/* A page that was freed is handed out first on the CPU that freed it. */
static void fill_on_every_cpu(unsigned char *pages)
{
	size_t share, done = 0, length = CANARY_PAGES * page_size();
	cpu_set_t all, one;
	int cpu;

	sched_getaffinity(0, sizeof(all), &all);
	share = length / CPU_COUNT(&all);
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		memset(pages + done, CANARY_BYTE, share);
		done += share;
	}
	sched_setaffinity(0, sizeof(all), &all);
	memset(pages + done, CANARY_BYTE, length - done);
}

static unsigned char *canary_pages(void)
{
	size_t length = CANARY_PAGES * page_size();
	unsigned char *pages = mmap(NULL, length, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		return NULL;
	/* Huge pages come from another list of the allocator. */
	madvise(pages, length, MADV_NOHUGEPAGE);
	fill_on_every_cpu(pages);
	return pages;
}

static int check_pages(const unsigned char *pages)
{
	return all_bytes(pages, CANARY_PAGES * page_size(), CANARY_BYTE);
}

struct holder {
	const struct frames *frames;
	int gate;	/* nothing ever comes; its end is the sign to check */
	int answer;
};

static int holder_body(const struct holder *holder)
{
	unsigned char *pages = canary_pages();
	int met = pages ? count_met(pages, holder->frames) : -ENOMEM;
	char byte;

	if (write(holder->answer, &met, sizeof(met)) != sizeof(met) || met < 0)
		return -EIO;
	if (read(holder->gate, &byte, 1))
		return -EIO;
	return check_pages(pages);
}

/* What it inherited must not keep a file of the test open. */
static void keep_only(int first, int second)
{
	int low = first < second ? first : second;
	int high = first < second ? second : first;

	close_range(STDERR_FILENO + 1, low - 1, 0);
	close_range(low + 1, high - 1, 0);
	close_range(high + 1, ~0U, 0);
}

static int start_holder(struct canary *canary, const struct frames *frames)
{
	int gate[2], answer[2], met = -EIO;

	if (pipe2(gate, O_CLOEXEC) || pipe2(answer, O_CLOEXEC))
		return -errno;
	canary->holder = fork();
	if (!canary->holder) {
		struct holder holder = { frames, gate[0], answer[1] };

		keep_only(gate[0], answer[1]);
		_exit(-holder_body(&holder));
	}
	close(gate[0]);
	close(answer[1]);
	canary->gate = gate[1];
	if (read(answer[0], &met, sizeof(met)) != sizeof(met))
		met = -EIO;
	close(answer[0]);
	if (met > 0)
		canary->met += met;
	return met < 0 ? met : 0;
}

int canary_open(struct canary *canary, const struct frames *frames)
{
	int met;

	memset(canary, 0, sizeof(*canary));
	canary->pages = canary_pages();
	if (!canary->pages)
		return -ENOMEM;
	met = count_met(canary->pages, frames);
	if (met < 0)
		return met;
	canary->met = met;
	return start_holder(canary, frames);
}

int canary_close(struct canary *canary)
{
	int rc = canary->pages ? check_pages(canary->pages) : -ENOENT;
	int theirs = 0;

	if (canary->holder > 0) {
		close(canary->gate);
		theirs = child_result(canary->holder);
	}
	if (canary->pages)
		munmap(canary->pages, CANARY_PAGES * page_size());
	return rc ? rc : theirs;
}
