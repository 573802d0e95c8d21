// SPDX-License-Identifier: GPL-2.0-only
/* Files that come and go in a process whose memory map has many locks. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "attack.h"

#define MAPPINGS	60000
#define LIBRARY		"/lib64/ld-linux-x86-64.so.2"

/* Pages of a file that each process maps; no two neighbours are alike, so that none are merged. */
static int map_library(void)
{
	int file = open(LIBRARY, O_RDONLY | O_CLOEXEC);
	unsigned int i;

	for (i = 0; i < MAPPINGS; i++)
		if (mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, file, i % 2 * PAGE) == MAP_FAILED)
			return -errno;
	return 0;
}

static int open_and_close(void)
{
	struct side side;
	int rc = open_file(&side);

	side_close(&side);
	return rc;
}

int attack_files(void)
{
	return map_library() ?: keep_busy(BUSY, open_and_close);
}
