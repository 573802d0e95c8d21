/* SPDX-License-Identifier: GPL-2.0-only */
/* What messages between two programs cost: the two ways that are compared. */
#ifndef BENCH_STREAM_H
#define BENCH_STREAM_H

#include <stddef.h>

#define HOST	"10.77.0.1"

enum end { CLIENT, SERVER, ENDS };

/**
 * struct way - one way to carry them
 * @open: connects both ends
 * @send: a message, from any memory
 * @receive: one of just that length
 * @close: the end
 *
 * Each returns 0 or a negative errno; @send and @receive wait, one thread at an end.
 */
struct way {
	int (*open)(void);
	int (*send)(enum end end, const void *bytes, size_t length);
	int (*receive)(enum end end, void *bytes, size_t length);
	int (*close)(void);
};

extern const struct way own_way;
extern const struct way rsockets_way;

#endif /* BENCH_STREAM_H */
