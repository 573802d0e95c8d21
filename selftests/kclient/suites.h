/* SPDX-License-Identifier: GPL-2.0-only */
/* The table of suites. */
#ifndef KCLIENT_SUITES_H
#define KCLIENT_SUITES_H

#include <linux/array_size.h>

struct world;

struct test_case {
	const char *name;
	void (*run)(struct world *w);
	bool needs_ethernet;
};

struct suite {
	const char *name;
	const struct test_case *cases;
	unsigned int num;
};

#define CASE(function) { #function, function, false }

/* Of IP addresses, or by one: an InfiniBand port has none here. */
#define ETHERNET_CASE(function) { #function, function, true }

#define SUITE(name) \
	const struct suite name##_suite = { #name, name##_cases, ARRAY_SIZE(name##_cases) }

/* What runs unless a parameter says otherwise, in this order. */
#define DEFAULT_SUITES(X) \
	X(connect) X(endpoint) X(data) X(error) X(ops) X(unsignaled) X(memory) X(remote) \
	X(scope) X(pending) X(unpolled) X(done) X(callback) X(qp) X(queues) X(busy) \
	X(element) X(bounds) X(close) X(priority) X(connect_by_address) X(linger) \
	X(alive) X(keepalive) X(cycles) X(reclaim) X(stranger) X(sgl) X(runner) X(life)

/* What has to be asked for; two of them where verbs can fail, see main.c. */
#define OTHER_SUITES(X) \
	X(stress) X(netns_shared) X(netns_exclusive) X(offline) X(fail_nth)
#define FAULT_SUITES(X) \
	X(faults) X(leaks)

#define DECLARE_SUITE(name) extern const struct suite name##_suite;
DEFAULT_SUITES(DECLARE_SUITE)
OTHER_SUITES(DECLARE_SUITE)
FAULT_SUITES(DECLARE_SUITE)

#endif /* KCLIENT_SUITES_H */
