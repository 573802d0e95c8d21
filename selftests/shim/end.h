/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One end of a connection as a program has it that uses libibchan.
 */
#ifndef TEST_SHIM_END_H
#define TEST_SHIM_END_H

#include <stdbool.h>
#include <sys/types.h>

#include <ibchan.h>

#define MEMORY		65536
#define HALF		(MEMORY / 2)
#define MS		1000000LL

/* One channel's worth of objects; @context, and maybe @cq, are another's. */
struct end {
	struct ibchan_device *device;
	struct ibchan_pd *pd;
	struct ibchan_cq *cq;
	struct ibchan_cq *own_cq;
	struct ibchan_mr *mr;
	struct ibchan_prepared *prepared;
	struct ibchan_channel *channel;
	unsigned char *memory;
};

/* patience_ms() as the library wants it. */
__s64 patience_ns(void);

/* The name of device @index in the order of names, or of the last one if there are fewer. */
int device_name(struct ibchan_context *context, int index, char *name);

/*
 * Device, pd and shared memory; end_open() adds a prepared channel, on a cq of its own
 * if @cq is NULL.
 */
int end_objects(struct end *end, struct ibchan_context *context, int index);
int end_open(struct end *end, struct ibchan_context *context, int index, struct ibchan_cq *cq);

/* Up to a @builder that a test changes before it makes end->prepared with it; with its own cq. */
int end_begin(struct end *end, struct ibchan_context *context, int index,
	      struct ibchan_builder *builder);
int end_connect(struct end *end, const struct ibchan_endpoint *peer);
int end_loop(struct end *end); /* to itself */
int connect_ends(struct end *a, struct end *b);
void end_close(struct end *end);
/* Opens a context and both ends in it, and connects them; close_ends() undoes that. */
int open_ends(struct end *a, struct end *b, struct ibchan_context **context);
int close_ends(struct end *a, struct end *b, struct ibchan_context *context);

struct ibchan_submit_sge sge_at(const struct end *end, size_t offset, size_t length);
struct ibchan_submit_wr wr_of(const struct end *end, __u8 opcode,
			      const struct ibchan_submit_sge *sge);
/* Its elements are others from here on. */
void wr_elements(struct ibchan_submit_wr *wr, const struct ibchan_submit_sge *sges, __u16 num);
/* Of a write, a read or fetch and add. */
void wr_at(struct ibchan_submit_wr *wr, const struct ibchan_remote_region *remote);
int post_receive(struct ibchan_context *context, const struct end *end,
		 const struct ibchan_submit_sge *sge, __u64 wr_id);
int wait_one(struct ibchan_cq *cq, struct ibchan_cqe *completion);

/* A blocking call and what came of it; the body of a thread that receives. */
struct blocking {
	struct end *end;
	struct ibchan_submit_sge sge;
	struct ibchan_cqe completion;
	struct ibchan_error error;
	int rc;
};

void *receive_thread(void *arg);

/* The body of a thread that sends NUMBERS messages; each says how many came before it. */
#define NUMBERS		200

void *send_numbers(void *arg);

/*
 * The body of a thread that sends @sge from @from as soon as thread @waiter sleeps in the
 * kernel: whatever @waiter posted before is in flight until then, and nobody polls.
 */
struct late_send {
	const struct end *from;
	struct ibchan_submit_sge sge;
	pid_t waiter;
	int rc;
};

void *send_late(void *arg);

/* 1 if @word is part of @text. */
int has(const char *text, const char *word);

#endif /* TEST_SHIM_END_H */
