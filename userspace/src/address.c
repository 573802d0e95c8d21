// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names of hosts and services, and the forms of an IP address. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"

#define MAX_PORT	65535

static int error_of_lookup(int code)
{
	switch (code) {
	case EAI_AGAIN:
		return -EAGAIN;
	case EAI_MEMORY:
		return -ENOMEM;
	case EAI_SYSTEM:
		return errno ? -errno : -EIO;
	case EAI_NONAME:
	case EAI_SERVICE:
		return -ENOENT;
	default:
		/* No address of a family that was asked for. */
		return -ENOENT;
	}
}

/* A number as the C library reads it, which keeps the lower 16 bits of a longer one. */
static int check_service(const char *service, struct ibchan_reason *reason)
{
	unsigned long long port;
	char *end;

	port = strtoull(service, &end, 10);
	if (*end || port <= MAX_PORT)
		return 0;
	*reason = (struct ibchan_reason) {
		.code = IBCHAN_REASON_PARAMETER,
		.element = IBCHAN_PARAMETER_SERVICE,
		.value = { port, 0, MAX_PORT },
	};
	return -EINVAL;
}

/* An IPv4 address as sockets of IPv6 write it is one of IPv4: no route of IPv6 leads there. */
static void unmap(struct addrinfo *info)
{
	struct sockaddr_in *in = (void *)info->ai_addr;
	struct sockaddr_in6 in6;

	if (info->ai_family != AF_INET6)
		return;
	memcpy(&in6, info->ai_addr, sizeof(in6));
	if (!IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr))
		return;
	*in = (struct sockaddr_in) { .sin_family = AF_INET, .sin_port = in6.sin6_port };
	memcpy(&in->sin_addr, &in6.sin6_addr.s6_addr[12], sizeof(in->sin_addr));
	info->ai_family = AF_INET;
	info->ai_addrlen = sizeof(*in);
}

/*
 * For freeaddrinfo(). A port by number need not have a name. A look-up has an end of its own:
 * a signal is no reason to give it up. On an error @reason says more.
 */
int address_find(const char *host, const char *service, bool passive,
		 struct addrinfo **list, struct ibchan_reason *reason)
{
	const struct addrinfo hints = {
		.ai_flags = passive ? AI_PASSIVE : 0,
		.ai_socktype = SOCK_STREAM,
	};
	struct addrinfo *info;
	int code, err, state;

	if (!host && !service)
		service = "0";
	err = service ? check_service(service, reason) : 0;
	if (err)
		return err;
	state = cancel_off();
	do {
		code = getaddrinfo(host, service, &hints, list);
		err = code ? error_of_lookup(code) : 0;
	} while (err == -EINTR);
	cancel_back(state);
	if (code && code != EAI_SYSTEM)
		*reason = (struct ibchan_reason) {
			.code = IBCHAN_REASON_NAME,
			.value = { (__u64)(__s64)code },
		};
	for (info = err ? NULL : *list; info; info = info->ai_next)
		unmap(info);
	return err;
}

void address_to_kernel(const struct sockaddr *from, struct ibchan_address *to)
{
	const struct sockaddr_in6 *in6 = (const void *)from;
	const struct sockaddr_in *in = (const void *)from;

	*to = (struct ibchan_address) { .family = from->sa_family };
	if (from->sa_family == AF_INET) {
		to->port = in->sin_port;
		memcpy(to->bytes, &in->sin_addr, sizeof(in->sin_addr));
	} else if (from->sa_family == AF_INET6) {
		to->port = in6->sin6_port;
		to->scope_id = in6->sin6_scope_id;
		memcpy(to->bytes, &in6->sin6_addr, sizeof(to->bytes));
	}
}

void address_from_kernel(const struct ibchan_address *from, struct sockaddr_storage *to)
{
	struct sockaddr_in6 *in6 = (void *)to;
	struct sockaddr_in *in = (void *)to;

	memset(to, 0, sizeof(*to));
	to->ss_family = from->family;
	if (from->family == AF_INET) {
		in->sin_port = from->port;
		memcpy(&in->sin_addr, from->bytes, sizeof(in->sin_addr));
	} else if (from->family == AF_INET6) {
		in6->sin6_port = from->port;
		in6->sin6_scope_id = from->scope_id;
		memcpy(&in6->sin6_addr, from->bytes, sizeof(from->bytes));
	}
}

const char *source_words(__u64 code)
{
	switch (code) {
	case EADDRNOTAVAIL:
		return "this host does not have it";
	case ENODEV:
		return "no RDMA device of this host has it";
	case EAFNOSUPPORT:
		return "the peer has no address of that family";
	default:
		return "unknown";
	}
}

/* All zero without one, which leaves the choice to the route. */
int address_of_source(const char *source, struct ibchan_address *to,
		      struct ibchan_reason *reason)
{
	struct addrinfo *list;
	int err;

	memset(to, 0, sizeof(*to));
	if (!source)
		return 0;
	err = address_find(source, NULL, false, &list, reason);
	if (err)
		return err;
	address_to_kernel(list->ai_addr, to);
	freeaddrinfo(list);
	return 0;
}
