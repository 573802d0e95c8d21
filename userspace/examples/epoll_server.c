// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A server that sleeps in one place: new clients, what happens to their channels, and the
 * completions of all of them come by epoll. It sends back what it gets, reversed. Works
 * are posted by wr_id, and the server never waits for a single one.
 *
 *	epoll_server -n CLIENTS		serves that many, then ends
 *	epoll_server HOST		one of them; an IP address of the server
 */
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common.h"
#include "endpoints.h"

#define SLOTS		4	/* messages of one client that are under way here */
#define SIZE		128
#define MAX_CLIENTS	14	/* they share a cq of 64 */
#define ROUNDS		50

/* What there is to look at. */
enum { REQUESTS, SOCKET, EVENTS, COMPLETIONS };

struct client {
	struct ibchan_channel *channel;
	struct ibchan_mr *mr;
	char text[SLOTS][SIZE];
};

struct server {
	struct side side;
	int epoll;
	int socket;
	int wanted;
	int accepted;
	int gone;
	struct client clients[MAX_CLIENTS];
};

static void watch(struct server *server, int fd, int what)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = (__u32)what };

	if (epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event))
		err(1, "epoll_ctl");
}

/* A slot is either being received into or being sent from, never both. */
static void post(struct server *server, __u64 wr_id, __u8 opcode, __u32 bytes)
{
	struct client *client = &server->clients[wr_id / SLOTS];
	struct ibchan_submit_wr wr = {
		.channel = ibchan_channel_handle(client->channel),
		.opcode = opcode,
		.wr_id = wr_id,
		.num_sge = 1,
		.sge = ibchan_sge_new(client->mr, wr_id % SLOTS * SIZE, bytes),
	};
	int ret = ibchan_post(server->side.context, &wr, 1, NULL, &error);

	if (ret != -ESHUTDOWN)	/* of a broken channel its event tells */
		must("post", ret);
}

/* The receives first: a client may send as soon as it is connected. */
static struct ibchan_prepared *client_prepare(struct server *server)
{
	int index = server->accepted++;
	struct client *client = &server->clients[index];
	struct ibchan_prepared *prepared = side_prepare(&server->side);

	must("memory", ibchan_mr_reg_local(server->side.pd, client->text, sizeof(client->text),
					   &client->mr, &error));
	client->channel = ibchan_prepared_channel(prepared);
	ibchan_channel_set_priv(client->channel, client);
	for (int i = 0; i < SLOTS; i++)
		post(server, index * SLOTS + i, IBCHAN_OP_RECV, SIZE);
	return prepared;
}

/* A client that has given up before its channel was connecting leaves its place to another. */
static void client_forget(struct server *server)
{
	struct client *client = &server->clients[--server->accepted];

	must("close", ibchan_channel_close(client->channel));
	must("deregister", ibchan_mr_dereg(client->mr));
	client->channel = NULL;
}

/* Returns before the channel is connected; until it is, there is nothing to do for us. */
static void client_accept(struct server *server, struct ibchan_request *request)
{
	struct ibchan_request_info info;
	struct ibchan_channel *channel;
	int ret;

	ibchan_request_query(request, &info);
	if (server->accepted == server->wanted ||
	    strcmp(info.device, ibchan_device_name(server->side.device))) {
		ibchan_request_reject(request, NULL, 0, NULL);
		return;
	}
	ret = ibchan_request_accept(request, client_prepare(server), NULL, &channel, &error);
	if (!ret)
		return;
	ibchan_request_reject(request, NULL, 0, NULL);
	client_forget(server);
	if (!gave_up(ret))
		must("accept", ret);
}

static void requests(struct server *server)
{
	struct ibchan_request *request;

	/* A client that has given up meanwhile is not there any more. */
	if (!ibchan_request_take(server->side.listener, 0, &request, NULL))
		client_accept(server, request);
}

/* With -e. A server in earnest would not wait for the client's endpoint here. */
static void client_meet(struct server *server)
{
	int tcp = tcp_accept(server->socket);

	if (server->accepted < server->wanted && !endpoints_connect(client_prepare(server), tcp))
		client_forget(server);
	close(tcp);
}

/*
 * Once the channel is closed, its works have ended and the memory is ours again. The
 * completions of the receives that waited for more come later, and their channel is none any more.
 */
static void client_gone(struct server *server, struct client *client)
{
	must("close", ibchan_channel_close(client->channel));
	must("deregister", ibchan_mr_dereg(client->mr));
	client->channel = NULL;
	server->gone++;
}

/* A channel breaks when its client has closed it, and when that has died. */
static void events(struct server *server)
{
	struct ibchan_event event;

	if (ibchan_event_take(server->side.context, &event, NULL) ||
	    !(event.events & IBCHAN_EVENT_BROKEN))
		return;
	client_gone(server, ibchan_channel_priv(event.channel));
}

static void reverse(char *text, __u32 length)
{
	for (__u32 i = 0; i < length / 2; i++) {
		char c = text[i];

		text[i] = text[length - 1 - i];
		text[length - 1 - i] = c;
	}
}

/*
 * An empty message is a farewell. What fails breaks its channel, which is an event. What was
 * polled together with a farewell may be of the client that is gone: the send before it, say.
 */
static void completed(struct server *server, const struct ibchan_cqe *done)
{
	struct client *client = &server->clients[done->wr_id / SLOTS];

	if (!client->channel || done->error)
		return;
	if (done->opcode == IBCHAN_OP_SEND) {
		post(server, done->wr_id, IBCHAN_OP_RECV, SIZE);
	} else if (done->bytes) {
		reverse(client->text[done->wr_id % SLOTS], done->bytes);
		post(server, done->wr_id, IBCHAN_OP_SEND, done->bytes);
	} else {
		client_gone(server, client);
	}
}

static void completions(struct server *server)
{
	struct ibchan_cqe done[16];
	int n = must("poll", ibchan_cq_poll(server->side.cq, done, 16));

	for (int i = 0; i < n; i++)
		completed(server, &done[i]);
}

static void handle(struct server *server, int what)
{
	if (what == REQUESTS)
		requests(server);
	else if (what == SOCKET)
		client_meet(server);
	else if (what == EVENTS)
		events(server);
	else
		completions(server);
}

static void listen_to(struct server *server, const struct options *options)
{
	if (options->endpoints) {
		server->socket = tcp_listen(options);
		watch(server, server->socket, SOCKET);
	} else {
		watch(server, ibchan_listener_fd(server->side.listener), REQUESTS);
		client_accept(server, server->side.request);
	}
}

static void serve(struct server *server, const struct options *options)
{
	struct epoll_event event;

	check("that many clients do not fit", options->clients <= MAX_CLIENTS);
	server->wanted = options->clients;
	server->epoll = epoll_create1(EPOLL_CLOEXEC);
	watch(server, ibchan_context_fd(server->side.context), EVENTS);
	watch(server, must("descriptor", ibchan_cq_fd(server->side.cq)), COMPLETIONS);
	listen_to(server, options);
	while (server->gone < server->wanted)
		if (epoll_wait(server->epoll, &event, 1, -1) == 1)
			handle(server, (int)event.data.u32);
	printf("%d clients served\n", server->gone);
}

static void be_client(struct side *side, const struct options *options)
{
	static char text[SIZE];
	struct ibchan_mr *mr;

	must("memory", ibchan_mr_reg_local(side->pd, text, SIZE, &mr, &error));
	side_connect(side, options, NULL, NULL, 0);
	for (int i = 0; i < ROUNDS; i++) {
		char sent[SIZE];
		int length = snprintf(text, SIZE, "message %d to be reversed", i);
		struct ibchan_submit_sge sge = ibchan_sge_new(mr, 0, length);

		memcpy(sent, text, SIZE);
		reverse(sent, length);
		must("send", ibchan_send(side->channel, &sge, 1, &error));
		must("receive", ibchan_receive(side->channel, &sge, 1, NULL, &error));
		check("that is not what was sent", !memcmp(sent, text, length));
	}
	printf("%d messages came back, the last as: %.*s\n", ROUNDS, (int)strlen(text), text);
	side_part(side, options);
}

int main(int argc, char **argv)
{
	static struct server server;
	struct options options;

	options_read(&options, argc, argv);
	side_open(&server.side, &options);
	if (options.host)
		be_client(&server.side, &options);
	else
		serve(&server, &options);
	return ibchan_context_close(server.side.context);
}
