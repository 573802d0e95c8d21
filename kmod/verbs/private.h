/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the files of verbs/. */
#ifndef IBCHAN_VERBS_PRIVATE_H
#define IBCHAN_VERBS_PRIVATE_H

#include "compat.h"
#include "counters.h"
#include "fault.h"
#include "verbs.h"

/* A registration by the driver, or the end of one, which memory may hold up */
struct ibchan_guest {
	struct list_head link;	/* in the gate's list */
	pid_t pid;	/* of the process whose memory it is, for the kernel log */
	char comm[TASK_COMM_LEN];	/* its name */
	int ends;	/* the registration */
};

/* gate.c */
void ibchan_gate_init(struct ibchan_gate *gate);
int ibchan_gate_admit(struct ibchan_device *dev, struct ibchan_guest *guest);
void ibchan_gate_hand_over(struct ibchan_device *dev, struct ibchan_guest *from,
			   struct ibchan_guest *to);
void ibchan_gate_dismiss(struct ibchan_device *dev, struct ibchan_guest *guest);

/* Removal only. */
void ibchan_gate_close(struct ibchan_gate *gate);
void ibchan_gate_open(struct ibchan_gate *gate);
int ibchan_gate_wait_guests(struct ibchan_gate *gate, unsigned long timeout,
			    struct ibchan_guest *first);

/* The last one is NULL; lower floors first. Set once, before the first device comes. */
extern const struct ibchan_device_client *const *ibchan_device_clients;

/* Calls @what of each client that has it. */
#define ibchan_device_tell(what, ...)						\
do {										\
	const struct ibchan_device_client *const *client;			\
										\
	for (client = ibchan_device_clients; *client; client++)			\
		if ((**client).what)						\
			(**client).what(__VA_ARGS__);				\
} while (0)

/* device.c, quirks.c */
u32 ibchan_quirks_of(const struct ib_device *ib);
extern struct workqueue_struct *ibchan_turn_wq;
extern struct workqueue_struct *ibchan_undo_wq;
struct ibchan_device *ibchan_device_alloc(struct ib_device *ib);
void ibchan_device_rename(struct ib_device *ib, void *client_data);
bool ibchan_device_insist(struct ibchan_device *dev, int ret, unsigned int *tries);
void ibchan_device_publish(struct ibchan_device *dev);
void ibchan_device_unpublish(struct ibchan_device *dev);
void ibchan_device_settle(struct ibchan_device *dev);

/* pd.c, mr.c, mr_end.c */
void ibchan_pd_unkeep(struct ibchan_pd *pd);
void ibchan_pd_release_verbs(struct ibchan_pd *pd);
void ibchan_key_list(struct ibchan_mr *mr);
void ibchan_key_unlist(struct ibchan_mr *mr);
void ibchan_mr_unmap_table(struct ibchan_mr *mr);
void ibchan_mr_discard(struct ibchan_mr *mr);
void ibchan_pool_put(struct ibchan_mr *mr);
void ibchan_pool_end(struct ibchan_pd *pd);
void ibchan_mrs_release(struct work_struct *work);
bool ibchan_mr_release_verbs(struct ibchan_mr *mr);
bool ibchan_mr_end_region(struct ibchan_pd *pd, struct ib_mr *ib);
void ibchan_mr_undo(struct ibchan_mr *mr, struct ibchan_guest *guest);

/* By a peer: the device takes no more requests on it. Any context. */
static inline bool ibchan_mr_is_invalidated(const struct ibchan_mr *mr)
{
	return !READ_ONCE(mr->extent.allows);
}

/*
 * How long the end of a cq waits for an event that was asked for. One that is
 * due comes with the next softirq; this is for one that will never come.
 */
#define IBCHAN_EVENT_TIMEOUT	HZ

enum ibchan_cq_flag {
	CQ_OWNED,	/* a thread or softirq reaps: the cq's owner */
	CQ_AGAIN,	/* another one wanted to reap meanwhile */
	CQ_ARM,		/* arm before the right to reap is given up */
	CQ_ARM_SOLICITED, /* the same, for solicited completions */
	CQ_ARMED,	/* an event was asked for and has not come */
	CQ_ARMED_ANY,	/* and not only for solicited completions */
	CQ_MAYBE_ARMED,	/* the driver told of a completion instead: an event may come, too */
	CQ_WANTED,	/* its owner wants to be called back when it comes */
	CQ_DEAD,	/* no more verbs on it */
	CQ_SHELL,	/* destroyed, and its owner has not given it back */
	CQ_ORPHANED,	/* a leaked channel keeps it: its owner may have gone */
	CQ_LATE,	/* an event was due when it died, and its end has yet to wait for it */
	CQ_EVENTFUL,	/* an event was asked for, at any time */
	CQ_LEAKED,	/* the device would not let go of it, and may call it */
};

/* cq.c, cq_reap.c, gid.c */
void ibchan_cq_init_reaping(struct ibchan_cq *cq);
void ibchan_cq_end_reaping(struct ibchan_cq *cq);
void ibchan_cq_event(struct ib_cq *ib, void *context);
void ibchan_cq_remove(struct ibchan_cq *cq);
void ibchan_cq_settle(struct ibchan_cq *cq, unsigned long deadline);
void ibchan_cq_release_verbs(struct ibchan_cq *cq);
void ibchan_cq_await_late(void);
int ibchan_gid_adopt_port(struct ib_device *ib, struct ibchan_gid *gid, u32 port, u16 pkey_index);

#endif /* IBCHAN_VERBS_PRIVATE_H */
