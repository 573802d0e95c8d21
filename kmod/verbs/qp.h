/* SPDX-License-Identifier: GPL-2.0-only */
/* Queue pairs: see qp.c, and how they reach their peers: gid.c and route.c. */
#ifndef IBCHAN_QP_H
#define IBCHAN_QP_H

#include <linux/cleanup.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>

#include "only.h"
#include "pd.h"

struct rdma_cm_id;
struct rdma_conn_param;

/* How packets get to the peer */
struct ibchan_path {
	__verbs_only u8 dmac[ETH_ALEN];	/* Ethernet address of the next hop; 0 on InfiniBand */
	__verbs_only u8 hop_limit;	/* how many routers may be between */
};

/* A queue pair, and what it reaches its peer by */
struct ibchan_qp {
	/* NULL once closed; guarded by the gate, and by the channel's post lock for posting */
	struct ib_qp *ib;
	/* called with the device's events of @ib, and with this as its context */
	__verbs_only void (*event)(struct ib_event *event, void *context);
	/* of the channel: while it is PREPARED, the way to the peer is looked for */
	__verbs_only const u32 *state;
	struct ibchan_device *dev;	/* holds a reference */
	struct ibchan_pd *pd;	/* holds a reference until closed */
	struct net *net;	/* kept by the consumer; NULL: any */
	/* where the send queue completes; outlives @ib */
	__verbs_only struct ibchan_cq *send_cq;
	/* where the receive queue completes; outlives @ib */
	__verbs_only struct ibchan_cq *recv_cq;
	struct mutex lock;	/* one at a time changes the state of @ib; see ibchan_qp_lock() */
	unsigned int noio;	/* what the lock's holder goes back to */
	/*
	 * @ib is in RESET and may have kept a packet, see IBCHAN_QUIRK_RESET_KEEPS_PACKET; written
	 * under @lock
	 */
	__verbs_only bool may_keep;
	__verbs_only struct rcu_gp_oldstate reset_at;	/* when it came there, for RCU */
	int ready;	/* @ib is in INIT or beyond, so it takes receives; written under @lock */
	struct ibchan_params params;	/* in effect; immutable once connected */
	__verbs_only u32 wanted_mtu;	/* the builder's, in bytes; 0: as @gid has it */
	/* the connection manager's ack time-out counts, where it connects; immutable */
	__verbs_only bool ack_by_cm;
	struct ibchan_gid gid;	/* own address; by address, that of the route, under @lock */
	struct ibchan_path path;	/* to the peer; under @lock */
	struct ibchan_endpoint endpoint;	/* for the peer; immutable */
};

/* A channel breaks under this lock, and memory reclaim may wait for that. May sleep. */
static inline void ibchan_qp_lock(struct ibchan_qp *qp)
{
	mutex_lock(&qp->lock);
	qp->noio = memalloc_noio_save();
}

static inline void ibchan_qp_unlock(struct ibchan_qp *qp)
{
	unsigned int noio = qp->noio;

	mutex_unlock(&qp->lock);
	memalloc_noio_restore(noio);
}

DEFINE_GUARD(ibchan_qp, struct ibchan_qp *, ibchan_qp_lock(_T), ibchan_qp_unlock(_T))

/* qp.c */
void ibchan_qp_setup(struct ibchan_qp *qp, const struct ibchan_build *build,
		     const struct ibchan_params *params,
		     void (*event)(struct ib_event *event, void *context), const u32 *state);
int ibchan_qp_choose(struct ibchan_qp *qp, bool alone, struct ibchan_reason *reason);
int ibchan_qp_create(struct ibchan_qp *qp, struct ibchan_reason *reason);
int ibchan_qp_connect(struct ibchan_qp *qp, const struct ibchan_endpoint *peer,
		      struct ibchan_reason *reason);
void ibchan_qp_rewind(struct ibchan_qp *qp);
void ibchan_qp_follow_gid(struct ibchan_qp *qp);
int ibchan_qp_cm_init(struct ibchan_qp *qp, struct rdma_cm_id *id);
int ibchan_qp_cm_connect(struct ibchan_qp *qp, struct rdma_cm_id *id,
			 const struct rdma_conn_param *agreed, u32 mtu);

/*
 * The connection manager returns -EINVAL when the peer has given up and word of that is still on
 * its way here, for then the id's request is gone.
 */
static inline int ibchan_cm_refusal(int ret)
{
	return ret == -EINVAL ? -ECONNRESET : ret;
}

int ibchan_qp_to_reset(struct ibchan_qp *qp);
void ibchan_qp_to_error(struct ibchan_qp *qp);
bool ibchan_qp_has_failed(struct ibchan_qp *qp);
void ibchan_qp_ask(struct ibchan_qp *qp, struct ibchan_params *params);
int ibchan_qp_destroy(struct ibchan_qp *qp);
void ibchan_qp_leak(struct ibchan_qp *qp);

/* gid.c */
int ibchan_gid_choose(struct ib_device *ib, struct net *net,
		      const struct ibchan_params *params, struct ibchan_gid *gid,
		      struct ibchan_reason *reason);
u32 ibchan_gid_mtu(const struct ib_gid_attr *attr);
int ibchan_gid_adopt(struct ibchan_gid *gid, u32 port, const struct ib_gid_attr *attr);
bool ibchan_gid_still_there(struct ib_device *ib, struct net *net,
			    const struct ibchan_gid *gid, u32 lid);

bool ibchan_gid_is_current(const struct ib_gid_attr *attr);

/* route.c */
int ibchan_route_find(struct ibchan_qp *qp, const struct ibchan_endpoint *peer,
		      struct ibchan_path *path, struct ibchan_reason *reason);

#endif /* IBCHAN_QP_H */
