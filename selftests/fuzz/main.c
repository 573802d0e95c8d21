// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "engine.h"

static const char usage[] =
	"fuzz [OPTIONS]: run random programs against /dev/ibchan, in the guest, as root\n"
	"  --minutes N     so long (default 3)\n"
	"  --seed N        for another run alike; threads make each one differ a little\n"
	"  --threads N     that race on one file, 1 to 8 (default 3)\n"
	"  --corpus FILE   programs to begin with\n"
	"  --keep FILE     where those that lead somewhere are written in the end\n"
	"  --splats FILE   what the kernel log must not have (selftests/vm/splats)\n"
	"  --replay        only the programs of the corpus, each once\n"
	"  --trace         tell of each step before it is taken\n";

static const struct option options[] = {
	{ "minutes", required_argument, NULL, 'm' },
	{ "seed", required_argument, NULL, 's' },
	{ "threads", required_argument, NULL, 't' },
	{ "corpus", required_argument, NULL, 'c' },
	{ "keep", required_argument, NULL, 'k' },
	{ "splats", required_argument, NULL, 'l' },
	{ "replay", no_argument, NULL, 'r' },
	{ "trace", no_argument, NULL, 'v' },
	{ }
};

struct request {
	const char *corpus;
	const char *keep;
	struct watch_options watch;
};

/* 0, or -EINVAL. */
static int take_option(int option, struct shared *shared, struct request *request)
{
	switch (option) {
	case 'm':
		request->watch.seconds = 60 * strtod(optarg, NULL);
		return request->watch.seconds ? 0 : -EINVAL;
	case 's':
		shared->seed = strtoull(optarg, NULL, 0);
		return 0;
	case 't':
		shared->threads = strtoul(optarg, NULL, 0);
		return shared->threads && shared->threads <= MAX_THREADS ? 0 : -EINVAL;
	case 'c':
		request->corpus = optarg;
		return 0;
	case 'k':
		request->keep = optarg;
		return 0;
	case 'l':
		request->watch.splats = optarg;
		return 0;
	case 'r':
		shared->replay = true;
		request->watch.seconds = 0;
		return 0;
	case 'v':
		shared->trace = true;
		return 0;
	}
	return -EINVAL;
}

int main(int argc, char *argv[])
{
	struct request request = { .watch = { .seconds = 180 } };
	struct shared *shared = shared_create();
	int option, rc;

	if (!shared)
		return 2;
	shared->threads = 3;
	if (getrandom(&shared->seed, sizeof(shared->seed), 0) < 0)
		return 2;
	while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (take_option(option, shared, &request)) {
			fputs(usage, stderr);
			return 2;
		}
	}
	if (request.corpus && corpus_load(shared, request.corpus))
		return 2;
	rc = watch(shared, &request.watch);
	if (request.keep && corpus_save(shared, request.keep))
		rc = 2;
	return rc;
}
