#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A server that takes one message, and its client: short.py [HOST]"""
import sys

import ibchan

if len(sys.argv) > 1:
    with ibchan.dial(sys.argv[1], 7471) as channel:
        channel.send(b"hello, server")
else:
    with ibchan.serve(service=7471) as server, server.take() as channel:
        print(channel.receive().decode())
