// SPDX-License-Identifier: GPL-2.0-only
/*
 * What raw verbs take for what is made before the first operation: two connected queue pairs on
 * a completion queue, and a region of a process's page. None of it sleeps on a device that has
 * no firmware to wait for, so the clock tells instructions.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/uaccess.h>

#include "kbench.h"

#define RUNS	7
#define TIMES	32

/* As in user space: see operate.h, PAIR_DEPTH and PAIR_ELEMENTS. */
#define DEPTH	16
#define SGE	1

/**
 * struct setup - where things are made
 * @pd: of all
 * @address: of the device
 * @page: of the process that loads the module
 */
struct setup {
	struct ib_pd *pd;
	struct kbench_address address;
	unsigned long page;
};

static int connect(struct setup *setup, struct ib_qp *near, struct ib_qp *far)
{
	int ret = kbench_qp_connect(near, far, &setup->address);

	return ret ?: kbench_qp_connect(far, near, &setup->address);
}

static int qps_once(struct setup *setup, struct ib_cq *cq)
{
	struct ib_qp *near, *far;
	int ret;

	near = kbench_qp_create(setup->pd, cq, DEPTH, SGE);
	if (IS_ERR(near))
		return PTR_ERR(near);
	far = kbench_qp_create(setup->pd, cq, DEPTH, SGE);
	ret = IS_ERR(far) ? PTR_ERR(far) : connect(setup, near, far);
	if (!IS_ERR(far))
		ret = ib_destroy_qp(far) ?: ret;
	return ib_destroy_qp(near) ?: ret;
}

static int pair_once(struct setup *setup)
{
	struct ib_cq *cq = ib_alloc_cq(setup->pd->device, NULL, 4 * (DEPTH + 1), 0,
				       IB_POLL_DIRECT);
	int ret;

	if (IS_ERR(cq))
		return PTR_ERR(cq);
	ret = qps_once(setup, cq);
	ib_free_cq(cq);
	return ret;
}

static int mr_once(struct setup *setup)
{
	struct ib_mr *mr = ib_reg_user_mr(setup->pd, setup->page, PAGE_SIZE, setup->page,
					  IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
					  IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC);

	return IS_ERR(mr) ? PTR_ERR(mr) : ib_dereg_mr(mr);
}

static int measure(struct setup *setup, const char *name, int (*once)(struct setup *setup))
{
	u64 least = U64_MAX, start, ns;
	int run, i, ret = once(setup);

	for (run = 0; run < RUNS && !ret; run++) {
		start = ktime_get_ns();
		for (i = 0; i < TIMES && !ret; i++)
			ret = once(setup);
		ns = ktime_get_ns() - start;
		least = min(least, ns);
		cond_resched();
	}
	if (ret)
		pr_err("failed raw.setup.%s %d\n", name, ret);
	else
		pr_info("time raw.setup.%s %llu %llu\n", name,
			DIV_ROUND_CLOSEST_ULL(least, TIMES), DIV_ROUND_CLOSEST_ULL(least, TIMES));
	return ret;
}

static int measure_mr(struct setup *setup)
{
	int ret = -EFAULT;

	setup->page = vm_mmap(NULL, 0, PAGE_SIZE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, 0);
	if (IS_ERR_VALUE(setup->page))
		return setup->page;
	if (!clear_user((void __user *)setup->page, PAGE_SIZE))
		ret = measure(setup, "mr_4k", mr_once);
	vm_munmap(setup->page, PAGE_SIZE);
	return ret;
}

static int measure_all(struct ib_device *dev)
{
	struct setup setup = {};
	int ret = kbench_address_find(dev, &setup.address);

	if (ret)
		return ret;
	setup.pd = ib_alloc_pd(dev, 0);
	if (IS_ERR(setup.pd))
		return PTR_ERR(setup.pd);
	ret = measure(&setup, "pair", pair_once) ?: measure_mr(&setup);
	ib_dealloc_pd(setup.pd);
	return ret;
}

/**
 * kbench_setup - measure what raw verbs take to make things
 * @device: where, by name
 *
 * Return: 0; the errno of what failed.
 */
int kbench_setup(const char *device)
{
	struct ib_device *dev = kbench_device_find(device);
	int ret;

	if (IS_ERR(dev))
		return PTR_ERR(dev);
	ret = measure_all(dev);
	kbench_device_release();
	return ret;
}
