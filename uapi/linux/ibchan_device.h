/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * Devices and their ports. <linux/ibchan.h> includes this file.
 */
#ifndef _UAPI_LINUX_IBCHAN_DEVICE_H
#define _UAPI_LINUX_IBCHAN_DEVICE_H

#include <linux/types.h>

#define IBCHAN_DEVICE_USER_MR	0x1U	/* can register user memory */
#define IBCHAN_DEVICE_ATOMICS	0x2U
#define IBCHAN_DEVICE_DMABUF	0x4U	/* can register dma-bufs */
#define IBCHAN_DEVICE_IMMEDIATE	0x8U	/* immediate data; fenced reads */
#define IBCHAN_DEVICE_ENDPOINTS	0x10U	/* peers may exchange endpoints; else rdma_cm only */

/* Flags of device_query. */
#define IBCHAN_DEVICE_QUERY_HANDLE	0x1U	/* of one that is open */

/**
 * struct ibchan_device_attr - limits and abilities of a device
 * @name: as the rdma tool shows it, with a final NUL
 * @node_guid: in host order
 * @max_mr_size: bytes of one memory region of a user; 0: none can be made
 * @max_plain_bytes: bytes of one element of plain memory, from a page's first byte on
 * @ports: the ports are 1 to this
 * @caps: IBCHAN_DEVICE_*
 * @max_qp_wr: work requests in one queue
 * @max_send_sge: elements of a send or write
 * @max_recv_sge: elements of a receive
 * @max_read_sge: elements of a read
 * @max_cqe: entries of one completion queue
 * @max_rd_atomic: reads and atomics in flight on one channel
 * @driver_id: enum rdma_driver_id
 * @max_fast_reg_pages: pages of one fast registration, which a shared region of kernel memory
 *	takes; 0: the device has none
 * @max_inline_data: bytes that a request can carry itself, as far as the device has
 *	told when it made a channel; another may ask for more, and is told the limit if that
 *	is refused; IBCHAN_AUTO: it has made none yet
 * @comp_vectors: completion vectors: interrupts, each of which may go to another cpu
 */
struct ibchan_device_attr {
	char name[IBCHAN_NAME_SIZE];
	__aligned_u64 node_guid;
	__aligned_u64 max_mr_size;
	__aligned_u64 max_plain_bytes;
	__u32 ports;
	__u32 caps;
	__u32 max_qp_wr;
	__u32 max_send_sge;
	__u32 max_recv_sge;
	__u32 max_read_sge;
	__u32 max_cqe;
	__u32 max_rd_atomic;
	__u32 driver_id;
	__u32 max_fast_reg_pages;
	__u32 max_inline_data;
	__u32 comp_vectors;
};

/**
 * struct ibchan_cmd_device_query - one device that the caller can see
 * @size: sizeof(struct ibchan_cmd_device_query)
 * @flags: IBCHAN_DEVICE_QUERY_HANDLE, or 0
 * @index: 0 and up; ENOENT tells the end of the list; or the handle of an open device
 * @reserved: 0
 * @out: the answer
 */
struct ibchan_cmd_device_query {
	__u32 size;
	__u32 flags;
	__u32 index;
	__u32 reserved;
	struct ibchan_device_attr out;
};

/**
 * enum ibchan_port_state - what a port does; the numbers are those of enum ib_port_state
 * @IBCHAN_PORT_NOP: the device has not said
 * @IBCHAN_PORT_DOWN: there is no link
 * @IBCHAN_PORT_INIT: there is a link; InfiniBand: the subnet manager has not come
 * @IBCHAN_PORT_ARMED: InfiniBand: the subnet manager is about to make it active
 * @IBCHAN_PORT_ACTIVE: it carries data; the only state in which a channel can be made
 * @IBCHAN_PORT_ACTIVE_DEFER: it was active, and has lost its link a moment ago
 */
enum ibchan_port_state {
	IBCHAN_PORT_NOP = 0,
	IBCHAN_PORT_DOWN = 1,
	IBCHAN_PORT_INIT = 2,
	IBCHAN_PORT_ARMED = 3,
	IBCHAN_PORT_ACTIVE = 4,
	IBCHAN_PORT_ACTIVE_DEFER = 5,
};

/**
 * struct ibchan_port_attr - state and limits of a port
 * @state: enum ibchan_port_state
 * @link_layer: IBCHAN_LINK_LAYER_*
 * @active_mtu: bytes
 * @max_mtu: bytes
 * @lid: InfiniBand address within the subnet
 * @gid_index: the entry of the GID table that a channel takes unless told otherwise, or
 *	IBCHAN_AUTO when there is none yet
 * @gid_entries: size of the table
 * @max_message: bytes of the longest message that it takes, at most IBCHAN_MAX_MESSAGE
 * @gid: the address in the entry @gid_index
 */
struct ibchan_port_attr {
	__u32 state;
	__u32 link_layer;
	__u32 active_mtu;
	__u32 max_mtu;
	__u32 lid;
	__u32 gid_index;
	__u32 gid_entries;
	__u32 max_message;
	__u8 gid[IBCHAN_GID_SIZE];
};

/**
 * struct ibchan_cmd_port_query - one port of a device
 * @size: sizeof(struct ibchan_cmd_port_query)
 * @flags: 0
 * @port: 1 and up
 * @name: the device
 * @out: the answer
 */
struct ibchan_cmd_port_query {
	__u32 size;
	__u32 flags;
	__u32 port;
	char name[IBCHAN_NAME_SIZE];
	struct ibchan_port_attr out;
};

#endif /* _UAPI_LINUX_IBCHAN_DEVICE_H */
