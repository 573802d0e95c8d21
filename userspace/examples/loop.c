// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A server for any number of clients, in one loop: what a client sends goes back to it.
 *
 *	loop [PORT]
 */
#include <err.h>
#include <ibchan.h>

static char text[16384];

static void answer(struct ibchan_channel *channel)
{
	ssize_t length = ibchan_receive_bytes(channel, text, sizeof(text), 0, NULL);

	/* A client that does not take its answers, or sends what is too long, is shown out. */
	if (length < 0 || ibchan_post_bytes(channel, text, (size_t)length, NULL))
		ibchan_channel_close(channel);
}

int main(int argc, char **argv)
{
	struct ibchan_happening happening;
	struct ibchan_context *context;
	struct ibchan_server *server;
	struct ibchan_error error;

	if (ibchan_serve(NULL, argc > 1 ? argv[1] : "7471", NULL, &server, &error))
		errx(1, "%s", ibchan_error_string(&error));
	context = ibchan_server_context(server);
	while (!ibchan_next(context, IBCHAN_TIMEOUT_NEVER, &happening, &error)) {
		if (happening.kind == IBCHAN_NEXT_MESSAGE)
			answer(happening.channel);
		else if (happening.kind == IBCHAN_NEXT_ENDED)
			ibchan_channel_close(happening.channel);
	}
	errx(1, "%s", ibchan_error_string(&error));
}
