// SPDX-License-Identifier: LGPL-2.1-or-later
//! RDMA channels that cannot corrupt memory, by libibchan.
//!
//! The shortest way is a stream of messages between two programs. A server, and its client:
//!
//! ```no_run
//! let stream = ibchan::serve(7471)?.take()?;
//! println!("{}", String::from_utf8_lossy(&stream.receive()?.unwrap_or_default()));
//! # Ok::<(), ibchan::Error>(())
//! ```
//!
//! ```no_run
//! ibchan::dial("10.77.0.1", 7471)?.send(b"hello, server")?;
//! # Ok::<(), ibchan::Error>(())
//! ```
//!
//! What is underneath: [`open_device`], a [`ProtectionDomain`], memory ([`memory`]), a [`Channel`]
//! ([`channel`]), and works on it ([`work`]).
//!
//! # What the types hold
//!
//! A device writes into memory, and reads it, beside the program. So memory that a work uses belongs
//! to the work: it is borrowed for a call or for a scope, or it moves into the work and comes back. No
//! call of this crate is `unsafe`; to drop or to forget any of its values leaks at most. Memory that
//! peers may reach is never lent, only copied.
//!
//! Programs need `libibchan.so`; a build finds it by `pkg-config`, or in the folder `IBCHAN_LIB_DIR`.
#![deny(missing_docs, unsafe_op_in_unsafe_fn)]
#![deny(clippy::undocumented_unsafe_blocks)]

pub mod channel;
mod device;
mod element;
mod error;
mod ffi;
pub mod memory;
mod message;
mod next;
mod pending;
mod scope;
pub mod work;

pub use channel::Channel;
pub use device::{open_device, open_device_for, open_first_device, Context};
pub use error::{Error, Result};
pub use memory::ProtectionDomain;
pub use message::{dial, serve, Options, Server, Stream};
pub use next::{By, Happening, Loop};
pub use pending::{Buffer, BufferMut, Completion, PendingWork, PostError};

/// What may go to other threads, and what those may share.
const _: () = {
    const fn moves<T: Send>() {}
    const fn is_shared<T: Send + Sync>() {}

    is_shared::<Channel>();
    is_shared::<Error>();
    is_shared::<Loop>();
    is_shared::<ProtectionDomain>();
    is_shared::<Server>();
    is_shared::<Stream>();
    is_shared::<memory::MemoryRegion>();
    is_shared::<memory::RegisteredBuffer>();
    moves::<PendingWork<Vec<u8>>>();
    moves::<memory::SharedMemoryRegion>();
};
