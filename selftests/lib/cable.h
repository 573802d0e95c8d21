/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two soft-RoCE devices of a test's own at the ends of a veth pair, so that its links and
 * addresses can come and go: the first has 10.88.0.1, the second 10.88.0.2.
 */
#ifndef TEST_CABLE_H
#define TEST_CABLE_H

#define CABLE_NEAR	"rxe8"	/* on w0 */
#define CABLE_FAR	"rxe9"	/* on w1, the other end of the pair */

#define TEST_ATTRIBUTE(name, ...)	__attribute__((name(__VA_ARGS__)))

/* Runs a line of shell: its exit code. */
TEST_ATTRIBUTE(format, printf, 1, 2)
int sh(const char *format, ...);

/* Nothing tells when the devices have got the addresses. */
int cable_lay(void);
void cable_cut(void);

/* Up again, with what a link that goes down forgets. */
int cable_links_up(void);

/*
 * The first two addresses of the network @net, say "10.87.0", for two that have the hardware
 * addresses of w0 and w1; they may have them already.
 */
int ndevs_up(const char *near, const char *far, const char *net);

#endif /* TEST_CABLE_H */
