// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <string.h>

#include "dice.h"

#define COUNT(array)	(sizeof(array) / sizeof((array)[0]))

__u32 roll(struct dice *dice)
{
	dice->state = dice->state * 6364136223846793005ULL + 1442695040888963407ULL;
	return dice->state >> 32;
}

__u64 interesting(struct dice *dice)
{
	static const __u64 values[] = {
		0, 1, 2, 7, 8, 63, 64, 4095, 4096, 0x7fffffff, 0x80000000, 0xffffffff,
		0x100000000ULL, 0x7fffffffffffffffULL, 1ULL << 63, ~0ULL, ~0ULL - 4095,
	};

	return values[roll(dice) % COUNT(values)];
}

void spoil(struct dice *dice, void *bytes, size_t size)
{
	unsigned int times = roll(dice) % 5;
	size_t i;

	if (roll(dice) % 16 == 0) {
		for (i = 8; i < size; i++)
			((__u8 *)bytes)[i] = roll(dice);
		return;
	}
	while (times--) {
		size_t width = 1U << roll(dice) % 4;
		__u64 value = roll(dice) % 2 ? interesting(dice) : roll(dice);

		i = roll(dice) % size / width * width;
		if (i + width <= size)
			memcpy((char *)bytes + i, &value, width);
	}
}

bool is_documented(int rc)
{
	static const int documented[] = {
		0, ENOTTY, E2BIG, EOPNOTSUPP, EINVAL, EFAULT, ENOENT, EPERM, EBUSY, EAGAIN, EACCES,
		EXDEV, ENOTCONN, EISCONN, ESHUTDOWN, ENODEV, ETIMEDOUT, EINTR, EPROTO,
		EADDRNOTAVAIL, ENETDOWN, EHOSTUNREACH, ENETUNREACH, ECONNRESET, EAFNOSUPPORT,
		EADDRINUSE, ENOMEM, EMFILE, EDQUOT, EBADF,
	};
	unsigned int i;

	for (i = 0; i < COUNT(documented); i++) {
		if (rc == -documented[i])
			return true;
	}
	return false;
}
