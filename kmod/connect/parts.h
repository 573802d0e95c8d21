/* SPDX-License-Identifier: GPL-2.0-only */
/* The door of connect/: tables of functions that channels and devices call. */
#ifndef IBCHAN_PARTS_H
#define IBCHAN_PARTS_H

#include "channel.h"

extern const struct ibchan_channel_part ibchan_watch_part;
extern const struct ibchan_channel_part ibchan_cm_part;
extern const struct ibchan_device_client ibchan_watch_client;
extern const struct ibchan_device_client ibchan_linger_client;
extern const struct ibchan_device_client ibchan_listen_client;

#endif /* IBCHAN_PARTS_H */
