// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The messages of a conversation. Over a channel each write is one message, and
 * an empty one only means that the other side is alive.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "talk.h"
#include "tool.h"

#define NSEC_PER_SEC	1000000000LL

__s64 talk_timeout_ns(const struct talk *talk)
{
	return talk->timeout_s ? talk->timeout_s * NSEC_PER_SEC :
				 IBCHAN_TIMEOUT_NEVER;
}

int talk_begin(struct talk *talk)
{
	const struct talk_options *options = &talk->options;
	int ret;

	if (talk->by_address)
		return talk_by_address(talk);
	talk->tcp.timeout_s = talk->timeout_s;
	ret = options->host ?
	      tcp_connect(&talk->tcp, options->host, options->port) :
	      tcp_accept(&talk->tcp, options->port);
	memcpy(talk->name, talk->tcp.name, sizeof(talk->name));
	return ret;
}

int talk_post_slot(struct talk *talk, struct ibchan_channel *channel, __u32 slot)
{
	return ibchan_post_receive(channel, talk->mr, (slot + 1) * TALK_SIZE,
				   TALK_SIZE, slot, NULL);
}

/* Takes what has come, or waits up to @limit_ns for it. */
static int take_messages(struct talk *talk, __s64 limit_ns)
{
	struct ibchan_cqe done[TALK_SLOTS];
	int n = ibchan_cq_wait(talk->cq, done, TALK_SLOTS, 1, limit_ns);
	int i;

	for (i = 0; i < n; i++) {
		if (done[i].error) {
			talk->error = done[i].error;
			break;
		}
		talk->lengths[done[i].wr_id] = done[i].bytes;
		talk->waiting++;
	}
	return n < 0 && n != -EINTR ? n : 0;
}

/* The place of the first message is free again, for one more behind all others. */
static void drop_message(struct talk *talk)
{
	int err = talk_post_slot(talk, talk->channel, talk->first);

	if (err)
		talk->error = err;
	talk->first = (talk->first + 1) % TALK_SLOTS;
	talk->waiting--;
}

static void drop_empty(struct talk *talk)
{
	while (talk->waiting && !talk->lengths[talk->first])
		drop_message(talk);
}

static int complain_gone(const struct talk *talk, int err)
{
	if (err == -ETIMEDOUT)
		return complain("%s: nothing happened for %d s", talk->name,
				talk->timeout_s);
	return complain("%s: the other side is gone", talk->name);
}

/* What came before the other side was gone counts. */
static int await_message(struct talk *talk)
{
	int err = 0;

	drop_empty(talk);
	while (!err && !talk->waiting) {
		err = talk->error;
		if (!err)
			err = take_messages(talk, talk_timeout_ns(talk));
		drop_empty(talk);
	}
	return err;
}

int talk_read(struct talk *talk, void *buf, size_t len)
{
	int err;

	if (!talk->by_address)
		return tcp_read(&talk->tcp, buf, len);
	err = await_message(talk);
	if (err)
		return complain_gone(talk, err);
	if (talk->lengths[talk->first] != len)
		return complain("%s: what it says is not for us", talk->name);
	memcpy(buf, talk->memory[talk->first + 1], len);
	drop_message(talk);
	return 0;
}

/*
 * A side may end as soon as it has read the last message. What it acknowledged
 * with it may be lost then, so failing here means nothing: a message that did not
 * arrive is missed where its answer is read.
 */
static void send_message(struct talk *talk, size_t len)
{
	const struct ibchan_submit_sge sge = ibchan_sge_new(talk->mr, 0, len);
	const struct ibchan_submit_wr wr = ibchan_wr_send(talk->channel, &sge, len ? 1 : 0);

	ibchan_perform(talk->channel, &wr, talk_timeout_ns(talk), NULL, NULL);
}

int talk_write(struct talk *talk, const void *buf, size_t len)
{
	if (!talk->by_address)
		return tcp_write(&talk->tcp, buf, len);
	memcpy(talk->memory[0], buf, len);
	send_message(talk, len);
	return 0;
}

/* Both sides may do this at the same time, so room is made as well. */
int talk_tell_alive(struct talk *talk)
{
	send_message(talk, 0);
	take_messages(talk, 0);
	drop_empty(talk);
	return talk->error ? complain_gone(talk, talk->error) : 0;
}

/* What is in the context ends with it; the memory must not go before. */
void talk_end(struct talk *talk)
{
	if (!talk->by_address) {
		tcp_close(&talk->tcp);
		return;
	}
	ibchan_channel_close(talk->channel);
	ibchan_listener_close(talk->listener);
	ibchan_cq_destroy(talk->cq);
	ibchan_mr_dereg(talk->mr);
	ibchan_pd_free(talk->pd);
}
