/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Namespaces, as containers are made of them. Only ever entered in a child.
 */
#ifndef TEST_NAMESPACE_H
#define TEST_NAMESPACE_H

/*
 * Says whether RDMA devices are "shared" by all network namespaces or "exclusive" to one
 * each, by the script netns-mode in the folder IBCHAN_SELFTESTS (default selftests), which
 * waits until those of earlier tests have ended. Its exit code, or -errno.
 */
int netns_mode(const char *mode);

/* A network namespace of the caller's own. */
int netns_enter_new(void);

/*
 * Become nobody, and root of a new user namespace; @more: CLONE_NEW* to make with it.
 */
int userns_enter_as_nobody(int more);

/* A mount namespace whose /dev is empty; the node is kept at @kept, an existing file. */
int mountns_enter_without_dev(const char *kept);

/* What a script does; its exit code, or -errno. */
int run_script(const char *script);

#endif /* TEST_NAMESPACE_H */
