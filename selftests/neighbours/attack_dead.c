// SPDX-License-Identifier: GPL-2.0-only
/* Connection requests whose askers die at once, as processes that have no queue pair at all. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "attack.h"
#include "ghost.h"

#define DEAD_REQUESTS	8000
#define ASKED_BY_ONE	50

/* Above those that soft-RoCE gives out; two requests of one number are one stale connection. */
#define FIRST_QPN	0x200000U
#define QPNS		0xd00000U

static struct ibchan_cmd_listener_create listener = {
	.address.family = AF_INET, .backlog = 65536,
};

static bool somebody_waits(void *arg)
{
	struct pollfd pollfd = { .fd = listener.out_fd, .events = POLLIN };

	(void)arg;
	return poll(&pollfd, 1, 0) == 1;
}

/* Never returns. */
static void ask_and_die(void)
{
	static struct ghost askers[ASKED_BY_ONE];
	unsigned int i, first = getpid() * ASKED_BY_ONE;
	int rc = 0;

	for (i = 0; i < ASKED_BY_ONE && !rc; i++) {
		askers[i].qpn = FIRST_QPN + (first + i) % QPNS;
		rc = ghost_ask(&askers[i], &listener.out_address);
	}
	if (!rc && !eventually(somebody_waits, NULL))
		rc = -ETIMEDOUT;
	_exit(-rc);
}

static int die_asking(void)
{
	pid_t child = fork();

	if (!child)
		ask_and_die();
	return child_result(child);
}

int attack_dead_requests(void)
{
	static struct side side;
	unsigned int i;
	int rc = open_file(&side);

	inet_pton(AF_INET, scene.host, listener.address.bytes);
	rc = rc ?: cmd_listener_create(side.fd, &listener);
	for (i = 0; i < DEAD_REQUESTS && !rc; i += ASKED_BY_ONE)
		rc = die_asking();
	return rc ?: keep_busy(1, die_asking);
}
