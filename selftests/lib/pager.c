// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/fuse.h>

#include "pager.h"
#include "world.h"

#define PAGE	4096
/* The kernel wants room for a request of any kind. */
#define ROOM	(64 * 1024)

static void answer(int fuse, __u64 unique, int error, const void *data, size_t length)
{
	static char buffer[sizeof(struct fuse_out_header) + ROOM];
	struct fuse_out_header header = {
		.len = sizeof(header) + length, .error = error, .unique = unique,
	};

	memcpy(buffer, &header, sizeof(header));
	if (length)
		memcpy(buffer + sizeof(header), data, length);
	/* Of a reader that was killed the kernel does not want to know. */
	if (write(fuse, buffer, header.len) < 0 && errno != ENOENT)
		_exit(1);
}

static void answer_init(int fuse, __u64 unique)
{
	struct fuse_init_out out = {
		.major = FUSE_KERNEL_VERSION,
		.minor = 31,
		/* Who waits for a page can be killed where it was read ahead of him. */
		.flags = FUSE_ASYNC_READ,
		.max_readahead = PAGE,
		.max_write = PAGE,
		.max_background = 16,
		.congestion_threshold = 16,
	};

	answer(fuse, unique, 0, &out, sizeof(out));
}

static void answer_attr(int fuse, __u64 unique, const struct pager_state *state)
{
	struct fuse_attr_out out = {
		.attr_valid = 3600,
		.attr = {
			.ino = FUSE_ROOT_ID,
			.size = state->length,
			.mode = S_IFREG | 0666,
			.nlink = 1,
			.blksize = PAGE,
		},
	};

	answer(fuse, unique, 0, &out, sizeof(out));
}

static void drop_first_page(int fuse)
{
	struct {
		struct fuse_out_header header;
		struct fuse_notify_inval_inode_out inval;
	} notice = {
		.header = { .len = sizeof(notice), .error = FUSE_NOTIFY_INVAL_INODE },
		.inval = { .ino = FUSE_ROOT_ID, .off = 0, .len = PAGE },
	};

	if (write(fuse, &notice, sizeof(notice)) < 0)
		_exit(1);
}

static void answer_read(int fuse, __u64 unique, const struct fuse_read_in *in,
			struct pager_state *state)
{
	static const char zeros[ROOM];
	const struct pager_rules *rules = &state->rules;
	unsigned int nth;

	if (!in->offset) {
		nth = __atomic_fetch_add(&state->first_reads, 1, __ATOMIC_SEQ_CST);
		if (nth >= rules->first_page) {
			__atomic_fetch_add(&state->stuck, 1, __ATOMIC_SEQ_CST);
			return;
		}
		if (nth < rules->fails) {
			answer(fuse, unique, -EIO, NULL, 0);
			return;
		}
	}
	if (rules->drops && in->offset + in->size >= state->length)
		drop_first_page(fuse);
	answer(fuse, unique, 0, zeros, in->size < ROOM ? in->size : ROOM);
}

static void answer_request(int fuse, const struct fuse_in_header *in, struct pager_state *state)
{
	struct fuse_open_out open = { .open_flags = FOPEN_KEEP_CACHE };

	switch (in->opcode) {
	case FUSE_INIT:
		answer_init(fuse, in->unique);
		break;
	case FUSE_GETATTR:
		answer_attr(fuse, in->unique, state);
		break;
	case FUSE_OPEN:
		answer(fuse, in->unique, 0, &open, sizeof(open));
		break;
	case FUSE_READ:
		answer_read(fuse, in->unique, (const void *)(in + 1), state);
		break;
	case FUSE_WRITE:
		__atomic_fetch_add(&state->stuck, 1, __ATOMIC_SEQ_CST);
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
		answer(fuse, in->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		answer(fuse, in->unique, -EOPNOTSUPP, NULL, 0);
	}
}

static void serve(int fuse, struct pager_state *state)
{
	static union {
		char bytes[ROOM];
		__u64 aligned;
	} buffer;
	ssize_t length;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		length = read(fuse, buffer.bytes, sizeof(buffer));
		if (length >= (ssize_t)sizeof(struct fuse_in_header))
			answer_request(fuse, (const void *)&buffer, state);
		else if (length < 0 && errno != EINTR && errno != ENOENT && errno != EAGAIN)
			_exit(0);
	}
}

/* A file as the root of the mount: nothing has to be looked up. */
static int mount_file(const char *path, int fuse)
{
	char options[96];

	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=%o,user_id=0,group_id=0,allow_other,default_permissions",
		 fuse, S_IFREG);
	return mount("pager", path, "fuse", MS_NOSUID | MS_NODEV, options) ? -errno : 0;
}

static int open_fuse(void)
{
	static const char *const argv[] = { "modprobe", "-q", "fuse", NULL };
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (fd < 0 && !run_program(argv))
		fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	return fd;
}

static int begin_serving(struct pager *pager, int fuse)
{
	int rc = mount_file(pager->path, fuse);

	if (rc)
		return rc;
	pager->server = fork();
	if (!pager->server)
		serve(fuse, pager->state);
	if (pager->server < 0)
		return -errno;
	pager->fd = open(pager->path, O_RDWR | O_CLOEXEC);
	return pager->fd < 0 ? -errno : 0;
}

int pager_begin(struct pager *pager, size_t length, const struct pager_rules *rules)
{
	int fuse = open_fuse();
	int file, rc;

	*pager = (struct pager) { .fd = -1, .path = "/tmp/pager.XXXXXX" };
	if (fuse < 0)
		return PAGER_NONE;
	pager->state = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	file = mkstemp(pager->path);
	if (pager->state == MAP_FAILED || file < 0)
		return -errno;
	close(file);
	pager->state->rules = *rules;
	pager->state->length = length;
	rc = begin_serving(pager, fuse);
	close(fuse);
	return rc;
}

void pager_kill(struct pager *pager)
{
	if (pager->server <= 0)
		return;
	kill(pager->server, SIGKILL);
	waitpid(pager->server, NULL, 0);
	pager->server = 0;
}

void pager_end(struct pager *pager)
{
	if (!pager->state)
		return;
	pager_kill(pager);
	if (pager->fd >= 0)
		close(pager->fd);
	umount2(pager->path, MNT_DETACH);
	unlink(pager->path);
	munmap(pager->state, PAGE);
	pager->state = NULL;
}

static bool has_stuck(void *arg)
{
	struct pager_state *state = arg;

	return __atomic_load_n(&state->stuck, __ATOMIC_SEQ_CST);
}

bool pager_is_waited_for(struct pager *pager)
{
	return eventually(has_stuck, pager->state);
}

void *pager_map(const struct pager *pager, int prot, int flags)
{
	return mmap(NULL, pager->state->length, prot, flags, pager->fd, 0);
}
