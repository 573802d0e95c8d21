/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two racers who meet: one lingers in a window of the module (window.h), the other one comes
 * meanwhile. Whatever both of them are told, each work that was accepted has ended
 * once afterwards, with its own memory or with an error.
 */
#ifndef TEST_ENCOUNTER_H
#define TEST_ENCOUNTER_H

#include "side.h"

#define ENCOUNTER_MEMORY	8192
#define ENCOUNTER_BYTES	256

struct encounter {
	struct side side;	/* its own peer */
	__u32 region;		/* another one, of @memory */
	unsigned char *memory;
	unsigned int round;
	unsigned int visit_us;	/* how long the first stays: for the second to notice and to come */
	unsigned int next_id;
	unsigned int accepted;
	__u64 ids;		/* of what was accepted */
	bool closed;		/* the file; nobody sees what completes */
};

/* What a racer does: 0 or the -errno that he is told. */
typedef int racer(struct encounter *encounter);

racer encounter_post;	/* a read into the region, and a receive */
racer encounter_post_plain;	/* the same into memory without a region */
racer encounter_finish;	/* posts, and waits for a completion */
racer encounter_break;
racer encounter_destroy;	/* the channel */
racer encounter_dereg;	/* the region */
racer encounter_destroy_cq;
racer encounter_query;
racer encounter_register;	/* and gives that region back */
racer encounter_build;	/* another channel, and gives that back */
racer encounter_fork;	/* a child, which writes to all memory that it has of this */
racer encounter_close;	/* the file and its mappings */

int encounter_open(struct encounter *encounter, unsigned int round);

/*
 * Once both are back: breaks what is left, counts what has completed and looks at what was
 * read. 0, or an -errno behind a line that says what is wrong.
 */
int encounter_settle(struct encounter *encounter);
void encounter_end(struct encounter *encounter);

/*
 * Has @first go into @window, on one CPU, and @second come on another one. @told is what
 * both hear. Returns 1 when the second came in time, 0 when the first had left, or -errno.
 */
int encounter_hold(struct encounter *encounter, const char *window, racer *first, racer *second,
		   int told[2]);

#endif /* TEST_ENCOUNTER_H */
