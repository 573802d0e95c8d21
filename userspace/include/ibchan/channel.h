/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libibchan: channels, from the builder to the end. Include <ibchan.h>. */
#ifndef _IBCHAN_CHANNEL_H
#define _IBCHAN_CHANNEL_H

#include <ibchan/types.h>

__IBCHAN_BEGIN_DECLS

/**
 * struct ibchan_initial_receive - a receive that a channel has before it can have a peer
 * @mr: a region of the builder's domain
 * @offset: of the range, from the first byte of @mr
 * @length: bytes of it
 * @wr_id: any number; comes back in the completion
 */
struct ibchan_initial_receive {
	struct ibchan_mr *mr;
	size_t offset;
	size_t length;
	__u64 wr_id;
};

/**
 * struct ibchan_builder - the objects and settings that make a channel
 * @size: sizeof(struct ibchan_builder)
 * @min_cq_entries: entries of the channel's own cq, if its works do not need more of them anyhow
 * @pd: protection domain of the memory that it will use
 * @send_cq: where sends, writes, reads and atomics complete; NULL: in one of the channel's own
 * @recv_cq: where receives complete; may be the same; NULL: in the channel's own,
 *	which is one for both directions if both are NULL
 * @receives: the receives that a channel has before it can have a peer, in this order; NULL: none
 * @num_receives: how many
 * @keepalive_ns: a peer that has died without a word is noticed within that time, 100 ms to an
 *	hour; 0: 10 s; IBCHAN_TIMEOUT_NEVER: when a work fails, if ever
 * @params: every knob; see struct ibchan_params, and ibchan_builder_init() for the defaults
 *
 * Start with ibchan_builder_init(). A builder may be used as often as you like.
 *
 * For a channel by endpoints a @keepalive_ns of 0 begins when the first work of this side has
 * completed. linux/ibchan_options.h says how the peer is asked, and what slows it down.
 */
struct ibchan_builder {
	__u32 size;
	__u32 min_cq_entries;
	struct ibchan_pd *pd;
	struct ibchan_cq *send_cq;
	struct ibchan_cq *recv_cq;
	const struct ibchan_initial_receive *receives;
	size_t num_receives;
	__s64 keepalive_ns;
	struct ibchan_params params;
};

/**
 * ibchan_builder_init_size() - the defaults, for a struct of some size
 * @builder: to fill
 * @size: bytes of it
 * @pd: protection domain
 * @cq: for both directions; NULL: one of the channel's own
 *
 * ibchan_builder_init() calls it; it is there for languages other than C.
 */
void ibchan_builder_init_size(struct ibchan_builder *builder, size_t size, struct ibchan_pd *pd,
			      struct ibchan_cq *cq);

/**
 * ibchan_builder_init() - the defaults
 * @builder: to fill
 * @pd: protection domain
 * @cq: for both directions; NULL: one of the channel's own
 *
 * struct ibchan_params says what each of its members means, and its range. The defaults are:
 *
 *	access		IBCHAN_ACCESS_SHARED: the peer may use what @pd has registered for it
 *	max_send_wr	16, as max_recv_wr
 *	max_send_sge	IBCHAN_AUTO: 16, or as many as the device can (siw: 6); as max_recv_sge
 *	rnr_retries	7: a message waits for the peer's receive as long as it takes
 *	ack_retries	6
 *	min_rnr_timer	16: 2.56 ms; see ibchan_rnr_timer_from_ns()
 *	ack_timeout	IBCHAN_AUTO: by endpoints 17: 537 ms; see ibchan_ack_timeout_from_ns()
 *	send_psn	IBCHAN_AUTO, as recv_psn, gid_index and max_rd_atomic
 *
 * All else is 0.
 */
static inline void ibchan_builder_init(struct ibchan_builder *builder, struct ibchan_pd *pd,
				       struct ibchan_cq *cq)
{
	ibchan_builder_init_size(builder, sizeof(*builder), pd, cq);
}

/**
 * ibchan_builder_prepare() - make a channel that has no peer yet
 * @builder: filled in
 * @prepared: where to put it
 * @error: details; NULL is fine
 *
 * Buffers: those of the builder's receives belong to the device until the work's completion was
 * handed out, or the channel has been closed; not if this fails.
 *
 * Return: 0; -EINVAL: a knob is out of range, or the MTU above the port's, or above that of the
 * address if gid_index names one; -ENETDOWN: no port is active; -EADDRNOTAVAIL: the port has no
 * usable address, or not yet; -EXDEV: @builder names objects of different devices; -EAGAIN: the
 * completion queue has no room for the channel's works; -EOPNOTSUPP: an unknown mode, or one that
 * the device cannot; -EACCES: a mode that needs more access than the channel has; -EPERM: see Fork;
 * -EMFILE, -EDQUOT: see Limits in <ibchan.h>; for a cq of its own also as ibchan_cq_create(), and
 * for receives as ibchan_post(); or the errno of the device's driver.
 */
int ibchan_builder_prepare(const struct ibchan_builder *builder, struct ibchan_prepared **prepared,
			   struct ibchan_error *error);

/**
 * ibchan_prepared_endpoint() - the endpoint that the peer needs
 * @prepared: the prepared channel
 * @endpoint: where to put it
 */
void ibchan_prepared_endpoint(const struct ibchan_prepared *prepared,
			      struct ibchan_endpoint *endpoint);

/**
 * ibchan_prepared_channel() - for receives before there is a peer
 * @prepared: the prepared channel
 *
 * The peer's first messages find them, however early they come. It takes nothing else yet.
 *
 * Return: the channel that connecting hands out later; it lives as long as @prepared until then.
 */
struct ibchan_channel *ibchan_prepared_channel(struct ibchan_prepared *prepared);

/**
 * ibchan_prepared_handshake() - connect to the peer
 * @prepared: is used up on success; stays valid on failure
 * @peer: the peer's endpoint; the channel's own gives a loop to itself
 * @channel: where to put the channel
 * @error: details; NULL is fine
 *
 * Both sides do this, in any order; neither waits for the other. A send that arrives before the
 * other side has done it, and has posted a receive, is retried as often as the knobs say: tell each
 * other by the means that carried the endpoints.
 *
 * Return: 0; -EINVAL: the peer does not fit, @error names ours and theirs; -EHOSTUNREACH: no route
 * to the peer, or the gateway on the way to it did not answer within 2 s. A peer on the same
 * network is not looked for, because its MAC is in the endpoint: that it is not there, the first
 * work tells (-ETIMEDOUT); -EADDRNOTAVAIL: the channel's own address has gone; -EPERM: see Fork; or
 * the errno of the device's driver.
 */
int ibchan_prepared_handshake(struct ibchan_prepared *prepared, const struct ibchan_endpoint *peer,
			      struct ibchan_channel **channel, struct ibchan_error *error);

/**
 * ibchan_prepared_destroy() - give up a channel that was never connected
 * @prepared: NULL is fine
 *
 * Return: 0 or a negative errno: see Destroying in <ibchan.h>.
 */
int ibchan_prepared_destroy(struct ibchan_prepared *prepared);

/**
 * ibchan_rnr_timer_from_ns() - a time as min_rnr_timer
 * @ns: the time that a peer waits after its message met no receive, 0 and up
 *
 * Return: the code, 0 to 31, of the shortest time that is not below @ns, which is
 * 10 us at least; -EINVAL: above 655.36 ms, or negative.
 */
int ibchan_rnr_timer_from_ns(__s64 ns);

/**
 * ibchan_rnr_timer_to_ns() - min_rnr_timer as a time
 * @code: 0 to 31
 *
 * Return: nanoseconds; -EINVAL: above 31.
 */
__s64 ibchan_rnr_timer_to_ns(__u32 code);

/**
 * ibchan_ack_timeout_from_ns() - a time as ack_timeout
 * @ns: how long to wait for an acknowledgment before sending again, 0 and
 *	up; IBCHAN_TIMEOUT_NEVER: for ever
 *
 * Return: the code, 1 to 31, of the shortest time that is not below @ns, which is 8.192 us at
 * least; 0 for ever; -EINVAL: above 8796.1 s, or another negative number.
 */
int ibchan_ack_timeout_from_ns(__s64 ns);

/**
 * ibchan_ack_timeout_to_ns() - ack_timeout as a time
 * @code: 0 to 31
 *
 * Return: nanoseconds; IBCHAN_TIMEOUT_NEVER for 0; -EINVAL: above 31.
 */
__s64 ibchan_ack_timeout_to_ns(__u32 code);

/**
 * ibchan_endpoint_to_bytes() - for the wire
 * @endpoint: to encode
 * @bytes: IBCHAN_ENDPOINT_SIZE bytes
 */
void ibchan_endpoint_to_bytes(const struct ibchan_endpoint *endpoint, void *bytes);

/**
 * ibchan_endpoint_from_bytes() - from the wire
 * @endpoint: where to put it
 * @bytes: the bytes that the peer sent
 * @length: how many bytes
 * @error: details; NULL is fine
 *
 * Only the envelope is looked at. ibchan_prepared_handshake() checks the rest.
 *
 * Return: 0; -EINVAL: not IBCHAN_ENDPOINT_SIZE bytes, or not an endpoint. One of a later version
 * is served with what both sides know.
 */
int ibchan_endpoint_from_bytes(struct ibchan_endpoint *endpoint, const void *bytes, size_t length,
			       struct ibchan_error *error);

/**
 * struct ibchan_channel_info - how a channel fares
 * @state: enum ibchan_channel_state
 * @error: the first error as a negative errno, 0 while there is none
 * @status: enum ibchan_status of the work that failed first
 * @failed_opcode: IBCHAN_OP_* of that work; IBCHAN_FACTS_NO_OPCODE: none has failed but by a flush
 * @failed_vendor_err: the device's own code for @status
 * @peer_qpn: the peer's queue pair number; 0: there is no peer yet
 * @failed_wr_id: of the work that failed first, as its request said
 * @sends_in_flight: posted and not completed
 * @recvs_in_flight: posted and not completed
 * @probes_sent: how often the peer was asked for a sign of life
 * @probes_answered: how often it gave one
 * @device: name of the own device, also when it has left; ends with a NUL
 * @peer_gid: the peer's address
 * @age_ns: since it was connected; 0: it was not
 * @keepalive_ns: in effect, see struct ibchan_builder
 * @notice_ns: in which a silent peer is noticed; 0: not at all
 * @ack_timeout_ns: until a message without an answer is sent again; IBCHAN_TIMEOUT_NEVER: it is not
 * @rnr_timer_ns: how long the peer is told to wait when its message met no receive
 * @worst_case_ns: until a message that nobody ever answers has failed, at most: devices may take
 *	four times @ack_timeout_ns for each try; IBCHAN_TIMEOUT_NEVER: it does not, or need not (7
 *	retries are without end on some devices)
 * @params: in effect; mtu and max_rd_atomic are the agreed ones
 * @endpoint: of this side
 * @reserved: 0
 *
 * The device got the retries and times of @params when the channel was connected: the time that
 * the peer is told to wait before anything could arrive, the rest before anything could be sent.
 */
struct ibchan_channel_info {
	__u32 state;
	int error;
	__u32 status;
	__u32 failed_opcode;
	__u32 failed_vendor_err;
	__u32 peer_qpn;
	__u64 failed_wr_id;
	__u32 sends_in_flight;
	__u32 recvs_in_flight;
	__u32 probes_sent;
	__u32 probes_answered;
	char device[IBCHAN_NAME_SIZE];
	__u8 peer_gid[IBCHAN_GID_SIZE];
	__s64 age_ns;
	__s64 keepalive_ns;
	__s64 notice_ns;
	__s64 ack_timeout_ns;
	__s64 rnr_timer_ns;
	__s64 worst_case_ns;
	struct ibchan_params params;
	struct ibchan_endpoint endpoint;
	__u64 reserved[8];
};

/**
 * ibchan_channel_query() - how a channel fares
 * @channel: connected or broken
 * @info: where to put the answer
 * @error: details; NULL is fine
 *
 * Return: 0 or a negative errno.
 */
int ibchan_channel_query(struct ibchan_channel *channel,
			 struct ibchan_channel_info *info, struct ibchan_error *error);

/**
 * ibchan_channel_state_name() - a word for what a channel does
 * @state: enum ibchan_channel_state
 *
 * Return: for example "connected" or "broken".
 */
const char *ibchan_channel_state_name(__u32 state);

/**
 * ibchan_channel_text() - the devices, ports and addresses of a channel's two ends
 * @info: as ibchan_channel_query() filled it
 * @buf: where to, ends with a NUL if @len is not 0
 * @len: bytes of @buf
 *
 * One line without a newline, for example "rxe0 port 1 (10.77.0.1) to 10.77.0.2 qpn 0x12, 3.2 s
 * old". 256 bytes are always enough.
 *
 * Return: the length of the whole text without its NUL, as snprintf() does.
 */
int ibchan_channel_text(const struct ibchan_channel_info *info, char *buf, size_t len);

/**
 * ibchan_channel_error_text() - put a failure and a channel's two ends into words
 * @info: as ibchan_channel_query() filled it after the failure
 * @error: as the call left it
 * @buf: where to, ends with a NUL if @len is not 0
 * @len: bytes of @buf
 *
 * One line without a newline: ibchan_error_text() with the operation, the two ends and what the
 * device has tried. For example "send on rxe0 port 1 (10.77.0.1) to 10.77.0.2 qpn 0x12, 3.2 s old:
 * RETRY_EXC_ERR after 6 retries of 67.1 ms: no answer: ...". 640 bytes are always enough.
 *
 * Return: the length of the whole text without its NUL, as snprintf() does.
 */
int ibchan_channel_error_text(const struct ibchan_channel_info *info,
			      const struct ibchan_error *error, char *buf, size_t len);

/**
 * ibchan_channel_send_cq() - where a channel's sends, writes and reads complete
 * @channel: connected or broken
 *
 * Return: the cq; it ends with the channel if it is the channel's own.
 */
struct ibchan_cq *ibchan_channel_send_cq(const struct ibchan_channel *channel);

/**
 * ibchan_channel_recv_cq() - where a channel's receives complete
 * @channel: connected or broken
 *
 * Return: the cq; it ends with the channel if it is the channel's own.
 */
struct ibchan_cq *ibchan_channel_recv_cq(const struct ibchan_channel *channel);

/**
 * ibchan_channel_handle() - the number that requests and completions name a channel by
 * @channel: prepared, connected or broken
 *
 * Return: the handle, which no other object of the context has, nor has had lately.
 */
__u32 ibchan_channel_handle(const struct ibchan_channel *channel);

/**
 * ibchan_channel_set_priv() - keep a pointer of the caller's with a channel
 * @channel: prepared, connected or broken
 * @priv: anything; the library does not look at it
 *
 * A program finds its own data by it where it meets the channel in a completion or an event.
 */
void ibchan_channel_set_priv(struct ibchan_channel *channel, void *priv);

/**
 * ibchan_channel_priv() - the caller's pointer
 * @channel: prepared, connected or broken
 *
 * Return: the last pointer of ibchan_channel_set_priv(); NULL: none.
 */
void *ibchan_channel_priv(const struct ibchan_channel *channel);

/**
 * ibchan_channel_break() - end a channel's traffic
 * @channel: connected or broken
 *
 * It takes no more work; works in flight complete with WR_FLUSH_ERR unless they had been done, and
 * blocking calls on it return. Breaking twice is fine. Async-signal-safe; errno is left as it was.
 *
 * Buffers: those of the works in flight stay the device's until their completions were handed out.
 *
 * Return: 0 or a negative errno.
 */
int ibchan_channel_break(struct ibchan_channel *channel);

/**
 * ibchan_channel_close() - break, drain and free a channel
 * @channel: NULL is fine
 *
 * Takes a bounded time; before the answer to a request over iWARP, as long as the driver waits for
 * that (siw: 10 s). Its works have completed when this returns; the completions can still be polled
 * and name no channel then. A cq of its own goes with it; only pending works can still be asked. No
 * other thread may wait for a work of the channel, or on a cq of its own, meanwhile.
 *
 * Buffers: those of the channel's works may be reused once this has returned 0.
 *
 * One of the short way tells its peer first, and waits up to a second until what
 * ibchan_send_bytes() has sent last has arrived. A program that must not wait for that calls
 * ibchan_channel_break() first: the peer's ibchan_receive_bytes() then returns -ECONNRESET in
 * place of -ENODATA, and this may return the same.
 *
 * Return: 0 or a negative errno; the handle is gone either way, unless a filter of system
 * calls answered in the kernel's place, see <ibchan.h>. Of the short way also -ECONNRESET:
 * the channel has broken meanwhile, and messages may not have arrived.
 */
int ibchan_channel_close(struct ibchan_channel *channel);

__IBCHAN_END_DECLS

#endif /* _IBCHAN_CHANNEL_H */
