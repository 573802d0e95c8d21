// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the contract promises for every command alike, proved by tables over the contract's
 * own list of commands.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <sys/mman.h>

#include "example.h"
#include "test.h"
#include "world.h"

#define TAIL	64

static int open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* One example at a time, to be spoilt in one way before it runs. */
struct bench {
	struct calm calm;
	struct example_objects objects;
	__u64 room[EXAMPLE_ROOM / sizeof(__u64)];
};

FIXTURE(every_command)
{
	struct bench bench;
};

FIXTURE_SETUP(every_command)
{
	ASSERT_EQ(0, calm_begin(&self->bench.calm));
	ASSERT_EQ(0, example_objects_open(&self->bench.objects));
}

FIXTURE_TEARDOWN(every_command)
{
	example_objects_close(&self->bench.objects);
	EXPECT_EQ(0, calm_end(&self->bench.calm));
}

static int prepare(struct bench *bench, unsigned int i)
{
	return example_prepare(&examples[i], &bench->objects, bench->room);
}

/* The u32 at @offset of the prepared example. */
static __u32 *member(struct bench *bench, size_t offset)
{
	return (__u32 *)((char *)bench->room + offset);
}

/* The result of the prepared example; what it made is undone. */
static int run_prepared(struct bench *bench, unsigned int i)
{
	int rc = cmd_raw(bench->objects.side.fd, examples[i].number, bench->room);

	if (examples[i].undo)
		examples[i].undo(&bench->objects, bench->room, rc);
	return rc;
}

/* The same at another address, where it must fail. */
static int run_at(struct bench *bench, unsigned int i, void *arg)
{
	int rc = cmd_raw(bench->objects.side.fd, examples[i].number, arg);

	if (examples[i].undo && rc)
		examples[i].undo(&bench->objects, bench->room, rc);
	return rc;
}

/* The structs as they came out; later members are behind these. */
static const struct {
	const char *name;
	size_t size;
	unsigned int number;
} first[] = {
	{ "query", 40, 0x00 },
	{ "device_query", 152, 0x01 },
	{ "port_query", 124, 0x02 },
	{ "device_open", 80, 0x03 },
	{ "pd_alloc", 16, 0x04 },
	{ "mr_reg", 80, 0x05 },
	{ "cq_create", 72, 0x06 },
	{ "channel_build", 200, 0x07 },
	{ "channel_handshake", 120, 0x08 },
	{ "channel_query", 176, 0x09 },
	{ "channel_break", 16, 0x0a },
	{ "submit", 88, 0x0b },
	{ "destroy", 16, 0x0c },
	{ "mr_reg_dmabuf", 96, 0x0d },
	{ "channel_connect", 320, 0x0e },
	{ "channel_connection", 288, 0x0f },
	{ "listener_create", 112, 0x10 },
	{ "request_take", 336, 0x11 },
	{ "request_accept", 264, 0x12 },
	{ "request_reject", 216, 0x13 },
	{ "event_take", 16, 0x14 },
	{ "route_query", 168, 0x15 },
};

static size_t first_size(unsigned int i)
{
	return i < ARRAY_SIZE(first) ? first[i].size : examples[i].size;
}

TEST_F(every_command, refuses_a_size_below_its_first_version)
{
	unsigned int i, size;

	for_each_example(i, &self->bench.objects) {
		for (size = 0; size < first_size(i); size++) {
			ASSERT_EQ(0, prepare(&self->bench, i));
			*member(&self->bench, 0) = size;
			ASSERT_EQ(-EINVAL, run_prepared(&self->bench, i))
				TH_LOG("%s with size %u", examples[i].name, size);
		}
	}
}

/* What lies behind the caller's struct is the caller's. */
TEST_F(every_command, serves_who_knows_only_its_first_version)
{
	const unsigned char *room = (const unsigned char *)self->bench.room;
	unsigned int i, at;

	for_each_example(i, &self->bench.objects) {
		ASSERT_EQ(0, prepare(&self->bench, i));
		memset((char *)self->bench.room + first_size(i), 0xa5,
		       EXAMPLE_ROOM - first_size(i));
		*member(&self->bench, 0) = first_size(i);
		EXPECT_EQ(0, run_prepared(&self->bench, i))
			TH_LOG("%s", examples[i].name);
		for (at = first_size(i); at < EXAMPLE_ROOM && room[at] == 0xa5; at++)
			;
		EXPECT_EQ(EXAMPLE_ROOM, at)
			TH_LOG("%s wrote at %u", examples[i].name, at);
	}
}

TEST_F(every_command, takes_a_longer_struct_whose_tail_is_zero)
{
	static const unsigned int tails[] = { 1, 8, TAIL, EXAMPLE_ROOM / 2 };
	unsigned int i, t;

	for_each_example(i, &self->bench.objects) {
		for (t = 0; t < ARRAY_SIZE(tails); t++) {
			ASSERT_EQ(0, prepare(&self->bench, i));
			*member(&self->bench, 0) += tails[t];
			ASSERT_EQ(0, run_prepared(&self->bench, i))
				TH_LOG("%s with %u bytes more", examples[i].name, tails[t]);
		}
	}
}

TEST_F(every_command, refuses_a_longer_struct_whose_tail_is_not_zero)
{
	int held = example_held(&self->bench.objects);
	unsigned int i, at;

	for_each_example(i, &self->bench.objects) {
		for (at = 0; at < TAIL; at++) {
			ASSERT_EQ(0, prepare(&self->bench, i));
			*member(&self->bench, 0) += TAIL;
			((char *)self->bench.room)[examples[i].size + at] = 1;
			ASSERT_EQ(-E2BIG, run_prepared(&self->bench, i))
				TH_LOG("%s, byte %u of the tail", examples[i].name, at);
		}
	}
	EXPECT_EQ(held, example_held(&self->bench.objects));
}

/* Text that a command answers. */
static const struct {
	enum example_index command;
	size_t offset;
	size_t size;
} texts[] = {
#define TEXT(NAME, name, member)						\
	{ EXAMPLE_##NAME, offsetof(struct ibchan_cmd_##name, member),		\
	  sizeof(((struct ibchan_cmd_##name *)0)->member) }
	TEXT(DEVICE_QUERY, device_query, out.name),
	TEXT(REQUEST_TAKE, request_take, out_device),
	TEXT(ROUTE_QUERY, route_query, out_device),
	TEXT(GID_QUERY, gid_query, out.ndev_name),
#undef TEXT
};

/* Bytes behind the text's end that are not zero; -1: it has no end. */
static int leftovers(const char *text, size_t size)
{
	size_t at = strnlen(text, size);
	int left = 0;

	if (at == size)
		return -1;
	while (at < size)
		left += !!text[at++];
	return left;
}

/* Neither of the caller's nor of the kernel's. */
TEST_F(every_command, has_nothing_behind_the_end_of_a_text)
{
	unsigned int t;

	for (t = 0; t < ARRAY_SIZE(texts); t++) {
		unsigned int i = texts[t].command;
		char *text = (char *)self->bench.room + texts[t].offset;

		if (example_from(&self->bench.objects, i) != i)
			continue;
		ASSERT_EQ(0, prepare(&self->bench, i));
		memset(text, 0xa5, texts[t].size);
		ASSERT_EQ(0, run_prepared(&self->bench, i))
			TH_LOG("%s", examples[i].name);
		EXPECT_EQ(0, leftovers(text, texts[t].size))
			TH_LOG("%s", examples[i].name);
		/* A port without IP addresses has no network device. */
		if (i == EXAMPLE_GID_QUERY && (self->bench.objects.lacks & EXAMPLE_IPV4))
			continue;
		EXPECT_NE(0, text[0])
			TH_LOG("%s", examples[i].name);
	}
}

TEST_F(every_command, refuses_a_size_beyond_all_memory)
{
	static const __u32 sizes[] = { 0x7fffffff, 0x80000000, 0xffffffff };
	unsigned int i, s;
	int rc;

	for_each_example(i, &self->bench.objects) {
		for (s = 0; s < ARRAY_SIZE(sizes); s++) {
			ASSERT_EQ(0, prepare(&self->bench, i));
			*member(&self->bench, 0) = sizes[s];
			rc = run_prepared(&self->bench, i);
			ASSERT_TRUE(rc == -E2BIG || rc == -EFAULT)
				TH_LOG("%s with size %u: %d", examples[i].name, sizes[s], rc);
		}
	}
}

TEST_F(every_command, refuses_every_flag_that_it_does_not_know_and_leaves_the_struct_as_it_was)
{
	char before[EXAMPLE_ROOM];
	unsigned int i, bit;

	for_each_example(i, &self->bench.objects) {
		for (bit = 0; bit < 32; bit++) {
			if ((examples[i].flags | IBCHAN_ANSWERED) & 1U << bit)
				continue;
			ASSERT_EQ(0, prepare(&self->bench, i));
			*member(&self->bench, 4) = 1U << bit;
			memcpy(before, self->bench.room, sizeof(before));
			ASSERT_EQ(-EOPNOTSUPP, run_prepared(&self->bench, i))
				TH_LOG("%s with flag %u", examples[i].name, bit);
			ASSERT_EQ(0, memcmp(before, self->bench.room, sizeof(before)))
				TH_LOG("%s with flag %u", examples[i].name, bit);
		}
	}
}

TEST_F(every_command, says_in_its_flags_that_the_kernel_has_answered)
{
	unsigned int i;

	for_each_example(i, &self->bench.objects) {
		ASSERT_EQ(0, prepare(&self->bench, i));
		ASSERT_EQ(0, *member(&self->bench, 4) & IBCHAN_ANSWERED);
		ASSERT_EQ(0, run_prepared(&self->bench, i))
			TH_LOG("%s", examples[i].name);
		EXPECT_EQ(IBCHAN_ANSWERED, *member(&self->bench, 4) & IBCHAN_ANSWERED)
			TH_LOG("%s", examples[i].name);
	}
}

TEST_F(every_command, takes_a_struct_that_was_answered_before)
{
	unsigned int i;

	for_each_example(i, &self->bench.objects) {
		ASSERT_EQ(0, prepare(&self->bench, i));
		*member(&self->bench, 4) |= IBCHAN_ANSWERED;
		EXPECT_EQ(0, run_prepared(&self->bench, i))
			TH_LOG("%s", examples[i].name);
	}
}

TEST_F(every_command, that_was_not_understood_says_nothing_of_an_answer)
{
	unsigned int i;

	for_each_example(i, &self->bench.objects) {
		ASSERT_EQ(0, prepare(&self->bench, i));
		*member(&self->bench, 0) = 4;
		ASSERT_EQ(-EINVAL, run_prepared(&self->bench, i));
		EXPECT_EQ(0, *member(&self->bench, 4) & IBCHAN_ANSWERED);
	}
}

TEST_F(every_command, refuses_a_reserved_member_that_is_not_zero)
{
	unsigned int i, r;

	for_each_example(i, &self->bench.objects) {
		for (r = 0; r < EXAMPLE_MAX_RESERVED && examples[i].reserved[r]; r++) {
			ASSERT_EQ(0, prepare(&self->bench, i));
			*member(&self->bench, examples[i].reserved[r]) = 0x100;
			ASSERT_EQ(-EINVAL, run_prepared(&self->bench, i))
				TH_LOG("%s, offset %zu", examples[i].name,
				       examples[i].reserved[r]);
		}
	}
}

TEST_F(every_command, refuses_a_pointer_that_does_not_work)
{
	unsigned int page = getpagesize();
	char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned int i, w;

	ASSERT_NE(MAP_FAILED, pages);
	ASSERT_EQ(0, munmap(pages + page, page));
	for_each_example(i, &self->bench.objects) {
		char *straddling = pages + page - examples[i].size + 4;
		void *wrong[] = { NULL, pages + page, pages + page - 4, straddling,
				  (void *)-4096L, (void *)0xffff888000000000UL };

		for (w = 0; w < ARRAY_SIZE(wrong); w++) {
			ASSERT_EQ(0, prepare(&self->bench, i));
			memset(pages, 0, page);
			memcpy(straddling, self->bench.room, examples[i].size - 4);
			*(__u32 *)(pages + page - 4) = examples[i].size;
			ASSERT_EQ(-EFAULT, run_at(&self->bench, i, wrong[w]))
				TH_LOG("%s at %p", examples[i].name, wrong[w]);
		}
	}
	munmap(pages, page);
}

TEST_F(every_command, that_cannot_deliver_its_answer_leaves_nothing_behind)
{
	unsigned int page = getpagesize();
	int held = example_held(&self->bench.objects);
	int descriptors = open_descriptors();
	void *deaf = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned int i;

	ASSERT_NE(MAP_FAILED, deaf);
	for_each_example(i, &self->bench.objects) {
		if (!examples[i].answers)
			continue;
		ASSERT_EQ(0, prepare(&self->bench, i));
		ASSERT_EQ(0, mprotect(deaf, page, PROT_READ | PROT_WRITE));
		memcpy(deaf, self->bench.room, EXAMPLE_ROOM);
		ASSERT_EQ(0, mprotect(deaf, page, PROT_READ));
		EXPECT_EQ(-EFAULT, run_at(&self->bench, i, deaf))
			TH_LOG("%s", examples[i].name);
		EXPECT_EQ(held, example_held(&self->bench.objects))
			TH_LOG("%s", examples[i].name);
	}
	munmap(deaf, page);
	EXPECT_EQ(descriptors, open_descriptors());
}

/* Its flags lie in a page that can be written, the rest does not. */
TEST_F(every_command, whose_answer_is_cut_off_says_nothing_of_one)
{
	unsigned int page = getpagesize();
	char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *cut = pages + page - 8;
	unsigned int i;

	ASSERT_NE(MAP_FAILED, pages);
	for_each_example(i, &self->bench.objects) {
		if (!examples[i].answers)
			continue;
		ASSERT_EQ(0, prepare(&self->bench, i));
		ASSERT_EQ(0, mprotect(pages + page, page, PROT_READ | PROT_WRITE));
		memcpy(cut, self->bench.room, EXAMPLE_ROOM);
		ASSERT_EQ(0, mprotect(pages + page, page, PROT_READ));
		EXPECT_EQ(-EFAULT, run_at(&self->bench, i, cut))
			TH_LOG("%s", examples[i].name);
		EXPECT_EQ(0, *(__u32 *)(cut + 4) & IBCHAN_ANSWERED)
			TH_LOG("%s", examples[i].name);
	}
	munmap(pages, 2 * page);
}

static int drain_events(int fd)
{
	struct ibchan_cmd_event_take cmd = {};
	int rc;

	do {
		rc = cmd_event_take(fd, &cmd);
	} while (!rc);
	return rc;
}

TEST_F(every_command, an_event_that_could_not_be_told_is_told_again)
{
	const struct example_objects *objects = &self->bench.objects;
	struct ibchan_cmd_event_take cmd = { .size = sizeof(cmd) };
	void *deaf = mmap(NULL, sizeof(cmd), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, deaf);
	ASSERT_EQ(-EAGAIN, drain_events(objects->side.fd));
	ASSERT_EQ(0, channel_break(objects->side.fd, objects->broken.channel));
	memcpy(deaf, &cmd, sizeof(cmd));
	ASSERT_EQ(0, mprotect(deaf, sizeof(cmd), PROT_READ));
	EXPECT_EQ(-EFAULT, cmd_raw(objects->side.fd, IBCHAN_CMD_EVENT_TAKE, deaf));
	EXPECT_EQ(0, cmd_event_take(objects->side.fd, &cmd));
	EXPECT_EQ(objects->broken.channel, cmd.out_channel);
	EXPECT_EQ(IBCHAN_EVENT_BROKEN, cmd.out_events);
	EXPECT_EQ(-EAGAIN, cmd_event_take(objects->side.fd, &cmd));
	munmap(deaf, sizeof(cmd));
}

/* Tries @handle in every place of every command where a handle stands. */
static int refused_everywhere(struct bench *bench, __u32 handle)
{
	unsigned int i, h;
	int rc;

	for_each_example(i, &bench->objects) {
		for (h = 0; examples[i].handles[h]; h++) {
			if (!handle && examples[i].may_be_none)
				continue;
			rc = prepare(bench, i);
			if (rc)
				return rc;
			*member(bench, examples[i].handles[h]) = handle;
			rc = run_prepared(bench, i);
			if (rc == -ENOENT)
				continue;
			fprintf(stderr, "# %s with %#x at offset %zu: %d\n", examples[i].name,
				handle, examples[i].handles[h], rc);
			return -EBADMSG;
		}
	}
	return 0;
}

TEST_F(every_command, refuses_a_handle_that_was_never_given)
{
	EXPECT_EQ(0, refused_everywhere(&self->bench, 0));
	EXPECT_EQ(0, refused_everywhere(&self->bench, 0x7fffffff));
	EXPECT_EQ(0, refused_everywhere(&self->bench, 0x80000000));
	EXPECT_EQ(0, refused_everywhere(&self->bench, IBCHAN_AUTO));
}

TEST_F(every_command, refuses_a_handle_that_was_given_back)
{
	__u32 stale, other;
	int fd = self->bench.objects.side.fd;
	unsigned int i;

	ASSERT_EQ(0, pd_alloc(fd, self->bench.objects.side.device, &stale));
	ASSERT_EQ(0, destroy(fd, stale));
	EXPECT_EQ(0, refused_everywhere(&self->bench, stale));
	for (i = 0; i < 100; i++) {
		ASSERT_EQ(0, pd_alloc(fd, self->bench.objects.side.device, &other));
		ASSERT_NE(stale, other);
		ASSERT_EQ(0, destroy(fd, other));
	}
}

/* Puts handles of all kinds where another kind is wanted in example @i. */
static int refuses_other_kinds(struct bench *bench, unsigned int i, size_t offset)
{
	unsigned int kind;
	int rc;

	for (kind = 0; kind < EXAMPLE_KINDS; kind++) {
		__u32 handle = example_handle(&bench->objects, kind);

		if (!handle)
			continue;
		rc = prepare(bench, i);
		if (rc)
			return rc;
		/* Two channels are of one kind. */
		if (*member(bench, offset) == bench->objects.broken.channel &&
		    handle == bench->objects.side.channel)
			continue;
		if (*member(bench, offset) == handle)
			continue;
		*member(bench, offset) = handle;
		rc = run_prepared(bench, i);
		if (rc == -ENOENT)
			continue;
		fprintf(stderr, "# kind %u: %d\n", kind, rc);
		return -EBADMSG;
	}
	return 0;
}

TEST_F(every_command, refuses_a_handle_of_another_kind)
{
	unsigned int i, h;

	for_each_example(i, &self->bench.objects) {
		for (h = 0; examples[i].handles[h] && !examples[i].any_kind; h++)
			EXPECT_EQ(0, refuses_other_kinds(&self->bench, i, examples[i].handles[h]))
				TH_LOG("%s, offset %zu", examples[i].name, examples[i].handles[h]);
	}
}

TEST_F(every_command, refuses_a_handle_of_another_file)
{
	struct example_objects other;
	unsigned int kind;
	__u32 handle;

	/* Both files have made the same objects, in the same order. */
	ASSERT_EQ(0, example_objects_open(&other));
	for (kind = 0; kind < EXAMPLE_KINDS; kind++) {
		handle = example_handle(&other, kind);
		if (!handle)
			continue;
		EXPECT_EQ(0, refused_everywhere(&self->bench, handle));
		EXPECT_EQ(-ENOENT, destroy(self->bench.objects.side.fd, handle));
	}
	EXPECT_EQ(IBCHAN_CHANNEL_PREPARED, side_state(&other.side));
	example_objects_close(&other);
}

static bool is_known(unsigned int number)
{
	unsigned int i;

	for (i = 0; i < NUM_EXAMPLES; i++) {
		if (examples[i].number == number)
			return true;
	}
	return false;
}

TEST_F(every_command, that_has_another_number_is_unknown)
{
	int fd = self->bench.objects.side.fd;
	struct ibchan_cmd_query arg = { .size = sizeof(arg) };
	unsigned int nr;

	for (nr = 0; nr < 256; nr++) {
		if (is_known(_IO(IBCHAN_IOCTL_TYPE, nr)))
			continue;
		ASSERT_EQ(-ENOTTY, cmd_raw(fd, _IO(IBCHAN_IOCTL_TYPE, nr), &arg))
			TH_LOG("number %#x", nr);
	}
	EXPECT_EQ(-ENOTTY, cmd_raw(fd, _IO('b', 0), &arg));
	EXPECT_EQ(-ENOTTY, cmd_raw(fd, _IOC(_IOC_READ, IBCHAN_IOCTL_TYPE, 0, 40), &arg));
	EXPECT_EQ(-ENOTTY, cmd_raw(fd, _IOC(_IOC_NONE, IBCHAN_IOCTL_TYPE, 0, 40), &arg));
}

#ifdef __x86_64__
/*
 * A command as a 32-bit program gives it: int 0x80 enters the kernel's 32-bit system calls
 * from this program too. The argument must lie below 4 GiB.
 */
static int ioctl_32(int fd, unsigned int number, void *arg)
{
	int rc;

	asm volatile("int $0x80"
		     : "=a" (rc)
		     : "a" (54), "b" (fd), "c" (number), "d" (arg)
		     : "memory", "r8", "r9", "r10", "r11");
	return rc;
}

/* In a child, because a kernel without these calls answers with a signal. */
static int probe_ioctl_32(void *arg)
{
	(void)arg;
	return ioctl_32(-1, 0, NULL) == -EBADF ? 0 : -EOPNOTSUPP;
}

TEST_F(every_command, works_the_same_for_a_32_bit_caller)
{
	void *low = mmap(NULL, EXAMPLE_ROOM, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	unsigned int i;
	int rc;

	if (in_child(probe_ioctl_32, NULL))
		SKIP(return, "this kernel has no 32-bit system calls");
	ASSERT_NE(MAP_FAILED, low);
	for_each_example(i, &self->bench.objects) {
		ASSERT_EQ(0, example_prepare(&examples[i], &self->bench.objects, low));
		rc = ioctl_32(self->bench.objects.side.fd, examples[i].number, low);
		EXPECT_EQ(0, rc)
			TH_LOG("%s", examples[i].name);
		if (examples[i].undo)
			examples[i].undo(&self->bench.objects, low, rc);
		memset(low, 0, EXAMPLE_ROOM);
		EXPECT_EQ(-EINVAL, ioctl_32(self->bench.objects.side.fd, examples[i].number, low));
	}
}
#else
TEST(a_32_bit_caller_is_served_the_same)
{
	SKIP(return, "only known for x86");
}
#endif

/* A size or a number that changes breaks programs that were built before. */
TEST(the_sizes_and_numbers_of_the_first_version_stay)
{
	unsigned int i;

	ASSERT_LE(ARRAY_SIZE(first), NUM_EXAMPLES);
	for (i = 0; i < ARRAY_SIZE(first); i++) {
		EXPECT_STREQ(first[i].name, examples[i].name);
		EXPECT_LE(first[i].size, examples[i].size)
			TH_LOG("%s", first[i].name);
		EXPECT_EQ(0xbc00 + first[i].number, examples[i].number);
	}
	EXPECT_EQ(IBCHAN_ENDPOINT_SIZE, sizeof(struct ibchan_endpoint));
	EXPECT_EQ(64, sizeof(struct ibchan_submit_wr));
	EXPECT_EQ(16, sizeof(struct ibchan_submit_sge));
	EXPECT_EQ(32, sizeof(struct ibchan_cqe));
	EXPECT_EQ(24, sizeof(struct ibchan_ring));
}

TEST_HARNESS_MAIN
