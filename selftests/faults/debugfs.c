// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/kernel/debug/ibchan/faults: one "point passages" a line. To write "point nth error"
 * has the nth passage from now on fail with the error, a negative errno, or a wc status
 * for a completion; 0 takes that back.
 *
 * /sys/kernel/debug/ibchan/windows: one "window entered left" a line, visits while it was
 * wide. To write "window microseconds" widens it; 0 takes that back.
 */
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <rdma/ib_verbs.h>

#include "faults.h"

#define LINE_BYTES	64

static int faults_show(struct seq_file *m, void *unused)
{
	u32 point;

	for (point = 0; point < IBCHAN_FAULTS_NUM; point++)
		seq_printf(m, "%s %u\n", ibchan_fault_name(point), ibchan_fault_passed(point));
	return 0;
}

static int faults_open(struct inode *inode, struct file *file)
{
	return single_open(file, faults_show, NULL);
}

static int find_point(const char *name)
{
	int point;

	for (point = 0; point < IBCHAN_FAULTS_NUM; point++)
		if (!strcmp(name, ibchan_fault_name(point)))
			return point;
	return -EINVAL;
}

static bool is_error_of(int point, int error)
{
	if (point == IBCHAN_FAULT_COMPLETION)
		return error > IB_WC_SUCCESS && error <= IB_WC_GENERAL_ERR;
	return error < 0 && error >= -MAX_ERRNO;
}

static int set_fault(const char *line)
{
	char name[LINE_BYTES];
	int point, error;
	u32 nth;

	if (sscanf(line, "%63s %u %d", name, &nth, &error) != 3)
		return -EINVAL;
	point = find_point(name);
	if (point < 0 || (nth && !is_error_of(point, error)))
		return -EINVAL;
	ibchan_fault_set(point, nth, error);
	return 0;
}

/* Has a line of the caller's carried out. */
static ssize_t write_line(const char __user *user, size_t length, int (*set)(const char *line))
{
	char line[LINE_BYTES] = {};
	int ret;

	if (length >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, user, length))
		return -EFAULT;
	ret = set(line);
	return ret ?: length;
}

static ssize_t faults_write(struct file *file, const char __user *user, size_t length,
			    loff_t *position)
{
	return write_line(user, length, set_fault);
}

static const struct file_operations faults_fops = {
	.owner = THIS_MODULE,
	.open = faults_open,
	.read = seq_read,
	.write = faults_write,
	.llseek = seq_lseek,
	.release = single_release,
};

static int windows_show(struct seq_file *m, void *unused)
{
	u32 window, entered, left;

	for (window = 0; window < IBCHAN_WINDOWS_NUM; window++) {
		ibchan_fault_visits(window, &entered, &left);
		seq_printf(m, "%s %u %u\n", ibchan_fault_window_name(window), entered, left);
	}
	return 0;
}

static int windows_open(struct inode *inode, struct file *file)
{
	return single_open(file, windows_show, NULL);
}

static int widen(const char *line)
{
	char name[LINE_BYTES];
	u32 window, us;

	if (sscanf(line, "%63s %u", name, &us) != 2)
		return -EINVAL;
	for (window = 0; window < IBCHAN_WINDOWS_NUM; window++)
		if (!strcmp(name, ibchan_fault_window_name(window)))
			return ibchan_fault_widen(window, us);
	return -EINVAL;
}

static ssize_t windows_write(struct file *file, const char __user *user, size_t length,
			     loff_t *position)
{
	return write_line(user, length, widen);
}

static const struct file_operations windows_fops = {
	.owner = THIS_MODULE,
	.open = windows_open,
	.read = seq_read,
	.write = windows_write,
	.llseek = seq_lseek,
	.release = single_release,
};

void ibchan_fault_debugfs_init(struct dentry *root)
{
	debugfs_create_file("windows", 0600, root, NULL, &windows_fops);
	debugfs_create_file("faults", 0600, root, NULL, &faults_fops);
}
