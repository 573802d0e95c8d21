// SPDX-License-Identifier: GPL-2.0-only
#include "dialer.h"

void *dial(void *arg)
{
	struct dialer *dialer = arg;

	dialer->rc = ibchan_dial(dialer->host, dialer->port, dialer->params, &dialer->channel,
				 &dialer->error);
	return NULL;
}
