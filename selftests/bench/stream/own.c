// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>

#include <ibchan.h>

#include "stream.h"

static struct ibchan_server *server;
static struct ibchan_channel *ends[ENDS];

static void *dial(void *port)
{
	if (ibchan_dial(HOST, port, NULL, &ends[CLIENT], NULL))
		ends[CLIENT] = NULL;
	return NULL;
}

static int own_open(void)
{
	struct sockaddr_storage address;
	pthread_t thread;
	char port[8];
	int err = ibchan_serve(HOST, NULL, NULL, &server, NULL);

	if (err)
		return err;
	ibchan_server_address(server, &address);
	snprintf(port, sizeof(port), "%u", ntohs(((struct sockaddr_in *)&address)->sin_port));
	err = -pthread_create(&thread, NULL, dial, port);
	if (err)
		return err;
	err = ibchan_take(server, IBCHAN_TIMEOUT_NEVER, &ends[SERVER], NULL);
	pthread_join(thread, NULL);
	return err || ends[CLIENT] ? err : -ECONNREFUSED;
}

static int own_send(enum end end, const void *bytes, size_t length)
{
	return ibchan_send_bytes(ends[end], bytes, length, IBCHAN_TIMEOUT_NEVER, NULL);
}

static int own_receive(enum end end, void *bytes, size_t length)
{
	ssize_t received = ibchan_receive_bytes(ends[end], bytes, length, IBCHAN_TIMEOUT_NEVER,
						NULL);

	if (received < 0)
		return (int)received;
	return (size_t)received == length ? 0 : -EPROTO;
}

static int own_close(void)
{
	int client = ibchan_channel_close(ends[CLIENT]);
	int taken = ibchan_channel_close(ends[SERVER]);
	int err = ibchan_server_close(server);

	return client ? client : taken ? taken : err;
}

const struct way own_way = {
	.open = own_open, .send = own_send, .receive = own_receive, .close = own_close,
};
