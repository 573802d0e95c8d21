// SPDX-License-Identifier: GPL-2.0-only
/*
 * Implements the ports of the NVMe target, and loads and unloads the module. A port listens; a
 * worker answers requests, since that takes memory and time, and the connection manager's
 * handler must not wait.
 */
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "transport.h"

static unsigned int trtype = NVMF_TRTYPE_RDMA;
module_param(trtype, uint, 0444);
MODULE_PARM_DESC(trtype, "transport type of the target (default 1: rdma; 254: beside nvmet-rdma)");

/* Answers requests. */
static struct workqueue_struct *transport_wq;

/* A port of the target that is enabled. */
struct port {
	struct nvmet_port *nport;
	struct mutex lock;			/* guards listener */
	struct ibchan_listener *listener;	/* NULL: it is being disabled */
	struct work_struct accept;
};

/* Requests that wait: a host that connects comes with as many as it has queues. */
#define BACKLOG		128

static void port_accept(struct work_struct *work)
{
	struct port *port = container_of(work, struct port, accept);
	struct ibchan_request *request;

	for (;;) {
		mutex_lock(&port->lock);
		request = IS_ERR_OR_NULL(port->listener) ? ERR_PTR(-ENODEV) :
			  ibchan_request_take(port->listener);
		mutex_unlock(&port->lock);
		if (IS_ERR(request))
			return;
		queue_answer(request, port->nport);
	}
}

static void port_ready(void *priv)
{
	queue_work(transport_wq, &((struct port *)priv)->accept);
}

static int port_parse(const struct nvmet_port *nport, struct sockaddr_storage *address)
{
	int family = nport->disc_addr.adrfam == NVMF_ADDR_FAMILY_IP4 ? AF_INET : AF_INET6;

	if (family == AF_INET6 && nport->disc_addr.adrfam != NVMF_ADDR_FAMILY_IP6)
		return -EINVAL;
	return inet_pton_with_scope(&init_net, family, nport->disc_addr.traddr,
				    nport->disc_addr.trsvcid, address);
}

/* The target enables a port. Of data in capsules -1 stands for the default. */
static int port_add(struct nvmet_port *nport)
{
	struct port *port = kzalloc(sizeof(*port), GFP_KERNEL);
	struct sockaddr_storage address;
	struct ibchan_listener_init init = {
		.net = &init_net, .address = (struct sockaddr *)&address,
		.backlog = BACKLOG, .ready = port_ready, .priv = port,
	};
	int ret = port_parse(nport, &address);

	if (!port || ret)
		goto out;
	if (nport->inline_data_size < 0)
		nport->inline_data_size = PAGE_SIZE;
	nport->inline_data_size = min_t(int, nport->inline_data_size, CAPSULE_MAX_DATA);
	port->nport = nport;
	mutex_init(&port->lock);
	INIT_WORK(&port->accept, port_accept);
	/* A request may come before the listener is known here: its worker waits. */
	mutex_lock(&port->lock);
	port->listener = ibchan_listener_create(&init, NULL);
	mutex_unlock(&port->lock);
	nport->priv = port;
	ret = PTR_ERR_OR_ZERO(port->listener);
	if (ret)
		cancel_work_sync(&port->accept);
out:
	if (ret)
		kfree(port);
	return port ? ret : -ENOMEM;
}

/*
 * The target disables a port. Its queues end on the target's work queue, which the target waits
 * for before @nport goes.
 */
static void port_remove(struct nvmet_port *nport)
{
	struct port *port = nport->priv;
	struct ibchan_listener *listener;

	mutex_lock(&port->lock);
	listener = port->listener;
	port->listener = NULL;
	mutex_unlock(&port->lock);
	ibchan_listener_close(listener);
	cancel_work_sync(&port->accept);
	queues_end(nport, NULL);
	kfree(port);
}

/* The address for the discovery log: of a port at any address, the one that was asked for. */
static void port_address(struct nvmet_req *req, struct nvmet_port *nport, char *traddr)
{
	struct queue *queue = container_of(req, struct exchange, req)->queue;
	struct sockaddr_storage address;

	if (!port_parse(nport, &address) && inet_addr_is_any((void *)&address))
		snprintf(traddr, NVMF_TRADDR_SIZE, "%pISc", &queue->attr.local);
	else
		memcpy(traddr, nport->disc_addr.traddr, NVMF_TRADDR_SIZE);
}

static void delete_ctrl(struct nvmet_ctrl *ctrl)
{
	queues_end(NULL, ctrl);
}

static u8 get_mdts(const struct nvmet_ctrl *ctrl)
{
	return TRANSPORT_MDTS;
}

static u16 get_max_queue_size(const struct nvmet_ctrl *ctrl)
{
	return NVME_RDMA_MAX_QUEUE_SIZE;
}

struct nvmet_fabrics_ops transport_ops = {
	.owner			= THIS_MODULE,
	.msdbd			= 1,
	.flags			= NVMF_KEYED_SGLS,
	.add_port		= port_add,
	.remove_port		= port_remove,
	.queue_response		= exchange_respond,
	.delete_ctrl		= delete_ctrl,
	.disc_traddr		= port_address,
	.get_mdts		= get_mdts,
	.get_max_queue_size	= get_max_queue_size,
};

static int __init transport_init(void)
{
	int ret;

	if (trtype >= NVMF_TRTYPE_MAX)
		return -EINVAL;
	transport_wq = alloc_workqueue("ibchan_nvmet", WQ_UNBOUND, 0);
	if (!transport_wq)
		return -ENOMEM;
	transport_ops.type = trtype;
	ret = nvmet_register_transport(&transport_ops);
	if (ret)
		destroy_workqueue(transport_wq);
	return ret;
}

/* No port is enabled any more, for each holds this module. */
static void __exit transport_exit(void)
{
	nvmet_unregister_transport(&transport_ops);
	queues_await();
	destroy_workqueue(transport_wq);
}

module_init(transport_init);
module_exit(transport_exit);

MODULE_DESCRIPTION("NVMe target over ibchan channels");
MODULE_AUTHOR("The ibchan authors");
MODULE_LICENSE("GPL");
MODULE_INFO(import_ns, "IBCHAN");
