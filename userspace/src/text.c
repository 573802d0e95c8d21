// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Words for errors. The names come from the lists in linux/ibchan_codes.h, so
 * they cannot differ from the numbers.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

#define UNKNOWN	"unknown"

struct status_row {
	const char *name;
	__u32 class;
	const char *hint;
};

#define STATUS_ROW(nr, NAME, error, CLASS, hint)			\
	[nr] = { #NAME, IBCHAN_CLASS_##CLASS, hint },
static const struct status_row statuses[] = {
	IBCHAN_STATUSES(STATUS_ROW)
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

#define REASON_NAME(nr, NAME)						\
	[nr] = #NAME,
static const char * const reason_names[] = {
	IBCHAN_REASONS(REASON_NAME)
};

#define PARAMETER_NAME(nr, NAME)					\
	[nr] = #NAME,
static const char * const parameter_names[] = {
	IBCHAN_PARAMETERS(PARAMETER_NAME)
};

struct verdict_row {
	const char *name;
	const char *text;
};

#define VERDICT_ROW(nr, NAME, text)					\
	[nr] = { #NAME, text },
static const struct verdict_row verdicts[] = {
	IBCHAN_GID_VERDICTS(VERDICT_ROW)
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

/*
 * The text of a reason. In braces: W, V and E, the place (wr; wr if not the first; wr and element);
 * P, the parameter's name; N, why the node cannot be opened; or a value's number after the way to
 * show it: d decimal, x hexadecimal, f flags of a request, i negative if the top bit is set, e
 * errno, a access, s the status of a first failed work, l link layer, m MTU code, q step of the
 * queue pair, t stage of connecting, k step of the connection manager, r what it said, c resource
 * of an RDMA cgroup, v the verdict on a GID, b errno of what ended a channel, g the address in this
 * value and the next, h that one would do, if there is one, p state of a port, n what getaddrinfo()
 * said, u errno of what is wrong with a source.
 */
static const char * const reason_texts[ARRAY_SIZE(reason_names)] = {
	[IBCHAN_REASON_NONE] = "no reason given",
	[IBCHAN_REASON_OPCODE] = "{W}opcode {d0} does not exist",
	[IBCHAN_REASON_WR_FLAGS] = "{W}flags {f0}, this operation allows {f1}",
	[IBCHAN_REASON_RESERVED] = "{V}a member that is not used here is not zero",
	[IBCHAN_REASON_TOO_MANY_ELEMENTS] = "{W}{d0} elements, the channel allows {d1}",
	[IBCHAN_REASON_ELEMENT_POINTER] = "{W}the list of elements at {x0} cannot be read",
	[IBCHAN_REASON_CHANNEL_HANDLE] = "{W}no such channel in this context (handle {d0})",
	[IBCHAN_REASON_MR_HANDLE] = "{E}no such memory region in this context (handle {d0})",
	[IBCHAN_REASON_MESSAGE_TOO_LONG] = "{W}message of {d0} bytes, {d1} are allowed",
	[IBCHAN_REASON_OUT_OF_BOUNDS] =
		"{E}offset {i0} + length {d1} exceeds the region's {d2} bytes",
	[IBCHAN_REASON_OTHER_PD] =
		"{E}the region belongs to another protection domain than the channel",
	[IBCHAN_REASON_MR_ACCESS] = "{E}needs access {a0}, the region allows {a1}",
	[IBCHAN_REASON_MR_GOING] = "{E}the region is being deregistered",
	[IBCHAN_REASON_MR_INVALIDATED] = "{E}a peer has invalidated the region's key",
	[IBCHAN_REASON_NOT_CONNECTED] = "{W}the channel has no peer yet",
	[IBCHAN_REASON_BROKEN] = "{V}the channel is broken: {b0}{s1}",
	[IBCHAN_REASON_SEND_QUEUE_FULL] =
		"{W}all {d0} places of the channel's send queue are in use",
	[IBCHAN_REASON_RECV_QUEUE_FULL] =
		"{W}all {d0} places of the channel's receive queue are in use",
	[IBCHAN_REASON_RING_FULL] =
		"{W}the completion queue is full: as many works as it has entries are in flight or unread",
	[IBCHAN_REASON_DEVICE_GONE] = "{W}the device is gone",
	[IBCHAN_REASON_POST_FAILED] = "{W}the driver refused the post: {e0}",
	[IBCHAN_REASON_MEMLOCK] = "RLIMIT_MEMLOCK: {d0} bytes pinned, limit {d1}, {d2} more needed",
	[IBCHAN_REASON_DRIVER_NOT_SAFE] =
		"this device's driver (id {d0}) is not known to register user memory safely",
	[IBCHAN_REASON_ACCESS_COMBINATION] = "access {a0} is not possible",
	[IBCHAN_REASON_EMPTY_RANGE] = "the range is empty or wraps around the address space",
	[IBCHAN_REASON_PARAMETER] = "{P}: {d0} is not in {d1} to {d2}",
	[IBCHAN_REASON_NO_GID] = "port {d0}: none of {d1} GIDs is usable{v2}",
	[IBCHAN_REASON_PORT_DOWN] = "port {d0} is not active: its state is {p1}",
	[IBCHAN_REASON_CQ_FULL] =
		"the channel needs {d0} entries of the completion queue, {d1} are free",
	[IBCHAN_REASON_ENDPOINT_MAGIC] =
		"this is no endpoint: it begins with {x1} and not with {x0}",
	[IBCHAN_REASON_ENDPOINT_VERSION] = "endpoint version: ours {d0}, theirs {d1}",
	[IBCHAN_REASON_ENDPOINT_RESERVED] = "endpoint: what another kind of port has",
	[IBCHAN_REASON_GID_GONE] = "port {d0}: the address at GID index {d1} is gone",
	[IBCHAN_REASON_PEER_RD_ATOMIC] =
		"endpoint max_rd_atomic: at least {d0} is needed, theirs {d1}",
	[IBCHAN_REASON_LINK_LAYER] = "endpoint link layer: ours {l0}, theirs {l1}",
	[IBCHAN_REASON_GID_FAMILY] = "endpoint address: ours IPv{d0}, theirs IPv{d1}",
	[IBCHAN_REASON_PEER_QPN] =
		"endpoint queue pair number: theirs {d1}, {d0} and up are allowed",
	[IBCHAN_REASON_PEER_PSN] =
		"endpoint packet sequence number: theirs {d1}, {d0} is the highest",
	[IBCHAN_REASON_PEER_MTU] = "endpoint mtu: ours {m0}, theirs {m1}",
	[IBCHAN_REASON_PEER_GID] = "endpoint GID: theirs is zero or not one that can be sent to",
	[IBCHAN_REASON_PEER_MAC] = "endpoint MAC: theirs is zero or not one that can be sent to",
	[IBCHAN_REASON_PEER_LID] = "endpoint LID: theirs {d1}, 1 to {d0} are allowed",
	[IBCHAN_REASON_PEER_PKEY] = "endpoint P_Key: ours {x0}, theirs {x1}",
	[IBCHAN_REASON_PEER_SUBNET] = "endpoint subnet: ours {x0}, theirs {x1}",
	[IBCHAN_REASON_MTU_ABOVE_PORT] = "mtu {d0} is wanted, port and address have {d1}",
	[IBCHAN_REASON_VERBS] = "the device refused to {q1} the queue pair: {e0}",
	[IBCHAN_REASON_BUSY] =
		"{E}collides with offset {d0}, length {d1} of the same region, which the work with wr_id {d2} still uses",
	[IBCHAN_REASON_REMOTE_BOUNDS] =
		"{W}{d0} bytes do not fit the {d1} bytes of the remote region",
	[IBCHAN_REASON_NO_SINK] = "{W}the completion queue takes no work by its wr_id",
	[IBCHAN_REASON_WORK_IN_FLIGHT] = "{W}the work is posted already and has not ended",
	[IBCHAN_REASON_PEER_NO_READS] = "{W}the peer serves no reads and no atomics",
	[IBCHAN_REASON_NO_DONE] = "{W}the work has no done()",
	[IBCHAN_REASON_INTERRUPTS_OFF] = "interrupts are off, where nothing can be posted",
	[IBCHAN_REASON_ATOMIC_FORM] =
		"{W}an atomic has one element of 8 bytes (not {d0}) and a remote address that is a multiple of 8",
	[IBCHAN_REASON_INLINE_TOO_LONG] = "{W}{d0} bytes of inline data, the channel takes {d1}",
	[IBCHAN_REASON_REGION_TOO_LONG] = "the region has {d0} pages, the device can register {d1}",
	[IBCHAN_REASON_REGION_GAPS] = "only {d1} of {d0} pieces join at page borders",
	[IBCHAN_REASON_REGION_COPIED] =
		"the device does not reach this memory itself: it would work on a copy",
	[IBCHAN_REASON_MEMORY_NOT_THERE] =
		"{E}no memory at {x0} for {d1} bytes, or none that allows this access",
	[IBCHAN_REASON_FILE_WRITTEN] =
		"the memory at {x0} is mapped from a stored file and shared: no device may write there",
	[IBCHAN_REASON_READ_ONLY_SHARED] =
		"the memory is mapped shared and read-only: of such memory this kernel registers {d1} pages, not {d0}",
	[IBCHAN_REASON_INLINE_ELEMENT] =
		"{E}inline data come from plain memory, not from region {d0}",
	[IBCHAN_REASON_DMABUF_DEVICE] =
		"this device (driver id {d0}) cannot register dma-bufs here: only soft devices can",
	[IBCHAN_REASON_DMABUF_NOT_MAPPED] = "the exporter of the dma-buf cannot map it for the CPU",
	[IBCHAN_REASON_DMABUF_NO_PAGES] =
		"the dma-buf lies in memory of a device, which has no pages",
	[IBCHAN_REASON_DMABUF_MODE] =
		"the dma-buf was not opened for what the access needs: reading, and for local write also writing",
	[IBCHAN_REASON_REQUEST_DEVICE] = "the request came over another device than the channel's",
	[IBCHAN_REASON_PRIVATE_DATA] =
		"{d0} bytes of private data, {d1} are allowed with this message",
	[IBCHAN_REASON_STAGE_TIME] = "a stage of {d0} ms, {d1} ms are allowed",
	[IBCHAN_REASON_ADDRESS_FAMILY] = "addresses of family {d0} cannot be connected to",
	[IBCHAN_REASON_CM] = "the connection manager could not {k1}: {e0}",
	[IBCHAN_REASON_CONNECT] = "{t0}: {b2}{r1}",
	[IBCHAN_REASON_CGROUP] =
		"the RDMA cgroup of this process is at its limit ({c0} in rdma.max)",
	[IBCHAN_REASON_IWARP] = "iWARP does not {o0}",
	[IBCHAN_REASON_USER_MEMORY] =
		"kernel memory for this user's objects: {d0} bytes taken, limit {d1}, {d2} more needed",
	[IBCHAN_REASON_NO_ROUTE] = "no route to the peer at {g1}: {e0}",
	[IBCHAN_REASON_NEXT_HOP] =
		"the next hop on the way to the peer at {g1} does not answer: {e0}",
	[IBCHAN_REASON_NO_PKEY] = "port {d0}: none of its {d1} P_Keys is valid",
	[IBCHAN_REASON_NAME] = "looking up the name of a host or service: {n0}",
	[IBCHAN_REASON_HOST_ONLY] =
		"the peer's address means this host itself, and no RoCE device has it{h0}",
	[IBCHAN_REASON_NODE] = "/dev/ibchan: {N}",
	[IBCHAN_REASON_FOREIGN] = "the peer that asks is no ibchan",
	[IBCHAN_REASON_MESSAGES_UNTAKEN] =
		"the peer has received {d1} of the {d0} messages sent before, and no more may wait",
	[IBCHAN_REASON_SOURCE] = "the source address {g1}: {u0}",
};

#define DAMAGED \
	"it was damaged on its way; hand over the bytes that the peer's ibchan_endpoint_to_bytes() wrote"

/* A remedy, where that is not plain. */
static const char * const reason_hints[ARRAY_SIZE(reason_names)] = {
	[IBCHAN_REASON_TOO_MANY_ELEMENTS] =
		"ask for more in max_send_sge or max_recv_sge before the channel is prepared",
	[IBCHAN_REASON_CHANNEL_HANDLE] =
		"post on the context that the channel was made in, and before it is closed",
	[IBCHAN_REASON_MR_HANDLE] =
		"an element needs a region of the same context that is still registered",
	[IBCHAN_REASON_OUT_OF_BOUNDS] =
		"an offset counts from the region's first byte; ibchan_sge_checked() tells earlier",
	[IBCHAN_REASON_OTHER_PD] = "register the memory in the protection domain of the channel",
	[IBCHAN_REASON_MR_ACCESS] =
		"register the memory with that access; receives and reads need local write",
	[IBCHAN_REASON_MR_INVALIDATED] = "deregister it, and register the memory anew",
	[IBCHAN_REASON_NOT_CONNECTED] = "ibchan_prepared_handshake() comes first",
	[IBCHAN_REASON_BROKEN] =
		"close it and connect a new one; ibchan_channel_history() tells what came before",
	[IBCHAN_REASON_SEND_QUEUE_FULL] =
		"take completions first (a poll shows none of unsignaled works: try again), or raise max_send_wr before the channel is prepared",
	[IBCHAN_REASON_RECV_QUEUE_FULL] =
		"take completions first, or raise max_recv_wr before the channel is prepared",
	[IBCHAN_REASON_RING_FULL] =
		"take completions first, or make the completion queue with more entries",
	[IBCHAN_REASON_MEMLOCK] =
		"raise `ulimit -l`, grant CAP_IPC_LOCK, or deregister what is no longer used",
	[IBCHAN_REASON_ACCESS_COMBINATION] =
		"access is made of IBCHAN_ACCESS_*; that to write or for atomics needs local write with it",
	[IBCHAN_REASON_NO_GID] =
		"give the network device of the port an address and set it up; `ibchan devices --gids` shows the table",
	[IBCHAN_REASON_PORT_DOWN] = "set the network device of the port up, or choose another port",
	[IBCHAN_REASON_CQ_FULL] =
		"make the completion queue with more cq_entries, or the channel with shorter queues",
	[IBCHAN_REASON_ENDPOINT_MAGIC] =
		"hand over the bytes that the peer's ibchan_endpoint_to_bytes() wrote",
	[IBCHAN_REASON_ENDPOINT_VERSION] = DAMAGED,
	[IBCHAN_REASON_ENDPOINT_RESERVED] = DAMAGED,
	[IBCHAN_REASON_PEER_QPN] = DAMAGED,
	[IBCHAN_REASON_PEER_PSN] = DAMAGED,
	[IBCHAN_REASON_PEER_GID] = DAMAGED,
	[IBCHAN_REASON_PEER_MAC] = DAMAGED,
	[IBCHAN_REASON_PEER_LID] =
		"the subnet manager gives a port its LID; was it running when the peer was prepared?",
	[IBCHAN_REASON_PEER_PKEY] =
		"both ports must be in one partition, and one of them a full member of it",
	[IBCHAN_REASON_PEER_SUBNET] = "a peer in another subnet is reached by its IP address only",
	[IBCHAN_REASON_LINK_LAYER] = "both ports must be of one kind; choose device and port",
	[IBCHAN_REASON_GID_FAMILY] =
		"both addresses must be of one kind: gid_index IBCHAN_AUTO_IPV4 or IBCHAN_AUTO_IPV6 on one side",
	[IBCHAN_REASON_NO_ROUTE] =
		"`ip route get` with the peer's address tells what the kernel knows; is the address the right one, and this device in its network?",
	[IBCHAN_REASON_NEXT_HOP] =
		"`ip route get` with the peer's address names the gateway; is it up, and in this network?",
	[IBCHAN_REASON_NO_PKEY] = "the subnet manager gives a port its P_Keys; is it running?",
	[IBCHAN_REASON_MTU_ABOVE_PORT] = "an mtu of 0 takes what both sides can",
	[IBCHAN_REASON_BUSY] =
		"wait for that work first, or post with IBCHAN_WR_UNCHECKED if that is meant",
	[IBCHAN_REASON_REQUEST_DEVICE] =
		"build the channel on the device that ibchan_request_query() names",
	[IBCHAN_REASON_CONNECT] = "`ibchan doctor PEER` looks for the cause, step by step",
	[IBCHAN_REASON_INLINE_TOO_LONG] =
		"raise max_inline_data before the channel is prepared, or do without IBCHAN_WR_INLINE",
	[IBCHAN_REASON_FILE_WRITTEN] =
		"map it from a tmpfs, from memfd_create() or from huge pages, or without MAP_SHARED",
	[IBCHAN_REASON_READ_ONLY_SHARED] =
		"register it in parts, map it without MAP_SHARED, or writable",
	[IBCHAN_REASON_CGROUP] =
		"raise rdma.max of the cgroup or of one above it, or close what is no longer used",
	[IBCHAN_REASON_USER_MEMORY] =
		"make shorter queues, close what is no longer used, or have the module parameter user_memory raised",
	[IBCHAN_REASON_HOST_ONLY] =
		"connect to an address of an RDMA device's: `ibchan doctor` lists them",
	[IBCHAN_REASON_FOREIGN] = "IBCHAN_CONNECT_FOREIGN accepts such a peer",
	[IBCHAN_REASON_MESSAGES_UNTAKEN] =
		"wait longer, or raise messages in the params of both sides",
	[IBCHAN_REASON_SOURCE] =
		"it has to be an address of an RDMA device's, of the peer's family: `ibchan devices --gids` shows them",
	[IBCHAN_REASON_NAME] =
		"is it spelled right, and does a name server answer? `getent ahosts` and `getent services` tell what this machine knows",
};

/* Instead of what is said of any parameter, and for a parameter. */
struct parameter_row {
	const char *text;
	const char *hint;
};

static const struct parameter_row parameter_rows[ARRAY_SIZE(parameter_names)] = {
	[IBCHAN_PARAMETER_MTU] = {
		"{P}: {d0} is not 256, 512, 1024, 2048 or 4096",
		"these are what a packet carries of a message; 0 takes the most that both sides can",
	},
	[IBCHAN_PARAMETER_GID_INDEX] = {
		NULL,
		"`ibchan devices --gids` shows the table; IBCHAN_AUTO chooses",
	},
	[IBCHAN_PARAMETER_KEEPALIVE_MS] = {
		"the keepalive: {d0} ms is not in {d1} ms to {d2} ms",
		"0 takes the default, IBCHAN_TIMEOUT_NEVER none",
	},
	[IBCHAN_PARAMETER_SIZE] = {
		"{P}: a struct of {d0} bytes has nothing in it",
		"a struct of parameters begins with its own sizeof",
	},
};

static const struct parameter_row *parameter_row(const struct ibchan_reason *reason)
{
	static const struct parameter_row none;

	if (reason->code != IBCHAN_REASON_PARAMETER ||
	    reason->element >= ARRAY_SIZE(parameter_rows))
		return &none;
	return &parameter_rows[reason->element];
}

static const char *reason_words(const struct ibchan_reason *reason)
{
	static const char silent_end[] = {
		"{V}the channel is broken: its device has ended it and does not say why; often the peer used a wrong key, or sent more than a receive holds"
	};
	static const char useless_gid[] = {
		"{P}: entry {d0} of the port's table has no address that a channel can use from here"
	};
	const __u64 *value = reason->value;

	/* Where nothing but a flush has come, the device did not say why. */
	if (reason->code == IBCHAN_REASON_BROKEN && value[0] == ECANCELED &&
	    value[1] == IBCHAN_STATUS_WR_FLUSH_ERR)
		return silent_end;
	/* An entry inside the table that is refused has nothing that a channel can use. */
	if (reason->code == IBCHAN_REASON_PARAMETER &&
	    reason->element == IBCHAN_PARAMETER_GID_INDEX && value[0] >= value[1] &&
	    value[0] <= value[2])
		return useless_gid;
	if (parameter_row(reason)->text)
		return parameter_row(reason)->text;
	return reason->code < ARRAY_SIZE(reason_texts) ? reason_texts[reason->code] : NULL;
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

struct bit {
	__u32 bit;
	const char *name;
};

/* In words, as far as there are some; the rest as a number. Ends with a bit of 0. */
static void add_bits(struct text *text, __u64 bits, const struct bit *names)
{
	const char *between = "";

	if (!bits)
		add(text, "none");
	for (; names->bit; names++) {
		if (!(bits & names->bit))
			continue;
		add(text, "%s%s", between, names->name);
		bits &= ~(__u64)names->bit;
		between = "|";
	}
	if (bits)
		add(text, "%s0x%llx", between, (unsigned long long)bits);
}

static const struct bit access_bits[] = {
	{ IBCHAN_ACCESS_LOCAL_WRITE, "local write" },
	{ IBCHAN_ACCESS_REMOTE_WRITE, "remote write" },
	{ IBCHAN_ACCESS_REMOTE_READ, "remote read" },
	{ IBCHAN_ACCESS_REMOTE_ATOMIC, "remote atomic" },
	{ 0 }
};

static const struct bit flag_bits[] = {
	{ IBCHAN_WR_IMM, "IMM" },
	{ IBCHAN_WR_FENCE, "FENCE" },
	{ IBCHAN_WR_SOLICITED, "SOLICITED" },
	{ IBCHAN_WR_INLINE, "INLINE" },
	{ IBCHAN_WR_UNSIGNALED, "UNSIGNALED" },
	{ IBCHAN_WR_UNCHECKED, "UNCHECKED" },
	{ 0 }
};

/* Why a channel has ended. */
static const char *end_words(__u64 code)
{
	switch (code) {
	case EADDRNOTAVAIL:
		return "its own address has been taken from the port";
	case ECANCELED:
		return "this side has ended it";
	case EACCES:
		return "the peer asked for memory by a wrong key, past its end, or without access";
	case EPROTOTYPE:
		return "the peer is no ibchan";
	case EPROTO:
		return "the peer sent what this side cannot take";
	default:
		return ibchan_strerror(code <= INT32_MAX ? -(int)code : -1000000);
	}
}

/* Reject codes as the InfiniBand specification numbers them, that one meets. */
static void add_reject(struct text *text, __s64 code)
{
	switch (code) {
	case 8:
		/* The errno says that nobody listens there. */
		break;
	case 10:
		add(text, " (the peer holds that connection for an old one)");
		break;
	case 26:
		add(text, " (its packets would be too long for the peer: a smaller mtu is needed)");
		break;
	case 28:
		add(text, " (the program there said no)");
		break;
	default:
		if (code > 0)
			add(text, " (reject code %lld)", (long long)code);
	}
}

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

/* Numbers that had a meaning once have no name. */
static const char *name_of(const char * const *names, size_t n, __u64 number)
{
	return number < n && names[number] ? names[number] : UNKNOWN;
}

#define NAME_OF(names, number)	name_of(names, ARRAY_SIZE(names), number)
#define NAME_OR_LAST(names, number)	names[min(number, ARRAY_SIZE(names) - 1)]

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
	switch (how) {
	case 'p':
		return NAME_OF(port_state_names, (__u32)value);
	case 'n':
		return gai_strerror((int)value);
	case 'e':
		return value <= INT32_MAX ? errno_words((int)value) : NULL;
	case 'b':
		return end_words(value);
	case 'u':
		return source_words(value);
	case 'l':
		return NAME_OF(link_layers, value);
	case 'c':
		return value ? "hca_object" : "hca_handle";
	case 'o':
		return value ? "read into memory without a key of its own" :
			       "connect by endpoints, only by address";
	case 'q':
		return NAME_OR_LAST(qp_steps, value);
	case 'k':
		return NAME_OR_LAST(cm_steps, value);
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
		add_bits(text, value, flag_bits);
		break;
	case 'a':
		add_bits(text, value, access_bits);
		break;
	case 's':
		if (value)
			add(text, ", first failed work %s", ibchan_status_name((__u32)value));
		break;
	case 'r':
		add_reject(text, (__s64)value);
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
	case 'N':
		add(text, "%s", node_words(reason));
		break;
	default:
		add_value(text, brace[0], &reason->value[brace[1] - '0']);
	}
}

static void add_reason(struct text *text, const struct ibchan_reason *reason)
{
	const char *c = reason_words(reason);

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

	if (len)
		buf[0] = '\0';
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

	if (len)
		buf[0] = '\0';
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
	const __u32 code = error->reason.code;

	if (error->origin != IBCHAN_ERROR_CALL)
		return "";
	if (code == IBCHAN_REASON_NODE)
		return node_hint(&error->reason);
	if (parameter_row(&error->reason)->hint)
		return parameter_row(&error->reason)->hint;
	if (code < ARRAY_SIZE(reason_hints) && reason_hints[code])
		return reason_hints[code];
	return is_of_other_process(error) ?
	       "open the context in the process that uses it: after fork() or daemon()" : "";
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
	return verdict < ARRAY_SIZE(verdicts) ? verdicts[verdict].name : UNKNOWN;
}

const char *ibchan_gid_verdict_text(__u32 verdict)
{
	return verdict < ARRAY_SIZE(verdicts) ? verdicts[verdict].text :
						"this library does not know the verdict";
}

const char *ibchan_status_name(__u32 status)
{
	return status < ARRAY_SIZE(statuses) ? statuses[status].name : UNKNOWN;
}

__u32 ibchan_status_class(__u32 status)
{
	return status < ARRAY_SIZE(statuses) ? statuses[status].class :
					       IBCHAN_CLASS_UNKNOWN;
}

const char *ibchan_status_class_name(__u32 status)
{
	return class_names[ibchan_status_class(status)];
}

const char *ibchan_status_hint(__u32 status)
{
	return status < ARRAY_SIZE(statuses) ? statuses[status].hint :
					       "this library does not know the status";
}
