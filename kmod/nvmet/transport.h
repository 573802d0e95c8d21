/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's NVMe target over ibchan channels, on the NVMe/RDMA wire: see README.md. */
#ifndef IBCHAN_NVMET_TRANSPORT_H
#define IBCHAN_NVMET_TRANSPORT_H

#include <linux/atomic.h>
#include <linux/nvme-rdma.h>
#include <linux/refcount.h>
#include <linux/scatterlist.h>
#include <rdma/ibchan.h>
#include <rdma/ibchan_connect.h>
#include <rdma/ibchan_runner.h>

#include "nvmet.h"

#ifndef IBCHAN_NVMET_HAVE_STATUS_DNR
#define NVME_STATUS_DNR		NVME_SC_DNR
#endif

/* Later targets count the users of an NVMe completion queue. */
#ifdef IBCHAN_NVMET_HAVE_CQ_REFS
#define init_sq(sq, cq)		({ nvmet_cq_init(cq); nvmet_sq_init(sq, cq); })
#define init_req(req, sq, cq)	nvmet_req_init(req, sq, &transport_ops)
#define put_cq(cq)		nvmet_cq_put(cq)
#else
#define init_sq(sq, cq)		nvmet_sq_init(sq)
#define init_req(req, sq, cq)	nvmet_req_init(req, cq, sq, &transport_ops)
#define put_cq(cq)		do { } while (0)
#endif

/* The longest transfer, as a power of two of pages of 4 KiB: 1 MiB, as nvmet-rdma has it. */
#define TRANSPORT_MDTS		8
#define TRANSPORT_MAX_DATA	(SZ_4K << TRANSPORT_MDTS)
#define TRANSPORT_MAX_SGL	(TRANSPORT_MAX_DATA / PAGE_SIZE)

/* Data that a capsule may carry besides the command. */
#define CAPSULE_MAX_PAGES	4
#define CAPSULE_MAX_DATA	min_t(int, CAPSULE_MAX_PAGES * PAGE_SIZE, SZ_16K)

/* A receive of a queue: a command, and data behind it. */
struct capsule {
	struct ibchan_call call;
	struct ibchan_sge sges[2];
	struct nvme_command *command;
	struct scatterlist data[CAPSULE_MAX_PAGES];	/* as the target sees them */
};

/* A command and its response. But for @link, it belongs to the code that is at work on it. */
struct exchange {
	struct nvmet_req req;
	struct queue *queue;
	struct capsule *capsule;	/* until its receive is posted again */
	struct ibchan_call read;	/* brings a write's data */
	struct ibchan_work data;	/* takes a read's data away */
	struct ibchan_work response;
	struct ibchan_sge sge;		/* of the response */
	struct ibchan_job job;		/* responds where posting is not allowed */
	struct list_head link;		/* in queue->free or queue->waiting */
	void (*post)(struct exchange *exchange);	/* once there are places */
	u32 places;			/* of the send queue, that it has or waits for */
	atomic_t in_flight;		/* of data and response */
	struct ibchan_remote remote;	/* the host's memory */
	bool has_list;			/* req.sg was allocated */
	bool invalidates;		/* the response ends the host's key */
};

/* An NVMe queue: a channel. */
struct queue {
	struct nvmet_sq nvme_sq;
	struct nvmet_cq nvme_cq;
	struct nvmet_port *nport;	/* until the target's work queue has run the end */
	struct list_head link;		/* in the list of all */
	struct ibchan_device *dev;
	struct ibchan_pd *pd;
	struct ibchan_cq *cq;
	struct ibchan_channel *ch;
	struct ibchan_mr *mr;		/* over memory: commands, completions, data in capsules */
	void *memory;
	struct ibchan_runner runner;	/* commands begin here, and go on with their data */
	struct capsule *capsules;	/* depth of them */
	struct exchange *exchanges;	/* twice as many: responses are on their way */
	u32 depth;
	u32 capsule_pages;
	u16 qid;			/* 0: the admin queue */
	spinlock_t lock;		/* guards free, waiting, room, runs */
	struct list_head free;		/* exchanges that no command has */
	struct list_head waiting;	/* exchanges that wait for places, the oldest first */
	u32 room;			/* places of the send queue that are free */
	bool runs;			/* those that wait are being posted */
	bool fatal;			/* the host has broken the protocol */
	unsigned long broken;		/* bit 0: the channel is, and nothing is posted any more */
	refcount_t users;		/* the channel until it breaks, the host's request */
	struct work_struct end;		/* on the target's work queue: the target lets go of it */
	struct ibchan_request_attr attr;	/* how the host asked */
};

/* port.c */
extern struct nvmet_fabrics_ops transport_ops;

/* queue.c */
void queue_answer(struct ibchan_request *request, struct nvmet_port *nport);
void queues_end(const struct nvmet_port *nport, const struct nvmet_ctrl *ctrl);
void queues_await(void);

/* command.c */
int queue_post_receives(struct queue *queue);
void queue_init_commands(struct queue *queue, size_t pages);
void exchange_respond(struct nvmet_req *req);

#endif /* IBCHAN_NVMET_TRANSPORT_H */
