// SPDX-License-Identifier: GPL-2.0-only
/*
 * The process that watches: does the other one go on, and what does the kernel say?
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine.h"
#include "world.h"

#define MAX_SPLATS	64
#define REPORT_MS	10000
#define LOOK_MS		100

struct watcher {
	struct shared *shared;
	pid_t child;
	__u64 begin;
	__u64 end;		/* 0: when it ends by itself */
	__u64 reported;
	__u64 moved;		/* when the count of executions last changed */
	unsigned long executions;
	int kernel_log;
	regex_t splats[MAX_SPLATS];
	unsigned int num_splats;
};

static void print_program(const char *title, const struct program *program)
{
	char lines[8192];
	struct text text = { lines, sizeof(lines) };
	char *save, *line;

	printf("# %s:\n", title);
	program_print(program, &text);
	for (line = strtok_r(lines, ";", &save); line; line = strtok_r(NULL, ";", &save))
		printf("#   %s\n", line + strspn(line, " "));
}

/* What was going on: the last programs of each thread. */
static void print_trails(const struct shared *shared)
{
	unsigned int i, back;
	char title[64];

	for (i = 0; i < shared->threads; i++) {
		const struct trail *trail = &shared->trails[i];

		for (back = TRAIL; back; back--) {
			if (trail->num < back)
				continue;
			snprintf(title, sizeof(title), "thread %u, %u before the last%s", i,
				 back - 1, back == 1 ? ", now" : "");
			print_program(title, &trail->programs[(trail->num - back) % TRAIL]);
		}
		printf("# thread %u is at step %u\n", i, trail->step);
	}
}

static void print_stack(const char *path)
{
	char line[256];
	FILE *file = fopen(path, "re");

	if (!file)
		return;
	printf("# %s\n", path);
	while (fgets(line, sizeof(line), file))
		printf("#   %s", line);
	fclose(file);
}

/* Where the threads of the child are in the kernel. */
static void print_stacks(pid_t child)
{
	char path[512];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", child);
	dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/stack", child, entry->d_name);
		print_stack(path);
	}
	closedir(dir);
}

static void found(struct watcher *watcher, const char *what)
{
	struct shared *shared = watcher->shared;

	if (__atomic_exchange_n(&shared->failed, true, __ATOMIC_ACQ_REL))
		return;
	snprintf(shared->failure, sizeof(shared->failure), "%s", what);
}

/* The lines "splat EXPRESSION" of the file. */
static void load_splats(struct watcher *watcher, const char *path)
{
	char line[256];
	FILE *file = path ? fopen(path, "re") : NULL;

	while (file && fgets(line, sizeof(line), file) && watcher->num_splats < MAX_SPLATS) {
		regex_t *splat = &watcher->splats[watcher->num_splats];

		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "splat ", 6) &&
		    !regcomp(splat, line + 6, REG_EXTENDED | REG_NOSUB))
			watcher->num_splats++;
	}
	if (file)
		fclose(file);
	watcher->kernel_log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (watcher->kernel_log >= 0)
		lseek(watcher->kernel_log, 0, SEEK_END);
}

static void read_kernel_log(struct watcher *watcher)
{
	char record[1024];
	unsigned int i;
	ssize_t n;

	while ((n = read(watcher->kernel_log, record, sizeof(record) - 1)) > 0) {
		record[n] = '\0';
		for (i = 0; i < watcher->num_splats; i++) {
			if (!regexec(&watcher->splats[i], record, 0, NULL, 0))
				found(watcher, record);
		}
	}
}

static void report(const struct watcher *watcher)
{
	const struct shared *shared = watcher->shared;
	double seconds = (now_ms() - watcher->begin + 1) / 1000.0;

	printf("# fuzz: %.0f s: %lu executions, %.0f/s, %u programs in the corpus, %u new; ",
	       seconds, shared->executions, shared->executions / seconds,
	       shared->num_known, shared->num_known - shared->num_loaded);
	printf("%lu scenes, %lu places in the code, %lu answers\n", shared->scenes,
	       shared->cover.places, shared->cover.features - shared->cover.places);
	fflush(stdout);
}

/* Does it still go on? A scene on a slow kernel may take its time to be made. */
static void look(struct watcher *watcher)
{
	__u64 now = now_ms();

	read_kernel_log(watcher);
	if (watcher->executions != watcher->shared->executions) {
		watcher->executions = watcher->shared->executions;
		watcher->moved = now;
	}
	if (now - watcher->moved > 2 * (__u64)patience_ms())
		found(watcher, "it hangs");
	if (now - watcher->reported >= REPORT_MS) {
		report(watcher);
		watcher->reported = now;
	}
	if (watcher->end && now >= watcher->end)
		__atomic_store_n(&watcher->shared->stop, true, __ATOMIC_RELEASE);
}

/* 0, or what is wrong with how it ended. */
static int wait_for_child(struct watcher *watcher)
{
	int status;

	while (!waitpid(watcher->child, &status, WNOHANG)) {
		look(watcher);
		if (watcher->shared->failed && now_ms() - watcher->moved > (__u64)patience_ms()) {
			print_stacks(watcher->child);
			kill(watcher->child, SIGKILL);
			return -ETIMEDOUT;
		}
		poll(NULL, 0, LOOK_MS);
	}
	read_kernel_log(watcher);
	if (status)
		printf("# the fuzzer ended with status %#x\n", status);
	return status ? -EINTR : 0;
}

static void start(struct watcher *watcher)
{
	fflush(NULL);
	watcher->child = fork();
	if (watcher->child)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	engine_run(watcher->shared);
	_exit(0);
}

int watch(struct shared *shared, const struct watch_options *options)
{
	static struct watcher watcher;
	int rc;

	watcher = (struct watcher) { .shared = shared, .begin = now_ms() };
	watcher.end = options->seconds ? watcher.begin + 1000ULL * options->seconds : 0;
	watcher.moved = watcher.begin;
	watcher.reported = watcher.begin;
	load_splats(&watcher, options->splats);
	printf("# fuzz: seed %llu, %u threads, %u programs loaded\n",
	       (unsigned long long)shared->seed, shared->threads, shared->num_loaded);
	start(&watcher);
	rc = wait_for_child(&watcher);
	report(&watcher);
	printf("# fuzz: %s\n", shared->has_kcov ? "coverage has guided it" :
	       "no coverage here: answers have guided it");
	if (!shared->failed && !rc)
		return 0;
	printf("# fuzz: FOUND: %s\n", shared->failed ? shared->failure : "it has died");
	if (shared->culprit.num_steps)
		print_program("the program", &shared->culprit);
	print_trails(shared);
	fflush(stdout);
	return 1;
}
