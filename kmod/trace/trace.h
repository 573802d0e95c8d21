/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints. @cookie and @wr_id join a post with its completion.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM ibchan

#if !defined(IBCHAN_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define IBCHAN_TRACE_H

#include <linux/tracepoint.h>
#include <rdma/ibchan.h>

TRACE_EVENT(ibchan_post,
	TP_PROTO(u64 cookie, const struct ibchan_work *work),
	TP_ARGS(cookie, work),
	TP_STRUCT__entry(
		__field(u64, cookie)
		__field(u64, wr_id)
		__field(u8, opcode)
		__field(u16, num_sge)
	),
	TP_fast_assign(
		__entry->cookie = cookie;
		__entry->wr_id = work->wr_id;
		__entry->opcode = work->opcode;
		__entry->num_sge = work->num_sge;
	),
	TP_printk("channel=%llu wr_id=%llu opcode=%u num_sge=%u", __entry->cookie,
		  __entry->wr_id, __entry->opcode, __entry->num_sge)
);

TRACE_EVENT(ibchan_complete,
	TP_PROTO(const struct ibchan_completion *completion),
	TP_ARGS(completion),
	TP_STRUCT__entry(
		__field(u64, cookie)
		__field(u64, wr_id)
		__field(u32, status)
		__field(u32, bytes)
	),
	TP_fast_assign(
		__entry->cookie = completion->cookie;
		__entry->wr_id = completion->wr_id;
		__entry->status = completion->status;
		__entry->bytes = completion->bytes;
	),
	TP_printk("channel=%llu wr_id=%llu status=%u bytes=%u", __entry->cookie,
		  __entry->wr_id, __entry->status, __entry->bytes)
);

TRACE_EVENT(ibchan_state,
	TP_PROTO(u64 cookie, u32 from, u32 to, u32 error),
	TP_ARGS(cookie, from, to, error),
	TP_STRUCT__entry(
		__field(u64, cookie)
		__field(u32, from)
		__field(u32, to)
		__field(u32, error)
	),
	TP_fast_assign(
		__entry->cookie = cookie;
		__entry->from = from;
		__entry->to = to;
		__entry->error = error;
	),
	TP_printk("channel=%llu from=%u to=%u error=%u", __entry->cookie,
		  __entry->from, __entry->to, __entry->error)
);

#endif /* IBCHAN_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
