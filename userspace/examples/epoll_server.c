// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A server that sleeps in one place: ibchan_next() tells of new clients, of the completions of
 * all of them, and of the end of each. It sends back what it gets, in capitals. Works are posted by
 * wr_id, and the server never waits for a single one.
 *
 *	epoll_server -n CLIENTS		serves that many, then ends
 *	blocking HOST			one of them; an IP address of the server
 */
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common.h"

#define SLOTS		4	/* messages of one client that are under way here */
#define SIZE		128
#define MAX_CLIENTS	14	/* they share a cq of 64 */

static struct client {
	struct ibchan_channel *channel;
	struct ibchan_mr *mr;
	char text[SLOTS][SIZE];
} clients[MAX_CLIENTS];

static struct side side;
static int accepted, gone;	/* clients so far */

static void posted(int ret)
{
	if (ret != -ESHUTDOWN)	/* a broken channel is told of */
		must("post", ret);
}

/* The receives first: a client may send as soon as it is connected. */
static struct ibchan_prepared *client_prepare(void)
{
	struct client *client = &clients[accepted++];
	struct ibchan_prepared *prepared;

	must("prepare", ibchan_builder_prepare(&side.builder, &prepared, &error));
	must("memory", ibchan_mr_reg_local(side.pd, client->text, sizeof(client->text),
					   &client->mr, &error));
	client->channel = ibchan_prepared_channel(prepared);
	ibchan_channel_set_priv(client->channel, client);
	for (int i = 0; i < SLOTS; i++)
		posted(ibchan_post_receive(client->channel, client->mr, i * SIZE, SIZE, i, &error));
	return prepared;
}

/* Once the channel is closed, its works have ended, and nothing of it is told any more. */
static void client_end(struct client *client)
{
	must("close", ibchan_channel_close(client->channel));
	must("deregister", ibchan_mr_dereg(client->mr));
}

/*
 * Returns before the channel is connected; until it is, there is nothing to do for us. A client
 * that has given up before leaves its place to another.
 */
static void client_accept(struct ibchan_request *request)
{
	struct ibchan_channel *channel;
	int ret;

	if (accepted == side.clients) {
		ibchan_request_reject(request, NULL, 0, NULL);
		return;
	}
	ret = ibchan_request_accept(request, client_prepare(), NULL, &channel, &error);
	if (!ret)
		return;
	ibchan_request_reject(request, NULL, 0, NULL);
	client_end(&clients[--accepted]);
	if (!gave_up(ret))
		must("accept", ret);
}

/*
 * With -e, clients come by TCP: the descriptor goes into the program's own poll(). A server in
 * earnest would not wait for the client's endpoint here.
 */
static void await_any(int listener)
{
	struct pollfd fds[] = {
		{ .fd = ibchan_next_fd(side.context), .events = POLLIN },
		{ .fd = listener, .events = POLLIN },
	};
	int tcp;

	must("descriptor", fds[0].fd);
	if (poll(fds, 2, -1) <= 0 || !fds[1].revents)
		return;
	tcp = accept(listener, NULL, NULL);
	check("no client could be accepted", tcp >= 0 || errno == ECONNABORTED);
	if (accepted == side.clients)
		close(tcp);
	else if (!endpoints_connect(client_prepare(), tcp))
		client_end(&clients[--accepted]);
}

/*
 * A slot is either being received into or being sent from, never both. An empty message is a
 * farewell. A failed work breaks its channel, whose end is told.
 */
static void completed(struct client *client, const struct ibchan_cqe *done)
{
	const __u64 slot = done->wr_id;

	if (done->error)
		return;
	if (done->opcode == IBCHAN_OP_SEND) {
		posted(ibchan_post_receive(client->channel, client->mr, slot * SIZE, SIZE, slot,
					   &error));
	} else if (done->bytes) {
		for (__u32 i = 0; i < done->bytes; i++)
			client->text[slot][i] = (char)toupper((unsigned char)client->text[slot][i]);
		posted(ibchan_post_send(client->channel, client->mr, slot * SIZE, done->bytes, slot,
					&error));
	} else {
		client_end(client);
		gone++;
	}
}

/* A channel ends when its client has closed it, and when that has died. */
static void handle(const struct ibchan_happening *happening)
{
	if (happening->kind == IBCHAN_NEXT_REQUEST) {
		client_accept(happening->request);
	} else if (happening->kind == IBCHAN_NEXT_COMPLETION) {
		completed(happening->priv, &happening->completion);
	} else if (happening->kind == IBCHAN_NEXT_ENDED) {
		client_end(happening->priv);
		gone++;
	}
}

int main(int argc, char **argv)
{
	struct ibchan_happening happening;
	int listener = -1;

	side_open(&side, argc, argv);
	check("blocking HOST is the client", !side.host);
	check("that many clients do not fit", side.clients <= MAX_CLIENTS);
	must("watch", ibchan_cq_watch(side.cq, &error));
	if (side.endpoints)
		listener = tcp_open(&side);
	else
		must("watch", ibchan_listener_watch(side.listener, &error));
	if (side.request)
		client_accept(side.request);
	while (gone < side.clients) {
		if (!ibchan_next(side.context, side.endpoints ? 0 : IBCHAN_TIMEOUT_NEVER,
				 &happening, &error))
			handle(&happening);
		else if (error.code == -EAGAIN)
			await_any(listener);
		else if (error.code != -EINTR)
			must("next", error.code);
	}
	printf("%d clients served\n", gone);
	return ibchan_context_close(side.context);
}
