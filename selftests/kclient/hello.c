// SPDX-License-Identifier: GPL-2.0-only
/*
 * ibchan_hello: the smallest complete kernel consumer. One device sends a line of
 * text to another, over a channel.
 *
 *	insmod ibchan_hello.ko [from=rxe0] [to=rxe1]
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <rdma/ibchan.h>
#include <rdma/ibchan_scope.h>

static char *from = "rxe0";
module_param(from, charp, 0444);
static char *to = "rxe1";
module_param(to, charp, 0444);

#define TEXT_SIZE	64

/* One end. What is NULL has not been made, so close_end() works from any point. */
struct end {
	struct ibchan_device *dev;
	struct ibchan_pd *pd;
	struct ibchan_cq *cq;
	struct ibchan_mr *mr;
	struct ibchan_channel *ch;
	char *text;
};

/* Keeps what was made; returns the errno of what was not. */
#define MAKE(pointer, call)						\
	({								\
		typeof(pointer) made = (call);				\
		(pointer) = IS_ERR(made) ? NULL : made;			\
		PTR_ERR_OR_ZERO(made);					\
	})

static int open_end(struct end *end, const char *name)
{
	struct ibchan_cq_init cq = { .entries = 64 };
	struct ibchan_build build = { .net = &init_net };
	struct ibchan_params params;
	int ret;

	ibchan_params_init(&params);
	end->text = kzalloc(TEXT_SIZE, GFP_KERNEL);
	if (!end->text)
		return -ENOMEM;
	ret = MAKE(end->dev, ibchan_device_get(name, &init_net));
	/* Memory and channels meet only inside one domain. */
	ret = ret ?: MAKE(end->pd, ibchan_pd_alloc(end->dev));
	/* No peer gets a key to this memory: it can only be sent and received. */
	ret = ret ?: MAKE(end->mr, ibchan_mr_reg_kernel(end->pd, end->text, TEXT_SIZE,
							 IBCHAN_ACCESS_LOCAL, NULL));
	ret = ret ?: MAKE(end->cq, ibchan_cq_create(end->dev, &cq, NULL));
	if (ret)
		return ret;
	build.pd = end->pd;
	build.send_cq = end->cq;
	build.recv_cq = end->cq;
	return MAKE(end->ch, ibchan_channel_build(&build, &params, NULL));
}

/* Closing the channel first ends all work, so that nothing is busy after it. */
static void close_end(struct end *end)
{
	if (end->ch)
		ibchan_channel_close(end->ch);
	if (end->mr)
		ibchan_mr_put(end->mr, NULL, NULL);
	if (end->cq)
		ibchan_cq_put(end->cq);
	if (end->pd)
		ibchan_pd_free(end->pd);
	if (end->dev)
		ibchan_device_put(end->dev);
	kfree(end->text);
}

/* Endpoints usually cross a network; here both ends are at hand. */
static int connect_ends(struct end *a, struct end *b)
{
	struct ibchan_endpoint endpoint_a, endpoint_b;
	int ret;

	ibchan_channel_endpoint(a->ch, &endpoint_a);
	ibchan_channel_endpoint(b->ch, &endpoint_b);
	ret = ibchan_channel_handshake(a->ch, &endpoint_b, NULL);
	return ret ?: ibchan_channel_handshake(b->ch, &endpoint_a, NULL);
}

static int say_hello(struct end *a, struct end *b)
{
	struct ibchan_sge source = ibchan_sge_new(a->mr, 0, TEXT_SIZE);
	struct ibchan_sge target = ibchan_sge_new(b->mr, 0, TEXT_SIZE);
	struct ibchan_wr receive = ibchan_wr_receive(&target, 1);
	struct ibchan_pending pending = {};
	struct ibchan_scope scope;
	int ret = 0;

	strscpy(a->text, "hello from the other device", TEXT_SIZE);
	/* However this block is left, the receive has ended behind it: it is on our stack. */
	ibchan_scoped(&scope) {
		ret = ibchan_scope_post(&scope, &pending, b->ch, &receive, NULL);
		if (!ret)
			ret = ibchan_channel_send(a->ch, &source, 1, NULL);
		/* A receive that nobody sends to ends only with its channel. */
		if (ret)
			ibchan_channel_break(b->ch, ret);
	}
	return ret ?: ibchan_scope_error(&scope);
}

static int __init hello_init(void)
{
	struct end a = {}, b = {};
	int ret;

	ret = open_end(&a, from);
	ret = ret ?: open_end(&b, to);
	ret = ret ?: connect_ends(&a, &b);
	ret = ret ?: say_hello(&a, &b);
	if (!ret)
		pr_info("%s received: %s\n", to, b.text);
	close_end(&a);
	close_end(&b);
	return ret;
}

static void __exit hello_exit(void)
{
}

module_init(hello_init);
module_exit(hello_exit);

MODULE_DESCRIPTION("The smallest complete consumer of ibchan");
MODULE_AUTHOR("The ibchan authors");
MODULE_LICENSE("GPL");
MODULE_INFO(import_ns, "IBCHAN");
