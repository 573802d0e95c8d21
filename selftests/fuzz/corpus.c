// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine.h"

#define LINE	8192

static int add_line(struct shared *shared, char *line)
{
	if (line[0] == '#' || line[0] == '\n')
		return 0;
	if (shared->num_loaded == MAX_PROGRAMS)
		return -E2BIG;
	return program_parse(&shared->programs[shared->num_loaded++], line);
}

int corpus_load(struct shared *shared, const char *path)
{
	FILE *file = fopen(path, "re");
	unsigned int number = 0;
	char line[LINE];
	int rc = 0;

	if (!file) {
		rc = -errno;
		fprintf(stderr, "# %s: %s\n", path, strerror(errno));
		return rc;
	}
	while (!rc && fgets(line, sizeof(line), file)) {
		number++;
		rc = add_line(shared, line);
	}
	fclose(file);
	if (rc)
		fprintf(stderr, "# %s: line %u: %s\n", path, number, strerror(-rc));
	shared->num_known = shared->num_loaded;
	return rc;
}

int corpus_save(const struct shared *shared, const char *path)
{
	FILE *file = fopen(path, "we");
	char line[LINE];
	unsigned int i;

	if (!file)
		return -errno;
	for (i = 0; i < shared->num_known; i++) {
		struct text text = { line, sizeof(line) };

		if (!shared->leads[i])
			continue;
		program_print(&shared->programs[i], &text);
		fprintf(file, "%s\n", line);
	}
	return fclose(file) ? -errno : 0;
}
