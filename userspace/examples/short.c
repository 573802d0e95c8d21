// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A server that takes one message, and its client, in fifteen lines.
 *
 *	short		waits for a client, and prints its message
 *	short HOST	is one, and sends it; an IP address or name of the server
 */
#include <err.h>
#include <ibchan.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	struct ibchan_channel *channel;
	struct ibchan_server *server = NULL;
	struct ibchan_error error;
	char text[64];
	ssize_t length = 0;

	if (argc > 1 && !ibchan_dial(argv[1], "7471", NULL, &channel, &error))
		ibchan_send_bytes(channel, "hello, server\n", 14, IBCHAN_TIMEOUT_NEVER, &error);
	else if (argc == 1 && !ibchan_serve(NULL, "7471", NULL, &server, &error) &&
		 !ibchan_take(server, IBCHAN_TIMEOUT_NEVER, &channel, &error))
		length = ibchan_receive_bytes(channel, text, 64, IBCHAN_TIMEOUT_NEVER, &error);
	if (error.code)
		errx(1, "%s", ibchan_error_string(&error));
	printf("%.*s", (int)length, text);
	return ibchan_channel_close(channel) || ibchan_server_close(server);
}
