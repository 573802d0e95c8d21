/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A file whose pages come from a process of the test's own, by FUSE, as a hostile user may run
 * it to make others wait.
 */
#ifndef TEST_PAGER_H
#define TEST_PAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* How often the first page is served: those reads behind that are never answered. */
#define PAGER_ALWAYS	~0U

struct pager_rules {
	unsigned int first_page;	/* reads of it that are answered */
	unsigned int fails;		/* of these the first so many with EIO */
	bool drops;			/* it goes from memory when the last page is read */
};

/* Shared with the server. */
struct pager_state {
	struct pager_rules rules;
	size_t length;
	unsigned int first_reads;
	unsigned int stuck;	/* reads that are not answered, and writes, which never are */
};

struct pager {
	int fd;			/* of the file */
	pid_t server;
	struct pager_state *state;
	char path[32];
};

/* Where the kernel has no FUSE. */
#define PAGER_NONE	1

/* 0; PAGER_NONE; -errno. */
int pager_begin(struct pager *pager, size_t length, const struct pager_rules *rules);
/* Whoever waits for a page gets an error. Idempotent. */
void pager_kill(struct pager *pager);
void pager_end(struct pager *pager);

/* Waits until somebody waits for a page that does not come. */
bool pager_is_waited_for(struct pager *pager);

/* All of the file; MAP_FAILED. */
void *pager_map(const struct pager *pager, int prot, int flags);

#endif /* TEST_PAGER_H */
