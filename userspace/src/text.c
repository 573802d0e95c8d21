// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Words for errors. The names come from the lists in linux/ibchan_codes.h, so
 * they cannot differ from the numbers.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

#define UNKNOWN	"unknown"

struct status_row {
	const char *name;
	__u32 error;
	__u32 class;
	const char *hint;
};

#define STATUS_ROW(nr, NAME, error, CLASS, hint)			\
	[nr] = { #NAME, error, IBCHAN_CLASS_##CLASS, hint },
static const struct status_row statuses[] = {
	IBCHAN_STATUSES(STATUS_ROW)
	{ UNKNOWN, 0, IBCHAN_CLASS_UNKNOWN, "this library does not know the status" },
};

static const char * const class_names[] = {
	[IBCHAN_CLASS_NONE] = "none",
	[IBCHAN_CLASS_PROGRAMMING] = "programming",
	[IBCHAN_CLASS_LOCAL_RESOURCE] = "local resource",
	[IBCHAN_CLASS_REMOTE] = "remote",
	[IBCHAN_CLASS_TRANSPORT] = "transport",
	[IBCHAN_CLASS_TIMEOUT] = "timeout",
	[IBCHAN_CLASS_FATAL] = "fatal",
	[IBCHAN_CLASS_UNKNOWN] = UNKNOWN,
};

#define NUMBER_NAME(nr, NAME)						\
	[nr] = #NAME,
static const char * const reason_names[] = {
	IBCHAN_REASONS(NUMBER_NAME)
};

static const char * const parameter_names[] = {
	IBCHAN_PARAMETERS(NUMBER_NAME)
};

struct verdict_row {
	const char *name;
	const char *text;
};

#define VERDICT_ROW(nr, NAME, text)					\
	[nr] = { #NAME, text },
static const struct verdict_row verdicts[] = {
	IBCHAN_GID_VERDICTS(VERDICT_ROW)
	{ UNKNOWN, "this library does not know the verdict" },
};

static const char * const opcode_names[] = {
	[IBCHAN_OP_SEND] = "send",
	[IBCHAN_OP_RECV] = "receive",
	[IBCHAN_OP_WRITE] = "write",
	[IBCHAN_OP_READ] = "read",
	[IBCHAN_OP_COMPARE_SWAP] = "compare and swap",
	[IBCHAN_OP_FETCH_ADD] = "fetch and add",
};

static const char * const port_state_names[] = {
	[IBCHAN_PORT_NOP] = "no state",
	[IBCHAN_PORT_DOWN] = "down",
	[IBCHAN_PORT_INIT] = "init",
	[IBCHAN_PORT_ARMED] = "armed",
	[IBCHAN_PORT_ACTIVE] = "active",
	[IBCHAN_PORT_ACTIVE_DEFER] = "active, no link",
};

static const char * const link_layers[] = {
	[IBCHAN_LINK_LAYER_INFINIBAND] = "InfiniBand",
	[IBCHAN_LINK_LAYER_ETHERNET] = "Ethernet",
	[IBCHAN_LINK_LAYER_IWARP] = "iWARP",
};

/* The steps that IBCHAN_REASON_VERBS numbers, and a later one. */
static const char * const qp_steps[] = {
	"create", "initialise (INIT)", "make ready to receive (RTR)", "make ready to send (RTS)",
	"change",
};

/* The steps that IBCHAN_REASON_CM numbers, and a later one. */
static const char * const cm_steps[] = { "begin", "take that address", "listen", "go on" };

struct code_row {
	__u64 code;
	const char *words;
};

/* The meaning of an errno here, where the C library's words would lead astray. */
static const struct code_row errnos[] = {
	{ EPERM, "this process did not open the context, or a filter of system calls said no" },
	{ ENOENT, "there is no such thing any more, or nobody knows that name" },
	{ EINTR, "a signal has ended the wait; no work is lost" },
	{ EIO, "the device failed" },
	{ E2BIG, "a struct has members that this library does not know" },
	{ EAGAIN, "not now: a queue is full, nothing is there, or a name server is silent" },
	{ ENOMEM, "out of memory, or of memory that may be locked (ulimit -l)" },
	{ EACCES, "the memory region or the channel does not allow this access" },
	{ EFAULT, "there is no memory at an address, or it may not be read, or not written" },
	{ EBUSY, "it is still in use" },
	{ EXDEV, "these belong to different devices, contexts or protection domains" },
	{ ENODEV, "there is no such device, or it has gone" },
	{ EMFILE, "as many files (ulimit -n) or objects of the context (max_handles) as may be" },
	{ EPROTO, "the memory shared with the kernel is damaged; close the context" },
	{ EOVERFLOW, "an element is longer than 4 GiB" },
	{ EMSGSIZE, "the message is longer than what it was to go to" },
	{ EOPNOTSUPP, "this device, or this kernel module, cannot do that" },
	{ EADDRINUSE, "somebody listens on that port already" },
	{ EADDRNOTAVAIL, "that address is not, or not any more, one of this host's RDMA devices" },
	{ ENETDOWN, "no port of the device is active" },
	{ ENETUNREACH, "there is no route to the peer's network" },
	{ EHOSTUNREACH, "there is no route to the peer, or nobody answers for its address" },
	{ ENODATA, "the peer has closed the channel, and no message of it is left" },
	{ ECONNABORTED, "the device has ended the channel" },
	{ ECONNRESET, "the peer has ended the connection, or rejected it" },
	{ ECONNREFUSED, "nobody listens there" },
	{ EISCONN, "the channel has a peer already" },
	{ ENOTCONN, "the channel has no peer yet" },
	{ ESHUTDOWN, "the channel is broken" },
	{ ETIMEDOUT, "that took longer than it may, or the peer does not answer" },
	{ EREMOTEIO, "the peer refused, or could not carry out, what it was asked for" },
	{ ECANCELED, "the channel was ended on this side, or before the work was done" },
	{ EPROTONOSUPPORT, "the kernel module is older than this library" },
	{ EPROTOTYPE, "the peer does not take messages as ibchan_dial() and ibchan_serve() do" },
	{ EDQUOT, "the RDMA cgroup, or the user's objects in kernel memory, are at their limit" },
	{ 0 }
};

/* Why a channel has ended, where that is not what the errno means elsewhere. */
static const struct code_row ends[] = {
	{ EADDRNOTAVAIL, "its own address has been taken from the port" },
	{ ECANCELED, "this side has ended it" },
	{ EACCES, "the peer asked for memory by a wrong key, past its end, or without access" },
	{ EPROTOTYPE, "the peer is no ibchan" },
	{ EPROTO, "the peer sent what this side cannot take" },
	{ 0 }
};

/* Why an address cannot be a source. */
static const struct code_row sources[] = {
	{ EADDRNOTAVAIL, "this host does not have it" },
	{ ENODEV, "no RDMA device of this host has it" },
	{ EAFNOSUPPORT, "the peer has no address of that family" },
	{ 0 }
};

/*
 * Reject codes as the InfiniBand specification numbers them, that one meets. With 8 the errno says
 * that nobody listens there.
 */
static const struct code_row rejects[] = {
	{ 8, "" },
	{ 10, " (the peer holds that connection for an old one)" },
	{ 26, " (its packets would be too long for the peer: a smaller mtu is needed)" },
	{ 28, " (the program there said no)" },
	{ 0 }
};

/* The list ends with a code of 0. NULL: it has none for this one. */
static const char *words_of(const struct code_row *row, __u64 code)
{
	while (row->code && row->code != code)
		row++;
	return row->words;
}

/* Numbers that had a meaning once have no name. */
const char *name_of(const char * const *names, size_t n, __u64 number)
{
	return number < n && names[number] ? names[number] : UNKNOWN;
}

#define AT_OR_LAST(rows, number)	((rows)[min(number, ARRAY_SIZE(rows) - 1)])

/* In English, whatever the locale. NULL: the C library does not know it. */
const char *errno_words(int code)
{
#ifdef __GLIBC__
	return strerrordesc_np(code);
#else
	return strerror(code);
#endif
}

const char *ibchan_strerror(int code)
{
	if (code >= 0)
		return "no error";
	/* There is no number to the other side of this one. */
	if (code == INT_MIN)
		code++;
	return words_of(errnos, (__u64)-code) ?: errno_words(-code) ?:
	       "an error that this library does not know";
}

/*
 * The text of a reason, and a remedy where that is not plain. In braces: W, V and E, the place (wr;
 * wr if not the first; wr and element); P, the parameter's name; or a value's number after the way
 * to show it: d decimal, x hexadecimal, f flags of a request, i negative if the top bit is set, e
 * errno, j what it means here, a access, s the status of a first failed work, l link layer, m MTU
 * code, q step of the queue pair, t stage of connecting, k step of the connection manager, r what
 * it said, c resource of an RDMA cgroup, v the verdict on a GID, b errno of what ended a channel, g
 * the address in this value and the next, h that one would do, if there is one, p state of a port,
 * n what getaddrinfo() said, o what iWARP does not, u errno of what is wrong with a source.
 */
struct reason_row {
	const char *text;
	const char *hint;
};

#define OUT_OF_RANGE	"{P}: {d0} is not in {d1} to {d2}"
#define CONNECT_ANEW								\
	"close it and connect a new one; ibchan_channel_history() tells what came before"
#define GID_TABLE	"`ibchan devices --gids` shows the table; IBCHAN_AUTO chooses"
#define DAMAGED									\
	"it was damaged on its way; hand over the bytes that the peer's ibchan_endpoint_to_bytes() wrote"

#define REASON(NAME, ...)							\
	[IBCHAN_REASON_##NAME] = { .text = __VA_ARGS__ },
static const struct reason_row reasons[ARRAY_SIZE(reason_names) + 1] = {
	REASON(NONE, "no reason given")
	REASON(OPCODE, "{W}opcode {d0} does not exist")
	REASON(WR_FLAGS, "{W}flags {f0}, this operation allows {f1}")
	REASON(RESERVED, "{V}a member that is not used here is not zero")
	REASON(TOO_MANY_ELEMENTS, "{W}{d0} elements, the channel allows {d1}",
	       "ask for more in max_send_sge or max_recv_sge before the channel is prepared")
	REASON(ELEMENT_POINTER, "{W}the list of elements at {x0} cannot be read")
	REASON(CHANNEL_HANDLE, "{W}no such channel in this context (handle {d0})",
	       "post on the context that the channel was made in, and before it is closed")
	REASON(MR_HANDLE, "{E}no such memory region in this context (handle {d0})",
	       "an element needs a region of the same context that is still registered")
	REASON(MESSAGE_TOO_LONG, "{W}message of {d0} bytes, {d1} are allowed")
	REASON(OUT_OF_BOUNDS, "{E}offset {d0} + length {d1} exceeds the region's {d2} bytes",
	       "an offset counts from the region's first byte; ibchan_sge_checked() tells earlier")
	REASON(OTHER_PD, "{E}the region belongs to another protection domain than the channel",
	       "register the memory in the protection domain of the channel")
	REASON(MR_ACCESS, "{E}needs access {a0}, the region allows {a1}",
	       "register the memory with that access; receives and reads need local write")
	REASON(MR_GOING, "{E}the region is being deregistered")
	REASON(MR_INVALIDATED, "{E}a peer has invalidated the region's key",
	       "deregister it, and register the memory anew")
	REASON(NOT_CONNECTED, "{W}the channel has no peer yet",
	       "ibchan_prepared_handshake() comes first")
	REASON(BROKEN, "{V}the channel is broken: {s0}", CONNECT_ANEW)
	REASON(SEND_QUEUE_FULL, "{W}all {d0} places of the channel's send queue are in use",
	       "take completions first (a poll shows none of unsignaled works: try again), or raise max_send_wr before the channel is prepared"
	)
	REASON(RECV_QUEUE_FULL, "{W}all {d0} places of the channel's receive queue are in use",
	       "take completions first, or raise max_recv_wr before the channel is prepared")
	REASON(RING_FULL,
	       "{W}the completion queue is full: as many works as it has entries are in flight or unread",
	       "take completions first, or make the completion queue with more entries")
	REASON(DEVICE_GONE, "{W}the device is gone")
	REASON(POST_FAILED, "{W}the driver refused the post: {e0}")
	REASON(MEMLOCK, "RLIMIT_MEMLOCK: {d0} bytes pinned, limit {d1}, {d2} more needed",
	       "raise `ulimit -l`, grant CAP_IPC_LOCK, or deregister what is no longer used")
	REASON(DRIVER_NOT_SAFE,
	       "this device's driver (id {d0}) is not known to register user memory safely")
	REASON(ACCESS_COMBINATION, "access {a0} is not possible",
	       "access is made of IBCHAN_ACCESS_*; that to write or for atomics needs local write with it"
	)
	REASON(EMPTY_RANGE, "the range is empty or wraps around the address space")
	REASON(PARAMETER, OUT_OF_RANGE)
	REASON(NO_GID, "port {d0}: none of {d1} GIDs is usable{v2}",
	       "give the network device of the port an address and set it up; `ibchan devices --gids` shows the table"
	)
	REASON(PORT_DOWN, "port {d0} is not active: its state is {p1}",
	       "set the network device of the port up, or choose another port")
	REASON(CQ_FULL, "the channel needs {d0} entries of the completion queue, {d1} are free",
	       "make the completion queue with more cq_entries, or the channel with shorter queues")
	REASON(ENDPOINT_MAGIC, "this is no endpoint: it begins with {x1} and not with {x0}",
	       "hand over the bytes that the peer's ibchan_endpoint_to_bytes() wrote")
	REASON(ENDPOINT_VERSION, "endpoint version: ours {d0}, theirs {d1}", DAMAGED)
	REASON(ENDPOINT_RESERVED, "endpoint: what another kind of port has", DAMAGED)
	REASON(GID_GONE, "port {d0}: the address at GID index {d1} is gone")
	REASON(PEER_RD_ATOMIC, "endpoint max_rd_atomic: at least {d0} is needed, theirs {d1}")
	REASON(LINK_LAYER, "endpoint link layer: ours {l0}, theirs {l1}",
	       "both ports must be of one kind; choose device and port")
	REASON(GID_FAMILY, "endpoint address: ours IPv{d0}, theirs IPv{d1}",
	       "both addresses must be of one kind: gid_index IBCHAN_AUTO_IPV4 or IBCHAN_AUTO_IPV6 on one side"
	)
	REASON(PEER_QPN, "endpoint queue pair number: theirs {d1}, {d0} and up are allowed",
	       DAMAGED)
	REASON(PEER_PSN, "endpoint packet sequence number: theirs {d1}, {d0} is the highest",
	       DAMAGED)
	REASON(PEER_MTU, "endpoint mtu: ours {m0}, theirs {m1}")
	REASON(PEER_GID, "endpoint GID: theirs is zero or not one that can be sent to", DAMAGED)
	REASON(PEER_MAC, "endpoint MAC: theirs is zero or not one that can be sent to", DAMAGED)
	REASON(PEER_LID, "endpoint LID: theirs {d1}, 1 to {d0} are allowed",
	       "the subnet manager gives a port its LID; was it running when the peer was prepared?"
	)
	REASON(PEER_PKEY, "endpoint P_Key: ours {x0}, theirs {x1}",
	       "both ports must be in one partition, and one of them a full member of it")
	REASON(PEER_SUBNET, "endpoint subnet: ours {x0}, theirs {x1}",
	       "a peer in another subnet is reached by its IP address only")
	REASON(MTU_ABOVE_PORT, "mtu {d0} is wanted, port and address have {d1}",
	       "an mtu of 0 takes what both sides can")
	REASON(VERBS, "the device refused to {q1} the queue pair: {e0}")
	REASON(BUSY,
	       "{E}collides with offset {d0}, length {d1} of the same region, which the work with wr_id {d2} still uses",
	       "wait for that work first, or post with IBCHAN_WR_UNCHECKED if that is meant")
	REASON(REMOTE_BOUNDS, "{W}{d0} bytes do not fit the {d1} bytes of the remote region")
	REASON(NO_SINK, "{W}the completion queue takes no work by its wr_id")
	REASON(WORK_IN_FLIGHT, "{W}the work is posted already and has not ended")
	REASON(PEER_NO_READS, "{W}the peer serves no reads and no atomics")
	REASON(NO_DONE, "{W}the work has no done()")
	REASON(INTERRUPTS_OFF, "interrupts are off, where nothing can be posted")
	REASON(ATOMIC_FORM,
	       "{W}an atomic has one element of 8 bytes (not {d0}) and a remote address that is a multiple of 8"
	)
	REASON(INLINE_TOO_LONG, "{W}{d0} bytes of inline data, the channel takes {d1}",
	       "raise max_inline_data before the channel is prepared, or do without IBCHAN_WR_INLINE"
	)
	REASON(REGION_TOO_LONG, "the memory has {d0} pages, the device can register {d1} at a time")
	REASON(REGION_GAPS, "only {d1} of {d0} pieces join at page borders")
	REASON(REGION_COPIED,
	       "the device does not reach this memory itself: it would work on a copy")
	REASON(MEMORY_NOT_THERE,
	       "{E}no memory at {x0} for {d1} bytes, or none that allows this access")
	REASON(FILE_WRITTEN,
	       "the memory at {x0} is mapped from a stored file and shared: no device may write there",
	       "map it from a tmpfs, from memfd_create() or from huge pages, or without MAP_SHARED")
	REASON(READ_ONLY_SHARED,
	       "the memory is mapped shared and read-only: of such memory this kernel registers {d1} pages, not {d0}",
	       "register it in parts, map it without MAP_SHARED, or writable")
	REASON(INLINE_ELEMENT, "{E}inline data come from plain memory, not from region {d0}")
	REASON(DMABUF_DEVICE,
	       "this device (driver id {d0}) cannot register dma-bufs here: only soft devices can")
	REASON(DMABUF_NOT_MAPPED, "the exporter of the dma-buf cannot map it for the CPU")
	REASON(DMABUF_NO_PAGES, "the dma-buf lies in memory of a device, which has no pages")
	REASON(DMABUF_MODE,
	       "the dma-buf was not opened for what the access needs: reading, and for local write also writing"
	)
	REASON(REQUEST_DEVICE, "the request came over another device than the channel's",
	       "build the channel on the device that ibchan_request_query() names")
	REASON(PRIVATE_DATA, "{d0} bytes of private data, {d1} are allowed with this message")
	REASON(STAGE_TIME, "a stage of {d0} ms, {d1} ms are allowed")
	REASON(ADDRESS_FAMILY, "addresses of family {d0} cannot be connected to")
	REASON(CM, "the connection manager could not {k1}: {e0}")
	REASON(CONNECT, "{t0}: {b2}{r1}", "`ibchan doctor PEER` looks for the cause, step by step")
	REASON(CGROUP, "the RDMA cgroup of this process is at its limit ({c0} in rdma.max)",
	       "raise rdma.max of the cgroup or of one above it, or close what is no longer used")
	REASON(IWARP, "iWARP does not {o0}")
	REASON(USER_MEMORY,
	       "kernel memory for this user's objects: {d0} bytes taken, limit {d1}, {d2} more needed",
	       "make shorter queues, close what is no longer used, or have the module parameter user_memory raised"
	)
	REASON(NO_ROUTE, "no route to the peer at {g1}: {e0}",
	       "`ip route get` with the peer's address tells what the kernel knows; is the address the right one, and this device in its network?"
	)
	REASON(NEXT_HOP, "the next hop on the way to the peer at {g1} does not answer: {e0}",
	       "`ip route get` with the peer's address names the gateway; is it up, and in this network?"
	)
	REASON(NO_PKEY, "port {d0}: none of its {d1} P_Keys is valid",
	       "the subnet manager gives a port its P_Keys; is it running?")
	REASON(NAME, "looking up the name of a host or service: {n0}",
	       "is it spelled right, and does a name server answer? `getent ahosts` and `getent services` tell what this machine knows"
	)
	REASON(HOST_ONLY,
	       "the peer's address means this host itself, and no RoCE device has it{h0}",
	       "connect to an address of an RDMA device's: `ibchan doctor` lists them")
	REASON(NODE, "/dev/ibchan: {j0}")
	REASON(FOREIGN, "the peer that asks is no ibchan",
	       "IBCHAN_CONNECT_FOREIGN accepts such a peer")
	REASON(MESSAGES_UNTAKEN,
	       "the peer has received {d1} of the {d0} messages sent before, and no more may wait",
	       "wait longer, or raise messages in the params of both sides")
	REASON(SOURCE, "the source address {g1}: {u0}",
	       "it has to be an address of an RDMA device's, of the peer's family: `ibchan devices --gids` shows them"
	)
};

/* Instead of what is said of any parameter. */
#define PARAMETER(NAME, ...)							\
	[IBCHAN_PARAMETER_##NAME] = { .text = __VA_ARGS__ },
static const struct reason_row parameters[ARRAY_SIZE(parameter_names)] = {
	PARAMETER(MTU, "{P}: {d0} is not 256, 512, 1024, 2048 or 4096",
		  "these are what a packet carries of a message; 0 takes the most that both sides can"
	)
	PARAMETER(GID_INDEX, OUT_OF_RANGE, GID_TABLE)
	PARAMETER(KEEPALIVE_MS, "the keepalive: {d0} ms is not in {d1} ms to {d2} ms",
		  "0 takes the default, IBCHAN_TIMEOUT_NEVER none")
	PARAMETER(TIMEOUT_NS, "{P}: {i0} is below {i1}")
	PARAMETER(SIZE, "{P}: a struct of {d0} bytes has nothing in it",
		  "a struct of parameters begins with its own sizeof")
};

/* Where nothing but a flush has come, the device did not say why. */
static const struct reason_row silent_end = {
	"{V}the channel is broken: its device has ended it and does not say why; often the peer used a wrong key, or sent more than a receive holds",
	CONNECT_ANEW,
};

/* An entry inside the table that is refused has nothing that a channel can use. */
static const struct reason_row useless_gid = {
	"{P}: entry {d0} of the port's table has no address that a channel can use from here",
	GID_TABLE,
};

static const struct reason_row no_node = {
	"/dev/ibchan: there is no such node, though the kernel module is loaded",
	"this process has a /dev of its own: a container is started with --device /dev/ibchan",
};

/* By the errno with which the node cannot be opened. */
static const struct reason_row nodes[] = {
	[ENOENT] = {
		"/dev/ibchan: there is no such node, and no sign of the kernel module",
		"`modprobe ibchan`, or insmod of one that is not installed, loads the module; a container is started with --device /dev/ibchan",
	},
	[ENXIO] = {
		"/dev/ibchan: the node is there, but the kernel module is not loaded",
		"`modprobe ibchan`, or insmod of one that is not installed, loads the module",
	},
	[EACCES] = {
		"/dev/ibchan: this user may not open it",
		"members of the node's group may, which is rdma once `make install` has put the udev rule there: `usermod -a -G rdma USER`, and log in again",
	},
	[EPERM] = {
		"/dev/ibchan: something beside its mode forbids to open it, as the device list of a container does",
		"start the container with --device /dev/ibchan, or look at the log of the security module",
	},
};

/* The row of a reason. Some codes have several rows, by the element and the values. */
static const struct reason_row *row_of(const struct ibchan_reason *reason)
{
	const __u64 *value = reason->value;
	__u64 at = reason->element;

	switch (reason->code) {
	case IBCHAN_REASON_BROKEN:
		if (value[0] == ECANCELED && value[1] == IBCHAN_STATUS_WR_FLUSH_ERR)
			return &silent_end;
		break;
	case IBCHAN_REASON_PARAMETER:
		if (at == IBCHAN_PARAMETER_GID_INDEX && value[0] >= value[1] &&
		    value[0] <= value[2])
			return &useless_gid;
		if (at < ARRAY_SIZE(parameters) && parameters[at].text)
			return &parameters[at];
		break;
	case IBCHAN_REASON_NODE:
		at = value[0] == ENODEV ? ENXIO : value[0];
		if (at == ENOENT && value[1])
			return &no_node;
		if (at < ARRAY_SIZE(nodes) && nodes[at].text)
			return &nodes[at];
	}
	return &AT_OR_LAST(reasons, reason->code);
}

/* A string that grows like snprintf()'s: counted in full, kept as it fits. */
struct text {
	char *buf;
	size_t len;
	size_t used;
};

__printf(2, 3)
static void add(struct text *text, const char *format, ...)
{
	size_t room = text->used < text->len ? text->len - text->used : 0;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(room ? text->buf + text->used : NULL, room, format, args);
	va_end(args);
	if (n > 0)
		text->used += (size_t)n;
}

/* By the numbers of the bits. */
static const char * const access_bits[] = {
	"local write", "remote write", "remote read", "remote atomic",
};

static const char * const flag_bits[] = {
	"IMM", "FENCE", "SOLICITED", "INLINE", "UNSIGNALED", NULL, NULL, "UNCHECKED",
};

/* In words, as far as there are some; the rest as a number. */
static void add_bits(struct text *text, __u64 bits, const char * const *names, size_t n)
{
	const char *between = "";
	size_t i;

	if (!bits)
		add(text, "none");
	for (i = 0; i < n; i++) {
		if (!(bits & 1ULL << i) || !names[i])
			continue;
		add(text, "%s%s", between, names[i]);
		bits &= ~(1ULL << i);
		between = "|";
	}
	if (bits)
		add(text, "%s0x%llx", between, (unsigned long long)bits);
}

/* In lower case, whatever the locale: tolower() makes of a Turkish I something else. */
static void add_parameter(struct text *text, __u32 parameter)
{
	const char *c = NAME_OF(parameter_names, parameter);

	for (; *c; c++)
		add(text, "%c", *c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
}

/* A value that is shown by words alone; NULL: it is none. */
static const char *value_words(char how, __u64 value)
{
	static const char * const cgroup[] = { "hca_handle", "hca_object" };
	static const char * const iwarp[] = {
		"connect by endpoints, only by address",
		"read into memory without a key of its own",
	};

	switch (how) {
	case 'p':
		return NAME_OF(port_state_names, (__u32)value);
	case 'n':
		return gai_strerror((int)value);
	case 'e':
		return value <= INT32_MAX ? errno_words((int)value) : NULL;
	case 'j':
		return ibchan_strerror(-(int)(value & 0xfff));
	case 'b':
		return words_of(ends, value) ?:
		       ibchan_strerror(value <= INT32_MAX ? -(int)value : -1000000);
	case 'u':
		return words_of(sources, value) ?: UNKNOWN;
	case 'r':
		return words_of(rejects, value);
	case 'l':
		return NAME_OF(link_layers, value);
	case 'c':
		return AT_OR_LAST(cgroup, value);
	case 'o':
		return AT_OR_LAST(iwarp, value);
	case 'q':
		return AT_OR_LAST(qp_steps, value);
	case 'k':
		return AT_OR_LAST(cm_steps, value);
	case 't':
		return ibchan_stage_name((__u32)value);
	default:
		return NULL;
	}
}

/* By IPv4, where it is such an address. */
void gid_text(const void *gid, char *text)
{
	const struct in6_addr *address = gid;

	if (IN6_IS_ADDR_V4MAPPED(address))
		inet_ntop(AF_INET, &address->s6_addr[12], text, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, address, text, INET6_ADDRSTRLEN);
}

static void add_gid(struct text *text, const __u64 half[2])
{
	const __u64 gid[2] = { htobe64(half[0]), htobe64(half[1]) };
	char buf[INET6_ADDRSTRLEN];

	gid_text(gid, buf);
	add(text, "%s", buf);
}

/* An errno that is not the status's own knows more: that a port is down, for one. */
static void add_end(struct text *text, __u64 error, __u32 status)
{
	add(text, "%s", error == AT_OR_LAST(statuses, status).error ?
	    ibchan_status_hint(status) : value_words('b', error));
	if (status)
		add(text, ", first failed work %s", ibchan_status_name(status));
}

static void add_value(struct text *text, char how, const __u64 *values)
{
	const __u64 value = *values;
	const char *words = value_words(how, value);

	if (words) {
		add(text, "%s", words);
		return;
	}
	switch (how) {
	case 'x':
		add(text, "0x%llx", (unsigned long long)value);
		break;
	case 'i':
		add(text, "%lld", (long long)value);
		break;
	case 'e':
		add(text, "errno %llu", (unsigned long long)value);
		break;
	case 'g':
		add_gid(text, values);
		break;
	case 'h':
		if (!value && !values[1])
			break;
		add(text, ": ");
		add_gid(text, values);
		add(text, " would do");
		break;
	case 'f':
		add_bits(text, value, flag_bits, ARRAY_SIZE(flag_bits));
		break;
	case 'a':
		add_bits(text, value, access_bits, ARRAY_SIZE(access_bits));
		break;
	case 's':
		add_end(text, value, (__u32)values[1]);
		break;
	case 'r':
		if ((__s64)value > 0)
			add(text, " (reject code %llu)", (unsigned long long)value);
		break;
	case 'v':
		if (value)
			add(text, "; the best of them: %s", ibchan_gid_verdict_text((__u32)value));
		else
			add(text, "; the table is empty");
		break;
	case 'm':
		if (value >= 1 && value <= 5)
			add(text, "%u bytes", 128U << value);
		else
			add(text, "code %llu", (unsigned long long)value);
		break;
	default:
		add(text, "%llu", (unsigned long long)value);
	}
}

static void add_brace(struct text *text, const char *brace, const struct ibchan_reason *reason)
{
	switch (brace[0]) {
	case 'V':
		if (reason->wr)
			add(text, "wr %u: ", reason->wr);
		break;
	case 'W':
		add(text, "wr %u: ", reason->wr);
		break;
	case 'E':
		add(text, "wr %u element %u: ", reason->wr, reason->element);
		break;
	case 'P':
		add_parameter(text, reason->element);
		break;
	default:
		add_value(text, brace[0], &reason->value[brace[1] - '0']);
	}
}

static void add_reason(struct text *text, const struct ibchan_reason *reason)
{
	const char *c = row_of(reason)->text;

	if (!c) {
		add(text, "reason %u", reason->code);
		return;
	}
	while (*c) {
		size_t plain = strcspn(c, "{");

		add(text, "%.*s", (int)plain, c);
		c += plain;
		if (*c) {
			add_brace(text, c + 1, reason);
			c = strchr(c, '}') + 1;
		}
	}
}

int ibchan_reason_text(const struct ibchan_reason *reason, char *buf, size_t len)
{
	struct text text = { .buf = buf, .len = len };

	add_reason(&text, reason);
	return (int)text.used;
}

/* Where a limit of 0 answers the same there is a reason. */
static bool is_of_other_process(const struct ibchan_error *error)
{
	return error->origin == IBCHAN_ERROR_CALL && error->code == -EPERM && !error->reason.code;
}

int ibchan_error_text(const struct ibchan_error *error, char *buf, size_t len)
{
	struct text text = { .buf = buf, .len = len };

	if (error->origin == IBCHAN_ERROR_WORK) {
		add(&text, "%s failed: %s (%s", ibchan_opcode_name(error->opcode),
		    ibchan_status_name(error->status), ibchan_status_class_name(error->status));
		if (error->vendor_err)
			add(&text, ", vendor code 0x%x", error->vendor_err);
		add(&text, "): %s", ibchan_status_hint(error->status));
	} else if (error->reason.code) {
		add_reason(&text, &error->reason);
	} else if (is_of_other_process(error)) {
		add(&text, "another process opened the context");
	} else {
		add(&text, "%s", ibchan_strerror(error->code));
	}
	return (int)text.used;
}

const char *ibchan_error_hint(const struct ibchan_error *error)
{
	if (error->origin != IBCHAN_ERROR_CALL)
		return "";
	if (is_of_other_process(error))
		return "open the context in the process that uses it: after fork() or daemon()";
	return row_of(&error->reason)->hint ?: "";
}

const char *ibchan_error_string(const struct ibchan_error *error)
{
	static __thread char string[512];
	const char *hint = ibchan_error_hint(error);
	int length = ibchan_error_text(error, string, sizeof(string));

	if (*hint && (size_t)length < sizeof(string))
		snprintf(string + length, sizeof(string) - (size_t)length, ". %s", hint);
	return string;
}

const char *ibchan_reason_name(__u32 code)
{
	return NAME_OF(reason_names, code);
}

const char *ibchan_opcode_name(__u32 opcode)
{
	return NAME_OF(opcode_names, opcode);
}

const char *ibchan_port_state_name(__u32 state)
{
	return NAME_OF(port_state_names, state);
}

const char *ibchan_gid_verdict_name(__u32 verdict)
{
	return AT_OR_LAST(verdicts, verdict).name;
}

const char *ibchan_gid_verdict_text(__u32 verdict)
{
	return AT_OR_LAST(verdicts, verdict).text;
}

const char *ibchan_status_name(__u32 status)
{
	return AT_OR_LAST(statuses, status).name;
}

__u32 ibchan_status_class(__u32 status)
{
	return AT_OR_LAST(statuses, status).class;
}

const char *ibchan_status_class_name(__u32 status)
{
	return class_names[ibchan_status_class(status)];
}

const char *ibchan_status_hint(__u32 status)
{
	return AT_OR_LAST(statuses, status).hint;
}
