/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * The ioctl contract of /dev/ibchan and the layout of the completion ring.
 *
 * Every command takes a pointer to a struct that begins with
 *
 *	__u32 size	bytes of the struct as the caller knows it
 *	__u32 flags	a mask of the command's flags, else 0
 *
 * A longer struct than the kernel knows is fine as long as the unknown tail is
 * zero; a shorter one reads as if its missing tail were zero. Reserved members
 * must be zero. Members named out_* are written by the kernel, and so is
 * IBCHAN_ANSWERED in @flags.
 *
 * Errno, the same for every command:
 *
 *	ENOTTY		unknown command
 *	E2BIG		the tail that this kernel does not know is not zero
 *	EOPNOTSUPP	unknown flag, or this device cannot do it
 *	EINVAL		a value is out of its range, a reserved member is not zero,
 *			or @size is below the first version of the struct
 *	EFAULT		a pointer of the caller does not work; if only the answer cannot
 *			be written, a new object is undone, an event is told again, and
 *			what was done to an object stays done
 *	ENOENT		no object of the wanted kind has that handle
 *	EPERM		the caller's memory map is not the one that opened the file
 *	EBUSY		the object is in use; nothing changed
 *	EAGAIN		a queue or the ring is full; this entry was not posted
 *	EACCES		the memory region or the channel does not allow this access
 *	EXDEV		the objects belong to different protection domains or devices
 *	ENOTCONN	the channel has no peer yet, and takes nothing but receives
 *	EISCONN		the channel has a peer already
 *	ESHUTDOWN	the channel is broken
 *	ENODEV		the device is gone, or not visible from here
 *	ETIMEDOUT	the time of a bounded wait has passed
 *	EINTR		a signal that has a handler ended a wait, or any signal that of a
 *			submit with entries; no work is lost
 *	EPROTO		the caller damaged a ring; the file can only be closed
 *	EADDRNOTAVAIL	the port has no address that fits the rule, or not yet; as a
 *			channel's first error: its own has been taken away
 *	ENETDOWN	no port is active, or a channel's own was not when it
 *			broke, or went down less than ten seconds before
 *	EHOSTUNREACH	no route to the peer, or its next hop does not answer
 *	ENETUNREACH	no route to the peer's network
 *	ECONNRESET	the peer that asked for a connection has given up
 *	EMSGSIZE	the peer sends longer packets than this side's port takes
 *	EAFNOSUPPORT	an address of a family that is not connected to
 *	EADDRINUSE	another listener has that port already
 *	ENOMEM		no memory, or RLIMIT_MEMLOCK does not allow the pages
 *	ENFILE		the system has as many files open as it may
 *	ENOBUFS		no memory for a route
 *	EMFILE		the file holds as many objects as it may
 *	EDQUOT		the caller's RDMA cgroup holds as many handles or objects as it may, or
 *			the objects of the file's user take as much kernel memory as they may
 *	EBADF		a descriptor in the command is not an open file's
 *
 * Where a command has @reason, a refusal is explained there. The queries and
 * destroy work from any process that has the file; everything else only from the
 * memory map that opened it.
 */
#ifndef _UAPI_LINUX_IBCHAN_H
#define _UAPI_LINUX_IBCHAN_H

#include <linux/const.h>
#include <linux/ioctl.h>
#include <linux/types.h>

/* Grows when a caller could tell the difference. Until 1.0 a module serves its own version only. */
#define IBCHAN_ABI_VERSION	6

#define IBCHAN_IOCTL_TYPE	0xBC

/*
 * The one list of commands: X(number, NAME, name). Each has a struct
 * ibchan_cmd_<name>; the numbers are fixed for ever.
 */
#define IBCHAN_COMMANDS(X)					\
	X(0x00, QUERY, query)					\
	X(0x01, DEVICE_QUERY, device_query)			\
	X(0x02, PORT_QUERY, port_query)				\
	X(0x03, DEVICE_OPEN, device_open)			\
	X(0x04, PD_ALLOC, pd_alloc)				\
	X(0x05, MR_REG, mr_reg)					\
	X(0x06, CQ_CREATE, cq_create)				\
	X(0x07, CHANNEL_BUILD, channel_build)			\
	X(0x08, CHANNEL_HANDSHAKE, channel_handshake)		\
	X(0x09, CHANNEL_QUERY, channel_query)			\
	X(0x0a, CHANNEL_BREAK, channel_break)			\
	X(0x0b, SUBMIT, submit)					\
	X(0x0c, DESTROY, destroy)				\
	X(0x0d, MR_REG_DMABUF, mr_reg_dmabuf)			\
	X(0x0e, CHANNEL_CONNECT, channel_connect)		\
	X(0x0f, CHANNEL_CONNECTION, channel_connection)		\
	X(0x10, LISTENER_CREATE, listener_create)		\
	X(0x11, REQUEST_TAKE, request_take)			\
	X(0x12, REQUEST_ACCEPT, request_accept)			\
	X(0x13, REQUEST_REJECT, request_reject)			\
	X(0x14, EVENT_TAKE, event_take)				\
	X(0x15, ROUTE_QUERY, route_query)			\
	X(0x17, GID_QUERY, gid_query)				\
	X(0x18, CHANNEL_HISTORY, channel_history)

#define IBCHAN_COMMAND_NUMBER(nr, NAME, name)			\
	IBCHAN_CMD_##NAME = _IO(IBCHAN_IOCTL_TYPE, nr),
enum ibchan_command {
	IBCHAN_COMMANDS(IBCHAN_COMMAND_NUMBER)
};

/*
 * In @flags of each command: the kernel has written the struct, on success always, on an
 * error once it has read the struct and found its size, flags and unknown tail to be fine. A
 * filter of system calls that answers in the kernel's place, with 0 or an errno, cannot set
 * it. It means nothing in a command, so a caller clears it before the call.
 */
#define IBCHAN_ANSWERED		0x80000000U

/* Sizes that are part of the contract. */
#define IBCHAN_NAME_SIZE	64	/* a device's name with its final NUL */
#define IBCHAN_MAX_SGE		32	/* elements of one work request, at most */
#define IBCHAN_MAX_MESSAGE	0x7fffffffU /* bytes of one, at most; also of a receive */

/*
 * The builder's defaults. The four queue sizes are the ones of the ibverbs-rs crate.
 * Times are the InfiniBand encodings: an ack time-out of n means 4.096 us * 2^n (17:
 * 537 ms, which rdma_cm of today's kernels computes for Ethernet); an rnr timer of 16
 * means 2.56 ms. Seven times 537 ms outlast a link that fails over and a spanning tree
 * that is computed anew. A message waits for the peer's receive as long as it takes,
 * which 7 retries mean. An ack that does not come means a peer that is dead: its
 * retries stop at 6, because soft-RoCE takes 7 of those as "for ever" as well.
 */
#define IBCHAN_DEFAULT_SEND_WR		16
#define IBCHAN_DEFAULT_RECV_WR		16
#define IBCHAN_DEFAULT_SEND_SGE		16
#define IBCHAN_DEFAULT_RECV_SGE		16
#define IBCHAN_DEFAULT_RNR_RETRIES	7
#define IBCHAN_DEFAULT_ACK_RETRIES	6
#define IBCHAN_DEFAULT_MIN_RNR_TIMER	16
#define IBCHAN_DEFAULT_ACK_TIMEOUT	17
#define IBCHAN_DEFAULT_CQ_ENTRIES	64

/* "Choose for me": a random PSN, the peer's PSN, the GID by rule, ... */
#define IBCHAN_AUTO			0xffffffffU

/* A memory region or a channel allows these; the bits are those of ib_verbs. */
#define IBCHAN_ACCESS_LOCAL_WRITE	0x1U
#define IBCHAN_ACCESS_REMOTE_WRITE	0x2U
#define IBCHAN_ACCESS_REMOTE_READ	0x4U
#define IBCHAN_ACCESS_REMOTE_ATOMIC	0x8U
#define IBCHAN_ACCESS_LOCAL		IBCHAN_ACCESS_LOCAL_WRITE
#define IBCHAN_ACCESS_REMOTE		(IBCHAN_ACCESS_REMOTE_WRITE | \
					 IBCHAN_ACCESS_REMOTE_READ | \
					 IBCHAN_ACCESS_REMOTE_ATOMIC)
#define IBCHAN_ACCESS_SHARED		(IBCHAN_ACCESS_LOCAL_WRITE | \
					 IBCHAN_ACCESS_REMOTE_WRITE | \
					 IBCHAN_ACCESS_REMOTE_READ)
#define IBCHAN_ACCESS_ALL		(IBCHAN_ACCESS_LOCAL_WRITE | \
					 IBCHAN_ACCESS_REMOTE)

/* An endpoint: two peers exchange theirs. */
#include <linux/ibchan_endpoint.h>

/* Numbers in answers: reasons, parameters, statuses, classes. */
#include <linux/ibchan_codes.h>

#include <linux/ibchan_options.h>
#include <linux/ibchan_connect.h>

/* Devices and their ports, and the addresses of these. */
#include <linux/ibchan_device.h>
#include <linux/ibchan_gid.h>
#include <linux/ibchan_history.h>

/**
 * struct ibchan_context_attr - the module's limits, and the objects of one file
 * @abi_version: IBCHAN_ABI_VERSION of the kernel
 * @max_sge: elements of one work request, at most
 * @max_ring_entries: unread completions of one cq, at most
 * @handles: objects that this file holds
 * @max_handles: objects that one file may hold
 * @devices: devices visible from the caller's network namespace
 * @pinned_bytes: memory that this file's regions keep pinned, dma-bufs included
 * @opcodes: bit n is set when submit knows opcode n
 * @wr_flags: IBCHAN_WR_* that submit knows
 * @submit_flags: IBCHAN_SUBMIT_* and IBCHAN_DEADLINE, as far as submit knows them
 * @cq_flags: IBCHAN_CQ_CREATE_* that cq_create knows
 */
struct ibchan_context_attr {
	__u32 abi_version;
	__u32 max_sge;
	__u32 max_ring_entries;
	__u32 handles;
	__u32 max_handles;
	__u32 devices;
	__aligned_u64 pinned_bytes;
	__u32 opcodes;
	__u32 wr_flags;
	__u32 submit_flags;
	__u32 cq_flags;
};

/**
 * struct ibchan_cmd_query - limits of the module, and use that this file makes of it
 * @size: sizeof(struct ibchan_cmd_query)
 * @flags: 0
 * @out: the answer
 *
 * device_query tells what one device can do of this.
 */
struct ibchan_cmd_query {
	__u32 size;
	__u32 flags;
	struct ibchan_context_attr out;
};

/**
 * struct ibchan_cmd_device_open - hold a device
 * @size: sizeof(struct ibchan_cmd_device_open)
 * @flags: 0
 * @name: the device, as in device_query
 * @out_device: handle
 * @reserved: 0
 *
 * The caller's network namespace is remembered: the device and each GID that a
 * channel uses must be visible in it.
 */
struct ibchan_cmd_device_open {
	__u32 size;
	__u32 flags;
	char name[IBCHAN_NAME_SIZE];
	__u32 out_device;
	__u32 reserved;
};

/**
 * struct ibchan_cmd_pd_alloc - make a protection domain
 * @size: sizeof(struct ibchan_cmd_pd_alloc)
 * @flags: 0
 * @device: handle
 * @out_pd: handle
 */
struct ibchan_cmd_pd_alloc {
	__u32 size;
	__u32 flags;
	__u32 device;
	__u32 out_pd;
};

/**
 * struct ibchan_cmd_mr_reg - pin and register a range of the caller's memory
 * @size: sizeof(struct ibchan_cmd_mr_reg)
 * @flags: 0
 * @addr: first byte; any alignment
 * @length: bytes, 1 or more
 * @pd: handle
 * @access: IBCHAN_ACCESS_*; remote write and atomic need local write
 * @out_mr: handle
 * @out_rkey: for the peer; 0 unless @access has a remote bit
 * @reason: why not, on an error
 *
 * The pages are charged to RLIMIT_MEMLOCK, unless the caller has CAP_IPC_LOCK.
 *
 * Any memory of the caller's: anonymous, shared, huge pages, files. Without local
 * write a mapping may be read-only. Where it is shared, 6.1 limits it to what a fast
 * registration takes (soft-RoCE: 2 MiB), and more is EOPNOTSUPP; where it is private,
 * 6.1 gives the process a copy of each page, so that it grows by the whole range.
 * EFAULT tells of a range that is not mapped with enough access, of memory of devices,
 * and of local write to a shared mapping of a file that is stored: all but tmpfs and
 * hugetlbfs.
 */
struct ibchan_cmd_mr_reg {
	__u32 size;
	__u32 flags;
	__aligned_u64 addr;
	__aligned_u64 length;
	__u32 pd;
	__u32 access;
	__u32 out_mr;
	__u32 out_rkey;
	struct ibchan_reason reason;
};

/**
 * struct ibchan_cmd_mr_reg_dmabuf - register a range of a dma-buf
 * @size: sizeof(struct ibchan_cmd_mr_reg_dmabuf)
 * @flags: 0
 * @offset: of the first byte, from the start of the dma-buf
 * @length: bytes, 1 or more
 * @fd: of the dma-buf; it may be closed afterwards
 * @pd: handle
 * @access: IBCHAN_ACCESS_*; remote write and atomic need local write
 * @out_mr: handle
 * @out_rkey: for the peer; 0 unless @access has a remote bit
 * @reserved: 0
 * @out_addr: address that peers know the first byte by; 0 unless @access has a
 *	remote bit
 * @reason: why not, on an error
 *
 * The region keeps the dma-buf until it is destroyed, also when its device has left
 * before. The memory is the exporter's: nothing is charged to RLIMIT_MEMLOCK.
 *
 * So far only soft devices can (IBCHAN_DEVICE_DMABUF): they work on it with the
 * CPU, so the exporter must be able to map it for the CPU, in memory that has
 * pages; a GPU's own memory has none. EOPNOTSUPP tells that one of the three
 * cannot. For the exporter the region is one access by the CPU that begins here
 * and ends with the region: fences that are on the dma-buf by now are waited
 * for, later ones are not.
 *
 * EINVAL also tells that @fd is no dma-buf, or that the range leaves it; EACCES
 * that it was not opened for reading, or for writing where @access has local
 * write. A region with a remote bit may have as many pages as the device can
 * register at a time (soft-RoCE: 512); in one without, an element that spans pages
 * which lie apart counts as several for the device.
 */
struct ibchan_cmd_mr_reg_dmabuf {
	__u32 size;
	__u32 flags;
	__aligned_u64 offset;
	__aligned_u64 length;
	__s32 fd;
	__u32 pd;
	__u32 access;
	__u32 out_mr;
	__u32 out_rkey;
	__u32 reserved;
	__aligned_u64 out_addr;
	struct ibchan_reason reason;
};

/* Flags of cq_create. */
#define IBCHAN_CQ_CREATE_SOLICITED	0x1U	/* only solicited messages and errors wake */

/**
 * struct ibchan_cmd_cq_create - make a completion queue and its ring
 * @size: sizeof(struct ibchan_cmd_cq_create)
 * @flags: IBCHAN_CQ_CREATE_*
 * @device: handle
 * @entries: completions that may lie in the ring unread; rounded up to a power
 *	of two
 * @cq_entries: work requests that the channels on this queue may have in flight
 *	together, plus 2 for each channel; 0: 4096, or the device's largest
 * @out_cq: handle
 * @out_fd: polls readable (level-triggered) while the ring holds a completion;
 *	to be mapped at offset 0 with @out_ring_size bytes
 * @out_ring_size: bytes
 * @reason: why not, on an error
 *
 * With IBCHAN_CQ_CREATE_SOLICITED a poll of @out_fd is woken by what comes from a
 * peer's IBCHAN_WR_SOLICITED, and by errors as far as the device reports those
 * (soft-RoCE does not for sends, nor before 7.2 for a peer that is refused access);
 * from the break of a channel on it until that is closed, by any completion. Others
 * wait in the queue until then, or until the next submit on it. A waiting submit is
 * woken by any completion.
 */
struct ibchan_cmd_cq_create {
	__u32 size;
	__u32 flags;
	__u32 device;
	__u32 entries;
	__u32 cq_entries;
	__u32 out_cq;
	__s32 out_fd;
	__u32 out_ring_size;
	struct ibchan_reason reason;
};

/**
 * struct ibchan_params - the builder's knobs
 * @access: IBCHAN_ACCESS_* that the peer and this side may use on the channel
 * @max_send_wr: sends, writes and reads in flight, 1 and up
 * @max_recv_wr: receives in flight, 1 and up
 * @max_send_sge: elements of one, 1 to the device's and IBCHAN_MAX_SGE; IBCHAN_AUTO:
 *	IBCHAN_DEFAULT_SEND_SGE, or the device's if those are less
 * @max_recv_sge: the same for receives, IBCHAN_DEFAULT_RECV_SGE
 * @rnr_retries: 0 to 7, where 7 means for ever
 * @ack_retries: 0 to 7, where 7 means for ever on soft-RoCE
 * @min_rnr_timer: InfiniBand code 0 to 31
 * @ack_timeout: InfiniBand code 0 (for ever) to 31; IBCHAN_AUTO: by address what the
 *	connection manager computes of the path and the devices, by endpoints
 *	IBCHAN_DEFAULT_ACK_TIMEOUT
 * @mtu: 256, 512, 1024, 2048 or 4096 bytes at most; 0: the most that the addresses of both
 *	sides carry. An address carries as much as its port and its network device, say a
 *	VLAN; a connection may bring another address than the channel was built with
 * @send_psn: 24 bits; IBCHAN_AUTO: random
 * @recv_psn: 24 bits; IBCHAN_AUTO: as in the peer's endpoint
 * @port: 1 and up; 0: the first active one
 * @gid_index: entry of the GID table; IBCHAN_AUTO: by rule (RoCE v2, an address
 *	that a network device has which is up; a wider scope before link-local, then
 *	one that is not deprecated, IPv4 before IPv6, no VLAN before a VLAN);
 *	IBCHAN_AUTO_IPV4 or IBCHAN_AUTO_IPV6: by rule, of that family only
 * @max_rd_atomic: reads and atomics in flight, 1 and up; IBCHAN_AUTO: as many
 *	as both devices can
 * @traffic_class: 0 to 255
 * @service_level: 0 to 15
 * @max_inline_data: bytes that a send or write may carry in the request itself; 0:
 *	none; 1024 at most, and what the device takes
 */
struct ibchan_params {
	__u32 access;
	__u32 max_send_wr;
	__u32 max_recv_wr;
	__u32 max_send_sge;
	__u32 max_recv_sge;
	__u32 rnr_retries;
	__u32 ack_retries;
	__u32 min_rnr_timer;
	__u32 ack_timeout;
	__u32 mtu;
	__u32 send_psn;
	__u32 recv_psn;
	__u32 port;
	__u32 gid_index;
	__u32 max_rd_atomic;
	__u32 traffic_class;
	__u32 service_level;
	__u32 max_inline_data;
};

/**
 * struct ibchan_cmd_channel_build - make a channel that has no peer yet
 * @size: sizeof(struct ibchan_cmd_channel_build)
 * @flags: 0
 * @pd: handle
 * @send_cq: where sends, writes and reads complete
 * @recv_cq: where receives complete; may be the same
 * @out_channel: handle
 * @params: the knobs; the kernel writes its choices back
 * @out_endpoint: for the peer
 * @reason: why not, on an error
 * @options: what else
 */
struct ibchan_cmd_channel_build {
	__u32 size;
	__u32 flags;
	__u32 pd;
	__u32 send_cq;
	__u32 recv_cq;
	__u32 out_channel;
	struct ibchan_params params;
	struct ibchan_endpoint out_endpoint;
	struct ibchan_reason reason;
	struct ibchan_options options;
};

/**
 * struct ibchan_cmd_channel_handshake - connect a channel to its peer
 * @size: sizeof(struct ibchan_cmd_channel_handshake)
 * @flags: 0
 * @channel: handle
 * @reserved: 0
 * @endpoint: the peer's
 * @reason: why not, on an error
 *
 * A peer that does not fit is refused before anything changes.
 */
struct ibchan_cmd_channel_handshake {
	__u32 size;
	__u32 flags;
	__u32 channel;
	__u32 reserved;
	struct ibchan_endpoint endpoint;
	struct ibchan_reason reason;
};

/**
 * enum ibchan_channel_state - where a channel is
 * @IBCHAN_CHANNEL_PREPARED: it has an endpoint and no peer; it takes receives
 * @IBCHAN_CHANNEL_CONNECTING: a handshake is under way
 * @IBCHAN_CHANNEL_CONNECTED: it takes work
 * @IBCHAN_CHANNEL_BROKEN: it takes none; all posted work completes
 * @IBCHAN_CHANNEL_CLOSED: its verbs objects are gone
 */
enum ibchan_channel_state {
	IBCHAN_CHANNEL_PREPARED = 0,
	IBCHAN_CHANNEL_CONNECTING = 1,
	IBCHAN_CHANNEL_CONNECTED = 2,
	IBCHAN_CHANNEL_BROKEN = 3,
	IBCHAN_CHANNEL_CLOSED = 4,
};

/**
 * struct ibchan_channel_attr - how a channel fares
 * @state: enum ibchan_channel_state
 * @error: errno of the first error, positive, 0 while there is none; with two cqs for a
 *	moment that of a flush, until it is known what that came from
 * @status: enum ibchan_status of the work that failed first
 * @sends_in_flight: posted and not completed; of a broken or closed channel, all others have been
 *	told of: their completions are in the rings, or done() was called
 * @recvs_in_flight: the same
 * @reserved: 0
 * @params: in effect; mtu and max_rd_atomic are the agreed ones once connected; the latter is
 *	0 where the peer serves no reads and atomics
 * @endpoint: of this side, for the peer
 * @options: in effect
 * @facts: see struct ibchan_facts
 */
struct ibchan_channel_attr {
	__u32 state;
	__u32 error;
	__u32 status;
	__u32 sends_in_flight;
	__u32 recvs_in_flight;
	__u32 reserved;
	struct ibchan_params params;
	struct ibchan_endpoint endpoint;
	struct ibchan_options options;
	struct ibchan_facts facts;
};

/**
 * struct ibchan_cmd_channel_query - a channel's state and parameters
 * @size: sizeof(struct ibchan_cmd_channel_query)
 * @flags: 0
 * @channel: handle
 * @reserved: 0
 * @out: the answer
 */
struct ibchan_cmd_channel_query {
	__u32 size;
	__u32 flags;
	__u32 channel;
	__u32 reserved;
	struct ibchan_channel_attr out;
};

/**
 * struct ibchan_cmd_channel_break - end a channel; its works complete flushed
 * @size: sizeof(struct ibchan_cmd_channel_break)
 * @flags: 0
 * @channel: handle
 * @reserved: 0
 *
 * A channel that is broken already stays as it is.
 */
struct ibchan_cmd_channel_break {
	__u32 size;
	__u32 flags;
	__u32 channel;
	__u32 reserved;
};

/* Operations of a work request. */
#define IBCHAN_OP_SEND		0
#define IBCHAN_OP_RECV		1
#define IBCHAN_OP_WRITE		2
#define IBCHAN_OP_READ		3
#define IBCHAN_OP_COMPARE_SWAP	4
#define IBCHAN_OP_FETCH_ADD	5

/* Flags of a work request. */
#define IBCHAN_WR_IMM		0x01U	/* send or write with immediate */
#define IBCHAN_WR_FENCE		0x02U	/* not before all reads and atomics before it are done */
#define IBCHAN_WR_SOLICITED	0x04U	/* send, or write with immediate: wakes a solicited cq */
#define IBCHAN_WR_INLINE	0x08U	/* send or write: the data go with the request */
#define IBCHAN_WR_UNSIGNALED	0x10U	/* ends with a later work; not for a receive */
#define IBCHAN_WR_UNCHECKED	0x80U	/* ranges in flight may collide; see below */
#define IBCHAN_WR_FLAGS		(IBCHAN_WR_IMM | IBCHAN_WR_FENCE | IBCHAN_WR_SOLICITED | \
				 IBCHAN_WR_INLINE | IBCHAN_WR_UNSIGNALED | \
				 IBCHAN_WR_UNCHECKED)

/* As the length of a peer's region: only the peer's device knows it. */
#define IBCHAN_REMOTE_UNCHECKED	(~0ULL)

/* Instead of a region's handle: memory of the caller's that is not registered. */
#define IBCHAN_MR_PLAIN		0xffffffffU

/**
 * struct ibchan_submit_sge - a gather or scatter element
 * @offset: from the region's first byte; of plain memory: the address
 * @length: bytes; 0 is allowed
 * @mr: handle, or IBCHAN_MR_PLAIN
 *
 * The pages of plain memory are pinned for this one work and charged to
 * RLIMIT_MEMLOCK; pinned_bytes of query does not count them. They are let go soon after
 * the work has completed, at the latest for another post that needs the room; those
 * of a work that failed, when its channel is closed, because the device may still be
 * busy with them. An element of plain memory has at most max_plain_bytes of the
 * device's attributes, counted from its page's first byte on.
 */
struct ibchan_submit_sge {
	__aligned_u64 offset;
	__u32 length;
	__u32 mr;
};

/**
 * struct ibchan_submit_wr - one work request
 * @channel: handle
 * @opcode: IBCHAN_OP_*
 * @flags: IBCHAN_WR_*
 * @num_sge: elements, 0 and up
 * @wr_id: comes back in the completion
 * @sges: address of struct ibchan_submit_sge[@num_sge] when there are two or
 *	more, else 0
 * @operand: atomics, instead of @sges: the value to compare with, or to add
 * @remote_addr: write, read, atomics: address in the peer's region, else 0
 * @rkey: write, read, atomics: of the peer's region, else 0
 * @imm: with IBCHAN_WR_IMM: 32 bits for the peer, in host order, else 0
 * @sge: the element when there is just one, else 0
 * @swap: compare and swap: the new value
 * @remote_length: write, read, fetch and add: bytes of the peer's region from @remote_addr on,
 *	which the elements together may not exceed, or IBCHAN_REMOTE_UNCHECKED; send, receive: 0
 *
 * A work keeps its ranges until it has completed. Meanwhile a range
 * that it writes (receive, read, atomic) may not overlap a range of any other work
 * in flight on the same region, and a range that it reads (send, write) not one
 * that is written: such a post is refused with EBUSY. An entry with
 * IBCHAN_WR_UNCHECKED takes no part in this. Nor do aliases (two regions over
 * the same memory, plain memory), what peers do by rkey, and what the CPU does.
 *
 * With IBCHAN_WR_INLINE all elements are of plain memory, at most the channel's
 * max_inline_data bytes together. They are copied during the call and may be
 * reused when it returns.
 *
 * An atomic works on 8 bytes of the peer's at a multiple of 8, in the byte order of
 * the peer's host. Its one element of 8 bytes receives what they were before.
 *
 * A work with IBCHAN_WR_UNSIGNALED ends at the latest when a later work of its
 * channel's sends, writes, reads and atomics does that has not the flag, or with an
 * error, or when the channel breaks. It may end before, because half a queue of such
 * works is the most that the kernel waits for. Its completion has IBCHAN_CQE_SILENT if
 * it succeeded; waits count that as any other.
 */
struct ibchan_submit_wr {
	__u32 channel;
	__u8 opcode;
	__u8 flags;
	__u16 num_sge;
	__aligned_u64 wr_id;
	union {
		__aligned_u64 sges;
		__aligned_u64 operand;
	};
	__aligned_u64 remote_addr;
	__u32 rkey;
	__u32 imm;
	struct ibchan_submit_sge sge;
	union {
		__aligned_u64 swap;
		__aligned_u64 remote_length;
	};
};

#define IBCHAN_TIMEOUT_NEVER	(-1)

/*
 * A flag of each command that waits: its time-out is the end of the wait, in nanoseconds of
 * the kernel's monotonic clock. The kernel sets both when a signal interrupts a command that
 * only waits. If no handler takes the signal (the process was stopped and continued, traced
 * or frozen), the kernel then runs the command again, and the wait ends when it would have
 * ended anyway. Else the command fails with EINTR; a caller that makes the call again with the
 * same struct waits for the rest of the time.
 */
#define IBCHAN_DEADLINE		0x2U

/* Flags of submit; IBCHAN_DEADLINE is one as well. */
#define IBCHAN_SUBMIT_SINCE	0x1U	/* the wait counts from @tail */

/**
 * struct ibchan_cmd_submit - post work, then wait for completions
 * @size: sizeof(struct ibchan_cmd_submit)
 * @flags: IBCHAN_SUBMIT_*, IBCHAN_DEADLINE
 * @entries: address of the first work request
 * @entry_len: bytes from one to the next: sizeof(struct ibchan_submit_wr), or up
 *	to a page when what this kernel does not know is zero
 * @entry_num: in: work requests; out, also on an error: how many leading ones
 *	were accepted
 * @cq: handle of the queue to wait on; 0: do not wait
 * @min_complete: wait until the ring holds as many unread completions; 0: just
 *	bring in what is there
 * @timeout_ns: nanoseconds, or IBCHAN_TIMEOUT_NEVER; no other negative number; see
 *	IBCHAN_DEADLINE
 * @out_ready: unread completions in the ring, if @cq was given
 * @tail: with IBCHAN_SUBMIT_SINCE: a value of the ring's tail; else 0
 * @reason: out, on an error: why the first refused one was refused; else it stays as it was
 *
 * When an entry is refused, those before it are posted, those after it are not,
 * nothing is waited for and the call fails with the errno of that entry. With
 * @entry_num 0 the call only waits. EINTR and ETIMEDOUT speak of the wait: all
 * posted work stays posted, and the kernel never repeats a call with entries. With EFAULT, of a
 * struct that could not be written, the numbers in it may mean nothing.
 *
 * With IBCHAN_SUBMIT_SINCE the wait ends when @min_complete completions have
 * come since the ring's tail was @tail, read or not. Several
 * threads that wait on one queue need that, because each of them may read a completion that another
 * waits for.
 */
struct ibchan_cmd_submit {
	__u32 size;
	__u32 flags;
	__aligned_u64 entries;
	__u32 entry_len;
	__u32 entry_num;
	__u32 cq;
	__u32 min_complete;
	__s64 timeout_ns;
	__u32 out_ready;
	__u32 tail;
	struct ibchan_reason reason;
};

/**
 * struct ibchan_cmd_destroy - give an object back
 * @size: sizeof(struct ibchan_cmd_destroy)
 * @flags: 0
 * @handle: of any kind
 * @reserved: 0
 *
 * EBUSY while another object, a posted work or a command of another thread uses it. A
 * command does not make a channel or a listener busy: it is waited for. A channel is broken
 * first, which ends commands on it, and drained, and its works complete flushed.
 */
struct ibchan_cmd_destroy {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 reserved;
};

/* Flags of a completion. */
#define IBCHAN_CQE_IMM		0x1U	/* @imm is there */
#define IBCHAN_CQE_SILENT	0x2U	/* an unsignaled work that succeeded */
#define IBCHAN_CQE_INVALIDATED	0x4U	/* the peer has invalidated the rkey in @imm */

/**
 * struct ibchan_cqe - one entry of the ring
 * @wr_id: of the work request
 * @channel: handle
 * @status: enum ibchan_status
 * @opcode: IBCHAN_OP_*
 * @flags: IBCHAN_CQE_*
 * @bytes: received, for a receive that succeeded
 * @imm: in host order; with IBCHAN_CQE_INVALIDATED a key
 * @error: 0 or a negative errno
 * @vendor_err: the device's own code
 */
struct ibchan_cqe {
	__aligned_u64 wr_id;
	__u32 channel;
	__u16 status;
	__u8 opcode;
	__u8 flags;
	__u32 bytes;
	__u32 imm;
	__s32 error;
	__u32 vendor_err;
};

/**
 * struct ibchan_ring - the start of a mapped ring
 * @abi_version: IBCHAN_ABI_VERSION
 * @entry_size: bytes from one struct ibchan_cqe to the next
 * @entries: a power of two
 * @entries_offset: of the first entry, from the start of the mapping
 * @tail_offset: of the __u32 that the kernel advances
 * @head_offset: of the __u32 that the reader advances
 *
 * Both counters run freely; an entry's place is its counter modulo @entries.
 * Load @tail with acquire order, read the entries from @head on, then store the
 * new @head with release order. A head outside what the kernel published ends
 * the file with EPROTO.
 */
struct ibchan_ring {
	__u32 abi_version;
	__u32 entry_size;
	__u32 entries;
	__u32 entries_offset;
	__u32 tail_offset;
	__u32 head_offset;
};

#endif /* _UAPI_LINUX_IBCHAN_H */
