// SPDX-License-Identifier: GPL-2.0-only
/* Operations on registered memory. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "measure.h"

#define NO_IOCTL	_IO('?', 0xff)

static const struct shape shapes[] = {
	{ "user.write_64", WRITE, 64, 1, 1, .repeats = 256 },
	{ "user.send_64", SEND, 64, 1, 1, .repeats = 256 },
	{ "user.atomic", ADD, 8, 1, 1, .repeats = 256 },
	{ "user.read_4k", READ, 4096, 1, 1, .repeats = 64 },
	{ "user.write_64_unchecked", WRITE, 64, 1, 1, .unchecked = true, .repeats = 256 },
	{ "user.write_64_blocking", WRITE, 64, 1, 1, .blocking = true, .repeats = 256 },
	{ "user.write_64_depth_16", WRITE, 64, 16, 1, .repeats = 16 },
	{ "user.write_64_chain_16", WRITE, 64, 16, 16, .repeats = 16 },
	{ "user.write_64_chain_64", WRITE, 64, 64, 64, .repeats = 8 },
	{ "user.write_64k", WRITE, 65536, 1, 1, .repeats = 8 },
	{ "user.write_1m", WRITE, 1 << 20, 1, 1, .repeats = 2 },
};

static unsigned char byte_of(unsigned int i, unsigned int seed)
{
	return i * 7 + i / 251 + seed * 31 + 1;
}

static void fill(unsigned char *memory, unsigned int length, unsigned int seed)
{
	unsigned int i;

	for (i = 0; i < length; i++)
		memory[i] = byte_of(i, seed);
	memset(memory + AREA, 0, length);
}

/* What was added to, before, as the peer's host has it. */
static bool has_added(const unsigned char *memory, unsigned int seed)
{
	unsigned long long before, after, brought;
	unsigned char expected[8];
	unsigned int i;

	for (i = 0; i < 8; i++)
		expected[i] = byte_of(i, seed);
	memcpy(&before, expected, 8);
	memcpy(&after, memory, 8);
	memcpy(&brought, memory + AREA, 8);
	return brought == before && after == before + 1;
}

static bool has_arrived(const struct shape *shape, const unsigned char *memory,
			unsigned int seed)
{
	unsigned int i, at;

	if (shape->what == ADD)
		return has_added(memory, seed);
	for (i = 0; i < shape->depth; i++) {
		at = place_of(shape, i);
		if (memcmp(memory + at, memory + AREA + at, shape->size))
			return false;
	}
	return memory[AREA] == byte_of(0, seed);
}

/* Once, and what has come is what was sent. */
static int verify(const struct way *way, const struct shape *shape, unsigned char *memory,
		  unsigned int seed)
{
	int rc;

	fill(memory, place_of(shape, shape->depth), seed);
	rc = way->run(shape);
	if (!rc && num_ways == WAYS && !has_arrived(shape, memory, seed))
		return -EBADMSG;
	return rc;
}

static int verify_ways(const struct shape *shape, unsigned char *memory, unsigned int seed)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < num_ways; i++)
		rc = verify(ways[i], shape, memory, seed + i);
	return rc;
}

static int run(const struct way *way, const void *arg)
{
	return way->run(arg);
}

static int measure_shape(const struct shape *shape, unsigned char *memory)
{
	const struct trial trial = {
		.name = shape->name,
		.size = shape->size,
		.depth = shape->depth,
		.chain = shape->chain,
		.repeats = shape->repeats,
		.operations = shape->depth,
		.run = run,
		.arg = shape,
	};
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < num_ways; i++)
		rc = ways[i]->load(shape);
	/* Twice: some of what is used is made on the way. */
	rc = rc ?: verify_ways(shape, memory, 0);
	rc = rc ?: verify_ways(shape, memory, 2);
	rc = rc ?: measure_ways(&trial);
	return rc ?: verify_ways(shape, memory, 4);
}

/* The entry of a system call: an ioctl that the driver does not know. */
static int enter(const struct way *way, const void *arg)
{
	const int *fd = arg;

	(void)way;
	return ioctl(*fd, NO_IOCTL) < 0 && errno == ENOTTY ? 0 : -EBADMSG;
}

int entry_measure(void)
{
	int fd = open("/dev/ibchan", O_RDWR | O_CLOEXEC);
	const struct trial trial = {
		.name = "user.entry", .repeats = 256, .operations = 1, .run = enter, .arg = &fd,
	};
	int rc;

	if (fd < 0)
		return -errno;
	rc = measure_ways(&trial);
	close(fd);
	return rc;
}

int shapes_measure(unsigned char *memory)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < ARRAY_SIZE(shapes); i++)
		rc = measure_shape(&shapes[i], memory);
	return rc;
}
