/* SPDX-License-Identifier: GPL-2.0-only */
/* What main.c and the files of debugfs have for each other. */
#ifndef IBCHAN_INIT_H
#define IBCHAN_INIT_H

void ibchan_debugfs_init(void);
void ibchan_debugfs_fini(void);

#endif /* IBCHAN_INIT_H */
