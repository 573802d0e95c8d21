// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>

#include "answer.h"
#include "work.h"

struct answer ask(const struct side *side, const struct ibchan_submit_wr *wrs, unsigned int n)
{
	struct answer answer = { .cmd = submission(wrs, n) };

	answer.rc = cmd_submit(side->fd, &answer.cmd);
	return answer;
}

struct answer ask_one(const struct side *side, const struct ibchan_submit_wr *wr)
{
	return ask(side, wr, 1);
}

int is_refusal(const struct answer *answer, int error, unsigned int code)
{
	if (answer->rc == -error && answer->cmd.reason.code == code && !answer->cmd.entry_num)
		return 0;
	fprintf(stderr, "# %d instead of %d, reason %u instead of %u, %u accepted\n", answer->rc,
		-error, answer->cmd.reason.code, code, answer->cmd.entry_num);
	return -EBADMSG;
}

int has_values(const struct answer *answer, __u64 first, __u64 second, __u64 third)
{
	const __u64 wanted[] = { first, second, third };
	const __u64 *seen = answer->cmd.reason.value;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		if (seen[i] == wanted[i])
			continue;
		fprintf(stderr, "# value %u of the reason is %llu instead of %llu\n", i,
			(unsigned long long)seen[i], (unsigned long long)wanted[i]);
		return -EBADMSG;
	}
	return 0;
}
