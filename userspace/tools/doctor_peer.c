// SPDX-License-Identifier: LGPL-2.1-or-later
/* ibchan doctor: from here to the peer: the route, and ordinary packets. */
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <sys/socket.h>
#include <sys/time.h>
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

/* --- packets that a user without privileges can send to the peer, and its answers --- */

/* RoCE v2 travels in UDP to this port. */
#define ROCE_PORT	4791

/* Usually no program has it: the port of traceroute. */
#define CLOSED_PORT	33434

/* A host tells one peer at most once a second that a port is closed, after the first few. */
#define TRIES		2

/* How long an answer may take: longer than refusals are held back. */
static const struct timeval patience = { .tv_sec = 1, .tv_usec = 200000 };

/* Of IP packets: the shortest that is worth asking with; no port sends longer ones than 4096. */
#define SHORT_BYTES	64
#define MOST_BYTES	8192

#define UDP_HEADER	8

static size_t ip_header(const struct peer *peer)
{
	return peer->route.peer.ss_family == AF_INET ? 20 : 40;
}

/* Ordinary packets have to be told the way, too, where the kernel allows it. */
static int make_socket(const struct peer *peer, int type, int protocol)
{
	int fd = socket(peer->route.peer.ss_family, type | SOCK_CLOEXEC, protocol);

	if (fd >= 0 && peer->vrf)
		setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, peer->vrf, strlen(peer->vrf));
	return fd;
}

/* A port has the same place in the addresses of both families. */
static struct sockaddr_storage with_port(const struct sockaddr_storage *address,
					 unsigned short port)
{
	struct sockaddr_storage with = *address;

	((struct sockaddr_in *)&with)->sin_port = htons(port);
	return with;
}

/*
 * Sends one packet, and takes the first one that comes back. A connected socket gets the errors
 * that are about its peer. Packets are to stay whole, whatever is believed of the path.
 */
static int ask(const struct peer *peer, int protocol, unsigned short port, size_t length)
{
	const bool v4 = peer->route.peer.ss_family == AF_INET, echo = protocol == IPPROTO_ICMP;
	const struct sockaddr_storage to = with_port(&peer->route.peer, echo ? 0 : port);
	const int whole = IP_PMTUDISC_PROBE;	/* the number of IPv6 is the same */
	__u8 data[MOST_BYTES] = { 0 };
	int err = 0, fd;

	/* The header of an echo is part of the data; the kernel fills in its number and sum. */
	if (echo)
		data[0] = v4 ? ICMP_ECHO : ICMP6_ECHO_REQUEST;
	length -= ip_header(peer) + (echo ? 0 : UDP_HEADER);
	if (length > sizeof(data))
		return -EMSGSIZE;
	fd = make_socket(peer, protocol == IPPROTO_TCP ? SOCK_STREAM : SOCK_DGRAM,
			 echo && !v4 ? IPPROTO_ICMPV6 : protocol);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &whole, sizeof(whole));
	setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &whole, sizeof(whole));
	if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) ||
	    (protocol != IPPROTO_TCP && (send(fd, data, length, MSG_NOSIGNAL) < 0 ||
					 recv(fd, NULL, 0, MSG_TRUNC) < 0)))
		err = errno == EAGAIN || errno == EINPROGRESS ? -ETIMEDOUT : -errno;
	close(fd);
	return err;
}

/*
 * Asks for an echo (IPPROTO_ICMP, for IPv6 as well), or a @port of UDP or TCP, by an IP packet of
 * @length bytes that stays whole. Returns 0: an answer came; -ECONNREFUSED: the host is there, and
 * no program has that port; -ETIMEDOUT: nothing came in time, but TCP asks again by itself; others:
 * this process may not ask, or there is no way for such a packet.
 */
static int probe(const struct peer *peer, int protocol, unsigned short port, size_t length)
{
	int tries = 0, err;

	do {
		err = ask(peer, protocol, port, length);
	} while (err && err != -ECONNREFUSED && protocol != IPPROTO_TCP && ++tries < TRIES);
	return err;
}

bool peer_is_alive(const struct peer *peer)
{
	int err;

	if (!probe(peer, IPPROTO_ICMP, 0, SHORT_BYTES))
		return true;
	err = probe(peer, IPPROTO_TCP, CLOSED_PORT, SHORT_BYTES);
	return !err || err == -ECONNREFUSED ||
	       probe(peer, IPPROTO_UDP, CLOSED_PORT, SHORT_BYTES) == -ECONNREFUSED;
}

bool address_is_lost(const struct peer *peer, const struct sockaddr_storage *own)
{
	const struct sockaddr_storage address = with_port(own, 0);
	int fd = make_socket(peer, SOCK_DGRAM, 0);
	bool is_lost;

	if (fd < 0)
		return false;
	is_lost = bind(fd, (const struct sockaddr *)&address, sizeof(address)) &&
		  errno == EADDRNOTAVAIL;
	close(fd);
	return is_lost;
}

/* --- does the path carry what the port will send? --- */

/*
 * Packets travel with IP, UDP, and at most these of InfiniBand: BTH, RETH, immediate, ICRC. A
 * channel takes the smaller MTU of both ends: whether that crosses, messages tell. InfiniBand has a
 * subnet manager for this, iWARP has TCP.
 */
static void check_path(const struct peer *peer)
{
	const size_t headers = ip_header(peer) + UDP_HEADER + 12 + 16 + 4 + 4;
	const bool echoes = !probe(peer, IPPROTO_ICMP, 0, SHORT_BYTES);
	const int protocol = echoes ? IPPROTO_ICMP : IPPROTO_UDP;
	const int answer = echoes ? 0 : -ECONNREFUSED;
	const __u32 mtu = peer->route.mtu;
	__u32 fits = mtu;

	/* A peer that answers not even short packets does not tell. */
	if (!echoes && probe(peer, protocol, CLOSED_PORT, SHORT_BYTES) != answer)
		return;
	while (fits >= 256 && probe(peer, protocol, CLOSED_PORT, fits + headers) != answer)
		fits /= 2;
	if (fits == mtu)
		doctor_fact("path", peer->text, "carries packets of %zu bytes", mtu + headers);
	else
		doctor_say(SEVERITY_WARNING, "path", "mtu-mismatch", peer->text,
			   "%s sends messages in packets of %u bytes, %zu with their headers; the path to the peer loses those.\n"
			   "The MTU of the peer's network device, or of a switch between, is smaller than here.\n"
			   "Set the same MTU everywhere: ip link set NETDEV mtu BYTES%s.",
			   peer->route.device, mtu, mtu + headers, fits < 256 ? "" :
			   words("; or build channels with mtu %u, which fits", fits));
}

bool explain_silence(const struct peer *peer)
{
	const bool ipv4 = peer->route.peer.ss_family == AF_INET;

	if (probe(peer, IPPROTO_UDP, ROCE_PORT, SHORT_BYTES) == -ECONNREFUSED)
		return doctor_error("path", "roce-absent", peer->text,
				    "The peer is there, but refuses UDP port %u, which RoCE v2 travels by.\n"
				    "No RoCE device is over the network device with this address, or a firewall rejects the port.\n"
				    "On the peer: ibchan doctor; rdma link; for soft-RoCE: rdma link add rxe0 type rxe netdev NETDEV; nft list ruleset.",
				    ROCE_PORT);
	if (!peer_is_alive(peer))
		return doctor_error("path", "peer-silent", peer->text,
				    "Nothing at all comes back: no echo, no TCP, no UDP.\n"
				    "The peer is off or cut off, or a firewall drops everything from here.\n"
				    "Look at the peer itself; then ping %s, and the firewalls at both ends.",
				    peer->text);
	return doctor_error("path", "udp-4791-blocked", peer->text,
			    "The peer is there, but nothing comes back from UDP port %1$u, which RoCE v2 travels by.\n"
			    "A firewall on the peer, here or between drops that port%2$s.\n"
			    "nft list ruleset at both ends; allow UDP port %1$u both ways; in a cloud, the security group as well%3$s.",
			    ROCE_PORT, !ipv4 ? "" :
			    "; or, where the peer has several network devices in one network, another of them answers ARP for this address, and the packets come to the wrong RDMA device",
			    !ipv4 ? "" :
			    "; on the peer: sysctl net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2, and here: ip neighbour flush all");
}

bool check_peer(struct doctor *doctor)
{
	const struct port *port = doctor->ports, *end = port + doctor->port_count;
	struct peer *peer = &doctor->peer;

	if (!check_route(doctor))
		return false;
	while (port < end && (strcmp(port->device, peer->route.device) ||
			      port->number != peer->route.port))
		port++;
	if (port == end)
		return true;
	if (port->deaf)
		return find_deaf(port, SEVERITY_ERROR);
	peer->vrf = port->vrf[0] ? port->vrf : NULL;
	peer->roce = port->ethernet && !port->iwarp;
	if (peer->roce)
		check_path(peer);
	return true;
}
