// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "run.h"
#include "world.h"

void run_find(char *path, size_t len, const char *file)
{
	char self[PATH_MAX] = "";

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		self[0] = '\0';
	snprintf(path, len, "%s/%s", dirname(self), file);
}

bool run_can(const char *file)
{
	char path[PATH_MAX + 64];

	run_find(path, sizeof(path), file);
	return !access(path, X_OK);
}

int run_start(struct run *run, const char *file, const char *const arguments[])
{
	char path[PATH_MAX + 64];
	char *argv[16] = { path };
	int ends[2];

	run_find(path, sizeof(path), file);
	for (int i = 0; arguments[i]; i++)
		argv[i + 1] = (char *)arguments[i];
	if (pipe(ends))
		return -errno;
	run->pid = fork();
	if (!run->pid) {
		dup2(ends[1], STDOUT_FILENO);
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		execv(path, argv);
		_exit(127);
	}
	close(ends[1]);
	run->output = ends[0];
	return run->pid < 0 ? -errno : 0;
}

void run_collect(struct run *run, char *text, size_t len)
{
	struct pollfd pollfd = { .fd = run->output, .events = POLLIN };
	size_t used = 0;
	ssize_t n = 1;

	while (n > 0 && used + 1 < len) {
		if (poll(&pollfd, 1, patience_ms()) != 1) {
			kill(run->pid, SIGKILL);
			break;
		}
		n = read(run->output, text + used, len - 1 - used);
		used += n > 0 ? n : 0;
	}
	text[used] = '\0';
	close(run->output);
}

int run_ends_with(struct run *run, const char *expected)
{
	char text[1024];
	int rc;

	run_collect(run, text, sizeof(text));
	rc = child_result(run->pid);
	if (!rc && !strcmp(text, expected))
		return 0;
	fprintf(stderr, "# answer %d, printed: %s\n", rc, text);
	return rc ? rc : -EPROTO;
}

struct client {
	const char *file;
	const char *address;
	int rc;
};

static bool client_is_through(void *arg)
{
	struct client *client = arg;
	struct run run;
	char text[256];

	client->rc = run_start(&run, client->file, ARGUMENTS(client->address, NULL));
	if (client->rc)
		return true;
	run_collect(&run, text, sizeof(text));
	client->rc = child_result(run.pid);
	if (strstr(text, "nobody listens there"))
		return false;
	if (client->rc)
		fprintf(stderr, "# the client's answer %d, printed: %s\n", client->rc, text);
	return true;
}

int run_client(const char *file, const char *address)
{
	struct client client = { .file = file, .address = address };

	return eventually(client_is_through, &client) ? client.rc : -ETIMEDOUT;
}
