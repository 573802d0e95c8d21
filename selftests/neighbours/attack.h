/* SPDX-License-Identifier: GPL-2.0-only */
/* What the attacks have in common. */
#ifndef NEIGHBOURS_ATTACK_H
#define NEIGHBOURS_ATTACK_H

#include "missing.h"
#include "pager.h"
#include "work.h"
#include "world.h"

#define PAGE		4096UL
#define HANGING		8	/* threads that wait for pages */
#define BUSY		2	/* processes that do something all the time: one for each CPU */

struct scene {
	const char *device;
	const char *host;
	struct pager pagers[HANGING];
	struct missing missing;
};

extern struct scene scene;

struct side_options options(void);
/* A file with the device, a domain and a queue. */
int open_file(struct side *side);
/* Says that the attack is under way, and does not return. */
int stay(void);
/* @num processes that do @body all the time; it is done once before they are ready. */
int keep_busy(unsigned int num, int (*body)(void));

int attack_files(void);
int attack_dead_requests(void);
int attack_swap(void);
int serve_pages(void);	/* before attack_swap(), as root */

#endif /* NEIGHBOURS_ATTACK_H */
