/* SPDX-License-Identifier: GPL-2.0-only */
/* A client of the short way, in a thread of its own. */
#ifndef TEST_SHIM_DIALER_H
#define TEST_SHIM_DIALER_H

#include <pthread.h>

#include "end.h"

/* A call of ibchan_dial(), which waits until the server has accepted the client. */
struct dialer {
	const char *host;
	char port[8];
	const struct ibchan_message_params *params;
	struct ibchan_channel *channel;
	struct ibchan_error error;
	pthread_t thread;
	int rc;
};

/* The body of @thread; a test may call it in its own thread as well. */
void *dial(void *dialer);

#endif /* TEST_SHIM_DIALER_H */
