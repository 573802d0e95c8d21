// SPDX-License-Identifier: GPL-2.0-only
/* Two sides on one device, one of which asks the other by its address. */
#include <linux/string.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>

#include "meeting.h"

static void party_connected(void *priv)
{
	struct party *party = priv;
	struct world *w = party->side->world;

	expect(w, in_softirq() && !in_hardirq());
	party->connected_as = atomic_inc_return(&party->told);
	if (party->at_connected)
		party->at_connected(party);
	/* Whoever sees the count sees the rest. */
	smp_mb__before_atomic();
	atomic_inc(&party->connected);
	wake_up(&w->wait);
}

static void party_broken(void *priv, int error)
{
	struct party *party = priv;
	struct world *w = party->side->world;

	party->broken_as = atomic_inc_return(&party->told);
	party->error = error;
	if (party->at_broken)
		party->at_broken(party);
	/* As above. */
	smp_mb__before_atomic();
	atomic_inc(&party->broken);
	wake_up(&w->wait);
}

/* Nobody keeps it, and nobody expects it to work. */
struct ibchan_channel *party_try_build(struct party *party, struct side *side,
				       const struct ibchan_params *params)
{
	struct ibchan_params chosen = *params;
	struct ibchan_build build;

	side_build_init(side, &build);
	build.connected = party_connected;
	build.broken = party_broken;
	build.priv = party;
	party->side = side;
	return ibchan_channel_build(&build, &chosen, NULL);
}

struct ibchan_channel *party_build(struct party *party, struct side *side,
				   const struct ibchan_params *params)
{
	struct ibchan_channel *ch = party_try_build(party, side, params);

	if (!expect_eq(side->world, PTR_ERR_OR_ZERO(ch), 0))
		return NULL;
	world_keep(side->world, THING_CHANNEL, ch);
	return ch;
}

static void fill_address(struct sockaddr_storage *address, const struct in6_addr *gid)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)address;
	struct sockaddr_in *four = (struct sockaddr_in *)address;

	*address = (struct sockaddr_storage) {};
	if (ipv6_addr_v4mapped(gid)) {
		four->sin_family = AF_INET;
		four->sin_addr.s_addr = gid->s6_addr32[3];
	} else {
		six->sin6_family = AF_INET6;
		six->sin6_addr = *gid;
	}
}

/* The one that the device's channels have, with port 0. */
int device_address(struct world *w, struct ibchan_device *dev,
		   struct sockaddr_storage *address)
{
	struct ibchan_port_attr port;
	int ret = ibchan_port_query(dev, 1, &init_net, &port);

	if (!expect_eq(w, ret, 0))
		return ret;
	fill_address(address, (struct in6_addr *)port.gid);
	return 0;
}

static void listener_ready(void *priv)
{
	struct meeting *m = priv;

	atomic_inc(&m->ready);
	wake_up(&m->w->wait);
}

/* At @m->address. */
int meeting_listen(struct meeting *m, struct ibchan_device *only)
{
	struct ibchan_listener_init init = {
		.net = &init_net, .ready = listener_ready, .priv = m, .dev = only,
		.address = (struct sockaddr *)&m->address,
	};
	struct ibchan_listener *listener;

	listener = ibchan_listener_create(&init, NULL);
	if (!expect_eq(m->w, PTR_ERR_OR_ZERO(listener), 0))
		return PTR_ERR(listener);
	world_keep(m->w, THING_LISTENER, listener);
	m->listener = listener;
	ibchan_listener_address(listener, &m->address);
	return 0;
}

struct meeting *meeting_new(struct world *w)
{
	struct meeting *m = world_alloc(w, sizeof(*m));

	m->w = w;
	pair_defaults(&m->init);
	m->init.loop = 1;
	return m;
}

/* The channels of world_sides() are there as well, and prepared. */
int meeting_begin(struct meeting *m)
{
	struct side *a = &m->w->side[0], *b = &m->w->side[1];

	if (world_sides(m->w, &m->init))
		return -ENODEV;
	side_close(a);
	side_close(b);
	a->ch = party_build(&m->asking, a, &m->init.params);
	b->ch = party_build(&m->asked, b, &m->init.params);
	if (!a->ch || !b->ch || device_address(m->w, a->dev, &m->address))
		return -ENODEV;
	return meeting_listen(m, NULL);
}

struct meeting *meeting_default(struct world *w)
{
	struct meeting *m = meeting_new(w);

	return meeting_begin(m) ? NULL : m;
}

int meeting_ask(struct meeting *m, const void *data, u32 length)
{
	const struct ibchan_connect connect = {
		.peer = (struct sockaddr *)&m->address, .data = data, .length = length,
	};

	return ibchan_channel_connect(m->asking.side->ch, &connect, NULL);
}

/* Waits for one. */
struct ibchan_request *meeting_take(struct meeting *m)
{
	struct ibchan_request *request;

	expect_soon(m->w, ibchan_listener_waiting(m->listener) > 0);
	request = ibchan_request_take(m->listener);
	if (!expect_eq(m->w, PTR_ERR_OR_ZERO(request), 0))
		return NULL;
	world_keep(m->w, THING_REQUEST, request);
	return request;
}

int meeting_accept(struct meeting *m, struct ibchan_request *request, const void *data,
		   u32 length)
{
	const struct ibchan_connect connect = { .data = data, .length = length };
	int ret;

	ret = ibchan_request_accept(request, m->asked.side->ch, &connect, NULL);
	if (!ret)
		world_forget(m->w, THING_REQUEST, request);
	return ret;
}

int party_outcome(struct party *party)
{
	return ibchan_channel_connect_wait(party->side->ch, (s64)patience * NSEC_PER_MSEC);
}

/* Both sides, to the end. */
int meeting_connect(struct meeting *m)
{
	struct ibchan_request *request;
	int ret = meeting_ask(m, NULL, 0);

	if (!expect_eq(m->w, ret, 0))
		return ret;
	request = meeting_take(m);
	if (!request)
		return -ENOENT;
	ret = meeting_accept(m, request, NULL, 0);
	ret = ret ?: party_outcome(&m->asking) ?: party_outcome(&m->asked);
	expect_eq(m->w, ret, 0);
	return ret;
}

/* So often it has been told, and told nothing else. */
void party_expect(struct party *party, int connected, int broken, int error)
{
	struct world *w = party->side->world;

	expect_soon(w, atomic_read(&party->connected) == connected);
	expect_soon(w, atomic_read(&party->broken) == broken);
	expect_eq(w, atomic_read(&party->told), connected + broken);
	expect_eq(w, party->connected_as, connected);
	expect_eq(w, party->broken_as, broken ? connected + 1 : 0);
	expect_eq(w, party->error, error);
}

void meeting_close_listener(struct meeting *m)
{
	world_forget(m->w, THING_LISTENER, m->listener);
	ibchan_listener_close(m->listener);
	m->listener = NULL;
}
