// SPDX-License-Identifier: LGPL-2.1-or-later
/* ibchan doctor: from here to the peer, up to a channel with data. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"

static const struct sockaddr *address_of(const struct peer *peer)
{
	return (const struct sockaddr *)&peer->address;
}

/* --- which device leads to the peer's name? --- */

/* An IPv4 address that is mapped into IPv6 is one of IPv4, as the library takes it. */
static void take_address(struct peer *peer, const struct addrinfo *a)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&peer->address;
	struct sockaddr_in6 in6;

	memset(&peer->address, 0, sizeof(peer->address));
	memcpy(&peer->address, a->ai_addr, a->ai_addrlen);
	memcpy(&in6, &peer->address, sizeof(in6));
	if (a->ai_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr))
		return;
	memset(&peer->address, 0, sizeof(peer->address));
	in->sin_family = AF_INET;
	memcpy(&in->sin_addr, &in6.sin6_addr.s6_addr[12], sizeof(in->sin_addr));
}

/* Has a network device of a port that works an address of the peer's family? */
static bool family_is_here(const struct doctor *doctor, const struct peer *peer)
{
	const struct port *port = doctor->ports, *end = port + doctor->port_count;

	for (; port < end; port++)
		if (peer->address.ss_family == AF_INET ? port->netdev.has_ipv4 :
							 port->netdev.has_ipv6)
			return true;
	return false;
}

/* The network device that ordinary packets to the peer would take; empty: none. */
static void ordinary_way(const struct peer *peer, char *netdev, size_t size)
{
	struct sockaddr_storage source = { 0 };
	socklen_t length = sizeof(source);
	char text[INET6_ADDRSTRLEN] = "", other[INET6_ADDRSTRLEN] = "";
	int fd = socket(peer->address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifaddrs *all, *a;

	netdev[0] = '\0';
	if (fd < 0)
		return;
	if (!connect(fd, address_of(peer), sizeof(peer->address)) &&
	    !getsockname(fd, (struct sockaddr *)&source, &length))
		address_text((struct sockaddr *)&source, text, sizeof(text));
	close(fd);
	if (!text[0] || getifaddrs(&all))
		return;
	for (a = all; a; a = a->ifa_next)
		if (address_text(a->ifa_addr, other, sizeof(other)) && !strcmp(text, other))
			snprintf(netdev, size, "%s", a->ifa_name);
	freeifaddrs(all);
}

static void find_no_address(const struct doctor *doctor, const struct peer *peer)
{
	const char *netdev = doctor->port_count == 1 ? doctor->ports[0].netdev.name : "NETDEV";
	const char *only = doctor->only;

	doctor_error("route", "address-absent", only ? only : "RDMA devices",
		     "The peer %s has an %s address; %s %s.\n"
		     "The address was deleted, or never set.\n"
		     "ip address add ADDRESS/LENGTH dev %s",
		     peer->text, peer->address.ss_family == AF_INET ? "IPv4" : "IPv6",
		     only ? only : "no RDMA device here", only ? "has none" : "has one", netdev);
}

/* Finds a port in a VRF whose address has a route to the peer; NULL: there is none. */
static const struct port *port_that_leads(const struct doctor *doctor, const struct peer *peer)
{
	const struct port *port = doctor->ports, *end = port + doctor->port_count;
	struct ibchan_route route;

	for (; port < end; port++)
		if (port->netdev.vrf[0] &&
		    !ibchan_route_query(doctor->context, peer->text, NULL, port->netdev.address,
					&route, NULL))
			return port;
	return NULL;
}

/* Where the route leads over another network device, or nobody answers, that device is named. */
static void find_no_way(const struct peer *peer, int err)
{
	char netdev[IF_NAMESIZE];

	ordinary_way(peer, netdev, sizeof(netdev));
	if (err == -ENETUNREACH || err == -EADDRNOTAVAIL)
		doctor_error("route", "route-absent", peer->text,
			     "This host has no route to the peer.\n"
			     "No address here is in the peer's network, and there is no gateway to it; an address may have been deleted.\n"
			     "ip address, ip route get %s; then ip address add, or ip route add.",
			     peer->text);
	else if (err == -ENODEV)
		doctor_error("route", "route-not-rdma", peer->text,
			     "The route to the peer leads over %s, which no RDMA device is over.\n"
			     "The address belongs to another network than the RDMA devices, or the RDMA device is not there yet.\n"
			     "Take the peer's address in the RDMA network; ip route get %s; rdma link.",
			     netdev[0] ? netdev : "another network device", peer->text);
	else
		doctor_error("route", "peer-unreachable", peer->text,
			     "Nobody answers for this address on %s (%s).\n"
			     "The peer is off, its address is another one, or it is not in this network segment.\n"
			     "Look at the peer: ip address; at both ends: ip neighbour; the VLANs of the switch.",
			     netdev[0] ? netdev : "the network", strerror(-err));
}

static void find_route_error(const struct doctor *doctor, const struct peer *peer, int err)
{
	const bool nowhere = err == -ENETUNREACH || err == -ENODEV || err == -EADDRNOTAVAIL;
	const struct port *port = peer->source ? NULL : port_that_leads(doctor, peer);

	if (peer->source && (err == -EADDRNOTAVAIL || err == -EAFNOSUPPORT || err == -ENODEV ||
			     err == -ENOENT))
		doctor_error("route", "source-unusable", peer->source,
			     "Nothing can connect to %s from this address: %s.\n"
			     "%s\n"
			     "ibchan devices --gids lists the addresses that there are.",
			     peer->text, ibchan_strerror(err), err == -EAFNOSUPPORT ?
			     "The peer has no address of that family, IPv4 or IPv6." :
			     "No RDMA device of this host has it, here or at all.");
	else if (port)
		doctor_error("route", "source-needed", peer->text,
			     "Only from %1$s, which %2$s in the VRF %3$s has, a way leads to the peer.\n"
			     "Without a source, routes of no VRF count; ip vrf exec binds sockets only, and RDMA has none.\n"
			     "ibchan doctor --source %1$s %4$s; programs: the source of ibchan_device_open_for() and of struct ibchan_connect_params or ibchan_message_params.",
			     port->netdev.address, port->netdev.name, port->netdev.vrf, peer->text);
	else if (nowhere && !family_is_here(doctor, peer))
		find_no_address(doctor, peer);
	else
		find_no_way(peer, err);
}

/* Without a device that leads there, the peer's first address is spoken of. */
static bool check_route(const struct doctor *doctor, struct peer *peer)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	const char *device = peer->route.device, *only = doctor->only;
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
		take_address(peer, list);
	else
		peer->address = peer->route.peer;
	freeaddrinfo(list);
	getnameinfo(address_of(peer), sizeof(peer->address), peer->text, sizeof(peer->text), NULL,
		    0, NI_NUMERICHOST);
	if (err) {
		find_route_error(doctor, peer, err);
		return false;
	}
	if (only && strcmp(only, device))
		return doctor_error("route", "device-does-not-route", only,
				    "%1$s does not lead to %2$s; %3$s does.\n"
				    "The host has several RDMA devices, and its routes choose among them.\n"
				    "Use %3$s, or let ibchan_device_open_for() find the device.",
				    only, peer->text, device);
	doctor_fact("route", peer->text, "over %s port %u", device, peer->route.port);
	return true;
}

/* --- does the path carry what the port will send? --- */

/*
 * Packets travel with IP, UDP, and at most these of InfiniBand: BTH, RETH, immediate, ICRC. A
 * channel takes the smaller MTU of both ends: whether that crosses, messages tell. InfiniBand has a
 * subnet manager for this, iWARP has TCP.
 */
static void check_path(const struct peer *peer)
{
	const size_t headers = (peer->address.ss_family == AF_INET ? 20 : 40) + 8 + 12 + 16 + 4 + 4;
	const __u32 mtu = peer->route.mtu;
	int err = probe_path(&peer->address, mtu + headers);
	char or_smaller[64] = "";
	__u32 fits = mtu / 2;

	if (!err)
		doctor_fact("path", peer->text, "carries packets of %zu bytes", mtu + headers);
	if (err != -EMSGSIZE)
		return;
	while (fits >= 256 && probe_path(&peer->address, fits + headers))
		fits /= 2;
	if (fits >= 256)
		snprintf(or_smaller, sizeof(or_smaller),
			 "; or build channels with mtu %u, which fits", fits);
	doctor_say(SEVERITY_WARNING, "path", "mtu-mismatch", peer->text,
		   "%s sends messages in packets of %u bytes, %zu with their headers; the path to the peer loses those.\n"
		   "The MTU of the peer's network device, or of a switch between, is smaller than here.\n"
		   "Set the same MTU everywhere: ip link set NETDEV mtu BYTES%s.",
		   peer->route.device, mtu, mtu + headers, or_smaller);
}

/* --- a peer that does not answer --- */

void explain_silence(const struct peer *peer)
{
	const struct sockaddr_storage *address = &peer->address;
	static const char or_arp[] = {
		"; or, where the peer has several network devices in one network, another of them answers ARP for this address, and the packets come to the wrong RDMA device"
	};
	static const char and_arp[] = {
		"; on the peer: sysctl net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2, and here: ip neighbour flush all"
	};
	const bool ipv4 = address->ss_family == AF_INET;

	if (probe(address, IPPROTO_UDP, ROCE_PORT, PROBE_SHORT) == -ECONNREFUSED)
		doctor_error("path", "roce-absent", peer->text,
			     "The peer is there, but refuses UDP port %u, which RoCE v2 travels by.\n"
			     "No RoCE device is over the network device with this address, or a firewall rejects the port.\n"
			     "On the peer: ibchan doctor; rdma link; for soft-RoCE: rdma link add rxe0 type rxe netdev NETDEV; nft list ruleset.",
			     ROCE_PORT);
	else if (probe_is_alive(address))
		doctor_error("path", "udp-4791-blocked", peer->text,
			     "The peer is there, but nothing comes back from UDP port %1$u, which RoCE v2 travels by.\n"
			     "A firewall on the peer, here or between drops that port%2$s.\n"
			     "nft list ruleset at both ends; allow UDP port %1$u both ways; in a cloud, the security group as well%3$s.",
			     ROCE_PORT, ipv4 ? or_arp : "", ipv4 ? and_arp : "");
	else
		doctor_error("path", "peer-silent", peer->text,
			     "Nothing at all comes back: no echo, no TCP, no UDP.\n"
			     "The peer is off or cut off, or a firewall drops everything from here.\n"
			     "Look at the peer itself; then ping %s, and the firewalls at both ends.",
			     peer->text);
}

void check_peer(const struct doctor *doctor, struct peer *peer)
{
	const struct port *port = doctor->ports, *end = port + doctor->port_count;

	if (!check_route(doctor, peer))
		return;
	while (port < end && (strcmp(port->device, peer->route.device) ||
			      port->number != peer->route.port))
		port++;
	if (port < end && port_is_deaf(port)) {
		find_deaf(port, SEVERITY_ERROR);
		return;
	}
	/* Ordinary packets have to be told the way, too. */
	if (port < end && port->netdev.vrf[0])
		probe_by(port->netdev.vrf);
	peer->roce = port < end && port->ethernet && !port->iwarp;
	if (peer->roce)
		check_path(peer);
	check_channel(doctor, peer);
}
