// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A server that sleeps in one place: ibchan_next() tells of new clients, of the completions of
 * all of them, and of the end of each. It sends back what it gets, reversed. Works are posted by
 * wr_id, and the server never waits for a single one.
 *
 *	epoll_server -n CLIENTS		serves that many, then ends
 *	epoll_server HOST		one of them; an IP address of the server
 */
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common.h"

#define SLOTS		4	/* messages of one client that are under way here */
#define SIZE		128
#define MAX_CLIENTS	14	/* they share a cq of 64 */
#define ROUNDS		50

struct client {
	struct ibchan_channel *channel;
	struct ibchan_mr *mr;
	char text[SLOTS][SIZE];
};

struct server {
	struct side side;
	int socket;
	int wanted;
	int accepted;
	int gone;
	struct client clients[MAX_CLIENTS];
};

/* A slot is either being received into or being sent from, never both. */
static void post(struct client *client, __u64 slot, __u8 opcode, __u32 bytes)
{
	struct ibchan_submit_wr wr = {
		.channel = ibchan_channel_handle(client->channel),
		.opcode = opcode,
		.wr_id = slot,
		.num_sge = 1,
		.sge = ibchan_sge_new(client->mr, slot * SIZE, bytes),
	};
	int ret = ibchan_post(ibchan_channel_context(client->channel), &wr, 1, NULL, &error);

	if (ret != -ESHUTDOWN)	/* a broken channel is told of */
		must("post", ret);
}

/* The receives first: a client may send as soon as it is connected. */
static struct ibchan_prepared *client_prepare(struct server *server)
{
	struct client *client = &server->clients[server->accepted++];
	struct ibchan_prepared *prepared = side_prepare(&server->side);

	must("memory", ibchan_mr_reg_local(server->side.pd, client->text, sizeof(client->text),
					   &client->mr, &error));
	client->channel = ibchan_prepared_channel(prepared);
	ibchan_channel_set_priv(client->channel, client);
	for (int i = 0; i < SLOTS; i++)
		post(client, i, IBCHAN_OP_RECV, SIZE);
	return prepared;
}

/* Once the channel is closed, its works have ended, and nothing of it is told any more. */
static void client_end(struct client *client)
{
	must("close", ibchan_channel_close(client->channel));
	must("deregister", ibchan_mr_dereg(client->mr));
}

/* A client that has given up before its channel was connecting leaves its place to another. */
static void client_forget(struct server *server)
{
	client_end(&server->clients[--server->accepted]);
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

/* With -e. A server in earnest would not wait for the client's endpoint here. */
static void client_meet(struct server *server)
{
	int tcp = tcp_accept(server->socket);

	if (server->accepted < server->wanted && !endpoints_connect(client_prepare(server), tcp))
		client_forget(server);
	close(tcp);
}

static void client_gone(struct server *server, struct client *client)
{
	client_end(client);
	server->gone++;
}

static void reverse(char *text, __u32 length)
{
	for (__u32 i = 0; i < length / 2; i++) {
		char c = text[i];

		text[i] = text[length - 1 - i];
		text[length - 1 - i] = c;
	}
}

/* An empty message is a farewell. A failed work breaks its channel, whose end is told. */
static void completed(struct server *server, struct client *client,
		      const struct ibchan_cqe *done)
{
	if (done->error)
		return;
	if (done->opcode == IBCHAN_OP_SEND) {
		post(client, done->wr_id, IBCHAN_OP_RECV, SIZE);
	} else if (done->bytes) {
		reverse(client->text[done->wr_id], done->bytes);
		post(client, done->wr_id, IBCHAN_OP_SEND, done->bytes);
	} else {
		client_gone(server, client);
	}
}

/* A channel ends when its client has closed it, and when that has died. */
static void handle(struct server *server, const struct ibchan_happening *happening)
{
	if (happening->kind == IBCHAN_NEXT_REQUEST)
		client_accept(server, happening->request);
	else if (happening->kind == IBCHAN_NEXT_COMPLETION)
		completed(server, happening->priv, &happening->completion);
	else if (happening->kind == IBCHAN_NEXT_ENDED)
		client_gone(server, happening->priv);
}

/* With -e, clients come by TCP: the descriptor goes into the program's own poll(). */
static void await_any(struct server *server)
{
	const int fd = must("descriptor", ibchan_next_fd(server->side.context));
	struct pollfd fds[] = {
		{ .fd = fd, .events = POLLIN },
		{ .fd = server->socket, .events = POLLIN },
	};

	if (poll(fds, 2, -1) > 0 && fds[1].revents)
		client_meet(server);
}

static void listen_to(struct server *server, const struct options *options)
{
	must("watch", ibchan_cq_watch(server->side.cq, &error));
	if (options->endpoints) {
		server->socket = tcp_listen(options);
	} else {
		must("watch", ibchan_listener_watch(server->side.listener, &error));
		client_accept(server, server->side.request);
	}
}

static void serve(struct server *server, const struct options *options)
{
	const __s64 timeout_ns = options->endpoints ? 0 : IBCHAN_TIMEOUT_NEVER;
	struct ibchan_happening happening;

	check("that many clients do not fit", options->clients <= MAX_CLIENTS);
	server->wanted = options->clients;
	listen_to(server, options);
	while (server->gone < server->wanted) {
		if (!ibchan_next(server->side.context, timeout_ns, &happening, &error))
			handle(server, &happening);
		else if (options->endpoints && error.code == -EAGAIN)
			await_any(server);
		else if (error.code != -EINTR)
			must("next", error.code);
	}
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
		must("send", ibchan_send(side->channel, &sge, 1, IBCHAN_TIMEOUT_NEVER, &error));
		must("receive", ibchan_receive(side->channel, &sge, 1,
					       IBCHAN_TIMEOUT_NEVER, NULL, &error));
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
