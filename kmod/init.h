/* SPDX-License-Identifier: GPL-2.0-only */
/* What main.c calls of the levels below it when the module comes and goes. */
#ifndef IBCHAN_INIT_H
#define IBCHAN_INIT_H

int ibchan_channel_init(void);
void ibchan_channel_fini(void);
int ibchan_device_init(void);
void ibchan_device_fini(void);
void ibchan_debugfs_init(void);
void ibchan_debugfs_fini(void);

#endif /* IBCHAN_INIT_H */
