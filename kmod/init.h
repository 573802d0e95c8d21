/* SPDX-License-Identifier: GPL-2.0-only */
/* What main.c calls of the floors when the module comes and goes, and debugfs.c. */
#ifndef IBCHAN_INIT_H
#define IBCHAN_INIT_H

struct dentry;
struct ibchan_channel_part;
struct ibchan_device_client;
struct seq_file;

int ibchan_channels_init(const struct ibchan_channel_part *const *parts);
void ibchan_channels_fini(void);
int ibchan_device_init(const struct ibchan_device_client *const *clients);
void ibchan_device_fini(void);
int ibchan_client_init(void);
void ibchan_client_fini(void);
int ibchan_owner_init(void);
void ibchan_owner_fini(void);
int ibchan_history_show(struct seq_file *m);
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
