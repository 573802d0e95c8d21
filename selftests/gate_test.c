// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages that never come: the process that registers them waits, and at most the removal of its
 * device. All others go on.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

#include "pager.h"
#include "test.h"
#include "thread.h"
#include "window.h"
#include "work.h"
#include "world.h"

#define DEVICE	"gaterxe"
#define NETDEV	"gate0"
#define NO_FUSE	"this kernel has no FUSE"
#define NO_WINDOWS	"the module was not built with FAULTS=1"
#define PAGE	4096
/* Fast registration takes 512 pages of soft-RoCE's memory; more only its driver registers. */
#define LARGE	(520 * PAGE)
#define SMALL	(16 * PAGE)

/* The first page goes while the driver pins the others, and is not served again. */
static const struct pager_rules hostile = { .first_page = 1, .drops = true };
static const struct pager_rules silent = { .first_page = 0 };
/* A fault asks three times: ahead, for the page itself, and again. */
static const struct pager_rules failing = { .first_page = 3, .fails = 3 };
static const struct pager_rules broken = { .first_page = PAGER_ALWAYS, .fails = PAGER_ALWAYS };
static const struct pager_rules honest = { .first_page = PAGER_ALWAYS };

FIXTURE(gate)
{
	struct calm calm;
	struct pager pager;
	pid_t attacker;
	pid_t removal;
	int log;	/* of the kernel, from the test's beginning on */
	int rc;
};

static const char *const delete_device[] = { "rdma", "link", "delete", DEVICE, NULL };
static const char *const delete_netdev[] = { "ip", "link", "delete", NETDEV, NULL };

static int add_device(void)
{
	static const char *const veth[] = {
		"ip", "link", "add", NETDEV, "type", "veth", "peer", "name", "gate1", NULL,
	};
	static const char *const rxe[] = {
		"rdma", "link", "add", DEVICE, "type", "rxe", "netdev", NETDEV, NULL,
	};

	return run_program(veth) ?: run_program(rxe);
}

static int log_open(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		lseek(fd, 0, SEEK_END);
	return fd;
}

FIXTURE_SETUP(gate)
{
	self->attacker = 0;
	self->removal = 0;
	self->log = log_open();
	ASSERT_LE(0, self->log);
	self->pager = (struct pager) { .fd = -1 };
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, add_device());
}

static void reap(pid_t *child)
{
	if (*child > 0) {
		kill(*child, SIGKILL);
		child_result(*child);
	}
	*child = 0;
}

FIXTURE_TEARDOWN(gate)
{
	pager_kill(&self->pager);
	reap(&self->attacker);
	if (self->removal > 0)
		child_result(self->removal);
	pager_end(&self->pager);
	run_program(delete_netdev);
	EXPECT_TRUE(device_leaves(DEVICE));
	close(self->log);
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* A file, a domain and what it takes to register there. */
struct user {
	int fd;
	__u32 device;
	__u32 pd;
	__u32 mr;
};

static int user_open(struct user *user, const char *device)
{
	*user = (struct user) { .fd = node_open() };
	if (user->fd < 0)
		return user->fd;
	return device_open(user->fd, device, &user->device) ?:
	       pd_alloc(user->fd, user->device, &user->pd);
}

static int user_register(struct user *user, const void *memory, size_t length, __u32 access)
{
	struct ibchan_cmd_mr_reg cmd = {
		.addr = address(memory), .length = length, .pd = user->pd, .access = access,
	};
	int rc = cmd_mr_reg(user->fd, &cmd);

	user->mr = cmd.out_mr;
	return rc;
}

/* Registers the first @length bytes of the pager's file, and ends with the answer. */
static int register_file(const struct pager *pager, const char *device, size_t length)
{
	void *memory = pager_map(pager, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	struct user user;
	int rc;

	if (memory == MAP_FAILED)
		return -errno;
	rc = user_open(&user, device);
	if (!rc)
		rc = user_register(&user, memory, length, IBCHAN_ACCESS_REMOTE_READ);
	if (!rc)
		rc = destroy(user.fd, user.mr);
	if (user.fd >= 0)
		close(user.fd);
	munmap(memory, pager->state->length);
	return rc;
}

static pid_t attack(const struct pager *pager, size_t length)
{
	pid_t child = fork();

	if (!child)
		_exit(-register_file(pager, DEVICE, length));
	return child;
}

static pid_t begin_removal(const char *const *argv)
{
	pid_t child = fork();

	if (!child)
		_exit(run_program(argv) ? 1 : 0);
	return child;
}

static bool has_ended(void *arg)
{
	siginfo_t info = {};

	return !waitid(P_PID, *(pid_t *)arg, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid;
}

/* Its answer, if it comes in time. */
static int end_of(pid_t *child)
{
	pid_t pid = *child;

	if (!eventually(has_ended, child))
		return -ETIMEDOUT;
	*child = 0;
	return child_result(pid);
}

/* Runs @body in a thread that may get stuck. */
struct step {
	int (*body)(struct user *user);
	struct user *user;
	int rc;
};

static void *run_step(void *arg)
{
	struct step *step = arg;

	step->rc = step->body(step->user);
	return NULL;
}

static int in_time(int (*body)(struct user *user), struct user *user)
{
	static struct step step;
	pthread_t thread;

	step = (struct step) { .body = body, .user = user };
	if (pthread_create(&thread, NULL, run_step, &step))
		return -EAGAIN;
	return join_soon(thread, NULL) ?: step.rc;
}

static int alloc_pd(struct user *user)
{
	__u32 pd;

	return pd_alloc(user->fd, user->device, &pd);
}

static int destroy_mr(struct user *user)
{
	return destroy(user->fd, user->mr);
}

static int close_file(struct user *user)
{
	return close(user->fd);
}

static bool is_leaving(void *arg)
{
	return in_time(alloc_pd, arg) != 0;
}

/* Of the fixture: whether the kernel log says for which process the device waits. */
static bool log_names_attacker(void *arg)
{
	FIXTURE_DATA(gate) * self = arg;
	char line[1024], wanted[96];
	ssize_t length;

	snprintf(wanted, sizeof(wanted), DEVICE " leaves and waits for process %d (",
		 self->attacker);
	while ((length = read(self->log, line, sizeof(line) - 1)) > 0) {
		line[length] = 0;
		if (strstr(line, wanted))
			return true;
	}
	return false;
}

static int send_a_message(struct user *user)
{
	struct side_options options = side_defaults();
	struct pair pair;
	int rc = pair_open(&pair, PAIR_TWO_DEVICES, &options);

	(void)user;
	if (!rc)
		rc = exchange(pair.a, pair.b);
	pair_close(&pair);
	return rc;
}

TEST_F(gate, is_held_by_no_registration_whose_pages_do_not_come)
{
	static char memory[PAGE];
	struct user user;
	int rc = pager_begin(&self->pager, LARGE, &hostile);

	if (rc == PAGER_NONE)
		SKIP(return, NO_FUSE);
	ASSERT_EQ(0, rc);
	ASSERT_EQ(0, user_open(&user, DEVICE));
	ASSERT_EQ(0, user_register(&user, memory, sizeof(memory), 0));
	self->attacker = attack(&self->pager, LARGE);
	ASSERT_TRUE(pager_is_waited_for(&self->pager));
	/* Nobody waits for it, while it waits in the driver ... */
	EXPECT_EQ(0, in_time(alloc_pd, &user));
	self->removal = begin_removal(delete_device);
	ASSERT_TRUE(eventually(is_leaving, &user));
	/* ... nor when the device leaves. */
	EXPECT_EQ(-ENODEV, in_time(alloc_pd, &user));
	EXPECT_EQ(0, in_time(destroy_mr, &user));
	EXPECT_EQ(0, in_time(close_file, &user));
	EXPECT_EQ(0, in_time(send_a_message, NULL));
	EXPECT_TRUE(eventually(log_names_attacker, self));
	EXPECT_FALSE(has_ended(&self->removal));
	EXPECT_FALSE(has_ended(&self->attacker));
	/* Removal waits for that process, and for who serves it where that cannot be killed. */
	ASSERT_EQ(0, kill(self->attacker, SIGKILL));
	if (kernel_is_before(6, 3))
		pager_kill(&self->pager);
	EXPECT_EQ(-EINTR, end_of(&self->attacker));
	EXPECT_EQ(0, end_of(&self->removal));
}

/* 0 when @removal ends although pages that the module pins itself do not come. */
static int removal_ends_first(FIXTURE_DATA(gate) * self, const char *const *removal)
{
	int rc;

	self->attacker = attack(&self->pager, SMALL);
	if (!pager_is_waited_for(&self->pager))
		return -ENODATA;
	self->removal = begin_removal(removal);
	rc = end_of(&self->removal);
	return rc ?: has_ended(&self->attacker) ? -EALREADY : 0;
}

TEST_F(gate, is_not_reached_before_pages_that_can_be_pinned_have_come)
{
	int rc = pager_begin(&self->pager, LARGE, &silent);

	if (rc == PAGER_NONE)
		SKIP(return, NO_FUSE);
	ASSERT_EQ(0, rc);
	EXPECT_EQ(0, removal_ends_first(self, delete_device));
	/* Alone, on each kernel. */
	ASSERT_EQ(0, kill(self->attacker, SIGKILL));
	EXPECT_EQ(-EINTR, end_of(&self->attacker));
}

TEST_F(gate, holds_up_no_network_device_that_goes_while_pages_do_not_come)
{
	int rc = pager_begin(&self->pager, LARGE, &silent);

	if (rc == PAGER_NONE)
		SKIP(return, NO_FUSE);
	ASSERT_EQ(0, rc);
	EXPECT_EQ(0, removal_ends_first(self, delete_netdev));
	ASSERT_EQ(0, kill(self->attacker, SIGKILL));
	EXPECT_EQ(-EINTR, end_of(&self->attacker));
}

TEST_F(gate, is_not_tried_with_a_page_that_could_not_be_read)
{
	int rc = pager_begin(&self->pager, LARGE, &failing);

	if (rc == PAGER_NONE)
		SKIP(return, NO_FUSE);
	ASSERT_EQ(0, rc);
	self->attacker = attack(&self->pager, LARGE);
	EXPECT_EQ(-EFAULT, end_of(&self->attacker));
	EXPECT_EQ(3, self->pager.state->first_reads);
	pager_end(&self->pager);

	ASSERT_EQ(0, pager_begin(&self->pager, LARGE, &broken));
	self->attacker = attack(&self->pager, SMALL);
	EXPECT_EQ(-EFAULT, end_of(&self->attacker));
}

TEST_F(gate, is_passed_with_pages_that_come)
{
	int rc = pager_begin(&self->pager, LARGE, &honest);

	if (rc == PAGER_NONE)
		SKIP(return, NO_FUSE);
	ASSERT_EQ(0, rc);
	EXPECT_EQ(0, register_file(&self->pager, DEVICE_A, SMALL));
	EXPECT_EQ(0, register_file(&self->pager, DEVICE_A, LARGE));
	/* Not by the service: a device without an address has none. */
	EXPECT_EQ(0, register_file(&self->pager, DEVICE, SMALL));
}

/* Of the attacker, who serves his own file. */
struct swap {
	char path[32];		/* of the file */
	void *range;
	struct user user;
	pid_t writer;
	bool is_answered;
	int answer;		/* to the registration */
	int rc;			/* what he could not do */
};

static struct swap *swap;

static void *register_swapped(void *arg)
{
	(void)arg;
	swap->answer = user_register(&swap->user, swap->range, PAGE, IBCHAN_ACCESS_LOCAL_WRITE);
	__atomic_store_n(&swap->is_answered, true, __ATOMIC_SEQ_CST);
	return NULL;
}

static bool swap_is_answered(void *arg)
{
	(void)arg;
	return __atomic_load_n(&swap->is_answered, __ATOMIC_SEQ_CST);
}

static void *write_to_range(void *arg)
{
	(void)arg;
	__atomic_store_n(&swap->writer, gettid(), __ATOMIC_SEQ_CST);
	__atomic_store_n((char *)swap->range, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* In a fault, not in a system call: it has the page's lock, and waits for the server. */
static bool writer_is_stuck(void *arg)
{
	pid_t tid = __atomic_load_n(&swap->writer, __ATOMIC_SEQ_CST);
	char path[48], state = 0;
	FILE *file;

	(void)arg;
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	file = tid ? fopen(path, "re") : NULL;
	if (!file)
		return false;
	if (fscanf(file, "%*d %*s %c", &state) != 1)
		state = 0;
	fclose(file);
	return state == 'D';
}

/* Has the page's lock kept by a thread that waits for a write which nobody answers. */
static int lock_page(const struct pager *pager)
{
	pthread_t writer;

	if (sync_file_range(pager->fd, 0, PAGE, SYNC_FILE_RANGE_WRITE))
		return -errno;
	if (pthread_create(&writer, NULL, write_to_range, NULL))
		return -EAGAIN;
	return eventually(writer_is_stuck, NULL) ? 0 : -ETIMEDOUT;
}

static int map_instead(void *range, int flags, int fd)
{
	if (mmap(range, PAGE, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0) != range)
		return -errno;
	__atomic_store_n((char *)range, 1, __ATOMIC_RELAXED);
	return 0;
}

/* Registers a page of the process's own, and maps one of a file while it is being registered. */
static int swap_page(void)
{
	struct visits looked, registered;
	struct pager pager;
	pthread_t thread;
	int rc = pager_begin(&pager, PAGE, &honest);

	strcpy(swap->path, pager.path);
	rc = rc ?: user_open(&swap->user, DEVICE);
	rc = rc ?: window_visits("looked", &looked) ?: window_visits("registered", &registered);
	if (rc)
		return rc;
	if (pthread_create(&thread, NULL, register_swapped, NULL))
		return -EAGAIN;
	if (!window_is_entered("looked", &looked))
		return -ETIMEDOUT;
	rc = map_instead(swap->range, MAP_SHARED, pager.fd);
	if (!rc && !window_is_entered("registered", &registered))
		return -ETIMEDOUT;
	return rc ?: lock_page(&pager);
}

static pid_t begin_swap(void)
{
	pid_t child;

	swap = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	swap->range = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	child = fork();
	if (child)
		return child;
	swap->rc = swap_page();
	for (;;)
		pause();
}

static bool windows_are_wide(unsigned int us)
{
	return !window_widen("looked", us) && !window_widen("registered", us);
}

/* Long enough for what the attacker does in it. */
#define WIDE_US	(slow() ? 2000000 : 500000)

TEST_F(gate, is_held_by_no_page_of_a_file_that_came_into_a_region_behind_the_look)
{
	static char memory[PAGE];
	struct user user;

	if (!windows_are_wide(WIDE_US))
		SKIP(return, NO_WINDOWS);
	ASSERT_EQ(0, user_open(&user, DEVICE));
	ASSERT_EQ(0, user_register(&user, memory, sizeof(memory), 0));
	self->attacker = begin_swap();
	EXPECT_TRUE(eventually(swap_is_answered, NULL));
	EXPECT_TRUE(windows_are_wide(0));
	EXPECT_EQ(0, swap->rc);
	EXPECT_EQ(-EFAULT, swap->answer);
	EXPECT_EQ(0, in_time(alloc_pd, &user));
	self->removal = begin_removal(delete_device);
	EXPECT_TRUE(eventually(is_leaving, &user));
	EXPECT_EQ(0, in_time(destroy_mr, &user));
	EXPECT_EQ(0, in_time(close_file, &user));
	/* Later kernels do not pin such a page at all. */
	if (kernel_is_before(6, 5)) {
		EXPECT_TRUE(eventually(log_names_attacker, self));
		EXPECT_FALSE(has_ended(&self->removal));
	}
	/* He serves the file himself, so no kill but his is needed. */
	EXPECT_EQ(0, kill(self->attacker, SIGKILL));
	EXPECT_EQ(-EINTR, end_of(&self->attacker));
	EXPECT_EQ(0, end_of(&self->removal));
	umount2(swap->path, MNT_DETACH);
	unlink(swap->path);
}

/* Registers a page, and calls @meanwhile when it has been looked at. */
static int register_while(int (*meanwhile)(void))
{
	struct visits looked;
	pthread_t thread;
	int rc;

	swap->is_answered = false;
	if (window_visits("looked", &looked) ||
	    pthread_create(&thread, NULL, register_swapped, NULL))
		return -EAGAIN;
	rc = window_is_entered("looked", &looked) ? meanwhile() : -ETIMEDOUT;
	return join_soon(thread, NULL) ?: rc ?: swap->answer;
}

static int map_another_page(void)
{
	return map_instead(swap->range, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static int do_what_others_do(void)
{
	void *other = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t child = fork();

	if (!child)
		_exit(0);
	return munmap(other, PAGE) ?: madvise(swap->range, PAGE, MADV_DONTNEED) ?:
	       child_result(child);
}

TEST_F(gate, lets_in_no_page_that_was_mapped_meanwhile_and_all_that_stay_where_they_are)
{
	struct swap own = {};

	if (!windows_are_wide(WIDE_US / 5))
		SKIP(return, NO_WINDOWS);
	swap = &own;
	own.range = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_EQ(0, user_open(&own.user, DEVICE));
	EXPECT_EQ(0, register_while(do_what_others_do));
	EXPECT_EQ(0, destroy_mr(&own.user));
	/* Later kernels know the file by its page. */
	if (kernel_is_before(6, 5))
		EXPECT_EQ(-EFAULT, register_while(map_another_page));
	EXPECT_TRUE(windows_are_wide(0));
	EXPECT_EQ(0, close(own.user.fd));
	munmap(own.range, PAGE);
}

TEST_HARNESS_MAIN
