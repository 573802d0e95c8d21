/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * RDMA channels for kernel consumers.
 *
 * A consumer takes a device, allocates a protection domain (pd), registers
 * memory regions (mr), creates completion queues (cq), builds channels and
 * posts work on them. /dev/ibchan is such a consumer and nothing more.
 *
 * What a consumer can rely on: a region that a posted work names cannot go away
 * before that work has completed; queues cannot overrun; each accepted work
 * completes exactly once, through the sink of its cq; teardown is bounded; when
 * the device leaves, every call answers -ENODEV and the objects stay as shells
 * until they are given back.
 *
 * Errors are negative errno values. Where a call takes a reason, a refusal is
 * explained there (see IBCHAN_REASONS in <linux/ibchan.h>); it may be NULL.
 */
#ifndef _RDMA_IBCHAN_H
#define _RDMA_IBCHAN_H

#include <linux/types.h>
#include <linux/ibchan.h>

struct net;
struct ibchan_device;
struct ibchan_pd;
struct ibchan_mr;
struct ibchan_cq;
struct ibchan_channel;

/**
 * struct ibchan_device_attr - what a device can do
 * @name: as the rdma tool shows it
 * @node_guid: in host order
 * @caps: IBCHAN_DEVICE_*
 * @ports: number of ports, counted from 1
 * @max_qp_wr: work requests in one queue
 * @max_send_sge: elements of a send or write
 * @max_recv_sge: elements of a receive
 * @max_read_sge: elements of a read
 * @max_cqe: entries of one completion queue
 * @max_rd_atomic: reads and atomics in flight on one channel
 * @driver_id: enum rdma_driver_id
 * @max_mr_size: bytes of one memory region
 */
struct ibchan_device_attr {
	char name[IBCHAN_NAME_SIZE];
	u64 node_guid;
	u32 caps;
	u32 ports;
	u32 max_qp_wr;
	u32 max_send_sge;
	u32 max_recv_sge;
	u32 max_read_sge;
	u32 max_cqe;
	u32 max_rd_atomic;
	u32 driver_id;
	u64 max_mr_size;
};

/**
 * struct ibchan_port_attr - what a port is
 * @state: enum ib_port_state
 * @link_layer: IBCHAN_LINK_LAYER_*
 * @active_mtu: bytes
 * @max_mtu: bytes
 * @lid: InfiniBand address within the subnet
 * @gid_index: the entry that a channel takes by rule, or IBCHAN_AUTO if none
 * @gid_entries: size of the GID table
 * @gid: the address in that entry
 */
struct ibchan_port_attr {
	u32 state;
	u32 link_layer;
	u32 active_mtu;
	u32 max_mtu;
	u32 lid;
	u32 gid_index;
	u32 gid_entries;
	u8 gid[IBCHAN_GID_SIZE];
};

/**
 * struct ibchan_completion - how one work ended
 * @wr_id: of its work request
 * @cookie: of its channel
 * @status: enum ibchan_status
 * @error: errno, positive; 0 on success
 * @vendor_err: the device's own code, on an error
 * @bytes: received, for a receive that succeeded
 * @imm: in host order, with IBCHAN_CQE_IMM
 * @opcode: IBCHAN_OP_*
 * @flags: IBCHAN_CQE_*
 */
struct ibchan_completion {
	u64 wr_id;
	u64 cookie;
	u32 status;
	u32 error;
	u32 vendor_err;
	u32 bytes;
	u32 imm;
	u8 opcode;
	u8 flags;
};

/**
 * struct ibchan_sink - where the completions of a cq go
 * @reserve: take room for one completion before its work is posted; 0, or
 *	-EAGAIN when there is none. May be NULL.
 * @cancel: give such room back, because the work was not posted
 * @done: one work has ended; its room is used up. Its buffers are the caller's
 *	again.
 * @notify: some works have ended since the last call. May be NULL.
 * @gone: the device has left: nothing comes any more. Called once, and not for
 *	a cq that its owner has destroyed. May be NULL.
 *
 * All are called with bottom halves off and must not sleep. @reserve and
 * @cancel run under a channel's post lock; @done and @notify under no lock and
 * never twice at a time for one cq. @done and @notify may post and may break
 * channels.
 */
struct ibchan_sink {
	int (*reserve)(void *priv);
	void (*cancel)(void *priv);
	void (*done)(void *priv, const struct ibchan_completion *completion);
	void (*notify)(void *priv);
	void (*gone)(void *priv);
};

/**
 * struct ibchan_sge - a range of a memory region
 * @mr: the region
 * @offset: from its first byte
 * @length: bytes; an empty range is not shown to the device
 */
struct ibchan_sge {
	struct ibchan_mr *mr;
	u64 offset;
	u32 length;
};

/**
 * struct ibchan_wr - a work request
 * @wr_id: comes back in the completion
 * @sges: the ranges, @num_sge of them
 * @remote_addr: write and read: in the peer's region
 * @rkey: write and read: of the peer's region
 * @imm: with IBCHAN_WR_IMM: for the peer, in host order
 * @num_sge: 0 and up
 * @opcode: IBCHAN_OP_*
 * @flags: IBCHAN_WR_*
 */
struct ibchan_wr {
	u64 wr_id;
	const struct ibchan_sge *sges;
	u64 remote_addr;
	u32 rkey;
	u32 imm;
	u16 num_sge;
	u8 opcode;
	u8 flags;
};

/**
 * struct ibchan_build - what a channel is built from
 * @pd: protection domain of the channel and of all memory posted on it
 * @send_cq: where sends, writes and reads complete
 * @recv_cq: where receives complete; may be the same
 * @net: network namespace that the channel's address must belong to; to be kept
 *	until the channel is closed
 * @cookie: comes back in each completion
 */
struct ibchan_build {
	struct ibchan_pd *pd;
	struct ibchan_cq *send_cq;
	struct ibchan_cq *recv_cq;
	struct net *net;
	u64 cookie;
};

/**
 * struct ibchan_channel_attr - how a channel fares
 * @state: enum ibchan_channel_state
 * @error: errno of the first error, positive, 0 while there is none
 * @status: enum ibchan_status of the work that failed first
 * @sends_in_flight: posted and not completed
 * @recvs_in_flight: posted and not completed
 * @params: in effect
 * @endpoint: for the peer
 */
struct ibchan_channel_attr {
	u32 state;
	u32 error;
	u32 status;
	u32 sends_in_flight;
	u32 recvs_in_flight;
	struct ibchan_params params;
	struct ibchan_endpoint endpoint;
};

struct ibchan_device *ibchan_device_get(const char *name, struct net *net);
struct ibchan_device *ibchan_device_get_nth(u32 index, struct net *net);
void ibchan_device_put(struct ibchan_device *dev);
int ibchan_device_query(struct ibchan_device *dev, struct ibchan_device_attr *attr);
int ibchan_port_query(struct ibchan_device *dev, u32 port, struct net *net,
		      struct ibchan_port_attr *attr);

struct ibchan_pd *ibchan_pd_alloc(struct ibchan_device *dev);
int ibchan_pd_free(struct ibchan_pd *pd);

struct ibchan_mr *ibchan_mr_reg_user(struct ibchan_pd *pd, u64 addr, u64 length,
				     u32 access, struct ibchan_reason *reason);
u32 ibchan_mr_rkey(const struct ibchan_mr *mr);
u64 ibchan_mr_pages(const struct ibchan_mr *mr);
int ibchan_mr_try_dereg(struct ibchan_mr *mr);
void ibchan_mr_put(struct ibchan_mr *mr);

struct ibchan_cq *ibchan_cq_create(struct ibchan_device *dev, u32 entries,
				   const struct ibchan_sink *sink, void *priv,
				   struct ibchan_reason *reason);
int ibchan_cq_try_destroy(struct ibchan_cq *cq);
bool ibchan_cq_tryget(struct ibchan_cq *cq);
void ibchan_cq_put(struct ibchan_cq *cq);
int ibchan_cq_reap(struct ibchan_cq *cq, int budget);
void ibchan_cq_arm(struct ibchan_cq *cq);
int ibchan_cq_wait(struct ibchan_cq *cq, int (*ready)(void *arg), void *arg,
		   s64 timeout_ns);
void ibchan_cq_wake(struct ibchan_cq *cq);

void ibchan_params_init(struct ibchan_params *params);
struct ibchan_channel *ibchan_channel_build(const struct ibchan_build *build,
					    struct ibchan_params *params,
					    struct ibchan_reason *reason);
void ibchan_channel_endpoint(const struct ibchan_channel *ch,
			     struct ibchan_endpoint *endpoint);
int ibchan_channel_handshake(struct ibchan_channel *ch,
			     const struct ibchan_endpoint *peer,
			     struct ibchan_reason *reason);
void ibchan_channel_query(struct ibchan_channel *ch, struct ibchan_channel_attr *attr);
void ibchan_channel_break(struct ibchan_channel *ch, int error);
void ibchan_channel_close(struct ibchan_channel *ch);
void ibchan_channel_arm(struct ibchan_channel *ch, const struct ibchan_cq *except);

int ibchan_post(struct ibchan_channel *ch, const struct ibchan_wr *wrs, u32 num,
		u32 *accepted, struct ibchan_reason *reason);

#endif /* _RDMA_IBCHAN_H */
