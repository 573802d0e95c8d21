/* SPDX-License-Identifier: GPL-2.0-only */
/* The character device's side of connecting by address. */
#ifndef IBCHAN_USER_CONNECT_H
#define IBCHAN_USER_CONNECT_H

#include "context.h"

/* listener.c */
struct ibchan_user_listener;
void ibchan_user_listener_end(struct ibchan_user_listener *listener);

/* event.c */
void ibchan_object_event(struct ibchan_object *object, u32 events);
void ibchan_object_events_end(struct ibchan_object *object);
void ibchan_user_connected(void *priv);
void ibchan_user_broken(void *priv, int error);

/* connect.c */
int ibchan_address_in(const struct ibchan_address *address, struct sockaddr_storage *out);
void ibchan_address_out(const struct sockaddr_storage *address, struct ibchan_address *out);

#endif /* IBCHAN_USER_CONNECT_H */
