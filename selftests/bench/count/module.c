// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module's side of the counted program: a channel, a region and a ring, on a device that takes
 * no instructions and completes each work in its post. Objects are filled in as far as a post and
 * a completion look at them. Kbuild compiles this file with the module's own flags.
 */
#define IBCHAN_FLOOR_verbs
#define IBCHAN_FLOOR_channel
#define IBCHAN_FLOOR_connect

#include <rdma/ib_verbs.h>

#include "context.h"
#include "submit.h"
#include "work.h"

#include "count.h"

/* Of the ring, with room for its header. */
#define RING_BYTES	(64 * 1024)

#define DEPTH		64

char count_ring[RING_BYTES] __aligned(PAGE_SIZE);

static struct ib_device ib_device;
static struct ib_qp ib_qp;
static struct ib_cq ib_cq;
static struct ib_mr ib_mr;
static struct ibchan_device device;
static struct ibchan_pd pd;
static struct ibchan_channel channel;
static struct ibchan_cq *cq;
static struct ibchan_mr mr;
static struct ibchan_user_ring ring;
static struct ibchan_context context;
static struct file file;
static struct ibchan_object object_channel;
static struct ibchan_object object_mr;
static struct ibchan_object object_cq;
static struct ibchan_work works[COUNT_WORKS];
static struct ibchan_sge sges[COUNT_WORKS];
static struct ibchan_wr wrs[COUNT_WORKS];
/* Room for more than a batch: a poll that has to stop behind one calls a worker. */
static struct ibchan_completion completions[2 * COUNT_WORKS];

static struct {
	struct ib_cqe *cqe[2 * DEPTH];
	int num;
} completed;

static int count_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			   const struct ib_send_wr **bad)
{
	for (; wr; wr = wr->next)
		completed.cqe[completed.num++] = wr->wr_cqe;
	return 0;
}

static int count_poll_cq(struct ib_cq *ib, int max, struct ib_wc *wc)
{
	int i, num = min(max, completed.num);

	for (i = 0; i < num; i++)
		wc[i] = (struct ib_wc){ .wr_cqe = completed.cqe[i] };
	completed.num -= num;
	memmove(completed.cqe, &completed.cqe[num], completed.num * sizeof(completed.cqe[0]));
	return num;
}

static int count_notify_cq(struct ib_cq *ib, enum ib_cq_notify_flags flags)
{
	return 0;
}

static void count_done(struct ibchan_work *work, const struct ibchan_completion *completion)
{
}

/* In the place of the kernel's, which calls the driver. */
struct ib_cq *__ib_create_cq(struct ib_device *dev, ib_comp_handler handler,
			     void (*event)(struct ib_event *event, void *context), void *context,
			     const struct ib_cq_init_attr *attr, const char *caller)
{
	return &ib_cq;
}

static void set_up_device(void)
{
	device.ib = &ib_device;
	device.attr.max_cqe = COUNT_RING_ENTRIES;
	refcount_set(&device.users, 1);
	INIT_LIST_HEAD(&device.cqs);
	ib_device.ops.post_send = count_post_send;
	ib_device.ops.poll_cq = count_poll_cq;
	ib_device.ops.req_notify_cq = count_notify_cq;
	ib_qp.device = &ib_device;
	ib_cq.device = &ib_device;
}

/* Returns an errno. */
static int set_up_cq(int user, int keep)
{
	const struct ibchan_cq_init init = {
		.flags = IBCHAN_CQ_POLLED | (keep ? IBCHAN_CQ_KEEP : 0),
		.sink = user ? &ibchan_ring_sink : NULL,
		.priv = &ring,
	};

	cq = ibchan_cq_create(&device, &init, NULL);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	INIT_LIST_HEAD(&cq->wait.head);
	return 0;
}

static void set_up_channel(void)
{
	int i;

	channel.bounds.pd = &pd;
	channel.bounds.caps = ~0U;
	channel.bounds.max_message = IBCHAN_MAX_MESSAGE;
	channel.bounds.max_rd_atomic = 1;
	channel.bounds.odd = ibchan_odd_head(true);
	for (i = 0; i < ARRAY_SIZE(channel.bounds.max_sge); i++)
		channel.bounds.max_sge[i] = 4;
	channel.state = IBCHAN_CHANNEL_CONNECTED;
	channel.cookie = COUNT_CHANNEL;
	channel.qp.ib = &ib_qp;
	channel.qp.dev = &device;
	channel.qp.pd = &pd;
	channel.send.max_sge = 4;
	channel.recv.max_sge = 4;
	channel.send.cq = cq;
	channel.recv.cq = cq;
	ibchan_queue_init(&channel.send, &channel, DEPTH);
	ibchan_queue_init(&channel.recv, &channel, DEPTH);
	ibchan_sgl_init(&channel, 0);
}

static void set_up_mr(void)
{
	mr.ib = &ib_mr;
	mr.extent.pd = &pd;
	mr.extent.length = 1 << 20;
	mr.extent.access = IBCHAN_ACCESS_LOCAL_WRITE;
	mr.extent.allows = mr.extent.access | IBCHAN_MAY_GATHER | IBCHAN_MAY_SINK |
			   IBCHAN_IS_WHOLE;
	ibchan_users_init(&mr.users);
	mr.addr = 1 << 20;
	mr.lkey = 1;
	ibchan_busy_init(&mr.busy);
}

static void set_up_works(void)
{
	int i;

	for (i = 0; i < COUNT_WORKS; i++) {
		works[i].done = count_done;
		sges[i] = ibchan_sge_new(&mr, i * COUNT_BYTES, COUNT_BYTES);
		wrs[i] = (struct ibchan_wr){
			.sges = &sges[i],
			.num_sge = 1,
			.opcode = IBCHAN_OP_WRITE,
			.remote_addr = 1 << 20,
			.remote_length = 1 << 20,
			.rkey = 1,
		};
	}
}

static void publish(struct ibchan_object *object, u32 type, u32 id, void *any)
{
	object->id = id;
	object->type = type;
	object->any = any;
	rcu_assign_pointer(context.young[id], object);
}

static void set_up_file(void *task)
{
	ring.cq = cq;
	ring.ctx = &context;
	ring.entries = COUNT_RING_ENTRIES;
	ring.shared = (struct ibchan_shared_ring *)count_ring;
	INIT_LIST_HEAD(&ring.wait.head);
	context.mm = (struct mm_struct *)&context;
	((struct task_struct *)task)->mm = context.mm;
	object_channel.pd_of_channel = &pd;
	publish(&object_channel, OBJECT_CHANNEL, COUNT_CHANNEL, &channel);
	publish(&object_mr, OBJECT_MR, COUNT_MR, &mr);
	publish(&object_cq, OBJECT_CQ, COUNT_CQ, &ring);
	file.private_data = &context;
}

/*
 * @task: zeroed memory for the task that runs. @user: completions by wr_id go to the ring. @keep:
 * they stay in the kernel. Returns an errno.
 */
int count_module_init(void *task, int user, int keep)
{
	int ret;

	set_up_device();
	ret = set_up_cq(user, keep);
	if (ret)
		return ret;
	set_up_channel();
	set_up_mr();
	set_up_works();
	set_up_file(task);
	return 0;
}

/* Posts and polls the works of one operation. Returns how many of them have ended, or an errno. */
int count_kernel(const struct count_shape *shape)
{
	u32 accepted, posted = 0;
	int i, ret = 0, done = 0;

	for (i = 0; i < shape->works; i++) {
		wrs[i].flags = shape->exclusive ? IBCHAN_WR_EXCLUSIVE : 0;
		wrs[i].work = shape->by_wr_id ? NULL : &works[i];
	}
	count_begin();
	for (i = 0; !ret && i < shape->works; i += shape->chain) {
		ret = ibchan_post(&channel, &wrs[i], shape->chain, &accepted, NULL);
		posted += accepted;
	}
	if (!ret)
		done = shape->by_wr_id ? ibchan_cq_poll(cq, completions, 2 * COUNT_WORKS) :
					 ibchan_cq_reap(cq, 4 * COUNT_WORKS);
	count_end();
	return ret ?: done == posted ? done : -EIO;
}

long count_ioctl(unsigned int number, unsigned long arg)
{
	return ibchan_fops.unlocked_ioctl(&file, number, arg);
}
