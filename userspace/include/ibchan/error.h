/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libibchan: errors and how to put them into words. Include <ibchan.h>. */
#ifndef _IBCHAN_ERROR_H
#define _IBCHAN_ERROR_H

#include <ibchan/types.h>

__IBCHAN_BEGIN_DECLS

/**
 * enum ibchan_error_origin - the subject of a struct ibchan_error
 * @IBCHAN_ERROR_NONE: the call succeeded
 * @IBCHAN_ERROR_CALL: the call was refused or its wait ended; @reason may say why
 * @IBCHAN_ERROR_WORK: the work was posted and completed with an error; @status says which
 */
enum ibchan_error_origin {
	IBCHAN_ERROR_NONE = 0,
	IBCHAN_ERROR_CALL = 1,
	IBCHAN_ERROR_WORK = 2,
};

/**
 * struct ibchan_error - why a call failed
 * @code: the call's result: a negative errno, or 0
 * @origin: enum ibchan_error_origin
 * @reason: the rule that was broken: reason.code is one of IBCHAN_REASON_*, or IBCHAN_REASON_NONE
 *	when there is only @code; reason.value has up to three numbers, which linux/ibchan_codes.h
 *	names beside the code
 * @status: enum ibchan_status of the work
 * @vendor_err: the device's own code for @status
 * @opcode: IBCHAN_OP_* of the work
 * @reserved0: 0
 * @reserved: 0
 */
struct ibchan_error {
	int code;
	__u32 origin;
	struct ibchan_reason reason;
	__u32 status;
	__u32 vendor_err;
	__u32 opcode;
	__u32 reserved0;
	__u64 reserved[3];
};

/**
 * ibchan_error_text() - put an error into words
 * @error: as the call that failed left it; see ibchan_strerror() for one that has none
 * @buf: where to, ends with a NUL if @len is not 0
 * @len: bytes of @buf
 *
 * One line without a newline. 256 bytes are always enough.
 *
 * Return: the length of the whole text without its NUL, as snprintf() does.
 */
int ibchan_error_text(const struct ibchan_error *error, char *buf, size_t len);

/**
 * ibchan_error_string() - put an error into words, and say what to do about it
 * @error: as the call that failed left it
 *
 * ibchan_error_text() and ibchan_error_hint() in one line. Each thread has a string of its own.
 *
 * Return: words without a newline, until the thread's next call of this. Never NULL.
 */
const char *ibchan_error_string(const struct ibchan_error *error);

/**
 * ibchan_strerror() - put what a call returned into words
 * @code: a negative errno; 0 and positive: no error
 *
 * For calls without a struct ibchan_error: of what such a call returned the struct of
 * another one knows nothing. Says what a code means here: that of EAGAIN, for example, is not
 * that of the C library. Thread-safe; a signal handler may call it.
 *
 * Return: words without a newline; they live for ever. Never NULL.
 */
const char *ibchan_strerror(int code);

/**
 * ibchan_error_hint() - advice on an error
 * @error: as a call left it
 *
 * It repeats nothing of ibchan_error_text(). For a work that failed that text says it all.
 *
 * Return: a sentence; empty on success, and where the text says it all. Never NULL.
 */
const char *ibchan_error_hint(const struct ibchan_error *error);

/**
 * ibchan_reason_text() - put a refusal into words
 * @reason: as the kernel or the library wrote it
 * @buf: where to, ends with a NUL if @len is not 0
 * @len: bytes of @buf
 *
 * For example "wr 2 element 0: offset 4096 + length 64 exceeds the region's 4096 bytes".
 *
 * Return: the length of the whole text without its NUL, as snprintf() does.
 */
int ibchan_reason_text(const struct ibchan_reason *reason, char *buf, size_t len);

/**
 * ibchan_reason_name() - name of a refusal
 * @code: enum ibchan_reason_code
 *
 * Return: for example "OUT_OF_BOUNDS".
 */
const char *ibchan_reason_name(__u32 code);

/**
 * ibchan_status_name() - the verbs' name of a completion status
 * @status: enum ibchan_status
 *
 * Return: for example "RNR_RETRY_EXC_ERR".
 */
const char *ibchan_status_name(__u32 status);

/**
 * ibchan_status_class() - the kind of failure that a status stands for
 * @status: enum ibchan_status
 *
 * Return: enum ibchan_class; IBCHAN_CLASS_UNKNOWN for a status this library does not know.
 */
__u32 ibchan_status_class(__u32 status);

/**
 * ibchan_status_class_name() - name of a status's class
 * @status: enum ibchan_status
 *
 * Return: "none", "programming", "local resource", "remote", "transport", "timeout", "fatal" or
 * "unknown".
 */
const char *ibchan_status_class_name(__u32 status);

/**
 * ibchan_status_hint() - advice on a status
 * @status: enum ibchan_status
 *
 * Return: a sentence; empty for success. Never NULL.
 */
const char *ibchan_status_hint(__u32 status);

/**
 * ibchan_port_state_name() - a word for what a port does
 * @state: enum ibchan_port_state
 *
 * Return: for example "active" or "down".
 */
const char *ibchan_port_state_name(__u32 state);

/**
 * ibchan_opcode_name() - name of an operation
 * @opcode: IBCHAN_OP_*
 *
 * Return: "send", "receive", "write", "read", "compare and swap", "fetch and add" or "unknown".
 */
const char *ibchan_opcode_name(__u32 opcode);

__IBCHAN_END_DECLS

#endif /* _IBCHAN_ERROR_H */
