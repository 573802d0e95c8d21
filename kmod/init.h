/* SPDX-License-Identifier: GPL-2.0-only */
/* What main.c and the files of debugfs have for each other. */
#ifndef IBCHAN_INIT_H
#define IBCHAN_INIT_H

struct dentry;

void ibchan_debugfs_init(void);
void ibchan_debugfs_fini(void);

#ifdef IBCHAN_FAULTS
void ibchan_fault_debugfs_init(struct dentry *root);
#else
static inline void ibchan_fault_debugfs_init(struct dentry *root)
{
}
#endif

#endif /* IBCHAN_INIT_H */
