/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Suites in which the first device of `devices` leaves. They span the life of the
 * module:
 *
 *	insmod ibchan_kclient.ko suite=removal
 *	rdma link delete rxe0			# 5 s at most, which the shell measures
 *	echo 1 >/sys/module/ibchan_kclient/parameters/verdict
 *	rmmod ibchan_kclient
 *
 * insmod sets up what the device takes along, and returns. The write looks at what came
 * of it and prints KTAP; rmmod prints that if no write came before, and gives everything
 * back, which prints one line more if that fails. The shells of the objects are there
 * until then.
 */
#ifndef KCLIENT_DEPARTURE_H
#define KCLIENT_DEPARTURE_H

#include "suites.h"
#include "world.h"

/**
 * struct departure - one such suite; all is called with the same world
 * @name: of the suite
 * @cases: run when the device has left
 * @num: of them
 * @begin: sets it up
 * @settle: waits for what goes on beside, before the first case
 * @end: gives back what the world does not; also after a @begin that has failed
 */
struct departure {
	const char *name;
	const struct test_case *cases;
	unsigned int num;
	int (*begin)(struct world *w);
	void (*settle)(struct world *w);
	void (*end)(struct world *w);
};

extern const struct departure removal_departure;
extern const struct departure removal_by_address_departure;
extern const struct departure unplug_departure;

int departure_begin(const struct departure *departure);
void departure_end(void);

#endif /* KCLIENT_DEPARTURE_H */
