// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kinds of user memory: each is sent from and received into, registered and plain, and what
 * arrives is looked at through another view of the same memory where it has one. What may
 * only be read is never written, and what is no memory is refused.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "dmabuf.h"
#include "answer.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define PAGE		4096UL
#define AREA		(16 * PAGE)
#define AT		100UL
#define PART		(5 * PAGE)
#define HUGE_PAGE	(2UL << 20)

#define MODULE_PARAMETERS	"/sys/module/ibchan/parameters/"
#define HUGE_PAGES		"/proc/sys/vm/nr_hugepages"

/* Memory of one kind. What @make leaves out is undone by the end of the process. */
struct area {
	unsigned char *bytes;	/* as a work names it */
	unsigned char *view;	/* as somebody else sees it; may be the same */
	size_t length;
};

static int map_file(struct area *area, int fd, size_t length)
{
	if (fd < 0)
		return -errno;
	area->length = length;
	if (ftruncate(fd, length))
		return -errno;
	area->bytes = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	area->view = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return area->bytes == MAP_FAILED || area->view == MAP_FAILED ? -errno : 0;
}

static int map_anonymous(struct area *area, size_t length, int flags)
{
	area->length = length;
	area->bytes = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);
	area->view = area->bytes;
	return area->bytes == MAP_FAILED ? -errno : 0;
}

static int make_private(struct area *area)
{
	return map_anonymous(area, AREA, MAP_PRIVATE);
}

static int make_shared(struct area *area)
{
	return map_anonymous(area, AREA, MAP_SHARED);
}

static int make_sysv(struct area *area)
{
	int id = shmget(IPC_PRIVATE, AREA, IPC_CREAT | 0600);

	if (id < 0)
		return -errno;
	area->length = AREA;
	area->bytes = shmat(id, NULL, 0);
	area->view = shmat(id, NULL, 0);
	shmctl(id, IPC_RMID, NULL);
	return area->bytes == MAP_FAILED || area->view == MAP_FAILED ? -errno : 0;
}

static int make_posix(struct area *area)
{
	int fd = shm_open("/ibchan-kinds", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	shm_unlink("/ibchan-kinds");
	return map_file(area, fd, AREA);
}

static int make_memfd(struct area *area)
{
	return map_file(area, memfd_create("kinds", MFD_CLOEXEC), AREA);
}

static int make_tmpfs(struct area *area)
{
	return map_file(area, open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), AREA);
}

static int write_number(const char *path, long number)
{
	FILE *file = fopen(path, "w");
	int rc = 0;

	if (!file)
		return -errno;
	if (fprintf(file, "%ld\n", number) < 0 || fclose(file))
		rc = -EIO;
	return rc;
}

/* Two of them; -ENOENT: this kernel has none. */
static int reserve_huge_pages(void)
{
	return write_number(HUGE_PAGES, 2);
}

static int make_huge(struct area *area)
{
	int rc = reserve_huge_pages();

	return rc ? rc : map_anonymous(area, HUGE_PAGE, MAP_PRIVATE | MAP_HUGETLB);
}

static int make_huge_memfd(struct area *area)
{
	int rc = reserve_huge_pages();

	return rc ? rc : map_file(area, memfd_create("kinds", MFD_CLOEXEC | MFD_HUGETLB),
				  HUGE_PAGE);
}

static int make_transparent_huge(struct area *area)
{
	int rc = map_anonymous(area, 2 * HUGE_PAGE, MAP_PRIVATE);

	if (!rc && madvise(area->bytes, area->length, MADV_HUGEPAGE))
		rc = errno == EINVAL ? -ENOENT : -errno;
	return rc;
}

#define DISK	"/tmp/ibchan-kinds"

/* A file system on a disk of its own, which goes with the last file that is open on it. */
static int make_ext4(struct area *area)
{
	static const char *const mount[] = {
		"sh", "-ec",
		"modprobe -q loop && modprobe -q ext4 || exit 2\n"
		"truncate -s 16M " DISK ".img\n"
		"mke2fs -q -t ext4 " DISK ".img\n"
		"mkdir -p " DISK "\n"
		"mount -o loop " DISK ".img " DISK, NULL,
	};
	static const char *const unmount[] = {
		"sh", "-ec", "umount -l " DISK "; rm -r " DISK " " DISK ".img", NULL,
	};
	int rc = run_program(mount);
	int fd;

	if (rc)
		return rc == 2 ? -ENOENT : -EIO;
	fd = open(DISK, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	rc = map_file(area, fd, AREA);
	return run_program(unmount) ? -EIO : rc;
}

/* A pair whose second side uses memory that is registered for it, or plain. */
struct bench {
	struct calm calm;
	struct pair pair;
	struct side *a;
	struct side *b;
	struct area area;
	__u32 refusal;	/* why the last registration or receive was refused, or none */
};

static int bench_open(struct bench *bench)
{
	struct side_options options = side_defaults();
	int rc = calm_begin(&bench->calm);

	options.params.rnr_retries = 7;
	if (!rc)
		rc = pair_open(&bench->pair, PAIR_TWO_DEVICES, &options);
	bench->a = bench->pair.a;
	bench->b = bench->pair.b;
	return rc;
}

static int bench_close(struct bench *bench)
{
	pair_close(&bench->pair);
	return calm_end(&bench->calm);
}

static int register_bytes(struct bench *bench, const void *bytes, size_t length, __u32 access,
			  __u32 *mr)
{
	struct ibchan_cmd_mr_reg cmd = {
		.addr = address(bytes),
		.length = length,
		.pd = bench->b->pd,
		.access = access,
	};
	int rc = cmd_mr_reg(bench->b->fd, &cmd);

	bench->refusal = cmd.reason.code;
	*mr = cmd.out_mr;
	return rc;
}

/* The second side's work with this element. */
static struct ibchan_submit_wr part_work(struct bench *bench, int opcode,
					 const struct ibchan_submit_sge *sge)
{
	struct ibchan_submit_wr wr = work_empty(bench->b, opcode, 1);

	work_elements(&wr, sge, 1);
	return wr;
}

static int send_part(struct bench *bench, const struct ibchan_submit_sge *sge)
{
	int rc = post_one(bench->b, part_work(bench, IBCHAN_OP_SEND, sge));

	memset(bench->a->memory, 0, PART);
	if (!rc)
		rc = post_one(bench->a, work(bench->a, IBCHAN_OP_RECV, 2, 0, PART));
	if (!rc)
		rc = succeed(bench->a, 2, NULL);
	return rc ? rc : succeed(bench->b, 1, NULL);
}

static int receive_part(struct bench *bench, const struct ibchan_submit_sge *sge)
{
	struct ibchan_submit_wr wr = part_work(bench, IBCHAN_OP_RECV, sge);
	struct answer answer = ask_one(bench->b, &wr);
	int rc = answer.rc;

	bench->refusal = answer.cmd.reason.code;
	pattern(bench->a->memory, PART, 3);
	if (!rc)
		rc = post_one(bench->a, work(bench->a, IBCHAN_OP_SEND, 2, 0, PART));
	if (!rc)
		rc = succeed(bench->a, 2, NULL);
	return rc ? rc : succeed(bench->b, 1, NULL);
}

static int check_sending(struct bench *bench, const struct ibchan_submit_sge *sge)
{
	struct area *area = &bench->area;
	int rc;

	pattern(area->view, area->length, 2);
	rc = send_part(bench, sge);
	return rc ? rc : same_bytes(area->view + AT, bench->a->memory, PART);
}

static int check_receiving(struct bench *bench, const struct ibchan_submit_sge *sge)
{
	struct area *area = &bench->area;
	int rc;

	memset(area->view, 0x55, area->length);
	rc = receive_part(bench, sge);
	if (!rc)
		rc = same_bytes(bench->a->memory, area->view + AT, PART);
	if (!rc)
		rc = all_bytes(area->view, AT, 0x55);
	return rc ? rc : all_bytes(area->view + AT + PART, area->length - AT - PART, 0x55);
}

FIXTURE(memory)
{
	struct bench bench;
	int missing;
};

FIXTURE_VARIANT(memory)
{
	int (*make)(struct area *area);
	int is_followed;	/* by its file system: nothing else may write it */
};

FIXTURE_VARIANT_ADD(memory, that_is_anonymous) { .make = make_private, };
FIXTURE_VARIANT_ADD(memory, that_is_shared) { .make = make_shared, };
FIXTURE_VARIANT_ADD(memory, of_a_sysv_segment) { .make = make_sysv, };
FIXTURE_VARIANT_ADD(memory, of_a_posix_segment) { .make = make_posix, };
FIXTURE_VARIANT_ADD(memory, of_a_memfd) { .make = make_memfd, };
FIXTURE_VARIANT_ADD(memory, of_huge_pages) { .make = make_huge, };
FIXTURE_VARIANT_ADD(memory, of_a_memfd_of_huge_pages) { .make = make_huge_memfd, };
FIXTURE_VARIANT_ADD(memory, of_transparent_huge_pages) { .make = make_transparent_huge, };
FIXTURE_VARIANT_ADD(memory, of_a_file_on_tmpfs) { .make = make_tmpfs, };
FIXTURE_VARIANT_ADD(memory, of_a_file_on_ext4) { .make = make_ext4, .is_followed = 1, };

FIXTURE_SETUP(memory)
{
	int rc;

	ASSERT_EQ(0, bench_open(&self->bench));
	rc = variant->make(&self->bench.area);
	self->missing = rc == -ENOENT;
	ASSERT_TRUE(!rc || self->missing)
		TH_LOG("%d", rc);
}

FIXTURE_TEARDOWN(memory)
{
	EXPECT_EQ(0, bench_close(&self->bench));
}

/* Who gives a page back that a file system follows waits for whoever stores the file. */
static __u32 why_not_written(int is_followed)
{
	return is_followed ? IBCHAN_REASON_FILE_WRITTEN : IBCHAN_REASON_NONE;
}

TEST_F(memory, can_be_registered_and_used_both_ways)
{
	int refused = variant->is_followed;
	struct bench *bench = &self->bench;
	struct area *area = &bench->area;
	struct ibchan_submit_sge sge = { .offset = AT, .length = PART };

	if (self->missing)
		SKIP(return, "this kernel has no such memory");
	ASSERT_EQ(0, register_bytes(bench, area->bytes, area->length, 0, &sge.mr));
	EXPECT_EQ(0, check_sending(bench, &sge));
	ASSERT_EQ(refused ? -EFAULT : 0,
		  register_bytes(bench, area->bytes, area->length, IBCHAN_ACCESS_LOCAL, &sge.mr));
	EXPECT_EQ(why_not_written(refused), bench->refusal);
	EXPECT_EQ(0, refused ? 0 : check_receiving(bench, &sge));
	ASSERT_EQ(refused ? -EFAULT : 0,
		  register_bytes(bench, area->bytes, area->length, IBCHAN_ACCESS_SHARED, &sge.mr));
	EXPECT_EQ(0, refused ? 0 : check_sending(bench, &sge));
}

TEST_F(memory, can_be_used_both_ways_as_it_is)
{
	int refused = variant->is_followed;
	struct bench *bench = &self->bench;
	const struct ibchan_submit_sge sge = {
		.offset = address(bench->area.bytes) + AT,
		.length = PART,
		.mr = IBCHAN_MR_PLAIN,
	};

	if (self->missing)
		SKIP(return, "this kernel has no such memory");
	EXPECT_EQ(0, check_sending(bench, &sge));
	EXPECT_EQ(refused ? -EFAULT : 0, check_receiving(bench, &sge));
	EXPECT_EQ(why_not_written(refused), bench->refusal);
}

/* What the CPU writes between the registration and the post is what goes out. */
TEST_F(memory, that_was_empty_when_it_was_registered_is_sent_as_it_is_at_the_post)
{
	struct bench *bench = &self->bench;
	struct area *area = &bench->area;
	struct ibchan_submit_sge sge = { .offset = AT, .length = PART };

	if (self->missing)
		SKIP(return, "this kernel has no such memory");
	/* Reading finds the page of zeros, or that of the file. */
	ASSERT_EQ(0, all_bytes(area->bytes, area->length, 0));
	ASSERT_EQ(0, register_bytes(bench, area->bytes, area->length, 0, &sge.mr));
	pattern(area->bytes, area->length, 4);
	ASSERT_EQ(0, send_part(bench, &sge));
	EXPECT_EQ(0, same_bytes(area->bytes + AT, bench->a->memory, PART));
}

FIXTURE(mapping)
{
	struct bench bench;
};

FIXTURE_VARIANT(mapping)
{
	int ours;	/* pinned by ibchan and not by the driver */
};

FIXTURE_VARIANT_ADD(mapping, by_the_driver) { .ours = 0, };
FIXTURE_VARIANT_ADD(mapping, by_fast_registration) { .ours = 1, };

static int set_fast_reg_only(int on)
{
	return write_number(MODULE_PARAMETERS "fast_reg_only", on);
}

FIXTURE_SETUP(mapping)
{
	ASSERT_EQ(0, bench_open(&self->bench));
	ASSERT_EQ(0, set_fast_reg_only(variant->ours));
}

FIXTURE_TEARDOWN(mapping)
{
	EXPECT_EQ(0, set_fast_reg_only(0));
	EXPECT_EQ(0, bench_close(&self->bench));
}

/* A mapping of @fd that is only to be read can be sent from and nothing more. */
static void expect_read_only(struct __test_metadata *_metadata, struct bench *bench,
			     unsigned char *bytes)
{
	struct ibchan_submit_sge sge = { .offset = AT, .length = PART };
	__u32 none;

	ASSERT_NE(MAP_FAILED, bytes);
	EXPECT_EQ(-EFAULT, register_bytes(bench, bytes, AREA, IBCHAN_ACCESS_LOCAL, &none));
	EXPECT_EQ(-EFAULT, register_bytes(bench, bytes, AREA, IBCHAN_ACCESS_SHARED, &none));
	ASSERT_EQ(0, register_bytes(bench, bytes, AREA, 0, &sge.mr));
	ASSERT_EQ(0, send_part(bench, &sge));
	EXPECT_EQ(0, same_bytes(bytes + AT, bench->a->memory, PART));

	sge.mr = IBCHAN_MR_PLAIN;
	sge.offset += address(bytes);
	ASSERT_EQ(0, send_part(bench, &sge));
	EXPECT_EQ(0, same_bytes(bytes + AT, bench->a->memory, PART));
	EXPECT_EQ(-EFAULT, receive_part(bench, &sge));
	EXPECT_EQ(IBCHAN_REASON_MEMORY_NOT_THERE, bench->refusal);
}

/* A memfd with something in it. */
static int filled_memfd(void)
{
	int fd = memfd_create("kinds", MFD_CLOEXEC);
	unsigned char bytes[AREA];

	pattern(bytes, AREA, 6);
	return write(fd, bytes, AREA) == AREA ? fd : -1;
}

TEST_F(mapping, of_private_memory_that_may_only_be_read_is_sent_from)
{
	unsigned char *bytes = mmap(NULL, AREA, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, bytes);
	pattern(bytes, AREA, 5);
	ASSERT_EQ(0, mprotect(bytes, AREA, PROT_READ));
	expect_read_only(_metadata, &self->bench, bytes);
}

TEST_F(mapping, of_a_private_copy_that_may_only_be_read_is_sent_from)
{
	expect_read_only(_metadata, &self->bench,
			 mmap(NULL, AREA, PROT_READ, MAP_PRIVATE, filled_memfd(), 0));
}

TEST_F(mapping, of_a_shared_file_that_may_only_be_read_is_sent_from)
{
	expect_read_only(_metadata, &self->bench,
			 mmap(NULL, AREA, PROT_READ, MAP_SHARED, filled_memfd(), 0));
}

/* The file's own page is pinned: what others write into it goes out. */
TEST_F(mapping, of_a_shared_file_that_may_only_be_read_follows_the_file)
{
	struct ibchan_submit_sge sge = { .offset = AT, .length = PART };
	unsigned char *bytes, *view;
	int fd = filled_memfd();

	bytes = mmap(NULL, AREA, PROT_READ, MAP_SHARED, fd, 0);
	view = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, bytes);
	ASSERT_NE(MAP_FAILED, view);
	ASSERT_EQ(0, register_bytes(&self->bench, bytes, AREA, 0, &sge.mr));
	pattern(view, AREA, 7);
	ASSERT_EQ(0, send_part(&self->bench, &sge));
	EXPECT_EQ(0, same_bytes(view + AT, self->bench.a->memory, PART));
}

TEST_F(mapping, that_was_empty_when_it_was_registered_is_sent_as_it_is_at_the_post)
{
	struct ibchan_submit_sge sge = { .offset = AT, .length = PART };
	unsigned char *bytes = mmap(NULL, AREA, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, bytes);
	ASSERT_EQ(0, all_bytes(bytes, AREA, 0));
	ASSERT_EQ(0, register_bytes(&self->bench, bytes, AREA, 0, &sge.mr));
	pattern(bytes, AREA, 4);
	ASSERT_EQ(0, send_part(&self->bench, &sge));
	EXPECT_EQ(0, same_bytes(bytes + AT, self->bench.a->memory, PART));
}

TEST_F(mapping, of_a_private_copy_is_sent_as_the_cpu_has_changed_it)
{
	struct ibchan_submit_sge sge = { .offset = AT, .length = PART };
	unsigned char *bytes = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE,
				    filled_memfd(), 0);

	ASSERT_NE(MAP_FAILED, bytes);
	ASSERT_EQ(0, register_bytes(&self->bench, bytes, AREA, 0, &sge.mr));
	pattern(bytes, AREA, 8);
	ASSERT_EQ(0, send_part(&self->bench, &sge));
	EXPECT_EQ(0, same_bytes(bytes + AT, self->bench.a->memory, PART));
}

TEST_F(mapping, of_the_programs_own_constants_is_sent_from)
{
	static const char text[] = "what a program says without a buffer";
	struct ibchan_submit_sge sge = { .length = sizeof(text) };
	struct bench *bench = &self->bench;

	ASSERT_EQ(0, register_bytes(bench, text, sizeof(text), 0, &sge.mr));
	ASSERT_EQ(0, send_part(bench, &sge));
	EXPECT_STREQ(text, (char *)bench->a->memory);
	sge.mr = IBCHAN_MR_PLAIN;
	sge.offset = address(text);
	ASSERT_EQ(0, send_part(bench, &sge));
	EXPECT_STREQ(text, (char *)bench->a->memory);
}

/* @bytes is not memory that can be pinned, for whatever purpose. */
static void expect_no_memory(struct __test_metadata *_metadata, struct bench *bench,
			     const void *bytes)
{
	const struct ibchan_submit_sge sge = {
		.offset = address(bytes),
		.length = 64,
		.mr = IBCHAN_MR_PLAIN,
	};
	__u32 none;

	ASSERT_NE(MAP_FAILED, bytes);
	ASSERT_NE(NULL, bytes);
	EXPECT_EQ(-EFAULT, register_bytes(bench, bytes, 64, 0, &none));
	EXPECT_EQ(-EFAULT, register_bytes(bench, bytes, 64, IBCHAN_ACCESS_LOCAL, &none));
	EXPECT_EQ(-EFAULT, register_bytes(bench, bytes, 64, IBCHAN_ACCESS_SHARED, &none));
	EXPECT_EQ(-EFAULT, post_one(bench->b, part_work(bench, IBCHAN_OP_SEND, &sge)));
	EXPECT_EQ(-EFAULT, post_one(bench->b, part_work(bench, IBCHAN_OP_RECV, &sge)));
}

TEST_F(mapping, of_page_frames_by_a_driver_is_refused)
{
	int fd = dmabuf_export(1, 0);

	ASSERT_LE(0, fd);
	expect_no_memory(_metadata, &self->bench, dmabuf_map(fd, PAGE));
	close(fd);
}

#define VIDEO_MEMORY	0xa0000

TEST_F(mapping, of_physical_addresses_is_refused)
{
	int fd = open("/dev/mem", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		SKIP(return, "this kernel has no /dev/mem");
	expect_no_memory(_metadata, &self->bench,
			 mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, VIDEO_MEMORY));
	close(fd);
}

/* Memory that the kernel has taken out of its own map, so that nobody else reaches it. */
TEST_F(mapping, of_secret_memory_is_refused)
{
	int fd = syscall(SYS_memfd_secret, O_CLOEXEC);

	if (fd < 0)
		SKIP(return, "this kernel has no secret memory");
	ASSERT_EQ(0, ftruncate(fd, PAGE));
	expect_no_memory(_metadata, &self->bench,
			 mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	close(fd);
}

/* To register it for reading is what ib_umem of 6.1 allows. */
TEST_F(mapping, that_forbids_everything_is_never_written)
{
	const void *bytes = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct ibchan_submit_sge sge = {
		.offset = address(bytes),
		.length = 64,
		.mr = IBCHAN_MR_PLAIN,
	};
	struct bench *bench = &self->bench;
	__u32 none;

	ASSERT_NE(MAP_FAILED, bytes);
	EXPECT_EQ(-EFAULT, register_bytes(bench, bytes, 64, IBCHAN_ACCESS_LOCAL, &none));
	EXPECT_EQ(-EFAULT, register_bytes(bench, bytes, 64, IBCHAN_ACCESS_SHARED, &none));
	EXPECT_EQ(-EFAULT, post_one(bench->b, part_work(bench, IBCHAN_OP_RECV, &sge)));
	EXPECT_EQ(-EFAULT, post_one(bench->b, part_work(bench, IBCHAN_OP_SEND, &sge)));
}

TEST_HARNESS_MAIN
