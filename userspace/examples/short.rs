// SPDX-License-Identifier: LGPL-2.1-or-later
//! A server that takes one message, and its client: short [HOST]
use std::env;

fn main() -> ibchan::Result<()> {
    match env::args().nth(1) {
        Some(host) => ibchan::dial(&host, 7471)?.send(b"hello, server"),
        None => {
            let message = ibchan::serve(7471)?.take()?.receive()?.unwrap_or_default();
            println!("{}", String::from_utf8_lossy(&message));
            Ok(())
        }
    }
}
