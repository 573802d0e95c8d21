// SPDX-License-Identifier: LGPL-2.1-or-later
//! RDMA channels that cannot corrupt memory, by libibchan.
//!
//! The shortest way is a stream of messages between two programs. A server, and its client:
//!
//! ```no_run
//! let stream = ibchan::serve(7471)?.take()?;
//! println!("{}", String::from_utf8_lossy(&stream.receive()?));
//! # Ok::<(), ibchan::Error>(())
//! ```
//!
//! ```no_run
//! ibchan::dial("10.77.0.1", 7471)?.send(b"hello, server")?;
//! # Ok::<(), ibchan::Error>(())
//! ```
//!
//! Programs need `libibchan.so`; a build finds it by `pkg-config`, or in the folder `IBCHAN_LIB_DIR`.
#![deny(missing_docs, unsafe_op_in_unsafe_fn)]
#![deny(clippy::undocumented_unsafe_blocks)]

mod error;
#[allow(dead_code)]
mod ffi;
mod message;

pub use error::{Error, Result};
pub use message::{dial, serve, Options, Server, Stream};
