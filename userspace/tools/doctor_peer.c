// SPDX-License-Identifier: LGPL-2.1-or-later
/* ibchan doctor: from here to the peer, up to a channel with data. */
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <unistd.h>

#include "doctor.h"

/* --- which device leads to the peer's name? --- */

/* An IPv4 address that is mapped into IPv6 is one of IPv4, as the library takes it. */
static void take_address(struct sockaddr_storage *address, const struct addrinfo *a)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)a->ai_addr;
	struct sockaddr_in in = { .sin_family = AF_INET };

	memset(address, 0, sizeof(*address));
	if (a->ai_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
		memcpy(&in.sin_addr, &in6->sin6_addr.s6_addr[12], sizeof(in.sin_addr));
		memcpy(address, &in, sizeof(in));
	} else {
		memcpy(address, a->ai_addr, a->ai_addrlen);
	}
}

/* The network device that ordinary packets to the peer would take; NULL: none. */
static const char *ordinary_way(const struct sockaddr_storage *peer)
{
	struct sockaddr_storage source = { 0 };
	socklen_t length = sizeof(source);
	char text[INET6_ADDRSTRLEN], other[INET6_ADDRSTRLEN];
	int fd = socket(peer->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool known = !connect(fd, (const struct sockaddr *)peer, sizeof(*peer)) &&
		     !getsockname(fd, (struct sockaddr *)&source, &length) &&
		     address_text((struct sockaddr *)&source, text, sizeof(text));
	const char *netdev = NULL;
	struct ifaddrs *all, *a;

	close(fd);
	if (!known || getifaddrs(&all))
		return NULL;
	for (a = all; a; a = a->ifa_next)
		if (address_text(a->ifa_addr, other, sizeof(other)) && !strcmp(text, other))
			netdev = words("%s", a->ifa_name);
	freeifaddrs(all);
	return netdev;
}

/* Where the route leads over another network device, or nobody answers, that device is named. */
static bool find_no_way(const struct peer *peer, int err)
{
	const char *netdev = ordinary_way(&peer->route.peer);

	if (err == -ENETUNREACH || err == -EADDRNOTAVAIL)
		return doctor_error("route", "route-absent", peer->text,
				    "This host has no route to the peer.\n"
				    "No address here is in the peer's network, and there is no gateway to it; an address may have been deleted.\n"
				    "ip address, ip route get %s; then ip address add, or ip route add.",
				    peer->text);
	if (err == -ENODEV)
		return doctor_error("route", "route-not-rdma", peer->text,
				    "The route to the peer leads over %s, which no RDMA device is over.\n"
				    "The address belongs to another network than the RDMA devices, or the RDMA device is not there yet.\n"
				    "Take the peer's address in the RDMA network; ip route get %s; rdma link.",
				    netdev ? netdev : "another network device", peer->text);
	return doctor_error("route", "peer-unreachable", peer->text,
			    "Nobody answers for this address on %s (%s).\n"
			    "The peer is off, its address is another one, or it is not in this network segment.\n"
			    "Look at the peer: ip address; at both ends: ip neighbour; the VLANs of the switch.",
			    netdev ? netdev : "the network", strerror(-err));
}

/* Says whether there is a port in a VRF whose address has a route to the peer. */
static bool find_source(const struct doctor *doctor)
{
	const struct port *port = doctor->ports, *end = port + doctor->port_count;
	const char *peer = doctor->peer.text, *source;
	struct ibchan_route route;

	for (; port < end; port++) {
		source = port->vrf[0] ? netdev_address(port->netdev, 0) : NULL;
		if (!source ||
		    ibchan_route_query(doctor->context, peer, NULL, source, &route, NULL))
			continue;
		doctor_error("route", "source-needed", peer,
			     "Only from %1$s, which %2$s in the VRF %3$s has, a way leads to the peer.\n"
			     "Without a source, routes of no VRF count; ip vrf exec binds sockets only, and RDMA has none.\n"
			     "ibchan doctor --source %1$s %4$s; programs: the source of ibchan_device_open_for() and of struct ibchan_connect_params or ibchan_message_params.",
			     source, port->netdev, port->vrf, peer);
		return true;
	}
	return false;
}

static bool find_route_error(const struct doctor *doctor, int err)
{
	const bool nowhere = err == -ENETUNREACH || err == -ENODEV || err == -EADDRNOTAVAIL;
	const struct port *port = doctor->ports, *end = port + doctor->port_count;
	const struct peer *peer = &doctor->peer;
	const int family = peer->route.peer.ss_family;
	const char *only = doctor->only;

	if (peer->source && (err == -EADDRNOTAVAIL || err == -EAFNOSUPPORT || err == -ENODEV ||
			     err == -ENOENT))
		return doctor_error("route", "source-unusable", peer->source,
				    "Nothing can connect to %s from this address: %s.\n"
				    "%s\n"
				    "ibchan devices --gids lists the addresses that there are.",
				    peer->text, ibchan_strerror(err), err == -EAFNOSUPPORT ?
				    "The peer has no address of that family, IPv4 or IPv6." :
				    "No RDMA device of this host has it, here or at all.");
	if (!peer->source && find_source(doctor))
		return false;
	while (port < end && !netdev_address(port->netdev, family))
		port++;
	if (!nowhere || port < end)
		return find_no_way(peer, err);
	return doctor_error("route", "address-absent", only ? only : "RDMA devices",
			    "The peer %s has an %s address; %s %s.\n"
			    "The address was deleted, or never set.\n"
			    "ip address add ADDRESS/LENGTH dev %s",
			    peer->text, family == AF_INET ? "IPv4" : "IPv6",
			    only ? only : "no RDMA device here", only ? "has none" : "has one",
			    doctor->port_count == 1 ? doctor->ports[0].netdev : "NETDEV");
}

/* Without a device that leads there, the peer's first address is spoken of. */
static bool check_route(struct doctor *doctor)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct peer *peer = &doctor->peer;
	const char *device = peer->route.device, *only = doctor->only;
	struct sockaddr_storage *address = &peer->route.peer;
	struct addrinfo *list;
	int err = getaddrinfo(peer->name, NULL, &hints, &list);

	if (err)
		return doctor_error("route", "peer-unknown", peer->name,
				    "The name cannot be turned into an address: %s.\n"
				    "%s\n"
				    "Give the peer's IP address instead of its name.",
				    err == EAI_SYSTEM ? strerror(errno) : gai_strerror(err),
				    err == EAI_AGAIN ? "The name server does not answer." :
				    "No name server and no line of /etc/hosts knows it.");
	err = ibchan_route_query(doctor->context, peer->name, NULL, peer->source, &peer->route,
				 NULL);
	if (err)
		take_address(address, list);
	freeaddrinfo(list);
	getnameinfo((struct sockaddr *)address, sizeof(*address), peer->text, sizeof(peer->text),
		    NULL, 0, NI_NUMERICHOST);
	if (err)
		return find_route_error(doctor, err);
	if (only && strcmp(only, device))
		return doctor_error("route", "device-does-not-route", only,
				    "%1$s does not lead to %2$s; %3$s does.\n"
				    "The host has several RDMA devices, and its routes choose among them.\n"
				    "Use %3$s, or let ibchan_device_open_for() find the device.",
				    only, peer->text, device);
	return doctor_fact("route", peer->text, "over %s port %u", device, peer->route.port);
}

/* --- does the path carry what the port will send? --- */

/*
 * Packets travel with IP, UDP, and at most these of InfiniBand: BTH, RETH, immediate, ICRC. A
 * channel takes the smaller MTU of both ends: whether that crosses, messages tell. InfiniBand has a
 * subnet manager for this, iWARP has TCP.
 */
static void check_path(const struct peer *peer)
{
	const struct sockaddr_storage *address = &peer->route.peer;
	const size_t headers = (address->ss_family == AF_INET ? 20 : 40) + 8 + 12 + 16 + 4 + 4;
	const __u32 mtu = peer->route.mtu;
	int err = probe_path(address, mtu + headers);
	__u32 fits = mtu / 2;

	if (!err)
		doctor_fact("path", peer->text, "carries packets of %zu bytes", mtu + headers);
	if (err != -EMSGSIZE)
		return;
	while (fits >= 256 && probe_path(address, fits + headers))
		fits /= 2;
	doctor_say(SEVERITY_WARNING, "path", "mtu-mismatch", peer->text,
		   "%s sends messages in packets of %u bytes, %zu with their headers; the path to the peer loses those.\n"
		   "The MTU of the peer's network device, or of a switch between, is smaller than here.\n"
		   "Set the same MTU everywhere: ip link set NETDEV mtu BYTES%s.",
		   peer->route.device, mtu, mtu + headers, fits < 256 ? "" :
		   words("; or build channels with mtu %u, which fits", fits));
}

void check_peer(struct doctor *doctor)
{
	const struct port *port = doctor->ports, *end = port + doctor->port_count;
	struct peer *peer = &doctor->peer;

	if (!check_route(doctor))
		return;
	while (port < end && (strcmp(port->device, peer->route.device) ||
			      port->number != peer->route.port))
		port++;
	if (port < end && port->deaf) {
		find_deaf(port, SEVERITY_ERROR);
		return;
	}
	/* Ordinary packets have to be told the way, too. */
	if (port < end && port->vrf[0])
		probe_by(port->vrf);
	peer->roce = port < end && port->ethernet && !port->iwarp;
	if (peer->roce)
		check_path(peer);
	check_channel(doctor);
}
