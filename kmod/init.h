/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by main.c and the files of debugfs. */
#ifndef IBCHAN_INIT_H
#define IBCHAN_INIT_H

void ibchan_debugfs_init(void);
void ibchan_debugfs_fini(void);

#endif /* IBCHAN_INIT_H */
