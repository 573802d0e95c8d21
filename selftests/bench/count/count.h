/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of the counted program have for each other. */
#ifndef COUNT_H
#define COUNT_H

#define COUNT_ATTRIBUTE(name, ...)	__attribute__((name(__VA_ARGS__)))

/* Works that a case has at most, and bytes of each. */
#define COUNT_WORKS	16
#define COUNT_BYTES	64

/* The handles of the only channel, region and completion queue. */
#define COUNT_CHANNEL	7
#define COUNT_MR	8
#define COUNT_CQ	9

#define COUNT_RING_ENTRIES	256

/**
 * struct count_shape - what one operation of a case is
 * @name: of the case
 * @works: in flight at a time
 * @chain: of them in one post
 * @exclusive: their ranges keep others out
 * @by_wr_id: they bring no work of their own, and are polled for; kernel only
 * @blocking: by the blocking call; user space only
 */
struct count_shape {
	const char *name;
	int works;
	int chain;
	int exclusive;
	int by_wr_id;
	int blocking;
};

/* stubs.S: stands for `pushf; pop` in the kernel's table of what a hypervisor may do instead */
void count_save_flags(void);

/* module.c, built by kbuild */
extern char count_ring[];
int count_module_init(void *task, int user, int keep);
int count_kernel(const struct count_shape *shape);
long count_ioctl(unsigned int number, unsigned long arg);

/* main.c; what runs between these two is counted */
void count_begin(void);
void count_end(void);

/* user.c */
void count_user_init(void);
int count_user(const struct count_shape *shape);

#endif /* COUNT_H */
