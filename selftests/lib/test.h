/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's own test harness, as its source package has it, with a time limit that is
 * only the last resort: every wait of these tests has a shorter bound of its own.
 */
#ifndef TEST_TEST_H
#define TEST_TEST_H

#include <kselftest_harness.h>

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	180

#endif /* TEST_TEST_H */
