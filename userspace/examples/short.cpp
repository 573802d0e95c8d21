// SPDX-License-Identifier: LGPL-2.1-or-later
/* A server that takes one message, and its client: short [HOST] */
#include <ibchan.hpp>
#include <iostream>

int main(int argc, char **argv)
{
	try {
		if (argc > 1)
			ibchan::dial(argv[1], "7471").send("hello, server");
		else
			std::cout << ibchan::server("7471").take().receive() << '\n';
	} catch (const std::exception &failure) {
		std::cerr << failure.what() << '\n';
		return 1;
	}
}
