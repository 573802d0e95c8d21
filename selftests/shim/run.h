/* SPDX-License-Identifier: GPL-2.0-only */
/* Programs of the library, and what they print. */
#ifndef TEST_SHIM_RUN_H
#define TEST_SHIM_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define ARGUMENTS(...)	((const char *const[]){ __VA_ARGS__ })

/* A program that runs, and the end of a pipe with what it prints. */
struct run {
	pid_t pid;
	int output;
};

/* The path of @file beside our own folder, where the programs of the library are. */
void run_find(char *path, size_t len, const char *file);

/* Whether @file was built. */
bool run_can(const char *file);

/* Starts @file with @arguments, which end with a NULL. */
int run_start(struct run *run, const char *file, const char *const arguments[]);

/* Until it closes its output, or patience ends; then it is killed, which shows. */
void run_collect(struct run *run, char *text, size_t len);

/*
 * Runs the client @file with the argument @address, again while no server listens there: a server
 * tells nobody when it does. Its answer, or -ETIMEDOUT.
 */
int run_client(const char *file, const char *address);

/* 0 if it ended well and printed just that line; else a line says what it did. */
int run_ends_with(struct run *run, const char *expected);

#endif /* TEST_SHIM_RUN_H */
