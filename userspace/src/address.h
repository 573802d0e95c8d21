/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* IP addresses, for the calls that connect. */
#ifndef _LIBIBCHAN_ADDRESS_H
#define _LIBIBCHAN_ADDRESS_H

#include "internal.h"

struct addrinfo;

#pragma GCC visibility push(hidden)

int address_find(const char *host, const char *service, bool passive,
		 struct addrinfo **list, struct ibchan_reason *reason);
void address_to_kernel(const struct sockaddr *from, struct ibchan_address *to);
void address_from_kernel(const struct ibchan_address *from, struct sockaddr_storage *to);
int route_of_list(struct ibchan_context *context, const struct addrinfo *list,
		  const char *source, __s64 ns, const struct addrinfo **found,
		  struct ibchan_route *route, struct ibchan_error *error);
int connect_to_list(struct ibchan_prepared *prepared, const struct addrinfo *list,
		    const struct ibchan_connect_params *with,
		    struct ibchan_channel **out, struct ibchan_error *error);
int connect_data(const void *from, size_t length, void *data, __u32 *data_length,
		 struct ibchan_reason *reason);

#pragma GCC visibility pop

#endif /* _LIBIBCHAN_ADDRESS_H */
