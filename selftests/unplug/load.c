// SPDX-License-Identifier: GPL-2.0-only
/*
 * load traffic|churn NEAR FAR: keep two devices that reach each other busy until one of them
 * has left, or until SIGTERM; then exit with 0 unless something was wrong meanwhile. Says
 * "ready" when everything is under way. `unplug` runs it.
 *
 *	traffic		verified, as in traffic.h; a channel that breaks is made again
 *	churn		connections of all shapes that come, carry a message and go
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "traffic.h"
#include "work.h"

static int end_signal;

static void end_soon(int signal)
{
	__atomic_store_n(&end_signal, signal, __ATOMIC_RELAXED);
}

static bool told_to_end(void)
{
	return __atomic_load_n(&end_signal, __ATOMIC_RELAXED);
}

/* What a port that is down, or has lost its addresses, makes of building and connecting. */
static bool is_of_network(int rc)
{
	return rc == -EADDRNOTAVAIL || rc == -ENETDOWN || rc == -EHOSTUNREACH ||
	       rc == -ENETUNREACH || rc == -ESHUTDOWN;
}

static void say_ready(void)
{
	puts("ready");
	fflush(stdout);
}

/* ---- Traffic ---- */

/* Until the network lets it. */
static int mend(struct traffic *traffic)
{
	int rc;

	do
		rc = traffic_mend(traffic);
	while (is_of_network(rc) && !told_to_end());
	return told_to_end() ? 0 : rc;
}

static int run_traffic(struct traffic *traffic)
{
	int rc = traffic_open(traffic);

	if (!rc)
		say_ready();
	while (!rc && !told_to_end()) {
		rc = traffic_round(traffic);
		if (rc == TRAFFIC_BROKE)
			rc = mend(traffic);
	}
	printf("%lu rounds, %lu works, %lu breaks\n", traffic->rounds, traffic->works,
	       traffic->breaks);
	traffic_close(traffic);
	return rc;
}

/* ---- Coming and going ---- */

/* A message may meet the end of a device or of a port, and then fails as any work does. */
static bool is_of_end(int rc)
{
	return is_of_network(rc) || rc == -ENODEV || rc == -EIO;
}

static int connect_and_go(const char *near, const char *far)
{
	struct side_options options = side_defaults();
	struct side sides[2] = {};
	int rc;

	options.device = near;
	rc = side_open(&sides[0], &options);
	options.device = far;
	if (!rc)
		rc = side_open(&sides[1], &options);
	if (!rc)
		rc = side_handshake(&sides[0], &sides[1].endpoint);
	if (!rc)
		rc = side_handshake(&sides[1], &sides[0].endpoint);
	if (!rc)
		rc = exchange(&sides[0], &sides[1]);
	/* For the end to flush. */
	if (!rc)
		rc = post_receives(&sides[1], 1, 4, 64);
	side_close(&sides[1]);
	side_close(&sides[0]);
	return rc;
}

static bool has_left(const char *name)
{
	int fd = node_open();
	__u32 device;
	int rc = device_open(fd, name, &device);

	close(fd);
	return rc == -ENODEV;
}

static int run_churn(const char *near, const char *far)
{
	unsigned long number = 0;
	int rc = 0;

	say_ready();
	while (!rc && !told_to_end()) {
		bool crosses = number++ % 2;

		rc = connect_and_go(near, crosses ? far : near);
		if (!is_of_end(rc))
			continue;
		rc = has_left(near) || has_left(far) ? -ENODEV : 0;
	}
	printf("%lu connections\n", number);
	return rc;
}

int main(int argc, char **argv)
{
	const struct sigaction action = { .sa_handler = end_soon };
	struct traffic traffic;
	int rc;

	if (argc != 4 || (strcmp(argv[1], "traffic") && strcmp(argv[1], "churn"))) {
		fprintf(stderr, "usage: load traffic|churn NEAR FAR\n");
		return 2;
	}
	/* Without SA_RESTART: a wait that it interrupts goes on where it was. */
	sigaction(SIGTERM, &action, NULL);
	if (!strcmp(argv[1], "churn")) {
		rc = run_churn(argv[2], argv[3]);
	} else {
		traffic_init(&traffic, argv[2], argv[3]);
		rc = run_traffic(&traffic);
	}
	if (!rc || rc == -ENODEV || (rc == -EINTR && told_to_end()))
		return 0;
	printf("ended with %d: %s\n", rc, strerror(-rc));
	return 1;
}
