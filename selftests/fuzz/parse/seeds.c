// SPDX-License-Identifier: GPL-2.0-only
/* Before the fuzzer runs: writes what it begins with into the folder that it is given. */
#include <errno.h>

#include "fuzz.h"

static int write_seed(const char *folder, unsigned int nr, const __u8 *data, unsigned int size)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/seed-%u", folder, nr);
	file = fopen(path, "we");
	if (!file)
		return -errno;
	fwrite(data, 1, size, file);
	return fclose(file) ? -errno : 0;
}

int fuzz_begin(int *argc, char ***argv)
{
	const char *folder = getenv("FUZZ_SEEDS");
	__u8 data[MAX_SEED];
	unsigned int nr, size;

	(void)argc;
	(void)argv;
	for (nr = 0; folder && (size = fuzz_seed(nr, data)); nr++) {
		if (write_seed(folder, nr, data, size))
			exit(2);
	}
	return 0;
}
