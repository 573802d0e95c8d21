// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "world.h"

#define COUNTERS	"/sys/kernel/debug/ibchan/counters"
#define NOBODY		65534

bool slow(void)
{
	const char *setting = getenv("IBCHAN_SLOW");

	if (setting && *setting)
		return strcmp(setting, "0");
	return !access("/sys/kernel/debug/kmemleak", F_OK);
}

bool kernel_is_before(int major, int minor)
{
	struct utsname name;
	int ours[2];

	if (uname(&name) || sscanf(name.release, "%d.%d", &ours[0], &ours[1]) != 2)
		return false;
	return ours[0] < major || (ours[0] == major && ours[1] < minor);
}

long patience_ms(void)
{
	return slow() ? 60000 : 10000;
}

__u64 now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ULL + now.tv_nsec / 1000000;
}

bool eventually(bool (*holds)(void *arg), void *arg)
{
	__u64 end = now_ms() + patience_ms();

	while (!holds(arg)) {
		if (now_ms() > end)
			return false;
		poll(NULL, 0, 2);
	}
	return true;
}

static bool has_no_device(void *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s", (char *)name);
	return access(path, F_OK);
}

bool device_leaves(const char *name)
{
	return eventually(has_no_device, (void *)name);
}

int put_line(const char *path, const char *line)
{
	ssize_t length = strlen(line);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int rc = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, line, length) != length)
		rc = -errno;
	close(fd);
	return rc;
}

/* Calls @each with every "name value" line of @path. */
static int each_counter(const char *path, void (*each)(const char *, long, void *), void *arg)
{
	FILE *file = fopen(path, "r");
	char name[64];
	long value;

	if (!file)
		return -errno;
	while (fscanf(file, "%63s %ld", name, &value) == 2)
		each(name, value, arg);
	fclose(file);
	return 0;
}

struct wanted {
	const char *name;
	long value;
};

static void pick(const char *name, long value, void *arg)
{
	struct wanted *wanted = arg;

	if (!strcmp(name, wanted->name))
		wanted->value = value;
}

long counter_of(const char *path, const char *name)
{
	struct wanted wanted = { name, -ENOENT };
	int rc = each_counter(path, pick, &wanted);

	return rc ? rc : wanted.value;
}

long counter(const char *name)
{
	return counter_of(COUNTERS, name);
}

long pins(void)
{
	int fd = open("/proc/sys/vm/stat_refresh", O_WRONLY | O_CLOEXEC);

	/* The counters are per CPU and are brought together only now and then. */
	if (fd < 0 || write(fd, "1\n", 2) != 2)
		perror("# stat_refresh");
	close(fd);
	return counter_of("/proc/vmstat", "nr_foll_pin_acquired") -
	       counter_of("/proc/vmstat", "nr_foll_pin_released");
}

long status_number(pid_t pid, const char *format)
{
	char path[32] = "/proc/self/status", line[128];
	long number = -ENOENT;
	FILE *file;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	while (number < 0 && fgets(line, sizeof(line), file))
		sscanf(line, format, &number);
	fclose(file);
	return number;
}

long charged(void)
{
	return status_number(0, "VmPin: %ld");
}

struct tally {
	long held;
	long posted;
	long retired;
	bool report;
};

static void add_up(const char *name, long value, void *arg)
{
	struct tally *tally = arg;

	if (!strcmp(name, "works_posted"))
		tally->posted = value;
	else if (!strcmp(name, "works_retired"))
		tally->retired = value;
	else
		tally->held += value;
	if (tally->report && value)
		fprintf(stderr, "# the module counts %s %ld\n", name, value);
}

static bool nothing_held(void *arg)
{
	struct tally tally = {};

	*(int *)arg = each_counter(COUNTERS, add_up, &tally);
	return !*(int *)arg && !tally.held && tally.posted == tally.retired;
}

/* The last steps of a release are a worker's, so the counters come back a little later. */
static int wait_until_nothing_held(void)
{
	struct tally tally = { .report = true };
	int rc = 0;

	if (eventually(nothing_held, &rc))
		return 0;
	if (rc)
		return rc;
	each_counter(COUNTERS, add_up, &tally);
	return -EBUSY;
}

/* Then what is held and pinned is not this process' business. */
static bool among_others(void)
{
	return getenv("IBCHAN_AMONG_OTHERS");
}

int calm_begin(struct calm *calm)
{
	int rc;

	if (among_others())
		return 0;
	rc = wait_until_nothing_held();
	calm->pins = pins();
	calm->charged = charged();
	return rc;
}

int calm_end(const struct calm *calm)
{
	long left, owed;
	int rc;

	if (among_others())
		return 0;
	rc = wait_until_nothing_held();
	left = pins() - calm->pins;
	owed = charged() - calm->charged;
	if (left)
		fprintf(stderr, "# %ld pages are pinned more than at the start\n", left);
	if (owed)
		fprintf(stderr, "# %ld KiB more are charged than at the start\n", owed);
	return rc ? rc : left || owed ? -EUCLEAN : 0;
}

int child_result(pid_t child)
{
	int status;

	if (child < 0)
		return -errno;
	while (waitpid(child, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
}

int in_child(int (*body)(void *arg), void *arg)
{
	pid_t child;

	fflush(NULL);
	child = fork();
	if (!child)
		_exit(-body(arg));
	return child_result(child);
}

pid_t child_that_is_ready(int (*body)(int ready, void *arg), void *arg)
{
	int ready[2];
	ssize_t said;
	pid_t child;
	char byte;

	fflush(NULL);
	if (pipe2(ready, O_CLOEXEC))
		return -errno;
	child = fork();
	if (!child)
		_exit(-body(ready[1], arg));
	close(ready[1]);
	said = read(ready[0], &byte, 1);
	close(ready[0]);
	return said == 1 ? child : child_result(child);
}

int run_program(const char *const argv[])
{
	pid_t child = fork();
	int rc;

	if (!child) {
		/* What it prints is no line of the test's report. */
		dup2(STDERR_FILENO, STDOUT_FILENO);
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	rc = child_result(child);
	return rc == -EINTR ? rc : -rc;
}

int drop_privileges(void)
{
	if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
	    setresuid(NOBODY, NOBODY, NOBODY))
		return -errno;
	return 0;
}
