/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/* The numbers in the answers of /dev/ibchan. <linux/ibchan.h> includes this file. */
#ifndef _UAPI_LINUX_IBCHAN_CODES_H
#define _UAPI_LINUX_IBCHAN_CODES_H

#include <linux/types.h>

/*
 * Why something was refused: X(number, NAME). The comment names the values in
 * ibchan_reason.value[]; a blank one has none. @wr and @element say where.
 */
#define IBCHAN_REASONS(X)						\
	X(0, NONE)							\
	X(1, OPCODE)		/* opcode given */			\
	X(2, WR_FLAGS)		/* flags given, flags allowed */	\
	X(3, RESERVED)		/* */					\
	X(4, TOO_MANY_ELEMENTS)	/* given, allowed by the channel */	\
	X(5, ELEMENT_POINTER)	/* address given */			\
	X(6, CHANNEL_HANDLE)	/* handle given */			\
	X(7, MR_HANDLE)		/* handle given */			\
	X(8, MESSAGE_TOO_LONG)	/* bytes given, bytes allowed */	\
	X(9, OUT_OF_BOUNDS)	/* offset, length, size of the mr */	\
	X(10, OTHER_PD)		/* */					\
	X(11, MR_ACCESS)	/* access needed, access allowed */	\
	X(12, MR_GOING)		/* */					\
	X(13, NOT_CONNECTED)	/* */					\
	X(14, BROKEN)		/* errno of the first error, wc status */ \
	X(15, SEND_QUEUE_FULL)	/* depth */				\
	X(16, RECV_QUEUE_FULL)	/* depth */				\
	X(17, RING_FULL)	/* */					\
	X(18, DEVICE_GONE)	/* */					\
	X(19, POST_FAILED)	/* errno of the driver */		\
	X(20, MEMLOCK)		/* bytes pinned, limit, bytes needed */	\
	X(21, DRIVER_NOT_SAFE)	/* driver id */				\
	X(22, ACCESS_COMBINATION) /* access given */			\
	X(23, EMPTY_RANGE)	/* */					\
	X(24, PARAMETER)	/* value, lowest, highest allowed */	\
	X(25, NO_GID)		/* port, entries looked at, verdict on the best */ \
	X(26, PORT_DOWN)	/* port, state */			\
	X(27, CQ_FULL)		/* entries wanted, entries free */	\
	X(28, ENDPOINT_MAGIC)	/* ours, theirs */			\
	X(29, ENDPOINT_VERSION)	/* ours, theirs */			\
	X(30, ENDPOINT_RESERVED) /* */					\
	X(31, LINK_LAYER)	/* ours, theirs */			\
	X(32, GID_FAMILY)	/* ours, theirs: 4 or 6 */		\
	X(33, PEER_QPN)		/* lowest allowed, theirs */		\
	X(34, PEER_PSN)		/* highest allowed, theirs */		\
	X(35, PEER_MTU)		/* our code, theirs */			\
	X(36, PEER_GID)		/* */					\
	X(37, PEER_MAC)		/* */					\
	X(38, MTU_ABOVE_PORT)	/* bytes wanted, bytes that go over the address */	\
	X(39, VERBS)		/* errno of the driver, step */		\
	X(40, GID_GONE)		/* port, index */			\
	X(41, PEER_RD_ATOMIC)	/* lowest allowed, theirs */		\
	X(42, BUSY)		/* offset, length, wr_id of what is in flight */ \
	X(43, REMOTE_BOUNDS)	/* bytes given, bytes of the remote region */ \
	X(44, NO_SINK)		/* */					\
	X(45, ATOMIC_FORM)	/* bytes given, remote address */	\
	X(46, INLINE_TOO_LONG)	/* bytes given, bytes allowed */	\
	X(47, REGION_TOO_LONG)	/* pages given, pages allowed */	\
	X(48, REGION_GAPS)	/* pieces given, pieces mapped */	\
	X(49, REGION_COPIED)	/* */					\
	X(50, INLINE_ELEMENT)	/* handle given */			\
	X(51, DMABUF_DEVICE)	/* driver id */				\
	X(52, DMABUF_NOT_MAPPED) /* */					\
	X(53, DMABUF_NO_PAGES)	/* */					\
	X(54, DMABUF_MODE)	/* */					\
	X(55, MEMORY_NOT_THERE)	/* address given, length */		\
	X(56, REQUEST_DEVICE)	/* */					\
	X(57, PRIVATE_DATA)	/* bytes given, bytes allowed */	\
	X(58, STAGE_TIME)	/* milliseconds given, most allowed */	\
	X(59, ADDRESS_FAMILY)	/* family given */			\
	X(60, CM)		/* errno, step */			\
	X(61, CONNECT)		/* stage, what the connection manager said */ \
	X(66, NO_ROUTE)		/* errno of the routing table, peer's GID: 2 halves */ \
	X(67, NEXT_HOP)		/* errno, peer's GID: 2 halves */	\
	X(68, NO_PKEY)		/* port, entries looked at */	\
	X(78, CGROUP)		/* 0: hca_handle, 1: hca_object */	\
	X(79, IWARP)		/* 0: endpoints, 1: reads into memory without a key */ \
	X(86, FILE_WRITTEN)	/* address given, length */		\
	X(87, READ_ONLY_SHARED)	/* pages given, pages allowed */	\
	X(89, USER_MEMORY)	/* bytes charged, limit, bytes needed */ \
	X(90, NAME)		/* of the library: code of getaddrinfo() */ \
	X(91, HOST_ONLY)	/* GID that would do, two words; 0: none is known */ \
	X(92, PEER_LID)		/* highest allowed, theirs */		\
	X(93, PEER_PKEY)	/* ours, theirs */			\
	X(94, PEER_SUBNET)	/* our prefix, theirs */		\
	X(95, WORK_IN_FLIGHT)	/* of kernel consumers */		\
	X(96, NO_DONE)		/* of kernel consumers */		\
	X(97, PEER_NO_READS)	/* opcode */				\
	X(98, MR_INVALIDATED)	/* */					\
	X(100, INTERRUPTS_OFF)	/* of kernel consumers */		\
	X(101, NODE)		/* of the library: errno, 1: the module is loaded */ \
	X(105, FOREIGN)		/* */					\
	X(106, SOURCE)		/* errno, source as a GID: 2 halves */	\
	X(107, MESSAGES_UNTAKEN) /* of the library: messages sent, taken by the peer */

#define IBCHAN_REASON_NUMBER(nr, NAME) IBCHAN_REASON_##NAME = (nr),
enum ibchan_reason_code {
	IBCHAN_REASONS(IBCHAN_REASON_NUMBER)
};

/* Which builder parameter IBCHAN_REASON_PARAMETER speaks of (in @element). */
#define IBCHAN_PARAMETERS(X)						\
	X(0, ACCESS)							\
	X(1, MAX_SEND_WR)						\
	X(2, MAX_RECV_WR)						\
	X(3, MAX_SEND_SGE)						\
	X(4, MAX_RECV_SGE)						\
	X(5, RNR_RETRIES)						\
	X(6, ACK_RETRIES)						\
	X(7, MIN_RNR_TIMER)						\
	X(8, ACK_TIMEOUT)						\
	X(9, MTU)							\
	X(10, SEND_PSN)							\
	X(11, RECV_PSN)							\
	X(12, PORT)							\
	X(13, GID_INDEX)						\
	X(14, MAX_RD_ATOMIC)						\
	X(15, TRAFFIC_CLASS)						\
	X(16, CQ_ENTRIES)						\
	X(17, MIN_COMPLETE)						\
	X(18, ENTRY_LEN)						\
	X(19, SERVICE_LEVEL)						\
	X(20, MAX_INLINE_DATA)						\
	X(21, BACKLOG)	\
	X(24, KEEPALIVE_MS)						\
	X(25, ENTRIES)							\
	X(26, COMP_VECTOR)							\
	X(27, SERVICE)							\
	X(28, SIZE)		/* of the library, as the following ones */ \
	X(29, TIMEOUT_NS)	/* signed */				\
	X(30, MESSAGES)							\
	X(31, MESSAGE_BYTES)						\
	X(32, LENGTH)

#define IBCHAN_PARAMETER_NUMBER(nr, NAME) IBCHAN_PARAMETER_##NAME = (nr),
enum ibchan_parameter {
	IBCHAN_PARAMETERS(IBCHAN_PARAMETER_NUMBER)
};

/**
 * struct ibchan_reason - why a command was refused
 * @code: enum ibchan_reason_code
 * @wr: index of the work request, 0 where there is none
 * @element: index of the element, or enum ibchan_parameter
 * @reserved: 0
 * @value: the numbers that the code's line in IBCHAN_REASONS names
 */
struct ibchan_reason {
	__u32 code;
	__u32 wr;
	__u32 element;
	__u32 reserved;
	__aligned_u64 value[3];
};

/*
 * Work completion statuses: X(wc status, NAME, errno, CLASS, hint). The numbers
 * are those of enum ib_wc_status, the names those of the verbs.
 */
#define IBCHAN_STATUSES(X)						\
	X(0, SUCCESS, 0, NONE,						\
	  "")								\
	X(1, LOC_LEN_ERR, EMSGSIZE, PROGRAMMING,			\
	  "the message is longer than the elements of the receive, or than the device can") \
	X(2, LOC_QP_OP_ERR, EIO, PROGRAMMING,				\
	  "the device could not carry it out; a receive: the message is longer than its elements") \
	X(3, LOC_EEC_OP_ERR, EIO, PROGRAMMING,				\
	  "not a status of a reliable connection")			\
	X(4, LOC_PROT_ERR, EFAULT, PROGRAMMING,				\
	  "an element is not inside a valid local region")		\
	X(5, WR_FLUSH_ERR, ECANCELED, TRANSPORT,			\
	  "the channel was broken before this work was done; its first error tells why") \
	X(6, MW_BIND_ERR, EIO, LOCAL_RESOURCE,				\
	  "a memory window could not be bound; ibchan makes none")	\
	X(7, BAD_RESP_ERR, EPROTO, TRANSPORT,				\
	  "the peer answered with something unexpected")		\
	X(8, LOC_ACCESS_ERR, EACCES, PROGRAMMING,			\
	  "the local region does not allow this access")		\
	X(9, REM_INV_REQ_ERR, EREMOTEIO, REMOTE,			\
	  "the peer refused: its receive is too short, or its channel forbids the operation") \
	X(10, REM_ACCESS_ERR, EREMOTEIO, REMOTE,			\
	  "the peer's region: wrong key, out of its bounds, deregistered, or access not allowed") \
	X(11, REM_OP_ERR, EREMOTEIO, REMOTE,				\
	  "the peer could not carry it out: its receive may be too short; its own error tells") \
	X(12, RETRY_EXC_ERR, ETIMEDOUT, TIMEOUT,			\
	  "no answer: is the peer alive, connected, and reachable through this port and GID?") \
	X(13, RNR_RETRY_EXC_ERR, ETIMEDOUT, TIMEOUT,			\
	  "the peer had no receive posted; post it earlier, or raise rnr_retries") \
	X(14, LOC_RDD_VIOL_ERR, EIO, PROGRAMMING,			\
	  "not a status of a reliable connection")			\
	X(15, REM_INV_RD_REQ_ERR, EREMOTEIO, REMOTE,			\
	  "the peer refused the datagram domain")			\
	X(16, REM_ABORT_ERR, ECONNABORTED, REMOTE,			\
	  "the peer gave the operation up")				\
	X(17, INV_EECN_ERR, EIO, PROGRAMMING,				\
	  "not a status of a reliable connection")			\
	X(18, INV_EEC_STATE_ERR, EIO, PROGRAMMING,			\
	  "not a status of a reliable connection")			\
	X(19, FATAL_ERR, EIO, FATAL,					\
	  "the device failed; see the kernel log")			\
	X(20, RESP_TIMEOUT_ERR, ETIMEDOUT, TIMEOUT,			\
	  "the peer did not respond in time")				\
	X(21, GENERAL_ERR, EIO, UNKNOWN,				\
	  "the device did not say more; see vendor_err and the kernel log")

#define IBCHAN_STATUS_NUMBER(nr, NAME, error, CLASS, hint) \
	IBCHAN_STATUS_##NAME = (nr),
enum ibchan_status {
	IBCHAN_STATUSES(IBCHAN_STATUS_NUMBER)
};

/**
 * enum ibchan_class - who has to do something about an error
 * @IBCHAN_CLASS_NONE: no error
 * @IBCHAN_CLASS_PROGRAMMING: the local caller
 * @IBCHAN_CLASS_LOCAL_RESOURCE: the local machine ran out of something
 * @IBCHAN_CLASS_REMOTE: the peer refused
 * @IBCHAN_CLASS_TRANSPORT: the connection went away
 * @IBCHAN_CLASS_TIMEOUT: the peer did not answer in time
 * @IBCHAN_CLASS_FATAL: the device
 * @IBCHAN_CLASS_UNKNOWN: the device did not say
 */
enum ibchan_class {
	IBCHAN_CLASS_NONE = 0,
	IBCHAN_CLASS_PROGRAMMING = 1,
	IBCHAN_CLASS_LOCAL_RESOURCE = 2,
	IBCHAN_CLASS_REMOTE = 3,
	IBCHAN_CLASS_TRANSPORT = 4,
	IBCHAN_CLASS_TIMEOUT = 5,
	IBCHAN_CLASS_FATAL = 6,
	IBCHAN_CLASS_UNKNOWN = 7,
};

#endif /* _UAPI_LINUX_IBCHAN_CODES_H */
