// SPDX-License-Identifier: GPL-2.0-only
/*
 * The Rust binding: bindings/laws.rs has the tests, each runs in a process of its own; the shortest
 * programs; and the structs that the binding declares beside those of the headers. Of the library
 * in other flavors there is no build for Rust.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <ibchan.h>

#include "shim/run.h"
#include "test.h"
#include "world.h"

#define IN_RUST	"rust/short"
#define IN_C	"../userspace/examples/short"

FIXTURE(rust)
{
	struct calm calm;
};

FIXTURE_SETUP(rust)
{
	char path[PATH_MAX + 64];

	ASSERT_EQ(0, calm_begin(&self->calm));
	if (!run_can("rust/laws"))
		SKIP(return, "it was not built: no rustc, or another flavor");
	run_find(path, sizeof(path), "../userspace");
	setenv("LD_LIBRARY_PATH", path, 1);
}

FIXTURE_TEARDOWN(rust)
{
	EXPECT_EQ(0, calm_end(&self->calm));
}

static int run_law(const char *name)
{
	char file[PATH_MAX + 64];
	const char *const argv[] = { file, name, NULL };

	run_find(file, sizeof(file), "rust/laws");
	return run_program(argv);
}

#define LAW(name)				\
	TEST_F(rust, name)			\
	{					\
		EXPECT_EQ(0, run_law(#name));	\
	}

LAW(messages_come_as_they_were_sent)
LAW(a_time_out_ends_a_wait_and_loses_nothing)
LAW(a_loop_tells_of_clients_messages_and_the_end)
LAW(a_long_message_that_is_posted_comes_back_when_it_was_received)
LAW(a_stream_that_is_dropped_frees_what_was_lent_when_no_peer_reads_it)
LAW(errors_have_the_text_of_the_library)
LAW(a_shutdown_ends_the_calls_of_other_threads)
LAW(a_buffer_comes_back_with_what_it_has_received)
LAW(a_receive_before_the_handshake_gets_the_first_message)
LAW(a_receive_that_is_dropped_writes_into_nobody_elses_memory)
LAW(a_receive_that_is_forgotten_writes_into_nobody_elses_memory)
LAW(a_send_that_is_dropped_comes_whole)
LAW(a_send_that_is_forgotten_comes_whole)
LAW(works_that_are_dropped_make_room_when_they_have_ended)
LAW(a_buffer_that_is_shared_while_it_is_sent_stays_readable)
LAW(a_channel_that_is_dropped_gives_the_buffers_back)
LAW(a_post_that_is_refused_gives_the_buffer_back)
LAW(a_region_whose_memory_is_gone_takes_no_elements)
LAW(threads_send_and_receive_on_one_channel)
LAW(a_peer_writes_and_reads_a_shared_region)
LAW(two_works_do_not_write_into_one_range)
LAW(a_scope_waits_for_its_works)
LAW(a_scope_that_panics_waits_for_its_works)
LAW(a_scope_ends_in_time_though_the_peer_sends_nothing)
LAW(a_manual_scope_panics_when_a_work_is_left)
LAW(a_failed_block_is_told_apart_from_failed_works)
LAW(a_child_has_no_works_of_its_parents)

static int carry(const char *server_file, const char *client_file, const char *expected)
{
	struct run server;
	int rc = run_start(&server, server_file, ARGUMENTS(NULL)), ended;

	if (rc)
		return rc;
	rc = run_client(client_file, "10.77.0.1");
	ended = run_ends_with(&server, expected);
	return rc ? rc : ended;
}

TEST_F(rust, the_shortest_program_carries_its_message_to_itself)
{
	EXPECT_EQ(0, carry(IN_RUST, IN_RUST, "hello, server\n"));
}

TEST_F(rust, the_shortest_program_takes_the_message_of_that_in_c)
{
	EXPECT_EQ(0, carry(IN_RUST, IN_C, "hello, server\n\n"));
}

TEST_F(rust, the_shortest_program_carries_its_message_to_that_in_c)
{
	EXPECT_EQ(0, carry(IN_C, IN_RUST, "hello, server"));
}

/* --- the structs of the headers, as the binding's own test writes its own --- */

#define STRUCT(name, type)							\
	fprintf(out, name " %zu %zu\n", sizeof(type), __alignof__(type))
#define MEMBER(type, member)							\
	fprintf(out, #member " %zu %zu\n", offsetof(type, member), sizeof(((type *)0)->member))
#define CONSTANT(name, value)							\
	fprintf(out, name " %lld\n", (long long)(value))

static void write_errors(FILE *out)
{
	STRUCT("reason", struct ibchan_reason);
	MEMBER(struct ibchan_reason, code);
	MEMBER(struct ibchan_reason, wr);
	MEMBER(struct ibchan_reason, element);
	MEMBER(struct ibchan_reason, reserved);
	MEMBER(struct ibchan_reason, value);
	STRUCT("error", struct ibchan_error);
	MEMBER(struct ibchan_error, code);
	MEMBER(struct ibchan_error, origin);
	MEMBER(struct ibchan_error, reason);
	MEMBER(struct ibchan_error, status);
	MEMBER(struct ibchan_error, vendor_err);
	MEMBER(struct ibchan_error, opcode);
	MEMBER(struct ibchan_error, reserved0);
	MEMBER(struct ibchan_error, reserved);
}

static void write_peers(FILE *out)
{
	STRUCT("message_params", struct ibchan_message_params);
	MEMBER(struct ibchan_message_params, size);
	MEMBER(struct ibchan_message_params, messages);
	MEMBER(struct ibchan_message_params, message_bytes);
	MEMBER(struct ibchan_message_params, reserved);
	MEMBER(struct ibchan_message_params, timeout_ns);
	MEMBER(struct ibchan_message_params, source);
	MEMBER(struct ibchan_message_params, context);
	STRUCT("remote_region", struct ibchan_remote_region);
	MEMBER(struct ibchan_remote_region, addr);
	MEMBER(struct ibchan_remote_region, length);
	MEMBER(struct ibchan_remote_region, rkey);
	MEMBER(struct ibchan_remote_region, reserved);
	STRUCT("endpoint", struct ibchan_endpoint);
	fprintf(out, "bytes 0 %d\n", IBCHAN_ENDPOINT_SIZE);
}

static void write_params(FILE *out)
{
	STRUCT("params", struct ibchan_params);
	MEMBER(struct ibchan_params, access);
	MEMBER(struct ibchan_params, max_send_wr);
	MEMBER(struct ibchan_params, max_recv_wr);
	MEMBER(struct ibchan_params, max_send_sge);
	MEMBER(struct ibchan_params, max_recv_sge);
	MEMBER(struct ibchan_params, rnr_retries);
	MEMBER(struct ibchan_params, ack_retries);
	MEMBER(struct ibchan_params, min_rnr_timer);
	MEMBER(struct ibchan_params, ack_timeout);
	MEMBER(struct ibchan_params, mtu);
	MEMBER(struct ibchan_params, send_psn);
	MEMBER(struct ibchan_params, recv_psn);
	MEMBER(struct ibchan_params, port);
	MEMBER(struct ibchan_params, gid_index);
	MEMBER(struct ibchan_params, max_rd_atomic);
	MEMBER(struct ibchan_params, traffic_class);
	MEMBER(struct ibchan_params, service_level);
	MEMBER(struct ibchan_params, max_inline_data);
}

static void write_builder(FILE *out)
{
	STRUCT("builder", struct ibchan_builder);
	MEMBER(struct ibchan_builder, size);
	MEMBER(struct ibchan_builder, min_cq_entries);
	MEMBER(struct ibchan_builder, pd);
	MEMBER(struct ibchan_builder, send_cq);
	MEMBER(struct ibchan_builder, recv_cq);
	MEMBER(struct ibchan_builder, receives);
	MEMBER(struct ibchan_builder, num_receives);
	MEMBER(struct ibchan_builder, keepalive_ns);
	MEMBER(struct ibchan_builder, params);
}

static void write_requests(FILE *out)
{
	STRUCT("sge", struct ibchan_submit_sge);
	MEMBER(struct ibchan_submit_sge, offset);
	MEMBER(struct ibchan_submit_sge, length);
	MEMBER(struct ibchan_submit_sge, mr);
	STRUCT("wr", struct ibchan_submit_wr);
	MEMBER(struct ibchan_submit_wr, channel);
	MEMBER(struct ibchan_submit_wr, opcode);
	MEMBER(struct ibchan_submit_wr, flags);
	MEMBER(struct ibchan_submit_wr, num_sge);
	MEMBER(struct ibchan_submit_wr, wr_id);
	MEMBER(struct ibchan_submit_wr, sges);
	MEMBER(struct ibchan_submit_wr, remote_addr);
	MEMBER(struct ibchan_submit_wr, rkey);
	MEMBER(struct ibchan_submit_wr, imm);
	MEMBER(struct ibchan_submit_wr, sge);
	MEMBER(struct ibchan_submit_wr, remote_length);
}

/* "priv" is a word of Rust's. */
static void write_happening(FILE *out)
{
	STRUCT("happening", struct ibchan_happening);
	MEMBER(struct ibchan_happening, kind);
	MEMBER(struct ibchan_happening, by);
	MEMBER(struct ibchan_happening, error);
	MEMBER(struct ibchan_happening, reserved0);
	MEMBER(struct ibchan_happening, channel);
	MEMBER(struct ibchan_happening, server);
	MEMBER(struct ibchan_happening, listener);
	MEMBER(struct ibchan_happening, request);
	MEMBER(struct ibchan_happening, bytes);
	MEMBER(struct ibchan_happening, length);
	MEMBER(struct ibchan_happening, completion);
	MEMBER(struct ibchan_happening, reserved);
}

static void write_pending(FILE *out)
{
	STRUCT("completion", struct ibchan_cqe);
	MEMBER(struct ibchan_cqe, wr_id);
	MEMBER(struct ibchan_cqe, channel);
	MEMBER(struct ibchan_cqe, status);
	MEMBER(struct ibchan_cqe, opcode);
	MEMBER(struct ibchan_cqe, flags);
	MEMBER(struct ibchan_cqe, bytes);
	MEMBER(struct ibchan_cqe, imm);
	MEMBER(struct ibchan_cqe, error);
	MEMBER(struct ibchan_cqe, vendor_err);
	write_happening(out);
	STRUCT("pending", struct ibchan_pending);
	MEMBER(struct ibchan_pending, completion);
	MEMBER(struct ibchan_pending, next_failed);
	MEMBER(struct ibchan_pending, cq);
	MEMBER(struct ibchan_pending, channel);
	MEMBER(struct ibchan_pending, scope);
	MEMBER(struct ibchan_pending, next);
	MEMBER(struct ibchan_pending, generation);
	MEMBER(struct ibchan_pending, slot);
	MEMBER(struct ibchan_pending, state);
	MEMBER(struct ibchan_pending, seen);
	MEMBER(struct ibchan_pending, reserved);
	MEMBER(struct ibchan_pending, more);
}

/* The port is at the same place in an address of either family. */
static void write_address(FILE *out)
{
	STRUCT("sockaddr", struct sockaddr_storage);
	fprintf(out, "port %zu %zu\n", offsetof(struct sockaddr_in, sin_port),
		sizeof(((struct sockaddr_in6 *)0)->sin6_port));
}

static void write_constants(FILE *out)
{
	CONSTANT("TIMEOUT_NEVER", IBCHAN_TIMEOUT_NEVER);
	CONSTANT("ERROR_WORK", IBCHAN_ERROR_WORK);
	CONSTANT("ACCESS_LOCAL_WRITE", IBCHAN_ACCESS_LOCAL_WRITE);
	CONSTANT("ACCESS_REMOTE_WRITE", IBCHAN_ACCESS_REMOTE_WRITE);
	CONSTANT("ACCESS_REMOTE_READ", IBCHAN_ACCESS_REMOTE_READ);
	CONSTANT("NEXT_CONNECTED", IBCHAN_NEXT_CONNECTED);
	CONSTANT("NEXT_MESSAGE", IBCHAN_NEXT_MESSAGE);
	CONSTANT("NEXT_WRITABLE", IBCHAN_NEXT_WRITABLE);
	CONSTANT("NEXT_SENT", IBCHAN_NEXT_SENT);
	CONSTANT("NEXT_ENDED", IBCHAN_NEXT_ENDED);
	CONSTANT("BY_PEER", IBCHAN_BY_PEER);
	CONSTANT("BY_NETWORK", IBCHAN_BY_NETWORK);
	CONSTANT("BY_DEVICE", IBCHAN_BY_DEVICE);
	CONSTANT("OP_SEND", IBCHAN_OP_SEND);
	CONSTANT("OP_RECV", IBCHAN_OP_RECV);
	CONSTANT("OP_WRITE", IBCHAN_OP_WRITE);
	CONSTANT("OP_READ", IBCHAN_OP_READ);
	CONSTANT("WR_IMM", IBCHAN_WR_IMM);
	CONSTANT("CQE_IMM", IBCHAN_CQE_IMM);
	CONSTANT("ENDPOINT_SIZE", IBCHAN_ENDPOINT_SIZE);
	CONSTANT("REMOTE_REGION_SIZE", IBCHAN_REMOTE_REGION_SIZE);
}

TEST_F(rust, structs_are_those_of_the_headers)
{
	char file[PATH_MAX + 64], *text = NULL;
	const char *const argv[] = {
		file, "--exact", "--ignored", "ffi::tests::structs_are_those_of_the_headers", NULL,
	};
	size_t length;
	FILE *out = open_memstream(&text, &length);

	ASSERT_NE(NULL, out);
	write_errors(out);
	write_peers(out);
	write_params(out);
	write_builder(out);
	write_requests(out);
	write_pending(out);
	write_address(out);
	write_constants(out);
	ASSERT_EQ(0, fclose(out));
	setenv("IBCHAN_LAYOUT", text, 1);
	free(text);
	run_find(file, sizeof(file), "rust/unit");
	EXPECT_EQ(0, run_program(argv));
}

TEST_HARNESS_MAIN
