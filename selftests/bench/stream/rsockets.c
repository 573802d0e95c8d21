// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>

#include <rdma/rsocket.h>

#include "stream.h"

static int ends[ENDS];

static void *ask(void *arg)
{
	const struct sockaddr_in *address = arg;

	if (rconnect(ends[CLIENT], (const struct sockaddr *)address, sizeof(*address)))
		ends[CLIENT] = -1;
	return NULL;
}

static int listen_at(struct sockaddr_in *address)
{
	socklen_t length = sizeof(*address);
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0)
		return -errno;
	inet_pton(AF_INET, HOST, &address->sin_addr);
	address->sin_family = AF_INET;
	if (rbind(fd, (const struct sockaddr *)address, length) || rlisten(fd, 1) ||
	    rgetsockname(fd, (struct sockaddr *)address, &length))
		return -errno;
	return fd;
}

/* A message goes when it is sent, not with the next one. */
static int go_at_once(int fd)
{
	const int one = 1;

	return rsetsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) ? -errno : 0;
}

static int rsockets_open(void)
{
	struct sockaddr_in address = { .sin_port = 0 };
	pthread_t thread;
	int err, listener = listen_at(&address);

	if (listener < 0)
		return listener;
	ends[CLIENT] = rsocket(AF_INET, SOCK_STREAM, 0);
	if (ends[CLIENT] < 0)
		return -errno;
	err = -pthread_create(&thread, NULL, ask, &address);
	if (err)
		return err;
	ends[SERVER] = raccept(listener, NULL, NULL);
	err = ends[SERVER] < 0 ? -errno : 0;
	pthread_join(thread, NULL);
	rclose(listener);
	if (err || ends[CLIENT] < 0)
		return err ? err : -ECONNREFUSED;
	err = go_at_once(ends[CLIENT]);
	return err ? err : go_at_once(ends[SERVER]);
}

static int rsockets_send(enum end end, const void *bytes, size_t length)
{
	const char *at = bytes;
	ssize_t sent;

	for (; length; length -= (size_t)sent, at += sent) {
		sent = rsend(ends[end], at, length, 0);
		if (sent < 0)
			return -errno;
	}
	return 0;
}

static int rsockets_receive(enum end end, void *bytes, size_t length)
{
	ssize_t received = rrecv(ends[end], bytes, length, MSG_WAITALL);

	if (received < 0)
		return -errno;
	return (size_t)received == length ? 0 : -EPROTO;
}

static int rsockets_close(void)
{
	rclose(ends[CLIENT]);
	rclose(ends[SERVER]);
	return 0;
}

const struct way rsockets_way = {
	.open = rsockets_open, .send = rsockets_send, .receive = rsockets_receive,
	.close = rsockets_close,
};
