// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "meeting.h"

/* At the same place for both families. */
static void print_port(const struct sockaddr_storage *address, char *port, size_t size)
{
	snprintf(port, size, "%u", ntohs(((struct sockaddr_in *)address)->sin_port));
}

void port_of(const struct ibchan_listener *listener, char *port, size_t size)
{
	struct sockaddr_storage address;

	ibchan_listener_address(listener, &address);
	print_port(&address, port, size);
}

void port_of_server(const struct ibchan_server *server, char *port, size_t size)
{
	struct sockaddr_storage address;

	ibchan_server_address(server, &address);
	print_port(&address, port, size);
}

int meeting_listen(struct meeting *m, const char *host)
{
	struct ibchan_listen_params params = { .size = sizeof(params), .host = host };
	int rc = ibchan_listener_create(m->context, &params, &m->listener, &m->error);

	if (rc)
		return rc;
	m->host = host;
	port_of(m->listener, m->port, sizeof(m->port));
	return 0;
}

int meeting_ask(struct meeting *m, const struct ibchan_connect_params *params)
{
	int rc = ibchan_prepared_connect(m->asking.prepared, m->host, m->port, params,
					 &m->asking.channel, &m->error);

	if (!rc)
		m->asking.prepared = NULL;
	return rc;
}

int meeting_request(struct meeting *m, const struct ibchan_connect_params *params,
		    struct ibchan_request **request)
{
	int rc = meeting_ask(m, params);

	return rc ?: ibchan_request_take(m->listener, patience_ns(), request, NULL);
}

int meeting_answer(struct meeting *m, struct ibchan_request *request,
		   const struct ibchan_connect_params *params)
{
	int rc = ibchan_request_accept(request, m->asked.prepared, params, &m->asked.channel,
				       &m->error);

	if (!rc)
		m->asked.prepared = NULL;
	return rc;
}

int outcome(struct ibchan_channel *channel, struct ibchan_error *error)
{
	return ibchan_channel_connect_wait(channel, patience_ns(), error);
}

int meeting_outcomes(struct meeting *m)
{
	int rc = outcome(m->asking.channel, &m->error);

	return rc ?: outcome(m->asked.channel, &m->error);
}

int meeting_connect(struct meeting *m, const struct ibchan_connect_params *of_asking,
		    const struct ibchan_connect_params *of_asked)
{
	struct ibchan_request *request;
	int rc = meeting_request(m, of_asking, &request);

	rc = rc ?: meeting_answer(m, request, of_asked);
	return rc ?: meeting_outcomes(m);
}

int meeting_close(struct meeting *m)
{
	end_close(&m->asking);
	end_close(&m->asked);
	return ibchan_listener_close(m->listener);
}

int meeting_begin(struct meeting *m, const char *host)
{
	int rc;

	memset(m, 0, sizeof(*m));
	rc = ibchan_context_open(&m->context, NULL);
	return rc ?: meeting_listen(m, host);
}

int meeting_end(struct meeting *m)
{
	int listened = meeting_close(m);
	int rc = ibchan_context_close(m->context);

	return listened ?: rc;
}

void fill(unsigned char *bytes, size_t length, unsigned int seed)
{
	size_t i;

	for (i = 0; i < length; i++)
		bytes[i] = (unsigned char)(i * 7 + seed);
}

int message_crosses(struct meeting *m, const struct end *from, const struct end *to)
{
	struct ibchan_submit_sge source = sge_at(from, HALF, CROSSING);
	struct ibchan_submit_sge target = sge_at(to, HALF, CROSSING);
	struct ibchan_cqe completion;
	int rc;

	fill(from->memory + HALF, CROSSING, 1);
	memset(to->memory + HALF, 0, CROSSING * (from != to));
	rc = post_receive(m->context, to, &target, 1);
	rc = rc ?: ibchan_send(from->channel, &source, 1, IBCHAN_TIMEOUT_NEVER, &m->error);
	if (rc)
		return rc;
	rc = wait_one(to->cq, &completion);
	if (rc != 1)
		return rc < 0 ? rc : -ETIMEDOUT;
	if (completion.error || completion.bytes != CROSSING)
		return -EBADMSG;
	return memcmp(from->memory + HALF, to->memory + HALF, CROSSING) ? -EBADMSG : 0;
}

int messages_cross(struct meeting *m)
{
	int rc = message_crosses(m, &m->asking, &m->asked);

	return rc ?: message_crosses(m, &m->asked, &m->asking);
}
