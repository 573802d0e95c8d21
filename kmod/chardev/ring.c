// SPDX-License-Identifier: GPL-2.0-only
/*
 * The completion ring, which brings completions to user space: it has one writer (the cq's
 * owner) and one reader (user space).
 *
 * A ring cannot overflow: each work has taken room for its completion before it
 * was posted. Room is free again when the reader has moved its head past the
 * completion. The head is the one word that the kernel reads back. It may lie
 * only between the last one taken over and the tail; anything else is damage and ends
 * the file.
 *
 * The file that is mapped and polled keeps the file that it was made from, so
 * that the owner's memory is given up only when both are closed and unmapped.
 */
#include <linux/anon_inodes.h>
#include <linux/errno.h>
#include <linux/file.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "context.h"
#include "counters.h"

/* Bytes that a ring takes without its pages. */
#define RING_FIXED	1024

/* Each counter in a cache line of its own: one is written, the other read. */
struct ibchan_shared_ring {
	struct ibchan_ring header;
	u32 tail ____cacheline_aligned;
	u32 head ____cacheline_aligned;
	struct ibchan_cqe cqes[] ____cacheline_aligned;
};

/* Makes a ring of at least that many entries, 1 to IBCHAN_MAX_RING_ENTRIES. */
struct ibchan_user_ring *ibchan_ring_create(struct ibchan_context *ctx, u32 entries,
					    struct ibchan_reason *reason)
{
	struct ibchan_user_ring *ring = kzalloc(sizeof(*ring), GFP_KERNEL_ACCOUNT);
	size_t size;
	int ret;

	if (!ring)
		return ERR_PTR(-ENOMEM);
	kref_init(&ring->kref);
	ring->ctx = ctx;
	spin_lock_init(&ring->lock);
	ring->entries = roundup_pow_of_two(entries);
	init_waitqueue_head(&ring->wait);
	/* The pages, the list of them, the ring's own struct and its file. */
	size = PAGE_ALIGN(offsetof(struct ibchan_shared_ring, cqes[ring->entries]));
	ring->num_pages = size >> PAGE_SHIFT;
	ret = ibchan_cost_charge(&ring->cost, ctx->budget, size +
				 ring->num_pages * sizeof(struct page *) + RING_FIXED, reason);
	/* vmalloc_user() would not charge the pages to the caller's memory cgroup. */
	if (!ret)
		ring->shared = __vmalloc(size, GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN);
	if (!ring->shared) {
		ibchan_cost_pay_back(&ring->cost);
		kfree(ring);
		return ERR_PTR(ret ?: -ENOMEM);
	}
	ring->shared->header = (struct ibchan_ring){
		.abi_version = IBCHAN_ABI_VERSION,
		.entry_size = sizeof(struct ibchan_cqe),
		.entries = ring->entries,
		.entries_offset = offsetof(struct ibchan_shared_ring, cqes),
		.tail_offset = offsetof(struct ibchan_shared_ring, tail),
		.head_offset = offsetof(struct ibchan_shared_ring, head),
	};
	ibchan_gauge(rings, 1);
	return ring;
}

static void ring_free(struct kref *kref)
{
	struct ibchan_user_ring *ring = container_of(kref, struct ibchan_user_ring, kref);

	vfree(ring->shared);
	ibchan_cost_pay_back(&ring->cost);
	kfree_rcu(ring, rcu);
	ibchan_gauge(rings, -1);
}

void ibchan_ring_put(struct ibchan_user_ring *ring)
{
	kref_put(&ring->kref, ring_free);
}

/*
 * Takes over the reader's head and says how many completions lie unread. The
 * head is read before the tail, which only grows, so that an honest reader is
 * never ahead.
 */
static int refresh_head(struct ibchan_user_ring *ring)
{
	u32 head, tail;
	int ret;

	spin_lock_bh(&ring->lock);
	/* Pairs with the reader's release: it has read what is before the head. */
	head = smp_load_acquire(&ring->shared->head);
	tail = READ_ONCE(ring->tail);
	if (head - ring->head > tail - ring->head) {
		ret = -EPROTO;
	} else {
		WRITE_ONCE(ring->head, head);
		ret = tail - head;
	}
	spin_unlock_bh(&ring->lock);
	if (ret < 0)
		ibchan_context_break(ring->ctx);
	return ret;
}

/* Returns how many completions lie unread, or -EPROTO when the reader's head is damaged. */
int ibchan_ring_ready(struct ibchan_user_ring *ring)
{
	/* As refresh_head(), which decides what seems to be damaged. */
	u32 head = smp_load_acquire(&ring->shared->head);
	u32 tail = READ_ONCE(ring->tail);
	u32 seen = READ_ONCE(ring->head);

	return likely(head - seen <= tail - seen) ? tail - head : refresh_head(ring);
}

/*
 * Takes what room there is, where the head that was checked last leaves less than @num. Room is
 * signed: @reserved may be an old value that the head has passed meanwhile.
 */
static noinline int reserve_less(struct ibchan_user_ring *ring, u32 num)
{
	int ret, room, reserved = atomic_read(&ring->reserved);

	do {
		ret = refresh_head(ring);
		if (ret < 0)
			return ret;
		room = ring->entries - (reserved - READ_ONCE(ring->head));
		if (room <= 0)
			return -EAGAIN;
		num = min_t(u32, num, room);
	} while (!atomic_try_cmpxchg(&ring->reserved, &reserved, reserved + num));
	return num;
}

static int ring_reserve(void *priv, u32 num)
{
	struct ibchan_user_ring *ring = priv;
	int room, reserved = atomic_read(&ring->reserved);

	do {
		room = ring->entries - (reserved - READ_ONCE(ring->head));
		if (unlikely(room < (int)num))
			return reserve_less(ring, num);
	} while (!atomic_try_cmpxchg(&ring->reserved, &reserved, reserved + num));
	return num;
}

static void ring_cancel(void *priv, u32 num)
{
	atomic_sub(num, &((struct ibchan_user_ring *)priv)->reserved);
}

static void ring_done(void *priv, const struct ibchan_completion *completion)
{
	struct ibchan_user_ring *ring = priv;
	struct ibchan_shared_ring *shared = ring->shared;
	u32 tail = ring->tail, mask = ring->entries - 1;
	struct ibchan_cqe *cqe = shared->cqes + (tail & mask);
	/* Loaded before any store, so that the compiler copies together what lies side by side. */
	u32 bytes = completion->bytes, imm = completion->imm;
	u8 opcode = completion->opcode, flags = completion->flags;

	cqe->opcode = opcode;
	cqe->flags = flags;
	cqe->bytes = bytes;
	cqe->imm = imm;
	cqe->wr_id = completion->wr_id;
	cqe->channel = completion->cookie;
	cqe->status = completion->status;
	cqe->error = -(s32)completion->error;
	cqe->vendor_err = completion->vendor_err;
	/* Our own tail goes first: see refresh_head(). */
	WRITE_ONCE(ring->tail, ++tail);
	/* Pairs with the reader's acquire: the entry is whole. */
	smp_store_release(&shared->tail, tail);
}

static void ring_quiet(void *priv, const struct ibchan_completion *completion)
{
	struct ibchan_completion silent = *completion;

	silent.flags |= IBCHAN_CQE_SILENT;
	ring_done(priv, &silent);
}

static void ring_notify(void *priv)
{
	struct ibchan_user_ring *ring = priv;

	if (wq_has_sleeper(&ring->wait))
		wake_up_all(&ring->wait);
}

/* The ring @priv gets no completions any more, which wakes callers that poll the file. */
void ibchan_ring_end(void *priv)
{
	struct ibchan_user_ring *ring = priv;

	WRITE_ONCE(ring->gone, 1);
	wake_up_all(&ring->wait);
}

const struct ibchan_sink ibchan_ring_sink = {
	.reserve = ring_reserve,
	.cancel = ring_cancel,
	.done = ring_done,
	.quiet = ring_quiet,
	.notify = ring_notify,
	.gone = ibchan_ring_end,
};

static int waiter_ready(void *arg)
{
	const struct ibchan_call *call = arg;
	const struct ibchan_cmd_submit *cmd = call->cmd;
	struct ibchan_user_ring *ring = call->ring;
	int ready = READ_ONCE(ring->tail) - cmd->tail;

	if (!(cmd->flags & IBCHAN_SUBMIT_SINCE)) {
		ready = refresh_head(ring);
		if (ready < 0)
			return ready;
	}
	if (READ_ONCE(ring->ctx->broken))
		return -EPROTO;
	/* Completions in the ring can still be read; the cq brings no more. */
	if (!cmd->min_complete && READ_ONCE(ring->gone))
		return -ENODEV;
	return (u32)ready >= cmd->min_complete;
}

/*
 * The wait of a submit on @call->ring, for @min_complete; 0 just brings in the completions that the
 * cq has. The caller has a reference on the ring's cq. Returns the errors of ibchan_cq_wait(), and
 * -EPROTO when a ring of the context is damaged. Where the call has @posted something, it would do
 * so once more if the kernel ran it again.
 */
int ibchan_ring_wait(struct ibchan_call *call, u32 posted)
{
	struct ibchan_cmd_submit *cmd = call->cmd;
	struct ibchan_cq *cq = call->ring->cq;
	ktime_t start = posted ? 0 : ktime_get();
	int ret = ibchan_cq_wait(cq, waiter_ready, call,
				 ibchan_time_left(cmd->flags, cmd->timeout_ns));

	/* Later completions come into the ring without a call. */
	ibchan_cq_arm(cq);
	if (ret == -EINTR && !posted)
		return ibchan_wait_again(&cmd->flags, &cmd->timeout_ns, start);
	return min(ret, 0);
}

static __poll_t ring_poll(struct file *file, poll_table *table)
{
	struct ibchan_user_ring *ring = file->private_data;
	int ready;

	poll_wait(file, &ring->wait, table);
	ready = ibchan_ring_ready(ring);
	if (ready < 0 || READ_ONCE(ring->ctx->broken))
		return EPOLLERR | EPOLLHUP;
	return (ready ? EPOLLIN | EPOLLRDNORM : 0) | (READ_ONCE(ring->gone) ? EPOLLHUP : 0);
}

/*
 * Maps the whole ring, shared, for the opener only; children have no copy. It is never executable,
 * whatever was asked for: a process may have a personality where reading implies executing.
 */
static int ring_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct ibchan_user_ring *ring = file->private_data;
	unsigned long at = vma->vm_start;
	void *page = ring->shared;
	int ret = 0;

	if (current->mm != ring->ctx->mm)
		return -EPERM;
	if (vma->vm_pgoff || vma_pages(vma) != ring->num_pages || !(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	vm_flags_set(vma, VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP);
	vm_flags_clear(vma, VM_EXEC | VM_MAYEXEC);
	vma->vm_page_prot = vm_get_page_prot(vma->vm_flags);
	for (; at < vma->vm_end && !ret; at += PAGE_SIZE, page += PAGE_SIZE)
		ret = vm_insert_page(vma, at, vmalloc_to_page(page));
	return ret;
}

static int ring_release(struct inode *inode, struct file *file)
{
	struct ibchan_user_ring *ring = file->private_data;
	struct file *owner = ring->owner;

	ibchan_ring_put(ring);
	fput(owner);
	return 0;
}

static const struct file_operations ring_fops = {
	.owner = THIS_MODULE,
	.poll = ring_poll,
	.mmap = ring_mmap,
	.release = ring_release,
	.llseek = noop_llseek,
};

/* Makes the file that user space maps and polls; it keeps @owner, the file of the context. */
struct file *ibchan_ring_file(struct ibchan_user_ring *ring, struct file *owner)
{
	struct file *file = anon_inode_getfile("[ibchan-cq]", &ring_fops, ring,
					       O_RDWR | O_CLOEXEC);

	if (IS_ERR(file))
		return file;
	ring->owner = get_file(owner);
	kref_get(&ring->kref);
	return file;
}
