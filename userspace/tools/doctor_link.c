// SPDX-License-Identifier: LGPL-2.1-or-later
/* An end of the doctor's own channel. */
#include <errno.h>
#include <stdlib.h>

#include "doctor.h"
#include "pattern.h"

/* 268 ms, as a code: soft devices are slow, and seven tries still end within a usual wait. */
#define ACK_TIMEOUT	16

#define SEED_ASKS	0x35
#define SEED_SERVES	0xca

/* For calls that give no details. Returns @code, which is negative. */
static int explain(struct ibchan_error *error, int code)
{
	*error = (struct ibchan_error) { .code = code, .origin = IBCHAN_ERROR_CALL };
	return code;
}

int link_open(struct link *link, struct ibchan_context *context, const char *device,
	      struct ibchan_error *error)
{
	struct ibchan_builder builder;
	int err;

	link->context = context;
	/* Whole pages of any size, so that the limit of pinned memory is met by what is said. */
	link->out = aligned_alloc(DOCTOR_MESSAGE, DOCTOR_MEMORY);
	if (!link->out)
		return explain(error, -ENOMEM);
	link->in = link->out + DOCTOR_MESSAGE;
	err = ibchan_device_open(context, device, &link->device, NULL);
	if (!err)
		err = ibchan_pd_alloc(link->device, &link->pd, NULL);
	if (err)
		return explain(error, err);
	ibchan_builder_init(&builder, link->pd, NULL);
	builder.params.access = IBCHAN_ACCESS_LOCAL_WRITE;
	builder.params.ack_timeout = ACK_TIMEOUT;
	builder.params.max_send_wr = 2;
	builder.params.max_recv_wr = 2;
	builder.params.max_send_sge = 1;
	builder.params.max_recv_sge = 1;
	err = ibchan_mr_reg_local(link->pd, link->out, DOCTOR_MEMORY, &link->mr, error);
	if (!err)
		err = ibchan_builder_prepare(&builder, &link->prepared, error);
	if (err)
		return err;
	link->channel = ibchan_prepared_channel(link->prepared);
	return link_listen(link, error);
}

int link_listen(struct link *link, struct ibchan_error *error)
{
	return ibchan_post_receive(link->channel, link->mr, DOCTOR_MESSAGE, DOCTOR_MESSAGE, 0,
				   error);
}

int link_hear(struct link *link, __u32 *bytes, struct ibchan_error *error)
{
	struct ibchan_cqe got;
	int n = ibchan_cq_wait(ibchan_channel_recv_cq(link->channel), &got, 1, 1,
			       link->timeout_ns);

	if (n < 0)
		return explain(error, n);
	*error = work_error(&got);
	*bytes = got.bytes;
	return got.error;
}

static struct pattern pattern_of(bool serves, __u32 bytes)
{
	return (struct pattern) { .seed = serves ? SEED_SERVES : SEED_ASKS, .size = bytes };
}

int link_say(struct link *link, __u32 bytes, struct ibchan_error *error)
{
	struct pattern pattern = pattern_of(link->serves, bytes);
	struct ibchan_submit_sge sge = ibchan_sge_new(link->mr, 0, bytes);
	struct ibchan_submit_wr wr = ibchan_wr_send(link->channel, &sge, bytes ? 1 : 0);

	if (bytes) {
		pattern_fill(&pattern, link->out);
		pattern_stamp(&pattern, link->out, link->round);
	}
	return ibchan_perform(link->channel, &wr, link->timeout_ns, NULL, error);
}

bool link_is_right(const struct link *link, __u32 bytes)
{
	struct pattern pattern = pattern_of(!link->serves, bytes);

	return bytes && pattern_whole(&pattern, link->in, link->round);
}

void link_close(struct link *link)
{
	if (link->prepared)
		ibchan_prepared_destroy(link->prepared);
	else
		ibchan_channel_close(link->channel);
	ibchan_mr_dereg(link->mr);
	ibchan_pd_free(link->pd);
	ibchan_device_close(link->device);
	free(link->out);
}
