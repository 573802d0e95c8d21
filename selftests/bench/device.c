// SPDX-License-Identifier: GPL-2.0-only
/* The device to measure on, and the address that its queue pairs use. */
#include <linux/device.h>
#include <linux/err.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>

#include "kbench.h"

static const char *wanted;
static struct ib_device *found;

static int client_add(struct ib_device *dev)
{
	if (!strcmp(dev_name(&dev->dev), wanted))
		found = dev;
	return 0;
}

static void client_remove(struct ib_device *dev, void *data)
{
	if (found == dev)
		found = NULL;
}

static struct ib_client client = {
	.name = "ibchan_kbench",
	.add = client_add,
	.remove = client_remove,
};

/**
 * kbench_device_find - a device by its name
 * @name: as the rdma tool shows it
 *
 * The device stays until kbench_device_release(): who measures does not delete
 * it meanwhile.
 *
 * Return: the device; -ENODEV when there is none of that name.
 */
struct ib_device *kbench_device_find(const char *name)
{
	int ret;

	wanted = name;
	ret = ib_register_client(&client);
	if (ret)
		return ERR_PTR(ret);
	if (found)
		return found;
	ib_unregister_client(&client);
	return ERR_PTR(-ENODEV);
}

void kbench_device_release(void)
{
	ib_unregister_client(&client);
}

static int fill_address(struct ib_device *dev, const struct ib_gid_attr *attr,
			struct kbench_address *address)
{
	struct ib_port_attr port;
	int ret = ib_query_port(dev, 1, &port);

	if (ret)
		return ret;
	address->index = attr->index;
	address->gid = attr->gid;
	address->mtu = port.active_mtu;
	return rdma_read_gid_l2_fields(attr, NULL, address->mac);
}

static bool is_ipv4(const struct ib_gid_attr *attr)
{
	struct in6_addr addr;

	memcpy(&addr, attr->gid.raw, sizeof(addr));
	return attr->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP && ipv6_addr_v4mapped(&addr);
}

/**
 * kbench_address_find - the first IPv4 address of port 1, which ibchan takes too
 * @dev: the device
 * @address: filled on success
 *
 * Return: 0; -EADDRNOTAVAIL; the driver's errno.
 */
int kbench_address_find(struct ib_device *dev, struct kbench_address *address)
{
	int entries = dev->port_data[1].immutable.gid_tbl_len;
	const struct ib_gid_attr *attr;
	int ret = -EADDRNOTAVAIL;
	int i;

	for (i = 0; i < entries && ret == -EADDRNOTAVAIL; i++) {
		attr = rdma_get_gid_attr(dev, 1, i);
		if (IS_ERR(attr))
			continue;
		if (is_ipv4(attr))
			ret = fill_address(dev, attr, address);
		rdma_put_gid_attr(attr);
	}
	return ret;
}
