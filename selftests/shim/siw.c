// SPDX-License-Identifier: GPL-2.0-only
#include <unistd.h>

#include "namespace.h"
#include "siw.h"

static const char add_device[] =
	"[ -e /sys/class/net/iw0 ] || ip link add iw0 type dummy;"
	" ip address replace " SIW_HOST "/24 dev iw0;"
	" ip address replace " SIW_HOST6 "/64 dev iw0 nodad;"
	" ip link set iw0 up; rdma link add " SIW_DEVICE " type siw netdev iw0";

bool siw_load(void)
{
	return !run_script("modprobe -q siw");
}

static bool has_device(void)
{
	return !access("/sys/class/infiniband/" SIW_DEVICE, F_OK);
}

int siw_add(void)
{
	return has_device() ? 0 : run_script(add_device);
}

void siw_remove(void)
{
	if (has_device())
		run_script("rdma link delete " SIW_DEVICE);
	if (!access("/sys/class/net/iw0", F_OK))
		run_script("ip link delete iw0");
}
